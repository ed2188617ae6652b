//! Give a confidence interval for the mean of positive numbers with a long tail, or say why not.
//!
//! Tour lengths are mostly 1 and rarely thousands. The plain interval (mean ± 1.96 standard errors) then covers far less
//! than it says, because samples without long tours have both a small mean and a small error. Three remedies:
//!
//! 1. *Skewness*: Hall's (1992) cubic transformation of the studentised mean, which is monotone and has a closed inverse.
//! 2. *The unseen*: the upper end is that of the sample with three more values as large as the largest seen. Beyond its
//!    maximum a sample of `n` knows nothing; what lies there adds about `max/n` to the mean unless the tail is very heavy.
//! 3. *Decline*, when the tail is not resolved: the largest values still fall off like a power law (Hill's index of the top
//!    fifty below 2.5), or few of them carry the second moment, `(Σy²)²/Σy⁴ < 10` with `y` the excess over the smallest.
//!
//! Measured by `cargo test --release -p mclv --lib interval -- --nocapture`, which prints coverage, width and how often it
//! declines for nine laws; DESIGN.md has the table, and the laws on which it falls short: where an interval is given to a few
//! per cent of samples only, these are the ones that look light, and fewer than 93 % of them may cover. What no interval can
//! do is to cover a rare kind of tour of which there is no trace at all.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The 0.975 quantile of the normal law.
const Z: f64 = 1.959_963_984_540_054;
/// Largest values that the tail index is taken from.
const N_TOP: usize = 50;
/// Fewer values than this show no tail.
const MIN_VALUES: usize = 10 * N_TOP;
/// Smallest tail index: mean and variance exist above 2, and the index itself is uncertain by a seventh.
const MIN_INDEX: f64 = 2.5;
/// Fewest values that may carry the second moment.
const MIN_CARRIERS: f64 = 10.0;
/// Values like the largest that the upper end allows for.
const N_UNSEEN: f64 = 3.0;

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Declined {
    /// Fewer values than the tail can be judged from.
    TooFew {
        /// How many there are.
        n: usize,
    },
    /// All values are equal: whatever varies has not been seen.
    NoVariation,
    /// The second moment rests on a few values.
    FewCarriers {
        /// `(Σy²)²/Σy⁴`.
        n: f64,
    },
    /// The largest values fall off too slowly for the tail to have ended.
    HeavyTail {
        /// Hill's index of the largest values.
        index: f64,
    },
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { n } => write!(f, "{n} values are too few to judge their tail; make {MIN_VALUES}"),
            Self::NoVariation => f.write_str("all values are equal, so no tail has been seen"),
            Self::FewCarriers { n } => {
                write!(
                    f,
                    "as few as {n:.1} values carry the second moment; at least {MIN_CARRIERS} are needed"
                )
            }
            Self::HeavyTail { index } => write!(
                f,
                "the {N_TOP} largest values fall off like a power {index:.1}; at least {MIN_INDEX} is needed"
            ),
        }
    }
}

/// A 95 % confidence interval for the mean of independent positive numbers of one law.
///
/// ```
/// use mclv::partition::{Declined, mean_interval};
/// // Geometric quantiles: a tail that ends soon.
/// let light: Vec<f64> = (1..1000).map(|k| (-(k as f64 / 1000.0).ln() * 5.0).ceil()).collect();
/// let mean = light.iter().sum::<f64>() / 999.0;
/// let (low, high) = mean_interval(&light).unwrap();
/// assert!(low < mean && mean < high && high - mean > mean - low);
/// // One value in a thousand is all that matters.
/// let mut heavy = vec![1.0; 999];
/// heavy.push(1e6);
/// assert!(matches!(mean_interval(&heavy), Err(Declined::FewCarriers { .. })));
/// ```
///
/// # Errors
/// If the sample does not show enough of its tail.
///
/// # Panics
/// If a value is not a positive number.
pub fn mean_interval(x: &[f64]) -> Result<(f64, f64), Declined> {
    assert!(x.iter().all(|x| *x > 0.0), "positive numbers only");
    if x.len() < MIN_VALUES {
        return Err(Declined::TooFew { n: x.len() });
    }
    let (least, most) = x.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), &x| (lo.min(x), hi.max(x)));
    if least == most {
        return Err(Declined::NoVariation);
    }
    let carriers = n_carriers(x);
    if carriers < MIN_CARRIERS {
        return Err(Declined::FewCarriers { n: carriers });
    }
    let index = tail_index(x);
    if index < MIN_INDEX {
        return Err(Declined::HeavyTail { index });
    }
    let seen = Moments::new(x);
    Ok((seen.hall(Z), seen.with(N_UNSEEN, most).hall(-Z)))
}

