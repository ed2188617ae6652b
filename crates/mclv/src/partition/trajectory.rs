//! Estimate `log Z` by Bennett's acceptance ratio between the models of a trajectory, such as the
//! snapshots of a training.

use super::ais::check_size;
use super::bridge::{self, BarSettings, HIGH_R_HAT, LOW_SWAP_RATE, MIN_LADDERS};
use super::scouts::{Errand, N_SCOUTS, Scouts, spread_out_base};
use super::weights::student;
use super::{Guarantee, LogZ, Method, Note};
use crate::ladder::{Trajectory, combine, log_ratios, swap_rates, worst_r_hat};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::Purpose;
use crate::tour::TourEngine;
use crate::{Error, Result};
use std::time::Instant;

/// A model is put between two neighbours that accept a smaller share of the swaps.
const ENOUGH_SWAPS: f64 = 0.3;
/// Steps of the ladders that measure this share, and of their burn-in.
const PLACING: (usize, usize) = (80, 40);
const N_PLACING_LADDERS: usize = 4;
/// The number of times that models are put between neighbours.
const MAX_ROUNDS: usize = 8;
/// The most parameters of all rungs together: 2 GB of memory.
const MAX_PARAMETERS: usize = 1 << 28;

/// Estimates `log Z` of the last of `models` by Bennett's acceptance ratio (BAR) between chains of
/// all models, from independent units through the first model to the last.
///
/// The models are the rungs of a ladder. They have the same units, and may be the snapshots of a
/// training. Where neighbours seldom exchange states, models halfway between them become rungs, too.
/// A pilot decides this.
///
/// # Guarantee
/// That of [`bar`](super::bar()): the estimate is consistent. It has an interval under the same
/// conditions. The ladders that must confirm it climb rungs that lie at temperatures between a second
/// base model and the last model.
///
/// # Cost
/// Each rung has weights of its own, so each pair of neighbours takes four more products with the
/// weights in every step.
///
/// ```
/// use mclv::{Rbm, partition::{self, BarSettings, bar_along}, progress::Silent};
/// let model = |scale: f32| Rbm::new(3, 2, &[0.5 * scale; 6], &[-0.2 * scale; 3], &[0.1 * scale; 2]);
/// let snapshots = [model(1.0)?, model(2.0)?, model(4.0)?];
/// let estimate = bar_along(&snapshots, &BarSettings::default(), &Silent)?;
/// let exact = partition::exact(&snapshots[2], &Default::default(), &Silent)?;
/// assert!((estimate.value - exact.value).abs() < 6.0 * estimate.std_err.unwrap());
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there is no model, if models differ in size, if a setting is not allowed, or if the listener
/// cancels.
pub fn bar_along(models: &[Rbm], settings: &BarSettings, progress: &dyn Progress) -> Result<LogZ> {
    let begun = Instant::now();
    check_size("n-ladders", settings.n_ladders)?;
    check_size("ladder-steps", settings.n_steps)?;
    let Some(last) = models.last() else {
        return Err(Error::Empty { what: "the trajectory".into(), cure: "give at least one model" });
    };
    let (n_visible, n_hidden) = (last.n_visible(), last.n_hidden());
    for model in models {
        last.check_width(model.n_visible())?;
        last.mirror().check_width(model.n_hidden())?;
    }
    let spread_out = spread_out_base(last);
    let (base, second) = match &settings.base_bias {
        Some(base) => (base.clone(), spread_out),
        None => (spread_out, vec![0.0; n_visible]),
    };
    last.check_width(base.len())?;
    let bottom =
        Rbm::new(n_visible, n_hidden, &vec![0.0; n_visible * n_hidden], &base, &vec![0.0; n_hidden])?;
    let softplus = |&b: &f32| f64::from(b).max(0.0) + (-f64::from(b).abs()).exp().ln_1p();
    let log_z_bottom = base.iter().map(softplus).sum::<f64>() + n_hidden as f64 * std::f64::consts::LN_2;
    let scouts = Scouts::send(last, Some(&base), N_SCOUTS, settings.seed, Errand::Find, progress)?;
    let mut n_states = scouts.n_steps as f64;
    let rungs: Vec<Rbm> = std::iter::once(bottom).chain(models.iter().cloned()).collect();
    let (rungs, n_placing) = placed(rungs, settings.seed, progress)?;
    n_states += n_placing as f64;
    let trajectory = Trajectory {
        models: &rungs,
        starts: Some(&scouts.hidden),
        n_ladders: settings.n_ladders,
        n_steps: settings.n_steps,
        burn_in: settings.burn_in,
        seed: settings.seed,
        purpose: Purpose::Trajectory,
    };
    n_states += trajectory.total_steps() as f64;
    let ladders = trajectory.run(progress)?;
    let (log_ratio, std_err) = combine(&log_ratios(&ladders));
    let rates = swap_rates(&ladders);
    let (rung, r_hat) = worst_r_hat(&ladders);
    let rate = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let mut notes =
        vec![Note::Trajectory { rate, n_models: models.len(), n_rungs: rungs.len() }, Note::LaddersOnly];
    match r_hat {
        Some(r_hat) if r_hat > HIGH_R_HAT => notes.push(Note::RungsDisagree { r_hat, rung }),
        None => notes.push(Note::FewLadderSteps),
        Some(_) => {}
    }
    if settings.n_ladders < MIN_LADDERS {
        notes.push(Note::FewLadders { n_ladders: settings.n_ladders, enough: MIN_LADDERS });
    }
    let is_sound = r_hat.is_some_and(|r_hat| r_hat <= HIGH_R_HAT)
        && rate >= LOW_SWAP_RATE
        && settings.n_ladders >= MIN_LADDERS;
    let (value, half) = (log_z_bottom + log_ratio, student(settings.n_ladders - 1) * std_err);
    let mut log_z = LogZ {
        value,
        std_err: Some(std_err),
        interval: is_sound.then_some((value - half, value + half)),
        notes,
        guarantee: Guarantee::None,
        method: Method::Bar,
        n_states,
        seconds: 0.0,
    };
    if log_z.interval.is_some() {
        log_z.n_states += bridge::confirm_from(&mut log_z, last, &second, &scouts, settings, progress)?;
    }
    log_z.compare_with_known(TourEngine::new(last, &scouts.visited)?.log_z_s());
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(log_z)
}

