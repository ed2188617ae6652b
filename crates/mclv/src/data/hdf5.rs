//! Read rows from the data set `samples` of an HDF5 file, and labels from `labels`, if the library
//! was built with HDF5.

use std::path::Path;

use super::file::{Reading, Table};
use crate::{Error, Result};

/// Says how to read the file all the same.
#[cfg(not(feature = "hdf5"))]
pub(super) fn read(path: &Path, _reading: &Reading<'_>) -> Result<Table> {
    // A missing file is the first thing to be told of.
    crate::source::open_file(path)?;
    Err(Error::malformed(
        path,
        "is an HDF5 file, and this program was built without HDF5; install libhdf5-dev and build it with \
         `cargo install --path crates/mclv-cli --features hdf5`, or save the rows with numpy.save",
    ))
}

/// Reads rows, or pictures.
#[cfg(feature = "hdf5")]
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<Table> {
    use super::Labels;
    use super::idx::picture;
    use super::scale::Columns;
    use crate::source::{Source, file_name};
    use std::io::{self, Read};

    const SAMPLES: &str = "samples";
    const LABELS: &str = "labels";
    // No filter compresses data by more than this factor.
    const MOST: u64 = 1100;
    let values = reading.values;
    let mut source = Source::open(path)?.heeding(reading.progress);
    let mut allowance = source.allowance().clone();
    io::copy(&mut source.by_ref(), &mut io::sink()).map_err(Error::io("read", path))?;
    let sha256 = source.finish()?;
    let broken = |problem: String| Error::malformed(path, problem);
    let file = hdf5::File::open(path).map_err(|e| broken(format!("is not an HDF5 file ({e})")))?;
    let set = file.dataset(SAMPLES).map_err(|_| {
        let names = file.member_names().unwrap_or_default().join(", ");
        broken(format!("has no data set {SAMPLES:?}; it holds {names}"))
    })?;
    let shape = set.shape();
    if !(2..=4).contains(&shape.len()) {
        return Err(broken(format!(
            "{SAMPLES:?} has the shape {shape:?}; rows × columns or rows × height × width expected"
        )));
    }
    if set.storage_size().saturating_mul(MOST) < set.size() as u64 {
        let n_bytes = set.storage_size();
        return Err(broken(format!(
            "{SAMPLES:?} has the shape {shape:?}, but only {n_bytes} bytes of values"
        )));
    }
    allowance.charge((set.size() as u64).checked_mul(4))?;
    let numbers =
        set.read_raw::<f32>().map_err(|e| broken(format!("{SAMPLES:?} does not hold numbers ({e})")))?;
    // Labels that are not numbers are left out.
    let labels = file.dataset(LABELS).ok().filter(|set| set.shape().len() == 1);
    let labels = labels.and_then(|set| set.read_raw::<i64>().ok()).map(Labels::from_integers);
    let name = file_name(path);
    Ok(Table {
        rows: values.rows(&Columns::of_array(&name, shape[1..].iter().product()), numbers)?,
        labels,
        splits: None,
        image_shape: picture(&shape),
        preprocessing: values.preprocessing(),
        format: format!("HDF5 data set {SAMPLES:?} of shape {shape:?}"),
        column_names: Vec::new(),
        sha256,
    })
}
