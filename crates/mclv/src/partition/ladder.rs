//! Estimate `log Z` from tours up and down a ladder of models.

use super::ais::check_size;
use super::budget::PILOT_SHARE;
use super::interval::{Declined, mean_interval, n_carriers};
use super::scouts::{Errand, N_SCOUTS, Scouts, spread_out_base};
use super::{Effort, Guarantee, LogZ, Method, Note};
use crate::ladder::{
    Kept, LadderEngine, LadderSettings, LadderTours, Path, Pilot, Rungs, Tempering, combine, log_ratios,
    swap_rates,
};
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use crate::rng::Purpose;
use crate::tour::{StoppingSet, TourEngine};
use crate::{Error, Result};
use std::time::Instant;

/// Settings for [`ladder`]: how many tours, their limits, the base model and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderTourSettings {
    /// How many tours to run.
    pub effort: Effort,
    /// The number of rungs above the base model. With `None`, a pilot finds a number at which most
    /// moves between neighbours are accepted.
    pub n_rungs: Option<usize>,
    /// The number of steps that pilots and tours may make together. `None` means no limit for the
    /// tours, and two million steps for the pilots.
    pub max_steps: Option<u64>,
    /// Visible biases of the base model, as for [`ais`](super::ais()).
    pub base_bias: Option<Vec<f32>>,
    /// The number of scouts that look for states which the estimate may miss. With 0, the estimate
    /// has no interval.
    pub n_scouts: usize,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Default for LadderTourSettings {
    /// Tours for a standard error of 0.05, without a limit.
    fn default() -> Self {
        Self {
            effort: Effort::TargetSe(0.05),
            n_rungs: None,
            max_steps: None,
            base_bias: None,
            n_scouts: N_SCOUTS,
            seed: 0,
        }
    }
}

/// Temperatures of the pilot that places the rungs, and the distance between neighbours.
const PILOT_BETAS: usize = 200;
const DISTANCE: f64 = 0.6;
/// The number of ladders of chains that find the weights of the rungs.
const N_LADDERS: usize = 8;
/// The least and the most steps of each of these ladders.
const TEMPERING_STEPS: (u64, u64) = (100, 4_000);
/// The steps of pilots if there is no limit.
const PILOT_STEPS: u64 = 2_000_000;
/// The number of pilot tours, from which the number of tours follows.
const PILOT_TOURS: usize = 1_000;
/// The least and the most tours of an estimate.
const N_TOURS: (f64, f64) = (2_000.0, 1e6);
/// The tours of the estimate may take this multiple of their expected steps.
const MARGIN: f64 = 1.5;
/// The estimate and that of the pilot may be this many standard errors apart. The error bar of the
/// pilot comes from eight ladders.
const APART: f64 = 4.0;

/// Tours give way to another method if a smaller share of pilot tours reaches the model, or if the
/// standard error would be larger than this.
const MIN_CLIMBED: f64 = 0.005;
const POOR: f64 = 0.5;

/// The occasions of tours.
const COUNTED: u16 = 0;
const PILOT: u16 = 1;

/// Estimates `log Z` from tours with a ladder.
///
/// The rungs of the ladder are models from independent units to `rbm`. A walker makes Gibbs steps,
/// and moves up and down. A tour begins and ends on the lowest rung, where units are independent, or
/// in a state of `set` on the top rung. The weight of both is known, so the number of visits to the
/// top rung gives `Z`. Tours return at any size of the model.
///
/// A pilot places the rungs, and parallel tempering finds their weights. Both are fixed before the
/// tours begin, and other random numbers are used for them.
///
/// # Guarantee
/// Without a limit, `E[Ẑ] = Z` for any number of tours ([`Guarantee::UnbiasedZ`]). With a limit, a
/// tour that is cut counts with the visits that it made, and `E[Ẑ] ≤ Z`
/// ([`Guarantee::LowerBound`]). Bad weights cost accuracy, not this guarantee. The estimate has an
/// interval only if all of these conditions hold:
///
/// - No tour was cut, and [`mean_interval`] gives an interval for the mean number of visits.
/// - Parallel tempering, which found the weights, agrees with the tours within four standard errors.
/// - The estimate is not below the sum over all states that scouts have visited.
///
/// # Cost
/// A step takes a little longer than a Gibbs step. A tour takes about `2 (n_rungs + 1)` steps if the
/// weights are good.
///
/// ```
/// use mclv::{Rbm, partition::{self, LadderTourSettings, ladder}, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let estimate = ladder(&rbm, None, &LadderTourSettings::default(), &Silent)?;
/// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
/// assert!((estimate.value - exact.value).abs() < 4.0 * estimate.std_err.unwrap());
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If a setting is not allowed, if the set or the base model does not fit the model, or if the
/// listener cancels.
pub fn ladder(
    rbm: &Rbm,
    set: Option<&StoppingSet>,
    settings: &LadderTourSettings,
    progress: &dyn Progress,
) -> Result<LogZ> {
    match climb(rbm, set, settings, false, progress)? {
        Outcome::Estimate(log_z) => Ok(log_z),
        Outcome::GivenUp { .. } => unreachable!("tours that may not give way go on"),
    }
}

