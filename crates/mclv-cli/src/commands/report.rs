//! `mclv report`: an HTML page of one run or several.

use super::check_output;
use crate::output::{Output, facts};
use crate::report_args::ReportArgs;
use crate::watch::Watch;
use mclv::write_atomically;
use mclv_report::page::Page;
use mclv_report::run::{ModelView, RunFolder, several_runs, single_run};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ReportArgs, out: &Output) -> anyhow::Result<()> {
    let path = match (&args.output, args.runs.as_slice()) {
        (Some(path), _) => path.clone(),
        (None, [run]) => run.join("report.html"),
        (None, _) => PathBuf::from("report.html"),
    };
    // A report in its own run folder is made from it: making it again loses nothing.
    let force = args.force || args.output.is_none() && args.runs.len() == 1;
    check_output(&path, force, &["html", "htm"], ".html")?;
    let runs = args.runs.iter().map(|run| RunFolder::read(run)).collect::<Result<Vec<_>, _>>()?;
    let problems: Vec<String> = runs.iter().flat_map(|run| run.problems.clone()).collect();
    let page = match runs.as_slice() {
        [run] => single_run(run, &ModelView::new(run, !args.no_tours, &Watch::new("report", "tours"))?),
        _ => several_runs(runs),
    };
    let n_bytes = save(&page, &path)?;
    let json = json!({ "report": path.to_string_lossy(), "n_bytes": n_bytes, "missing": problems });
    out.print(&json, || {
        let mut lines = vec![("wrote", format!("{} ({:.0} kB)", path.display(), n_bytes as f64 / 1e3))];
        lines.extend(problems.iter().map(|problem| ("missing", problem.clone())));
        facts(&lines)
    })
}

/// Write a page; its size in bytes.
pub(crate) fn save(page: &Page, path: &Path) -> anyhow::Result<usize> {
    let html = page.html();
    write_atomically(path, html.as_bytes())?;
    Ok(html.len())
}

/// The report of a run that has ended, in its folder.
pub(crate) fn of_finished(folder: &Path) -> anyhow::Result<PathBuf> {
    let run = RunFolder::read(folder)?;
    let page = single_run(&run, &ModelView::new(&run, true, &Watch::new("report", "tours"))?);
    let path = folder.join("report.html");
    save(&page, &path)?;
    Ok(path)
}
