//! Hold the memory that the kernels of a layer reuse.

use super::draws::TileDraws;
use super::lists::ListMemory;
use super::marked::MarkedMemory;
use crate::tiles::Cell;

/// Reusable memory: the non-zero units of each state, and random numbers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(super) lists: ListMemory,
    /// Sums that are not complete yet.
    pub(super) partial: Vec<Cell>,
    pub(super) tile_draws: TileDraws,
    pub(super) marked: MarkedMemory,
    /// Products of four exponentials, for each of the sixteen ways to choose among them.
    pub(super) table: Vec<Cell>,
}

/// The [`Scratch`] of a thread, returned to the thread on drop. A second request before that gets a
/// new one.
#[derive(Debug)]
pub struct ThreadScratch(Scratch);

impl std::ops::Deref for ThreadScratch {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.0
    }
}

impl std::ops::DerefMut for ThreadScratch {
    fn deref_mut(&mut self) -> &mut Scratch {
        &mut self.0
    }
}

impl Drop for ThreadScratch {
    fn drop(&mut self) {
        SPARE.set(std::mem::take(&mut self.0));
    }
}

thread_local! {
    static SPARE: std::cell::Cell<Scratch> = std::cell::Cell::default();
}

impl Scratch {
    /// Borrows the memory of this thread, so that one call reuses what another has allocated.
    pub fn of_thread() -> ThreadScratch {
        ThreadScratch(SPARE.take())
    }
}
