//! Read and write `.safetensors` models with their provenance.

use super::checksum::{self, NO_CHECKSUM};
use super::{FORMAT_VERSION, ModelFile, Provenance};
use crate::model::Rbm;
use crate::source::read_file;
use crate::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// The only metadata key, whose value is a JSON object. There is only one, because the order of
/// several is not kept, and the same model must give the same bytes.
const KEY: &str = "mclv";

/// The metadata key of a checkpoint. Its value is a JSON object.
pub(crate) const CHECKPOINT_KEY: &str = "mclv-checkpoint";

/// The largest length of a file with a model.
pub(crate) const MAX_MODEL: u64 = 1 << 38;

/// The metadata of a model.
#[derive(Serialize)]
struct Facts<'a> {
    #[serde(flatten)]
    provenance: &'a Provenance,
    checksum: &'static str,
}

/// The facts of a checkpoint that matter if it is read as a model.
#[derive(Deserialize)]
struct CheckpointFacts {
    n_visible: usize,
    n_hidden: usize,
    /// Checkpoints of version 0.1.0 have none.
    provenance: Option<serde_json::Value>,
}

pub(super) fn to_bytes(model: &ModelFile) -> Vec<u8> {
    let rbm = &model.rbm;
    let bytes = |x: &[f32]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let tensors = [
        ("weights", vec![rbm.n_visible(), rbm.n_hidden()], bytes(&rbm.weights())),
        ("visible_bias", vec![rbm.n_visible()], bytes(rbm.visible_bias())),
        ("hidden_bias", vec![rbm.n_hidden()], bytes(rbm.hidden_bias())),
    ];
    let views = tensors.iter().map(|(name, shape, data)| {
        (*name, TensorView::new(Dtype::F32, shape.clone(), data).expect("as many bytes as the shape says"))
    });
    let facts = Facts { provenance: &model.provenance, checksum: NO_CHECKSUM };
    let facts = serde_json::to_string(&facts).expect("provenance is plain JSON");
    let facts = HashMap::from([(KEY.into(), facts)]);
    checksum::seal(safetensors::serialize(views, Some(facts)).expect("three valid tensors"))
}

pub(super) fn load(path: &Path) -> Result<ModelFile> {
    let bytes = read_file(path, MAX_MODEL)?;
    let broken =
        |e: &dyn std::fmt::Display| Error::malformed(path, format!("not an intact .safetensors file: {e}"));
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| broken(&e))?;
    let value = |key: &str| metadata.metadata().as_ref().and_then(|m| m.get(key));
    let checkpoint: Option<CheckpointFacts> =
        value(CHECKPOINT_KEY).map(|text| serde_json::from_str(text)).transpose().map_err(|e| broken(&e))?;
    let json: Option<serde_json::Value> = match (value(KEY), &checkpoint) {
        (Some(text), _) => Some(serde_json::from_str(text).map_err(|e| unreadable(path, &e))?),
        (None, Some(facts)) => facts.provenance.clone(),
        (None, None) => None,
    };
    let provenance = match json {
        Some(json) => read_provenance(path, json)?,
        None => Provenance::imported(path),
    };
    // A newer file may have another kind of checksum, so versions come first.
    checksum::check(path, &bytes, metadata.metadata().as_ref())?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| broken(&e))?;
    let tensor = |name: &str| {
        let mut names = tensors.names();
        names.sort_unstable();
        tensors.tensor(name).map_err(|_| {
            let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
            Error::malformed(path, format!("has no tensor {name:?}; it holds {names}"))
        })
    };
    let weights = tensor("weights")?;
    let (n_visible, n_hidden) = match (weights.shape(), checkpoint) {
        (&[n_visible, n_hidden], _) => (n_visible, n_hidden),
        // Weights of older checkpoints are flat.
        (_, Some(facts)) => (facts.n_visible, facts.n_hidden),
        (shape, None) => {
            let problem = format!("weights have the shape {shape:?}; [n_visible, n_hidden] expected");
            return Err(Error::malformed(path, problem));
        }
    };
    let rbm = Rbm::new(
        n_visible,
        n_hidden,
        &floats(path, "weights", &weights)?,
        &floats(path, "visible_bias", &tensor("visible_bias")?)?,
        &floats(path, "hidden_bias", &tensor("hidden_bias")?)?,
    )
    .map_err(|e| Error::malformed(path, e.to_string()))?;
    Ok(ModelFile { rbm, provenance })
}

/// Reads the provenance. The version is checked first, because a newer file may hold values that
/// this program cannot parse.
fn read_provenance(path: &Path, json: serde_json::Value) -> Result<Provenance> {
    let found = json.get("format_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(FORMAT_VERSION) {
        let found = found.try_into().unwrap_or(u32::MAX);
        return Err(Error::NewerFormat { path: path.into(), found, supported: FORMAT_VERSION });
    }
    serde_json::from_value(json).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, problem: &serde_json::Error) -> Error {
    Error::malformed(path, format!("its provenance is not readable: {problem}"))
}

