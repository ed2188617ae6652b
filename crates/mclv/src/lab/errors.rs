//! Bias, variance and mean squared error of vectors, from the inner products of their errors.
//!
//! With errors `e_a = g_a − r`, the mean of `⟨e_a, e_b⟩` over pairs of different estimates is an
//! unbiased estimate of the squared bias, and the mean of `⟨e_a, e_a⟩` one of the mean squared error.
//! If the reference `r` is the mean of groups with errors `δ_j = r_j − r`, both contain the variance
//! of `r`, which the spread of the groups gives and which is subtracted.

use super::results::{Measured, Unbiasedness};
use crate::statistics::student_above;
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::update::dot;

/// The inner products of `n` errors of estimates, `q` errors of groups of the reference, and the
/// gradient itself, which comes last.
pub(super) struct Errors {
    n: usize,
    q: usize,
    gram: Vec<f64>,
}

/// The mean of some numbers and its squared standard error.
fn mean_of(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, variance_of(values) / n)
}

/// The sample variance; 0 for fewer than two numbers.
fn variance_of(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

impl Errors {
    /// Takes the errors of `estimates` against a reference, and the gradient `positive − reference`.
    pub(super) fn new(
        estimates: &[Vec<f32>],
        groups: &[Vec<f32>],
        reference: &[f32],
        positive: &[f32],
    ) -> Self {
        let minus = |x: &[f32]| -> Vec<f32> { x.iter().zip(reference).map(|(x, r)| x - r).collect() };
        let mut vectors: Vec<Vec<f32>> = estimates.iter().chain(groups).map(|x| minus(x)).collect();
        vectors.push(minus(positive));
        let size = vectors.len();
        let isa = Isa::best();
        let rows: Vec<Vec<f64>> =
            team::map_blocks(size, |i| (0..=i).map(|j| dot(isa, &vectors[i], &vectors[j])).collect());
        let mut gram = vec![0.0; size * size];
        for (i, row) in rows.iter().enumerate() {
            for (j, &x) in row.iter().enumerate() {
                (gram[i * size + j], gram[j * size + i]) = (x, x);
            }
        }
        Self { n: estimates.len(), q: groups.len(), gram }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.gram[i * (self.n + self.q + 1) + j]
    }

    fn of_reference(&self) -> std::ops::Range<usize> {
        self.n..self.n + self.q
    }

    /// The squared standard error of the reference, all components together.
    fn reference_variance(&self) -> f64 {
        let q = self.q as f64;
        if self.q < 2 {
            return 0.0;
        }
        self.of_reference().map(|j| self.at(j, j)).sum::<f64>() / (q - 1.0) / q
    }

    /// The norm of the gradient, without the part that the error of the reference adds.
    pub(super) fn gradient_norm(&self) -> f64 {
        let last = self.n + self.q;
        (self.at(last, last) - self.reference_variance()).max(0.0).sqrt()
    }

    /// Measures the bias of `w_a · g_a` in units of the mean weight: whether `Σ w_a (g_a − r)` is 0
    /// on average. Without weights, all are 1.
    pub(super) fn unbiasedness(&self, weights: Option<&[f64]>) -> Unbiasedness {
        let n = self.n;
        let mean_weight = weights.map_or(1.0, |w| w.iter().sum::<f64>() / n as f64);
        let w = |a: usize| weights.map_or(1.0, |weights| weights[a] / mean_weight);
        let g = |i: usize, j: usize| {
            let weight = |k: usize| if k < n { w(k) } else { 1.0 };
            weight(i) * weight(j) * self.at(i, j)
        };
        let (size, q) = (n as f64, self.q as f64);
        let row: Vec<f64> = (0..n).map(|a| (0..n).map(|b| g(a, b)).sum::<f64>() / size).collect();
        let total = row.iter().sum::<f64>() / size;
        let diagonal: f64 = (0..n).map(|a| g(a, a)).sum();
        let squared = (size * size * total - diagonal) / (size * (size - 1.0)) - self.reference_variance();
        // tr Σ², of estimates, of groups, and of both.
        let pairs = |n: usize| (0..n).flat_map(move |a| (0..a).map(move |b| (a, b)));
        let centred = |a: usize, b: usize| g(a, b) - row[a] - row[b] + total;
        let of_estimates = variance_of(&pairs(n).map(|(a, b)| centred(a, b)).collect::<Vec<_>>());
        let of_groups = variance_of(&pairs(self.q).map(|(i, j)| self.at(n + i, n + j)).collect::<Vec<_>>());
        let with_mean: Vec<f64> =
            self.of_reference().map(|j| (0..n).map(|a| g(a, j)).sum::<f64>() / size).collect();
        let both: Vec<f64> = (0..n)
            .flat_map(|a| (0..self.q).map(move |j| (a, j)))
            .map(|(a, j)| g(a, n + j) - with_mean[j])
            .collect();
        let both = variance_of(&both);
        let per_group = |x: f64| if self.q < 2 { 0.0 } else { x / q };
        // bᵀΣb, of estimates and of groups.
        let along = (variance_of(&row) - of_estimates / size - per_group(both)).max(0.0);
        let along_groups = (variance_of(&with_mean) - per_group(of_groups) - both / size).max(0.0);
        let variance = 4.0 * along / size
            + 2.0 * of_estimates / (size * (size - 1.0))
            + per_group(4.0 * along_groups + 2.0 * of_groups / (q - 1.0).max(1.0) + 4.0 * both / size);
        let squared = Measured { value: squared, std_err: variance.sqrt() };
        Unbiasedness { squared, p: self.p_of_no_bias(w) }
    }

    /// The probability of estimates that err as much in one direction, if they have no bias. Half of
    /// the estimates (and of the groups) choose the direction and the others are tested, in both
    /// ways.
    fn p_of_no_bias(&self, w: impl Fn(usize) -> f64) -> f64 {
        let one_way = |parity: usize| {
            let half = |range: std::ops::Range<usize>, parity: usize| -> Vec<usize> {
                range.filter(|k| k % 2 == parity).collect()
            };
            let (choose, test) = (half(0..self.n, parity), half(0..self.n, 1 - parity));
            let groups = self.of_reference();
            let (choose_q, test_q) = (half(groups.clone(), parity), half(groups, 1 - parity));
            // The inner product with the mean error of the first half.
            let along = |k: usize| {
                let mean = choose.iter().map(|&a| w(a) * self.at(a, k)).sum::<f64>() / choose.len() as f64;
                let of_groups: f64 = choose_q.iter().map(|&j| self.at(j, k)).sum();
                mean - of_groups / choose_q.len().max(1) as f64
            };
            let estimates = mean_of(&test.iter().map(|&b| w(b) * along(b)).collect::<Vec<_>>());
            let groups = match test_q.is_empty() {
                true => (0.0, 0.0),
                false => mean_of(&test_q.iter().map(|&j| along(j)).collect::<Vec<_>>()),
            };
            let difference = estimates.0 - groups.0;
            let variance = estimates.1 + groups.1;
            if variance <= 0.0 {
                return if difference > 0.0 { 0.0 } else { 1.0 };
            }
            // Welch's degrees of freedom.
            let of = |variance: f64, n: usize| variance * variance / n.saturating_sub(1).max(1) as f64;
            let df = variance * variance / (of(estimates.1, test.len()) + of(groups.1, test_q.len()));
            student_above(difference / variance.sqrt(), df)
        };
        (2.0 * one_way(0).min(one_way(1))).min(1.0)
    }

    /// The variance of an estimate, all components together.
    pub(super) fn variance(&self) -> Measured {
        let n = self.n as f64;
        let row: Vec<f64> =
            (0..self.n).map(|a| (0..self.n).map(|b| self.at(a, b)).sum::<f64>() / n).collect();
        let total = row.iter().sum::<f64>() / n;
        let squares: Vec<f64> =
            (0..self.n).map(|a| (self.at(a, a) - 2.0 * row[a] + total) * n / (n - 1.0)).collect();
        let (value, squared_error) = mean_of(&squares);
        Measured { value, std_err: squared_error.sqrt() }
    }

    /// The mean squared error, all components together.
    pub(super) fn mse(&self) -> Measured {
        let (mean, squared_error) = mean_of(&(0..self.n).map(|a| self.at(a, a)).collect::<Vec<_>>());
        let with_mean: Vec<f64> = self
            .of_reference()
            .map(|j| (0..self.n).map(|a| self.at(a, j)).sum::<f64>() / self.n as f64)
            .collect();
        let of_reference = if self.q < 2 { 0.0 } else { 4.0 * variance_of(&with_mean) / self.q as f64 };
        let std_err = (squared_error + of_reference).sqrt();
        Measured { value: mean - self.reference_variance(), std_err }
    }

    /// The cosine of the angle between the gradient with an estimate and the gradient with the
    /// reference.
    pub(super) fn cosine(&self) -> Measured {
        let last = self.n + self.q;
        let norm = self.at(last, last);
        let cosine = |a: usize| {
            let (along, square) = (self.at(a, last), self.at(a, a));
            (norm - along) / (norm * (norm - 2.0 * along + square)).sqrt()
        };
        let (value, squared_error) = mean_of(&(0..self.n).map(cosine).collect::<Vec<_>>());
        Measured { value, std_err: squared_error.sqrt() }
    }
}
