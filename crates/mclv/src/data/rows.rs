//! Hold the rows of a data set: packed bits, or real values in [0, 1].

use super::sparse::SparseRows;
use crate::bits::BitRows;
use crate::{Error, Result};
use mclv_kernels::layer::{SparseStates, States};
use mclv_kernels::prefetch;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Rows of real values, row-major.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RealRows {
    n_columns: usize,
    values: Vec<f32>,
}

impl RealRows {
    /// Creates rows of `n_columns` from `values`.
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

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// The number of values per row.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns the values of row `row`.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.n_columns..(row + 1) * self.n_columns]
    }

    /// Returns all values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns all values as a vector, row after row.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// The rows of a data set: packed bits, real values, or sparse real values.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Every value is 0 or 1.
    Bits(BitRows),
    /// Values in [0, 1].
    Reals(RealRows),
    /// Values in [0, 1], most of which are 0. Results are those of `Reals`, bit for bit.
    Sparse(SparseRows),
}

/// Some rows, in the form that the kernels take.
pub(crate) enum RowBlock<'a> {
    Bits(Cow<'a, [u64]>),
    Reals(Cow<'a, [f32]>),
    Sparse { words: Cow<'a, [u64]>, values: Vec<f32> },
}

impl RowBlock<'_> {
    pub(crate) fn states(&self) -> States<'_> {
        match self {
            Self::Bits(words) => States::Bits(words),
            Self::Reals(values) => States::Reals(values),
            Self::Sparse { words, values } => States::Sparse(SparseStates { words, values }),
        }
    }
}

/// Rows are kept as [`SparseRows`] if at most one part in this many of their values is not zero.
/// Sums over fewer entries are then faster than sums over all values.
const SPARSE_SHARE: usize = 3;

fn is_sparse<T: Default + PartialEq>(values: &[T]) -> bool {
    values.iter().filter(|x| **x != T::default()).count() * SPARSE_SHARE <= values.len()
}

