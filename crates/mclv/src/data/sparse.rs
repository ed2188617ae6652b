//! Hold rows of real values that are mostly zero.

use super::rows::RealRows;
use mclv_kernels::layer::{SparseStates, States};

/// Rows of real values, row-major, of which only the non-zero values are stored.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SparseRows {
    n_columns: usize,
    /// The index of the first entry of each row, and the end of the last row.
    starts: Vec<usize>,
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
        Self { n_columns, starts, columns, values }
    }

    /// The non-zero values of `rows`, of which there are `n_entries`.
    pub(super) fn of_reals(rows: &RealRows, n_entries: usize) -> Self {
        let mut sparse = Self {
            n_columns: rows.n_columns(),
            starts: Vec::with_capacity(rows.n_rows() + 1),
            columns: Vec::with_capacity(n_entries),
            values: Vec::with_capacity(n_entries),
        };
        sparse.starts.push(0);
        for row in rows.values().chunks_exact(rows.n_columns()) {
            for (column, &value) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                sparse.columns.push(column as u32);
                sparse.values.push(value);
            }
            sparse.starts.push(sparse.values.len());
        }
        sparse
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
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
        let entries = self.starts[row]..self.starts[row + 1];
        self.columns[entries.clone()].iter().map(|&c| c as usize).zip(self.values[entries].iter().copied())
    }

    /// All rows, as the kernels take them.
    pub(crate) fn states(&self) -> States<'_> {
        let ends = self.starts.get(1..).unwrap_or_default();
        States::Sparse(SparseStates { ends, units: &self.columns, values: &self.values })
    }

    /// The rows `first .. first + n`.
    pub(crate) fn slice(&self, first: usize, n: usize) -> Self {
        let (from, to) = (self.starts[first], self.starts[first + n]);
        Self {
            n_columns: self.n_columns,
            starts: self.starts[first..=first + n].iter().map(|start| start - from).collect(),
            columns: self.columns[from..to].to_vec(),
            values: self.values[from..to].to_vec(),
        }
    }

    /// Returns one value.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        let first = self.starts[row];
        let columns = &self.columns[first..self.starts[row + 1]];
        columns.binary_search(&(column as u32)).map_or(0.0, |k| self.values[first + k])
    }

    /// Returns the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let n: usize = indices.iter().map(|&r| self.starts[r + 1] - self.starts[r]).sum();
        let mut chosen = Self {
            n_columns: self.n_columns,
            starts: Vec::with_capacity(indices.len() + 1),
            columns: Vec::with_capacity(n),
            values: Vec::with_capacity(n),
        };
        chosen.starts.push(0);
        for &r in indices {
            let entries = self.starts[r]..self.starts[r + 1];
            chosen.columns.extend_from_slice(&self.columns[entries.clone()]);
            chosen.values.extend_from_slice(&self.values[entries]);
            chosen.starts.push(chosen.values.len());
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
