//! See what hidden units do: whether they tell rows apart, and how strong their weights are.

use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;

/// A unit is on or off for a row if its mean is beyond these.
const OFF: f32 = 0.01;
const ON: f32 = 0.99;
/// An idle unit has at most this standard deviation of its mean over rows, …
const MAX_VARIATION: f64 = 0.1;
/// … and at most this share of the median norm of the weights of all units.
const MAX_NORM: f64 = 0.25;

/// The number of hidden units of each kind. No unit is counted twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Units {
    /// On for every row.
    pub(super) n_saturated: usize,
    /// Off for every row.
    pub(super) n_dead: usize,
    /// Neither, but the mean hardly depends on the row, and the weights are small beside those of other units. Without
    /// such a unit the model is nearly the same.
    pub(super) n_idle: usize,
}

impl Units {
    /// Counts the units of a model by what they do on these rows.
    pub(super) fn count(rbm: &Rbm, rows: &Rows) -> Result<Self> {
        let means = rbm.mean_h_from_v(rows)?;
        let n_hidden = rbm.n_hidden();
        let mut norms = vec![0.0; n_hidden];
        for row in rbm.weights().chunks_exact(n_hidden) {
            norms.iter_mut().zip(row).for_each(|(norm, &w)| *norm += f64::from(w).powi(2));
        }
        let mut sorted = norms.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        // Norms are squared here.
        let small = MAX_NORM.powi(2) * sorted[n_hidden / 2];
        let mut units = Self::default();
        for (j, norm) in norms.into_iter().enumerate() {
            let of_rows = || (0..means.n_rows()).map(|r| means.row(r)[j]);
            let n = means.n_rows() as f64;
            let mean = of_rows().map(f64::from).sum::<f64>() / n;
            let variance = of_rows().map(|x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
            if of_rows().all(|x| x > ON) {
                units.n_saturated += 1;
            } else if of_rows().all(|x| x < OFF) {
                units.n_dead += 1;
            } else if norm < small && variance < MAX_VARIATION.powi(2) {
                units.n_idle += 1;
            }
        }
        Ok(units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::all_states;

    /// Six visible units and eight hidden ones: strong, strong, always on, always off, without weights, weak, strong, strong.
    #[test]
    fn units_are_counted_by_what_they_do() {
        let weights = [4.0, 3.0, 4.0, 4.0, 0.0, 0.1, 4.0, 3.0f32];
        let w: Vec<f32> = (0..6).flat_map(|_| weights).collect();
        let a = [-12.0, -9.0, 40.0, -60.0, 0.3, -0.3, -12.0, -9.0];
        let rbm = Rbm::new(6, 8, &w, &[0.0; 6], &a).unwrap();
        let units = Units::count(&rbm, &Rows::Bits(all_states(6))).unwrap();
        assert_eq!(units, Units { n_saturated: 1, n_dead: 1, n_idle: 2 });
    }

    /// Weak units among weak units are not idle: training has only begun.
    #[test]
    fn weak_units_alone_are_not_idle() {
        let w: Vec<f32> = (0..60).map(|k| 0.01 * ((k * 7 % 13) as f32 - 6.0)).collect();
        let rbm = Rbm::new(6, 10, &w, &[0.0; 6], &[0.0; 10]).unwrap();
        assert_eq!(Units::count(&rbm, &Rows::Bits(all_states(6))).unwrap(), Units::default());
    }
}
