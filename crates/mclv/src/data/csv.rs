//! Read tables of text: `.csv`, `.tsv`, `.txt` and `.dat` files.
//!
//! Each line holds one row of numbers. The first line tells what separates them: tabs, semicolons,
//! commas or spaces. A first row with a word in it is a header, unless most of its cells are values
//! that the file may hold; then the word is an error, so that no row is lost. One column may hold
//! labels, numbers or words, and another one the part that each row belongs to.

use std::io::{self, BufReader, Read};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use super::file::{Reading, Table};
use super::rows::no_rows;
use super::scale::Columns;
use super::{Labels, Split};
use crate::source::{Source, broken, file_name};
use crate::words::words;
use crate::{Error, Result};

/// Bytes of memory for a label, besides its letters.
const LABEL: usize = 48;

/// What separates the cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Commas,
    Semicolons,
    Tabs,
    /// One or more. Lines that begin with `#` are comments, as NumPy writes them.
    Spaces,
}

words!(Separator as "separator" { Commas = "commas", Semicolons = "semicolons", Tabs = "tabs", Spaces = "spaces" });

impl Separator {
    fn byte(self) -> u8 {
        match self {
            Self::Commas => b',',
            Self::Semicolons => b';',
            Self::Tabs => b'\t',
            Self::Spaces => b' ',
        }
    }

    /// Guesses from the first line that is not empty. Spaces separate only if no other separator
    /// is there and the next line has as many words: the words of a title are no cells.
    fn of_content(content: &[u8]) -> Self {
        let lines = content.split(|&byte| byte == b'\n' || byte == b'\r');
        let is_shown = |line: &&[u8]| line.iter().any(|byte| !byte.is_ascii_whitespace());
        let mut lines = lines.filter(is_shown);
        let first = lines.next().unwrap_or_default();
        let outside_quotes =
            |wanted: u8| first.split(|&b| b == b'"').step_by(2).flatten().any(|&b| b == wanted);
        if !first.starts_with(b"#") {
            let known = [Self::Tabs, Self::Semicolons, Self::Commas];
            if let Some(found) = known.into_iter().find(|separator| outside_quotes(separator.byte())) {
                return found;
            }
        }
        let n_words =
            |line: &[u8]| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        let mut rows = std::iter::once(first).chain(lines).filter(|line| !line.starts_with(b"#"));
        let row = rows.next().unwrap_or_default();
        let is_like = |other: &[u8]| n_words(other) == n_words(row);
        if n_words(row) > 1 && rows.next().is_none_or(is_like) { Self::Spaces } else { Self::Commas }
    }
}

/// The columns of a table that hold no values.
#[derive(Default)]
struct Others {
    label: Option<usize>,
    split: Option<usize>,
}

impl Others {
    fn hold(&self, column: usize) -> bool {
        [self.label, self.split].contains(&Some(column))
    }
}

