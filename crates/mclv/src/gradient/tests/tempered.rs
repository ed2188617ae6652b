//! Parallel tempering: for fixed parameters and temperatures the product of the models of all rungs
//! is invariant, so updates from it are unbiased. States come up from the lowest rung, so updates
//! from anywhere become unbiased, also where Gibbs steps alone stay in one mode.

use super::oracle::Joint;
use super::{Replicates, differences, negative, step};
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::gradient::tempered::Tempered;
use crate::gradient::{Estimator, State};
use crate::ladder::{Base, History, Ladders, Rising};
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::rng::{Purpose, stream};
use crate::settings::EstimatorSettings;
use mclv_kernels::layer::Scratch;

const N_REPLICATES: u32 = 500;
/// Two blocks, the second one short.
const N_LADDERS: usize = 33;
const N_RUNGS: usize = 3;
const BETAS: [f64; N_RUNGS + 1] = [0.0, 0.375, 0.75, 1.0];

/// The biases of the lowest rung. They are not those that the data would give.
fn base(rbm: &Rbm) -> Vec<f32> {
    (0..rbm.n_visible()).map(|i| [0.5, -0.25, 0.0][i % 3]).collect()
}

/// The model of a rung.
fn rung(rbm: &Rbm, beta: f64) -> Rbm {
    let beta = beta as f32;
    let scaled = |x: &[f32]| -> Vec<f32> { x.iter().map(|x| beta * x).collect() };
    let b: Vec<f32> = rbm.visible_bias().iter().zip(base(rbm)).map(|(b, b0)| b0 + beta * (b - b0)).collect();
    Rbm::new(rbm.n_visible(), rbm.n_hidden(), &scaled(&rbm.weights()), &b, &scaled(rbm.hidden_bias()))
        .unwrap()
}

/// An estimator in the middle of a run, whose chains stand in these states: all ladders of rung 1
/// first.
fn resumed(rbm: &Rbm, betas: &[f64], k: usize, h: &[u64]) -> Tempered {
    let n_rungs = betas.len() - 1;
    let n_ladders = h.len() / n_rungs;
    let mut phase = Tempered::new(k, n_ladders, n_rungs);
    let (below, chains) = h.split_at(h.len() - n_ladders);
    let state = phase
        .save()
        .with_words("chains", chains.to_vec())
        .with_words("below", below.to_vec())
        .with_words("drawn", vec![u64::MAX; h.len()])
        .with_words("climbed", vec![0; h.len()])
        .with_numbers("base", base(rbm).into_iter().map(f64::from).collect())
        .with_numbers("temperatures", betas.to_vec());
    phase.restore(rbm, &state).unwrap();
    phase
}

/// States of all rungs, drawn from their models.
fn equilibrium(models: &[Joint], n_ladders: usize, replicate: u32) -> Vec<u64> {
    let of_rung = |k: usize| models[k].draw_hidden(n_ladders, replicate * models.len() as u32 + k as u32);
    (0..models.len()).flat_map(of_rung).collect()
}

fn no_data(rbm: &Rbm) -> Rows {
    Rows::Bits(BitRows::zeros(1, rbm.n_visible()))
}

/// The first and the last of four updates of ladders to `rbm` that begin in equilibrium, compared
/// with the moments of `truth`.
fn updates_from(rbm: &Rbm, betas: &[f64], truth: &Rbm) -> [Replicates; 2] {
    let models: Vec<Joint> = betas[1..].iter().map(|&beta| Joint::new(&rung(rbm, beta))).collect();
    let exact = Joint::new(truth).moments();
    let data = no_data(rbm);
    let (mut first, mut last) = (Replicates::default(), Replicates::default());
    for replicate in 0..N_REPLICATES {
        let mut phase = resumed(rbm, betas, 1, &equilibrium(&models, N_LADDERS, replicate));
        for k in 0..4 {
            let estimate = negative(&mut phase, rbm, &data, step(4 * replicate + k));
            match k {
                0 => first.push(differences(&estimate, &exact)),
                3 => last.push(differences(&estimate, &exact)),
                _ => {}
            }
        }
    }
    [first, last]
}

#[test]
fn updates_from_equilibrium_are_unbiased_and_stay_there() {
    let rbm = random_rbm(6, 4, 1.2, 41);
    let [first, last] = updates_from(&rbm, &BETAS, &rbm);
    first.assert_unbiased("tempered from equilibrium, first update");
    last.assert_unbiased("tempered from equilibrium, last update");
    // One rung, which exchanges with the lowest.
    let [_, last] = updates_from(&rbm, &[0.0, 1.0], &rbm);
    last.assert_unbiased("tempered with one rung");
    // The control: a ladder whose top is not the model.
    let [_, last] = updates_from(&rung(&rbm, 1.25), &BETAS, &rbm);
    last.assert_caught("a ladder that goes beyond the model");
}

