//! Computes the likelihood of one part of the data under an RBM: exact, or with an interval.

use super::{DataSets, NoReport, subject};
use crate::store::Store;
use crate::subject::ScoreOf;
use crate::task::Task;
use mclv::data::Split;
use mclv::partition::{Budget, Effort, Inputs, LogZ, MethodSettings, Plan};
use mclv::progress::Progress;
use mclv::{Likelihood, Rbm, Result};
use serde::{Deserialize, Serialize};

/// Models with at most this number of units in the smaller layer are enumerated.
const MAX_EXACT: usize = 32;
/// The wanted standard error of log Z of larger models.
const TARGET_SE: f64 = 0.05;

/// A likelihood of one part of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// `log Z`, with its method and guarantee.
    pub log_z: LogZ,
    /// The likelihood.
    pub likelihood: Likelihood,
}

pub(super) fn run(of: &ScoreOf, store: &Store, sets: &DataSets, progress: &dyn Progress) -> Result<Score> {
    let rbm = subject(&of.subject, store)?;
    let first = Task::Score(of.on(Split::Validation));
    let known = if of.split == Split::Validation { None } else { store.find(&first)? };
    let log_z = match known {
        Some(record) => record.read::<Score>()?.log_z,
        None => log_z(of, &rbm, sets, progress)?,
    };
    let rows = sets.load(&of.data, of.split, progress)?;
    Ok(Score { likelihood: rbm.log_likelihood(&rows.rows, &log_z)?, log_z })
}

fn log_z(of: &ScoreOf, rbm: &Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<LogZ> {
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    let may_enumerate = n_visible.min(n_hidden) <= MAX_EXACT;
    let seconds = if may_enumerate { f64::INFINITY } else { 0.0 };
    let settings = MethodSettings {
        effort: Effort::TargetSe(TARGET_SE),
        budget: Budget { seconds, clock: false, ..Budget::command(n_visible, n_hidden) },
        ..MethodSettings::default()
    };
    let train = sets.load(&of.data, Split::Train, progress)?;
    let inputs = Inputs { rows: Some(&train.rows), ..Inputs::default() };
    Plan::new(rbm, None, &settings).run(&inputs, &NoReport(progress))
}
