//! Test the laboratory on models that can be enumerated.
//!
//! **False alarms.** An unbiased estimator is called biased with probability 1e-3, and 11 of them
//! are judged. Numbers are compared with enumeration by 40 z-tests at 5 standard errors (6e-7 each).
//! Correct code fails for about one choice of seeds in 90. Seeds are literals.

use super::*;
use crate::bits::BitRows;
use crate::gradient::tests::oracle::Joint;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::rng::Reader;

const LIMIT: f64 = 5.0;

fn model() -> Rbm {
    random_rbm(6, 4, 1.2, 61)
}

fn data() -> Rows {
    let words = (0..40).map(|r| [0, 0b10_1011, 0b11_0000, 0b00_0111][r % 4]).collect();
    Rows::Bits(BitRows::from_words(6, words))
}

fn settings(estimators: &[&str], n_replicates: usize) -> LabSettings {
    LabSettings {
        estimators: estimators.iter().map(|name| name.to_string()).collect(),
        n_replicates,
        burn_in: 60,
        seed: 5,
        ..LabSettings::default()
    }
}

fn run(estimators: &[&str], n_replicates: usize) -> Lab {
    lab(&model(), &data(), &settings(estimators, n_replicates), &Silent).unwrap()
}

fn z(measured: Measured, expected: f64) -> f64 {
    (measured.value - expected) / measured.std_err
}

fn bias(estimator: &LabEstimator) -> Unbiasedness {
    estimator.bias.expect("two estimates or more")
}

#[test]
fn unbiased_estimators_are_found_unbiased() {
    let lab = run(
        &[
            "exact",
            "ucd:1:max-meeting=100000",
            "ucd:5:max-meeting=100000",
            "pcd:1",
            "lvs:carry:3",
            "lvs:carry:1:starts=fresh",
            "tempered",
        ],
        300,
    );
    assert!(lab.reference.is_exact && lab.n_rows == 40);
    for estimator in &lab.estimators {
        let bias = bias(estimator);
        eprintln!("{}: {bias:?}", estimator.estimator);
        assert!(!bias.is_biased(), "{}: {bias:?}", estimator.estimator);
        assert!(bias.squared.value.abs() <= LIMIT * bias.squared.std_err, "{}", estimator.estimator);
    }
    let exact = &lab.estimators[0];
    assert_eq!((exact.mse.value, exact.variance.value, bias(exact).p), (0.0, 0.0, 1.0));
    assert!((exact.cosine.value - 1.0).abs() < 1e-6 && exact.n_steps == 0.0);
    assert!(lab.estimators[1].notes.is_empty());
    assert_eq!(lab.estimators[3].notes, [LabNote::BurnIn { n_updates: 60 }]);
}

#[test]
fn biased_estimators_are_found_biased() {
    let lab = run(
        &[
            "cd:1",
            "lvs:carry:3:visible=mean-field",
            "lvs:drop:dynamic:visible=mean-field",
            "lvs:drop:1",
            "lvs:keep:1",
            "ucd:1:max-meeting=2",
        ],
        300,
    );
    for estimator in &lab.estimators {
        let bias = bias(estimator);
        eprintln!("{}: {bias:?}", estimator.estimator);
        assert!(bias.is_biased() && bias.norm().is_some(), "{}: {bias:?}", estimator.estimator);
    }
    let mean_field = lab.estimators[2].linear.unwrap();
    assert!(mean_field.is_biased(), "the linear identity needs the model's own chain: {mean_field:?}");
    let cut = &lab.estimators[5];
    assert!(
        matches!(cut.notes[..], [LabNote::Cut { n_cut, n_all: 12_000, at: 2 }] if n_cut > 100),
        "{cut:?}"
    );
}

