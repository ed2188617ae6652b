//! Train a model: the one entry point, for rows in memory and for runs in folders.

use super::best::{Best, BestModel};
use super::files::{Checkpoints, RunFiles};
use super::guard::Warning;
use super::monitor::{Metrics, Monitor, Weighted};
use super::run::{Description, add_epochs, check_n_hidden};
use super::session::{Part, Session};
use super::trainer::Trainer;
use super::{Feed, Listener, RunFolder};
use crate::Result;
use crate::data::{self, Binarize, Rows};
use crate::file::{Owner, new_folder};
use crate::gradient::Estimator;
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::settings::{CheckedSettings, EvalEvery, Settings};
use crate::{Error, team};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A training to run: settings, and optionally a model, weights, validation rows, a listener and a
/// folder.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// use mclv::progress::Silent;
/// use mclv::settings::Settings;
/// use mclv::train::Training;
/// let bars = data::load(&DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() }, &Silent)?;
/// let settings = Settings { n_hidden: Some(4), epochs: Some(3.into()), ..Settings::default() };
/// let trained = Training::new(settings).fit(&bars.rows)?;
/// let last = trained.history.last().unwrap();
/// assert!(last.epoch == 3 && last.train_log_likelihood.is_some());
/// assert_eq!(trained.model.n_hidden(), 4);
/// # Ok::<(), mclv::Error>(())
/// ```
pub struct Training<'a> {
    settings: Settings,
    model: Option<Rbm>,
    estimator: Option<Box<dyn Estimator>>,
    weights: Option<&'a [f32]>,
    validation: Option<Weighted<'a>>,
    grey: Option<&'a Rows>,
    listener: Option<&'a mut dyn Listener>,
    folder: Option<Place>,
    checkpoints: Checkpoints,
    description: Option<Description>,
    /// The names of the columns of rows in memory.
    column_names: Vec<String>,
    /// The epochs after which a resumed run has a new schedule of the learning rate.
    new_schedule: Option<usize>,
    /// The program and its arguments, as they were typed.
    command: Vec<String>,
}

/// Where a new run folder is made.
enum Place {
    /// At this path.
    At(PathBuf),
    /// In this folder, by the first free number after this name.
    Numbered(PathBuf, String),
}

/// The result of a training: the model, the best model, the metrics of all epochs, and how it
/// ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The model at the end. If training diverged, it is the model of the epoch before.
    pub model: Rbm,
    /// The best model by the likelihood of validation rows, or of training rows if there are none.
    /// After a finished training this is the model that [`Outcome::Finished`] names. Otherwise it
    /// is the model with the best likelihood in this session, if there was an evaluation.
    pub best: Option<Rbm>,
    /// The models after the epochs of the setting `snapshots`, in order of epochs. Empty if the run
    /// has a folder: they are files there.
    pub snapshots: Vec<(usize, Rbm)>,
    /// The metrics of each epoch. Epoch 0, the initial model, comes first if it was evaluated.
    pub history: Vec<Metrics>,
    /// How the training ended.
    pub outcome: Outcome,
    /// The settings, with everything decided.
    pub settings: CheckedSettings,
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All epochs are done, or the training stopped early because it no longer improved.
    Finished {
        /// The metrics of the last epoch.
        metrics: Box<Metrics>,
        /// The best model, if the likelihood was evaluated.
        best: Option<BestModel>,
        /// True if patience ran out.
        early: bool,
    },
    /// A parameter became NaN. The model of the epoch before is kept.
    Diverged(Warning),
    /// The listener cancelled the training, which can be continued.
    Interrupted {
        /// The number of epochs finished.
        epochs: usize,
    },
}

/// The number of training rows that are held out for validation. At least one row is left.
pub(super) fn held_out(share: f64, n_rows: usize) -> usize {
    ((share * n_rows as f64).ceil() as usize).min(n_rows.saturating_sub(1))
}

