//! Read and write a model as three plain `.npy` files.

use super::{ModelFile, Provenance, write_atomically};
use crate::model::Rbm;
use crate::numpy::{Array, read_npy, to_npy};
use crate::source::Source;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const PARTS: [&str; 3] = ["weights", "visible_bias", "hidden_bias"];

/// Returns `NAME.weights.npy` and so on, from `NAME.npy` or from any one of the three.
fn part(path: &Path, part: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = PARTS.iter().find_map(|p| stem.strip_suffix(&format!(".{p}"))).unwrap_or(&stem);
    path.with_file_name(format!("{stem}.{part}.npy"))
}

/// Returns the three files of a set.
pub(super) fn files(path: &Path) -> [PathBuf; 3] {
    PARTS.map(|p| part(path, p))
}

pub(super) fn save(rbm: &Rbm, path: &Path) -> Result<()> {
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    let [w, b, a] = files(path);
    write_atomically(&w, &to_npy(&[n_visible, n_hidden], &rbm.weights()))?;
    write_atomically(&b, &to_npy(&[n_visible], rbm.visible_bias()))?;
    write_atomically(&a, &to_npy(&[n_hidden], rbm.hidden_bias()))
}

pub(super) fn load(path: &Path) -> Result<ModelFile> {
    let read = |name| -> Result<Array> { Ok(read_npy(Source::open(&part(path, name))?)?.0) };
    let weights = read("weights")?;
    let &[n_visible, n_hidden] = weights.shape.as_slice() else {
        let problem = format!("has the shape {:?}; (n_visible, n_hidden) expected", weights.shape);
        return Err(Error::malformed(part(path, "weights"), problem));
    };
    let (b, a) = (read("visible_bias")?.into_reals(), read("hidden_bias")?.into_reals());
    let rbm = Rbm::new(n_visible, n_hidden, &weights.into_reals(), &b, &a)
        .map_err(|e| Error::malformed(path, e.to_string()))?;
    Ok(ModelFile { rbm, provenance: Provenance::imported(&part(path, "weights")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;

    #[test]
    fn numpy_formats_give_back_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let model = ModelFile::new(random_rbm(70, 9, 1.0, 90));
        for name in ["m.npz", "m.npy"] {
            let path = folder.path().join(name);
            model.save(&path).unwrap();
            assert_eq!(ModelFile::load(&path).unwrap().rbm, model.rbm, "{name}");
        }
        let by_part = ModelFile::load(folder.path().join("m.hidden_bias.npy")).unwrap();
        assert_eq!(by_part.rbm, model.rbm);
        assert_eq!(by_part.provenance.imported_from.as_deref(), Some("m.weights.npy"));
    }

    #[test]
    fn missing_and_misshapen_parts_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.npy");
        ModelFile::new(random_rbm(4, 3, 1.0, 91)).save(&path).unwrap();
        let bias = part(&path, "hidden_bias");
        std::fs::write(&bias, to_npy(&[2], &[0f32; 2])).unwrap();
        let error = ModelFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("size of hidden_bias: expected 3, got 2"), "{error}");
        std::fs::remove_file(&bias).unwrap();
        let error = ModelFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("m.hidden_bias.npy"), "{error}");
        let npz = folder.path().join("m.npz");
        std::fs::write(&npz, crate::numpy::to_npz(&[("components_", to_npy(&[1, 1], &[0.5f32]))])).unwrap();
        let error = ModelFile::load(&npz).unwrap_err().to_string();
        assert!(
            error.contains("has no array \"intercept_visible_\"") && error.contains("it holds components_"),
            "{error}"
        );
    }
}
