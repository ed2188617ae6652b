//! Compute a confidence interval for the mean of non-negative numbers with a long tail, or the reason
//! why none can be given.
//!
//! Tour lengths are mostly 1 and rarely thousands. The plain interval (mean ± 1.96 standard errors)
//! then covers far less often than it claims, because samples without long tours have both a small
//! mean and a small error. This module uses four remedies:
//!
//! 1. *Decline* if few values carry the second moment: `(Σy²)²/Σy⁴ < 4`, where `y` is the excess
//!    over the smallest value.
//! 2. *Separate decision and measurement*: every fourth value decides whether there is an interval,
//!    and the other three quarters give it. If all values did both, samples that look light by
//!    chance would get an interval, and a wrong one. With separate values, the interval is
//!    independent of the decision, so the intervals that are given cover as often as all would.
//! 3. *Skewness*: Hall's (1992) cubic transformation of the studentised mean, which is monotone and
//!    has a closed inverse.
//! 4. *Unseen values*: the upper end is that of the sample with five more values as large as the
//!    largest one seen. A sample of `n` says nothing about values beyond its maximum; they add
//!    about `max/n` to the mean unless the tail is very heavy.
//!
//! `cargo test --release -p mclv --lib interval -- --nocapture` prints the coverage, the width and
//! how often an interval is declined, for all distributions of the test; `docs/decisions` has the
//! table. No interval can cover a rare kind of tour that left no trace in the sample: each kind
//! that matters must be expected about six times.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The 0.975 quantile of the normal law.
const Z: f64 = 1.959_963_984_540_054;
/// The smallest sample that can show a tail.
const MIN_VALUES: usize = 2_000;
/// One value in this many decides whether an interval is given.
const DECIDERS: usize = 4;
/// The smallest number of deciding values that may carry the second moment.
const MIN_CARRIERS: f64 = 4.0;
/// The number of unseen values, as large as the largest, that the upper end allows for.
const N_UNSEEN: f64 = 5.0;

/// The reason why no interval can be given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Declined {
    /// There are too few values to judge their tail.
    TooFew {
        /// The number of values.
        n: usize,
    },
    /// All values are equal, so the variation has not been seen.
    NoVariation,
    /// A few values carry the second moment, so the tail has not been seen.
    FewCarriers {
        /// `(Σy²)²/Σy⁴` of the values that decide.
        n: f64,
    },
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { n } => write!(f, "{n} values are too few to judge their tail; make {MIN_VALUES}"),
            Self::NoVariation => f.write_str("all values are equal, so no tail has been seen"),
            // Rounded down: 3.96 is not "4.0".
            Self::FewCarriers { n } => write!(
                f,
                "too few large values decide how much all values vary: as few as {:.1}; at least {MIN_CARRIERS} are needed",
                (n * 10.0).floor() / 10.0
            ),
        }
    }
}

/// Returns a 95 % confidence interval for the mean of independent, identically distributed numbers
/// that are not negative.
///
/// # Guarantee
/// In simulations, at least 93 % of the intervals that are given cover the mean, for distributions
/// from geometric to Pareto with infinite variance, if every kind of value that matters for the
/// mean is expected six times or more.
///
/// ```
/// use mclv::partition::{Declined, mean_interval};
/// // Geometric quantiles, in no order: a tail that ends soon.
/// let light: Vec<f64> = (1..4001).map(|k| (-((k * 1009 % 4001) as f64 / 4001.0).ln() * 5.0).ceil()).collect();
/// let mean = light.iter().sum::<f64>() / 4000.0;
/// let (low, high) = mean_interval(&light).unwrap();
/// assert!(low < mean && mean < high && high - mean > mean - low);
/// // One value in four thousand is all that matters.
/// let mut heavy = vec![1.0; 3999];
/// heavy.push(1e6);
/// assert!(matches!(mean_interval(&heavy), Err(Declined::FewCarriers { .. })));
/// ```
///
/// # Errors
/// Returns [`Declined`] if the sample does not show enough of its tail.
///
/// # Panics
/// If a value is negative or not a number.
pub fn mean_interval(x: &[f64]) -> Result<(f64, f64), Declined> {
    assert!(x.iter().all(|x| *x >= 0.0), "no negative numbers");
    if x.len() < MIN_VALUES {
        return Err(Declined::TooFew { n: x.len() });
    }
    if x.iter().all(|&y| y == x[0]) {
        return Err(Declined::NoVariation);
    }
    let (deciding, measuring) = split(x);
    let largest = decide(&deciding)?;
    let (low, high) = measure(&measuring, largest);
    // The reported value is the mean of all.
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    Ok((low.min(mean), high.max(mean)))
}

