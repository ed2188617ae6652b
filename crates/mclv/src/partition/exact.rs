//! Compute `log Z` exactly, by streaming over all states of the smaller layer.

use super::{Guarantee, LogZ, Method};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::team;
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::enumerate::{Enumeration, Scaled, Scratch, run_task};
use std::borrow::Cow;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The largest layer, in units, that is ever enumerated.
const MAX_UNITS: usize = 62;

/// Tasks in a round. Their results are added in order, whichever thread computed them.
const TASKS_PER_ROUND: u64 = 4096;

/// Settings for [`exact`]: how long the enumeration may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactSettings {
    /// The time limit in seconds. An enumeration that would take longer on this machine is
    /// rejected.
    pub time_limit: f64,
}

impl Default for ExactSettings {
    /// One hour.
    fn default() -> Self {
        Self { time_limit: 3600.0 }
    }
}

/// Computes `log Z` exactly, by enumerating the smaller layer.
///
/// # Guarantee
/// The result is exact up to rounding, about 10⁻¹³ relative in `Z`. It is the same, bit for bit,
/// for any number of threads.
///
/// # Cost
/// `2^min(n_visible, n_hidden)` states. Each state costs one multiply-add and one multiply per unit
/// of the larger layer. Memory is constant, about 1.2 MB for 784 units.
///
/// ```
/// use mclv::{Rbm, partition, progress::Silent};
/// let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.0; 3], &[0.0; 2])?;
/// let log_z = partition::exact(&rbm, &Default::default(), &Silent)?;
/// assert!((log_z.value - 5.0 * 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooSlow`] if the time limit would be exceeded, [`Error::Cancelled`] if the listener
/// cancels.
pub fn exact(rbm: &Rbm, settings: &ExactSettings, progress: &dyn Progress) -> Result<LogZ> {
    let begun = Instant::now();
    let small = smaller_layer_hidden(rbm);
    let plan = prepare(&small, settings)?;
    let mut total = Scaled::ZERO;
    sum_tasks(&plan, progress, |sums| {
        // Each round is summed on its own first: short sums accumulate less rounding.
        total = total + sums.into_iter().fold(Scaled::ZERO, Add::add);
    })?;
    Ok(LogZ {
        value: total.ln(),
        std_err: Some(0.0),
        interval: None,
        notes: Vec::new(),
        guarantee: Guarantee::Exact,
        method: Method::Exact,
        n_states: (small.n_hidden() as f64).exp2(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// Returns the model, or its mirror image if that has fewer hidden units.
pub(crate) fn smaller_layer_hidden(rbm: &Rbm) -> Cow<'_, Rbm> {
    if rbm.n_hidden() <= rbm.n_visible() { Cow::Borrowed(rbm) } else { Cow::Owned(rbm.mirror()) }
}

/// Prepares the enumeration of the hidden layer, if the time limit allows it. State `s` has the
/// bits of the number `s`. All tasks have the same number of states `n`, and task `k` begins at
/// state `kn`.
pub(crate) fn prepare(rbm: &Rbm, settings: &ExactSettings) -> Result<Enumeration> {
    let isa = Isa::best();
    let n_units = rbm.n_hidden();
    let plan = enumeration(rbm, isa, n_units.min(MAX_UNITS));
    let too_many = (n_units.saturating_sub(MAX_UNITS) as f64).exp2();
    let seconds = estimate_seconds(&plan, isa) * too_many;
    if seconds > settings.time_limit || too_many > 1.0 {
        return Err(Error::TooSlow { n_units, seconds, limit: settings.time_limit });
    }
    tracing::debug!("enumerating 2^{n_units} states, about {seconds:.1} s, kernels {isa}");
    Ok(plan)
}

/// Pass the sums of all tasks to `take`, in order, one round at a time.
pub(crate) fn sum_tasks(
    plan: &Enumeration,
    progress: &dyn Progress,
    mut take: impl FnMut(Vec<Scaled>),
) -> Result<()> {
    let (n_tasks, per_task) = (plan.n_tasks(), plan.states_per_task());
    // Ranks that share the work are taken to be equally fast.
    let (done, at_once) = (AtomicU64::new(0), team::size() as u64);
    for first in (0..n_tasks).step_by(TASKS_PER_ROUND as usize) {
        let in_round = TASKS_PER_ROUND.min(n_tasks - first) as usize;
        let task = |scratch: &mut Scratch, k: usize| {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let sum = run_task(Isa::best(), plan, first + k as u64, scratch);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(64) {
                progress.report((done * at_once).min(n_tasks) * per_task, n_tasks * per_task);
            }
            Ok(sum)
        };
        take(team::try_blocks_with(in_round, Scratch::default, task)?);
    }
    progress.report(n_tasks * per_task, n_tasks * per_task);
    Ok(())
}

/// Returns the seconds that exact enumeration takes on a nominal machine. They depend only on the
/// sizes of the layers, so a plan made with them does not depend on the clock.
pub fn nominal_seconds(n_visible: usize, n_hidden: usize) -> f64 {
    /// Lane operations per second of two ordinary cores.
    const NOMINAL_RATE: f64 = 4e10;
    let (small, large) = (n_visible.min(n_hidden), n_visible.max(n_hidden));
    2.0 * large as f64 * (small as f64).exp2() / NOMINAL_RATE
}

/// Prepares the sum over the first `n_bits` units of the hidden layer.
pub(crate) fn enumeration(rbm: &Rbm, isa: Isa, n_bits: usize) -> Enumeration {
    let n_hidden = rbm.n_hidden();
    let weights = rbm.weights();
    let weights: Vec<f32> = weights.chunks_exact(n_hidden).flat_map(|row| &row[..n_bits]).copied().collect();
    Enumeration::new(isa, &weights, rbm.visible_bias(), &rbm.hidden_bias()[..n_bits])
}

/// Time a few tasks and extrapolate to all of them on all threads.
fn estimate_seconds(plan: &Enumeration, isa: Isa) -> f64 {
    let mut scratch = Scratch::default();
    let begun = Instant::now();
    let mut n = 0;
    while n < 3 || (n < 1000 && begun.elapsed().as_millis() < 2) {
        if n == plan.n_tasks() {
            return team::of_first(0.0);
        }
        run_task(isa, plan, n, &mut scratch);
        n += 1;
    }
    let seconds = begun.elapsed().as_secs_f64() / n as f64 * plan.n_tasks() as f64;
    team::of_first(seconds / (rayon::current_num_threads() * team::size()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::model::tests::{all_states, random_rbm};
    use crate::progress::Silent;
    use std::sync::atomic::AtomicBool;

    /// `log Σ_v e^{−F(v)}` over the *other* layer's states: an independent way to the same number.
    fn naive(rbm: &Rbm) -> f64 {
        let f = rbm.free_energy(&Rows::Bits(all_states(rbm.n_visible()))).unwrap();
        let top = f.iter().map(|f| -f).fold(f64::NEG_INFINITY, f64::max);
        top + f.iter().map(|f| (-f - top).exp()).sum::<f64>().ln()
    }

    #[test]
    fn both_layers_give_the_same_sum() {
        for (n_visible, n_hidden) in [(1, 1), (3, 9), (9, 3), (12, 12), (10, 14), (14, 10)] {
            let rbm = random_rbm(n_visible, n_hidden, 1.0, 40 + n_visible as u64);
            let got = exact(&rbm, &ExactSettings::default(), &Silent).unwrap().value;
            let expected = naive(&rbm);
            assert!((got - expected).abs() <= 1e-10 * expected.abs().max(1.0), "{got} vs {expected}");
        }
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let rbm = random_rbm(40, 18, 1.0, 50);
        let run = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| exact(&rbm, &ExactSettings::default(), &Silent).unwrap().value.to_bits())
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(5));
    }

    #[test]
    fn absurd_sizes_are_refused_with_an_estimate() {
        let error = |n| {
            exact(&random_rbm(n, n, 0.1, 60), &ExactSettings::default(), &Silent).unwrap_err().to_string()
        };
        assert!(error(50).contains("2^50 states would take about"), "{}", error(50));
        assert!(error(300).contains("2^300 states"), "{}", error(300));
    }

    #[test]
    fn it_stops_when_told() {
        let stop = AtomicBool::new(true);
        let result = exact(&random_rbm(30, 20, 0.1, 61), &ExactSettings::default(), &stop);
        assert!(matches!(result, Err(Error::Cancelled)));
    }
}