/// Tours that are not cut: the linear identity holds at any number of tours, and the bias of their
/// ratio falls as one over it.
#[test]
fn the_bias_of_ratios_falls_with_the_number_of_tours() {
    let names =
        [4, 8, 16].map(|n| format!("lvs:drop:dynamic:n-chains={n}:samples-per-row=1:row-fraction=0.1"));
    let lab = run(&names.each_ref().map(String::as_str), 10_000);
    let scaled = |k: usize, n: f64| {
        let Measured { value, std_err } = bias(&lab.estimators[k]).squared;
        Measured { value: n * n * value, std_err: n * n * std_err }
    };
    for estimator in &lab.estimators {
        let linear = estimator.linear.unwrap();
        eprintln!("{}: ratio {:?}, linear {linear:?}", estimator.estimator, bias(estimator));
        assert!(!linear.is_biased() && linear.squared.value.abs() < LIMIT * linear.squared.std_err);
        assert!(estimator.notes.is_empty(), "{estimator:?}");
    }
    assert!(bias(&lab.estimators[0]).is_biased(), "{:?}", lab.estimators[0]);
    // R·bias is nearly constant; a bias that does not fall would make it four times as large, and one
    // that falls as 1/√R twice.
    let (few, many) = (scaled(0, 4.0), scaled(2, 16.0));
    let ratio = (many.value / few.value).sqrt();
    let error = 0.5 * ratio * (many.std_err / many.value).hypot(few.std_err / few.value);
    eprintln!("R·bias of 16 tours over that of 4: {ratio:.2} ± {error:.2}");
    assert!((ratio - 1.0).abs() < 0.3 + 3.0 * error && error < 0.25, "{ratio} ± {error}");
}

/// The mean and the variance of `f = (v E[h|v]ᵀ, v, E[h|v])` over some distribution of `v`.
fn of_states(rbm: &Rbm, p: impl Fn(u64) -> f64) -> (Vec<f64>, f64) {
    let states: Vec<u64> = (0..64).collect();
    let h = rbm.mean_h_from_v(&Rows::Bits(BitRows::from_words(6, states.clone()))).unwrap();
    let f = |v: u64| -> Vec<f64> {
        let h = |j: usize| f64::from(h.values()[v as usize * 4 + j]);
        let on = |i: usize| (v >> i & 1) as f64;
        let pairs = (0..6).flat_map(|i| (0..4).map(move |j| (i, j)));
        pairs.map(|(i, j)| on(i) * h(j)).chain((0..6).map(on)).chain((0..4).map(h)).collect()
    };
    let mut mean = vec![0.0; 34];
    let mut square = 0.0;
    for v in states {
        let f = f(v);
        mean.iter_mut().zip(&f).for_each(|(mean, f)| *mean += p(v) * f);
        square += p(v) * f.iter().map(|f| f * f).sum::<f64>();
    }
    let variance = square - mean.iter().map(|m| m * m).sum::<f64>();
    (mean, variance)
}

