//! Reads runs and computes the values that pages and figures show; `mclv-report` lays them out.
#![forbid(unsafe_code)]

mod comparison;
mod figure;
mod model;
#[cfg(test)]
mod tests;
mod tours;

pub use comparison::compare;
pub use figure::{PlotSettings, Plotted, What, plot};
pub use model::{TrainingRows, View};
pub use tours::{tail, toured};

use mclv::Result;
use mclv::data::Dataset;
use mclv::partition::{Agreement, LogZ};
use mclv::progress::Progress;
use mclv::train::RunRecord;
use mclv_report::page::Page;
use mclv_report::run::{several_runs, single_run};

/// Makes the page of one run, or the page that compares several. The training rows of one run may be
/// `given`. Without `is_whole`, the page has no samples and no tours.
///
/// # Errors
/// If the listener asks to stop.
pub fn report(
    runs: Vec<RunRecord>,
    given: Option<&Dataset>,
    is_whole: bool,
    progress: &dyn Progress,
) -> Result<Page> {
    match runs.as_slice() {
        [run] => Ok(page(run, &View::new(run, given, is_whole, progress)?)),
        _ => Ok(several_runs(&compare(runs))),
    }
}

/// Makes the page of a run from values that are computed already.
pub fn page(run: &RunRecord, view: &View) -> Page {
    let of_training = run.last_evaluated().and_then(|m| m.log_z.as_ref());
    let mut estimates: Vec<(String, &LogZ)> =
        of_training.map(|z| (z.method.to_string(), z)).into_iter().collect();
    if let Some(z) = &view.log_z {
        estimates.push((format!("{} (tours of this report)", z.method), z));
    }
    single_run(run, &view.shown, &estimates, agreement(&estimates).as_ref())
}

/// Compares the estimates; `None` if there are fewer than two.
pub fn agreement(estimates: &[(String, &LogZ)]) -> Option<Agreement> {
    (estimates.len() > 1).then(|| Agreement::of_named(estimates))
}
