//! The experiments: the tasks of each experiment, and its tables and figures.

mod beyond;
mod ccdf;
mod complexity;
mod density;
mod digits;
mod direction;
mod inspection;
mod learning_rates;
mod partition;
mod rows;
mod space;
mod tables;
mod true_gibbs;

use crate::options::Options;
use crate::report::{Pictures, Plot, Report, Table};
use crate::schedule::{self, Listener};
use crate::store::Store;
use crate::task::{LikelihoodOf, ModelOf, Task};
use crate::work::{Likelihoods, Trained};
use mclv::{Result, partition as log_z};
use std::collections::HashSet;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Experiment {
    /// Likelihoods with 32 hidden units, one learning rate for all methods.
    Table1,
    /// Likelihoods with 25 hidden units, each method with its own learning rate.
    Table2,
    /// Tour lengths of models of different sizes.
    CcdfHidden,
    /// Tour lengths with stopping sets of different sizes.
    CcdfStoppingSet,
    /// Which digits give short and long tours.
    Digits,
    /// Pictures of short and long tours.
    TourImages,
    /// The partition function from tours, for growing numbers of tours.
    Partition,
    /// Learning rates from 10⁻⁴ to 1.
    LearningRates,
    /// How chains over-sample long tours.
    Inspection,
    /// Which rows a model finds likely, and whether long tours start at odd rows.
    Rows,
    /// The direction of gradients from tours.
    Direction,
    /// Training with dynamic K.
    DynamicK,
    /// The memory of stopping sets.
    Space,
    /// The cost of an epoch.
    Complexity,
    /// The mean-field chain of the paper compared with the true Gibbs chain.
    TrueGibbs,
    /// Better training than in the paper.
    Beyond,
    /// Likelihoods on the binary sets of density estimation.
    Density,
}

/// Tables, plots, pictures and notes.
#[derive(Default)]
struct Parts {
    tables: Vec<Table>,
    plots: Vec<Plot>,
    pictures: Vec<Pictures>,
    notes: Vec<String>,
    /// The data, if they are not those of the options.
    data: Option<String>,
}

