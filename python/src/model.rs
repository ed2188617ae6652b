//! A model with its provenance, its energies, means and samples.

use crate::arrays::{PyRows, bits_to_array, matrix, reals_to_array, vector};
use crate::errors::{DataError, exception};
use crate::work::{self, check_memory};
use mclv::data::{RealRows, Rows};
use mclv::progress::Progress;
use mclv::sample::{Given, SampleSettings, Start, sample};
use mclv::train::find_model;
use mclv::{Error, ModelFile, Rbm};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows per unit of parallel work in the library.
const BLOCK: usize = 128;

/// Visible times hidden units times blocks of rows between two checks for Ctrl-C. The
/// pseudo-likelihood takes the longest: about a second.
const PIECE: usize = 1 << 22;

/// The smallest number of blocks in a piece for each thread.
const BLOCKS_PER_THREAD: usize = 4;

/// Samples, their means if asked for, and how they were drawn.
type PySamples<'py> = (Bound<'py, PyArray2<u8>>, Option<Bound<'py, PyArray2<f32>>>, Bound<'py, PyAny>);

/// A model and its provenance.
#[pyclass(frozen, module = "mclv._mclv")]
pub(crate) struct Model {
    pub(crate) file: Arc<ModelFile>,
}

impl Model {
    pub(crate) fn new(file: ModelFile) -> Self {
        Self { file: Arc::new(file) }
    }

    pub(crate) fn rbm(&self) -> &Rbm {
        &self.file.rbm
    }

    /// Computes values for each row, in pieces: Ctrl-C is heard between two of them.
    fn by_row<T: Send>(
        &self,
        py: Python<'_>,
        rows: &PyRows,
        n_threads: Option<usize>,
        what: impl Fn(&Rbm, &Rows) -> mclv::Result<Vec<T>> + Send,
    ) -> PyResult<Vec<T>> {
        // The largest result is a matrix of means.
        let n_units = self.rbm().n_visible().max(self.rbm().n_hidden());
        check_memory("the result", 4 * rows.rows.n_rows() as u128 * n_units as u128)?;
        let (file, rows) = (Arc::clone(&self.file), Arc::clone(&rows.rows));
        let n_weights = self.rbm().n_visible().saturating_mul(self.rbm().n_hidden());
        work::finish(py, n_threads, move |line| {
            let n_blocks = (PIECE / n_weights).max(BLOCKS_PER_THREAD * rayon::current_num_threads());
            let n_each = n_blocks * BLOCK;
            if rows.n_rows() <= n_each {
                return what(&file.rbm, &rows);
            }
            let mut values = Vec::new();
            for first in (0..rows.n_rows()).step_by(n_each) {
                if line.cancelled() {
                    return Err(Error::Cancelled);
                }
                let piece: Vec<usize> = (first..rows.n_rows().min(first + n_each)).collect();
                values.extend(what(&file.rbm, &rows.select(&piece))?);
            }
            Ok(values)
        })
    }

