//! Make the updates of training.

use super::optimizer::Stepper;
use super::weights;
use crate::bits::BitRows;
use crate::data::Rows;
use crate::gradient::{
    Estimator, EstimatorInfo, Gradient, Minibatch, PairBlock, State, Step, Update, total_weight,
};
use crate::model::{Offsets, Rbm};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::settings::CheckedSettings;
use crate::team;
use crate::{Error, Result};
use mclv_kernels::update::Decay;

/// The number of updates between two checks of whether any rank should stop. Each check costs an
/// exchange.
const ASK_EVERY: usize = 16;

/// A model in training. Everything after this point follows from the settings and the data.
pub(crate) struct Trainer {
    pub(super) settings: CheckedSettings,
    weights: Option<Vec<f32>>,
    /// The mean weight of all rows; 1 without weights.
    mean_weight: f64,
    rbm: Rbm,
    stepper: Stepper,
    pub(super) offsets: Offsets,
    estimator: Box<dyn Estimator>,
    /// True if the estimator is the caller's own, not the one that the settings name.
    estimator_is_given: bool,
    /// The estimator of the warm-up, while that lasts.
    warm_up: Option<Box<dyn Estimator>>,
    pub(super) epoch: usize,
    /// The number of updates made in the current epoch.
    pub(super) update: usize,
    gradient: Gradient,
    gradient_norm: f64,
    /// The number of updates of earlier epochs, if epochs differ in length. `None` if all have as
    /// many as this one.
    pub(super) n_updates_before: Option<u64>,
}

/// The state of a trainer that a checkpoint holds.
#[derive(Clone, Debug)]
pub(crate) struct TrainerState {
    pub(crate) rbm: Rbm,
    pub(crate) lambda: Vec<f64>,
    pub(crate) n_steps: u64,
    pub(crate) memory: [Option<Gradient>; 2],
    pub(crate) estimator: State,
    pub(crate) epoch: usize,
    pub(crate) update: usize,
    pub(crate) gradient_norm: f64,
}

impl Trainer {
    /// Begins training on `data`, with the `weights` of its rows.
    ///
    /// # Errors
    /// If settings, data and weights do not fit together.
    pub(crate) fn new(settings: CheckedSettings, data: &Rows, weights: Option<Vec<f32>>) -> Result<Self> {
        if let Some(weights) = &weights {
            weights::check(weights, data.n_rows())?;
        }
        let rbm = settings.init.weighted_model(data, weights.as_deref(), settings.n_hidden, settings.seed)?;
        Self::from_model(settings, rbm, data, weights)
    }

    /// Begins training with a given model.
    ///
    /// # Errors
    /// If settings, model, data and weights do not fit together.
    pub(crate) fn from_model(
        settings: CheckedSettings,
        rbm: Rbm,
        data: &Rows,
        weights: Option<Vec<f32>>,
    ) -> Result<Self> {
        rbm.check_width(data.n_columns())?;
        if data.n_rows() == 0 {
            return Err(Error::Empty { what: "the training data".into(), cure: "give at least one row" });
        }
        if let Some(weights) = &weights {
            weights::check(weights, data.n_rows())?;
        }
        settings.check_rows(data.n_rows())?;
        let visible = weights.as_ref().map_or_else(|| data.column_means(), |w| data.weighted_column_means(w));
        Ok(Self::assemble(settings, rbm, visible, weights))
    }

    /// Assembles a trainer from parts that fit together. `visible` holds the offsets of the visible
    /// units.
    pub(super) fn assemble(
        settings: CheckedSettings,
        rbm: Rbm,
        visible: Vec<f64>,
        weights: Option<Vec<f32>>,
    ) -> Self {
        let decay = Decay { l1: settings.l1 as f32, l2: settings.l2 as f32 };
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        Self {
            stepper: Stepper::new(settings.optimizer, decay, n_visible, n_hidden),
            offsets: Offsets { visible, hidden: vec![0.5; n_hidden] },
            estimator: settings.gradient.estimator(),
            estimator_is_given: false,
            warm_up: settings.warm_up.as_ref().map(|(_, warm_up)| warm_up.estimator()),
            epoch: 0,
            update: 0,
            gradient: Gradient::zeros(n_visible, n_hidden),
            gradient_norm: 0.0,
            n_updates_before: None,
            mean_weight: weights
                .as_ref()
                .map_or(1.0, |w| w.iter().map(|&w| f64::from(w)).sum::<f64>() / w.len() as f64),
            settings,
            weights,
            rbm,
        }
    }

