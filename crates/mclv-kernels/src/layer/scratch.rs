//! Hold the memory that the kernels of a layer reuse, and the lists of non-zero units in it.

use super::States;
use super::draws::TileDraws;
use crate::arch::Simd;
use crate::bits::words_for;
use crate::tiles::Cell;

/// Reusable memory: the non-zero units of each state, and random numbers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The end of each state's list; for bits, the end of the list of each word.
    pub(super) ends: Vec<usize>,
    pub(super) n_words: usize,
    /// Sums that are not complete yet.
    pub(super) partial: Vec<Cell>,
    pub(super) index: Vec<u32>,
    /// The values that belong to `index` for real states. Not used for bits.
    pub(super) value: Vec<f32>,
    pub(super) kind: ListKind,
    pub(super) tile_draws: TileDraws,
    /// Products of four exponentials, for each of the sixteen ways to choose among them.
    pub(super) table: Vec<Cell>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum ListKind {
    /// `index` names the ones.
    #[default]
    Ones,
    /// `index` and `value` name the non-zeros.
    Sparse,
    /// `value` has every unit.
    Dense,
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

/// One state, in the form in which kernels add it up.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    Ones(&'a [u32]),
    Sparse(&'a [u32], &'a [f32]),
    Dense(&'a [f32]),
}

thread_local! {
    static SPARE: std::cell::Cell<Scratch> = std::cell::Cell::default();
}

impl Scratch {
    /// Borrows the memory of this thread, so that one call reuses what another has allocated.
    pub fn of_thread() -> ThreadScratch {
        ThreadScratch(SPARE.take())
    }

    /// Lists states of `n_units` units, for `n_out` sums.
    #[inline(always)]
    pub(super) fn list<S: Simd>(&mut self, states: States<'_>, n_units: usize, n_out: usize) {
        self.ends.clear();
        match states {
            States::Bits(words) => {
                self.kind = ListKind::Ones;
                self.n_words = words_for(n_units);
                // A word's list is written in whole registers, past its end, and cut there.
                let most = words.iter().map(|w| w.count_ones() as usize).sum::<usize>() + 64;
                if self.index.len() < most {
                    self.index.resize(most, 0);
                }
                let mut n = 0;
                for row in words.chunks_exact(words_for(n_units)) {
                    for (k, &word) in row.iter().enumerate() {
                        n += S::list_ones(word, k as u32 * 64, &mut self.index[n..]);
                        self.ends.push(n);
                    }
                }
            }
            States::Reals(values) => self.list_reals(values, n_units, n_out),
            States::Sparse(states) => {
                self.list_sparse(states.ends.iter().copied(), states.units, states.values, n_units);
            }
        }
    }

    #[inline(always)]
    fn list_reals(&mut self, values: &[f32], n_units: usize, n_out: usize) {
        let n_zeros: usize = values.iter().map(|&x| usize::from(x == 0.0)).sum();
        // Listing an element takes about as long as adding it to 64 sums. Zeros change no sum, so
        // the choice is free.
        if n_zeros * n_out < 64 * values.len() {
            self.kind = ListKind::Dense;
            self.value.clear();
            self.value.extend_from_slice(values);
            self.ends.extend((1..=values.len() / n_units).map(|r| r * n_units));
            return;
        }
        self.kind = ListKind::Sparse;
        let most = values.len() - n_zeros + 1;
        if self.index.len() < most {
            self.index.resize(most, 0);
        }
        if self.value.len() < most {
            self.value.resize(most, 0.0);
        }
        self.n_words = words_for(n_units);
        let mut n = 0;
        for row in values.chunks_exact(n_units) {
            for (word, part) in row.chunks(64).enumerate() {
                for (i, &x) in (64 * word as u32..).zip(part) {
                    // The value is always written, but kept only if it is not zero: there is no
                    // branch to mispredict.
                    self.index[n] = i;
                    self.value[n] = x;
                    n += usize::from(x != 0.0);
                }
                self.ends.push(n);
            }
        }
    }

    /// Takes over lists that exist already: the end of each state's list, the units and their
    /// values.
    #[inline(always)]
    pub(super) fn list_sparse(
        &mut self,
        row_ends: impl ExactSizeIterator<Item = usize>,
        units: &[u32],
        values: &[f32],
        n_units: usize,
    ) {
        self.kind = ListKind::Sparse;
        self.n_words = words_for(n_units);
        self.ends.clear();
        self.index.clear();
        self.index.extend_from_slice(units);
        self.value.clear();
        self.value.extend_from_slice(values);
        if self.n_words == 1 {
            return self.ends.extend(row_ends);
        }
        let mut first = 0;
        for end in row_ends {
            let mut at = first;
            for last in (64u32..).step_by(64).take(self.n_words) {
                while at < end && units[at] < last {
                    at += 1;
                }
                self.ends.push(at);
            }
            first = end;
        }
    }

    /// Returns the lists, one per row.
    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = List<'_>> {
        let mut from = 0;
        let step = if self.kind == ListKind::Dense { 1 } else { self.n_words };
        self.ends.iter().skip(step - 1).step_by(step).map(move |&to| {
            let range = std::mem::replace(&mut from, to)..to;
            match self.kind {
                ListKind::Ones => List::Ones(&self.index[range]),
                ListKind::Sparse => List::Sparse(&self.index[range.clone()], &self.value[range]),
                ListKind::Dense => List::Dense(&self.value[range]),
            }
        })
    }
}
