//! Read and write `.npz` models in scikit-learn's layout.
//!
//! `components_` is n_hidden × n_visible, the transpose of `W`. The names are the attributes of
//! scikit-learn's `BernoulliRBM`, so `numpy.savez(path, components_=rbm.components_, …)` writes a
//! file that can be read here.

use super::{ModelFile, Provenance};
use crate::model::Rbm;
use crate::numpy::{Archive, to_npy, to_npz};
use crate::progress::Silent;
use crate::{Error, Result};
use std::path::Path;

const COMPONENTS: &str = "components_";
const VISIBLE: &str = "intercept_visible_";
const HIDDEN: &str = "intercept_hidden_";

pub(super) fn to_bytes(rbm: &Rbm) -> Vec<u8> {
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    to_npz(&[
        (COMPONENTS, to_npy(&[n_hidden, n_visible], &rbm.mirror().weights())),
        (VISIBLE, to_npy(&[n_visible], rbm.visible_bias())),
        (HIDDEN, to_npy(&[n_hidden], rbm.hidden_bias())),
    ])
}

pub(super) fn load(path: &Path) -> Result<ModelFile> {
    let mut archive = Archive::open(path, &Silent)?;
    let names: Vec<String> = archive.shapes()?.into_iter().map(|(name, _)| name).collect();
    if let Some(missing) =
        [COMPONENTS, VISIBLE, HIDDEN].into_iter().find(|n| !names.iter().any(|name| name == n))
    {
        let problem = format!(
            "has no array {missing:?}; a model has {COMPONENTS}, {VISIBLE} and {HIDDEN}; it holds {}",
            names.join(", ")
        );
        return Err(Error::malformed(path, problem));
    }
    let components = archive.array(COMPONENTS)?;
    let &[n_hidden, n_visible] = components.shape.as_slice() else {
        let problem =
            format!("{COMPONENTS} has the shape {:?}; (n_hidden, n_visible) expected", components.shape);
        return Err(Error::malformed(path, problem));
    };
    let (b, a) = (archive.array(VISIBLE)?.into_reals(), archive.array(HIDDEN)?.into_reals());
    let components = components.into_reals();
    let column = |i: usize| components.iter().skip(i).step_by(n_visible);
    let w: Vec<f32> = (0..n_visible).flat_map(column).copied().collect();
    let rbm = Rbm::new(n_visible, n_hidden, &w, &b, &a).map_err(|e| Error::malformed(path, e.to_string()))?;
    Ok(ModelFile { rbm, provenance: Provenance::imported(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_called_by_its_right_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.npz");
        let error = |b: &[f32], a: &[f32]| {
            let arrays = [
                (COMPONENTS, to_npy(&[2, 3], &[0f32; 6])),
                (VISIBLE, to_npy(&[b.len()], b)),
                (HIDDEN, to_npy(&[a.len()], a)),
            ];
            std::fs::write(&path, to_npz(&arrays)).unwrap();
            ModelFile::load(&path).unwrap_err().to_string()
        };
        let short = error(&[0.0; 3], &[0.0; 1]);
        assert!(short.contains("size of hidden_bias: expected 2, got 1"), "{short}");
        let nan = error(&[0.0, f32::NAN, 0.0], &[0.0; 2]);
        assert!(nan.contains("visible_bias holds NaN at index 1"), "{nan}");
    }
}
