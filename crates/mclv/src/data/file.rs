//! Read a file in any of the known formats.

use std::path::Path;

use super::{DataProvenance, Dataset, Labels, Rows, Split, csv, idx, npy, npz};
use crate::source::{Source, file_name};
use crate::{Error, Result};

/// The content of a file, as its reader returns it.
pub(super) struct Table {
    pub rows: Rows,
    pub labels: Option<Labels>,
    pub image_shape: Option<(usize, usize)>,
    /// The preprocessing that the reader applied to the values.
    pub preprocessing: &'static str,
    pub sha256: String,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Idx,
    Npy,
    Npz,
    Csv,
}

const KNOWN: &str = ".npy, .npz, .csv and IDX (.idx, …-ubyte), each with or without .gz, except .npz";

impl Format {
    /// Returns the format that a name indicates. All formats but the compressed `.npz` may be
    /// gzipped.
    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let is = |suffixes: &[&str]| suffixes.iter().any(|suffix| plain.ends_with(suffix));
        match () {
            () if is(&[".npy"]) => Some(Self::Npy),
            () if is(&[".npz"]) => Some(Self::Npz),
            () if is(&[".csv"]) => Some(Self::Csv),
            () if is(&[".idx", ".idx1", ".idx2", ".idx3", "-ubyte", ".ubyte"]) => Some(Self::Idx),
            () => None,
        }
    }

    /// Returns the format that the first bytes of the (uncompressed) content indicate.
    fn of_content(content: &[u8]) -> Option<Self> {
        match content {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Self::Npy),
            [b'P', b'K', 3, 4, ..] => Some(Self::Npz),
            [0, 0, 8, 1..=4, ..] => Some(Self::Idx),
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
/// The name decides the format (`.npy`, `.npz`, `.csv`, `.idx`, `…-ubyte`, also gzipped); if it has
/// no known ending, the content decides. `label_column` names the labels: a column of a `.csv` (by
/// name, or by number from 0; −1 is the last) or an array of an `.npz` (else `labels`, `y` or
/// `target`). The labels of an IDX file are read from the file beside it that is named like
/// MNIST's. IDX bytes are divided by 255; all other values must already lie in [0, 1].
///
/// ```no_run
/// let data = mclv::data::read("table.csv", Some("species"))?;
/// println!("{} rows", data.n_rows());
/// # Ok::<(), mclv::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>, label_column: Option<&str>) -> Result<Dataset> {
    let path = path.as_ref();
    let name = file_name(path);
    let format = match Format::of_name(&name) {
        Some(format) => format,
        None => Format::of_content(Source::open(path)?.peek()?)
            .ok_or_else(|| Error::UnknownFormat { path: path.into(), known: KNOWN })?,
    };
    if let (Format::Idx | Format::Npy, Some(column)) = (format, label_column) {
        return Err(Error::InvalidSetting {
            name: "label_column",
            value: column.into(),
            cure: "leave it out: only .csv and .npz files have named labels",
        });
    }
    let table = match format {
        Format::Idx => idx::read(path),
        Format::Npy => npy::read(path),
        Format::Npz => npz::read(path, label_column),
        Format::Csv => csv::read(path, label_column),
    }?;
    if let Some(labels) = &table.labels {
        labels.check(&name, table.rows.n_rows())?;
    }
    let provenance = DataProvenance {
        name: name.clone(),
        source: name.clone(),
        sha256: table.sha256,
        preprocessing: table.preprocessing.into(),
        split: Split::All,
        seed: None,
        n_rows: table.rows.n_rows(),
        n_columns: table.rows.n_columns(),
        image_shape: None,
    };
    Ok(Dataset {
        name,
        rows: table.rows,
        labels: table.labels,
        image_shape: table.image_shape,
        best_log_likelihood: None,
        provenance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        for (name, format) in [
            ("a.npy", Some(Format::Npy)),
            ("A.CSV.gz", Some(Format::Csv)),
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
