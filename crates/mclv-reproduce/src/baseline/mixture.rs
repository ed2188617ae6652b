//! A mixture of products of Bernoulli units, fitted by EM.

use super::{Density, smoothed_means};
use mclv::bits::{BitRows, ones};
use mclv::rng::{Purpose, stream};

/// The most iterations of EM.
const MAX_ITERATIONS: usize = 60;
/// EM stops when an iteration gains less than this, in nats per training row.
const LEAST_GAIN: f64 = 1e-3;
/// Rows with the means of the data that are added to the rows of each component.
const PRIOR: f64 = 1.0;

/// Settings of a mixture.
pub(crate) struct MixtureSettings {
    /// The number of components.
    pub(crate) n_components: usize,
    /// The seed of the rows that components begin at.
    pub(crate) seed: u64,
}

/// A mixture of components, in each of which the units are independent.
#[derive(Clone)]
pub(crate) struct Mixture {
    n_components: usize,
    /// The logarithm of the weight of each component, plus its log-likelihood of a row of zeros.
    base: Vec<f64>,
    /// The logarithm of the odds of each unit in each component: unit by unit.
    log_odds: Vec<f64>,
}

impl Mixture {
    /// Fits a mixture by EM. Returns the iterate with the highest likelihood of the validation rows.
    pub(crate) fn fit(rows: &BitRows, validation: &BitRows, settings: &MixtureSettings) -> Self {
        let MixtureSettings { n_components, seed } = *settings;
        let means = smoothed_means(rows);
        let mut rng = stream(seed, Purpose::Estimator, 0).reader();
        // Each component begins halfway between the means and a row.
        let mut counts = vec![0.0; rows.n_bits() * n_components];
        for k in 0..n_components {
            let row = rng.below(rows.n_rows() as u64) as usize;
            ones(rows.row(row)).for_each(|i| counts[i * n_components + k] = 1.0);
        }
        let mut mixture = Self::from_counts(&means, &vec![1.0; n_components], &counts);
        let mut best = (f64::NEG_INFINITY, mixture.clone());
        let mut before = f64::NEG_INFINITY;
        for _ in 0..MAX_ITERATIONS {
            let (mut weights, mut counts) = (vec![0.0; n_components], vec![0.0; counts.len()]);
            let (mut now, mut shares) = (0.0, vec![0.0; n_components]);
            for r in 0..rows.n_rows() {
                now += mixture.shares(rows.row(r), &mut shares);
                add(&mut weights, &shares);
                ones(rows.row(r)).for_each(|i| add(&mut counts[i * n_components..][..n_components], &shares));
            }
            now /= rows.n_rows() as f64;
            mixture = Self::from_counts(&means, &weights, &counts);
            let value = super::mean_log_likelihood(&mixture, validation).0;
            if value > best.0 {
                best = (value, mixture.clone());
            }
            if now - before < LEAST_GAIN {
                break;
            }
            before = now;
        }
        best.1
    }

    /// The most probable mixture if component `k` has `weights[k]` rows, in `counts[i, k]` of which
    /// unit `i` is on.
    fn from_counts(means: &[f64], weights: &[f64], counts: &[f64]) -> Self {
        let n_components = weights.len();
        let in_all: f64 = weights.iter().sum::<f64>() + PRIOR * n_components as f64;
        let mut base: Vec<f64> = weights.iter().map(|w| ((w + PRIOR) / in_all).ln()).collect();
        let mut log_odds = vec![0.0; counts.len()];
        for (i, mean) in means.iter().enumerate() {
            for k in 0..n_components {
                let at = i * n_components + k;
                let p = (counts[at] + PRIOR * mean) / (weights[k] + PRIOR);
                log_odds[at] = (p / (1.0 - p)).ln();
                base[k] += (1.0 - p).ln();
            }
        }
        Self { n_components, base, log_odds }
    }

    /// Writes the probability of each component given a row. Returns the log-likelihood of the row.
    fn shares(&self, row: &[u64], shares: &mut [f64]) -> f64 {
        shares.copy_from_slice(&self.base);
        ones(row).for_each(|i| add(shares, &self.log_odds[i * self.n_components..][..self.n_components]));
        let largest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.iter_mut().for_each(|x| *x = (*x - largest).exp());
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|x| *x /= sum);
        largest + sum.ln()
    }
}

impl Density for Mixture {
    fn log_likelihood(&self, row: &[u64]) -> f64 {
        self.shares(row, &mut vec![0.0; self.n_components])
    }
}

fn add(to: &mut [f64], other: &[f64]) {
    to.iter_mut().zip(other).for_each(|(x, y)| *x += y);
}

#[cfg(test)]
mod tests {
    use super::super::{Independent, mean_log_likelihood, tests::rows};
    use super::*;

    #[test]
    fn one_component_is_the_independent_model() {
        let rows = rows();
        let mixture = Mixture::fit(&rows, &rows, &MixtureSettings { n_components: 1, seed: 3 });
        let (one, other) =
            (mean_log_likelihood(&mixture, &rows).0, mean_log_likelihood(&Independent::fit(&rows), &rows).0);
        // The prior of the mixture is a little stronger.
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }

    /// The likelihood of the training rows, with that of the prior, never falls.
    #[test]
    fn em_climbs_from_two_rows_to_two_clusters() {
        let rows = BitRows::from_words(6, [[0b111, 0b111000], [0b110, 0b011000]].concat().repeat(50));
        let settings = MixtureSettings { n_components: 2, seed: 2 };
        let value = mean_log_likelihood(&Mixture::fit(&rows, &rows, &settings), &rows).0;
        // Two equal clusters of rows, each with one unit that is on in half of its rows.
        assert!((value + 2.0 * 2f64.ln()).abs() < 0.1, "{value}");
    }
}
