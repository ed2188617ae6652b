//! Summarise numbers (mean, standard deviation), and test whether paired runs differ.

use serde::{Deserialize, Serialize};

/// The mean and standard deviation of several numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with divisor `n − 1`. `None` for a single number.
    pub sd: Option<f64>,
    /// The number of values.
    pub n: usize,
}

impl Summary {
    /// Summarises `values`. Returns `None` if there are none.
    ///
    /// ```
    /// use mclv::statistics::Summary;
    /// let s = Summary::of(&[1.0, 2.0, 3.0]).unwrap();
    /// assert_eq!((s.mean, s.sd, s.n), (2.0, Some(1.0), 3));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        Some(Self { mean, sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()), n })
    }
}

/// Returns the largest of some values, or NaN if one of them is NaN or there are none. So
/// `largest(…) < limit` is false if a value cannot be compared; a fold with `f64::max` would ignore
/// NaN.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
    values.into_iter().reduce(larger).unwrap_or(f64::NAN)
}

/// Returns the largest distance between the distribution functions of two samples (the two-sample
/// Kolmogorov-Smirnov distance), or 0 if one of them is empty.
pub(crate) fn largest_distance(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |values: &[f64]| -> Vec<f64> {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j, mut most) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        let x = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&y| y <= x).count();
        j += b[j..].iter().take_while(|&&y| y <= x).count();
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    most
}

/// The result of Student's paired test of whether the mean difference is 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedTest {
    /// The summary of the differences, first minus second.
    pub difference: Summary,
    /// The test statistic `mean / (sd / √n)`.
    pub t: f64,
    /// The two-sided p-value: the probability that pairs without a difference look at least as
    /// different, if differences are normal.
    pub p: f64,
}

/// Compares two methods that were run with the same seeds, by Student's paired test.
///
/// Returns `None` with fewer than two pairs, or if all differences are equal.
///
/// ```
/// use mclv::statistics::paired_t_test;
/// let test = paired_t_test(&[1.1, 2.3, 2.9, 4.2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
/// assert!((test.t - 1.4638501).abs() < 1e-6 && (test.p - 0.2394426).abs() < 1e-6);
/// ```
///
/// # Panics
/// If `a` and `b` differ in length.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Option<PairedTest> {
    assert_eq!(a.len(), b.len(), "pairs have two sides");
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let difference = Summary::of(&differences)?;
    let sd = difference.sd.filter(|&sd| sd > 0.0)?;
    let t = difference.mean / (sd / (difference.n as f64).sqrt());
    Some(PairedTest { difference, t, p: student_two_sided(t, (difference.n - 1) as f64) })
}

/// `p(|T| > |t|)` for Student's T with `df` degrees of freedom.
fn student_two_sided(t: f64, df: f64) -> f64 {
    incomplete_beta(0.5 * df, 0.5, df / (df + t * t))
}

/// `p(T > t)` for Student's T with `df` degrees of freedom.
pub(crate) fn student_above(t: f64, df: f64) -> f64 {
    let tail = 0.5 * student_two_sided(t, df);
    if t > 0.0 { tail } else { 1.0 - tail }
}

/// The regularised incomplete beta function `I_x(a, b)`, by Lentz's continued fraction.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        // The fraction converges fast only on the other side.
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
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

/// Returns the quantile of the normal distribution for the probability `p`, within 1e-6 for `p`
/// from 1e-9 to 1 − 1e-9.
///
/// # Panics
/// If `p` is not between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "a probability between 0 and 1: {p}");
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_tail(middle) > 1.0 - p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Returns `P(x > z)` for the normal distribution, with a relative error of 1e-7: half the
/// complementary error function of `z/√2`, by a Chebyshev fit.
fn normal_tail(z: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let tail = 0.5 * t * (-x * x + FIT.iter().rev().fold(0.0, |sum, c| sum * t + c)).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.9995, 3.290_527), (1.0 - 1e-7, 5.199_338)] {
            assert!((normal_quantile(p) - z).abs() < 2e-5, "{p}: {}", normal_quantile(p));
            assert!((normal_quantile(1.0 - p) + z).abs() < 2e-5);
        }
    }

    #[test]
    fn the_largest_value_is_nan_if_any_is() {
        assert_eq!(largest([-1.0, -3.0, -2.0]), -1.0);
        for values in [[f64::NAN, 0.0, 1.0], [0.0, f64::NAN, 1.0], [0.0, 1.0, f64::NAN]] {
            assert!(largest(values).is_nan());
        }
        assert!(largest([]).is_nan());
    }

    #[test]
    fn distances_of_distribution_functions_are_those_at_all_places() {
        let naive = |a: &[f64], b: &[f64]| {
            let below = |values: &[f64], x: f64| {
                values.iter().filter(|&&y| y <= x).count() as f64 / values.len() as f64
            };
            a.iter().chain(b).map(|&x| (below(a, x) - below(b, x)).abs()).fold(0.0, f64::max)
        };
        let mut rng = crate::rng::stream(4, crate::rng::Purpose::SelfTest, 0).reader();
        for (n, m) in [(1, 1), (3, 7), (40, 25)] {
            // Few different values, so that many are equal.
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.below(6) as f64).collect() };
            let (a, b) = (draw(n), draw(m));
            assert!((largest_distance(&a, &b) - naive(&a, &b)).abs() < 1e-15, "{a:?} {b:?}");
        }
        assert_eq!((largest_distance(&[1.0, 2.0], &[3.0]), largest_distance(&[], &[3.0])), (1.0, 0.0));
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

    /// Closed forms for one and two degrees of freedom; the table for ten.
    #[test]
    fn students_law_is_known_for_few_degrees_of_freedom() {
        for t in [0.0, 0.3, 1.0, 4.0, 50.0f64] {
            let cauchy = 1.0 - 2.0 * t.atan() / std::f64::consts::PI;
            assert!((student_two_sided(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((student_two_sided(-t, 2.0) - two).abs() < 1e-12, "{t}");
        }
        assert!((student_two_sided(2.228_138_851_964_939, 10.0) - 0.05).abs() < 1e-10);
        assert!((student_above(2.228_138_851_964_939, 10.0) - 0.025).abs() < 1e-10);
        assert!((student_above(-2.228_138_851_964_939, 10.0) - 0.975).abs() < 1e-10);
    }

    #[test]
    fn pairs_without_spread_are_not_tested() {
        assert!(paired_t_test(&[1.0], &[2.0]).is_none() && paired_t_test(&[1.0, 2.0], &[2.0, 3.0]).is_none());
        assert!(Summary::of(&[]).is_none() && Summary::of(&[3.0]).unwrap().sd.is_none());
    }
}
