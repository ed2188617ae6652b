//! Run one ladder of chains that exchange their states: parallel tempering, also called replica
//! exchange (Hukushima and Nemoto 1996).
//!
//! One chain stands on each rung. A step of the ladder has two parts:
//!
//! 1. Every chain makes a Gibbs step of the model of its rung. On the lowest rung units are
//!    independent, so this step draws a fresh state.
//! 2. Every second pair of neighbours is asked to exchange states. With state `x` on rung `k` and
//!    `y` on rung `k+1`, they do so with probability
//!    `min(1, p*_{k+1}(x) p*_k(y) / (p*_k(x) p*_{k+1}(y)))`. Pairs take turns.
//!
//! Both parts leave the product of the models of all rungs invariant.

use super::path::{Path, Replicas};
use crate::rng::{Purpose, Stream, stream};
use crate::team;

team::parcel! {
    /// What a ladder carries from one call to the next: states, their histories, and counts.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct LadderState {
        /// The packed states of the layer that is kept, from the lowest rung to the top.
        pub(crate) kept: Vec<u64>,
        /// The number of steps made. Random numbers of later steps are others.
        pub(crate) n_steps: u32,
        /// The history of the state on each rung.
        pub(crate) histories: Vec<History>,
        /// For each pair of neighbours, the numbers of exchanges accepted and tried.
        pub(crate) exchanges: Vec<(u32, u32)>,
        /// The number of times that a state went from the lowest rung to the top and back.
        pub(crate) round_trips: u32,
    }
}

team::parcel! {
    /// Where a state has been. States move between rungs and take their histories with them.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub(crate) struct History {
        /// The step in which the state was last drawn on the lowest rung. `None` if it has not been
        /// there.
        pub(crate) drawn: Option<u32>,
        /// True if the state has been on the top rung since then.
        has_climbed: bool,
    }
}

impl LadderState {
    /// Begins in the packed states `kept`, one for each of `n_rungs` rungs.
    pub(crate) fn new(kept: Vec<u64>, n_rungs: usize) -> Self {
        Self {
            kept,
            n_steps: 0,
            histories: vec![History::default(); n_rungs],
            exchanges: vec![(0, 0); n_rungs.saturating_sub(1)],
            round_trips: 0,
        }
    }
}

/// The random numbers of a ladder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LadderSeed {
    pub(crate) seed: u64,
    pub(crate) purpose: Purpose,
    /// The number of the ladder. Ladders with the same number of rungs share no random numbers.
    pub(crate) ladder: usize,
}

impl LadderSeed {
    fn stream(&self, n_rungs: usize, k: usize) -> Stream {
        stream(self.seed, self.purpose, (self.ladder * (n_rungs + 1) + k) as u64)
    }

    /// One stream for each rung.
    fn of_rungs(&self, n_rungs: usize) -> impl Iterator<Item = Stream> {
        let this = *self;
        (0..n_rungs).map(move |k| this.stream(n_rungs, k))
    }
}

/// A ladder of chains that exchange their states.
pub(crate) struct ReplicaExchange<'a> {
    replicas: Replicas<'a>,
    betas: &'a [f64],
    swaps: Stream,
    /// Its states are those of the last call; those of `replicas` are the present ones.
    state: LadderState,
}

impl<'a> ReplicaExchange<'a> {
    /// Begins with a draw from the base model on every rung. `betas` rise from 0 to 1.
    pub(crate) fn from_base(path: &'a Path<'a>, betas: &'a [f64], seed: LadderSeed) -> Self {
        let n = betas.len();
        let replicas = Replicas::from_base(path, seed.of_rungs(n).collect());
        Self { replicas, betas, swaps: seed.stream(n, n), state: LadderState::new(Vec::new(), n) }
    }

