//! Computes the values that pages and figures show; `mclv-report` lays them out.

mod comparison;
mod model;
#[cfg(test)]
mod tests;
mod tours;

pub(crate) use comparison::compare;
pub(crate) use model::{Model, TrainingRows, View};
pub(crate) use tours::{tail, toured};

use mclv::partition::{Agreement, LogZ};
use mclv::train::RunRecord;
use mclv_report::page::Page;
use mclv_report::run::single_run;

/// The page of a run.
pub(crate) fn page(run: &RunRecord, view: &View) -> Page {
    let of_training = run.last_evaluated().and_then(|m| m.log_z.as_ref());
    let mut estimates: Vec<(String, &LogZ)> =
        of_training.map(|z| (z.method.to_string(), z)).into_iter().collect();
    if let Some(z) = &view.log_z {
        estimates.push((format!("{} (tours of this report)", z.method), z));
    }
    single_run(run, &view.shown, &estimates, agreement(&estimates).as_ref())
}

/// Compares the estimates; `None` if there are fewer than two.
pub(crate) fn agreement(estimates: &[(String, &LogZ)]) -> Option<Agreement> {
    (estimates.len() > 1).then(|| Agreement::of_named(estimates))
}
