//! Test measured values against exact ones, with controls that must be caught.

use super::{Precision, TheoremSettings, Theorems, cosine, lvs_moments, risk, tours_needed};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::gradient::{data_moments, model_moments};
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::tour::{Estimate, HiddenChain, TourEngine, TourSettings};
use crate::{Rbm, StoppingSet};

/// The largest `|z|` that is attributed to chance: `2(1 − Φ(5.5)) = 3.8e-8`, for about 100 tests.
const LIMIT: f64 = 5.5;

fn model() -> (Rbm, StoppingSet, Rows) {
    let rbm = random_rbm(6, 5, 1.3, 77);
    let set = StoppingSet::new(&BitRows::from_words(5, vec![3, 9, 17, 22, 30]));
    (rbm, set, Rows::Bits(BitRows::from_words(6, vec![0b10_1010, 0b00_1111, 0b11_0000, 0b10_1010])))
}

fn settings(n_tours: usize, seed: u64) -> TourSettings {
    TourSettings { n_tours, seed, ..Default::default() }
}

fn measure(rbm: &Rbm, set: &StoppingSet, rows: Option<&Rows>, settings: &TourSettings) -> Theorems {
    let engine = TourEngine::new(rbm, set).unwrap();
    let tours = Theorems::run(&engine, settings, &Silent).unwrap();
    let wanted = TheoremSettings::default();
    Theorems::measure(&engine, (&tours, settings), rows, &wanted, &Silent).unwrap()
}

#[test]
fn measured_values_agree_with_exact_ones() {
    let (rbm, set, rows) = model();
    let found = measure(&rbm, &set, Some(&rows), &settings(20_000, 71));
    let mut pairs = vec![found.set_probability, found.mean_energy, found.tail_rate, found.second_moment];
    for row in &found.cut {
        pairs.extend([row.returned, row.completed, row.started, row.energy]);
        let bias = row.completed.exact.unwrap() - 1.0;
        assert!(bias.abs() <= row.completed_bound.unwrap() + 1e-9);
        let of_energy = row.energy.exact.unwrap() - found.mean_energy.exact.unwrap();
        assert!(of_energy.abs() <= row.energy_bound.unwrap() + 1e-9);
    }
    for row in &found.lengths {
        pairs.extend([row.share, row.of_z, row.energy]);
    }
    pairs.extend(found.cd.iter().map(|row| row.drop));
    let (mut n, mut worst) = (0, 0.0f64);
    for pair in pairs {
        let (Some(measured), Some(exact)) = (pair.measured, pair.exact) else { panic!("{pair:?}") };
        if measured.std_err < 1e-12 {
            assert!((measured.value - exact).abs() < 1e-9, "{pair:?}");
            continue;
        }
        let z = (measured.value - exact) / measured.std_err;
        assert!(z.abs() < LIMIT, "z = {z}: {pair:?}");
        worst = worst.max(z.abs());
        n += 1;
    }
    eprintln!("{n} values, largest |z| {worst:.2}");
    assert!(n > 35);
    for row in &found.tail {
        let (point, exact) = (row.measured.unwrap(), row.exact.unwrap());
        assert!(exact <= row.rate_bound.unwrap() + 1e-12 && exact <= row.epsilon_bound.unwrap() + 1e-12);
        let std_err = (exact * (1.0 - exact) / 20_000.0).sqrt();
        assert!((point.p - exact).abs() <= LIMIT * std_err + 1e-3, "{row:?}");
    }
    // The four differences are real here: no column is the model's value.
    let (cd, mean) = (found.cd[0], found.mean_energy.exact.unwrap());
    for biased in [cd.cd, cd.cd_from_pi, cd.keep, cd.drop.exact] {
        assert!((biased.unwrap() - mean).abs() > 1e-3, "{cd:?} {mean}");
    }
    let starts = found.starts.unwrap();
    let share = starts.in_set.exact.unwrap();
    assert!((0.0..1.0).contains(&share) && starts.cd_from_tours.unwrap() >= 1.0 - share - 1e-9);
    assert!((starts.tours_from_model.unwrap() - (1.0 - found.set_probability.exact.unwrap())).abs() < 1e-9);
}

/// Without enumeration the same numbers come from complete tours, and without complete tours there
/// are none.
#[test]
fn large_models_have_measured_values_only() {
    let rbm = random_rbm(40, 22, 0.2, 5);
    let rows = Rows::Bits(BitRows::from_words(40, (0..50).map(|r| r * 0x9e37_79b9 % (1 << 40)).collect()));
    let all: Vec<usize> = (0..50).collect();
    let set = StoppingSet::draw(&rbm, &rows, &all, 200, 1, 0).unwrap();
    let cut = TourSettings { max_length: Some(3), ..settings(500, 72) };
    let found = measure(&rbm, &set, Some(&rows), &cut);
    assert!(found.cut[0].returned.measured.is_some() && found.cut[0].completed.measured.is_none());
    assert!(
        found.gradient.is_none()
            && found.needed.cv2_pilot.is_none()
            && found.cut[2].returned.measured.is_none()
    );
    assert!(found.needed.declined.unwrap().contains("cut") && found.epsilon.is_none());
}

