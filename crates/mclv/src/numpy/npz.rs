//! Read and write NumPy's `.npz` archives.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::Path;

use npyz::npz::{array_name_from_file_name, file_name_from_array_name};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::npy::{self, Array};
use crate::source::{Source, open_file};
use crate::{Error, Result};

/// An opened archive.
pub(crate) struct Archive<'a> {
    path: &'a Path,
    inner: ZipArchive<BufReader<File>>,
    /// The SHA-256 of the whole file.
    pub(crate) sha256: String,
}

impl<'a> Archive<'a> {
    /// Opens the archive of that name.
    pub(crate) fn open(path: &'a Path) -> Result<Self> {
        let (file, length) = open_file(path)?;
        let mut source = Source::open(path)?;
        if !source.peek()?.starts_with(b"PK") {
            return Err(Error::malformed(path, "does not begin like an .npz (zip) archive"));
        }
        io::copy(&mut source.by_ref().take(length), &mut io::sink()).map_err(Error::io("read", path))?;
        let inner = ZipArchive::new(BufReader::new(file)).map_err(|e| {
            Error::malformed(path, format!("is a damaged .npz archive ({e}); download or copy it again"))
        })?;
        Ok(Self { path, inner, sha256: source.finish()? })
    }

    /// Returns the names and shapes of the arrays, sorted by name.
    pub(crate) fn shapes(&mut self) -> Result<Vec<(String, Vec<u64>)>> {
        let names = self.inner.file_names().filter_map(Result::ok);
        let mut names: Vec<String> =
            names.filter_map(|name| array_name_from_file_name(&name).map(str::to_owned)).collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|name| {
                let shape = self.entry(&name, |header, _| Ok(header.shape().to_vec()))?;
                Ok((name, shape))
            })
            .collect()
    }

    /// Reads the array `name` as it is.
    pub(crate) fn array(&mut self, name: &str) -> Result<Array> {
        let path = self.path;
        self.read_with(name, |header, mut reader| Array::read(header, &mut reader, path))
    }

    /// Passes the array `name` to `read`, which must read all of it.
    pub(crate) fn read_with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&npyz::NpyHeader, &mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let path = self.path;
        self.entry(name, |header, reader| {
            let value = read(header, reader)?;
            // At its end a zip entry also verifies its checksum.
            match reader.read(&mut [0]) {
                Ok(0) => Ok(value),
                Ok(_) => Err(Error::malformed(
                    path,
                    format!("array {name:?} has more bytes than its header announces"),
                )),
                Err(e) => Err(Error::malformed(
                    path,
                    format!("array {name:?} is damaged ({e}); download or copy the file again"),
                )),
            }
        })
    }

    /// Opens the array `name`: its header, and its data to be read.
    fn entry<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&npyz::NpyHeader, &mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let path = self.path;
        let damaged = |e: &dyn std::fmt::Display| Error::malformed(path, format!("array {name:?}: {e}"));
        let mut entry = self.inner.by_name(&file_name_from_array_name(name)).map_err(|e| damaged(&e))?;
        let length = entry.size();
        let header = npy::read_header(&mut entry).map_err(|e| damaged(&e))?;
        // Elements of no fixed size are rejected when they are read.
        if let Some(expected) = npy::n_bytes(&header).filter(|&n| n > length) {
            return Err(Error::Truncated { path: path.into(), expected, found: length });
        }
        read(&header, &mut entry)
    }
}

/// Returns the bytes of an archive of named `.npy` files, as `numpy.savez` writes it.
pub(crate) fn to_bytes(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut write = || -> zip::result::ZipResult<()> {
        for (name, npy) in arrays {
            zip.start_file(file_name_from_array_name(name), options)?;
            zip.write_all(npy)?;
        }
        Ok(())
    };
    write().expect("memory takes all that is written to it");
    zip.finish().expect("memory takes all that is written to it").into_inner()
}