/// Differences between the share of ladders with each hidden unit on the top rung and its mean,
/// after some updates with this rule of acceptance.
fn with_rule(accepts: impl Fn(f64, f64) -> bool + Copy) -> Replicates {
    let rbm = random_rbm(6, 4, 2.0, 41);
    let joints: Vec<Joint> = BETAS[1..].iter().map(|&beta| Joint::new(&rung(&rbm, beta))).collect();
    let exact = Joint::new(&rbm).moments();
    let means = &exact[exact.len() - rbm.n_hidden()..];
    let base = Base::new(base(&rbm));
    let models = Rising { rbm: &rbm, base: &base, betas: &BETAS };
    let (mut replicates, scratch) = (Replicates::default(), &mut Scratch::default());
    for replicate in 0..2 * N_REPLICATES {
        let h = equilibrium(&joints, N_LADDERS, replicate);
        let mut ladders =
            Ladders::new(&rbm, N_LADDERS, N_RUNGS, h, vec![History::default(); N_LADDERS * N_RUNGS]);
        let of = |k: usize, l: usize| {
            stream(91, Purpose::SelfTest, (replicate as usize * 4096 + k * N_LADDERS + l) as u64)
        };
        for update in 0..4u32 {
            let uniform = |l: usize, k: usize| {
                (f64::from(of(100, l).at(update).block(k as u32)[0]) + 0.5) / 4_294_967_296.0
            };
            let fresh = |l: usize| of(0, l).at(2 * update);
            ladders
                .exchange(models, update.into(), scratch, fresh, |l, k, ratio| accepts(ratio, uniform(l, k)));
            ladders.step(models, 1, 2 * update, scratch, of);
        }
        let share = |j: usize| {
            let on = ladders.on_rung(N_RUNGS).iter().filter(|&&h| h >> j & 1 == 1).count();
            on as f64 / N_LADDERS as f64
        };
        replicates.push((0..rbm.n_hidden()).map(|j| share(j) - means[j]));
    }
    replicates
}

#[test]
fn a_wrong_rule_of_exchange_is_caught() {
    with_rule(|log_ratio, u| u.ln() < log_ratio).assert_unbiased("Metropolis' rule");
    with_rule(|_, _| true).assert_caught("every exchange accepted");
    with_rule(|log_ratio, u| u.ln() < -log_ratio).assert_caught("the inverse of Metropolis' ratio");
}

/// All hidden units agree with all visible units: they are all on or all off, with equal
/// probabilities. Gibbs steps go from one mode to the other once in several thousand.
fn two_modes() -> Rbm {
    let (n_visible, n_hidden) = (6, 5);
    let w = 2.0;
    let (b, a) = (-0.5 * w * n_hidden as f32, -0.5 * w * n_visible as f32);
    Rbm::new(n_visible, n_hidden, &[w; 30], &[b; 6], &[a; 5]).unwrap()
}

/// All chains begin in one mode. The same test is made of the last of 60 updates of ladders and of
/// persistent chains.
#[test]
fn ladders_leave_a_mode_that_persistent_chains_do_not_leave() {
    let rbm = two_modes();
    let exact = Joint::new(&rbm).moments();
    let data = no_data(&rbm);
    let n_updates = 60;
    let last_of = |make: &dyn Fn() -> Box<dyn Estimator>| {
        let mut replicates = Replicates::default();
        for replicate in 0..120 {
            let (mut phase, first) = (make(), replicate * n_updates);
            let all = (first..first + n_updates).map(|u| negative(&mut *phase, &rbm, &data, step(u)));
            replicates.push(differences(&all.last().unwrap(), &exact));
        }
        replicates
    };
    let betas: Vec<f64> = (0..=5).map(|k| f64::from(k) / 5.0).map(|beta| f64::from(beta as f32)).collect();
    let on = 0b11111;
    let ladders = || -> Box<dyn Estimator> { Box::new(resumed(&rbm, &betas, 1, &[on; 16 * 5])) };
    last_of(&ladders).assert_unbiased("tempered, from one of two modes");
    let chains = || {
        let settings = EstimatorSettings::Pcd { k: 5, n_chains: Some(16), visible: VisibleChain::Sampled };
        let mut phase = settings.estimator();
        let state = State::default().with_words("chains", vec![on; 16]).with_words("before", Vec::new());
        phase.restore(&rbm, &state).unwrap();
        phase
    };
    last_of(&chains).assert_caught("persistent chains, from one of two modes");
}

/// The counts of an epoch agree with the states, and temperatures are placed such that neighbours
/// exchange equally often.
#[test]
fn the_ladder_follows_the_model() {
    let rbm = random_rbm(30, 20, 0.7, 5);
    let data = Rows::Bits(BitRows::zeros(4, rbm.n_visible()));
    let mut phase = Tempered::new(1, 64, 4);
    let mut info = Vec::new();
    for update in 0..400 {
        negative(&mut phase, &rbm, &data, step(update));
        if (update + 1) % 100 == 0 {
            info.push(phase.take_info().tempering.unwrap());
        }
    }
    let (first, last) = (&info[0], &info[3]);
    eprintln!("{first:?}\n{last:?}");
    assert!(last.swap_rate_min > first.swap_rate_min, "{first:?}, {last:?}");
    assert!(last.swap_rate_mean - last.swap_rate_min < 0.05, "{last:?}");
    assert_eq!(last.renewed, 1.0);
    assert!(last.round_trips > 1.0 && last.mean_age.is_some_and(|age| age > 3.0), "{last:?}");
    assert!(phase.take_info().tempering.is_none(), "nothing has happened since");
}

#[test]
fn a_state_of_another_size_is_refused() {
    let rbm = random_rbm(6, 4, 1.2, 41);
    let saved = resumed(&rbm, &BETAS, 1, &[0; 6]).save();
    let refused = |state: &State| {
        let error = Tempered::new(1, 2, 3).restore(&rbm, state).unwrap_err().to_string();
        assert!(error.contains("does not hold"), "{error}");
    };
    Tempered::new(1, 2, 3).restore(&rbm, &saved).unwrap();
    refused(&saved.clone().with_words("below", vec![0; 3]));
    refused(&saved.clone().with_words("chains", vec![0; 1]));
    refused(&saved.clone().with_numbers("temperatures", vec![0.0, 1.0]));
    refused(&saved.clone().with_numbers("base", vec![0.0; 5]));
    refused(&State::default());
    // Before the first update there is nothing to keep.
    let mut new = Tempered::new(1, 2, 3);
    new.restore(&rbm, &Tempered::new(1, 2, 3).save()).unwrap();
    assert_eq!(new.chains(), None);
}