/// What became of tours with a ladder.
pub(super) enum Outcome {
    Estimate(LogZ),
    /// Too few pilot tours climbed to the model.
    GivenUp {
        /// The share of the pilot tours that reached the model.
        climbed: f64,
        /// The number of steps that were made.
        n_steps: u64,
    },
}

/// Does the work of [`ladder`]. If tours `may_give_way`, they do so when pilot tours forecast that
/// the estimate would be poor.
pub(super) fn climb(
    rbm: &Rbm,
    set: Option<&StoppingSet>,
    settings: &LadderTourSettings,
    may_give_way: bool,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let begun = Instant::now();
    settings.check()?;
    let spread_out = spread_out_base(rbm);
    let base = settings.base_bias.as_deref().unwrap_or(&spread_out);
    let scouts = match settings.n_scouts {
        0 => None,
        n => Some(Scouts::send(rbm, Some(base), n, settings.seed, Errand::Find, progress)?),
    };
    let path = Path::new(rbm, Some(base), Kept::Hidden)?;
    let climb = Climb::new(&path, scouts.as_ref(), settings, progress)?;
    let top = set.map(|set| TourEngine::new(rbm, set)).transpose()?;
    let engine = LadderEngine::new(&path, &climb.rungs, top.as_ref(), true);
    let n_so_far = climb.n_steps + scouts.as_ref().map_or(0, |scouts| scouts.n_steps);
    let (n_tours, n_before) = match settings.effort {
        Effort::Tours(n) if !may_give_way => (n, n_so_far),
        _ => {
            let forecast = Forecast::new(&engine, settings, n_so_far)?;
            let n_before = n_so_far + forecast.n_steps;
            if may_give_way && forecast.is_poor() {
                return Ok(Outcome::GivenUp { climbed: forecast.climbed, n_steps: n_before });
            }
            (forecast.n_tours, n_before)
        }
    };
    let of_tours = LadderSettings {
        n_tours,
        max_steps: settings.max_steps.map(|n| n.saturating_sub(n_before).max(n_tours as u64)),
        seed: settings.seed,
        occasion: COUNTED,
    };
    let tours = engine.run(&of_tours, 0, &|_, _, _| {}, progress)?;
    let mut log_z = climb.estimate(&tours, settings);
    if let Some(scouts) = &scouts {
        log_z.compare_with_known(TourEngine::new(rbm, &scouts.visited)?.log_z_s());
    } else if log_z.interval.take().is_some() {
        log_z.notes.push(Note::NotScouted);
    }
    log_z.n_states += n_before as f64;
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(Outcome::Estimate(log_z))
}

/// A ladder with its weights, and what parallel tempering says of `log Z`.
struct Climb {
    rungs: Rungs,
    log_z: f64,
    std_err: f64,
    /// The smallest share of accepted swaps between neighbours.
    swap_rate: f64,
    n_steps: u64,
}

impl Climb {
    fn new(
        path: &Path,
        scouts: Option<&Scouts>,
        settings: &LadderTourSettings,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let pilot = Pilot::run(path, PILOT_BETAS, settings.seed, progress)?;
        let found = ((pilot.length() / DISTANCE).ceil() as usize).max(2);
        let n_rungs = settings.n_rungs.unwrap_or(found);
        check_size("n-rungs", n_rungs)?;
        let steps = settings.max_steps.map_or(PILOT_STEPS, |n| n / PILOT_SHARE);
        let per_ladder = steps / (N_LADDERS * (n_rungs + 1)) as u64;
        let n_steps = per_ladder.clamp(TEMPERING_STEPS.0, TEMPERING_STEPS.1) as usize;
        let tempering = Tempering {
            betas: pilot.ladder(n_rungs),
            starts: scouts.map(|scouts| &scouts.hidden),
            n_ladders: N_LADDERS,
            n_steps: n_steps - n_steps / 4,
            burn_in: n_steps / 4,
            seed: settings.seed,
            purpose: Purpose::LadderPilot,
        };
        let ladders = tempering.run(path, progress)?;
        let mut log_z_k = path.log_z_base();
        let mut log_c = vec![-log_z_k];
        let ratios = log_ratios(&ladders);
        for (log_ratio, _) in &ratios {
            log_z_k += log_ratio;
            log_c.push(-log_z_k);
        }
        let (log_ratio, std_err) = combine(&ratios);
        let rates = swap_rates(&ladders);
        tracing::debug!("rungs {:.4?}, swaps accepted {rates:.2?}", tempering.betas);
        Ok(Self {
            n_steps: tempering.total_steps(),
            rungs: Rungs { betas: tempering.betas, log_c },
            log_z: path.log_z_base() + log_ratio,
            std_err,
            swap_rate: rates.into_iter().fold(1.0, f64::min),
        })
    }

