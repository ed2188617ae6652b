//! Trains a model in its run folder, or continues an interrupted training.

use crate::task::ModelOf;
use mclv::data::DataSpec;
use mclv::gradient::TourInfo;
use mclv::partition::LogZ;
use mclv::progress::Progress;
use mclv::train::{Checkpoints, Listener, Metrics, Outcome, Run, RunFolder, RunInput, Warning};
use mclv::{Error, Result};
use serde::{Deserialize, Serialize};

/// The result of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// The epoch in which training diverged. The model is then that of the epoch before.
    pub diverged_in: Option<usize>,
    /// Epochs with an evaluation.
    pub curve: Vec<CurvePoint>,
    /// The tours of the first epoch with tours, and of the last epoch.
    pub tours: Option<(TourInfo, TourInfo)>,
    /// The last `log Z`.
    pub log_z: Option<LogZ>,
}

/// An evaluation during training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Epochs done.
    pub epoch: usize,
    /// Mean log-likelihood of 5,000 training rows (at the end, of all training rows).
    pub train: f64,
    /// Mean log-likelihood of the validation rows.
    pub validation: Option<f64>,
    /// Standard error from `log Z`, if it is known.
    #[serde(default)]
    pub std_err: Option<f64>,
}

/// Trains a model. Also returns the seconds spent before an interruption.
pub(super) fn run(model: &ModelOf, folder: &RunFolder, progress: &dyn Progress) -> Result<(Trained, f64)> {
    let path = folder.path();
    let quiet = super::NoReport(progress);
    let is_begun = folder.holds_a_run();
    let run = if is_begun { Run::open(path, &quiet)? } else { Run::load(model.input(), &quiet)? };
    if is_begun && without_folder(run.input().clone()) != without_folder(model.input()) {
        return Err(Error::malformed(
            path,
            "it holds a run with other settings than its name says; delete it, and it is made again",
        ));
    }
    // One checkpoint per minute, so that an interruption costs at most a minute.
    let checkpoints = Checkpoints { every_epochs: usize::MAX, every_minutes: 1.0 };
    let mut listening = Listening(progress);
    let training = run.training().checkpoints(checkpoints).observe(&mut listening);
    let session = if is_begun {
        training.resume(path, run.rows())?
    } else {
        training.in_folder(path).begin(run.rows())?
    };
    let before = session.history().last().map_or(0.0, |m| m.seconds);
    let trained = session.finish()?;
    let metrics = trained.history;
    let diverged_in = match trained.outcome {
        Outcome::Interrupted { .. } => return Err(Error::Cancelled),
        Outcome::Finished { .. } => None,
        Outcome::Diverged(Warning::Diverged { epoch, .. }) => Some(epoch),
        Outcome::Diverged(_) => Some(0),
    };
    let point = |m: &Metrics| {
        Some(CurvePoint {
            epoch: m.epoch,
            train: m.train_log_likelihood?,
            validation: m.validation_log_likelihood,
            std_err: m.log_z.as_ref()?.std_err,
        })
    };
    let mut tours = metrics.iter().filter_map(|m| m.tours.clone());
    let first = tours.next();
    let trained = Trained {
        diverged_in,
        curve: metrics.iter().filter_map(point).collect(),
        tours: first.map(|first| (first.clone(), tours.next_back().unwrap_or(first))),
        log_z: metrics.last().and_then(|m| m.log_z.clone()),
    };
    Ok((trained, before))
}

/// Removes the folder that relative paths start from. A run records it, but its name does not say it;
/// whoever resumes the run compares the content of the data.
fn without_folder(input: RunInput) -> RunInput {
    RunInput { data: DataSpec { folder: None, ..input.data }, ..input }
}

/// Collects evaluations and warnings for the results.
pub(super) struct Listening<'a>(pub(super) &'a dyn Progress);

impl Progress for Listening<'_> {
    fn report(&self, done: u64, total: u64) {
        self.0.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Listener for Listening<'_> {}

/// Passes on only the request to stop.
pub(super) struct Stoppable<'a>(pub(super) &'a dyn Progress);

impl Progress for Stoppable<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Listener for Stoppable<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::decided;
    use mclv::progress::Silent;
    use mclv::settings::Settings;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Cancels after five updates.
    struct Stop(AtomicU64);

    impl Progress for Stop {
        fn report(&self, _done: u64, _total: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 5
        }
    }

    #[test]
    fn an_interrupted_training_on_a_file_with_a_relative_path_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataSpec { source: "../mclv/tests/fixtures/bits_u1.npy".into(), ..DataSpec::default() };
        let train = Settings {
            n_hidden: Some(2),
            epochs: Some(9.into()),
            batch_size: Some(1),
            ..Settings::default()
        };
        let model = ModelOf::new(data, decided(&train));
        let run = RunFolder::new(folder.path().join("run"));
        let stopped = super::run(&model, &run, &Stop(AtomicU64::new(0)));
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
        assert_eq!(super::run(&model, &run, &Silent).unwrap().0.diverged_in, None);
        // The control: other settings are refused.
        let other = model.with(Settings { n_hidden: Some(3), ..Settings::default() });
        let refused = super::run(&other, &run, &Silent).unwrap_err().to_string();
        assert!(refused.contains("other settings"), "{refused}");
    }
}
