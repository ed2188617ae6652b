//! Static figures as SVG, PNG and PDF: lines with bands, steps, points with error bars, bars, and grids
//! of pictures.
//!
//! ```
//! use mclv_report::figure::{Axis, Drawing, Figure, Point, Series, Theme};
//! let points = (1..=100).map(|k| Point::new(k as f64, 1.0 / k as f64));
//! let figure = Figure::new("Tour lengths")
//!     .x(Axis::log("k"))
//!     .y(Axis::log("p(ξ > k)"))
//!     .with(Series::step("m = 1", points));
//! assert!(figure.svg(Theme::Paper).starts_with("<svg"));
//! ```

mod axis;
mod colour;
mod draw;
mod json;
mod letters;
mod pdf;
mod pictures;
mod raster;
mod stack;

pub use axis::{Axis, Scale};
pub use colour::{N_COLOURS, Theme, page_variables};
pub use pictures::{PictureGrid, Shades};
pub use raster::{Drawing, save};
pub use stack::Stack;

/// A value with limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The value. A value that is not finite leaves a gap.
    pub y: f64,
    /// Lower and upper limit.
    pub limits: Option<(f64, f64)>,
}

impl Point {
    /// A value without limits.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, limits: None }
    }

    /// A value and its error bar to both sides.
    pub fn with_error(x: f64, y: f64, error: f64) -> Self {
        Self { x, y, limits: Some((y - error, y + error)) }
    }

    /// A value between two limits.
    pub fn between(x: f64, y: f64, low: f64, high: f64) -> Self {
        Self { x, y, limits: Some((low, high)) }
    }
}

/// How the points of a series are drawn. Limits become bands around lines and steps, and error bars
/// on points and bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Straight lines from point to point.
    Line,
    /// Steps: a value holds until the next `x`, as in tail functions and schedules.
    Step,
    /// One dot per point.
    Points,
    /// Bars from zero. Bars of several series are side by side.
    Bars,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    name: String,
    mark: Mark,
    points: Vec<Point>,
    dashed: bool,
    colour: Option<usize>,
    runs: Vec<String>,
}

impl Series {
    fn new(name: impl Into<String>, mark: Mark, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            name: name.into(),
            mark,
            points: points.into_iter().collect(),
            dashed: false,
            colour: None,
            runs: Vec::new(),
        }
    }

    /// A line, with a band if there are limits. A series without a name is not in the legend.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self::new(name, Mark::Line, points)
    }

    /// A step function.
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self::new(name, Mark::Step, points)
    }

    /// Dots, with error bars if there are limits.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self::new(name, Mark::Points, points)
    }

    /// Bars, with error bars if there are limits.
    pub fn bars(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self::new(name, Mark::Bars, points)
    }

    /// Makes the line dashed.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Uses colour number `k` (of [`N_COLOURS`]) instead of the next one.
    #[must_use]
    pub fn colour(mut self, k: usize) -> Self {
        self.colour = Some(k);
        self
    }

    /// Assigns the series to a run, or to several by several calls. Readers of a page can hide runs; a
    /// series is hidden if all its runs are.
    #[must_use]
    pub fn of_run(mut self, run: impl Into<String>) -> Self {
        self.runs.push(run.into());
        self
    }
}

/// A line across the whole figure.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    at: f64,
    vertical: bool,
    name: String,
}

/// Series between two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    x: Axis,
    y: Axis,
    size: (f64, f64),
    series: Vec<Series>,
    rules: Vec<Rule>,
}

impl Figure {
    /// An empty figure; the title may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            size: (640.0, 400.0),
            series: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// The horizontal axis.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    #[must_use]
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Width and height in pixels; the default is 640 × 400.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = (width, height);
        self
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a horizontal line with a name at a value.
    #[must_use]
    pub fn level(mut self, name: impl Into<String>, y: f64) -> Self {
        self.rules.push(Rule { at: y, vertical: false, name: name.into() });
        self
    }

    /// Adds a vertical line with a name at a position.
    #[must_use]
    pub fn place(mut self, name: impl Into<String>, x: f64) -> Self {
        self.rules.push(Rule { at: x, vertical: true, name: name.into() });
        self
    }

    /// Replaces the title and the labels of the axes, where given.
    #[must_use]
    pub fn renamed(mut self, title: Option<&str>, x: Option<&str>, y: Option<&str>) -> Self {
        let set = |place: &mut String, name: Option<&str>| {
            if let Some(name) = name {
                *place = name.into();
            }
        };
        set(&mut self.title, title);
        set(&mut self.x.label, x);
        set(&mut self.y.label, y);
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Returns true if no point can be shown on both axes.
    pub fn is_empty(&self) -> bool {
        let shown = |p: &Point| self.x.scale.shows(p.x) && self.y.scale.shows(p.y);
        !self.series.iter().any(|s| s.points.iter().any(shown))
    }
}
