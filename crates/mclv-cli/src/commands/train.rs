//! `mclv train`: train a model in a run folder.

use super::report;
use crate::args::{Global, Preset, Rule, TrainArgs};
use crate::events::Events;
use crate::live;
use crate::output::{Output, facts, table};
use crate::sparkline::sparkline;
use crate::watch::Watch;
use anyhow::Context;
use mclv::Rbm;
use mclv::bits::BitRows;
use mclv::data::Binarize;
use mclv::gradient::{Gradient, Lvs, Starts, TourLength, VisibleChain};
use mclv::human_seconds;
use mclv::partition::Guarantee;
use mclv::progress::Progress;
use mclv::team;
use mclv::train::{
    Checkpoints, Listener, Metrics, Optimizer, Outcome, Run, RunInput, TrainSettings, Warning,
};
use serde_json::json;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;

/// Learning rate of Adam, if none is given.
const ADAM_RATE: f64 = 0.01;

pub(crate) fn run(args: &TrainArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let (mut run, folder) = match &args.resume {
        Some(folder) => (Run::resume(folder, &Watch::new("fetching", "B"))?, folder.clone()),
        None => {
            let input = resolve(args, global)?;
            let folder = match &args.output {
                Some(folder) => folder.clone(),
                None => free_folder(&input.data.source),
            };
            (Run::create(&folder, input, &Watch::new("fetching", "B"))?, folder)
        }
    };
    // What people look at is the first rank's affair.
    let shows = team::is_first();
    let server =
        (shows && args.look.live).then(|| live::Server::start(&folder, args.look.port)).transpose()?;
    if let Some(server) = &server {
        eprintln!("live report: {}", server.address());
    }
    let events =
        (shows && args.look.tensorboard).then(|| Events::create(&folder, run.train_data())).transpose()?;
    let live = Live {
        watch: Watch::new("training", "updates"),
        said: Mutex::default(),
        quiet: global.json,
        likelihoods: Mutex::default(),
        events,
    };
    let checkpoints =
        Checkpoints { every_epochs: args.checkpoint_every, every_minutes: args.checkpoint_minutes };
    let outcome = run.go(checkpoints, &live)?;
    let likelihoods = live.likelihoods.lock().map(|l| l.clone()).unwrap_or_default();
    drop(live);
    let ended = !matches!(outcome, Outcome::Interrupted { .. });
    // A model is worth more than a page about it: what goes wrong here is said, and no failure.
    let report = (shows && ended && !args.look.no_report)
        .then(|| team::alone(|| report::of_finished(&folder)))
        .and_then(|report| report.map_err(|e| tracing::warn!("no report: {e:#}")).ok());
    if let Some(server) = server {
        server.finish();
    }
    match outcome {
        Outcome::Finished { metrics, best, early } => {
            let json = json!({ "run": folder.to_string_lossy(), "model": folder.join("model.safetensors").to_string_lossy(),
                "early_stop": early, "best": best.map(|(epoch, value)| json!({ "epoch": epoch, "log_likelihood": value })),
                "metrics": metrics, "config": run.input(), "report": report.as_ref().map(|p| p.to_string_lossy()) });
            out.print(&json, || {
                let mut text = summary(&metrics, best, early, run.input(), &folder);
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
            anyhow::bail!("{warning} (run folder {})", folder.display())
        }
        Outcome::Interrupted { epochs } => Err(anyhow::Error::from(mclv::Error::Cancelled).context(format!(
            "stopped after {epochs} epochs; go on with: mclv train --resume {}",
            folder.display()
        ))),
    }
}

fn summary(
    metrics: &Metrics,
    best: Option<(usize, f64)>,
    early: bool,
    input: &RunInput,
    folder: &std::path::Path,
) -> String {
    let number = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.3}"));
    let log_z = metrics.log_z.as_ref();
    let error = log_z.filter(|z| z.std_err > 0.0).map_or(String::new(), |z| format!(" ± {:.3}", z.std_err));
    let rows = [("train", metrics.train_log_likelihood), ("validation", metrics.validation_log_likelihood)]
        .into_iter()
        .filter(|(_, x)| x.is_some())
        .map(|(name, x)| vec![name.to_owned(), format!("{}{error}", number(x))]);
    let mut text = table(&["", "log-likelihood (nats per row)"], &[1], rows);
    text.push('\n');
    let mut lines = vec![
        (
            "epochs",
            format!(
                "{}{}",
                metrics.epoch,
                if early { " (stopped early: no better validation likelihood)" } else { "" }
            ),
        ),
        ("time", human_seconds(metrics.seconds)),
        (
            "log Z",
            log_z.map_or("–".into(), |z| match z.guarantee {
                Guarantee::Exact => format!("{:.4} (exact)", z.value),
                guarantee => format!("{:.4}{error} ({}; {guarantee})", z.value, z.method),
            }),
        ),
        ("pseudo-LL", number(metrics.pseudo_log_likelihood)),
        ("reconstruction", metrics.reconstruction_error.map_or("–".into(), |x| format!("{x:.5} (MSE)"))),
    ];
    if let Some((epoch, value)) = best {
        lines.push(("best", format!("{value:.3} after epoch {epoch} (best.safetensors)")));
    }
    if let Some(path) = &input.weights {
        lines.push(("weights", format!("{}: likelihoods are means by these", path.display())));
    }
    lines.push(("run", folder.display().to_string()));
    lines.push(("next", format!("mclv likelihood {}", folder.join("model.safetensors").display())));
    text.push_str(&facts(&lines));
    text
}

/// `runs/DATA-1`, or the first such folder that is free.
fn free_folder(source: &str) -> PathBuf {
    let stem = std::path::Path::new(source)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace([':', ' '], "-");
    (1..).map(|n| PathBuf::from("runs").join(format!("{stem}-{n}"))).find(|p| !p.exists()).unwrap_or_default()
}

/// The file, or the preset; then the flags.
fn resolve(args: &TrainArgs, global: &Global) -> anyhow::Result<RunInput> {
    let mut input = match &args.config {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            RunInput::from_toml(&text, path)?
        }
        None if args.gradient.is_none() && args.preset == Preset::Default => {
            let plain = RunInput::default();
            let n_hidden = args.hidden.unwrap_or(plain.train.n_hidden);
            RunInput { train: TrainSettings::best(n_hidden), ..plain }
        }
        None => RunInput::default(),
    };
    if let Some(source) = &args.data {
        input.data.source.clone_from(source);
    }
    if let Some(binarize) = args.preparation.binarize {
        input.data.binarize = binarize;
    }
    if let Some(column) = &args.preparation.label_column {
        input.data.label_column = Some(column.clone());
    }
    if let Some(path) = &args.weights {
        input.weights = Some(path.clone());
    }
    let mut train = input.train;
    if let Some(estimator) = args.gradient {
        train.gradient = estimator.default_settings();
    }
    if args.preset == Preset::Paper {
        train = TrainSettings::paper(train.gradient);
    }
    set_gradient(args, &mut train.gradient)?;
    if args.optimizer == Some(Rule::Adam) && !matches!(train.optimizer, Optimizer::Adam { .. }) {
        // Its steps are of the size of the rate itself, whatever the gradient's.
        train.learning_rate = ADAM_RATE;
    }
    macro_rules! take {
        ($($flag:ident => $field:ident),* $(,)?) => { $(if let Some(value) = args.$flag { train.$field = value; })* };
    }
    take!(hidden => n_hidden, init => init, epochs => epochs, batch_size => batch_size, learning_rate => learning_rate,
        schedule => schedule, l1 => l1, l2 => l2, clip => clip, warm_up_epochs => warm_up_epochs, eval_every => eval_every,
        patience => patience, offset_rate => offset_rate);
    train.centred &= !args.no_centring;
    train.drop_last |= args.drop_last;
    train.redraw_bits |= args.redraw_bits;
    match (args.optimizer, args.momentum) {
        (Some(Rule::Adam), None) => train.optimizer = Optimizer::ADAM,
        (Some(Rule::Adam), Some(_)) => {
            anyhow::bail!("--momentum goes with --optimizer sgd; Adam has its own")
        }
        (_, Some(momentum)) => train.optimizer = Optimizer::Sgd { momentum },
        (Some(Rule::Sgd), None) => train.optimizer = Optimizer::Sgd { momentum: 0.0 },
        (None, None) => {}
    }
    if let Some(seed) = global.seed {
        (train.seed, input.data.seed) = (seed, seed);
    }
    anyhow::ensure!(
        !train.redraw_bits || input.data.binarize == Binarize::Bernoulli,
        "--redraw-bits needs --binarize bernoulli: there is nothing to draw anew"
    );
    Ok(RunInput { train, ..input })
}

