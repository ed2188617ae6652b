//! Estimate `log Z` from tours up and down a ladder of models.

use super::ais::check_size;
use super::budget::PILOT_SHARE;
use super::interval::{Declined, mean_interval, n_carriers};
use super::legs::legs;
use super::scouts::{Errand, N_SCOUTS, Scouts, spread_out_base};
use super::{Along, Effort, Guarantee, Inputs, LogZ, Method, Note, base_bias};
use crate::ladder::{
    BaseModel, Kept, LadderEngine, LadderSettings, LadderTours, Path, Pilot, Rungs, Tempering, combine,
    equally_rejecting, log_ratios, swap_rates,
};
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use crate::rng::Purpose;
use crate::tour::TourEngine;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

mod file;

/// Settings for [`ladder`]: how many tours, their limits, the size of the ladder and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderTourSettings {
    /// How many tours to run.
    pub effort: Effort,
    /// The number of rungs of each leg above its base model. With `None`, a pilot finds a number at
    /// which most moves between neighbours are accepted.
    pub n_rungs: Option<usize>,
    /// The most legs that begin at clusters of states, beside the leg that begins at a base model
    /// for all states.
    pub n_clusters: usize,
    /// The number of steps that pilots and tours may make together. `None` means no limit for the
    /// tours, and two million steps for the pilots.
    pub max_steps: Option<u64>,
    /// The number of scouts that look for states which the estimate may miss. With 0, the estimate
    /// has no interval, and the ladder has one leg.
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
            n_clusters: 16,
            max_steps: None,
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
const TEMPERING_STEPS: (u64, u64) = (100, 1_000);
/// The steps of pilots if there is no limit.
const PILOT_STEPS: u64 = 2_000_000;
/// The number of pilot tours, from which the number of tours follows.
const PILOT_TOURS: usize = 1_000;
/// The least and the most tours of an estimate.
const N_TOURS: (f64, f64) = (2_000.0, 1e6);
/// The most tours that a user may ask for. More would take several gigabytes.
const MOST_TOURS: usize = 1 << 24;
/// The tours of the estimate may take this multiple of their expected steps.
const MARGIN: f64 = 1.5;
/// The estimate and those of the pilot may be this many standard errors apart. The error bars of the
/// pilot come from eight ladders on each of up to 17 legs: by chance about one estimate in 80 is
/// farther below one of them (Student's t with 7 degrees of freedom).
const APART: f64 = 5.0;
/// The least share of the tours that begin on a leg, beside the share of the heaviest leg: `e⁻³`.
const LEAST_SHARE: f64 = 3.0;
/// The weight of the top rung is corrected if pilot tours find it wrong by more than this factor's
/// logarithm, and at least this many pilot tours have reached the top rung.
const WRONG_WEIGHT: f64 = 0.5;
const MIN_CLIMBERS: f64 = 10.0;

/// Tours give way to another method if a smaller share of pilot tours reaches the model, or if the
/// standard error would be larger than this.
const MIN_CLIMBED: f64 = 0.005;
const POOR: f64 = 0.5;

/// The occasions of tours. The second pilot comes after a correction of the weights.
const COUNTED: u16 = 0;
const PILOTS: [u16; 2] = [1, 2];

/// Estimates `log Z` from tours with a ladder.
///
/// The rungs of the ladder are models from independent units to `rbm`. A walker makes Gibbs steps,
/// and moves up and down. A tour begins and ends on the lowest rung, where units are independent, or
/// in a state of the stopping set on the top rung, if `inputs` has one. The weight of both is known,
/// so the number of visits to the top rung gives `Z`. Tours return at any size of the model.
///
/// The ladder has several legs, which share the top rung. One begins at a base model for all states:
/// that of `inputs`, or that of its rows. The others begin at independent units with the means of a
/// cluster of states, which scouts and rows show. Far modes are then reached without crossing the
/// barriers between them.
///
/// A pilot places the rungs, and parallel tempering finds their weights. Both are fixed before the
/// tours begin, and other random numbers are used for them. `inputs` may have a [`Ladder`] that was
/// made before.
///
/// # Guarantee
/// Without a limit, `E[Ẑ] = Z` for any number of tours ([`Guarantee::UnbiasedZ`]). With a limit, a
/// tour that is cut counts with the visits that it made, and `E[Ẑ] ≤ Z`
/// ([`Guarantee::LowerBound`]). Bad weights cost accuracy, not this guarantee. The estimate has an
/// interval only if all of these conditions hold:
///
/// - No tour was cut, and [`mean_interval`] gives an interval for the mean number of visits.
/// - Parallel tempering, which found the weights, agrees with the tours within five standard errors.
///   On each leg it may be lower, because it may miss modes far from the leg, but not higher. The
///   sum of its values over all legs may not be lower.
/// - The estimate is not below the sum over all states that scouts have visited.
///
/// # Cost
/// A step takes a little longer than a Gibbs step. A tour takes about `2 (n_rungs + 1)` steps if the
/// weights are good.
///
/// ```
/// use mclv::{Rbm, partition::{self, Inputs, LadderTourSettings, ladder}, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let estimate = ladder(&rbm, &Inputs::default(), &LadderTourSettings::default(), &Silent)?;
/// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
/// assert!((estimate.value - exact.value).abs() < 4.0 * estimate.std_err.unwrap());
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If a setting is not allowed, if the set, the rows or the base model do not fit the model, or if
/// the listener cancels.
pub fn ladder(
    rbm: &Rbm,
    inputs: &Inputs<'_>,
    settings: &LadderTourSettings,
    progress: &dyn Progress,
) -> Result<LogZ> {
    match climb_along(rbm, inputs, settings, false, &Along::NOTHING, progress)?.0 {
        Outcome::Estimate(log_z) => Ok(log_z),
        Outcome::GivenUp { .. } => unreachable!("tours that may not give way go on"),
    }
}

