//! Hold rows of real values that are mostly zero.

use super::rows::RealRows;
use crate::bits::{BitRows, ones};
use mclv_kernels::prefetch;
use std::ops::Range;

/// Rows of real values, row-major, of which only the non-zero values are stored.
///
/// A bit for each value tells whether it is stored. If there are at most 256 different values, each
/// of them takes one byte.
#[derive(Clone, Debug)]
pub struct SparseRows {
    marks: BitRows,
    /// Where the values of each row begin, and where they end.
    spans: Vec<[usize; 2]>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Reals(Vec<f32>),
    Levels { codes: Vec<u8>, palette: Box<[f32; 256]> },
}

impl SparseRows {
    /// Creates rows from their entries: row `r` has the entries `starts[r] .. starts[r + 1]`, with
    /// increasing columns and their values.
    ///
    /// # Panics
    /// If starts, columns and values do not fit together.
    pub fn new(n_columns: usize, starts: &[usize], columns: &[u32], values: Vec<f32>) -> Self {
        assert_eq!(columns.len(), values.len(), "a column for each value");
        assert_eq!(
            (starts.first(), starts.last()),
            (Some(&0), Some(&values.len())),
            "starts from 0 to the number of values"
        );
        assert!(starts.is_sorted(), "starts must rise");
        let mut marks = BitRows::zeros(starts.len() - 1, n_columns);
        for (r, ends) in starts.windows(2).enumerate() {
            let row = &columns[ends[0]..ends[1]];
            assert!(row.is_sorted_by(|a, b| a < b), "columns must rise within a row");
            assert!(row.last().is_none_or(|&c| (c as usize) < n_columns), "a column beyond {n_columns}");
            row.iter().for_each(|&c| marks.set(r, c as usize, true));
        }
        let spans = starts.windows(2).map(|ends| [ends[0], ends[1]]).collect();
        Self { marks, spans, values: Values::new(values) }
    }

    /// The non-zero values of `rows`.
    pub(super) fn of_reals(rows: &RealRows) -> Self {
        let marks = BitRows::pack(rows.n_columns(), rows.values(), |&x| x != 0.0);
        let values = rows.values().iter().copied().filter(|&x| x != 0.0).collect();
        Self { spans: spans(&marks), marks, values: Values::new(values) }
    }

    /// The non-zero values of rows of bytes. `palette` has the value of each byte.
    pub(super) fn of_bytes(n_columns: usize, bytes: &[u8], palette: [f32; 256]) -> Self {
        let marks = BitRows::pack(n_columns, bytes, |&b| b != 0);
        let codes = bytes.iter().copied().filter(|&b| b != 0).collect();
        Self { spans: spans(&marks), marks, values: Values::Levels { codes, palette: Box::new(palette) } }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.spans.len()
    }

    /// The number of values per row, including zeros.
    pub fn n_columns(&self) -> usize {
        self.marks.n_bits()
    }

    /// Returns the column and value of each entry of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let [from, to] = self.spans[row];
        ones(self.marks.row(row)).zip(self.values.some(from..to))
    }

    /// Bits that mark the entries of each row.
    pub(crate) fn marks(&self) -> &BitRows {
        &self.marks
    }

    /// Asks the CPU for the values of a row.
    pub(super) fn prefetch(&self, row: usize) {
        let [from, to] = self.spans[row];
        prefetch(self.marks.row(row));
        match &self.values {
            Values::Reals(values) => prefetch(&values[from..to]),
            Values::Levels { codes, .. } => prefetch(&codes[from..to]),
        }
    }

    /// Returns the values of some rows, one after the other.
    pub(crate) fn values_of(&self, rows: impl Iterator<Item = usize> + Clone) -> Vec<f32> {
        let spans = rows.map(|r| self.spans[r]);
        let mut to = Vec::with_capacity(spans.clone().map(|[from, end]| end - from).sum());
        match &self.values {
            Values::Reals(values) => spans.for_each(|[from, end]| to.extend_from_slice(&values[from..end])),
            Values::Levels { codes, palette } => {
                for [from, end] in spans {
                    to.extend(codes[from..end].iter().map(|&code| palette[usize::from(code)]));
                }
            }
        }
        to
    }

    /// Returns one value.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        if !self.marks.get(row, column) {
            return 0.0;
        }
        let before = self.marks.row(row)[..column / 64].iter().map(|w| w.count_ones()).sum::<u32>();
        let below = self.marks.row(row)[column / 64] & ((1 << (column % 64)) - 1);
        self.values.get(self.spans[row][0] + (before + below.count_ones()) as usize)
    }

    /// Returns the rows with other values in the same places. The other value of 0 must be 0.
    pub(super) fn map(&self, value: impl Fn(f32) -> f32) -> Self {
        let all = self.values_of(0..self.n_rows()).into_iter().map(value).collect();
        Self { marks: self.marks.clone(), spans: spans(&self.marks), values: Values::new(all) }
    }

    /// Returns the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let marks = self.marks.select(indices);
        let from: Vec<[usize; 2]> = indices.iter().map(|&r| self.spans[r]).collect();
        Self { spans: spans(&marks), marks, values: self.values.select(&from) }
    }

    /// Returns the rows named by `rows` with their zeros, one after the other.
    pub fn expand(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.n_columns()];
        for (to, r) in values.chunks_exact_mut(self.n_columns()).zip(rows) {
            self.row(r).for_each(|(column, value)| to[column] = value);
        }
        values
    }

    /// Returns all rows with their zeros.
    pub fn to_reals(&self) -> RealRows {
        RealRows::new(self.n_columns(), self.expand(0..self.n_rows()))
    }
}

