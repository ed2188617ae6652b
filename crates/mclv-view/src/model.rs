//! Pictures, samples and tours of the model of a run.

use crate::tours::{tail, toured};
use mclv::data::{self, DataSpec, Dataset, Rows, Split};
use mclv::generated::{Generated, GeneratedSettings};
use mclv::modes::{ModeMap, ModeSettings, ModeShares, mode_shares};
use mclv::partition::{
    Budget, Effort, Inputs, LogZ, Method, MethodSettings, N_SCOUTS, StepLimit, mclv_from_tours,
    nominal_seconds,
};
use mclv::progress::Progress;
use mclv::sample::quick_samples;
use mclv::tour::{Conclusion, Extremes, HiddenChain, TourEngine, TourSettings, Tours};
use mclv::train::RunRecord;
use mclv::{Error, ModelFile, Rbm, Result, StoppingSet, StrongUnit, UnitUse};
use mclv_report::generated::BesideData;
use mclv_report::pictures::Reconstructions;
use mclv_report::run::{ModelPictures, ModelTours, ModelView, Spectrum, UnitColumns};
use mclv_report::tours::Tail;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The largest number of filters that a page shows.
const MOST_FILTERS: usize = 100;
/// Chains and rows that a page shows.
const PAGE_CHAINS: usize = 40;
const PAGE_ROWS: usize = 8;
/// Hidden units that a page lists, and columns of each.
const N_UNITS: usize = 15;
const N_COLUMNS: usize = 5;
/// Tours of each kind that a page shows.
const PAGE_TOURS: usize = 8;

/// The tours of a report: rows for the stopping set, number of tours, and steps of all tours
/// together.
const SET_ROWS: usize = 20_000;
const N_TOURS: usize = 5_000;
const MAX_STEPS: u64 = 2_000_000;
/// The limit of steps times visible units times hidden units.
const MAX_WORK: u64 = 40_000_000_000;

/// The wanted standard error of the share of a mode.
const SHARE_SE: f64 = 0.01;
/// The most seconds of exact samples, on a nominal machine, and the fewest steps of a ladder.
const EXACT_SECONDS: f64 = 0.02;
const LADDER_STEPS: u64 = 2_000_000;

/// Samples that are compared with the data, and the most seconds that they may take on a nominal
/// machine.
const N_SAMPLES: usize = 1000;
const SAMPLE_SECONDS: f64 = 4.0;

/// The most models whose singular values are shown, and the most multiplications for all of them.
const MOST_SPECTRA: usize = 6;
const MAX_SPECTRUM_WORK: f64 = 1.2e9;

/// Why there are no pictures.
const NO_SHAPE: &str = "the height and width of its pictures are not known; train with `shape`, or, for a table, list \
                        the weights with mclv inspect";

/// The name of data that were no file.
const IN_MEMORY: &str = "memory";

/// Rows used to judge hidden units.
const UNIT_ROWS: usize = 2000;

/// The part of a run's page about its model, and `log Z` from the tours on that page.
#[derive(Default)]
pub struct View {
    pub(crate) shown: ModelView,
    pub(crate) log_z: Option<LogZ>,
}

impl View {
    /// Loads the training rows, unless they are `given`, and computes pictures. If `is_whole`, it also
    /// draws samples and runs tours, which takes longer. Parts that fail are noted as problems.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the listener asks to stop.
    pub fn new(
        run: &RunRecord,
        given: Option<&Dataset>,
        is_whole: bool,
        progress: &dyn Progress,
    ) -> Result<Self> {
        Self::with_rows(run, &TrainingRows::new(run, given, progress)?, is_whole, progress)
    }

