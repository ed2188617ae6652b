//! Go through training epoch by epoch: updates, an evaluation where one is due, the best so far, a way back from NaN.

use super::guard::Warning;
use super::monitor::{Metrics, Monitor, Weighted};
use super::settings::TrainSettings;
use super::trainer::{Trainer, are_sane};
use crate::data::Rows;
use crate::gradient::{Gradient, Unfinished};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::{Error, Result};
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

    /// Whether so many evaluations have brought nothing better; 0: never.
    pub(super) fn is_out_of_patience(&self, patience: usize) -> bool {
        patience > 0 && self.since_best >= patience
    }

    fn judge(&mut self, metrics: &Metrics) -> Judgement {
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
        let noise = metrics.log_z.as_ref().map_or(0.0, |z| 3.0 * z.std_err);
        let fallen = best.map(|best| best - value).filter(|&by| by > 1.0 + noise && improved);
        Judgement { is_best: false, fallen }
    }
}

/// How an epoch ended.
pub(super) enum Advance {
    /// It was made.
    Epoch(Box<Metrics>, Judgement),
    /// The listener said stop: between two updates, or before the epoch whose evaluation was not finished.
    Interrupted,
    /// A parameter became NaN; the model of the epoch before is back.
    Diverged(Warning),
}

/// Rows to learn from, and rows to choose by.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// What the updates see: the training rows, or their bits drawn anew.
    pub(super) rows: &'a Rows,
    pub(super) train: Weighted<'a>,
    pub(super) validation: Option<Weighted<'a>>,
}

/// Make one epoch, and evaluate the model if `monitor` says so.
pub(super) fn advance(
    trainer: &mut Trainer,
    best: &mut Best,
    settings: &TrainSettings,
    monitor: Option<&Monitor>,
    parts: Parts<'_>,
    progress: &dyn Progress,
) -> Result<Advance> {
    let good = trainer.state();
    let learning_rate = trainer.learning_rate();
    match trainer.epoch(parts.rows, progress) {
        Err(Error::Cancelled) => return Ok(Advance::Interrupted),
        other => other?,
    }
    let epoch = trainer.epochs_done();
    if !is_sane(trainer.rbm()) {
        trainer.restore(good)?;
        let drops_tours = matches!(&settings.gradient, Gradient::Lvs(l) if l.unfinished == Unfinished::Drop);
        return Ok(Advance::Diverged(Warning::Diverged { epoch, learning_rate, drops_tours }));
    }
    let mut metrics = Box::new(describe(trainer, learning_rate));
    let mut judgement = Judgement::default();
    if let Some(monitor) = monitor.filter(|monitor| monitor.is_due(epoch, settings.epochs)) {
        let last = epoch == settings.epochs;
        let quiet = Quiet(progress);
        let rbm = trainer.rbm();
        match monitor.evaluate(rbm, parts.train, parts.validation, last, settings.seed, &mut metrics, &quiet)
        {
            Err(Error::Cancelled) => {
                // The epoch and its evaluation are made again together.
                trainer.restore(good)?;
                return Ok(Advance::Interrupted);
            }
            other => other?,
        }
        judgement = best.judge(&metrics);
    }
    Ok(Advance::Epoch(metrics, judgement))
}

fn describe(trainer: &mut Trainer, learning_rate: f64) -> Metrics {
    let weights = trainer.rbm().weights();
    let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
    Metrics {
        epoch: trainer.epochs_done(),
        n_hidden: trainer.rbm().n_hidden(),
        learning_rate,
        gradient_norm: trainer.gradient_norm(),
        weight_rms: (squares / weights.len() as f64).sqrt(),
        chains_moved: trainer.take_chains_moved(),
        tours: trainer.take_tour_info(),
        ..Metrics::default()
    }
}

fn is_sane(rbm: &Rbm) -> bool {
    are_sane(&rbm.weights()) && are_sane(rbm.visible_bias()) && are_sane(rbm.hidden_bias())
}

/// Passes on the wish to stop, but not how far an evaluation has come: the bar belongs to training.
struct Quiet<'a>(&'a dyn Progress);

impl Progress for Quiet<'_> {
    fn report(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