impl Rows {
    /// Creates rows of `n_columns` from `values`. Each value must lie in [0, 1]. Rows that hold
    /// only zeros and ones are packed. `source_name` names the values in error messages.
    ///
    /// ```
    /// use mclv::data::Rows;
    /// assert!(matches!(Rows::from_values("x", 2, vec![0.0, 1.0, 1.0, 1.0])?, Rows::Bits(_)));
    /// assert!(matches!(Rows::from_values("x", 2, vec![0.0, 0.5])?, Rows::Reals(_)));
    /// let error = Rows::from_values("x", 2, vec![0.0, 255.0]).unwrap_err();
    /// assert!(error.to_string().ends_with("divide by 255 first"));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn from_values(source_name: &str, n_columns: usize, values: Vec<f32>) -> Result<Self> {
        if n_columns == 0 || values.is_empty() {
            return Err(no_rows(source_name));
        }
        if !values.len().is_multiple_of(n_columns) {
            return Err(Error::ShapeMismatch {
                what: format!("values in the last row of {source_name}"),
                expected: n_columns,
                got: values.len() % n_columns,
            });
        }
        if let Some(at) = values.iter().position(|v| !(0.0..=1.0).contains(v)) {
            return Err(out_of_range(source_name, at / n_columns, at % n_columns, values[at]));
        }
        Ok(if values.iter().all(|&v| v == 0.0 || v == 1.0) {
            Self::Bits(BitRows::pack(n_columns, &values, |&v| v == 1.0))
        } else {
            Self::of_reals(RealRows::new(n_columns, values))
        })
    }

    /// Grey rows, as [`SparseRows`] if most values are zero.
    fn of_reals(rows: RealRows) -> Self {
        if is_sparse(rows.values()) { Self::Sparse(SparseRows::of_reals(&rows)) } else { Self::Reals(rows) }
    }

    /// Creates rows like [`from_values`](Self::from_values), from rows whose values are mostly 0.
    ///
    /// ```
    /// use mclv::data::{Rows, SparseRows};
    /// let grey = Rows::from_sparse("x", SparseRows::new(3, &[0, 1, 1], &[2], vec![0.5]))?;
    /// assert_eq!((grey.n_rows(), grey.get(0, 2), grey.get(1, 2)), (2, 0.5, 0.0));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no rows or columns, or if a value lies outside [0, 1].
    pub fn from_sparse(source_name: &str, rows: SparseRows) -> Result<Self> {
        let (n_rows, n_columns) = (rows.n_rows(), rows.n_columns());
        if n_rows == 0 || n_columns == 0 {
            return Err(no_rows(source_name));
        }
        let mut is_binary = true;
        for r in 0..n_rows {
            for (column, value) in rows.row(r) {
                if !(0.0..=1.0).contains(&value) {
                    return Err(out_of_range(source_name, r, column, value));
                }
                is_binary &= value == 0.0 || value == 1.0;
            }
        }
        if !is_binary {
            return Ok(Self::Sparse(rows));
        }
        let mut packed = BitRows::zeros(n_rows, n_columns);
        for r in 0..n_rows {
            rows.row(r).for_each(|(column, value)| packed.set(r, column, value == 1.0));
        }
        Ok(Self::Bits(packed))
    }

    /// Creates rows of the values `byte / full`, packed if there are only zeros and ones.
    pub(super) fn from_bytes(n_columns: usize, bytes: &[u8], full: u8) -> Self {
        Self::from_table(n_columns, bytes, std::array::from_fn(|byte| byte as f32 / f32::from(full)))
    }

    /// Creates rows of the values that `table` has for each byte, packed if there are only zeros
    /// and ones.
    pub(super) fn from_table(n_columns: usize, bytes: &[u8], table: [f32; 256]) -> Self {
        let value = |byte: &u8| table[usize::from(*byte)];
        if bytes.iter().all(|byte| matches!(value(byte), 0.0 | 1.0)) {
            return Self::Bits(BitRows::pack(n_columns, bytes, |byte| value(byte) == 1.0));
        }
        if table[0] == 0.0 && is_sparse(bytes) {
            return Self::Sparse(SparseRows::of_bytes(n_columns, bytes, table));
        }
        Self::of_reals(RealRows::new(n_columns, bytes.iter().map(value).collect()))
    }

    /// Returns the SHA-256 of the values row by row: a byte 0 or 1 each for bits, a little-endian
    /// f32 each for reals.
    pub(crate) fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        match self {
            Self::Bits(rows) => {
                let mut bytes = vec![0; rows.n_bits()];
                for r in 0..rows.n_rows() {
                    bytes.fill(0);
                    crate::bits::ones(rows.row(r)).for_each(|i| bytes[i] = 1);
                    hash.update(&bytes);
                }
            }
            Self::Reals(rows) => rows.values().iter().for_each(|v| hash.update(v.to_le_bytes())),
            Self::Sparse(rows) => (0..rows.n_rows()).for_each(|r| {
                rows.expand(std::iter::once(r)).iter().for_each(|v| hash.update(v.to_le_bytes()));
            }),
        }
        crate::source::hex(&hash.finalize())
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Bits(rows) => rows.n_rows(),
            Self::Reals(rows) => rows.n_rows(),
            Self::Sparse(rows) => rows.n_rows(),
        }
    }

    /// The number of values per row.
    pub fn n_columns(&self) -> usize {
        match self {
            Self::Bits(rows) => rows.n_bits(),
            Self::Reals(rows) => rows.n_columns(),
            Self::Sparse(rows) => rows.n_columns(),
        }
    }

    /// Returns one value.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        match self {
            Self::Bits(rows) => f32::from(u8::from(rows.get(row, column))),
            Self::Reals(rows) => rows.row(row)[column],
            Self::Sparse(rows) => rows.get(row, column),
        }
    }

    /// Returns the rows `first .. first + n`, in the form that the kernels take.
    pub(crate) fn block(&self, first: usize, n: usize) -> RowBlock<'_> {
        match self {
            Self::Bits(rows) => RowBlock::Bits(rows.rows(first, n).into()),
            Self::Reals(rows) => {
                let of = |row: usize| row * rows.n_columns();
                RowBlock::Reals(rows.values()[of(first)..of(first + n)].into())
            }
            Self::Sparse(rows) => RowBlock::Sparse {
                words: rows.marks().rows(first, n).into(),
                values: rows.values_of(first..first + n),
            },
        }
    }

    /// Returns the rows named by `indices`, in the form that the kernels take.
    pub(crate) fn block_of(&self, indices: &[usize]) -> RowBlock<'_> {
        match self {
            Self::Bits(bits) => indices.iter().for_each(|&r| prefetch(bits.row(r))),
            Self::Reals(reals) => indices.iter().for_each(|&r| prefetch(reals.row(r))),
            Self::Sparse(sparse) => indices.iter().for_each(|&r| sparse.prefetch(r)),
        }
        let words_of = |bits: &BitRows| -> Vec<u64> {
            let mut words = Vec::with_capacity(indices.len() * bits.n_words());
            indices.iter().for_each(|&r| words.extend_from_slice(bits.row(r)));
            words
        };
        match self {
            Self::Bits(bits) => RowBlock::Bits(words_of(bits).into()),
            Self::Reals(reals) => {
                let mut values = Vec::with_capacity(indices.len() * reals.n_columns());
                indices.iter().for_each(|&r| values.extend_from_slice(reals.row(r)));
                RowBlock::Reals(values.into())
            }
            Self::Sparse(sparse) => RowBlock::Sparse {
                words: words_of(sparse.marks()).into(),
                values: sparse.values_of(indices.iter().copied()),
            },
        }
    }

    /// Returns a copy of the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Bits(rows) => Self::Bits(rows.select(indices)),
            Self::Sparse(rows) => Self::Sparse(rows.select(indices)),
            Self::Reals(rows) => {
                let mut values = Vec::with_capacity(indices.len() * rows.n_columns());
                for &i in indices {
                    values.extend_from_slice(rows.row(i));
                }
                Self::Reals(RealRows::new(rows.n_columns(), values))
            }
        }
    }

    /// Returns the weighted mean of each column.
    pub(crate) fn weighted_column_means(&self, weights: &[f32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_columns()];
        for (r, &weight) in weights.iter().enumerate() {
            let weight = f64::from(weight);
            match self {
                Self::Sparse(rows) => rows.row(r).for_each(|(i, value)| sums[i] += weight * f64::from(value)),
                _ => sums
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, sum)| *sum += weight * f64::from(self.get(r, i))),
            }
        }
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        sums.iter().map(|sum| sum / total).collect()
    }

    /// Returns the mean of each column, accumulated in f64.
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
            Self::Sparse(rows) => {
                for r in 0..rows.n_rows() {
                    rows.row(r).for_each(|(i, x)| sums[i] += f64::from(x));
                }
            }
        }
        let n = self.n_rows().max(1) as f64;
        sums.iter_mut().for_each(|s| *s /= n);
        sums
    }
}

