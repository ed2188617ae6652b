//! Likelihoods of RBMs on the binary sets of density estimation, beside those of other models.
//!
//! Nothing is chosen by test rows: each stage below computes likelihoods of validation rows first,
//! and test rows are read only for what these have chosen.

mod choice;
mod figure;
mod peers;
mod samples;
mod tables;

use super::Parts;
use crate::options::Options;
use crate::store::Store;
use crate::subject::{Baseline, BaselineOf, ScoreOf, Subject};
use crate::task::{ModelOf, Task};
use choice::{DEFAULT, Way, candidates};
use mclv::Result;
use mclv::data::{self, Binarize, DataSpec, Split};
use mclv::progress::Silent;
use mclv::settings::Settings;
use peers::Peer;

/// The sets, from few variables to many.
const SETS: [&str; 11] = [
    "nltcs",
    "plants",
    "baudio",
    "jester",
    "bnetflix",
    "accidents",
    "mushrooms",
    "pumsb_star",
    "dna",
    "nips",
    "genome805",
];
/// The number of hidden units of the default.
const SIZE: usize = 25;
/// Numbers of hidden units of the sweep.
const SIZES: [usize; 6] = [25, 16, 32, 64, 128, 500];
/// Numbers of components of mixtures.
const COMPONENTS: [usize; 5] = [5, 10, 20, 50, 100];
/// The sets whose samples are compared.
const SAMPLED: [&str; 2] = ["plants", "genome805"];
/// The sets in the figure.
const DRAWN: [&str; 3] = ["plants", "accidents", "dna"];

/// A data set of the comparison.
struct Set {
    name: String,
    data: DataSpec,
    n_variables: usize,
    /// Training, validation and test rows.
    n_rows: [usize; 3],
}

/// The names of all sets, or of the one that the user names.
pub(super) fn names(options: &Options) -> Vec<String> {
    match &options.data {
        Some(name) => vec![name.clone()],
        None => SETS.map(String::from).into(),
    }
}

/// All sets, or the one that the user names. Grey values become bits.
fn sets(options: &Options) -> Result<Vec<Set>> {
    let of_name = |name: &String| {
        let is_own = SETS.contains(&name.as_str());
        let binarize = if is_own { Binarize::Grey } else { Binarize::Threshold(0.5) };
        let data = DataSpec { source: name.clone(), binarize, ..DataSpec::default() };
        let mut source = data::open(&data, &Silent)?;
        let parts = source.parts()?;
        let n_variables = source.part(Split::Validation, binarize)?.n_columns();
        let some = |part: Option<data::PartRows>| part.map_or(0, |part| part.n_rows);
        let n_rows = [parts.train.n_rows, some(parts.validation), some(parts.test)];
        Ok(Set { name: name.clone(), data, n_variables, n_rows })
    };
    names(options).iter().map(of_name).collect()
}

impl Set {
    /// A training of this set. What depends on the number of rows is decided by it.
    fn model(&self, settings: Settings, options: &Options) -> ModelOf {
        let epochs = if options.quick { Some(5.into()) } else { settings.epochs };
        let settings = Settings { epochs, ..settings };
        let checked = settings.check(self.n_rows[0]).unwrap_or_else(|error| panic!("{error}"));
        ModelOf::new(self.data.clone(), checked)
    }

    /// The default with this number of hidden units, or one of its competitors.
    fn run(&self, way: &Way, n_hidden: usize, seed: u64, options: &Options) -> ModelOf {
        let snapshots = figure::snapshots(self, n_hidden, seed, options);
        let settings = Settings { n_hidden: Some(n_hidden), seed: Some(seed), snapshots, ..(way.settings)() };
        self.model(settings, options)
    }

    fn default(&self, n_hidden: usize, seed: u64, options: &Options) -> ModelOf {
        self.run(DEFAULT, n_hidden, seed, options)
    }

    fn baseline(&self, model: Baseline, split: Split) -> Task {
        Task::Baseline(BaselineOf { data: self.data.clone(), model, split })
    }

    fn score(&self, subject: Subject, split: Split) -> Task {
        Task::Score(ScoreOf { data: self.data.clone(), subject, split })
    }

    fn score_of_run(&self, model: &ModelOf, split: Split) -> Task {
        self.score(Subject::Run(model.clone()), split)
    }
}

fn components(options: &Options) -> &[usize] {
    if options.quick { &COMPONENTS[..2] } else { &COMPONENTS }
}

fn sizes(options: &Options) -> &[usize] {
    if options.quick { &SIZES[1..2] } else { &SIZES }
}

/// The size of the default.
fn size(options: &Options) -> usize {
    if options.quick { SIZES[1] } else { SIZE }
}

