//! Estimate `log Z` from tours (Markov Chain Las Vegas; Savarese, Kakodkar and Ribeiro 2018).

use super::forecast::{COUNTED, Forecast, PILOT, seconds_since};
use super::interval::{Declined, mean_interval, small_excess_interval};
use super::scouts::{N_SCOUTS, Reach};
use super::{Guarantee, LogZ, Method, Note};
use crate::chain::VisibleChain;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::tour::{StartedFrom, StoppingSet, TourEngine, TourSettings, Tours};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A note tells of a standard error that is this many times the target.
const TARGET_MISSED: f64 = 1.25;

/// How many tours to make.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Run exactly this number of tours.
    Tours(usize),
    /// Run as many tours as this standard error of `log Z` takes, by the forecast of pilot tours. Pilot
    /// tours are not part of the estimate, and the number is not changed afterwards: stopping when an
    /// *estimated* error is small would bias the estimate.
    TargetSe(f64),
    /// Run as many tours as are expected to take half of `max_steps`, 256 at least and 2¹⁸ at most.
    Affordable,
}

/// Settings of [`mclv`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct MclvSettings {
    /// How many tours.
    pub effort: Effort,
    /// The chain of the visible units: true Gibbs, or mean field, which has no guarantee.
    pub visible: VisibleChain,
    /// Whether starts are spread evenly over `π_S`.
    pub stratified: bool,
    /// Steps after which a tour is cut.
    pub max_length: Option<u32>,
    /// Steps of all tours together, pilot tours included.
    pub max_steps: Option<u64>,
    /// Seconds of all tours together, pilot tours included.
    pub max_seconds: Option<f64>,
    /// Chains from random starts that must reach the stopping set before there is an interval; 0: none are sent, and there
    /// is no interval.
    pub n_scouts: usize,
    /// Seed of starts and steps.
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

/// `log Z` as `log Z_S` plus the logarithm of the mean tour length, `Ẑ = Z_S·ξ̄`.
///
/// # Guarantee
/// With a Gibbs chain and no budget, `E[Ẑ] = Z` for any number of tours ([`Guarantee::UnbiasedZ`]). With a budget,
/// a tour that is cut counts with the steps that it made, and `E[Ẑ] ≤ Z` ([`Guarantee::LowerBound`]): whether
/// tours *were* cut does not matter, because an estimate that is called unbiased only if none was cut is biased.
/// A mean-field chain has no guarantee.
///
/// [`mean_interval`] gives the interval, if no tour was cut and if chains from random starts reach the stopping set.
/// Otherwise a note says why there is none. The standard error is `None` if all lengths are equal, if a few tours
/// carry it, or if chains do not reach the set.
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
/// If a setting is not allowed, the set does not fit the model, or the listener says stop.
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
    let mut log_z = left.count(&engine, forecast.as_ref(), progress)?;
    log_z.n_states += forecast.map_or(0.0, |forecast| forecast.n_steps as f64);
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(log_z)
}

/// The estimate of [`mclv`] from tours that `engine` has made already. `n_scouts` chains from random starts look whether
/// they reach the stopping set; without any there is no interval.
///
/// # Errors
/// If the tours began at data rows, because Kac's identity does not hold for such tours; or if the listener says stop.
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
        // With stratified starts the variance is smaller than this interval takes it to be.
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
    /// Limits of tours, whose number is still open.
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

    /// Run the pilot tours that the effort asks for; `None` if it names the number of tours.
    pub(super) fn forecast(&self, engine: &TourEngine<'_>) -> Result<Option<Forecast>> {
        match self.effort {
            Effort::Tours(_) => Ok(None),
            Effort::TargetSe(target) => Forecast::for_target(engine, &self.limits(), target, PILOT).map(Some),
            Effort::Affordable => Forecast::probe(engine, &self.limits()).map(Some),
        }
    }

    /// Run the tours that count, within limits from which the pilot tours have been taken off already.
    /// Steps and seconds of the result are those of these tours alone.
    ///
    /// # Panics
    /// If the effort leaves the number of tours to a forecast and there is none.
    pub(super) fn count(
        &self,
        engine: &TourEngine<'_>,
        forecast: Option<&Forecast>,
        progress: &dyn Progress,
    ) -> Result<LogZ> {
        let mut limits = self.limits();
        limits.n_tours = match self.effort {
            Effort::Tours(n) => n,
            Effort::TargetSe(_) | Effort::Affordable => {
                let forecast = forecast.expect("pilot tours choose the number of tours");
                forecast.n_tours(limits.max_steps, limits.max_seconds)
            }
        };
        if self.stratified {
            limits.n_tours = limits.n_tours.next_multiple_of(2);
        }
        if !matches!(self.effort, Effort::Tours(_)) {
            // Each tour makes its first step, however little is left.
            limits.max_steps = limits.max_steps.map(|n| n.max(limits.n_tours as u64));
            limits.max_seconds = limits.max_seconds.map(|s| s.max(1e-3));
        }
        let tours = engine.run(&limits, progress)?;
        let mut log_z = mclv_from_tours(engine, &tours, self.n_scouts, self.seed, progress)?;
        if let Effort::TargetSe(target) = self.effort
            && let Some(std_err) = log_z.std_err.filter(|se| *se > TARGET_MISSED * target)
        {
            log_z.notes.push(Note::TargetMissed { ratio: std_err / target });
        }
        Ok(log_z)
    }
}