    /// Does the same with training rows that were loaded before.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_rows(
        run: &RunRecord,
        rows: &TrainingRows<'_>,
        is_whole: bool,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut view = Self::default();
        let model = match Model::with_rows(run, rows.borrowed()) {
            Ok(model) => model,
            Err(e) => {
                view.note::<()>("pictures and tours", Err(e))?;
                return Ok(view);
            }
        };
        if let Some(problem) = &model.rows.problem {
            view.note::<()>("training rows", Err(Error::malformed(run.folder.path(), problem)))?;
        }
        if let Ok(shape) = model.shape() {
            view.shown.pictures = view.note("pictures", model.pictures(shape))?;
        }
        if view.shown.pictures.is_none() {
            view.shown.columns = model.columns();
        }
        if model.rows.data.is_some() {
            view.shown.units = view.note("hidden units", model.unit_use())?;
        }
        if is_whole {
            view.shown.spectra = view.note("singular values", model.spectra())?.unwrap_or_default();
        }
        if is_whole && model.rows.data.is_some() {
            let made = view.note("tours", model.tours(progress))?;
            (view.shown.tours, view.log_z) = made.unzip();
            view.shown.modes = view.note("modes", model.modes(progress))?;
            view.shown.beside_data = view.note("samples", model.beside_data(progress))?;
        }
        if let (Some(pictures), Some(beside)) = (&mut view.shown.pictures, &view.shown.beside_data) {
            pictures.samples = first_values(&Rows::Bits(beside.samples.v.clone()), PAGE_CHAINS);
        }
        Ok(view)
    }

    /// Says whether the training is running.
    pub fn set_running(&mut self, is_running: bool) {
        self.shown.is_running = is_running;
    }

    /// Returns the value. An error becomes one of the problems, unless the listener asked to stop.
    fn note<T>(&mut self, what: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(e) => {
                self.shown.problems.push(format!("{what}: {e}"));
                Ok(None)
            }
            Ok(value) => Ok(Some(value)),
        }
    }
}

/// The training rows of a run.
pub struct TrainingRows<'a> {
    data: Option<Cow<'a, Dataset>>,
    /// The reason why there are no rows.
    problem: Option<String>,
}

impl<'a> TrainingRows<'a> {
    /// Loads the rows if possible, unless they are `given`.
    ///
    /// # Errors
    /// If the listener asks to stop.
    pub fn new(run: &RunRecord, given: Option<&'a Dataset>, progress: &dyn Progress) -> Result<Self> {
        let spec = run.input.as_ref().map(|input| {
            let data = input.data.clone().near(run.folder.path());
            DataSpec { split: Split::Train, ..data }
        });
        let rows = match (given, spec) {
            (Some(given), _) => {
                check_given(run, given).map(|()| Cow::Borrowed(given)).map_err(|e| e.to_string())
            }
            (None, Some(spec)) if spec.source == IN_MEMORY => {
                Err("the rows were in the memory of another program, and the run folder does not hold them"
                    .into())
            }
            (None, Some(spec)) => match data::load(&spec, progress) {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                loaded => loaded.map(Cow::Owned).map_err(|e| e.to_string()),
            },
            (None, None) => Err("the settings do not name the training data".into()),
        };
        Ok(match rows {
            Ok(data) => Self { data: Some(data), problem: None },
            Err(problem) => Self { data: None, problem: Some(problem) },
        })
    }

    /// Keeps as many of the rows as judge hidden units.
    pub fn some(self) -> Self {
        let few = |data: Cow<'a, Dataset>| Cow::Owned(data.select(&spread(data.n_rows(), UNIT_ROWS)));
        Self { data: self.data.map(few), ..self }
    }

    fn borrowed(&self) -> TrainingRows<'_> {
        let data = self.data.as_deref().map(Cow::Borrowed);
        TrainingRows { data, problem: self.problem.clone() }
    }
}

/// The model of a run and its training rows.
pub(crate) struct Model<'a> {
    run: &'a RunRecord,
    rbm: &'a Rbm,
    rows: TrainingRows<'a>,
}

