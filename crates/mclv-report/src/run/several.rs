//! Several runs beside each other.

use super::curves::{mean_and_sd, mean_likelihood, repetitions};
use super::{Against, RunFolder, likelihood};
use crate::page::{Block, Cell, Column, Level, Page, Section, Table, Verdict};
use mclv::human_seconds;
use std::collections::BTreeSet;

/// The page of several runs; names that are not unique get numbers.
pub fn several_runs(mut runs: Vec<RunFolder>) -> Page {
    for k in 1..runs.len() {
        let same = runs[..k].iter().filter(|r| r.name == runs[k].name).count();
        if same > 0 {
            runs[k].name = format!("{} ({})", runs[k].name, same + 1);
        }
    }
    let all: Vec<&RunFolder> = runs.iter().collect();
    let tabs = vec![
        ("by epoch".to_owned(), likelihood(&all, Against::Epochs)),
        ("by wall time".to_owned(), likelihood(&all, Against::Seconds)),
        ("mean over seeds".to_owned(), mean_likelihood(&repetitions(&all))),
    ];
    let note =
        "On validation rows where there are some. The boxes in the table of runs hide and show curves.";
    let problems = runs.iter().flat_map(|run| {
        run.problems.iter().map(|p| Verdict::new(Level::Bad, format!("{}: missing: {p}", run.name)))
    });
    Page::new(format!("{} runs", runs.len()), sources(&runs))
        .with(Section::new("Likelihood", [Block::Charts { tabs, wide: true, note: note.into() }]))
        .with(Section::new("Runs", [Block::Verdicts(problems.collect()), Block::Table(table_of_runs(&runs))]))
        .with(Section::new("Means over seeds", over_seeds(&runs)))
        .with(Section::new("Settings that differ", settings(&runs)))
}

fn sources(runs: &[RunFolder]) -> String {
    let sources: BTreeSet<&str> =
        runs.iter().filter_map(|r| r.input.as_ref()).map(|i| i.data.source.as_str()).collect();
    sources.into_iter().collect::<Vec<_>>().join(", ")
}

fn number(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(|| Cell::text("–"), |x| Cell::number(x, format!("{x:.digits$}")))
}

fn table_of_runs(runs: &[RunFolder]) -> Table {
    let header = vec![
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
    let row = |run: &RunFolder| {
        let last = run.metrics.last();
        let evaluated = run.last_evaluated();
        let settings = run.input.as_ref().map(|i| &i.train);
        vec![
            Cell::text(&run.name),
            Cell::text(run.estimator()),
            number(settings.map(|t| t.n_hidden as f64), 0),
            number(settings.map(|t| t.seed as f64), 0),
            number(last.map(|m| m.epoch as f64), 0),
            number(evaluated.and_then(|m| m.train_log_likelihood), 3),
            number(evaluated.and_then(|m| m.validation_log_likelihood), 3),
            number(run.best().map(|b| b.1), 3),
            number(evaluated.and_then(|m| Some(m.log_z.as_ref()?.std_err)), 3),
            last.map_or_else(|| Cell::text("–"), |m| Cell::number(m.seconds, human_seconds(m.seconds))),
        ]
    };
    let names = runs.iter().map(|r| r.name.clone()).collect();
    Table { header, rows: runs.iter().map(row).collect(), sortable: true, runs: names }
}

fn over_seeds(runs: &[RunFolder]) -> Vec<Block> {
    let known: Vec<&RunFolder> =
        runs.iter().filter(|r| r.input.is_some() && r.last_evaluated().is_some()).collect();
    let groups = repetitions(&known);
    if groups.iter().all(|members| members.len() < 2) {
        return Vec::new();
    }
    let mean = |members: &[&RunFolder], value: &dyn Fn(&RunFolder) -> Option<f64>| {
        let values: Vec<f64> = members.iter().filter_map(|r| value(r)).collect();
        if values.is_empty() {
            return Cell::text("–");
        }
        let (mean, sd) = mean_and_sd(&values);
        let text = if values.len() > 1 { format!("{mean:.3} ± {sd:.3}") } else { format!("{mean:.3}") };
        Cell::number(mean, text)
    };
    let rows = groups.iter().map(|members| {
        let names: Vec<&str> = members.iter().map(|r| r.name.as_str()).collect();
        vec![
            Cell::text(names.join(", ")),
            Cell::text(members[0].estimator()),
            Cell::number(members.len() as f64, members.len().to_string()),
            mean(members, &|r| r.last_evaluated()?.train_log_likelihood),
            mean(members, &|r| r.last_evaluated()?.validation_log_likelihood),
            mean(members, &|r| Some(r.best()?.1)),
            mean(members, &|r| Some(r.metrics.last()?.seconds)),
        ]
    });
    let header = vec![
        Column::text("runs"),
        Column::text("estimator"),
        Column::number("n"),
        Column::number("train (nats)"),
        Column::number("validation (nats)"),
        Column::number("best"),
        Column::number("time (s)"),
    ];
    let table = Table { header, rows: rows.collect(), sortable: true, runs: Vec::new() };
    vec![
        Block::Note(
            "Runs whose settings differ in the seed only: mean ± standard deviation over them.".into(),
        ),
        Block::Table(table),
    ]
}

fn settings(runs: &[RunFolder]) -> Vec<Block> {
    let all: Vec<Vec<(String, String)>> = runs.iter().map(RunFolder::settings).collect();
    let names: BTreeSet<&String> = all.iter().flatten().map(|(name, _)| name).collect();
    let value = |run: &[(String, String)], name: &str| {
        run.iter().find(|(n, _)| n == name).map_or("–".to_owned(), |(_, value)| value.clone())
    };
    let rows: Vec<Vec<Cell>> = names
        .into_iter()
        .filter_map(|name| {
            let values: Vec<String> = all.iter().map(|run| value(run, name)).collect();
            let differ = values.iter().any(|v| *v != values[0]);
            let cell = |v: String| {
                let marked = v != values[0];
                if marked { Cell::text(v).marked() } else { Cell::text(v) }
            };
            differ.then(|| {
                std::iter::once(Cell::text(name.clone())).chain(values.iter().cloned().map(cell)).collect()
            })
        })
        .collect();
    if rows.is_empty() {
        return vec![Block::Note("The settings of all runs are the same.".into())];
    }
    let header =
        std::iter::once(Column::text("setting")).chain(runs.iter().map(|r| Column::text(&r.name))).collect();
    vec![
        Block::Note("Marked: what departs from the first run.".into()),
        Block::Table(Table { header, rows, sortable: false, runs: Vec::new() }),
    ]
}