    /// Goes on from `state`. The path may be that of another model than before. With the same path
    /// and seed, the ladder goes on as if it had never stopped.
    pub(crate) fn resume(path: &'a Path<'a>, betas: &'a [f64], seed: LadderSeed, state: LadderState) -> Self {
        let n = betas.len();
        assert_eq!(state.histories.len(), n, "a state for each rung");
        let clocks = seed.of_rungs(n).map(|stream| (stream, state.n_steps)).collect();
        let replicas = Replicas::at(path, clocks, vec![0; n], &state.kept);
        Self { replicas, betas, swaps: seed.stream(n, n), state }
    }

    /// Makes the first part of a step: a Gibbs step on every rung. Between the two parts,
    /// [`top`](Self::top) is a visible and a hidden state of the model.
    pub(crate) fn step(&mut self) {
        let betas = self.betas;
        self.replicas.step(|k| betas[k]);
        self.state.n_steps += 1;
        let LadderState { histories, n_steps, round_trips, .. } = &mut self.state;
        *round_trips += u32::from(histories[0].has_climbed);
        histories[0] = History { drawn: Some(*n_steps), has_climbed: false };
    }

    /// Makes the second part of a step: asks every second pair of neighbours to exchange states.
    pub(crate) fn exchange(&mut self) {
        for k in (0..self.n_pairs()).skip(self.state.n_steps as usize % 2).step_by(2) {
            let (up, down) = self.log_ratios(k);
            self.ask(k, up, down);
        }
    }

    /// Makes the second part of a step, and shows `see` every pair `k` before it is asked:
    /// `log p*_k/p*_{k+1}` at the state of rung `k`, and `log p*_{k+1}/p*_k` at that of rung `k+1`.
    pub(crate) fn exchange_seen(&mut self, mut see: impl FnMut(usize, f64, f64)) {
        for k in 0..self.n_pairs() {
            let (up, down) = self.log_ratios(k);
            see(k, up, down);
            // Pairs take turns, so that no state is asked for twice.
            if k % 2 == self.state.n_steps as usize % 2 {
                self.ask(k, up, down);
            }
        }
    }

    /// Forgets the exchanges counted so far.
    pub(crate) fn reset_exchanges(&mut self) {
        self.state.exchanges.fill((0, 0));
    }

    /// The packed states of the top rung: of the layer that is kept, and of the other layer.
    pub(crate) fn top(&self) -> (&[u64], &[u64]) {
        let top = self.n_pairs();
        (self.replicas.kept_of(top), self.replicas.summed_of(top))
    }

    /// True if the state on the top rung has been on the lowest rung since the run began.
    pub(crate) fn top_is_renewed(&self) -> bool {
        self.state.histories[self.n_pairs()].drawn.is_some()
    }

    /// Stops, and returns what a later call needs to go on.
    pub(crate) fn into_state(self) -> LadderState {
        LadderState { kept: self.replicas.kept().to_vec(), ..self.state }
    }

    fn n_pairs(&self) -> usize {
        self.betas.len() - 1
    }

    fn log_ratios(&self, k: usize) -> (f64, f64) {
        let (betas, replicas) = (self.betas, &self.replicas);
        let up = replicas.log_weight(k, betas[k]) - replicas.log_weight(k, betas[k + 1]);
        let down = replicas.log_weight(k + 1, betas[k + 1]) - replicas.log_weight(k + 1, betas[k]);
        (up, down)
    }

    /// Exchanges the states of rungs `k` and `k+1` with probability `min(1, exp(−up − down))`.
    fn ask(&mut self, k: usize, up: f64, down: f64) {
        let u = (f64::from(self.swaps.at(self.state.n_steps).block(k as u32)[0]) + 0.5) / 4_294_967_296.0;
        let is_accepted = u.ln() < -up - down;
        let top = self.n_pairs();
        let LadderState { histories, exchanges, .. } = &mut self.state;
        exchanges[k].0 += u32::from(is_accepted);
        exchanges[k].1 += 1;
        if is_accepted {
            self.replicas.swap(k, k + 1);
            histories.swap(k, k + 1);
            if k + 1 == top {
                histories[top].has_climbed = histories[top].drawn.is_some();
            }
        }
    }
}

