//! `mclv report`: an HTML page of one run or several.

use super::check_output;
use crate::output::{Output, facts};
use crate::view::{self, View};
use crate::watch::Watch;
use clap::{Args, ValueHint};
use mclv::train::{RunFolder, RunRecord};
use mclv::write_atomically;
use mclv_report::page::Page;
use mclv_report::run::several_runs;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  mclv report runs/digits-1                                  report.html in the run folder
  mclv report runs/digits-1 -o digits.html --force
  mclv report runs/pcd-* runs/lvs-* -o comparison.html       curves over each other, a table to sort

One HTML file, with nothing to fetch when it is looked at: mail it, print it, keep it. Of one run
it shows the likelihood with its error bands, what the guards said, tours, pictures and where
everything came from; of several their curves, results (mean ± standard deviation over seeds) and
the settings that differ. What is missing or damaged in a run folder is said.")]
pub(crate) struct ReportArgs {
    /// Run folders
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// The file to write [default: report.html, of one run in its folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Make no tours of the model: quicker
    #[arg(long)]
    pub(crate) no_tours: bool,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &ReportArgs, out: &Output) -> anyhow::Result<()> {
    // The page of several runs goes where the user is.
    let folder = match args.runs.as_slice() {
        [run] => RunFolder::new(run),
        _ => RunFolder::new(""),
    };
    let path = args.output.clone().unwrap_or_else(|| folder.report());
    // A report in its own run folder is made from it: making it again loses nothing.
    let force = args.force || args.output.is_none() && args.runs.len() == 1;
    check_output(&path, force, &["html", "htm"], ".html")?;
    let runs = args.runs.iter().map(|run| RunFolder::new(run).read()).collect::<Result<Vec<_>, _>>()?;
    let problems: Vec<String> = runs.iter().flat_map(|run| run.problems.clone()).collect();
    let page = match runs.as_slice() {
        [run] => page(run, !args.no_tours)?,
        _ => several_runs(&view::compare(runs)),
    };
    let n_bytes = save(&page, &path)?;
    let json = json!({ "report": path.to_string_lossy(), "n_bytes": n_bytes, "missing": problems });
    out.print(&json, || {
        let mut lines = vec![("wrote", format!("{} ({:.0} kB)", path.display(), n_bytes as f64 / 1e3))];
        lines.extend(problems.iter().map(|problem| ("missing", problem.clone())));
        facts(&lines)
    })
}

fn page(run: &RunRecord, with_tours: bool) -> anyhow::Result<Page> {
    Ok(view::page(run, &View::new(run, with_tours, &Watch::new("report", "tours"))?))
}

/// Write a page; its size in bytes.
pub(crate) fn save(page: &Page, path: &Path) -> anyhow::Result<usize> {
    let html = page.html();
    write_atomically(path, html.as_bytes())?;
    Ok(html.len())
}

/// The report of a run that has ended, in its folder.
pub(crate) fn of_finished(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = RunFolder::new(folder);
    save(&page(&folder.read()?, true)?, &folder.report())?;
    Ok(folder.report())
}
