//! `mclv reproduce`: runs the paper's experiments, and further ones.

use super::MAX_TEXT;
use crate::cli::Global;
use crate::output::{Output, table};
use crate::watch::Watch;
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueHint};
use mclv::data::{self, DataSpec};
use mclv::progress::Progress;
use mclv::settings::Starts;
use mclv::shell;
use mclv::{human_seconds, read_file, read_text, team, write_atomically};
use mclv_reproduce::report::Report;
use mclv_reproduce::schedule::Listener;
use mclv_reproduce::{Experiment, Options, Store, page, write};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The largest length of a figure that is compared with a new one.
const MAX_FIGURE: u64 = 1 << 28;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv reproduce                               list the experiments
  mclv reproduce table2 --quick                minutes: a tenth of the epochs, two seeds
  mclv reproduce table2 --seeds 5              five seeds instead of ten
  mclv reproduce all -o results                all experiments; takes hours
  mclv reproduce digits --quick --data digits  seconds, on the built-in digits
  mclv reproduce --render results --page page.md  update tables and figures of a page

Runs execute in parallel, with one thread each. Their results are stored in OUTPUT/runs by their
settings, so a finished run is never repeated, and an interrupted run continues from its checkpoint.
Each experiment writes NAME.json, NAME.md, .csv files, and figures as .svg and .png. With -v, a line
is printed for each finished run.")]
pub(crate) struct ReproduceArgs {
    /// Name of an experiment, or `all` [default: list the experiments]
    #[arg(value_name = "EXPERIMENT", conflicts_with = "render")]
    pub(crate) experiment: Option<String>,
    /// Number of seeds per run, counted from --seed [default: 10, as in the paper; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) seeds: Option<u16>,
    /// Use a tenth of the epochs and tours; the results cannot be compared with the paper
    #[arg(long)]
    pub(crate) quick: bool,
    /// Name of a data set (see `mclv data list`), or a file [default: mnist, or the eleven sets of
    /// `density`]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    /// Folder with models of other packages, which `density` evaluates too (see docs/benchmarks.md)
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) models: Option<PathBuf>,
    /// Run nothing; write the report of the runs that are finished. Only `density` can do this
    #[arg(long, conflicts_with = "render")]
    pub(crate) finished: bool,
    /// How tours in training choose their starts: `weighted`, or `fresh` (as in the paper, several
    /// times slower)
    #[arg(long, value_parser = parse_starts, default_value = "weighted", value_name = "HOW")]
    pub(crate) starts: Starts,
    /// Folder for results
    #[arg(short, long, default_value = "reproduction", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Run nothing; build figures and --page files again from the results (NAME.json or
    /// NAME.json.gz) in this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) render: Option<PathBuf>,
    /// With --render: Markdown page to update, with marks such as `<!-- table2 -->` … `<!-- end
    /// table2 -->`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "render")]
    pub(crate) page: Vec<PathBuf>,
    /// With --render: write only the figures that a --page shows, into this folder [default: write
    /// all files that follow from the results, into their folder]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, requires = "page")]
    pub(crate) figures: Option<PathBuf>,
    /// With --render: write nothing, and fail if a file is out of date
    #[arg(long, requires = "render")]
    pub(crate) check: bool,
}

/// Parses the starts of tours that are not carried over.
fn parse_starts(text: &str) -> Result<Starts, String> {
    match text.parse() {
        Ok(starts @ (Starts::Weighted | Starts::Fresh)) => Ok(starts),
        _ => Err("choose weighted or fresh".into()),
    }
}

/// Default number of seeds of a quick run.
const QUICK_SEEDS: u16 = 2;
/// Number of seeds in the paper.
const SEEDS: u16 = 10;

