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

/// Bars are drawn inside a frame that cuts off what is outside.
#[test]
fn the_first_and_the_last_bar_are_whole() {
    for xs in [vec![0.0, 1.0, 2.0], vec![7.0], vec![0.0, 5.0]] {
        let bars = |name: &str| Series::bars(name, xs.iter().map(|&x| Point::new(x, 3.0)));
        let svg = Figure::new("").x(Axis::linear("x")).with(bars("a")).with(bars("b")).svg(Theme::Paper);
        let number = |tag: &str, name: &str| -> Option<f64> {
            tag.split(&format!(r#" {name}=""#)).nth(1)?.split('"').next()?.parse().ok()
        };
        let frame = svg.rsplit("<svg").next().unwrap();
        let width = number(frame, "width").unwrap();
        let ends: Vec<(f64, f64)> = frame
            .split("<rect")
            .skip(1)
            .filter_map(|tag| Some((number(tag, "x")?, number(tag, "x")? + number(tag, "width")?)))
            .collect();
        assert_eq!(ends.len(), 2 * xs.len(), "{svg}");
        assert!(ends.iter().all(|&(left, right)| 0.0 <= left && right <= width), "{width}: {ends:?}");
    }
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
    save(&everything(), &at("a.pdf")).unwrap();
    assert!(std::fs::read(at("a.pdf")).unwrap().starts_with(b"%PDF-1.4"));
    let error = save(&everything(), &at("a.eps")).unwrap_err().to_string();
    assert!(error.contains(".svg, .png and .pdf"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// The operators of the page of a PDF, after a check of its table of objects.
fn operators(pdf: &[u8]) -> String {
    let text = String::from_utf8_lossy(pdf);
    let start: usize = text.split("startxref\n").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    let table = std::str::from_utf8(&pdf[start..]).unwrap();
    assert!(table.starts_with("xref\n0 5\n"), "{table}");
    for (k, line) in table.lines().skip(3).take(4).enumerate() {
        let at: usize = line[..10].parse().unwrap();
        assert!(pdf[at..].starts_with(format!("{} 0 obj\n", k + 1).as_bytes()), "{line}");
    }
    let find = |word: &[u8]| pdf.windows(word.len()).position(|w| w == word).unwrap();
    let (from, to) = (find(b"stream\n") + 7, find(b"\nendstream"));
    let mut content = String::new();
    let mut reader = flate2::read::ZlibDecoder::new(&pdf[from..to]);
    std::io::Read::read_to_string(&mut reader, &mut content).unwrap();
    content
}

#[test]
fn a_pdf_holds_the_shapes_of_the_figure() {
    let content = operators(&everything().pdf());
    // 640 × 400 pixels are 480 × 300 points; the colours of three series; a clip; dashes.
    assert!(String::from_utf8_lossy(&everything().pdf()).contains("/MediaBox [0 0 480 300]"));
    assert!(content.starts_with("0.75 0 0 -0.75 0 300 cm\n"), "{content:.100}");
    for words in
        ["0.0000 0.4471 0.6980 RG", "0.8353 0.3686 0.0000 RG", "0.0000 0.6196 0.4510 rg", "W n", "[6 4] 0 d"]
    {
        assert!(content.contains(words), "{words}");
    }
    assert_eq!(content.matches("q\n").count(), content.matches("Q\n").count());
    assert!(!content.contains("NaN") && !content.contains("inf"));
    // A picture is squares: a black one and a white one in their places.
    let grid = PictureGrid::new("", vec![vec![0.0, 1.0]], (1, 2), 1);
    let content = operators(&grid.pdf());
    let black = content.find("0.0000 0.0000 0.0000 rg").unwrap();
    assert!(content[black..].contains("12.00 12.00 m"), "{content}");
    assert!(content[black..].contains("40.00 12.00 m"), "{content}");
}

#[test]
fn many_dots_are_one_path_and_few_are_circles() {
    let dots = |n: u32| {
        let points = (0..n).map(|k| Point::new(f64::from(k), f64::from(k)));
        Figure::new("").with(Series::points("", points)).svg(Theme::Paper)
    };
    assert_eq!((dots(30).matches("<circle").count(), dots(30).matches("h0").count()), (30, 0));
    assert_eq!((dots(300).matches("<circle").count(), dots(300).matches("h0").count()), (0, 300));
    // They have their colour in pixels too.
    let points = (0..300).map(|k| Point::new(f64::from(k % 20), f64::from(k / 20)));
    let figure = Figure::new("").with(Series::points("", points).colour(1));
    let (_, _, pixels) = decode(&figure.png(2.0));
    let orange = |p: &[u8; 4]| p[0] > 200 && p[2] < 160 && p[1] < 220;
    assert!(pixels.as_chunks::<4>().0.iter().filter(|p| orange(p)).count() > 300 * 20);
}

#[test]
fn framed_pictures_have_edges_and_a_scale() {
    let grid = || PictureGrid::new("", vec![vec![1.0; 4]], (2, 2), 1).pixels_per_unit(Some(5));
    assert!(grid().svg(Theme::Paper).contains(r#"width="10" height="10""#), "two units of five pixels");
    let (plain, framed) = (grid().svg(Theme::Paper), grid().framed().svg(Theme::Paper));
    assert!(!plain.contains("stroke-opacity") && framed.contains("stroke-opacity"));
    assert!(framed.contains(">0</text>") && framed.contains(">1</text>") && is_well_formed(&framed));
    let weights = PictureGrid::new("", vec![vec![-0.5, 0.25]], (1, 2), 1).shades(Shades::Signed).framed();
    let svg = weights.svg(Theme::Page);
    assert!(svg.contains(">−0.50</text>") && svg.contains(">0.50</text>"), "{svg}");
}