    /// Turns tours into an estimate.
    fn estimate(&self, tours: &LadderTours, settings: &LadderTourSettings) -> LogZ {
        let visits = tours.visits();
        let n = visits.len() as f64;
        let (mean, variance) = tours.mean_and_variance();
        let mut notes = vec![
            Note::Ladder {
                n_rungs: self.rungs.betas.len() - 1,
                swap_rate: self.swap_rate,
                climbed: tours.climbed(),
                mean_length: tours.n_steps as f64 / n,
            },
            Note::Tempering { log_z: self.log_z, std_err: self.std_err },
        ];
        let (mut std_err, mut interval) = (Some((variance / n).sqrt() / mean), None);
        if tours.n_cut() > 0 {
            notes.push(Note::LadderToursCut { n_cut: tours.n_cut(), n_tours: visits.len() });
        } else {
            match mean_interval(&visits) {
                Ok((low, high)) if low > 0.0 => {
                    interval = Some((tours.log_scale + low.ln(), tours.log_scale + high.ln()));
                }
                Ok(_) => {
                    notes.push(Note::VisitsUnseen {
                        reason: Declined::FewCarriers { n: n_carriers(&visits) },
                    });
                }
                Err(reason) => {
                    if !matches!(reason, Declined::TooFew { .. }) {
                        std_err = None;
                    }
                    notes.push(Note::VisitsUnseen { reason });
                }
            }
        }
        // Without a visit there is no estimate but that of the pilot.
        let value = if mean > 0.0 { tours.log_scale + mean.ln() } else { self.log_z };
        if mean <= 0.0 {
            std_err = None;
            notes.push(Note::TopNotReached);
        }
        let difference = value - self.log_z;
        if difference.abs() > APART * std_err.unwrap_or(f64::INFINITY).hypot(self.std_err) {
            (std_err, interval) = (None, None);
            notes.push(Note::TemperingDisagrees { difference });
        }
        if let (Effort::TargetSe(target), Some(reached)) = (settings.effort, std_err)
            && reached > 1.25 * target
        {
            notes.push(Note::TargetMissed { ratio: reached / target });
        }
        let guarantee = match settings.max_steps {
            _ if mean <= 0.0 => Guarantee::None,
            Some(_) => Guarantee::LowerBound,
            None => Guarantee::UnbiasedZ,
        };
        LogZ {
            value,
            std_err,
            interval,
            guarantee,
            method: Method::Ladder,
            n_states: tours.n_steps as f64,
            seconds: 0.0,
            notes,
        }
    }
}

impl LadderTourSettings {
    fn check(&self) -> Result<()> {
        let refuse = |name, value: String, cure| Err(Error::InvalidSetting { name, value, cure });
        match self.effort {
            Effort::Tours(n) if n < 2 => refuse("n-tours", n.to_string(), "at least 2"),
            Effort::TargetSe(se) if se.is_nan() || se <= 0.0 => {
                refuse("target-se", se.to_string(), "more than 0")
            }
            _ => Ok(()),
        }
    }
}

/// What pilot tours say about the tours of the estimate.
struct Forecast {
    n_tours: usize,
    /// The relative standard error that this number of tours is expected to have.
    std_err: f64,
    /// The share of the pilot tours that reached the model.
    climbed: f64,
    n_steps: u64,
}

impl Forecast {
    fn new(engine: &LadderEngine<'_>, settings: &LadderTourSettings, n_so_far: u64) -> Result<Self> {
        let limit = settings.max_steps.map_or(PILOT_STEPS, |n| n / PILOT_SHARE);
        let pilot = LadderSettings {
            n_tours: PILOT_TOURS,
            max_steps: Some(limit.max(PILOT_TOURS as u64)),
            seed: settings.seed,
            occasion: PILOT,
        };
        let tours = engine.run(&pilot, 0, &|_, _, _| {}, &Silent)?;
        let (mean, variance) = tours.mean_and_variance();
        // A pilot that saw nothing knows no spread.
        let spread = if mean > 0.0 { variance / (mean * mean) } else { f64::INFINITY };
        let per_tour = tours.n_steps as f64 / PILOT_TOURS as f64;
        let affordable = settings.max_steps.map_or(f64::INFINITY, |max| {
            max.saturating_sub(n_so_far + tours.n_steps) as f64 / (MARGIN * per_tour)
        });
        let n_tours = match settings.effort {
            Effort::Tours(n) => n as f64,
            Effort::TargetSe(target) => (spread / (target * target)).max(N_TOURS.0).min(affordable),
            Effort::Affordable => affordable,
        };
        let n_tours = n_tours.min(N_TOURS.1).max(2.0);
        Ok(Self {
            n_tours: n_tours as usize,
            std_err: (spread / n_tours).sqrt(),
            climbed: tours.climbed(),
            n_steps: tours.n_steps,
        })
    }

    /// Returns true if the estimate is not expected to be worth its steps.
    fn is_poor(&self) -> bool {
        self.climbed < MIN_CLIMBED || self.std_err > POOR
    }
}

#[cfg(test)]
mod tests;
