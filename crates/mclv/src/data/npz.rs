//! Read rows and labels from NumPy's `.npz` archives.

use std::path::Path;

use super::file::{Reading, Table};
use super::{Labels, npy, scipy};
use crate::numpy::{Archive, Words};
use crate::source::file_name;
use crate::{Error, Result};

/// The names under which rows are looked for. The first that exists is used.
const DATA_NAMES: [&str; 5] = ["data", "X", "x", "samples", "arr_0"];
/// The names under which labels are looked for.
const LABEL_NAMES: [&str; 3] = ["labels", "y", "target"];

/// Reads the rows and, under the name of the label column or one of the usual names, the labels.
/// The split column is the name of an array of parts. An archive that SciPy wrote holds a sparse
/// matrix.
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<Table> {
    let label_array = reading.label_column;
    let mut archive = Archive::open(path, reading.progress)?;
    let shapes = archive.shapes()?;
    let has = |name: &str| shapes.iter().any(|(n, _)| n == name);
    if scipy::is_sparse_matrix(&has) {
        return scipy::read(path, &mut archive, reading);
    }
    let listing = || match shapes.as_slice() {
        [] => "no arrays".into(),
        shapes => shapes.iter().map(|(n, s)| format!("{n} {s:?}")).collect::<Vec<_>>().join(", "),
    };

    let labels_name = match label_array {
        Some(name) if !has(name) => {
            return Err(Error::malformed(path, format!("has no array {name:?}; it holds {}", listing())));
        }
        Some(name) => Some(name),
        None => LABEL_NAMES.into_iter().find(|name| has(name)),
    };
    if let Some(name) = reading.split_column.filter(|name| !has(name)) {
        return Err(Error::malformed(path, format!("has no array {name:?}; it holds {}", listing())));
    }
    let is_other = |name: &str| [labels_name, reading.split_column].contains(&Some(name));
    let mut matrices = shapes.iter().filter(|(name, s)| s.len() > 1 && !is_other(name));
    let only_matrix = matrices.next().filter(|_| matrices.next().is_none());
    let data_name = DATA_NAMES
        .into_iter()
        .find(|name| has(name) && !is_other(name))
        .or(only_matrix.map(|(name, _)| name.as_str()))
        .ok_or_else(|| {
            Error::malformed(
                path,
                format!(
                    "does not say which array holds the rows; call it one of {}; it holds {}",
                    DATA_NAMES.join(", "),
                    listing()
                ),
            )
        })?;

    let name = format!("{} ({data_name})", file_name(path));
    let array = archive.array(data_name)?;
    let format = format!("NumPy archive, array {data_name:?} of shape {:?}", array.shape);
    let (rows, image_shape) = npy::into_rows(array, path, &name, reading.values)?;
    let labels = labels_name.map(|name| labels(&mut archive, path, name)).transpose()?;
    let splits =
        reading.split_column.map(|name| npy::splits_of(path, archive.read_with(name, |body| body.words())?));
    Ok(Table {
        rows,
        labels,
        splits: splits.transpose()?,
        image_shape,
        preprocessing: reading.values.preprocessing(),
        format,
        column_names: Vec::new(),
        sha256: archive.sha256,
    })
}

fn labels(archive: &mut Archive<'_>, path: &Path, name: &str) -> Result<Labels> {
    archive.read_with(name, |body| {
        let is_column = body.header.shape.len() == 1;
        match body.words()? {
            Words::Texts(words) if is_column => Ok(Labels::from_words(&words)),
            Words::Numbers(numbers) if is_column && numbers.iter().all(|x| x.fract() == 0.0) => {
                Ok(Labels::from_integers(numbers.into_iter().map(|x| x as i64).collect()))
            }
            _ => {
                let problem = format!("array {name:?} does not hold one word or whole number per row");
                Err(Error::malformed(path, problem))
            }
        }
    })
}
