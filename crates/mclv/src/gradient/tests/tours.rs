//! Separate tours: `E[Σ_k f(X(k)) − ξ·E_p[f]] = 0`, and `E[ξ] = Z/Z_S`. Their ratio is only
//! consistent.

use super::carry::resumed;
use super::oracle::Joint;
use super::{LIMIT, Replicates, differences, list, negative, step, with_update};
use crate::bits::BitRows;
use crate::chain::{BLOCK, VisibleChain};
use crate::data::Rows;
use crate::gradient::lvs::LvsEstimator;
use crate::gradient::{Estimator, Gradient, PairBlock, Step, total_weight};
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::settings::{LvsSettings, Starts, Statistics, TourLength, Unfinished};

const N_REPLICATES: u32 = 1500;
/// Two blocks, the second one short.
const N_TOURS: usize = 40;
const ALL_STATISTICS: [Statistics; 3] =
    [Statistics::Sampled, Statistics::MeanHidden, Statistics::MeanVisible];

/// The model whose gradient is wanted, and the earlier one under which set and table were made.
fn models() -> (Rbm, Rbm) {
    let now = random_rbm(6, 4, 1.2, 51);
    let change = |x: Vec<f32>| -> Vec<f32> {
        x.iter().enumerate().map(|(k, x)| x + [0.6, -0.7, 0.4][k % 3]).collect()
    };
    let (w, b, a) = (now.weights(), now.visible_bias().to_vec(), now.hidden_bias().to_vec());
    let earlier = Rbm::new(6, 4, &change(w), &change(b), &change(a)).unwrap();
    (now, earlier)
}

fn whole_tours(statistics: Statistics, starts: Starts) -> LvsSettings {
    LvsSettings {
        k: TourLength::Dynamic,
        n_tours: Some(N_TOURS),
        unfinished: Unfinished::Drop,
        starts,
        min_ess: 0.0,
        statistics,
        ..LvsSettings::default()
    }
}

/// A phase whose stopping set, and table, were made under `earlier`; and the set.
fn begun(settings: LvsSettings, earlier: &Rbm) -> (LvsEstimator, Rows, Vec<u64>) {
    let data = Rows::Bits(BitRows::from_words(earlier.n_visible(), vec![0b00_0111, 0b11_0000, 0b10_1010, 0]));
    let mut phase = LvsEstimator::new(settings);
    with_update(earlier, &data, step(0), |update| phase.begin_epoch(&update)).unwrap();
    let set = phase.save().words("set").unwrap().to_vec();
    (phase, data, set)
}

/// The pairs of separate tours, and the logarithm of the unit of their weights.
fn separate_tours(
    phase: &mut LvsEstimator,
    rbm: &Rbm,
    data: &Rows,
    n_tours: usize,
    step: Step,
) -> (Vec<PairBlock>, f64) {
    with_update(rbm, data, step, |update| phase.separate_tours(&update, n_tours))
}

/// Per tour, `Σ_k f(X(k)) − ξ·E_p[f]`, through the ratio that an update uses; and `ξ − Z/Z_S`.
fn of_updates(settings: LvsSettings, now: &Rbm, earlier: &Rbm) -> [Replicates; 2] {
    let drops = settings.unfinished == Unfinished::Drop;
    let joint = Joint::new(now);
    let exact = joint.moments();
    let (mut phase, data, set) = begun(settings, earlier);
    let mean_length = (joint.log_z - joint.log_z_s(&set)).exp();
    let [mut of_sums, mut of_lengths] = <[Replicates; 2]>::default();
    for update in 0..N_REPLICATES {
        let ratio = negative(&mut phase, now, &data, step(update));
        let info = phase.take_info().tours.unwrap();
        let counted = if drops { info.total_length } else { info.n_steps };
        let length = counted as f64 / N_TOURS as f64;
        of_sums.push(differences(&ratio, &exact).map(|d| length * d));
        of_lengths.push([length - mean_length]);
    }
    [of_sums, of_lengths]
}

/// Like [`of_updates`], from the weighted sums of the ratio, in the units of the table. The second
/// replicates are of `w·ξ − Z/Z_S,earlier`.
fn of_weighted_sums(settings: LvsSettings, now: &Rbm, earlier: &Rbm) -> [Replicates; 2] {
    let joint = Joint::new(now);
    let exact = joint.moments();
    let (mut phase, data, set) = begun(settings, earlier);
    let mean_length = (joint.log_z - Joint::new(earlier).log_z_s(&set)).exp();
    let [mut of_sums, mut of_lengths] = <[Replicates; 2]>::default();
    for update in 0..N_REPLICATES {
        let (blocks, log_unit) = separate_tours(&mut phase, now, &data, N_TOURS, step(update));
        let per_tour = log_unit.exp() / N_TOURS as f64;
        let length = per_tour * total_weight(&blocks);
        let mut moments = Gradient::zeros(now.n_visible(), now.n_hidden());
        moments.add(blocks, 1.0);
        moments.flush();
        of_sums.push(list(&moments, per_tour).iter().zip(&exact).map(|(sum, e)| sum - length * e));
        of_lengths.push([length - mean_length]);
    }
    [of_sums, of_lengths]
}

