//! Runs one task. There is one file for each kind of task.

mod ascent;
mod baseline;
mod direction;
mod inspection;
mod likelihood;
mod quality;
mod ranks;
mod rows;
mod score;
mod space;
mod timing;
mod tours;
mod train;

pub use baseline::Fitted;
pub use direction::{Direction, Directions};
pub use inspection::{Inspected, Inspection};
pub use likelihood::Likelihoods;
pub use quality::Quality;
pub(crate) use quality::WIDTHS;
pub use rows::{OutlierScore, RowsCompared, ToursByRow};
pub use score::Score;
pub use space::Space;
pub use timing::Timed;
pub use tours::{LabelTours, Pictured, RunningZ, Toured};
pub use train::{CurvePoint, Trained};

use crate::store::Store;
use crate::subject::Subject;
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
        data: &DataSpec,
        split: Split,
        progress: &dyn Progress,
    ) -> Result<Arc<Dataset>> {
        let spec = DataSpec { split, ..data.clone() };
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
            let folder = store.run_folder(task)?;
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
        Task::Rows(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(rows::run(of, &rbm, sets, progress)?)), 0.0)
        }
        Task::Direction(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(direction::run(of, &rbm, sets, progress)?)), 0.0)
        }
        Task::Space(of) => {
            let rbm = model(&of.model, store)?;
            (json(serde_json::to_value(space::run(of, &rbm, sets, progress)?)), 0.0)
        }
        Task::Timing(of) => (json(serde_json::to_value(timing::run(of, sets, progress)?)), 0.0),
        Task::Baseline(of) => (json(serde_json::to_value(baseline::run(of, sets, progress)?)), 0.0),
        Task::Score(of) => (json(serde_json::to_value(score::run(of, store, sets, progress)?)), 0.0),
        Task::Quality(of) => (json(serde_json::to_value(quality::run(of, store, sets, progress)?)), 0.0),
    })
}

/// The final model of a training.
fn model(of: &ModelOf, store: &Store) -> Result<Rbm> {
    let folder = RunFolder::new(store.path(&Task::Train(of.clone())));
    Ok(ModelFile::load(folder.model())?.rbm)
}

/// The RBM of a subject.
fn subject(of: &Subject, store: &Store) -> Result<Rbm> {
    let folder = |model: &ModelOf| RunFolder::new(store.path(&Task::Train(model.clone())));
    let path = match of {
        Subject::Run(model) => {
            let folder = folder(model);
            folder.standing_model().unwrap_or_else(|| folder.model())
        }
        Subject::Snapshot(model, epoch) => folder(model).snapshot(*epoch),
        Subject::File(file) => file.path.clone(),
    };
    Ok(ModelFile::load(path)?.rbm)
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
