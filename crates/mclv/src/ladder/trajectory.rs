//! Run parallel tempering along a trajectory of models, such as snapshots of a training.
//!
//! Each rung has a model of its own, with the same units. The lowest one has no weights, so a Gibbs
//! step draws a fresh state there. A step of a ladder has the two parts of
//! [`ReplicaExchange`](super::ReplicaExchange). Chains keep hidden states, and
//! `log p*_k(h) = a_kᵀh + Σ_i softplus((b_k + W_k h)_i)`.

use super::tempering::{MAX_RECORDS, Record};
use crate::bits::{BitRows, ones, words_for};
use crate::chain::{Chains, Clock, VisibleChain};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, Stream, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, inputs, log_weight_at};
use mclv_kernels::tiles::Tiles;

/// Ladders that step together. No result depends on this number.
const BLOCK: usize = 4;

/// Steps between two checks for cancellation.
const STEPS_PER_ROUND: usize = 16;

/// Ladders of chains, each with one chain for each model.
pub(crate) struct Trajectory<'a> {
    /// The models, from one without weights to the one in question.
    pub(crate) models: &'a [Rbm],
    /// Hidden states at which every second ladder begins. The others begin with fair coins.
    pub(crate) starts: Option<&'a BitRows>,
    pub(crate) n_ladders: usize,
    /// The number of steps of each ladder that are recorded.
    pub(crate) n_steps: usize,
    /// The number of steps that each ladder makes before those.
    pub(crate) burn_in: usize,
    pub(crate) seed: u64,
    pub(crate) purpose: Purpose,
}

impl Trajectory<'_> {
    /// The number of block-Gibbs steps of all chains.
    pub(crate) fn total_steps(&self) -> u64 {
        (self.n_ladders * self.models.len() * (self.burn_in + self.n_steps)) as u64
    }

    /// Runs the ladders, and returns their records.
    pub(crate) fn run(&self, progress: &dyn Progress) -> Result<Vec<Record>> {
        let n_pairs = self.models.len() - 1;
        let n_records = (2 * self.n_ladders * n_pairs).checked_mul(self.n_steps);
        if self.burn_in.saturating_add(self.n_steps) >= 1 << 30 || n_records.is_none_or(|n| n > MAX_RECORDS) {
            return Err(Error::InvalidSetting {
                name: "ladder-steps",
                value: self.n_steps.to_string(),
                cure: "fewer steps, ladders or models: 2^28 numbers at most are recorded, 2^30 steps made",
            });
        }
        let of_block = |block: usize| {
            let ladders = block * BLOCK..self.n_ladders.min((block + 1) * BLOCK);
            Climbers::new(self, ladders.collect()).run(progress)
        };
        let blocks: Vec<Vec<Record>> = team::try_blocks(self.n_ladders.div_ceil(BLOCK), of_block)?;
        Ok(blocks.concat())
    }

    /// The random numbers of a rung of a ladder. Those after the last rung are for exchanges.
    fn stream(&self, ladder: usize, rung: usize) -> Stream {
        stream(self.seed, self.purpose, (ladder * (self.models.len() + 1) + rung) as u64)
    }
}

/// Some ladders that step together.
struct Climbers<'a> {
    trajectory: &'a Trajectory<'a>,
    /// The numbers of the ladders.
    ladders: Vec<usize>,
    /// The chains of each rung, one for each ladder.
    rungs: Vec<Chains>,
    of_visible: Tiles,
    scratch: Scratch,
}

impl<'a> Climbers<'a> {
    fn new(trajectory: &'a Trajectory<'a>, ladders: Vec<usize>) -> Self {
        let models = trajectory.models;
        let (n_words, n_hidden) = (words_for(models[0].n_hidden()), models[0].n_hidden());
        let last = u64::MAX >> (64 * n_words - n_hidden);
        let rungs = (0..models.len()).map(|rung| {
            let start = |&ladder: &usize| -> Vec<u64> {
                if let Some(starts) = trajectory.starts.filter(|_| ladder % 2 == 1) {
                    return starts.row((ladder * models.len() + rung) % starts.n_rows()).to_vec();
                }
                let draws = trajectory.stream(ladder, rung).at(0);
                let mut h: Vec<u64> = (0..n_words)
                    .map(|k| {
                        let [low, high, ..] = draws.block(k as u32);
                        u64::from(high) << 32 | u64::from(low)
                    })
                    .collect();
                h[n_words - 1] &= last;
                h
            };
            let clock = |&ladder: &usize| Clock::new(trajectory.stream(ladder, rung), 1);
            let h = ladders.iter().flat_map(start).collect();
            Chains::new(&models[rung], VisibleChain::Sampled, h, ladders.iter().map(clock).collect())
        });
        Self {
            rungs: rungs.collect(),
            of_visible: Tiles::zeros(ladders.len(), models[0].n_visible()),
            scratch: Scratch::default(),
            trajectory,
            ladders,
        }
    }

