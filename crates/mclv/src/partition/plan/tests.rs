//! Test what plans choose, what they cost, and that they stay unbiased.

use super::*;
use crate::bits::BitRows;
use crate::model::tests::random_rbm;
use crate::partition::choice::choose;
use crate::partition::{AisSettings, Guarantee, MclvSettings, Note, SetOrigin, StepLimit, ais, exact, mclv};
use crate::progress::Silent;
use crate::tour::{N_ENGINES, PilotSettings, TourEngine, TourSettings};

/// A model without weights, of a size at which only the size matters.
fn sized(n_visible: usize, n_hidden: usize) -> Rbm {
    Rbm::new(
        n_visible,
        n_hidden,
        &vec![0.0; n_visible * n_hidden],
        &vec![0.0; n_visible],
        &vec![0.0; n_hidden],
    )
    .unwrap()
}

fn settings(effort: Effort, max_steps: Option<u64>) -> MethodSettings {
    // A limit of zero seconds: nothing is enumerated unless it is requested.
    let max_steps = max_steps.map_or(StepLimit::Minute, StepLimit::Steps);
    let budget =
        Budget { seconds: 0.0, max_steps, n_chains: 10, n_betas: 20, n_scouts: 0, ..Budget::COMMAND };
    MethodSettings { effort, budget, seed: 4, ..Default::default() }
}

/// A model with its data: all states of its visible units.
fn model() -> (Rbm, Rows) {
    (random_rbm(6, 11, 0.7, 79), Rows::Bits(BitRows::all_states(6)))
}

fn with_rows(rows: &Rows) -> Inputs<'_> {
    Inputs { rows: Some(rows), ..Inputs::default() }
}

fn without_time(log_z: LogZ) -> LogZ {
    LogZ { seconds: 0.0, ..log_z }
}

#[test]
fn the_choice_follows_from_the_size_and_the_budget() {
    use Method::{Ais, Exact, Ladder, Mclv};
    let of = |(n_visible, n_hidden), budget| {
        let settings = MethodSettings { budget, ..Default::default() };
        Plan::new(&sized(n_visible, n_hidden), None, &settings).methods().to_vec()
    };
    let hour = Budget { seconds: 3600.0, ..Budget::COMMAND };
    let (second, none) = (Budget { seconds: 1.0, ..hour }, Budget { seconds: 0.0, ..hour });
    // An hour of a nominal machine is enough for 36 of 784 units, and a second for 24.
    for (shape, budget, is_exact) in [
        ((784, 36), hour, true),
        ((784, 37), hour, false),
        ((36, 784), hour, true),
        ((784, 24), second, true),
        ((784, 25), second, false),
        ((3, 2), none, false),
        ((784, 30), Budget::COMMAND, true),
        ((784, 31), Budget::COMMAND, false),
        ((784, 500), Budget { seconds: f64::INFINITY, ..hour }, true),
    ] {
        let expected: &[Method] = if is_exact { &[Exact, Mclv, Ladder, Ais] } else { &[Mclv, Ladder, Ais] };
        assert_eq!(of(shape, budget), expected, "{shape:?}, {budget:?}");
    }
    let rbm = sized(784, 500);
    for method in Method::ALL {
        let plan = Plan::new(&rbm, Some(method), &MethodSettings::default());
        assert_eq!(plan.methods(), [method], "a method of the caller's choice has no substitute");
    }
}

#[test]
fn data_are_needed_unless_enumeration_comes_first() {
    let needs =
        |n_hidden, method| Plan::new(&sized(784, n_hidden), method, &MethodSettings::default()).needs_data();
    assert!(!needs(20, None) && needs(40, None));
    for method in Method::ALL {
        assert_eq!(needs(20, Some(method)), method != Method::Exact);
        assert_eq!(needs(40, Some(method)), method != Method::Exact);
    }
}

#[test]
fn a_plan_says_what_it_will_do() {
    let text = |n_hidden, method, effort| {
        let settings = MethodSettings { effort, ..Default::default() };
        Plan::new(&sized(784, n_hidden), method, &settings).to_string()
    };
    assert_eq!(
        text(25, None, Effort::TargetSe(0.01)),
        "exact enumeration of 2^25 states (about 1.32 s); \
         else tours for a standard error of 0.01, at most 75329566 steps (at most about 60.0 s); \
         else tours with a ladder for a standard error of 0.01, at most 37664783 steps (at most about 60.0 s); \
         else AIS with 128 chains through 10000 temperatures (about 1.02 s)"
    );
    let tours = text(500, Some(Method::Mclv), Effort::Tours(30));
    assert_eq!(tours, "30 tours, at most 7073803 steps (at most about 60.0 s)");
    let bar = text(500, Some(Method::Bar), Effort::Affordable);
    assert_eq!(bar, "BAR with 8 ladders (about 0.17 s for each temperature)");
    let reverse = text(500, Some(Method::ReverseAis), Effort::Affordable);
    assert!(reverse.starts_with("reverse AIS with 128 chains"), "{reverse}");
}

