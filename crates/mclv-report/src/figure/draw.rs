//! Draws a figure as SVG.

use super::axis::Span;
use super::colour::{Role, Theme};
use super::letters::outline;
use super::{Figure, Mark, Point, Series};
use std::fmt::Write;

/// Size of letters, and their approximate width.
pub(super) const LETTER: f64 = 12.0;
pub(super) const TITLE: f64 = 14.0;
const WIDE: f64 = 0.6;
/// Lines with fewer points than this show their points.
const FEW: usize = 40;
/// Series with more dots than this get smaller dots, through which others can be seen.
const MANY: usize = 100;

/// The frame of the plot in the figure.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// The reader of the SVG.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Any program.
    Person,
    /// Our own rasteriser. It supports neither letters nor images, so both are drawn as shapes.
    Raster,
}

/// An SVG text that is being written. Writing to a string cannot fail.
pub(super) struct Svg {
    pub(super) text: String,
    pub(super) reader: Reader,
}

impl Svg {
    pub(super) fn open(width: f64, height: f64, title: &str, theme: Theme, reader: Reader) -> Self {
        let mut text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" role="img" font-family="DejaVu Sans, Verdana, sans-serif" font-size="{LETTER}">"#,
            number(width),
            number(height),
            number(width),
            number(height)
        );
        if !title.is_empty() {
            let _ = write!(text, "<title>{}</title>", escape(title));
        }
        if theme == Theme::Paper {
            text.push_str(r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
        }
        Self { text, reader }
    }

    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(element);
    }

    /// Writes text at a position; `anchor` is `start`, `middle` or `end`.
    pub(super) fn words(&mut self, (x, y): (f64, f64), anchor: &str, style: Style<'_>, words: &str) {
        let Style { colour, size, more } = style;
        let heavy = size > LETTER;
        if self.reader == Reader::Raster {
            let path = outline(&mclv::printable(words), (x, y), anchor, size);
            let stroke =
                if heavy { format!(r#" stroke="{colour}" stroke-width="0.6""#) } else { String::new() };
            return self.add(format_args!(r#"<path d="{path}" fill="{colour}"{stroke}{more}/>"#));
        }
        let (x, y, words) = (number(x), number(y), escape(words));
        let mut font = if size == LETTER { String::new() } else { format!(r#" font-size="{size}""#) };
        if heavy {
            font.push_str(r#" font-weight="600""#);
        }
        self.add(format_args!(
            r#"<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}"{font}{more}>{words}</text>"#
        ));
    }

    pub(super) fn close(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// The style of text. Text larger than [`LETTER`] is bold.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    pub(super) colour: &'a str,
    pub(super) size: f64,
    /// Further attributes.
    pub(super) more: &'a str,
}

impl<'a> Style<'a> {
    pub(super) fn plain(colour: &'a str) -> Self {
        Self { colour, size: LETTER, more: "" }
    }
}

/// Formats a number with at most two digits after the point.
pub(super) fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

pub(super) fn escape(text: &str) -> String {
    mclv::printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * WIDE * LETTER
}

/// The left edge of the first bar and the right edge of the last one.
fn edges(figure: &Figure) -> Vec<f64> {
    let bars = figure.series.iter().filter(|series| series.mark == Mark::Bars);
    let mut xs: Vec<f64> = bars.flat_map(|series| &series.points).map(|p| p.x).collect();
    xs.sort_unstable_by(f64::total_cmp);
    let gap = xs.windows(2).map(|w| w[1] - w[0]).filter(|&gap| gap > 0.0).fold(f64::INFINITY, f64::min);
    let half = if gap.is_finite() { 0.5 * gap } else { 0.5 };
    match (xs.first(), xs.last()) {
        (Some(first), Some(last)) => vec![first - half, last + half],
        _ => Vec::new(),
    }
}

pub(super) fn figure(figure: &Figure, theme: Theme, reader: Reader) -> String {
    let (width, height) = figure.size;
    let bars = figure.series.iter().any(|s| s.mark == Mark::Bars);
    let points = || figure.series.iter().flat_map(|s| &s.points);
    let limits = |p: &Point| p.limits.map_or([p.y; 3], |(low, high)| [low, p.y, high]);
    let rules = |vertical: bool| figure.rules.iter().filter(move |r| r.vertical == vertical).map(|r| r.at);
    let y_ticks = ((height / 50.0) as usize).clamp(2, 8);
    let y = Span::new(&figure.y, points().flat_map(limits).chain(rules(false)), bars, y_ticks);

    let (legend, legend_height) = legend(figure, width);
    let top = 12.0 + if figure.title.is_empty() { 0.0 } else { TITLE + 8.0 } + legend_height;
    let widest = y.ticks.iter().map(|t| width_of(&t.text)).fold(0.0, f64::max);
    let left = 12.0 + if figure.y.label.is_empty() { 0.0 } else { LETTER + 8.0 } + widest + 6.0;
    let bottom = LETTER + 12.0 + if figure.x.label.is_empty() { 4.0 } else { LETTER + 10.0 };
    let frame = Frame {
        left,
        top,
        width: (width - left - 16.0).max(40.0),
        height: (height - top - bottom).max(40.0),
    };
    let x_ticks = ((frame.width / 80.0) as usize).clamp(2, 10);
    let x =
        Span::new(&figure.x, points().map(|p| p.x).chain(rules(true)).chain(edges(figure)), false, x_ticks);

    let mut svg = Svg::open(width, height, &figure.title, theme, reader);
    let ink = theme.colour(Role::Ink);
    if !figure.title.is_empty() {
        let style = Style { size: TITLE, ..Style::plain(&ink) };
        svg.words((12.0, 12.0 + TITLE * 0.8), "start", style, &figure.title);
    }
    axes(&mut svg, figure, theme, &frame, (&x, &y));
    for entry in &legend {
        let series = &figure.series[entry.series];
        let at = (12.0 + entry.left, top - legend_height + entry.top);
        key(&mut svg, series, theme, colour_of(figure, entry.series), at);
        svg.words((at.0 + 26.0, at.1 + LETTER * 0.8), "start", Style::plain(&ink), &series.name);
    }

    // A nested SVG cuts curves at the frame. Unlike a clip path, it needs no id that must be unique
    // on a page.
    svg.add(format_args!(
        r#"<svg x="{}" y="{}" width="{}" height="{}">"#,
        number(frame.left),
        number(frame.top),
        number(frame.width),
        number(frame.height)
    ));
    let at = |p: &Point| (x.place(p.x) * frame.width, (1.0 - y.place(p.y)) * frame.height);
    let of_limit = |value: f64| (1.0 - y.place_of_limit(value)) * frame.height;
    let places = Places { figure, frame: &frame, at: &at, of_limit: &of_limit, zero: of_limit(0.0) };
    for pass in [Pass::Under, Pass::Over] {
        for k in 0..figure.series.len() {
            places.draw(&mut svg, k, theme, pass);
        }
    }
    svg.text.push_str("</svg>");
    named_rules(&mut svg, figure, theme, &frame, (&x, &y));
    svg.close()
}

fn colour_of(figure: &Figure, series: usize) -> usize {
    figure.series[series].colour.unwrap_or(series)
}

struct Entry {
    series: usize,
    left: f64,
    top: f64,
}

/// The positions of the names of series, in lines under the title, and the height of these lines.
fn legend(figure: &Figure, width: f64) -> (Vec<Entry>, f64) {
    let (mut left, mut top, mut entries) = (0.0, 0.0, Vec::new());
    for (k, series) in figure.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()) {
        let long = 26.0 + width_of(&series.name) + 12.0;
        if left > 0.0 && left + long > width - 24.0 {
            (left, top) = (0.0, top + LETTER + 6.0);
        }
        entries.push(Entry { series: k, left, top });
        left += long;
    }
    let height = if entries.is_empty() { 0.0 } else { top + LETTER + 10.0 };
    (entries, height)
}

/// The sample of a series in the legend.
fn key(svg: &mut Svg, series: &Series, theme: Theme, colour: usize, (x, y): (f64, f64)) {
    let colour = theme.colour(Role::Series(colour));
    let middle = number(y + LETTER / 2.0);
    match series.mark {
        Mark::Bars => {
            let (x, y) = (number(x + 4.0), number(y));
            svg.add(format_args!(r#"<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>"#));
        }
        Mark::Points => {
            let x = number(x + 10.0);
            svg.add(format_args!(r#"<circle cx="{x}" cy="{middle}" r="3.5" fill="{colour}"/>"#));
        }
        Mark::Line | Mark::Step => {
            let dash = if series.dashed { r#" stroke-dasharray="6 4""# } else { "" };
            let (from, to) = (number(x), number(x + 20.0));
            svg.add(format_args!(
                r#"<path d="M{from} {middle}H{to}" stroke="{colour}" stroke-width="2"{dash}/>"#
            ));
        }
    }
}

fn axes(svg: &mut Svg, figure: &Figure, theme: Theme, frame: &Frame, (x, y): (&Span, &Span)) {
    let Frame { left, top, width, height } = *frame;
    let (faint, grid) = (theme.colour(Role::Faint), theme.colour(Role::Grid));
    let words = Style::plain(&faint);
    let (mut major, mut minor) = (String::new(), String::new());
    for tick in &y.ticks {
        let line = top + (1.0 - y.place(tick.at)) * height;
        if tick.text.is_empty() {
            let _ = write!(minor, "M{} {}h-3", number(left), number(line));
        } else {
            let _ = write!(major, "M{} {}h{}", number(left), number(line), number(width));
            svg.words((left - 6.0, line + LETTER * 0.35), "end", words, &tick.text);
        }
    }
    let named = !figure.x.names.is_empty();
    // If names would overlap, some are left out at even distances.
    let widest = x.ticks.iter().map(|t| width_of(&t.text)).fold(0.0, f64::max) + 8.0;
    let n_named = x.ticks.iter().filter(|t| !t.text.is_empty()).count();
    let every = ((widest * n_named as f64 / width).ceil() as usize).max(1);
    let mut k = 0;
    for tick in &x.ticks {
        let column = left + x.place(tick.at) * width;
        if tick.text.is_empty() {
            let _ = write!(minor, "M{} {}v3", number(column), number(top + height));
            continue;
        }
        if !named {
            let _ = write!(major, "M{} {}v{}", number(column), number(top), number(height));
        }
        if k % every == 0 {
            svg.words((column, top + height + LETTER + 5.0), "middle", words, &tick.text);
        }
        k += 1;
    }
    svg.add(format_args!(r#"<path d="{major}" stroke="{grid}" fill="none"/>"#));
    let (l, t, w, h) = (number(left), number(top), number(width), number(height));
    svg.add(format_args!(r#"<path d="M{l} {t}v{h}h{w}{minor}" stroke="{faint}" fill="none"/>"#));
    let ink = theme.colour(Role::Ink);
    if !figure.x.label.is_empty() {
        let place = (left + width / 2.0, top + height + 2.0 * LETTER + 14.0);
        svg.words(place, "middle", Style::plain(&ink), &figure.x.label);
    }
    if !figure.y.label.is_empty() {
        let place = (12.0 + LETTER * 0.8, top + height / 2.0);
        let turned = format!(r#" transform="rotate(-90 {} {})""#, number(place.0), number(place.1));
        svg.words(place, "middle", Style { more: &turned, ..Style::plain(&ink) }, &figure.y.label);
    }
}

fn named_rules(svg: &mut Svg, figure: &Figure, theme: Theme, frame: &Frame, (x, y): (&Span, &Span)) {
    let faint = theme.colour(Role::Faint);
    for rule in &figure.rules {
        let share = if rule.vertical { x.place(rule.at) } else { y.place(rule.at) };
        if !(0.0..=1.0).contains(&share) {
            continue;
        }
        let (path, place, anchor) = if rule.vertical {
            let column = frame.left + share * frame.width;
            let (side, anchor) = if share > 0.7 { (-5.0, "end") } else { (5.0, "start") };
            let path = format!("M{} {}v{}", number(column), number(frame.top), number(frame.height));
            (path, (column + side, frame.top + LETTER), anchor)
        } else {
            let line = frame.top + (1.0 - share) * frame.height;
            let path = format!("M{} {}h{}", number(frame.left), number(line), number(frame.width));
            let below = if share > 0.9 { LETTER + 3.0 } else { -5.0 };
            (path, (frame.left + frame.width - 4.0, line + below), "end")
        };
        svg.add(format_args!(
            r#"<path d="{path}" stroke="{faint}" stroke-width="1.2" stroke-dasharray="2 3" fill="none"/>"#
        ));
        svg.words(place, anchor, Style::plain(&faint), &rule.name);
    }
}

/// Draws bands and bars below lines and dots.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Under,
    Over,
}

struct Places<'a> {
    figure: &'a Figure,
    frame: &'a Frame,
    at: &'a dyn Fn(&Point) -> (f64, f64),
    of_limit: &'a dyn Fn(f64) -> f64,
    zero: f64,
}

impl Places<'_> {
    fn draw(&self, svg: &mut Svg, k: usize, theme: Theme, pass: Pass) {
        let series = &self.figure.series[k];
        let colour = theme.colour(Role::Series(colour_of(self.figure, k)));
        let (x, y) = (self.figure.x.scale, self.figure.y.scale);
        let shown = |p: &Point| x.shows(p.x) && y.shows(p.y);
        match (series.mark, pass) {
            (Mark::Line | Mark::Step, Pass::Under) => {
                for run in series.points.split(|p| !(x.shows(p.x) && p.limits.is_some_and(|(a, b)| a <= b))) {
                    self.band(svg, run, series.mark, &colour);
                }
            }
            (Mark::Line | Mark::Step, Pass::Over) => {
                let dash = if series.dashed { r#" stroke-dasharray="6 4""# } else { "" };
                let mut path = String::new();
                for run in series.points.split(|p| !shown(p)) {
                    self.curve(&mut path, run, series.mark);
                }
                svg.add(format_args!(
                    r#"<path d="{path}" stroke="{colour}" stroke-width="2" stroke-linejoin="round" fill="none"{dash}/>"#
                ));
                // Short lines get a dot per point. A single point would be invisible without it.
                if series.mark == Mark::Line && !series.dashed && series.points.len() < FEW {
                    self.dots(svg, series.points.iter().filter(|p| shown(p)), 2.5, &colour);
                }
            }
            (Mark::Bars, Pass::Under) => self.bars(svg, k, &colour, theme),
            (Mark::Points, Pass::Over) if series.points.len() > MANY => {
                self.cloud(svg, series.points.iter().filter(|p| shown(p)), &colour);
            }
            (Mark::Points, Pass::Over) => {
                self.error_bars(svg, series.points.iter().filter(|p| shown(p)), 0.0, &colour);
                self.dots(svg, series.points.iter().filter(|p| shown(p)), 3.5, &colour);
            }
            (Mark::Bars, Pass::Over) | (Mark::Points, Pass::Under) => {}
        }
    }

    fn dots<'p>(&self, svg: &mut Svg, points: impl Iterator<Item = &'p Point>, radius: f64, colour: &str) {
        for p in points {
            let (x, y) = (self.at)(p);
            let (x, y) = (number(x), number(y));
            svg.add(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>"#));
        }
    }

    /// Many dots as one path: round ends of lines without length.
    fn cloud<'p>(&self, svg: &mut Svg, points: impl Iterator<Item = &'p Point>, colour: &str) {
        let mut path = String::new();
        for p in points {
            let (x, y) = (self.at)(p);
            let _ = write!(path, "M{} {}h0", number(x), number(y));
        }
        svg.add(format_args!(
            r#"<path d="{path}" stroke="{colour}" stroke-width="4.5" stroke-linecap="round" stroke-opacity="0.55" fill="none"/>"#
        ));
    }

    fn curve(&self, path: &mut String, run: &[Point], mark: Mark) {
        for (k, p) in run.iter().enumerate() {
            let (x, y) = (self.at)(p);
            let (x, y) = (number(x), number(y));
            let _ = match (k, mark) {
                (0, _) => write!(path, "M{x} {y}"),
                (_, Mark::Step) => write!(path, "H{x}V{y}"),
                _ => write!(path, "L{x} {y}"),
            };
        }
    }

    fn band(&self, svg: &mut Svg, run: &[Point], mark: Mark, colour: &str) {
        let places: Vec<(f64, f64, f64)> = run
            .iter()
            .filter_map(|p| {
                let (low, high) = p.limits?;
                Some((
                    (self.at)(&Point { y: high.max(f64::MIN_POSITIVE), ..*p }).0,
                    (self.of_limit)(low),
                    (self.of_limit)(high),
                ))
            })
            .collect();
        if places.len() < 2 {
            return;
        }
        let mut path = String::new();
        for (k, &(x, _, high)) in places.iter().enumerate() {
            let (x, y) = (number(x), number(high));
            let _ = match (k, mark) {
                (0, _) => write!(path, "M{x} {y}"),
                (_, Mark::Step) => write!(path, "H{x}V{y}"),
                _ => write!(path, "L{x} {y}"),
            };
        }
        for (k, &(x, low, _)) in places.iter().enumerate().rev() {
            let _ = match mark {
                // Backwards, the vertical part of a step comes first, because a value holds to its
                // right.
                Mark::Step if k + 1 < places.len() => write!(path, "V{}H{}", number(low), number(x)),
                _ => write!(path, "L{} {}", number(x), number(low)),
            };
        }
        svg.add(format_args!(r#"<path d="{path}Z" fill="{colour}" fill-opacity="0.18"/>"#));
    }

    fn bars(&self, svg: &mut Svg, k: usize, colour: &str, theme: Theme) {
        let of_bars = |s: &&Series| s.mark == Mark::Bars;
        let all = &self.figure.series;
        let (n, before) =
            (all.iter().filter(of_bars).count() as f64, all[..k].iter().filter(of_bars).count() as f64);
        let mut xs: Vec<f64> =
            all.iter().filter(of_bars).flat_map(|s| &s.points).map(|p| (self.at)(p).0).collect();
        xs.sort_unstable_by(f64::total_cmp);
        let gap = xs.windows(2).map(|w| w[1] - w[0]).filter(|&d| d > 1e-6).fold(f64::INFINITY, f64::min);
        let room = if self.figure.x.names.is_empty() {
            gap
        } else {
            self.frame.width / self.figure.x.names.len() as f64
        };
        let room = if room.is_finite() { room } else { self.frame.width / 3.0 };
        let width = 0.8 * room / n;
        let shift = (before - n / 2.0) * width;
        let (x, y) = (self.figure.x.scale, self.figure.y.scale);
        let shown = |p: &&Point| x.shows(p.x) && y.shows(p.y);
        for p in all[k].points.iter().filter(shown) {
            let (x, y) = ((self.at)(p).0 + shift, (self.of_limit)(p.y));
            let (top, bottom) = (y.min(self.zero), y.max(self.zero));
            svg.add(format_args!(
                r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{colour}"/>"#,
                number(x),
                number(top),
                number(width * 0.94),
                number(bottom - top)
            ));
        }
        let ink = theme.colour(Role::Ink);
        self.error_bars(svg, all[k].points.iter().filter(shown), shift + width * 0.47, &ink);
    }

    fn error_bars<'p>(
        &self,
        svg: &mut Svg,
        points: impl Iterator<Item = &'p Point>,
        shift: f64,
        colour: &str,
    ) {
        let mut path = String::new();
        for p in points {
            if let Some((low, high)) = p.limits.filter(|(a, b)| a <= b) {
                let x = (self.at)(p).0 + shift;
                let (low, high) = ((self.of_limit)(low), (self.of_limit)(high));
                for end in [low, high] {
                    let _ = write!(path, "M{} {}h6", number(x - 3.0), number(end));
                }
                let _ = write!(path, "M{} {}V{}", number(x), number(low), number(high));
            }
        }
        if !path.is_empty() {
            svg.add(format_args!(r#"<path d="{path}" stroke="{colour}" stroke-width="1.3" fill="none"/>"#));
        }
    }
}
