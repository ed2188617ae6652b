//! Test a whole update: threads, minibatches, weights of rows, and the rules for steps.

use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::{self, DataSpec, Rows};
use crate::gradient::tests::differences;
use crate::gradient::tests::oracle::{Joint, parameters};
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::settings::{
    EstimatorSettings, LvsSettings, Optimizer, Schedule, Settings, Starts, Statistics, TourLength, Unfinished,
};
use crate::train::trainer::Trainer;

/// Every estimator, with the fingerprint of a short run.
fn estimators() -> Vec<(EstimatorSettings, u64)> {
    use {Starts::*, Statistics::*, TourLength::*, Unfinished::*, VisibleChain::*};
    let tours = |k, unfinished, starts, statistics, visible| {
        EstimatorSettings::Lvs(LvsSettings {
            k,
            unfinished,
            starts,
            statistics,
            visible,
            ..LvsSettings::default()
        })
    };
    let sampled = VisibleChain::Sampled;
    vec![
        (EstimatorSettings::Cd { k: 2, visible: sampled }, 0xeb924e9849cf73ad),
        (EstimatorSettings::Cd { k: 1, visible: MeanField }, 0x8842bf914a2981ad),
        (EstimatorSettings::Pcd { k: 2, n_chains: None, visible: sampled }, 0xc6831d33975f55cc),
        (EstimatorSettings::Pcd { k: 1, n_chains: Some(70), visible: MeanField }, 0x8bdc27e4c8bb9009),
        (tours(Steps(3), Drop, Fresh, Statistics::Sampled, MeanField), 0x61e890cd560342fb),
        (tours(Steps(3), Drop, Weighted, MeanHidden, sampled), 0x5f3623d1dbcdabf2),
        (tours(Dynamic, Drop, Fresh, MeanHidden, sampled), 0xb74346d341b9671d),
        (tours(Steps(1), Keep, Fresh, MeanVisible, sampled), 0x25651fba697d77be),
        (tours(Dynamic, Keep, Weighted, Statistics::Sampled, sampled), 0xfd27097386516f76),
        (tours(Steps(2), Carry, Fresh, MeanVisible, sampled), 0xc70421513a0693b6),
        (tours(Steps(2), Carry, Metropolis, MeanHidden, sampled), 0x8ea47b37a133f5ca),
        (EstimatorSettings::Tempered { k: 2, n_chains: 20, n_rungs: 7 }, 0xee2439b6af664681),
        (EstimatorSettings::Ucd { k: 2, max_meeting: 50 }, 0xfad6f29137b1275b),
        (EstimatorSettings::Exact, 0xc6e8cfcd770d5eb4),
    ]
}

fn bars_and_stripes() -> Rows {
    let spec = DataSpec { source: "bars-and-stripes:5".into(), ..DataSpec::default() };
    data::load(&spec, &Silent).unwrap().rows
}

/// A model whose parameters are exact in binary.
fn dyadic(n_visible: usize, n_hidden: usize) -> Rbm {
    let values = |n: usize, step: usize| -> Vec<f32> {
        (0..n).map(|k| ((k * step + 11) % 64) as f32 / 128.0 - 0.25).collect()
    };
    let (w, b, a) = (values(n_visible * n_hidden, 37), values(n_visible, 29), values(n_hidden, 23));
    Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap()
}

fn bits_of(rbm: &Rbm) -> Vec<u32> {
    let all = [rbm.weights(), rbm.visible_bias().to_vec(), rbm.hidden_bias().to_vec()].concat();
    all.into_iter().map(f32::to_bits).collect()
}

