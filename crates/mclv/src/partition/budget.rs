//! Say how much work may go into one `log Z` of a command. (`train/timetable.rs` says it for evaluations of a training.)
//!
//! All limits count states and steps, or seconds of a *nominal machine*, which follow from the size
//! of the model. The clock of the real machine therefore cannot change a result, with one exception:
//! a command gives up an enumeration that this machine is too slow for ([`Budget::clock`]).

use super::exact::{ExactSettings, nominal_seconds};
use super::scouts::N_SCOUTS;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Seconds of a Gibbs step on one core of a nominal machine: for each unit, and for each weight.
const UNIT_SECONDS: f64 = 5e-10;
const WEIGHT_SECONDS: f64 = 2e-11;
/// Seconds of a Gibbs step for each visible unit, on a nominal machine.
pub(crate) const NOMINAL_STEP: f64 = 2e-9;
/// Seconds of tours on a nominal machine where a budget names no number of steps.
const TOUR_SECONDS: f64 = 60.0;
/// Seconds of AIS on one core of a nominal machine; the second base takes half as long again.
const AIS_SECONDS: f64 = 50.0;
/// A step of AIS takes as long as this many Gibbs steps, because each state has a temperature of its own and is weighed twice.
const AIS_STEPS: f64 = 6.0;
/// Seconds on a nominal machine that exact samples for reverse AIS may take if nobody asked for them.
pub(super) const CHEAP_SAMPLES: f64 = 2.0;

/// Pilot tours may take one part in this many of the steps.
pub(super) const PILOT_SHARE: u64 = 4;
/// The share of pilot tours that must return before more tours are made.
pub(super) const MIN_COMPLETION: f64 = 0.999;
/// The first tours may take one part in this many of the steps; if none of them returns, no more are made.
pub(super) const TRIAL_SHARE: u64 = 256;
/// Scouts may take one part in this many of the steps before the tours.
pub(super) const SCOUT_SHARE: u64 = 16;
/// Steps that take as long as drawing and weighing one state of a stopping set.
pub(super) const STEPS_PER_STATE: f64 = 10.0;
/// The share of draws that are expected to be distinct states.
const DISTINCT: f64 = 0.5;

/// How many steps pilots and tours may make together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepLimit {
    /// As many as take a minute on one core of a nominal machine.
    #[default]
    Minute,
    /// This many.
    Steps(u64),
    /// Any number. Only then is an estimate by tours unbiased: a budget can only make it smaller.
    Unlimited,
}

impl fmt::Display for StepLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minute => f.write_str("minute"),
            Self::Steps(n) => write!(f, "{n}"),
            Self::Unlimited => f.write_str("none"),
        }
    }
}

impl FromStr for StepLimit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "minute" => Ok(Self::Minute),
            "none" => Ok(Self::Unlimited),
            _ => text.parse().map(Self::Steps).map_err(|_| Error::InvalidSetting {
                name: "max-steps",
                value: text.into(),
                cure: "a number of steps, `minute`, or `none`",
            }),
        }
    }
}

/// How much work may go into one `log Z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Seconds that an enumeration may take, on a nominal machine (see [`nominal_seconds`]).
    pub seconds: f64,
    /// Whether to give up an enumeration that would take longer than `seconds` on this machine.
    pub clock: bool,
    /// Rows that a stopping set is drawn from; `None`: all rows.
    pub max_states: Option<usize>,
    /// Steps of pilots and tours together.
    pub max_steps: StepLimit,
    /// Chains that look for modes which an estimate may miss; 0: none, and then no estimate has an interval.
    pub n_scouts: usize,
    /// Chains of AIS and reverse AIS.
    pub n_chains: usize,
    /// Temperatures of AIS and reverse AIS.
    pub n_betas: usize,
}

impl Budget {
    /// For a command: the user waits for one number, a minute at most on two cores, and wants it to be good. With 784
    /// visible units, up to 30 hidden units are enumerated.
    pub const COMMAND: Self = Self {
        seconds: 45.0,
        clock: true,
        max_states: None,
        max_steps: StepLimit::Minute,
        n_scouts: N_SCOUTS,
        n_chains: 128,
        n_betas: 10_000,
    };

    /// [`COMMAND`](Self::COMMAND) for a model of this size: fewer temperatures of AIS for large models, so that AIS with its
    /// second base takes less than a minute on two cores.
    pub fn command(n_visible: usize, n_hidden: usize) -> Self {
        let n_betas = Self::COMMAND.affordable_betas(AIS_SECONDS, n_visible, n_hidden);
        Self { n_betas, ..Self::COMMAND }
    }

    /// For the last evaluation of a training: enumeration may take `exact_seconds`, and tours or AIS `seconds`, on one
    /// core of a nominal machine. The clock of the real machine has no say.
    pub(crate) fn evaluation(exact_seconds: f64, seconds: f64, n_visible: usize, n_hidden: usize) -> Self {
        Self {
            seconds: exact_seconds,
            clock: false,
            max_steps: StepLimit::Steps((seconds / step_seconds(n_visible, n_hidden)) as u64),
            n_betas: Self::COMMAND.affordable_betas(seconds, n_visible, n_hidden),
            ..Self::COMMAND
        }
    }

    /// Temperatures of AIS that take `seconds` for a model of this size: at least 1,000, and at most those of the budget.
    fn affordable_betas(&self, seconds: f64, n_visible: usize, n_hidden: usize) -> usize {
        let per_beta = self.n_chains as f64 * AIS_STEPS * step_seconds(n_visible, n_hidden);
        self.n_betas.min(((seconds / per_beta) as usize).max(1000))
    }

    /// Returns true if the smaller layer of a model of this size may be enumerated.
    pub fn allows_exact(&self, n_visible: usize, n_hidden: usize) -> bool {
        nominal_seconds(n_visible, n_hidden) <= self.seconds
    }

    /// Steps that pilots and tours may make together; `None`: any number.
    pub fn steps(&self, n_visible: usize, n_hidden: usize) -> Option<u64> {
        match self.max_steps {
            StepLimit::Minute => Some((TOUR_SECONDS / step_seconds(n_visible, n_hidden)) as u64),
            StepLimit::Steps(n) => Some(n),
            StepLimit::Unlimited => None,
        }
    }

    /// What enumeration may take.
    pub(super) fn enumeration(&self) -> ExactSettings {
        ExactSettings { time_limit: if self.clock { self.seconds } else { f64::INFINITY } }
    }
}

/// Seconds of a Gibbs step on one core of a nominal machine, by the sizes of both layers.
pub(crate) fn step_seconds(n_visible: usize, n_hidden: usize) -> f64 {
    UNIT_SECONDS * (n_visible + n_hidden) as f64 + WEIGHT_SECONDS * (n_visible * n_hidden) as f64
}

/// Steps that take as long as making a stopping set from this many draws.
pub(super) fn set_steps(n_draws: usize) -> f64 {
    STEPS_PER_STATE * DISTINCT * n_draws as f64
}