    /// Uses this estimator instead of the one that the settings name.
    pub(super) fn use_estimator(&mut self, estimator: Box<dyn Estimator>) {
        self.estimator = estimator;
        self.estimator_is_given = true;
    }

    /// Returns the current estimator: that of the warm-up, or the main one.
    fn current(&mut self) -> &mut dyn Estimator {
        match &mut self.warm_up {
            Some(warm_up) => &mut **warm_up,
            None => &mut *self.estimator,
        }
    }

    /// The model as it is now.
    pub(crate) fn rbm(&self) -> &Rbm {
        &self.rbm
    }

    /// Returns the model.
    pub(crate) fn into_rbm(self) -> Rbm {
        self.rbm
    }

    /// The number of epochs finished.
    pub(crate) fn epochs_done(&self) -> usize {
        self.epoch
    }

    /// Returns true if the model is still the initial one.
    pub(crate) fn has_made_nothing(&self) -> bool {
        self.epoch == 0 && self.update == 0
    }

    /// Returns true if all epochs are done.
    pub(crate) fn is_finished(&self) -> bool {
        self.epoch >= self.settings.epochs
    }

    /// The learning rate at the beginning of the current epoch.
    pub(crate) fn learning_rate(&self) -> f64 {
        self.settings.rate(self.epoch, 0, 1)
    }

    /// The norm of the gradient of the epoch's last update, after clipping. It is 0 if that update
    /// was skipped.
    pub(crate) fn gradient_norm(&self) -> f64 {
        self.gradient_norm
    }

    /// Returns the counts of chains or tours since the last call.
    pub(crate) fn take_info(&mut self) -> EstimatorInfo {
        self.current().take_info()
    }

    /// The hidden states of persistent chains or running tours, if there are any.
    pub(crate) fn chains(&self) -> Option<BitRows> {
        self.warm_up.as_ref().unwrap_or(&self.estimator).chains()
    }

    /// Continues to the end of the epoch, or until the listener cancels. It then stops between two
    /// updates, and can be continued.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the listener cancels, or if the estimator fails.
    pub(crate) fn epoch(&mut self, data: &Rows, progress: &dyn Progress) -> Result<()> {
        // The epoch runs on a worker thread: handing each minibatch to the pool from outside costs
        // more than its work.
        let mut result = Ok(());
        let team = team::current();
        rayon::scope(|_| result = team::with(team, || self.run_epoch(data, progress)));
        result
    }

    fn run_epoch(&mut self, data: &Rows, progress: &dyn Progress) -> Result<()> {
        let n_updates = self.settings.n_updates(data.n_rows());
        let mut order: Vec<usize> = (0..data.n_rows()).collect();
        stream(self.settings.seed, Purpose::Shuffle, self.epoch as u64).reader().shuffle(&mut order);
        let batches: Vec<&[usize]> = order.chunks(self.settings.batch_size).take(n_updates).collect();
        let total = (self.settings.epochs * n_updates) as u64;
        let mut stepped = false;
        while self.update < n_updates {
            let asks = team::size() == 1 || self.update.is_multiple_of(ASK_EVERY);
            if asks && team::any(progress.cancelled()) {
                return Err(Error::Cancelled);
            }
            // This belongs to the first update: a stop comes before all of it or after it.
            if self.update == 0 && self.epoch >= self.settings.warm_up_epochs() {
                self.warm_up = None;
            }
            stepped = self.make_update(data, batches[self.update], n_updates, progress)?;
            self.update += 1;
            progress.report((self.epoch * n_updates + self.update) as u64, total);
            if !are_sane(self.rbm.visible_bias()) || !are_sane(self.rbm.hidden_bias()) {
                // Training has diverged. The epoch ends here, because the kernels need finite
                // numbers.
                break;
            }
        }
        self.gradient_norm = if stepped { self.gradient.norm() } else { 0.0 };
        self.update = 0;
        self.epoch += 1;
        Ok(())
    }