    /// A matrix of means.
    fn means<'py>(
        &self,
        py: Python<'py>,
        rows: &PyRows,
        n_threads: Option<usize>,
        n_columns: usize,
        what: impl Fn(&Rbm, &Rows) -> mclv::Result<RealRows> + Sync,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let means =
            self.by_row(py, rows, n_threads, |rbm, rows| what(rbm, rows).map(RealRows::into_values))?;
        matrix(py, means, rows.rows.n_rows(), n_columns)
    }
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (weights, visible_bias, hidden_bias, provenance=None))]
    fn from_arrays(
        weights: PyReadonlyArray2<'_, f32>,
        visible_bias: PyReadonlyArray1<'_, f32>,
        hidden_bias: PyReadonlyArray1<'_, f32>,
        provenance: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let &[n_visible, n_hidden] = weights.shape() else { unreachable!("two dimensions") };
        // A view can repeat one row without end.
        check_memory("the model", 12 * n_visible as u128 * n_hidden as u128)?;
        let w: Vec<f32> = weights.as_array().iter().copied().collect();
        let (b, a): (Vec<f32>, Vec<f32>) = (
            visible_bias.as_array().iter().copied().collect(),
            hidden_bias.as_array().iter().copied().collect(),
        );
        let mut file = ModelFile::new(Rbm::new(n_visible, n_hidden, &w, &b, &a).map_err(exception)?);
        if let Some(provenance) = provenance {
            file.provenance =
                depythonize(provenance).map_err(|e| DataError::new_err(format!("provenance: {e}")))?;
        }
        Ok(Self::new(file))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        work::quick(py, || ModelFile::load(find_model(path)?.0)).map(Self::new)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        work::quick(py, || self.file.save(path))
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.rbm().n_visible(), self.rbm().n_hidden())
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let rbm = self.rbm();
        matrix(py, rbm.weights(), rbm.n_visible(), rbm.n_hidden())
    }

    #[getter]
    fn visible_bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        vector(py, self.rbm().visible_bias().to_vec())
    }

    #[getter]
    fn hidden_bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        vector(py, self.rbm().hidden_bias().to_vec())
    }

    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.file.provenance)?)
    }

    fn equals(&self, other: &Self) -> bool {
        self.rbm() == other.rbm()
    }

    fn free_energy<'py>(
        &self,
        py: Python<'py>,
        rows: &PyRows,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(vector(py, self.by_row(py, rows, n_threads, Rbm::free_energy)?))
    }

    fn pseudo_log_likelihood<'py>(
        &self,
        py: Python<'py>,
        rows: &PyRows,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(vector(py, self.by_row(py, rows, n_threads, Rbm::pseudo_log_likelihood)?))
    }

    fn mean_hidden<'py>(
        &self,
        py: Python<'py>,
        rows: &PyRows,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.means(py, rows, n_threads, self.rbm().n_hidden(), Rbm::mean_h_from_v)
    }

    fn mean_visible<'py>(
        &self,
        py: Python<'py>,
        rows: &PyRows,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.means(py, rows, n_threads, self.rbm().n_visible(), Rbm::mean_v_from_h)
    }

    fn reconstruction_error(&self, py: Python<'_>, rows: &PyRows, n_threads: Option<usize>) -> PyResult<f64> {
        let (file, rows) = (Arc::clone(&self.file), Arc::clone(&rows.rows));
        work::finish(py, n_threads, move |_| file.rbm.reconstruction_error(&rows))
    }

    /// Samples by a named method, or by the one that suits. Gibbs chains start at `start`, or at
    /// the biases. `given` has the known units, in one row, and their values.
    #[pyo3(signature = (n_samples, method, burn_in, means, seed, start, given, n_threads))]
    #[allow(clippy::too_many_arguments)]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n_samples: usize,
        method: Option<&str>,
        burn_in: Option<u32>,
        means: bool,
        seed: u64,
        start: Option<&PyRows>,
        given: Option<(PyRef<'py, PyRows>, PyRef<'py, PyRows>)>,
        n_threads: Option<usize>,
    ) -> PyResult<PySamples<'py>> {
        let n_values = n_samples as u128 * self.rbm().n_visible() as u128;
        check_memory(&format!("{n_samples} samples"), n_values * if means { 6 } else { 2 })?;
        let given = given.map(|(known, values)| {
            Given::new(known.bits()?.clone(), values.bits()?.clone()).map_err(exception)
        });
        let given = given.transpose()?;
        let method = method.map(str::parse).transpose().map_err(exception)?;
        let settings = SampleSettings { n_samples, method, burn_in, means, seed };
        let (file, start) = (Arc::clone(&self.file), start.map(|rows| Arc::clone(&rows.rows)));
        let samples = work::finish(py, n_threads, move |line| {
            let start = start.as_deref().map_or(Start::Bias, Start::Rows);
            sample(&file.rbm, &settings, start, given.as_ref(), line)
        })?;
        let facts = json!({ "method": samples.method, "burn_in": samples.burn_in, "mixing": samples.mixing,
            "ladders": samples.ladders, "gibbs": samples.gibbs,
            "doubt": samples.doubt().map(|doubt| doubt.to_string()) });
        let facts = pythonize(py, &facts)?;
        let means = samples.means.map(|means| reals_to_array(py, means)).transpose()?;
        Ok((bits_to_array(py, &samples.v)?, means, facts))
    }
}
