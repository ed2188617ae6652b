//! Estimate the shares of modes in a model.

use super::map::ModeMap;
use super::shares::{Accuracy, Counted, ModeShares, ShareGuarantee, of_tours};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::partition::{
    Along, Effort, ExactSettings, Guarantee, Inputs, Method, MethodSettings, Note, Plan, exact_samples,
    nominal_seconds,
};
use crate::progress::Progress;
use crate::team;
use crate::{Error, Result};
use std::time::Instant;

/// Visible layers of at most this many units are enumerated, if this makes at most `SUMMED_WORK`
/// products of a state and a hidden unit.
const SUMMED_UNITS: usize = 20;
const SUMMED_WORK: f64 = 3e8;
/// States of a block of an enumeration.
const BLOCK: u64 = 4_096;
/// If no method is named, exact samples may take this many seconds on a nominal machine.
const CHEAP_SAMPLES: f64 = 2.0;
/// The least and the most exact samples.
const N_SAMPLES: (f64, f64) = (40_000.0, 1e6);
/// The most sums that are kept for all tours together.
const MOST_SUMS: usize = 1 << 25;

/// Estimates which share of the mass of `rbm` belongs to each mode of `map`, and compares it with the
/// share of the rows.
///
/// The methods, in the order in which they are tried if none is named:
///
/// - [`Method::Exact`]: enumeration if the visible layer is small, else independent exact samples.
/// - [`Method::Mclv`]: tours from the hidden states of `inputs.rows`, if they return.
/// - [`Method::Ladder`]: tours with a ladder.
///
/// An effort of [`Effort::TargetSe`] is the wanted standard error of a share. [`Effort::Tours`] is the
/// number of tours or of exact samples.
///
/// # Guarantee
/// Enumerated shares are exact. Exact samples are independent, so their shares are unbiased. Shares
/// from tours are ratios of sums over independent tours: consistent, with a bias of order one over
/// the number of tours, and with standard errors from the differences between tours. Intervals are
/// given under the conditions under which `log Z` from the same tours has one: no tour was cut, no
/// few tours carry the sum, and chains from other starts found nothing that the tours missed. A mode
/// of the model that neither the data nor any of these chains lead to stays unseen.
///
/// Lost and over-weighted modes are reported with [`FALSE_ALARMS`](super::FALSE_ALARMS) over all modes
/// together. The number of rows counts as well: a share of few rows is known badly, unless the rows
/// are a complete list of patterns ([`ModeMap::is_whole`]).
///
/// # Cost
/// That of `log Z` by the same method for twice the standard error, and for each state one addition
/// for each prototype and each visible unit that is on.
///
/// ```
/// use mclv::{Rbm, bits::BitRows, data::Rows, progress::Silent};
/// use mclv::modes::{ModeMap, Standing, mode_shares};
/// // Two modes of equal mass, all on and all off. The data are all off but for a few rows.
/// let rbm = Rbm::new(6, 1, &[40.0; 6], &[-20.0; 6], &[-120.0])?;
/// let mut words = vec![0b000000; 985];
/// words.extend([0b111111; 15]);
/// let rows = Rows::Bits(BitRows::from_words(6, words));
/// let map = ModeMap::new(&rows, None, &Default::default())?;
/// let shares = mode_shares(&rbm, &map, &Default::default(), None, &Default::default(), &Silent)?;
/// assert!((shares.modes[1].model - 0.5).abs() < 1e-6);
/// assert_eq!(shares.modes[1].standing, Standing::OverWeighted);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If the map does not fit the model, if a setting is not allowed, if exact samples that were asked
/// for take too long, or if the listener cancels.
pub fn mode_shares(
    rbm: &Rbm,
    map: &ModeMap,
    inputs: &Inputs<'_>,
    method: Option<Method>,
    settings: &MethodSettings,
    progress: &dyn Progress,
) -> Result<ModeShares> {
    let begun = Instant::now();
    rbm.check_width(map.n_visible())?;
    settings.effort.check()?;
    let counted = match method {
        Some(Method::Exact) => exactly(rbm, map, settings, progress)?,
        Some(method @ (Method::Mclv | Method::Ladder)) => {
            by_tours(rbm, map, inputs, vec![method], settings, progress)?
        }
        Some(method) => {
            let cure = "shares of modes need exact, mclv or ladder";
            return Err(Error::InvalidSetting { name: "method", value: method.to_string(), cure });
        }
        None => {
            let seconds = nominal_seconds(rbm.n_visible(), rbm.n_hidden());
            let is_cheap = is_summed(rbm) || seconds <= CHEAP_SAMPLES.min(settings.budget.seconds);
            let exact = is_cheap.then(|| exactly(rbm, map, settings, progress));
            match exact {
                Some(Err(Error::TooSlow { .. })) | None => {
                    let methods = vec![Method::Mclv, Method::Ladder];
                    by_tours(rbm, map, inputs, methods, settings, progress)?
                }
                Some(result) => result?,
            }
        }
    };
    Ok(ModeShares::new(map, counted, begun.elapsed().as_secs_f64()))
}

/// Returns true if the visible layer is small enough to be enumerated.
fn is_summed(rbm: &Rbm) -> bool {
    let n_visible = rbm.n_visible();
    n_visible <= SUMMED_UNITS && (n_visible as f64).exp2() * rbm.n_hidden() as f64 <= SUMMED_WORK
}

/// Adds one for the mode of `v`, and one for far states.
fn add_mode(map: &ModeMap, v: &[u64], sums: &mut [f64]) {
    let (mode, is_far) = map.locate(v);
    sums[mode] += 1.0;
    sums[map.names().len()] += f64::from(u8::from(is_far));
}

