//! How well chains mix, judged from numbers recorded along them.

use mclv::mixing::Mixing;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pythonize::pythonize;

/// Judges chains from a number recorded along each of them, a row for each chain. `None` if they
/// are too short, or if a number is not finite.
#[pyfunction]
pub(crate) fn mixing<'py>(
    py: Python<'py>,
    chains: PyReadonlyArray2<'py, f64>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let chains: Vec<Vec<f64>> = chains.as_array().outer_iter().map(|chain| chain.to_vec()).collect();
    let mixing = crate::work::quick(py, || Ok(Mixing::new(&chains)))?;
    mixing.map(|mixing| Ok(pythonize(py, &mixing)?)).transpose()
}
