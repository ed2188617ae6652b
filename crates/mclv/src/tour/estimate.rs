//! Estimate expectations from tours.

use super::record::{StartedFrom, Tours};
use serde::{Deserialize, Serialize};

/// The guarantee of an [`Estimate`] of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateGuarantee {
    /// The estimate is right on average, for any number of tours.
    Unbiased,
    /// The estimate is right in the limit of many tours. Its bias is of order one over their
    /// number.
    Consistent,
    /// A budget could have cut tours. Without it, the estimate would be unbiased or consistent.
    /// This does not depend on whether tours were cut.
    UnlessCut,
    /// No guarantee: tours began or moved in a way to which Kac's identity does not apply.
    None,
}

impl EstimateGuarantee {
    /// Returns this guarantee for a function of an estimate with guarantee `other`.
    pub(crate) fn at_most(self, other: Self) -> Self {
        if matches!(other, Self::None | Self::UnlessCut) { other } else { self }
    }
}

/// An estimate: a value, its standard error, and its guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The standard error over tours (delta method for ratios). It is infinite for a single tour.
    pub std_err: f64,
    /// The guarantee of the value.
    pub guarantee: EstimateGuarantee,
}

impl Tours {
    /// Returns true if Kac's identity applies: complete tours of the model's own chain from `π_S`.
    pub fn obey_kac(&self) -> bool {
        self.is_gibbs() && self.started_from() != StartedFrom::Rows && self.all_complete()
    }

    /// Returns the mean length of the tours. It is unbiased for `Z/Z_S` if Kac's identity applies.
    pub fn mean_length(&self) -> Estimate {
        self.mean(&self.lengths(), EstimateGuarantee::Unbiased)
    }

    /// Returns the mean of `ξ²`, which decides the error of `Ẑ`. It is unbiased for `E[ξ²]` under the
    /// same conditions.
    pub fn mean_square_length(&self) -> Estimate {
        let squares: Vec<f64> = self.lengths().iter().map(|n| n * n).collect();
        self.mean(&squares, EstimateGuarantee::Unbiased)
    }

    /// Returns `F̂(f)/Z_S`, the mean over tours of the sum of statistic `statistic`. It is unbiased
    /// for `(Z/Z_S)·E_p[f]` if Kac's identity applies.
    pub fn mean_sum(&self, statistic: usize) -> Estimate {
        let sums: Vec<f64> = (0..self.n_tours()).map(|t| self.sums(t)[statistic]).collect();
        self.mean(&sums, EstimateGuarantee::Unbiased)
    }

    /// Returns an estimate of `E_p[f]` for statistic `statistic`: the ratio of the mean sum to the
    /// mean length. It is consistent, not unbiased.
    pub fn expectation(&self, statistic: usize) -> Estimate {
        let lengths = self.lengths();
        let total: f64 = lengths.iter().sum();
        let value = (0..self.n_tours()).map(|t| self.sums(t)[statistic]).sum::<f64>() / total;
        let residuals: Vec<f64> =
            lengths.iter().enumerate().map(|(t, n)| self.sums(t)[statistic] - value * n).collect();
        let of_residuals = self.mean(&residuals, EstimateGuarantee::Consistent);
        Estimate { value, std_err: of_residuals.std_err * lengths.len() as f64 / total, ..of_residuals }
    }

    /// Returns the mean of one number per tour.
    pub(crate) fn mean(&self, x: &[f64], if_kac: EstimateGuarantee) -> Estimate {
        let n = x.len() as f64;
        let value = x.iter().sum::<f64>() / n;
        let std_err = match self.started_from() {
            // Two draws to a stratum: half their squared difference is the stratum's variance.
            StartedFrom::Strata => {
                x.as_chunks().0.iter().map(|[a, b]| (a - b).powi(2)).sum::<f64>().sqrt() / n
            }
            _ if x.len() == 1 => f64::INFINITY,
            _ => (x.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt(),
        };
        let guarantee = match (self.is_gibbs() && self.started_from() != StartedFrom::Rows, self.has_budget())
        {
            (false, _) => EstimateGuarantee::None,
            (true, true) => EstimateGuarantee::UnlessCut,
            (true, false) => if_kac,
        };
        Estimate { value, std_err, guarantee }
    }
}
