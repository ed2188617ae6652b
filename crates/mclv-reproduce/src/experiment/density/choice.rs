//! What validation rows choose: the number of components of a mixture, and the settings of an RBM.

use super::{COMPONENTS, Set, components, sizes};
use crate::experiment::column;
use crate::options::Options;
use crate::report::{Cell, Table};
use crate::store::Store;
use crate::subject::Baseline;
use crate::work::{Fitted, Score};
use mclv::Result;
use mclv::data::Split;
use mclv::settings::{EstimatorName, Settings};

/// A way to train.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) settings: fn() -> Settings,
}

/// The default, and what may be better. Large models have only the first few.
const CANDIDATES: [Way; 7] = [
    Way { name: "default", settings: Settings::default },
    Way { name: "L2 0.001", settings: || decayed(0.001) },
    Way { name: "L2 0.003", settings: || decayed(0.003) },
    Way { name: "L2 0.01", settings: || decayed(0.01) },
    Way { name: "L2 0", settings: || decayed(0.0) },
    Way { name: "PCD-10", settings: || Settings { k: Some(10.into()), ..with(EstimatorName::Pcd) } },
    Way { name: "rate 0.2", settings: || Settings { learning_rate: Some(0.2), ..Settings::default() } },
];
/// The number of candidates of models that are too large to be enumerated.
const FEW: usize = 3;
/// The largest number of hidden units with all candidates.
const MOST_WITH_ALL: usize = 32;

/// The default.
pub(super) const DEFAULT: &Way = &CANDIDATES[0];

/// The candidates of a size.
pub(super) fn candidates(n_hidden: usize) -> &'static [Way] {
    if n_hidden > MOST_WITH_ALL { &CANDIDATES[..FEW] } else { &CANDIDATES }
}

/// The names of all candidates, and the number of those of large models.
pub(super) fn names() -> (Vec<&'static str>, usize) {
    (CANDIDATES.iter().map(|way| way.name).collect(), FEW)
}

fn decayed(l2: f64) -> Settings {
    Settings { l2: Some(l2), ..Settings::default() }
}

fn with(gradient: EstimatorName) -> Settings {
    Settings { gradient: Some(gradient), ..Settings::default() }
}

pub(super) fn mixtures(options: &Options) -> impl Iterator<Item = Baseline> {
    components(options).iter().map(|&n_components| Baseline::Mixture { n_components })
}

/// The mixture with the highest likelihood of validation rows; `None` if some are not finished.
pub(super) fn mixture(set: &Set, options: &Options, store: &Store) -> Result<Option<Baseline>> {
    let mut found = Vec::with_capacity(COMPONENTS.len());
    for mixture in mixtures(options) {
        let Some(record) = store.find(&set.baseline(mixture, Split::Validation))? else { return Ok(None) };
        found.push((record.read::<Fitted>()?.mean, mixture));
    }
    Ok(found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, mixture)| mixture))
}

/// The likelihood of validation rows under each candidate, for the first seed.
fn swept(set: &Set, n_hidden: usize, options: &Options, store: &Store) -> Result<Vec<Option<f64>>> {
    let value = |way: &Way| {
        let model = set.run(way, n_hidden, options.seeds[0], options);
        let record = store.find(&set.score_of_run(&model, Split::Validation))?;
        record.map(|record| Ok(record.read::<Score>()?.likelihood.mean)).transpose()
    };
    candidates(n_hidden).iter().map(value).collect()
}

/// The candidate with the highest likelihood of validation rows, of the first seed; `None` if some
/// are not finished.
pub(super) fn way(
    set: &Set,
    n_hidden: usize,
    options: &Options,
    store: &Store,
) -> Result<Option<&'static Way>> {
    Ok(best(set, n_hidden, options, store)?.map(|(way, _)| way))
}

/// The chosen candidate, and its likelihood of validation rows.
pub(super) fn best(
    set: &Set,
    n_hidden: usize,
    options: &Options,
    store: &Store,
) -> Result<Option<(&'static Way, f64)>> {
    let values: Option<Vec<f64>> = swept(set, n_hidden, options, store)?.into_iter().collect();
    let pairs = values.map(|values| candidates(n_hidden).iter().zip(values));
    // The default wins a draw.
    Ok(pairs.and_then(|pairs| pairs.rev().max_by(|a, b| a.1.total_cmp(&b.1))))
}

/// The size whose chosen candidate has the highest likelihood of validation rows, among those that
/// are finished.
pub(super) fn best_size(
    set: &Set,
    options: &Options,
    store: &Store,
) -> Result<Option<(usize, &'static Way)>> {
    let mut found = Vec::new();
    for &n_hidden in sizes(options) {
        found.extend(best(set, n_hidden, options, store)?.map(|(way, value)| (value, n_hidden, way)));
    }
    Ok(found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, n_hidden, way)| (n_hidden, way)))
}

/// The sweep: likelihoods of validation rows.
pub(super) fn table(sets: &[Set], options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for set in sets {
        for &n_hidden in sizes(options) {
            let values = swept(set, n_hidden, options, store)?;
            if values.iter().any(Option::is_some) {
                let mut row: Vec<Cell> = vec![set.name.as_str().into(), n_hidden.into()];
                row.extend(values.into_iter().map(Cell::from));
                row.resize(2 + CANDIDATES.len(), Cell::Missing);
                rows.push(row);
            }
        }
    }
    let mut columns = vec![column("set", 0), column("hidden units", 0)];
    columns.extend(CANDIDATES.iter().map(|way| column(way.name, 2)));
    let title = format!(
        "The sweep: log-likelihood of validation rows (nats), seed {}. The highest one of a line chooses.",
        options.seeds[0]
    );
    Ok(Table { name: "sweep".into(), title, columns, rows })
}
