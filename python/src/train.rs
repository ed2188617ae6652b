//! Train on rows in memory, with callbacks; or piece by piece.

use crate::arrays::PyRows;
use crate::errors::{SettingError, exception};
use crate::model::Model;
use crate::work::{self, Line};
use mclv::data::{Dataset, Rows};
use mclv::gradient::Gradient;
use mclv::progress::Progress;
use mclv::train::{Fit, Listener, Metrics, Outcome, Schedule, TrainSettings, Trainer, Warning};
use mclv::{Error, ModelFile, Provenance};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{depythonize, pythonize};
use std::sync::{Arc, Mutex, PoisonError};

fn settings_from(settings: &Bound<'_, PyAny>) -> PyResult<TrainSettings> {
    depythonize(settings).map_err(|e| SettingError::new_err(format!("settings: {e}")))
}

/// Passes on the wish to stop and how far training has come; keeps the warnings.
struct Ear<'a> {
    line: &'a Line,
    warnings: Mutex<Vec<String>>,
}

impl Progress for Ear<'_> {
    fn report(&self, done: u64, total: u64) {
        self.line.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.line.cancelled()
    }
}

impl Listener for Ear<'_> {
    fn epoch(&self, _metrics: &Metrics) {}

    fn warning(&self, warning: &Warning) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning.to_string());
    }
}

/// What training came to.
struct Trained {
    fit: Fit,
    outcome: Outcome,
    warnings: Vec<String>,
}

fn go(
    settings: TrainSettings,
    (train, weights, validation): (Rows, Option<Vec<f32>>, Option<Rows>),
    watch: bool,
    on_epoch: Option<&Py<PyAny>>,
    line: &Line,
) -> mclv::Result<Trained> {
    let mut fit = Fit::new(settings, train, weights, validation, watch)?;
    let ear = Ear { line, warnings: Mutex::default() };
    let outcome = loop {
        let outcome = fit.epoch(&ear)?;
        let was_made = !matches!(outcome, Some(Outcome::Interrupted { .. } | Outcome::Diverged(_)));
        if let (Some(listener), Some(metrics), true) = (on_epoch, fit.history().last(), was_made) {
            let (metrics, model) = (metrics.clone(), Model::new(ModelFile::new(fit.rbm().clone())));
            let listener = Python::attach(|py| listener.clone_ref(py));
            line.call(move |py| listener.call1(py, (pythonize(py, &metrics)?, model))?.is_truthy(py));
        }
        if let Some(outcome) = outcome {
            break outcome;
        }
    };
    let warnings = ear.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Trained { fit, outcome, warnings })
}

