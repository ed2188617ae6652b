//! Read rows from NumPy's `.npy` files.

use std::path::Path;

use super::file::Table;
use super::idx::picture;
use super::scale::{Columns, Values};
use super::{Rows, Split};
use crate::numpy::{Array, Numbers, read_npy};
use crate::source::{Source, file_name};
use crate::{Error, Result};

/// Reads a file of rows, or of pictures.
pub(super) fn read(path: &Path, values: Values) -> Result<Table> {
    let (array, sha256) = read_npy(Source::open_together(path)?)?;
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

/// Reads the parts of rows: 0 for train, 1 for validation, 2 for test.
pub(super) fn read_splits(path: &Path) -> Result<(Vec<Split>, String)> {
    let (array, sha256) = read_npy(Source::open(path)?)?;
    if array.shape.iter().filter(|&&n| n != 1).count() > 1 {
        let problem = format!("has the shape {:?}; give one number per row", array.shape);
        return Err(Error::malformed(path, problem));
    }
    Ok((splits_of(path, array.into_reals().into_iter().map(f64::from))?, sha256))
}

/// Returns the parts that numbers stand for.
pub(super) fn splits_of(path: &Path, numbers: impl Iterator<Item = f64>) -> Result<Vec<Split>> {
    let split = |(row, number)| {
        let problem = || format!("{number} is not a part; {}", Split::CHOICES);
        Split::of_number(number)
            .ok_or_else(|| Error::malformed_at(path, format!("row {}", row + 1), problem()))
    };
    numbers.enumerate().map(split).collect()
}
