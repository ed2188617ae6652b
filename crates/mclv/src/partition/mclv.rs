//! Estimate `log Z` from tours (Markov Chain Las Vegas; Savarese, Kakodkar and Ribeiro 2018).

use super::forecast::{COUNTED, Forecast, PILOT, seconds_since};
use super::interval::{Declined, mean_interval, small_excess_interval};
use super::scouts::{N_SCOUTS, Reach};
use super::{Along, Guarantee, LogZ, Method, Note};
use crate::chain::VisibleChain;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::tour::{StartedFrom, StoppingSet, TourEngine, TourSettings, Tours};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A note is added if the standard error is at least this multiple of the target.
const TARGET_MISSED: f64 = 1.25;

/// How many tours [`mclv`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Run exactly this number of tours.
    Tours(usize),
    /// Run the number of tours that pilot tours forecast for this standard error of `log Z`. Pilot
    /// tours are not part of the estimate, and the number is not changed afterwards: stopping when
    /// an *estimated* error is small would bias the estimate.
    TargetSe(f64),
    /// Run the number of tours that are expected to take half of `max_steps`: at least 256, at most
    /// 2¹⁸.
    Affordable,
}

impl Effort {
    /// Rejects a standard error that is not a positive number.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::TargetSe(se) if !(se > 0.0 && se.is_finite()) => {
                let cure = "a standard error above 0";
                Err(Error::InvalidSetting { name: "target-se", value: se.to_string(), cure })
            }
            _ => Ok(()),
        }
    }
}

/// Settings for [`mclv`]: the number of tours, their limits, the scouts and the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct MclvSettings {
    /// How many tours to run.
    pub effort: Effort,
    /// The chain of the visible units: true Gibbs, or mean field, which has no guarantee.
    pub visible: VisibleChain,
    /// If true, starts are spread evenly over `π_S`; if false, they are independent.
    pub stratified: bool,
    /// The number of steps after which a tour is cut. `None` means no limit.
    pub max_length: Option<u32>,
    /// The number of steps that all tours may make together, including pilot tours. `None` means no
    /// limit.
    pub max_steps: Option<u64>,
    /// The seconds that all tours may take together, including pilot tours. `None` means no limit.
    pub max_seconds: Option<f64>,
    /// The number of scouts: chains from random starts that must reach the stopping set before an
    /// interval is given. With 0, the estimate has no interval.
    pub n_scouts: usize,
    /// The seed of starts and steps.
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
            n_scouts: N_SCOUTS,
            seed: 0,
        }
    }
}

/// Estimates `log Z` from tours: `Ẑ = Z_S·ξ̄`, the weight of the stopping set times the mean tour
/// length.
///
/// # Guarantee
/// With a Gibbs chain and no budget, `E[Ẑ] = Z` for any number of tours ([`Guarantee::UnbiasedZ`]).
/// With a budget, a tour that is cut counts with the steps that it made, and `E[Ẑ] ≤ Z`
/// ([`Guarantee::LowerBound`]). This label does not depend on whether tours *were* cut: an estimate
/// that is called unbiased only if none was cut is biased. A mean-field chain has no guarantee.
///
/// [`mean_interval`] gives the interval, if no tour was cut and if chains from random starts reach
/// the stopping set. Otherwise a note gives the reason why there is none. The standard error is
/// `None` if all lengths are equal, if a few tours carry it, or if chains do not reach the set.
///
/// ```
/// use mclv::{Rbm, StoppingSet, bits::BitRows, partition::{self, MclvSettings, mclv}, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let set = StoppingSet::new(&BitRows::from_words(3, vec![0b000, 0b111]));
/// let estimate = mclv(&rbm, &set, &MclvSettings::default(), &Silent)?;
/// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
/// assert!((estimate.value - exact.value).abs() < 4.0 * estimate.std_err.expect("lengths vary"));
/// let (low, high) = estimate.interval.expect("these tours have a short tail");
/// assert!(low < estimate.value && estimate.value < high);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If a setting is not allowed, if the set does not fit the model, or if the listener cancels.
pub fn mclv(rbm: &Rbm, set: &StoppingSet, settings: &MclvSettings, progress: &dyn Progress) -> Result<LogZ> {
    let begun = Instant::now();
    let engine = TourEngine::new(rbm, set)?;
    let (forecast, left) = match settings.forecast(&engine)? {
        None => (None, settings.clone()),
        Some(forecast) => {
            let left = MclvSettings {
                max_steps: settings.max_steps.map(|n| n.saturating_sub(forecast.n_steps)),
                max_seconds: settings.max_seconds.map(|s| s - seconds_since(begun)),
                ..settings.clone()
            };
            (Some(forecast), left)
        }
    };
    let (mut log_z, _) = left.count(&engine, forecast.as_ref(), &Along::NOTHING, progress)?;
    log_z.n_states += forecast.map_or(0.0, |forecast| forecast.n_steps as f64);
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(log_z)
}

