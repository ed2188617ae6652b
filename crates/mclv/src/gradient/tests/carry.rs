//! Running tours: for fixed parameters the model's distribution is invariant, so updates from it
//! are unbiased.
//!
//! A step `h → v → h'` leaves `p` invariant. Given `h' ∈ H`, `h'` then has the distribution `π_S`.
//! Replacing it by an independent draw from `π_S` changes nothing, nor does a Metropolis step that
//! leaves `π_S` invariant.

use super::oracle::Joint;
use super::{LIMIT, Replicates, differences, negative, step};
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::gradient::Estimator;
use crate::gradient::lvs::LvsEstimator;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::settings::{LvsSettings, Starts, Statistics, TourLength, Unfinished};

const N_REPLICATES: u32 = 500;
/// Two blocks, the second one short.
const N_TOURS: usize = 50;
const N_UPDATES: u32 = 4;

/// The model, and the earlier one under which the table was made.
fn models() -> (Rbm, Rbm) {
    let now = random_rbm(6, 4, 1.2, 61);
    let (w, b) = (now.weights(), now.visible_bias());
    let a: Vec<f32> = now.hidden_bias().iter().zip([2.0, -1.6, 1.8, -1.4]).map(|(a, d)| a + d).collect();
    let earlier = Rbm::new(6, 4, &w, b, &a).unwrap();
    (now, earlier)
}

/// A phase in the middle of a run: a set, a table of `earlier`, and running tours.
pub(super) fn resumed(
    settings: LvsSettings,
    rbm: &Rbm,
    earlier: &Rbm,
    set: &[u64],
    tours: &[u64],
) -> LvsEstimator {
    let mut phase = LvsEstimator::new(settings);
    let state = phase
        .save()
        .with_words("set", set.to_vec())
        .with_words("chains", tours.to_vec())
        .with_words("starts", tours.to_vec())
        .with_words("lengths", vec![0; tours.len()])
        .with_numbers("table", Joint::new(earlier).log_weights(set));
    phase.restore(rbm, &state).unwrap();
    phase
}

/// Every other state, from the most likely down.
fn stopping_set(joint: &Joint) -> Vec<u64> {
    let p = joint.hidden();
    let mut states: Vec<u64> = (0..p.len() as u64).collect();
    states.sort_by(|&x, &y| p[y as usize].total_cmp(&p[x as usize]));
    states.into_iter().step_by(2).collect()
}

struct Outcome {
    first: Replicates,
    last: Replicates,
    /// The share of each hidden state at the end.
    hidden: Vec<f64>,
    /// The share of Metropolis proposals accepted, if any were made.
    accepted: Option<f64>,
}

fn run(settings: &LvsSettings, now: &Rbm, earlier: &Rbm) -> Outcome {
    let joint = Joint::new(now);
    let exact = joint.moments();
    let set = stopping_set(&joint);
    let data = Rows::Bits(BitRows::zeros(1, now.n_visible()));
    let (mut first, mut last) = (Replicates::default(), Replicates::default());
    let mut hidden = vec![0.0; 1 << now.n_hidden()];
    let (mut n_proposed, mut n_accepted) = (0, 0);
    for replicate in 0..N_REPLICATES {
        let tours = joint.draw_hidden(N_TOURS, replicate);
        let mut phase = resumed(settings.clone(), now, earlier, &set, &tours);
        for k in 0..N_UPDATES {
            let estimate = negative(&mut phase, now, &data, step(replicate * N_UPDATES + k));
            match k {
                0 => first.push(differences(&estimate, &exact)),
                k if k + 1 == N_UPDATES => last.push(differences(&estimate, &exact)),
                _ => {}
            }
        }
        for &h in phase.save().words("chains").unwrap() {
            hidden[h as usize] += 1.0 / (N_REPLICATES as usize * N_TOURS) as f64;
        }
        let info = phase.take_info().tours.unwrap();
        assert_eq!(info.n_steps, u64::from(N_UPDATES * settings.k.limit()) * N_TOURS as u64);
        n_proposed += info.n_proposed;
        n_accepted += info.n_accepted;
    }
    Outcome { first, last, hidden, accepted: (n_proposed > 0).then(|| n_accepted as f64 / n_proposed as f64) }
}

/// Returns the total variation between the final hidden states and `p`, divided by an upper bound
/// of its mean for independent draws.
fn distance(outcome: &Outcome, now: &Rbm) -> f64 {
    let p = Joint::new(now).hidden();
    let n = f64::from(N_REPLICATES) * N_TOURS as f64;
    let floor: f64 = p.iter().map(|p| (p * (1.0 - p) / n).sqrt()).sum::<f64>() / 2.0;
    let distance: f64 = differences(&outcome.hidden, &p).map(f64::abs).sum::<f64>() / 2.0;
    distance / floor
}

fn running(statistics: Statistics, starts: Starts) -> LvsSettings {
    LvsSettings {
        k: TourLength::Steps(2),
        n_tours: Some(N_TOURS),
        unfinished: Unfinished::Carry,
        starts,
        min_ess: 0.0,
        statistics,
        ..LvsSettings::default()
    }
}

#[test]
fn updates_from_equilibrium_are_unbiased_and_stay_there() {
    let (now, earlier) = models();
    for starts in [Starts::Fresh, Starts::Metropolis] {
        for statistics in [Statistics::Sampled, Statistics::MeanHidden, Statistics::MeanVisible] {
            let outcome = run(&running(statistics, starts), &now, &earlier);
            let what = format!("carry, {starts:?}, {statistics:?}");
            outcome.first.assert_unbiased(&format!("{what}, first update"));
            outcome.last.assert_unbiased(&format!("{what}, last update"));
            let distance = distance(&outcome, &now);
            eprintln!("{what}: distance {distance:.2} floors, accepted {:.2?}", outcome.accepted);
            assert!(distance < 4.0, "{what}: {distance:.2} floors from equilibrium");
        }
    }
}

#[test]
fn a_stale_table_without_correction_is_caught() {
    let (now, earlier) = models();
    // The settings reject running tours with `weighted` starts. Such tours use a stale table and
    // accept every proposal.
    let outcome = run(&running(Statistics::MeanHidden, Starts::Weighted), &now, &earlier);
    outcome.last.assert_caught("carry from a stale table");
    let distance = distance(&outcome, &now);
    assert!(distance > 8.0, "{distance:.2} floors");
}

#[test]
fn a_mean_field_chain_is_caught() {
    let (now, earlier) = models();
    let mean_field =
        LvsSettings { visible: VisibleChain::MeanField, ..running(Statistics::Sampled, Starts::Fresh) };
    run(&mean_field, &now, &earlier).last.assert_caught("mean-field carry");
}

/// At equilibrium and with K = 1, `v` of independent tours has a known variance.
#[test]
fn tours_are_independent() {
    let (now, earlier) = models();
    let exact = Joint::new(&now).moments();
    let one = LvsSettings { k: TourLength::Steps(1), ..running(Statistics::Sampled, Starts::Fresh) };
    let first = now.n_visible() * now.n_hidden();
    let variance = |k: usize| exact[k] * (1.0 - exact[k]) / N_TOURS as f64;
    let z = run(&one, &now, &earlier).last.variance_z(first..first + now.n_visible(), variance);
    assert!(z < LIMIT, "{z:.2}");
}
