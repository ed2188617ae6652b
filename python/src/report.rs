//! Pages and figures of runs.

use crate::arrays::PyRows;
use crate::errors::exception;
use crate::work;
use mclv::data::{Dataset, Rows};
use mclv::train::RunFolder;
use mclv::{Error, write_atomically};
use mclv_report::figure::save;
use mclv_view::{PlotSettings, What};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use std::path::PathBuf;
use std::sync::Arc;

/// The records of runs, and the given training rows as a data set.
fn read(
    runs: &[PathBuf],
    rows: Option<&Arc<Rows>>,
) -> mclv::Result<(Vec<mclv::train::RunRecord>, Option<Dataset>)> {
    let records = runs.iter().map(|run| RunFolder::of(run)?.read()).collect::<mclv::Result<Vec<_>>>()?;
    Ok((records, rows.map(|rows| Dataset::from_rows("memory", Rows::clone(rows)))))
}

/// Writes the page of one or more runs. Returns what is missing in their folders.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    runs: Vec<PathBuf>,
    output: PathBuf,
    rows: Option<&PyRows>,
    is_whole: bool,
    n_threads: Option<usize>,
) -> PyResult<Vec<String>> {
    let rows = rows.map(|rows| Arc::clone(&rows.rows));
    work::finish(py, n_threads, move |line| {
        let (records, given) = read(&runs, rows.as_ref())?;
        let missing = records.iter().flat_map(|run| run.problems.clone()).collect();
        let page = mclv_view::report(records, given.as_ref(), is_whole, line)?;
        write_atomically(&output, page.html().as_bytes())?;
        Ok(missing)
    })
}

/// Draws a figure of one or more runs. Returns its note and its warning, if it has some.
#[pyfunction]
pub(crate) fn plot(
    py: Python<'_>,
    figure: &str,
    runs: Vec<PathBuf>,
    output: PathBuf,
    rows: Option<&PyRows>,
    options: &Bound<'_, PyDict>,
    n_threads: Option<usize>,
) -> PyResult<(Option<String>, Option<String>)> {
    let what = What::named(figure).map_err(exception)?;
    let text = |name: &str| -> PyResult<Option<String>> {
        options.get_item(name)?.map_or(Ok(None), |value| value.extract())
    };
    let settings = PlotSettings {
        title: text("title")?,
        x_label: text("x_label")?,
        y_label: text("y_label")?,
        is_against_time: text("against")?.as_deref() == Some("time"),
        mean: options.get_item("mean")?.map_or(Ok(false), |value| value.extract())?,
        scale: options.get_item("scale")?.map_or(Ok(None), |value| value.extract())?,
    };
    let rows = rows.map(|rows| Arc::clone(&rows.rows));
    work::finish(py, n_threads, move |line| {
        let (records, given) = read(&runs, rows.as_ref())?;
        let plotted = mclv_view::plot(what, &records, given.as_ref(), &settings, line)?;
        save(plotted.drawing.as_ref(), &output)?;
        Ok((plotted.note, plotted.warning))
    })
}

/// The run folder that a path stands for: the settings of the run, where its rows come from, its
/// epochs, and whether it was judged by validation rows of its own.
#[pyfunction]
pub(crate) fn run_facts<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    let facts = work::quick(py, move || {
        let folder = RunFolder::of(&path)?;
        let (input, metrics) = (folder.read_input()?, folder.read_metrics()?);
        let own = input.train.check_without_rows()?.validation_fraction.is_none();
        let is_validated = own && metrics.iter().any(|m| m.validation_log_likelihood.is_some());
        Ok::<_, Error>(
            serde_json::json!({ "folder": folder.path(), "source": input.data.source, "is_validated": is_validated,
            "snapshots": folder.snapshot_epochs().into_iter().map(|epoch| folder.snapshot(epoch)).collect::<Vec<_>>() }),
        )
    })?;
    Ok(pythonize(py, &facts)?)
}