impl Experiment {
    /// All experiments, the most important first.
    pub const ALL: [Self; 17] = [
        Self::Table2,
        Self::Table1,
        Self::CcdfHidden,
        Self::CcdfStoppingSet,
        Self::Digits,
        Self::TourImages,
        Self::Partition,
        Self::Inspection,
        Self::Rows,
        Self::Direction,
        Self::DynamicK,
        Self::TrueGibbs,
        Self::Beyond,
        Self::LearningRates,
        Self::Complexity,
        Self::Space,
        Self::Density,
    ];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table1 => "table1",
            Self::Table2 => "table2",
            Self::CcdfHidden => "ccdf-hidden",
            Self::CcdfStoppingSet => "ccdf-stopping-set",
            Self::Digits => "digits",
            Self::TourImages => "tour-images",
            Self::Partition => "partition",
            Self::LearningRates => "learning-rates",
            Self::Inspection => "inspection",
            Self::Rows => "rows",
            Self::Direction => "direction",
            Self::DynamicK => "dynamic-k",
            Self::Space => "space",
            Self::Complexity => "complexity",
            Self::TrueGibbs => "true-gibbs",
            Self::Beyond => "beyond",
            Self::Density => "density",
        }
    }

    /// The experiment of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|experiment| experiment.name() == name)
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Table1 => "Log-likelihood with 32 hidden units, learning rate 0.1",
            Self::Table2 => "Log-likelihood with 25 hidden units, each method with its learning rate",
            Self::CcdfHidden => "Tour lengths for 16, 20, 32 and 64 hidden units",
            Self::CcdfStoppingSet => "Tour lengths for stopping sets with 1, 4 and 7 states per row",
            Self::Digits => "Short and long tours by digit",
            Self::TourImages => "Pictures of short and long tours",
            Self::Partition => "Z from tours compared with exact Z",
            Self::LearningRates => "Learning rates from 0.0001 to 1 with 25 hidden units",
            Self::Inspection => "How chains over-sample long tours",
            Self::Rows => "Likely rows, and tours as a score for odd digits",
            Self::Direction => "The direction of gradients from tours",
            Self::DynamicK => "Training with dynamic K",
            Self::Space => "The memory of stopping sets",
            Self::Complexity => "The cost of an epoch",
            Self::TrueGibbs => "What the mean-field chain hides",
            Self::Beyond => "Beyond the paper: the same budgets, each method at its best",
            Self::Density => "Likelihoods on binary sets of density estimation",
        }
    }

    /// The names of the data sets of its runs.
    pub fn data(self, options: &Options) -> Vec<String> {
        match self {
            Self::Density => density::names(options),
            _ => vec![options.data().into()],
        }
    }

    /// The tasks that are known so far. Some tasks depend on the results of others.
    fn tasks(self, options: &Options, store: &Store) -> Result<Vec<Task>> {
        Ok(match self {
            Self::Table1 => tables::tasks(&tables::ONE, options),
            Self::Table2 => tables::tasks(&tables::TWO, options),
            Self::CcdfHidden => ccdf::hidden_tasks(options),
            Self::CcdfStoppingSet => ccdf::stopping_set_tasks(options),
            Self::Digits | Self::TourImages => digits::tasks(options),
            Self::Partition => partition::tasks(options),
            Self::LearningRates => learning_rates::tasks(options),
            Self::Inspection => inspection::tasks(options),
            Self::Rows => rows::tasks(options),
            Self::Direction => direction::direction_tasks(options),
            Self::DynamicK => direction::dynamic_tasks(options),
            Self::Space => space::tasks(options),
            Self::Complexity => complexity::tasks(options),
            Self::TrueGibbs => true_gibbs::tasks(options),
            Self::Beyond => beyond::tasks(options, store)?,
            Self::Density => density::tasks(options, store)?,
        })
    }

    fn parts(self, options: &Options, store: &Store) -> Result<Parts> {
        match self {
            Self::Table1 => tables::parts(&tables::ONE, options, store),
            Self::Table2 => tables::parts(&tables::TWO, options, store),
            Self::CcdfHidden => ccdf::hidden_parts(options, store),
            Self::CcdfStoppingSet => ccdf::stopping_set_parts(options, store),
            Self::Digits => digits::parts(options, store),
            Self::TourImages => digits::picture_parts(options, store),
            Self::Partition => partition::parts(options, store),
            Self::LearningRates => learning_rates::parts(options, store),
            Self::Inspection => inspection::parts(options, store),
            Self::Rows => rows::parts(options, store),
            Self::Direction => direction::direction_parts(options, store),
            Self::DynamicK => direction::dynamic_parts(options, store),
            Self::Space => space::parts(options, store),
            Self::Complexity => complexity::parts(options, store),
            Self::TrueGibbs => true_gibbs::parts(options, store),
            Self::Beyond => beyond::parts(options, store),
            Self::Density => density::parts(options, store),
        }
    }

    /// Runs the unfinished tasks and returns the report.
    ///
    /// # Errors
    /// The error of a run, or the listener's request to stop. The same call then continues.
    pub fn run(
        self,
        options: &Options,
        command: &str,
        store: &Store,
        n_workers: usize,
        listener: &dyn Listener,
    ) -> Result<Report> {
        let mut tasks = self.tasks(options, store)?;
        loop {
            schedule::run(&tasks, store, n_workers, listener)?;
            // Results may add further tasks.
            let more = self.tasks(options, store)?;
            if more == tasks {
                return self.report(options, command, store);
            }
            tasks = more;
        }
    }

    /// Returns the report of the finished tasks. Only [`Density`](Self::Density) has one before all of
    /// them are finished.
    ///
    /// # Errors
    /// If a result that the report needs is missing or damaged.
    pub fn report(self, options: &Options, command: &str, store: &Store) -> Result<Report> {
        let parts = self.parts(options, store)?;
        let mut seen = HashSet::new();
        let mut runs = Vec::new();
        for task in
            self.tasks(options, store)?.iter().flat_map(|task| [task.needs(), Some(task.clone())]).flatten()
        {
            if seen.insert(task.key()) {
                runs.extend(store.find(&task)?);
            }
        }
        let mut notes = parts.notes;
        if parts.data.is_none() && options.data() != "mnist" {
            notes.push(format!(
                "The data are {} instead of MNIST, so the numbers differ from the paper's.",
                options.data()
            ));
        }
        // Runs are stored with their settings; tables and figures already hold their results.
        let core_seconds = runs.iter().map(|run| run.cpu_seconds.unwrap_or(run.seconds)).sum();
        Ok(Report {
            experiment: self.name().into(),
            title: self.title().into(),
            command: command.into(),
            data: parts.data.unwrap_or_else(|| format!("{}, grey values", options.data())),
            seeds: options.seeds.clone(),
            quick: options.quick,
            core_seconds,
            version: env!("CARGO_PKG_VERSION").into(),
            tables: parts.tables,
            plots: parts.plots,
            pictures: parts.pictures,
            notes,
            runs: runs.into_iter().map(slim).collect(),
        })
    }
}

/// A record without the parts that a report holds elsewhere.
fn slim(mut record: crate::store::Record) -> crate::store::Record {
    if let Some(result) = record.result.as_object_mut() {
        for bulky in ["ccdf", "pictures", "running", "by_label"] {
            result.remove(bulky);
        }
    }
    record
}

/// Models up to this size are enumerated. This takes about 20 seconds on one core for 784 visible
/// units.
fn is_enumerable(n_hidden: usize) -> bool {
    log_z::nominal_seconds(784, n_hidden) <= log_z::nominal_seconds(784, 28)
}

fn likelihood(model: &ModelOf, exact: bool) -> Task {
    Task::Likelihood(LikelihoodOf { model: model.clone(), exact })
}

/// The likelihoods of a model: exact if available, else estimated. `None` if training diverged.
fn likelihoods_of(model: &ModelOf, store: &Store) -> Result<Option<Likelihoods>> {
    let trained: Trained = store.get(&Task::Train(model.clone()))?.read()?;
    if trained.diverged_in.is_some() {
        return Ok(None);
    }
    let record = match store.find(&likelihood(model, true))? {
        Some(record) => record,
        None => store.get(&likelihood(model, false))?,
    };
    Ok(Some(record.read()?))
}

fn column(name: &str, digits: usize) -> (String, usize) {
    (name.into(), digits)
}
