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
use crate::watch::Watch;
use anyhow::{Context, ensure};
use folder::Sweep;
use mclv::settings::{EvalEvery, Settings};
use mclv::shell;
use mclv::train::{Run, SweepFolder};
use mclv::{new_folder, team, write_inside};
use mclv_report::run::{Comparison, several_runs};
use mclv_reproduce::{ModelOf, Store, Task, schedule};
use results::{Results, TestRows};
use serde_json::json;
use std::path::Path;

/// A run of a sweep: a combination of values, by its number, and a seed.
struct Planned {
    combination: usize,
    seed: u64,
    /// The name of its folder.
    name: String,
    task: Task,
}

pub(crate) fn run(args: &SweepArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let (path, sweep) = match &args.resume {
        Some(path) => {
            ensure!(global.seed.is_none(), "--seed cannot be used with --resume: a sweep keeps its seed");
            (Some(path.clone()), Sweep::read(&SweepFolder::new(path))?)
        }
        None => {
            let run = resolve_with(&args.input, Settings::default(), global.seed)?;
            if let Some(path) = &args.output {
                folder::check_new(&SweepFolder::new(path))?;
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
    let names = planned.iter().map(|run| (run.task.key(), run.name.clone()));
    let store = Store::open(folder.path())?.keeping_checkpoints().naming(names);
    if args.resume.is_none() {
        sweep.create(&folder)?;
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
    let comparison = Comparison { notes: results.notes(), ..mclv_view::compare(results.records()) };
    let page = several_runs(&comparison);
    if team::is_first() {
        report::save_inside(&page, &folder.report())?;
    }
    write_inside(&folder.csv(), results.csv().as_bytes())?;
    folder.choose(results.best_run())?;
    let json = json!({ "sweep": folder.path().to_string_lossy(), "report": folder.report().to_string_lossy(),
        "csv": folder.csv().to_string_lossy(), "results": results.json() });
    out.print(&json, || text(&results, &folder))
}

/// The runs of a sweep: every combination with every seed. All settings are checked before the first
/// run begins.
fn plan(sweep: &Sweep) -> anyhow::Result<Vec<Planned>> {
    let (grid, seeds) = (sweep.grid(), sweep.seeds()?);
    let (combinations, varied) = (grid.combinations(), grid.varied());
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
            let name = name_of(k, combination, &varied, seed);
            planned.push(Planned { combination: k, seed, name, task: Task::Train(model) });
        }
    }
    Ok(planned)
}

/// The longest name of a run folder, in bytes. File systems allow 255.
const MAX_NAME: usize = 200;

/// The name of the folder of a run: the settings that have several values, and the seed.
fn name_of(combination: usize, values: &[(String, String)], varied: &[&str], seed: u64) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    let plain = |value: &String| value.replace(|c| !is_plain(c), "_");
    let parts = values.iter().filter(|(name, _)| varied.contains(&name.as_str()));
    let parts: String = parts.map(|(name, value)| format!("{name}={},", plain(value))).collect();
    let is_short = parts.len() <= MAX_NAME;
    if is_short { format!("{parts}seed={seed}") } else { format!("setting-{},seed={seed}", combination + 1) }
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
    let mut lines = vec![
        ("test", results.test_in_words()),
        ("sweep", folder.path().display().to_string()),
        ("runs", folder.csv().display().to_string()),
        ("report", folder.report().display().to_string()),
    ];
    if let Some(best) = results.best_run() {
        lines.push(("chosen", best.display().to_string()));
        lines.push(("next", format!("mclv likelihood {}", shell::path(folder.path()))));
    }
    text + &facts(&lines)
}
