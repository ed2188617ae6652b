//! Pairs of coupled chains: without cuts, their sum is unbiased at any parameters. A naive twin, one
//! pair and one unit at a time, makes the same sums, and broken variants of it are caught.

use super::oracle::Joint;
use super::{LIMIT, Minibatch, Replicates, Step, Update, differences, negative, step, with_update};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::gradient::ucd::{coupling, pair_stream, proposal_stream};
use crate::gradient::{CouplingInfo, Estimator, Gradient};
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::rng::{Draws, Purpose, stream};
use crate::settings::EstimatorSettings;

const N_REPLICATES: u32 = 600;
/// Two blocks, the second one short.
const N_ROWS: usize = 70;
const NEVER_CUT: usize = 1_000_000;

fn model() -> Rbm {
    random_rbm(6, 4, 1.6, 33)
}

/// Two states that the model does not favour.
fn data() -> Rows {
    let words = (0..N_ROWS).map(|r| if r % 2 == 0 { 0 } else { 0b10_1011 }).collect();
    Rows::Bits(BitRows::from_words(6, words))
}

fn estimator(k: usize, max_meeting: usize) -> Box<dyn Estimator> {
    EstimatorSettings::Ucd { k, max_meeting }.estimator()
}

fn replicates(k: usize, max_meeting: usize) -> (Replicates, CouplingInfo) {
    let (rbm, data) = (model(), data());
    let exact = Joint::new(&rbm).moments();
    let mut phase = estimator(k, max_meeting);
    let mut replicates = Replicates::default();
    for update in 0..N_REPLICATES {
        replicates.push(differences(&negative(&mut *phase, &rbm, &data, step(update)), &exact));
    }
    (replicates, phase.take_info().coupling.unwrap())
}

#[test]
fn whole_pairs_are_unbiased_from_any_rows_and_for_any_k() {
    for k in [1, 4] {
        let (replicates, info) = replicates(k, NEVER_CUT);
        eprintln!("ucd-{k}: {info:?}, mean meeting time {:.1}", info.mean_meeting());
        replicates.assert_unbiased(&format!("ucd-{k}"));
        assert_eq!((info.n_pairs, info.n_cut), (u64::from(N_REPLICATES) * N_ROWS as u64, 0));
        assert!(info.longest > 8 && info.n_steps > info.n_pairs);
    }
}

#[test]
fn cut_pairs_are_biased_and_counted() {
    let (replicates, info) = replicates(1, 3);
    replicates.assert_caught("ucd-1, cut at 3 steps");
    assert!(info.cut_share() > 0.05, "{info:?}");
}

/// What is wrong with a naive twin.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slip {
    None,
    /// `Y` uses the random numbers of `X` with inputs that are too small.
    Marginal,
    /// `f(X(t)) − f(X(t−1))`.
    Lag,
    /// The sum begins at `k + 2`.
    Late,
}

/// The layer that is drawn given `from`, unit by unit.
fn naive_layer(inputs: &[f32], draws: Draws) -> u64 {
    let is_on = |(i, &x): (usize, &f32)| {
        let u = coupling::uniform(draws.block((i / 4) as u32)[i % 4]);
        let tail = 1.0 / (1.0 + f64::from(x.abs()).exp());
        u64::from(if x < 0.0 { u < tail } else { 1.0 - u >= tail }) << i
    };
    inputs.iter().enumerate().map(is_on).sum()
}