/// The largest logarithm of the upper end that [`small_excess_interval`] accepts.
const SMALL: f64 = 0.05;

/// Returns an interval for the mean of tour lengths if nearly all lengths are 1, where
/// [`mean_interval`] has too little evidence.
///
/// No length is below 1, so the mean is not either, and the lower end is 1 for certain. The upper
/// end allows for five unseen tours that are as long as the longest tour, or as `scale`: the number
/// of steps that chains from elsewhere took to reach the stopping set. Returns `None` if the
/// interval would be wider than 0.05 in the logarithm, because then the tail matters.
pub(super) fn small_excess_interval(lengths: &[f64], scale: f64) -> Option<(f64, f64)> {
    if lengths.len() < MIN_VALUES {
        return None;
    }
    let n = lengths.len() as f64;
    let unseen = N_UNSEEN * scale.max(most(lengths)).max(MIN_SCALE) / n;
    let high = lengths.iter().sum::<f64>() / n + unseen;
    (high.ln() <= SMALL).then_some((1.0, high))
}

/// The shortest length that an unseen tour is assumed to have.
const MIN_SCALE: f64 = 10.0;

/// Splits values into those that decide and those that measure. Every fourth one decides, because
/// stratified tours begin in order of their strata.
pub(super) fn split(x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let part = |decides: bool| {
        let of = move |(k, &y): (usize, &f64)| (k.is_multiple_of(DECIDERS) == decides).then_some(y);
        x.iter().enumerate().filter_map(of).collect()
    };
    (part(true), part(false))
}

/// Returns the largest value if the values show a tail.
fn decide(x: &[f64]) -> Result<f64, Declined> {
    let carriers = n_carriers(x);
    if carriers < MIN_CARRIERS {
        return Err(Declined::FewCarriers { n: carriers });
    }
    Ok(most(x))
}

/// Returns the interval, given that values up to `largest` are known to occur. Such values only
/// widen it.
fn measure(x: &[f64], largest: f64) -> (f64, f64) {
    let seen = Moments::new(x);
    (seen.hall(Z), seen.with(N_UNSEEN, most(x).max(largest)).hall(-Z))
}

fn most(x: &[f64]) -> f64 {
    x.iter().copied().fold(0.0, f64::max)
}

/// Returns `(Σy²)²/Σy⁴` of the excesses `y` over the smallest value: the number of values that
/// carry the second moment. It is 0 if all values are equal.
pub(super) fn n_carriers(x: &[f64]) -> f64 {
    let least = x.iter().copied().fold(f64::INFINITY, f64::min);
    let (two, four) = x.iter().fold((0.0, 0.0), |(two, four), x| {
        let square = (x - least).powi(2);
        (two + square, four + square * square)
    });
    if four > 0.0 { two * two / four } else { 0.0 }
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

    /// Returns the sums after `count` more values `x`.
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

    /// Returns the end of Hall's interval that belongs to the normal quantile `z`.
    fn hall(self, z: f64) -> f64 {
        if self.two == 0.0 {
            return self.mean;
        }
        let sd = (self.two / (self.n - 1.0)).sqrt();
        // Skewness of the mean.
        let g = self.three / self.n / sd.powi(3) / self.n.sqrt();
        // The transformation's series at g = 0, where its closed form is 0/0.
        let t = if g.abs() < 1e-6 { z } else { 3.0 / g * ((1.0 + g * (z - g / 6.0)).cbrt() - 1.0) };
        self.mean - t * sd / self.n.sqrt()
    }
}

#[cfg(test)]
mod tests;