/// Reads the rows and, from the columns that `reading` names, the labels and the parts. A whole
/// number counts the columns: 0 is the first, −1 the last. Anything else is a name in the header.
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<Table> {
    let mut source = Source::open_together(path)?.heeding(reading.progress);
    let mut allowance = source.allowance().clone();
    let (name, is_gzip) = (file_name(path), source.is_gzip);
    let separator = Separator::of_content(source.peek()?);
    let is_spaced = separator == Separator::Spaces;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(separator.byte())
        .comment(is_spaced.then_some(b'#'))
        .from_reader(&mut source);

    let mut next = |record: &mut ByteRecord| {
        let more = reader.read_byte_record(record).map_err(|e| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => broken(path, is_gzip, e),
            other => Error::malformed(path, format!("{other:?}")),
        })?;
        if is_spaced {
            let cells = record.iter().filter(|cell| !cell.is_empty());
            let mut words: ByteRecord = cells.collect();
            words.set_position(record.position().cloned());
            *record = words;
        }
        Ok::<bool, Error>(more)
    };

    let mut values = Vec::new();
    let mut labels = Vec::new();
    let mut splits = Vec::new();
    let mut record = ByteRecord::new();
    let mut more = next(&mut record)?;
    if !more {
        return Err(no_rows(&name));
    }
    let n_cells = record.len();
    let index = |what, column: Option<&str>| column.map(|c| find_column(path, &record, what, c)).transpose();
    let others =
        Others { label: index("label", reading.label_column)?, split: index("split", reading.split_column)? };
    if others.label.is_some() && others.label == others.split {
        let with = format!("label-column = {}", reading.label_column.unwrap_or_default());
        return Err(Error::Incompatible { name: "split-column", with });
    }
    // A column given by name was found in a header, whatever its other cells hold.
    let is_named = [reading.label_column, reading.split_column]
        .into_iter()
        .flatten()
        .any(|column| column.parse::<i64>().is_err());
    let mut names = Vec::new();
    let mut header = None;
    if is_named || is_header(path, &record, &others, reading)? {
        let cells = record.iter().enumerate().filter(|&(column, _)| !others.hold(column));
        names = cells.map(|(_, cell)| String::from_utf8_lossy(name_in(cell)).into_owned()).collect();
        header = Some(record.clone());
        more = next(&mut record)?;
    }
    while more {
        if record.len() != n_cells {
            let problem =
                format!("has {} cells where line 1 has {n_cells}; give every line as many", record.len());
            return Err(Error::malformed_at(path, format!("line {}", line_of(path, &record)), problem));
        }
        let n_letters = others.label.map_or(0, |column| LABEL + record[column].len());
        allowance.charge_rows(1)?;
        allowance.charge((4 * n_cells + n_letters) as u64)?;
        for (column, cell) in record.iter().enumerate() {
            if Some(column) == others.label {
                labels.push(String::from_utf8_lossy(cell).into_owned());
            } else if Some(column) == others.split {
                splits.push(Split::of_cell(cell).ok_or_else(|| no_part(path, &record, column))?);
            } else {
                values.push(number(cell).ok_or_else(|| bad_cell(path, &record, column, header.as_ref()))?);
            }
        }
        more = next(&mut record)?;
    }

    let n_others = usize::from(others.label.is_some()) + usize::from(others.split.is_some());
    let columns = Columns {
        name: &name,
        n_columns: n_cells - n_others,
        is_text: true,
        names: &names,
        has_others: n_others > 0,
    };
    let header = if names.is_empty() { "" } else { ", with a header" };
    Ok(Table {
        rows: reading.values.rows(&columns, values)?,
        labels: others.label.map(|_| Labels::from_words(&labels)),
        splits: others.split.map(|_| splits),
        image_shape: None,
        preprocessing: reading.values.preprocessing(),
        format: format!("text, cells separated by {separator}{header}"),
        column_names: names,
        sha256: source.finish()?,
    })
}

/// Reads the parts of rows from a text with one word for each line, with or without a header.
pub(super) fn read_splits(path: &Path) -> Result<(Vec<Split>, String)> {
    let mut source = Source::open(path)?;
    let mut text = String::new();
    if let Err(error) = source.read_to_string(&mut text) {
        return Err(source.broken(error));
    }
    let mut splits = Vec::new();
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    for (k, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        match Split::of_cell(line.trim().trim_matches('"').as_bytes()) {
            Some(split) => splits.push(split),
            // A first line that names no part is a header.
            None if k == 0 => {}
            None => {
                let problem = format!("{:?} is not a part; {}", line.trim(), Split::CHOICES);
                return Err(Error::malformed_at(path, format!("line {}", k + 1), problem));
            }
        }
    }
    Ok((splits, source.finish()?))
}

fn no_part(path: &Path, record: &ByteRecord, column: usize) -> Error {
    let place = format!("line {}, column {}", line_of(path, record), column + 1);
    let word = String::from_utf8_lossy(&record[column]);
    Error::malformed_at(path, place, format!("{word:?} is not a part; {}", Split::CHOICES))
}

