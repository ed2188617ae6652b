//! Prints results as aligned tables or as JSON.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use mclv::{printable, team};
use serde::Serialize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Write;

/// Where and how results are printed.
pub(crate) struct Output {
    json: bool,
    /// True for all processes but the first.
    silent: bool,
    /// Lines that come before the result.
    first: RefCell<Vec<String>>,
    /// A picture in the protocol of the terminal, which comes after the result.
    picture: RefCell<Option<String>>,
}

/// Prints a line to standard error. Everything that comes from names and files is made safe to show.
#[expect(clippy::print_stderr, reason = "this is the one place that prints there")]
pub(crate) fn tell(line: &str) {
    eprintln!("{}", printable(line));
}

/// Returns the JSON of a value in several lines. Characters that are not safe to show are escaped, so
/// the values stay what they are.
fn json_text(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    // Outside of strings there are no such characters.
    let shown = |c: char| match printable(c.encode_utf8(&mut [0; 4])) {
        Cow::Borrowed(_) => c.to_string(),
        Cow::Owned(_) => format!("\\u{:04x}", u32::from(c)),
    };
    Ok(text.chars().map(shown).collect())
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, silent: !team::is_first(), first: RefCell::default(), picture: RefCell::default() }
    }

    /// Puts a line before the text of the result. JSON has no such lines.
    pub(crate) fn begin_with(&self, line: String) {
        self.first.borrow_mut().push(line);
    }

    /// Puts a picture in the protocol of the terminal after the text of the result.
    pub(crate) fn end_with(&self, picture: String) {
        self.picture.replace(Some(picture));
    }

    /// Prints a line at once, unless results are JSON.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if !self.json && !self.silent {
            let mut out = std::io::stdout().lock();
            // A closed pipe is noticed when the result is printed.
            let _ = writeln!(out, "{}", printable(&line())).and_then(|()| out.flush());
        }
    }

    /// Prints `value` as JSON if the user asked for JSON, else the result of `text`.
    pub(crate) fn print<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.silent {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json_text(value).map_err(std::io::Error::from)?)?;
        } else {
            for line in self.first.take() {
                writeln!(out, "{}", printable(&line))?;
            }
            writeln!(out, "{}", printable(text().trim_end()))?;
            if let Some(picture) = self.picture.take() {
                writeln!(out, "\n{picture}")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// A table with a header. The columns with the numbers in `right` are aligned to the right.
pub(crate) fn table(header: &[&str], right: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line)).set_header(header);
    // Widths are those of what is shown.
    let shown = |row: Vec<String>| row.iter().map(|cell| printable(cell).into_owned()).collect::<Vec<_>>();
    table.add_rows(rows.into_iter().map(shown));
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
    // A line end in a value must not look like the next fact.
    let indented = |value: &str| value.replace('\n', &format!("\n{:width$}  ", ""));
    facts.iter().map(|(name, value)| format!("{name:width$}  {}\n", indented(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strangers_cannot_change_the_screen() {
        let name = "a\x1b[2J\u{202e}b\r\u{9b}";
        let shown = "a[U+001B][2J[U+202E]b[U+000D][U+009B]";
        assert!(table(&["name"], &[], [vec![name.to_owned()]]).contains(shown));
        let json = json_text(&serde_json::json!({ "name": name })).unwrap();
        assert!(json.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["name"], name);
        assert_eq!(facts(&[("model", "x\nlog Z  0".into())]), "model  x\n       log Z  0\n");
    }
}
