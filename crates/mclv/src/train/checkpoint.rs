//! Save and load checkpoints, which hold everything that a run needs to continue exactly.

use super::folder::RunFolder;
use super::old_checkpoint;
use super::trainer::TrainerState;
use crate::bits::BitRows;
use crate::file::{
    CHECKPOINT_KEY as KEY, MAX_MODEL, NO_CHECKSUM, Provenance, check_checksum, seal, write_inside,
};
use crate::gradient::{Array, Gradient, State};
use crate::model::Rbm;
use crate::source::read_file;
use crate::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

const VERSION: u32 = 2;

/// The prefix of the names of the estimator's arrays.
const ESTIMATOR: &str = "estimator.";

/// The values of a checkpoint that are not arrays. Floats are kept as bits, because a resumed run
/// must be exact.
#[derive(Serialize, Deserialize)]
struct Facts<T> {
    version: u32,
    n_visible: usize,
    n_hidden: usize,
    epoch: usize,
    update: usize,
    n_steps: u64,
    gradient_norm: u64,
    /// The facts of the estimator's state.
    #[serde(default)]
    estimator: serde_json::Value,
    /// The provenance of the model, so that a checkpoint can be read as a model file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<serde_json::Value>,
    /// The values that belong to the trainer's owner.
    run: T,
    /// It comes last, as [`seal`] asks.
    #[serde(default)]
    checksum: String,
}

/// The model and the chains of a run at its last checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The model.
    pub rbm: Rbm,
    /// The number of epochs finished.
    pub epoch: usize,
    /// The hidden states of persistent chains or running tours, if there are any.
    pub chains: Option<BitRows>,
}

impl Snapshot {
    /// Loads the last checkpoint of a run folder.
    ///
    /// # Errors
    /// If there is none, or if it is damaged.
    pub fn load(folder: &Path) -> Result<Self> {
        let (state, _) = load::<serde_json::Value>(&RunFolder::new(folder).checkpoint())?;
        let chains = state.estimator.bit_rows("chains", state.rbm.n_hidden());
        let chains = chains.ok().filter(|chains| chains.n_rows() > 0);
        Ok(Self { rbm: state.rbm, epoch: state.epoch, chains })
    }
}

/// Writes a checkpoint. The previous one stays until this one is complete.
pub(super) fn save(
    path: &Path,
    state: &TrainerState,
    run: &impl Serialize,
    provenance: &Provenance,
) -> Result<()> {
    write_inside(path, &to_bytes(state, run, Some(provenance)))
}

/// Reads a checkpoint.
pub(super) fn load<T: DeserializeOwned>(path: &Path) -> Result<(TrainerState, T)> {
    from_bytes(path, &read_file(path, MAX_MODEL)?)
}

