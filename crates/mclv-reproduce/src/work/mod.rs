//! Runs one task. There is one file for each kind of task.

mod ascent;
mod inspection;
mod likelihood;
mod timing;
mod tours;
mod train;

pub use inspection::{Inspected, Inspection};
pub use likelihood::Likelihoods;
pub use timing::Timed;
pub use tours::{LabelTours, Pictured, RunningZ, Toured};
pub use train::{CurvePoint, Trained};

use crate::store::Store;
use crate::task::{ModelOf, Task};
use mclv::data::{self, DataSpec, Dataset, Split};
use mclv::progress::Progress;
use mclv::train::RunFolder;
use mclv::{Error, ModelFile, Rbm, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Data, loaded once.
#[derive(Default)]
pub(crate) struct DataSets(Mutex<HashMap<String, Arc<Dataset>>>);

impl DataSets {
    /// A part of a run's data.
    pub(crate) fn load(
        &self,
        model: &ModelOf,
        split: Split,
        progress: &dyn Progress,
    ) -> Result<Arc<Dataset>> {
        let spec = DataSpec { split, ..model.data.clone() };
        let mut sets = self.0.lock().expect("no worker panics");
        let key = format!("{spec:?}");
        if let Some(set) = sets.get(&key) {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(data::load(&spec, &NoReport(progress))?);
        sets.insert(key, Arc::clone(&set));
        Ok(set)
    }
}

/// Runs a task. Returns its result, and the seconds spent before an interruption.
pub(crate) fn run(
    task: &Task,
    store: &Store,
    sets: &DataSets,
    progress: &dyn Progress,
) -> Result<(Value, f64)> {
    let json = |result: Result<Value, serde_json::Error>| result.expect("results are plain JSON");
    Ok(match task {
        Task::Train(model) => {
            let folder = RunFolder::new(store.path(task));
            let (trained, before) = train::run(model, &folder, progress)?;
            (json(serde_json::to_value(trained)), before)
        }
        Task::Likelihood(of) => {
            let rbm = model(&of.model, store)?;
            let known = store.get(&Task::Train(of.model.clone()))?.read::<Trained>()?.log_z;
            (json(serde_json::to_value(likelihood::run(of, &rbm, known.as_ref(), sets, progress)?)), 0.0)
        }
        Task::Ascent(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(ascent::run(of, rbm, sets, progress)?)), 0.0)
        }
        Task::Tours(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(tours::run(of, &rbm, sets, progress)?)), 0.0)
        }
        Task::Inspection(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(inspection::run(of, &rbm, sets, progress)?)), 0.0)
        }
        Task::Timing(of) => (json(serde_json::to_value(timing::run(of, sets, progress)?)), 0.0),
    })
}

/// The final model of a training.
fn model(of: &ModelOf, store: &Store) -> Result<Rbm> {
    let folder = RunFolder::new(store.path(&Task::Train(of.clone())));
    Ok(ModelFile::load(folder.model())?.rbm)
}

/// Passes on everything but reports of progress.
struct NoReport<'a>(&'a dyn Progress);

impl Progress for NoReport<'_> {
    fn report(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn may_fetch(&self, how: &str) -> bool {
        self.0.may_fetch(how)
    }
}

/// Returns an error if the listener asks to stop.
fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}
