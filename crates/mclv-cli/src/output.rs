//! Prints results as aligned tables or as JSON.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use mclv::team;
use serde::Serialize;
use std::cell::RefCell;
use std::io::Write;

/// Where and how results are printed.
pub(crate) struct Output {
    json: bool,
    /// True for all processes but the first.
    silent: bool,
    /// Lines that come before the result.
    first: RefCell<Vec<String>>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, silent: !team::is_first(), first: RefCell::default() }
    }

    /// Puts a line before the text of the result. JSON has no such lines.
    pub(crate) fn begin_with(&self, line: String) {
        self.first.borrow_mut().push(line);
    }

    /// Prints a line at once, unless results are JSON.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if !self.json && !self.silent {
            let mut out = std::io::stdout().lock();
            // A closed pipe is noticed when the result is printed.
            let _ = writeln!(out, "{}", line()).and_then(|()| out.flush());
        }
    }

    /// Prints `value` as JSON if the user asked for JSON, else the result of `text`.
    pub(crate) fn print<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.silent {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            for line in self.first.take() {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "{}", text().trim_end())?;
        }
        Ok(out.flush()?)
    }
}

/// A table with a header. The columns with the numbers in `right` are aligned to the right.
pub(crate) fn table(header: &[&str], right: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line)).set_header(header);
    table.add_rows(rows);
    for &k in right {
        if let Some(column) = table.column_mut(k) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Wraps a text in lines of at most 80 characters.
pub(crate) fn wrapped(text: &str) -> String {
    const WIDTH: usize = 80;
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// Formats facts as lines of name and value, with aligned values.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    facts.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}
