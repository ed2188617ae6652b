//! Reads and writes models in HDF5 files of the `rbms` package:
//! `update_N/params/{vbias,hbias,weight_matrix}`.

use std::path::Path;

/// Returns true if a path has the extension of an HDF5 file.
pub(super) fn is_hdf5(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("h5") || e.eq_ignore_ascii_case("hdf5"))
}

#[cfg(feature = "hdf5")]
pub(super) use with_library::{load, save};
#[cfg(not(feature = "hdf5"))]
pub(super) use without_library::{load, save};

#[cfg(feature = "hdf5")]
mod with_library {
    use anyhow::{Context, anyhow, bail};
    use hdf5::{Dataset, File};
    use mclv::{Error, ModelFile, Provenance, Rbm, write_atomically};
    use std::path::Path;

    /// Reads the model of update `update`, or of the last update.
    pub(in super::super) fn load(path: &Path, update: Option<u64>) -> anyhow::Result<ModelFile> {
        // The HDF5 library's message for a missing file is long; ours is short.
        mclv::open_file(path)?;
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("{shown} is not an HDF5 file"))?;
        let number = |name: &String| name.strip_prefix("update_")?.parse::<u64>().ok();
        let mut updates: Vec<u64> = file.member_names()?.iter().filter_map(number).collect();
        updates.sort_unstable();
        let last = *updates
            .last()
            .ok_or_else(|| anyhow!("{shown} has no group update_N, so it was not written by rbms"))?;
        let chosen = update.unwrap_or(last);
        if !updates.contains(&chosen) {
            bail!("{shown} has no update {chosen}; its updates are {updates:?}");
        }
        let params = file.group(&format!("update_{chosen}/params"));
        let params = params.with_context(|| format!("{shown}, update {chosen}: there are no parameters"))?;
        let array = |name: &str| -> anyhow::Result<(Vec<usize>, Vec<f32>)> {
            let what = || format!("{shown}, update {chosen}: this is not a Bernoulli RBM ({name})");
            let set = params.dataset(name).with_context(what)?;
            Ok((set.shape(), values(&set).with_context(what)?))
        };
        let (shape, w) = array("weight_matrix")?;
        let &[n_visible, n_hidden] = shape.as_slice() else {
            bail!("{shown}: weight_matrix has the shape {shape:?}; (n_visible, n_hidden) expected");
        };
        let ((_, b), (_, a)) = (array("vbias")?, array("hbias")?);
        let rbm =
            Rbm::new(n_visible, n_hidden, &w, &b, &a).map_err(|e| Error::malformed(path, e.to_string()))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let provenance =
            Provenance { mclv_version: String::new(), imported_from: name, ..Provenance::default() };
        Ok(ModelFile { rbm, provenance })
    }

    /// Reads values of any floating-point type. Fails if the file is too small to hold them.
    fn values(set: &Dataset) -> anyhow::Result<Vec<f32>> {
        // No filter compresses data by more than this factor.
        const MOST: u64 = 1100;
        if set.storage_size().saturating_mul(MOST) < set.size() as u64 {
            bail!(
                "the shape is {:?}, but there are only {} bytes of values",
                set.shape(),
                set.storage_size()
            );
        }
        Ok(set.read_raw::<f32>()?)
    }

    /// Writes a model as update `update`.
    pub(in super::super) fn save(rbm: &Rbm, path: &Path, update: u64) -> anyhow::Result<()> {
        // The HDF5 library writes files in pieces; our files are either complete or missing.
        let folder = tempfile::tempdir()?;
        let beside = folder.path().join("model.h5");
        create(rbm, &beside, update)?;
        write_atomically(path, &mclv::read_file(&beside, u64::MAX)?)?;
        Ok(())
    }

    /// Creates the file. It is complete when this function returns, because that closes all groups.
    fn create(rbm: &Rbm, path: &Path, update: u64) -> hdf5::Result<()> {
        let file = File::create(path)?;
        let params = file.create_group(&format!("update_{update}"))?.create_group("params")?;
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let write = |name: &str, shape: &[usize], values: &[f32]| {
            params.new_dataset::<f32>().shape(shape).create(name)?.write_raw(values)
        };
        write("vbias", &[n_visible], rbm.visible_bias())?;
        write("hbias", &[n_hidden], rbm.hidden_bias())?;
        write("weight_matrix", &[n_visible, n_hidden], &rbm.weights())
    }
}

#[cfg(not(feature = "hdf5"))]
mod without_library {
    use anyhow::bail;
    use mclv::{ModelFile, Rbm};
    use std::path::Path;

    pub(in super::super) fn load(path: &Path, _update: Option<u64>) -> anyhow::Result<ModelFile> {
        bail!("{}", cannot(path))
    }

    pub(in super::super) fn save(_rbm: &Rbm, path: &Path, _update: u64) -> anyhow::Result<()> {
        bail!("{}", cannot(path))
    }

    fn cannot(path: &Path) -> String {
        format!(
            "{}: this program was built without HDF5; install libhdf5-dev and build it with \
             `cargo install --path crates/mclv-cli --features hdf5`, or use mclv.from_rbms and mclv.to_rbms in Python",
            path.display()
        )
    }
}
