//! Figures are drawn at the right positions, and accept numbers that cannot be drawn.

use mclv_report::figure::{Axis, Drawing, Figure, PictureGrid, Point, Series, Shades, Theme, save};

fn decode(png: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgba);
    (info.height as usize, info.width as usize, pixels)
}

fn count(pixels: &[u8], colour: [u8; 3]) -> usize {
    pixels.as_chunks::<4>().0.iter().filter(|p| p[..3] == colour).count()
}

/// Returns true if every element is closed in order, as strict readers require.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|part| part.split('>').next().unwrap()) {
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name.to_owned()) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().unwrap().into()),
        }
    }
    open.is_empty()
}

fn everything() -> Figure {
    let line = (0..50).map(|k| Point::with_error(f64::from(k), -30.0 + f64::from(k).sqrt(), 0.5));
    let step = [(0.0, -30.0), (10.0, -28.0), (40.0, -25.0)].map(|(x, y)| Point::new(x, y));
    let dots = [Point::between(5.0, -29.0, -29.5, -27.0), Point::new(30.0, -26.0)];
    Figure::new("Likelihood & <more>")
        .x(Axis::linear("epoch"))
        .y(Axis::linear("log-likelihood (nats)"))
        .with(Series::line("train", line))
        .with(Series::step("best", step).dashed())
        .with(Series::points("log Ẑ", dots))
        .level("entropy", -24.0)
        .place("end of warm-up", 15.0)
}

#[test]
fn a_figure_is_well_formed_and_says_what_it_shows() {
    for theme in [Theme::Paper, Theme::Page] {
        let svg = everything().svg(theme);
        assert!(is_well_formed(&svg), "{svg}");
        for text in ["Likelihood &amp; &lt;more&gt;", "epoch", "log Ẑ", "entropy", "end of warm-up", "−26"]
        {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.contains("var(--series-0,#0072b2)"), theme == Theme::Page);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

#[test]
fn pixels_have_the_colours_of_the_series_and_letters_are_drawn() {
    let (height, width, pixels) = decode(&everything().png(2.0));
    assert_eq!((height, width), (800, 1280));
    for colour in [[0x00, 0x72, 0xb2], [0xd5, 0x5e, 0x00], [0x00, 0x9e, 0x73]] {
        assert!(count(&pixels, colour) > 50, "{colour:?}");
    }
    // The pixels of the title, which would be missing without the font.
    assert!(count(&pixels, [0x1f, 0x23, 0x28]) > 200);
    let (_, _, untitled) = decode(&everything().renamed(Some(""), Some(""), Some("")).png(2.0));
    assert!(count(&untitled, [0x1f, 0x23, 0x28]) < count(&pixels, [0x1f, 0x23, 0x28]) / 2);
}

#[test]
fn a_line_goes_where_its_points_are() {
    // From corner to corner of a known range: the path begins lower left and ends upper right of
    // its frame.
    let figure = Figure::new("")
        .x(Axis::log("").from_to(1.0, 100.0))
        .y(Axis::linear("").from_to(0.0, 1.0))
        .with(Series::line("", [Point::new(1.0, 0.0), Point::new(10.0, 0.5), Point::new(100.0, 1.0)]));
    let svg = figure.svg(Theme::Paper);
    let nested = svg.split(r#"<svg x="#).nth(1).unwrap();
    let attribute = |name: &str| -> f64 {
        nested.split(&format!(r#"{name}=""#)).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let (width, height) = (attribute("width"), attribute("height"));
    let path = nested.split(r#"d=""#).nth(1).unwrap().split('"').next().unwrap();
    let numbers: Vec<f64> = path.split(['M', 'L', ' ']).filter_map(|t| t.parse().ok()).collect();
    let expected = [0.0, height, width / 2.0, height / 2.0, width, 0.0];
    assert_eq!(numbers.len(), 6, "{path}");
    assert!(numbers.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.02), "{numbers:?} {expected:?}");
}

#[test]
fn what_cannot_be_drawn_leaves_a_gap() {
    let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 0.0), (4.0, 0.1), (5.0, f64::INFINITY), (6.0, 0.01)];
    let points = points.map(|(x, y)| Point::between(x, y, 0.0, y * 2.0));
    for series in [
        Series::line("a", points),
        Series::step("b", points),
        Series::points("c", points),
        Series::bars("d", points),
    ] {
        for y in [Axis::log("y"), Axis::linear("y")] {
            let svg = Figure::new("t").x(Axis::linear("x")).y(y).with(series.clone()).svg(Theme::Paper);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && is_well_formed(&svg), "{svg}");
        }
    }
    let empty = Figure::new("nothing").with(Series::line("a", []));
    assert!(empty.is_empty() && is_well_formed(&empty.svg(Theme::Page)));
    assert!(Figure::new("").y(Axis::log("")).with(Series::line("", [Point::new(1.0, 0.0)])).is_empty());
}

#[test]
fn bars_stand_beside_each_other_on_zero() {
    let bars = |name: &str, values: [f64; 2]| {
        Series::bars(name, values.into_iter().enumerate().map(|(k, y)| Point::new(k as f64, y)))
    };
    let figure = Figure::new("Tours by digit")
        .x(Axis::named("label", ["0", "1"]))
        .with(bars("short", [10.0, 20.0]))
        .with(bars("long", [-5.0, 5.0]));
    let svg = figure.svg(Theme::Paper);
    let heights: Vec<f64> = svg
        .split("<rect x=")
        .skip(1)
        .map(|part| part.split(r#"height=""#).nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .filter(|&h: &f64| h != 12.0)
        .collect();
    assert_eq!(heights.len(), 4);
    assert!((heights[1] / heights[0] - 2.0).abs() < 0.01 && (heights[2] - heights[3]).abs() < 0.02);
}

#[test]
fn pictures_are_in_their_places() {
    let pictures = vec![vec![0.0, 0.25, 0.75, 1.0], vec![1.0, 0.0, 0.0, 0.0], vec![0.0]];
    let grid = PictureGrid::new("Samples", pictures, (2, 2), 4).captions(["ξ = 1", "ξ = 90"]);
    let svg = grid.svg(Theme::Paper);
    assert!(is_well_formed(&svg) && svg.matches("<image").count() == 2 && svg.contains("ξ = 90"));
    let (_, width, pixels) = decode(&grid.png(1.0));
    let at = |x: usize, y: usize| pixels[(y * width + x) * 4];
    // Each value is a square of 28 pixels; the grid begins at (12, 34).
    assert_eq!([at(20, 40), at(50, 40), at(20, 70), at(50, 70)], [0, 64, 191, 255]);
    let signed = PictureGrid::new("", vec![vec![-2.0, 0.0, 1.0, 2.0]], (2, 2), 1).shades(Shades::Signed);
    let (_, width, pixels) = decode(&signed.png(1.0));
    let at = |x: usize, y: usize| <[u8; 3]>::try_from(&pixels[(y * width + x) * 4..][..3]).unwrap();
    assert_eq!((at(20, 20), at(50, 20), at(50, 50)), ([0, 84, 163], [255; 3], [204, 82, 0]));
}

#[test]
fn files_go_by_their_extension() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    save(&everything(), &at("a.svg")).unwrap();
    save(&everything(), &at("a.png")).unwrap();
    assert!(std::fs::read_to_string(at("a.svg")).unwrap().starts_with("<svg"));
    assert!(std::fs::read(at("a.png")).unwrap().starts_with(b"\x89PNG"));
    let error = save(&everything(), &at("a.pdf")).unwrap_err().to_string();
    assert!(error.contains(".svg and .png"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
