//! Read and write models, in formats that other tools use too.
//!
//! | extension | what | provenance |
//! |---|---|---|
//! | `.safetensors` | `weights` [n_visible, n_hidden], `visible_bias`, `hidden_bias`, all f32 | kept |
//! | `.npz` | scikit-learn's `components_`, `intercept_visible_`, `intercept_hidden_` | lost |
//! | `.npy` | three files: `NAME.weights.npy`, `NAME.visible_bias.npy`, `NAME.hidden_bias.npy` | lost |
//!
//! Files are written beside their place and renamed when complete, so no other program ever reads
//! half a model.

mod atomic;
mod checksum;
mod clock;
mod npy_set;
mod npz;
mod owner;
mod provenance;
mod safetensors;

pub use atomic::{write_atomically, write_inside};
pub(crate) use checksum::{NO_CHECKSUM, check as check_checksum, seal};
pub(crate) use clock::{date, now};
pub use owner::{Owner, new_folder};
pub use provenance::{FORMAT_VERSION, Provenance};
pub(crate) use safetensors::{CHECKPOINT_KEY, MAX_MODEL};

use crate::model::Rbm;
use crate::team::{self, Facts};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const KNOWN: &str = ".safetensors, .npz and .npy";

/// A model together with its provenance.
///
/// ```
/// use mclv::{ModelFile, Rbm};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("model.safetensors");
/// let model = ModelFile::new(Rbm::new(2, 1, &[1.0, -1.0], &[0.5, 0.0], &[0.25])?);
/// model.save(&path)?;
/// assert_eq!(ModelFile::load(&path)?, model);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The model.
    pub rbm: Rbm,
    /// The provenance of the model.
    pub provenance: Provenance,
}

impl ModelFile {
    /// Wraps a model whose history is not known.
    pub fn new(rbm: Rbm) -> Self {
        Self { rbm, provenance: Provenance::default() }
    }

    /// Reads a model. The extension decides the format. The checkpoint of a run is read as the model
    /// that it holds.
    ///
    /// # Errors
    /// If the file cannot be read, does not follow its format, or holds no valid model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = team::together(Self::read(path))?;
        if team::size() > 1 {
            let name = |what: &str| format!("the {what} of {}", path.display());
            let facts = Facts::default().with(&name("model"), &file.rbm.digest());
            let provenance = serde_json::to_vec(&file.provenance).expect("provenance is plain JSON");
            team::agree(&facts.with_bytes(&name("provenance"), &provenance))?;
        }
        Ok(file)
    }

    fn read(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::IsAFolder { path: path.into() });
        }
        match extension(path).as_deref() {
            Some("safetensors") => safetensors::load(path),
            Some("npz") => npz::load(path),
            Some("npy") => npy_set::load(path),
            _ if !path.exists() => Err(Error::io("read", path)(std::io::ErrorKind::NotFound.into())),
            _ => Err(Error::UnknownFormat { path: path.into(), known: KNOWN }),
        }
    }

    /// Writes the model. The extension decides the format.
    ///
    /// # Errors
    /// If the extension is not known, or if the file cannot be written. The previous file is then
    /// still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(Error::IsAFolder { path: path.into() });
        }
        match extension(path).as_deref() {
            Some("safetensors") => write_atomically(path, &safetensors::to_bytes(self)),
            Some("npz") => write_atomically(path, &npz::to_bytes(&self.rbm)),
            Some("npy") => npy_set::save(&self.rbm, path),
            _ => Err(Error::UnknownFormat { path: path.into(), known: KNOWN }),
        }
    }

    /// Writes a `.safetensors` model of a run folder, which [`write_inside`] protects.
    pub(crate) fn save_inside(&self, path: &Path) -> Result<()> {
        write_inside(path, &safetensors::to_bytes(self))
    }

    /// Returns the files that [`save`](Self::save) writes for this path: itself, or the three files
    /// of a `.npy` set.
    ///
    /// ```
    /// # use mclv::ModelFile;
    /// assert_eq!(ModelFile::files("m.npz"), [std::path::Path::new("m.npz")]);
    /// assert_eq!(ModelFile::files("m.npy")[0], std::path::Path::new("m.weights.npy"));
    /// ```
    pub fn files(path: impl AsRef<Path>) -> Vec<PathBuf> {
        match extension(path.as_ref()).as_deref() {
            Some("npy") => npy_set::files(path.as_ref()).to_vec(),
            _ => vec![path.as_ref().into()],
        }
    }

    /// Returns true if files of this extension keep the provenance.
    pub fn keeps_provenance(path: impl AsRef<Path>) -> bool {
        extension(path.as_ref()).as_deref() == Some("safetensors")
    }
}

fn extension(path: &Path) -> Option<String> {
    path.extension().map(|e| e.to_string_lossy().to_lowercase())
}
