//! A grid of small pictures under a title, each with its caption.

use super::colour::{Role, Theme};
use super::draw::{Reader, Style, Svg, TITLE, number};
use super::raster::data_url;

/// How a value is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shades {
    /// From 0 (black) to 1 (white).
    Grey,
    /// For weights: negative is blue, zero white, positive orange. The largest absolute value of
    /// the grid has full colour.
    Signed,
}

/// Pictures of one shape, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureGrid {
    title: String,
    shape: (usize, usize),
    n_columns: usize,
    shades: Shades,
    pictures: Vec<Vec<f32>>,
    captions: Vec<String>,
    row_names: Vec<String>,
    framed: bool,
    pixels_per_unit: Option<usize>,
}

/// Approximate pixels of the longer side of a picture.
const SIDE: usize = 56;
/// The number of colours of a scale, and the width of each.
const SHADES: usize = 21;
const SHADE: f64 = 4.0;

impl PictureGrid {
    /// Pictures of `(height, width)` values, `n_columns` per line. Pictures of another size are
    /// left out.
    pub fn new(
        title: impl Into<String>,
        pictures: Vec<Vec<f32>>,
        shape: (usize, usize),
        n_columns: usize,
    ) -> Self {
        let fits = |picture: &Vec<f32>| picture.len() == shape.0 * shape.1;
        Self {
            title: title.into(),
            shape,
            n_columns: n_columns.max(1),
            shades: Shades::Grey,
            pictures: pictures.into_iter().filter(fits).collect(),
            captions: Vec::new(),
            row_names: Vec::new(),
            framed: false,
            pixels_per_unit: None,
        }
    }

    /// Draws an edge around each picture, and below all pictures a scale of the colours.
    #[must_use]
    pub fn framed(mut self) -> Self {
        self.framed = true;
        self
    }

    /// Draws each value as a square of this many pixels. Without it, the longer side of a picture has
    /// about 56 pixels.
    #[must_use]
    pub fn pixels_per_unit(mut self, n: Option<usize>) -> Self {
        self.pixels_per_unit = n;
        self
    }

    /// Changes how values are coloured.
    #[must_use]
    pub fn shades(mut self, shades: Shades) -> Self {
        self.shades = shades;
        self
    }

