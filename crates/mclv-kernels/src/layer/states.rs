//! Hold states of one layer: by row, as callers have them, or by unit, as outer products read them.

use crate::Isa;
use crate::arch::Simd;
use crate::bits::words_for;
use crate::isa::kernels;

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

/// States most of whose units are zero: bits mark the others.
#[derive(Clone, Copy, Debug)]
pub struct SparseStates<'a> {
    /// The units that are not zero, `words_for(n)` words per row.
    pub words: &'a [u64],
    /// A value for each marked unit: row after row, in rising order of units.
    pub values: &'a [f32],
}

impl States<'_> {
    pub(super) fn n_rows(self, n_units: usize) -> usize {
        let (len, per_row) = match self {
            Self::Bits(words) | Self::Sparse(SparseStates { words, .. }) => (words.len(), words_for(n_units)),
            Self::Reals(values) => (values.len(), n_units),
        };
        assert!(per_row > 0 && len.is_multiple_of(per_row), "{len} elements in rows of {per_row}");
        len / per_row
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
    /// Bits tell where a unit is not zero. Values stay in the order of states.
    Sparse {
        words: Vec<u64>,
        values: Vec<f32>,
        /// Where the values of each state begin in each word of 64 units, word after word.
        starts: Vec<u32>,
    },
}

impl Columns {
    /// Transposes states of `n_units` units.
    ///
    /// # Panics
    /// If `states` is not a whole number of rows.
    pub fn new(isa: Isa, n_units: usize, states: States<'_>) -> Self {
        columns(isa, n_units, states)
    }

    /// The number of units.
    pub fn n_units(&self) -> usize {
        self.n_units
    }

    /// The number of states.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the bits and the values, for sending elsewhere: bits alone, values alone, or the
    /// bits of units that are not zero with their values.
    pub fn parts(&self) -> (Option<&[u64]>, Option<&[f32]>) {
        match &self.kind {
            ColumnKind::Bits(words) => (Some(words), None),
            ColumnKind::Reals(values) => (None, Some(values)),
            ColumnKind::Sparse { words, values, .. } => (Some(words), Some(values)),
        }
    }

    /// Creates columns from the parts that [`parts`](Self::parts) returned.
    ///
    /// # Panics
    /// If there are no parts, or if the number of words or values does not fit.
    pub fn from_parts(n_rows: usize, n_units: usize, parts: (Option<Vec<u64>>, Option<Vec<f32>>)) -> Self {
        let n_words = n_units * words_for(n_rows);
        let kind = match parts {
            (Some(words), None) => {
                assert_eq!(words.len(), n_words, "words of {n_rows} states of {n_units} units");
                ColumnKind::Bits(words)
            }
            (None, Some(values)) => {
                assert_eq!(values.len(), n_units * n_rows, "values of {n_rows} states of {n_units} units");
                ColumnKind::Reals(values)
            }
            (Some(words), Some(values)) => {
                assert_eq!(words.len(), n_words, "words of {n_rows} states of {n_units} units");
                let starts = starts(&transpose_bits(&words, n_units, n_rows), n_rows, values.len());
                ColumnKind::Sparse { words, values, starts }
            }
            (None, None) => panic!("columns have bits or values"),
        };
        Self { n_rows, n_units, kind }
    }
}

kernels! {
    fn columns(n_units: usize, states: States<'_>) -> Columns = columns_generic;
}

#[inline(always)]
fn columns_generic<S: Simd>(n_units: usize, states: States<'_>) -> Columns {
    let n_rows = states.n_rows(n_units);
    let kind = match states {
        States::Bits(words) => ColumnKind::Bits(transpose_bits(words, n_rows, n_units)),
        States::Reals(values) => ColumnKind::Reals(transpose_reals(values, n_rows, n_units)),
        States::Sparse(SparseStates { words, values }) => ColumnKind::Sparse {
            words: transpose_bits(words, n_rows, n_units),
            values: values.into(),
            starts: starts(words, n_rows, values.len()),
        },
    };
    Columns { n_rows, n_units, kind }
}

/// Returns where the values of each state begin in each word of 64 units, word after word.
#[inline(always)]
fn starts(words: &[u64], n_rows: usize, n_values: usize) -> Vec<u32> {
    let per_row = words.len() / n_rows.max(1);
    let mut starts = vec![0; words.len()];
    let mut n = 0;
    for (row, words) in words.chunks_exact(per_row.max(1)).enumerate() {
        for (k, word) in words.iter().enumerate() {
            starts[k * n_rows + row] = n;
            n += word.count_ones();
        }
    }
    assert_eq!(n as usize, n_values, "a value for each marked unit");
    starts
}

/// Transposes row-major values to column-major ones, in blocks that stay in cache.
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
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
