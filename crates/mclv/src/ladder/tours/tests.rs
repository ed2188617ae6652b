use super::*;
use crate::bits::BitRows;
use crate::ladder::Kept;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::tour::StoppingSet;

/// A model small enough to enumerate, with what is known about it.
struct Case {
    rbm: Rbm,
    log_z: f64,
    /// `E[Σ_i v_i]`.
    mean_v: f64,
    set: StoppingSet,
}

impl Case {
    fn new(seed: u64, scale: f64) -> Self {
        let rbm = random_rbm(5, 3, scale, seed);
        let log_z = crate::partition::exact(&rbm, &Default::default(), &Silent).unwrap().value;
        let states = BitRows::all_states(5);
        let free = rbm.free_energy(&crate::data::Rows::Bits(states.clone())).unwrap();
        let mean_v = (0..32).map(|r| (-free[r] - log_z).exp() * f64::from(states.row(r)[0].count_ones()));
        Self { mean_v: mean_v.sum(), log_z, set: StoppingSet::new(&BitRows::from_words(3, vec![1, 6])), rbm }
    }

    fn path(&self) -> Path {
        Path::new(&self.rbm, Some(&[0.3, -0.2, 0.0, 0.5, -0.4]), Kept::Hidden).unwrap()
    }

    /// `log Z` at an inverse temperature, by enumeration of the hidden states.
    fn log_z_at(&self, path: &Path, beta: f64) -> f64 {
        let states = BitRows::all_states(3);
        let clocks = (0..8).map(|r| (Stream::new(0, r), 0)).collect();
        let replicas = Replicas::at(path, clocks, states.words());
        (0..8).map(|r| replicas.log_weight(r, beta).exp()).sum::<f64>().ln()
    }

    /// Rungs whose weights are right up to `error · (k mod 2)`.
    fn rungs(&self, betas: &[f64], error: f64) -> Rungs {
        let path = self.path();
        let log_c = |(k, &beta): (usize, &f64)| -self.log_z_at(&path, beta) + error * (k % 2) as f64;
        Rungs { betas: betas.to_vec(), log_c: betas.iter().enumerate().map(log_c).collect() }
    }
}

const N_TOURS: usize = 30_000;

fn settings(seed: u64) -> LadderSettings {
    LadderSettings { n_tours: N_TOURS, max_steps: None, seed, occasion: 0 }
}

/// How far the mean of `x` is from `expected`, in standard errors.
fn z(x: &[f64], expected: f64) -> f64 {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - expected) / (variance / n).sqrt()
}

/// z of `Ẑ`, and z of `F̂` for the number of visible units that are on.
fn both(case: &Case, engine: &LadderEngine<'_>, seed: u64) -> [f64; 2] {
    let count = |v: &[u64], _h: &[u64], sums: &mut [f64]| sums[0] += f64::from(v[0].count_ones());
    let tours = engine.run(&settings(seed), 1, &count, &Silent).unwrap();
    assert_eq!(tours.n_cut(), 0);
    let ratio = (case.log_z - tours.log_scale).exp();
    let sums: Vec<f64> = tours.tours.iter().map(|tour| tour.sums[0]).collect();
    [z(&tours.visits(), ratio), z(&sums, ratio * case.mean_v)]
}

/// Four models, with and without states on the top rung, lifted or not, with right weights and with
/// weights that are wrong by a factor of seven: 64 numbers |z| < 5 (false alarm 4e-5).
#[test]
fn tours_with_a_ladder_are_unbiased_whatever_the_weights() {
    for seed in 0..4 {
        let case = Case::new(seed, 1.0 + 0.3 * seed as f64);
        let path = case.path();
        let top = TourEngine::new(&case.rbm, &case.set).unwrap();
        for error in [0.0, 2.0] {
            let rungs = case.rungs(&[0.0, 0.4, 0.75, 1.0], error);
            for top in [None, Some(&top)] {
                for lifted in [false, true] {
                    let engine = LadderEngine::new(&path, &rungs, top, lifted);
                    let z = both(&case, &engine, 10 + seed);
                    assert!(
                        z.iter().all(|z| z.abs() < 5.0),
                        "model {seed}, error {error}, top {}, lifted {lifted}: {z:?}",
                        top.is_some()
                    );
                }
            }
        }
    }
}

