//! The tables of test likelihoods and times.

use super::choice::{self, DEFAULT, Way};
use super::peers::Peer;
use super::{Set, size};
use crate::experiment::column;
use crate::options::Options;
use crate::report::{Cell, Table};
use crate::store::Store;
use crate::subject::Baseline;
use crate::task::Task;
use crate::work::{Fitted, Score};
use mclv::Result;
use mclv::data::Split;
use mclv::statistics::Summary;

/// Test likelihoods of several seeds.
struct Scores(Vec<Score>);

impl Scores {
    /// The results of these tasks; `None` if some are not finished.
    fn read(tasks: impl IntoIterator<Item = Task>, store: &Store) -> Result<Option<Self>> {
        let mut scores = Vec::new();
        for task in tasks {
            let Some(record) = store.find(&task)? else { return Ok(None) };
            scores.push(record.read()?);
        }
        Ok((!scores.is_empty()).then_some(Self(scores)))
    }

    fn of_way(
        set: &Set,
        way: &Way,
        n_hidden: usize,
        options: &Options,
        store: &Store,
    ) -> Result<Option<Self>> {
        let task = |&seed: &u64| set.score_of_run(&set.run(way, n_hidden, seed, options), Split::Test);
        Self::read(options.seeds.iter().map(task), store)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|score| score.likelihood.mean).sum::<f64>() / self.0.len() as f64
    }

    /// The mean and the standard deviation over seeds. If log Z is not exact, also the largest half
    /// width of the intervals; a value without an interval is marked.
    fn cell(&self) -> Cell {
        let values: Vec<f64> = self.0.iter().map(|score| score.likelihood.mean).collect();
        let summary = Summary::of(&values).expect("there is one at least");
        if self.0.iter().all(|score| score.log_z.is_exact()) {
            return summary.into();
        }
        let sd = summary.sd.map_or(String::new(), |sd| format!(" ({sd:.2})"));
        let mean = format!("{:.2}", summary.mean).replace('-', "−");
        let half = |score: &Score| score.likelihood.interval.map(|(low, high)| 0.5 * (high - low));
        let widths: Option<Vec<f64>> = self.0.iter().map(half).collect();
        match widths {
            Some(widths) => format!("{mean}{sd} ± {:.2}", widths.into_iter().fold(0.0, f64::max)).into(),
            None => format!("≈ {mean}{sd}").into(),
        }
    }
}

fn cell(scores: Option<&Scores>) -> Cell {
    scores.map_or(Cell::Missing, Scores::cell)
}

fn fitted(set: &Set, model: Option<Baseline>, store: &Store) -> Result<Option<f64>> {
    let Some(model) = model else { return Ok(None) };
    let record = store.find(&set.baseline(model, Split::Test))?;
    record.map(|record| Ok(record.read::<Fitted>()?.mean)).transpose()
}

fn of_peer(set: &Set, peer: &Peer, store: &Store) -> Result<Option<Scores>> {
    Scores::read(peer.last.iter().map(|model| model.score(set, Split::Test)), store)
}