/// `H_k` of one row, with the means of all moments.
fn naive_pair(rbm: &Rbm, row: &BitRows, k: u64, at: Step, r: usize, slip: Slip) -> Vec<f64> {
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    let bits = |n: usize, word: u64| Rows::Bits(BitRows::from_words(n, vec![word]));
    let f = |v: u64| -> Vec<f64> {
        let h = rbm.mean_h_from_v(&bits(n_visible, v)).unwrap();
        let h = |j: usize| f64::from(h.values()[j]);
        let v = |i: usize| (v >> i & 1) as f64;
        let pairs = (0..n_visible).flat_map(|i| (0..n_hidden).map(move |j| (i, j)));
        let pairs = pairs.map(|(i, j)| v(i) * h(j));
        pairs.chain((0..n_visible).map(v)).chain((0..n_hidden).map(h)).collect()
    };
    let first = stream(at.seed, Purpose::Positive, u64::from(at.epoch) << 24 | r as u64).at(at.update);
    let start = rbm.sample_h_from_v(&Rows::Bits(row.clone()), |_| first).unwrap();
    let (numbers, proposals, mut n_proposals) = (pair_stream(at, r), proposal_stream(at, r), 0);
    let v = rbm.sample_v_from_h(&Rows::Bits(start.clone()), |_| numbers.at(0)).unwrap();
    let h = rbm.sample_h_from_v(&Rows::Bits(v.clone()), |_| numbers.at(1)).unwrap();
    let (mut x, mut y, mut x_v) = (h.words()[0], start.words()[0], v.words()[0]);
    let mut sum = vec![0.0; (n_visible + 1) * (n_hidden + 1) - 1];
    let mut add = |sign: f64, v: u64| sum.iter_mut().zip(f(v)).for_each(|(sum, f)| *sum += sign * f);
    if k == 1 {
        add(1.0, x_v);
    }
    for t in 2.. {
        let down = |h: u64| rbm.inputs_v_from_h(&bits(n_hidden, h)).unwrap().values().to_vec();
        let up = |v: u64| rbm.inputs_h_from_v(&bits(n_visible, v)).unwrap().values().to_vec();
        let draws = |half: u32| numbers.at(2 * (t as u32 - 1) + half);
        let of_y = |inputs: Vec<f32>| match slip {
            Slip::Marginal => inputs.into_iter().map(|x| x - 0.3).collect(),
            _ => inputs,
        };
        let before = x_v;
        let y_v = naive_layer(&of_y(down(y)), draws(0));
        x_v = naive_layer(&down(x), draws(0));
        // The hidden layer as a whole.
        let (to_x, to_y) = (up(x_v), up(y_v));
        let log_p = |inputs: &[f32], h: u64| -> f64 {
            let of = |(j, &x): (usize, &f32)| f64::from(if h >> j & 1 == 1 { -x } else { x }).exp().ln_1p();
            -inputs.iter().enumerate().map(of).sum::<f64>()
        };
        let sampled =
            |v: u64, draws: Draws| rbm.sample_h_from_v(&bits(n_visible, v), |_| draws).unwrap().words()[0];
        x = sampled(x_v, draws(1));
        y = x;
        if coupling::uniform_of_agreement(draws(1)).ln() > log_p(&to_y, x) - log_p(&to_x, x) {
            loop {
                let draws = proposals.at(n_proposals);
                n_proposals += 1;
                y = sampled(y_v, draws);
                if coupling::uniform_of_agreement(draws).ln() > log_p(&to_x, y) - log_p(&to_y, y) {
                    break;
                }
            }
        }
        if t == k {
            add(1.0, x_v);
        } else if t > k {
            if x_v == y_v || t > 2000 {
                break;
            }
            if slip == Slip::Late && t == k + 1 {
                continue;
            }
            add(1.0, x_v);
            add(-1.0, if slip == Slip::Lag { before } else { y_v });
        }
    }
    sum
}

/// The mean over all rows of the data.
fn naive(rbm: &Rbm, data: &Rows, k: u64, at: Step, slip: Slip) -> Vec<f64> {
    let Rows::Bits(rows) = data else { panic!("bits") };
    let mut mean = vec![0.0; (rbm.n_visible() + 1) * (rbm.n_hidden() + 1) - 1];
    for r in 0..rows.n_rows() {
        let of_row = naive_pair(rbm, &rows.select(&[r]), k, at, r, slip);
        mean.iter_mut().zip(of_row).for_each(|(mean, x)| *mean += x / rows.n_rows() as f64);
    }
    mean
}

#[test]
fn it_is_the_naive_twin() {
    let (rbm, data) = (model(), data());
    for k in [1, 3] {
        let mut phase = estimator(k, NEVER_CUT);
        for update in 0..3 {
            let fast = negative(&mut *phase, &rbm, &data, step(update));
            let naive = naive(&rbm, &data, k as u64, step(update), Slip::None);
            assert!(differences(&fast, &naive).all(|d| d.abs() < 1e-4), "{fast:?} {naive:?}");
        }
    }
}

/// An error in the marginal of one chain, in the lag, and in the first time of the sum.
#[test]
fn broken_pairs_are_caught() {
    let (rbm, data) = (model(), data());
    let exact = Joint::new(&rbm).moments();
    for slip in [Slip::None, Slip::Marginal, Slip::Lag, Slip::Late] {
        let mut replicates = Replicates::default();
        for update in 0..5 * N_REPLICATES {
            // Few rows: the twin is slow.
            let Rows::Bits(rows) = &data else { panic!("bits") };
            let few = Rows::Bits(rows.select(&[0, 1, 2, 3, 4, 5]));
            replicates.push(differences(&naive(&rbm, &few, 1, step(update), slip), &exact));
        }
        match slip {
            Slip::None => replicates.assert_unbiased("the naive twin"),
            _ => replicates.assert_caught(&format!("{slip:?}")),
        }
    }
}