/// A ladder with one rung gives the tours of the paper: every step visits the top rung.
#[test]
fn with_one_rung_a_tour_counts_its_steps() {
    let case = Case::new(1, 1.2);
    let (path, rungs) = (case.path(), Rungs { betas: vec![1.0], log_c: vec![-3.0] });
    let top = TourEngine::new(&case.rbm, &case.set).unwrap();
    let engine = LadderEngine::new(&path, &rungs, Some(&top), true);
    let tours = engine.run(&settings(3), 0, &|_, _, _| {}, &Silent).unwrap();
    assert!(tours.tours.iter().all(|tour| tour.visits == f64::from(tour.length)));
    let z = z(&tours.visits(), (case.log_z - tours.log_scale).exp());
    assert!(z.abs() < 5.0, "{z}");
}

/// Negative controls: five errors in the method are all caught, on a model where their bias is
/// large.
#[test]
fn errors_in_the_method_are_caught() {
    let case = Case::new(2, 2.0);
    let path = case.path();
    let top = TourEngine::new(&case.rbm, &case.set).unwrap();
    let rungs = case.rungs(&[0.0, 0.5, 1.0], 1.0);
    let none: &AddStatistics<'_> = &|_, _, _| {};
    let caught = |visits: &[f64], log_scale: f64, error: &str| {
        let z = z(visits, (case.log_z - log_scale).exp());
        assert!(z.abs() > 5.0, "{error}: z = {z}");
    };
    for fault in [Fault::HalfAndHalf, Fault::Adapted] {
        let mut engine = LadderEngine::new(&path, &rungs, Some(&top), true);
        engine.fault = Some(fault);
        let tours = engine.run(&settings(7), 3, none, &Silent).unwrap();
        caught(&tours.visits(), tours.log_scale, &format!("{fault:?}"));
    }
    let engine = LadderEngine::new(&path, &rungs, Some(&top), true);
    let tours = engine.run(&settings(7), 0, none, &Silent).unwrap();
    let log_top = engine.log_top().unwrap() - LN_2;
    let all_halved = (engine.log_bottom().unwrap().exp() + log_top.exp()).ln() - rungs.log_c[2];
    caught(&tours.visits(), all_halved, "lifting halves the weight of the states on the top rung, too");
    let starts = (0..N_TOURS).map(|t| engine.start(&settings(7), t, engine.bottom_share(), 0));
    let also_start: Vec<f64> =
        starts.zip(tours.visits()).map(|(start, x)| x + f64::from(u8::from(start.rung == 2))).collect();
    caught(&also_start, tours.log_scale, "the start is counted as well");
    // On a lowest rung that is not the base model, a step does not draw the state afresh.
    let rungs = case.rungs(&[0.5, 0.75, 1.0], 0.0);
    let engine = LadderEngine::new(&path, &rungs, None, true);
    let tours = engine.run(&settings(7), 0, none, &Silent).unwrap();
    let log_scale = rungs.log_c[0] + case.log_z_at(&path, 0.5) - LN_2 - rungs.log_c[2];
    caught(&tours.visits(), log_scale, "a start at a fixed state that is not drawn afresh");
}

/// Tours that are cut count too few visits, and threads do not matter.
#[test]
fn a_budget_lowers_the_estimate_and_threads_do_not_matter() {
    let case = Case::new(3, 1.5);
    let (path, rungs) = (case.path(), case.rungs(&[0.0, 0.3, 0.6, 1.0], 0.0));
    let engine = LadderEngine::new(&path, &rungs, None, true);
    let run = |n_threads: usize, max_steps: Option<u64>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let settings = LadderSettings { n_tours: 3000, max_steps, seed: 5, occasion: 1 };
        pool.install(|| engine.run(&settings, 0, &|_, _, _| {}, &Silent).unwrap())
    };
    let all = run(1, None);
    assert!(all == run(2, None) && all == run(5, None));
    let cut = run(2, Some(9_000));
    assert_eq!(cut, run(3, Some(9_000)));
    assert!(cut.n_steps <= 9_000 && cut.n_cut() > 0);
    let sum = |tours: &LadderTours| tours.visits().iter().sum::<f64>();
    assert!(sum(&cut) < sum(&all));
    for (cut, all) in cut.tours.iter().zip(&all.tours) {
        assert!(cut.visits <= all.visits && cut.length <= all.length);
    }
}
