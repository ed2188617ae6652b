use super::*;
use crate::bits::BitRows;
use crate::ladder::{BaseModel, Kept};
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

    /// Base models, each far from the others.
    fn bases(&self, n_legs: usize) -> Vec<BaseModel<'static>> {
        let visible = [[0.3, -0.2, 0.0, 0.5, -0.4], [2.0, 1.5, -1.0, -2.0, 0.5], [-1.0, 0.0, 1.0, 1.0, 2.0]];
        let hidden = [[0.0, 0.0, 0.0], [1.0, -0.5, 0.8], [-1.5, 0.7, 0.0]];
        let base =
            |m: usize| BaseModel { visible: visible[m].to_vec().into(), hidden: hidden[m].to_vec().into() };
        (0..n_legs).map(base).collect()
    }

    fn path(&self, n_legs: usize) -> Path<'_> {
        Path::with_legs(&self.rbm, &self.bases(n_legs), Kept::Hidden).unwrap()
    }

    /// `log p*_β(h)` on a leg, from its formula.
    fn log_weight_at(&self, base: &BaseModel<'_>, h: u64, beta: f64) -> f64 {
        let (rbm, on) = (&self.rbm, |j: usize| f64::from(u8::from(h >> j & 1 == 1)));
        let between = |from: f32, to: f64| (1.0 - beta) * f64::from(from) + beta * to;
        let hidden = (0..3).map(|j| on(j) * between(base.hidden[j], f64::from(rbm.hidden_bias()[j])));
        let input = |i: usize| {
            let products = (0..3).map(|j| f64::from(rbm.weights()[3 * i + j]) * on(j));
            between(base.visible[i], f64::from(rbm.visible_bias()[i]) + products.sum::<f64>())
        };
        hidden.sum::<f64>() + (0..5).map(|i| input(i).exp().ln_1p()).sum::<f64>()
    }

    /// `log Z` at an inverse temperature of a leg, by enumeration of the hidden states.
    fn log_z_at(&self, leg: usize, beta: f64) -> f64 {
        let base = &self.bases(leg + 1)[leg];
        (0..8).map(|h| self.log_weight_at(base, h, beta).exp()).sum::<f64>().ln()
    }

    /// Rungs of a leg whose weights are right up to `error · (k mod 2)`, and up to `error` for the
    /// top rung.
    fn rungs(&self, leg: usize, betas: &[f64], error: f64) -> Rungs {
        let wrong = |k: usize| k % 2 == 1 || k + 1 == betas.len();
        let log_c =
            |(k, &beta): (usize, &f64)| -self.log_z_at(leg, beta) + if wrong(k) { error } else { 0.0 };
        let mut log_c: Vec<f64> = betas.iter().enumerate().map(log_c).collect();
        *log_c.last_mut().unwrap() = error - self.log_z;
        Rungs { betas: betas.to_vec(), log_c }
    }
}