/// Brute force: CD-1 of each row draws `h`, then `v`; a chain in equilibrium is a draw from the model.
#[test]
fn variances_and_biases_are_those_of_brute_force() {
    let rbm = model();
    let joint = Joint::new(&rbm);
    let exact = joint.moments();
    let rows = |n: usize, words: Vec<u64>| Rows::Bits(BitRows::from_words(n, words));
    let up = rbm.mean_h_from_v(&rows(6, (0..64).collect())).unwrap();
    let down = rbm.mean_v_from_h(&rows(4, (0..16).collect())).unwrap();
    let chance = |p: &[f32], word: u64| -> f64 {
        p.iter().enumerate().map(|(i, &p)| f64::from(if word >> i & 1 == 1 { p } else { 1.0 - p })).product()
    };
    let after_one = |row: u64, v: u64| -> f64 {
        let h = |h: u64| chance(&up.values()[row as usize * 4..][..4], h);
        (0..16).map(|state| h(state) * chance(&down.values()[state as usize * 6..][..6], v)).sum()
    };
    let of_rows: Vec<(Vec<f64>, f64)> =
        [0, 0b10_1011, 0b11_0000, 0b00_0111].map(|row| of_states(&rbm, |v| after_one(row, v))).to_vec();
    // Ten rows of each of the four kinds.
    let variance = of_rows.iter().map(|(_, variance)| variance / 4.0).sum::<f64>() / 40.0;
    let bias_of = |k: usize| of_rows.iter().map(|(mean, _)| mean[k] / 4.0).sum::<f64>() - exact[k];
    let squared: f64 = (0..34).map(|k| bias_of(k).powi(2)).sum();
    let lab = run(&["cd:1", "pcd:1:n-chains=25", "tempered:n-chains=25"], 600);
    let cd = &lab.estimators[0];
    eprintln!("cd-1: {:?} {:?}, by brute force {squared} {variance}", bias(cd).squared, cd.variance);
    assert!(z(cd.variance, variance).abs() < LIMIT && z(bias(cd).squared, squared).abs() < LIMIT);
    assert!(z(cd.mse, squared + variance).abs() < LIMIT);
    // The control: without the share of the variance, the squared bias is the error of the mean.
    let naive = bias(cd).squared.value + cd.variance.value / 600.0;
    assert!((bias(cd).squared.value - naive).abs() > 0.0);
    let p = |v: u64| (0..16).map(|h| joint.of_pair(v as usize, h)).sum::<f64>();
    let (mean, of_model) = of_states(&rbm, p);
    assert!(mean.iter().zip(&exact).all(|(m, e)| (m - e).abs() < 1e-5));
    for estimator in &lab.estimators[1..] {
        eprintln!("{}: {:?}, by brute force {}", estimator.estimator, estimator.variance, of_model / 25.0);
        assert!(z(estimator.variance, of_model / 25.0).abs() < LIMIT, "{}", estimator.estimator);
        assert!(z(estimator.variance, of_model / 20.0).abs() > LIMIT, "the control must be caught");
    }
}

/// Vectors with known moments: `errors` of normal numbers around `bias` in each of 20 components, of
/// unequal sizes.
fn synthetic(rng: &mut Reader, n: usize, bias: f64) -> Vec<Vec<f32>> {
    let component = |rng: &mut Reader, k: usize| (bias + rng.normal() / (1.0 + k as f64)) as f32;
    (0..n).map(|_| (0..20).map(|k| component(rng, k)).collect()).collect()
}

/// Over 3,000 sets of estimates without bias, the test errs as often as it says, with an exact
/// reference and with a sampled one; squared biases are 0 on average and as far from it as they say.
#[test]
fn squared_biases_and_their_test_are_calibrated() {
    let mut rng = stream(8, Purpose::SelfTest, 0).reader();
    for q in [0, 16] {
        let (mut alarms, mut sum, mut squares, mut stated) = (0.0, 0.0, 0.0, 0.0);
        let n_sets = 3000.0;
        for _ in 0..n_sets as usize {
            let estimates = synthetic(&mut rng, 24, 0.0);
            let groups = synthetic(&mut rng, q, 0.0);
            let mean: Vec<f32> =
                (0..20).map(|k| groups.iter().map(|g| g[k]).sum::<f32>() / (q.max(1) as f32)).collect();
            let errors = Errors::new(&estimates, &groups, &mean, &[1.0; 20]);
            let found = errors.unbiasedness(None);
            alarms += f64::from(u8::from(found.p < 0.05));
            sum += found.squared.value;
            squares += found.squared.value.powi(2);
            stated += found.squared.std_err.powi(2);
        }
        let (rate, mean, sd) = (alarms / n_sets, sum / n_sets, (squares / n_sets).sqrt());
        let ratio = (stated / n_sets).sqrt() / sd;
        eprintln!("{q} groups: alarms {rate:.3}, mean {mean:.5}, spread {sd:.5}, stated {ratio:.2} of it");
        // Two tests at half the level, with 11 degrees of freedom: at most 0.05, and not far below.
        assert!((0.02..0.062).contains(&rate), "{rate}");
        assert!(mean.abs() < LIMIT * sd / n_sets.sqrt(), "{mean}");
        assert!((0.8..1.4).contains(&ratio), "{ratio}");
    }
    // With a bias, the squared norm is found: 20 components of 0.3.
    let (mut sum, mut squares, mut found) = (0.0, 0.0, 0.0);
    for _ in 0..500 {
        let errors = Errors::new(&synthetic(&mut rng, 24, 0.3), &[], &[0.0; 20], &[1.0; 20]);
        let bias = errors.unbiasedness(None);
        let z = z(bias.squared, 20.0 * 0.09);
        (sum, squares, found) = (sum + z, squares + z * z, found + f64::from(u8::from(bias.is_biased())));
    }
    let (mean, sd) = (sum / 500.0, (squares / 500.0f64).sqrt());
    eprintln!("with a bias: z {mean:.2} ± {sd:.2}, found {found} of 500");
    assert!(mean.abs() < 0.4 && (0.7..1.3).contains(&sd) && found == 500.0);
}

