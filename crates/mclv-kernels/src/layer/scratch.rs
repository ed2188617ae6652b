//! Hold the memory that the kernels of a layer reuse, and the lists of non-zero units in it.

use super::draws::TileDraws;
use super::{SparseStates, States};
use crate::arch::Simd;
use crate::bits::words_for;
use crate::tiles::Cell;
use std::ops::Range;

/// Reusable memory: the non-zero units of each state, and random numbers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(super) lists: ListMemory,
    /// Sums that are not complete yet.
    pub(super) partial: Vec<Cell>,
    pub(super) tile_draws: TileDraws,
    /// Products of four exponentials, for each of the sixteen ways to choose among them.
    pub(super) table: Vec<Cell>,
}

/// Memory for lists that callers do not have.
#[derive(Clone, Debug, Default)]
pub(super) struct ListMemory {
    /// The end of the list of each word of 64 units of each state.
    word_ends: Vec<usize>,
    index: Vec<u32>,
    /// The values that belong to `index` for real states. Not used for bits.
    value: Vec<f32>,
}

/// The non-zero units of each state, in [`ListMemory`] or where the caller has them.
#[derive(Clone, Copy)]
pub(super) struct Lists<'a> {
    pub(super) kind: ListKind,
    pub(super) n_rows: usize,
    pub(super) n_units: usize,
    /// The number of words of 64 units.
    pub(super) n_words: usize,
    /// Where the list of each state begins and ends. With `None`, lists follow each other, and
    /// `word_ends` tells.
    spans: Option<&'a [[usize; 2]]>,
    word_ends: &'a [usize],
    index: &'a [u32],
    pub(super) value: &'a [f32],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ListKind {
    /// `index` names the ones.
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
}

impl ListMemory {
    /// Lists states of `n_units` units, for `n_out` sums. [`Lists::part`] may be used only with
    /// `by_word`.
    #[inline(always)]
    pub(super) fn list<'a, S: Simd>(
        &'a mut self,
        states: States<'a>,
        n_units: usize,
        n_out: usize,
        by_word: bool,
    ) -> Lists<'a> {
        let n_rows = states.n_rows(n_units);
        self.word_ends.clear();
        let (kind, spans) = match states {
            States::Bits(words) => {
                self.list_bits::<S>(words, n_units);
                (ListKind::Ones, None)
            }
            States::Reals(values) => {
                let n_zeros: usize = values.iter().map(|&x| usize::from(x == 0.0)).sum();
                // Listing an element takes about as long as adding it to 64 sums. Zeros change no
                // sum, so the choice is free.
                if n_zeros * n_out < 64 * values.len() {
                    (ListKind::Dense, None)
                } else {
                    self.list_reals(values, n_units, values.len() - n_zeros);
                    (ListKind::Sparse, None)
                }
            }
            States::Sparse(states) => {
                if by_word && n_units > 64 {
                    self.divide(states, words_for(n_units));
                }
                (ListKind::Sparse, Some(states.spans))
            }
        };
        let (index, value): (&[u32], &[f32]) = match states {
            States::Sparse(states) => (states.units, states.values),
            States::Reals(values) if kind == ListKind::Dense => (&[], values),
            _ => (&self.index, &self.value),
        };
        let n_words = words_for(n_units);
        Lists { kind, n_rows, n_units, n_words, spans, word_ends: &self.word_ends, index, value }
    }

    #[inline(always)]
    fn list_bits<S: Simd>(&mut self, words: &[u64], n_units: usize) {
        // A word's list is written in whole registers, past its end, and cut there.
        let most = words.iter().map(|w| w.count_ones() as usize).sum::<usize>() + 64;
        if self.index.len() < most {
            self.index.resize(most, 0);
        }
        let mut n = 0;
        for row in words.chunks_exact(words_for(n_units)) {
            for (k, &word) in row.iter().enumerate() {
                n += S::list_ones(word, k as u32 * 64, &mut self.index[n..]);
                self.word_ends.push(n);
            }
        }
    }

    #[inline(always)]
    fn list_reals(&mut self, values: &[f32], n_units: usize, n_entries: usize) {
        let most = n_entries + 1;
        if self.index.len() < most {
            self.index.resize(most, 0);
        }
        if self.value.len() < most {
            self.value.resize(most, 0.0);
        }
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
                self.word_ends.push(n);
            }
        }
    }

    /// Finds where each word of each state ends.
    #[inline(always)]
    fn divide(&mut self, states: SparseStates<'_>, n_words: usize) {
        for &[mut at, end] in states.spans {
            for last in (64u32..).step_by(64).take(n_words) {
                while at < end && states.units[at] < last {
                    at += 1;
                }
                self.word_ends.push(at);
            }
        }
    }
}

impl<'a> Lists<'a> {
    /// Returns the list of a state.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> List<'a> {
        match (self.kind, self.spans) {
            (ListKind::Dense, _) => List::Dense(&self.value[row * self.n_units..(row + 1) * self.n_units]),
            (_, Some(spans)) => self.entries(spans[row][0], spans[row][1]),
            (_, None) => {
                let from = if row == 0 { 0 } else { self.word_ends[row * self.n_words - 1] };
                self.entries(from, self.word_ends[(row + 1) * self.n_words - 1])
            }
        }
    }

    /// Returns the part of a state's list that belongs to some of its words.
    #[inline(always)]
    pub(super) fn part(&self, row: usize, words: Range<usize>) -> List<'a> {
        if words == (0..self.n_words) {
            return self.row(row);
        }
        let first = row * self.n_words + words.start;
        let from = match self.spans {
            Some(spans) if words.start == 0 => spans[row][0],
            _ if first == 0 => 0,
            _ => self.word_ends[first - 1],
        };
        self.entries(from, self.word_ends[row * self.n_words + words.end - 1])
    }

    #[inline(always)]
    fn entries(&self, from: usize, to: usize) -> List<'a> {
        match self.kind {
            ListKind::Ones => List::Ones(&self.index[from..to]),
            _ => List::Sparse(&self.index[from..to], &self.value[from..to]),
        }
    }

    /// Returns the lists, one per row.
    #[inline(always)]
    pub(super) fn rows(self) -> impl Iterator<Item = List<'a>> {
        (0..self.n_rows).map(move |row| self.row(row))
    }
}
