//! Go through training epoch by epoch: the one loop, for rows in memory and for runs in folders.

use super::best::{Best, Judgement};
use super::files::RunFiles;
use super::guard::{self, Warning};
use super::monitor::{Metrics, Monitor, Weighted};
use super::trainer::{Trainer, are_sane};
use super::{Listener, Outcome, Trained};
use crate::data::{self, Binarize, Rows};
use crate::gradient::EstimatorInfo;
use crate::model::Rbm;
use crate::progress::{Progress, Quiet, Silent};
use crate::settings::{CheckedSettings, EstimatorSettings, Unfinished};
use crate::{Error, Result};
use std::borrow::Cow;
use std::time::Instant;

/// A training under way, made by [`Training::begin`](super::Training::begin): makes single epochs.
pub struct Session<'a> {
    pub(super) settings: CheckedSettings,
    /// The rows that are evaluated, and learnt from unless bits are redrawn.
    pub(super) train: Part<'a>,
    /// The grey values from which bits are redrawn in each epoch.
    pub(super) grey: Option<Cow<'a, Rows>>,
    pub(super) validation: Option<Part<'a>>,
    /// None: the likelihood is not watched.
    pub(super) monitor: Option<Monitor>,
    pub(super) trainer: Trainer,
    pub(super) best: Best,
    pub(super) best_model: Option<Rbm>,
    pub(super) history: Vec<Metrics>,
    pub(super) listener: Option<&'a mut dyn Listener>,
    pub(super) files: Option<RunFiles>,
    /// Seconds of earlier sittings.
    pub(super) seconds_before: f64,
    pub(super) begun: Instant,
}

/// Rows, and how much each counts if not all the same: the caller's, or a selection of them.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) rows: Cow<'a, Rows>,
    pub(super) weights: Option<Cow<'a, [f32]>>,
}

impl<'a> Part<'a> {
    pub(super) fn new(of: Weighted<'a>) -> Self {
        Self { rows: Cow::Borrowed(of.rows), weights: of.weights.map(Cow::Borrowed) }
    }

    /// Some of the rows. What their weights are is checked where they are used.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let weight = |weights: &[f32]| rows.iter().filter_map(|&r| weights.get(r).copied()).collect();
        Self {
            rows: Cow::Owned(self.rows.select(rows)),
            weights: self.weights.as_deref().map(|weights| Cow::Owned(weight(weights))),
        }
    }

    pub(super) fn weighted(&self) -> Weighted<'_> {
        Weighted { rows: &self.rows, weights: self.weights.as_deref() }
    }
}

impl<'a> Session<'a> {
    /// Tells a listener how the training goes from here on; the listener may stop it.
    pub fn observe(mut self, listener: &'a mut dyn Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The settings, with everything decided.
    pub fn settings(&self) -> &CheckedSettings {
        &self.settings
    }

    /// The model as it is now.
    pub fn rbm(&self) -> &Rbm {
        self.trainer.rbm()
    }

    /// The model of the best evaluation, if there was one in this sitting.
    pub fn best(&self) -> Option<&Rbm> {
        self.best_model.as_ref()
    }

    /// What is known of each epoch; of a resumed run, of the epochs before too.
    pub fn history(&self) -> &[Metrics] {
        &self.history
    }

    /// Makes one epoch, with an evaluation if one is due. Returns none if more epochs are to come. An interrupted epoch can be
    /// gone on with.
    ///
    /// # Errors
    /// What the estimator or an evaluation cannot do, or a file that cannot be written: the last checkpoint then still stands.
    pub fn epoch(&mut self) -> Result<Option<Outcome>> {
        // A run that has ended may be taken up again.
        if let Some(outcome) = self.ended()? {
            return Ok(Some(outcome));
        }
        let (mut listener, mut silent) = (self.listener.take(), Silent);
        let made = match &mut listener {
            Some(listener) => self.make_epoch(*listener),
            None => self.make_epoch(&mut silent),
        };
        self.listener = listener;
        match made? {
            None => self.ended(),
            outcome => Ok(outcome),
        }
    }

    /// Makes all epochs that are left.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn finish(mut self) -> Result<Trained> {
        let outcome = loop {
            if let Some(outcome) = self.epoch()? {
                break outcome;
            }
        };
        Ok(self.into_trained(outcome))
    }

    /// What training has come to.
    pub fn into_trained(self, outcome: Outcome) -> Trained {
        Trained {
            model: self.trainer.into_rbm(),
            best: self.best_model,
            history: self.history,
            settings: self.settings,
            outcome,
        }
    }

    /// Whether all epochs are done, or patience has run out: then the model is saved.
    fn ended(&mut self) -> Result<Option<Outcome>> {
        let early = !self.trainer.is_finished();
        if early && !self.best.is_out_of_patience(self.settings.patience) {
            return Ok(None);
        }
        let metrics = self.history.last().cloned().unwrap_or_default();
        let seconds = self.seconds();
        if let Some(files) = &mut self.files {
            files.save_model(self.trainer.rbm(), &metrics, &self.best)?;
            files.save_checkpoint(&self.trainer.state(), &self.best, seconds)?;
        }
        Ok(Some(Outcome::Finished { metrics: Box::new(metrics), best: self.best.get(), early }))
    }

