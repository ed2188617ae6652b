//! Hold states of one layer: by row, as callers have them, or by unit, as outer products read them.

use super::scratch::{ListMemory, Lists};
use crate::arch::Simd;
use crate::bits::words_for;

/// The states of one layer, row after row.
#[derive(Clone, Copy, Debug)]
pub enum States<'a> {
    /// Packed bits, `words_for(n)` words per row.
    Bits(&'a [u64]),
    /// Real values, `n` per row.
    Reals(&'a [f32]),
    /// Real values of which most are zero.
    Sparse(SparseStates<'a>),
}

/// The non-zero units of each state, and their values.
#[derive(Clone, Copy, Debug)]
pub struct SparseStates<'a> {
    /// Where the list of each state begins in `units` and `values`, and where it ends.
    pub spans: &'a [[usize; 2]],
    /// The units of the lists, in rising order within a list.
    pub units: &'a [u32],
    /// The value of each of `units`.
    pub values: &'a [f32],
}

impl States<'_> {
    pub(super) fn n_rows(self, n_units: usize) -> usize {
        let (len, per_row) = match self {
            Self::Bits(words) => (words.len(), words_for(n_units)),
            Self::Reals(values) => (values.len(), n_units),
            Self::Sparse(states) => {
                states.check();
                return states.spans.len();
            }
        };
        assert!(per_row > 0 && len.is_multiple_of(per_row), "{len} elements in rows of {per_row}");
        len / per_row
    }
}

impl SparseStates<'_> {
    fn check(self) {
        let n = self.units.len();
        assert_eq!(self.values.len(), n, "a value for each entry");
        assert!(self.spans.iter().all(|&[from, to]| from <= to && to <= n), "spans of {n} entries");
    }
}

/// States by unit instead of by row: for each unit, the states in which it is not zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub(super) n_rows: usize,
    n_units: usize,
    pub(super) kind: ColumnKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKind {
    /// Packed, `words_for(n_rows)` words per unit.
    Bits(Vec<u64>),
    /// `n_rows` values per unit.
    Reals(Vec<f32>),
    /// The states in which each unit is not zero, and its values there.
    Sparse { spans: Vec<[usize; 2]>, rows: Vec<u32>, values: Vec<f32> },
}

impl Columns {
    /// Transposes states of `n_units` units.
    ///
    /// # Panics
    /// If `states` is not a whole number of rows.
    pub fn new(n_units: usize, states: States<'_>) -> Self {
        let n_rows = states.n_rows(n_units);
        let kind = match states {
            States::Bits(words) => ColumnKind::Bits(transpose_bits(words, n_rows, n_units)),
            States::Reals(values) => ColumnKind::Reals(transpose_reals(values, n_rows, n_units)),
            States::Sparse(states) => transpose_sparse(states, n_units),
        };
        Self { n_rows, n_units, kind }
    }

    /// The number of units.
    pub fn n_units(&self) -> usize {
        self.n_units
    }

    /// The number of states.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the values, unit after unit, for sending elsewhere.
    pub fn values(&self) -> States<'_> {
        match &self.kind {
            ColumnKind::Bits(words) => States::Bits(words),
            ColumnKind::Reals(values) => States::Reals(values),
            ColumnKind::Sparse { spans, rows, values } => {
                States::Sparse(SparseStates { spans, units: rows, values })
            }
        }
    }

    /// Creates columns from the values that [`values`](Self::values) returned.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn from_values(n_rows: usize, n_units: usize, values: States<'_>) -> Self {
        let (expected, got, kind) = match values {
            States::Bits(words) => (n_units * words_for(n_rows), words.len(), ColumnKind::Bits(words.into())),
            States::Reals(values) => (n_units * n_rows, values.len(), ColumnKind::Reals(values.into())),
            States::Sparse(columns) => {
                columns.check();
                let SparseStates { spans, units, values } = columns;
                let kind =
                    ColumnKind::Sparse { spans: spans.into(), rows: units.into(), values: values.into() };
                (n_units, spans.len(), kind)
            }
        };
        assert_eq!(expected, got, "values of {n_rows} states of {n_units} units");
        Self { n_rows, n_units, kind }
    }

    /// Lists the states of each unit of a range.
    #[inline(always)]
    pub(super) fn list<'a, S: Simd>(
        &'a self,
        units: std::ops::Range<usize>,
        n_out: usize,
        memory: &'a mut ListMemory,
    ) -> Lists<'a> {
        assert!(units.end <= self.n_units, "units {units:?} of {}", self.n_units);
        let states = match &self.kind {
            ColumnKind::Bits(words) => {
                let per_unit = words_for(self.n_rows);
                States::Bits(&words[units.start * per_unit..units.end * per_unit])
            }
            ColumnKind::Reals(values) => {
                States::Reals(&values[units.start * self.n_rows..units.end * self.n_rows])
            }
            ColumnKind::Sparse { spans, rows, values } => {
                States::Sparse(SparseStates { spans: &spans[units], units: rows, values })
            }
        };
        memory.list::<S>(states, self.n_rows, n_out, false)
    }
}

