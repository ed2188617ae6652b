//! The page that compares several runs.

use super::curves::mean_likelihood;
use super::words::estimator;
use super::{Against, likelihoods};
use crate::page::{Block, Cell, Column, Level, Page, Section, Table, Verdict};
use mclv::human_seconds;
use mclv::statistics::Summary;
use mclv::train::RunRecord;
use std::collections::BTreeSet;

/// Several runs and their comparison.
pub struct Comparison {
    /// The runs, with unique names.
    pub runs: Vec<RunRecord>,
    /// The runs, grouped by the data of their likelihoods. Likelihoods of different kinds are never
    /// drawn on the same axis.
    pub kinds: Vec<DataKind>,
    /// Groups of runs that differ only in the seed, as numbers of runs.
    pub groups: Vec<Vec<usize>>,
    /// For each group of two or more runs: epochs, and the likelihood over the runs (of validation
    /// rows if there are some).
    pub curves: Vec<Vec<(usize, Summary)>>,
    /// Results over seeds; empty if no run repeats another.
    pub means: Vec<Means>,
    /// The names of the settings that differ, each with its value in every run.
    pub settings: Vec<(String, Vec<String>)>,
    /// What to know of all runs together, one sentence each.
    pub notes: Vec<String>,
}

/// Runs whose likelihoods belong to the same data, prepared in the same way.
pub struct DataKind {
    /// A unique name: the data and their preparation.
    pub name: String,
    /// The numbers of the runs.
    pub runs: Vec<usize>,
}

/// Results of runs that differ only in the seed.
pub struct Means {
    /// The numbers of the runs.
    pub runs: Vec<usize>,
    /// The last likelihood of training rows.
    pub train: Option<Summary>,
    /// The last likelihood of validation rows.
    pub validation: Option<Summary>,
    /// The best likelihood.
    pub best: Option<Summary>,
    /// Seconds of training and evaluation.
    pub seconds: Option<Summary>,
}

const MEANS: &str = "Runs that differ only in the seed are one curve: their mean, with a band of one standard \
                     deviation over the seeds. ";

impl Comparison {
    /// A short name of group number `k`: what its names have in common, and the number of seeds.
    pub(super) fn name_of_group(&self, k: usize) -> String {
        let group = &self.groups[k];
        let first = &self.runs[group[0]].name;
        if group.len() == 1 {
            return first.clone();
        }
        let common = self.common_name(k);
        let is_unique = |name: &str| (0..self.groups.len()).all(|j| j == k || self.common_name(j) != name);
        let name = match common {
            name if !name.is_empty() && is_unique(&name) => name,
            _ => format!("{first}, … ({})", estimator(&self.runs[group[0]])),
        };
        format!("{name} ({} seeds)", group.len())
    }

    /// What the names of a group begin with.
    fn common_name(&self, k: usize) -> String {
        let mut names = self.groups[k].iter().map(|&run| self.runs[run].name.as_str());
        let first = names.next().unwrap_or_default();
        let common = names.fold(first, |common, name| {
            let same = common.char_indices().zip(name.chars()).find(|((_, a), b)| a != b);
            &common[..same.map_or(common.len().min(name.len()), |((at, _), _)| at)]
        });
        let common = common.trim_end_matches(|c: char| !c.is_alphanumeric());
        common.trim_end_matches("seed").trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned()
    }
}

