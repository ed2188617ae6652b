//! Read IDX files, the format of MNIST.
//!
//! ```text
//! 00 00 08 D | D sizes, big-endian u32 | unsigned bytes, last dimension fastest
//! ```

use std::path::{Path, PathBuf};

use super::Labels;
use super::file::{Reading, Table};
use super::scale::{Columns, Scale, Values};
use crate::source::{Source, file_name, hex};
use crate::{Error, Result};

/// An array of bytes.
pub(super) struct Idx {
    /// The sizes. The first is the number of rows.
    pub shape: Vec<usize>,
    /// The values, row after row.
    pub bytes: Vec<u8>,
    /// SHA-256 of the uncompressed file.
    pub sha256: String,
}

impl Idx {
    /// Reads a plain or gzipped file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(Source::open(path)?)
    }

    /// Reads from an opened source.
    pub(super) fn parse(mut source: Source<'_>) -> Result<Self> {
        let magic: [u8; 4] = source.header()?;
        let n_dimensions = match magic {
            [0, 0, 8, n @ 1..=4] => n,
            [0, 0, 9 | 11..=14, _] => {
                return Err(Error::malformed(
                    source.path(),
                    format!(
                        "holds IDX values of type {:02x}; only bytes (08) can be read, save others as .npy",
                        magic[2]
                    ),
                ));
            }
            _ => {
                return Err(Error::malformed(
                    source.path(),
                    format!(
                        "does not begin like an IDX file: 0000080n expected (n = 1 to 4 sizes), found {}",
                        hex(&magic)
                    ),
                ));
            }
        };
        let shape: Vec<usize> = (0..n_dimensions)
            .map(|_| Ok(u32::from_be_bytes(source.header()?) as usize))
            .collect::<Result<_>>()?;
        let n_bytes = shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n as u64));
        let n_bytes = source.check_promise(n_bytes)?;
        source.allowance().charge_rows(shape[0])?;
        let bytes = source.read_exactly(n_bytes)?;
        Ok(Self { shape, bytes, sha256: source.finish()? })
    }

    /// The number of values per row.
    pub(super) fn n_columns(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Returns the height and width, if each row is one picture.
    pub(super) fn image_shape(&self) -> Option<(usize, usize)> {
        picture(&self.shape)
    }
}

/// Returns the height and width of the pictures in an array of this shape: rows × height × width,
/// optionally with one channel before or after.
pub(super) fn picture(shape: &[usize]) -> Option<(usize, usize)> {
    match *shape {
        [_, height, width] | [_, height, width, 1] | [_, 1, height, width] => Some((height, width)),
        _ => None,
    }
}

/// Reads a file of pictures, with the labels that lie beside it under the name they have in MNIST:
/// `labels-idx1` for `images-idx3`. Bytes are divided by 255 unless `values` names another range.
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<Table> {
    let idx = Idx::parse(Source::open_together(path)?.heeding(reading.progress))?;
    let name = file_name(path);
    if idx.shape.len() == 1 {
        return Err(Error::malformed(path, "holds labels or a single row; name a file of pictures or rows"));
    }
    if idx.bytes.is_empty() {
        return Err(super::rows::no_rows(&name));
    }
    let values = match reading.values {
        Values::Unit => {
            if idx.bytes.iter().all(|&b| b <= 1) {
                tracing::warn!(
                    "{name} holds only the bytes 0 and 1, which are divided by 255; give `scale = 1` (--scale 1) \
                     to keep them"
                );
            }
            Values::Scaled(Scale::new(0.0, 255.0)?)
        }
        other => other,
    };
    let labels = labels_path(path).filter(|p| p.is_file()).map(|p| read_labels(&p)).transpose()?;
    Ok(Table {
        rows: values.rows_of_bytes(&Columns::of_array(&name, idx.n_columns()), &idx.bytes)?,
        labels,
        splits: None,
        image_shape: idx.image_shape(),
        preprocessing: values.preprocessing(),
        format: format!("IDX array of shape {:?}", idx.shape),
        column_names: Vec::new(),
        sha256: idx.sha256,
    })
}

/// Reads a file of one label per row.
fn read_labels(path: &Path) -> Result<Labels> {
    let idx = Idx::read(path)?;
    if idx.shape.len() != 1 {
        return Err(Error::malformed(path, "does not hold one label per row"));
    }
    Ok(Labels::from_integers(idx.bytes.iter().map(|&b| i64::from(b)).collect()))
}

/// Returns the path of the labels of a file of pictures, if it is named like those of MNIST.
fn labels_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    (labels != name).then(|| path.with_file_name(labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Idx> {
        Idx::parse(Source::from_bytes(Path::new("x"), bytes)?)
    }

    fn images(n: u32, height: u32, width: u32, bytes: &[u8]) -> Vec<u8> {
        [&[0, 0, 8, 3], &n.to_be_bytes(), &height.to_be_bytes(), &width.to_be_bytes(), bytes].concat()
    }

    #[test]
    fn pictures_are_read() {
        let idx = parse(&images(2, 1, 3, &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!((idx.shape[0], idx.n_columns(), idx.image_shape()), (2, 3, Some((1, 3))));
        assert_eq!(idx.bytes, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn hostile_sizes_are_refused_before_anything_is_allocated() {
        for sizes in [[u32::MAX; 3], [1 << 30, 4, 4], [u32::MAX, 1, 1]] {
            let [n, height, width] = sizes;
            let result = parse(&images(n, height, width, &[0; 16]));
            assert!(matches!(result, Err(Error::Truncated { .. })), "{sizes:?}");
        }
    }

    #[test]
    fn wrong_beginnings_are_named() {
        for (bytes, text) in [
            (&b"PK\x03\x04rest"[..], "504b0304"),
            (&[0, 0, 13, 2, 0, 0, 0, 1], "type 0d"),
            (&[0, 0, 8, 9, 0, 0, 0, 1], "1 to 4 sizes"),
            (&[0, 0], "ends within its header"),
            (&[0, 0, 8, 3, 0, 0], "ends within its header"),
            (&[], "ends within its header"),
        ] {
            let error = parse(bytes).err().unwrap().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn labels_are_looked_for_beside_the_pictures() {
        let labels = |name: &str| labels_path(Path::new(name)).map(|p| p.to_str().unwrap().to_owned());
        assert_eq!(labels("a/t10k-images-idx3-ubyte.gz").unwrap(), "a/t10k-labels-idx1-ubyte.gz");
        assert_eq!(labels("a/x.idx"), None);
    }
}
