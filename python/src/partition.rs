//! Log Z by any method, and likelihoods with it.

use crate::arrays::PyRows;
use crate::errors::{DataError, exception};
use crate::model::Model;
use crate::tours::PyStoppingSet;
use crate::work;
use mclv::Rbm;
use mclv::partition::{Budget, Effort, Inputs, Ladder, LogZ, Method, MethodSettings, Note, Plan, StepLimit};
use mclv::settings::{Spelling, spell};
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use std::path::PathBuf;
use std::sync::Arc;

/// A number of steps, or a word such as `none`.
#[derive(FromPyObject)]
enum MaxSteps {
    Number(u64),
    Word(String),
}

/// Limits on the work of the methods. The library decides those that are `None`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Limits {
    n_tours: Option<usize>,
    target_se: Option<f64>,
    samples_per_row: Option<usize>,
    max_steps: Option<MaxSteps>,
    n_chains: Option<usize>,
    n_betas: Option<usize>,
    time_limit: Option<f64>,
    seed: u64,
}

impl Limits {
    pub(crate) fn settings(&self, rbm: &Rbm, method: Option<Method>) -> PyResult<MethodSettings> {
        let n_units = rbm.n_visible().saturating_add(rbm.n_hidden());
        let n_chains = self.n_chains.unwrap_or(0).max(self.n_tours.unwrap_or(0));
        let of_chains = 2 * work::bytes_of_bits(n_chains, n_units) + 32 * n_chains as u128;
        work::check_memory("the chains", of_chains)?;
        work::check_memory("the temperatures", 16 * self.n_betas.unwrap_or(0) as u128)?;
        let budget = Budget::command(rbm.n_visible(), rbm.n_hidden());
        let default = MethodSettings { budget, ..MethodSettings::default() };
        Ok(MethodSettings {
            effort: match (self.n_tours, self.target_se) {
                (Some(n), _) => Effort::Tours(n),
                (None, Some(target)) => Effort::TargetSe(target),
                (None, None) => default.effort,
            },
            samples_per_row: self.samples_per_row,
            budget: Budget {
                // More if the user chose enumeration by name.
                seconds: self.time_limit.unwrap_or(match method {
                    Some(Method::Exact) => 3600.0,
                    _ => default.budget.seconds,
                }),
                max_steps: match &self.max_steps {
                    None => default.budget.max_steps,
                    Some(MaxSteps::Number(n)) => StepLimit::Steps(*n),
                    Some(MaxSteps::Word(word)) => word.parse().map_err(exception)?,
                },
                n_chains: self.n_chains.unwrap_or(default.budget.n_chains),
                n_betas: self.n_betas.unwrap_or(default.budget.n_betas),
                ..default.budget
            },
            // A size that the caller gave is kept.
            ais_target_se: self.target_se.filter(|_| self.n_betas.is_none()),
            bar_target_se: self.target_se,
            seed: self.seed,
            ..default
        })
    }
}

/// Log Z by `method`, or by the best affordable one. The ladder of tours with a ladder is read from
/// the file `ladder`, or made and written to the file `save_ladder`. `rungs` are those of BAR.
#[pyfunction]
#[pyo3(signature = (model, method, rows, stopping_set, ladder, save_ladder, rungs, limits, n_threads))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn log_partition<'py>(
    py: Python<'py>,
    model: &Model,
    method: Option<&str>,
    rows: Option<&PyRows>,
    stopping_set: Option<&PyStoppingSet>,
    ladder: Option<PathBuf>,
    save_ladder: Option<PathBuf>,
    rungs: Vec<PyRef<'_, Model>>,
    limits: Limits,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let method: Option<Method> = method.map(str::parse).transpose().map_err(exception)?;
    let settings = limits.settings(&model.file.rbm, method)?;
    let file = Arc::clone(&model.file);
    let (rows, set) = (rows.map(|r| Arc::clone(&r.rows)), stopping_set.map(|s| Arc::clone(&s.set)));
    let rungs: Vec<Rbm> = rungs.iter().map(|model| model.file.rbm.clone()).collect();
    let log_z = work::finish(py, n_threads, move |line| {
        let plan = Plan::new(&file.rbm, method, &settings);
        let (rows, stopping_set) = (rows.as_deref(), set.as_deref());
        let inputs = Inputs { rows, stopping_set, rungs: &rungs, ..Inputs::default() };
        let ladder = match (ladder, save_ladder) {
            (Some(path), _) => Some(Ladder::load(&path)?),
            (None, Some(path)) => {
                let ladder = plan.make_ladder(&inputs, line)?;
                ladder.save(&path)?;
                Some(ladder)
            }
            (None, None) => None,
        };
        plan.run(&Inputs { ladder: ladder.as_ref(), ..inputs }, line)
    })?;
    describe(py, &log_z)
}

/// Everything about an estimate of log Z, with its guarantees and notes in words.
pub(crate) fn describe<'py>(py: Python<'py>, log_z: &LogZ) -> PyResult<Bound<'py, PyAny>> {
    let facts = pythonize(py, log_z)?;
    facts.set_item("interval", log_z.interval)?;
    facts.set_item("notes", in_words(&log_z.notes))?;
    facts.set_item("guarantee_z", log_z.guarantee.of_z())?;
    facts.set_item("guarantee_log_z", log_z.guarantee.of_log_z())?;
    facts.set_item("guarantee_likelihood", log_z.guarantee.of_likelihood())?;
    Ok(facts)
}

/// Notes in words, with settings spelled as keywords.
pub(crate) fn in_words(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| spell(&note.to_string(), Spelling::Keywords)).collect()
}

/// The average log-likelihood of rows, given log Z as [`log_partition`] returns it.
#[pyfunction]
pub(crate) fn likelihood<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &PyRows,
    log_z: &Bound<'py, PyAny>,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let log_z: LogZ = depythonize(log_z).map_err(|e| DataError::new_err(format!("log_z: {e}")))?;
    let (file, rows) = (Arc::clone(&model.file), Arc::clone(&rows.rows));
    let likelihood = work::finish(py, n_threads, |_| file.rbm.log_likelihood(&rows, &log_z))?;
    let facts = pythonize(py, &likelihood)?;
    facts.set_item("interval", likelihood.interval)?;
    facts.set_item("guarantee", likelihood.guarantee())?;
    Ok(facts)
}
