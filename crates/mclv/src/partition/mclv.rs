//! Estimate `log Z` from tours (Markov Chain Las Vegas; Savarese, Kakodkar and Ribeiro 2018).

use super::interval::{mean_interval, n_carriers};
use super::{Guarantee, LogZ};
use crate::gradient::VisibleChain;
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use crate::team;
use crate::tour::{StartedFrom, StoppingSet, TourEngine, TourSettings, Tours};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Tours of the first pilot.
const PILOT_TOURS: usize = 2_000;
/// A pilot doubles its tours until as many of them carry the second moment.
const PILOT_CARRIERS: f64 = 20.0;
/// It ends there in any case.
const MAX_PILOT_TOURS: usize = 1 << 18;
/// The number of the run that counts; pilots have larger ones.
const MAIN: u16 = 0;
/// The number of the few first tours that say whether tours return, and how many these are.
const PROBE: u16 = u16::MAX;
const PROBE_TOURS: usize = 256;
/// The share of them that must return for more to be made.
pub(crate) const MIN_COMPLETION: f64 = 0.9;

/// How many tours to make.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// So many.
    Tours(usize),
    /// As many as a pilot says are needed for this standard error of `log Z`. The pilot's own tours do not count, and the
    /// number is not changed afterwards: to stop when an *estimated* error is small would bias the estimate.
    TargetSe(f64),
}

/// Settings of [`mclv`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct MclvSettings {
    /// How many tours.
    pub effort: Effort,
    /// The chain: true Gibbs, or mean field, which comes with no guarantee.
    pub visible: VisibleChain,
    /// Starts spread evenly over `π_S`.
    pub stratified: bool,
    /// Cut every tour after so many steps.
    pub max_length: Option<u32>,
    /// Steps of all tours together, pilots included.
    pub max_steps: Option<u64>,
    /// Seconds, pilots included.
    pub max_seconds: Option<f64>,
    /// Seed of everything.
    pub seed: u64,
}

impl Default for MclvSettings {
    /// 20,000 tours from independent starts, without limits.
    fn default() -> Self {
        Self {
            effort: Effort::Tours(20_000),
            visible: VisibleChain::Sampled,
            stratified: false,
            max_length: None,
            max_steps: None,
            max_seconds: None,
            seed: 0,
        }
    }
}

/// `log Z` as `log Z_S` plus the logarithm of the mean tour length, `Ẑ = Z_S·ξ̄`.
///
/// # Guarantee
/// With a Gibbs chain and all tours complete, `E[Ẑ] = Z` for any number of tours ([`Guarantee::UnbiasedZ`]). If tours were cut,
/// `Ẑ` counts all of them with the steps they made and `E[Ẑ] ≤ Z` ([`Guarantee::LowerBound`]). Mean field: none.
///
/// The interval is [`mean_interval`]'s, or a note says why there is none.
///
/// ```
/// use mclv::{Rbm, StoppingSet, bits::BitRows, partition::{self, MclvSettings, mclv}, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let set = StoppingSet::new(&BitRows::from_words(3, vec![0b000, 0b111]));
/// let estimate = mclv(&rbm, &set, &MclvSettings::default(), &Silent)?;
/// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
/// assert!((estimate.value - exact.value).abs() < 4.0 * estimate.std_err);
/// let (low, high) = estimate.interval.expect("these tours have a short tail");
/// assert!(low < estimate.value && estimate.value < high);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If a setting is not allowed, the set does not fit the model, or the listener says stop.
pub fn mclv(rbm: &Rbm, set: &StoppingSet, settings: &MclvSettings, progress: &dyn Progress) -> Result<LogZ> {
    let begun = Instant::now();
    let engine = TourEngine::new(rbm, set)?;
    let mut limits = settings.tours(0);
    let mut pilot_steps = 0;
    limits.n_tours = match settings.effort {
        Effort::Tours(n) => n,
        Effort::TargetSe(target) => {
            let pilot = Pilot::run(&engine, &limits, target, MAIN + 1)?;
            pilot_steps = pilot.n_steps;
            limits.max_steps = limits.max_steps.map(|n| n.saturating_sub(pilot_steps));
            limits.max_seconds = limits.max_seconds.map(|s| s - seconds_since(begun));
            pilot.n_tours_within(limits.max_steps, limits.max_seconds)
        }
    };
    if settings.stratified {
        limits.n_tours = limits.n_tours.next_multiple_of(2);
    }
    if let Effort::TargetSe(_) = settings.effort {
        // However little is left, each tour makes its first step.
        limits.max_steps = limits.max_steps.map(|n| n.max(limits.n_tours as u64));
        limits.max_seconds = limits.max_seconds.map(|s| s.max(1e-3));
    }
    let tours = engine.run(&limits, progress)?;
    let mut log_z = mclv_from_tours(&tours)?;
    log_z.n_states += pilot_steps as f64;
    log_z.seconds = begun.elapsed().as_secs_f64();
    if let Effort::TargetSe(target) = settings.effort
        && log_z.std_err > 1.25 * target
    {
        log_z.notes.push(format!(
            "the standard error is {:.2} times the target: the budget allows for no more tours, or the pilot saw less of the tail",
            log_z.std_err / target
        ));
    }
    Ok(log_z)
}