/// Serialises a trainer's state, the values of its owner, `run`, and the provenance of the model.
pub(super) fn to_bytes(
    state: &TrainerState,
    run: &impl Serialize,
    provenance: Option<&Provenance>,
) -> Vec<u8> {
    let mut tensors: Vec<(String, Dtype, Vec<u8>)> = Vec::new();
    let f32s = |x: &[f32]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let f64s = |x: &[f64]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let rbm = &state.rbm;
    tensors.push(("weights".into(), Dtype::F32, f32s(&rbm.weights())));
    tensors.push(("visible_bias".into(), Dtype::F32, f32s(rbm.visible_bias())));
    tensors.push(("hidden_bias".into(), Dtype::F32, f32s(rbm.hidden_bias())));
    tensors.push(("lambda".into(), Dtype::F64, f64s(&state.lambda)));
    for (k, memory) in state.memory.iter().enumerate() {
        if let Some(m) = memory {
            tensors.push((format!("memory{k}.w"), Dtype::F32, f32s(&m.w.to_rows())));
            tensors.push((format!("memory{k}.b"), Dtype::F32, f32s(&m.b)));
            tensors.push((format!("memory{k}.a"), Dtype::F32, f32s(&m.a)));
        }
    }
    for (name, array) in &state.estimator.arrays {
        let (dtype, bytes) = match array {
            Array::Words(words) => (Dtype::U64, words.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Array::Numbers(numbers) => (Dtype::F64, f64s(numbers)),
        };
        tensors.push((format!("{ESTIMATOR}{name}"), dtype, bytes));
    }
    let facts = Facts {
        version: VERSION,
        n_visible: rbm.n_visible(),
        n_hidden: rbm.n_hidden(),
        epoch: state.epoch,
        update: state.update,
        n_steps: state.n_steps,
        gradient_norm: state.gradient_norm.to_bits(),
        estimator: state.estimator.facts.clone(),
        provenance: provenance.map(|p| serde_json::to_value(p).expect("provenance is plain JSON")),
        run,
        checksum: NO_CHECKSUM.into(),
    };
    let views = tensors.iter().map(|(name, dtype, data)| {
        let size = if *dtype == Dtype::F32 { 4 } else { 8 };
        // Weights have the shape that they have in model files.
        let shape = match name.as_str() {
            "weights" => vec![rbm.n_visible(), rbm.n_hidden()],
            _ => vec![data.len() / size],
        };
        (name.as_str(), TensorView::new(*dtype, shape, data).expect("whole elements"))
    });
    let facts = serde_json::to_string(&facts).expect("facts are plain JSON");
    let facts = HashMap::from([(KEY.into(), facts)]);
    seal(safetensors::serialize(views, Some(facts)).expect("valid tensors"))
}

/// Reads the bytes that [`to_bytes`] returned. `path` is the file that they came from.
pub(super) fn from_bytes<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(TrainerState, T)> {
    let broken = |e: String| Error::malformed(path, format!("not an intact checkpoint: {e}"));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| broken(e.to_string()))?;
    let text = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get(KEY))
        .ok_or_else(|| broken("it has no facts".into()))?;
    let json: serde_json::Value = serde_json::from_str(text).map_err(|e| broken(e.to_string()))?;
    let found = json.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0) as u32;
    if found > VERSION {
        return Err(Error::NewerFormat { path: path.into(), found, supported: VERSION });
    }
    check_checksum(path, bytes, metadata.metadata().as_ref())?;
    let facts: Facts<T> = serde_json::from_value(json).map_err(|e| broken(e.to_string()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| broken(e.to_string()))?;
    let bytes_of = |name: &str, dtype: Dtype| {
        let tensor = tensors.tensor(name).map_err(|e| broken(e.to_string()))?;
        match tensor.dtype() {
            found if found == dtype => Ok(tensor.data()),
            found => Err(broken(format!("{name} is of type {found:?}; {dtype:?} expected"))),
        }
    };
    let finite = |name: &str, is_finite: bool| {
        if is_finite { Ok(()) } else { Err(broken(format!("{name} has values that are not finite"))) }
    };
    let f32s = |name: &str| -> Result<Vec<f32>> {
        let values = bytes_of(name, Dtype::F32)?.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
        finite(name, values.clone().all(f32::is_finite))?;
        Ok(values.collect())
    };
    let f64s = |name: &str| -> Result<Vec<f64>> {
        let values = bytes_of(name, Dtype::F64)?.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b));
        finite(name, values.clone().all(f64::is_finite))?;
        Ok(values.collect())
    };
    let (n_visible, n_hidden) = (facts.n_visible, facts.n_hidden);
    let rbm = Rbm::new(n_visible, n_hidden, &f32s("weights")?, &f32s("visible_bias")?, &f32s("hidden_bias")?)
        .map_err(|e| broken(e.to_string()))?;
    let memory = |k: usize| -> Result<Option<Gradient>> {
        if tensors.tensor(&format!("memory{k}.w")).is_err() {
            return Ok(None);
        }
        let (w, b, a) =
            (f32s(&format!("memory{k}.w"))?, f32s(&format!("memory{k}.b"))?, f32s(&format!("memory{k}.a"))?);
        if (w.len(), b.len(), a.len()) != (n_visible * n_hidden, n_visible, n_hidden) {
            return Err(broken("the optimiser's memory has another size".into()));
        }
        let mut moments = Gradient::zeros(n_visible, n_hidden);
        moments.w.copy_from_rows(&w);
        (moments.b, moments.a) = (b, a);
        Ok(Some(moments))
    };
    let arrays = |prefix: &'static str| {
        tensors.tensors().into_iter().filter_map(move |(name, tensor)| {
            let chunks = tensor.data().as_chunks().0;
            let array = match tensor.dtype() {
                Dtype::F64 => Array::Numbers(chunks.iter().map(|&b| f64::from_le_bytes(b)).collect()),
                Dtype::U64 => Array::Words(chunks.iter().map(|&b| u64::from_le_bytes(b)).collect()),
                _ => return None,
            };
            Some((name.strip_prefix(prefix)?.to_owned(), array))
        })
    };
    let estimator = match found {
        1 => old_checkpoint::upgrade(arrays("words.").chain(arrays("numbers."))),
        _ => State { facts: facts.estimator, arrays: arrays(ESTIMATOR).collect() },
    };
    let lambda = f64s("lambda")?;
    // Offsets are means of bits; rounding may lead out of the range.
    if lambda.len() != n_hidden || lambda.iter().any(|mean| !(-1e-3..=1.0 + 1e-3).contains(mean)) {
        return Err(broken("the offsets have another size or are no means".into()));
    }
    let gradient_norm = f64::from_bits(facts.gradient_norm);
    finite("the norm of the gradient", gradient_norm.is_finite())?;
    if [facts.epoch, facts.update].into_iter().any(|n| u32::try_from(n).is_err()) {
        return Err(broken("it counts more epochs or updates than any training makes".into()));
    }
    let state = TrainerState {
        rbm,
        lambda,
        n_steps: facts.n_steps,
        memory: [memory(0)?, memory(1)?],
        estimator,
        epoch: facts.epoch,
        update: facts.update,
        gradient_norm,
    };
    Ok((state, facts.run))
}