/// Starts drawn from enumerated chains: measured and exact shares agree over many draws.
#[test]
fn shares_of_starts_agree_with_enumeration() {
    let (rbm, set, rows) = model();
    let many = rows.select(&(0..8_000).map(|k| k % 4).collect::<Vec<_>>());
    let starts = measure(&rbm, &set, Some(&many), &settings(100, 73)).starts.unwrap();
    for pair in [starts.in_set, starts.log_weight_of_cd] {
        let (measured, exact) = (pair.measured.unwrap(), pair.exact.unwrap());
        assert!(((measured.value - exact) / measured.std_err).abs() < LIMIT, "{pair:?}");
    }
    // Control: all starts from π_S lie in the set.
    let measured = starts.in_set.measured.unwrap();
    assert!((measured.value - 1.0) / measured.std_err < -2.0 * LIMIT);
    let tours = HiddenChain::new(&rbm).unwrap();
    let theory = tours.tours(&set).unwrap();
    let effective = 1.0 / theory.starts().iter().map(|p| p * p).sum::<f64>();
    assert!((starts.effective_starts / effective - 1.0).abs() < 1e-6);
}

/// The parts of the gradient sum to the whole, agree with sums along replayed tours, and obey the
/// linear identity `E[Σ f − ξ·E_p f] = 0`. Control: tours of one step do not.
#[test]
fn parts_of_the_gradient_sum_to_the_whole() {
    let (rbm, set, rows) = model();
    let of_tours = settings(3_000, 74);
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let tours = engine.run(&of_tours, &Silent).unwrap();
    let found = super::GradientByLength::measure(&engine, (&tours, &of_tours), &rows, &Silent).unwrap();
    let total = |of: fn(&super::LengthPart) -> f64| -> f64 { found.parts.iter().map(of).sum() };
    assert!((total(|p| p.of_steps) - 1.0).abs() < 1e-12 && (total(|p| p.of_gradient) - 1.0).abs() < 1e-9);
    assert_eq!(found.parts.iter().map(|p| p.n_tours).sum::<u64>(), 3_000);
    assert!(found.is_exact && found.parts.last().unwrap().cosine_up_to > 0.99);
    assert!(found.parts[0].cosine_up_to < 0.99, "{:?}", found.parts[0]);

    let ks = [1, 4, u32::MAX];
    let moments = lvs_moments(&engine, (&tours, &of_tours), &ks, &Silent).unwrap();
    // A naive sum along replayed tours.
    for (&k, moments) in ks.iter().zip(&moments) {
        let (mut sums, mut n) = (vec![0.0; 30 + 6 + 5], 0.0);
        for (number, tour) in tours.as_slice().iter().enumerate().filter(|(_, t)| t.length <= k) {
            let (v, h) = engine.replay(&tours, &of_tours, None, number, u32::MAX).unwrap();
            let Rows::Bits(v) = v else { panic!("sampled") };
            n += f64::from(tour.length);
            for r in 0..h.n_rows() {
                for i in 0..6 {
                    (0..5).for_each(|j| sums[i * 5 + j] += f64::from(u8::from(v.get(r, i) && h.get(r, j))));
                    sums[30 + i] += f64::from(u8::from(v.get(r, i)));
                }
                (0..5).for_each(|j| sums[36 + j] += f64::from(u8::from(h.get(r, j))));
            }
        }
        let moments = moments.as_ref().unwrap();
        assert!(moments.iter().zip(&sums).all(|(a, b)| (a - b / n).abs() < 1e-12));
    }
    // The identity, with the spread over independent runs.
    let exact = model_moments(&rbm).unwrap();
    let mut of_runs = [Vec::new(), Vec::new()];
    for seed in 0..200 {
        let of_tours = settings(200, 1_000 + seed);
        let tours = engine.run(&of_tours, &Silent).unwrap();
        let moments = lvs_moments(&engine, (&tours, &of_tours), &[1, u32::MAX], &Silent).unwrap();
        let steps = |k: u32| -> f64 {
            tours.as_slice().iter().filter(|t| t.length <= k).map(|t| f64::from(t.length)).sum()
        };
        for (to, (k, moments)) in of_runs.iter_mut().zip([1, u32::MAX].into_iter().zip(moments)) {
            to.push(steps(k) * (moments.unwrap()[7] - exact[7]));
        }
    }
    let z = |x: &[f64]| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        mean / (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
    };
    let (of_one, of_all) = (z(&of_runs[0]), z(&of_runs[1]));
    eprintln!("all tours: z = {of_all:.2}; tours of one step: z = {of_one:.2}");
    assert!(of_all.abs() < LIMIT && of_one.abs() > 2.0 * LIMIT);
}