/// `(Σy²)²/Σy⁴` of the excesses `y` over the smallest value: how many values carry the second moment.
pub(super) fn n_carriers(x: &[f64]) -> f64 {
    let least = x.iter().copied().fold(f64::INFINITY, f64::min);
    let (two, four) = x.iter().fold((0.0, 0.0), |(two, four), x| {
        let square = (x - least).powi(2);
        (two + square, four + square * square)
    });
    two * two / four
}

/// Hill's (1975) estimate of the power with which the tail falls off, from the largest values.
fn tail_index(x: &[f64]) -> f64 {
    let mut x = x.to_vec();
    let (top, &mut threshold, _) = x.select_nth_unstable_by(N_TOP, |a, b| b.total_cmp(a));
    N_TOP as f64 / top.iter().map(|x| (x / threshold).ln()).sum::<f64>()
}

/// Central sums of a sample.
#[derive(Clone, Copy)]
struct Moments {
    n: f64,
    mean: f64,
    two: f64,
    three: f64,
}

impl Moments {
    fn new(x: &[f64]) -> Self {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let (two, three) = x.iter().fold((0.0, 0.0), |(two, three), x| {
            let d = x - mean;
            (two + d * d, three + d * d * d)
        });
        Self { n, mean, two, three }
    }

    /// The same with `count` more values `x`.
    fn with(self, count: f64, x: f64) -> Self {
        let n = self.n + count;
        let mean = (self.n * self.mean + count * x) / n;
        let (d, e) = (self.mean - mean, x - mean);
        Self {
            n,
            mean,
            two: self.two + self.n * d * d + count * e * e,
            three: self.three + 3.0 * d * self.two + self.n * d.powi(3) + count * e.powi(3),
        }
    }

    /// The end of Hall's interval that belongs to the normal quantile `z`.
    fn hall(self, z: f64) -> f64 {
        let sd = (self.two / (self.n - 1.0)).sqrt();
        // Skewness of the mean.
        let g = self.three / self.n / sd.powi(3) / self.n.sqrt();
        // The transformation's series at g = 0, where its closed form is 0/0.
        let t = if g.abs() < 1e-6 { z } else { 3.0 / g * ((1.0 + g * (z - g / 6.0)).cbrt() - 1.0) };
        self.mean - t * sd / self.n.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Reader, stream};
    use rayon::prelude::*;

    /// A mixture of geometric laws: (probability, mean) each.
    struct Law {
        name: &'static str,
        parts: Vec<(f64, f64)>,
    }

    impl Law {
        fn new(name: &'static str, parts: &[(f64, f64)]) -> Self {
            let total: f64 = parts.iter().map(|(p, _)| p).sum();
            Self { name, parts: parts.iter().map(|(p, m)| (p / total, *m)).collect() }
        }

        /// Means 1, 4, 16, … 1,024 with probabilities that fall like their power `−index`.
        fn power(name: &'static str, index: f64) -> Self {
            let part = |j: i32| (4f64.powf(-index * f64::from(j)), 4f64.powi(j));
            Self::new(name, &(0..6).map(part).collect::<Vec<_>>())
        }

        fn mean(&self) -> f64 {
            self.parts.iter().map(|(p, m)| p * m).sum()
        }

        fn cv(&self) -> f64 {
            let second: f64 = self.parts.iter().map(|(p, m)| p * (2.0 * m * m - m)).sum();
            (second / self.mean().powi(2) - 1.0).sqrt()
        }

        fn draw(&self, rng: &mut Reader) -> f64 {
            let mut u = rng.uniform();
            for &(p, mean) in &self.parts {
                if u < p {
                    // What is left of u is uniform again.
                    return if mean <= 1.0 {
                        1.0
                    } else {
                        ((u / p).ln() / (1.0 - 1.0 / mean).ln()).floor() + 1.0
                    };
                }
                u -= p;
            }
            1.0
        }
    }

    fn laws() -> Vec<Law> {
        vec![
            Law::new("geometric, mean 4", &[(1.0, 4.0)]),
            Law::new("geometric, mean 1.2", &[(1.0, 1.2)]),
            Law::new("1 % of mean 280", &[(0.9893, 1.0), (0.0107, 280.0)]),
            Law::new("2 % of 3, 1 % of 280", &[(0.9693, 1.0), (0.02, 3.0), (0.0107, 280.0)]),
            Law::new("3 % of 5, 0.3 % of 330", &[(0.965, 1.0), (0.032, 5.0), (0.003, 330.0)]),
            Law::power("power 1.3 up to 1,024", 1.3),
            Law::power("power 1.5 up to 1,024", 1.5),
            Law::power("power 1.8 up to 1,024", 1.8),
            Law::power("power 2.2 up to 1,024", 2.2),
        ]
    }

    const N_REPLICATES: u64 = 2_000;

