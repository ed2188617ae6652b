//! Shares of modes.

use crate::arrays::PyRows;
use crate::errors::exception;
use crate::model::Model;
use crate::partition::{Limits, in_words};
use crate::work;
use mclv::data::Labels;
use mclv::modes::{FALSE_ALARMS, ModeMap, ModeSettings, mode_shares as shares_of};
use mclv::partition::{Inputs, Method};
use pyo3::prelude::*;
use pythonize::pythonize;
use std::sync::Arc;

/// The shares of modes in a model and in rows. `labels` are the classes of the rows, in words.
#[pyfunction]
#[pyo3(signature = (model, rows, labels, by, n_clusters, method, limits, n_threads))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn mode_shares<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &PyRows,
    labels: Option<Vec<String>>,
    by: Option<&str>,
    n_clusters: usize,
    method: Option<&str>,
    limits: Limits,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let method: Option<Method> = method.map(str::parse).transpose().map_err(exception)?;
    let by = by.map(str::parse).transpose().map_err(exception)?;
    let settings = limits.settings(&model.file.rbm, method)?;
    let labels = labels.map(|labels| Labels::from_words(&labels));
    let of_map = ModeSettings { by, n_clusters, seed: settings.seed };
    let (file, rows) = (Arc::clone(&model.file), Arc::clone(&rows.rows));
    let shares = work::finish(py, n_threads, move |line| {
        let map = ModeMap::new(&rows, labels.as_ref(), &of_map)?;
        let inputs = Inputs { rows: Some(&rows), ..Inputs::default() };
        shares_of(&file.rbm, &map, &inputs, method, &settings, line)
    })?;
    let facts = pythonize(py, &shares)?;
    facts.set_item("notes", in_words(&shares.notes))?;
    facts.set_item("verdict", shares.verdict())?;
    facts.set_item("is_judged", shares.is_judged())?;
    facts.set_item("is_bad", shares.is_bad())?;
    facts.set_item("false_alarms", FALSE_ALARMS)?;
    Ok(facts)
}
