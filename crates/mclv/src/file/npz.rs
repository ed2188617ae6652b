//! Read and write `.npz` models in scikit-learn's layout.
//!
//! `components_` is n_hidden × n_visible, the transpose of `W`; the names are the attributes of scikit-learn's
//! `BernoulliRBM`, so `numpy.savez(path, components_=rbm.components_, …)` makes a file that is read here.

use super::{ModelFile, Provenance};
use crate::model::Rbm;
use crate::numpy::{Archive, to_npz};
use crate::{Error, Result};
use std::path::Path;

const COMPONENTS: &str = "components_";
const VISIBLE: &str = "intercept_visible_";
const HIDDEN: &str = "intercept_hidden_";

pub(super) fn to_bytes(rbm: &Rbm) -> Vec<u8> {
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    to_npz(&[
        (COMPONENTS, &[n_hidden, n_visible], &rbm.mirror().weights()),
        (VISIBLE, &[n_visible], rbm.visible_bias()),
        (HIDDEN, &[n_hidden], rbm.hidden_bias()),
    ])
}

pub(super) fn load(path: &Path) -> Result<ModelFile> {
    let mut archive = Archive::open(path)?;
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
    let (b, a) = (archive.array(VISIBLE)?.values, archive.array(HIDDEN)?.values);
    let rbm = Rbm::new(n_hidden, n_visible, &components.values, &a, &b)
        .map_err(|e| Error::malformed(path, e.to_string()))?;
    Ok(ModelFile { rbm: rbm.mirror(), provenance: Provenance::imported(path) })
}