/// FNV-1a of the parameters, to the bit.
fn fingerprint(rbm: &Rbm) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bits_of(rbm).into_iter().flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Three epochs of two updates: a minibatch of two blocks, and a short one.
fn short_run(
    gradient: &EstimatorSettings,
    n_hidden: usize,
    optimizer: Optimizer,
    weights: Option<Vec<f32>>,
) -> Trainer {
    let data = bars_and_stripes();
    let settings = Settings {
        n_hidden: Some(n_hidden),
        epochs: Some(3.into()),
        batch_size: Some(40),
        learning_rate: Some(0.125),
        seed: Some(5),
        ..Settings::from(&optimizer)
    };
    let settings = settings.over(gradient.into()).check(data.n_rows()).unwrap();
    let mut trainer = Trainer::from_model(settings, dyadic(25, n_hidden), &data, weights).unwrap();
    while !trainer.is_finished() {
        trainer.epoch(&data, &Silent).unwrap();
    }
    trainer
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let pools = [1, 2, 5].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap());
    let row_weights: Vec<f32> = (0..62).map(|r| [1.0, 0.0, 0.3, 2.5][r % 4]).collect();
    let adam = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    let rules = [Optimizer::default(), Optimizer::Sgd { momentum: 0.5 }, adam];
    let mut seen = std::collections::HashSet::new();
    for (gradient, _) in estimators() {
        for rule in rules {
            for weights in [None, Some(row_weights.clone())] {
                let [one, two, five] = [&pools[0], &pools[1], &pools[2]].map(|pool| {
                    pool.install(|| {
                        let mut trainer = short_run(&gradient, 5, rule, weights.clone());
                        (bits_of(trainer.rbm()), trainer.take_info())
                    })
                });
                assert!(one == two && one == five, "{gradient:?}, {rule:?}, {weights:?}");
                assert!(
                    seen.insert(one.0),
                    "each setting has its effect: {gradient:?}, {rule:?}, {weights:?}"
                );
            }
        }
    }
    // Wide enough for the gradient itself to be shared out.
    let wide = EstimatorSettings::Pcd { k: 1, n_chains: None, visible: VisibleChain::Sampled };
    let [one, two, five] =
        pools.map(|pool| pool.install(|| bits_of(short_run(&wide, 400, Optimizer::default(), None).rbm())));
    assert!(one == two && one == five);
}

/// A change here means that the same seed no longer gives the same model: mention it in the
/// changelog.
#[test]
fn values_are_stable() {
    let runs: Vec<(EstimatorSettings, u64, u64)> = estimators()
        .into_iter()
        .map(|(gradient, pinned)| {
            let got = fingerprint(short_run(&gradient, 5, Optimizer::default(), None).rbm());
            (gradient, pinned, got)
        })
        .collect();
    let changed: Vec<String> = runs
        .iter()
        .filter(|(_, pinned, got)| pinned != got)
        .map(|(gradient, _, got)| format!("{got:#018x} {gradient:?}"))
        .collect();
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
}

const N_VISIBLE: usize = 5;
const N_HIDDEN: usize = 3;
const ROWS: [u64; 6] = [3, 9, 14, 9, 0, 30];

/// Exact gradients, all rows at once, a constant rate.
fn plain() -> Settings {
    Settings {
        n_hidden: Some(N_HIDDEN),
        epochs: Some(2.into()),
        batch_size: Some(100),
        learning_rate: Some(0.25),
        schedule: Some(Schedule::Constant),
        centred: Some(false),
        ..Settings::from(&EstimatorSettings::Exact)
    }
}

fn trained(settings: Settings, rows: &[u64], weights: Option<&[f32]>) -> Vec<f64> {
    let data = Rows::Bits(BitRows::from_words(N_VISIBLE, rows.to_vec()));
    let rbm = random_rbm(N_VISIBLE, N_HIDDEN, 1.0, 71);
    let settings = settings.check(data.n_rows()).unwrap();
    let mut trainer = Trainer::from_model(settings, rbm, &data, weights.map(<[f32]>::to_vec)).unwrap();
    while !trainer.is_finished() {
        trainer.epoch(&data, &Silent).unwrap();
    }
    parameters(trainer.rbm())
}

/// Parameters after `n` steps, each made by `rule(parameters, gradient, step from 1)`.
fn reference(n: i32, rows: &[(usize, f64)], mut rule: impl FnMut(&mut [f64], Vec<f64>, i32)) -> Vec<f64> {
    let mut x = parameters(&random_rbm(N_VISIBLE, N_HIDDEN, 1.0, 71));
    for t in 1..=n {
        let gradient = Joint::of(N_VISIBLE, N_HIDDEN, &x).gradient(rows);
        rule(&mut x, gradient, t);
    }
    x
}

fn unweighted(rows: &[u64]) -> Vec<(usize, f64)> {
    rows.iter().map(|&v| (v as usize, 1.0)).collect()
}

fn uphill(x: &mut [f64], gradient: &[f64]) {
    x.iter_mut().zip(gradient).for_each(|(x, g)| *x += 0.25 * g);
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    crate::statistics::largest(differences(x, y).map(f64::abs))
}