fn number(cell: &[u8]) -> Option<f32> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// The error for a cell that is no number. Its column may have a name in the header.
fn bad_cell(path: &Path, record: &ByteRecord, column: usize, header: Option<&ByteRecord>) -> Error {
    let place = format!("line {}, column {}", line_of(path, record), column + 1);
    let word = String::from_utf8_lossy(&record[column]);
    let is_decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let has_comma = word.split_once(',').is_some_and(|(whole, rest)| is_decimal(whole) && is_decimal(rest));
    let name = header.and_then(|header| header.get(column)).map(name_in).unwrap_or_default();
    let is_plain =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte));
    let naming = |setting: &str| match std::str::from_utf8(name) {
        Ok(name) if is_plain => format!("`{setting} = {name}`"),
        _ => format!("`{setting}` to its name"),
    };
    let problem = match word.to_lowercase().as_str() {
        "" => "a cell is empty; fill in a number, or remove the row".into(),
        "na" | "n/a" | "null" | "none" | "?" | "-" => {
            format!("{word:?} stands for a missing value; fill in a number, or remove the row")
        }
        "yes" | "no" | "true" | "false" | "y" | "n" | "t" | "f" => {
            format!("{word:?} is not a number; write 1 for yes and 0 for no")
        }
        _ if has_comma => format!("{word:?} is not a number; write decimals with a point"),
        _ if record.len() == 1 && word.contains([' ', '|']) => {
            format!("{word:?} is not a number; separate the cells of a line by commas")
        }
        _ if Split::of_word(&word).is_some() => {
            format!("{word:?} is not a number; if the column names parts, set {}", naming("split-column"))
        }
        _ => format!(
            "{word:?} is not a number; if the column holds labels, set {}; if it is a category, make a \
             column of 0 and 1 for each of its words",
            naming("label-column")
        ),
    };
    Error::malformed_at(path, place, problem)
}

/// Returns the line that a record is on. The parser knows only where it began to look, before empty
/// lines.
fn line_of(path: &Path, record: &ByteRecord) -> u64 {
    let start = record.position().map_or(0, |position| position.byte());
    Source::open(path).map_or(0, |source| {
        let bytes = (0..).zip(BufReader::new(source).bytes().map_while(io::Result::ok));
        let before = bytes.take_while(|&(at, byte)| at < start || byte == b'\r' || byte == b'\n');
        1 + before.filter(|&(_, byte)| byte == b'\n').count() as u64
    })
}

/// Returns true if the first record is a header.
fn is_header(path: &Path, record: &ByteRecord, others: &Others, reading: &Reading<'_>) -> Result<bool> {
    let cells = || record.iter().enumerate().filter(|&(column, _)| !others.hold(column));
    let Some((column, _)) = cells().find(|(_, cell)| number(cell).is_none()) else { return Ok(false) };
    let is_value = |cell: &[u8]| number(cell).is_some_and(|value| reading.values.allow(value));
    let n_values = cells().filter(|(_, cell)| is_value(cell)).count();
    if 2 * n_values > cells().count() {
        return Err(bad_cell(path, record, column, None));
    }
    Ok(true)
}

/// Returns the name in a cell of a header. NumPy writes `# ` before the first one.
fn name_in(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"#").unwrap_or(cell).trim_ascii()
}

/// Returns the index of a column given by name or number. `what` is what it holds.
fn find_column(path: &Path, first: &ByteRecord, what: &str, column: &str) -> Result<usize> {
    let n = first.len();
    let index = match column.parse::<i64>() {
        Ok(number) if number < 0 => usize::try_from(number + n as i64).ok(),
        Ok(number) => usize::try_from(number).ok().filter(|&number| number < n),
        Err(_) => {
            let is_it = |cell: &[u8]| [cell, name_in(cell)].contains(&column.as_bytes());
            first.iter().position(is_it)
        }
    };
    index.ok_or_else(|| {
        if n == 0 {
            return Error::malformed(
                path,
                format!("has no {what} column {column:?}: its first line is empty"),
            );
        }
        let names: Vec<_> = first.iter().take(20).map(String::from_utf8_lossy).collect();
        let more = if n > 20 { ", …" } else { "" };
        let names = names.join(", ");
        let choice = format!("a name of its header or a number from 0 to {} (−1 is the last)", n - 1);
        let problem = format!("has no {what} column {column:?}; give {choice}; line 1 is {names}{more}");
        Error::malformed(path, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_separator() {
        use Separator::{Commas, Semicolons, Spaces, Tabs};
        for (text, separator) in [
            ("0,1\n", Commas),
            ("0;1\n", Semicolons),
            ("0,5;1,0\n", Semicolons),
            ("\"a;b\",c\n", Commas),
            ("a b\tc\n0\t1\n", Tabs),
            ("0 1 1\n1 0 0\n", Spaces),
            ("  0   1\n", Spaces),
            ("# made, by hand\n0 1\n1 1\n", Spaces),
            ("a title\n0\n1\n", Commas),
            ("1\n0\n", Commas),
            ("", Commas),
        ] {
            assert_eq!(Separator::of_content(text.as_bytes()), separator, "{text:?}");
        }
    }
}