/// With a given number of tours, the plan returns the same bits as [`mclv`] with the same set.
#[test]
fn a_fixed_number_of_tours_is_that_of_mclv() {
    let (rbm, rows) = model();
    let settings = settings(Effort::Tours(3000), None);
    let all: Vec<usize> = (0..64).collect();
    let set = StoppingSet::draw(&rbm, &rows, &all, 1, settings.seed, 0).unwrap();
    let direct = MclvSettings {
        effort: settings.effort,
        max_steps: settings.budget.steps(6, 11),
        n_scouts: 0,
        seed: settings.seed,
        ..Default::default()
    };
    let mut direct = mclv(&rbm, &set, &direct, &Silent).unwrap();
    let inputs = with_rows(&rows);
    let planned = Plan::new(&rbm, Some(Method::Mclv), &settings).run(&inputs, &Silent).unwrap();
    let origin = SetOrigin { samples_per_row: 1, pilot_steps: 0 };
    direct.notes.insert(0, Note::DrawnSet { n_states: set.len(), n_rows: 64, origin, n_joined: 0 });
    direct.notes.push(Note::StepBudget { max_steps: settings.budget.steps(6, 11).unwrap() });
    assert_eq!(without_time(planned.clone()), without_time(direct));
    // If tours may give way, a probe comes before them. It changes only the cost.
    let best = Plan::new(&rbm, None, &settings).run(&inputs, &Silent).unwrap();
    let probe = engine_steps(&rbm, &set, 256, u16::MAX) + engine_steps(&rbm, &set, 64, u16::MAX - 2);
    assert_eq!(without_time(LogZ { n_states: best.n_states - probe, ..best }), without_time(planned));
}

/// The steps of this many tours of an occasion.
fn engine_steps(rbm: &Rbm, set: &StoppingSet, n_tours: usize, occasion: u16) -> f64 {
    let settings = TourSettings { n_tours, occasion, seed: 4, ..Default::default() };
    TourEngine::new(rbm, set).unwrap().run(&settings, &Silent).unwrap().n_steps() as f64
}

