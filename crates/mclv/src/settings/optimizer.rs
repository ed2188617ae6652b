//! Optimisers.

use super::Settings;
use crate::words::words;

/// The names of the optimisers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Stochastic gradient ascent.
    Sgd,
    /// Adam (Kingma and Ba 2015).
    Adam,
}

words!(Rule as "optimizer" { Sgd = "sgd", Adam = "adam" });

/// An optimiser and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// Stochastic gradient ascent, with momentum if it is not 0.
    Sgd {
        /// The share of the previous step that is added to the next.
        momentum: f64,
    },
    /// Adam (Kingma and Ba 2015).
    Adam {
        /// Decay rate of the mean gradient.
        beta1: f64,
        /// Decay rate of the mean squared gradient.
        beta2: f64,
        /// Small constant that keeps steps finite.
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
    /// Settings that choose this optimiser, with nothing else set.
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
