//! Unbiased contrastive divergence: pairs of coupled chains that meet (Qiu, Zhang and Wang 2020).
//!
//! Two chains `X` and `Y` begin at the same row. `X` is one step ahead. Each follows the Gibbs chain
//! of the model, and both use the same random numbers, so that `X(t) = Y(t−1)` from some time `τ` on.
//! Then, for any `k`,
//!
//! ```text
//! H_k = f(X(k)) + Σ_{t=k+1}^{τ−1} [f(X(t)) − f(Y(t−1))]
//! ```
//!
//! has mean `E_p[f]`: the sum telescopes, because `X(t−1)` and `Y(t−1)` have the same distribution.
//! Here `f` is `v E[h|v]ᵀ` at the visible state drawn in the step (and `v`, `E[h|v]`), and `τ` is the
//! first time at which the visible states are equal.
//!
//! **Guarantee**: unbiased for any `k`, any rows and any parameters, if no pair is cut. A pair that
//! has not met after `max-meeting` steps is cut: the rest of its sum is missing, which is a bias of
//! unknown size. Cut pairs are counted in [`CouplingInfo`].
//!
//! **Numerics**: a bit has its probability to within 2⁻³³ and to a relative 2⁻²².
//!
//! **Cost**: `2τ − 1` Gibbs steps for each row of the minibatch, or `2k − 1` if that is more.
//! A coupled step costs about three plain ones. The mean of `τ` grows with the time that the chain
//! needs to forget its start, and the variance with its square.

pub(super) mod coupling;
mod info;
mod terms;

pub use info::CouplingInfo;

use super::{Estimator, EstimatorInfo, Gradient, PairBlock, State, Step, Update};
use crate::bits::words_for;
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::model::Rbm;
use crate::rng::{Draws, Purpose, Stream, stream};
use crate::team;
use crate::{Error, Result};
use coupling::{Both, Proposals, as_one, by_units};
use mclv_kernels::layer::Scratch;
use terms::Terms;

/// Steps of all pairs between two checks for cancellation.
const STEPS_PER_ROUND: u64 = 64;

pub(super) struct Ucd {
    k: u64,
    max_meeting: u64,
    info: CouplingInfo,
}

impl Ucd {
    pub(super) fn new(k: usize, max_meeting: usize) -> Self {
        Self { k: k as u64, max_meeting: max_meeting as u64, info: CouplingInfo::default() }
    }
}

team::parcel! {
    /// The pairs of one block that have not met, at the same time `t`: the hidden states of `X(t)`
    /// and `Y(t−1)`.
    #[derive(Clone, Debug, Default)]
    struct Pairs {
        /// The row of the minibatch that each pair began at.
        rows: Vec<usize>,
        t: u64,
        x: Vec<u64>,
        y: Vec<u64>,
        /// The number of proposals that each pair has used.
        n_proposals: Vec<u32>,
    }
}

team::parcel! {
    /// The result of some steps of a block.
    struct Worked {
        pairs: Pairs,
        terms: Vec<PairBlock>,
        info: CouplingInfo,
    }
}

impl Estimator for Ucd {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let (step, minibatch) = (update.step(), *update.minibatch());
        let steps = Steps {
            rbm: update.rbm(),
            k: self.k,
            last: self.max_meeting,
            stream: |row| pair_stream(step, row),
            proposals: |row| proposal_stream(step, row),
            weight: |row| minibatch.weight(row),
        };
        let scale = (-1.0 / minibatch.total_weight()) as f32;
        let mut worked = update.work_from_rows(|minibatch, b, h, scratch| {
            let n = minibatch.block_rows(b).len();
            let rows = (0..n).map(|r| b * BLOCK + r).collect();
            steps.begin(rows, h, scratch)
        });
        loop {
            let mut pairs = Vec::new();
            for of_block in worked {
                self.info.merge(&of_block.info);
                gradient.add(of_block.terms, scale);
                pairs.push(of_block.pairs);
            }
            gradient.flush();
            if pairs.iter().all(|pairs| pairs.rows.is_empty()) {
                return Ok(true);
            }
            if team::any(update.is_cancelled()) {
                return Err(Error::Cancelled);
            }
            worked = team::map_blocks(pairs.len(), |b| {
                steps.go_on(pairs[b].clone(), STEPS_PER_ROUND, &mut Scratch::of_thread())
            });
        }
    }

    fn take_info(&mut self) -> EstimatorInfo {
        let coupling = Some(std::mem::take(&mut self.info)).filter(|info| info.n_pairs > 0);
        EstimatorInfo { coupling, ..EstimatorInfo::default() }
    }

    /// Pairs end within an update, so only the counts of an unfinished epoch are kept.
    fn save(&self) -> State {
        State::new(&self.info)
    }

    fn restore(&mut self, _: &Rbm, state: &State) -> Result<()> {
        self.info = state.counts()?;
        Ok(())
    }
}

/// The random numbers of the pair that begins at row `row` of a minibatch.
pub(super) fn pair_stream(step: Step, row: usize) -> Stream {
    stream(step.seed, Purpose::Coupling, (step.number & 0xffff_ffff) << 24 | row as u64)
}

/// The random numbers of the proposals of that pair.
pub(super) fn proposal_stream(step: Step, row: usize) -> Stream {
    stream(step.seed, Purpose::CouplingProposal, (step.number & 0xffff_ffff) << 24 | row as u64)
}

