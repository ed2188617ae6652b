//! Estimates of `log Z` on models that mislead: what is claimed holds, or nothing is claimed.
//!
//! `cargo run --release -p mclv-benches --bin truth` makes the long version of these tables, over more models and seeds.

#[allow(dead_code, reason = "the long version needs the rest")]
mod hard_models;

use hard_models::{Case, Choice};
use mclv::partition::{
    AisSettings, Budget, Effort, Guarantee, Inputs, LogZ, Method, MethodSettings, Note, Plan, StepLimit, ais,
};
use mclv::progress::Silent;

const SEEDS: u64 = 6;

fn estimate(case: &Case, method: Method, budget: Budget, seed: u64) -> LogZ {
    let settings = MethodSettings { budget, seed, ..Default::default() };
    let inputs = Inputs { rows: case.rows.as_ref(), ..Default::default() };
    Plan::new(&case.rbm, Some(method), &settings).run(&inputs, &Silent).unwrap()
}

/// How many intervals hold, and how many are given.
fn coverage(case: &Case, method: Method, budget: Budget) -> (usize, usize) {
    let intervals: Vec<(f64, f64)> =
        (0..SEEDS).filter_map(|seed| estimate(case, method, budget, seed).interval).collect();
    let holds = |(low, high): &&(f64, f64)| *low <= case.log_z && case.log_z <= *high;
    (intervals.iter().filter(holds).count(), intervals.len())
}

fn small_budget() -> Budget {
    Budget { n_betas: 500, ..Budget::COMMAND }
}

/// There are six seeds for each of 15 models. If intervals hold 95 % of the time, more than 9 of 90
/// miss for 1.5 % of the choices of seeds, and more than 3 of 6 for one choice in 10,000.
#[test]
fn intervals_of_tours_hold_where_modes_are_far_apart() {
    let (mut held, mut given, mut asked) = (0, 0, 0);
    let cases = hard_models::two_modes(Choice::HeldIn).into_iter();
    for case in cases.chain(hard_models::rare_escapes(Choice::HeldIn)) {
        let (covered, n) = coverage(&case, Method::Mclv, small_budget());
        assert!(n < 6 || covered >= 3, "{}, {}: {covered} of {n}", case.kind, case.name);
        (held, given, asked) = (held + covered, given + n, asked + SEEDS as usize);
    }
    assert!(given >= asked * 8 / 10, "{given} intervals of {asked}");
    assert!(held + 9 >= given, "{held} of {given} intervals hold");
}

/// Control: without scouts, tours from rows of one mode miss the other mode, and the estimate is
/// `ln 2` too low without a sign of it. The estimate must have no interval then.
#[test]
fn without_scouts_a_mode_is_missed_and_nothing_is_claimed() {
    let case = hard_models::two_modes(Choice::HeldIn)
        .into_iter()
        .find(|case| case.kind.contains("rows of one"))
        .unwrap();
    let blind = Budget { n_scouts: 0, ..small_budget() };
    for seed in 0..SEEDS {
        let log_z = estimate(&case, Method::Mclv, blind, seed);
        assert!((log_z.value - case.log_z + 2f64.ln()).abs() < 0.1, "{log_z:?}, truth {}", case.log_z);
        assert_eq!(log_z.interval, None);
        assert!(log_z.notes.contains(&Note::NotScouted), "{log_z:?}");
        let seeing = estimate(&case, Method::Mclv, small_budget(), seed);
        assert!((seeing.value - case.log_z).abs() < 0.1, "{seeing:?}, truth {}", case.log_z);
    }
}

/// AIS from the model's own visible biases falls into one mode with equal weights. The second base contradicts it.
#[test]
fn ais_from_one_mode_claims_nothing() {
    for case in hard_models::two_modes(Choice::HeldIn).iter().filter(|case| case.rows.is_none()) {
        let settings = AisSettings {
            n_betas: 500,
            base_bias: Some(case.rbm.visible_bias().to_vec()),
            ..Default::default()
        };
        let log_z = ais(&case.rbm, &settings, &Silent).unwrap();
        let error = (log_z.value - case.log_z).abs();
        let claims = log_z.interval.is_some() || log_z.std_err.is_some_and(|se| error > 5.0 * se);
        assert!(error < 0.1 || !claims, "{}: {log_z:?}, truth {}", case.name, case.log_z);
    }
}

