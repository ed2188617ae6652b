//! Trains on rows in memory, with callbacks, or on data that come in pieces.

use crate::arrays::{PyRows, bits_to_array};
use crate::errors::{SettingError, exception};
use crate::model::Model;
use crate::work::{self, Line, check_memory};
use mclv::bits::BitRows;
use mclv::data::{DataProvenance, Dataset, Rows};
use mclv::progress::Progress;
use mclv::settings::{Auto, Settings, Spelling, spell};
use mclv::train::{Feed, Listener, Metrics, Outcome, Run, Session, Trained, Training};
use mclv::{Error, ModelFile, Provenance};
use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pythonize::{depythonize, pythonize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Settings from keywords: names have underscores here and hyphens in the library.
fn settings_from(keywords: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let read = |entries: &[(String, Bound<'_, PyAny>)]| {
        let spelled = PyDict::new(keywords.py());
        for (name, value) in entries {
            // What JSON cannot hold, such as a number of more than 64 bits, is not a setting.
            let json: Result<serde_json::Value, _> = depythonize(value);
            json.map_err(|error| not_allowed(name, value, &error.to_string()))?;
            spelled.set_item(name.replace('_', "-"), value)?;
        }
        // Convert to JSON first, so that a setting of true or false accepts no other value.
        let json: serde_json::Value = depythonize(&spelled)?;
        Ok::<_, PyErr>(serde_json::from_value::<Settings>(json))
    };
    let mut entries = Vec::new();
    for (name, value) in keywords {
        let name: String = name.extract()?;
        if !Settings::NAMES.contains(&name.as_str()) {
            let nearest = Settings::nearest_name(&name);
            let suggestion = nearest.map_or(String::new(), |known| format!("; did you mean '{known}'?"));
            return Err(PyTypeError::new_err(format!("unknown setting '{name}'{suggestion}")));
        }
        entries.push((name, value));
    }
    let whole = match read(&entries)? {
        Ok(settings) => return Ok(settings),
        Err(error) => error,
    };
    // Read settings one by one, because an error does not name its setting.
    for entry in &entries {
        if let Err(error) = read(std::slice::from_ref(entry))? {
            let ((name, value), text) = (entry, error.to_string());
            let is_said = text.contains("is not allowed");
            return Err(if is_said { SettingError::new_err(text) } else { not_allowed(name, value, &text) });
        }
    }
    Err(SettingError::new_err(format!("settings: {whole}")))
}

/// The error for the value of a setting.
fn not_allowed(name: &str, value: &Bound<'_, PyAny>, why: &str) -> PyErr {
    let is_count = ["usize", "u32", "u64"].iter().any(|kind| why.ends_with(&format!("expected {kind}")));
    let why = if is_count { "give a whole number that is not negative" } else { why };
    match value.repr() {
        Ok(value) => SettingError::new_err(format!("{name} = {value} is not allowed: {why}")),
        Err(error) => error,
    }
}

/// Settings as keywords.
fn keywords<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let spelled = PyDict::new(py);
    for (name, value) in pythonize(py, settings)?.cast::<PyDict>()? {
        spelled.set_item(name.extract::<String>()?.replace('-', "_"), value)?;
    }
    Ok(spelled)
}

/// The name and the help text of each setting, with underscores.
#[pyfunction]
pub(crate) fn setting_help() -> Vec<(&'static str, String)> {
    let spelled = |help: &str| spell(help, Spelling::Keywords);
    Settings::HELP.iter().map(|(name, help)| (*name, spelled(help.trim()))).collect()
}

/// Refuses models and chains that do not fit into memory.
fn check_size(settings: &Settings, n_hidden: Option<usize>, rows: &Rows) -> PyResult<()> {
    let (n_visible, n_hidden) = (rows.n_columns() as u128, n_hidden.unwrap_or(0));
    // Weights in both directions, their gradient, and the memory of the optimiser.
    let of_model = 4 * 5 * n_visible * (n_hidden as u128 + 1);
    check_memory(&format!("a model with {n_hidden} hidden units"), of_model)?;
    let n_units = rows.n_columns().saturating_add(n_hidden);
    if let Some(Auto::Given(n_chains)) = settings.n_chains {
        let n_all = n_chains.saturating_mul(settings.n_rungs.unwrap_or(1));
        check_memory(&format!("{n_all} chains"), 2 * work::bytes_of_bits(n_all, n_units))?;
    }
    let n_drawn = rows.n_rows().saturating_mul(settings.samples_per_row.unwrap_or(0));
    check_memory("the stopping set", work::bytes_of_bits(n_drawn, n_hidden))
}

/// Passes on the request to stop and the progress of training.
struct Ear<'a>(&'a Line);