/// Returns the visible biases of the base model of the first leg.
fn base(rbm: &Rbm, inputs: &Inputs<'_>) -> Vec<f32> {
    match (inputs.base_bias, inputs.rows) {
        (Some(bias), _) => bias.to_vec(),
        (None, Some(rows)) => base_bias(&rows.column_means(), rows.n_rows()),
        (None, None) => spread_out_base(rbm),
    }
}

fn scouts(
    rbm: &Rbm,
    base: &[f32],
    settings: &LadderTourSettings,
    progress: &dyn Progress,
) -> Result<Option<Scouts>> {
    match settings.n_scouts {
        0 => Ok(None),
        n => Scouts::send(rbm, Some(base), n, settings.seed, Errand::Find, progress).map(Some),
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
/// the estimate would be poor. The second result is the sums of statistics along the tours.
pub(super) fn climb_along(
    rbm: &Rbm,
    inputs: &Inputs<'_>,
    settings: &LadderTourSettings,
    may_give_way: bool,
    along: &Along<'_>,
    progress: &dyn Progress,
) -> Result<(Outcome, Vec<f64>)> {
    let begun = Instant::now();
    settings.check()?;
    let base = base(rbm, inputs);
    let scouts = scouts(rbm, &base, settings, progress)?;
    let mut climb = match inputs.ladder {
        Some(ladder) => ladder.for_model(rbm)?.clone(),
        None => Ladder::with_scouts(rbm, inputs, &base, scouts.as_ref(), settings, progress)?,
    };
    let path = Path::with_legs(rbm, &climb.bases, Kept::Hidden)?;
    let top = inputs.stopping_set.map(|set| TourEngine::new(rbm, set)).transpose()?;
    let mut n_before = climb.n_steps + scouts.as_ref().map_or(0, |scouts| scouts.n_steps);
    let mut n_tours = match settings.effort {
        Effort::Tours(n) if (1..=MOST_TOURS).contains(&n) => n,
        Effort::Tours(n) => {
            let cure = "from 1 to 16,777,216";
            return Err(Error::InvalidSetting { name: "n-tours", value: n.to_string(), cure });
        }
        Effort::TargetSe(_) | Effort::Affordable => 0,
    };
    // The numbers of pilot tours to look at: without a decision to make, none.
    let pilots = if n_tours > 0 && !may_give_way { &[][..] } else { &PILOTS };
    for &occasion in pilots {
        let engine = LadderEngine::new(&path, &climb.legs, top.as_ref(), true);
        let forecast = Forecast::new(&engine, settings, n_before, occasion)?;
        n_before += forecast.n_steps;
        if occasion == PILOTS[0] && climb.corrects_top(&forecast) {
            continue;
        }
        if may_give_way && forecast.is_poor() {
            let given_up = Outcome::GivenUp { climbed: forecast.climbed, n_steps: n_before };
            return Ok((given_up, Vec::new()));
        }
        n_tours = forecast.n_tours.min(along.n_tours.1);
        break;
    }
    let engine = LadderEngine::new(&path, &climb.legs, top.as_ref(), true);
    let of_tours = LadderSettings {
        n_tours,
        max_steps: settings.max_steps.map(|n| n.saturating_sub(n_before).max(n_tours as u64)),
        seed: settings.seed,
        occasion: COUNTED,
    };
    let tours = engine.run(&of_tours, along.n_statistics, along.add, progress)?;
    let mut log_z = climb.estimate(&tours, settings);
    if let Some(scouts) = &scouts {
        log_z.compare_with_known(TourEngine::new(rbm, &scouts.visited)?.log_z_s());
    } else if log_z.interval.take().is_some() {
        log_z.notes.push(Note::NotScouted);
    }
    log_z.n_states += n_before as f64;
    log_z.seconds = begun.elapsed().as_secs_f64();
    let sums = tours.tours.into_iter().flat_map(|tour| tour.sums).collect();
    Ok((Outcome::Estimate(log_z), sums))
}

/// A ladder of models that leads to an RBM: base models, the rungs above them and their weights.
///
/// A pilot makes it ([`Ladder::new`]). The pilot takes most of the time of a rough estimate, so a
/// ladder can be saved and used again for the same model, with other seeds or a smaller target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ladder {
    /// The SHA-256 of the parameters of the model.
    pub(super) model: String,
    pub(super) bases: Vec<BaseModel<'static>>,
    pub(super) legs: Vec<Rungs>,
    /// For each leg, `log Z` by parallel tempering and its standard error.
    pub(super) estimates: Vec<(f64, f64)>,
    /// The smallest share of accepted swaps between neighbours.
    pub(super) swap_rate: f64,
    /// Steps of the pilot. A ladder that was read from a file has cost none.
    #[serde(skip)]
    n_steps: u64,
}

impl Ladder {
    /// Makes a ladder to `rbm`: chooses base models, places the rungs and finds their weights by
    /// parallel tempering. [`ladder`] does the same if `inputs` has no ladder.
    ///
    /// # Errors
    /// Those of [`ladder`].
    pub fn new(
        rbm: &Rbm,
        inputs: &Inputs<'_>,
        settings: &LadderTourSettings,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let base = base(rbm, inputs);
        let scouts = scouts(rbm, &base, settings, progress)?;
        Self::with_scouts(rbm, inputs, &base, scouts.as_ref(), settings, progress)
    }

    fn with_scouts(
        rbm: &Rbm,
        inputs: &Inputs<'_>,
        base: &[f32],
        scouts: Option<&Scouts>,
        settings: &LadderTourSettings,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let legs = legs(rbm, base, scouts, inputs.rows, settings.n_clusters, settings.seed, progress)?;
        let mut climb = Self {
            model: rbm.digest(),
            bases: legs.iter().map(|leg| leg.base.clone()).collect(),
            legs: Vec::new(),
            estimates: Vec::new(),
            swap_rate: 1.0,
            n_steps: 0,
        };
        let steps = settings.max_steps.map_or(PILOT_STEPS, |n| n / PILOT_SHARE) / legs.len() as u64;
        for (number, leg) in legs.iter().enumerate() {
            let path = Path::with_legs(rbm, std::slice::from_ref(&leg.base), Kept::Hidden)?;
            // Each leg has random numbers of its own.
            let seed = settings.seed ^ (number as u64) << 56;
            let pilot = Pilot::run(&path, PILOT_BETAS, seed, progress)?;
            let found = ((pilot.length() / DISTANCE).ceil() as usize).max(2);
            let n_rungs = settings.n_rungs.unwrap_or(found);
            check_size("n-rungs", n_rungs)?;
            let per_ladder = steps / (N_LADDERS * (n_rungs + 1)) as u64;
            let n_steps = per_ladder.clamp(TEMPERING_STEPS.0, TEMPERING_STEPS.1) as usize;
            let tempering = |betas: Vec<f64>, n_steps: usize, purpose: Purpose| Tempering {
                betas,
                starts: leg.starts.as_ref(),
                n_ladders: N_LADDERS,
                n_steps: n_steps - n_steps / 4,
                burn_in: n_steps / 4,
                seed,
                purpose,
            };
            // A first run shows how often neighbours exchange. The rungs are then placed such that
            // all neighbours exchange equally often.
            let first = tempering(pilot.ladder(n_rungs), n_steps / 4, Purpose::LadderPlaces);
            let exchanges = swap_rates(&first.run(&path, progress)?);
            let rejections: Vec<f64> = exchanges.iter().map(|rate| 1.0 - rate).collect();
            let betas = equally_rejecting(&first.betas, &rejections);
            let tempering = tempering(betas, n_steps - n_steps / 4, Purpose::LadderPilot);
            climb.n_steps += first.total_steps();
            let ladders = tempering.run(&path, progress)?;
            let mut log_z_k = path.log_z_base(0);
            let mut log_c = vec![-log_z_k];
            let ratios = log_ratios(&ladders);
            for (log_ratio, _) in &ratios {
                log_z_k += log_ratio;
                log_c.push(-log_z_k);
            }
            let (log_ratio, std_err) = combine(&ratios);
            climb.estimates.push((path.log_z_base(0) + log_ratio, std_err));
            let rates = swap_rates(&ladders);
            tracing::debug!(
                "leg {number}: log Z {log_z_k:.3} ± {std_err:.3}, rungs {:.4?}, swaps accepted {rates:.2?}",
                tempering.betas
            );
            climb.swap_rate = rates.into_iter().fold(climb.swap_rate, f64::min);
            climb.n_steps += tempering.total_steps();
            climb.legs.push(Rungs { betas: tempering.betas, log_c });
        }
        climb.join_legs();
        Ok(climb)
    }

    /// Gives all legs the same top rung, and each leg a share of the tours: that of the mass that
    /// parallel tempering found on it.
    fn join_legs(&mut self) {
        let heaviest = self.heaviest();
        for (rungs, (log_z, _)) in self.legs.iter_mut().zip(&self.estimates) {
            let share = (log_z - heaviest).max(-LEAST_SHARE);
            let last = rungs.log_c.len() - 1;
            rungs.log_c[..last].iter_mut().for_each(|log_c| *log_c += share);
            rungs.log_c[last] = -heaviest;
        }
    }

    /// The largest `log Z` that parallel tempering found on a leg.
    fn heaviest(&self) -> f64 {
        self.estimates.iter().fold(f64::NEG_INFINITY, |most, (log_z, _)| most.max(*log_z))
    }

    /// Sets the weight of the top rung to what pilot tours found, and returns true, if it was far
    /// from right.
    fn corrects_top(&mut self, forecast: &Forecast) -> bool {
        let error = forecast.log_z.map_or(0.0, |log_z| log_z - self.heaviest());
        if error.abs() < WRONG_WEIGHT {
            return false;
        }
        for rungs in &mut self.legs {
            if let Some(log_c) = rungs.log_c.last_mut() {
                *log_c -= error;
            }
        }
        true
    }

    /// How far an estimate with a standard error is from what parallel tempering found, if it is too
    /// far.
    fn contradiction(&self, value: f64, std_err: f64) -> Option<f64> {
        let apart = |of_leg: f64| APART * std_err.hypot(of_leg);
        let higher = self.estimates.iter().filter(|(log_z, of_leg)| value < log_z - apart(*of_leg));
        let lower_than = higher.map(|(log_z, _)| value - log_z).reduce(f64::min);
        let heaviest = self.heaviest();
        let sum: f64 = self.estimates.iter().map(|(log_z, _)| (log_z - heaviest).exp()).sum();
        let largest_error = self.estimates.iter().fold(0.0, |most: f64, (_, of_leg)| most.max(*of_leg));
        let all = heaviest + sum.ln();
        lower_than.or((value > all + apart(largest_error)).then_some(value - all))
    }

    /// Turns tours into an estimate.
    fn estimate(&self, tours: &LadderTours, settings: &LadderTourSettings) -> LogZ {
        let visits = tours.visits();
        let n = visits.len() as f64;
        let (mean, variance) = tours.mean_and_variance();
        let n_rungs = self.legs.iter().map(|rungs| rungs.betas.len() - 1).max().unwrap_or(0);
        let least = self.estimates.iter().fold(f64::INFINITY, |least, (log_z, _)| least.min(*log_z));
        let mut notes = vec![
            Note::Ladder {
                n_legs: self.legs.len(),
                n_rungs,
                swap_rate: self.swap_rate,
                climbed: tours.climbed(),
                mean_length: tours.n_steps as f64 / n,
            },
            Note::Tempering { low: least, high: self.heaviest() },
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
        let value = if mean > 0.0 { tours.log_scale + mean.ln() } else { self.heaviest() };
        if mean <= 0.0 {
            std_err = None;
            notes.push(Note::TopNotReached);
        }
        if let Some(difference) = std_err.and_then(|std_err| self.contradiction(value, std_err)) {
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
    /// `log Z` by the pilot tours, if enough of them reached the model.
    log_z: Option<f64>,
    n_steps: u64,
}

impl Forecast {
    fn new(
        engine: &LadderEngine<'_>,
        settings: &LadderTourSettings,
        n_so_far: u64,
        occasion: u16,
    ) -> Result<Self> {
        let limit = settings.max_steps.map_or(PILOT_STEPS, |n| n / PILOT_SHARE);
        let pilot = LadderSettings {
            n_tours: PILOT_TOURS,
            max_steps: Some(limit.max(PILOT_TOURS as u64)),
            seed: settings.seed,
            occasion,
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
            log_z: (tours.climbed() * PILOT_TOURS as f64 >= MIN_CLIMBERS && mean > 0.0)
                .then(|| tours.log_scale + mean.ln()),
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