    fn make_epoch(&mut self, listener: &mut dyn Listener) -> Result<Option<Outcome>> {
        let good = self.trainer.state();
        let learning_rate = self.trainer.learning_rate();
        let redrawn = self.grey.as_ref().map(|grey| {
            data::binarize(grey, Binarize::Bernoulli, self.settings.seed, self.trainer.epochs_done() as u64)
        });
        match self.trainer.epoch(redrawn.as_ref().unwrap_or(&self.train.rows), &*listener) {
            Err(Error::Cancelled) => return self.interrupted(),
            other => other?,
        }
        if !is_sane(self.trainer.rbm()) {
            let epoch = self.trainer.epochs_done();
            self.trainer.restore(good)?;
            return self.diverged(epoch, learning_rate, listener);
        }
        let mut metrics = describe(&mut self.trainer, learning_rate);
        let judgement = match self.evaluate(&mut metrics, &Quiet(&*listener)) {
            Err(Error::Cancelled) => {
                // The epoch and its evaluation are made again together.
                self.trainer.restore(good)?;
                return self.interrupted();
            }
            other => other?,
        };
        if judgement.is_best {
            self.best_model = Some(self.trainer.rbm().clone());
            if let Some(files) = &mut self.files {
                files.save_best(self.trainer.rbm(), &metrics, &self.best)?;
            }
        }
        metrics.seconds = self.seconds();
        metrics.warnings = guard::judge(&metrics, metrics.tours.as_ref(), judgement.fallen);
        if let Some(files) = &mut self.files {
            files.append(&metrics)?;
        }
        listener.epoch(&metrics);
        metrics.warnings.iter().for_each(|warning| listener.warning(warning));
        if metrics.train_log_likelihood.is_some() {
            listener.evaluated(&metrics, self.trainer.rbm(), self.trainer.chains().as_ref());
        }
        if let Some(files) = &mut self.files
            && files.is_checkpoint_due(metrics.epoch)
        {
            let seconds = self.seconds_before + self.begun.elapsed().as_secs_f64();
            files.save_checkpoint(&self.trainer.state(), &self.best, seconds)?;
        }
        self.history.push(metrics);
        Ok(None)
    }

    /// Measures the model if an evaluation is due.
    fn evaluate(&mut self, metrics: &mut Metrics, progress: &dyn Progress) -> Result<Judgement> {
        let (epoch, epochs) = (self.trainer.epochs_done(), self.settings.epochs);
        let Some(monitor) = self.monitor.as_ref().filter(|monitor| monitor.is_due(epoch, epochs)) else {
            return Ok(Judgement::default());
        };
        let (train, validation) = (self.train.weighted(), self.validation.as_ref().map(Part::weighted));
        let last = epoch == epochs;
        let (rbm, seed) = (self.trainer.rbm(), self.settings.seed);
        monitor.evaluate(rbm, train, validation, last, seed, metrics, progress)?;
        Ok(self.best.judge(metrics))
    }

    fn interrupted(&mut self) -> Result<Option<Outcome>> {
        let seconds = self.seconds();
        if let Some(files) = &mut self.files {
            files.save_checkpoint(&self.trainer.state(), &self.best, seconds)?;
        }
        Ok(Some(Outcome::Interrupted { epochs: self.trainer.epochs_done() }))
    }

    fn diverged(
        &mut self,
        epoch: usize,
        learning_rate: f64,
        listener: &mut dyn Listener,
    ) -> Result<Option<Outcome>> {
        let drops_tours =
            matches!(&self.settings.gradient, EstimatorSettings::Lvs(l) if l.unfinished == Unfinished::Drop);
        let warning = Warning::Diverged { epoch, learning_rate, drops_tours };
        listener.warning(&warning);
        if let Some(files) = &mut self.files {
            let metrics = Metrics { epoch: self.trainer.epochs_done(), ..Metrics::default() };
            files.save_model(self.trainer.rbm(), &metrics, &self.best)?;
        }
        Ok(Some(Outcome::Diverged(warning)))
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.begun.elapsed().as_secs_f64()
    }
}

/// What the updates of an epoch have left to say.
fn describe(trainer: &mut Trainer, learning_rate: f64) -> Metrics {
    let weights = trainer.rbm().weights();
    let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
    let EstimatorInfo { chains_moved, tours } = trainer.take_info();
    Metrics {
        epoch: trainer.epochs_done(),
        n_hidden: trainer.rbm().n_hidden(),
        learning_rate,
        gradient_norm: trainer.gradient_norm(),
        weight_rms: (squares / weights.len() as f64).sqrt(),
        chains_moved,
        tours,
        ..Metrics::default()
    }
}

fn is_sane(rbm: &Rbm) -> bool {
    are_sane(&rbm.weights()) && are_sane(rbm.visible_bias()) && are_sane(rbm.hidden_bias())
}