/// The share of pairs that meet at once is the probability that `h → v → h'` returns to `h`.
#[test]
fn meeting_times_have_their_distribution() {
    let (rbm, data) = (model(), data());
    let h: Vec<u64> = (0..16).collect();
    let states = |n: usize, words: &[u64]| Rows::Bits(BitRows::from_words(n, words.to_vec()));
    let chance = |p: &[f32], word: u64| -> f64 {
        p.iter().enumerate().map(|(i, &p)| f64::from(if word >> i & 1 == 1 { p } else { 1.0 - p })).product()
    };
    let all_v: Vec<u64> = (0..64).collect();
    let (up, down) =
        (rbm.mean_h_from_v(&states(6, &all_v)).unwrap(), rbm.mean_v_from_h(&states(4, &h)).unwrap());
    let of_v = |v: u64, h: u64| chance(&up.values()[v as usize * 4..][..4], h);
    let of_h = |h: u64, v: u64| chance(&down.values()[h as usize * 6..][..6], v);
    let stays = |h: u64| all_v.iter().map(|&v| of_h(h, v) * of_v(v, h)).sum::<f64>();
    let of_row = |v: u64| h.iter().map(|&h| of_v(v, h) * stays(h)).sum::<f64>();
    let p = 0.5 * (of_row(0) + of_row(0b10_1011));
    let mut phase = estimator(1, 1);
    (0..N_REPLICATES).for_each(|update| _ = negative(&mut *phase, &rbm, &data, step(update)));
    let info = phase.take_info().coupling.unwrap();
    let z = |p: f64| (info.cut_share() - (1.0 - p)) / (p * (1.0 - p) / info.n_pairs as f64).sqrt();
    eprintln!("{:.4} of pairs meet at once, expected {p:.4}", 1.0 - info.cut_share());
    assert!(z(p).abs() < LIMIT && z(p + 0.05).abs() > 2.0 * LIMIT, "{} of {p}", 1.0 - info.cut_share());
    assert_eq!((info.longest, info.n_steps), (2, info.n_pairs));
}

/// Rows count with their weights.
#[test]
fn weighted_rows_give_weighted_sums() {
    let (rbm, data) = (model(), data());
    let rows: Vec<usize> = (0..N_ROWS).rev().collect();
    let weights: Vec<f32> = (0..N_ROWS).map(|r| 0.5 + (r % 5) as f32).collect();
    let minibatch = Minibatch { rbm: &rbm, data: &data, rows: &rows, weights: Some(&weights), step: step(4) };
    let mut gradient = Gradient::zeros(6, 4);
    assert!(estimator(1, NEVER_CUT).estimate(&Update::new(minibatch, &Silent), &mut gradient).unwrap());
    gradient.flush();
    let Rows::Bits(bits) = &data else { panic!("bits") };
    let mut mean = vec![0.0; 34];
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    for (r, &row) in rows.iter().enumerate() {
        let of_row = naive_pair(&rbm, &bits.select(&[row]), 1, step(4), r, Slip::None);
        let share = f64::from(weights[row]) / total;
        mean.iter_mut().zip(of_row).for_each(|(mean, x)| *mean += share * x);
    }
    assert!(differences(&super::list(&gradient, -1.0), &mean).all(|d| d.abs() < 1e-4));
}

#[test]
fn a_listener_can_cancel_between_rounds() {
    // Two modes that no chain leaves.
    let rbm = Rbm::new(8, 1, &[40.0; 8], &[-20.0; 8], &[-160.0]).unwrap();
    let data = Rows::Bits(BitRows::from_words(8, vec![0, 0xff]));
    let stop = std::sync::atomic::AtomicBool::new(true);
    let minibatch = Minibatch { rbm: &rbm, data: &data, rows: &[0, 1], weights: None, step: step(0) };
    let mut gradient = Gradient::zeros(8, 1);
    let slow = random_rbm(8, 8, 12.0, 3);
    let begun = Minibatch { rbm: &slow, ..minibatch };
    let result = estimator(70, NEVER_CUT).estimate(&Update::new(begun, &stop), &mut Gradient::zeros(8, 8));
    assert!(matches!(result, Err(crate::Error::Cancelled)));
    // Chains that stay where they began have met at once.
    with_update(&rbm, &data, step(0), |update| {
        assert!(estimator(1, NEVER_CUT).estimate(&update, &mut gradient).unwrap());
    });
}
