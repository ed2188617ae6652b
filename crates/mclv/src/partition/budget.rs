//! Limit the work that one `log Z` of a command may take. (`train/timetable.rs` sets the limits for
//! evaluations during training.)
//!
//! All limits count states and steps, or seconds of a *nominal machine*, which follow from the size
//! of the model. The clock of the real machine therefore cannot change a result, with one
//! exception: a command gives up an enumeration for which this machine is too slow
//! ([`Budget::clock`]).

use super::exact::{ExactSettings, nominal_seconds};
use super::scouts::N_SCOUTS;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Seconds of a Gibbs step on one core of a nominal machine: per unit, and per weight.
const UNIT_SECONDS: f64 = 5e-10;
const WEIGHT_SECONDS: f64 = 2e-11;
/// Seconds of a Gibbs step per visible unit, on a nominal machine.
pub(crate) const NOMINAL_STEP: f64 = 2e-9;
/// Seconds of tours on a nominal machine if a budget names no number of steps.
const TOUR_SECONDS: f64 = 60.0;
/// Seconds of AIS on one core of a nominal machine. The second base model takes half as long again.
const AIS_SECONDS: f64 = 50.0;
/// The number of Gibbs steps that take as long as one step of AIS, which also weighs each state
/// twice: 1.9 with 25 hidden units, 1.3 with 500.
pub(super) const AIS_STEPS: f64 = 2.0;
/// The number of Gibbs steps that take as long as one step of a tour with a ladder, rounded up.
pub(super) const LADDER_STEPS: u64 = 2;
/// The smallest budget of steps in which tours with a ladder, with their pilots, are worthwhile.
const MIN_LADDER_STEPS: u64 = 2_000_000;
/// The smallest number of temperatures of AIS.
pub(super) const MIN_BETAS: usize = 300;
/// The most seconds, on a nominal machine, that the enumeration for exact samples may take if the
/// caller did not ask for them.
pub(crate) const CHEAP_SAMPLES: f64 = 2.0;

/// Pilot tours may take the budget's steps divided by this number.
pub(super) const PILOT_SHARE: u64 = 4;
/// The share of pilot tours that must return before more tours are made.
pub(super) const MIN_COMPLETION: f64 = 0.999;
/// If a smaller share of pilot tours returns, the tours that the caller asked for by name make no more
/// steps than the pilot: the estimate cannot have an interval.
pub(super) const MIN_HOPE: f64 = 0.5;
/// The first tours may take the budget's steps divided by this number. If none of them returns, no
/// more tours are made.
pub(super) const TRIAL_SHARE: u64 = 256;
/// Scouts may take the budget's steps divided by this number before the tours begin.
pub(super) const SCOUT_SHARE: u64 = 16;
/// Steps that take as long as drawing and weighing one state of a stopping set.
pub(super) const STEPS_PER_STATE: f64 = 10.0;
/// The number of states of a stopping set that an evaluation may always draw.
const MIN_STATES: usize = 1_000;
/// The share of draws that are expected to be distinct states.
const DISTINCT: f64 = 0.5;

/// The number of steps that pilots and tours may make together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepLimit {
    /// The number of steps that take a minute on one core of a nominal machine.
    #[default]
    Minute,
    /// Exactly this number of steps.
    Steps(u64),
    /// No limit. An estimate by tours is unbiased only with this choice: any limit can only make
    /// the estimate smaller.
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

/// Limits on the work for one `log Z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most seconds that an enumeration may take, on a nominal machine (see
    /// [`nominal_seconds`]).
    pub seconds: f64,
    /// If true, an enumeration that would take longer than `seconds` on this machine is given up.
    pub clock: bool,
    /// The number of rows that a stopping set is drawn from. `None` means all rows.
    pub max_states: Option<usize>,
    /// The number of steps that pilots and tours may make together.
    pub max_steps: StepLimit,
    /// The number of scouts: chains that look for modes which an estimate may miss. With 0, no
    /// estimate has an interval.
    pub n_scouts: usize,
    /// The number of chains of AIS and reverse AIS.
    pub n_chains: usize,
    /// The number of temperatures of AIS and reverse AIS.
    pub n_betas: usize,
}