/// The page of several runs.
pub fn several_runs(comparison: &Comparison) -> Page {
    let Comparison { runs, kinds, .. } = comparison;
    let mut by_epoch = likelihoods(comparison, Against::Epochs).into_iter();
    let mut by_time = likelihoods(comparison, Against::Seconds).into_iter();
    let charts = kinds.iter().zip(by_epoch.by_ref().zip(by_time.by_ref())).map(|(kind, (epochs, seconds))| {
        let means = mean_likelihood(comparison, kind);
        let note = format!(
            "{}Curves show validation rows if a run has some. The boxes in the table of runs hide and show curves.",
            if means.is_empty() { "" } else { MEANS }
        );
        let tabs = vec![
            ("mean over seeds".to_owned(), means),
            ("single runs".to_owned(), epochs),
            ("single runs by wall time".to_owned(), seconds),
        ];
        Block::Charts { tabs, wide: true, note }
    });
    let likelihoods = unlike(kinds).map(Block::Verdicts).into_iter().chain(charts).collect::<Vec<_>>();
    let table = [Block::Table(table_of_runs(comparison))];
    let mut summary = vec![troubles(runs).unwrap_or_else(|| no_troubles(runs))];
    summary.extend(comparison.notes.iter().map(|note| vec![Verdict::new(Level::Note, note.clone())]));
    Page::new(format!("{} runs", runs.len()), sources(runs))
        .with(Section::new("Summary", [Block::Verdicts(summary.concat())]))
        .with(Section::new("Likelihood", likelihoods))
        .with(Section::new("Runs", table))
        .with(Section::new("Means over seeds", over_seeds(comparison)))
        .with(Section::new("Settings that differ", settings(comparison)))
}

/// A note if the runs have several kinds of data.
fn unlike(kinds: &[DataKind]) -> Option<Vec<Verdict>> {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    let text = format!(
        "These runs have {} kinds of data: {}. Likelihoods of different data, splits or binarisations cannot be \
         compared, so each kind has its own chart.",
        kinds.len(),
        names.join("; ")
    );
    (kinds.len() > 1).then(|| vec![Verdict::new(Level::Note, text)])
}

/// A sentence that no run has troubles, or that no run has ended.
fn no_troubles(runs: &[RunRecord]) -> Vec<Verdict> {
    let n_ended = runs.iter().filter(|run| run.is_finished).count();
    let (level, text) = match n_ended == runs.len() {
        true => {
            (Level::Good, "No warning lasted to the end of a run, and no file of a run is missing.".into())
        }
        false => (Level::Warning, format!("{} of {} runs have not ended.", runs.len() - n_ended, runs.len())),
    };
    vec![Verdict::new(level, text)]
}

/// Missing parts of runs, and runs with warnings that lasted to the end. `None` without any.
fn troubles(runs: &[RunRecord]) -> Option<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for run in runs {
        let missing = run.problems.iter().map(|p| (Level::Bad, format!("{}: missing: {p}", run.name)));
        verdicts.extend(missing.map(|(level, text)| Verdict::new(level, text)));
        let n = run.warnings().iter().filter(|warning| !warning.is_over).count();
        if n > 0 {
            let text = format!(
                "{}: {n} {} lasted to the end; see the report of this run.",
                run.name,
                if n == 1 { "warning" } else { "kinds of warnings" }
            );
            verdicts.push(Verdict::new(Level::Warning, text));
        }
    }
    (!verdicts.is_empty()).then_some(verdicts)
}

fn sources(runs: &[RunRecord]) -> String {
    let sources: BTreeSet<&str> =
        runs.iter().filter_map(|r| r.input.as_ref()).map(|i| i.data.source.as_str()).collect();
    sources.into_iter().collect::<Vec<_>>().join(", ")
}

fn number(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(|| Cell::text("–"), |x| Cell::number(x, format!("{x:.digits$}")))
}

