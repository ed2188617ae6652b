//! Survey rows: how many values are 0 and 1, which columns are constant, and what is there twice.

use std::collections::HashMap;

use serde::Serialize;

use super::Rows;
use crate::bits::ones;

/// What is worth knowing of rows before they are used. Columns and rows are counted from 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// The mean of all values.
    pub mean: f64,
    /// The share of the values that are 1.
    pub share_of_ones: f64,
    /// The share of the values that are 0.
    pub share_of_zeros: f64,
    /// The columns that have one value in all rows.
    pub constant_columns: Vec<usize>,
    /// The columns that equal an earlier one, with that one. Constant columns are left out.
    pub duplicate_columns: Vec<(usize, usize)>,
    /// The number of rows that equal an earlier one.
    pub n_duplicate_rows: usize,
}

/// Adds a value to a hash.
fn mix(hash: u64, value: f32) -> u64 {
    (hash.rotate_left(5) ^ u64::from(value.to_bits())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Rows {
    /// Surveys the rows.
    ///
    /// ```
    /// use mclv::data::Rows;
    /// let rows = Rows::from_values("x", 3, vec![0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0])?;
    /// let survey = rows.survey();
    /// assert_eq!((survey.constant_columns, survey.duplicate_columns), (vec![1], vec![(2, 0)]));
    /// assert_eq!(survey.n_duplicate_rows, 1);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn survey(&self) -> Survey {
        let (n_rows, n_columns) = (self.n_rows(), self.n_columns());
        let mut values = vec![0f32; n_columns];
        self.values_of(0, &mut values);
        let first = values.clone();
        let mut is_constant = vec![true; n_columns];
        let mut of_columns = vec![0u64; n_columns];
        let mut of_rows: HashMap<u64, Vec<usize>> = HashMap::new();
        let (mut n_ones, mut n_zeros, mut n_duplicate_rows) = (0u64, 0u64, 0);
        for row in 0..n_rows {
            self.values_of(row, &mut values);
            let mut of_row = 0;
            for (column, &value) in values.iter().enumerate() {
                n_ones += u64::from(value == 1.0);
                n_zeros += u64::from(value == 0.0);
                is_constant[column] &= value == first[column];
                of_columns[column] = mix(of_columns[column], value);
                of_row = mix(of_row, value);
            }
            // Rows with one hash are compared, so that chance makes no duplicates.
            let alike = of_rows.entry(of_row).or_default();
            match alike.iter().any(|&other| (0..n_columns).all(|c| self.get(other, c) == values[c])) {
                true => n_duplicate_rows += 1,
                false => alike.push(row),
            }
        }
        let mut alike: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut duplicate_columns = Vec::new();
        for column in (0..n_columns).filter(|&column| !is_constant[column]) {
            let others = alike.entry(of_columns[column]).or_default();
            let is_equal = |other: &&usize| (0..n_rows).all(|r| self.get(r, **other) == self.get(r, column));
            match others.iter().find(is_equal) {
                Some(&other) => duplicate_columns.push((column, other)),
                None => others.push(column),
            }
        }
        let n_values = (n_rows * n_columns) as f64;
        Survey {
            mean: self.column_means().iter().sum::<f64>() / n_columns as f64,
            share_of_ones: n_ones as f64 / n_values,
            share_of_zeros: n_zeros as f64 / n_values,
            constant_columns: (0..n_columns).filter(|&column| is_constant[column]).collect(),
            duplicate_columns,
            n_duplicate_rows,
        }
    }

    /// Writes the values of a row.
    fn values_of(&self, row: usize, values: &mut [f32]) {
        match self {
            Self::Reals(rows) => values.copy_from_slice(rows.row(row)),
            Self::Bits(rows) => {
                values.fill(0.0);
                ones(rows.row(row)).for_each(|column| values[column] = 1.0);
            }
            Self::Sparse(rows) => {
                values.fill(0.0);
                rows.row(row).for_each(|(column, value)| values[column] = value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{RealRows, SparseRows};
    use crate::rng::{Purpose, stream};

    /// Everything by comparing each with each.
    fn naive(rows: &Rows) -> Survey {
        let (n_rows, n_columns) = (rows.n_rows(), rows.n_columns());
        let column = |c: usize| -> Vec<f32> { (0..n_rows).map(|r| rows.get(r, c)).collect() };
        let row = |r: usize| -> Vec<f32> { (0..n_columns).map(|c| rows.get(r, c)).collect() };
        let all: Vec<f32> = (0..n_rows).flat_map(row).collect();
        let share = |wanted: f32| all.iter().filter(|&&v| v == wanted).count() as f64 / all.len() as f64;
        let is_constant = |c: &usize| column(*c).iter().all(|&v| v == rows.get(0, *c));
        let varied: Vec<usize> = (0..n_columns).filter(|c| !is_constant(c)).collect();
        let earlier = |&c: &usize| Some((c, *varied.iter().find(|&&d| d < c && column(d) == column(c))?));
        Survey {
            // The shares tell the mean too, if there are no more than three levels.
            mean: share(1.0) + 0.5 * share(0.5),
            share_of_ones: share(1.0),
            share_of_zeros: share(0.0),
            constant_columns: (0..n_columns).filter(is_constant).collect(),
            duplicate_columns: varied.iter().filter_map(earlier).collect(),
            n_duplicate_rows: (0..n_rows).filter(|&r| (0..r).any(|s| row(s) == row(r))).count(),
        }
    }

    #[test]
    fn a_survey_is_what_comparing_each_with_each_gives() {
        let mut rng = stream(11, Purpose::SelfTest, 0).reader();
        for n_levels in [2, 3] {
            for n_rows in [1, 4, 30] {
                // Few rows and levels, so that columns and rows repeat and some are constant.
                let n_columns = 8;
                let values: Vec<f32> = (0..n_rows * n_columns)
                    .map(|_| rng.below(n_levels) as f32 / (n_levels - 1) as f32)
                    .collect();
                let rows = Rows::from_values("x", n_columns, values.clone()).unwrap();
                let (survey, naive) = (rows.survey(), naive(&rows));
                assert!((survey.mean - naive.mean).abs() < 1e-12);
                assert_eq!(Survey { mean: 0.0, ..survey }, Survey { mean: 0.0, ..naive });
                let sparse = Rows::Sparse(SparseRows::of_reals(&RealRows::new(n_columns, values)));
                assert_eq!(sparse.survey(), rows.survey());
            }
        }
    }
}