/// Train. Of the listeners, `on_epoch(metrics, model)` is called after each epoch and stops by a true value;
/// `on_progress(done, total)` is called all the while, in updates. An interruption gives what there is.
#[pyfunction]
#[pyo3(signature = (settings, rows, weights, validation, watch, describe, listeners, n_threads))]
pub(crate) fn train<'py>(
    py: Python<'py>,
    settings: &Bound<'py, PyAny>,
    rows: &PyRows,
    weights: Option<PyReadonlyArray1<'py, f32>>,
    validation: Option<&PyRows>,
    watch: bool,
    describe: bool,
    (on_epoch, on_progress): (Option<Py<PyAny>>, Option<Py<PyAny>>),
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = settings_from(settings)?;
    let weights = weights.map(|w| w.as_array().iter().copied().collect());
    let (train, validation) = (Arc::clone(&rows.rows), validation.map(|v| Arc::clone(&v.rows)));
    let done = work::run(py, n_threads, on_progress, |line| {
        let parts = (Rows::clone(&train), weights, validation.map(|v| Rows::clone(&v)));
        let trained = go(settings, parts, watch, on_epoch.as_ref(), line)?;
        let provenance = describe.then(|| Dataset::from_rows("memory", Rows::clone(&train)).provenance);
        mclv::Result::Ok((trained, provenance))
    })?;
    let (Trained { fit, outcome, warnings }, data) = match (done.value, &done.raised) {
        (Ok(trained), _) => trained,
        // Nothing was made before the stop.
        (Err(Error::Cancelled), Some(error)) => return Err(error.clone_ref(py)),
        (Err(error), _) => return Err(exception(error)),
    };
    let settings = serde_json::json!({ "command": "mclv.train (Python)", "train": fit.settings() });
    let last = fit.history().last();
    let history = serde_json::json!({ "epoch": last.map(|m| m.epoch),
        "train_log_likelihood": last.and_then(|m| m.train_log_likelihood),
        "validation_log_likelihood": last.and_then(|m| m.validation_log_likelihood) });
    let provenance =
        Provenance { settings, seed: Some(fit.settings().seed), data, history, ..Provenance::default() };
    let model = |rbm: &mclv::Rbm| Model::new(ModelFile { rbm: rbm.clone(), provenance: provenance.clone() });
    let (outcome, best) = match outcome {
        Outcome::Finished { early: true, best, .. } => ("stopped early", best),
        Outcome::Finished { best, .. } => ("finished", best),
        Outcome::Diverged(_) => ("diverged", None),
        Outcome::Interrupted { .. } => ("interrupted", None),
    };
    let result = PyDict::new(py);
    result.set_item("model", model(fit.rbm()))?;
    result.set_item("best_model", fit.best().map(model))?;
    result.set_item("best_epoch", best.map(|(epoch, _)| epoch))?;
    result.set_item("history", pythonize(py, fit.history())?)?;
    result.set_item("settings", pythonize(py, fit.settings())?)?;
    result.set_item("outcome", outcome)?;
    result.set_item("warnings", warnings)?;
    result.set_item("raised", done.raised.map(|error| error.into_value(py)))?;
    Ok(result)
}

/// A model in training on data that come in pieces.
#[pyclass(frozen, name = "Trainer", module = "mclv._mclv")]
pub(crate) struct PyTrainer {
    trainer: Mutex<Trainer>,
}

/// More epochs than anybody will feed.
const ENDLESS: usize = 1 << 31;

#[pymethods]
impl PyTrainer {
    /// Begin at `model`, or at an initial model for `rows`.
    #[new]
    #[pyo3(signature = (settings, rows, model))]
    fn new(settings: &Bound<'_, PyAny>, rows: &PyRows, model: Option<&Model>) -> PyResult<Self> {
        let mut settings = settings_from(settings)?;
        settings.check().map_err(exception)?;
        // Nobody knows how much is to come: neither when the rate should have fallen nor how many rows the first piece has.
        settings.schedule = Schedule::Constant;
        settings.epochs = ENDLESS;
        let n = settings.batch_size;
        match &mut settings.gradient {
            Gradient::Pcd { n_chains: chains @ 0, .. } => *chains = n,
            Gradient::Lvs(lvs) if lvs.n_tours == 0 => lvs.n_tours = n,
            _ => {}
        }
        let trainer = match model {
            None => Trainer::new(settings, &rows.rows, None),
            Some(model) => Trainer::from_model(settings, model.rbm().clone(), &rows.rows, None),
        };
        Ok(Self { trainer: Mutex::new(trainer.map_err(exception)?) })
    }

    /// One pass over rows, in minibatches.
    fn feed(&self, py: Python<'_>, rows: &PyRows, n_threads: Option<usize>) -> PyResult<()> {
        let rows = Arc::clone(&rows.rows);
        work::finish(py, n_threads, |line| self.lock().feed(&rows, line))
    }

    /// The model as it is now.
    fn model(&self, py: Python<'_>) -> Model {
        py.detach(|| Model::new(ModelFile::new(self.lock().rbm().clone())))
    }
}

impl PyTrainer {
    fn lock(&self) -> std::sync::MutexGuard<'_, Trainer> {
        self.trainer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
