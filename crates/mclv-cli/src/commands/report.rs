//! `mclv report`: writes an HTML page of one or more runs.

use super::check_output;
use crate::output::{Output, facts};
use crate::watch::Watch;
use clap::{Args, ValueHint};
use mclv::train::RunFolder;
use mclv::{write_atomically, write_inside};
use mclv_report::page::Page;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  mclv report runs/digits-1                             writes report.html into the run folder
  mclv report runs/digits-1 -o digits.html --force
  mclv report runs/pcd-* runs/lvs-* -o comparison.html  compares all these runs on one page

The report is one HTML file that works offline. For one run it shows the likelihood with error
bands, the warnings, tours, samples beside the data, pictures, and the origin of data and model. For
several runs it shows their curves, their results (mean ± standard deviation over seeds) and the
settings that differ.
It also lists what is missing or damaged in a run folder.")]
pub(crate) struct ReportArgs {
    /// Run folders, or files in them; a sweep folder stands for its chosen run
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// File to write [default: report.html, inside the run folder if there is only one run]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Leave out tours, samples and singular values; this is faster
    #[arg(long)]
    pub(crate) no_tours: bool,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &ReportArgs, out: &Output) -> anyhow::Result<()> {
    // The page of several runs goes into the current folder.
    let folder = match args.runs.as_slice() {
        [run] => RunFolder::of(run)?,
        _ => RunFolder::new(""),
    };
    let path = args.output.clone().unwrap_or_else(|| folder.report());
    // A report in its own run folder can always be built again, so overwriting it loses nothing.
    let force = args.force || args.output.is_none() && args.runs.len() == 1;
    check_output(&path, force, &["html", "htm"], ".html")?;
    let runs = args.runs.iter().map(|run| RunFolder::of(run)?.read()).collect::<Result<Vec<_>, _>>()?;
    let problems: Vec<String> = runs.iter().flat_map(|run| run.problems.clone()).collect();
    let page = mclv_view::report(runs, None, !args.no_tours, &Watch::new("report", "tours"))?;
    let n_bytes = match args.output {
        Some(_) => save(&page, &path)?,
        None => save_inside(&page, &path)?,
    };
    let json = json!({ "report": path.to_string_lossy(), "n_bytes": n_bytes, "missing": problems });
    out.print(&json, || {
        let mut lines = vec![("wrote", format!("{} ({:.0} kB)", path.display(), n_bytes as f64 / 1e3))];
        lines.extend(problems.iter().map(|problem| ("missing", problem.clone())));
        facts(&lines)
    })
}

/// Writes a page that the user has named, and returns its size in bytes.
pub(crate) fn save(page: &Page, path: &Path) -> anyhow::Result<usize> {
    let html = page.html();
    write_atomically(path, html.as_bytes())?;
    Ok(html.len())
}

/// Writes a page into a folder that `mclv` keeps, and returns its size in bytes.
pub(crate) fn save_inside(page: &Page, path: &Path) -> anyhow::Result<usize> {
    let html = page.html();
    write_inside(path, html.as_bytes())?;
    Ok(html.len())
}

/// Writes the report of a finished run into its folder.
pub(crate) fn of_finished(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = RunFolder::new(folder);
    let page = mclv_view::report(vec![folder.read()?], None, true, &Watch::new("report", "tours"))?;
    save_inside(&page, &folder.report())?;
    Ok(folder.report())
}
