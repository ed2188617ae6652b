//! Share work between several processes.
//!
//! All ranks of a team run the same program on the same data with the same seed. If work is cut
//! into blocks, each rank does a contiguous share of them, and then all ranks exchange the results,
//! in order of blocks. Everything else is done by every rank for itself. So no result can depend on
//! the number of ranks. Actions that must happen once (writing files, printing) are left to the
//! first rank.
//!
//! A team belongs to the thread that has [entered](enter) it: work handed to other threads, and
//! work within a share, is done alone. Ranks must make the same exchanges in the same order. Work
//! that only one rank does goes into [`alone`], and decisions by the clock or by a signal are
//! agreed upon first. Settings, models and data are compared before they are used ([`agree`()]).

mod agree;
mod blocks;
mod parcel;

pub use agree::{Facts, agree};
pub(crate) use blocks::{Exchange, change_blocks, map_blocks, try_blocks, try_blocks_with};
pub(crate) use parcel::{Parcel, parcel};

use crate::{Error, Result};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The connection between ranks, for example MPI.
pub trait Team: Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// The number of ranks.
    fn size(&self) -> usize;
    /// Sends bytes to all ranks and returns those of all ranks, in order of rank.
    fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>>;
}

thread_local! {
    static TEAM: RefCell<Option<Arc<dyn Team>>> = const { RefCell::new(None) };
}

/// Runs `work` as a member of `team`.
pub fn enter<R>(team: Arc<dyn Team>, work: impl FnOnce() -> R) -> R {
    with(Some(team), work)
}

/// Runs `work` without the other ranks, which do not do the same now.
pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    with(None, work)
}

/// Returns true if this is the first rank, which writes files and prints. It is always true without
/// a team.
pub fn is_first() -> bool {
    rank() == 0
}

/// The number of this rank; 0 without a team.
pub fn rank() -> usize {
    current().map_or(0, |team| team.rank())
}

/// The number of ranks that share the work; 1 without a team.
pub fn size() -> usize {
    current().map_or(1, |team| team.size())
}

/// Returns the first error of any rank, on all ranks, so that none continues without the others.
///
/// # Errors
/// If any rank passes an error.
pub fn together<T>(mine: Result<T>) -> Result<T> {
    let Some(team) = current() else { return mine };
    let answers = team.gather(&Message::<u8>::of(&mine.as_ref().map(|_| Vec::new())).0);
    let failed = first_error(&answers);
    // The rank that failed returns its own error.
    mine.and_then(|value| failed.map_or(Ok(value), Err))
}

/// Returns the team of this thread, to pass to [`with`] if work continues in another thread.
pub(crate) fn current() -> Option<Arc<dyn Team>> {
    TEAM.with_borrow(Clone::clone)
}

/// Runs `work` as a member of this team, or of none.
pub(crate) fn with<R>(team: Option<Arc<dyn Team>>, work: impl FnOnce() -> R) -> R {
    struct Back(Option<Arc<dyn Team>>);
    impl Drop for Back {
        fn drop(&mut self) {
            TEAM.set(self.0.take());
        }
    }
    let _back = Back(TEAM.replace(team));
    work()
}

