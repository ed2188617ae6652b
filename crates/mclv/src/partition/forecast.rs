//! Forecast tours from pilot tours, which are not part of the estimate.

use super::budget::{MIN_COMPLETION, MIN_HOPE, PILOT_SHARE, TRIAL_SHARE};
use super::interval::n_carriers;
use crate::progress::Silent;
use crate::team;
use crate::tour::{MOST_TOURS, TourEngine, TourSettings};
use crate::{Error, Result};
use std::time::Instant;

/// Tours of a probe, which measures only whether tours return and how long they are.
const PROBE_TOURS: usize = 256;
/// Tours in the first round of a pilot, which also measures how much tour lengths vary.
const PILOT_TOURS: usize = 2_000;
/// A pilot doubles its tours until at least this many of them carry the second moment.
const PILOT_CARRIERS: f64 = 20.0;
/// If a pilot has not seen the tail, the number of tours is this multiple of the longest pilot
/// tour.
const UNSEEN_TOURS: f64 = 250.0;
/// A pilot stops doubling at this many tours.
const MAX_TOURS: usize = 1 << 18;

/// The occasion of the tours of the estimate. Pilot tours have others, so no random number is used
/// twice.
pub(super) const COUNTED: u16 = 0;
/// The occasion of the first round of a pilot. Later rounds, at most ten, have the numbers that
/// follow.
pub(super) const PILOT: u16 = 1;
/// The occasion of a probe.
const PROBE: u16 = u16::MAX;
/// The occasion of the first tours of a probe, and the distance of a pilot's first tours from its
/// first round.
const PROBE_TRIAL: u16 = u16::MAX - 2;
const PILOT_TRIAL: u16 = 29;
/// The first tours: if none of them returns, no more are made.
const TRIAL_TOURS: usize = 64;

/// The forecast that pilot tours give for the tours of the estimate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Forecast {
    /// The number of tours that the target error needs, if there is a target.
    n_for_target: Option<usize>,
    /// The mean length of the pilot tours. A cut tour counts with the steps that it made.
    pub(super) mean_length: f64,
    /// The share of the pilot tours that returned.
    pub(super) completion: f64,
    /// The number of steps of all pilot tours.
    pub(super) n_steps: u64,
    seconds: f64,
}

impl Forecast {
    /// Runs the first 64 tours, in a small share of the budget. If none of them returns, later ones
    /// are not expected to.
    fn trial(engine: &TourEngine<'_>, limits: &TourSettings, occasion: u16) -> Result<Self> {
        let begun = Instant::now();
        let settings = TourSettings {
            n_tours: TRIAL_TOURS,
            max_steps: limits.max_steps.map(|n| (n / TRIAL_SHARE).max(16 * TRIAL_TOURS as u64)),
            max_seconds: limits.max_seconds.map(|s| s / TRIAL_SHARE as f64),
            occasion,
            ..limits.clone()
        };
        let tours = engine.run(&settings, &Silent)?;
        Ok(Self {
            n_for_target: None,
            mean_length: tours.mean_length().value,
            completion: tours.n_complete() as f64 / TRIAL_TOURS as f64,
            n_steps: tours.n_steps(),
            seconds: seconds_since(begun),
        })
    }

    /// Runs a probe: 256 tours within a quarter of the budget.
    pub(super) fn probe(engine: &TourEngine<'_>, limits: &TourSettings) -> Result<Self> {
        let begun = Instant::now();
        let trial = Self::trial(engine, limits, PROBE_TRIAL)?;
        if trial.completion == 0.0 {
            return Ok(trial);
        }
        let settings = TourSettings {
            n_tours: PROBE_TOURS,
            max_steps: limits.max_steps.map(|n| (n / PILOT_SHARE).max(PROBE_TOURS as u64)),
            max_seconds: limits.max_seconds.map(|s| s / PILOT_SHARE as f64),
            occasion: PROBE,
            ..limits.clone()
        };
        let tours = engine.run(&settings, &Silent)?;
        Ok(Self {
            n_for_target: None,
            mean_length: tours.mean_length().value,
            completion: tours.n_complete() as f64 / PROBE_TOURS as f64,
            n_steps: trial.n_steps + tours.n_steps(),
            seconds: seconds_since(begun),
        })
    }

