//! Hold rows of real values that are mostly zero.

use super::rows::RealRows;
use mclv_kernels::layer::{SparseStates, States};

/// Rows of real values, row-major, of which only the non-zero values are stored.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SparseRows {
    n_columns: usize,
    /// The index of the first entry of each row, and the end of the row.
    spans: Vec<[usize; 2]>,
    /// Increasing within a row.
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl SparseRows {
    /// Creates rows from their entries: row `r` has the entries `starts[r] .. starts[r + 1]`, with
    /// increasing columns and their values.
    ///
    /// # Panics
    /// If starts, columns and values do not fit together.
    pub fn new(n_columns: usize, starts: Vec<usize>, columns: Vec<u32>, values: Vec<f32>) -> Self {
        assert_eq!(columns.len(), values.len(), "a column for each value");
        assert_eq!(
            (starts.first(), starts.last()),
            (Some(&0), Some(&values.len())),
            "starts from 0 to the number of values"
        );
        assert!(starts.is_sorted(), "starts must rise");
        for ends in starts.windows(2) {
            let row = &columns[ends[0]..ends[1]];
            assert!(row.is_sorted_by(|a, b| a < b), "columns must rise within a row");
            assert!(row.last().is_none_or(|&c| (c as usize) < n_columns), "a column beyond {n_columns}");
        }
        let spans = starts.windows(2).map(|ends| [ends[0], ends[1]]).collect();
        Self { n_columns, spans, columns, values }
    }

    /// The non-zero values of `rows`, of which there are `n_entries`.
    pub(super) fn of_reals(rows: &RealRows, n_entries: usize) -> Self {
        let mut sparse = Self {
            n_columns: rows.n_columns(),
            spans: Vec::with_capacity(rows.n_rows()),
            columns: Vec::with_capacity(n_entries),
            values: Vec::with_capacity(n_entries),
        };
        for row in rows.values().chunks_exact(rows.n_columns()) {
            let first = sparse.values.len();
            for (column, &value) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                sparse.columns.push(column as u32);
                sparse.values.push(value);
            }
            sparse.spans.push([first, sparse.values.len()]);
        }
        sparse
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.spans.len()
    }

    /// The number of values per row, including zeros.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns the stored values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the column and value of each entry of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let [from, to] = self.spans[row];
        let entries = from..to;
        self.columns[entries.clone()].iter().map(|&c| c as usize).zip(self.values[entries].iter().copied())
    }

    /// Where the entries of each row begin and end, for [`states`](Self::states).
    pub(crate) fn spans(&self) -> &[[usize; 2]] {
        &self.spans
    }

    /// Returns the rows with the given spans, as the kernels take them.
    pub(crate) fn states<'a>(&'a self, spans: &'a [[usize; 2]]) -> States<'a> {
        States::Sparse(SparseStates { spans, units: &self.columns, values: &self.values })
    }

    /// Returns one value.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        let [first, end] = self.spans[row];
        let columns = &self.columns[first..end];
        columns.binary_search(&(column as u32)).map_or(0.0, |k| self.values[first + k])
    }

    /// Returns the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let n: usize = indices.iter().map(|&r| self.spans[r][1] - self.spans[r][0]).sum();
        let mut chosen = Self {
            n_columns: self.n_columns,
            spans: Vec::with_capacity(indices.len()),
            columns: Vec::with_capacity(n),
            values: Vec::with_capacity(n),
        };
        for &r in indices {
            let [from, to] = self.spans[r];
            let first = chosen.values.len();
            chosen.columns.extend_from_slice(&self.columns[from..to]);
            chosen.values.extend_from_slice(&self.values[from..to]);
            chosen.spans.push([first, chosen.values.len()]);
        }
        chosen
    }

    /// Returns the rows named by `rows` with their zeros, one after the other.
    pub fn expand(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.n_columns];
        for (to, r) in values.chunks_exact_mut(self.n_columns).zip(rows) {
            self.row(r).for_each(|(column, value)| to[column] = value);
        }
        values
    }

    /// Returns all rows with their zeros.
    pub fn to_reals(&self) -> RealRows {
        RealRows::new(self.n_columns, self.expand(0..self.n_rows()))
    }
}
