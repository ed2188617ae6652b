//! Train epoch by epoch: the one loop, for rows in memory and for runs in folders.

use super::best::{self, Best, BestModel, Judgement, Look};
use super::files::RunFiles;
use super::guard::{self, Warning};
use super::listener::LastEvaluation;
use super::monitor::{Metrics, Monitor, Occasion, Weighted, mean_log_likelihood, std_err_of_difference};
use super::trainer::{Trainer, are_sane};
use super::{Listener, Outcome, RunFolder, Trained};
use crate::bits::BitRows;
use crate::data::{self, Binarize, Rows};
use crate::gradient::EstimatorInfo;
use crate::model::Rbm;
use crate::progress::{Progress, Quiet, Silent};
use crate::settings::{CheckedSettings, EstimatorSettings, Unfinished};
use crate::{Error, Result};
use std::borrow::Cow;
use std::time::Instant;

/// A training in progress, made by [`Training::begin`](super::Training::begin), that runs one epoch
/// at a time.
pub struct Session<'a> {
    pub(super) settings: CheckedSettings,
    /// The rows that are evaluated. They are also trained on, unless bits are redrawn.
    pub(super) train: Part<'a>,
    /// The grey values from which bits are redrawn in each epoch.
    pub(super) grey: Option<Cow<'a, Rows>>,
    pub(super) validation: Option<Part<'a>>,
    /// `None` if the likelihood is not evaluated.
    pub(super) monitor: Option<Monitor>,
    pub(super) trainer: Trainer,
    pub(super) best: Best,
    pub(super) best_model: Option<Rbm>,
    /// The models after the epochs of the setting `snapshots`, if there is no folder to save them in.
    pub(super) snapshots: Vec<(usize, Rbm)>,
    pub(super) history: Vec<Metrics>,
    pub(super) listener: Option<&'a mut dyn Listener>,
    pub(super) files: Option<RunFiles>,
    /// The seconds of earlier sessions of a resumed run.
    pub(super) seconds_before: f64,
    pub(super) begun: Instant,
    /// The seconds that evaluations took, also in earlier sessions.
    pub(super) evaluation_seconds: f64,
}

/// Rows, and their weights if they have some: the caller's, or a selection of them.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) rows: Cow<'a, Rows>,
    pub(super) weights: Option<Cow<'a, [f32]>>,
}

impl<'a> Part<'a> {
    pub(super) fn new(of: Weighted<'a>) -> Self {
        Self { rows: Cow::Borrowed(of.rows), weights: of.weights.map(Cow::Borrowed) }
    }

