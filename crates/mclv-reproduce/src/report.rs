//! The report of an experiment: tables, plots and pictures as data, with the runs behind them.
//!
//! Pages and figures are built from the JSON of a report alone.

use crate::store::Record;
use mclv::statistics::Summary;
use serde::{Deserialize, Serialize};

/// The results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its name on the command line.
    pub experiment: String,
    /// What it shows.
    pub title: String,
    /// The command that creates it.
    pub command: String,
    /// The data.
    pub data: String,
    /// Seeds of its runs.
    pub seeds: Vec<u64>,
    /// True for a quick run, with fewer epochs, seeds and tours than the paper. Its results cannot
    /// be compared with the paper.
    pub quick: bool,
    /// CPU seconds of all its runs; wall time for runs that were interrupted.
    pub core_seconds: f64,
    /// The version of this program.
    pub version: String,
    /// Tables.
    pub tables: Vec<Table>,
    /// Plots.
    pub plots: Vec<Plot>,
    /// Grids of pictures.
    pub pictures: Vec<Pictures>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The runs, with all settings.
    pub runs: Vec<Record>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its name in file names; empty if the experiment has only one table.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Names of the columns, and digits after the point.
    pub columns: Vec<(String, usize)>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Several runs.
    Summary(Summary),
    /// One number.
    Number(f64),
    /// Text.
    Text(String),
    /// Nothing.
    Missing,
}

impl From<f64> for Cell {
    fn from(x: f64) -> Self {
        if x.is_finite() { Self::Number(x) } else { Self::Missing }
    }
}

impl From<usize> for Cell {
    fn from(x: usize) -> Self {
        Self::Number(x as f64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(x: Option<T>) -> Self {
        x.map_or(Self::Missing, Into::into)
    }
}

impl From<Summary> for Cell {
    fn from(summary: Summary) -> Self {
        Self::Summary(summary)
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its label.
    pub label: String,
    /// True if it is logarithmic.
    pub log: bool,
    /// Names at 0, 1, 2, …, if the axis has names instead of numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), log: false, names: Vec::new() }
    }

    /// An axis of names.
    pub fn named(label: &str, names: Vec<String>) -> Self {
        Self { names, ..Self::linear(label) }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { log: true, ..Self::linear(label) }
    }
}

/// Curves over common axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// For file names.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

impl Plot {
    /// Removes points more than `nats` below the highest point, so that collapsed runs do not
    /// compress the scale. Only for curves without bands.
    pub(crate) fn within(mut self, nats: f64) -> Self {
        let heights = self.curves.iter().flat_map(|curve| &curve.points).map(|&(_, y)| y);
        let lowest = heights.fold(f64::MIN, f64::max) - nats;
        for curve in &mut self.curves {
            curve.points.retain(|&(_, y)| y >= lowest);
        }
        self.curves.retain(|curve| !curve.points.is_empty());
        self.title += &format!(", within {nats} nats of the best");
        self
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// The points `(x, y)`.
    pub points: Vec<(f64, f64)>,
    /// The limits of a band for each point; empty without a band.
    pub band: Vec<(f64, f64)>,
    /// True for a reference, false for a measurement.
    pub dashed: bool,
    /// How it is drawn.
    pub mark: Mark,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Points joined by lines.
    Line,
    /// A step function: it keeps its value until the next point.
    Steps,
    /// Bars from zero.
    Bars,
}

impl Curve {
    /// Points joined by lines.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, band: Vec::new(), dashed: false, mark: Mark::Line }
    }

    /// Adds a band.
    pub fn with_band(self, band: Vec<(f64, f64)>) -> Self {
        Self { band, ..self }
    }

    /// Changes how the curve is drawn.
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    /// Marks the curve as a reference.
    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }
}

/// Pictures in lines of the same length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pictures {
    /// For file names.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The name of each line.
    pub names: Vec<String>,
    /// Height and width of a picture.
    pub shape: (usize, usize),
    /// Values of each line in hexadecimal, two digits each.
    pub lines: Vec<String>,
}

impl Report {
    /// The file name of one of its parts, without extension.
    pub fn file_name(&self, part: &str) -> String {
        if part.is_empty() { self.experiment.clone() } else { format!("{}-{part}", self.experiment) }
    }
}