impl Budget {
    /// The budget of a command: one good number after at most a minute on two cores. With 784
    /// visible units, models of up to 30 hidden units are enumerated.
    pub const COMMAND: Self = Self {
        seconds: 45.0,
        clock: true,
        max_states: None,
        max_steps: StepLimit::Minute,
        n_scouts: N_SCOUTS,
        n_chains: 128,
        n_betas: 10_000,
    };

    /// Returns [`COMMAND`](Self::COMMAND) for a model of this size. Large models get fewer
    /// temperatures of AIS, so that AIS with its second base model takes less than a minute on two
    /// cores.
    pub fn command(n_visible: usize, n_hidden: usize) -> Self {
        let n_betas = Self::COMMAND.affordable_betas(AIS_SECONDS, n_visible, n_hidden);
        Self { n_betas, ..Self::COMMAND }
    }

    /// The budget of the last evaluation of a training: enumeration may take `exact_seconds`, and
    /// tours or AIS `seconds`, on one core of a nominal machine. The clock of the real machine is
    /// not used.
    pub(crate) fn evaluation(exact_seconds: f64, seconds: f64, n_visible: usize, n_hidden: usize) -> Self {
        let budget = Self {
            seconds: exact_seconds,
            clock: false,
            max_steps: StepLimit::Steps((seconds / step_seconds(n_visible, n_hidden)) as u64),
            n_betas: Self::COMMAND.affordable_betas(seconds, n_visible, n_hidden),
            ..Self::COMMAND
        };
        Self { max_states: Some(budget.affordable_states(n_visible, n_hidden).max(MIN_STATES)), ..budget }
    }

    /// Returns the number of states of a stopping set that may be drawn and weighed: as many as
    /// take the time of all pilot tours.
    pub(super) fn affordable_states(&self, n_visible: usize, n_hidden: usize) -> usize {
        let steps = self.steps(n_visible, n_hidden).unwrap_or(u64::MAX) / PILOT_SHARE;
        (steps as f64 / STEPS_PER_STATE) as usize
    }

    /// Returns the number of temperatures of AIS that take `seconds` for a model of this size: at
    /// least 300, and at most those of the budget.
    fn affordable_betas(&self, seconds: f64, n_visible: usize, n_hidden: usize) -> usize {
        let per_beta = self.n_chains as f64 * AIS_STEPS * step_seconds(n_visible, n_hidden);
        self.n_betas.min(((seconds / per_beta) as usize).max(MIN_BETAS))
    }

    /// Returns true if the smaller layer of a model of this size may be enumerated.
    pub fn allows_exact(&self, n_visible: usize, n_hidden: usize) -> bool {
        nominal_seconds(n_visible, n_hidden) <= self.seconds
    }

    /// Returns the number of steps that pilots and tours may make together. `None` means no limit.
    pub fn steps(&self, n_visible: usize, n_hidden: usize) -> Option<u64> {
        match self.max_steps {
            StepLimit::Minute => Some((TOUR_SECONDS / step_seconds(n_visible, n_hidden)) as u64),
            StepLimit::Steps(n) => Some(n),
            StepLimit::Unlimited => None,
        }
    }

    /// Returns true if there are enough steps for tours with a ladder.
    pub(super) fn allows_ladder(&self, n_visible: usize, n_hidden: usize) -> bool {
        self.steps(n_visible, n_hidden).is_none_or(|n| n >= MIN_LADDER_STEPS)
    }

    /// Returns the limits of an enumeration.
    pub(super) fn enumeration(&self) -> ExactSettings {
        ExactSettings { time_limit: if self.clock { self.seconds } else { f64::INFINITY } }
    }
}

/// Seconds of a Gibbs step on one core of a nominal machine, by the sizes of both layers.
pub(crate) fn step_seconds(n_visible: usize, n_hidden: usize) -> f64 {
    UNIT_SECONDS * (n_visible + n_hidden) as f64 + WEIGHT_SECONDS * (n_visible * n_hidden) as f64
}

/// Returns the number of steps that take as long as making a stopping set from this many draws.
pub(super) fn set_steps(n_draws: usize) -> f64 {
    STEPS_PER_STATE * DISTINCT * n_draws as f64
}