/// Returns the share of accepted exchanges of each pair of neighbours, over all ladders.
pub(crate) fn exchange_rates<'a>(ladders: impl Iterator<Item = &'a [(u32, u32)]> + Clone) -> Vec<f64> {
    let n_pairs = ladders.clone().next().map_or(0, <[_]>::len);
    let rate = |k: usize| {
        let sums = ladders.clone().map(|ladder| ladder[k]);
        let (accepted, tried) = sums.fold((0, 0), |(a, b), (accepted, tried)| (a + accepted, b + tried));
        f64::from(accepted) / f64::from(tried.max(1))
    };
    (0..n_pairs).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Kept;
    use crate::model::Rbm;
    use crate::model::tests::random_rbm;

    const BETAS: [f64; 4] = [0.0, 0.3, 0.6, 1.0];

    fn seed(ladder: usize) -> LadderSeed {
        LadderSeed { seed: 7, purpose: Purpose::SelfTest, ladder }
    }

    /// `p_β(v)` of every state, term by term.
    fn probabilities(rbm: &Rbm, base: &[f32], beta: f64) -> Vec<f64> {
        let (n, m, w) = (rbm.n_visible(), rbm.n_hidden(), rbm.weights());
        let weight = |v: usize| {
            let on = |i: usize| f64::from((v >> i & 1) as u8);
            let linear: f64 = (0..n)
                .map(|i| {
                    let (b0, b) = (f64::from(base[i]), f64::from(rbm.visible_bias()[i]));
                    on(i) * (b0 + beta * (b - b0))
                })
                .sum();
            let input = |j: usize| {
                let sum: f64 = (0..n).map(|i| on(i) * f64::from(w[i * m + j])).sum();
                beta * (f64::from(rbm.hidden_bias()[j]) + sum)
            };
            (linear + (0..m).map(|j| input(j).exp().ln_1p()).sum::<f64>()).exp()
        };
        let weights: Vec<f64> = (0..1 << n).map(weight).collect();
        let z: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / z).collect()
    }

    /// Returns the total variation between `p` and the states, divided by an upper bound of its
    /// mean for exact draws.
    fn distance(p: &[f64], states: impl Iterator<Item = u64>) -> f64 {
        let mut counts = vec![0.0; p.len()];
        states.for_each(|s| counts[s as usize] += 1.0);
        let n: f64 = counts.iter().sum();
        let tv = p.iter().zip(&counts).map(|(p, c)| (p - c / n).abs()).sum::<f64>() / 2.0;
        tv / (p.iter().map(|p| (p * (1.0 - p) / n).sqrt()).sum::<f64>() / 2.0)
    }

    /// Ladders that begin with exact draws on every rung have exact draws on every rung after five
    /// steps: TV stays within four times its Monte Carlo floor (false alarm far below 1e-6).
    /// Exchanges that are always accepted, and exchanges by the inverse rule, do not.
    #[test]
    fn exact_draws_stay_exact_on_every_rung_and_wrong_exchanges_are_caught() {
        let (n_ladders, n_steps) = (20_000, 5);
        let rbm = random_rbm(4, 3, 2.0, 520);
        let base = [0.3, -0.2, 0.5, 0.0];
        let path = Path::new(&rbm, Some(&base), Kept::Visible).unwrap();
        let targets = BETAS.map(|beta| probabilities(&rbm, &base, beta));
        let start = |ladder: usize| -> Vec<u64> {
            let mut rng = stream(8, Purpose::SelfTest, ladder as u64).reader();
            let draw = |p: &Vec<f64>| {
                let mut left = rng.uniform();
                let stop = |p: &f64| {
                    left -= p;
                    left < 0.0
                };
                p.iter().position(stop).unwrap_or(p.len() - 1) as u64
            };
            targets.iter().map(draw).collect()
        };
        let of_states = |ends: Vec<Vec<u64>>| -> Vec<f64> {
            (0..4).map(|k| distance(&targets[k], ends.iter().map(|kept| kept[k]))).collect()
        };
        let right = (0..n_ladders).map(|ladder| {
            let state = LadderState::new(start(ladder), 4);
            let mut chains = ReplicaExchange::resume(&path, &BETAS, seed(ladder), state);
            for _ in 0..n_steps {
                chains.step();
                chains.exchange();
            }
            chains.into_state().kept
        });
        let right = of_states(right.collect());
        assert!(right.iter().all(|&d| d < 4.0), "{right:?}");
        // The controls make their own exchanges.
        let wrong = |accept: &dyn Fn(f64, f64) -> bool| {
            let ends = (0..n_ladders).map(|ladder| {
                let mut replicas =
                    Replicas::from_states(&path, seed(ladder).of_rungs(4).collect(), &start(ladder));
                let mut rng = stream(9, Purpose::SelfTest, ladder as u64).reader();
                for t in 1..=n_steps {
                    replicas.step(|k| BETAS[k]);
                    for k in (0..3).filter(|k| k % 2 == t % 2) {
                        let gain = |r: usize| {
                            replicas.log_weight(r, BETAS[k + 1]) - replicas.log_weight(r, BETAS[k])
                        };
                        if accept(rng.uniform().ln(), gain(k) - gain(k + 1)) {
                            replicas.swap(k, k + 1);
                        }
                    }
                }
                replicas.kept().to_vec()
            });
            of_states(ends.collect())
        };
        let same = wrong(&|u, gain| u < gain);
        assert!(same.iter().all(|&d| d < 4.0), "the right rule passes: {same:?}");
        for (what, broken) in [("always", wrong(&|_, _| true)), ("inverse", wrong(&|u, gain| u < -gain))] {
            assert!(broken[3] > 4.0, "{what}: the control must be caught: {broken:?}");
        }
    }

    #[test]
    fn a_ladder_that_is_resumed_goes_on_as_if_it_had_never_stopped() {
        let rbm = random_rbm(70, 9, 0.5, 521);
        let path = Path::new(&rbm, None, Kept::Visible).unwrap();
        let advance = |mut chains: ReplicaExchange<'_>, n: usize| {
            for _ in 0..n {
                chains.step();
                chains.exchange();
            }
            chains.into_state()
        };
        let at_once = advance(ReplicaExchange::from_base(&path, &BETAS, seed(3)), 9);
        let first = advance(ReplicaExchange::from_base(&path, &BETAS, seed(3)), 4);
        assert_eq!(advance(ReplicaExchange::resume(&path, &BETAS, seed(3), first), 5), at_once);
        assert_eq!(at_once.n_steps, 9);
    }

    /// Without weights every exchange is accepted, and states move by one rung in every step: from
    /// the bottom of four rungs to the top in three steps, and back in three more.
    #[test]
    fn histories_follow_their_states() {
        let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.5; 3], &[0.0; 2]).unwrap();
        let path = Path::new(&rbm, None, Kept::Visible).unwrap();
        let mut chains = ReplicaExchange::from_base(&path, &BETAS, seed(4));
        let mut trips = Vec::new();
        let mut renewed = Vec::new();
        for _ in 0..16 {
            chains.step();
            chains.exchange();
            trips.push(chains.state.round_trips);
            renewed.push(chains.top_is_renewed());
        }
        let state = chains.into_state();
        assert!(state.exchanges.iter().all(|&(accepted, tried)| accepted == tried && tried == 8));
        // In even steps pairs 0 and 2 exchange: what is drawn in step 2 is at the top after step 4.
        assert_eq!(renewed.iter().position(|&is| is), Some(3));
        assert!(renewed[3..].iter().all(|&is| is));
        assert_eq!(*trips.last().unwrap(), trips.iter().filter(|&&n| n > 0).count().div_ceil(2) as u32);
        assert!(state.histories[3].drawn.is_some_and(|t| t >= 12), "{:?}", state.histories);
    }
}
