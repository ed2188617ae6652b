//! The statements of the paper, measured with tours.

use crate::arrays::PyRows;
use crate::errors::SettingError;
use crate::model::Model;
use crate::tours::{PyStoppingSet, check_states};
use crate::work;
use mclv::theorems::{Precision, TheoremSettings, Theorems, risk, tours_needed};
use mclv::tour::{TourEngine, TourSettings};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{depythonize, pythonize};
use std::sync::Arc;

/// The statements of the paper for a model and a stopping set.
#[pyfunction]
#[pyo3(signature = (model, stopping_set, settings, rows, wanted, n_threads))]
pub(crate) fn theorems<'py>(
    py: Python<'py>,
    model: &Model,
    stopping_set: &PyStoppingSet,
    settings: &Bound<'py, PyAny>,
    rows: Option<&PyRows>,
    wanted: (Vec<u32>, f64, f64),
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings: TourSettings =
        depythonize(settings).map_err(|e| SettingError::new_err(format!("settings: {e}")))?;
    check_states(settings.n_tours, 2, model)?;
    let (k, error, alpha) = wanted;
    let wanted = TheoremSettings { k, precision: Precision { error, alpha } };
    let (file, set) = (Arc::clone(&model.file), Arc::clone(&stopping_set.set));
    let rows = rows.map(|rows| Arc::clone(&rows.rows));
    let found = work::finish(py, n_threads, move |line| {
        let engine = TourEngine::new(&file.rbm, &set)?;
        let tours = Theorems::run(&engine, &settings, line)?;
        Theorems::measure(&engine, (&tours, &settings), rows.as_deref(), &wanted, line)
    })?;
    let facts = pythonize(py, &found)?.cast_into::<PyDict>()?;
    // Tours that are enough, and the risk of these tours, from each source of the variance.
    let needed = &found.needed;
    let of = |cv2: Option<f64>| {
        cv2.map(|cv2| {
            let risk = risk(cv2, needed.n_tours, needed.precision.error);
            (tours_needed(cv2, needed.precision), risk)
        })
    };
    let enough = PyDict::new(py);
    enough.set_item("exact", of(needed.cv2_exact))?;
    enough.set_item("bound", of(needed.cv2_bound))?;
    enough.set_item("pilot", of(needed.cv2_pilot))?;
    facts.set_item("enough", enough)?;
    Ok(facts)
}
