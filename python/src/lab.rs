//! The laboratory for gradients.

use crate::arrays::PyRows;
use crate::model::Model;
use crate::work;
use mclv::lab::{FALSE_ALARMS, LabSettings, lab as measure};
use pyo3::prelude::*;
use pythonize::pythonize;
use std::sync::Arc;

/// Bias, variance and cost of estimators at the parameters of a model.
#[pyfunction]
#[pyo3(signature = (model, rows, estimators, n_replicates, batch_size, burn_in, n_reference, seed, n_threads))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn lab<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &PyRows,
    estimators: Vec<String>,
    n_replicates: usize,
    batch_size: usize,
    burn_in: usize,
    n_reference: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let settings = LabSettings { estimators, n_replicates, batch_size, burn_in, n_reference, seed };
    let (file, rows) = (Arc::clone(&model.file), Arc::clone(&rows.rows));
    let found = work::finish(py, n_threads, move |line| measure(&file.rbm, &rows, &settings, line))?;
    let facts = pythonize(py, &found)?;
    let reference = facts.get_item("reference")?;
    reference.set_item("doubt", found.reference.doubt.map(|doubt| doubt.to_string()))?;
    for (k, estimator) in found.estimators.iter().enumerate() {
        let of = facts.get_item("estimators")?.get_item(k)?;
        of.set_item("notes", estimator.notes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        of.set_item("is_biased", estimator.bias.map(|bias| bias.is_biased()))?;
        of.set_item("linear_is_biased", estimator.linear.map(|linear| linear.is_biased()))?;
    }
    facts.set_item("false_alarms", FALSE_ALARMS)?;
    Ok(facts)
}
