//! Several figures in one file, one below the other, each with its own axes.

use super::Figure;
use super::colour::Theme;
use super::raster::Drawing;

/// Figures below each other. Each has its own axes, because their values must not be compared.
pub struct Stack {
    figures: Vec<Figure>,
}

impl Stack {
    /// The figures that show something, from top to bottom.
    pub fn new(figures: impl IntoIterator<Item = Figure>) -> Self {
        Self { figures: figures.into_iter().filter(|figure| !figure.is_empty()).collect() }
    }

    fn join(&self, parts: Vec<String>) -> String {
        let width = self.figures.iter().map(|figure| figure.size.0).fold(0.0, f64::max);
        let height: f64 = self.figures.iter().map(|figure| figure.size.1).sum();
        let mut y = 0.0;
        let mut text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">"#
        );
        for (figure, part) in self.figures.iter().zip(parts) {
            text.push_str(&part.replacen("<svg ", &format!(r#"<svg y="{y}" "#), 1));
            y += figure.size.1;
        }
        text.push_str("</svg>");
        text
    }
}

impl Drawing for Stack {
    fn svg(&self, theme: Theme) -> String {
        self.join(self.figures.iter().map(|figure| figure.svg(theme)).collect())
    }

    fn shapes(&self) -> String {
        self.join(self.figures.iter().map(Drawing::shapes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Point, Series};

    #[test]
    fn figures_stand_below_each_other_and_empty_ones_are_left_out() {
        let figure = |title: &str| {
            Figure::new(title)
                .size(300.0, 200.0)
                .with(Series::line("x", [Point::new(0.0, 1.0), Point::new(1.0, 2.0)]))
        };
        let stack = Stack::new([figure("first"), Figure::new("empty"), figure("second")]);
        let svg = stack.svg(Theme::Paper);
        assert!(svg.contains(r#"viewBox="0 0 300 400""#) && svg.contains(r#"<svg y="200""#), "{svg}");
        assert!(svg.contains("first") && svg.contains("second") && !svg.contains("empty"));
        let png = stack.png(1.0);
        assert_eq!((&png[16..20], &png[20..24]), (&300u32.to_be_bytes()[..], &400u32.to_be_bytes()[..]));
    }
}