fn floats(path: &Path, name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>> {
    let data = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => Ok(data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()),
        Dtype::F64 => Ok(data.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect()),
        other => Err(Error::malformed(path, format!("{name} is of type {other:?}; F32 or F64 expected"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;

    fn saved() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        let mut model = ModelFile::new(random_rbm(5, 3, 1.0, 80));
        model.provenance.seed = Some(7);
        model.provenance.settings = serde_json::json!({"command": "init", "n_hidden": 3});
        model.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(ModelFile::load(&path).unwrap(), model);
        model.save(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "the same model is the same file");
        (folder, path, bytes)
    }

    fn error_of(path: &Path, bytes: &[u8]) -> String {
        std::fs::write(path, bytes).unwrap();
        let error = ModelFile::load(path).unwrap_err().to_string();
        assert!(error.contains("m.safetensors"), "names the file: {error}");
        error
    }

    /// The file as an earlier version would have written it.
    fn without_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let name = br#",\"checksum\":\""#;
        let at = bytes.windows(name.len()).position(|w| w == name).unwrap();
        let end = at + name.len() + NO_CHECKSUM.len() + 2;
        bytes.splice(at..end, std::iter::empty());
        // Spaces after the header keep its length.
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize - (end - at);
        bytes.splice(8 + header..8 + header, std::iter::repeat_n(b' ', end - at));
        bytes
    }

    #[test]
    fn files_without_a_checksum_are_read() {
        let (_folder, path, bytes) = saved();
        let model = ModelFile::load(&path).unwrap();
        let older = without_checksum(bytes.clone());
        assert!(older.len() == bytes.len() && older != bytes);
        std::fs::write(&path, older).unwrap();
        assert_eq!(ModelFile::load(&path).unwrap(), model);
    }

    #[test]
    fn every_flipped_bit_is_an_error() {
        let (_folder, path, bytes) = saved();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            error_of(&path, &damaged);
        }
    }

    #[test]
    fn every_truncation_is_an_error_and_none_a_panic() {
        let (_folder, path, bytes) = saved();
        for n in 0..bytes.len() {
            error_of(&path, &bytes[..n]);
        }
    }

    #[test]
    fn hostile_headers_are_errors() {
        let (_folder, path, bytes) = saved();
        let mut huge = bytes.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(error_of(&path, &huge).contains("not an intact .safetensors file"));
        let with_header = |header: &str| {
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend_from_slice(header.as_bytes());
            file
        };
        let overflow = r#"{"weights":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#;
        error_of(&path, &with_header(overflow));
        assert!(error_of(&path, &with_header("{}")).contains("has no tensor \"weights\"; it holds nothing"));
        error_of(&path, b"\x08\0\0\0\0\0\0\0not json");
    }

    #[test]
    fn flat_weights_of_an_older_checkpoint_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        let rbm = random_rbm(5, 3, 1.0, 80);
        let bytes = |x: &[f32]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let tensors = [
            ("weights", bytes(&rbm.weights())),
            ("visible_bias", bytes(rbm.visible_bias())),
            ("hidden_bias", bytes(rbm.hidden_bias())),
        ];
        let save = |facts: Option<&str>| {
            let views = tensors.iter().map(|(name, data)| {
                (*name, TensorView::new(Dtype::F32, vec![data.len() / 4], data).unwrap())
            });
            let facts = facts.map(|facts| HashMap::from([(CHECKPOINT_KEY.to_owned(), facts.to_owned())]));
            std::fs::write(&path, safetensors::serialize(views, facts).unwrap()).unwrap();
            ModelFile::load(&path)
        };
        let facts = r#"{"version": 2, "n_visible": 5, "n_hidden": 3}"#;
        assert_eq!(save(Some(facts)).unwrap().rbm, rbm);
        // Sizes that do not belong to the tensors, and facts without sizes.
        assert!(save(Some(r#"{"n_visible": 3, "n_hidden": 3}"#)).is_err());
        assert!(save(Some("{}")).is_err());
        assert!(save(None).unwrap_err().to_string().contains("[n_visible, n_hidden] expected"));
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let (_folder, path, bytes) = saved();
        let version = br#"format_version\":"#;
        let at = bytes.windows(version.len()).position(|w| w == version).unwrap() + version.len();
        let mut newer = bytes.clone();
        newer[at] = b'9';
        let error = error_of(&path, &newer);
        assert!(error.contains("has format version 9") && error.contains("upgrade mclv"), "{error}");
    }

    #[test]
    fn a_model_with_nan_is_refused() {
        let (_folder, path, bytes) = saved();
        let mut bytes = without_checksum(bytes);
        let n = bytes.len();
        bytes[n - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(error_of(&path, &bytes).contains("NaN"));
    }
}
