//! Writes figures as PDF files of one page, with lines and letters as shapes.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use resvg::tiny_skia::{Path, PathSegment, Point, Transform};
use resvg::usvg::{self, FillRule, Group, LineCap, LineJoin, Node, Paint};
use std::fmt::Write as _;
use std::io::Write as _;

/// Points (1/72 inch) of a pixel of CSS (1/96 inch).
const POINTS: f32 = 0.75;

/// Turns an SVG that was drawn for the rasteriser, which consists of shapes only, into a PDF file.
pub(super) fn pdf_of_svg(svg: &str) -> Vec<u8> {
    let tree = usvg::Tree::from_str(svg, &usvg::Options::default()).expect("figures are valid SVG");
    let (width, height) = (POINTS * tree.size().width(), POINTS * tree.size().height());
    let mut content = Content::default();
    // The vertical axis of a PDF points upwards.
    content.add(format_args!("{POINTS} 0 0 -{POINTS} 0 {height} cm\n"));
    content.group(tree.root());
    let states = content.opacities.iter().enumerate().fold(String::new(), |mut states, (k, opacity)| {
        // Writing to a string cannot fail.
        let _ = write!(states, "/G{k} <</ca {opacity} /CA {opacity}>> ");
        states
    });
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
    stream.write_all(content.text.as_bytes()).expect("memory takes all that is written to it");
    let stream = stream.finish().expect("memory takes all that is written to it");
    let page = format!(
        "<</Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources <</ExtGState <<{states}>>>>>>"
    );
    let head = format!("<</Length {} /Filter /FlateDecode>>\nstream\n", stream.len());
    file(&[
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>".to_vec(),
        page.into_bytes(),
        [head.as_bytes(), &stream, b"\nendstream"].concat(),
    ])
}

/// A file of these objects, numbered from 1. The first one is the catalogue.
fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    // The second line marks the file as binary.
    let mut bytes = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (k, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", bytes.len());
        bytes.extend_from_slice(format!("{} 0 obj\n", k + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let start = bytes.len();
    let n = objects.len() + 1;
    let end = format!("{table}trailer\n<</Size {n} /Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n");
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

/// The operators of a page.
#[derive(Default)]
struct Content {
    text: String,
    /// The opacities that the page uses.
    opacities: Vec<f32>,
}

impl Content {
    fn add(&mut self, operators: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(operators);
    }

    fn group(&mut self, group: &Group) {
        let Some(clip) = group.clip_path() else { return self.children(group) };
        self.text.push_str("q\n");
        let to_page = group.abs_transform().pre_concat(clip.transform());
        for node in clip.root().children() {
            if let Node::Path(path) = node {
                self.outline(path.data(), to_page.pre_concat(path.abs_transform()));
            }
        }
        self.text.push_str("W n\n");
        self.children(group);
        self.text.push_str("Q\n");
    }

    fn children(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) => self.path(path),
                Node::Image(_) | Node::Text(_) => unreachable!("figures for the rasteriser are shapes"),
            }
        }
    }

    fn path(&mut self, path: &usvg::Path) {
        let transform = path.abs_transform();
        if let Some(fill) = path.fill() {
            self.colour(fill.paint(), "rg");
            self.opacity(fill.opacity().get());
            self.outline(path.data(), transform);
            self.text.push_str(if fill.rule() == FillRule::EvenOdd { "f*\n" } else { "f\n" });
        }
        if let Some(stroke) = path.stroke() {
            self.colour(stroke.paint(), "RG");
            self.opacity(stroke.opacity().get());
            let scale = transform.get_scale().0;
            let cap = match stroke.linecap() {
                LineCap::Butt => 0,
                LineCap::Round => 1,
                LineCap::Square => 2,
            };
            let join = match stroke.linejoin() {
                LineJoin::Round => 1,
                LineJoin::Bevel => 2,
                _ => 0,
            };
            let dashes: Vec<String> =
                stroke.dasharray().unwrap_or_default().iter().map(|x| (x * scale).to_string()).collect();
            let (width, dashes) = (stroke.width().get() * scale, dashes.join(" "));
            self.add(format_args!("{width} w {cap} J {join} j [{dashes}] 0 d\n"));
            self.outline(path.data(), transform);
            self.text.push_str("S\n");
        }
    }

    fn colour(&mut self, paint: &Paint, operator: &str) {
        let Paint::Color(colour) = paint else { unreachable!("figures have plain colours") };
        let [r, g, b] = [colour.red, colour.green, colour.blue].map(|x| f32::from(x) / 255.0);
        self.add(format_args!("{r:.4} {g:.4} {b:.4} {operator}\n"));
    }

    fn opacity(&mut self, opacity: f32) {
        let known = self.opacities.iter().position(|&o| o == opacity);
        let k = known.unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        self.add(format_args!("/G{k} gs\n"));
    }

    fn outline(&mut self, path: &Path, transform: Transform) {
        let at = |mut point: Point| {
            transform.map_point(&mut point);
            (point.x, point.y)
        };
        let mut last = Point::zero();
        for segment in path.segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    let (x, y) = at(p);
                    self.add(format_args!("{x:.2} {y:.2} m\n"));
                    last = p;
                }
                PathSegment::LineTo(p) => {
                    let (x, y) = at(p);
                    self.add(format_args!("{x:.2} {y:.2} l\n"));
                    last = p;
                }
                PathSegment::QuadTo(c, p) => {
                    // A PDF has cubic curves only.
                    let towards = |from: Point| {
                        Point::from_xy(
                            from.x + (c.x - from.x) * 2.0 / 3.0,
                            from.y + (c.y - from.y) * 2.0 / 3.0,
                        )
                    };
                    self.curve(at(towards(last)), at(towards(p)), at(p));
                    last = p;
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.curve(at(a), at(b), at(p));
                    last = p;
                }
                PathSegment::Close => self.text.push_str("h\n"),
            }
        }
    }

    fn curve(&mut self, a: (f32, f32), b: (f32, f32), p: (f32, f32)) {
        let ((ax, ay), (bx, by), (x, y)) = (a, b, p);
        self.add(format_args!("{ax:.2} {ay:.2} {bx:.2} {by:.2} {x:.2} {y:.2} c\n"));
    }
}