    /// Returns some of the rows. Weights are checked where they are used.
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
    /// Sends the progress of training to a listener from here on. The listener may cancel the
    /// training.
    pub fn observe(mut self, listener: &'a mut dyn Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Returns the folder of the run, if it has one.
    pub fn folder(&self) -> Option<&RunFolder> {
        self.files.as_ref().map(RunFiles::folder)
    }

    /// Returns the settings, with everything decided.
    pub fn settings(&self) -> &CheckedSettings {
        &self.settings
    }

    /// Returns the model as it is now.
    pub fn rbm(&self) -> &Rbm {
        self.trainer.rbm()
    }

    /// Returns the model of the best evaluation, if there was one in this session.
    pub fn best(&self) -> Option<&Rbm> {
        self.best_model.as_ref()
    }

    /// Returns the hidden states of persistent chains or running tours, if there are any.
    pub fn chains(&self) -> Option<BitRows> {
        self.trainer.chains()
    }

    /// Returns the metrics of each epoch. A resumed run includes the earlier epochs too.
    pub fn history(&self) -> &[Metrics] {
        &self.history
    }

    /// Runs one epoch, with an evaluation if one is due. Returns `None` if more epochs are to come.
    /// An interrupted epoch can be continued.
    ///
    /// # Errors
    /// If the estimator or an evaluation fails, or if a file cannot be written. The last checkpoint
    /// is then still valid.
    pub fn epoch(&mut self) -> Result<Option<Outcome>> {
        // A run that has ended may be continued.
        if let Some(outcome) = self.ended()? {
            return Ok(Some(outcome));
        }
        let (mut listener, mut silent) = (self.listener.take(), Silent);
        let heard: &mut dyn Listener = match &mut listener {
            Some(listener) => *listener,
            None => &mut silent,
        };
        let made = match self.look_at_the_beginning(heard) {
            Ok(()) => self.make_epoch(heard),
            Err(Error::Cancelled) => self.interrupted(),
            Err(error) => Err(error),
        };
        self.listener = listener;
        match made? {
            None => self.ended(),
            outcome => Ok(outcome),
        }
    }

    /// Runs all epochs that are left.
    ///
    /// # Errors
    /// Those of [`epoch`](Self::epoch).
    pub fn finish(mut self) -> Result<Trained> {
        let outcome = loop {
            if let Some(outcome) = self.epoch()? {
                break outcome;
            }
        };
        Ok(self.into_trained(outcome))
    }

    /// Ends the session and returns its result.
    pub fn into_trained(mut self, outcome: Outcome) -> Trained {
        let epochs = self.trainer.epochs_done();
        let ended = self.files.as_mut().map_or(Ok(()), |files| files.end_sitting(epochs));
        if let Err(error) = ended {
            // The models are saved.
            tracing::warn!("the end of the training is not recorded: {error}");
        }
        Trained {
            model: self.trainer.into_rbm(),
            best: self.best_model,
            snapshots: self.snapshots,
            history: self.history,
            settings: self.settings,
            outcome,
        }
    }

    /// Returns the outcome if all epochs are done or patience has run out, and saves the model.
    fn ended(&mut self) -> Result<Option<Outcome>> {
        let early = !self.trainer.is_finished();
        if early && !self.best.is_out_of_patience(self.settings.patience) {
            return Ok(None);
        }
        // The metrics of the last epoch may have been lost.
        let epoch = self.trainer.epochs_done();
        let metrics = self.history.last().filter(|metrics| metrics.epoch == epoch).cloned();
        let metrics = metrics.unwrap_or_else(|| Metrics { epoch, ..Metrics::default() });
        let (best, seconds) = (metrics.best.clone(), self.seconds());
        if let Some(files) = &mut self.files {
            files.save_model(self.trainer.rbm(), &metrics, best.as_ref().map(|best| best.epoch))?;
            files.save_checkpoint(&self.trainer.state(), &self.best, seconds)?;
        }
        Ok(Some(Outcome::Finished { metrics: Box::new(metrics), best, early }))
    }

    /// Evaluates the initial model, if that is due and has not been done.
    fn look_at_the_beginning(&mut self, listener: &mut dyn Listener) -> Result<()> {
        let is_new = self.history.is_empty() && self.trainer.has_made_nothing();
        if is_new {
            self.keep_snapshot(&Metrics::default())?;
        }
        if !is_new || !self.monitor.as_ref().is_some_and(|monitor| monitor.is_due(0)) {
            return Ok(());
        }
        let mut metrics = describe(self.trainer.rbm(), self.trainer.learning_rate());
        let mut best = self.best.clone();
        let judgement = self.evaluate(&mut metrics, &mut best, &*listener)?;
        self.best = best;
        self.record(metrics, judgement.is_best, listener)
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
        let EstimatorInfo { chains_moved, tours, tempering, coupling } = self.trainer.take_info();
        let mut metrics = Metrics {
            epoch: self.trainer.epochs_done(),
            gradient_norm: self.trainer.gradient_norm(),
            chains_moved,
            tours,
            tempering,
            coupling,
            ..describe(self.trainer.rbm(), learning_rate)
        };
        let mut best = self.best.clone();
        let judgement = match self.evaluate(&mut metrics, &mut best, &*listener) {
            Err(Error::Cancelled) => {
                // The epoch and its evaluation are repeated together.
                self.trainer.restore(good)?;
                return self.interrupted();
            }
            other => other?,
        };
        self.best = best;
        metrics.warnings = guard::judge(&metrics, &self.settings, self.train.rows.n_rows(), judgement.fallen);
        let epoch = metrics.epoch;
        // It comes before the checkpoint: a resumed run does not repeat the epochs before that.
        self.keep_snapshot(&metrics)?;
        self.record(metrics, judgement.is_best, listener)?;
        if let Some(files) = &mut self.files
            && files.is_checkpoint_due(epoch)
        {
            let seconds = self.seconds_before + self.begun.elapsed().as_secs_f64();
            files.save_checkpoint(&self.trainer.state(), &self.best, seconds)?;
        }
        Ok(None)
    }

    /// Keeps a copy of the model if the settings ask for one after the epoch of `metrics`: in the
    /// folder of the run, or else in memory.
    fn keep_snapshot(&mut self, metrics: &Metrics) -> Result<()> {
        if !self.settings.snapshots.is_due(metrics.epoch) {
            return Ok(());
        }
        match &self.files {
            Some(files) => files.save_snapshot(self.trainer.rbm(), metrics),
            None => {
                // An interrupted epoch is repeated.
                self.snapshots.retain(|(epoch, _)| *epoch != metrics.epoch);
                self.snapshots.push((metrics.epoch, self.trainer.rbm().clone()));
                Ok(())
            }
        }
    }

    /// Records the metrics of an epoch, and informs the listener.
    fn record(&mut self, mut metrics: Metrics, is_best: bool, listener: &mut dyn Listener) -> Result<()> {
        // At the end the best model has been determined. Until then it is the one with the best
        // likelihood during training.
        let is_best = metrics.best.as_ref().map_or(is_best, |best| best.epoch == metrics.epoch);
        if is_best {
            self.best_model = Some(self.trainer.rbm().clone());
            if let Some(files) = &mut self.files {
                files.save_best(self.trainer.rbm(), &metrics, Some(metrics.epoch))?;
            }
        } else if let (Some(files), Some(best)) = (&mut self.files, &metrics.best)
            && let Some(rbm) = &self.best_model
        {
            let judged = |m: &Metrics| m.epoch == best.epoch;
            let then = self.history.iter().find(|m| judged(m)).cloned().unwrap_or_default();
            let validation = then.validation_log_likelihood.map(|_| best.log_likelihood);
            let train = if validation.is_some() { None } else { Some(best.log_likelihood) };
            let then = Metrics {
                epoch: best.epoch,
                log_z: Some(best.log_z.clone()),
                train_log_likelihood: train,
                validation_log_likelihood: validation,
                ..then
            };
            files.save_best(rbm, &then, Some(best.epoch))?;
        }
        (metrics.seconds, metrics.evaluation_seconds) = (self.seconds(), self.evaluation_seconds);
        if let Some(files) = &mut self.files {
            files.append(&metrics)?;
        }
        listener.epoch(&metrics);
        metrics.warnings.iter().for_each(|warning| listener.warning(warning));
        if metrics.pseudo_log_likelihood.is_some() {
            listener.evaluated(&metrics, self.trainer.rbm(), self.trainer.chains().as_ref());
        }
        self.history.push(metrics);
        Ok(())
    }

    /// Evaluates the model if an evaluation is due, and at the end of training the best model too.
    fn evaluate(
        &mut self,
        metrics: &mut Metrics,
        best: &mut Best,
        listener: &dyn Listener,
    ) -> Result<Judgement> {
        let begun = Instant::now();
        let judgement = self.evaluate_if_due(metrics, best, listener);
        self.evaluation_seconds += begun.elapsed().as_secs_f64();
        judgement
    }

    fn evaluate_if_due(
        &mut self,
        metrics: &mut Metrics,
        best: &mut Best,
        listener: &dyn Listener,
    ) -> Result<Judgement> {
        let Some(monitor) = &self.monitor else { return Ok(Judgement::default()) };
        let progress = &LastEvaluation(listener);
        let is_last = self.trainer.is_finished();
        if !is_last && !monitor.is_due(metrics.epoch) {
            return Ok(Judgement::default());
        }
        let rbm = self.trainer.rbm();
        monitor.probe(rbm, metrics)?;
        if is_last {
            self.evaluate_last(monitor, metrics, progress)?;
        } else {
            let validation = self.validation.as_ref().map(Part::weighted);
            monitor.evaluate(rbm, validation, self.settings.seed, metrics, &Quiet(progress))?;
        }
        let judgement = best.judge(metrics, self.settings.epochs);
        if is_last {
            self.find_best(best, metrics, progress)?;
        } else if best.is_out_of_patience(self.settings.patience) {
            let monitor = self.monitor.as_ref().expect("it has evaluated");
            self.evaluate_last(monitor, metrics, progress)?;
            self.find_best(best, metrics, progress)?;
        }
        Ok(judgement)
    }

    /// Evaluates the last model by the method of the last evaluation, on all rows.
    fn evaluate_last(&self, monitor: &Monitor, metrics: &mut Metrics, progress: &dyn Progress) -> Result<()> {
        let (train, validation) = (self.train.weighted(), self.validation.as_ref().map(Part::weighted));
        let (rbm, fresh) = (self.trainer.rbm(), (Occasion::Last, self.settings.seed));
        let log_z = match metrics.log_z.take().filter(|z| z.is_exact()) {
            Some(exact) => exact,
            None => monitor.last_log_z(None, rbm, train.rows, fresh, progress)?,
        };
        monitor.fill_in_last(rbm, train, validation, log_z, metrics)
    }

    /// Writes into `metrics`, which are those of the last model, which model is the best.
    fn find_best(&mut self, best: &Best, metrics: &mut Metrics, progress: &dyn Progress) -> Result<()> {
        let judged = metrics.validation_log_likelihood.or(metrics.train_log_likelihood);
        let (Some(log_likelihood), Some(log_z)) = (judged, metrics.log_z.clone()) else { return Ok(()) };
        let last = BestModel { epoch: metrics.epoch, log_likelihood, log_z, lead_std_err: None };
        let candidate = best.get().map(|(epoch, _)| epoch).filter(|&epoch| epoch != last.epoch);
        if let Some(epoch) = candidate
            && self.best_model.is_none()
        {
            // The best evaluation was in an earlier session.
            self.best_model = self.files.as_ref().and_then(|files| files.read_best(epoch));
        }
        let (Some(epoch), Some(rbm), Some(monitor)) = (candidate, &self.best_model, &self.monitor) else {
            metrics.best = Some(last);
            return Ok(());
        };
        let train = self.train.weighted();
        let judging = self.validation.as_ref().map_or(train, Part::weighted);
        let method = Some(last.log_z.method);
        let log_z_at_end = last.log_z.clone();
        metrics.best = Some(best::better(last, |look| {
            let occasion = match look {
                Look::Choose => Occasion::Candidate(epoch),
                Look::Report => Occasion::Winner(epoch),
            };
            let fresh = (occasion, self.settings.seed);
            let log_z = monitor.last_log_z(method, rbm, train.rows, fresh, progress)?;
            let log_likelihood = mean_log_likelihood(rbm, judging, &log_z)?;
            let lead_std_err =
                std_err_of_difference((rbm, &log_z), (self.trainer.rbm(), &log_z_at_end), judging)?;
            Ok(BestModel { epoch, log_likelihood, log_z, lead_std_err })
        })?);
        Ok(())
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
            files.save_model(self.trainer.rbm(), &metrics, None)?;
        }
        Ok(Some(Outcome::Diverged(warning)))
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.begun.elapsed().as_secs_f64()
    }
}

/// Returns the metrics of a model that do not need data.
fn describe(rbm: &Rbm, learning_rate: f64) -> Metrics {
    let weights = rbm.weights();
    let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
    Metrics {
        n_hidden: rbm.n_hidden(),
        learning_rate,
        weight_rms: (squares / weights.len() as f64).sqrt(),
        ..Metrics::default()
    }
}

fn is_sane(rbm: &Rbm) -> bool {
    are_sane(&rbm.weights()) && are_sane(rbm.visible_bias()) && are_sane(rbm.hidden_bias())
}
