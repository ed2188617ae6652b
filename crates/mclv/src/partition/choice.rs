//! Choose a stopping set by pilots.

use super::MclvSettings;
use super::mclv::Pilot;
use crate::data::Rows;
use crate::model::Rbm;
use crate::tour::{PilotSettings, StoppingSet, TourEngine};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What it takes to draw and weigh a state of a set, in steps.
const STEPS_PER_STATE: f64 = 10.0;
/// Pilot chains, and steps of each that are not taken: they begin at states of data.
const N_CHAINS: usize = 256;
const BURN_IN: u32 = 50;
/// Steps of each whose states are taken, at least and at most.
const N_STEPS: (f64, f64) = (50.0, 2_000.0);
/// Pilot chains may take one part in so many of the steps of tours without them.
const SHARE: f64 = 16.0;
/// They are tried where tours take so many times the steps that a pilot took: they can halve the tours, and need a pilot too.
const WORTHWHILE: f64 = 4.0;

/// What a stopping set was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetOrigin {
    /// Hidden states drawn for each row of data.
    pub samples_per_row: usize,
    /// Steps of pilot chains whose states were added: places where the model goes and the data do not.
    pub pilot_steps: u64,
}

impl fmt::Display for SetOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} drawn for each row", self.samples_per_row)?;
        if self.pilot_steps > 0 {
            write!(f, ", and those that pilot chains visited in {} steps", self.pilot_steps)?;
        }
        Ok(())
    }
}

/// Draw a stopping set from data rows with as many samples per row as pilots find cheapest for the target, and add the
/// states that pilot chains visit if that makes it cheaper still.
///
/// `candidates` are numbers of samples per row; for each a set is drawn and a pilot run, unless the set alone would cost more
/// than the best so far with all its tours; and then, where many tours are needed, one for the union of the best and pilot
/// chains. The cost of a choice is counted in steps: those of the tours that its pilot asks for, those of pilot chains, and
/// about ten for each state of the set. A set that all tours of its pilot return to is better than one that some do not: of
/// cut tours the cost is not known.
///
/// # Guarantee
/// Neither the set nor the tours that count depend on pilot tours in any other way than by this choice, which is made
/// before them: `E[Ẑ] = Z` given the set, and so without.
///
/// # Errors
/// If there are no candidates or rows, the rows do not fit the model, or a setting is not allowed.
pub fn choose_stopping_set(
    rbm: &Rbm,
    rows: &Rows,
    candidates: &[usize],
    target_se: f64,
    settings: &MclvSettings,
) -> Result<(StoppingSet, SetOrigin)> {
    choose(rbm, rows, candidates, target_se, settings).map(|chosen| (chosen.set, chosen.origin))
}

/// A set, and what was found out about it.
pub(super) struct Chosen {
    pub(super) set: StoppingSet,
    pub(super) origin: SetOrigin,
    /// Steps that all pilots made.
    pub(super) n_steps: u64,
}

/// What a set would cost, in steps.
struct Cost {
    /// Share of the pilot's tours that did not return.
    out: f64,
    /// Set and tours.
    all: f64,
    tours: f64,
    /// What it took to find out.
    pilot: f64,
}

impl Cost {
    /// Whether it is, with so many steps more.
    fn is_below(&self, other: &Self, more: f64) -> bool {
        (self.out, self.all + more) < (other.out, other.all)
    }
}

/// As [`choose_stopping_set`].
pub(super) fn choose(
    rbm: &Rbm,
    rows: &Rows,
    candidates: &[usize],
    target_se: f64,
    settings: &MclvSettings,
) -> Result<Chosen> {
    let all: Vec<usize> = (0..rows.n_rows()).collect();
    // Pilots with a budget share it.
    let mut limits = settings.tours(0);
    limits.max_steps = limits.max_steps.map(|n| n / (candidates.len() as u64 + 1));
    let mut n_steps = 0;
    let mut cost_of = |set: &StoppingSet, k: usize| -> Result<Cost> {
        let pilot = Pilot::run(&TourEngine::new(rbm, set)?, &limits, target_se, 100 + 30 * k as u16)?;
        n_steps += pilot.n_steps;
        let tours = pilot.n_tours as f64 * pilot.mean_length;
        let all = tours + STEPS_PER_STATE * set.len() as f64;
        Ok(Cost { out: 1.0 - pilot.completion, all, tours, pilot: pilot.n_steps as f64 })
    };
    let mut best: Option<(Cost, StoppingSet, usize)> = None;
    for (k, &m) in candidates.iter().enumerate() {
        // At least half of the draws are taken to be states of their own.
        let least = STEPS_PER_STATE * 0.5 * (m * rows.n_rows()) as f64;
        if best.as_ref().is_some_and(|(best, ..)| best.out == 0.0 && best.all < least) {
            continue;
        }
        let set = StoppingSet::draw(rbm, rows, &all, m, settings.seed, 0)?;
        let cost = cost_of(&set, k)?;
        if best.as_ref().is_none_or(|(best, ..)| cost.is_below(best, 0.0)) {
            best = Some((cost, set, m));
        }
    }
    let (cost, set, samples_per_row) = best.ok_or(Error::Empty {
        what: "the list of samples per row".into(),
        cure: "give at least one number",
    })?;
    let origin = SetOrigin { samples_per_row, pilot_steps: 0 };
    let affordable = settings.max_steps.map_or(cost.tours, |n| cost.tours.min(n as f64));
    let steps = (affordable / SHARE / N_CHAINS as f64).min(N_STEPS.1);
    if affordable < WORTHWHILE * cost.pilot || steps < N_STEPS.0 + f64::from(BURN_IN) {
        return Ok(Chosen { set, origin, n_steps });
    }
    let chains = PilotSettings {
        n_chains: N_CHAINS,
        burn_in: BURN_IN,
        n_steps: steps as u32 - BURN_IN,
        seed: settings.seed,
    };
    let both = set.union(&StoppingSet::from_pilot(rbm, Some(&set), &chains)?);
    let pilot_steps = N_CHAINS as u64 * u64::from(steps as u32);
    let with = cost_of(&both, candidates.len())?;
    n_steps += pilot_steps;
    Ok(if with.is_below(&cost, pilot_steps as f64) {
        Chosen { set: both, origin: SetOrigin { pilot_steps, ..origin }, n_steps }
    } else {
        Chosen { set, origin, n_steps }
    })
}
