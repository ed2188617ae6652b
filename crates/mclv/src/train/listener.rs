//! Report the progress of training to a listener.

use super::{Metrics, Warning};
use crate::bits::BitRows;
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use std::sync::atomic::AtomicBool;

/// A listener that is told about the progress of training. Every method has a default that does
/// nothing.
///
/// The methods of [`Progress`] may be called from any thread. Those of this trait are called
/// between epochs, from the thread that trains. [`last_evaluation`](Self::last_evaluation) may be
/// called from any thread too.
pub trait Listener: Progress {
    /// Called when an epoch is finished.
    fn epoch(&mut self, _metrics: &Metrics) {}

    /// Called during the last evaluation, when `done` of `total` units of its work are finished.
    fn last_evaluation(&self, _done: u64, _total: u64) {}

    /// Called when a guard gives a warning.
    fn warning(&mut self, _warning: &Warning) {}

    /// Called when an epoch was evaluated, with its metrics, the model, and the hidden states of
    /// persistent chains if there are any.
    fn evaluated(&mut self, _metrics: &Metrics, _rbm: &Rbm, _chains: Option<&BitRows>) {}
}

/// Sends the progress of the last evaluation to a listener.
pub(super) struct LastEvaluation<'a>(pub(super) &'a dyn Listener);

impl Progress for LastEvaluation<'_> {
    fn report(&self, done: u64, total: u64) {
        self.0.last_evaluation(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Listener for Silent {}

impl Listener for AtomicBool {}