/// A reference of samples gives the same squared bias, within its own error.
#[test]
fn a_sampled_reference_agrees_with_the_exact_one() {
    let (rbm, data) = (model(), data());
    let settings = LabSettings { n_reference: 3200, ..settings(&["cd:1", "exact"], 200) };
    let exact = lab(&rbm, &data, &settings, &Silent).unwrap();
    let sampled = lab_with(&rbm, &data, &settings, &Silent, 0).unwrap();
    assert!(!sampled.reference.is_exact && sampled.reference.std_err > 0.0);
    let (a, b) = (bias(&exact.estimators[0]).squared, bias(&sampled.estimators[0]).squared);
    eprintln!("{a:?} {b:?} {:?}", sampled.reference);
    assert!((a.value - b.value).abs() < LIMIT * a.std_err.hypot(b.std_err) && b.std_err > a.std_err);
    // The exact gradient itself differs from the samples by their error, and is not called biased.
    let of_exact = bias(&sampled.estimators[1]);
    assert!(
        !of_exact.is_biased() && of_exact.squared.value < LIMIT * of_exact.squared.std_err,
        "{of_exact:?}"
    );
}

#[test]
fn numbers_do_not_depend_on_threads() {
    let with = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let mut lab = pool.install(|| {
            let settings =
                LabSettings { batch_size: 300, ..settings(&["cd:2", "ucd", "pcd:1", "lvs:keep:2"], 9) };
            let words = (0..300).map(|r| r * 7 % 64).collect();
            lab(&model(), &Rows::Bits(BitRows::from_words(6, words)), &settings, &Silent).unwrap()
        });
        lab.seconds = 0.0;
        lab.estimators.iter_mut().for_each(|estimator| estimator.seconds = 0.0);
        format!("{lab:?}")
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn wrong_estimators_are_refused_with_the_cure() {
    for (text, cure) in [
        ("cdd:1", "did you mean `cd`?"),
        ("", "`cd`"),
        ("lvs:drp:1", "drop, keep or carry"),
        ("pcd:1:chains=5", "did you mean `n-chains`?"),
        ("pcd:1:n-chains=many", "many"),
        ("cd:0", "at least one Gibbs step"),
        ("cd:carry:1", "`unfinished`"),
        ("cd:dynamic", "`gradient = lvs`"),
    ] {
        let error = lab(&model(), &data(), &settings(&[text], 8), &Silent).unwrap_err().to_string();
        assert!(error.contains(cure), "{text}: {error}");
    }
    for settings in [
        LabSettings { n_replicates: 7, ..settings(&["cd:1"], 8) },
        LabSettings { batch_size: 0, ..settings(&["cd:1"], 8) },
        LabSettings { n_reference: 31, ..settings(&["cd:1"], 8) },
        settings(&[], 8),
    ] {
        assert!(matches!(lab(&model(), &data(), &settings, &Silent), Err(Error::InvalidSetting { .. })));
    }
    let stop = std::sync::atomic::AtomicBool::new(true);
    assert!(matches!(lab(&model(), &data(), &settings(&["cd:1"], 8), &stop), Err(Error::Cancelled)));
}