impl Progress for Ear<'_> {
    fn report(&self, done: u64, total: u64) {
        self.0.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Listener for Ear<'_> {}

/// The result of a training, and the hidden states of its chains.
type Gone = (Trained, Option<BitRows>);

fn go(mut session: Session<'_>, on_epoch: Option<&Arc<Py<PyAny>>>, line: &Line) -> mclv::Result<Gone> {
    let outcome = loop {
        let outcome = session.epoch()?;
        let was_made = !matches!(outcome, Some(Outcome::Interrupted { .. } | Outcome::Diverged(_)));
        if let (Some(listener), Some(metrics), true) = (on_epoch, session.history().last(), was_made) {
            let (metrics, model) = (metrics.clone(), Model::new(ModelFile::new(session.rbm().clone())));
            let listener = Arc::clone(listener);
            line.call(move |py| listener.call1(py, (pythonize(py, &metrics)?, model))?.is_truthy(py));
        }
        if let Some(outcome) = outcome {
            break outcome;
        }
    };
    let chains = session.chains();
    Ok((session.into_trained(outcome), chains))
}

/// The warnings, in order.
fn warnings_of(trained: &Trained) -> Vec<String> {
    let of_epochs = trained.history.iter().flat_map(|metrics| &metrics.warnings);
    let at_the_end = if let Outcome::Diverged(warning) = &trained.outcome { Some(warning) } else { None };
    of_epochs.chain(at_the_end).map(|warning| warning.in_words(Spelling::Keywords)).collect()
}

/// Trains a model. `on_epoch(metrics, model)` is called after each epoch; a true return value stops
/// the training. `on_progress(done, total)` reports updates. An interrupted training returns the
/// model so far. It begins with the model `init`, if there is one, and its files go into the folder
/// `output`, if there is one. The model describes its data if `column_names` are there, which may be
/// empty.
#[pyfunction]
#[pyo3(signature = (settings, rows, weights, validation, init, output, column_names, listeners, n_threads))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train<'py>(
    py: Python<'py>,
    settings: &Bound<'py, PyDict>,
    rows: &PyRows,
    weights: Option<PyReadonlyArray1<'py, f32>>,
    validation: Option<&PyRows>,
    init: Option<&Model>,
    output: Option<PathBuf>,
    column_names: Option<Vec<String>>,
    listeners: (Option<Py<PyAny>>, Option<Py<PyAny>>),
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = settings_from(settings)?;
    let n_hidden = init.map_or(settings.n_hidden, |model| Some(model.rbm().n_hidden()));
    check_size(&settings, n_hidden, &rows.rows)?;
    let (on_epoch, on_progress) = listeners;
    let on_epoch = on_epoch.map(Arc::new);
    let init = init.map(|model| model.rbm().clone());
    let weights: Option<Vec<f32>> = weights.map(|w| w.as_array().iter().copied().collect());
    let (train, validation) = (Arc::clone(&rows.rows), validation.map(|v| Arc::clone(&v.rows)));
    let done = work::run(py, n_threads, on_progress, |line| {
        let mut ear = Ear(line);
        let names = column_names.clone().unwrap_or_default();
        let mut training = Training::new(settings).weights(weights.as_deref()).column_names(names);
        if let Some(validation) = &validation {
            training = training.validation(validation);
        }
        if let Some(init) = init {
            training = training.from_model(init);
        }
        if let Some(folder) = &output {
            training = training.in_folder(folder);
        }
        let session = training.observe(&mut ear).begin(&train)?;
        let gone = go(session, on_epoch.as_ref(), line)?;
        let provenance = column_names.map(|names| described(&train, names));
        mclv::Result::Ok((gone, provenance))
    })?;
    result_of(py, done)
}

