//! The report of one run.

use super::curves::{self, Against};
use super::{RunFolder, likelihood, watched};
use crate::figure::PictureGrid;
use crate::page::{Block, Level, Page, Section, Verdict};
use crate::{log_z, pictures, tours};
use mclv::data::{self, DataSpec, Dataset, Rows, Split};
use mclv::partition::{Guarantee, LogZ, mclv_from_tours};
use mclv::progress::Progress;
use mclv::sample::{SampleSettings, Start, sample};
use mclv::tour::{TourEngine, TourSettings};
use mclv::train::{Metrics, Warning};
use mclv::{Error, Rbm, Result, StoppingSet, human_seconds};

/// Rows whose hidden states make the stopping set of the report's tours, tours, and steps of all of them together.
const SET_ROWS: usize = 20_000;
const N_TOURS: usize = 5_000;
const MAX_STEPS: u64 = 2_000_000;
/// The same times visible and hidden units.
const MAX_WORK: u64 = 40_000_000_000;

/// What is shown of the model itself: pictures, tours.
#[derive(Default)]
pub struct ModelView {
    pictures: Vec<Block>,
    tours: Vec<Block>,
    log_z: Option<LogZ>,
    problems: Vec<String>,
}

impl ModelView {
    /// Load the training rows, draw pictures, make tours. What cannot be had is noted.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the listener says stop.
    pub fn new(run: &RunFolder, with_tours: bool, progress: &dyn Progress) -> Result<Self> {
        let mut view = Self::default();
        let mut note = |what: &str, result: Result<Vec<Block>>| match result {
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(e) => {
                view.problems.push(format!("{what}: {e}"));
                Ok(Vec::new())
            }
            Ok(blocks) => Ok(blocks),
        };
        let parts = match ModelParts::new(run, progress) {
            Ok(parts) => parts,
            Err(e) => {
                note("pictures and tours", Err(e))?;
                return Ok(view);
            }
        };
        if let Some(problem) = &parts.problem {
            note("training rows", Err(Error::malformed(&run.path, problem)))?;
        }
        let mut pictures = Vec::new();
        if let Ok(shape) = parts.shape() {
            pictures = note("pictures", parts.pictures(shape))?;
        }
        let (mut tours, mut log_z) = (Vec::new(), None);
        if with_tours && parts.data.is_some() {
            let made = parts.tours(progress).map(|(blocks, z)| {
                log_z = Some(z);
                blocks
            });
            tours = note("tours", made)?;
        }
        (view.pictures, view.tours, view.log_z) = (pictures, tours, log_z);
        Ok(view)
    }
}

/// The model of a run and the rows it was trained on.
pub struct ModelParts<'a> {
    run: &'a RunFolder,
    /// The model: that of the end, else the best so far, else that of the last checkpoint.
    pub rbm: &'a Rbm,
    data: Option<Dataset>,
    /// Why there are no rows.
    problem: Option<String>,
}