fn table_of_runs(Comparison { runs, kinds, .. }: &Comparison) -> Table {
    // With several kinds of data, a column names the data of each run.
    let several = kinds.len() > 1;
    let data_of =
        |k: usize| kinds.iter().find(|kind| kind.runs.contains(&k)).map_or("–", |kind| &kind.name);
    let mut header = vec![
        Column::text("run"),
        Column::text("estimator"),
        Column::number("hidden"),
        Column::number("seed"),
        Column::number("epochs"),
        Column::number("train (nats)"),
        Column::number("validation (nats)"),
        Column::number("best"),
        Column::number("log Z ±"),
        Column::number("time"),
    ];
    if several {
        header.insert(1, Column::text("data"));
    }
    let row = |(k, run): (usize, &RunRecord)| {
        let last = run.metrics.last();
        let evaluated = run.last_evaluated();
        let settings = run.settings.as_ref();
        let mut cells = vec![
            Cell::text(&run.name),
            Cell::text(estimator(run)),
            number(settings.map(|t| t.n_hidden as f64), 0),
            number(settings.map(|t| t.seed as f64), 0),
            number(last.map(|m| m.epoch as f64), 0),
            number(evaluated.and_then(|m| m.train_log_likelihood), 3),
            number(evaluated.and_then(|m| m.validation_log_likelihood), 3),
            number(run.best().map(|best| best.log_likelihood), 3),
            number(evaluated.and_then(|m| m.log_z.as_ref()?.std_err), 3),
            last.map_or_else(|| Cell::text("–"), |m| Cell::number(m.seconds, human_seconds(m.seconds))),
        ];
        if several {
            cells.insert(1, Cell::text(data_of(k)));
        }
        cells
    };
    let names = runs.iter().map(|r| r.name.clone()).collect();
    Table { header, rows: runs.iter().enumerate().map(row).collect(), sortable: true, runs: names }
}

fn over_seeds(comparison: &Comparison) -> Vec<Block> {
    if comparison.means.is_empty() {
        return Vec::new();
    }
    let cell = |summary: Option<Summary>| match summary {
        None => Cell::text("–"),
        Some(Summary { mean, sd: Some(sd), .. }) => Cell::number(mean, format!("{mean:.3} ± {sd:.3}")),
        Some(Summary { mean, sd: None, .. }) => Cell::number(mean, format!("{mean:.3}")),
    };
    let row = |means: &Means| {
        let runs: Vec<&RunRecord> = means.runs.iter().map(|&k| &comparison.runs[k]).collect();
        let group = comparison.groups.iter().position(|group| *group == means.runs);
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        vec![
            Cell::text(group.map_or_else(|| names.join(", "), |k| comparison.name_of_group(k))),
            Cell::text(estimator(runs[0])),
            Cell::number(runs.len() as f64, runs.len().to_string()),
            cell(means.train),
            cell(means.validation),
            cell(means.best),
            cell(means.seconds),
        ]
    };
    let header = vec![
        Column::text("runs"),
        Column::text("estimator"),
        Column::number("n"),
        Column::number("train (nats)"),
        Column::number("validation (nats)"),
        Column::number("best"),
        Column::number("time (s)"),
    ];
    let rows = comparison.means.iter().map(row).collect();
    vec![
        Block::Note("Mean ± standard deviation over runs that differ only in the seed.".into()),
        Block::Table(Table { header, rows, sortable: true, runs: Vec::new() }),
    ]
}

/// A table with the longer of both lists, of runs or of settings, from top to bottom.
fn settings(Comparison { runs, settings, .. }: &Comparison) -> Vec<Block> {
    if settings.is_empty() {
        return vec![Block::Note("All runs have the same settings.".into())];
    }
    let cell = |values: &[String], run: usize| {
        let cell = Cell::text(&values[run]);
        if values[run] == values[0] { cell } else { cell.marked() }
    };
    let (header, rows): (Vec<Column>, Vec<Vec<Cell>>) = if runs.len() > settings.len() {
        let header = settings.iter().map(|(name, _)| Column::text(name));
        let row = |(k, run): (usize, &RunRecord)| {
            let cells = settings.iter().map(|(_, values)| cell(values, k));
            std::iter::once(Cell::text(&run.name)).chain(cells).collect()
        };
        (
            std::iter::once(Column::text("run")).chain(header).collect(),
            runs.iter().enumerate().map(row).collect(),
        )
    } else {
        let header = runs.iter().map(|run| Column::text(&run.name));
        let row = |(name, values): &(String, Vec<String>)| {
            let cells = (0..runs.len()).map(|k| cell(values, k));
            std::iter::once(Cell::text(name)).chain(cells).collect()
        };
        (std::iter::once(Column::text("setting")).chain(header).collect(), settings.iter().map(row).collect())
    };
    vec![
        Block::Note("Values that differ from the first run are marked.".into()),
        Block::Table(Table { header, rows, sortable: false, runs: Vec::new() }),
    ]
}
