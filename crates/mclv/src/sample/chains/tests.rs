//! Test that chains leave the model's distribution invariant, with or without known units.

use super::*;
use crate::model::tests::{all_states, random_rbm};
use crate::progress::Silent;
use crate::sample::{Known, SampleSettings, sample};

/// `p(v)` of every state by enumeration.
fn probabilities(rbm: &Rbm) -> Vec<f64> {
    let f = rbm.free_energy(&Rows::Bits(all_states(rbm.n_visible()))).unwrap();
    let weights: Vec<f64> = f.iter().map(|f| (-f).exp()).collect();
    let z: f64 = weights.iter().sum();
    weights.iter().map(|w| w / z).collect()
}

/// `p(v | v & mask == known)` of every state.
fn conditioned(p: &[f64], mask: usize, known: usize) -> Vec<f64> {
    let keep = |(s, &p): (usize, &f64)| if s & mask == known { p } else { 0.0 };
    let z: f64 = p.iter().enumerate().map(keep).sum();
    p.iter().enumerate().map(keep).map(|p| p / z).collect()
}

fn draw(p: &[f64], u: f64) -> usize {
    let mut sum = 0.0;
    p.iter()
        .position(|p| {
            sum += p;
            u < sum
        })
        .unwrap_or(p.len() - 1)
}

/// Returns the total variation between `p` and the states, divided by an upper bound of its mean
/// for exact draws.
fn distance(p: &[f64], states: &[usize]) -> f64 {
    let n = states.len() as f64;
    let mut counts = vec![0.0; p.len()];
    states.iter().for_each(|&s| counts[s] += 1.0 / n);
    let tv = p.iter().zip(&counts).map(|(p, c)| (p - c).abs()).sum::<f64>() / 2.0;
    tv / (p.iter().map(|p| (p * (1.0 - p) / n).sqrt()).sum::<f64>() / 2.0)
}

fn states(samples: &Samples) -> Vec<usize> {
    samples.v.words().iter().map(|&w| w as usize).collect()
}

fn settings(n_samples: usize, burn_in: u32, seed: u64) -> SampleSettings {
    SampleSettings {
        n_samples,
        method: Some(SampleMethod::Gibbs),
        burn_in: Some(burn_in),
        means: false,
        seed,
    }
}

/// From exact draws, any number of steps gives exact draws: TV stays within four times its Monte
/// Carlo floor (false alarm far below 1e-6). A sampler of a model without its hidden biases does
/// not.
#[test]
fn exact_draws_stay_exact_and_those_of_a_broken_model_do_not() {
    let n = 200_000;
    let rbm = random_rbm(5, 3, 1.5, 120);
    let broken = Rbm::new(5, 3, &rbm.weights(), rbm.visible_bias(), &[0.0; 3]).unwrap();
    let p = probabilities(&rbm);
    let mut rng = stream(121, Purpose::SelfTest, 0).reader();
    let exact: Vec<usize> = (0..n).map(|_| draw(&p, rng.uniform())).collect();
    let rows = Rows::Bits(all_states(5).select(&exact));
    for steps in [1, 3] {
        let of = |rbm: &Rbm| {
            let samples = sample(rbm, &settings(n, steps, 122), Start::Rows(&rows), None, &Silent);
            distance(&p, &states(&samples.unwrap()))
        };
        assert!(of(&rbm) < 4.0, "{} after {steps} steps", of(&rbm));
        assert!(of(&broken) > 4.0, "the control must be caught");
    }
}

/// A chain that mixes forgets the biases it began with; before the first steps it has not (same
/// criterion).
#[test]
fn chains_from_the_biases_reach_the_model() {
    let rbm = random_rbm(5, 3, 1.0, 123);
    let p = probabilities(&rbm);
    let after = |steps| {
        let samples = sample(&rbm, &settings(100_000, steps, 124), Start::Bias, None, &Silent);
        distance(&p, &states(&samples.unwrap()))
    };
    assert!(after(200) < 4.0, "{}", after(200));
    assert!(after(1) > 4.0, "one step is not enough: {}", after(1));
}