    /// Runs a pilot for a target standard error of `log Z`. Each round makes twice the tours of the
    /// round before, all of them new. The pilot ends when a round has seen the tail, or when a
    /// quarter of the budget is spent.
    ///
    /// # Errors
    /// If the target is not a positive number.
    pub(super) fn for_target(
        engine: &TourEngine<'_>,
        limits: &TourSettings,
        target: f64,
        first: u16,
    ) -> Result<Self> {
        if !(target > 0.0 && target.is_finite()) {
            let cure = "a standard error above 0";
            return Err(Error::InvalidSetting { name: "target-se", value: target.to_string(), cure });
        }
        let trial = Self::trial(engine, limits, first + PILOT_TRIAL)?;
        if trial.completion == 0.0 {
            return Ok(Self { n_for_target: Some(PILOT_TOURS), ..trial });
        }
        let begun = Instant::now();
        let max_steps = limits.max_steps.map(|n| n / PILOT_SHARE);
        let max_seconds = limits.max_seconds.map(|s| s / PILOT_SHARE as f64);
        let (mut n_steps, mut n_tours) = (trial.n_steps, PILOT_TOURS);
        for occasion in first.. {
            let left = max_steps.map(|n| n - n_steps.min(n));
            n_tours = left.map_or(n_tours, |n| n_tours.min(n as usize)).max(2) / 2 * 2;
            let settings = TourSettings {
                n_tours,
                max_steps: left.map(|n| n.max(n_tours as u64)),
                max_seconds: max_seconds.map(|s| (s - seconds_since(begun)).max(1e-3)),
                occasion,
                ..limits.clone()
            };
            let tours = engine.run(&settings, &Silent)?;
            n_steps += tours.n_steps();
            let mean = tours.mean_length();
            let relative = mean.std_err / mean.value;
            let is_tail_seen = n_carriers(&tours.lengths()) >= PILOT_CARRIERS;
            let is_seen = is_tail_seen || relative == 0.0;
            let is_spent = max_steps.is_some_and(|n| n_steps >= n)
                || max_seconds.is_some_and(|s| seconds_since(begun) >= s);
            if is_seen || is_spent || n_tours >= MAX_TOURS {
                // If the tail has not been seen, the tours must be numerous enough for a few unseen
                // ones not to matter.
                let unseen = if is_tail_seen { 0.0 } else { UNSEEN_TOURS * f64::from(tours.longest()) };
                let wanted = ((relative / target).powi(2) * n_tours as f64).max(unseen);
                let wanted = wanted.min(MOST_TOURS as f64).ceil() as usize;
                return Ok(Self {
                    n_for_target: Some(wanted.max(PILOT_TOURS)),
                    mean_length: mean.value,
                    completion: tours.n_complete() as f64 / tours.n_tours() as f64,
                    n_steps,
                    seconds: seconds_since(begun),
                });
            }
            n_tours *= 2;
        }
        unreachable!("a pilot has fewer rounds than there are occasions")
    }

    /// Returns true if enough pilot tours returned to make more tours worthwhile.
    pub(super) fn returns(&self) -> bool {
        self.completion >= MIN_COMPLETION
    }

    /// Returns true if so few pilot tours returned that more tours are a waste of time.
    pub(super) fn is_hopeless(&self) -> bool {
        self.completion < MIN_HOPE
    }

    /// Returns the number of steps that the tours for the target error are expected to make.
    pub(super) fn steps_for_target(&self) -> f64 {
        self.n_for_target.unwrap_or(0) as f64 * self.mean_length
    }

    /// Returns the number of tours of the estimate, given the budget that is left: those that the
    /// target error needs if they are expected to fit, else as many as are expected to fit. The
    /// target counts as if it needed a number of tours between `least` and `most`.
    ///
    /// Only pilot tours decide this number. If the tours of the estimate had a say in it, the
    /// estimate would be biased.
    pub(super) fn n_tours(
        &self,
        (least, most): (usize, usize),
        max_steps: Option<u64>,
        max_seconds: Option<f64>,
    ) -> usize {
        /// Long tours may take up to this multiple of the expected steps.
        const MARGIN: f64 = 1.5;
        let per_second = self.n_steps as f64 / self.seconds.max(1e-9);
        let steps = max_steps.map_or(f64::INFINITY, |n| n as f64);
        let steps = max_seconds.map_or(steps, |s| steps.min(s * per_second));
        match self.n_for_target {
            Some(wanted) => {
                wanted.clamp(least, most).min((steps / (MARGIN * self.mean_length)) as usize).max(2)
            }
            // Half of the steps are reserved for the tail, of which a probe sees little.
            None => ((0.5 * steps / self.mean_length) as usize).clamp(PROBE_TOURS, MAX_TOURS),
        }
    }
}

/// Returns the seconds by the clock of the first rank, which decides for all ranks.
pub(super) fn seconds_since(begun: Instant) -> f64 {
    team::of_first(begun.elapsed().as_secs_f64())
}
