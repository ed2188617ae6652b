//! Count hidden units that do nothing for the rows: always off, always on, or always half on.

use super::Rbm;
use crate::Result;
use crate::data::Rows;
use serde::{Deserialize, Serialize};

/// A unit is dead if its probability is below this on every row, and saturated if it is above one
/// minus this.
const NEVER: f32 = 0.01;

/// A unit may be idle if its probability of being on has a standard deviation below this over the
/// rows.
const STILL: f64 = 0.1;

/// Such a unit is idle if its weights are small too: if their norm is below this share of the upper
/// quartile of all norms.
const WEAK: f64 = 0.25;

/// The number of hidden units that do nothing for some rows, by kind. Each unit is counted once.
///
/// The three kinds share one cause: the probability that the unit is on is the same for every row.
/// A bias could replace such a unit. A detector of a rare feature is not counted: it is off for
/// nearly all rows, but on for some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitUse {
    /// The number of hidden units of the model.
    pub n_hidden: usize,
    /// The number of units that are off for every row: `p(h_j = 1 | v) < 0.01`.
    pub n_dead: usize,
    /// The number of units that are on for every row: `p(h_j = 1 | v) > 0.99`.
    pub n_saturated: usize,
    /// The number of other units whose probability hardly changes from row to row. Its standard
    /// deviation is below 0.1, and the norm of the unit's weights is below a quarter of the upper
    /// quartile of all norms. Before training, when all weights are small, no unit is idle.
    pub n_idle: usize,
}

impl UnitUse {
    /// The number of units that do nothing, of all kinds.
    pub fn n_useless(&self) -> usize {
        self.n_dead + self.n_saturated + self.n_idle
    }
}

/// A hidden unit and the visible units that it depends on most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrongUnit {
    /// The hidden unit, counted from 0.
    pub unit: usize,
    /// Visible units, counted from 0, with their weights: those of the largest absolute weight, in
    /// descending order.
    pub weights: Vec<(usize, f32)>,
}

impl Rbm {
    /// Returns the hidden units with the largest weights (by their norm, in descending order), each
    /// with the visible units that it depends on most.
    ///
    /// ```
    /// use mclv::Rbm;
    /// let rbm = Rbm::new(3, 2, &[0.1, 2.0, 0.2, -3.0, 0.0, 0.5], &[0.0; 3], &[0.0; 2])?;
    /// let strong = rbm.strongest_units(1, 2);
    /// assert_eq!((strong[0].unit, strong[0].weights.as_slice()), (1, [(1, -3.0), (0, 2.0)].as_slice()));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn strongest_units(&self, n_units: usize, n_weights: usize) -> Vec<StrongUnit> {
        let (weights, n_hidden) = (self.weights(), self.n_hidden());
        let of_unit = |j: usize| weights.iter().skip(j).step_by(n_hidden).copied();
        let square = |j: usize| of_unit(j).map(|w| f64::from(w).powi(2)).sum::<f64>();
        let mut units: Vec<(usize, f64)> = (0..n_hidden).map(|j| (j, square(j))).collect();
        units.sort_by(|a, b| b.1.total_cmp(&a.1));
        units.truncate(n_units);
        let strong = |(unit, _): (usize, f64)| {
            let mut weights: Vec<(usize, f32)> = of_unit(unit).enumerate().collect();
            weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
            weights.truncate(n_weights);
            StrongUnit { unit, weights }
        };
        units.into_iter().map(strong).collect()
    }

    /// Counts the hidden units that do nothing for `rows`. A few hundred rows are enough.
    ///
    /// # Cost
    /// The cost of `E[h|v]` of the rows.
    ///
    /// ```
    /// use mclv::{Rbm, data::Rows};
    /// // The first unit tells the rows apart, the second has no weights, the third is always off.
    /// let rbm = Rbm::new(2, 3, &[4.0, 0.0, 0.1, -4.0, 0.0, 0.1], &[0.0; 2], &[0.0, 0.5, -9.0])?;
    /// let rows = Rows::from_values("toy", 2, vec![0.0, 1.0, 1.0, 0.0])?;
    /// let found = rbm.unit_use(&rows)?;
    /// assert_eq!((found.n_dead, found.n_saturated, found.n_idle), (1, 0, 1));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn unit_use(&self, rows: &Rows) -> Result<UnitUse> {
        let means = self.mean_h_from_v(rows)?;
        let (n_hidden, n_rows) = (self.n_hidden(), means.n_rows());
        let mut found = UnitUse { n_hidden, ..UnitUse::default() };
        if n_rows == 0 {
            return Ok(found);
        }
        let mut squares = vec![0.0; n_hidden];
        for row in self.weights().chunks_exact(n_hidden) {
            squares.iter_mut().zip(row).for_each(|(sum, &w)| *sum += f64::from(w).powi(2));
        }
        let mut sorted = squares.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let strong = sorted[3 * n_hidden / 4];
        for (j, &square) in squares.iter().enumerate() {
            let of_rows = || (0..n_rows).map(|r| means.row(r)[j]);
            let (low, high) = of_rows().fold((1.0f32, 0.0f32), |(low, high), p| (low.min(p), high.max(p)));
            let mean = of_rows().map(f64::from).sum::<f64>() / n_rows as f64;
            let variance = of_rows().map(|p| (f64::from(p) - mean).powi(2)).sum::<f64>() / n_rows as f64;
            if high < NEVER {
                found.n_dead += 1;
            } else if low > 1.0 - NEVER {
                found.n_saturated += 1;
            } else if variance < STILL * STILL && square < WEAK * WEAK * strong {
                found.n_idle += 1;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unit by unit: a detector of one row in 1,000, one that halves the rows, a weak one, one
    /// without weights, one that is always on, one that is always off.
    #[test]
    fn units_are_judged_by_what_they_do() {
        let w = [20.0, 6.0, 0.3, 0.0, 0.0, 0.0, 0.0, -6.0, 0.3, 0.0, 0.0, 0.0];
        let rbm = Rbm::new(2, 6, &w, &[0.0; 2], &[-10.0, 0.0, 0.4, 0.0, 9.0, -9.0]).unwrap();
        let mut values = [0.0, 0.0, 0.0, 1.0].repeat(1000);
        values[0] = 1.0;
        let found = rbm.unit_use(&Rows::from_values("rows", 2, values).unwrap()).unwrap();
        let expected = UnitUse { n_hidden: 6, n_dead: 1, n_saturated: 1, n_idle: 2 };
        assert_eq!(found, expected);
        assert_eq!(found.n_useless(), 4);
    }

    /// Weak units among weak units are not idle: training has only begun.
    #[test]
    fn weak_units_alone_are_not_idle() {
        let w: Vec<f32> = (0..60).map(|k| 0.01 * ((k * 7 % 13) as f32 - 6.0)).collect();
        let rbm = Rbm::new(6, 10, &w, &[0.0; 6], &[0.0; 10]).unwrap();
        let rows = Rows::from_values("rows", 6, vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0]).unwrap();
        assert_eq!(rbm.unit_use(&rows).unwrap().n_useless(), 0);
    }

    #[test]
    fn foreign_rows_are_refused() {
        let rbm = Rbm::new(2, 1, &[0.0; 2], &[0.0; 2], &[0.0]).unwrap();
        assert!(rbm.unit_use(&Rows::from_values("wide", 3, vec![0.0; 3]).unwrap()).is_err());
    }
}
