//! Read rows from NumPy's `.npy` files.

use std::path::Path;

use super::Rows;
use super::file::Table;
use super::idx::picture;
use crate::numpy::{Array, Numbers, read_npy};
use crate::source::{Source, file_name};
use crate::{Error, Result};

/// Reads a file of rows, or of pictures.
pub(super) fn read(path: &Path) -> Result<Table> {
    let (array, sha256) = read_npy(Source::open_together(path)?)?;
    let (rows, image_shape) = into_rows(array, path, &file_name(path))?;
    Ok(Table { rows, labels: None, image_shape, preprocessing: "none", sha256 })
}

/// Checks shape and values. Flattens pictures, and returns their height and width.
pub(super) fn into_rows(array: Array, path: &Path, name: &str) -> Result<(Rows, Option<(usize, usize)>)> {
    let shape = array.shape;
    if !(2..=4).contains(&shape.len()) {
        let problem = format!("has the shape {shape:?}; rows × columns or rows × height × width expected");
        return Err(Error::malformed(path, problem));
    }
    let n_columns = shape[1..].iter().product();
    let rows = match array.numbers {
        Numbers::Bytes(bytes) => Rows::from_small_integers(name, n_columns, &bytes)?,
        Numbers::Reals(reals) => Rows::from_values(name, n_columns, reals)?,
    };
    Ok((rows, picture(&shape)))
}
