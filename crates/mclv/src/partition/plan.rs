//! Plan how to compute `log Z`, and carry the plan out.
//!
//! If the caller names no method, the plan is: enumeration if the budget allows it; else tours, if
//! there are data or a stopping set and pilot tours return; else tours with a ladder, if the budget
//! has steps enough and pilot tours climb; else AIS. All commands and the evaluations of training
//! use such a plan, each with its own [`Budget`].

mod work;

use super::budget::{AIS_STEPS, LADDER_STEPS, step_seconds};
use super::{Along, BarSettings, Budget, Effort, Ladder, LadderTourSettings, LogZ, Method, nominal_seconds};
use crate::Result;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::error::human_seconds;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::tour::StoppingSet;
use std::fmt;
use work::Work;

pub(crate) use work::spread;

#[cfg(test)]
mod tests;

/// Settings of all methods of a [`Plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct MethodSettings {
    /// How many tours to run.
    pub effort: Effort,
    /// The number of hidden states drawn for each row of a stopping set. With `None` it is 1, or,
    /// with a target error, the number that pilot tours find cheapest.
    pub samples_per_row: Option<usize>,
    /// The chain of the visible units in tours.
    pub visible: VisibleChain,
    /// Limits on the work of each method.
    pub budget: Budget,
    /// The number of ladders of BAR. BAR finds its own temperatures.
    pub n_ladders: usize,
    /// The number of steps of each ladder that are part of the estimate. A quarter of this number
    /// is made before them.
    pub ladder_steps: usize,
    /// If true, reverse AIS begins at exact samples. With `None` it does so if they take at most
    /// two seconds.
    pub exact_samples: Option<bool>,
    /// The standard error that AIS and reverse AIS aim for, in place of the number of temperatures
    /// of the budget.
    pub ais_target_se: Option<f64>,
    /// The standard error that BAR aims for, in place of `ladder_steps`.
    pub bar_target_se: Option<f64>,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Default for MethodSettings {
    /// The settings of commands: tours for a standard error of 0.01, 8 ladders of 2,000 steps, and
    /// [`Budget::COMMAND`].
    fn default() -> Self {
        Self {
            effort: Effort::TargetSe(0.01),
            samples_per_row: None,
            visible: VisibleChain::Sampled,
            budget: Budget::COMMAND,
            n_ladders: BarSettings::default().n_ladders,
            ladder_steps: BarSettings::default().n_steps,
            exact_samples: None,
            ais_target_se: None,
            bar_target_se: None,
            seed: 0,
        }
    }
}

/// Data and choices that a [`Plan`] can use besides the model. All are optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// Data rows, which give stopping sets, base models and starts of reverse AIS.
    pub rows: Option<&'a Rows>,
    /// A stopping set to use instead of one from data or from pilot chains.
    pub stopping_set: Option<&'a StoppingSet>,
    /// The ladder of tours with a ladder, to use instead of one that a pilot makes.
    pub ladder: Option<&'a Ladder>,
    /// Models that are rungs of BAR below the model, such as snapshots of its training (see
    /// [`bar_along`](super::bar_along)).
    pub rungs: &'a [Rbm],
    /// Visible biases of the base model, to use instead of those of `rows` (see
    /// [`base_bias`](super::base_bias)).
    pub base_bias: Option<&'a [f32]>,
}

/// A plan for `log Z` of a model: the methods to try, in order.
///
/// ```
/// use mclv::partition::{Agreement, Budget, Effort, Inputs, Method, MethodSettings, Plan};
/// use mclv::{Rbm, bits::BitRows, data::Rows, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let best = Plan::new(&rbm, None, &MethodSettings::default());
/// assert_eq!(best.methods(), [Method::Exact, Method::Mclv, Method::Ladder, Method::Ais]);
/// assert!(!best.needs_data() && best.to_string().starts_with("exact enumeration of 2^3 states"));
///
/// let rows = Rows::Bits(BitRows::from_words(4, vec![0b0000, 0b1111]));
/// let inputs = Inputs { rows: Some(&rows), ..Inputs::default() };
/// let budget = Budget { n_betas: 100, ..Budget::COMMAND };
/// let settings = MethodSettings { effort: Effort::Tours(5000), budget, ..Default::default() };
/// let by = |method| Plan::new(&rbm, Some(method), &settings).run(&inputs, &Silent);
/// let estimates = [by(Method::Exact)?, by(Method::Mclv)?, by(Method::Ais)?];
/// assert_eq!(Agreement::new(&estimates).agree, Some(true));
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    rbm: &'a Rbm,
    methods: Vec<Method>,
    settings: MethodSettings,
}