/// Lists the states of each unit, in rising order: a counting sort.
fn transpose_sparse(states: SparseStates<'_>, n_units: usize) -> ColumnKind {
    let entries = |&[from, to]: &[usize; 2]| states.units[from..to].iter().zip(&states.values[from..to]);
    let mut spans = vec![[0; 2]; n_units];
    states.spans.iter().flat_map(entries).for_each(|(&unit, _)| spans[unit as usize][1] += 1);
    let mut n = 0;
    for span in &mut spans {
        n += std::mem::replace(&mut span[1], n);
        span[0] = span[1];
    }
    let (mut rows, mut values) = (vec![0; n], vec![0.0; n]);
    for (row, span) in (0u32..).zip(states.spans) {
        for (&unit, &value) in entries(span) {
            let at = &mut spans[unit as usize][1];
            rows[*at] = row;
            values[*at] = value;
            *at += 1;
        }
    }
    ColumnKind::Sparse { spans, rows, values }
}

/// Transposes row-major values to column-major ones, in blocks that stay in cache.
fn transpose_reals(values: &[f32], n_rows: usize, n_columns: usize) -> Vec<f32> {
    const BLOCK: usize = 16;
    let mut out = vec![0.0; values.len()];
    for first_row in (0..n_rows).step_by(BLOCK) {
        let rows = first_row..n_rows.min(first_row + BLOCK);
        for first_column in (0..n_columns).step_by(BLOCK) {
            for c in first_column..n_columns.min(first_column + BLOCK) {
                for r in rows.clone() {
                    out[c * n_rows + r] = values[r * n_columns + c];
                }
            }
        }
    }
    out
}

/// Transposes `n_rows` packed rows of `n_bits` bits to `n_bits` packed rows of `n_rows` bits.
fn transpose_bits(words: &[u64], n_rows: usize, n_bits: usize) -> Vec<u64> {
    let (per_row, per_column) = (words_for(n_bits), words_for(n_rows));
    let mut columns = vec![0; n_bits * per_column];
    for row_block in 0..per_column {
        let rows = row_block * 64..n_rows.min(row_block * 64 + 64);
        for word in 0..per_row {
            let mut block = [0; 64];
            for (b, r) in block.iter_mut().zip(rows.clone()) {
                *b = words[r * per_row + word];
            }
            transpose_64(&mut block);
            for (b, i) in block.iter().zip(word * 64..n_bits) {
                columns[i * per_column + row_block] = *b;
            }
        }
    }
    columns
}

/// Transposes 64 × 64 bits in place by swapping ever smaller off-diagonal blocks.
fn transpose_64(block: &mut [u64; 64]) {
    swap_blocks::<32>(block, 0x0000_0000_ffff_ffff);
    swap_blocks::<16>(block, 0x0000_ffff_0000_ffff);
    swap_blocks::<8>(block, 0x00ff_00ff_00ff_00ff);
    swap_blocks::<4>(block, 0x0f0f_0f0f_0f0f_0f0f);
    swap_blocks::<2>(block, 0x3333_3333_3333_3333);
    swap_blocks::<1>(block, 0x5555_5555_5555_5555);
}

/// Swaps the off-diagonal quarters of all blocks of `2·HALF` on the diagonal. The plain loops over
/// halves are vectorised.
#[inline(always)]
fn swap_blocks<const HALF: usize>(block: &mut [u64; 64], mask: u64) {
    for pair in block.chunks_exact_mut(2 * HALF) {
        let (above, below) = pair.split_at_mut(HALF);
        for (a, b) in above.iter_mut().zip(below) {
            let swap = (*a >> HALF ^ *b) & mask;
            *a ^= swap << HALF;
            *b ^= swap;
        }
    }
}