impl<'a> ModelParts<'a> {
    /// The model, and its training rows if they can be had.
    ///
    /// # Errors
    /// If there is no model, or the listener says stop.
    pub fn new(run: &'a RunFolder, progress: &dyn Progress) -> Result<Self> {
        let rbm = run.model.as_ref().map(|m| &m.rbm).or(run.snapshot.as_ref().map(|s| &s.rbm));
        let rbm = rbm.ok_or_else(|| Error::malformed(&run.path, "holds no model that can be read"))?;
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
    pub fn rows(&self) -> Result<&Rows> {
        let why = || self.problem.clone().unwrap_or_default();
        self.data.as_ref().map(|d| &d.rows).ok_or_else(|| Error::malformed(&self.run.path, why()))
    }

    /// Height and width of pictures.
    ///
    /// # Errors
    /// If rows are not known to be pictures.
    pub fn shape(&self) -> Result<(usize, usize)> {
        let recorded = self.run.model.as_ref().and_then(|m| m.provenance.data.as_ref()?.image_shape);
        let shape = self.data.as_ref().and_then(|d| d.image_shape).or(recorded);
        shape
            .filter(|&s| mclv::picture::check_shape(s, self.rbm.n_visible()).is_ok())
            .ok_or_else(|| Error::malformed(&self.run.path, "it is not known how its rows make pictures"))
    }

    fn seed(&self) -> u64 {
        self.run.input.as_ref().map_or(0, |i| i.train.seed)
    }

    fn pictures(&self, shape: (usize, usize)) -> Result<Vec<Block>> {
        let note = "Blue: negative, orange: positive, in one scale for all.";
        let mut blocks = vec![Block::pictures(pictures::filters(self.rbm, shape), note)];
        if let Some((s, chains)) = self.run.snapshot.as_ref().and_then(|s| Some((s, s.chains.as_ref()?))) {
            let note = format!("E[v|h] of persistent chains or running tours after epoch {}.", s.epoch);
            blocks.push(Block::pictures(pictures::chains(&s.rbm, chains, shape, 40)?, note));
        }
        if let Some(data) = &self.data {
            let grid = pictures::reconstructions(self.rbm, &data.rows, shape, 8)?;
            blocks.push(Block::pictures(grid, "E[v | E[h|v]]: one mean-field step."));
        }
        Ok(blocks)
    }

    /// What persistent chains show, else samples after 1,000 steps.
    ///
    /// # Errors
    /// If the listener says stop.
    pub fn samples(&self, shape: (usize, usize), progress: &dyn Progress) -> Result<PictureGrid> {
        if let Some((s, chains)) = self.run.snapshot.as_ref().and_then(|s| Some((s, s.chains.as_ref()?))) {
            return pictures::chains(&s.rbm, chains, shape, 64);
        }
        let settings = SampleSettings { seed: self.seed(), ..SampleSettings::default() };
        let samples = sample(self.rbm, &settings, Start::Bias, None, progress)?;
        Ok(PictureGrid::new("Samples after 1,000 steps", pictures::values(&samples.rows()), shape, 8))
    }

    fn tour_settings(&self) -> TourSettings {
        // About two seconds of one core, whatever the size of the model.
        let max_steps = MAX_WORK / (self.rbm.n_visible() * self.rbm.n_hidden()) as u64;
        let max_steps = Some(max_steps.clamp(2 * N_TOURS as u64, MAX_STEPS));
        TourSettings { n_tours: N_TOURS, max_steps, seed: self.seed(), ..TourSettings::default() }
    }

    fn stopping_set(&self) -> Result<StoppingSet> {
        let rows = self.rows()?;
        let n = rows.n_rows().min(SET_ROWS);
        let chosen: Vec<usize> = (0..n).map(|k| k * rows.n_rows() / n).collect();
        StoppingSet::draw(self.rbm, rows, &chosen, 1, self.seed(), 0)
    }

    fn tours(&self, progress: &dyn Progress) -> Result<(Vec<Block>, LogZ)> {
        let (settings, set) = (self.tour_settings(), self.stopping_set()?);
        let engine = TourEngine::new(self.rbm, &set)?;
        let made = engine.run(&settings, progress)?;
        let toured = tours::Toured { name: "m = 1".into(), n_states: set.len(), tours: &made };
        let mut blocks = tours::blocks(&[toured]);
        if let Ok(shape) = self.shape() {
            let grids = tours::picture_grids((self.rbm, &set), &engine, (&made, &settings), None, shape, 8)?;
            let note = "Above E[v|h] of the state that the tour began in, below the visible layer after the first step.";
            blocks.extend(grids.into_iter().map(|grid| Block::pictures(grid, note)));
        }
        Ok((blocks, mclv_from_tours(&made)?))
    }

    /// The tail function of tours of the model, as the report shows it.
    ///
    /// # Errors
    /// If there are no training rows, or the listener says stop.
    pub fn tail(&self, progress: &dyn Progress) -> Result<tours::Tail> {
        let set = self.stopping_set()?;
        let made = TourEngine::new(self.rbm, &set)?.run(&self.tour_settings(), progress)?;
        Ok(tours::Tail { name: self.run.name.clone(), ccdf: made.ccdf(), fit: made.tail_fit() })
    }

    /// The shortest and the longest tours in one grid.
    ///
    /// # Errors
    /// If there are no training rows, or the listener says stop.
    pub fn tour_pictures(&self, shape: (usize, usize), progress: &dyn Progress) -> Result<PictureGrid> {
        let (settings, set) = (self.tour_settings(), self.stopping_set()?);
        let engine = TourEngine::new(self.rbm, &set)?;
        let made = engine.run(&settings, progress)?;
        tours::picture_grid((self.rbm, &set), &engine, (&made, &settings), None, shape, 10)
    }
}

/// The page of one run.
pub fn single_run(run: &RunFolder, view: &ModelView) -> Page {
    let source = run.input.as_ref().map_or("unknown data".into(), |i| i.data.source.clone());
    let n_hidden = run.metrics.last().map(|m| m.n_hidden).filter(|&n| n > 0);
    let units = n_hidden.map_or(String::new(), |n| format!(", {n} hidden units"));
    let subtitle = format!("{source}{units}, {}", run.estimator());
    let tabs = vec![
        ("by epoch".to_owned(), likelihood(&[run], Against::Epochs)),
        ("by wall time".to_owned(), likelihood(&[run], Against::Seconds)),
    ];
    let likelihoods = Block::Charts { tabs, wide: true, note: likelihood_note(run) };
    let charts = |charts: Vec<(crate::figure::Figure, &'static str)>| {
        charts.into_iter().map(|(figure, note)| Block::chart(figure, note)).collect::<Vec<_>>()
    };
    let mut estimates: Vec<LogZ> = run.last_evaluated().and_then(|m| m.log_z.clone()).into_iter().collect();
    if let Some(z) = &view.log_z {
        let mut z = z.clone();
        z.method = format!("{} (tours of this report)", z.method);
        estimates.push(z);
    }
    Page::new(&run.name, subtitle)
        .with(Section::new("Summary", [Block::Verdicts(verdicts(run, view)), Block::facts(summary(run))]))
        .with(Section::new("Likelihood", [likelihoods]))
        .with(Section::new("Training", charts(watched(run))))
        .with(Section::new("Tours in training", charts(curves::tours_in_training(run))))
        .with(Section::new("Tours", view.tours.clone()))
        .with(Section::new("Pictures", view.pictures.clone()))
        .with(Section::new(
            "log Z",
            if estimates.is_empty() { Vec::new() } else { log_z::blocks(&estimates) },
        ))
        .with(Section::new("Provenance", provenance(run)))
}

fn likelihood_note(run: &RunFolder) -> String {
    let exact = |m: &Metrics| m.log_z.as_ref().is_some_and(|z| z.guarantee == Guarantee::Exact);
    let evaluated: Vec<&Metrics> = run.metrics.iter().filter(|m| m.log_z.is_some()).collect();
    let band = if evaluated.iter().all(|m| exact(m)) {
        "Exact log Z: the curves have no error bar."
    } else {
        "Bands: 95 % limits of log Z, which all rows share."
    };
    format!("{band} The training curve is over 5,000 rows at most; the last value over all.")
}

fn summary(run: &RunFolder) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| facts.push((name.into(), value));
    let recorded = run.model.as_ref().and_then(|m| m.provenance.data.as_ref());
    match (recorded, &run.input) {
        (Some(d), _) => {
            add("data", format!("{}: {} rows of {} ({})", d.name, d.n_rows, d.n_columns, d.preprocessing))
        }
        (None, Some(input)) => add("data", input.data.source.clone()),
        (None, None) => {}
    }
    if let Some(rbm) = run.model.as_ref().map(|m| &m.rbm).or(run.snapshot.as_ref().map(|s| &s.rbm)) {
        add("model", format!("{} visible × {} hidden units", rbm.n_visible(), rbm.n_hidden()));
    }
    if let Some(input) = &run.input {
        let t = &input.train;
        add("estimator", run.estimator());
        let centred = if t.centred { ", centred" } else { "" };
        add("optimisation", format!("rate {}, {} rows per update{centred}", t.learning_rate, t.batch_size));
        add("seed", t.seed.to_string());
    }
    if let Some(last) = run.metrics.last() {
        let of = run.input.as_ref().map_or(String::new(), |i| format!(" of {}", i.train.epochs));
        add("epochs", format!("{}{of}", last.epoch));
        add("time", human_seconds(last.seconds));
    }
    if let Some(m) = run.last_evaluated() {
        let z = m.log_z.as_ref();
        let error = z.filter(|z| z.std_err > 0.0).map_or(String::new(), |z| format!(" ± {:.3}", z.std_err));
        for (name, value) in [
            ("log-likelihood, train", m.train_log_likelihood),
            ("log-likelihood, validation", m.validation_log_likelihood),
        ] {
            if let Some(value) = value {
                add(name, format!("{value:.3}{error} nats per row"));
            }
        }
        if let Some(z) = z {
            let worth = match z.guarantee {
                Guarantee::Exact => "exact".into(),
                guarantee => format!("{}; {guarantee}", z.method),
            };
            add("log Z", format!("{:.4}{error} ({worth})", z.value));
        }
        if let Some(error) = m.reconstruction_error {
            add("reconstruction error", format!("{error:.5} (mean square)"));
        }
    }
    if let Some((epoch, value)) = run.best() {
        add("best", format!("{value:.3} after epoch {epoch}"));
    }
    facts
}