impl<'a> Plan<'a> {
    /// Plans to use `method`, or the best method that the budget allows.
    pub fn new(rbm: &'a Rbm, method: Option<Method>, settings: &MethodSettings) -> Self {
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let methods = match method {
            Some(method) => vec![method],
            None => {
                let mut methods = vec![Method::Exact, Method::Mclv, Method::Ladder, Method::Ais];
                methods.retain(|method| match method {
                    Method::Exact => settings.budget.allows_exact(n_visible, n_hidden),
                    Method::Ladder => settings.budget.allows_ladder(n_visible, n_hidden),
                    _ => true,
                });
                methods
            }
        };
        Self { rbm, methods, settings: settings.clone() }
    }

    /// Plans to try `methods` in this order.
    pub(crate) fn of_methods(rbm: &'a Rbm, methods: Vec<Method>, settings: &MethodSettings) -> Self {
        Self { rbm, methods, settings: settings.clone() }
    }

    /// Returns the methods in the order in which they are tried. A method gives way to the next if
    /// it would take too long, has nothing to work with, or finds that tours do not return.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Returns true if the plan can use rows of data, so that loading them is worthwhile.
    pub fn needs_data(&self) -> bool {
        self.methods[0].uses_data()
    }

    /// Makes the ladder that the plan would use for [`Method::Ladder`], for example to save it.
    ///
    /// # Errors
    /// Those of [`ladder`](super::ladder()).
    pub fn make_ladder(&self, inputs: &Inputs<'_>, progress: &dyn Progress) -> Result<Ladder> {
        Ladder::new(self.rbm, inputs, &self.ladder_settings(0), progress)
    }

    /// Returns the settings of tours with a ladder if `n_steps` of the budget have been spent.
    fn ladder_settings(&self, n_steps: u64) -> LadderTourSettings {
        let MethodSettings { effort, budget, seed, .. } = self.settings;
        let left = budget.steps(self.rbm.n_visible(), self.rbm.n_hidden());
        LadderTourSettings {
            effort,
            max_steps: left.map(|n| n.saturating_sub(n_steps) / LADDER_STEPS),
            n_scouts: budget.n_scouts,
            seed,
            ..Default::default()
        }
    }

    /// Returns the seconds that the plan takes on a nominal machine: of the enumeration if that comes
    /// first, else at most those of its longest method. Infinite without a limit.
    pub fn nominal_seconds(&self) -> f64 {
        let (n_visible, n_hidden) = (self.rbm.n_visible(), self.rbm.n_hidden());
        let budget = &self.settings.budget;
        let seconds = |steps: f64| steps * step_seconds(n_visible, n_hidden);
        let within_budget =
            budget.steps(n_visible, n_hidden).map_or(f64::INFINITY, |steps| seconds(steps as f64));
        let of_ais = seconds(AIS_STEPS * budget.n_chains as f64 * budget.n_betas as f64);
        let of = |method: &Method| match method {
            Method::Exact => nominal_seconds(n_visible, n_hidden),
            Method::Mclv | Method::Ladder => within_budget,
            Method::Ais | Method::ReverseAis if self.settings.ais_target_se.is_some() => within_budget,
            // A second base model takes half as many steps again.
            Method::Ais => 1.5 * of_ais,
            Method::ReverseAis => of_ais,
            Method::Bar if self.settings.bar_target_se.is_some() => within_budget,
            // The number of temperatures is not known before.
            Method::Bar => f64::INFINITY,
        };
        match self.methods.first() {
            Some(Method::Exact) => of(&Method::Exact),
            _ => self.methods.iter().map(of).fold(0.0, f64::max),
        }
    }

