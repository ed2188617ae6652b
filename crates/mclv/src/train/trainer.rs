//! Make the updates of training, and nothing else.

use super::optimizer::Stepper;
use super::settings::TrainSettings;
use super::weights;
use crate::bits::BitRows;
use crate::data::Rows;
use crate::gradient::{Moments, NegativePhase, PairBlock, PhaseState, Step, TourInfo, Update, total_weight};
use crate::model::{Offsets, Rbm};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::update::Decay;

/// Updates between two questions whether any rank is to stop: each costs an exchange.
const ASK_EVERY: usize = 16;

/// A model in training. Everything that follows from here follows from the settings and the data.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// use mclv::progress::Silent;
/// use mclv::train::{TrainSettings, Trainer};
/// let bars = data::load(&DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() }, &Silent)?;
/// let settings = TrainSettings { n_hidden: 4, epochs: 3, ..TrainSettings::default() };
/// let mut trainer = Trainer::new(settings, &bars.rows, None)?;
/// while !trainer.is_finished() {
///     trainer.epoch(&bars.rows, &Silent)?;
/// }
/// assert_eq!(trainer.rbm().n_hidden(), 4);
/// # Ok::<(), mclv::Error>(())
/// ```
pub struct Trainer {
    pub(super) settings: TrainSettings,
    weights: Option<Vec<f32>>,
    /// Of all rows; 1 without weights.
    mean_weight: f64,
    rbm: Rbm,
    stepper: Stepper,
    pub(super) offsets: Offsets,
    phase: Box<dyn NegativePhase>,
    /// Whether `phase` is still that of the warm-up.
    warming_up: bool,
    pub(super) epoch: usize,
    /// Updates made in the current epoch.
    pub(super) update: usize,
    gradient: Moments,
    gradient_norm: f64,
    /// Updates of the epochs before, where these differ in length; `None`: all have as many as this one.
    pub(super) n_updates_before: Option<u64>,
}

/// What a checkpoint keeps of a trainer.
#[derive(Clone, Debug)]
pub(crate) struct TrainerState {
    pub(crate) rbm: Rbm,
    pub(crate) lambda: Vec<f64>,
    pub(crate) n_steps: u64,
    pub(crate) memory: [Option<Moments>; 2],
    pub(crate) phase: PhaseState,
    pub(crate) epoch: usize,
    pub(crate) update: usize,
    pub(crate) gradient_norm: f64,
}

impl Trainer {
    /// Begin training on `data`; `weights` says how much each row counts.
    ///
    /// # Errors
    /// If settings, data and weights do not go together.
    pub fn new(settings: TrainSettings, data: &Rows, weights: Option<Vec<f32>>) -> Result<Self> {
        if let Some(weights) = &weights {
            weights::check(weights, data.n_rows())?;
        }
        let rbm = settings.init.weighted_model(data, weights.as_deref(), settings.n_hidden, settings.seed)?;
        Self::from_model(settings, rbm, data, weights)
    }

    /// Begin training with a given model.
    ///
    /// # Errors
    /// If settings, model, data and weights do not go together.
    pub fn from_model(
        settings: TrainSettings,
        rbm: Rbm,
        data: &Rows,
        weights: Option<Vec<f32>>,
    ) -> Result<Self> {
        settings.check()?;
        let settings = settings.resolved(data.n_rows());
        rbm.check_width(data.n_columns())?;
        if data.n_rows() == 0 {
            return Err(Error::Empty { what: "the training data".into(), cure: "give at least one row" });
        }
        if let Some(weights) = &weights {
            weights::check(weights, data.n_rows())?;
        }
        if settings.drop_last && data.n_rows() < settings.batch_size {
            return Err(Error::InvalidSetting {
                name: "batch-size",
                value: settings.batch_size.to_string(),
                cure: "larger than the data, and short minibatches are left out: nothing to train on",
            });
        }
        check_steps(&settings, data.n_rows())?;
        let visible = weights.as_ref().map_or_else(|| data.column_means(), |w| data.weighted_column_means(w));
        Ok(Self::assemble(settings, rbm, visible, weights))
    }

