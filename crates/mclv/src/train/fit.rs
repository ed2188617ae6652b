//! Train on rows in memory: what a [`Run`](super::Run) does, without a folder.

use super::course::{self, Advance, Best, Parts};
use super::guard;
use super::monitor::{Metrics, Monitor, Weighted};
use super::run::{Listener, Outcome};
use super::settings::TrainSettings;
use super::trainer::Trainer;
use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;
use std::time::Instant;

/// Training on rows in memory. The model is, bit for bit, that of a [`Run`](super::Run) with the same settings and rows.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// use mclv::progress::Progress;
/// use mclv::train::{Fit, Listener, Metrics, TrainSettings, Warning};
/// struct Nobody;
/// impl Progress for Nobody {
///     fn report(&self, _done: u64, _total: u64) {}
/// }
/// impl Listener for Nobody {
///     fn epoch(&self, _metrics: &Metrics) {}
///     fn warning(&self, _warning: &Warning) {}
/// }
/// let bars = data::load(&DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() }, &Nobody)?;
/// let settings = TrainSettings { n_hidden: 4, epochs: 3, ..TrainSettings::default() };
/// let mut fit = Fit::new(settings, bars.rows, None, None, true)?;
/// while fit.epoch(&Nobody)?.is_none() {}
/// assert_eq!(fit.history().len(), 3);
/// assert!(fit.history()[2].train_log_likelihood.is_some());
/// # Ok::<(), mclv::Error>(())
/// ```
pub struct Fit {
    settings: TrainSettings,
    train: Rows,
    weights: Option<Vec<f32>>,
    validation: Option<Rows>,
    /// None: the likelihood is not watched.
    monitor: Option<Monitor>,
    trainer: Trainer,
    best: Best,
    best_model: Option<Rbm>,
    history: Vec<Metrics>,
    begun: Instant,
}

impl Fit {
    /// Begin. `weights` says how much each training row counts, `validation` is what the best epoch is chosen by (else the
    /// training rows are); `watch`: whether to evaluate the likelihood as `settings.eval_every` says, which takes about 5 %
    /// of the time.
    ///
    /// # Errors
    /// If settings, rows and weights do not go together.
    pub fn new(
        settings: TrainSettings,
        train: Rows,
        weights: Option<Vec<f32>>,
        validation: Option<Rows>,
        watch: bool,
    ) -> Result<Self> {
        settings.check()?;
        let settings = settings.resolved(train.n_rows());
        settings.check()?;
        let trainer = Trainer::new(settings.clone(), &train, weights.clone())?;
        if let Some(validation) = &validation {
            trainer.rbm().check_width(validation.n_columns())?;
        }
        let monitor =
            watch.then(|| Monitor::new(&settings, Weighted { rows: &train, weights: weights.as_deref() }));
        Ok(Self {
            settings,
            train,
            weights,
            validation,
            monitor,
            trainer,
            best: Best::default(),
            best_model: None,
            history: Vec::new(),
            begun: Instant::now(),
        })
    }

    /// The settings, with the number of epochs decided.
    pub fn settings(&self) -> &TrainSettings {
        &self.settings
    }

    /// The model as it is now.
    pub fn rbm(&self) -> &Rbm {
        self.trainer.rbm()
    }

    /// The model of the best evaluation.
    pub fn best(&self) -> Option<&Rbm> {
        self.best_model.as_ref()
    }

    /// What is known of each epoch.
    pub fn history(&self) -> &[Metrics] {
        &self.history
    }

    /// Make one epoch; `None`: there are more to come. An interrupted epoch can be gone on with.
    ///
    /// # Errors
    /// What the estimator or an evaluation cannot do.
    pub fn epoch(&mut self, listener: &dyn Listener) -> Result<Option<Outcome>> {
        let train = Weighted { rows: &self.train, weights: self.weights.as_deref() };
        let validation = self.validation.as_ref().map(|rows| Weighted { rows, weights: None });
        let advance = course::advance(
            &mut self.trainer,
            &mut self.best,
            &self.settings,
            self.monitor.as_ref(),
            Parts { rows: &self.train, train, validation },
            listener,
        )?;
        let (mut metrics, judgement) = match advance {
            Advance::Interrupted => {
                return Ok(Some(Outcome::Interrupted { epochs: self.trainer.epochs_done() }));
            }
            Advance::Diverged(warning) => {
                listener.warning(&warning);
                return Ok(Some(Outcome::Diverged(warning)));
            }
            Advance::Epoch(metrics, judgement) => (metrics, judgement),
        };
        if judgement.is_best {
            self.best_model = Some(self.trainer.rbm().clone());
        }
        metrics.seconds = self.begun.elapsed().as_secs_f64();
        metrics.warnings = guard::judge(&metrics, metrics.tours.as_ref(), judgement.fallen);
        listener.epoch(&metrics);
        metrics.warnings.iter().for_each(|warning| listener.warning(warning));
        self.history.push(Metrics::clone(&metrics));
        let early = self.best.is_out_of_patience(self.settings.patience);
        let finished = self.trainer.is_finished();
        Ok((finished || early).then(|| Outcome::Finished {
            metrics,
            best: self.best.get(),
            early: !finished,
        }))
    }
}
