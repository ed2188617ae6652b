//! `mclv train`: trains a model in a run folder.

mod args;
mod settings;
#[cfg(test)]
mod settings_page;
mod summary;
mod watching;

pub(crate) use args::{InputArgs, TrainArgs};
pub(crate) use settings::resolve_with;

use super::report;
use crate::cli::Global;
use crate::events::Events;
use crate::live;
use crate::output::{Output, facts, tell};
use crate::shell;
use crate::sparkline::sparkline;
use crate::watch::Watch;
use anyhow::{bail, ensure};
use mclv::settings::{Auto, Spelling};
use mclv::team;
use mclv::train::{Checkpoints, Outcome, Run, RunFolder};
use serde_json::json;
use settings::resolve;
use std::path::{Path, PathBuf};
use summary::summary;
use watching::Live;

pub(crate) fn run(args: &TrainArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let watch = Watch::new("fetching", "B");
    let (run, resumed) = match &args.resume {
        Some(path) => {
            let (run, folder) = resume(path, args, global, &watch)?;
            (run, Some(folder))
        }
        None => (Run::load(resolve(args, global)?, &watch)?, None),
    };
    drop(watch);
    let checkpoints =
        Checkpoints { every_epochs: args.checkpoint_every, every_minutes: args.checkpoint_minutes };
    let training = run.training().checkpoints(checkpoints).command(typed());
    let session = match (&resumed, &args.output) {
        (Some(folder), _) => training.resume(folder, run.rows())?,
        (None, Some(folder)) => training.in_folder(folder).begin(run.rows())?,
        (None, None) => {
            let stem = stem(&run.input().data.source);
            training.in_new_folder(Path::new("runs"), &stem).begin(run.rows())?
        }
    };
    let folder = session.folder().expect("the run has a folder").path().to_path_buf();
    out.note(|| first_line(&run));
    // Only the first rank shows reports and progress.
    let shows = team::is_first();
    let server =
        (shows && args.look.live).then(|| live::Server::start(&folder, args.look.port)).transpose()?;
    if let Some(server) = &server {
        tell(&format!("live report: {}", server.address()));
    }
    let events =
        (shows && args.look.tensorboard).then(|| Events::create(&folder, run.train_data())).transpose()?;
    let mut live = Live::new(global.json, events);
    let trained = session.observe(&mut live).finish()?;
    let likelihoods = live.likelihoods().to_vec();
    drop(live);
    let (input, outcome) = (run.resolved(&trained), trained.outcome);
    let ended = !matches!(outcome, Outcome::Interrupted { .. });
    // A failed report gives a warning, but does not fail the training.
    let report = (shows && ended && !args.look.no_report)
        .then(|| team::alone(|| report::of_finished(&folder)))
        .and_then(|report| report.map_err(|e| tracing::warn!("no report: {e:#}")).ok());
    if let Some(server) = server {
        server.finish();
    }
    match outcome {
        Outcome::Finished { metrics, best, early } => {
            let json = json!({ "run": folder.to_string_lossy(), "model": RunFolder::new(&folder).model().to_string_lossy(),
                "early_stop": early, "best": best.as_ref().map(|best| json!({ "epoch": best.epoch,
                    "log_likelihood": best.log_likelihood, "std_err": best.log_z.std_err })),
                "metrics": metrics, "rows": run.parts(), "config": input, "report": report.as_ref().map(|p| p.to_string_lossy()) });
            out.print(&json, || {
                let mut text = summary(&metrics, early, &run, &input, &folder);
                let mut lines = Vec::new();
                let curve = sparkline(&likelihoods, 40);
                if let (false, Some(first), Some(last)) =
                    (curve.is_empty(), likelihoods.first(), likelihoods.last())
                {
                    lines.push(("likelihood    ", format!("{first:.1} {curve} {last:.1}")));
                }
                lines.extend(report.as_ref().map(|path| ("report        ", path.display().to_string())));
                text.push_str(&facts(&lines));
                text
            })
        }
        Outcome::Diverged(warning) => {
            anyhow::bail!("{} (run folder {})", warning.in_words(Spelling::Flags), folder.display())
        }
        Outcome::Interrupted { epochs } => Err(anyhow::Error::from(mclv::Error::Cancelled).context(format!(
            "stopped after {epochs} epochs; continue with: mclv train --resume {}",
            shell::path(&folder)
        ))),
    }
}

/// Says which rows are used, before training begins.
fn first_line(run: &Run) -> String {
    let parts = run.parts();
    let is_held_out = parts.validation.as_ref().is_some_and(|part| part.from != parts.train.from);
    let hint = if parts.is_drawn && !is_held_out { "; --no-validation trains on all of them" } else { "" };
    format!("rows: {parts}{hint}")
}

/// Opens a run to be resumed, or to be given more epochs. `path` is its folder, or a file in it.
fn resume(path: &Path, args: &TrainArgs, global: &Global, watch: &Watch) -> anyhow::Result<(Run, PathBuf)> {
    ensure!(global.seed.is_none(), "--seed cannot be used with --resume: a resumed run keeps its seed");
    let folder = RunFolder::of(path).path().to_path_buf();
    let run = match args.settings.epochs {
        None => Run::open(&folder, watch),
        Some(Auto::Given(n)) => Run::extend(&folder, n, watch),
        Some(Auto::Auto) => {
            bail!("--epochs auto cannot be used with --resume; give the number of epochs to add")
        }
    };
    // All ranks must have read the folder before one of them changes it.
    let run = team::together(run)?;
    if let (Some(Auto::Given(n)), true) = (args.settings.epochs, team::is_first()) {
        let settings = run.input().train.check_without_rows()?;
        tell(&format!(
            "note: {} has made {} epochs; {n} more follow with a new schedule of the learning rate ({} from {}), \
             because the old one has ended",
            folder.display(),
            settings.epochs - n,
            settings.schedule,
            settings.learning_rate
        ));
    }
    Ok((run, folder))
}

/// How the names of folders for runs on these data begin.
pub(crate) fn stem(source: &str) -> String {
    Path::new(source).file_stem().unwrap_or_default().to_string_lossy().replace([':', ' '], "-")
}

/// The command as it was typed, with the program's name alone.
fn typed() -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        let name = std::path::Path::new(program.as_str()).file_name();
        *program = name.map_or_else(|| "mclv".into(), |name| name.to_string_lossy().into_owned());
    }
    words
}