#[test]
fn fresh_tours_satisfy_the_renewal_identity_and_mean_field_ones_do_not() {
    let (now, earlier) = models();
    for statistics in ALL_STATISTICS {
        let [sums, lengths] = of_updates(whole_tours(statistics, Starts::Fresh), &now, &earlier);
        sums.assert_unbiased(&format!("fresh tours, {statistics:?}"));
        lengths.assert_unbiased("their lengths");
    }
    let mean_field =
        LvsSettings { visible: VisibleChain::MeanField, ..whole_tours(Statistics::Sampled, Starts::Fresh) };
    let [sums, _] = of_updates(mean_field, &now, &earlier);
    sums.assert_caught("mean-field tours");
}

#[test]
fn weighted_tours_satisfy_it_with_a_stale_table_and_unweighted_ones_do_not() {
    let (now, earlier) = models();
    for statistics in ALL_STATISTICS {
        let [sums, lengths] = of_weighted_sums(whole_tours(statistics, Starts::Weighted), &now, &earlier);
        sums.assert_unbiased(&format!("weighted tours, {statistics:?}"));
        lengths.assert_unbiased("their lengths");
    }
    // Separate tours with `metropolis` starts, which the settings reject: a stale table and no
    // weights.
    let uncorrected = whole_tours(Statistics::Sampled, Starts::Metropolis);
    let [sums, _] = of_updates(uncorrected, &now, &earlier);
    sums.assert_caught("stale starts without weights");
}

#[test]
fn cut_tours_are_biased_whether_dropped_or_kept() {
    let (now, earlier) = models();
    for unfinished in [Unfinished::Drop, Unfinished::Keep] {
        for statistics in ALL_STATISTICS {
            let k = TourLength::Steps(1);
            let cut = LvsSettings { k, unfinished, ..whole_tours(statistics, Starts::Fresh) };
            let [sums, _] = of_updates(cut, &now, &earlier);
            sums.assert_caught(&format!("{unfinished:?} at K = 1, {statistics:?}"));
        }
        let k = TourLength::Steps(5);
        let cut = LvsSettings { k, unfinished, ..whole_tours(Statistics::Sampled, Starts::Fresh) };
        let [_, lengths] = of_updates(cut, &now, &earlier);
        lengths.assert_caught(&format!("{unfinished:?} at K = 5, lengths"));
    }
}

/// If every state is a start, every tour has one step: cut or not, an update is unbiased.
#[test]
fn with_every_state_in_the_set_tours_are_single_draws_from_the_model() {
    let (rbm, n_tours) = (models().0, 70);
    let exact = Joint::new(&rbm).moments();
    let data = Rows::Bits(BitRows::zeros(1, rbm.n_visible()));
    let all: Vec<u64> = (0..16).collect();
    for unfinished in [Unfinished::Drop, Unfinished::Keep] {
        let k = TourLength::Steps(1);
        let settings = LvsSettings {
            k,
            n_tours: Some(n_tours),
            unfinished,
            ..whole_tours(Statistics::Sampled, Starts::Fresh)
        };
        let mut phase = resumed(settings, &rbm, &rbm, &all, &[]);
        let mut replicates = Replicates::default();
        for update in 0..600 {
            replicates.push(differences(&negative(&mut phase, &rbm, &data, step(update)), &exact));
        }
        let info = phase.take_info().tours.unwrap();
        assert_eq!((info.n_completed, info.n_truncated, info.longest), (600 * 70, 0, 1));
        replicates.assert_unbiased(&format!("the whole space as stopping set, {unfinished:?}"));
        let first = rbm.n_visible() * rbm.n_hidden();
        let variance = |k: usize| exact[k] * (1.0 - exact[k]) / n_tours as f64;
        let z = replicates.variance_z(first..first + rbm.n_visible(), variance);
        assert!(z < LIMIT, "tours are independent: {z:.2}");
    }
}

