//! Hold the rows of a data set: packed bits, or real values in [0, 1].

use crate::bits::BitRows;
use mclv_kernels::layer::States;

/// Rows of real values, row-major.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RealRows {
    n_columns: usize,
    values: Vec<f32>,
}

impl RealRows {
    /// Take `values` as rows of `n_columns`.
    ///
    /// # Panics
    /// If the values do not make whole rows.
    pub fn new(n_columns: usize, values: Vec<f32>) -> Self {
        assert!(
            n_columns > 0 && values.len().is_multiple_of(n_columns),
            "{} values in rows of {n_columns}",
            values.len()
        );
        Self { n_columns, values }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// Values per row.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Row `row`.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.n_columns..(row + 1) * self.n_columns]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// The rows of a data set.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Every value is 0 or 1.
    Bits(BitRows),
    /// Values in [0, 1].
    Reals(RealRows),
}

impl Rows {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Bits(rows) => rows.n_rows(),
            Self::Reals(rows) => rows.n_rows(),
        }
    }

    /// Values per row.
    pub fn n_columns(&self) -> usize {
        match self {
            Self::Bits(rows) => rows.n_bits(),
            Self::Reals(rows) => rows.n_columns(),
        }
    }

    /// One value.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        match self {
            Self::Bits(rows) => f32::from(u8::from(rows.get(row, column))),
            Self::Reals(rows) => rows.row(row)[column],
        }
    }

    /// The rows `first .. first + n`, as the kernels take them.
    pub(crate) fn states(&self, first: usize, n: usize) -> States<'_> {
        match self {
            Self::Bits(rows) => States::Bits(rows.rows(first, n)),
            Self::Reals(rows) => {
                States::Reals(&rows.values()[first * rows.n_columns()..(first + n) * rows.n_columns()])
            }
        }
    }

    /// A copy of the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Bits(rows) => Self::Bits(rows.select(indices)),
            Self::Reals(rows) => {
                let mut values = Vec::with_capacity(indices.len() * rows.n_columns());
                for &i in indices {
                    values.extend_from_slice(rows.row(i));
                }
                Self::Reals(RealRows::new(rows.n_columns(), values))
            }
        }
    }

    /// Mean of each column, accumulated in f64.
    pub fn column_means(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_columns()];
        match self {
            Self::Bits(rows) => {
                for r in 0..rows.n_rows() {
                    for i in crate::bits::ones(rows.row(r)) {
                        sums[i] += 1.0;
                    }
                }
            }
            Self::Reals(rows) => {
                for row in rows.values().chunks_exact(rows.n_columns()) {
                    for (s, &x) in sums.iter_mut().zip(row) {
                        *s += f64::from(x);
                    }
                }
            }
        }
        let n = self.n_rows().max(1) as f64;
        sums.iter_mut().for_each(|s| *s /= n);
        sums
    }
}
