//! Read `.csv` files.
//!
//! Each line holds one row of comma-separated numbers in [0, 1]. A first row with a word in it is a
//! header, unless most of its cells are values in [0, 1]; then the word is an error, so that no row
//! is lost. One column may hold labels, numbers or words.

use std::io::{self, BufReader, Read};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use super::file::Table;
use super::rows::no_rows;
use super::{Labels, Rows};
use crate::source::{Source, broken, file_name};
use crate::{Error, Result};

/// Reads the rows and, from `label_column`, the labels. A whole number counts the columns: 0 is the
/// first, −1 the last. Anything else is a name in the header.
pub(super) fn read(path: &Path, label_column: Option<&str>) -> Result<Table> {
    let mut source = Source::open_together(path)?;
    let (name, is_gzip) = (file_name(path), source.is_gzip);
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(&mut source);

    let mut next = |record: &mut ByteRecord| {
        reader.read_byte_record(record).map_err(|e| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => broken(path, is_gzip, e),
            other => Error::malformed(path, format!("{other:?}")),
        })
    };

    let mut values = Vec::new();
    let mut labels = Vec::new();
    let mut record = ByteRecord::new();
    let mut more = next(&mut record)?;
    if !more {
        return Err(no_rows(&name));
    }
    let n_cells = record.len();
    let label_index = label_column.map(|column| find_column(path, &record, column)).transpose()?;
    // A label given by name was found in a header, whatever its other cells hold.
    let is_named = label_column.is_some_and(|column| column.parse::<i64>().is_err());
    if is_named || is_header(path, &record, label_index)? {
        more = next(&mut record)?;
    }
    while more {
        if record.len() != n_cells {
            let problem =
                format!("has {} cells where line 1 has {n_cells}; give every line as many", record.len());
            return Err(Error::malformed_at(path, format!("line {}", line_of(path, &record)), problem));
        }
        for (column, cell) in record.iter().enumerate() {
            if Some(column) == label_index {
                labels.push(String::from_utf8_lossy(cell).into_owned());
            } else {
                values.push(number(cell).ok_or_else(|| bad_cell(path, &record, column))?);
            }
        }
        more = next(&mut record)?;
    }

    let rows = Rows::from_values(&name, n_cells - usize::from(label_index.is_some()), values)?;
    Ok(Table {
        rows,
        labels: label_index.map(|_| Labels::from_words(&labels)),
        image_shape: None,
        preprocessing: "none",
        sha256: source.finish()?,
    })
}

fn number(cell: &[u8]) -> Option<f32> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn bad_cell(path: &Path, record: &ByteRecord, column: usize) -> Error {
    let place = format!("line {}, column {}", line_of(path, record), column + 1);
    let word = String::from_utf8_lossy(&record[column]);
    let problem = match word.to_lowercase().as_str() {
        "" => "a cell is empty; fill in a number, or remove the row".into(),
        "na" | "n/a" | "null" | "none" | "?" | "-" => {
            format!("{word:?} stands for a missing value; fill in a number, or remove the row")
        }
        "yes" | "no" | "true" | "false" | "y" | "n" | "t" | "f" => {
            format!("{word:?} is not a number; write 1 for yes and 0 for no")
        }
        _ if record.len() == 1 && word.contains([';', '\t', ' ', '|']) => {
            format!("{word:?} is not a number; separate the cells of a line by commas")
        }
        _ => format!("{word:?} is not a number; if the column holds labels, set `label-column` to its name"),
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
fn is_header(path: &Path, record: &ByteRecord, label_index: Option<usize>) -> Result<bool> {
    let cells = || record.iter().enumerate().filter(|&(column, _)| Some(column) != label_index);
    let Some((column, _)) = cells().find(|(_, cell)| number(cell).is_none()) else { return Ok(false) };
    let n_values = cells().filter(|(_, cell)| number(cell).is_some_and(|x| (0.0..=1.0).contains(&x))).count();
    if 2 * n_values > cells().count() {
        return Err(bad_cell(path, record, column));
    }
    Ok(true)
}

/// Returns the index of a column given by name or number.
fn find_column(path: &Path, first: &ByteRecord, column: &str) -> Result<usize> {
    let n = first.len();
    let index = match column.parse::<i64>() {
        Ok(number) if number < 0 => usize::try_from(number + n as i64).ok(),
        Ok(number) => usize::try_from(number).ok().filter(|&number| number < n),
        Err(_) => first.iter().position(|cell| cell == column.as_bytes()),
    };
    index.ok_or_else(|| {
        let names: Vec<_> = first.iter().take(20).map(String::from_utf8_lossy).collect();
        let more = if n > 20 { ", …" } else { "" };
        let names = names.join(", ");
        let choice = format!("a name of its header or a number from 0 to {} (−1 is the last)", n - 1);
        let problem = format!("has no label column {column:?}; give {choice}; line 1 is {names}{more}");
        Error::malformed(path, problem)
    })
}