impl<'a> Model<'a> {
    /// Loads the model, and its training rows if possible, unless they are `given`.
    ///
    /// # Errors
    /// If there is no model, or the listener asks to stop.
    pub(crate) fn new(
        run: &'a RunRecord,
        given: Option<&'a Dataset>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        Self::with_rows(run, TrainingRows::new(run, given, progress)?)
    }

    fn with_rows(run: &'a RunRecord, mut rows: TrainingRows<'a>) -> Result<Self> {
        let no_model = || Error::malformed(run.folder.path(), "it holds no readable model");
        let rbm = run.rbm().ok_or_else(no_model)?;
        if let Some(data) = rows.data.as_ref().filter(|data| data.n_columns() != rbm.n_visible()) {
            let (columns, n_visible) = (data.n_columns(), rbm.n_visible());
            let problem = format!("{} has {columns} columns, but the model has {n_visible}", data.name);
            rows = TrainingRows { data: None, problem: Some(problem) };
        }
        Ok(Self { run, rbm, rows })
    }

    /// The training rows.
    ///
    /// # Errors
    /// If they could not be loaded.
    fn rows(&self) -> Result<&Rows> {
        let why = || self.rows.problem.clone().unwrap_or_default();
        self.rows
            .data
            .as_ref()
            .map(|d| &d.rows)
            .ok_or_else(|| Error::malformed(self.run.folder.path(), why()))
    }

    /// Height and width of pictures.
    ///
    /// # Errors
    /// If the rows are not known to be pictures.
    pub(crate) fn shape(&self) -> Result<(usize, usize)> {
        let recorded = self.run.model.as_ref().and_then(|m| m.provenance.data.as_ref()?.image_shape);
        let given = self.run.input.as_ref().and_then(|input| input.shape);
        let shape = recorded.or(given).or(self.rows.data.as_ref().and_then(|d| d.image_shape));
        shape
            .filter(|&s| mclv::picture::check_shape(s, self.rbm.n_visible()).is_ok())
            .ok_or_else(|| Error::malformed(self.run.folder.path(), NO_SHAPE))
    }

    /// The number of hidden units.
    pub(crate) fn n_hidden(&self) -> usize {
        self.rbm.n_hidden()
    }

    /// The hidden units with the largest weights, and the columns that they depend on most.
    fn columns(&self) -> Vec<UnitColumns> {
        let data = self.run.model.as_ref().and_then(|model| model.provenance.data.as_ref());
        let data = data.or(self.rows.data.as_ref().map(|data| &data.provenance));
        let name = |i: usize| data.map_or_else(|| format!("column {}", i + 1), |data| data.column_name(i));
        let named = |unit: StrongUnit| UnitColumns {
            unit: unit.unit,
            columns: unit.weights.into_iter().map(|(i, weight)| (name(i), weight)).collect(),
        };
        self.rbm.strongest_units(N_UNITS, N_COLUMNS).into_iter().map(named).collect()
    }

    /// How the training rows use the hidden units.
    fn unit_use(&self) -> Result<UnitUse> {
        let rows = self.rows()?;
        self.rbm.unit_use(&rows.select(&spread(rows.n_rows(), UNIT_ROWS)))
    }

    fn seed(&self) -> u64 {
        self.run.settings.as_ref().map_or(0, |settings| settings.seed)
    }

    /// The weights of each hidden unit. If there are many units, those with the largest norms.
    pub(crate) fn filters(&self) -> Vec<Vec<f32>> {
        let (weights, n) = (self.rbm.weights(), self.rbm.n_hidden());
        let filter = |j: usize| -> Vec<f32> { weights.iter().skip(j).step_by(n).copied().collect() };
        let norm = |filter: &[f32]| filter.iter().map(|w| w * w).sum::<f32>();
        let mut all: Vec<Vec<f32>> = (0..n).map(filter).collect();
        if n > MOST_FILTERS {
            all.sort_by(|a, b| norm(b).total_cmp(&norm(a)));
            all.truncate(MOST_FILTERS);
        }
        all
    }