/// What [`mclv`] makes of tours that have been made already.
///
/// # Errors
/// If they began at data rows: Kac's identity says nothing of these.
pub fn mclv_from_tours(tours: &Tours) -> Result<LogZ> {
    if tours.started_from() == StartedFrom::Rows {
        return Err(Error::InvalidSetting {
            name: "starts",
            value: "rows".into(),
            cure: "only tours from pi estimate Z",
        });
    }
    let mean = tours.mean_length();
    let n_cut = tours.n_tours() - tours.n_complete();
    let guarantee = match (tours.is_gibbs(), n_cut) {
        (false, _) => Guarantee::None,
        (true, 0) => Guarantee::UnbiasedZ,
        (true, _) => Guarantee::LowerBound,
    };
    let mut notes = Vec::new();
    let mut interval = None;
    if !tours.is_gibbs() {
        notes.push("no interval: a mean-field chain is not the model's chain".into());
    } else if n_cut > 0 {
        let share = 100.0 * n_cut as f64 / tours.n_tours() as f64;
        notes.push(format!(
            "no interval: {n_cut} tours ({share:.2} %) were cut; allow more steps, or enlarge the stopping set"
        ));
    } else {
        // With stratified starts the variance is smaller than this interval takes it to be.
        match mean_interval(&tours.lengths()) {
            Ok((low, high)) => {
                interval = Some((tours.log_z_s() + low.max(1.0).ln(), tours.log_z_s() + high.ln()));
            }
            Err(reason) => {
                notes.push(format!(
                    "no interval: of the tour lengths, {reason}; make more tours, or enlarge the set"
                ));
            }
        }
    }
    Ok(LogZ {
        value: tours.log_z_s() + mean.value.ln(),
        std_err: mean.std_err / mean.value,
        interval,
        guarantee,
        method: "mclv".into(),
        n_states: tours.n_steps() as f64,
        seconds: tours.seconds(),
        notes,
    })
}

/// What a few tours that do not count say.
pub(crate) struct Probe {
    /// Share that returned.
    pub(crate) completion: f64,
    /// Of those, and of the others as far as they came.
    pub(crate) mean_length: f64,
    pub(crate) n_steps: u64,
}

/// Make a few tours within `max_steps`.
pub(crate) fn probe(
    engine: &TourEngine<'_>,
    visible: VisibleChain,
    max_steps: u64,
    seed: u64,
) -> Result<Probe> {
    let settings = TourSettings {
        n_tours: PROBE_TOURS,
        visible,
        max_steps: Some(max_steps.max(PROBE_TOURS as u64)),
        seed,
        occasion: PROBE,
        ..Default::default()
    };
    let tours = engine.run(&settings, &Silent)?;
    Ok(Probe {
        completion: tours.n_complete() as f64 / PROBE_TOURS as f64,
        mean_length: tours.mean_length().value,
        n_steps: tours.n_steps(),
    })
}

