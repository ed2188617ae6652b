//! Carry a value of `log Z` together with what it is worth.

use serde::{Deserialize, Serialize};

/// What is known about an estimate, of `Z` and of `log Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Guarantee {
    /// The value itself, to rounding.
    Exact,
    /// `E[Ẑ] = Z`; the logarithm is then too small on average, the more so the larger its error bar.
    UnbiasedZ,
    /// `E[Ẑ] ≤ Z`, and so `E[log Ẑ] ≤ log Z`: a likelihood from it looks better than it is.
    LowerBound,
    /// `E[log Ẑ] ≥ log Z`: a likelihood from it looks worse than it is.
    UpperBound,
    /// Consistent at best: no side is known.
    None,
}

impl Guarantee {
    /// What is guaranteed of `Z`.
    pub fn of_z(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ => "unbiased",
            Self::LowerBound => "lower bound",
            Self::UpperBound => "upper bound",
            Self::None => "none",
        }
    }

    /// What is guaranteed of `log Z`.
    pub fn of_log_z(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ | Self::LowerBound => "low on average",
            Self::UpperBound => "high on average",
            Self::None => "none",
        }
    }

    /// What is guaranteed of a likelihood made with it: the other side.
    pub fn of_likelihood(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ | Self::LowerBound => "optimistic on average",
            Self::UpperBound => "pessimistic on average",
            Self::None => "none",
        }
    }
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact | Self::None => f.write_str(self.of_z()),
            _ => write!(f, "Z {}, log Z {}", self.of_z(), self.of_log_z()),
        }
    }
}

/// `log Z` in nats, with its uncertainty and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// `log Z`.
    pub value: f64,
    /// Standard error of `value`; 0 if exact.
    pub std_err: f64,
    /// A 95 % confidence interval for `log Z`, if the method dares to give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// What the method guarantees.
    pub guarantee: Guarantee,
    /// The method's name.
    pub method: String,
    /// States summed, or Gibbs steps made.
    pub n_states: f64,
    /// Wall time.
    pub seconds: f64,
    /// What to know before relying on it: why there is no interval, few chains carrying the weight, and the cure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl LogZ {
    /// The 95 % interval, or `value` ± 1.96 standard errors where the method gives none.
    pub fn limits(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.value - 1.96 * self.std_err, self.value + 1.96 * self.std_err))
    }

    /// The limits of a log-likelihood that was found with this value: those of `log Z` turned round. `None` if the value has
    /// no uncertainty.
    pub fn limits_of_likelihood(&self, log_likelihood: f64) -> Option<(f64, f64)> {
        let (low, high) = self.limits();
        let is_uncertain = self.std_err > 0.0 || self.interval.is_some();
        is_uncertain.then_some((log_likelihood + self.value - high, log_likelihood + self.value - low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_interval_or_else_from_the_standard_error() {
        let mut z = LogZ {
            value: 10.0,
            std_err: 0.0,
            interval: None,
            guarantee: Guarantee::Exact,
            method: "exact".into(),
            n_states: 1.0,
            seconds: 0.0,
            notes: Vec::new(),
        };
        assert_eq!((z.limits(), z.limits_of_likelihood(-3.0)), ((10.0, 10.0), None));
        z.std_err = 1.0;
        assert_eq!(z.limits(), (10.0 - 1.96, 10.0 + 1.96));
        z.interval = Some((9.0, 14.0));
        assert_eq!((z.limits(), z.limits_of_likelihood(-3.0)), ((9.0, 14.0), Some((-7.0, -2.0))));
    }
}
