//! The native part of the Python package `mclv`: rows, models and long work. The public interface
//! is in `mclv/*.py`.

#![forbid(unsafe_code)]

mod arrays;
mod data;
mod errors;
mod lab;
mod mixing;
mod model;
mod modes;
mod partition;
mod report;
mod theorems;
mod tours;
mod train;
mod work;

use pyo3::prelude::*;

#[pymodule]
fn _mclv(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrays::PyRows>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<train::PyFeed>()?;
    module.add_class::<tours::PyStoppingSet>()?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(train::resume, module)?)?;
    module.add_function(wrap_pyfunction!(report::report, module)?)?;
    module.add_function(wrap_pyfunction!(report::plot, module)?)?;
    module.add_function(wrap_pyfunction!(report::run_facts, module)?)?;
    module.add_function(wrap_pyfunction!(train::setting_help, module)?)?;
    module.add_function(wrap_pyfunction!(mixing::mixing, module)?)?;
    module.add_function(wrap_pyfunction!(partition::log_partition, module)?)?;
    module.add_function(wrap_pyfunction!(partition::likelihood, module)?)?;
    module.add_function(wrap_pyfunction!(tours::tours, module)?)?;
    module.add_function(wrap_pyfunction!(theorems::theorems, module)?)?;
    module.add_function(wrap_pyfunction!(modes::mode_shares, module)?)?;
    module.add_function(wrap_pyfunction!(lab::lab, module)?)?;
    module.add_function(wrap_pyfunction!(data::load_data, module)?)?;
    module.add_function(wrap_pyfunction!(data::fetch_data, module)?)?;
    module.add_function(wrap_pyfunction!(data::catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(kernels, module)?)?;
    Ok(())
}

/// The instruction set that the kernels use on this machine.
#[pyfunction]
fn kernels() -> &'static str {
    mclv::kernels()
}