    /// Carries out the plan and returns `log Z`. The steps and seconds of the result include
    /// everything that was done.
    ///
    /// # Guarantee
    /// The guarantee is that of the method which the result names: [`exact`](super::exact()),
    /// [`mclv`](super::mclv()), [`ais`](super::ais()), [`reverse_ais`](super::reverse_ais()) or
    /// [`bar`](super::bar). If the caller named no method, pilot tours decide whether another method
    /// replaces tours. The tours of the estimate decide nothing, because a choice that depends on
    /// them would bias the result. The result is the same for any number of threads.
    ///
    /// # Errors
    /// If a method rejects its settings, if rows do not fit the model, or if the listener cancels.
    pub fn run(&self, inputs: &Inputs<'_>, progress: &dyn Progress) -> Result<LogZ> {
        Ok(self.run_along(inputs, &Along::NOTHING, progress)?.0)
    }

    /// Carries out the plan like [`run`](Self::run), and returns the sums of statistics along the
    /// tours of the estimate, tour by tour. There are none if the method makes no tours.
    pub(crate) fn run_along(
        &self,
        inputs: &Inputs<'_>,
        along: &Along<'_>,
        progress: &dyn Progress,
    ) -> Result<(LogZ, Vec<f64>)> {
        tracing::debug!("log Z: {self}");
        // A wrong number is refused also if no method would use it.
        self.settings.effort.check()?;
        let mut work = Work::new(self, inputs, along, progress);
        for (k, &method) in self.methods.iter().enumerate() {
            let is_last = k + 1 == self.methods.len();
            if let Some(log_z) = work.attempt(method, is_last)? {
                return Ok(work.finish(log_z));
            }
        }
        unreachable!("the last method of a plan does not give way")
    }
}

impl fmt::Display for Plan<'_> {
    /// Writes the methods in order, with the expected cost of each on a nominal machine.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_visible, n_hidden) = (self.rbm.n_visible(), self.rbm.n_hidden());
        let MethodSettings { effort, budget, n_ladders, ladder_steps, .. } = &self.settings;
        let seconds = |steps: f64| human_seconds(steps * step_seconds(n_visible, n_hidden));
        let annealing = match self.settings.ais_target_se {
            Some(target) => format!("{} chains for a standard error of {target}", budget.n_chains),
            None => format!(
                "{} chains through {} temperatures (about {})",
                budget.n_chains,
                budget.n_betas,
                seconds((budget.n_chains * budget.n_betas) as f64)
            ),
        };
        for (k, method) in self.methods.iter().enumerate() {
            if k > 0 {
                f.write_str("; else ")?;
            }
            match method {
                Method::Exact => write!(
                    f,
                    "exact enumeration of 2^{} states (about {})",
                    n_visible.min(n_hidden),
                    human_seconds(nominal_seconds(n_visible, n_hidden))
                )?,
                Method::Mclv | Method::Ladder => {
                    let (tours, step) = match method {
                        Method::Ladder => ("tours with a ladder", LADDER_STEPS),
                        _ => ("tours", 1),
                    };
                    match effort {
                        Effort::Tours(n) => write!(f, "{n} {tours}")?,
                        Effort::TargetSe(target) => {
                            write!(f, "{tours} for a standard error of {target}")?;
                        }
                        Effort::Affordable => f.write_str(tours)?,
                    }
                    if let Some(steps) = budget.steps(n_visible, n_hidden) {
                        let most = seconds(steps as f64);
                        write!(f, ", at most {} steps (at most about {most})", steps / step)?;
                    }
                }
                Method::Ais => write!(f, "AIS with {annealing}")?,
                Method::ReverseAis => write!(f, "reverse AIS with {annealing}")?,
                Method::Bar => match self.settings.bar_target_se {
                    Some(target) => {
                        write!(f, "BAR with {n_ladders} ladders for a standard error of {target}")?;
                    }
                    None => {
                        let steps = n_ladders * (ladder_steps + ladder_steps / 4);
                        let each = seconds(steps as f64);
                        write!(f, "BAR with {n_ladders} ladders (about {each} for each temperature)")?;
                    }
                },
            }
        }
        Ok(())
    }
}