/// Chains with two sets of known values, one after the other: each half has its own conditional
/// distribution (criterion as above), from exact starts and from the biases. Clamped at the start
/// only, they drift away.
#[test]
fn known_units_condition_the_rest_and_only_if_clamped_in_every_step() {
    let n = 200_000;
    let rbm = random_rbm(5, 3, 1.5, 125);
    let (mask, known) = (0b10011, [0b00001, 0b10010]);
    let p = probabilities(&rbm);
    let targets = known.map(|k| conditioned(&p, mask, k));
    let given = Given::new(
        BitRows::from_words(5, vec![mask as u64]),
        // The values of unknown units must not matter.
        BitRows::from_words(5, known.map(|k| k as u64 | 0b00100).to_vec()),
    )
    .unwrap();
    let mut rng = stream(126, Purpose::SelfTest, 0).reader();
    let exact: Vec<usize> = (0..n).map(|r| draw(&targets[r % 2], rng.uniform())).collect();
    let rows = Rows::Bits(all_states(5).select(&exact));
    let run = |start, given, steps| {
        let drawn = states(&sample(&rbm, &settings(n, steps, 127), start, given, &Silent).unwrap());
        [0, 1].map(|half| {
            // Only the unknown units are compared, so that the control is not caught by the known
            // ones.
            let unknown = |p: &[f64]| {
                let mut sums = vec![0.0; 32];
                p.iter().enumerate().for_each(|(s, p)| sums[s & !mask] += p);
                sums
            };
            let drawn: Vec<usize> = drawn.iter().skip(half).step_by(2).map(|s| s & !mask).collect();
            distance(&unknown(&targets[half]), &drawn)
        })
    };
    for (what, distances) in [
        ("exact starts", run(Start::Rows(&rows), Some(&given), 3)),
        ("biases", run(Start::Bias, Some(&given), 200)),
    ] {
        assert!(distances.iter().all(|&d| d < 4.0), "{what}: {distances:?}");
    }
    let drifting = run(Start::Rows(&rows), None, 3);
    assert!(drifting.iter().all(|&d| d > 4.0), "the control must be caught: {drifting:?}");
}

#[test]
fn known_units_keep_their_values_in_samples_and_means() {
    let rbm = random_rbm(70, 9, 1.0, 128);
    let known = Known::Units("0-9,65".parse().unwrap()).mask(70, None).unwrap();
    let values: BitRows = BitRows::pack(70, &(0..3 * 70).collect::<Vec<_>>(), |i| i % 3 == 0);
    let given = Given::new(known, values.clone()).unwrap();
    let grey = Rows::Reals(RealRows::new(70, vec![0.5; 140]));
    for start in [Start::Bias, Start::Rows(&grey)] {
        let settings = SampleSettings { means: true, ..settings(20, 2, 129) };
        let samples = sample(&rbm, &settings, start, Some(&given), &Silent).unwrap();
        let means = samples.means.as_ref().unwrap();
        for r in 0..20 {
            for i in (0..10).chain([65]) {
                let value = values.get(r % 3, i);
                assert_eq!(samples.v.get(r, i), value);
                assert_eq!(means.row(r)[i], f32::from(u8::from(value)));
            }
        }
        assert!(means.values().iter().any(|&m| m > 0.01 && m < 0.99));
    }
}

#[test]
fn threads_and_the_number_of_samples_do_not_matter() {
    let rbm = random_rbm(70, 20, 0.5, 130);
    let run = |n_threads, n_samples| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let settings = SampleSettings { means: true, ..settings(n_samples, 5, 131) };
        pool.install(|| sample(&rbm, &settings, Start::Bias, None, &Silent).unwrap())
    };
    let one = run(1, 100);
    assert!(run(2, 100) == one && run(5, 100) == one);
    let fewer = run(2, 37);
    assert_eq!(fewer.v.words(), one.v.rows(0, 37));
    assert_eq!(fewer.means.unwrap().values(), &one.means.unwrap().values()[..37 * 70]);
}

/// Other values change results: mention it in the changelog.
#[test]
fn samples_are_stable() {
    let rbm = random_rbm(20, 6, 1.0, 132);
    let settings = SampleSettings { means: true, ..settings(4, 10, 42) };
    let samples = sample(&rbm, &settings, Start::Bias, None, &Silent).unwrap();
    assert_eq!(samples.v.words(), [642_489, 388_264, 1_033_886, 836_993]);
    assert_eq!(samples.means.unwrap().row(0)[0], 0.823_376_7);
}