#[test]
fn moments_are_naive_sums() {
    for (n_v, n_h) in [(5, 3), (3, 5)] {
        let rbm = random_rbm(n_v, n_h, 1.0, 9);
        let chain = HiddenChain::new(&rbm).unwrap();
        let model = model_moments(&rbm).unwrap();
        let bit = |x: usize, k: usize| (x >> k & 1) as f64;
        for i in 0..n_v {
            for j in 0..n_h {
                let exact = chain.expectation(|v, h| bit(v, i) * bit(h, j));
                assert!((model[i * n_h + j] - exact).abs() < 1e-9);
            }
            assert!((model[n_v * n_h + i] - chain.expectation(|v, _| bit(v, i))).abs() < 1e-9);
        }
        for j in 0..n_h {
            assert!((model[n_v * n_h + n_v + j] - chain.expectation(|_, h| bit(h, j))).abs() < 1e-9);
        }
        let rows = Rows::Bits(BitRows::from_words(n_v, vec![1, 6, 6]));
        let h = rbm.mean_h_from_v(&rows).unwrap();
        let data = data_moments(&rbm, &rows).unwrap();
        // Row 0 has unit 0; rows 1 and 2 have units 1 and 2.
        let mean = |j: usize, r: usize| f64::from(h.values()[r * n_h + j]);
        assert!((data[0] - mean(0, 0) / 3.0).abs() < 1e-6);
        assert!((data[2 * n_h + 1] - 2.0 * mean(1, 1) / 3.0).abs() < 1e-6);
        assert!((data[n_v * n_h] - 1.0 / 3.0).abs() < 1e-6);
    }
    assert!(model_moments(&random_rbm(21, 22, 0.1, 1)).is_none());
    assert!((cosine(&[1.0, 0.0], &[1.0, 1.0]) - 0.5f64.sqrt()).abs() < 1e-12);
}

/// The number of tours that Chebyshev's inequality asks for is enough: Ẑ misses by more than the
/// wanted error less often than allowed. A twentieth of these tours is not.
#[test]
fn enough_tours_are_enough() {
    let (rbm, set, _) = model();
    let found = measure(&rbm, &set, None, &settings(4_000, 75));
    let cv2 = found.needed.cv2_exact.unwrap();
    assert!(found.needed.cv2_bound.unwrap() >= cv2 && found.gradient.is_none() && found.starts.is_none());
    let pilot = found.needed.cv2_pilot.unwrap();
    assert!((pilot / cv2 - 1.0).abs() < 0.3, "{pilot} {cv2}");
    let wanted = Precision { error: 0.2, alpha: 0.25 };
    let n = tours_needed(cv2, wanted) as usize;
    assert!(risk(cv2, n, wanted.error) <= wanted.alpha && risk(cv2, n - 1, wanted.error) > wanted.alpha);
    assert_eq!((risk(4.0, 1, 0.1), tours_needed(0.0, wanted)), (1.0, 1.0));
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let kac = 1.0 / found.set_probability.exact.unwrap();
    let misses = |n: usize| {
        let runs = 400;
        let missed = |seed: u64| {
            let Estimate { value, .. } = engine.run(&settings(n, seed), &Silent).unwrap().mean_length();
            (value / kac - 1.0).abs() >= wanted.error
        };
        (0..runs).filter(|&seed| missed(seed)).count() as f64 / runs as f64
    };
    // The inequality is conservative: far fewer than a quarter miss.
    assert!(misses(n) < wanted.alpha, "{n} tours");
    assert!(misses((n / 20).max(1)) > wanted.alpha, "{n} tours");
}

#[test]
fn bad_settings_are_refused() {
    let (rbm, set, rows) = model();
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let of_tours = settings(10, 1);
    let tours = Theorems::run(&engine, &of_tours, &Silent).unwrap();
    let error = |wanted: TheoremSettings| {
        Theorems::measure(&engine, (&tours, &of_tours), None, &wanted, &Silent).unwrap_err().to_string()
    };
    let base = TheoremSettings::default;
    assert!(error(TheoremSettings { k: vec![0], ..base() }).starts_with("k = 0"));
    assert!(error(TheoremSettings { k: vec![1001], ..base() }).starts_with("k = 1001"));
    let precision = Precision { error: f64::NAN, alpha: 0.1 };
    assert!(error(TheoremSettings { precision, ..base() }).starts_with("error = NaN"));
    let precision = Precision { error: 0.1, alpha: 0.0 };
    assert!(error(TheoremSettings { precision, ..base() }).starts_with("alpha = 0"));
    let from_rows = engine.run_from_rows(&rows, &of_tours, &Silent).unwrap();
    let refused = Theorems::measure(&engine, (&from_rows, &of_tours), None, &base(), &Silent);
    assert!(refused.unwrap_err().to_string().starts_with("starts = rows"));
}
