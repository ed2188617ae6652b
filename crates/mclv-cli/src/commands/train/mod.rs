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
use crate::sparkline::sparkline;
use crate::watch::Watch;
use anyhow::{anyhow, bail, ensure};
use mclv::settings::{Auto, Spelling};
use mclv::shell;
use mclv::team;
use mclv::train::{Checkpoints, Outcome, Run, RunFolder, SweepFolder, Warning};
use serde_json::json;
use settings::resolve;
use std::path::{Path, PathBuf};
use summary::summary;
use watching::Live;

pub(crate) fn run(args: &TrainArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let mut server = None;
    let (run, resumed) = match &args.resume {
        Some(path) => {
            let folder = folder_of(path, global)?;
            (reopen(&folder, args, global, &mut server)?, Some(folder))
        }
        None => (Run::load(resolve(args, global)?, &Watch::new("fetching", "B"))?, None),
    };
    let training = run.training().checkpoints(checkpoints(args)).command(typed());
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
    if server.is_none() {
        server = serve(args, &folder)?;
    }
    let mut live = Live::new(global.json, events(args, &folder, &run)?);
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
        Outcome::Diverged(warning) => Err(diverged(&warning, &folder)),
        Outcome::Interrupted { epochs } => Err(interrupted(epochs, &folder, "")),
    }
}

fn diverged(warning: &Warning, folder: &Path) -> anyhow::Error {
    anyhow!("{} (run folder {})", warning.in_words(Spelling::Flags), folder.display())
}

/// The end of an interrupted training. `flags` belong to the command that continues it.
fn interrupted(epochs: usize, folder: &Path, flags: &str) -> anyhow::Error {
    let folder = shell::path(folder);
    anyhow::Error::from(mclv::Error::Cancelled)
        .context(format!("stopped after {epochs} epochs; continue with: mclv train --resume {folder}{flags}"))
}

fn checkpoints(args: &TrainArgs) -> Checkpoints {
    Checkpoints { every_epochs: args.checkpoint_every, every_minutes: args.checkpoint_minutes }
}

/// Starts to serve the live page, if it is asked for.
fn serve(args: &TrainArgs, folder: &Path) -> anyhow::Result<Option<live::Server>> {
    if !args.look.live || !team::is_first() {
        return Ok(None);
    }
    let server = live::Server::start(folder, args.look.port)?;
    tell(&format!("live report: {}", server.address()));
    Ok(Some(server))
}

/// The event file of TensorBoard, if it is asked for.
fn events(args: &TrainArgs, folder: &Path, run: &Run) -> anyhow::Result<Option<Events>> {
    let is_asked = args.look.tensorboard && team::is_first();
    Ok(is_asked.then(|| Events::create(folder, run.train_data())).transpose()?)
}

/// Says which rows are used, before training begins.
fn first_line(run: &Run) -> String {
    let parts = run.parts();
    let is_held_out = parts.validation.as_ref().is_some_and(|part| part.from != parts.train.from);
    let hint = if parts.is_drawn && !is_held_out { "; --no-validation trains on all of them" } else { "" };
    format!("rows: {parts}{hint}")
}

/// The folder of the run to be resumed. `path` is that folder, or a file in it.
fn folder_of(path: &Path, global: &Global) -> anyhow::Result<PathBuf> {
    ensure!(global.seed.is_none(), "--seed cannot be used with --resume: a resumed run keeps its seed");
    if SweepFolder::new(path).holds_a_sweep() {
        let path = shell::path(path);
        bail!(
            "{path} is a sweep, not a run; to continue it: mclv sweep --resume {path}; to train its chosen model \
             further: mclv train --from {path}"
        );
    }
    Ok(RunFolder::of(path)?.path().to_path_buf())
}

/// Opens the run in a folder to be resumed, or to be given more epochs. If it has not ended, its old
/// epochs come first.
fn reopen(
    folder: &Path,
    args: &TrainArgs,
    global: &Global,
    server: &mut Option<live::Server>,
) -> anyhow::Result<Run> {
    // All ranks must have read the folder before one of them changes it.
    let open = || team::together(Run::open(folder, &Watch::new("fetching", "B")));
    let n = match args.settings.epochs {
        None => return Ok(open()?),
        Some(Auto::Given(n)) => n,
        Some(Auto::Auto) => {
            bail!("--epochs auto cannot be used with --resume; give the number of epochs to add")
        }
    };
    let extend = || team::together(Run::extend(folder, n, &Watch::new("fetching", "B")));
    let run = match extend() {
        Err(mclv::Error::Unfinished { done, epochs, .. }) => {
            if team::is_first() {
                tell(&format!(
                    "note: {} has made {done} of its {epochs} epochs; it makes the others first, and then {n} more",
                    folder.display()
                ));
            }
            finish(&open()?, folder, args, global, server)?;
            extend()?
        }
        run => run?,
    };
    if team::is_first() {
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
    Ok(run)
}

/// Makes the epochs that are left of an interrupted run.
fn finish(
    run: &Run,
    folder: &Path,
    args: &TrainArgs,
    global: &Global,
    server: &mut Option<live::Server>,
) -> anyhow::Result<()> {
    let training = run.training().checkpoints(checkpoints(args)).command(typed());
    let session = training.resume(folder, run.rows())?;
    *server = serve(args, folder)?;
    let mut live = Live::new(global.json, events(args, folder, run)?);
    match session.observe(&mut live).finish()?.outcome {
        Outcome::Finished { .. } => Ok(()),
        Outcome::Diverged(warning) => Err(diverged(&warning, folder)),
        Outcome::Interrupted { epochs } => {
            let n = args.settings.epochs.map_or(String::new(), |epochs| format!(" --epochs {epochs}"));
            Err(interrupted(epochs, folder, &n))
        }
    }
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
