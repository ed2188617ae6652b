//! Text as outlines of the built-in font, for readers without fonts.

use super::draw::number;
use std::fmt::Write;
use std::sync::LazyLock;
use ttf_parser::{Face, OutlineBuilder};

static FONT: LazyLock<Face<'static>> = LazyLock::new(|| {
    let bytes = include_bytes!("../../assets/DejaVuSans-subset.ttf");
    Face::parse(bytes, 0).expect("the built-in font is intact")
});

/// The path of a text at a position.
pub(super) fn outline(words: &str, (x, y): (f64, f64), anchor: &str, size: f64) -> String {
    let scale = size / f64::from(FONT.units_per_em());
    // A letter that the font lacks is shown as a box.
    let glyphs: Vec<_> =
        words.chars().map(|c| FONT.glyph_index(c).unwrap_or(ttf_parser::GlyphId(0))).collect();
    let advance =
        |glyph: &ttf_parser::GlyphId| f64::from(FONT.glyph_hor_advance(*glyph).unwrap_or(0)) * scale;
    let width: f64 = glyphs.iter().map(advance).sum();
    let shift = match anchor {
        "end" => -width,
        "middle" => -width / 2.0,
        _ => 0.0,
    };
    let mut pen = Pen { path: String::new(), x: x + shift, y, scale };
    for glyph in &glyphs {
        FONT.outline_glyph(*glyph, &mut pen);
        pen.x += advance(glyph);
    }
    pen.path
}

struct Pen {
    path: String,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn to(&mut self, command: char, points: &[(f32, f32)]) {
        self.path.push(command);
        for &(x, y) in points {
            let (x, y) = (self.x + f64::from(x) * self.scale, self.y - f64::from(y) * self.scale);
            // Writing to a string cannot fail.
            let _ = write!(self.path, "{} {} ", number(x), number(y));
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.to('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.to('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_that_figures_use() {
        for c in "log-likelihood (nats) p(ξ > k) π_S Ẑ ± ≥ × 10⁻³ −24 … – → ρ σ λ ∞".chars()
        {
            assert!(FONT.glyph_index(c).is_some(), "{c}");
        }
    }

    #[test]
    fn words_begin_end_or_stand_in_the_middle_of_their_place() {
        let ends = |anchor| {
            let path = outline("HH", (100.0, 50.0), anchor, 10.0);
            let xs: Vec<f64> = path
                .split(['M', 'L', 'Q', 'Z'])
                .filter_map(|part| part.split(' ').next().and_then(|x| x.parse().ok()))
                .collect();
            assert!(xs.iter().all(|x| x.is_finite()), "{path}");
            (xs.iter().copied().fold(f64::MAX, f64::min), xs.iter().copied().fold(f64::MIN, f64::max))
        };
        let (start, middle, end) = (ends("start"), ends("middle"), ends("end"));
        assert!(start.0 >= 100.0 && end.1 <= 100.0, "{start:?} {end:?}");
        assert!((middle.0 + middle.1 - 200.0).abs() < 0.5, "{middle:?}");
    }
}
