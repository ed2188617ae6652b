//! Draw the starts of tours: `h ∈ H` with probability `p*(h)/Z_S`.

use super::StoppingSet;
use super::alias::Alias;
use crate::model::Rbm;
use crate::rng::Draws;

/// The weights `log p*(h)` of a stopping set under the parameters of one moment, and a table to
/// draw from them.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct StartTable {
    log_weights: Vec<f64>,
    alias: Alias,
    log_z_s: f64,
}

impl StartTable {
    /// Evaluates all states of `set` under `rbm`.
    pub(crate) fn new(rbm: &Rbm, set: &StoppingSet) -> Self {
        Self::from_log_weights(rbm.quick_log_weights_h(set.states()))
    }

    /// Takes weights that are known already.
    pub(crate) fn from_log_weights(log_weights: Vec<f64>) -> Self {
        let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = log_weights.iter().map(|w| (w - largest).exp()).collect();
        let log_z_s = largest + weights.iter().sum::<f64>().ln();
        Self { alias: Alias::new(&weights), log_weights, log_z_s }
    }

    /// Returns the row number of a state drawn from `π_S`.
    pub(crate) fn draw(&self, draws: Draws) -> usize {
        self.alias.draw(draws)
    }

    /// `log p*(h)` of each state when the table was made.
    pub(crate) fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// `log Z_S` when the table was made.
    pub(crate) fn log_z_s(&self) -> f64 {
        self.log_z_s
    }
}