/// Estimates `log Z` like [`mclv`], from tours that `engine` has made already.
///
/// `n_scouts` chains from random starts test whether they reach the stopping set. With 0, the
/// estimate has no interval.
///
/// # Errors
/// If the tours began at data rows, because Kac's identity does not hold for such tours, or if the
/// listener cancels.
pub fn mclv_from_tours(
    engine: &TourEngine<'_>,
    tours: &Tours,
    n_scouts: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<LogZ> {
    if tours.started_from() == StartedFrom::Rows {
        return Err(Error::InvalidSetting {
            name: "starts",
            value: "rows".into(),
            cure: "only tours from pi estimate Z",
        });
    }
    let mean = tours.mean_length();
    let n_cut = tours.n_tours() - tours.n_complete();
    let guarantee = match (tours.is_gibbs(), tours.has_budget()) {
        (false, _) => Guarantee::None,
        (true, false) => Guarantee::UnbiasedZ,
        (true, true) => Guarantee::LowerBound,
    };
    let mut notes = Vec::new();
    let (mut std_err, mut interval) = (Some(mean.std_err / mean.value), None);
    let mut n_states = tours.n_steps() as f64;
    let lengths = tours.lengths();
    if !tours.is_gibbs() {
        notes.push(Note::MeanField);
    } else if n_cut > 0 {
        notes.push(Note::ToursCut { n_cut, n_tours: tours.n_tours() });
    } else {
        // With stratified starts the variance is smaller than this interval assumes.
        match mean_interval(&lengths) {
            Ok((low, high)) => {
                interval = Some((tours.log_z_s() + low.max(1.0).ln(), tours.log_z_s() + high.ln()));
            }
            Err(reason) => {
                if reason != (Declined::TooFew { n: lengths.len() }) {
                    std_err = None;
                }
                notes.push(Note::TailUnseen { reason });
            }
        }
    }
    if n_cut == tours.n_tours() || lengths.iter().all(|&x| x == lengths[0]) {
        std_err = None;
    }
    if n_scouts == 0 {
        if interval.take().is_some() {
            notes.push(Note::NotScouted);
        }
    } else if tours.is_gibbs() {
        let reach = Reach::of(engine, tours, n_scouts, seed, progress)?;
        n_states += reach.n_steps as f64;
        if reach.n_out > 0 {
            (std_err, interval) = (None, None);
            notes.push(Note::SetNotReached {
                n_out: reach.n_out,
                n_scouts: reach.n_scouts,
                allowed: reach.allowed,
            });
        } else if n_cut == 0
            && interval.is_none()
            && let Some((_, high)) = small_excess_interval(&lengths, f64::from(reach.longest))
        {
            interval = Some((tours.log_z_s(), tours.log_z_s() + high.ln()));
            notes.retain(|note| !matches!(note, Note::TailUnseen { .. }));
            notes.push(Note::FewLongTours);
        }
    }
    Ok(LogZ {
        value: tours.log_z_s() + mean.value.ln(),
        std_err,
        interval,
        guarantee,
        method: Method::Mclv,
        n_states,
        seconds: tours.seconds(),
        notes,
    })
}

impl MclvSettings {
    /// Returns the limits of the tours. The number of tours is still open.
    pub(super) fn limits(&self) -> TourSettings {
        TourSettings {
            n_tours: 0,
            visible: self.visible,
            stratified: self.stratified,
            max_length: self.max_length,
            max_steps: self.max_steps,
            max_seconds: self.max_seconds,
            seed: self.seed,
            occasion: COUNTED,
        }
    }

    /// Runs the pilot tours that the effort asks for. Returns `None` if the effort names the number
    /// of tours.
    pub(super) fn forecast(&self, engine: &TourEngine<'_>) -> Result<Option<Forecast>> {
        match self.effort {
            Effort::Tours(_) => Ok(None),
            Effort::TargetSe(target) => Forecast::for_target(engine, &self.limits(), target, PILOT).map(Some),
            Effort::Affordable => Forecast::probe(engine, &self.limits()).map(Some),
        }
    }

    /// Runs the tours of the estimate, within limits from which the pilot tours have been
    /// subtracted already. The steps and seconds of the result are those of these tours alone. The
    /// second result is the sums of the statistics along each tour.
    ///
    /// # Panics
    /// If the effort leaves the number of tours to a forecast and there is none.
    pub(super) fn count(
        &self,
        engine: &TourEngine<'_>,
        forecast: Option<&Forecast>,
        along: &Along<'_>,
        progress: &dyn Progress,
    ) -> Result<(LogZ, Vec<f64>)> {
        let mut limits = self.limits();
        limits.n_tours = match self.effort {
            Effort::Tours(n) => n,
            Effort::TargetSe(_) | Effort::Affordable => {
                let forecast = forecast.expect("pilot tours choose the number of tours");
                forecast.n_tours(along.n_tours, limits.max_steps, limits.max_seconds)
            }
        };
        if self.stratified {
            limits.n_tours = limits.n_tours.next_multiple_of(2);
        }
        if !matches!(self.effort, Effort::Tours(_)) {
            // Each tour makes its first step, even if the budget is spent.
            limits.max_steps = limits.max_steps.map(|n| n.max(limits.n_tours as u64));
            limits.max_seconds = limits.max_seconds.map(|s| s.max(1e-3));
        }
        let tours = engine.run_with(&limits, along.n_statistics, along.add, progress)?;
        let mut log_z = mclv_from_tours(engine, &tours, self.n_scouts, self.seed, progress)?;
        if let Effort::TargetSe(target) = self.effort
            && let Some(std_err) = log_z.std_err.filter(|se| *se > TARGET_MISSED * target)
        {
            log_z.notes.push(Note::TargetMissed { ratio: std_err / target });
        }
        Ok((log_z, tours.into_sums()))
    }
}