pub(crate) fn run(args: &ReproduceArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    if let Some(folder) = &args.render {
        return render(args, folder, out);
    }
    let Some(name) = &args.experiment else { return list(out) };
    let experiments = match Experiment::by_name(name) {
        Some(experiment) => vec![experiment],
        None if name == "all" => Experiment::ALL.to_vec(),
        None => {
            let names: Vec<&str> = Experiment::ALL.iter().map(|e| e.name()).collect();
            bail!("no experiment is called {name:?}; choose one of {}, or all", names.join(", "))
        }
    };
    let n_seeds = args.seeds.unwrap_or(if args.quick { QUICK_SEEDS } else { SEEDS });
    let Some(last) = global.seed().checked_add(u64::from(n_seeds) - 1) else {
        bail!("--seed {} has fewer than {n_seeds} seeds after it; give a smaller one", global.seed());
    };
    let options = Options {
        data: args.data.clone(),
        seeds: (global.seed()..=last).collect(),
        quick: args.quick,
        starts: args.starts,
        models: args.models.clone(),
    };
    // Each rank reads the data again for its own runs.
    let sources: BTreeSet<String> = experiments.iter().flat_map(|e| e.data(&options)).collect();
    for source in sources {
        drop(data::open(&DataSpec { source, ..DataSpec::default() }, &Watch::new("fetching", "B"))?);
    }
    let store = team::together(Store::open(&args.output))?;
    let mut written = Vec::new();
    for experiment in experiments {
        let live = Live(Watch::new(experiment.name(), "").patient());
        let command = command(experiment, args, global, n_seeds);
        let n_threads = rayon::current_num_threads();
        let made = match args.finished {
            true => experiment.report(&options, &command, &store),
            false => experiment.run(&options, &command, &store, n_threads, &live),
        };
        let report = made.with_context(|| {
            format!("{}; finished runs are kept, and the same command continues", experiment.name())
        })?;
        drop(live);
        let files = team::together(write::write(&report, &args.output))?;
        written.push((report, files));
    }
    let json: Vec<_> = written
        .iter()
        .map(|(report, files)| json!({ "experiment": report.experiment, "quick": report.quick, "seeds": report.seeds,
            "core_seconds": report.core_seconds, "tables": report.tables, "notes": report.notes, "folder": args.output,
            "files": files }))
        .collect();
    out.print(&json, || written.iter().map(|(report, files)| text(report, files, &args.output)).collect())
}

/// The command that repeats this experiment.
fn command(experiment: Experiment, args: &ReproduceArgs, global: &Global, n_seeds: u16) -> String {
    let mut command = format!("mclv reproduce {} --seeds {n_seeds}", experiment.name());
    if args.quick {
        command.push_str(" --quick");
    }
    if let Some(data) = args.data.as_ref().filter(|data| *data != "mnist") {
        command.push_str(&format!(" --data {}", shell::quoted(data)));
    }
    if args.models.is_some() {
        command.push_str(" --models FOLDER");
    }
    if global.seed() != 0 {
        command.push_str(&format!(" --seed {}", global.seed()));
    }
    if args.starts != Starts::Weighted {
        command.push_str(" --starts fresh");
    }
    command
}

fn text(report: &Report, files: &[String], folder: &Path) -> String {
    let mut text = format!("{}\n\n", report.title);
    if report.quick {
        text.push_str(
            "Quick run: it has fewer epochs, seeds and tours than the paper. Do not compare its results with the \
             paper.\n\n",
        );
    }
    for part in &report.tables {
        let header: Vec<&str> = part.columns.iter().map(|(name, _)| name.as_str()).collect();
        let right: Vec<usize> = (1..header.len()).collect();
        let rows = part.rows.iter().map(|row| {
            row.iter().zip(&part.columns).map(|(cell, (_, digits))| write::cell_text(cell, *digits)).collect()
        });
        text.push_str(&format!("{}\n{}\n\n", part.title, table(&header, &right, rows)));
    }
    for note in &report.notes {
        text.push_str(&format!("{note}\n"));
    }
    let time = human_seconds(report.core_seconds);
    text.push_str(&format!(
        "{} runs took {time} of one core; wrote to {}: {}\n\n",
        report.runs.len(),
        folder.display(),
        files.join(" ")
    ));
    text
}

