//! Test samples by tempering against enumeration, where Gibbs chains fail.

use super::*;
use crate::model::tests::{all_states, random_rbm};
use crate::progress::Silent;
use crate::progress::tests::StopsOnce;
use crate::sample::{Start, sample};

/// Two modes, all units on and all units off. With `tilt` 0 they weigh the same.
pub(in crate::sample) fn two_modes(n: usize, w: f32, tilt: f32) -> Rbm {
    let bias = -w * n as f32 / 2.0;
    Rbm::new(n, n, &vec![w; n * n], &vec![bias + tilt; n], &vec![bias; n]).unwrap()
}

fn settings(n_samples: usize, burn_in: u32, seed: u64) -> SampleSettings {
    let method = Some(SampleMethod::Tempering);
    SampleSettings { n_samples, method, burn_in: Some(burn_in), means: false, seed }
}

fn draw(rbm: &Rbm, settings: &SampleSettings) -> Samples {
    sample(rbm, settings, Start::Bias, None, &Silent).unwrap()
}

/// A unit, and the product of two others.
fn statistics(v: u64) -> [f64; 2] {
    [f64::from(v as u8 & 1), f64::from((v >> 1 & v >> 5) as u8 & 1)]
}

/// The means and variances of the statistics, by enumeration.
fn truth(rbm: &Rbm) -> [(f64, f64); 2] {
    let states = all_states(rbm.n_visible());
    let f = rbm.free_energy(&Rows::Bits(states.clone())).unwrap();
    let least = f.iter().copied().fold(f64::INFINITY, f64::min);
    let weights: Vec<f64> = f.iter().map(|f| (least - f).exp()).collect();
    let z: f64 = weights.iter().sum();
    [0, 1].map(|k| {
        let mean: f64 = weights.iter().zip(states.words()).map(|(w, &v)| w / z * statistics(v)[k]).sum();
        (mean, mean * (1.0 - mean))
    })
}

/// The z-scores of independent samples.
fn z_scores(rbm: &Rbm, samples: &[u64]) -> [f64; 2] {
    let n = samples.len() as f64;
    let truth = truth(rbm);
    [0, 1].map(|k| {
        let mean = samples.iter().map(|&v| statistics(v)[k]).sum::<f64>() / n;
        (mean - truth[k].0) / (truth[k].1 / n).sqrt()
    })
}

/// 60 runs of 16 ladders with one sample each are 960 independent samples. The means of a unit and
/// of a product of two units are those of the model within 4.5 standard errors (two tests, false
/// alarm 1.4e-5). The same number of Gibbs steps from the same base, and ladders of another model,
/// are caught.
#[test]
fn samples_are_those_of_a_model_with_two_modes() {
    let rbm = two_modes(12, 1.0, 0.07);
    let mean = truth(&rbm)[0].0;
    assert!(mean > 0.6 && mean < 0.8, "two modes of different weights: {mean}");
    let run = |rbm: &Rbm, method| -> Vec<u64> {
        let of_seed = |seed| {
            let settings = SampleSettings { method: Some(method), ..settings(N_LADDERS, 200, seed) };
            draw(rbm, &settings).v.words().to_vec()
        };
        (0..60).flat_map(of_seed).collect()
    };
    let z = z_scores(&rbm, &run(&rbm, SampleMethod::Tempering));
    assert!(z.iter().all(|z| z.abs() < 4.5), "{z:?}");
    let stuck = z_scores(&rbm, &run(&rbm, SampleMethod::Gibbs));
    assert!(stuck.iter().all(|z| z.abs() > 4.5), "the control must be caught: {stuck:?}");
    let other = z_scores(&rbm, &run(&two_modes(12, 1.0, 0.0), SampleMethod::Tempering));
    assert!(other.iter().all(|z| z.abs() > 4.5), "the control must be caught: {other:?}");
}

/// Samples of one ladder are almost independent: the variance of the means of 16 ladders of 100
/// samples each is about that of independent samples. The ratio is χ² with 15 degrees of freedom
/// over 15, below 3.3 with probability 1 − 1e-5. Samples of consecutive steps are far above.
#[test]
fn samples_of_one_ladder_are_almost_independent() {
    let rbm = two_modes(12, 1.0, 0.07);
    let (mean, variance) = truth(&rbm)[0];
    let ratio = |samples: &Samples| {
        let v = samples.v.words();
        let of_ladder = |ladder: usize| {
            let own = v.iter().skip(ladder).step_by(N_LADDERS);
            own.map(|&v| statistics(v)[0]).sum::<f64>() / 100.0 - mean
        };
        let squares: f64 = (0..N_LADDERS).map(|ladder| of_ladder(ladder).powi(2)).sum();
        squares / N_LADDERS as f64 / (variance / 100.0)
    };
    let samples = draw(&rbm, &settings(1_600, 2_000, 5));
    let ladders = samples.ladders.as_ref().unwrap();
    assert!(ladders.thinning.unwrap() > 5, "{ladders:?}");
    assert!(ratio(&samples) < 3.3, "{} {ladders:?}", ratio(&samples));
    let betas = [0.0, 0.3, 0.6, 1.0];
    let path = Path::new(&rbm, Some(&spread_out_base(&rbm)), Kept::Visible).unwrap();
    let mut run = Run::new(&rbm, &path, &betas, 5, &Silent);
    run.advance(500, None).unwrap();
    let close = run.draw(&settings(1_600, 500, 5), None, 1).unwrap();
    assert!(ratio(&close) > 3.3, "the control must be caught: {}", ratio(&close));
}

