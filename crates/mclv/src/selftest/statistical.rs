//! Checks that compare random estimates with enumeration.
//!
//! Every comparison is a `z`: the difference from the enumerated value in units of its standard
//! error. A check fails if one of its `|z|` is 5.5 or more. On a correct machine this happens to a
//! normal `z` with probability 3.8e-8. If the standard error comes from 200 replicates, it happens
//! to a `t` with probability 1.2e-7. The false-alarm rate of a check is the sum over its
//! comparisons.

use super::Finding;
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::gradient::{Gradient, Minibatch, Step, Update};
use crate::model::Rbm;
use crate::partition::{self, AisSettings};
use crate::progress::Silent;
use crate::rng::{Purpose, stream};
use crate::sample::{SampleSettings, Start, sample};
use crate::settings::{EstimatorSettings, LvsSettings, Starts, Statistics, TourLength, Unfinished};
use crate::statistics::largest;
use crate::tour::{HiddenChain, StoppingSet, TourEngine, TourSettings};

/// The limit of `|z|`, and the probability that chance exceeds it: for a normal `z`, and for a `t`
/// with 199 degrees of freedom.
const LIMIT: f64 = 5.5;
const NORMAL: f64 = 3.8e-8;
const STUDENT: f64 = 1.2e-7;

const N_VISIBLE: usize = 5;
const N_HIDDEN: usize = 3;
/// `v_i h_j`, `v_i` and `h_j`.
const N_MOMENTS: usize = N_VISIBLE * N_HIDDEN + N_VISIBLE + N_HIDDEN;

/// The false-alarm rates of the checks.
pub(super) const OF_FREQUENCIES: f64 = 64.0 * NORMAL;
pub(super) const OF_SAMPLER: f64 = (N_VISIBLE + N_VISIBLE * (N_VISIBLE - 1) / 2) as f64 * NORMAL;
pub(super) const OF_TOURS: f64 = 2.0 * NORMAL;
pub(super) const OF_AIS: f64 = NORMAL;
pub(super) const OF_ESTIMATORS: f64 = (3 * N_MOMENTS) as f64 * STUDENT;

/// The model that all these checks enumerate. Its chain mixes in a few steps.
pub(super) fn model() -> Rbm {
    super::random_rbm(N_VISIBLE, N_HIDDEN, 0.7, 40)
}

/// `Ok` if all values of `|z|` are below the limit. NaN fails.
fn below_limit(z: impl IntoIterator<Item = f64>) -> Finding {
    let mut n = 0;
    let worst = largest(z.into_iter().map(|z| {
        n += 1;
        z.abs()
    }));
    let text = format!("largest |z| of {n}: {worst:.2}, limit {LIMIT}");
    if worst < LIMIT { Ok(text) } else { Err(text) }
}

fn text(error: crate::Error) -> String {
    error.to_string()
}

/// `p(v, h)` of every joint state, naively, at place `h·2^n_visible + v`.
fn joint(rbm: &Rbm) -> Vec<f64> {
    let (n_v, n_h) = (rbm.n_visible(), rbm.n_hidden());
    let (w, b, a) = (rbm.weights(), rbm.visible_bias(), rbm.hidden_bias());
    let on = |state: usize, n: usize| (0..n).filter(move |i| state >> i & 1 == 1);
    let log_weight = |state: usize| {
        let (v, h) = (state % (1 << n_v), state >> n_v);
        let of_pairs: f64 =
            on(h, n_h).map(|j| on(v, n_v).map(|i| f64::from(w[i * n_h + j])).sum::<f64>()).sum();
        let of_units = on(v, n_v).map(|i| f64::from(b[i])).sum::<f64>();
        of_pairs + of_units + on(h, n_h).map(|j| f64::from(a[j])).sum::<f64>()
    };
    let weights: Vec<f64> = (0..1 << (n_v + n_h)).map(|state| log_weight(state).exp()).collect();
    let z: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / z).collect()
}

/// The expectations of all `v_i h_j`, all `v_i` and all `h_j`.
fn moments(rbm: &Rbm) -> Vec<f64> {
    let (n_v, n_h) = (rbm.n_visible(), rbm.n_hidden());
    let p = joint(rbm);
    let expectation = |mask: usize| -> f64 {
        (0..p.len()).filter(|state| state & mask == mask).map(|state| p[state]).sum()
    };
    let (v, h) = (|i: usize| 1 << i, |j: usize| 1 << (n_v + j));
    let pairs = (0..n_v).flat_map(|i| (0..n_h).map(move |j| v(i) | h(j)));
    pairs.chain((0..n_v).map(v)).chain((0..n_h).map(h)).map(expectation).collect()
}

