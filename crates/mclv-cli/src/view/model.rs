//! Pictures and tours of the model of a run.

use super::{tail, toured};
use mclv::data::{self, DataSpec, Dataset, Rows, Split};
use mclv::partition::{LogZ, N_SCOUTS, mclv_from_tours};
use mclv::progress::Progress;
use mclv::sample::{SampleSettings, Start, sample};
use mclv::tour::{Conclusion, Extremes, HiddenChain, TourEngine, TourSettings, Tours};
use mclv::train::RunRecord;
use mclv::{Error, Rbm, Result, StoppingSet, UnitUse};
use mclv_report::pictures::Reconstructions;
use mclv_report::run::{ModelPictures, ModelTours, ModelView};
use mclv_report::tours::Tail;

/// The largest number of filters that a page shows.
const MOST_FILTERS: usize = 100;
/// Chains and rows that a page shows.
const PAGE_CHAINS: usize = 40;
const PAGE_ROWS: usize = 8;
/// Tours of each kind that a page shows.
const PAGE_TOURS: usize = 8;

/// Rows whose hidden states make the stopping set of the report's tours, tours, and steps of all of them together.
const SET_ROWS: usize = 20_000;
const N_TOURS: usize = 5_000;
const MAX_STEPS: u64 = 2_000_000;
/// The same times visible and hidden units.
const MAX_WORK: u64 = 40_000_000_000;

/// Rows by which hidden units are judged.
const UNIT_ROWS: usize = 2000;

/// What the page of a run shows of the model, and `log Z` from the tours that it shows.
#[derive(Default)]
pub(crate) struct View {
    pub(super) shown: ModelView,
    pub(super) log_z: Option<LogZ>,
}

impl View {
    /// Load the training rows, compute pictures, make tours. What cannot be had is noted.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the listener says stop.
    pub(crate) fn new(run: &RunRecord, with_tours: bool, progress: &dyn Progress) -> Result<Self> {
        let mut view = Self::default();
        let model = match Model::new(run, progress) {
            Ok(model) => model,
            Err(e) => {
                view.note::<()>("pictures and tours", Err(e))?;
                return Ok(view);
            }
        };
        if let Some(problem) = &model.problem {
            view.note::<()>("training rows", Err(Error::malformed(run.folder.path(), problem)))?;
        }
        if let Ok(shape) = model.shape() {
            view.shown.pictures = view.note("pictures", model.pictures(shape))?;
        }
        if model.data.is_some() {
            view.shown.units = view.note("hidden units", model.unit_use())?;
        }
        if with_tours && model.data.is_some() {
            let made = view.note("tours", model.tours(progress))?;
            (view.shown.tours, view.log_z) = made.unzip();
        }
        Ok(view)
    }

    /// The value; an error becomes one of the problems, unless the listener said stop.
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

/// The model of a run and the rows that it was trained on.
pub(crate) struct Model<'a> {
    run: &'a RunRecord,
    rbm: &'a Rbm,
    data: Option<Dataset>,
    /// Why there are no rows.
    problem: Option<String>,
}

impl<'a> Model<'a> {
    /// The model, and its training rows if they can be had.
    ///
    /// # Errors
    /// If there is no model, or the listener says stop.
    pub(crate) fn new(run: &'a RunRecord, progress: &dyn Progress) -> Result<Self> {
        let no_model = || Error::malformed(run.folder.path(), "holds no model that can be read");
        let rbm = run.rbm().ok_or_else(no_model)?;
        let spec = run.input.as_ref().map(|input| DataSpec { split: Split::Train, ..input.data.clone() });
        let (data, problem) = match spec.map(|spec| data::load(&spec, progress)) {
            Some(Err(Error::Cancelled)) => return Err(Error::Cancelled),
            Some(Err(e)) => (None, Some(e.to_string())),
            Some(Ok(data)) if data.n_columns() != rbm.n_visible() => {
                let problem =
                    format!("{} has {} columns, the model {}", data.name, data.n_columns(), rbm.n_visible());
                (None, Some(problem))
            }
            Some(Ok(data)) => (Some(data), None),
            None => (None, Some("no settings say what the model was trained on".into())),
        };
        Ok(Self { run, rbm, data, problem })
    }

    /// The training rows.
    ///
    /// # Errors
    /// If they could not be had.
    fn rows(&self) -> Result<&Rows> {
        let why = || self.problem.clone().unwrap_or_default();
        self.data.as_ref().map(|d| &d.rows).ok_or_else(|| Error::malformed(self.run.folder.path(), why()))
    }