/// What the guards said, each kind once, and what is missing.
fn verdicts(run: &RunFolder, view: &ModelView) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for problem in run.problems.iter().chain(&view.problems) {
        verdicts.push(Verdict::new(Level::Bad, format!("Missing: {problem}")));
    }
    let kind = |w: &Warning| std::mem::discriminant(w);
    let said: Vec<(usize, &Warning)> =
        run.metrics.iter().flat_map(|m| m.warnings.iter().map(move |w| (m.epoch, w))).collect();
    let mut kinds = Vec::new();
    for (_, warning) in &said {
        if kinds.contains(&kind(warning)) {
            continue;
        }
        kinds.push(kind(warning));
        let same: Vec<_> = said.iter().filter(|(_, w)| kind(w) == kind(warning)).collect();
        let (first, (last, latest)) = (same[0].0, same[same.len() - 1]);
        let when = if same.len() == 1 {
            format!("After epoch {first}")
        } else {
            format!("After {} epochs from {first} to {last}; the last time", same.len())
        };
        // What was over long before the end is history.
        let end = run.metrics.last().map_or(0, |m| m.epoch);
        let level = if last + end / 10 >= end { Level::Warning } else { Level::Note };
        verdicts.push(Verdict::new(level, format!("{when}: {latest}")));
    }
    if kinds.is_empty() && !run.metrics.is_empty() {
        verdicts.push(Verdict::new(
            Level::Good,
            "No guard had anything to say: units, chains, tours and likelihood behave.",
        ));
    }
    if !run.is_finished() {
        let done = run.metrics.last().map_or(0, |m| m.epoch);
        verdicts.push(Verdict::new(
            Level::Note,
            format!(
                "Training has made {done} epochs and is not finished: go on with mclv train --resume {}",
                run.path.display()
            ),
        ));
    }
    if let (Some((epoch, best)), Some(last)) = (run.best(), run.last_evaluated())
        && let Some(value) = last.validation_log_likelihood
        && best - value > 1.0
    {
        verdicts.push(Verdict::new(
            Level::Warning,
            format!("The validation likelihood was {:.2} nats better after epoch {epoch}: use best.safetensors, --patience, or fewer epochs.", best - value),
        ));
    }
    verdicts
}

fn provenance(run: &RunFolder) -> Vec<Block> {
    let mut facts: Vec<(String, String)> = vec![("run folder".into(), run.path.display().to_string())];
    let mut add = |name: &str, value: String| facts.push((name.into(), value));
    if let Some(p) = run.model.as_ref().map(|m| &m.provenance) {
        add("written by", format!("mclv {}", p.mclv_version));
        if let Some(d) = &p.data {
            add("data file", d.source.clone());
            add("SHA-256 of the data", d.sha256.clone());
            add("preparation", d.preprocessing.clone());
        }
    }
    add("kernels of this report", mclv::kernels().into());
    let mut blocks = vec![Block::facts(facts)];
    if let Some(config) = &run.config {
        let command = format!(
            "mclv train --config {}/config.toml --output {}-again",
            run.path.display(),
            run.path.display()
        );
        blocks
            .push(Block::Note("The same bits again, on any machine and with any number of threads:".into()));
        blocks.push(Block::Code(command));
        blocks.push(Block::Details("config.toml".into(), vec![Block::Code(config.clone())]));
    }
    blocks
}