pub(super) fn frequencies() -> Finding {
    let (n, n_units) = (20_000usize, 64);
    let b: Vec<f32> = (0..n_units).map(|i| (i as f32 - 31.5) / 10.0).collect();
    let rbm = Rbm::new(n_units, 1, &vec![0.0; n_units], &b, &[0.0]).map_err(text)?;
    let h = Rows::Bits(BitRows::zeros(n, 1));
    let draws = |r: usize| stream(3, Purpose::SelfTest, r as u64).at(0);
    let means = Rows::Bits(rbm.sample_v_from_h(&h, draws).map_err(text)?).column_means();
    below_limit(means.iter().zip(&b).map(|(m, &x)| {
        let p = 1.0 / (1.0 + (-f64::from(x)).exp());
        (m - p) / (p * (1.0 - p) / n as f64).sqrt()
    }))
}

/// Samples of `subject` have the frequencies of [`model`], for single units and for pairs of units.
pub(super) fn sampler(subject: &Rbm) -> Finding {
    let n = 20_000;
    let settings = SampleSettings { n_samples: n, burn_in: Some(50), seed: 41, ..Default::default() };
    let samples = sample(subject, &settings, Start::Bias, None, &Silent).map_err(text)?;
    let p = joint(&model());
    let z = |mask: usize| {
        let is_on = |state: usize| state & mask == mask;
        let expected: f64 = (0..p.len()).filter(|&state| is_on(state)).map(|state| p[state]).sum();
        let seen = samples.v.words().iter().filter(|&&v| is_on(v as usize)).count() as f64 / n as f64;
        (seen - expected) / (expected * (1.0 - expected) / n as f64).sqrt()
    };
    let pairs = (0..N_VISIBLE).flat_map(|i| (0..=i).map(move |k| 1 << i | 1 << k));
    below_limit(pairs.map(z))
}

/// Tours of `subject` have the mean length `Z/Z_S` and the share of one-step tours that enumeration
/// gives for [`model`].
pub(super) fn tours(subject: &Rbm) -> Finding {
    let n_tours = 20_000;
    let truth = model();
    let set = StoppingSet::new(&BitRows::from_words(N_HIDDEN, vec![0b010, 0b111]));
    let settings = TourSettings { n_tours, seed: 42, ..TourSettings::default() };
    let engine = TourEngine::new(subject, &set).map_err(text)?;
    let tours = engine.run(&settings, &Silent).map_err(text)?;
    let chain = HiddenChain::new(&truth).map_err(text)?;
    let theory = chain.tours(&set).map_err(text)?;
    let (mean, variance) = (1.0 / theory.set_probability(), theory.length_variance());
    let one_step = 1.0 - theory.survival(1)[1];
    let n = n_tours as f64;
    let share = tours.n_one_step() as f64 / n;
    below_limit([
        (tours.mean_length().value - mean) / (variance / n).sqrt(),
        (share - one_step) / (one_step * (1.0 - one_step) / n).sqrt(),
    ])
}

/// Annealed importance sampling of `subject` finds the `log Z` of [`model`].
pub(super) fn ais(subject: &Rbm) -> Finding {
    let base_bias = Some(vec![0.0; N_VISIBLE]);
    let settings =
        AisSettings { n_chains: 2000, n_betas: 200, base_bias, seed: 43, ..AisSettings::default() };
    let found = partition::ais(subject, &settings, &Silent).map_err(text)?;
    let std_err = found.std_err.ok_or("no standard error")?;
    let exact = super::log_z(&model())?;
    below_limit([(found.value - exact) / std_err])
}

/// The exact gradient of `subject` has the expectations of [`model`], summed naively over all joint
/// states.
pub(super) fn exact_gradient(subject: &Rbm) -> Finding {
    let rows = rows_of_data();
    let found = negative(&EstimatorSettings::Exact, subject, &rows, 1)?.concat();
    let differences = found.iter().zip(moments(&model())).map(|(x, y)| (x - y).abs());
    super::within(largest(differences), 1e-6)
}