/// How pairs step: the model, the times `k` and of the cut, and the random numbers and the weight
/// of each row.
struct Steps<'a, S, P, W> {
    rbm: &'a Rbm,
    k: u64,
    last: u64,
    stream: S,
    proposals: P,
    weight: W,
}

impl<S, P, W> Steps<'_, S, P, W>
where
    S: Fn(usize) -> Stream + Sync,
    P: Fn(usize) -> Stream + Sync,
    W: Fn(usize) -> f32 + Sync,
{
    /// Begins pairs at the hidden states `h` of rows. Makes the first step, of `X` alone, and then
    /// coupled ones.
    fn begin(&self, rows: Vec<usize>, h: Vec<u64>, scratch: &mut Scratch) -> Worked {
        let clocks = rows.iter().map(|&row| Clock::new((self.stream)(row), 0)).collect();
        let mut chains = Chains::new(self.rbm, VisibleChain::Sampled, h.clone(), clocks);
        chains.step(self.rbm, scratch, None);
        let n_proposals = vec![0; rows.len()];
        let pairs = Pairs { rows, t: 1, x: chains.h().to_vec(), y: h, n_proposals };
        let mut terms = Terms::new(self.rbm);
        if self.k == 1 {
            terms.add_all(chains.v_bits(), &pairs.rows, &self.weight, scratch);
        }
        let n = pairs.rows.len() as u64;
        let mut worked = self.go_on(pairs, STEPS_PER_ROUND, scratch);
        worked.terms.extend(terms.into_blocks());
        worked.info.n_pairs += n;
        worked.info.n_steps += n;
        worked
    }

    /// Makes up to `n_steps` coupled steps: from `X(t)` and `Y(t−1)` to `X(t+1)` and `Y(t)`.
    fn go_on(&self, mut pairs: Pairs, n_steps: u64, scratch: &mut Scratch) -> Worked {
        let (rbm, mut info) = (self.rbm, CouplingInfo::default());
        let mut terms = Terms::new(rbm);
        let until = pairs.t + n_steps;
        loop {
            // Equal hidden states give equal visible ones in the next step.
            let n_words = words_for(rbm.n_hidden());
            if pairs.t >= self.k {
                let next = pairs.t + 1;
                let (x, y) = (pairs.x.clone(), pairs.y.clone());
                pairs.retain(n_words, |p| {
                    let at = p * n_words..(p + 1) * n_words;
                    x[at.clone()] != y[at] || info.meet(next)
                });
            }
            if pairs.t >= self.last {
                info.n_cut += pairs.rows.len() as u64;
                pairs = Pairs::default();
            }
            if pairs.rows.is_empty() || pairs.t >= until {
                return Worked { pairs, terms: terms.into_blocks(), info };
            }
            let draws = |half: u64| -> Vec<Draws> {
                let tick = (2 * pairs.t + half) as u32;
                pairs.rows.iter().map(|&row| (self.stream)(row).at(tick)).collect()
            };
            let h = Both { x: std::mem::take(&mut pairs.x), y: std::mem::take(&mut pairs.y) };
            let v = by_units(rbm.down(), &h, &draws(0), scratch);
            let of = |(&row, &next): (&usize, &u32)| Proposals { stream: (self.proposals)(row), next };
            let mut proposals: Vec<Proposals> = pairs.rows.iter().zip(&pairs.n_proposals).map(of).collect();
            let h = as_one(rbm.up(), &v, &draws(1), &mut proposals, scratch);
            pairs.n_proposals = proposals.into_iter().map(|of| of.next).collect();
            (pairs.x, pairs.y, pairs.t) = (h.x, h.y, pairs.t + 1);
            info.n_steps += 2 * pairs.rows.len() as u64;
            if pairs.t == self.k {
                terms.add_all(&v.x, &pairs.rows, &self.weight, scratch);
            } else if pairs.t > self.k {
                let n_words = words_for(rbm.n_visible());
                let of = |v: &[u64], p: usize| v[p * n_words..(p + 1) * n_words].to_vec();
                let met = |p: usize| of(&v.x, p) == of(&v.y, p);
                let open: Vec<usize> = (0..pairs.rows.len()).filter(|&p| !met(p)).collect();
                let rows: Vec<usize> = open.iter().map(|&p| pairs.rows[p]).collect();
                let states = |v: &[u64]| -> Vec<u64> { open.iter().flat_map(|&p| of(v, p)).collect() };
                terms.add_all(&states(&v.x), &rows, &self.weight, scratch);
                terms.add_all(&states(&v.y), &rows, &|row| -(self.weight)(row), scratch);
                let now = pairs.t;
                pairs.retain(words_for(rbm.n_hidden()), |p| !met(p) || info.meet(now));
            }
        }
    }
}

impl Pairs {
    /// Keeps the pairs for which `keep` returns true, in their order.
    fn retain(&mut self, n_words: usize, mut keep: impl FnMut(usize) -> bool) {
        let kept: Vec<usize> = (0..self.rows.len()).filter(|&p| keep(p)).collect();
        if kept.len() == self.rows.len() {
            return;
        }
        let states = |of: &[u64]| kept.iter().flat_map(|p| &of[p * n_words..][..n_words]).copied().collect();
        (self.x, self.y) = (states(&self.x), states(&self.y));
        self.rows = kept.iter().map(|&p| self.rows[p]).collect();
        self.n_proposals = kept.iter().map(|&p| self.n_proposals[p]).collect();
    }
}