/// Returns the results of all `n` blocks, in order. `work(range)` returns those of a range of
/// blocks, and each rank does one range.
///
/// # Errors
/// If the work of any rank fails.
pub(crate) fn share<T: Parcel>(
    n: usize,
    work: impl FnOnce(Range<usize>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let Some(team) = current() else { return work(0..n) };
    let mine = alone(|| work(part(n, team.rank(), team.size())));
    let answers = team.gather(&Message::of(&mine.as_ref().map(Vec::as_slice)).0);
    if let Some(error) = first_error(&answers) {
        return Err(mine.err().unwrap_or(error));
    }
    let mut mine = mine.ok();
    let mut all = Vec::new();
    for (rank, answer) in answers.iter().enumerate() {
        match mine.take_if(|_| rank == team.rank()) {
            Some(own) => all.extend(own),
            None => all.extend(Vec::<T>::unpack(&mut &answer[1..])),
        }
    }
    Ok(all)
}

/// Does the work of [`share`] for work that cannot fail.
#[cfg(test)]
pub(crate) fn share_all<T: Parcel>(n: usize, work: impl FnOnce(Range<usize>) -> Vec<T>) -> Vec<T> {
    share(n, |range| Ok(work(range))).expect("no rank can fail here")
}

/// Fills `out` in chunks (the last may be shorter). `work` receives the first chunk's number and a
/// run of whole chunks.
pub(crate) fn fill<T: Parcel + Copy>(out: &mut [T], chunk: usize, work: impl FnOnce(usize, &mut [T])) {
    let n = out.len().div_ceil(chunk.max(1));
    match current() {
        Some(team) if n > 1 => {
            let mine = part(n, team.rank(), team.size());
            let range = mine.start * chunk..out.len().min(mine.end * chunk);
            alone(|| work(mine.start, &mut out[range]));
            exchange(out, chunk, n);
        }
        // One chunk is not worth an exchange.
        Some(_) => alone(|| work(0, out)),
        None => work(0, out),
    }
}

/// Does the work of [`share`] for work that also changes `values` in chunks. `work` receives the
/// same arguments as in [`fill`].
///
/// # Errors
/// If the work of any rank fails.
pub(crate) fn share_changes<T: Parcel + Copy, R: Parcel>(
    values: &mut [T],
    chunk: usize,
    work: impl FnOnce(usize, &mut [T]) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    let (n, len) = (values.len().div_ceil(chunk.max(1)), values.len());
    let results = share(n, |mine| {
        work(mine.start, &mut values[len.min(mine.start * chunk)..len.min(mine.end * chunk)])
    })?;
    exchange(values, chunk, n);
    Ok(results)
}

/// Receives the chunks of `values` that other ranks changed in place, after a share of `n` blocks.
fn exchange<T: Parcel + Copy>(values: &mut [T], chunk: usize, n: usize) {
    let Some(team) = current() else { return };
    let len = values.len();
    let range = |rank: usize| {
        let blocks = part(n, rank, team.size());
        len.min(blocks.start * chunk)..len.min(blocks.end * chunk)
    };
    let mut bytes = Vec::new();
    T::pack_all(&values[range(team.rank())], &mut bytes);
    for (rank, answer) in team.gather(&bytes).iter().enumerate() {
        if rank != team.rank() {
            let range = range(rank);
            values[range.clone()].copy_from_slice(&T::unpack_all(range.len(), &mut answer.as_slice()));
        }
    }
}

/// Returns true if any rank passes true.
pub(crate) fn any(mine: bool) -> bool {
    current().map_or(mine, |team| team.gather(&[u8::from(mine)]).concat().contains(&1))
}

/// Returns the value of the first rank, for decisions that depend on a clock.
pub(crate) fn of_first<T: Parcel>(mine: T) -> T {
    let Some(team) = current() else { return mine };
    let mut bytes = Vec::new();
    if team.rank() == 0 {
        mine.pack(&mut bytes);
    }
    T::unpack(&mut team.gather(&bytes)[0].as_slice())
}

/// Returns the blocks of one rank.
pub(crate) fn part(n: usize, rank: usize, size: usize) -> Range<usize> {
    n * rank / size..n * (rank + 1) / size
}

/// The message of a rank: its success or failure, and its results.
struct Message<T>(Vec<u8>, std::marker::PhantomData<T>);

const FINE: u8 = 0;
const CANCELLED: u8 = 1;
const FAILED: u8 = 2;

impl<T: Parcel> Message<T> {
    fn of<V: AsRef<[T]>>(mine: &Result<V, &Error>) -> Self {
        let mut bytes = Vec::new();
        match mine {
            Ok(values) => {
                bytes.push(FINE);
                (values.as_ref().len() as u64).pack(&mut bytes);
                T::pack_all(values.as_ref(), &mut bytes);
            }
            Err(Error::Cancelled) => bytes.push(CANCELLED),
            Err(error) => {
                bytes.push(FAILED);
                bytes.extend(error.to_string().as_bytes());
            }
        }
        Self(bytes, std::marker::PhantomData)
    }
}

fn first_error(answers: &[Vec<u8>]) -> Option<Error> {
    answers.iter().enumerate().find_map(|(rank, answer)| match answer[0] {
        FINE => None,
        CANCELLED => Some(Error::Cancelled),
        _ => Some(Error::OtherRank { rank, problem: String::from_utf8_lossy(&answer[1..]).into_owned() }),
    })
}

#[cfg(test)]
pub(crate) mod tests;
