//! Tell a listener how training goes.

use super::{Metrics, Warning};
use crate::bits::BitRows;
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use std::sync::atomic::AtomicBool;

/// A listener to training. Every method has a default that does nothing.
///
/// The methods of [`Progress`] may be called from any thread, those of this trait are called between epochs from the thread
/// that trains.
pub trait Listener: Progress {
    /// An epoch is finished.
    fn epoch(&mut self, _metrics: &Metrics) {}

    /// A guard has noticed something.
    fn warning(&mut self, _warning: &Warning) {}

    /// An epoch was evaluated: its metrics, the model, and the hidden states of persistent chains if there are any.
    fn evaluated(&mut self, _metrics: &Metrics, _rbm: &Rbm, _chains: Option<&BitRows>) {}
}

impl Listener for Silent {}

impl Listener for AtomicBool {}
