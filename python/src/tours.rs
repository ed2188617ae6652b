//! Stopping sets, and tours as arrays.

use crate::arrays::{PyRows, bits_to_array, vector};
use crate::errors::{SettingError, exception};
use crate::model::Model;
use crate::{partition, work};
use mclv::StoppingSet;
use mclv::partition::{N_SCOUTS, mclv_from_tours};
use mclv::tour::{Conclusion, End, HiddenChain, PilotSettings, TourEngine, TourSettings};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{depythonize, pythonize};
use std::path::PathBuf;
use std::sync::Arc;

/// Distinct hidden states.
#[pyclass(frozen, name = "StoppingSet", module = "mclv._mclv")]
pub(crate) struct PyStoppingSet {
    pub(crate) set: Arc<StoppingSet>,
}

impl PyStoppingSet {
    fn new(set: StoppingSet) -> Self {
        Self { set: Arc::new(set) }
    }
}

#[pymethods]
impl PyStoppingSet {
    #[staticmethod]
    fn from_states(py: Python<'_>, states: &PyRows) -> PyResult<Self> {
        let bits = states.bits()?;
        work::quick(py, || Ok(StoppingSet::new(bits))).map(Self::new)
    }

    /// `n_per_row` hidden states of each row.
    #[staticmethod]
    fn from_data(
        py: Python<'_>,
        model: &Model,
        rows: &PyRows,
        n_per_row: usize,
        seed: u64,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let (file, rows) = (Arc::clone(&model.file), Arc::clone(&rows.rows));
        check_states(rows.n_rows(), n_per_row, model)?;
        let all: Vec<usize> = (0..rows.n_rows()).collect();
        let set =
            work::finish(py, n_threads, |_| StoppingSet::draw(&file.rbm, &rows, &all, n_per_row, seed, 0))?;
        Ok(Self::new(set))
    }

    /// The states that pilot chains visit.
    #[staticmethod]
    fn from_chains(
        py: Python<'_>,
        model: &Model,
        n_chains: usize,
        burn_in: u32,
        n_steps: u32,
        seed: u64,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        check_states(n_chains, n_steps as usize, model)?;
        let file = Arc::clone(&model.file);
        let settings = PilotSettings { n_chains, burn_in, n_steps, seed };
        let set = work::finish(py, n_threads, |_| StoppingSet::from_pilot(&file.rbm, None, &settings))?;
        Ok(Self::new(set))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        work::quick(py, || StoppingSet::load(&path)).map(Self::new)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        work::quick(py, || self.set.save(&path))
    }

    fn __len__(&self) -> usize {
        self.set.len()
    }

    #[getter]
    fn n_hidden(&self) -> usize {
        self.set.states().n_bits()
    }

    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u8>>> {
        bits_to_array(py, self.set.states())
    }

    /// The row of each state in the set; −1 for states that are not in it.
    fn find(&self, states: &PyRows) -> PyResult<Vec<i64>> {
        let bits = states.bits()?;
        let (expected, got) = (self.n_hidden(), bits.n_bits());
        if expected != got {
            let what = "hidden units of the states".into();
            return Err(exception(mclv::Error::ShapeMismatch { what, expected, got }));
        }
        Ok((0..bits.n_rows()).map(|r| self.set.find(bits.row(r)).map_or(-1, |k| k as i64)).collect())
    }
}

/// Refuses sets and tours that do not fit into memory.
pub(crate) fn check_states(n: usize, n_each: usize, model: &Model) -> PyResult<()> {
    let n_states = n.saturating_mul(n_each);
    // The number of each state, and how its tour went.
    let of_numbers = 16 * n_states as u128;
    let of_bits = work::bytes_of_bits(n_states, model.rbm().n_hidden());
    work::check_memory(&format!("{n_states} states"), of_bits + of_numbers)
}

/// Tours from `π_S`, or from rows if there are any.
#[pyfunction]
#[pyo3(signature = (model, stopping_set, settings, rows, n_threads))]
pub(crate) fn tours<'py>(
    py: Python<'py>,
    model: &Model,
    stopping_set: &PyStoppingSet,
    settings: &Bound<'py, PyAny>,
    rows: Option<&PyRows>,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings: TourSettings =
        depythonize(settings).map_err(|e| SettingError::new_err(format!("settings: {e}")))?;
    check_states(settings.n_tours, 1, model)?;
    let (file, set) = (Arc::clone(&model.file), Arc::clone(&stopping_set.set));
    let rows = rows.map(|rows| Arc::clone(&rows.rows));
    let (tours, log_z, conclusion) = work::finish(py, n_threads, move |line| {
        let engine = TourEngine::new(&file.rbm, &set)?;
        let (tours, log_z) = match rows {
            None => {
                let tours = engine.run(&settings, line)?;
                let log_z = mclv_from_tours(&engine, &tours, N_SCOUTS, settings.seed, line)?;
                (tours, Some(log_z))
            }
            // Tours from rows do not estimate Z.
            Some(rows) => (engine.run_from_rows(&rows, &settings, line)?, None),
        };
        let chain = HiddenChain::if_quick(&file.rbm);
        let theory = chain.as_ref().map(|chain| chain.tours(&set)).transpose()?;
        let conclusion = Conclusion::new(&file.rbm, &set, &tours, theory.as_ref(), settings.seed)?;
        Ok((tours, log_z, conclusion))
    })?;
    let all = tours.as_slice();
    let end = |tour: &mclv::tour::Tour| match tour.end {
        End::Cut => -1,
        End::OwnStart => i64::from(tour.start),
        End::Elsewhere(state) => i64::from(state),
    };
    let ccdf = tours.ccdf();
    let facts = PyDict::new(py);
    facts.set_item("starts", vector(py, all.iter().map(|t| i64::from(t.start)).collect()))?;
    facts.set_item("lengths", vector(py, all.iter().map(|t| i64::from(t.length)).collect()))?;
    facts.set_item("ends", vector(py, all.iter().map(end).collect()))?;
    facts.set_item("own_start", vector(py, all.iter().map(|t| t.end == End::OwnStart).collect()))?;
    facts.set_item("ccdf_k", vector(py, ccdf.points.iter().map(|p| i64::from(p.k)).collect()))?;
    facts.set_item("ccdf_p", vector(py, ccdf.points.iter().map(|p| p.p).collect()))?;
    facts.set_item("ccdf_low", vector(py, ccdf.points.iter().map(|p| p.low).collect()))?;
    facts.set_item("ccdf_high", vector(py, ccdf.points.iter().map(|p| p.high).collect()))?;
    facts.set_item("known_up_to", ccdf.known_up_to)?;
    facts.set_item("mean_length", pythonize(py, &tours.mean_length())?)?;
    facts.set_item("tail_fit", pythonize(py, &tours.tail_fit())?)?;
    facts.set_item("log_z_s", tours.log_z_s())?;
    facts.set_item("n_steps", tours.n_steps())?;
    facts.set_item("seconds", tours.seconds())?;
    let described = pythonize(py, &conclusion)?.cast_into::<PyDict>()?;
    described.set_item("text", conclusion.to_string())?;
    described.set_item("own_starts", conclusion.own_starts())?;
    facts.set_item("conclusion", described)?;
    facts.set_item("log_z", log_z.map(|z| partition::describe(py, &z)).transpose()?)?;
    Ok(facts)
}
