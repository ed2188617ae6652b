//! `log Z` from tours: labels, targets, choices.

use super::{LIMIT, bars_and_stripes};
use crate::StoppingSet;
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::partition::{
    Effort, Guarantee, MclvSettings, Note, choose_stopping_set, exact, mclv, mclv_from_tours,
};
use crate::progress::Silent;
use crate::statistics::largest;
use crate::tour::{PilotSettings, TourEngine, TourSettings};
use std::cell::Cell;

fn model() -> (Rbm, StoppingSet, f64) {
    let rbm = random_rbm(6, 5, 1.3, 77);
    let log_z = exact(&rbm, &Default::default(), &Silent).unwrap().value;
    (rbm, StoppingSet::new(&BitRows::from_words(5, vec![3, 9, 17, 22, 30])), log_z)
}

#[test]
fn what_is_guaranteed_follows_from_how_tours_were_made() {
    let (rbm, set, log_z) = model();
    let base = MclvSettings { seed: 2, ..Default::default() };
    let whole = mclv(&rbm, &set, &base, &Silent).unwrap();
    assert_eq!((whole.guarantee, whole.notes.len()), (Guarantee::UnbiasedZ, 0));
    let (low, high) = whole.interval.unwrap();
    assert!(low < log_z && log_z < high && (whole.value - log_z).abs() < LIMIT * whole.std_err.unwrap());
    for cut in [
        MclvSettings { max_length: Some(2), ..base.clone() },
        MclvSettings { max_steps: Some(21_000), ..base.clone() },
        MclvSettings { max_seconds: Some(1e-9), ..base.clone() },
    ] {
        let cut = mclv(&rbm, &set, &cut, &Silent).unwrap();
        assert_eq!((cut.guarantee, cut.interval), (Guarantee::LowerBound, None));
        assert!(cut.value < log_z - 0.05 && cut.notes[0].to_string().contains("were cut"), "{cut:?}");
    }
    let mean_field = MclvSettings { visible: VisibleChain::MeanField, ..base };
    let mean_field = mclv(&rbm, &set, &mean_field, &Silent).unwrap();
    assert_eq!((mean_field.guarantee, mean_field.interval), (Guarantee::None, None));
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let rows = Rows::Bits(BitRows::zeros(1, 6));
    let tours = engine.run_from_rows(&rows, &TourSettings::default(), &Silent).unwrap();
    assert!(
        mclv_from_tours(&engine, &tours, 0, 0, &Silent).unwrap_err().to_string().contains("starts = rows")
    );
}

#[test]
fn the_whole_space_and_no_weights_give_the_closed_form() {
    let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.5; 3], &[-0.25; 2]).unwrap();
    let closed = 3.0 * 0.5f64.exp().ln_1p() + 2.0 * (-0.25f64).exp().ln_1p();
    let all = StoppingSet::new(&BitRows::all_states(2));
    let estimate = mclv(&rbm, &all, &MclvSettings::default(), &Silent).unwrap();
    assert!((estimate.value - closed).abs() < 1e-12 && estimate.std_err.is_none());
    assert!(matches!(estimate.notes[..], [Note::FewLongTours]), "{:?}", estimate.notes);
    let (low, high) = estimate.interval.unwrap();
    assert!(
        low <= closed + 1e-12 && closed < high && high < closed + 0.003,
        "five unseen tours: {estimate:?}"
    );
}

/// From the tours of a model to `log Z`: 95 % of intervals should cover; at 1,000 runs, 93 % is 2.9
/// standard errors below.
#[test]
fn intervals_of_log_z_cover_the_exact_value() {
    let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3]).unwrap();
    let set = StoppingSet::new(&BitRows::from_words(3, vec![0b000, 0b111]));
    let log_z = exact(&rbm, &Default::default(), &Silent).unwrap().value;
    for stratified in [false, true] {
        let (mut n_given, mut n_covering) = (0, 0);
        for seed in 0..1_000 {
            let settings = MclvSettings {
                effort: Effort::Tours(2_000),
                stratified,
                n_scouts: 8,
                seed,
                ..Default::default()
            };
            if let Some((low, high)) = mclv(&rbm, &set, &settings, &Silent).unwrap().interval {
                n_given += 1;
                n_covering += usize::from(low <= log_z && log_z <= high);
            }
        }
        eprintln!("stratified {stratified}: {n_covering} of {n_given} cover");
        assert!(n_given > 900 && n_covering as f64 >= 0.93 * f64::from(n_given));
    }
}