    /// The epoch of the last checkpoint and `E[v|h]` of at most `most` of its chains; `None`
    /// without chains.
    ///
    /// # Errors
    /// If the chains do not fit the model.
    pub(crate) fn chains(&self, most: usize) -> Result<Option<(usize, Vec<Vec<f32>>)>> {
        let Some((snapshot, h)) = self.run.snapshot.as_ref().and_then(|s| Some((s, s.chains.as_ref()?)))
        else {
            return Ok(None);
        };
        let chosen = h.select(&spread(h.n_rows(), most));
        let means = snapshot.rbm.mean_v_from_h(&Rows::Bits(chosen))?;
        Ok(Some((snapshot.epoch, values(&Rows::Reals(means)))))
    }

    /// At most `most` samples: draws of zeros and ones.
    ///
    /// # Errors
    /// If the listener asks to stop.
    pub(crate) fn samples(&self, most: usize, progress: &dyn Progress) -> Result<Vec<Vec<f32>>> {
        let samples = quick_samples(self.rbm, most, SAMPLE_SECONDS, self.seed(), progress)?;
        Ok(values(&Rows::Bits(samples.v)))
    }

    /// Samples beside the training rows, and beside test rows if there are some.
    ///
    /// # Errors
    /// If there are no training rows, or the listener asks to stop.
    pub(crate) fn beside_data(&self, progress: &dyn Progress) -> Result<BesideData> {
        let rows = self.rows()?;
        let seed = self.seed();
        let samples = quick_samples(self.rbm, N_SAMPLES, SAMPLE_SECONDS, seed, progress)?;
        let held_out = self.test_rows(progress)?;
        let settings = GeneratedSettings { seed, ..GeneratedSettings::default() };
        let generated = Generated::new(&samples.v, rows, held_out.as_ref(), &settings)?;
        let is_grey = !matches!(rows, Rows::Bits(_));
        Ok(BesideData { samples, generated, is_grey, held_out: held_out.map(|_| Split::Test.to_string()) })
    }

    /// The test rows; `None` if there are none of their own.
    fn test_rows(&self, progress: &dyn Progress) -> Result<Option<Rows>> {
        let input = self.run.input.as_ref().filter(|input| input.data.source != IN_MEMORY);
        let spec = input.map(|input| {
            let data = input.data.clone().near(self.run.folder.path());
            DataSpec { split: Split::Test, ..data }
        });
        match spec.map(|spec| data::load(&spec, progress)) {
            Some(Ok(test)) => Ok(Some(test.rows).filter(|rows| self.rows().is_ok_and(|train| train != rows))),
            Some(Err(Error::Empty { .. })) | None => Ok(None),
            Some(Err(e)) => Err(e),
        }
    }