/// States and steps of a plan are those of its parts: pilot tours, pilot chains, tours that were
/// given up, exact samples, and the estimate.
#[test]
fn costs_add_up() {
    let (rbm, rows) = model();
    let inputs = with_rows(&rows);
    let all: Vec<usize> = (0..64).collect();

    // A chosen set: all pilots, and the tours of the estimate.
    let by_target = settings(Effort::TargetSe(0.002), Some(2_000_000));
    let tours = MclvSettings { max_steps: Some(2_000_000), seed: 4, ..Default::default() };
    let chosen = choose(&rbm, &rows, &[1, 4, 16], None, 0.002, &tours).unwrap();
    let left = 2_000_000 - chosen.n_steps;
    let n_tours = chosen.forecast.n_tours((0, usize::MAX), Some(left), None);
    let counted = engine_steps(&rbm, chosen.engine.set(), n_tours, 0);
    for method in [None, Some(Method::Mclv)] {
        let log_z = Plan::new(&rbm, method, &by_target).run(&inputs, &Silent).unwrap();
        assert_eq!((log_z.method, log_z.guarantee), (Method::Mclv, Guarantee::LowerBound));
        assert_eq!(log_z.n_states, chosen.n_steps as f64 + counted);
    }

    // No data: pilot chains, and the tours of the estimate.
    let fixed = settings(Effort::Tours(3000), None);
    let chains = PilotSettings { seed: 4, ..Default::default() };
    let visited = StoppingSet::from_pilot(&rbm, None, &chains).unwrap();
    let log_z = Plan::new(&rbm, Some(Method::Mclv), &fixed).run(&Inputs::default(), &Silent).unwrap();
    assert_eq!(log_z.n_states, 64.0 * 1500.0 + engine_steps(&rbm, &visited, 3000, 0));

    // Tours that do not return, given up after a probe, and then AIS.
    let wide = sized(8, 70);
    let few = settings(Effort::Tours(300), Some(4_000));
    let rows_of_wide = Rows::Bits(BitRows::all_states(8));
    let inputs_of_wide = with_rows(&rows_of_wide);
    let log_z = Plan::new(&wide, None, &few).run(&inputs_of_wide, &Silent).unwrap();
    let by_ais = AisSettings { n_chains: 10, n_betas: 20, n_check: 0, seed: 4, ..Default::default() };
    let by_ais = ais(&wide, &by_ais, &Silent).unwrap();
    let [Note::ToursDoNotReturn { completion: 0.0, n_steps }, ..] = log_z.notes[..] else {
        panic!("{:?}", log_z.notes)
    };
    assert_eq!(n_steps, 64 * 16, "64 tours are enough to see that none returns");
    assert_eq!((log_z.method, log_z.n_states), (Method::Ais, n_steps as f64 + by_ais.n_states));

    // The same tours, asked for by name: they are given up after as many steps again, and say so.
    let by_name = settings(Effort::TargetSe(0.1), Some(1_000_000));
    let log_z = Plan::new(&wide, Some(Method::Mclv), &by_name).run(&inputs_of_wide, &Silent).unwrap();
    let [_, Note::ToursGivenUp { completion: 0.0, n_steps }] = log_z.notes[..] else {
        panic!("{:?}", log_z.notes)
    };
    assert_eq!((log_z.std_err, log_z.interval, log_z.guarantee), (None, None, Guarantee::LowerBound));
    assert!(log_z.n_states <= 2.0 * n_steps as f64 && log_z.n_states < 20_000.0, "{log_z:?}");

    // Some tours of the estimate are cut. The plan does not switch to AIS, because only pilots
    // decide that.
    let set = StoppingSet::draw(&rbm, &rows, &all, 1, 4, 0).unwrap();
    let probe = engine_steps(&rbm, &set, 256, u16::MAX) + engine_steps(&rbm, &set, 64, u16::MAX - 2);
    let max_steps = 4 * probe as u64 + 3000;
    let tight = settings(Effort::Tours(3000), Some(max_steps));
    let log_z = Plan::new(&rbm, None, &tight).run(&inputs, &Silent).unwrap();
    let cut = TourSettings {
        n_tours: 3000,
        max_steps: Some(max_steps - probe as u64),
        seed: 4,
        ..Default::default()
    };
    let cut = TourEngine::new(&rbm, &set).unwrap().run(&cut, &Silent).unwrap();
    assert!(!cut.all_complete());
    assert_eq!((log_z.method, log_z.guarantee, log_z.interval), (Method::Mclv, Guarantee::LowerBound, None));
    assert_eq!(log_z.n_states, probe + cut.n_steps() as f64);

    // Exact samples, and then reverse AIS.
    let exact_first = MethodSettings { exact_samples: Some(true), ..fixed };
    let exact_first =
        MethodSettings { budget: Budget { seconds: 60.0, ..exact_first.budget }, ..exact_first };
    let log_z = Plan::new(&rbm, Some(Method::ReverseAis), &exact_first).run(&inputs, &Silent).unwrap();
    assert_eq!((log_z.n_states, &log_z.notes[0]), (64.0 + 200.0, &Note::ExactSamples));
}

/// A set's engine is made once, whatever is run with it.
#[test]
fn no_engine_is_made_twice() {
    let (rbm, rows) = model();
    let inputs = with_rows(&rows);
    let n_made = |work: &dyn Fn()| {
        let before = N_ENGINES.get();
        work();
        N_ENGINES.get() - before
    };
    let tours = MclvSettings { max_steps: Some(2_000_000), seed: 4, ..Default::default() };
    let by_choice = n_made(&|| drop(choose(&rbm, &rows, &[1, 4, 16], None, 0.002, &tours).unwrap()));
    assert!(by_choice >= 2, "several sets are tried: {by_choice}");
    let all: Vec<usize> = (0..64).collect();
    let set = StoppingSet::draw(&rbm, &rows, &all, 1, 4, 0).unwrap();
    let given = Inputs { stopping_set: Some(&set), ..Inputs::default() };
    for (effort, inputs, expected) in [
        (Effort::TargetSe(0.002), &inputs, by_choice),
        (Effort::Tours(3000), &inputs, 1),
        (Effort::Affordable, &inputs, 1),
        (Effort::TargetSe(0.01), &given, 1),
        (Effort::Tours(3000), &given, 1),
    ] {
        let settings = settings(effort, Some(2_000_000));
        for method in [None, Some(Method::Mclv)] {
            let made = n_made(&|| {
                let log_z = Plan::new(&rbm, method, &settings).run(inputs, &Silent).unwrap();
                assert_eq!(log_z.method, Method::Mclv);
            });
            assert_eq!(made, expected, "{effort:?}, {method:?}");
        }
    }
}

