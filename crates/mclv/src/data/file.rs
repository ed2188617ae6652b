//! Read a file in any of the known formats.

use std::path::Path;

use super::dataset::kept_names;
use super::scale::Values;
use super::{DataProvenance, Dataset, Labels, Rows, Split, csv, hdf5, idx, npy, npz};
use crate::progress::{Progress, Silent};
use crate::source::{Source, file_name};
use crate::{Error, Result};

/// What a reader is told of a file.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The column, or the array, of the labels.
    pub label_column: Option<&'a str>,
    /// The column, or the array, that names the part of each row.
    pub split_column: Option<&'a str>,
    /// The values that the file may hold.
    pub values: Values,
    /// Reading ends if this listener cancels.
    pub progress: &'a dyn Progress,
}

/// The content of a file, as its reader returns it.
pub(super) struct Table {
    pub rows: Rows,
    pub labels: Option<Labels>,
    /// The part of each row, if a column names it.
    pub splits: Option<Vec<Split>>,
    pub image_shape: Option<(usize, usize)>,
    /// The preprocessing that the reader applied to the values.
    pub preprocessing: String,
    /// The format in words.
    pub format: String,
    /// The names of the columns of `rows`. Empty if the file has none.
    pub column_names: Vec<String>,
    pub sha256: String,
}

/// A file that was read.
pub(super) struct FileRows {
    pub dataset: Dataset,
    pub splits: Option<Vec<Split>>,
    pub format: String,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Idx,
    Npy,
    Npz,
    Text,
    Hdf5,
}

const KNOWN: &str = ".npy, .npz, .csv, .tsv, .txt, .dat and IDX (.idx, …-ubyte), each with or without .gz, \
                     except .npz; and .h5 if the program was built with HDF5";

impl Format {
    /// Returns the format that a name indicates. All formats but the compressed `.npz` and HDF5 may
    /// be gzipped.
    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let is = |suffixes: &[&str]| suffixes.iter().any(|suffix| plain.ends_with(suffix));
        match () {
            () if is(&[".npy"]) => Some(Self::Npy),
            () if is(&[".npz"]) => Some(Self::Npz),
            () if is(&[".csv", ".tsv", ".txt", ".dat"]) => Some(Self::Text),
            () if is(&[".idx", ".idx1", ".idx2", ".idx3", "-ubyte", ".ubyte"]) => Some(Self::Idx),
            () if is(&[".h5", ".hdf5"]) => Some(Self::Hdf5),
            () => None,
        }
    }

    /// Returns the format that the first bytes of the (uncompressed) content indicate.
    fn of_content(content: &[u8]) -> Option<Self> {
        match content {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Self::Npy),
            [b'P', b'K', 3, 4, ..] => Some(Self::Npz),
            [0, 0, 8, 1..=4, ..] => Some(Self::Idx),
            [0x89, b'H', b'D', b'F', ..] => Some(Self::Hdf5),
            _ => None,
        }
    }
}

/// Returns true if a word that names no data set is meant as the path of a file.
pub(super) fn looks_like_a_path(word: &str) -> bool {
    word.contains(['/', '\\']) || Format::of_name(word).is_some()
}

/// Reads every row of a file.
///
/// The name decides the format (`.npy`, `.npz`, `.csv`, `.tsv`, `.txt`, `.dat`, `.idx`, `…-ubyte`,
/// also gzipped; `.h5` with the cargo feature `hdf5`); if it has no known ending, the content
/// decides. `label_column` names the labels: a column of a text (by name, or by number from 0; −1
/// is the last) or an array of an `.npz` (else `labels`, `y` or `target`). The labels of an IDX
/// file are read from the file beside it that is named like MNIST's. IDX bytes are divided by 255;
/// all other values must already lie in [0, 1]. [`load`](super::load) reads other ranges too.
///
/// ```no_run
/// let data = mclv::data::read("table.csv", Some("species"))?;
/// println!("{} rows", data.n_rows());
/// # Ok::<(), mclv::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>, label_column: Option<&str>) -> Result<Dataset> {
    let reading = Reading { label_column, split_column: None, values: Values::Unit, progress: &Silent };
    Ok(read_as(path.as_ref(), &reading)?.dataset)
}

/// Reads every row of a file as `reading` says.
pub(super) fn read_as(path: &Path, reading: &Reading<'_>) -> Result<FileRows> {
    let name = file_name(path);
    let format = match Format::of_name(&name) {
        Some(format) => format,
        None => Format::of_content(Source::open(path)?.peek()?)
            .ok_or_else(|| Error::UnknownFormat { path: path.into(), known: KNOWN })?,
    };
    if !matches!(format, Format::Npz | Format::Text) {
        for (column, what) in [(reading.label_column, "label_column"), (reading.split_column, "split_column")]
        {
            if let Some(column) = column {
                return Err(Error::InvalidSetting {
                    name: what,
                    value: column.into(),
                    cure: "leave it out: only texts (.csv, …) and .npz files have named columns",
                });
            }
        }
    }
    let table = match format {
        Format::Idx => idx::read(path, reading),
        Format::Npy => npy::read(path, reading),
        Format::Npz => npz::read(path, reading),
        Format::Text => csv::read(path, reading),
        Format::Hdf5 => hdf5::read(path, reading),
    }?;
    let n_rows = table.rows.n_rows();
    if let Some(labels) = &table.labels {
        labels.check(&name, n_rows)?;
    }
    if let Some(splits) = table.splits.as_ref().filter(|splits| splits.len() != n_rows) {
        let what = format!("parts of {name}, one per row");
        return Err(Error::ShapeMismatch { what, expected: n_rows, got: splits.len() });
    }
    let provenance = DataProvenance {
        name: name.clone(),
        source: name.clone(),
        sha256: table.sha256,
        preprocessing: table.preprocessing,
        split: Split::All,
        division: None,
        seed: None,
        n_rows,
        n_columns: table.rows.n_columns(),
        image_shape: None,
        column_names: kept_names(table.column_names),
    };
    let dataset = Dataset {
        name,
        rows: table.rows,
        labels: table.labels,
        image_shape: table.image_shape,
        best_log_likelihood: None,
        provenance,
    };
    Ok(FileRows { dataset, splits: table.splits, format: table.format })
}

/// Reads the part of each row of a data file from a file of its own: a text with a word for each
/// line, or a `.npy` of numbers. Also returns the SHA-256 of its content.
pub(super) fn read_splits(path: &Path) -> Result<(Vec<Split>, String)> {
    let name = file_name(path);
    match Format::of_name(&name) {
        Some(Format::Npy) => npy::read_splits(path),
        Some(Format::Text) => csv::read_splits(path),
        _ => Err(Error::UnknownFormat {
            path: path.into(),
            known: ".csv, .txt and .npy, one part (train, validation or test; 0, 1 or 2) per row",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        for (name, format) in [
            ("a.npy", Some(Format::Npy)),
            ("A.CSV.gz", Some(Format::Text)),
            ("table.tsv", Some(Format::Text)),
            ("samples.h5", Some(Format::Hdf5)),
            ("x.npz", Some(Format::Npz)),
            ("train-images-idx3-ubyte.gz", Some(Format::Idx)),
            ("train-images.idx3-ubyte", Some(Format::Idx)),
            ("mnist", None),
            ("a.gz", None),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
        assert!(looks_like_a_path("no/such") && looks_like_a_path("such.csv") && !looks_like_a_path("such"));
    }
}
