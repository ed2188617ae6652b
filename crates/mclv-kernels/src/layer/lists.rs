//! List the non-zero units of each state, in the order in which kernels add them up.

use super::States;
use crate::arch::Simd;
use crate::bits::words_for;
use std::ops::Range;

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
    /// The end of the list of each word of 64 units of each state.
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

/// One state, in the form in which kernels add it up.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    Ones(&'a [u32]),
    Sparse(&'a [u32], &'a [f32]),
    Dense(&'a [f32]),
}

impl ListMemory {
    /// Lists states of `n_units` units, for `n_out` sums.
    #[inline(always)]
    pub(super) fn list<'a, S: Simd>(
        &'a mut self,
        states: States<'a>,
        n_units: usize,
        n_out: usize,
    ) -> Lists<'a> {
        let n_rows = states.n_rows(n_units);
        self.word_ends.clear();
        let kind = match states {
            States::Bits(words) => {
                self.list_bits::<S>(words, n_units);
                ListKind::Ones
            }
            States::Reals(values) => {
                let n_zeros: usize = values.iter().map(|&x| usize::from(x == 0.0)).sum();
                // Listing an element takes about as long as adding it to 64 sums. Zeros change no
                // sum, so the choice is free.
                if n_zeros * n_out < 64 * values.len() {
                    ListKind::Dense
                } else {
                    self.list_reals(values, n_units, values.len() - n_zeros);
                    ListKind::Sparse
                }
            }
            States::Sparse(states) => {
                let n = self.list_bits::<S>(states.words, n_units);
                assert_eq!(n, states.values.len(), "a value for each marked unit");
                ListKind::Sparse
            }
        };
        let (index, value): (&[u32], &[f32]) = match states {
            States::Reals(values) if kind == ListKind::Dense => (&[], values),
            States::Sparse(states) => (&self.index, states.values),
            _ => (&self.index, &self.value),
        };
        let n_words = words_for(n_units);
        Lists { kind, n_rows, n_units, n_words, word_ends: &self.word_ends, index, value }
    }

    /// Returns room for `n` units and their values, for [`of_values`](Self::of_values).
    #[inline(always)]
    pub(super) fn room_for(&mut self, n: usize) -> (&mut [u32], &mut [f32]) {
        if self.index.len() < n {
            self.index.resize(n, 0);
        }
        if self.value.len() < n {
            self.value.resize(n, 0.0);
        }
        (&mut self.index[..n], &mut self.value[..n])
    }

    /// Returns the lists that were written into [`room_for`](Self::room_for) and end at `ends`.
    #[inline(always)]
    pub(super) fn of_values<'a>(&'a self, ends: &'a [usize], n_units: usize) -> Lists<'a> {
        let (index, value) = (&self.index, &self.value);
        Lists {
            kind: ListKind::Sparse,
            n_rows: ends.len(),
            n_units,
            n_words: 1,
            word_ends: ends,
            index,
            value,
        }
    }

    /// Lists the ones, and returns their number.
    #[inline(always)]
    fn list_bits<S: Simd>(&mut self, words: &[u64], n_units: usize) -> usize {
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
        n
    }

    /// Lists the values that are not zero.
    #[inline(always)]
    fn list_reals(&mut self, values: &[f32], n_units: usize, n_entries: usize) {
        self.room_for(n_entries + 1);
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
}

impl<'a> Lists<'a> {
    /// Returns the list of a state.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> List<'a> {
        let words = 0..self.n_words;
        match self.kind {
            ListKind::Ones => List::Ones(self.ones(row, words)),
            ListKind::Sparse => {
                let (index, value) = self.entries(row, words);
                List::Sparse(index, value)
            }
            ListKind::Dense => List::Dense(&self.value[row * self.n_units..(row + 1) * self.n_units]),
        }
    }

    /// Returns the part of a state's list of ones that belongs to some of its words.
    #[inline(always)]
    pub(super) fn ones(&self, row: usize, words: Range<usize>) -> &'a [u32] {
        &self.index[self.part(row, words)]
    }

    /// Returns the part of a state's list of units and values that belongs to some of its words.
    #[inline(always)]
    pub(super) fn entries(&self, row: usize, words: Range<usize>) -> (&'a [u32], &'a [f32]) {
        let part = self.part(row, words);
        (&self.index[part.clone()], &self.value[part])
    }

    #[inline(always)]
    fn part(&self, row: usize, words: Range<usize>) -> Range<usize> {
        let first = row * self.n_words + words.start;
        let from = if first == 0 { 0 } else { self.word_ends[first - 1] };
        from..self.word_ends[row * self.n_words + words.end - 1]
    }

    /// Returns the lists, one per row.
    #[inline(always)]
    pub(super) fn rows(self) -> impl Iterator<Item = List<'a>> {
        (0..self.n_rows).map(move |row| self.row(row))
    }
}