/// The names of all packages.
fn packages(peers: &[Peer]) -> Vec<&str> {
    let mut names: Vec<&str> = peers.iter().map(|peer| peer.package.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The main table.
pub(super) fn likelihoods(sets: &[Set], peers: &[Peer], options: &Options, store: &Store) -> Result<Table> {
    let (n_hidden, packages) = (size(options), packages(peers));
    let mut rows = Vec::new();
    for set in sets {
        let mixture = choice::mixture(set, options, store)?;
        let mut row: Vec<Cell> = vec![
            set.name.as_str().into(),
            set.n_variables.into(),
            set.n_rows[0].into(),
            fitted(set, Some(Baseline::Independent), store)?.into(),
            fitted(set, Some(Baseline::Tree), store)?.into(),
            fitted(set, mixture, store)?.into(),
        ];
        for package in &packages {
            let peer = peers.iter().find(|peer| peer.set == set.name && peer.package == *package);
            let scores = peer.map(|peer| of_peer(set, peer, store)).transpose()?.flatten();
            row.push(cell(scores.as_ref()));
        }
        row.push(cell(Scores::of_way(set, DEFAULT, n_hidden, options, store)?.as_ref()));
        let (best, how) = match choice::best_size(set, options, store)? {
            Some((n_hidden, way)) => (
                Scores::of_way(set, way, n_hidden, options, store)?,
                format!("{n_hidden} units, {}", way.name).into(),
            ),
            None => (None, Cell::Missing),
        };
        row.extend([cell(best.as_ref()), how]);
        rows.push(row);
    }
    let mut columns = vec![
        column("set", 0),
        column("variables", 0),
        column("training rows", 0),
        column("independent units", 2),
        column("tree", 2),
        column("mixture", 2),
    ];
    columns.extend(packages.iter().map(|package| column(&format!("{package}, 25 units"), 2)));
    columns.push(column(&format!("default, {n_hidden} units"), 2));
    columns.extend([column("best by validation rows", 2), column("which is", 0)]);
    let title = format!(
        "Log-likelihood of test rows, nats per row: mean (standard deviation) over {} seeds.",
        options.seeds.len()
    );
    Ok(Table { name: String::new(), title, columns, rows })
}

/// The default beside the best candidate, by size.
fn sizes_of(set: &Set, options: &Options, store: &Store) -> Result<Vec<Vec<Cell>>> {
    let mut rows = Vec::new();
    let mut all = super::sizes(options).to_vec();
    all.sort_unstable();
    for n_hidden in all {
        let default = Scores::of_way(set, DEFAULT, n_hidden, options, store)?;
        let way = choice::way(set, n_hidden, options, store)?;
        let best = way.map(|way| Scores::of_way(set, way, n_hidden, options, store)).transpose()?.flatten();
        if default.is_none() && best.is_none() {
            continue;
        }
        let gap =
            default.as_ref().zip(best.as_ref()).map(|(d, b)| 100.0 * (b.mean() - d.mean()) / b.mean().abs());
        let name = way.map(|way| way.name);
        rows.push(vec![
            set.name.as_str().into(),
            n_hidden.into(),
            cell(default.as_ref()),
            cell(best.as_ref()),
            name.into(),
            gap.into(),
        ]);
    }
    Ok(rows)
}

pub(super) fn sizes(sets: &[Set], options: &Options, store: &Store) -> Result<Table> {
    let rows = sets.iter().map(|set| sizes_of(set, options, store)).collect::<Result<Vec<_>>>()?.concat();
    let columns = vec![
        column("set", 0),
        column("hidden units", 0),
        column("default", 2),
        column("best by validation rows", 2),
        column("which is", 0),
        column("best ahead of default (%)", 2),
    ];
    let title = "The default and the best candidate by number of hidden units: log-likelihood of test rows. \
                 Sizes that were not run are left out."
        .into();
    Ok(Table { name: "sizes".into(), title, columns, rows })
}

/// Seconds of the default and of other packages.
pub(super) fn times(sets: &[Set], peers: &[Peer], options: &Options, store: &Store) -> Result<Table> {
    let packages = packages(peers);
    let mut rows = Vec::new();
    for set in sets {
        let mut seconds = Vec::new();
        for &seed in &options.seeds {
            let model = set.default(size(options), seed, options);
            let record = store.find(&Task::Train(model))?;
            seconds.extend(record.and_then(|record| record.cpu_seconds));
        }
        let ours = Summary::of(&seconds);
        let mut row: Vec<Cell> =
            vec![set.name.as_str().into(), ours.map(Cell::from).unwrap_or(Cell::Missing)];
        for package in &packages {
            let peer = peers.iter().find(|peer| peer.set == set.name && peer.package == *package);
            let each: Vec<f64> = peer.iter().flat_map(|peer| peer.last.iter().map(|m| m.seconds)).collect();
            row.push(Summary::of(&each).map(Cell::from).unwrap_or(Cell::Missing));
            row.push(peer.map(|peer| peer.tuning_seconds).into());
            row.push(peer.map(|peer| peer.settings.as_str()).into());
        }
        rows.push(row);
    }
    let mut columns = vec![column("set", 0), column("default", 1)];
    for package in &packages {
        columns.extend([column(package, 1), column("all its trials", 0), column("chosen settings", 0)]);
    }
    let title =
        "Seconds of one core: a training by default, with its evaluations, and a training by the other \
                 package with its chosen settings, without evaluations. The machine was shared."
            .into();
    Ok(Table { name: "times".into(), title, columns, rows })
}

pub(super) fn notes(options: &Options) -> Vec<String> {
    let (names, n_few) = choice::names();
    vec![
        "Values of RBMs with up to 32 hidden units are exact. Beyond, `±` is the largest half width of the 95 % \
         intervals for log Z, and `≈` marks values without an interval. `–` has not been run."
            .into(),
        "Independent units and the tree are fitted by counts; half a row is added to both counts of each unit. \
         Mixtures of 5, 10, 20, 50 and 100 components are fitted by EM; validation rows choose the number and the \
         iteration."
            .into(),
        format!(
            "The sweep has, for each number of hidden units, {} (beyond 32 units the first {n_few}). In each run, \
             the model with the highest likelihood of validation rows stands for the run. The likelihood of \
             validation rows under the model of seed {} chooses the candidate.",
            names.join(", "),
            options.seeds[0]
        ),
    ]
}