/// A pilot chooses the number of tours, and then this number of fresh tours is run. The mean over
/// seeds is right, and each result equals that of the same number of tours requested directly.
#[test]
fn a_target_is_met_by_fresh_tours() {
    let (rbm, set, log_z) = model();
    let with = |effort, seed| {
        mclv(&rbm, &set, &MclvSettings { effort, n_scouts: 0, seed, ..Default::default() }, &Silent).unwrap()
    };
    let estimate = with(Effort::TargetSe(0.01), 1);
    assert!((0.5..1.5).contains(&(estimate.std_err.unwrap() / 0.01)), "{estimate:?}");
    let ratios: Vec<f64> =
        (0..400).map(|seed| (with(Effort::TargetSe(0.05), seed).value - log_z).exp()).collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let z = (mean - 1.0) / (variance / n).sqrt();
    assert!(z.abs() < LIMIT, "z = {z}");
    let budget = MclvSettings {
        effort: Effort::TargetSe(1e-4),
        max_steps: Some(60_000),
        n_scouts: 0,
        seed: 1,
        ..Default::default()
    };
    // The budget allows fewer tours than the target needs, and these are complete.
    let stopped = mclv(&rbm, &set, &budget, &Silent).unwrap();
    assert!(stopped.n_states <= 60_000.0 && stopped.guarantee == Guarantee::LowerBound, "{stopped:?}");
    assert!(stopped.notes.iter().any(|n| n.to_string().contains("the target")), "{:?}", stopped.notes);
    let hurried = MclvSettings { max_steps: None, max_seconds: Some(0.2), ..budget };
    assert!(mclv(&rbm, &set, &hurried, &Silent).unwrap().seconds < 2.0);
    for target in [0.0, f64::NAN, -1.0] {
        let bad = MclvSettings { effort: Effort::TargetSe(target), ..Default::default() };
        assert!(mclv(&rbm, &set, &bad, &Silent).unwrap_err().to_string().starts_with("target-se"));
    }
}

#[test]
fn sets_from_data_and_from_pilot_chains_agree_with_enumeration() {
    let (rbm, data) = bars_and_stripes();
    let log_z = exact(&rbm, &Default::default(), &Silent).unwrap().value;
    let settings = MclvSettings { seed: 9, ..Default::default() };
    let (set, origin) = choose_stopping_set(&rbm, &data, &[1, 4, 16], 0.02, &settings).unwrap();
    assert!([1, 4, 16].contains(&origin.samples_per_row));
    assert!(choose_stopping_set(&rbm, &data, &[], 0.02, &settings).is_err());
    let short = PilotSettings { n_chains: 20, burn_in: 10, n_steps: 5, seed: 1 };
    let pilot = StoppingSet::from_pilot(&rbm, None, &short).unwrap();
    let from_data = StoppingSet::from_pilot(&rbm, Some(&set), &short).unwrap();
    assert!(StoppingSet::from_pilot(&rbm, None, &PilotSettings { n_chains: 0, ..short.clone() }).is_err());
    let both = set.union(&pilot);
    assert!(both.len() >= set.len().max(pilot.len()) && both.len() <= set.len() + pilot.len());
    let whole = TourSettings { n_tours: 20_000, seed: 9, ..Default::default() };
    for set in [set, pilot, from_data, both] {
        let estimate = mclv(&rbm, &set, &settings, &Silent).unwrap();
        let mean = TourEngine::new(&rbm, &set).unwrap().run(&whole, &Silent).unwrap().mean_length();
        let error = mean.std_err / mean.value;
        assert!((estimate.value - log_z).abs() < LIMIT * error.max(1e-9), "{estimate:?} {log_z}");
    }
}

/// Many seeds, each with its own choice of a set by pilots: the mean of `Ẑ/Z` is 1. The control
/// lets the tours of the estimate choose their set (of ten, the one with the largest `Ẑ`), and is
/// caught.
#[test]
fn a_set_that_pilots_choose_leaves_z_unbiased() {
    let z_of = |ratio: &dyn Fn(u64) -> f64| {
        let ratios: Vec<f64> = (0..150).map(ratio).collect();
        let n = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean - 1.0) / (variance / n).sqrt()
    };
    let ratio = |rbm: &Rbm, set: &StoppingSet, n_tours, seed| {
        let settings = MclvSettings { effort: Effort::Tours(n_tours), seed, ..Default::default() };
        let log_z = exact(rbm, &Default::default(), &Silent).unwrap().value;
        (mclv(rbm, set, &settings, &Silent).unwrap().value - log_z).exp()
    };
    let rbm = random_rbm(6, 11, 0.7, 79);
    let rows = Rows::Bits(BitRows::all_states(6));
    let n_united = Cell::new(0);
    let z = z_of(&|seed| {
        let settings = MclvSettings { seed, ..Default::default() };
        let (set, origin) = choose_stopping_set(&rbm, &rows, &[1], 0.002, &settings).unwrap();
        n_united.set(n_united.get() + usize::from(origin.pilot_steps > 0));
        ratio(&rbm, &set, 100, seed)
    });
    eprintln!("z = {z}; pilot chains were added {} times", n_united.get());
    assert!(z.abs() < LIMIT && n_united.get() > 30, "z = {z}; added {} times", n_united.get());

    let (rbm, _, _) = model();
    let rows = Rows::Bits(BitRows::from_words(6, vec![0b10_1010, 0b00_1111, 0b11_0000]));
    let broken = z_of(&|seed| {
        let look = (0..10).map(|k| {
            let set = StoppingSet::draw(&rbm, &rows, &[0, 1, 2], 1, seed, k).unwrap();
            ratio(&rbm, &set, 10, seed + 1000 * k)
        });
        largest(look)
    });
    assert!(broken.abs() > 2.0 * LIMIT, "z = {broken}");
}
