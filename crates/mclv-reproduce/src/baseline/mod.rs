//! Models of a few lines whose likelihood is exact: independent units, a tree, a mixture.

mod mixture;
mod tree;

pub(crate) use mixture::{Mixture, MixtureSettings};
pub(crate) use tree::Tree;

use mclv::bits::{BitRows, ones};

/// A model whose log-likelihood is a sum of a few terms.
pub(crate) trait Density {
    /// Returns the log-likelihood of a row in nats.
    fn log_likelihood(&self, row: &[u64]) -> f64;
}

/// The mean of the log-likelihoods of `rows`, and its standard error from the choice of rows.
pub(crate) fn mean_log_likelihood(model: &dyn Density, rows: &BitRows) -> (f64, Option<f64>) {
    let values: Vec<f64> = (0..rows.n_rows()).map(|r| model.log_likelihood(rows.row(r))).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()))
}

/// Units that are on independently of each other. Half a row is added to both counts of each unit.
pub(crate) struct Independent {
    /// The logarithm of the odds of each unit.
    log_odds: Vec<f64>,
    /// The log-likelihood of a row of zeros.
    of_zeros: f64,
}

impl Independent {
    /// Counts the ones of each column.
    pub(crate) fn fit(rows: &BitRows) -> Self {
        let means = smoothed_means(rows);
        Self {
            log_odds: means.iter().map(|p| (p / (1.0 - p)).ln()).collect(),
            of_zeros: means.iter().map(|p| (1.0 - p).ln()).sum(),
        }
    }
}

impl Density for Independent {
    fn log_likelihood(&self, row: &[u64]) -> f64 {
        self.of_zeros + ones(row).map(|i| self.log_odds[i]).sum::<f64>()
    }
}

/// The share of ones in each column, with half a row added to both counts.
fn smoothed_means(rows: &BitRows) -> Vec<f64> {
    let mut counts = vec![0.5; rows.n_bits()];
    for r in 0..rows.n_rows() {
        ones(rows.row(r)).for_each(|i| counts[i] += 1.0);
    }
    counts.into_iter().map(|count| count / (rows.n_rows() as f64 + 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::rng::{Purpose, stream};

    /// Every row of a few bits, with its probability.
    pub(super) fn sum_over_all_rows(model: &dyn Density, n_bits: usize) -> f64 {
        let all = BitRows::all_states(n_bits);
        (0..all.n_rows()).map(|r| model.log_likelihood(all.row(r)).exp()).sum()
    }

    /// Rows in which two units are equal in nine rows of ten, and a third is on in one row of four.
    pub(super) fn rows() -> BitRows {
        let mut rng = stream(4, Purpose::Estimator, 0).reader();
        let mut rows = BitRows::zeros(10_000, 3);
        for r in 0..rows.n_rows() {
            let first = rng.uniform() < 0.5;
            let is_other = rng.uniform() < 0.1;
            let third = rng.uniform() < 0.25;
            for (unit, on) in [first, first != is_other, third].into_iter().enumerate() {
                rows.set(r, unit, on);
            }
        }
        rows
    }

    #[test]
    fn models_are_distributions_and_their_order_is_that_of_their_parameters() {
        let rows = rows();
        let independent = Independent::fit(&rows);
        let tree = Tree::fit(&rows);
        let mixture = Mixture::fit(&rows, &rows, &MixtureSettings { n_components: 4, seed: 1 });
        let models: [&dyn Density; 3] = [&independent, &tree, &mixture];
        for model in models {
            assert!((sum_over_all_rows(model, 3) - 1.0).abs() < 1e-9);
        }
        let [independent, tree, mixture] = models.map(|model| mean_log_likelihood(model, &rows).0);
        // The entropies: three units, or two with one that follows its neighbour.
        let h = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
        assert!((independent + 2.0 * h(0.5) + h(0.25)).abs() < 0.02, "{independent}");
        assert!((tree - independent - 2f64.ln() + h(0.1)).abs() < 0.05, "{tree}");
        assert!((mixture - tree).abs() < 0.02, "{mixture} {tree}");
    }

    #[test]
    fn a_rare_unit_keeps_a_probability() {
        let rows = BitRows::from_words(2, vec![0b01; 9]);
        let model = Independent::fit(&rows);
        let expected = (9.5f64 / 10.0).ln() + (0.5f64 / 10.0).ln();
        assert!((model.log_likelihood(&[0b11]) - expected).abs() < 1e-12);
    }
}