/// Continues the run in a folder. If the folder does not name its data, `rows` are its training rows
/// in memory, with their weights and validation rows. With `more_epochs`, these follow after its end,
/// with a new schedule of the learning rate; if the run has not ended, its remaining epochs come
/// first.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn resume<'py>(
    py: Python<'py>,
    folder: PathBuf,
    rows: Option<&PyRows>,
    weights: Option<PyReadonlyArray1<'py, f32>>,
    validation: Option<&PyRows>,
    column_names: Vec<String>,
    more_epochs: Option<usize>,
    listeners: (Option<Py<PyAny>>, Option<Py<PyAny>>),
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (on_epoch, on_progress) = listeners;
    let on_epoch = on_epoch.map(Arc::new);
    let weights: Option<Vec<f32>> = weights.map(|w| w.as_array().iter().copied().collect());
    let (rows, validation) = (rows.map(|r| Arc::clone(&r.rows)), validation.map(|v| Arc::clone(&v.rows)));
    let done = work::run(py, n_threads, on_progress, |line| {
        let part = |more: Option<usize>| {
            let mut ear = Ear(line);
            match &rows {
                Some(rows) => {
                    let mut training = Training::of_run(&folder, more)?.weights(weights.as_deref());
                    training = training.column_names(column_names.clone());
                    if let Some(validation) = &validation {
                        training = training.validation(validation);
                    }
                    let session = training.observe(&mut ear).resume(&folder, rows)?;
                    let data = described(rows, column_names.clone());
                    mclv::Result::Ok((go(session, on_epoch.as_ref(), line)?, Some(data)))
                }
                None => {
                    let run = match more {
                        Some(n) => Run::extend(&folder, n, line)?,
                        None => Run::open(&folder, line)?,
                    };
                    let session = run.training().observe(&mut ear).resume(&folder, run.rows())?;
                    Ok((go(session, on_epoch.as_ref(), line)?, Some(run.train_data().provenance.clone())))
                }
            }
        };
        match part(more_epochs) {
            Err(Error::Unfinished { .. }) => match part(None)? {
                done @ ((Trained { outcome: Outcome::Finished { .. }, .. }, _), _) => {
                    drop(done);
                    part(more_epochs)
                }
                // The training diverged, or was interrupted.
                other => Ok(other),
            },
            done => done,
        }
    })?;
    result_of(py, done)
}

/// The provenance of rows in memory.
fn described(rows: &Rows, column_names: Vec<String>) -> DataProvenance {
    DataProvenance { column_names, ..Dataset::from_rows("memory", rows.clone()).provenance }
}

/// A training with the provenance of its data, or the error that ended it.
type DoneTraining = work::Done<mclv::Result<(Gone, Option<DataProvenance>)>>;

