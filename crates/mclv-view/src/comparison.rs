//! Compares several runs: repetitions, means over seeds, and settings that differ.

use mclv::data::{DataProvenance, DataSpec};
use mclv::statistics::Summary;
use mclv::train::{Metrics, RunRecord};
use mclv_report::run::{Comparison, DataKind, Means};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// Compares runs. Names that are not unique get numbers.
pub fn compare(mut runs: Vec<RunRecord>) -> Comparison {
    for k in 1..runs.len() {
        let same = runs[..k].iter().filter(|r| r.name == runs[k].name).count();
        if same > 0 {
            runs[k].name = format!("{} ({})", runs[k].name, same + 1);
        }
    }
    let groups = repetitions(&runs);
    let repeated = groups.iter().filter(|group| group.len() > 1);
    Comparison {
        curves: repeated.map(|group| mean_curve(&runs, group)).collect(),
        means: means(&runs),
        settings: differing_settings(&runs),
        kinds: kinds(&runs),
        notes: Vec::new(),
        groups,
        runs,
    }
}

/// Groups runs by the data of their likelihoods.
fn kinds(runs: &[RunRecord]) -> Vec<DataKind> {
    let mut kinds: Vec<(Data, Vec<usize>)> = Vec::new();
    for (k, run) in runs.iter().enumerate() {
        let data = Data::of(run);
        match kinds.iter_mut().find(|(other, _)| other.is_like(&data)) {
            Some((_, numbers)) => numbers.push(k),
            None => kinds.push((data, vec![k])),
        }
    }
    let names: Vec<String> = kinds.iter().map(|(data, _)| data.name()).collect();
    let named = kinds.into_iter().enumerate().map(|(k, (data, runs))| {
        let is_unique = names.iter().filter(|name| **name == names[k]).count() == 1;
        let name = match &data.recorded {
            _ if is_unique => names[k].clone(),
            Some(d) => format!("{} ({} rows, SHA-256 {:.8}…)", names[k], d.n_rows, d.sha256),
            None => format!("{} ({})", names[k], k + 1),
        };
        DataKind { name, runs }
    });
    named.collect()
}

/// The data of the likelihoods of a run.
struct Data {
    /// The training rows, as recorded in the model file.
    recorded: Option<DataProvenance>,
    /// The requested data, without the seed. Unfinished runs have no model file yet.
    wanted: Option<DataSpec>,
    weights: Option<PathBuf>,
    /// True if curves show validation rows.
    is_validated: bool,
}

impl Data {
    fn of(run: &RunRecord) -> Self {
        let input = run.input.as_ref();
        Self {
            recorded: run.model.as_ref().and_then(|model| model.provenance.data.clone()),
            wanted: input.map(|input| DataSpec { seed: 0, folder: None, ..input.data.clone() }),
            weights: input.and_then(|input| input.weights.clone()),
            is_validated: run.metrics.iter().any(|m| m.validation_log_likelihood.is_some()),
        }
    }

    /// Returns true if the likelihoods of both can be compared. The seed of splits and
    /// binarisations may differ, because both are then draws from the same distribution. Unknown
    /// data cannot be compared with any other data.
    fn is_like(&self, other: &Self) -> bool {
        let key = |d: &DataProvenance| {
            let how = (d.preprocessing.clone(), d.split, d.division.clone());
            (d.sha256.clone(), how, d.n_rows, d.n_columns)
        };
        let given = |data: &Self| {
            let wanted = data.wanted.as_ref()?;
            Some((wanted.validation.clone(), wanted.no_validation))
        };
        let same_rows = match (&self.recorded, &other.recorded) {
            (Some(a), Some(b)) if a.seed.is_none() && b.seed.is_none() => key(a) == key(b),
            // Data drawn with a seed have a different hash for each seed.
            (Some(a), Some(b)) => {
                let shape = |d: &DataProvenance| (d.preprocessing.clone(), d.split, d.n_rows, d.n_columns);
                self.wanted.is_some() && self.wanted == other.wanted && shape(a) == shape(b)
            }
            _ => self.wanted.is_some() && self.wanted == other.wanted,
        };
        same_rows
            && given(self) == given(other)
            && self.weights == other.weights
            && self.is_validated == other.is_validated
    }