/// Ladders from rows of one mode can all lose the other mode and agree on a value that is `ln 2` too low: without the
/// second base model, one of these 20 estimates had such an interval. The second base model contradicts them.
#[test]
fn bar_from_one_mode_claims_nothing() {
    let cases = hard_models::two_modes(Choice::HeldIn);
    let is_near = |case: &&Case| case.name == "48 × 48, w 0.12" && case.kind.contains("rows of one");
    let case = cases.iter().find(is_near).unwrap();
    for seed in 0..20 {
        let settings = MethodSettings { budget: small_budget(), seed, ..Default::default() };
        let inputs = Inputs { rows: case.rows.as_ref(), ..Default::default() };
        let log_z = Plan::new(&case.rbm, Some(Method::Bar), &settings).run(&inputs, &Silent).unwrap();
        let is_near = (log_z.value - case.log_z).abs() < 0.3;
        assert!(is_near || log_z.interval.is_none(), "{log_z:?}, truth {}", case.log_z);
    }
}

/// Tours with a ladder, where rows show one mode, both modes, or are missing: the intervals that are given hold. More
/// than 4 of 12 true 95 % intervals miss for 2 choices of seeds in 10,000. With rows of one mode, tours lose the other
/// one: no interval is `ln 2` too low. Without rows there is nearly always an interval.
#[test]
fn tours_with_a_ladder_claim_nothing_about_a_lost_mode() {
    let (mut held, mut given, mut without_rows) = (0, 0, 0);
    let cases = hard_models::two_modes(Choice::HeldIn);
    for case in cases.iter().filter(|case| case.name == "48 × 48, w 0.12") {
        for seed in 0..4 {
            let log_z = estimate(case, Method::Ladder, small_budget(), seed);
            let Some((low, high)) = log_z.interval else { continue };
            assert!(high > case.log_z - 0.3, "{log_z:?}, truth {}", case.log_z);
            given += 1;
            held += usize::from((low..=high).contains(&case.log_z));
            without_rows += usize::from(case.rows.is_none());
        }
    }
    assert!(held + 4 >= given && without_rows >= 3, "{held} of {given} hold, {without_rows} without rows");
}

/// Intervals of AIS and BAR: those that are given hold. The false-alarm rate is that of the tours' test.
#[test]
fn intervals_of_ais_and_bar_hold_where_they_are_given() {
    let (mut held, mut given) = (0, 0);
    let strong = hard_models::strong_weights(Choice::HeldIn);
    for case in strong.iter().filter(|case| case.rows.is_some()).step_by(4) {
        for method in [Method::Ais, Method::Bar] {
            let settings =
                MethodSettings { budget: small_budget(), ladder_steps: 300, seed: 3, ..Default::default() };
            let inputs = Inputs { rows: case.rows.as_ref(), ..Default::default() };
            let log_z = Plan::new(&case.rbm, Some(method), &settings).run(&inputs, &Silent).unwrap();
            if let Some((low, high)) = log_z.interval {
                given += 1;
                held += usize::from((low..=high).contains(&case.log_z));
            }
        }
    }
    assert!(held + 4 >= given, "{held} of {given} intervals hold");
}

/// Labels follow from the plan. With a budget that cuts some tours, the mean of `Ẑ/Z` over all
/// seeds is at most 1. This mean covers runs with and without cut tours. The mean of one kind alone
/// is no lower bound.
#[test]
fn labels_do_not_depend_on_the_outcome() {
    let case = hard_models::rare_escapes(Choice::HeldIn).remove(0);
    let budget = Budget { n_scouts: 0, max_steps: StepLimit::Steps(20_000), ..small_budget() };
    let run = |budget: Budget, seed: u64| {
        let effort = Effort::Tours(2000);
        let settings = MethodSettings { effort, budget, seed, ..Default::default() };
        let inputs = Inputs { rows: case.rows.as_ref(), ..Default::default() };
        Plan::new(&case.rbm, Some(Method::Mclv), &settings).run(&inputs, &Silent).unwrap()
    };
    let estimates: Vec<LogZ> = (0..40).map(|seed| run(budget, seed)).collect();
    assert!(estimates.iter().all(|z| z.guarantee == Guarantee::LowerBound), "{estimates:?}");
    let mean = estimates.iter().map(|z| (z.value - case.log_z).exp()).sum::<f64>() / 40.0;
    assert!(mean < 1.05, "{mean}");
    let unlimited = Budget { max_steps: StepLimit::Unlimited, ..budget };
    let whole: Vec<LogZ> = (0..4).map(|seed| run(unlimited, seed)).collect();
    assert!(whole.iter().all(|z| z.guarantee == Guarantee::UnbiasedZ), "{whole:?}");
}
