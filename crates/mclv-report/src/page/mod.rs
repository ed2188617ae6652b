//! A self-contained HTML page of facts, tables, charts and pictures. It works offline.
//!
//! ```
//! use mclv_report::page::{Block, Page, Section};
//! let page = Page::new("A run", "digits").with(Section::new("Summary", [Block::facts([("epochs", "100")])]));
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```

mod block;
mod terms;
mod view;

pub use block::{Block, Cell, Column, Level, Section, Table, Verdict};
pub use terms::{TERMS, Term};

/// A page: a title and sections.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    subtitle: String,
    sections: Vec<Section>,
}

impl Page {
    /// A page without sections.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), sections: Vec::new() }
    }

    /// Adds a section. An empty section is left out.
    #[must_use]
    pub fn with(mut self, section: Section) -> Self {
        if !section.blocks.is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// The first of the worst verdicts on the page, which decides its colour. Notes do not count.
    /// `None` if the page has no verdict; the page then states this.
    pub fn verdict(&self) -> Option<&Verdict> {
        let all = self.sections.iter().flat_map(|section| &section.blocks).flat_map(Block::verdicts);
        // Among equal elements, `max_by_key` takes the last.
        let judged: Vec<&Verdict> = all.filter(|verdict| verdict.level != Level::Note).collect();
        judged.into_iter().rev().max_by_key(|verdict| verdict.level)
    }

    /// The page as HTML.
    pub fn html(&self) -> String {
        view::page(self, None)
    }

    /// The page as HTML that asks its server for updates (`state?since=VERSION`) while it is open.
    pub fn live_html(&self, live: &Live) -> String {
        view::page(self, Some(live))
    }

    /// An update for an open page, as the script of [`live_html`](Self::live_html) expects it.
    pub fn state(&self, version: &str, live: &Live) -> String {
        view::state(self, version, live)
    }
}

/// How far the training has come that a live page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Epochs made.
    pub epoch: usize,
    /// Epochs to make, if that is known.
    pub of: Option<usize>,
    /// True if the training has ended.
    pub ended: bool,
}

impl Live {
    /// What the page says, for example `training, epoch 12 of 100`.
    pub fn text(&self) -> String {
        let Self { epoch, of, ended } = *self;
        let of_all = of.filter(|&of| !ended || of != epoch).map_or(String::new(), |of| format!(" of {of}"));
        match ended {
            true => format!("training ended after {epoch}{of_all} epochs"),
            false => format!("training, epoch {epoch}{of_all}"),
        }
    }
}
