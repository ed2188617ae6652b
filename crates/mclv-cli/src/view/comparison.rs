//! What several runs have in common: repetitions, means over seeds, settings that differ.

use mclv::statistics::Summary;
use mclv::train::{Metrics, RunRecord};
use mclv_report::run::{Comparison, Means};
use serde_json::Value;
use std::collections::BTreeSet;

/// Compare runs; names that are not unique get numbers.
pub(crate) fn compare(mut runs: Vec<RunRecord>) -> Comparison {
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
        groups,
        runs,
    }
}

/// Runs, by their numbers, in groups that differ in the seed only.
pub(crate) fn repetitions(runs: &[RunRecord]) -> Vec<Vec<usize>> {
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

/// The likelihood over the runs of a group, at each epoch that all have evaluated.
fn mean_curve(runs: &[RunRecord], group: &[usize]) -> Vec<(usize, Summary)> {
    let judged = |m: &Metrics| m.judged_log_likelihood();
    let at = |epoch: usize| {
        let of_run = |&k: &usize| judged(runs[k].metrics.iter().find(|m| m.epoch == epoch)?);
        Summary::of(&group.iter().map(of_run).collect::<Option<Vec<f64>>>()?)
    };
    runs[group[0]].metrics.iter().filter_map(|m| Some((m.epoch, at(m.epoch)?))).collect()
}

/// Results over seeds of all runs with settings and an evaluation; none if no run repeats another.
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

/// The settings that are not the same in all runs, with their values.
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
