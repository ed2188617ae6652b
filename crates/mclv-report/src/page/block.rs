//! What a section can hold.

use crate::figure::{Figure, PictureGrid};

/// A part of a page with a heading, which the page's navigation names.
#[derive(Clone, Debug)]
pub struct Section {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
}

impl Section {
    /// A section of these blocks, without those that show nothing.
    pub fn new(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        let blocks = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        Self { title: title.into(), blocks }
    }
}

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Worth acting upon.
    Warning,
    /// Wrong.
    Bad,
}

/// A judgement in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// How good.
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
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, marked: false }
    }

    /// A number as it is to be read; rows are sorted by the number itself.
    pub fn number(value: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: value.is_finite().then_some(value), marked: false }
    }

    /// The same, highlighted.
    #[must_use]
    pub fn marked(mut self) -> Self {
        self.marked = true;
        self
    }
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Column {
    text: String,
    number: bool,
}

impl Column {
    /// A column of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false }
    }

    /// A column of numbers, aligned to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true }
    }
}

/// Rows under a header.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The header.
    pub header: Vec<Column>,
    /// The rows, as many cells each as the header has.
    pub rows: Vec<Vec<Cell>>,
    /// Whether a click on the header sorts the rows.
    pub sortable: bool,
    /// The runs that the rows stand for: each can be shown in the page's charts or not.
    pub runs: Vec<String>,
}

/// Something in a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A sentence or two.
    Note(String),
    /// Judgements.
    Verdicts(Vec<Verdict>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A chart; if there are several, one at a time is shown, and their names choose.
    Charts {
        /// Names and charts.
        tabs: Vec<(String, Figure)>,
        /// Whether it takes the whole width.
        wide: bool,
        /// What to know about it.
        note: String,
    },
    /// Pictures.
    Pictures {
        /// The pictures.
        grid: PictureGrid,
        /// What to know about them.
        note: String,
    },
    /// Text for machines: a command, a file.
    Code(String),
    /// Blocks that are shown when their title is clicked.
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

    /// The judgements in it.
    pub(super) fn verdicts(&self) -> Vec<&Verdict> {
        match self {
            Self::Verdicts(verdicts) => verdicts.iter().collect(),
            Self::Details(_, blocks) => blocks.iter().flat_map(Self::verdicts).collect(),
            _ => Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
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