    fn run(mut self, progress: &dyn Progress) -> Result<Vec<Record>> {
        let Trajectory { models, burn_in, n_steps, .. } = *self.trajectory;
        let n_pairs = models.len() - 1;
        let empty = || vec![Vec::with_capacity(n_steps); n_pairs];
        let record = || Record { up: empty(), down: empty(), swaps: vec![(0, 0); n_pairs] };
        let mut records: Vec<Record> = self.ladders.iter().map(|_| record()).collect();
        for t in 1..=burn_in + n_steps {
            if t % STEPS_PER_ROUND == 0 && progress.cancelled() {
                return Err(Error::Cancelled);
            }
            for (chains, model) in self.rungs.iter_mut().zip(models) {
                chains.step(model, &mut self.scratch, None);
            }
            for k in 0..n_pairs {
                let at = |this: &mut Self, rung: usize, model: usize| this.log_weights(rung, model);
                let (low, high) = (at(&mut self, k, k), at(&mut self, k, k + 1));
                let (top, below) = (at(&mut self, k + 1, k + 1), at(&mut self, k + 1, k));
                for r in 0..self.ladders.len() {
                    let (up, down) = (low[r] - high[r], top[r] - below[r]);
                    let record = &mut records[r];
                    if t > burn_in {
                        record.up[k].push(up);
                        record.down[k].push(down);
                    }
                    // Pairs take turns, so that no state is asked for twice.
                    if k % 2 == t % 2 {
                        let is_accepted = self.asks(r, t, k) < -up - down;
                        if t > burn_in {
                            record.swaps[k].0 += u32::from(is_accepted);
                            record.swaps[k].1 += 1;
                        }
                        if is_accepted {
                            self.swap(k, r);
                        }
                    }
                }
            }
        }
        Ok(records)
    }

    /// `log p*` of the states of a rung under a model.
    fn log_weights(&mut self, rung: usize, model: usize) -> Vec<f64> {
        let (model, chains) = (&self.trajectory.models[model], &self.rungs[rung]);
        inputs(Isa::best(), model.down(), States::Bits(chains.h()), &mut self.scratch, &mut self.of_visible);
        let of_state = |r: usize| {
            let linear: f64 = ones(chains.h_of(r)).map(|j| f64::from(model.hidden_bias()[j])).sum();
            linear + log_weight_at(Isa::best(), &self.of_visible, None, r, 1.0)
        };
        (0..chains.len()).map(of_state).collect()
    }

    /// The logarithm of a uniform number that decides an exchange.
    fn asks(&self, r: usize, t: usize, k: usize) -> f64 {
        let n_rungs = self.rungs.len();
        let draws = self.trajectory.stream(self.ladders[r], n_rungs).at(t as u32);
        ((f64::from(draws.block(k as u32)[0]) + 0.5) / 4_294_967_296.0).ln()
    }

    /// Exchanges the states of rungs `k` and `k + 1` of ladder `r`.
    fn swap(&mut self, k: usize, r: usize) {
        let low = self.rungs[k].h_of(r).to_vec();
        let high = self.rungs[k + 1].h_of(r).to_vec();
        self.rungs[k].set_h_of(r, &high);
        self.rungs[k + 1].set_h_of(r, &low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::{combine, log_ratios, swap_rates};
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;

    /// Three random models above one without weights. They are no path of temperatures.
    fn models() -> Vec<Rbm> {
        let base = Rbm::new(7, 5, &[0.0; 35], &[0.3; 7], &[0.0; 5]).unwrap();
        let others = (0..3).map(|k| random_rbm(7, 5, 0.5 + 0.2 * f64::from(k), 970 + k as u64));
        std::iter::once(base).chain(others).collect()
    }

    fn trajectory(models: &[Rbm]) -> Trajectory<'_> {
        Trajectory {
            models,
            starts: None,
            n_ladders: 10,
            n_steps: 2_000,
            burn_in: 200,
            seed: 3,
            purpose: Purpose::SelfTest,
        }
    }

    fn log_z(rbm: &Rbm) -> f64 {
        crate::partition::exact(rbm, &Default::default(), &Silent).unwrap().value
    }

    /// The ratio of each pair of neighbours is that of enumeration: no |t| above 7 with 9 degrees of
    /// freedom (false alarm 2e-4 for three pairs). Negative control: the ratio of the wrong model is
    /// rejected.
    #[test]
    fn ratios_of_neighbours_are_those_of_enumeration() {
        let models = models();
        let records = trajectory(&models).run(&Silent).unwrap();
        assert!(swap_rates(&records).iter().all(|&rate| rate > 0.05), "{:?}", swap_rates(&records));
        let exact: Vec<f64> = models.iter().map(log_z).collect();
        for (k, pair) in log_ratios(&records).into_iter().enumerate() {
            let (ratio, std_err) = combine(&[pair]);
            let t = (ratio - (exact[k + 1] - exact[k])) / std_err;
            assert!(t.abs() < 7.0, "pair {k}: t = {t}");
            let wrong = (ratio - (exact[(k + 2) % 4] - exact[k])) / std_err;
            assert!(wrong.abs() > 7.0, "pair {k}: the control must fail, t = {wrong}");
        }
    }

    #[test]
    fn blocks_and_threads_do_not_matter() {
        let models = models();
        let run = |n_threads: usize, n_ladders: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let trajectory = Trajectory { n_ladders, n_steps: 20, ..trajectory(&models) };
            pool.install(|| trajectory.run(&Silent).unwrap())
        };
        let all: Vec<_> = run(1, 10).into_iter().map(|record| (record.up, record.down)).collect();
        let other: Vec<_> = run(3, 10).into_iter().map(|record| (record.up, record.down)).collect();
        let fewer: Vec<_> = run(2, 6).into_iter().map(|record| (record.up, record.down)).collect();
        assert!(all == other && all[..6] == fewer[..]);
    }
}