    fn name(&self) -> String {
        let data = match (&self.recorded, &self.wanted) {
            (Some(d), _) => format!("{}, {}", d.name, d.preparation()),
            (None, Some(wanted)) => format!("{}, {}", wanted.source, wanted.binarize),
            (None, None) => "unknown data".into(),
        };
        let part = if self.is_validated { "validation" } else { "training" };
        let weighted = if self.weights.is_some() { ", weighted" } else { "" };
        format!("{part} rows of {data}{weighted}")
    }
}

/// Groups runs, by their numbers, such that the runs of a group differ only in the seed.
fn repetitions(runs: &[RunRecord]) -> Vec<Vec<usize>> {
    groups(runs, 0..runs.len())
}

fn groups(runs: &[RunRecord], numbers: impl IntoIterator<Item = usize>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for k in numbers {
        match groups.iter_mut().find(|group| runs[k].repeats(&runs[group[0]])) {
            Some(group) => group.push(k),
            None => groups.push(vec![k]),
        }
    }
    groups
}

/// The likelihood over the runs of a group, at each epoch that all of them have evaluated.
fn mean_curve(runs: &[RunRecord], group: &[usize]) -> Vec<(usize, Summary)> {
    let judged = |m: &Metrics| m.judged_log_likelihood();
    // The first record of each epoch.
    let by_epoch: Vec<HashMap<usize, &Metrics>> =
        group.iter().map(|&k| runs[k].metrics.iter().rev().map(|m| (m.epoch, m)).collect()).collect();
    let at = |epoch: usize| {
        let of_run = |metrics: &HashMap<usize, &Metrics>| judged(metrics.get(&epoch)?);
        Summary::of(&by_epoch.iter().map(of_run).collect::<Option<Vec<f64>>>()?)
    };
    runs[group[0]].metrics.iter().filter_map(|m| Some((m.epoch, at(m.epoch)?))).collect()
}

/// Results over seeds, of all runs with settings and an evaluation. Empty if no run repeats
/// another.
fn means(runs: &[RunRecord]) -> Vec<Means> {
    let is_known = |&k: &usize| runs[k].input.is_some() && runs[k].last_evaluated().is_some();
    let groups = groups(runs, (0..runs.len()).filter(is_known));
    if groups.iter().all(|group| group.len() < 2) {
        return Vec::new();
    }
    let of = |group: &[usize], value: fn(&RunRecord) -> Option<f64>| {
        Summary::of(&group.iter().filter_map(|&k| value(&runs[k])).collect::<Vec<f64>>())
    };
    let means = |group: Vec<usize>| Means {
        train: of(&group, |run| run.last_evaluated()?.train_log_likelihood),
        validation: of(&group, |run| run.last_evaluated()?.validation_log_likelihood),
        best: of(&group, |run| Some(run.best()?.log_likelihood)),
        seconds: of(&group, |run| Some(run.metrics.last()?.seconds)),
        runs: group,
    };
    groups.into_iter().map(means).collect()
}

/// The settings that differ between runs, with their values.
fn differing_settings(runs: &[RunRecord]) -> Vec<(String, Vec<String>)> {
    let all: Vec<Vec<(String, String)>> = runs.iter().map(settings).collect();
    let names: BTreeSet<&String> = all.iter().flatten().map(|(name, _)| name).collect();
    let value = |run: &Vec<(String, String)>, name: &str| {
        run.iter().find(|(n, _)| n == name).map_or("–".to_owned(), |(_, value)| value.clone())
    };
    let values = |name: &String| {
        let values: Vec<String> = all.iter().map(|run| value(run, name)).collect();
        values.iter().any(|v| *v != values[0]).then(|| (name.clone(), values))
    };
    names.into_iter().filter_map(values).collect()
}

/// Every setting by its path, such as `train.gradient.k`.
fn settings(run: &RunRecord) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    if let Some(input) = &run.input {
        flatten("", &serde_json::to_value(input).unwrap_or_default(), &mut flat);
    }
    flat
}

fn flatten(name: &str, value: &Value, flat: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, flat);
            }
        }
        Value::Null => {}
        Value::String(text) => flat.push((name.into(), text.clone())),
        value => flat.push((name.into(), value.to_string())),
    }
}