/// What ladders report is what they did.
#[test]
fn ladders_that_mix_say_so_and_short_ones_are_doubted() {
    let rbm = two_modes(12, 1.0, 0.0);
    let long = draw(&rbm, &settings(40, 2_000, 6));
    let ladders = long.ladders.clone().unwrap();
    assert_eq!((long.burn_in, ladders.n_ladders, ladders.not_renewed), (Some(2_000), N_LADDERS, 0.0));
    assert!(ladders.least_swap_rate > 0.2 && ladders.round_trips > 20.0, "{ladders:?}");
    assert!(long.mixing.unwrap().r_hat < 1.1 && long.doubt().is_none(), "{:?}", long.mixing);
    let one_each = draw(&rbm, &settings(16, 64, 6));
    assert_eq!(one_each.ladders.unwrap().thinning, None);
    // A model of many rungs, and hardly a step.
    let hard = draw(&two_modes(60, 1.0, 0.0), &settings(40, 8, 6));
    let ladders = hard.ladders.clone().unwrap();
    assert!(ladders.n_rungs > 10 && ladders.not_renewed > 0.5 && ladders.round_trips == 0.0, "{ladders:?}");
    assert_eq!(hard.mixing, None);
    let word = hard.doubt().unwrap().to_string();
    assert!(word.contains("have not come from the lowest rung"), "{word}");
    let differ = doubt(Some(Mixing { r_hat: 1.1, ..long.mixing.unwrap() }), 1 << 20, 0.5);
    assert!(matches!(differ, Some(crate::mixing::Doubt::ChainsDiffer { .. })), "{differ:?}");
}

#[test]
fn threads_and_the_number_of_samples_do_not_matter() {
    let rbm = random_rbm(70, 20, 0.5, 510);
    let run = |n_threads, n_samples| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let settings = SampleSettings { means: true, ..settings(n_samples, 70, 511) };
        pool.install(|| draw(&rbm, &settings))
    };
    let one = run(1, 50);
    assert!(run(2, 50) == one && run(5, 50) == one);
    let fewer = run(2, 21);
    assert_eq!(fewer.v.words(), one.v.rows(0, 21));
    assert_eq!(fewer.means.unwrap().values(), &one.means.unwrap().values()[..21 * 70]);
}

/// Other values change results: mention it in the changelog.
#[test]
fn samples_are_stable() {
    let samples = draw(&random_rbm(20, 6, 1.0, 132), &settings(4, 10, 42));
    assert_eq!(samples.v.words(), [771_769, 708_257, 908_716, 953_768]);
}

#[test]
fn ladders_stop_when_told() {
    let rbm = random_rbm(9, 7, 0.5, 512);
    for n in [0, 40, 407, 425, 460] {
        let once = StopsOnce::at_question(n);
        let stopped = sample(&rbm, &settings(40, 128, 0), Start::Bias, None, &once);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{n}");
    }
}

#[test]
fn more_steps_than_random_numbers_are_refused() {
    let run = |n_samples| {
        let rbm = random_rbm(1, 1, 0.5, 513);
        let path = Path::new(&rbm, None, Kept::Visible).unwrap();
        let run = Run::new(&rbm, &path, &[0.0, 1.0], 0, &Silent);
        run.draw(&settings(n_samples, 1, 0), None, 1 << 20).map(drop)
    };
    let word = run(1 << 20).unwrap_err().to_string();
    assert!(word.starts_with("n-samples = 1048576 is not allowed") && word.contains("2^30 steps"), "{word}");
}

#[test]
fn little_time_gives_fewer_samples_and_then_closer_ones() {
    // Everything fits; fewer rounds; the least rounds, closer to each other; no time at all.
    assert_eq!(affordable(1000, 10, 630), (1000, 10));
    assert_eq!(affordable(1000, 10, 300), (480, 10));
    assert_eq!(affordable(1000, 100, 320), (256, 20));
    assert_eq!(affordable(20, 100, 50), (20, 25));
    assert_eq!(affordable(1000, 100, 0), (256, 1));
}