/// The gradient estimators agree with enumeration in their limits: CD with many steps, PCD after
/// many steps, and complete tours.
pub(super) fn estimators(subject: &Rbm) -> Finding {
    const N: usize = 200;
    let visible = VisibleChain::Sampled;
    let tours = LvsSettings {
        k: TourLength::Dynamic,
        n_tours: Some(1000),
        unfinished: Unfinished::Drop,
        starts: Starts::Fresh,
        statistics: Statistics::MeanHidden,
        visible,
        samples_per_row: 1,
        row_fraction: 0.02,
        redraw_every: 1,
        min_ess: 0.2,
        target_completion: None,
        max_states: 1000,
        max_set_cost: None,
    };
    let expected = moments(&model());
    let mut all = Vec::new();
    for settings in [
        EstimatorSettings::Cd { k: 30, visible },
        EstimatorSettings::Pcd { k: 10, n_chains: Some(200), visible },
        EstimatorSettings::Lvs(tours),
    ] {
        // The first updates of persistent chains remember where they began.
        let estimates = negative(&settings, subject, &rows_of_data(), N + 10)?;
        for (k, expected) in expected.iter().enumerate() {
            let values: Vec<f64> = estimates[10..].iter().map(|estimate| estimate[k]).collect();
            let mean = values.iter().sum::<f64>() / N as f64;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (N - 1) as f64;
            all.push((mean - expected) / (variance / N as f64).sqrt());
        }
    }
    below_limit(all)
}

/// 200 rows that cycle through all states.
fn rows_of_data() -> Rows {
    Rows::Bits(BitRows::from_words(N_VISIBLE, (0..200).map(|r| r % (1 << N_VISIBLE)).collect()))
}

/// The model's expectations in `n_updates` updates of one model.
fn negative(
    settings: &EstimatorSettings,
    rbm: &Rbm,
    data: &Rows,
    n_updates: usize,
) -> Result<Vec<Vec<f64>>, String> {
    let mut estimator = settings.estimator();
    let rows: Vec<usize> = (0..data.n_rows()).collect();
    let mut estimates = Vec::new();
    for update in 0..n_updates as u32 {
        let step = Step { seed: 44, epoch: 0, update, number: u64::from(update) };
        let update = Update::new(Minibatch { rbm, data, rows: &rows, weights: None, step }, &Silent);
        if estimates.is_empty() {
            estimator.begin_epoch(&update).map_err(text)?;
        }
        let mut gradient = Gradient::zeros(rbm.n_visible(), rbm.n_hidden());
        if !estimator.estimate(&update, &mut gradient).map_err(text)? {
            return Err(format!("{} estimated nothing", settings.name()));
        }
        gradient.flush();
        let all = gradient.w.to_rows().into_iter().chain(gradient.b).chain(gradient.a);
        estimates.push(all.map(|x| -f64::from(x)).collect());
    }
    Ok(estimates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each check passes on the model and catches a model that differs in one parameter by 0.3.
    #[test]
    fn every_check_catches_a_model_that_is_slightly_wrong() {
        let truth = model();
        let mut w = truth.weights();
        w[4] += 0.3;
        let broken = Rbm::new(N_VISIBLE, N_HIDDEN, &w, truth.visible_bias(), truth.hidden_bias()).unwrap();
        for (name, check) in [
            ("sampler", sampler as fn(&Rbm) -> Finding),
            ("tours", tours),
            ("ais", ais),
            ("exact gradient", exact_gradient),
            ("estimators", estimators),
        ] {
            let (good, bad) = (check(&truth), check(&broken));
            eprintln!("{name}: {good:?}, control {bad:?}");
            assert!(good.is_ok(), "{name}: {good:?}");
            assert!(bad.is_err(), "{name} must catch the control: {bad:?}");
        }
    }

    #[test]
    fn the_naive_sums_are_those_of_the_library() {
        let rbm = model();
        let p = joint(&rbm);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let of_v = |v: usize| (0..1 << N_HIDDEN).map(|h| p[h << N_VISIBLE | v]).sum::<f64>();
        let states = Rows::Bits(BitRows::all_states(N_VISIBLE));
        let z = partition::exact(&rbm, &Default::default(), &Silent).unwrap();
        for (v, log_p) in rbm.log_likelihoods(&states, &z).unwrap().into_iter().enumerate() {
            assert!((of_v(v) - log_p.exp()).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_not_a_number_fails() {
        assert!(below_limit([0.0, 5.4]).is_ok());
        assert!(below_limit([0.0, f64::NAN]).is_err() && below_limit([-5.5]).is_err());
    }
}