    /// Height and width of pictures.
    ///
    /// # Errors
    /// If rows are not known to be pictures.
    pub(crate) fn shape(&self) -> Result<(usize, usize)> {
        let recorded = self.run.model.as_ref().and_then(|m| m.provenance.data.as_ref()?.image_shape);
        let shape = self.data.as_ref().and_then(|d| d.image_shape).or(recorded);
        shape.filter(|&s| mclv::picture::check_shape(s, self.rbm.n_visible()).is_ok()).ok_or_else(|| {
            Error::malformed(self.run.folder.path(), "it is not known how its rows make pictures")
        })
    }

    /// The number of hidden units.
    pub(crate) fn n_hidden(&self) -> usize {
        self.rbm.n_hidden()
    }

    /// Hidden units that do nothing for the training rows.
    fn unit_use(&self) -> Result<UnitUse> {
        let rows = self.rows()?;
        self.rbm.unit_use(&rows.select(&spread(rows.n_rows(), UNIT_ROWS)))
    }

    fn seed(&self) -> u64 {
        self.run.settings.as_ref().map_or(0, |settings| settings.seed)
    }

    /// The weights of each hidden unit; those of the largest norm if there are many.
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

    /// The epoch of the last checkpoint and `E[v|h]` of at most `most` of its chains, if it has some.
    ///
    /// # Errors
    /// If the chains are not of its model.
    pub(crate) fn chains(&self, most: usize) -> Result<Option<(usize, Vec<Vec<f32>>)>> {
        let Some((snapshot, h)) = self.run.snapshot.as_ref().and_then(|s| Some((s, s.chains.as_ref()?)))
        else {
            return Ok(None);
        };
        let chosen = h.select(&spread(h.n_rows(), most));
        let means = snapshot.rbm.mean_v_from_h(&Rows::Bits(chosen))?;
        Ok(Some((snapshot.epoch, values(&Rows::Reals(means)))))
    }

    /// Samples after 1,000 steps.
    ///
    /// # Errors
    /// If the listener says stop.
    pub(crate) fn samples(&self, progress: &dyn Progress) -> Result<Vec<Vec<f32>>> {
        let settings = SampleSettings { seed: self.seed(), ..SampleSettings::default() };
        Ok(values(&sample(self.rbm, &settings, Start::Bias, None, progress)?.rows()))
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
            chains: self.chains(PAGE_CHAINS)?,
            reconstructions: match &self.data {
                Some(_) => Some(self.reconstructions(PAGE_ROWS)?),
                None => None,
            },
        })
    }

    /// Make the tours that reports show, and look at them.
    fn with_tours<T>(
        &self,
        progress: &dyn Progress,
        look: impl FnOnce(&StoppingSet, &TourEngine<'_>, (&Tours, &TourSettings)) -> Result<T>,
    ) -> Result<T> {
        // About two seconds of one core, whatever the size of the model.
        let max_steps = MAX_WORK / (self.rbm.n_visible() * self.rbm.n_hidden()) as u64;
        let max_steps = Some(max_steps.clamp(2 * N_TOURS as u64, MAX_STEPS));
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

    /// The tail function of tours of the model, as the report shows it.
    ///
    /// # Errors
    /// If there are no training rows, or the listener says stop.
    pub(crate) fn tail(&self, progress: &dyn Progress) -> Result<Tail> {
        self.with_tours(progress, |_, _, (tours, _)| Ok(tail(&self.run.name, tours)))
    }

    /// The `n` shortest and the `n` longest tours.
    ///
    /// # Errors
    /// If there are no training rows, or the listener says stop.
    pub(crate) fn extreme_tours(&self, n: usize, progress: &dyn Progress) -> Result<Extremes> {
        self.with_tours(progress, |_, engine, (tours, settings)| engine.extremes(tours, settings, None, n))
    }
}

/// At most `n` of `n_rows` rows, evenly spread.
fn spread(n_rows: usize, n: usize) -> Vec<usize> {
    let n = n.min(n_rows);
    (0..n).map(|k| k * n_rows / n).collect()
}

/// The values of each row.
fn values(rows: &Rows) -> Vec<Vec<f32>> {
    (0..rows.n_rows()).map(|r| (0..rows.n_columns()).map(|i| rows.get(r, i)).collect()).collect()
}