    /// The singular values of the weights of the models that are there: the initial model, snapshots,
    /// the best model, the last checkpoint and the last model. Empty if they take too long.
    ///
    /// # Errors
    /// If a snapshot cannot be read.
    pub(crate) fn spectra(&self) -> Result<Vec<Spectrum>> {
        let (n_visible, n_hidden) = (self.rbm.n_visible() as f64, self.rbm.n_hidden() as f64);
        let small = n_visible.min(n_hidden);
        let work = n_visible * n_hidden * small + 4.0 / 3.0 * small.powi(3);
        let most = ((MAX_SPECTRUM_WORK / work) as usize).min(MOST_SPECTRA);
        if most == 0 {
            return Ok(Vec::new());
        }
        let models = self.models_by_epoch()?;
        let all: Vec<(&usize, &Cow<'_, Rbm>)> = models.iter().collect();
        // The first and the last are among them.
        let chosen = match most {
            1 => vec![all.len() - 1],
            most => {
                let n = most.min(all.len());
                (0..n).map(|k| k * (all.len() - 1) / (n - 1).max(1)).collect()
            }
        };
        let of = |(&epoch, rbm): (&usize, &Cow<'_, Rbm>)| Spectrum {
            epoch,
            values: rbm.singular_values(),
            by_chance: rbm.singular_value_by_chance(),
        };
        Ok(chosen.into_iter().map(|k| of(all[k])).collect())
    }

    /// The models of the run, by the number of epochs that they were trained for. There is at least
    /// one.
    fn models_by_epoch(&self) -> Result<BTreeMap<usize, Cow<'a, Rbm>>> {
        let run = self.run;
        let epoch_of =
            |file: &ModelFile| file.provenance.history["epoch"].as_u64().map(|epoch| epoch as usize);
        let mut models: BTreeMap<usize, Cow<'a, Rbm>> = BTreeMap::new();
        let is_weighted = run.input.as_ref().is_some_and(|input| input.weights.is_some());
        if let (Some(settings), Some(data), false) = (&run.settings, &self.rows.data, is_weighted) {
            let initial = settings.init.model(&data.rows, settings.n_hidden, settings.seed)?;
            models.insert(0, Cow::Owned(initial));
        }
        for epoch in run.folder.snapshot_epochs() {
            models.insert(epoch, Cow::Owned(ModelFile::load(run.folder.snapshot(epoch))?.rbm));
        }
        if let Ok(best) = ModelFile::load(run.folder.best_model())
            && let Some(epoch) = epoch_of(&best)
        {
            models.insert(epoch, Cow::Owned(best.rbm));
        }
        if let Some(checkpoint) = &run.snapshot {
            models.insert(checkpoint.epoch, Cow::Borrowed(&checkpoint.rbm));
        }
        let last = run.model.as_ref().and_then(epoch_of).unwrap_or(run.epochs_done());
        models.insert(last, Cow::Borrowed(self.rbm));
        Ok(models)
    }

    /// At most `n` training rows and their mean-field reconstructions.
    ///
    /// # Errors
    /// If there are no training rows.
    pub(crate) fn reconstructions(&self, n: usize) -> Result<Reconstructions> {
        let rows = self.rows()?;
        let rows = rows.select(&spread(rows.n_rows(), n));
        let means = self.rbm.mean_v_from_h(&Rows::Reals(self.rbm.mean_h_from_v(&rows)?))?;
        Ok(Reconstructions { rows: values(&rows), made_again: values(&Rows::Reals(means)) })
    }

    fn pictures(&self, shape: (usize, usize)) -> Result<ModelPictures> {
        Ok(ModelPictures {
            shape,
            n_hidden: self.n_hidden(),
            filters: self.filters(),
            samples: Vec::new(),
            chains: self.chains(PAGE_CHAINS)?,
            reconstructions: match &self.rows.data {
                Some(_) => Some(self.reconstructions(PAGE_ROWS)?),
                None => None,
            },
        })
    }

