//! Hold the results of a laboratory.

use super::contender::Contender;
use super::errors::Errors;
use super::persists;
use super::replicates::Replicates;
use crate::mixing::Doubt;
use crate::sample::SampleMethod;
use serde::{Deserialize, Serialize};

/// The probability that an estimator without bias is called biased.
pub const FALSE_ALARMS: f64 = 0.001;

/// The share by which a normal estimate stays below its upper limit of 95 %, in standard errors.
const ONE_SIDED: f64 = 1.645;

/// A measured number and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub std_err: f64,
}

/// Whether a mean of vectors is what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unbiasedness {
    /// The squared norm of the bias, without the share of the variance. It can be negative.
    pub squared: Measured,
    /// The probability that estimates without bias err as much in one direction.
    pub p: f64,
}

impl Unbiasedness {
    /// Returns true if chance cannot explain the bias: `p` is below [`FALSE_ALARMS`].
    pub fn is_biased(&self) -> bool {
        self.p < FALSE_ALARMS
    }

    /// The norm of the bias and its standard error. `None` if the squared norm is not two standard
    /// errors above 0.
    pub fn norm(&self) -> Option<Measured> {
        let Measured { value, std_err } = self.squared;
        let norm = value.max(0.0).sqrt();
        (value > 2.0 * std_err).then(|| Measured { value: norm, std_err: 0.5 * std_err / norm })
    }

    /// A limit that the norm of the bias is below, with a confidence of 95 %.
    pub fn upper_limit(&self) -> f64 {
        (self.squared.value + ONE_SIDED * self.squared.std_err).max(0.0).sqrt()
    }
}

/// The gradient that estimates are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// True for the exact gradient, by enumeration.
    pub is_exact: bool,
    /// The method that drew the samples, if there are some.
    pub method: Option<SampleMethod>,
    /// The number of samples.
    pub n_samples: usize,
    /// The standard error of the reference, all components together.
    pub std_err: f64,
    /// The reason why the samples may still depend on where their chains began, if there is one.
    pub doubt: Option<Doubt>,
}

/// Something that happened to the estimates of an estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LabNote {
    /// Tours or pairs of chains were cut.
    Cut {
        /// The number that was cut.
        n_cut: u64,
        /// The number of all.
        n_all: u64,
        /// The step at which they were cut.
        at: u64,
    },
    /// Updates had no estimate, because no tour returned. The others are not a fair choice.
    Skipped {
        /// The number of these updates.
        n_skipped: u64,
    },
    /// Chains began at rows and made updates before the one that counts.
    BurnIn {
        /// The number of updates.
        n_updates: usize,
    },
}

impl std::fmt::Display for LabNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cut { n_cut, n_all, at } => {
                write!(f, "{n_cut} of {n_all} were cut at {at} steps; what they would have added is missing")
            }
            Self::Skipped { n_skipped } => {
                write!(f, "{n_skipped} updates were skipped because no tour returned; they are left out")
            }
            Self::BurnIn { n_updates } => {
                write!(f, "each estimate is that of a run of its own, after {n_updates} updates from rows")
            }
        }
    }
}

/// What a laboratory found about one estimator. Norms and squares are of all components together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabEstimator {
    /// The estimator, as it was asked for.
    pub estimator: String,
    /// The name for tables.
    pub name: String,
    /// The number of estimates.
    pub n_estimates: usize,
    /// The bias.
    pub bias: Option<Unbiasedness>,
    /// For separate tours: whether `Σ f(X(k)) − ξ·E_p[f]` is 0 on average, per step. It is so for
    /// tours that are not cut, although their ratio is biased.
    pub linear: Option<Unbiasedness>,
    /// The variance of an estimate.
    pub variance: Measured,
    /// The mean squared error of an estimate.
    pub mse: Measured,
    /// The cosine of the angle between the gradient with the estimate and the one with the
    /// reference.
    pub cosine: Measured,
    /// The mean number of Gibbs steps of an estimate; 0 for the exact gradient.
    pub n_steps: f64,
    /// The mean seconds of an estimate, with the rows' part of the gradient.
    pub seconds: f64,
    /// What happened.
    pub notes: Vec<LabNote>,
}

impl LabEstimator {
    /// The mean squared error of the mean of as many independent estimates as make `n_steps` Gibbs
    /// steps: the squared bias stays, the variance falls. NaN without steps.
    pub fn mse_at_steps(&self, n_steps: f64) -> f64 {
        self.mse_at(self.n_steps / n_steps)
    }

    /// The same for as many estimates as take this number of seconds.
    pub fn mse_at_seconds(&self, seconds: f64) -> f64 {
        self.mse_at(self.seconds / seconds)
    }

    /// The mean squared error if the variance is multiplied by `share`.
    fn mse_at(&self, share: f64) -> f64 {
        let squared = self.bias.map_or(f64::NAN, |bias| bias.squared.value.max(0.0));
        if share > 0.0 { squared + share * self.variance.value } else { f64::NAN }
    }
}

/// What a laboratory found about one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    /// The number of rows in the minibatch.
    pub n_rows: usize,
    /// The number of estimates of each estimator.
    pub n_replicates: usize,
    /// The updates that persistent chains made before the one that counts.
    pub burn_in: usize,
    /// The norm of the gradient of the log-likelihood of the minibatch.
    pub gradient_norm: f64,
    /// What estimates are compared with.
    pub reference: Reference,
    /// The estimators, in the order in which they were asked for.
    pub estimators: Vec<LabEstimator>,
    /// The seconds of everything.
    pub seconds: f64,
}

/// The results of one estimator.
pub(super) fn of_estimator(
    contender: &Contender,
    replicates: &Replicates,
    errors: &Errors,
    burn_in: usize,
) -> LabEstimator {
    let n = replicates.estimates.len();
    let mean = |sum: f64| sum / n as f64;
    let mut notes = Vec::new();
    let &Replicates { n_cut, n_parts: n_all, n_skipped, .. } = replicates;
    if persists(&contender.settings) {
        notes.push(LabNote::BurnIn { n_updates: burn_in });
    } else if n_cut > 0 {
        notes.push(LabNote::Cut { n_cut, n_all, at: contender.cut_at() });
    }
    if n_skipped > 0 {
        notes.push(LabNote::Skipped { n_skipped });
    }
    let has_lengths = n > 1 && replicates.lengths.len() == n;
    LabEstimator {
        estimator: contender.text.clone(),
        name: contender.settings.name(),
        n_estimates: n,
        bias: (n > 1).then(|| errors.unbiasedness(None)),
        linear: has_lengths.then(|| errors.unbiasedness(Some(&replicates.lengths))),
        variance: errors.variance(),
        mse: errors.mse(),
        cosine: errors.cosine(),
        n_steps: mean(replicates.steps.iter().sum::<u64>() as f64),
        seconds: mean(replicates.seconds.iter().sum()),
        notes,
    }
}
