//! Read NumPy's `.npz` archives.

use std::io::{self, BufReader, Read};
use std::path::Path;

use npyz::npz::{NpzArchive, file_name_from_array_name};

use super::file::Table;
use super::source::{Source, file_name, open_file};
use super::{Labels, npy};
use crate::{Error, Result};

/// The names under which rows are looked for, first come first served.
const DATA_NAMES: [&str; 5] = ["data", "X", "x", "samples", "arr_0"];
/// The names under which labels are looked for.
const LABEL_NAMES: [&str; 3] = ["labels", "y", "target"];

/// Read the rows and, under `label_array` or one of the usual names, the labels.
pub(super) fn read(path: &Path, label_array: Option<&str>) -> Result<Table> {
    let mut archive = Archive::open(path)?;
    let shapes = archive.shapes()?;
    let has = |name: &str| shapes.iter().any(|(n, _)| n == name);
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
    let mut matrices = shapes.iter().filter(|(name, s)| s.len() > 1 && Some(name.as_str()) != labels_name);
    let only_matrix = matrices.next().filter(|_| matrices.next().is_none());
    let data_name = DATA_NAMES
        .into_iter()
        .find(|name| has(name) && Some(*name) != labels_name)
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

    let array = archive.array(data_name, |header, mut reader| npy::Array::read(header, &mut reader, path))?;
    let (rows, image_shape) = array.into_rows(&format!("{} ({data_name})", file_name(path)))?;
    let labels = labels_name.map(|labels| archive.labels(labels)).transpose()?;
    Ok(Table { rows, labels, image_shape, preprocessing: "none", sha256: archive.sha256 })
}

/// An opened archive.
struct Archive<'a> {
    path: &'a Path,
    inner: NpzArchive<BufReader<std::fs::File>>,
    sha256: String,
}

impl<'a> Archive<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let (file, length) = open_file(path)?;
        let mut source = Source::open(path)?;
        if !source.peek()?.starts_with(b"PK") {
            return Err(Error::malformed(path, "does not begin like an .npz (zip) archive"));
        }
        io::copy(&mut source.by_ref().take(length), &mut io::sink()).map_err(Error::io("read", path))?;
        let inner = NpzArchive::new(BufReader::new(file)).map_err(|e| {
            Error::malformed(path, format!("is not an intact .npz archive ({e}); get it again"))
        })?;
        Ok(Self { path, inner, sha256: source.finish()? })
    }

    /// The names and shapes of the arrays, by name.
    fn shapes(&mut self) -> Result<Vec<(String, Vec<u64>)>> {
        let mut names: Vec<String> = self.inner.array_names().map(Into::into).collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|name| {
                let shape = self.entry(&name, |header, _| Ok(header.shape().to_vec()))?;
                Ok((name, shape))
            })
            .collect()
    }

    /// Read the array `name`, and all of it.
    fn array<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&npyz::NpyHeader, &mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let path = self.path;
        self.entry(name, |header, reader| {
            let value = read(header, reader)?;
            // At its end a zip entry also checks its sum.
            match reader.read(&mut [0]) {
                Ok(0) => Ok(value),
                Ok(_) => Err(Error::malformed(path, format!("array {name:?} goes on after its data"))),
                Err(e) => {
                    Err(Error::malformed(path, format!("array {name:?} is damaged ({e}); get it again")))
                }
            }
        })
    }

    /// Open the array `name`: its header, and its data to be read.
    fn entry<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&npyz::NpyHeader, &mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let path = self.path;
        let damaged = |e: &dyn std::fmt::Display| Error::malformed(path, format!("array {name:?}: {e}"));
        let zip = self.inner.zip_archive();
        let mut entry = zip.by_name(&file_name_from_array_name(name)).map_err(|e| damaged(&e))?;
        let length = entry.size();
        let header = npy::read_header(&mut entry).map_err(|e| damaged(&e))?;
        // Elements of no fixed size are refused when they are read.
        if let Some(expected) = npy::n_bytes(&header).filter(|&n| n > length) {
            return Err(Error::Truncated { path: path.into(), expected, found: length });
        }
        read(&header, &mut entry)
    }

    fn labels(&mut self, name: &str) -> Result<Labels> {
        let path = self.path;
        self.array(name, |header, mut reader| {
            let numbers = npy::read_numbers(header, &mut reader, path, |x| x)?;
            if header.shape().len() != 1 || numbers.iter().any(|x| x.fract() != 0.0) {
                return Err(Error::malformed(
                    path,
                    format!("array {name:?} does not hold one whole number per row"),
                ));
            }
            Ok(Labels::from_integers(numbers.into_iter().map(|x| x as i64).collect()))
        })
    }
}