impl<'a> Training<'a> {
    /// Creates a training with these settings, from an initial model, with evaluations and without
    /// files.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            model: None,
            estimator: None,
            weights: None,
            validation: None,
            grey: None,
            listener: None,
            folder: None,
            checkpoints: Checkpoints::default(),
            description: None,
            column_names: Vec::new(),
            new_schedule: None,
            command: Vec::new(),
        }
    }

    /// Creates a training with the settings of the run in a folder, for [`resume`](Self::resume) with
    /// rows that the folder does not name. With `more_epochs`, the run has ended, and goes on for this
    /// number of epochs with a new schedule of the learning rate.
    ///
    /// # Errors
    /// If the folder holds no run, or, with `more_epochs`, if the run has not ended.
    pub fn of_run(folder: &Path, more_epochs: Option<usize>) -> Result<Self> {
        let mut settings = RunFolder::new(folder).read_input()?.train;
        let after = more_epochs.map(|n| add_epochs(folder, &mut settings, n)).transpose()?;
        Ok(Self { new_schedule: after, ..Self::new(settings) })
    }

    /// Starts from a given model instead of an initial one. The model decides the number of hidden
    /// units; settings with another number are rejected.
    pub fn from_model(mut self, rbm: Rbm) -> Self {
        self.model = Some(rbm);
        self
    }

    /// Uses an estimator of your own instead of the one that the settings name.
    pub fn estimator(mut self, estimator: Box<dyn Estimator>) -> Self {
        self.estimator = Some(estimator);
        self
    }

    /// Sets the weight of each training row.
    pub fn weights(mut self, weights: Option<&'a [f32]>) -> Self {
        self.weights = weights;
        self
    }

    /// Sets the rows that choose the best epoch. Without them, the training rows choose it.
    pub fn validation(mut self, rows: &'a Rows) -> Self {
        self.validation = Some(Weighted { rows, weights: None });
        self
    }

    /// Sets the rows that choose the best epoch, like [`validation`](Self::validation), with a
    /// weight for each row.
    pub fn weighted_validation(mut self, rows: &'a Rows, weights: Option<&'a [f32]>) -> Self {
        self.validation = Some(Weighted { rows, weights });
        self
    }

    /// Redraws the bits to train on in every epoch from these grey values, if the settings say
    /// `redraw-bits`. Without them, the training rows are the grey values.
    pub fn redraw_from(mut self, grey: &'a Rows) -> Self {
        self.grey = Some(grey);
        self
    }

    /// Sends the progress of training to a listener. The listener may cancel the training.
    pub fn observe(mut self, listener: &'a mut dyn Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Skips all evaluations of the likelihood, whatever the settings say.
    pub fn unwatched(mut self) -> Self {
        self.settings.eval_every = Some(EvalEvery::Never);
        self
    }

    /// Saves the run in a folder: settings, metrics, checkpoints and models.
    pub fn in_folder(mut self, path: &Path) -> Self {
        self.folder = Some(Place::At(path.into()));
        self
    }

    /// Saves the run in the first of the folders `PARENT/STEM-1`, `PARENT/STEM-2`, … that does not
    /// exist when the training begins. [`Session::folder`] names it.
    pub fn in_new_folder(mut self, parent: &Path, stem: &str) -> Self {
        self.folder = Some(Place::Numbered(parent.into(), stem.into()));
        self
    }

    /// Sets when checkpoints are written.
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// Records the program and its arguments in the folder, as they were typed.
    pub fn command(mut self, command: Vec<String>) -> Self {
        self.command = command;
        self
    }

    /// Records the names of the columns in the folder. They are for rows in memory: a [`Run`](super::Run)
    /// knows the names of its data.
    pub fn column_names(mut self, names: Vec<String>) -> Self {
        self.column_names = names;
        self
    }

    /// Sets how the folder's files describe data and weights.
    pub(super) fn described(mut self, description: Description) -> Self {
        self.description = Some(description);
        self
    }

    /// Declares that a resumed run begins a new schedule of the learning rate after this number of
    /// epochs.
    pub(super) fn with_new_schedule(mut self, after: usize) -> Self {
        self.new_schedule = Some(after);
        self
    }

    /// Trains to the end, or until the listener cancels.
    ///
    /// # Errors
    /// If settings, rows and weights do not fit together, if the folder holds a run already or another
    /// process trains in it, if a file cannot be written, or if the estimator fails.
    pub fn fit(self, train: &'a Rows) -> Result<Trained> {
        self.begin(train)?.finish()
    }

    /// Begins the training and returns a session, which runs one epoch at a time.
    ///
    /// # Errors
    /// Those of [`fit`](Self::fit).
    pub fn begin(mut self, train: &'a Rows) -> Result<Session<'a>> {
        if let Some(Place::At(folder)) = &self.folder {
            RunFiles::check_new(folder)?;
        }
        let place = self.folder.take();
        let (checkpoints, description) = (self.checkpoints, self.description.take());
        let (command, column_names) =
            (std::mem::take(&mut self.command), std::mem::take(&mut self.column_names));
        let mut session = team::together(self.session(train))?;
        session.agree()?;
        if let Some(place) = place {
            let folder = match place {
                Place::At(folder) => folder,
                Place::Numbered(parent, stem) => new_folder(&parent, &stem)?,
            };
            let description = match description {
                Some(description) => description.with_settings(&session.settings),
                None => Description::of_memory(train, column_names, &session.settings),
            };
            let mut files = RunFiles::create(&folder, description, checkpoints, &session.trainer.state())?;
            files.begin_sitting(0, command)?;
            session.files = Some(files);
        }
        Ok(session)
    }

    /// Continues the run in the folder `path`, exactly from its last checkpoint. Settings, rows and
    /// weights must be those of the original run.
    ///
    /// # Errors
    /// If the folder holds no run, a damaged run, or a run with other data, or if another process
    /// trains in it.
    pub fn resume(mut self, path: &Path, train: &'a Rows) -> Result<Session<'a>> {
        let (checkpoints, description) = (self.checkpoints, self.description.take());
        let new_schedule = self.new_schedule;
        let (command, column_names) =
            (std::mem::take(&mut self.command), std::mem::take(&mut self.column_names));
        let owner = Owner::of(path)?;
        let mut session = team::together(self.session(train))?;
        session.agree()?;
        let read = |session: &mut Session<'a>| -> Result<()> {
            let description = match description {
                Some(description) => description.with_settings(&session.settings),
                None => Description::of_memory(train, column_names, &session.settings),
            };
            let resumed = RunFiles::resume(path, description, checkpoints, owner, session.trainer.rbm())?;
            session.trainer.restore(resumed.state)?;
            if new_schedule.is_some_and(|after| after != session.trainer.epochs_done()) {
                return Err(Error::malformed(path, "has gone on since it was read; try again"));
            }
            session.best = resumed.best;
            session.seconds_before = resumed.seconds;
            session.evaluation_seconds = resumed.history.last().map_or(0.0, |m| m.evaluation_seconds);
            session.history = resumed.history;
            let mut files = resumed.files;
            files.begin_sitting(session.trainer.epochs_done(), command)?;
            session.files = Some(files);
            Ok(())
        };
        // No rank continues, and writes, before all have read.
        team::together(read(&mut session))?;
        session.agree()?;
        if new_schedule.is_some() {
            session.best.renew_patience();
            let (state, seconds) = (session.trainer.state(), session.seconds_before);
            if let Some(files) = &mut session.files {
                files.begin_again(&state, &session.best, seconds)?;
            }
        }
        Ok(session)
    }

    /// Begins a training on rows that arrive in pieces. `rows` are inspected, but
    /// not trained on.
    ///
    /// # Errors
    /// If settings, model and rows do not fit together.
    pub fn feed(self, rows: &Rows) -> Result<Feed> {
        Feed::new(&self.settings, rows, self.model)
    }

    /// Returns the rows to train on, the rows that choose the best epoch, and the grey values
    /// behind the former, after rows were held out.
    fn parts(&self, train: &'a Rows) -> Result<(Part<'a>, Option<Part<'a>>, Option<Cow<'a, Rows>>)> {
        let train = Part::new(Weighted { rows: train, weights: self.weights });
        let (validation, grey) = (self.validation.map(Part::new), self.grey.map(Cow::Borrowed));
        let settings = self.settings.check_without_rows()?;
        let Some(share) = settings.validation_fraction else { return Ok((train, validation, grey)) };
        let n_rows = train.rows.n_rows();
        if n_rows < 2 {
            let cure = "give at least two rows, or hold out none";
            return Err(Error::Empty { what: "the rest of the training rows".into(), cure });
        }
        let mut order: Vec<usize> = (0..n_rows).collect();
        stream(settings.seed, Purpose::Split, 1).reader().shuffle(&mut order);
        let (held_out, kept) = order.split_at_mut(held_out(share, n_rows));
        held_out.sort_unstable();
        kept.sort_unstable();
        Ok((train.select(kept), Some(train.select(held_out)), grey.map(|grey| Cow::Owned(grey.select(kept)))))
    }

    /// Creates a session without files.
    fn session(mut self, train: &'a Rows) -> Result<Session<'a>> {
        if let Some(rbm) = &self.model {
            self.settings = of_model(self.settings, rbm)?;
        }
        let (mut train, validation, mut grey) = self.parts(train)?;
        let settings = self.settings.check(train.rows.n_rows())?;
        if !settings.redraw_bits {
            grey = None;
        } else if grey.is_none() {
            if matches!(*train.rows, Rows::Bits(_)) {
                return Err(Error::InvalidSetting {
                    name: "redraw-bits",
                    value: "true".into(),
                    cure: "the rows are bits already: give grey values to redraw them from",
                });
            }
            let bits = data::binarize(&train.rows, Binarize::Bernoulli, settings.seed, 0);
            grey = Some(std::mem::replace(&mut train.rows, Cow::Owned(bits)));
        }
        let weights = train.weights.as_ref().map(|weights| weights.to_vec());
        let mut trainer = match self.model {
            None => Trainer::new(settings.clone(), &train.rows, weights)?,
            Some(rbm) => Trainer::from_model(settings.clone(), rbm, &train.rows, weights)?,
        };
        if let Some(estimator) = self.estimator {
            trainer.use_estimator(estimator);
        }
        if let Some(validation) = &validation {
            trainer.rbm().check_width(validation.rows.n_columns())?;
        }
        let n_validation = validation.as_ref().map_or(0, |part| part.rows.n_rows());
        let is_watched = settings.eval_every != EvalEvery::Never;
        let monitor = is_watched.then(|| Monitor::new(&settings, train.weighted(), n_validation));
        Ok(Session {
            settings,
            train,
            grey,
            validation,
            monitor,
            trainer,
            best: Best::default(),
            best_model: None,
            snapshots: Vec::new(),
            history: Vec::new(),
            listener: self.listener,
            files: None,
            seconds_before: 0.0,
            evaluation_seconds: 0.0,
            begun: Instant::now(),
        })
    }
}

/// The settings for a training that starts from this model.
pub(super) fn of_model(settings: Settings, rbm: &Rbm) -> Result<Settings> {
    let n_hidden = settings.n_hidden.unwrap_or(rbm.n_hidden());
    check_n_hidden(n_hidden, rbm)?;
    Ok(Settings { n_hidden: Some(n_hidden), ..settings })
}