    /// A trainer of parts that go together; `visible`: offsets of the visible units.
    pub(super) fn assemble(
        settings: TrainSettings,
        rbm: Rbm,
        visible: Vec<f64>,
        weights: Option<Vec<f32>>,
    ) -> Self {
        let decay = Decay { l1: settings.l1 as f32, l2: settings.l2 as f32 };
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let warming_up = settings.warm_up_epochs > 0;
        let phase =
            if warming_up { settings.warm_up.negative_phase() } else { settings.gradient.negative_phase() };
        Self {
            stepper: Stepper::new(settings.optimizer, decay, n_visible, n_hidden),
            offsets: Offsets { visible, hidden: vec![0.5; n_hidden] },
            phase,
            warming_up,
            epoch: 0,
            update: 0,
            gradient: Moments::zeros(n_visible, n_hidden),
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

    /// The model as it is now.
    pub fn rbm(&self) -> &Rbm {
        &self.rbm
    }

    /// Epochs finished.
    pub fn epochs_done(&self) -> usize {
        self.epoch
    }

    /// Whether all epochs are done.
    pub fn is_finished(&self) -> bool {
        self.epoch >= self.settings.epochs
    }

    /// The learning rate at the beginning of the current epoch.
    pub fn learning_rate(&self) -> f64 {
        let s = &self.settings;
        s.schedule.rate(s.learning_rate, self.epoch, s.epochs, 0, 1)
    }

    /// Norm of the gradient of the epoch's last update, after clipping; 0 if nothing could be learnt from that one.
    pub fn gradient_norm(&self) -> f64 {
        self.gradient_norm
    }

    /// What happened to tours since the last call, if the estimator has tours.
    pub fn take_tour_info(&mut self) -> Option<TourInfo> {
        self.phase.take_tour_info()
    }

    /// Share of the hidden bits of persistent chains that changed since the last call, if there are chains.
    pub fn take_chains_moved(&mut self) -> Option<f64> {
        self.phase.take_chains_moved()
    }

    /// The hidden states of persistent chains or running tours, if there are any.
    pub fn chains(&self) -> Option<BitRows> {
        self.phase.chains()
    }

    /// Go on to the end of the epoch, or until the listener says stop: then between two updates, ready to go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if stopped; or what the estimator cannot do.
    pub fn epoch(&mut self, data: &Rows, progress: &dyn Progress) -> Result<()> {
        // On a worker thread from the start: handing each minibatch to the pool from outside costs more than its work.
        let mut result = Ok(());
        let team = team::current();
        rayon::scope(|_| result = team::with(team, || self.run_epoch(data, progress)));
        result
    }

    fn run_epoch(&mut self, data: &Rows, progress: &dyn Progress) -> Result<()> {
        let n_updates = n_updates(&self.settings, data.n_rows());
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
            // One with the first update: a stop falls before all of this or after it.
            if self.update == 0 {
                if self.warming_up && self.epoch >= self.settings.warm_up_epochs {
                    self.phase = self.settings.gradient.negative_phase();
                    self.warming_up = false;
                }
                self.phase.begin_epoch(&self.rbm, data, self.step_at(0, n_updates))?;
            }
            stepped = self.make_update(data, batches[self.update], n_updates, progress)?;
            self.update += 1;
            progress.report((self.epoch * n_updates + self.update) as u64, total);
            if !are_sane(self.rbm.visible_bias()) || !are_sane(self.rbm.hidden_bias()) {
                // Lost: nothing is learnt from here on, and the kernels want numbers.
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

    /// Make one update; `false` if there was nothing to learn from. Nothing has changed if it fails.
    fn make_update(
        &mut self,
        data: &Rows,
        batch: &[usize],
        n_updates: usize,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let share = self.weight_share(batch);
        if share == 0.0 {
            return Ok(false);
        }
        let update = Update {
            rbm: &self.rbm,
            data,
            rows: batch,
            weights: self.weights.as_deref(),
            step: self.step_at(self.update, n_updates),
            progress,
        };
        self.gradient.clear();
        let Some(positive) = self.phase.subtract(&update, &mut self.gradient)? else { return Ok(false) };
        let offsets = self.settings.centred.then(|| {
            for (lambda, mean) in self.offsets.hidden.iter_mut().zip(PairBlock::hidden_means(&positive)) {
                *lambda += self.settings.offset_rate * (mean - *lambda);
            }
            &self.offsets
        });
        let scale = (1.0 / total_weight(&positive)) as f32;
        self.gradient.add(positive, scale);
        let s = &self.settings;
        let rate = share * s.schedule.rate(s.learning_rate, self.epoch, s.epochs, self.update, n_updates);
        if s.clip > 0.0 {
            let nothing = vec![(); self.gradient.n_pieces()];
            self.gradient.finish(offsets, nothing, |_, _, ()| ());
            let norm = self.gradient.norm();
            if norm > s.clip {
                self.gradient.scale((s.clip / norm) as f32);
            }
            self.stepper.step(&mut self.rbm, &mut self.gradient, None, rate);
        } else {
            self.stepper.step(&mut self.rbm, &mut self.gradient, offsets, rate);
        }
        Ok(true)
    }

    /// The weight of a minibatch, relative to what as many average rows weigh. Steps are proportional to it: minibatches
    /// taken as equals would weigh their rows too little where weights are large.
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
            memory: memory.map(Option::<&Moments>::cloned),
            phase: self.phase.state(),
            epoch: self.epoch,
            update: self.update,
            gradient_norm: self.gradient_norm,
        }
    }

    pub(crate) fn restore(&mut self, state: TrainerState) -> Result<()> {
        let warming_up = state.epoch < self.settings.warm_up_epochs;
        // At the very end of the warm-up the phase is still the warm-up's until the next epoch begins.
        self.warming_up = warming_up
            || (self.settings.warm_up_epochs > 0
                && state.epoch == self.settings.warm_up_epochs
                && state.update == 0);
        let gradient = if self.warming_up { &self.settings.warm_up } else { &self.settings.gradient };
        self.phase = gradient.negative_phase();
        self.phase.restore(&state.rbm, &state.phase)?;
        self.rbm = state.rbm;
        self.offsets.hidden = state.lambda;
        self.stepper.restore(state.n_steps, state.memory);
        self.epoch = state.epoch;
        self.update = state.update;
        self.gradient_norm = state.gradient_norm;
        Ok(())
    }
}

/// Refuse an epoch with more steps of a chain than there are random numbers for.
pub(super) fn check_steps(settings: &TrainSettings, n_rows: usize) -> Result<()> {
    let n_updates = n_updates(settings, n_rows);
    [&settings.gradient, &settings.warm_up].iter().try_for_each(|gradient| gradient.check_steps(n_updates))
}

/// Updates in an epoch.
pub(super) fn n_updates(settings: &TrainSettings, n_rows: usize) -> usize {
    let batch = settings.batch_size;
    if settings.drop_last { n_rows / batch } else { n_rows.div_ceil(batch) }
}

/// No parameter is NaN, infinite, or so large that single precision has lost its meaning.
pub(super) fn are_sane(parameters: &[f32]) -> bool {
    parameters.iter().all(|x| x.abs() < 1e6)
}