    /// Runs the tours of a report and passes them to `look`.
    fn with_tours<T>(
        &self,
        progress: &dyn Progress,
        look: impl FnOnce(&StoppingSet, &TourEngine<'_>, (&Tours, &TourSettings)) -> Result<T>,
    ) -> Result<T> {
        let max_steps = Some(self.max_steps());
        let settings =
            TourSettings { n_tours: N_TOURS, max_steps, seed: self.seed(), ..TourSettings::default() };
        let rows = self.rows()?;
        let set = StoppingSet::draw(self.rbm, rows, &spread(rows.n_rows(), SET_ROWS), 1, self.seed(), 0)?;
        let engine = TourEngine::new(self.rbm, &set)?;
        let tours = engine.run(&settings, progress)?;
        look(&set, &engine, (&tours, &settings))
    }

    fn tours(&self, progress: &dyn Progress) -> Result<(ModelTours, LogZ)> {
        self.with_tours(progress, |set, engine, (tours, settings)| {
            let extremes = match self.shape() {
                Ok(shape) => Some((engine.extremes(tours, settings, None, PAGE_TOURS)?, shape)),
                Err(_) => None,
            };
            let chain = HiddenChain::if_quick(self.rbm);
            let theory = chain.as_ref().map(|chain| chain.tours(set)).transpose()?;
            let conclusion = Conclusion::new(self.rbm, set, tours, theory.as_ref(), self.seed())?;
            let toured = toured("m = 1", set, tours, conclusion);
            Ok((
                ModelTours { toured, extremes },
                mclv_from_tours(engine, tours, N_SCOUTS, settings.seed, progress)?,
            ))
        })
    }

    /// The number of steps that take about two seconds on one core, for models of any size.
    fn max_steps(&self) -> u64 {
        let max_steps = MAX_WORK / (self.rbm.n_visible() * self.rbm.n_hidden()) as u64;
        max_steps.clamp(2 * N_TOURS as u64, MAX_STEPS)
    }

    /// The shares of modes, within a few seconds.
    fn modes(&self, progress: &dyn Progress) -> Result<ModeShares> {
        let rows = self.rows()?;
        let labels = self.rows.data.as_ref().and_then(|data| data.labels.as_ref());
        let map = ModeMap::new(rows, labels, &ModeSettings { seed: self.seed(), ..Default::default() })?;
        let (n_visible, n_hidden) = (self.rbm.n_visible(), self.rbm.n_hidden());
        let is_exact = nominal_seconds(n_visible, n_hidden) <= EXACT_SECONDS;
        let max_steps = self.max_steps();
        // A ladder with few steps says nothing.
        let method = (!is_exact && max_steps < LADDER_STEPS).then_some(Method::Mclv);
        let budget = Budget {
            seconds: EXACT_SECONDS,
            clock: false,
            max_states: Some(SET_ROWS),
            max_steps: StepLimit::Steps(max_steps),
            ..Budget::COMMAND
        };
        let effort = Effort::TargetSe(SHARE_SE);
        let settings = MethodSettings { effort, budget, seed: self.seed(), ..Default::default() };
        let inputs = Inputs { rows: Some(rows), ..Inputs::default() };
        mode_shares(self.rbm, &map, &inputs, method, &settings, progress)
    }

    /// The tail function of tours of the model, as in the report.
    ///
    /// # Errors
    /// If there are no training rows, or the listener asks to stop.
    pub(crate) fn tail(&self, progress: &dyn Progress) -> Result<Tail> {
        self.with_tours(progress, |_, _, (tours, _)| Ok(tail(&self.run.name, tours)))
    }

    /// The `n` shortest and the `n` longest tours.
    ///
    /// # Errors
    /// If there are no training rows, or the listener asks to stop.
    pub(crate) fn extreme_tours(&self, n: usize, progress: &dyn Progress) -> Result<Extremes> {
        self.with_tours(progress, |_, engine, (tours, settings)| engine.extremes(tours, settings, None, n))
    }
}

/// Rejects given rows that the run was not trained on.
fn check_given(run: &RunRecord, given: &Dataset) -> Result<()> {
    let recorded = run.model.as_ref().and_then(|model| model.provenance.data.as_ref());
    match recorded.filter(|then| then.sha256 != given.provenance.sha256) {
        Some(_) => Err(Error::malformed(run.folder.path(), "was not trained on the given rows")),
        None => Ok(()),
    }
}

/// At most `n` of `n_rows` rows, evenly spread.
fn spread(n_rows: usize, n: usize) -> Vec<usize> {
    let n = n.min(n_rows);
    (0..n).map(|k| k * n_rows / n).collect()
}

/// The values of the first `n` rows.
fn first_values(rows: &Rows, n: usize) -> Vec<Vec<f32>> {
    values(&rows.select(&(0..n.min(rows.n_rows())).collect::<Vec<_>>()))
}

/// The values of each row.
fn values(rows: &Rows) -> Vec<Vec<f32>> {
    (0..rows.n_rows()).map(|r| (0..rows.n_columns()).map(|i| rows.get(r, i)).collect()).collect()
}
