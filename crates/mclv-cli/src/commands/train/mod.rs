//! `mclv train`: trains a model in a run folder.

mod args;
mod settings;
#[cfg(test)]
mod settings_page;
mod summary;
mod watching;

pub(crate) use args::TrainArgs;

use super::report;
use crate::cli::Global;
use crate::events::Events;
use crate::live;
use crate::output::{Output, facts};
use crate::sparkline::sparkline;
use crate::watch::Watch;
use mclv::settings::Spelling;
use mclv::team;
use mclv::train::{Checkpoints, Outcome, Run, RunFolder};
use serde_json::json;
use settings::resolve;
use std::path::PathBuf;
use summary::summary;
use watching::Live;

pub(crate) fn run(args: &TrainArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let watch = Watch::new("fetching", "B");
    let (run, folder) = match &args.resume {
        // All ranks must have read the folder before one of them changes it.
        Some(folder) => (team::together(Run::open(folder, &watch))?, folder.clone()),
        None => {
            let input = resolve(args, global)?;
            let folder = match &args.output {
                Some(folder) => folder.clone(),
                None => free_folder(&input.data.source),
            };
            (Run::load(input, &watch)?, folder)
        }
    };
    drop(watch);
    let checkpoints =
        Checkpoints { every_epochs: args.checkpoint_every, every_minutes: args.checkpoint_minutes };
    let training = run.training().checkpoints(checkpoints).command(typed());
    let session = match &args.resume {
        Some(_) => training.resume(&folder, run.rows())?,
        None => training.in_folder(&folder).begin(run.rows())?,
    };
    // Only the first rank shows reports and progress.
    let shows = team::is_first();
    let server =
        (shows && args.look.live).then(|| live::Server::start(&folder, args.look.port)).transpose()?;
    if let Some(server) = &server {
        eprintln!("live report: {}", server.address());
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
                "metrics": metrics, "config": input, "report": report.as_ref().map(|p| p.to_string_lossy()) });
            out.print(&json, || {
                let mut text = summary(&metrics, early, &input, &folder);
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
            folder.display()
        ))),
    }
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

/// The first of `runs/DATA-1`, `runs/DATA-2`, … that does not exist yet.
fn free_folder(source: &str) -> PathBuf {
    let stem = std::path::Path::new(source)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace([':', ' '], "-");
    (1..).map(|n| PathBuf::from("runs").join(format!("{stem}-{n}"))).find(|p| !p.exists()).unwrap_or_default()
}
