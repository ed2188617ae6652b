//! The blocks of a section.

use crate::figure::{Figure, PictureGrid};

/// A part of a page with a heading. The navigation of the page lists it.
#[derive(Clone, Debug)]
pub struct Section {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}

impl Section {
    /// A section of these blocks. Empty blocks are left out.
    pub fn new(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        let blocks = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        Self { title: title.into(), blocks }
    }
}

/// The level of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Everything is fine.
    Good,
    /// Good to know.
    Note,
    /// A problem that needs attention.
    Warning,
    /// A result that is wrong or missing.
    Bad,
}

/// A verdict with its sentence.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// The level.
    pub level: Level,
    /// The sentence, with advice if there is any.
    pub text: String,
}

impl Verdict {
    /// A verdict.
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Cell {
    text: String,
    sort: Option<f64>,
    marked: bool,
}

impl Cell {
    /// A cell of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, marked: false }
    }

    /// A number with the text that is shown. Rows are sorted by the number.
    pub fn number(value: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: value.is_finite().then_some(value), marked: false }
    }

    /// Highlights the cell.
    #[must_use]
    pub fn marked(mut self) -> Self {
        self.marked = true;
        self
    }
}

/// The header of a column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Column {
    text: String,
    number: bool,
}

impl Column {
    /// A column of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false }
    }

    /// A column of numbers, aligned to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true }
    }

    pub(super) fn name(&self) -> &str {
        &self.text
    }
}

/// Rows under a header.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The header.
    pub header: Vec<Column>,
    /// The rows. Each has as many cells as the header.
    pub rows: Vec<Vec<Cell>>,
    /// True if a click on the header sorts the rows.
    pub sortable: bool,
    /// The runs of the rows. The reader can hide each run in the charts of the page.
    pub runs: Vec<String>,
}

/// A block of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// One or two sentences.
    Note(String),
    /// Verdicts.
    Verdicts(Vec<Verdict>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// One or more charts. If there are several, the reader chooses one by its name.
    Charts {
        /// Names and charts.
        tabs: Vec<(String, Figure)>,
        /// True if it takes the whole width.
        wide: bool,
        /// A note below it.
        note: String,
    },
    /// Pictures.
    Pictures {
        /// The pictures.
        grid: PictureGrid,
        /// A note below them.
        note: String,
    },
    /// A command or the text of a file.
    Code(String),
    /// Blocks that appear after a click on their title.
    Details(String, Vec<Block>),
}

impl Block {
    /// Names and values.
    pub fn facts<N: Into<String>, V: Into<String>>(facts: impl IntoIterator<Item = (N, V)>) -> Self {
        Self::Facts(facts.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// One chart.
    pub fn chart(figure: Figure, note: impl Into<String>) -> Self {
        Self::Charts { tabs: vec![(String::new(), figure)], wide: false, note: note.into() }
    }

    /// Pictures.
    pub fn pictures(grid: PictureGrid, note: impl Into<String>) -> Self {
        Self::Pictures { grid, note: note.into() }
    }

    /// The verdicts in this block.
    pub(super) fn verdicts(&self) -> Vec<&Verdict> {
        match self {
            Self::Verdicts(verdicts) => verdicts.iter().collect(),
            Self::Details(_, blocks) => blocks.iter().flat_map(Self::verdicts).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Note(text) | Self::Code(text) => text.is_empty(),
            Self::Verdicts(verdicts) => verdicts.is_empty(),
            Self::Facts(facts) => facts.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Charts { tabs, .. } => tabs.iter().all(|(_, figure)| figure.is_empty()),
            Self::Pictures { grid, .. } => grid.is_empty(),
            Self::Details(_, blocks) => blocks.iter().all(Self::is_empty),
        }
    }
}
