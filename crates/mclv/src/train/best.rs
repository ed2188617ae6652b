//! Remember the best evaluation of a training.

use super::Metrics;
use serde::{Deserialize, Serialize};

/// The best evaluation so far. Floats are kept as bits: going on from a checkpoint must be exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    /// Its epoch, and its likelihood of validation rows (else of training rows) as bits.
    best: Option<(usize, u64)>,
    /// Evaluations since then.
    since_best: usize,
    /// The reconstruction error then, as bits.
    best_reconstruction: u64,
}

/// What an evaluation means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Judgement {
    /// The model is better than any before.
    pub(super) is_best: bool,
    /// How far the likelihood has fallen while the reconstruction improved.
    pub(super) fallen: Option<f64>,
}

impl Best {
    /// The epoch and the likelihood.
    pub(super) fn get(&self) -> Option<(usize, f64)> {
        self.best.map(|(epoch, bits)| (epoch, f64::from_bits(bits)))
    }

    /// Whether this many evaluations have brought nothing better.
    pub(super) fn is_out_of_patience(&self, patience: Option<usize>) -> bool {
        patience.is_some_and(|patience| self.since_best >= patience)
    }

    /// Takes note of an evaluation.
    pub(super) fn judge(&mut self, metrics: &Metrics) -> Judgement {
        let judged = metrics.validation_log_likelihood.or(metrics.train_log_likelihood);
        let Some(value) = judged.filter(|v| v.is_finite()) else { return Judgement::default() };
        let reconstruction = metrics.reconstruction_error.unwrap_or(f64::NAN);
        let best = self.get().map(|(_, value)| value);
        if best.is_none_or(|best| value > best) {
            self.best = Some((metrics.epoch, value.to_bits()));
            self.best_reconstruction = reconstruction.to_bits();
            self.since_best = 0;
            return Judgement { is_best: true, fallen: None };
        }
        self.since_best += 1;
        let improved = reconstruction < f64::from_bits(self.best_reconstruction);
        let noise = metrics.log_z.as_ref().map_or(0.0, |z| 3.0 * z.std_err.unwrap_or(f64::INFINITY));
        let fallen = best.map(|best| best - value).filter(|&by| by > 1.0 + noise && improved);
        Judgement { is_best: false, fallen }
    }
}
