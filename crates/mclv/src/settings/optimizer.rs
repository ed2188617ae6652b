//! Rules for steps.

use super::Settings;
use crate::words::words;

/// The rules for steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Stochastic gradient ascent.
    Sgd,
    /// Adam (Kingma and Ba 2015).
    Adam,
}

words!(Rule as "optimizer" { Sgd = "sgd", Adam = "adam" });

/// A rule for steps and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// Stochastic gradient ascent, with momentum if it is not 0.
    Sgd {
        /// Share of the last step that is made again.
        momentum: f64,
    },
    /// Adam (Kingma and Ba 2015).
    Adam {
        /// Decay of the mean of gradients.
        beta1: f64,
        /// Decay of the mean of their squares.
        beta2: f64,
        /// Keeps steps finite.
        epsilon: f64,
    },
}

impl Optimizer {
    /// Adam with its authors' constants.
    pub const ADAM: Self = Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::Sgd { momentum: 0.0 }
    }
}

impl From<&Optimizer> for Settings {
    /// The overrides that choose this rule; everything else is left to its default.
    fn from(optimizer: &Optimizer) -> Self {
        match *optimizer {
            Optimizer::Sgd { momentum } => {
                Self { optimizer: Some(Rule::Sgd), momentum: Some(momentum), ..Self::default() }
            }
            Optimizer::Adam { beta1, beta2, epsilon } => Self {
                optimizer: Some(Rule::Adam),
                beta1: Some(beta1),
                beta2: Some(beta2),
                epsilon: Some(epsilon),
                ..Self::default()
            },
        }
    }
}