/// Enumerates the visible layer, or counts exact samples.
fn exactly(rbm: &Rbm, map: &ModeMap, settings: &MethodSettings, progress: &dyn Progress) -> Result<Counted> {
    if is_summed(rbm) {
        return Ok(Counted {
            shares: enumerated(rbm, map, progress)?,
            accuracy: Some(vec![Accuracy::EXACT; map.names().len() + 1]),
            has_intervals: true,
            method: Method::Exact,
            guarantee: ShareGuarantee::Exact,
            n_states: (rbm.n_visible() as f64).exp2(),
            notes: Vec::new(),
        });
    }
    sampled(rbm, map, settings, progress)
}

/// Counts exact samples.
pub(super) fn sampled(
    rbm: &Rbm,
    map: &ModeMap,
    settings: &MethodSettings,
    progress: &dyn Progress,
) -> Result<Counted> {
    let n_shares = map.names().len() + 1;
    let n = match settings.effort {
        Effort::Tours(n) => n,
        Effort::TargetSe(target) => {
            (0.25 / (target * target)).clamp(N_SAMPLES.0, N_SAMPLES.1).ceil() as usize
        }
        Effort::Affordable => N_SAMPLES.0 as usize,
    };
    let limit = if settings.budget.clock { settings.budget.seconds } else { f64::INFINITY };
    let v = exact_samples(rbm, n, settings.seed, &ExactSettings { time_limit: limit }, progress)?;
    let mut shares = vec![0.0; n_shares];
    (0..n).for_each(|r| add_mode(map, v.row(r), &mut shares));
    shares.iter_mut().for_each(|share| *share /= n as f64);
    Ok(Counted {
        shares,
        accuracy: Some(vec![Accuracy::of_draws(n); n_shares]),
        has_intervals: true,
        method: Method::Exact,
        guarantee: ShareGuarantee::Unbiased,
        n_states: (rbm.n_visible().min(rbm.n_hidden()) as f64).exp2() + n as f64,
        notes: Vec::new(),
    })
}

/// Sums `p(v)` over all visible states of each mode.
fn enumerated(rbm: &Rbm, map: &ModeMap, progress: &dyn Progress) -> Result<Vec<f64>> {
    let n_states = 1u64 << rbm.n_visible();
    let of_block = |block: usize| -> Result<(f64, Vec<f64>)> {
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let first = block as u64 * BLOCK;
        let states = BitRows::from_words(rbm.n_visible(), (first..n_states.min(first + BLOCK)).collect());
        let log_weights: Vec<f64> =
            rbm.free_energy(&Rows::Bits(states.clone()))?.into_iter().map(|f| -f).collect();
        let most = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sums = vec![0.0; map.names().len() + 1];
        for (r, log_weight) in log_weights.iter().enumerate() {
            let weight = (log_weight - most).exp();
            let (mode, is_far) = map.locate(states.row(r));
            sums[mode] += weight;
            sums[map.names().len()] += if is_far { weight } else { 0.0 };
        }
        Ok((most, sums))
    };
    let blocks: Vec<(f64, Vec<f64>)> = team::try_blocks(n_states.div_ceil(BLOCK) as usize, of_block)?;
    let most = blocks.iter().map(|(most, _)| *most).fold(f64::NEG_INFINITY, f64::max);
    let mut shares = vec![0.0; map.names().len() + 1];
    for (of_block, sums) in blocks {
        let scale = (of_block - most).exp();
        shares.iter_mut().zip(sums).for_each(|(share, sum)| *share += scale * sum);
    }
    let total: f64 = shares[..map.names().len()].iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
    Ok(shares)
}

/// Counts modes along tours.
fn by_tours(
    rbm: &Rbm,
    map: &ModeMap,
    inputs: &Inputs<'_>,
    methods: Vec<Method>,
    settings: &MethodSettings,
    progress: &dyn Progress,
) -> Result<Counted> {
    let n_modes = map.names().len();
    let mut settings = settings.clone();
    let mut least = 0;
    if let Effort::TargetSe(target) = settings.effort {
        // A share has at most half the standard error that log Z has, if tours vary in length. If
        // they do not, tours are independent draws of a mode.
        settings.effort = Effort::TargetSe(2.0 * target);
        least = (0.25 / (target * target)).min(1e9) as usize;
    }
    let most = MOST_SUMS / (n_modes + 1);
    let along = Along {
        n_statistics: n_modes + 1,
        add: &|v, _, sums| add_mode(map, v, sums),
        n_tours: (least.min(most), most),
    };
    let plan = Plan::of_methods(rbm, methods, &settings);
    let (log_z, sums) = plan.run_along(inputs, &along, progress)?;
    let found = of_tours(&sums, n_modes);
    let is_known = log_z.std_err.is_some() || log_z.interval.is_some();
    let has_intervals = log_z.interval.is_some() && found.is_some();
    let (shares, accuracy) = match found {
        Some((shares, accuracy)) => (shares, is_known.then_some(accuracy)),
        // No tour reached the model, and a note says so.
        None => (vec![f64::NAN; n_modes + 1], None),
    };
    // These are about log Z alone.
    let is_about_shares = |note: &Note| {
        !matches!(note, Note::StepBudget { .. } | Note::TargetMissed { .. } | Note::FewLongTours)
    };
    Ok(Counted {
        shares,
        accuracy,
        has_intervals,
        method: log_z.method,
        guarantee: match log_z.guarantee {
            Guarantee::UnbiasedZ => ShareGuarantee::Consistent,
            Guarantee::LowerBound => ShareGuarantee::UnlessCut,
            _ => ShareGuarantee::None,
        },
        n_states: log_z.n_states,
        notes: log_z.notes.into_iter().filter(is_about_shares).collect(),
    })
}
