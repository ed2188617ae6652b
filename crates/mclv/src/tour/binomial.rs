//! Confidence limits of a probability from counts.

use crate::statistics::incomplete_beta;

/// Returns the Clopper–Pearson interval for a probability after `k` successes in `n` trials. Each
/// side misses with probability at most `(1 − level)/2`, for every true value.
pub(super) fn clopper_pearson(k: u64, n: u64, level: f64) -> (f64, f64) {
    let tail = 0.5 * (1.0 - level);
    let (a, b) = (k as f64, (n - k) as f64);
    let low = if k == 0 { 0.0 } else { solve(|p| incomplete_beta(a, b + 1.0, p), tail) };
    let high = if k == n { 1.0 } else { solve(|p| incomplete_beta(a + 1.0, b, p), 1.0 - tail) };
    (low, high)
}

/// Returns the point at which the increasing function `f` on [0, 1] reaches `y`.
fn solve(f: impl Fn(f64) -> f64, y: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // 80 halvings give twelve digits of any probability that a count can resolve.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if f(middle) < y { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ln_gamma;

    /// By their definition as sums of the binomial law; and the closed forms at the ends.
    #[test]
    fn limits_are_those_of_binomial_sums() {
        for (k, n) in [(0, 10), (3, 10), (10, 10), (1, 500), (250, 500), (2_000, 20_000)] {
            let (low, high) = clopper_pearson(k, n, 0.95);
            // Σ_{j≥k} and Σ_{j≤k} of the binomial law at the limits, term by term.
            let log_term = |j: u64, p: f64| {
                ln_gamma(n as f64 + 1.0) - ln_gamma(j as f64 + 1.0) - ln_gamma((n - j) as f64 + 1.0)
                    + j as f64 * p.ln()
                    + (n - j) as f64 * (1.0 - p).ln()
            };
            let sum = |js: std::ops::RangeInclusive<u64>, p| js.map(|j| log_term(j, p).exp()).sum::<f64>();
            assert!(k == 0 || (sum(k..=n, low) - 0.025).abs() < 1e-9, "{k} of {n}: {low}");
            assert!(k == n || (sum(0..=k, high) - 0.025).abs() < 1e-9, "{k} of {n}: {high}");
            assert!((k > 0 || low == 0.0) && (k < n || high == 1.0));
        }
        assert!((clopper_pearson(0, 10, 0.95).1 - (1.0 - 0.025f64.powf(0.1))).abs() < 1e-12);
    }
}
