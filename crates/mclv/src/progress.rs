//! Report how far long work has come, and hear when to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// A listener to long work. Both methods may be called from any thread.
pub trait Progress: Sync {
    /// `done` of `total` units of work are finished.
    fn report(&self, done: u64, total: u64);

    /// Whether the work should stop as soon as it can; it then ends with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _done: u64, _total: u64) {}
}

/// Nobody listens, but a flag can stop the work.
impl Progress for AtomicBool {
    fn report(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}
