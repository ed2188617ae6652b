//! Read and write NumPy's `.npz` archives.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::header::Header;
use super::npy::{Array, Body};
use crate::allowance::Allowance;
use crate::progress::Progress;
use crate::source::{Heeding, Source, open_file};
use crate::{Error, Result};

/// The extension of an array's file in an archive.
const EXTENSION: &str = ".npy";

/// An opened archive.
pub(crate) struct Archive<'a> {
    path: &'a Path,
    inner: ZipArchive<BufReader<File>>,
    progress: &'a dyn Progress,
    /// Of all arrays together.
    pub(crate) allowance: Allowance,
    /// The SHA-256 of the whole file.
    pub(crate) sha256: String,
}

impl<'a> Archive<'a> {
    /// Opens the archive of that name. Reading it ends if `progress` cancels.
    pub(crate) fn open(path: &'a Path, progress: &'a dyn Progress) -> Result<Self> {
        let (file, length) = open_file(path)?;
        let mut source = Source::open(path)?.heeding(progress);
        if !source.peek()?.starts_with(b"PK") {
            return Err(Error::malformed(path, "does not begin like an .npz (zip) archive"));
        }
        io::copy(&mut source.by_ref().take(length), &mut io::sink()).map_err(Error::io("read", path))?;
        let inner = ZipArchive::new(BufReader::new(file)).map_err(|e| {
            Error::malformed(path, format!("is a damaged .npz archive ({e}); download or copy it again"))
        })?;
        let allowance = source.allowance().clone();
        Ok(Self { path, inner, progress, allowance, sha256: source.finish()? })
    }

    /// Returns the names and shapes of the arrays, sorted by name.
    pub(crate) fn shapes(&mut self) -> Result<Vec<(String, Vec<usize>)>> {
        let names = self.inner.file_names().filter_map(Result::ok);
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(EXTENSION).map(str::to_owned)).collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|name| {
                let shape = self.entry(&name, |body| Ok(body.header.shape))?;
                Ok((name, shape))
            })
            .collect()
    }

    /// Reads the array `name` as it is.
    pub(crate) fn array(&mut self, name: &str) -> Result<Array> {
        self.read_with(name, |body| body.array())
    }

    /// Passes the array `name` to `read`, which must read all of it.
    pub(crate) fn read_with<T>(&mut self, name: &str, read: impl FnOnce(Body<'_>) -> Result<T>) -> Result<T> {
        let path = self.path;
        self.entry(name, |body| {
            let value = read(Body { reader: &mut *body.reader, ..body })?;
            // At its end a zip entry also verifies its checksum.
            match body.reader.read(&mut [0]) {
                Ok(0) => Ok(value),
                Ok(_) => Err(Error::malformed(
                    path,
                    format!("array {name:?} has more bytes than its header announces"),
                )),
                Err(e) => Err(broken(path, e, |e| {
                    format!("array {name:?} is damaged ({e}); download or copy the file again")
                })),
            }
        })
    }

    /// Opens the array `name`: its header, and its data to be read.
    fn entry<T>(&mut self, name: &str, read: impl FnOnce(Body<'_>) -> Result<T>) -> Result<T> {
        let Self { path, inner, progress, allowance, .. } = self;
        let path = *path;
        let entry = inner.by_name(&format!("{name}{EXTENSION}"));
        let entry = entry.map_err(|e| Error::malformed(path, format!("array {name:?}: {e}")))?;
        let length = entry.size();
        let mut reader = Heeding::new(entry, *progress);
        let header =
            Header::read(&mut reader).map_err(|e| broken(path, e, |e| format!("array {name:?}: {e}")))?;
        // Elements of no fixed size are rejected when they are read.
        if let Some(expected) = header.n_bytes().filter(|&n| n > length) {
            return Err(Error::Truncated { path: path.into(), expected, found: length });
        }
        read(Body { header, reader: &mut reader, path, allowance })
    }
}

/// Translates an I/O error of an array, unless it carries an error of this crate.
fn broken(path: &Path, error: io::Error, problem: impl FnOnce(io::Error) -> String) -> Error {
    Error::inside(error).unwrap_or_else(|error| Error::malformed(path, problem(error)))
}

/// Returns the bytes of an archive of named `.npy` files, as `numpy.savez` writes it.
pub(crate) fn to_bytes(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut write = || -> zip::result::ZipResult<()> {
        for (name, npy) in arrays {
            zip.start_file(format!("{name}{EXTENSION}"), options)?;
            zip.write_all(npy)?;
        }
        Ok(())
    };
    write().expect("memory takes all that is written to it");
    zip.finish().expect("memory takes all that is written to it").into_inner()
}