/// Good to the single precision of parameters of order 1.
fn assert_same(x: &[f64], y: &[f64]) {
    assert!(distance(x, y) < 3e-6, "{}", distance(x, y));
}

fn assert_different(x: &[f64], y: &[f64]) {
    assert!(distance(x, y) > 1e-3, "the control must be caught: {}", distance(x, y));
}

#[test]
fn a_step_goes_uphill_by_the_rate_times_the_gradient() {
    let rows = unweighted(&ROWS);
    let expected = reference(2, &rows, |x, g, _| uphill(x, &g));
    assert_same(&trained(plain(), &ROWS, None), &expected);
    assert_different(&trained(plain(), &ROWS[1..], None), &expected);
    let falling = Settings { schedule: Some(Schedule::Linear), ..plain() };
    let expected = reference(2, &rows, |x, g, t| {
        let share = [1.0, 0.5][t as usize - 1];
        uphill(x, &g.iter().map(|g| share * g).collect::<Vec<_>>());
    });
    assert_same(&trained(falling, &ROWS, None), &expected);
}

/// All rows alike, so that the order in which they come does not matter.
#[test]
fn a_short_minibatch_is_averaged_over_its_own_rows_or_left_out() {
    let rows = [22; 6];
    let steps = |n| reference(n, &unweighted(&rows), |x, g, _| uphill(x, &g));
    let short = Settings { epochs: Some(1.into()), batch_size: Some(4), ..plain() };
    assert_same(&trained(short.clone(), &rows, None), &steps(2));
    let left_out = Settings { drop_last: Some(true), ..short };
    assert_same(&trained(left_out.clone(), &rows, None), &steps(1));
    assert_different(&steps(1), &steps(2));
    // Nothing is left out of an even division.
    assert_same(&trained(Settings { batch_size: Some(3), ..left_out }, &rows, None), &steps(2));
}

#[test]
fn every_row_is_seen_once_in_an_epoch() {
    // To first order in the rate, the updates of an epoch add up whatever their order.
    let rate = 1e-3;
    let small =
        Settings { epochs: Some(1.into()), batch_size: Some(2), learning_rate: Some(rate), ..plain() };
    let expected = reference(1, &unweighted(&ROWS), |x, g, _| {
        x.iter_mut().zip(g).for_each(|(x, g)| *x += 3.0 * rate * g);
    });
    assert!(distance(&trained(small, &ROWS, None), &expected) < 1e-5);
    let without_one = reference(1, &unweighted(&ROWS[1..]), |x, g, _| {
        x.iter_mut().zip(g).for_each(|(x, g)| *x += 3.0 * rate * g);
    });
    assert!(distance(&expected, &without_one) > 1e-4, "the control must be caught");
}

#[test]
fn a_row_of_weight_two_is_a_row_given_twice() {
    let twice = [ROWS.as_slice(), &ROWS[2..3]].concat();
    let weights = [1.0, 1.0, 2.0, 1.0, 1.0, 1.0];
    for centred in [false, true] {
        let settings = Settings { centred: Some(centred), ..plain() };
        let expected = trained(settings.clone(), &twice, None);
        assert_same(&trained(settings.clone(), &ROWS, Some(&weights)), &expected);
        assert_different(&trained(settings.clone(), &ROWS, None), &expected);
        // Only proportions count, and a row of weight 0 is not there.
        let thirds = weights.map(|w| w / 3.0);
        assert_same(&trained(settings.clone(), &ROWS, Some(&thirds)), &expected);
        let without = trained(settings.clone(), &ROWS[1..], None);
        assert_same(&trained(settings, &ROWS, Some(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0])), &without);
    }
}

#[test]
fn decay_pulls_weights_to_zero_and_leaves_biases_alone() {
    let decayed = Settings { l1: Some(0.125), l2: Some(0.5), ..plain() };
    let expected = reference(2, &unweighted(&ROWS), |x, mut g, _| {
        let n_weights = N_VISIBLE * N_HIDDEN;
        g.iter_mut().zip(&*x).take(n_weights).for_each(|(g, x)| *g -= 0.125 * x.signum() + 0.5 * x);
        uphill(x, &g);
    });
    assert_same(&trained(decayed, &ROWS, None), &expected);
    assert_different(&trained(plain(), &ROWS, None), &expected);
}