/// Puts models between neighbours that seldom exchange states. Returns all rungs, and the number of
/// steps that the pilots took.
fn placed(mut rungs: Vec<Rbm>, seed: u64, progress: &dyn Progress) -> Result<(Vec<Rbm>, u64)> {
    let mut n_steps = 0;
    for round in 0..MAX_ROUNDS {
        let pilot = Trajectory {
            models: &rungs,
            starts: None,
            n_ladders: N_PLACING_LADDERS,
            n_steps: PLACING.0,
            burn_in: PLACING.1,
            seed: seed ^ (round as u64) << 56,
            purpose: Purpose::TrajectoryPilot,
        };
        let rates = swap_rates(&pilot.run(progress)?);
        n_steps += pilot.total_steps();
        let n_new = rates.iter().filter(|&&rate| rate < ENOUGH_SWAPS).count();
        let n_parameters = rungs[0].n_visible() * rungs[0].n_hidden();
        if n_new == 0 || (rungs.len() + n_new) * n_parameters > MAX_PARAMETERS {
            break;
        }
        let mut finer = Vec::with_capacity(rungs.len() + n_new);
        for (k, rung) in rungs.into_iter().enumerate() {
            if k > 0 && rates[k - 1] < ENOUGH_SWAPS {
                finer.push(halfway(&finer[finer.len() - 1], &rung)?);
            }
            finer.push(rung);
        }
        rungs = finer;
    }
    Ok((rungs, n_steps))
}

/// Returns the model whose parameters are the means of those of two models.
fn halfway(a: &Rbm, b: &Rbm) -> Result<Rbm> {
    let mean = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect() };
    Rbm::new(
        a.n_visible(),
        a.n_hidden(),
        &mean(&a.weights(), &b.weights()),
        &mean(a.visible_bias(), b.visible_bias()),
        &mean(a.hidden_bias(), b.hidden_bias()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;

    /// 12 trajectories of two models and the model in question: the error is t-distributed with 11
    /// degrees of freedom. No |t| above 6.5 (false alarm 12 × 4.4e-5 = 5e-4), and intervals are given
    /// for most. Negative control: `log Z` of the model before the last is rejected.
    #[test]
    fn errors_are_as_large_as_the_error_bar_says() {
        let mut given = 0;
        for seed in 0..12 {
            let n_visible = 6 + seed as usize % 5;
            let model = |k: u64| random_rbm(n_visible, 5, 0.4 + 0.3 * k as f64, 980 + 3 * seed + k);
            let models = [model(0), model(1), model(2)];
            let settings =
                BarSettings { n_ladders: 12, n_steps: 1000, burn_in: 200, seed, ..Default::default() };
            let log_z = bar_along(&models, &settings, &Silent).unwrap();
            let exact = |rbm: &Rbm| crate::partition::exact(rbm, &Default::default(), &Silent).unwrap().value;
            let t = (log_z.value - exact(&models[2])) / log_z.std_err.unwrap();
            assert!(t.abs() < 6.5, "model {seed}: t = {t}, {log_z:?}");
            let wrong = (log_z.value - exact(&models[1])) / log_z.std_err.unwrap();
            assert!(wrong.abs() > 6.5, "model {seed}: the control must fail, t = {wrong}");
            given += usize::from(log_z.interval.is_some());
        }
        assert!(given >= 9, "{given} of 12 intervals");
    }

    /// Models that are far apart get rungs between them until neighbours exchange.
    #[test]
    fn rungs_are_put_between_models_that_are_far_apart() {
        let models = [random_rbm(30, 12, 0.2, 990), random_rbm(30, 12, 1.5, 991)];
        let settings = BarSettings { n_steps: 300, burn_in: 100, ..Default::default() };
        let log_z = bar_along(&models, &settings, &Silent).unwrap();
        let Note::Trajectory { rate, n_models, n_rungs } = log_z.notes[0] else { panic!("{log_z:?}") };
        assert!(n_models == 2 && n_rungs > 4 && rate > 0.1, "{log_z:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        let settings = BarSettings::default();
        assert!(bar_along(&[], &settings, &Silent).is_err());
        for other in [random_rbm(4, 3, 1.0, 992), random_rbm(5, 2, 1.0, 993)] {
            assert!(bar_along(&[other, random_rbm(4, 2, 1.0, 994)], &settings, &Silent).is_err());
        }
    }
}