    fn step_at(&self, update: usize, n_updates: usize) -> Step {
        let before = self.n_updates_before.unwrap_or((self.epoch * n_updates) as u64);
        Step {
            seed: self.settings.seed,
            epoch: self.epoch as u32,
            update: update as u32,
            number: before + update as u64,
        }
    }

    /// Makes one update. Returns false if it was skipped. If it fails, nothing has changed.
    fn make_update(
        &mut self,
        data: &Rows,
        batch: &[usize],
        n_updates: usize,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let share = self.weight_share(batch);
        let minibatch = Minibatch {
            rbm: &self.rbm,
            data,
            rows: batch,
            weights: self.weights.as_deref(),
            step: self.step_at(self.update, n_updates),
        };
        let update = Update::new(minibatch, progress);
        let estimator = match &mut self.warm_up {
            Some(warm_up) => warm_up,
            None => &mut self.estimator,
        };
        if self.update == 0 {
            estimator.begin_epoch(&update)?;
        }
        if share == 0.0 {
            return Ok(false);
        }
        self.gradient.clear();
        if !estimator.estimate(&update, &mut self.gradient)? {
            return Ok(false);
        }
        let positive = update.into_positive();
        let offsets = self.settings.centred.then(|| {
            for (lambda, mean) in self.offsets.hidden.iter_mut().zip(PairBlock::hidden_means(&positive)) {
                *lambda += self.settings.offset_rate * (mean - *lambda);
            }
            &self.offsets
        });
        let scale = (1.0 / total_weight(&positive)) as f32;
        self.gradient.add(positive, scale);
        let rate = share * self.settings.rate(self.epoch, self.update, n_updates);
        if let Some(clip) = self.settings.clip {
            self.gradient.finish(offsets);
            let norm = self.gradient.norm();
            if norm > clip {
                self.gradient.scale((clip / norm) as f32);
            }
            self.stepper.step(&mut self.rbm, &mut self.gradient, None, rate);
        } else {
            self.stepper.step(&mut self.rbm, &mut self.gradient, offsets, rate);
        }
        Ok(true)
    }

    /// Returns the weight of a minibatch, relative to that of the same number of average rows.
    /// Steps are proportional to it: with equal steps, rows in heavy minibatches would count too
    /// little.
    fn weight_share(&self, batch: &[usize]) -> f64 {
        let Some(weights) = &self.weights else { return 1.0 };
        batch.iter().map(|&r| f64::from(weights[r])).sum::<f64>() / (batch.len() as f64 * self.mean_weight)
    }

    pub(crate) fn state(&self) -> TrainerState {
        let (n_steps, memory) = self.stepper.memory();
        TrainerState {
            rbm: self.rbm.clone(),
            lambda: self.offsets.hidden.clone(),
            n_steps,
            memory: memory.map(Option::<&Gradient>::cloned),
            estimator: self.warm_up.as_ref().unwrap_or(&self.estimator).save(),
            epoch: self.epoch,
            update: self.update,
            gradient_norm: self.gradient_norm,
        }
    }

    pub(crate) fn restore(&mut self, state: TrainerState) -> Result<()> {
        // At the very end of the warm-up its estimator is kept until the next epoch begins.
        let warm_up = self.settings.warm_up.as_ref();
        let warm_up = warm_up.filter(|(n, _)| state.epoch < *n || state.epoch == *n && state.update == 0);
        self.warm_up = warm_up.map(|(_, warm_up)| warm_up.estimator());
        if !self.estimator_is_given {
            self.estimator = self.settings.gradient.estimator();
        }
        let (_, memory) = self.stepper.memory();
        if memory.map(|memory| memory.is_some()) != state.memory.each_ref().map(Option::is_some) {
            return Err(Error::MissingState { what: "the memory of the optimiser" });
        }
        self.current().restore(&state.rbm, &state.estimator)?;
        self.rbm = state.rbm;
        self.offsets.hidden = state.lambda;
        self.stepper.restore(state.n_steps, state.memory);
        self.epoch = state.epoch;
        self.update = state.update;
        self.gradient_norm = state.gradient_norm;
        Ok(())
    }
}

/// Returns true if no parameter is NaN, infinite, or too large for single precision to be
/// meaningful.
pub(super) fn are_sane(parameters: &[f32]) -> bool {
    parameters.iter().all(|x| x.abs() < 1e6)
}