    /// Of `N_REPLICATES` samples: shares with an interval and with a wrong one, mean width over the true mean, and coverage
    /// of the plain interval in all of them.
    fn simulate(law: &Law, n: usize, seed: u64) -> [f64; 4] {
        let mean = law.mean();
        let one = |replicate: u64| {
            let mut rng = stream(seed, Purpose::SelfTest, (n as u64) << 20 | replicate).reader();
            let x: Vec<f64> = (0..n).map(|_| law.draw(&mut rng)).collect();
            let m = Moments::new(&x);
            let plain = (m.mean - mean).abs() <= Z * (m.two / (m.n - 1.0) / m.n).sqrt();
            let plain = f64::from(u8::from(plain));
            match mean_interval(&x) {
                Ok((low, high)) => {
                    let missed = !(low..=high).contains(&mean);
                    [1.0, f64::from(u8::from(missed)), (high - low) / mean, plain]
                }
                Err(_) => [0.0, 0.0, 0.0, plain],
            }
        };
        let results: Vec<[f64; 4]> = (0..N_REPLICATES).into_par_iter().map(one).collect();
        let mut sums = [0.0; 4];
        results.iter().for_each(|r| sums.iter_mut().zip(r).for_each(|(s, x)| *s += x));
        [sums[0], sums[1], sums[2] / sums[0].max(1.0) * N_REPLICATES as f64, sums[3]]
            .map(|x| x / N_REPLICATES as f64)
    }

    /// Where intervals are given in more than one run of twenty, at least 93 % of them cover; where they are rarer, wrong
    /// ones are rarer than one run in a hundred. At 95 % true coverage and 2,000 intervals, 93 % is 4.1 standard errors away.
    #[test]
    fn intervals_cover_where_they_are_given() {
        eprintln!("law                      cv       R   given  coverage   width  plain");
        for (k, law) in laws().iter().enumerate() {
            // The largest samples take most of the time: for laws that only they resolve.
            let n_sizes = if [2, 4, 7, 8].contains(&k) { 5 } else { 4 };
            for n in [200, 1_000, 5_000, 20_000, 100_000].into_iter().take(n_sizes) {
                let [given, missed, width, plain] = simulate(law, n, 60 + k as u64);
                let coverage = 1.0 - missed / given;
                let (name, cv) = (law.name, law.cv());
                eprintln!("{name:24} {cv:4.1} {n:7} {given:7.3} {coverage:9.3} {width:7.3} {plain:6.3}");
                if given > 0.05 {
                    assert!(coverage >= 0.93, "{name}, {n}: {coverage}");
                } else {
                    assert!(missed < 0.01, "{name}, {n}: {missed}");
                }
                let resolved = match k {
                    0 | 1 => n >= 1_000,
                    2 => n >= 100_000,
                    _ => false,
                };
                let unseen = n == 200 || k >= 2 && n <= 5_000 && k <= 6;
                assert!(!resolved || given > 0.9, "{name}, {n}: declined too often, given {given}");
                assert!(!unseen || given < 0.01, "{name}, {n}: must decline, given {given}");
                // The control: the plain interval, given always.
                assert!(k != 2 || n != 200 || plain < 0.9, "the plain interval must be caught: {plain}");
            }
        }
    }

    #[test]
    fn the_reasons_to_decline_are_told_apart() {
        assert_eq!(mean_interval(&[1.0; 10]), Err(Declined::TooFew { n: 10 }));
        assert_eq!(mean_interval(&[1.0; 1000]), Err(Declined::NoVariation));
        let mut few = vec![1.0; 1000];
        few[..3].fill(50.0);
        assert!(matches!(mean_interval(&few), Err(Declined::FewCarriers { n }) if (n - 3.0).abs() < 1e-9));
        let pareto: Vec<f64> = (1..2000).map(|k| (f64::from(k) / 2000.0).powf(-0.6)).collect();
        let result = mean_interval(&pareto);
        assert!(
            matches!(result, Err(Declined::FewCarriers { .. } | Declined::HeavyTail { .. })),
            "{result:?}"
        );
        let text = Declined::HeavyTail { index: 1.62 }.to_string();
        assert!(text.contains("power 1.6"), "{text}");
    }

    #[test]
    fn without_skewness_the_interval_is_the_plain_one() {
        let x: Vec<f64> = (1..=1001).map(f64::from).collect();
        let m = Moments::new(&x);
        let half = Z * (m.two / (m.n - 1.0) / m.n).sqrt();
        assert!((m.hall(Z) - (m.mean - half)).abs() < 1e-3 * half);
        assert!((m.hall(-Z) - (m.mean + half)).abs() < 1e-3 * half);
        let more = m.with(2.0, 7.0);
        let again = Moments::new(&[&x[..], &[7.0, 7.0]].concat());
        assert!(
            (more.three - again.three).abs() < 1e-9 * m.two.powf(1.5)
                && (more.two / again.two - 1.0).abs() < 1e-12
        );
    }
}