/// Flags of the estimator; a flag that the estimator does not have is refused.
fn set_gradient(args: &TrainArgs, gradient: &mut Gradient) -> anyhow::Result<()> {
    let steps = |k: TourLength| match k {
        TourLength::Steps(k) => Ok(k as usize),
        TourLength::Dynamic => {
            anyhow::bail!("--k dynamic is for tours (--gradient lvs); give a number of Gibbs steps")
        }
    };
    let no = |flag: &str, given: bool, name: &str| {
        anyhow::ensure!(!given, "--{flag} does not go with --gradient {name}");
        Ok(())
    };
    let lvs_flags = [
        ("samples-per-row", args.samples_per_row.is_some()),
        ("row-fraction", args.row_fraction.is_some()),
        ("redraw-every", args.redraw_every.is_some()),
        ("unfinished", args.unfinished.is_some()),
        ("starts", args.starts.is_some()),
        ("statistics", args.statistics.is_some()),
        ("min-ess", args.min_ess.is_some()),
        ("target-completion", args.target_completion.is_some()),
        ("max-states", args.max_states.is_some()),
        ("max-set-cost", args.max_set_cost.is_some()),
    ];
    match gradient {
        Gradient::Cd { k, visible } => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "cd"))?;
            no("chains", args.chains.is_some(), "cd")?;
            *k = args.k.map_or(Ok(*k), steps)?;
            *visible = args.visible.unwrap_or(*visible);
        }
        Gradient::Pcd { k, n_chains, visible } => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "pcd"))?;
            *k = args.k.map_or(Ok(*k), steps)?;
            *n_chains = args.chains.unwrap_or(*n_chains);
            *visible = args.visible.unwrap_or(*visible);
        }
        Gradient::Lvs(lvs) => set_lvs(args, lvs),
        Gradient::Exact => {
            lvs_flags.iter().try_for_each(|(flag, given)| no(flag, *given, "exact"))?;
            no("k", args.k.is_some(), "exact")?;
            no("chains", args.chains.is_some(), "exact")?;
            no("visible", args.visible.is_some_and(|v| v == VisibleChain::MeanField), "exact")?;
        }
    }
    Ok(())
}

