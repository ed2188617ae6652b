//! Measures the time of an epoch of training, without evaluations.

use super::DataSets;
use super::train::Stoppable;
use crate::task::TimingOf;
use mclv::data::Split;
use mclv::progress::Progress;
use mclv::train::{Outcome, Training};
use mclv::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The time of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Seconds of the fastest epoch, on one thread.
    pub seconds: f64,
    /// Updates in the epoch.
    pub n_updates: usize,
    /// Rows in the epoch.
    pub n_rows: usize,
}

pub(super) fn run(of: &TimingOf, sets: &DataSets, progress: &dyn Progress) -> Result<Timed> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let n_rows = if of.n_rows == 0 { data.n_rows() } else { of.n_rows.min(data.n_rows()) };
    let rows = data.rows.select(&(0..n_rows).collect::<Vec<_>>());
    let mut stoppable = Stoppable(progress);
    let training = Training::new(of.model.train.settings()).unwatched().observe(&mut stoppable);
    let mut session = training.begin(&rows)?;
    let (mut best, total) = (f64::INFINITY, of.n_before + of.n_timed);
    for epoch in 0..total {
        let begun = Instant::now();
        if let Some(Outcome::Interrupted { .. }) = session.epoch()? {
            return Err(Error::Cancelled);
        }
        if epoch >= of.n_before {
            best = best.min(begun.elapsed().as_secs_f64());
        }
        progress.report(epoch as u64 + 1, total as u64);
    }
    let n_updates = of.model.train.n_updates(n_rows);
    Ok(Timed { seconds: best, n_updates, n_rows })
}