/// The weights of states on every leg and at every temperature are those of the formula, but for a
/// term that does not depend on the temperature.
#[test]
fn weights_on_legs_are_those_of_the_formula() {
    let case = Case::new(4, 1.5);
    let path = case.path(3);
    let states = BitRows::all_states(3);
    for (leg, base) in case.bases(3).iter().enumerate() {
        let clocks = (0..8).map(|r| (Stream::new(0, r), 0)).collect();
        let mut replicas = Replicas::at(&path, clocks, vec![0; 8], states.words());
        (0..8).for_each(|r| replicas.set_leg(r, leg as u32));
        assert!((path.log_z_base(leg) - case.log_z_at(leg, 0.0)).abs() < 1e-6);
        for r in 0..8 {
            let naive = |beta: f64| case.log_weight_at(base, r as u64, beta);
            for beta in [0.3, 1.0] {
                let got = replicas.log_weight(r, beta) - replicas.log_weight(r, 0.0);
                assert!((got - (naive(beta) - naive(0.0))).abs() < 1e-5, "leg {leg}, state {r}, {beta}");
            }
        }
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

/// Four models, with one leg and with three, with and without states on the top rung, lifted or not,
/// with right weights and with weights that are wrong by a factor of seven: 128 numbers |z| < 5
/// (false alarm 8e-5).
#[test]
fn tours_with_a_ladder_are_unbiased_whatever_the_weights() {
    let betas: [&[f64]; 3] = [&[0.0, 0.4, 0.75, 1.0], &[0.0, 0.6, 1.0], &[0.0, 0.2, 0.5, 0.8, 1.0]];
    for (seed, n_legs) in (0..4).flat_map(|seed| [(seed, 1), (seed, 3)]) {
        let case = Case::new(seed, 1.0 + 0.3 * seed as f64);
        let path = case.path(n_legs);
        let top = TourEngine::new(&case.rbm, &case.set).unwrap();
        for error in [0.0, 2.0] {
            let legs: Vec<Rungs> = (0..n_legs).map(|leg| case.rungs(leg, betas[leg], error)).collect();
            for top in [None, Some(&top)] {
                for lifted in [false, true] {
                    let engine = LadderEngine::new(&path, &legs, top, lifted);
                    let z = both(&case, &engine, 10 + seed);
                    assert!(
                        z.iter().all(|z| z.abs() < 5.0),
                        "model {seed}, {n_legs} legs, error {error}, top {}, lifted {lifted}: {z:?}",
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
    let (path, rungs) = (case.path(1), [Rungs { betas: vec![1.0], log_c: vec![-3.0] }]);
    let top = TourEngine::new(&case.rbm, &case.set).unwrap();
    let engine = LadderEngine::new(&path, &rungs, Some(&top), true);
    let tours = engine.run(&settings(3), 0, &|_, _, _| {}, &Silent).unwrap();
    assert!(tours.tours.iter().all(|tour| tour.visits == f64::from(tour.length)));
    let z = z(&tours.visits(), (case.log_z - tours.log_scale).exp());
    assert!(z.abs() < 5.0, "{z}");
}

/// Negative controls: six errors in the method are all caught, on a model where their bias is large.
#[test]
fn errors_in_the_method_are_caught() {
    let case = Case::new(2, 2.0);
    let path = case.path(1);
    let top = TourEngine::new(&case.rbm, &case.set).unwrap();
    let rungs = [case.rungs(0, &[0.0, 0.5, 1.0], 1.0)];
    let none: &AddStatistics<'_> = &|_, _, _| {};
    let caught = |visits: &[f64], log_scale: f64, error: &str| {
        let z = z(visits, (case.log_z - log_scale).exp());
        assert!(z.abs() > 5.0, "{error}: z = {z}");
    };
    for fault in [Fault::EqualShares, Fault::Adapted] {
        let mut engine = LadderEngine::new(&path, &rungs, Some(&top), true);
        engine.fault = Some(fault);
        let tours = engine.run(&settings(7), 3, none, &Silent).unwrap();
        caught(&tours.visits(), tours.log_scale, &format!("{fault:?}"));
    }
    let engine = LadderEngine::new(&path, &rungs, Some(&top), true);
    let tours = engine.run(&settings(7), 0, none, &Silent).unwrap();
    let log_top = engine.log_c_top() + top.log_z_s() - LN_2;
    let all_halved = (engine.log_bottom(0).unwrap().exp() + log_top.exp()).ln() - engine.log_c_top();
    caught(&tours.visits(), all_halved, "lifting halves the weight of the states on the top rung, too");
    let law = engine.starts();
    let starts = (0..N_TOURS).map(|t| engine.start(&settings(7), t, &law, 0));
    let also_start: Vec<f64> =
        starts.zip(tours.visits()).map(|(start, x)| x + f64::from(u8::from(start.rung == 2))).collect();
    caught(&also_start, tours.log_scale, "the start is counted as well");
    // On a lowest rung that is not the base model, a step does not draw the state afresh.
    let rungs = [case.rungs(0, &[0.5, 0.75, 1.0], 0.0)];
    let engine = LadderEngine::new(&path, &rungs, None, true);
    let tours = engine.run(&settings(7), 0, none, &Silent).unwrap();
    let log_scale = rungs[0].log_c[0] + case.log_z_at(0, 0.5) - LN_2 - engine.log_c_top();
    caught(&tours.visits(), log_scale, "a start at a fixed state that is not drawn afresh");
    // The top rung of three legs has three copies.
    let path = case.path(3);
    let legs: Vec<Rungs> = (0..3).map(|leg| case.rungs(leg, &[0.0, 0.5, 1.0], 0.0)).collect();
    let tours = LadderEngine::new(&path, &legs, None, true).run(&settings(7), 0, none, &Silent).unwrap();
    caught(&tours.visits(), tours.log_scale + 3f64.ln(), "one copy of the top rung counts");
}

/// Tours that are cut count too few visits, and threads do not matter.
#[test]
fn a_budget_lowers_the_estimate_and_threads_do_not_matter() {
    let case = Case::new(3, 1.5);
    let (path, rungs) = (case.path(2), [0, 1].map(|leg| case.rungs(leg, &[0.0, 0.3, 0.6, 1.0], 0.0)));
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

/// One way to leave a state of the extended chain: its probability, the visit that it counts, and
/// the states that it leads to, with their probabilities.
#[derive(Clone)]
struct Way {
    p: f64,
    visit: f64,
    next: Vec<(usize, f64)>,
}

/// The extended chain of a ladder with one leg, by enumeration: states are (rung, direction, h).
struct Extended<'a> {
    case: &'a Case,
    rungs: &'a Rungs,
    lifted: bool,
}

impl Extended<'_> {
    /// `P_β(h → h')` of a Gibbs step on a rung.
    fn gibbs(&self, k: usize, h: u64, to: u64) -> f64 {
        let (base, beta, rbm) = (&self.case.bases(1)[0], self.rungs.betas[k], &self.case.rbm);
        let between = |from: f32, to: f64| (1.0 - beta) * f64::from(from) + beta * to;
        let on = |x: u64, i: usize| f64::from(u8::from(x >> i & 1 == 1));
        let w = |i: usize, j: usize| f64::from(rbm.weights()[3 * i + j]);
        let probability = |x: f64, is_on: f64| 1.0 / (1.0 + (if is_on > 0.0 { -x } else { x }).exp());
        let of_v = |v: u64| {
            let visible = (0..5).map(|i| {
                let input =
                    f64::from(rbm.visible_bias()[i]) + (0..3).map(|j| w(i, j) * on(h, j)).sum::<f64>();
                probability(between(base.visible[i], input), on(v, i))
            });
            let hidden = (0..3).map(|j| {
                let input = f64::from(rbm.hidden_bias()[j]) + (0..5).map(|i| w(i, j) * on(v, i)).sum::<f64>();
                probability(between(base.hidden[j], input), on(to, j))
            });
            visible.product::<f64>() * hidden.product::<f64>()
        };
        (0..32).map(of_v).sum()
    }

    /// After a Gibbs step to `h`: the probability that the walker moves, the rung it would move to,
    /// and the probability that it is on the top rung afterwards.
    fn ladder_move(&self, k: usize, up: bool, h: u64) -> (f64, usize, f64) {
        let top = self.rungs.betas.len() - 1;
        let weight = |k: usize| {
            let base = &self.case.bases(1)[0];
            self.rungs.log_c[k] + self.case.log_weight_at(base, h, self.rungs.betas[k])
        };
        let to = if up { Some(k + 1).filter(|&to| to <= top) } else { k.checked_sub(1) };
        let accept = to.map_or(0.0, |to| (weight(to) - weight(k)).exp().min(1.0));
        let to = to.unwrap_or(k);
        let visit = if k == top { 1.0 - accept } else { accept * f64::from(u8::from(to == top)) };
        (accept, to, visit)
    }

    /// The mean and the variance of the visits of a tour that begins on the lowest rung.
    fn mean_and_variance(&self) -> (f64, f64) {
        let (n_rungs, is_home) =
            (self.rungs.betas.len(), |k: usize, up: bool| k == 0 && (up || !self.lifted));
        let index = |k: usize, up: bool, h: u64| (k * 2 + usize::from(up)) * 8 + h as usize;
        let n = n_rungs * 16;
        // m = a + A m and M = b + A M for the two moments of the visits that are still to come.
        let (mut matrix, mut seen) = (vec![vec![0.0; n]; n], vec![0.0; n]);
        let mut ways: Vec<Vec<Way>> = vec![Vec::new(); n];
        for (k, up, h) in (0..n_rungs)
            .flat_map(|k| [(k, false), (k, true)])
            .flat_map(|(k, up)| (0..8).map(move |h| (k, up, h)))
        {
            let from = index(k, up, h);
            for to_h in 0..8 {
                let p = self.gibbs(k, h, to_h);
                let directions: &[(bool, f64)] =
                    if self.lifted { &[(up, 1.0)] } else { &[(false, 0.5), (true, 0.5)] };
                for &(direction, share) in directions {
                    let (accept, to, visit) = self.ladder_move(k, direction, to_h);
                    let next = [(to, direction, accept), (k, !direction, 1.0 - accept)];
                    // Without lifting the direction is drawn anew and is no part of the state.
                    let next: Vec<(usize, f64)> = next
                        .into_iter()
                        .map(|(k, up, q)| (k, up || !self.lifted, q))
                        .filter(|&(k, up, _)| !is_home(k, up))
                        .map(|(k, up, q)| (index(k, up, to_h), q))
                        .collect();
                    seen[from] += p * share * visit;
                    next.iter().for_each(|&(to, q)| matrix[from][to] += p * share * q);
                    ways[from].push(Way { p: p * share, visit, next });
                }
            }
        }
        let first = solve(&matrix, &seen);
        let second: Vec<f64> = ways
            .iter()
            .map(|ways| {
                let way = |Way { p, visit, next }: &Way| {
                    let to_come: f64 = next.iter().map(|&(to, q)| q * first[to]).sum();
                    p * (visit * visit + 2.0 * visit * to_come)
                };
                ways.iter().map(way).sum()
            })
            .collect();
        let second = solve(&matrix, &second);
        // On the lowest rung the state is drawn afresh, so any h will do.
        let start = index(0, true, 0);
        (first[start], second[start] - first[start].powi(2))
    }
}

/// Solves `x = a + A x` by Gaussian elimination.
fn solve(matrix: &[Vec<f64>], a: &[f64]) -> Vec<f64> {
    let n = a.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j)) - matrix[i][j]).chain([a[i]]).collect())
        .collect();
    for pivot in 0..n {
        let best = (pivot..n).max_by(|&i, &j| rows[i][pivot].abs().total_cmp(&rows[j][pivot].abs())).unwrap();
        rows.swap(pivot, best);
        let of_pivot = rows[pivot].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[pivot] / of_pivot[pivot];
            if i != pivot && factor != 0.0 {
                row.iter_mut().zip(&of_pivot).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
}

/// The mean of the visits is that of Kac's formula by a linear solve on the extended chain, and
/// 30,000 tours have the mean and the variance of the solve: 8 numbers |z| < 5 (false alarm 5e-6).
/// The variance of walkers without a direction does not pass for that of lifted ones.
#[test]
fn visits_have_the_variance_of_the_extended_chain() {
    for (seed, error) in [(5, 0.0), (6, 1.0)] {
        let case = Case::new(seed, 1.6);
        let path = case.path(1);
        let rungs = [case.rungs(0, &[0.0, 0.3, 0.7, 1.0], error)];
        let mut variances = Vec::new();
        for lifted in [false, true] {
            let (mean, variance) = Extended { case: &case, rungs: &rungs[0], lifted }.mean_and_variance();
            let engine = LadderEngine::new(&path, &rungs, None, lifted);
            let tours = engine.run(&settings(20 + seed), 0, &|_, _, _| {}, &Silent).unwrap();
            let exact = (case.log_z - tours.log_scale).exp();
            assert!((mean / exact - 1.0).abs() < 1e-6, "Kac: {mean} against {exact}");
            assert!(z(&tours.visits(), mean).abs() < 5.0);
            let squares: Vec<f64> = tours.visits().iter().map(|x| (x - mean).powi(2)).collect();
            let z_of = |variance: f64| z(&squares, variance);
            assert!(z_of(variance).abs() < 5.0, "model {seed}, lifted {lifted}: {}", z_of(variance));
            if let Some(&other) = variances.first() {
                assert!(z_of(other).abs() > 5.0, "model {seed}: {other} passes for {variance}");
            }
            variances.push(variance);
        }
    }
}