fn set_lvs(args: &TrainArgs, lvs: &mut Lvs) {
    macro_rules! take {
        ($($flag:ident => $field:ident),* $(,)?) => { $(if let Some(value) = args.$flag { lvs.$field = value; })* };
    }
    take!(k => k, chains => n_tours, samples_per_row => samples_per_row, row_fraction => row_fraction,
        redraw_every => redraw_every, unfinished => unfinished, statistics => statistics, visible => visible,
        min_ess => min_ess, target_completion => target_completion, max_states => max_states,
        max_set_cost => max_set_cost);
    // Starts that suit the policy, unless they were chosen.
    lvs.starts = args.starts.unwrap_or(match (lvs.unfinished, lvs.starts) {
        (mclv::gradient::Unfinished::Carry, Starts::Weighted) => Starts::Metropolis,
        (mclv::gradient::Unfinished::Carry, starts) => starts,
        (_, Starts::Metropolis) => Starts::Weighted,
        (_, starts) => starts,
    });
}

/// The live line: a bar with the last likelihoods; warnings once each.
struct Live {
    watch: Watch,
    said: Mutex<HashSet<String>>,
    quiet: bool,
    /// Of training rows, in order.
    likelihoods: Mutex<Vec<f64>>,
    events: Option<Events>,
}

impl Progress for Live {
    fn report(&self, done: u64, total: u64) {
        self.watch.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

impl Listener for Live {
    fn epoch(&self, metrics: &Metrics) {
        if let Some(events) = &self.events {
            events.epoch(metrics);
        }
        let Some(train) = metrics.train_log_likelihood else { return };
        let error = metrics
            .log_z
            .as_ref()
            .filter(|z| z.std_err > 0.0)
            .map_or(String::new(), |z| format!(" ± {:.2}", z.std_err));
        let validation =
            metrics.validation_log_likelihood.map_or(String::new(), |v| format!(", validation {v:.2}"));
        let text = format!("epoch {}: log-likelihood {train:.2}{validation}{error}", metrics.epoch);
        tracing::info!("{text}");
        self.watch.say(text);
        if let Ok(mut likelihoods) = self.likelihoods.lock() {
            likelihoods.push(train);
        }
    }

    fn evaluated(&self, metrics: &Metrics, rbm: &Rbm, chains: Option<&BitRows>) {
        if let Some(events) = &self.events {
            team::alone(|| events.evaluated(metrics, rbm, chains));
        }
    }

    fn warning(&self, warning: &Warning) {
        // Numbers change from epoch to epoch; the kind of warning is said once.
        let kind = serde_json::to_value(warning).ok().and_then(|v| v["warning"].as_str().map(str::to_owned));
        let new = self.said.lock().is_ok_and(|mut said| said.insert(kind.unwrap_or_default()));
        if new && !self.quiet && !matches!(warning, Warning::Diverged { .. }) {
            self.watch.above(&format!("warning: {warning}"));
        }
    }
}
