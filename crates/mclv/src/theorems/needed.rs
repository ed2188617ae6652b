//! How many tours an estimate of Z needs: Theorem 3 with Chebyshev's inequality.
//!
//! `p(|Ẑ/Z − 1| ≥ e) ≤ var(ξ) / (R·E[ξ]²·e²)` for the mean of `R` complete tours. With the exact
//! variance or with the bound of Theorem 3 the statement is certain. With the variance of pilot
//! tours it is empirical: a tail that the pilot has not seen is missing.

use crate::partition::mean_interval;
use crate::tour::{TourTheory, Tours};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A wanted relative error of `Ẑ`, and the probability of a larger one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The relative error, such as 0.1.
    pub error: f64,
    /// The probability of a larger error, such as 0.05.
    pub alpha: f64,
}

impl Default for Precision {
    /// An error of 10 %, or a larger one with probability 5 %.
    fn default() -> Self {
        Self { error: 0.1, alpha: 0.05 }
    }
}

impl Precision {
    pub(super) fn check(self) -> Result<()> {
        for (name, value, is_right, cure) in [
            ("error", self.error, self.error > 0.0 && self.error.is_finite(), "more than 0, such as 0.1"),
            ("alpha", self.alpha, self.alpha > 0.0 && self.alpha <= 1.0, "a probability, such as 0.05"),
        ] {
            if !is_right {
                return Err(Error::InvalidSetting { name, value: value.to_string(), cure });
            }
        }
        Ok(())
    }
}

/// Returns a number of tours that is enough for the wanted precision, given the squared coefficient
/// of variation `var(ξ)/E[ξ]²` of tour lengths: at least 1.
pub fn tours_needed(squared_cv: f64, precision: Precision) -> f64 {
    (squared_cv / (precision.alpha * precision.error * precision.error)).ceil().max(1.0)
}

/// Returns `α(R, e)`: a bound of the probability that `n_tours` tours miss Z by a relative error of
/// `error` or more.
pub fn risk(squared_cv: f64, n_tours: usize, error: f64) -> f64 {
    (squared_cv / (n_tours as f64 * error * error)).min(1.0)
}

/// Tours that are enough for a wanted precision, from three sources of the variance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Needed {
    /// The wanted precision.
    pub precision: Precision,
    /// `var(ξ)/E[ξ]²` by the bound of Theorem 3, in its corrected form. `None` if the model cannot be
    /// enumerated.
    pub cv2_bound: Option<f64>,
    /// The exact `var(ξ)/E[ξ]²`. `None` if the model cannot be enumerated.
    pub cv2_exact: Option<f64>,
    /// **Empirical**: `var(ξ)/E[ξ]²` of these tours, as a pilot. `None` if tours were cut, or if they
    /// do not show the tail of their lengths.
    pub cv2_pilot: Option<f64>,
    /// The reason why the pilot gives no value.
    pub declined: Option<String>,
    /// The number of tours of the pilot.
    pub n_tours: usize,
}

impl Needed {
    pub(super) fn new(tours: &Tours, theory: Option<&TourTheory<'_>>, precision: Precision) -> Self {
        let lengths = tours.lengths();
        let declined = if !tours.all_complete() {
            Some("tours were cut, so the tail of their lengths is not known".into())
        } else {
            mean_interval(&lengths).err().map(|declined| declined.to_string())
        };
        let cv2 = |mean: f64, second: f64| (second / (mean * mean) - 1.0).max(0.0);
        let of_pilot = || {
            let n = lengths.len() as f64;
            let mean = lengths.iter().sum::<f64>() / n;
            let variance = lengths.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            variance / (mean * mean)
        };
        Self {
            precision,
            cv2_bound: theory.map(|t| cv2(1.0 / t.set_probability(), t.second_moment_bound())),
            cv2_exact: theory.map(|t| {
                let (mean, second) = t.length_moments();
                cv2(mean, second)
            }),
            cv2_pilot: declined.is_none().then(of_pilot),
            declined,
            n_tours: lengths.len(),
        }
    }
}
