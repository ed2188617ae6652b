//! Notice what goes wrong in training, and say what to do.

use super::Metrics;
use crate::gradient::TourInfo;
use crate::settings::{Spelling, spell};
use serde::{Deserialize, Serialize};

/// Something that the user should know of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// A parameter became NaN, infinite or absurdly large.
    Diverged {
        /// The epoch in which it happened, from 1.
        epoch: usize,
        /// The learning rate then.
        learning_rate: f64,
        /// Whether unfinished tours are being dropped.
        drops_tours: bool,
    },
    /// Hidden units that are on for every row.
    Saturated {
        /// How many.
        n_units: usize,
        /// Of how many.
        n_hidden: usize,
    },
    /// Hidden units that are off for every row.
    Dead {
        /// How many.
        n_units: usize,
        /// Of how many.
        n_hidden: usize,
    },
    /// The likelihood fell while the reconstruction error fell too.
    LikelihoodFalls {
        /// By how much it fell since the best evaluation, in nats.
        by: f64,
    },
    /// Few tours return to the stopping set.
    FewToursReturn {
        /// Share that returned.
        completion: f64,
        /// Updates from which nothing was learnt.
        n_skipped_updates: u64,
    },
    /// Persistent chains hardly move.
    StaleChains {
        /// Share of hidden bits that changed over an epoch.
        moved: f64,
    },
    /// Few Metropolis restarts are accepted.
    LowAcceptance {
        /// Share accepted over the epoch.
        rate: f64,
    },
    /// The start weights of tours are too uneven.
    LowEss {
        /// Smallest effective sample size, as a share of the tours.
        ess: f64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Diverged { epoch, learning_rate, drops_tours } => {
                write!(
                    f,
                    "training diverged in epoch {epoch}: a parameter is NaN, infinite or beyond 10⁶. The model of the epoch before is kept. "
                )?;
                if *drops_tours {
                    write!(
                        f,
                        "Dropping unfinished tours leaves the escaping mass unpunished: use `unfinished = keep` or carry, or a smaller learning rate than {learning_rate:.3}."
                    )
                } else {
                    write!(f, "Use a smaller learning rate than {learning_rate:.3}, or `clip = 1`.")
                }
            }
            Self::Saturated { n_units, n_hidden } => {
                write!(
                    f,
                    "{n_units} of {n_hidden} hidden units are on for every row: they are a second bias. Use a smaller learning rate, `l2 = 0.0001`, or fewer hidden units."
                )
            }
            Self::Dead { n_units, n_hidden } => {
                write!(
                    f,
                    "{n_units} of {n_hidden} hidden units are off for every row. Use a smaller learning rate, centred gradients, or fewer hidden units."
                )
            }
            Self::LikelihoodFalls { by } => {
                write!(
                    f,
                    "the likelihood has fallen by {by:.2} nats while the reconstruction error improved: the gradient is biased. Use more steps (`k`), `gradient = pcd`, or a smaller learning rate."
                )
            }
            Self::FewToursReturn { completion, n_skipped_updates, .. } => {
                write!(
                    f,
                    "only {:.1} % of tours returned ({n_skipped_updates} updates had none). Make the stopping set larger (`samples-per-row`, `target-completion`) or use `unfinished = carry`.",
                    100.0 * completion
                )
            }
            Self::StaleChains { moved } => {
                write!(
                    f,
                    "persistent chains hardly move: {:.2} % of hidden bits changed over an epoch. Use more steps (`k`), a smaller learning rate, or `gradient = lvs`.",
                    100.0 * moved
                )
            }
            Self::LowAcceptance { rate } => {
                write!(
                    f,
                    "only {:.0} % of Metropolis restarts were accepted: the start table is too old. Raise `min-ess`, or use `starts = fresh`.",
                    100.0 * rate
                )
            }
            Self::LowEss { ess } => {
                write!(
                    f,
                    "start weights are uneven: the effective sample size fell to {:.0} % of the tours. Raise `min-ess`, or use `starts = fresh`.",
                    100.0 * ess
                )
            }
        }
    }
}

impl Warning {
    /// The message, with settings spelled as a front spells them. `Display` is [`Spelling::Plain`].
    pub fn in_words(&self, spelling: Spelling) -> String {
        spell(&self.to_string(), spelling)
    }
}

/// What is worth saying after an epoch.
pub(super) fn judge(metrics: &Metrics, tours: Option<&TourInfo>, fallen: Option<f64>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let n_hidden = metrics.n_hidden;
    if let Some(n_units) = metrics.n_saturated.filter(|&n| n > 0) {
        warnings.push(Warning::Saturated { n_units, n_hidden });
    }
    if let Some(n_units) = metrics.n_dead.filter(|&n| n > 0) {
        warnings.push(Warning::Dead { n_units, n_hidden });
    }
    if let Some(by) = fallen {
        warnings.push(Warning::LikelihoodFalls { by });
    }
    if let Some(tours) = tours {
        let (completion, carried) = (tours.completion(), tours.n_carried > 0);
        // A running tour that does not return still counts, as a persistent chain; one that is cut may not.
        let few = !carried && completion < 0.05;
        let n_skipped_updates = tours.n_skipped_updates;
        if tours.n_tried() > 0 && (few || n_skipped_updates > 0) {
            warnings.push(Warning::FewToursReturn { completion, n_skipped_updates });
        }
        if tours.min_ess < 0.1 {
            warnings.push(Warning::LowEss { ess: tours.min_ess });
        }
        let rate = tours.acceptance();
        if rate < 0.1 {
            warnings.push(Warning::LowAcceptance { rate });
        }
    }
    if let Some(moved) = metrics.chains_moved.filter(|&m| m < 0.01) {
        warnings.push(Warning::StaleChains { moved });
    }
    warnings
}
