//! `mclv sweep`: trains with several settings and seeds, and chooses a setting by validation rows.

mod args;
mod folder;
mod results;

pub(crate) use args::SweepArgs;

use super::report;
use super::reproduce::Live;
use super::train::{resolve_with, stem};
use crate::cli::Global;
use crate::output::{Output, facts, table};
use crate::shell;
use crate::view;
use crate::watch::Watch;
use anyhow::{Context, ensure};
use folder::{Sweep, SweepFolder};
use mclv::settings::{EvalEvery, Settings};
use mclv::statistics::Summary;
use mclv::train::Run;
use mclv::{new_folder, team, write_inside};
use mclv_report::run::several_runs;
use mclv_reproduce::{ModelOf, Store, Task, schedule};
use results::{Results, TestRows};
use serde_json::json;
use std::path::Path;

/// A run of a sweep: a combination of values, by its number, and a seed.
struct Planned {
    combination: usize,
    seed: u64,
    task: Task,
}

pub(crate) fn run(args: &SweepArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let (path, sweep) = match &args.resume {
        Some(path) => {
            ensure!(global.seed.is_none(), "--seed cannot be used with --resume: a sweep keeps its seed");
            (Some(path.clone()), SweepFolder::new(path).read()?)
        }
        None => {
            let run = resolve_with(&args.input, Settings::default(), global.seed)?;
            if let Some(path) = &args.output {
                SweepFolder::new(path).check_new()?;
            }
            (args.output.clone(), Sweep { seeds: args.seeds.to_string(), run, settings: args.grid.0.clone() })
        }
    };
    let planned = plan(&sweep)?;
    // The folder is made only now, so that a sweep that cannot begin leaves none.
    let folder = match path {
        Some(path) => path,
        None => new_folder(Path::new("sweeps"), &stem(&sweep.run.data.source))?,
    };
    let folder = SweepFolder::new(&folder);
    let store = Store::open(folder.path())?.keeping_checkpoints();
    if args.resume.is_none() {
        folder.create(&sweep)?;
    }
    let tasks: Vec<Task> = planned.iter().map(|run| run.task.clone()).collect();
    let live = Live(Watch::new("sweep", "").patient());
    schedule::run(&tasks, &store, rayon::current_num_threads(), &live).with_context(|| {
        format!("finished runs are kept; continue with: mclv sweep --resume {}", shell::path(folder.path()))
    })?;
    drop(live);
    let mut results = Results::read(&sweep, &planned, &store)?;
    // Only now, with the choice made, are test rows read.
    if let Some(chosen) = results.chosen() {
        let test = TestRows::load(&sweep.run, &Watch::new("fetching", "B"))?;
        results.evaluate(chosen, &test)?;
    }
    let page = several_runs(&view::compare(results.records()));
    if team::is_first() {
        report::save_inside(&page, &folder.report())?;
    }
    write_inside(&folder.csv(), results.csv().as_bytes())?;
    let json = json!({ "sweep": folder.path().to_string_lossy(), "report": folder.report().to_string_lossy(),
        "csv": folder.csv().to_string_lossy(), "results": results.json() });
    out.print(&json, || text(&results, &folder))
}

/// The runs of a sweep: every combination with every seed. All settings are checked before the first
/// run begins.
fn plan(sweep: &Sweep) -> anyhow::Result<Vec<Planned>> {
    let (combinations, seeds) = (sweep.grid().combinations(), sweep.seeds()?);
    // The rows decide some defaults, and the model to start from is recorded with its digest.
    let first = Run::load(sweep.run.clone(), &Watch::new("fetching", "B"))?;
    let mut planned = Vec::new();
    for (k, combination) in combinations.iter().enumerate() {
        let settings = args::settings(combination)?.over(sweep.run.train.clone());
        let is_validated = settings.validation_fraction.is_some_and(|share| share.get().is_some());
        ensure!(
            is_validated || first.has_validation_rows(),
            "{} has no validation rows to choose a setting by; hold some out with --validation-fraction 0.1",
            sweep.run.data.source
        );
        for &seed in &seeds {
            let settings = Settings { seed: Some(seed), ..settings.clone() };
            let checked = first.check(&settings).with_context(|| args::spelled(combination))?;
            ensure!(
                checked.eval_every != EvalEvery::Never,
                "--eval-every never cannot be used in a sweep: without likelihoods no setting can be chosen"
            );
            let input = first.input();
            let (data, weights) = (input.data.clone(), input.weights.clone());
            let model =
                ModelOf { data, train: checked, weights, shape: input.shape, from: input.from.clone() };
            planned.push(Planned { combination: k, seed, task: Task::Train(model) });
        }
    }
    Ok(planned)
}

/// The comparison of the settings, and the result of the chosen one.
fn text(results: &Results, folder: &SweepFolder) -> String {
    let varied = results.varied();
    let mut header = vec!["setting"];
    if !varied.is_empty() {
        header = varied.clone();
    }
    let n_names = header.len();
    header.extend(["seeds", "validation (nats per row)", "sd over seeds", ""]);
    let rows = results.settings().iter().map(|setting| {
        let mut row: Vec<String> = match varied.is_empty() {
            true => vec!["(one)".into()],
            false => varied.iter().map(|name| setting.value_of(name)).collect(),
        };
        let diverged = match setting.n_diverged() {
            0 => String::new(),
            n => format!("{n} diverged"),
        };
        row.extend([
            setting.runs.len().to_string(),
            setting.validation().map_or("–".into(), |s| format!("{:.3}", s.mean)),
            setting.validation().and_then(|s| s.sd).map_or("–".into(), |sd| format!("{sd:.3}")),
            if setting.is_chosen { "chosen".into() } else { diverged },
        ]);
        row
    });
    let mut text = table(&header, &[n_names, n_names + 1, n_names + 2], rows);
    text.push('\n');
    let mut lines = Vec::new();
    match results.test() {
        Some((summary, n_rows, error)) => lines.push((
            "test",
            format!(
                "{}: the chosen setting on {n_rows} test rows{}",
                with_sd(&summary),
                error.map_or(String::new(), |error| format!("; error over rows {error:.3}"))
            ),
        )),
        None => lines.push(("test", "not evaluated: no setting has a likelihood for every seed".into())),
    }
    lines.push(("sweep", folder.path().display().to_string()));
    lines.push(("runs", folder.csv().display().to_string()));
    lines.push(("report", folder.report().display().to_string()));
    if let Some(best) = results.best_run() {
        lines.push(("next", format!("mclv likelihood {}", shell::path(best))));
    }
    text + &facts(&lines)
}

/// A mean, with the standard deviation over seeds if there are several.
fn with_sd(summary: &Summary) -> String {
    match summary.sd {
        Some(sd) => format!("{:.3} nats per row (sd {sd:.3} over {} seeds)", summary.mean, summary.n),
        None => format!("{:.3} nats per row", summary.mean),
    }
}