/// The result of a training for Python.
fn result_of(py: Python<'_>, done: DoneTraining) -> PyResult<Bound<'_, PyDict>> {
    let ((trained, chains), data) = match (done.value, &done.raised) {
        (Ok(trained), _) => trained,
        // The training was stopped before it had a model.
        (Err(Error::Cancelled), Some(error)) => return Err(error.clone_ref(py)),
        (Err(error), _) => return Err(exception(error)),
    };
    let complete = trained.settings.settings();
    let settings = serde_json::json!({ "command": "mclv.train (Python)", "train": complete });
    let last = trained.history.last();
    let after = |epoch: Option<usize>, metrics: Option<&Metrics>| {
        let history = serde_json::json!({ "epoch": epoch,
            "train_log_likelihood": metrics.and_then(|m| m.train_log_likelihood),
            "validation_log_likelihood": metrics.and_then(|m| m.validation_log_likelihood) });
        Provenance {
            settings: settings.clone(),
            seed: Some(trained.settings.seed),
            data: data.clone(),
            history,
            ..Provenance::default()
        }
    };
    let provenance = after(last.map(|m| m.epoch), last);
    let model = |rbm: &mclv::Rbm| Model::new(ModelFile { rbm: rbm.clone(), provenance: provenance.clone() });
    let snapshots = PyDict::new(py);
    for (epoch, rbm) in &trained.snapshots {
        let provenance = after(Some(*epoch), trained.history.iter().find(|m| m.epoch == *epoch));
        snapshots.set_item(epoch, Model::new(ModelFile { rbm: rbm.clone(), provenance }))?;
    }
    let (outcome, best) = match &trained.outcome {
        Outcome::Finished { early: true, best, .. } => ("stopped early", best.as_ref()),
        Outcome::Finished { best, .. } => ("finished", best.as_ref()),
        Outcome::Diverged(_) => ("diverged", None),
        Outcome::Interrupted { .. } => ("interrupted", None),
    };
    let result = PyDict::new(py);
    result.set_item("model", model(&trained.model))?;
    result.set_item("best_model", trained.best.as_ref().map(model))?;
    result.set_item("best_epoch", best.map(|best| best.epoch))?;
    result.set_item("snapshots", snapshots)?;
    result.set_item("chains", chains.map(|chains| bits_to_array(py, &chains)).transpose()?)?;
    result.set_item("history", pythonize(py, &trained.history)?)?;
    result.set_item("settings", keywords(py, &complete)?)?;
    result.set_item("outcome", outcome)?;
    result.set_item("warnings", warnings_of(&trained))?;
    result.set_item("raised", done.raised.map(|error| error.into_value(py)))?;
    Ok(result)
}

/// A model that is trained on data that come in pieces.
#[pyclass(frozen, name = "Feed", module = "mclv._mclv")]
pub(crate) struct PyFeed {
    feed: Mutex<Feed>,
}

#[pymethods]
impl PyFeed {
    /// Starts at `model`, or at an initial model for `rows`.
    #[new]
    #[pyo3(signature = (settings, rows, model))]
    fn new(
        py: Python<'_>,
        settings: &Bound<'_, PyDict>,
        rows: &PyRows,
        model: Option<&Model>,
    ) -> PyResult<Self> {
        let (settings, rows) = (settings_from(settings)?, Arc::clone(&rows.rows));
        let model = model.map(|model| model.rbm().clone());
        check_size(&settings, model.as_ref().map_or(settings.n_hidden, |rbm| Some(rbm.n_hidden())), &rows)?;
        work::finish(py, None, move |_| Feed::new(&settings, &rows, model)).map(Self::of)
    }

    /// Continues from the result of `to_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        work::finish(py, None, |_| Feed::from_bytes(bytes)).map(Self::of)
    }

    /// One pass over rows, in minibatches.
    fn add(&self, py: Python<'_>, rows: &PyRows, n_threads: Option<usize>) -> PyResult<()> {
        let rows = Arc::clone(&rows.rows);
        work::finish(py, n_threads, |line| self.lock().add(&rows, line))
    }

    /// The current model.
    fn model(&self, py: Python<'_>) -> Model {
        py.detach(|| Model::new(ModelFile::new(self.lock().rbm().clone())))
    }

    /// The hidden states of persistent chains or running tours, if there are any.
    fn chains<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<u8>>>> {
        let chains = py.detach(|| self.lock().chains());
        chains.map(|chains| bits_to_array(py, &chains)).transpose()
    }

    /// The complete state, from which training continues bit for bit.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.lock().to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Pickles and copies continue from the current state.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = slf.get_type().getattr("from_bytes")?;
        Ok((restore, (slf.get().to_bytes(slf.py()),)))
    }
}

impl PyFeed {
    fn of(feed: Feed) -> Self {
        Self { feed: Mutex::new(feed) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
