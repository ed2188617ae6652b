//! Sum the rows of a tile that bits mark: the outer products of bits and of sparse values.

use super::lists::{ListMemory, Lists};
use super::sums::{Sink, add_one, add_row};
use crate::arch::{Lanes, Simd};
use crate::tiles::Cell;
use std::ops::Range;

/// Reusable memory of [`Marked`].
#[derive(Clone, Debug, Default)]
pub(super) struct MarkedMemory {
    order: Vec<u32>,
    totals: Vec<f32>,
    /// The place of the next value of each state.
    next: Vec<u32>,
    ends: Vec<usize>,
}

/// Some units, with bits that mark the states in which each unit is 1.
#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    /// `per_unit` words for each unit.
    words: &'a [u64],
    per_unit: usize,
    /// The order in which units are taken.
    order: &'a [u32],
    /// The sum of each unit over the states.
    pub(super) totals: &'a [f32],
}

/// Bits of all units of some states, and the units of interest.
#[derive(Clone)]
pub(super) struct Marks<'a> {
    /// `per_unit` words for each unit.
    pub(super) words: &'a [u64],
    pub(super) per_unit: usize,
    pub(super) units: Range<usize>,
}

impl<'a> Marks<'a> {
    /// The words of the units of interest, from unit `first` on.
    #[inline(always)]
    fn words_from(&self, first: usize) -> &'a [u64] {
        &self.words[first * self.per_unit..self.units.end * self.per_unit]
    }
}

/// The values of marked units, in the order of states.
#[derive(Clone, Copy)]
pub(super) struct ByState<'a> {
    pub(super) values: &'a [f32],
    /// Where the values of each state begin in each word of 64 units, word after word.
    pub(super) starts: &'a [u32],
    pub(super) n_states: usize,
}

impl MarkedMemory {
    /// Prepares units whose values are all 1.
    #[inline(always)]
    pub(super) fn bits<'a>(&'a mut self, marks: &Marks<'a>) -> Marked<'a> {
        let (words, per_unit) = (marks.words_from(marks.units.start), marks.per_unit);
        self.totals.clear();
        self.totals.extend(words.chunks_exact(per_unit).map(|column| n_ones(column) as f32));
        self.sort(words, per_unit);
        let Self { order, totals, .. } = self;
        Marked { words, per_unit, order, totals }
    }

    /// Lists the states and values of each unit. Also returns the sum of each unit over the states.
    #[inline(always)]
    pub(super) fn collect<'a>(
        &'a mut self,
        marks: &Marks<'_>,
        states: ByState<'_>,
        lists: &'a mut ListMemory,
    ) -> (Lists<'a>, &'a [f32]) {
        let words = self.begin(marks, states);
        let (index, value) = lists.room_for(n_ones(words));
        let (next, mut n) = (&mut self.next[..], 0);
        self.totals.clear();
        self.ends.clear();
        for column in words.chunks_exact(marks.per_unit) {
            let mut total = 0.0;
            each_state(column, |state| {
                index[n] = state as u32;
                value[n] = take_value(states.values, &mut next[state]);
                total += value[n];
                n += 1;
            });
            self.totals.push(total);
            self.ends.push(n);
        }
        (lists.of_values(&self.ends, states.n_states), &self.totals)
    }

    /// Gives `sink` the sum of the marked rows of a tile for each unit, multiplied by the values of
    /// the unit. For a single tile, this is faster than lists. Returns the sum of each unit over the
    /// states.
    #[inline(always)]
    pub(super) fn add_tile_by_state<S: Simd, K: Sink<S>>(
        &mut self,
        marks: &Marks<'_>,
        states: ByState<'_>,
        tile: (usize, &[Cell]),
        sink: &mut K,
    ) -> &[f32] {
        let mut offset = 0;
        while offset < tile.0 {
            let words = self.begin(marks, states);
            let columns = words.chunks_exact(marks.per_unit);
            offset += match tile.0 - offset {
                8.. => self.add_piece::<S, K, 8>(columns, states.values, tile, offset, sink),
                4.. => self.add_piece::<S, K, 4>(columns, states.values, tile, offset, sink),
                2.. => self.add_piece::<S, K, 2>(columns, states.values, tile, offset, sink),
                _ => self.add_piece::<S, K, 1>(columns, states.values, tile, offset, sink),
            };
        }
        &self.totals
    }

    #[inline(always)]
    fn add_piece<'a, S: Simd, K: Sink<S>, const V: usize>(
        &mut self,
        columns: impl Iterator<Item = &'a [u64]>,
        values: &[f32],
        (width, tile): (usize, &[Cell]),
        offset: usize,
        sink: &mut K,
    ) -> usize {
        self.totals.clear();
        let next = &mut self.next[..];
        for (unit, column) in columns.enumerate() {
            let (mut acc, mut total) = ([S::F32::splat(0.0); V], 0.0);
            each_state(column, |state| {
                let value = take_value(values, &mut next[state]);
                total += value;
                add_row::<S, V>(&mut acc, value, row_of(tile, width, offset, state));
            });
            self.totals.push(total);
            sink.put(acc, unit, 0, offset);
        }
        V
    }

    /// Finds where the values of the first unit of interest are in each state. Returns the words of
    /// the units of interest.
    #[inline(always)]
    fn begin<'a>(&mut self, marks: &Marks<'a>, states: ByState<'_>) -> &'a [u64] {
        let word = marks.units.start / 64;
        self.next.clear();
        self.next.extend_from_slice(&states.starts[word * states.n_states..][..states.n_states]);
        // Values of units before the first are passed over.
        let n_before = (marks.units.start - 64 * word) * marks.per_unit;
        let (before, words) = marks.words_from(64 * word).split_at(n_before);
        for column in before.chunks_exact(marks.per_unit) {
            each_state(column, |state| self.next[state] += 1);
        }
        words
    }

    /// Puts units in the order of their numbers of ones, so that the CPU foresees the ends of loops
    /// over ones.
    #[inline(always)]
    fn sort(&mut self, words: &[u64], per_unit: usize) {
        // More than 64 ones count as 64: the order need not be exact.
        let count = |column: &[u64]| n_ones(column).min(64);
        let columns = || words.chunks_exact(per_unit);
        let mut ends = [0; 66];
        columns().for_each(|column| ends[count(column) + 1] += 1);
        for n in 1..ends.len() {
            ends[n] += ends[n - 1];
        }
        self.order.resize(columns().len(), 0);
        for (unit, column) in (0..).zip(columns()) {
            let at = &mut ends[count(column)];
            self.order[*at] = unit;
            *at += 1;
        }
    }
}