#[test]
fn momentum_makes_a_share_of_the_last_step_again() {
    let optimizer = Optimizer::Sgd { momentum: 0.5 };
    let mut velocity = vec![0.0; 64];
    let expected = reference(3, &unweighted(&ROWS), |x, g, _| {
        for ((x, g), v) in x.iter_mut().zip(g).zip(&mut velocity) {
            *v = 0.5 * *v + 0.25 * g;
            *x += *v;
        }
    });
    let settings = Settings { epochs: Some(3.into()), ..Settings::from(&optimizer) }.over(plain());
    assert_same(&trained(settings, &ROWS, None), &expected);
    assert_different(&trained(Settings { epochs: Some(3.into()), ..plain() }, &ROWS, None), &expected);
}

#[test]
fn adam_is_the_papers() {
    let [beta1, beta2, epsilon] = [0.8, 0.95, 0.01];
    let optimizer = Optimizer::Adam { beta1, beta2, epsilon };
    let mut memory = vec![(0.0, 0.0); 64];
    let expected = reference(3, &unweighted(&ROWS), |x, g, t| {
        for ((x, g), (m, s)) in x.iter_mut().zip(g).zip(&mut memory) {
            *m = beta1 * *m + (1.0 - beta1) * g;
            *s = beta2 * *s + (1.0 - beta2) * g * g;
            *x += 0.05 * (*m / (1.0 - beta1.powi(t))) / ((*s / (1.0 - beta2.powi(t))).sqrt() + epsilon);
        }
    });
    let settings = Settings { epochs: Some(3.into()), learning_rate: Some(0.05), ..plain() };
    let adam = Settings { learning_rate: Some(0.05), ..Settings::from(&optimizer) }.over(settings.clone());
    assert_same(&trained(adam, &ROWS, None), &expected);
    assert_different(&trained(settings, &ROWS, None), &expected);
}

#[test]
fn clipping_shortens_long_gradients_only() {
    let clipped = |limit: f64| {
        reference(2, &unweighted(&ROWS), |x, g, _| {
            let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
            uphill(x, &g.iter().map(|g| g * (limit / norm).min(1.0)).collect::<Vec<_>>());
        })
    };
    assert_same(&trained(Settings { clip: Some(0.25.into()), ..plain() }, &ROWS, None), &clipped(0.25));
    assert_different(&trained(plain(), &ROWS, None), &clipped(0.25));
    assert_same(
        &trained(Settings { clip: Some(100.0.into()), ..plain() }, &ROWS, None),
        &clipped(f64::INFINITY),
    );
}

#[test]
fn a_centred_step_follows_its_formulas() {
    let (n, m) = (N_VISIBLE, N_HIDDEN);
    let mu: Vec<f64> =
        (0..n).map(|i| ROWS.iter().filter(|&&v| v >> i & 1 == 1).count() as f64 / 6.0).collect();
    let mut lambda = vec![0.5; m];
    let rows = unweighted(&ROWS);
    let expected = reference(2, &rows, |x, mut g, _| {
        let model = Joint::of(n, m, x).moments();
        for j in 0..m {
            // The gradient is data minus model, so adding the model gives the mean of the data.
            let mean = g[n * m + n + j] + model[n * m + n + j];
            lambda[j] += 0.25 * (mean - lambda[j]);
        }
        let plain = g.clone();
        for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
            g[i * m + j] -= mu[i] * plain[n * m + n + j] + plain[n * m + i] * lambda[j];
        }
        for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
            g[n * m + i] -= g[i * m + j] * lambda[j];
            g[n * m + n + j] -= g[i * m + j] * mu[i];
        }
        uphill(x, &g);
    });
    let centred = Settings { centred: Some(true), offset_rate: Some(0.25), ..plain() };
    assert_same(&trained(centred, &ROWS, None), &expected);
    assert_different(&trained(plain(), &ROWS, None), &expected);
}

#[test]
fn weights_that_leave_nothing_are_refused() {
    let data = Rows::Bits(BitRows::from_words(N_VISIBLE, ROWS.to_vec()));
    let refusal = |weights: &[f32]| {
        let rbm = random_rbm(N_VISIBLE, N_HIDDEN, 1.0, 71);
        Trainer::from_model(plain().check(data.n_rows()).unwrap(), rbm, &data, Some(weights.to_vec()))
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refusal(&[0.0; 6]).contains("at least one must be positive"));
    assert!(refusal(&[1.0, 1.0, -1.0, 1.0, 1.0, 1.0]).contains("must be 0 or more"));
    assert!(refusal(&[1.0; 5]).contains("expected 6, got 5"));
}