/// `log Z` from as many tours as `max_steps` allow for, or `None` if tours do not return within them. The number of tours
/// is chosen by tours that do not count.
pub(crate) fn mclv_within(
    rbm: &Rbm,
    set: &StoppingSet,
    max_steps: u64,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Option<LogZ>> {
    let begun = Instant::now();
    let engine = TourEngine::new(rbm, set)?;
    let first = probe(&engine, VisibleChain::Sampled, max_steps / 4, seed)?;
    if first.completion < MIN_COMPLETION {
        return Ok(None);
    }
    let left = max_steps.saturating_sub(first.n_steps);
    // Half of what is left is for the tail that the first tours have not seen.
    let n_tours = ((0.5 * left as f64 / first.mean_length) as usize).clamp(PROBE_TOURS, MAX_PILOT_TOURS);
    let settings = TourSettings {
        n_tours,
        max_steps: Some(left.max(n_tours as u64)),
        seed,
        occasion: MAIN,
        ..Default::default()
    };
    let tours = engine.run(&settings, progress)?;
    if !tours.all_complete() {
        return Ok(None);
    }
    let mut log_z = mclv_from_tours(&tours)?;
    log_z.n_states += first.n_steps as f64;
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(Some(log_z))
}

impl MclvSettings {
    pub(super) fn tours(&self, n_tours: usize) -> TourSettings {
        TourSettings {
            n_tours,
            visible: self.visible,
            stratified: self.stratified,
            max_length: self.max_length,
            max_steps: self.max_steps,
            max_seconds: self.max_seconds,
            seed: self.seed,
            occasion: MAIN,
        }
    }
}

/// By the clock of the first rank, since budgets are counted by it.
fn seconds_since(begun: Instant) -> f64 {
    team::of_first(begun.elapsed().as_secs_f64())
}

/// What tours that do not count say of those that will.
pub(super) struct Pilot {
    /// Tours that the target asks for.
    pub(super) n_tours: usize,
    pub(super) mean_length: f64,
    /// Share of its own tours that returned.
    pub(super) completion: f64,
    pub(super) n_steps: u64,
    seconds: f64,
}

impl Pilot {
    /// Double the tours, beginning anew each time, until the tail has been seen or a quarter of the budget is spent.
    pub(super) fn run(
        engine: &TourEngine<'_>,
        limits: &TourSettings,
        target: f64,
        first: u16,
    ) -> Result<Self> {
        if !(target > 0.0 && target.is_finite()) {
            let cure = "a standard error above 0";
            return Err(Error::InvalidSetting { name: "target-se", value: target.to_string(), cure });
        }
        let begun = Instant::now();
        let budget = limits.max_steps.map(|n| n / 4);
        let (mut n_steps, mut n_tours) = (0, PILOT_TOURS);
        for occasion in first.. {
            let left = budget.map(|n| n - n_steps.min(n));
            n_tours = left.map_or(n_tours, |n| n_tours.min(n as usize)).max(2) / 2 * 2;
            let settings = TourSettings {
                n_tours,
                max_steps: left.map(|n| n.max(n_tours as u64)),
                max_seconds: limits.max_seconds.map(|s| (s / 4.0 - seconds_since(begun)).max(1e-3)),
                occasion,
                ..limits.clone()
            };
            let tours = engine.run(&settings, &Silent)?;
            n_steps += tours.n_steps();
            let lengths = tours.lengths();
            let mean = tours.mean_length();
            let relative = mean.std_err / mean.value;
            let is_seen = n_carriers(&lengths) >= PILOT_CARRIERS || relative == 0.0;
            let is_spent = budget.is_some_and(|n| n_steps >= n)
                || limits.max_seconds.is_some_and(|s| seconds_since(begun) >= s / 4.0);
            if is_seen || is_spent || n_tours >= MAX_PILOT_TOURS {
                let wanted = (relative / target).powi(2) * n_tours as f64;
                let n_tours = (wanted.min(f64::from(u32::MAX - 1)).ceil() as usize).max(PILOT_TOURS);
                let seconds = seconds_since(begun);
                let completion = tours.n_complete() as f64 / tours.n_tours() as f64;
                return Ok(Self { n_tours, mean_length: mean.value, completion, n_steps, seconds });
            }
            n_tours *= 2;
        }
        unreachable!("occasions do not run out before the pilot's tours")
    }

    /// Tours for the target, or as many as can be expected to return within what is left of a budget.
    ///
    /// No tour that counts has a say in their number.
    fn n_tours_within(&self, steps: Option<u64>, seconds: Option<f64>) -> usize {
        /// Long tours may take that much more than expected.
        const MARGIN: f64 = 1.5;
        let per_second = self.n_steps as f64 / self.seconds.max(1e-9);
        let steps = steps.map_or(f64::INFINITY, |n| n as f64);
        let steps = seconds.map_or(steps, |s| steps.min(s * per_second));
        self.n_tours.min((steps / (MARGIN * self.mean_length)) as usize).max(2)
    }
}
