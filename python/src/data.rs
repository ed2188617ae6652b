//! Loads data sets by name or path, and downloads named data sets.

use crate::arrays::{PyRows, vector};
use crate::errors::SettingError;
use crate::work;
use mclv::data::{self, DataSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{depythonize, pythonize};
use std::path::PathBuf;

/// The rows, labels and provenance of a data set.
#[pyfunction]
pub(crate) fn load_data<'py>(py: Python<'py>, spec: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let spec: DataSpec = depythonize(spec).map_err(|e| SettingError::new_err(format!("settings: {e}")))?;
    let set = work::finish(py, None, |line| data::load(&spec, line))?;
    let facts = PyDict::new(py);
    facts.set_item("name", &set.name)?;
    facts.set_item("rows", PyRows::new(set.rows))?;
    let labels = set.labels;
    facts.set_item("label_names", labels.as_ref().map(|labels| labels.names.clone()))?;
    facts.set_item(
        "labels",
        labels.map(|labels| vector(py, labels.ids.into_iter().map(i64::from).collect())),
    )?;
    facts.set_item("image_shape", set.image_shape)?;
    facts.set_item("best_log_likelihood", set.best_log_likelihood)?;
    facts.set_item("provenance", pythonize(py, &set.provenance)?)?;
    Ok(facts)
}

/// Downloads the missing files of a named data set and returns the paths of all its files.
#[pyfunction]
pub(crate) fn fetch_data(py: Python<'_>, name: &str) -> PyResult<Vec<PathBuf>> {
    work::finish(py, None, |line| data::fetch(name, line))
}

/// Name, description, rows and columns of the named data sets.
#[pyfunction]
pub(crate) fn catalogue() -> Vec<(&'static str, &'static str, usize, usize)> {
    data::catalogue().into_iter().map(|set| (set.name, set.description, set.n_rows, set.n_columns)).collect()
}