    /// Adds a caption below each picture.
    #[must_use]
    pub fn captions<S: Into<String>>(mut self, captions: impl IntoIterator<Item = S>) -> Self {
        self.captions = captions.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a name to the left of each row of pictures.
    #[must_use]
    pub fn row_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.row_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces the title, if given.
    #[must_use]
    pub fn renamed(mut self, title: Option<&str>) -> Self {
        if let Some(title) = title {
            self.title = title.into();
        }
        self
    }

    /// Returns true if there is no picture.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// The grid as an SVG element. The pixels are an embedded PNG, or squares for the rasteriser.
    pub(super) fn draw(&self, theme: Theme, reader: Reader) -> String {
        let (height, width) = self.shape;
        let scale = self.pixels_per_unit.unwrap_or(SIDE / height.max(width).max(1)).max(1);
        let (cell_width, cell_height) = ((width * scale) as f64, (height * scale) as f64);
        let names = self.row_names.iter().map(|n| n.chars().count()).max().unwrap_or(0) as f64 * 7.0;
        let (left, top) = (12.0 + names, if self.title.is_empty() { 12.0 } else { 34.0 });
        let n_columns = self.n_columns.min(self.pictures.len().max(1));
        let n_rows = self.pictures.len().div_ceil(n_columns);
        let total_width = (left + n_columns as f64 * (cell_width + 4.0) + 8.0)
            .max(24.0 + self.title.chars().count() as f64 * 8.8);
        // Lines with captions are taller.
        let captioned = |row: usize| {
            let captions = self.captions.iter().skip(row * n_columns).take(n_columns);
            if captions.into_iter().any(|c| !c.is_empty()) { 18.0 } else { 4.0 }
        };
        let top_of = |row: usize| top + (0..row).map(|r| cell_height + captioned(r)).sum::<f64>();
        let bottom = top_of(n_rows);
        let total_height = bottom + if self.framed { 36.0 } else { 8.0 };

        let mut svg = Svg::open(total_width, total_height, &self.title, theme, reader);
        let (ink, faint) = (theme.colour(Role::Ink), theme.colour(Role::Faint));
        if !self.title.is_empty() {
            svg.words((12.0, 23.0), "start", Style { size: TITLE, ..Style::plain(&ink) }, &self.title);
        }
        for (row, name) in self.row_names.iter().enumerate().take(n_rows) {
            let y = top_of(row) + cell_height / 2.0 + 4.0;
            svg.words((left - 8.0, y), "end", Style::plain(&faint), name);
        }
        let largest = self.pictures.iter().flatten().fold(0f32, |m, x| m.max(x.abs()));
        for (k, picture) in self.pictures.iter().enumerate() {
            let x = left + (k % n_columns) as f64 * (cell_width + 4.0);
            let y = top_of(k / n_columns);
            let pixels: Vec<[u8; 3]> = picture.iter().map(|&v| self.shades.pixel(v, largest)).collect();
            match reader {
                Reader::Person => svg.add(format_args!(
                    r#"<image x="{}" y="{}" width="{}" height="{}" style="image-rendering:pixelated" href="{}"/>"#,
                    number(x),
                    number(y),
                    number(cell_width),
                    number(cell_height),
                    data_url(&pixels, self.shape)
                )),
                Reader::Raster => squares(&mut svg, (x, y), &pixels, width, scale as f64),
            }
            if self.framed {
                svg.add(format_args!(
                    r#"<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{faint}" stroke-opacity="0.6"/>"#,
                    number(x - 0.5),
                    number(y - 0.5),
                    number(cell_width + 1.0),
                    number(cell_height + 1.0)
                ));
            }
            if let Some(caption) = self.captions.get(k) {
                let place = (x + cell_width / 2.0, y + cell_height + 12.0);
                svg.words(place, "middle", Style { size: 11.0, ..Style::plain(&faint) }, caption);
            }
        }
        if self.framed {
            self.scale_of_colours(&mut svg, (left, bottom + 8.0), largest, &faint);
        }
        svg.close()
    }

    /// Draws a bar of all colours between the values that have them.
    fn scale_of_colours(&self, svg: &mut Svg, (left, top): (f64, f64), largest: f32, faint: &str) {
        let (low, high) = match self.shades {
            Shades::Grey => (0.0, 1.0),
            Shades::Signed => (-largest, largest),
        };
        let text = |x: f32| {
            let text = if self.shades == Shades::Grey { format!("{x:.0}") } else { format!("{x:.2}") };
            text.replacen('-', "−", 1)
        };
        let style = Style { size: 11.0, ..Style::plain(faint) };
        let wide = |text: &str| text.chars().count() as f64 * 7.0;
        let bar = left + wide(&text(low)) + 4.0;
        svg.words((left, top + 10.0), "start", style, &text(low));
        for k in 0..SHADES {
            let value = low + (high - low) * k as f32 / (SHADES - 1) as f32;
            let [r, g, b] = self.shades.pixel(value, largest);
            let x = number(bar + k as f64 * SHADE);
            svg.add(format_args!(
                r##"<rect x="{x}" y="{}" width="{}" height="10" fill="#{r:02x}{g:02x}{b:02x}"/>"##,
                number(top),
                number(SHADE)
            ));
        }
        let width = SHADES as f64 * SHADE;
        svg.add(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="11" fill="none" stroke="{faint}" stroke-opacity="0.6"/>"#,
            number(bar - 0.5),
            number(top - 0.5),
            number(width + 1.0)
        ));
        svg.words((bar + width + 6.0, top + 10.0), "start", style, &text(high));
    }
}

/// Draws each pixel as a square. Neighbours of the same colour become one shape.
fn squares(svg: &mut Svg, (left, top): (f64, f64), pixels: &[[u8; 3]], width: usize, side: f64) {
    svg.add(format_args!(r#"<g shape-rendering="crispEdges">"#));
    for (row, line) in pixels.chunks(width).enumerate() {
        let mut x = left;
        for same in line.chunk_by(|a, b| a == b) {
            let long = same.len() as f64 * side;
            let [r, g, b] = same[0];
            svg.add(format_args!(
                r##"<rect x="{}" y="{}" width="{}" height="{}" fill="#{r:02x}{g:02x}{b:02x}"/>"##,
                number(x),
                number(top + row as f64 * side),
                number(long),
                number(side)
            ));
            x += long;
        }
    }
    svg.text.push_str("</g>");
}

impl Shades {
    fn pixel(self, value: f32, largest: f32) -> [u8; 3] {
        match self {
            Shades::Grey => [(value.clamp(0.0, 1.0) * 255.0).round() as u8; 3],
            Shades::Signed => {
                let full = if value < 0.0 { [0.0, 0.33, 0.64] } else { [0.8, 0.32, 0.0] };
                let share = if largest > 0.0 { (value.abs() / largest).clamp(0.0, 1.0) } else { 0.0 };
                full.map(|c: f32| ((1.0 - share * (1.0 - c)) * 255.0).round() as u8)
            }
        }
    }
}