#[test]
fn an_update_subtracts_weighted_sums_over_their_total_weight() {
    let (now, earlier) = models();
    let settings = whole_tours(Statistics::MeanHidden, Starts::Weighted);
    let (mut phase, data, _) = begun(settings.clone(), &earlier);
    let ratio = negative(&mut phase, &now, &data, step(3));
    let (blocks, _) = separate_tours(&mut begun(settings, &earlier).0, &now, &data, N_TOURS, step(3));
    let total = total_weight(&blocks);
    let mut moments = Gradient::zeros(now.n_visible(), now.n_hidden());
    moments.add(blocks, 1.0);
    moments.flush();
    assert!(differences(&ratio, &list(&moments, 1.0 / total)).all(|d| d.abs() < 1e-5));
    assert!(total < phase.take_info().tours.unwrap().n_steps as f64, "weights are at most 1");
}

#[test]
fn a_stale_table_is_made_anew_for_the_next_update() {
    let (now, earlier) = models();
    for (min_ess, is_anew) in [(0.0, false), (1.0, true)] {
        let settings = LvsSettings { min_ess, ..whole_tours(Statistics::MeanHidden, Starts::Weighted) };
        let (mut phase, data, set) = begun(settings, &earlier);
        let first = negative(&mut phase, &now, &data, step(0));
        let made_under = Joint::new(if is_anew { &now } else { &earlier }).log_weights(&set);
        let table = phase.save().numbers("table").unwrap().to_vec();
        assert!(differences(&table, &made_under).all(|d| d.abs() < 1e-4));
        let info = phase.take_info().tours.unwrap();
        assert!(info.min_ess < 0.95 && info.n_tables == 1 + u64::from(is_anew), "{info:?}");
        // The update that noticed it is not repeated.
        let (mut other, ..) = begun(whole_tours(Statistics::MeanHidden, Starts::Weighted), &earlier);
        assert_eq!(first, negative(&mut other, &now, &data, step(0)));
    }
}

/// More tours than 16 bits can number: each has random numbers of its own.
#[test]
fn tours_of_a_large_minibatch_differ() {
    let rbm = models().0;
    let all: Vec<u64> = (0..16).collect();
    let settings = whole_tours(Statistics::Sampled, Starts::Fresh);
    let mut phase = resumed(settings, &rbm, &rbm, &all, &[]);
    let data = Rows::Bits(BitRows::zeros(1, rbm.n_visible()));
    let (blocks, _) = separate_tours(&mut phase, &rbm, &data, (1 << 16) + BLOCK, step(1));
    let sums = |block: &PairBlock| {
        let mut moments = Gradient::zeros(rbm.n_visible(), rbm.n_hidden());
        moments.add([block.clone()], 1.0);
        moments.flush();
        moments
    };
    assert_ne!(sums(&blocks[0]), sums(blocks.last().unwrap()));
}

/// One visible unit keeps the first of ten hidden units as it is. While that hidden unit is on, the
/// others are coin flips, and a tour hardly returns. While it is off, they are all off, and the
/// tour returns. `log_ratio` is the excess of the former state's log weight over the latter's.
fn two_worlds(log_ratio: f32) -> Rbm {
    let (mut w, mut a) = ([10.0; 10], [-10.0; 10]);
    (w[0], a[0]) = (200.0, log_ratio - 150.0);
    Rbm::new(1, 10, &w, &[-50.0], &a).unwrap()
}

#[test]
fn an_update_whose_heavy_tours_are_all_dropped_is_a_number_or_skipped() {
    let settings = LvsSettings {
        k: TourLength::Steps(1),
        n_tours: Some(N_TOURS),
        unfinished: Unfinished::Drop,
        starts: Starts::Weighted,
        ..LvsSettings::default()
    };
    let data = Rows::Bits(BitRows::from_words(1, vec![0, 1]));
    for (log_ratio, is_skipped) in [(40.0, false), (95.0, true)] {
        let mut phase = LvsEstimator::new(settings.clone());
        with_update(&two_worlds(0.0), &data, step(0), |update| phase.begin_epoch(&update)).unwrap();
        let rbm = two_worlds(log_ratio);
        let mut moments = Gradient::zeros(1, 10);
        let learnt = with_update(&rbm, &data, step(0), |update| phase.estimate(&update, &mut moments));
        assert_eq!(!learnt.unwrap(), is_skipped);
        moments.flush();
        assert!(list(&moments, 1.0).iter().all(|x| x.is_finite()), "{:?}", list(&moments, 1.0));
        let info = phase.take_info().tours.unwrap();
        assert_eq!(info.n_skipped_updates, u64::from(is_skipped));
        assert!((1..N_TOURS as u64).contains(&info.n_completed), "some return, some do not: {info:?}");
    }
}
