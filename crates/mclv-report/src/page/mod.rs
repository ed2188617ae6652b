//! A self-contained HTML page: sections of facts, tables, charts and pictures; nothing is fetched to show it.
//!
//! ```
//! use mclv_report::page::{Block, Page, Section};
//! let page = Page::new("A run", "digits").with(Section::new("Summary", [Block::facts([("epochs", "100")])]));
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```

mod block;
mod view;

pub use block::{Block, Cell, Column, Level, Section, Table, Verdict};

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

    /// One more section; an empty one is left out.
    #[must_use]
    pub fn with(mut self, section: Section) -> Self {
        if !section.blocks.is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// The judgement that decides the colour of the page: the worst one on it, of several the first. Notes are neither
    /// good nor bad. `None` if nothing on the page was judged; the page then says so.
    pub fn verdict(&self) -> Option<&Verdict> {
        let all = self.sections.iter().flat_map(|section| &section.blocks).flat_map(Block::verdicts);
        // Of equals, `max_by_key` takes the last.
        let judged: Vec<&Verdict> = all.filter(|verdict| verdict.level != Level::Note).collect();
        judged.into_iter().rev().max_by_key(|verdict| verdict.level)
    }

    /// The page.
    pub fn html(&self) -> String {
        view::page(self, false)
    }

    /// A page that asks its server for news (`state?since=VERSION`) while it is open.
    pub fn live_html(&self) -> String {
        view::page(self, true)
    }

    /// What changes while a page is open, as the script of [`live_html`](Self::live_html) wants it.
    pub fn state(&self, version: &str, done: bool) -> String {
        view::state(self, version, done)
    }
}
