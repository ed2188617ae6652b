use super::*;
use crate::model::tests::random_rbm;

fn exact(rbm: &Rbm) -> f64 {
    crate::partition::exact(rbm, &Default::default(), &Silent).unwrap().value
}

/// 24 random models, weak to strong couplings: no |z| above 5 (false alarm 1e-5), and at most 6
/// intervals of 24 miss (false alarm of true 95 % intervals: 6e-4).
#[test]
fn errors_are_as_large_as_the_error_bar_says() {
    let (mut given, mut missed) = (0, 0);
    for seed in 0..24 {
        let scale = 0.4 + 0.05 * seed as f64;
        let rbm = random_rbm(5 + seed as usize % 8, 3 + seed as usize % 6, scale, 600 + seed);
        let settings =
            LadderTourSettings { effort: Effort::Tours(4000), seed, n_scouts: 16, ..Default::default() };
        let settings = LadderTourSettings { n_rungs: Some(4), ..settings };
        let log_z = ladder(&rbm, &Inputs::default(), &settings, &Silent).unwrap();
        let error = log_z.value - exact(&rbm);
        assert!(error.abs() < 5.0 * log_z.std_err.unwrap(), "model {seed}: {error}, {log_z:?}");
        if let Some((low, high)) = log_z.interval {
            given += 1;
            missed += usize::from(!(low..=high).contains(&exact(&rbm)));
        }
        assert_eq!(log_z.guarantee, Guarantee::UnbiasedZ);
    }
    assert!(given >= 20 && missed <= 6, "{missed} of {given} intervals missed");
}

/// A target is reached from pilot tours, and a budget is kept to.
#[test]
fn targets_and_budgets_are_kept() {
    let rbm = random_rbm(12, 8, 0.8, 640);
    let settings = LadderTourSettings { effort: Effort::TargetSe(0.03), ..Default::default() };
    let log_z = ladder(&rbm, &Inputs::default(), &settings, &Silent).unwrap();
    assert!((0.02..0.04).contains(&log_z.std_err.unwrap()), "{log_z:?}");
    let settings = LadderTourSettings { max_steps: Some(400_000), n_scouts: 0, ..settings };
    let within = ladder(&rbm, &Inputs::default(), &settings, &Silent).unwrap();
    assert!(within.n_states <= 400_000.0, "{within:?}");
    assert_eq!((within.guarantee, within.interval), (Guarantee::LowerBound, None));
    assert!(within.notes.contains(&Note::NotScouted), "{within:?}");
}

#[test]
fn nonsense_is_refused() {
    let rbm = random_rbm(4, 2, 1.0, 632);
    for settings in [
        LadderTourSettings { effort: Effort::Tours(1), ..Default::default() },
        LadderTourSettings { effort: Effort::TargetSe(0.0), ..Default::default() },
        LadderTourSettings { n_rungs: Some(1), ..Default::default() },
    ] {
        assert!(ladder(&rbm, &Inputs::default(), &settings, &Silent).is_err(), "{settings:?}");
    }
    let inputs = Inputs { base_bias: Some(&[0.0; 3]), ..Inputs::default() };
    assert!(ladder(&rbm, &inputs, &LadderTourSettings::default(), &Silent).is_err());
}
