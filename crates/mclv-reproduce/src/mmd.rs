//! The squared maximum mean discrepancy of two sets of rows, with a Gaussian kernel.
//!
//! The estimator is that of Recio-Armengol, Ahmed and Bowles (arXiv:2503.02934): the unbiased
//! U-statistic with the kernel `exp(−‖x − y‖² / 2σ²)` of rows of 0 and 1, on each of 20 parts of the
//! rows and of the samples; the mean of the parts, and its standard error.

use mclv::bits::BitRows;
use serde::{Deserialize, Serialize};

/// The number of parts.
const N_PARTS: usize = 20;
/// The most rows whose distances give the median.
const N_MEDIAN: usize = 1000;

/// The squared distance of two sets of rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discrepancy {
    /// The width σ of the kernel.
    pub sigma: f64,
    /// The mean over the parts. It can be below 0.
    pub mean: f64,
    /// The standard error of the mean over the parts.
    pub std_err: f64,
}

impl Discrepancy {
    /// Compares rows with samples.
    pub(crate) fn new(rows: &BitRows, samples: &BitRows, sigma: f64) -> Self {
        let n_parts = N_PARTS.min(rows.n_rows() / 2).min(samples.n_rows() / 2).max(1);
        let part = |all: &BitRows, k: usize| -> BitRows {
            let (from, to) = (k * all.n_rows() / n_parts, (k + 1) * all.n_rows() / n_parts);
            all.select(&(from..to).collect::<Vec<_>>())
        };
        let values: Vec<f64> =
            (0..n_parts).map(|k| squared(&part(rows, k), &part(samples, k), sigma)).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        Self { sigma, mean, std_err: (squares / (n - 1.0) / n).sqrt() }
    }
}

/// The unbiased estimate of the squared distance.
fn squared(rows: &BitRows, samples: &BitRows, sigma: f64) -> f64 {
    let kernel = |distance: u32| (-f64::from(distance) / (2.0 * sigma * sigma)).exp();
    let sum = |a: &BitRows, b: &BitRows| -> f64 {
        (0..a.n_rows())
            .flat_map(|i| (0..b.n_rows()).map(move |j| (i, j)))
            .map(|(i, j)| kernel(distance(a.row(i), b.row(j))))
            .sum()
    };
    let (n, m) = (rows.n_rows() as f64, samples.n_rows() as f64);
    (sum(rows, rows) - n) / (n * (n - 1.0)) - 2.0 * sum(rows, samples) / (n * m)
        + (sum(samples, samples) - m) / (m * (m - 1.0))
}

/// The median Euclidean distance between rows, of at most 1,000 of them.
pub(crate) fn median_distance(rows: &BitRows) -> f64 {
    let n = rows.n_rows().min(N_MEDIAN);
    let some: Vec<usize> = (0..n).map(|k| k * rows.n_rows() / n).collect();
    let mut distances: Vec<u32> = (0..n)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| distance(rows.row(some[i]), rows.row(some[j])))
        .collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).map_or(0.0, |&d| f64::from(d).sqrt()).max(1.0)
}

fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::rng::{Purpose, stream};

    /// Rows whose units are on with probability `p`.
    fn rows(n: usize, p: f64, index: u64) -> BitRows {
        let mut rng = stream(8, Purpose::Estimator, index).reader();
        let mut rows = BitRows::zeros(n, 8);
        for r in 0..n {
            (0..8).for_each(|i| rows.set(r, i, rng.uniform() < p));
        }
        rows
    }

    #[test]
    fn the_value_is_the_expectation_and_equal_laws_have_none() {
        // E exp(−d / 2σ²) of independent units is a product: each differs with probability p(1−q) +
        // q(1−p).
        let sigma = 1.5f64;
        let per_unit = |p: f64, q: f64| {
            let differ = p * (1.0 - q) + q * (1.0 - p);
            1.0 - differ * (1.0 - (-1.0 / (2.0 * sigma * sigma)).exp())
        };
        let expected =
            |p: f64, q: f64| per_unit(p, p).powi(8) - 2.0 * per_unit(p, q).powi(8) + per_unit(q, q).powi(8);
        // Each z-test fails by chance once in 15,000.
        for (p, q, index) in [(0.3, 0.3, 0), (0.3, 0.5, 2), (0.5, 0.7, 4)] {
            let found = Discrepancy::new(&rows(2000, p, index), &rows(2000, q, index + 1), sigma);
            assert!((found.mean - expected(p, q)).abs() < 4.0 * found.std_err, "{p} {q}: {found:?}");
        }
        // The control: the test sees a difference of the means by 0.2.
        let far = Discrepancy::new(&rows(2000, 0.3, 6), &rows(2000, 0.5, 7), sigma);
        assert!(far.mean > 8.0 * far.std_err);
    }
}