/// The tasks that are known so far: those of the first stage that is not finished, and of all before
/// it.
pub(super) fn tasks(options: &Options, store: &Store) -> Result<Vec<Task>> {
    let sets = sets(options)?;
    let peers = peers::read(options, &sets)?;
    let mut tasks = Vec::new();
    for stage in stages(options) {
        for set in &sets {
            tasks.extend(stage.tasks(set, &peers, options, store)?);
        }
        let found = tasks.iter().map(|task| store.find(task)).collect::<Result<Option<Vec<_>>>>()?;
        if found.is_none() {
            break;
        }
    }
    Ok(tasks)
}

/// A stage of the work, the most telling first. Its tasks depend on the results of earlier stages
/// only.
enum Stage {
    /// Defaults and models of other packages, on validation rows.
    First,
    /// They and models without choices, on test rows.
    FirstTest,
    /// Mixtures of all sizes, on validation rows.
    Mixtures,
    /// The chosen one, on test rows.
    MixtureTest,
    /// Samples and the figure, on test rows. They choose nothing.
    Looks,
    /// All candidates with one number of hidden units, on validation rows.
    Sweep(usize),
    /// The default and the best candidate of this size, on test rows.
    SweepTest(usize),
}

fn stages(options: &Options) -> Vec<Stage> {
    let first = [Stage::First, Stage::FirstTest, Stage::Mixtures, Stage::MixtureTest, Stage::Looks];
    let sweeps = sizes(options).iter().flat_map(|&n| [Stage::Sweep(n), Stage::SweepTest(n)]);
    first.into_iter().chain(sweeps).collect()
}

impl Stage {
    fn tasks(&self, set: &Set, peers: &[Peer], options: &Options, store: &Store) -> Result<Vec<Task>> {
        let seeds = &options.seeds;
        let mut tasks = Vec::new();
        let peers = peers.iter().filter(|peer| peer.set == set.name);
        match *self {
            Self::First | Self::FirstTest => {
                let split = match self {
                    Self::First => Split::Validation,
                    _ => Split::Test,
                };
                if split == Split::Test {
                    tasks.extend([Baseline::Independent, Baseline::Tree].map(|m| set.baseline(m, split)));
                }
                let default = |&seed: &u64| set.default(size(options), seed, options);
                tasks.extend(seeds.iter().map(default).map(|m| set.score_of_run(&m, split)));
                tasks.extend(peers.flat_map(|peer| peer.last.iter().map(|file| file.score(set, split))));
            }
            Self::Mixtures => {
                tasks.extend(choice::mixtures(options).map(|m| set.baseline(m, Split::Validation)));
            }
            Self::MixtureTest => {
                tasks.extend(choice::mixture(set, options, store)?.map(|m| set.baseline(m, Split::Test)));
            }
            Self::Looks => {
                tasks.extend(samples::tasks(set, options));
                tasks.extend(figure::tasks(set, options));
                for peer in peers {
                    tasks.extend(samples::of_peer(set, peer, options));
                    tasks.extend(figure::of_peer(set, peer, options));
                }
            }
            Self::Sweep(n_hidden) => {
                let of_way = |way: &Way| set.run(way, n_hidden, seeds[0], options);
                tasks.extend(
                    candidates(n_hidden).iter().map(of_way).map(|m| set.score_of_run(&m, Split::Validation)),
                );
            }
            Self::SweepTest(n_hidden) => {
                for way in choice::way(set, n_hidden, options, store)?.into_iter().chain([DEFAULT]) {
                    for &seed in seeds {
                        let model = set.run(way, n_hidden, seed, options);
                        // log Z is computed with the first of them.
                        tasks.extend(
                            [Split::Validation, Split::Test].map(|split| set.score_of_run(&model, split)),
                        );
                    }
                }
            }
        }
        Ok(tasks)
    }
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let sets = sets(options)?;
    let peers = peers::read(options, &sets)?;
    let mut tables = vec![
        tables::likelihoods(&sets, &peers, options, store)?,
        tables::sizes(&sets, options, store)?,
        tables::times(&sets, &peers, options, store)?,
    ];
    tables.extend(samples::table(&sets, &peers, options, store)?);
    tables.push(choice::table(&sets, options, store)?);
    let plots = figure::plot(&sets, &peers, options, store)?;
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let data = Some(format!("rows of 0 and 1 of {}", names.join(", ")));
    Ok(Parts {
        tables,
        plots: plots.into_iter().collect(),
        notes: tables::notes(options),
        data,
        ..Parts::default()
    })
}

#[cfg(test)]
mod tests;
