//! Confidence limits of a probability from counts.

/// The Clopper–Pearson interval for a probability after `k` successes in `n` trials: each side misses with probability at
/// most `(1 − level)/2`, for every true value.
pub(super) fn clopper_pearson(k: u64, n: u64, level: f64) -> (f64, f64) {
    let tail = 0.5 * (1.0 - level);
    let (a, b) = (k as f64, (n - k) as f64);
    let low = if k == 0 { 0.0 } else { solve(|p| incomplete_beta(a, b + 1.0, p), tail) };
    let high = if k == n { 1.0 } else { solve(|p| incomplete_beta(a + 1.0, b, p), 1.0 - tail) };
    (low, high)
}

/// Where the increasing function `f` on [0, 1] reaches `y`.
fn solve(f: impl Fn(f64) -> f64, y: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Enough for twelve digits of any probability that a count can speak of.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if f(middle) < y { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function `I_x(a, b)`, by Lentz's continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        // The fraction converges fast on the other side only.
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let tiny = |x: f64| if x.abs() < 1e-300 { 1e-300 } else { x };
    let (mut c, mut d) = (1.0, 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0)));
    let mut product = d;
    for m in (1..10_000).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / tiny(1.0 + term * d);
            c = tiny(1.0 + term / c);
            change *= c * d;
        }
        product *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * product
}

/// `ln Γ(x)`, x > 0: Stirling's series after a shift to 10 and beyond.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_gamma_function_interpolates_factorials() {
        let mut log_factorial = 0.0;
        for n in 1..30 {
            assert!((ln_gamma(f64::from(n)) - log_factorial).abs() < 1e-12 * log_factorial.max(1.0), "{n}");
            log_factorial += f64::from(n).ln();
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-13);
    }
}