/// Rows are equal if their entries are, whether or not values take one byte.
impl PartialEq for SparseRows {
    fn eq(&self, other: &Self) -> bool {
        self.marks == other.marks && (0..self.n_rows()).all(|r| self.row(r).eq(other.row(r)))
    }
}

/// Returns where the values of each row begin and end, if they follow each other.
fn spans(marks: &BitRows) -> Vec<[usize; 2]> {
    let mut end = 0;
    let span = |r| {
        let from = end;
        end += marks.row(r).iter().map(|w| w.count_ones() as usize).sum::<usize>();
        [from, end]
    };
    (0..marks.n_rows()).map(span).collect()
}

impl Values {
    /// Stores values, in one byte each if at most 256 of them are different.
    fn new(values: Vec<f32>) -> Self {
        let mut palette = Palette::default();
        let codes: Option<Vec<u8>> = values.iter().map(|&x| palette.code(x)).collect();
        match codes {
            Some(codes) => Self::Levels { codes, palette: Box::new(palette.values) },
            None => Self::Reals(values),
        }
    }

    fn get(&self, at: usize) -> f32 {
        match self {
            Self::Reals(values) => values[at],
            Self::Levels { codes, palette } => palette[usize::from(codes[at])],
        }
    }

    fn some(&self, range: Range<usize>) -> impl Iterator<Item = f32> + '_ {
        range.map(|at| self.get(at))
    }

    fn select(&self, spans: &[[usize; 2]]) -> Self {
        match self {
            Self::Reals(values) => Self::Reals(join(values, spans)),
            Self::Levels { codes, palette } => {
                Self::Levels { codes: join(codes, spans), palette: palette.clone() }
            }
        }
    }
}

fn join<T: Copy>(values: &[T], spans: &[[usize; 2]]) -> Vec<T> {
    spans.iter().flat_map(|&[from, to]| &values[from..to]).copied().collect()
}

/// Different values, in the order in which they were first seen, with a hash table of their places.
struct Palette {
    values: [f32; 256],
    len: usize,
    /// The place of a value plus 1, or 0. The table never fills, so that a search ends.
    table: [u16; 1024],
}

impl Default for Palette {
    fn default() -> Self {
        Self { values: [0.0; 256], len: 0, table: [0; 1024] }
    }
}

impl Palette {
    /// Returns the place of a value. Returns `None` if there are 256 others.
    fn code(&mut self, x: f32) -> Option<u8> {
        let mut slot = (x.to_bits().wrapping_mul(0x9e37_79b9) >> 22) as usize;
        loop {
            match self.table[slot] {
                0 if self.len == self.values.len() => return None,
                0 => {
                    self.values[self.len] = x;
                    self.len += 1;
                    self.table[slot] = self.len as u16;
                    return Some((self.len - 1) as u8);
                }
                place if self.values[usize::from(place) - 1].to_bits() == x.to_bits() => {
                    return Some((place - 1) as u8);
                }
                _ => slot = (slot + 1) % self.table.len(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of `n` different values, and the values with their zeros.
    fn rows(n: usize) -> (SparseRows, Vec<f32>) {
        let n_columns = 130;
        let values: Vec<f32> = (0..20 * n_columns)
            .map(|k| if k % 3 == 1 { (1 + k / 3 % n) as f32 / 1000.0 } else { 0.0 })
            .collect();
        (SparseRows::of_reals(&RealRows::new(n_columns, values.clone())), values)
    }

    #[test]
    fn values_take_a_byte_if_there_are_at_most_256() {
        for (n, bytes) in [(1, true), (255, true), (256, true), (257, false), (600, false)] {
            let (rows, values) = rows(n);
            assert_eq!(matches!(rows.values, Values::Levels { .. }), bytes, "{n} values");
            assert_eq!(rows.to_reals().values(), values);
            let chosen = rows.select(&[7, 0, 7]);
            for (r, from) in [7, 0, 7].into_iter().enumerate() {
                assert!((0..130).all(|c| chosen.get(r, c) == values[from * 130 + c]));
            }
            assert_eq!(chosen, rows.select(&[7, 0, 7]));
            assert_ne!(chosen, rows.select(&[7, 0, 8]));
        }
    }

    #[test]
    fn bytes_are_rows_of_their_values() {
        let bytes: Vec<u8> = (0..90u8).map(|k| if k % 4 == 0 { k } else { 0 }).collect();
        let palette: [f32; 256] = std::array::from_fn(|b| b as f32 / 255.0);
        let values = bytes.iter().map(|&b| palette[usize::from(b)]).collect();
        let of_reals = SparseRows::of_reals(&RealRows::new(9, values));
        assert_eq!(SparseRows::of_bytes(9, &bytes, palette), of_reals);
    }
}
