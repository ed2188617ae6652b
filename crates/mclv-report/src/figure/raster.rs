//! Turns figures into pixels and files.

use super::draw::{self, Reader};
use super::pdf::pdf_of_svg;
use super::{Figure, PictureGrid, Theme};
use mclv::{Error, Result, write_atomically};
use resvg::{tiny_skia, usvg};
use std::path::Path;

/// Rasterises an SVG that was drawn for [`Reader::Raster`] to a PNG, `scale` times as large.
fn png_of_svg(svg: &str, scale: f32) -> Vec<u8> {
    let tree = usvg::Tree::from_str(svg, &usvg::Options::default()).expect("figures are valid SVG");
    let size = tree.size();
    let pixels = |x: f32| (x * scale).ceil().clamp(1.0, 20_000.0) as u32;
    let mut pixmap =
        tiny_skia::Pixmap::new(pixels(size.width()), pixels(size.height())).expect("neither side is 0");
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().expect("memory takes all that is written to it")
}

/// A figure that can be drawn.
pub trait Drawing {
    /// The figure as an SVG element.
    fn svg(&self, theme: Theme) -> String;

    /// The figure as an SVG element that consists only of shapes.
    #[doc(hidden)]
    fn shapes(&self) -> String;

    /// The figure as a PNG file, `scale` times as large (2 for paper).
    fn png(&self, scale: f32) -> Vec<u8> {
        png_of_svg(&self.shapes(), scale)
    }

    /// The figure as a PDF file of one page.
    fn pdf(&self) -> Vec<u8> {
        pdf_of_svg(&self.shapes())
    }
}

impl Drawing for Figure {
    fn svg(&self, theme: Theme) -> String {
        draw::figure(self, theme, Reader::Person)
    }

    fn shapes(&self) -> String {
        draw::figure(self, Theme::Paper, Reader::Raster)
    }
}

impl Drawing for PictureGrid {
    fn svg(&self, theme: Theme) -> String {
        self.draw(theme, Reader::Person)
    }

    fn shapes(&self) -> String {
        self.draw(Theme::Paper, Reader::Raster)
    }
}

/// Writes a figure or a grid of pictures. The extension (`.svg`, `.png` or `.pdf`) decides the format.
///
/// # Errors
/// If the extension is a different one, or the file cannot be written.
pub fn save(drawing: &dyn Drawing, path: &Path) -> Result<()> {
    match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
        Some("svg") => write_atomically(path, drawing.svg(Theme::Paper).as_bytes()),
        Some("png") => write_atomically(path, &drawing.png(2.0)),
        Some("pdf") => write_atomically(path, &drawing.pdf()),
        _ => Err(Error::UnknownFormat { path: path.into(), known: ".svg, .png and .pdf" }),
    }
}

/// A `data:` address of a small PNG.
pub(super) fn data_url(pixels: &[[u8; 3]], shape: (usize, usize)) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let png = mclv::picture::rgb_png(pixels, shape).expect("a grid takes pictures of its shape only");
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png))
}