/// Returns the error for a value that is not in [0, 1]. Rows and columns are counted from 0.
fn out_of_range(source_name: &str, row: usize, column: usize, value: f32) -> Error {
    Error::OutOfRange {
        source_name: source_name.into(),
        row: row + 1,
        column: column + 1,
        value: value_of(value),
        rule: "lie in [0, 1]".into(),
        cure: match value {
            v if v.is_nan() => "remove the row or fill in the missing value",
            v if v > 1.0 && v <= 20.0 && v.fract() == 0.0 => {
                "divide by the largest possible value first, or write each category as a column of 0 and 1"
            }
            v if v > 1.0 && v <= 255.0 && v.fract() == 0.0 => "divide by 255 first",
            _ => "scale the values first",
        }
        .into(),
    }
}

/// Returns a value as people wrote it. The conversion goes through decimal digits: 1.2, not
/// 1.2000000476837158.
pub(super) fn value_of(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// Returns the error for a data set without rows or columns.
pub(super) fn no_rows(source_name: &str) -> Error {
    Error::Empty { what: source_name.into(), cure: "give it at least one row of at least one value" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_the_unit_interval_are_named() {
        for (value, cure) in [
            (f32::NAN, "missing value"),
            (255.0, "divide by 255 first"),
            (2.0, "each category as a column"),
            (-0.5, "scale"),
            (1.2, "is 1.2; "),
            (f32::INFINITY, "is inf; "),
        ] {
            let error = Rows::from_values("set", 3, vec![0.0, 1.0, 0.5, 0.0, value, 1.0]).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("set: row 2, column 2 is"), "{text}");
            assert!(text.contains(cure), "{text}");
        }
    }

    #[test]
    fn empty_and_ragged_values_are_refused() {
        assert!(matches!(Rows::from_values("x", 3, vec![]), Err(Error::Empty { .. })));
        assert!(matches!(Rows::from_values("x", 0, vec![]), Err(Error::Empty { .. })));
        assert!(matches!(Rows::from_values("x", 3, vec![0.0; 4]), Err(Error::ShapeMismatch { got: 1, .. })));
    }

    #[test]
    fn bytes_are_divided_and_packed_when_binary() {
        let Rows::Reals(grey) = Rows::from_bytes(2, &[0, 51, 255, 1], 255) else { panic!("packed") };
        assert_eq!(grey.values(), [0.0, 0.2, 1.0, 1.0 / 255.0]);
        let Rows::Bits(bits) = Rows::from_bytes(2, &[0, 16, 16, 0], 16) else { panic!("not packed") };
        assert_eq!(bits.words(), [0b10, 0b01]);
    }

    #[test]
    fn sparse_rows_are_what_their_dense_twins_are() {
        let (n_rows, n_columns) = (150, 70);
        let value = |k: usize| if k % 7 == 3 { (k % 64) as f32 / 64.0 } else { 0.0 };
        let dense: Vec<f32> = (0..n_rows * n_columns).map(value).collect();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks(n_columns) {
            for (i, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                columns.push(i as u32);
                values.push(x);
            }
            starts.push(values.len());
        }
        let dense = Rows::from_values("x", n_columns, dense).unwrap();
        let sparse =
            Rows::from_sparse("x", SparseRows::new(n_columns, &starts, &columns, values.clone())).unwrap();
        assert!(matches!(sparse, Rows::Sparse(_)));
        let weights: Vec<f32> = (0..n_rows).map(|r| (r % 5) as f32).collect();
        let rbm = crate::model::tests::random_rbm(n_columns, 9, 1.0, 17);
        let facts = |rows: &Rows| {
            let at: Vec<f32> = (0..n_rows).map(|r| rows.get(r, r % n_columns)).collect();
            let some = rows.select(&[149, 3, 3, 80]);
            let free = [rbm.free_energy(rows).unwrap(), rbm.free_energy(&some).unwrap()];
            (rows.sha256(), rows.column_means(), rows.weighted_column_means(&weights), at, free)
        };
        assert_eq!(facts(&sparse), facts(&dense));
        values[0] = 1.5;
        let wrong = Rows::from_sparse("x", SparseRows::new(n_columns, &starts, &columns, values));
        assert!(wrong.unwrap_err().to_string().starts_with("x: row 1, column 4 is 1.5"));
        let ones = vec![1.0; columns.len()];
        let bits = Rows::from_sparse("x", SparseRows::new(n_columns, &starts, &columns, ones)).unwrap();
        assert!(matches!(bits, Rows::Bits(_)) && bits.get(0, 3) == 1.0 && bits.get(0, 4) == 0.0);
        assert!(Rows::from_sparse("x", SparseRows::new(3, &[0], &[], vec![])).is_err());
    }

    #[test]
    fn the_digest_is_of_one_byte_per_bit() {
        let rows = Rows::from_bytes(3, &[0, 1, 1], 1);
        assert_eq!(rows.sha256(), crate::source::hex(&Sha256::digest([0u8, 1, 1])));
    }
}