impl Marked<'_> {
    /// Gives `sink` the sum of the marked rows of a tile for each unit.
    #[inline(always)]
    pub(super) fn add_tile<S: Simd, K: Sink<S>>(self, tile: (usize, &[Cell]), sink: &mut K) {
        let mut offset = 0;
        while offset < tile.0 {
            offset += match tile.0 - offset {
                8.. => self.add_piece::<S, K, 8>(tile, offset, sink),
                4.. => self.add_piece::<S, K, 4>(tile, offset, sink),
                2.. => self.add_piece::<S, K, 2>(tile, offset, sink),
                _ => self.add_piece::<S, K, 1>(tile, offset, sink),
            };
        }
    }

    #[inline(always)]
    fn add_piece<S: Simd, K: Sink<S>, const V: usize>(
        self,
        (width, tile): (usize, &[Cell]),
        offset: usize,
        sink: &mut K,
    ) -> usize {
        for &unit in self.order {
            let unit = unit as usize;
            let mut acc = [S::F32::splat(0.0); V];
            each_state(&self.words[unit * self.per_unit..][..self.per_unit], |state| {
                add_one::<S, V>(&mut acc, row_of(tile, width, offset, state));
            });
            sink.put(acc, unit, 0, offset);
        }
        V
    }
}

/// Returns a part of a row of a tile.
#[inline(always)]
fn row_of<const V: usize>(tile: &[Cell], width: usize, offset: usize, row: usize) -> &[Cell; V] {
    if width == V {
        // This is the usual case: rows are whole chunks, with one bounds check each.
        &tile.as_chunks::<V>().0[row]
    } else {
        tile[row * width + offset..].first_chunk().expect("a row of the tile")
    }
}

#[inline(always)]
fn take_value(values: &[f32], at: &mut u32) -> f32 {
    let value = values[*at as usize];
    *at += 1;
    value
}

/// The number of ones.
#[inline(always)]
fn n_ones(words: &[u64]) -> usize {
    words.iter().map(|w| w.count_ones() as usize).sum()
}

/// Calls `f` with each state that is marked in the words of a unit, in rising order.
#[inline(always)]
fn each_state(column: &[u64], mut f: impl FnMut(usize)) {
    for (first, &word) in (0..).step_by(64).zip(column) {
        let mut word = word;
        while word != 0 {
            f(first + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}
