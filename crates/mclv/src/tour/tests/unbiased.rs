//! Test sampled tours against the exact mean and variance, with controls that must be caught.

use super::{Case, LIMIT, cases};
use crate::chain::VisibleChain;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::tour::{HiddenChain, StartTable, TourEngine, TourSettings, Tours};
use crate::{Rbm, StoppingSet, bits::BitRows};

/// Steps that one comparison may take.
const N_STEPS: f64 = 100_000.0;

fn n_tours(mean: f64) -> usize {
    (N_STEPS / mean).clamp(400.0, 40_000.0) as usize
}

/// Returns `(x − mean)` in standard errors. If the variance is 0 up to rounding, returns 0 for an
/// equal `x` and infinity for any other.
fn z(x: f64, mean: f64, variance: f64, n: usize) -> f64 {
    if variance <= 1e-10 * mean * mean {
        return if (x - mean).abs() <= 1e-9 * mean.abs() { 0.0 } else { f64::INFINITY };
    }
    (x - mean) / (variance / n as f64).sqrt()
}

fn run(rbm: &Rbm, set: &StoppingSet, settings: TourSettings) -> Tours {
    TourEngine::new(rbm, set).unwrap().run(&settings, &Silent).unwrap()
}

#[test]
fn whole_tours_are_unbiased_for_z_and_for_sums() {
    fn bit(x: u64, k: usize) -> f64 {
        (x >> k & 1) as f64
    }
    let statistics: [fn(u64, u64) -> f64; 3] =
        [|v, _| bit(v, 0), |_, h| bit(h, 1), |v, h| bit(v, 1) * bit(h, 0) - 0.5 * bit(v, 2)];
    let add = |v: &[u64], h: &[u64], sums: &mut [f64]| {
        sums.iter_mut().zip(statistics).for_each(|(sum, f)| *sum += f(v[0], h[0]));
    };
    let mut worst = 0.0f64;
    for Case { name: model, rbm, chain, sets } in &cases() {
        for (name, set) in sets {
            let theory = chain.tours(set).unwrap();
            let (mean, second) = theory.length_moments();
            let engine = TourEngine::new(rbm, set).unwrap();
            let n = n_tours(mean);
            let settings = TourSettings { n_tours: n, seed: 11, ..Default::default() };
            let tours = engine.run_with(&settings, 3, &add, &Silent).unwrap();
            assert!(tours.all_complete() && tours.obey_kac());
            // Ẑ/Z: the engine's own Z_S against the exact Z.
            let of_z = z(
                tours.mean_length().value * (engine.log_z_s() - chain.log_z()).exp(),
                1.0,
                (second - mean * mean) / (mean * mean),
                n,
            );
            let of_length = z(tours.mean_length().value, mean, second - mean * mean, n);
            let of_sums = statistics.iter().enumerate().map(|(k, f)| {
                let (mean, second) = theory.sum_moments(|v, h| f(v as u64, h as u64));
                z(tours.mean_sum(k).value, mean, second - mean * mean, n)
            });
            for z in [of_z, of_length].into_iter().chain(of_sums) {
                assert!(z.abs() < LIMIT, "{model}, {name}: z = {z:.2} over {n} tours");
                worst = worst.max(z.abs());
            }
        }
    }
    eprintln!("largest |z| {worst:.2}");
}

/// The mean of `min(ξ, K)` is short of `Z/Z_S` by exactly the sum of the tail.
#[test]
fn cut_tours_are_low_by_the_truncation_bias() {
    let mut n_below = 0;
    for Case { name: model, rbm, chain, sets } in cases().iter().skip(1) {
        for (name, set) in sets {
            let theory = chain.tours(set).unwrap();
            let (mean, second) = theory.length_moments();
            let n = n_tours(mean.min(3.0));
            let cut = TourSettings { n_tours: n, max_length: Some(3), seed: 12, ..Default::default() };
            let tours = run(rbm, set, cut);
            let expected = mean - theory.truncation_bias(3);
            assert!(tours.mean_length().value <= 3.0);
            // Lengths from 1 to 3: a variance of at most 1.
            let z = (tours.mean_length().value - expected) / (1.0 / n as f64).sqrt();
            assert!(z.abs() < LIMIT, "{model}, {name}: {z}");
            let below = (mean - expected) / ((second - mean * mean) / n as f64).sqrt();
            n_below += usize::from(below > 2.0 * LIMIT);
        }
    }
    assert!(n_below > 10, "the bias of cut tours would be seen on {n_below} models");
}

