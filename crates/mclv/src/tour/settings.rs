//! Set how many tours to run, and when to cut them.

use crate::chain::VisibleChain;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The largest number of steps of a tour. Its random numbers end there.
pub(super) const MAX_LENGTH: u32 = 1 << 31;

/// Settings for tours: how many to run, and the limits at which they are cut.
///
/// Without limits every tour runs until it returns (`K_dyn`). All limits apply to *all* tours,
/// which begin together. A cut tour counts with the steps it has made, so the mean of `min(ξ, K)`
/// is never above that of `ξ`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TourSettings {
    /// The number of tours.
    pub n_tours: usize,
    /// The chain of the visible units: true Gibbs, or the paper's mean field, which has no
    /// guarantee.
    pub visible: VisibleChain,
    /// If true, starts are spread evenly over `π_S` instead of drawn independently: two tours begin
    /// in each of `n_tours / 2` strata of equal probability, with states in order of weight.
    /// Estimates stay unbiased, and their variance cannot grow.
    pub stratified: bool,
    /// The number of steps after which every tour is cut (MCLV-K). `None` means 2³¹.
    pub max_length: Option<u32>,
    /// The number of steps that all tours may make together. All tours are cut at the largest
    /// length that this allows.
    pub max_steps: Option<u64>,
    /// The seconds that all tours may take together. The cut then depends on the clock, so the
    /// result cannot be reproduced.
    pub max_seconds: Option<f64>,
    /// The seed of starts and steps.
    pub seed: u64,
    /// A number that tells runs of the same seed apart, such as a pilot from the run of the
    /// estimate.
    pub occasion: u16,
}

impl Default for TourSettings {
    /// 10,000 tours, true Gibbs, independent starts, no limit.
    fn default() -> Self {
        Self {
            n_tours: 10_000,
            visible: VisibleChain::Sampled,
            stratified: false,
            max_length: None,
            max_steps: None,
            max_seconds: None,
            seed: 0,
            occasion: 0,
        }
    }
}

/// The most tours. More would take several gigabytes.
pub(crate) const MOST_TOURS: usize = 1 << 26;

impl TourSettings {
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |name, value: String, cure| Err::<(), _>(Error::InvalidSetting { name, value, cure });
        if self.n_tours == 0 || self.n_tours > MOST_TOURS {
            return refuse("n-tours", self.n_tours.to_string(), "from 1 to 67,108,864");
        }
        if self.stratified && !self.n_tours.is_multiple_of(2) {
            return refuse(
                "n-tours",
                self.n_tours.to_string(),
                "stratified starts come in pairs: an even number",
            );
        }
        if let Some(k) = self.max_length.filter(|k| !(1..=MAX_LENGTH).contains(k)) {
            return refuse("max-length", k.to_string(), "from 1 to 2,147,483,648 steps");
        }
        if let Some(n) = self.max_steps.filter(|&n| n < self.n_tours as u64) {
            return refuse("max-steps", n.to_string(), "at least one step for each tour");
        }
        if let Some(s) = self.max_seconds.filter(|s| s.is_nan() || *s <= 0.0) {
            return refuse("max-seconds", s.to_string(), "more than 0");
        }
        Ok(())
    }
}
