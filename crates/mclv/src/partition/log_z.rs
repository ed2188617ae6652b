//! Carry a value of `log Z` together with what it is worth.

use serde::{Deserialize, Serialize};

/// What is known about an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Guarantee {
    /// The value itself, to rounding.
    Exact,
    /// `Z` is estimated without bias; its logarithm is then too small on average, the more so the larger its error bar.
    UnbiasedZ,
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::UnbiasedZ => "Z unbiased, log Z low on average",
        })
    }
}

/// `log Z` in nats, with its uncertainty and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// `log Z`.
    pub value: f64,
    /// Standard error of `value`; 0 if exact.
    pub std_err: f64,
    /// What the method guarantees.
    pub guarantee: Guarantee,
    /// The method's name.
    pub method: String,
    /// States summed, or Gibbs steps made.
    pub n_states: f64,
    /// Wall time.
    pub seconds: f64,
}