/// A model with tours of some length, its exact solution, and a set.
fn contrast() -> (Rbm, HiddenChain, StoppingSet) {
    let rbm = random_rbm(6, 5, 1.3, 77);
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = StoppingSet::new(&BitRows::from_words(5, vec![3, 9, 17, 22, 30]));
    (rbm, chain, set)
}

/// Two wells, a common and a rare one, with a state of the set in each: the start of a tour decides
/// its length.
#[test]
fn wrong_starts_are_caught() {
    let (w, a) = ([8.0, 0.5, 8.0, 0.5, 8.0, 0.5], [-12.0 - 9f32.ln(), -3.0]);
    let rbm = Rbm::new(3, 2, &w, &[-4.0; 3], &a).unwrap();
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = StoppingSet::new(&BitRows::from_words(2, vec![0b00, 0b11]));
    let theory = chain.tours(&set).unwrap();
    let (mean, second) = theory.length_moments();
    let n = 200_000;
    let settings = TourSettings { n_tours: n, seed: 13, ..Default::default() };
    let of = |tours: &Tours, log_z_s: f64| {
        let ratio = tours.mean_length().value * (log_z_s - chain.log_z()).exp();
        z(ratio, 1.0, second / (mean * mean) - 1.0, n)
    };
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let right = of(&engine.run(&settings, &Silent).unwrap(), engine.log_z_s());
    assert!(right.abs() < LIMIT, "{right}");

    let mut uniform = engine.clone();
    uniform.table = StartTable::from_log_weights(vec![0.0; set.len()]);
    let uniform = of(&uniform.run(&settings, &Silent).unwrap(), engine.log_z_s());

    // The first state drawn twice, and counted twice.
    let mut repeated = engine.clone();
    let log_weights = engine.table.log_weights().iter().zip([2.0f64, 1.0]).map(|(w, c)| w + c.ln()).collect();
    repeated.table = StartTable::from_log_weights(log_weights);
    let repeated = of(&repeated.run(&settings, &Silent).unwrap(), repeated.log_z_s());

    for (what, z) in [("uniform starts", uniform), ("repeated states", repeated)] {
        eprintln!("{what}: z = {z:.1}");
        assert!(z.abs() > 2.0 * LIMIT, "{what} must be caught: {z}");
    }
}

#[test]
fn a_mean_field_chain_is_caught() {
    let (rbm, chain, set) = contrast();
    let (mean, second) = chain.tours(&set).unwrap().length_moments();
    let n_tours = 100_000;
    for (visible, is_right) in [(VisibleChain::Sampled, true), (VisibleChain::MeanField, false)] {
        let tours = run(&rbm, &set, TourSettings { n_tours, visible, seed: 16, ..Default::default() });
        let z = z(tours.mean_length().value, mean, second - mean * mean, n_tours);
        eprintln!("{visible:?}: z = {z:.1}");
        assert!(if is_right { z.abs() < LIMIT } else { z.abs() > 2.0 * LIMIT }, "{visible:?}: {z}");
    }
}

/// Stopping when the estimated standard error is small prefers samples without long tours.
#[test]
fn stopping_on_an_estimated_error_is_caught() {
    let a = -12.0 - 9f32.ln();
    let rbm = Rbm::new(3, 1, &[8.0; 3], &[-4.0; 3], &[a]).unwrap();
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = StoppingSet::new(&BitRows::from_words(1, vec![1]));
    let (mean, second) = chain.tours(&set).unwrap().length_moments();
    let settings = TourSettings { n_tours: 400_000, seed: 14, ..Default::default() };
    let lengths = run(&rbm, &set, settings).lengths();
    // The tours themselves are right.
    let z_of_all =
        z(lengths.iter().sum::<f64>() / lengths.len() as f64, mean, second - mean * mean, lengths.len());
    assert!(z_of_all.abs() < LIMIT, "{z_of_all}");
    let (mut fixed, mut stopped) = (Vec::new(), Vec::new());
    for run in lengths.chunks_exact(1_000) {
        fixed.push(run.iter().sum::<f64>() / run.len() as f64);
        let (mut sum, mut squares) = (0.0, 0.0);
        for (n, x) in (1..).zip(run) {
            sum += x;
            squares += x * x;
            let n = f64::from(n);
            let se = ((squares - sum * sum / n) / (n * (n - 1.0))).sqrt();
            if n >= 30.0 && se < 0.2 * sum / n || n as usize == run.len() {
                stopped.push(sum / n);
                break;
            }
        }
    }
    let z_of = |x: &[f64]| {
        let n = x.len() as f64;
        let m = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (n - 1.0);
        (m - mean) / (variance / n).sqrt()
    };
    eprintln!("fixed number: {:.1}, stopped: {:.1}", z_of(&fixed), z_of(&stopped));
    assert!(z_of(&fixed).abs() < LIMIT && z_of(&stopped) < -2.0 * LIMIT);
}

