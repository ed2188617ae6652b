//! Share blocks of work over threads and ranks. All work is split here.

use super::{Parcel, current, part, share};
use crate::Result;
use rayon::prelude::*;

/// State that a block of work changes, in the form in which ranks exchange it.
pub(crate) trait Exchange {
    /// Appends the changes of the work to `to`.
    fn pack(&self, to: &mut Vec<u8>);
    /// Takes the changes by another rank's work from the front of `from`.
    fn unpack(&mut self, from: &mut &[u8]);
}

impl<S: Exchange> Exchange for Option<&mut S> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|state| state.pack(to));
    }

    fn unpack(&mut self, from: &mut &[u8]) {
        self.iter_mut().for_each(|state| state.unpack(from));
    }
}

/// Returns `work(b)` of all `n` blocks, in order. Each block is done by one thread of one rank.
pub(crate) fn map_blocks<R: Parcel + Send>(n: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    try_blocks(n, |block| Ok(work(block))).expect("no rank can fail here")
}

/// Does the work of [`map_blocks`] for work that can fail.
///
/// # Errors
/// The first error of any rank.
pub(crate) fn try_blocks<R: Parcel + Send>(
    n: usize,
    work: impl Fn(usize) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    try_blocks_with(n, || (), |(), block| work(block))
}

/// Does the work of [`try_blocks`] with memory to reuse. `memory` creates it whenever a thread
/// begins some blocks.
///
/// # Errors
/// The first error of any rank.
pub(crate) fn try_blocks_with<R: Parcel + Send, M>(
    n: usize,
    memory: impl Fn() -> M + Sync + Send,
    work: impl Fn(&mut M, usize) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    share(n, |mine| mine.into_par_iter().map_init(memory, work).collect())
}

/// Does the work of [`map_blocks`] for work that changes a state for each block. Afterwards every
/// rank has all changed states.
pub(crate) fn change_blocks<S: Exchange + Send, R: Parcel + Send>(
    states: &mut [S],
    work: impl Fn(usize, &mut S) -> R + Sync + Send,
) -> Vec<R> {
    let results = share(states.len(), |mine| {
        let first = mine.start;
        let states = states[mine].par_iter_mut().enumerate();
        Ok(states.map(|(k, state)| work(first + k, state)).collect())
    });
    exchange(states);
    results.expect("no rank can fail here")
}

/// Sends the states of this rank's share to the other ranks, and receives theirs.
fn exchange<S: Exchange>(states: &mut [S]) {
    let Some(team) = current() else { return };
    let n = states.len();
    let mut bytes = Vec::new();
    states[part(n, team.rank(), team.size())].iter().for_each(|state| state.pack(&mut bytes));
    for (rank, answer) in team.gather(&bytes).iter().enumerate() {
        if rank != team.rank() {
            let mut answer = answer.as_slice();
            states[part(n, rank, team.size())].iter_mut().for_each(|state| state.unpack(&mut answer));
        }
    }
}