/// The mean of `Ẑ/Z` over 200 seeds is 1 within 4.5 standard errors (false alarm 7e-6 each) for
/// plans whose pilots choose the set and the number of tours. The control takes the largest of
/// every five, and is caught.
#[test]
fn plans_by_tours_are_unbiased() {
    let (rbm, rows) = model();
    let inputs = with_rows(&rows);
    let log_z = exact(&rbm, &Default::default(), &Silent).unwrap().value;
    let z_of = |ratios: &[f64]| {
        let n = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / n;
        let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean - 1.0) / (variance / n).sqrt()
    };
    for effort in [Effort::TargetSe(0.02), Effort::Affordable] {
        let ratio = |seed: u64| {
            let settings = MethodSettings { seed, ..settings(effort, Some(400_000)) };
            let estimate = Plan::new(&rbm, None, &settings).run(&inputs, &Silent).unwrap();
            assert_eq!((estimate.method, estimate.guarantee), (Method::Mclv, Guarantee::LowerBound));
            (estimate.value - log_z).exp()
        };
        let ratios: Vec<f64> = (0..200).map(ratio).collect();
        let z = z_of(&ratios);
        assert!(z.abs() < 4.5, "{effort:?}: z = {z}");
        let largest = |five: &[f64]| five.iter().copied().fold(f64::MIN, f64::max);
        let broken = z_of(&ratios.chunks(5).map(largest).collect::<Vec<_>>());
        assert!(broken > 6.0, "{effort:?}: z = {broken}");
    }
}

/// Rows beyond `max_states` are left out evenly, and a base model that is given takes the place of
/// the rows' own.
#[test]
fn inputs_and_limits_are_used() {
    let (rbm, rows) = model();
    let fixed = settings(Effort::Tours(500), None);
    let small = MethodSettings { budget: Budget { max_states: Some(10), ..fixed.budget }, ..fixed.clone() };
    let log_z = Plan::new(&rbm, Some(Method::Mclv), &small).run(&with_rows(&rows), &Silent).unwrap();
    assert!(matches!(log_z.notes[0], Note::DrawnSet { n_rows: 10, .. }), "{:?}", log_z.notes);
    assert_eq!(spread(64, 10), [0, 6, 12, 19, 25, 32, 38, 44, 51, 57]);
    assert_eq!(spread(3, 10), [0, 1, 2]);

    let bias = [0.3; 6];
    let inputs = Inputs { base_bias: Some(&bias), ..with_rows(&rows) };
    let planned = Plan::new(&rbm, Some(Method::Ais), &fixed).run(&inputs, &Silent).unwrap();
    let direct = AisSettings {
        n_chains: 10,
        n_betas: 20,
        base_bias: Some(bias.to_vec()),
        n_check: 0,
        seed: 4,
        ..Default::default()
    };
    assert_eq!(without_time(planned), without_time(ais(&rbm, &direct, &Silent).unwrap()));
}

#[test]
fn a_plan_knows_its_seconds_on_a_nominal_machine() {
    let small = random_rbm(12, 8, 0.5, 90);
    let settings = MethodSettings::default();
    assert!(Plan::new(&small, None, &settings).nominal_seconds() < 1e-3);
    let large = random_rbm(200, 100, 0.1, 91);
    let minute = Plan::new(&large, None, &settings).nominal_seconds();
    assert!((minute - 60.0).abs() < 0.1, "{minute}");
    let few = Budget { max_steps: StepLimit::Steps(1000), ..Budget::COMMAND };
    let tours = |budget| {
        let settings = MethodSettings { budget, ..MethodSettings::default() };
        Plan::new(&large, Some(Method::Mclv), &settings).nominal_seconds()
    };
    assert!(tours(few) < 0.01);
    assert_eq!(tours(Budget { max_steps: StepLimit::Unlimited, ..Budget::COMMAND }), f64::INFINITY);
}
