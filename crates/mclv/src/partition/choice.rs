//! Choose a stopping set by pilot tours.

use super::MclvSettings;
use super::budget::{STEPS_PER_STATE, set_steps};
use super::forecast::Forecast;
use crate::data::Rows;
use crate::model::Rbm;
use crate::tour::{PilotSettings, StoppingSet, TourEngine};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The occasion of the first candidate's pilot tours, and how many occasions each candidate has.
const FIRST_OCCASION: u16 = 100;
const OCCASIONS: u16 = 30;
/// Pilot chains. They begin at states of the set.
const N_CHAINS: usize = 256;
/// Steps of each pilot chain before its states are added to the set.
const BURN_IN: u32 = 50;
/// The smallest and the largest number of steps of a pilot chain whose states are added to the set.
const N_STEPS: (f64, f64) = (50.0, 2_000.0);
/// Pilot chains may make the expected steps of the tours divided by this number.
const CHAIN_SHARE: f64 = 16.0;
/// Pilot chains are run only if the tours would take at least this many times the pilot tours'
/// steps. They can halve the length of tours, but need pilot tours of their own.
const WORTHWHILE: f64 = 4.0;

/// The origin of a stopping set: how many states were drawn for each row, and whether pilot chains
/// added some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetOrigin {
    /// The number of hidden states drawn for each row of data.
    pub samples_per_row: usize,
    /// The number of steps of the pilot chains whose states were added to those of the data. 0 if
    /// there were none.
    pub pilot_steps: u64,
}

impl fmt::Display for SetOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} drawn for each row", self.samples_per_row)?;
        if self.pilot_steps > 0 {
            write!(f, ", plus the states that pilot chains visited in {} steps", self.pilot_steps)?;
        }
        Ok(())
    }
}

/// Draws stopping sets from data rows and returns the one that reaches the target error in the
/// fewest steps.
///
/// `candidates` are numbers of samples per row. For each number, a set is drawn and pilot tours are
/// run, unless drawing the set alone would cost more than the best candidate with all its tours.
/// If the best candidate needs many tours, the states that pilot chains visit are added to it, and
/// the larger set is kept if it is cheaper still.
///
/// The cost of a set is counted in steps: those of the tours that the target error takes, those of
/// pilot chains, and ten for each state of the set. A set to which all pilot tours return is
/// preferred to one to which some do not, because the cost of cut tours is not known.
///
/// # Guarantee
/// Only pilot tours decide, before any tour that is part of the estimate. Given the set,
/// `E[Ẑ] = Z`; so `E[Ẑ] = Z` overall.
///
/// # Errors
/// If there are no candidates or rows, if the rows do not fit the model, or if a setting is not
/// allowed.
pub fn choose_stopping_set(
    rbm: &Rbm,
    rows: &Rows,
    candidates: &[usize],
    target_se: f64,
    settings: &MclvSettings,
) -> Result<(StoppingSet, SetOrigin)> {
    let Chosen { engine, origin, .. } = choose(rbm, rows, candidates, None, target_se, settings)?;
    Ok((engine.into_set(), origin))
}

/// The chosen set, ready for the tours of the estimate.
pub(super) struct Chosen<'a> {
    /// The engine of the set.
    pub(super) engine: TourEngine<'a>,
    /// The forecast of the pilot tours to this set.
    pub(super) forecast: Forecast,
    /// How the set was drawn.
    pub(super) origin: SetOrigin,
    /// The number of steps of all pilot tours and pilot chains, including those of sets that were
    /// not chosen.
    pub(super) n_steps: u64,
}

/// A set that may be chosen.
struct Candidate<'a> {
    engine: TourEngine<'a>,
    forecast: Forecast,
    origin: SetOrigin,
}

impl Candidate<'_> {
    /// Share of the pilot tours that did not return.
    fn out(&self) -> f64 {
        1.0 - self.forecast.completion
    }

    /// Steps that the set and the tours for the target take. Pilot chains are not counted.
    fn cost(&self) -> f64 {
        self.forecast.steps_for_target() + STEPS_PER_STATE * self.engine.set().len() as f64
    }

    /// Returns true if this candidate, with its pilot chains, costs less than `other`.
    fn is_below(&self, other: &Self) -> bool {
        (self.out(), self.cost() + self.origin.pilot_steps as f64) < (other.out(), other.cost())
    }
}

/// Does the work of [`choose_stopping_set`] and returns everything it found out about the set. The
/// states of `join` belong to every candidate.
pub(super) fn choose<'a>(
    rbm: &'a Rbm,
    rows: &Rows,
    candidates: &[usize],
    join: Option<&StoppingSet>,
    target_se: f64,
    settings: &MclvSettings,
) -> Result<Chosen<'a>> {
    let all: Vec<usize> = (0..rows.n_rows()).collect();
    // The pilots of all candidates share the budget.
    let mut limits = settings.limits();
    limits.max_steps = limits.max_steps.map(|n| n / (candidates.len() as u64 + 1));
    let mut n_steps = 0;
    let mut try_out = |set: StoppingSet, origin: SetOrigin, k: usize| -> Result<Candidate<'a>> {
        let engine = TourEngine::with_set(rbm, Cow::Owned(set))?;
        let occasion = FIRST_OCCASION + OCCASIONS * k as u16;
        let forecast = Forecast::for_target(&engine, &limits, target_se, occasion)?;
        n_steps += forecast.n_steps + origin.pilot_steps;
        Ok(Candidate { engine, forecast, origin })
    };
    let mut best: Option<Candidate<'a>> = None;
    for (k, &samples_per_row) in candidates.iter().enumerate() {
        let least = set_steps(samples_per_row * rows.n_rows());
        if best.as_ref().is_some_and(|best| best.out() == 0.0 && best.cost() < least) {
            continue;
        }
        // A set to which not one tour returns does not become good by a few more states.
        if best.as_ref().is_some_and(|best| best.out() == 1.0) {
            break;
        }
        let drawn = StoppingSet::draw(rbm, rows, &all, samples_per_row, settings.seed, 0)?;
        let set = drawn.joined_by(join);
        let candidate = try_out(set, SetOrigin { samples_per_row, pilot_steps: 0 }, k)?;
        if best.as_ref().is_none_or(|best| candidate.is_below(best)) {
            best = Some(candidate);
        }
    }
    let mut best = best.ok_or(Error::Empty {
        what: "the list of samples per row".into(),
        cure: "give at least one number",
    })?;
    let tours = best.forecast.steps_for_target();
    let affordable = settings.max_steps.map_or(tours, |n| tours.min(n as f64));
    let steps = (affordable / CHAIN_SHARE / N_CHAINS as f64).min(N_STEPS.1);
    let is_worthwhile = affordable >= WORTHWHILE * best.forecast.n_steps as f64;
    if is_worthwhile && steps >= N_STEPS.0 + f64::from(BURN_IN) {
        let steps = steps as u32;
        let chains = PilotSettings {
            n_chains: N_CHAINS,
            burn_in: BURN_IN,
            n_steps: steps - BURN_IN,
            seed: settings.seed,
        };
        let set = best.engine.set();
        let both = set.union(&StoppingSet::from_pilot(rbm, Some(set), &chains)?);
        let origin = SetOrigin { pilot_steps: N_CHAINS as u64 * u64::from(steps), ..best.origin };
        let candidate = try_out(both, origin, candidates.len())?;
        if candidate.is_below(&best) {
            best = candidate;
        }
    }
    let Candidate { engine, forecast, origin } = best;
    Ok(Chosen { engine, forecast, origin, n_steps })
}