fn list(out: &Output) -> anyhow::Result<()> {
    let json: Vec<_> =
        Experiment::ALL.iter().map(|e| json!({ "name": e.name(), "title": e.title() })).collect();
    let rows = Experiment::ALL.iter().map(|e| vec![e.name().to_owned(), e.title().to_owned()]);
    out.print(&json, || table(&["experiment", "what it shows"], &[], rows))
}

/// Builds figures and pages again from stored results, or checks that they are up to date.
fn render(args: &ReproduceArgs, folder: &Path, out: &Output) -> anyhow::Result<()> {
    ensure!(
        folder.is_dir(),
        "{} is not a folder of results; create one with mclv reproduce",
        folder.display()
    );
    let mut reports = Vec::new();
    for experiment in Experiment::ALL {
        reports.extend(write::read(folder, experiment.name())?);
    }
    let figures = args.figures.as_deref().unwrap_or(folder);
    let mut files = Vec::new();
    let mut stale = Vec::new();
    let mut links = Vec::new();
    for path in &args.page {
        let old = read_text(path, MAX_TEXT)?;
        let link = link(path, figures);
        let new = page::refresh(&old, path, folder, &link)?;
        links.push((link, new.clone()));
        if new != old {
            stale.push((path.clone(), new.into_bytes()));
        }
    }
    let is_shown = |name: &str| links.iter().any(|(link, page)| page.contains(&format!("]({link}{name})")));
    for report in &reports {
        for (name, bytes) in write::derived(report) {
            if args.figures.is_some() && !is_shown(&name) {
                continue;
            }
            let path = figures.join(name);
            // Machines round pixels differently, so a .png only has to exist.
            let is_pixels = args.check && path.extension().is_some_and(|e| e == "png");
            let old = read_file(&path, MAX_FIGURE).ok();
            if old.as_deref() != Some(&bytes[..]) && !(is_pixels && old.is_some()) {
                stale.push((path, bytes));
            }
        }
    }
    if args.check {
        let names: Vec<String> = stale.iter().map(|(path, _)| path.display().to_string()).collect();
        ensure!(
            names.is_empty(),
            "these files are out of date: {}; run the command without --check to update them",
            names.join(", ")
        );
    }
    if !stale.is_empty() {
        std::fs::create_dir_all(figures).with_context(|| format!("cannot create {}", figures.display()))?;
    }
    for (path, bytes) in stale {
        write_atomically(&path, &bytes)?;
        files.push(path.display().to_string());
    }
    let json = json!({ "reports": reports.len(), "wrote": files });
    out.print(&json, || match files.len() {
        0 => format!("{} reports; all files are up to date\n", reports.len()),
        _ => format!("{} reports; wrote {}\n", reports.len(), files.join(" ")),
    })
}

/// Returns how a page links to a folder; both paths start where the command runs.
fn link(page: &Path, folder: &Path) -> String {
    let page: Vec<_> = page.parent().map_or(Vec::new(), |parent| parent.components().collect());
    let folder: Vec<_> = folder.components().collect();
    let n_common = page.iter().zip(&folder).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("../".to_owned(), page.len() - n_common);
    let down = folder[n_common..].iter().map(|part| format!("{}/", part.as_os_str().to_string_lossy()));
    up.chain(down).collect()
}

/// A progress bar, and a log line for each finished run.
pub(crate) struct Live(pub(crate) Watch);

impl Progress for Live {
    fn report(&self, done: u64, total: u64) {
        self.0.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn may_fetch(&self, how: &str) -> bool {
        self.0.may_fetch(how)
    }
}

impl Listener for Live {
    fn finished(&self, name: &str, seconds: f64, done: usize, total: usize) {
        let text = format!("{done} of {total}: {name}, {}", human_seconds(seconds));
        tracing::info!("{text}");
        self.0.say(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_find_figures_in_any_folder() {
        for (page, folder, expected) in [
            ("README.md", "docs/figures", "docs/figures/"),
            ("docs/page.md", "docs/figures", "figures/"),
            ("docs/background/page.md", "docs/figures", "../figures/"),
            ("docs/page.md", "docs", ""),
        ] {
            assert_eq!(link(Path::new(page), Path::new(folder)), expected, "{page}, {folder}");
        }
    }
}