/// Stratified starts: unbiased, with an unbiased variance of their own that is no larger than that
/// of independent ones.
#[test]
fn stratified_starts_keep_the_mean_and_do_not_raise_the_variance() {
    let (rbm, chain, set) = contrast();
    let (mean, second) = chain.tours(&set).unwrap().length_moments();
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let (n_runs, n_tours) = (4_000, 50);
    let runs: Vec<(f64, f64)> = (0..n_runs)
        .map(|seed| {
            let settings = TourSettings { n_tours, stratified: true, seed, ..Default::default() };
            let mean = engine.run(&settings, &Silent).unwrap().mean_length();
            (mean.value, mean.std_err.powi(2))
        })
        .collect();
    let n = n_runs as f64;
    let average = runs.iter().map(|r| r.0).sum::<f64>() / n;
    let variance = runs.iter().map(|r| (r.0 - average).powi(2)).sum::<f64>() / (n - 1.0);
    let z = (average - mean) / (variance / n).sqrt();
    assert!(z.abs() < LIMIT, "{z}");
    // The variance that each run estimates is compared with its squared error. The spread of the
    // differences gives the error of the comparison.
    let differences: Vec<f64> = runs.iter().map(|r| (r.0 - mean).powi(2) - r.1).collect();
    let d = differences.iter().sum::<f64>() / n;
    let spread = differences.iter().map(|x| (x - d).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((d / (spread / n).sqrt()).abs() < LIMIT, "variance formula");
    let independent = (second - mean * mean) / n_tours as f64;
    eprintln!("variance {variance:.3e}, independent {independent:.3e}");
    assert!(variance < independent * (1.0 + LIMIT * (2.0 / n).sqrt()));
}

/// The ratio estimate of `E_p[f]`, with the delta method's error, and the tail function agree with
/// their exact values.
#[test]
fn ratios_and_tail_functions_agree_with_enumeration() {
    let (rbm, chain, set) = contrast();
    let theory = chain.tours(&set).unwrap();
    let everything = StoppingSet::new(&BitRows::all_states(5));
    let (exact, _) =
        chain.tours(&everything).unwrap().sum_moments(|v, h| f64::from((v & h & 3).count_ones()));
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let settings = TourSettings { n_tours: 50_000, seed: 15, ..Default::default() };
    let add = |v: &[u64], h: &[u64], sums: &mut [f64]| sums[0] += f64::from((v[0] & h[0] & 3).count_ones());
    let tours = engine.run_with(&settings, 1, &add, &Silent).unwrap();
    let estimate = tours.expectation(0);
    assert!(((estimate.value - exact) / estimate.std_err).abs() < LIMIT, "{estimate:?} {exact}");
    let (ccdf, survival) = (tours.ccdf(), theory.survival(30));
    for (k, p) in survival.iter().enumerate().skip(1) {
        let point = ccdf.at(k as u32).unwrap();
        let z = (point.p - p) / (p * (1.0 - p) / 50_000.0).sqrt();
        assert!(z.abs() < LIMIT, "p(ξ > {k}): {z}");
        assert!(point.low < point.p && point.p < point.high);
    }
    let bias = tours.truncation_bias(4).unwrap();
    assert!(((bias.value - theory.truncation_bias(4)) / bias.std_err).abs() < LIMIT);
    let contributions = tours.contributions();
    let total: f64 = contributions.iter().map(|c| c.of_mean).sum();
    assert!((total - 1.0).abs() < 1e-12 && contributions[0].from == 1);
    // The tail of a finite chain is geometric in the end, with the spectral radius as its rate.
    let fit = tours.tail_fit().unwrap();
    assert!((fit.rate - theory.tail_rate()).abs() < LIMIT * fit.std_err, "{fit:?} {}", theory.tail_rate());
    // Cut tours give the same tail function up to the cut, and none beyond it.
    let cut = TourSettings { max_length: Some(25), ..settings };
    let cut = engine.run(&cut, &Silent).unwrap();
    assert_eq!((cut.ccdf().known_up_to, cut.truncation_bias(4)), (Some(25), None));
    assert!(cut.ccdf().at(26).is_none() && cut.ccdf().at(25).unwrap().p == ccdf.at(25).unwrap().p);
}
