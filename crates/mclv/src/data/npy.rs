//! Read rows from NumPy's `.npy` files.

use std::path::Path;

use super::file::{Reading, Table};
use super::idx::picture;
use super::scale::{Columns, Values};
use super::{Rows, Split};
use crate::numpy::{Array, Numbers, Words, read_npy, read_words};
use crate::source::{Source, file_name};
use crate::{Error, Result};

/// Reads a file of rows, or of pictures.
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<Table> {
    let values = reading.values;
    let (array, sha256) = read_npy(Source::open_together(path)?.heeding(reading.progress))?;
    let format = format!("NumPy array of shape {:?}", array.shape);
    let (rows, image_shape) = into_rows(array, path, &file_name(path), values)?;
    Ok(Table {
        rows,
        labels: None,
        splits: None,
        image_shape,
        preprocessing: values.preprocessing(),
        format,
        column_names: Vec::new(),
        sha256,
    })
}

/// Checks shape and values. Flattens pictures, and returns their height and width.
pub(super) fn into_rows(
    array: Array,
    path: &Path,
    name: &str,
    values: Values,
) -> Result<(Rows, Option<(usize, usize)>)> {
    let shape = array.shape;
    if !(2..=4).contains(&shape.len()) {
        let problem = format!("has the shape {shape:?}; rows × columns or rows × height × width expected");
        return Err(Error::malformed(path, problem));
    }
    let columns = Columns::of_array(name, shape[1..].iter().product());
    let rows = match array.numbers {
        Numbers::Bytes(bytes) => values.rows_of_bytes(&columns, &bytes)?,
        Numbers::Reals(reals) => values.rows(&columns, reals)?,
    };
    Ok((rows, picture(&shape)))
}

/// Reads the parts of rows: words, or 0 for train, 1 for validation, 2 for test.
pub(super) fn read_splits(path: &Path) -> Result<(Vec<Split>, String)> {
    let (words, sha256) = read_words(Source::open(path)?)?;
    Ok((splits_of(path, words)?, sha256))
}

/// Returns the parts that words or numbers stand for.
pub(super) fn splits_of(path: &Path, words: Words) -> Result<Vec<Split>> {
    let named = |row: usize, word: String, split: Option<Split>| {
        let problem = || format!("{word} is not a part; {}", Split::CHOICES);
        split.ok_or_else(|| Error::malformed_at(path, format!("row {}", row + 1), problem()))
    };
    match words {
        Words::Texts(words) => {
            let split = |(row, word): (usize, String)| named(row, format!("{word:?}"), Split::of_word(&word));
            words.into_iter().enumerate().map(split).collect()
        }
        Words::Numbers(numbers) => {
            let split = |(row, x): (usize, f64)| named(row, x.to_string(), Split::of_number(x));
            numbers.into_iter().enumerate().map(split).collect()
        }
        Words::Booleans => {
            let problem = "holds true and false, which do not say what part is meant; save 0 for train, 1 for \
                           validation and 2 for test";
            Err(Error::malformed(path, problem))
        }
    }
}
