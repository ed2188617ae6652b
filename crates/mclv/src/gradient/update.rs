//! One update: its minibatch, its random numbers, and the positive phase, which is computed beside
//! the estimator's work.

use super::pairs::PairBlock;
use crate::bits::words_for;
use crate::chain::{BLOCK, Clock};
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Draws, Purpose, Stream, stream};
use crate::team::{self, Exchange, Parcel};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, means, sample};
use mclv_kernels::tiles::Tiles;
use std::cell::OnceCell;

/// The place of an update in a run. It determines all random numbers of the update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) seed: u64,
    pub(crate) epoch: u32,
    /// The number of the minibatch within the epoch.
    pub(crate) update: u32,
    /// The number of the minibatch within the run.
    pub(crate) number: u64,
}

impl Step {
    /// Returns the random numbers of chain `chain` in this update, which makes `k` Gibbs steps.
    pub(super) fn chain_clock(self, k: usize, chain: usize) -> Clock {
        let index = u64::from(self.epoch) << 24 | chain as u64;
        Clock::new(stream(self.seed, Purpose::Chain, index), self.update * 2 * k as u32)
    }
}

/// The rows of one update.
#[derive(Clone, Copy)]
pub(crate) struct Minibatch<'a> {
    pub(crate) rbm: &'a Rbm,
    pub(crate) data: &'a Rows,
    /// The row numbers of the minibatch.
    pub(crate) rows: &'a [usize],
    /// A weight for each row of the data. With `None`, all weights are 1.
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) step: Step,
}

/// The input of an [`Estimator`](super::Estimator) for one update: the model, the minibatch, random
/// numbers, and the sharing of work.
///
/// The positive phase (rows of the minibatch with `E[h|v]`) belongs to the trainer. It is computed
/// block by block beside the work that an estimator shares out, so that no thread waits for the
/// other phase.
pub struct Update<'a> {
    minibatch: Minibatch<'a>,
    progress: &'a dyn Progress,
    positive: OnceCell<Vec<PairBlock>>,
}

impl<'a> Update<'a> {
    pub(crate) fn new(minibatch: Minibatch<'a>, progress: &'a dyn Progress) -> Self {
        Self { minibatch, progress, positive: OnceCell::new() }
    }

    /// Returns the model as it is before the update.
    pub fn rbm(&self) -> &'a Rbm {
        self.minibatch.rbm
    }

    /// Returns all training rows.
    pub fn data(&self) -> &'a Rows {
        self.minibatch.data
    }

    /// Returns the numbers of the training rows that are in the minibatch.
    pub fn rows(&self) -> &'a [usize] {
        self.minibatch.rows
    }

    /// Returns the number of updates that the run has made before this one.
    pub fn number(&self) -> u64 {
        self.minibatch.step.number
    }

    /// Returns random numbers that no other update and no other `index` has. `index` must be below
    /// 2²⁴.
    pub fn stream(&self, index: u32) -> Stream {
        let id = (self.number() & 0xffff_ffff) << 24 | u64::from(index & 0xff_ffff);
        stream(self.minibatch.step.seed, Purpose::Estimator, id)
    }

    /// Returns true if training should stop.
    pub fn is_cancelled(&self) -> bool {
        self.progress.cancelled()
    }

    pub(super) fn step(&self) -> Step {
        self.minibatch.step
    }

    pub(super) fn minibatch(&self) -> &Minibatch<'a> {
        &self.minibatch
    }

    /// Changes a state for each block of chains: `work(b, state, scratch)` runs for block `b`
    /// beside the positive phase of block `b` of the minibatch. Threads and ranks share the blocks.
    /// Returns the results of the work, in order of blocks.
    pub(super) fn work<S: Exchange + Send, R: Parcel + Send>(
        &self,
        states: &mut [S],
        work: impl Fn(usize, &mut S, &mut Scratch) -> R + Sync + Send,
    ) -> Vec<R> {
        let minibatch = &self.minibatch;
        let n_positive = if self.positive.get().is_none() { minibatch.n_blocks() } else { 0 };
        let n_blocks = n_positive.max(states.len());
        let mut slots: Vec<Option<&mut S>> = states.iter_mut().map(Some).collect();
        slots.resize_with(n_blocks, || None);
        let both = team::change_blocks(&mut slots, |b, slot| {
            let scratch = &mut Scratch::of_thread();
            let positive = (b < n_positive).then(|| minibatch.positive(b, scratch));
            let negative = slot.as_mut().map(|state| work(b, state, scratch));
            (positive, negative)
        });
        let (positive, negative): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        self.positive.get_or_init(|| positive.into_iter().flatten().collect());
        negative.into_iter().flatten().collect()
    }

    /// Does the work of [`work`](Self::work) for the blocks of the minibatch. `work` receives
    /// `h ~ p(h|v)` of its rows, and applies the weights of the rows by [`Minibatch::pairs`].
    pub(super) fn work_from_rows<R: Parcel + Send>(
        &self,
        work: impl Fn(&Minibatch<'_>, usize, Vec<u64>, &mut Scratch) -> R + Sync + Send,
    ) -> Vec<R> {
        let minibatch = &self.minibatch;
        let both = team::map_blocks(minibatch.n_blocks(), |b| {
            let scratch = &mut Scratch::of_thread();
            let (positive, h) = minibatch.positive_and_hidden(b, scratch);
            (positive, work(minibatch, b, h, scratch))
        });
        let (positive, negative): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        self.positive.get_or_init(|| positive);
        negative
    }

    /// Returns the positive phase: the part made beside the estimator's work, or all of it,
    /// computed now.
    pub(crate) fn into_positive(self) -> Vec<PairBlock> {
        let minibatch = &self.minibatch;
        self.positive.into_inner().unwrap_or_else(|| {
            team::map_blocks(minibatch.n_blocks(), |b| minibatch.positive(b, &mut Scratch::of_thread()))
        })
    }
}

impl Minibatch<'_> {
    /// The number of blocks of rows.
    fn n_blocks(&self) -> usize {
        self.rows.len().div_ceil(BLOCK)
    }

    /// Returns the row numbers of block `b`.
    pub(super) fn block_rows(&self, b: usize) -> &[usize] {
        &self.rows[b * BLOCK..self.rows.len().min((b + 1) * BLOCK)]
    }

    /// Returns the weight of row `r` of the minibatch.
    pub(super) fn weight(&self, r: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[self.rows[r]])
    }

    /// Returns the sum of the weights of all rows.
    pub(super) fn total_weight(&self) -> f64 {
        (0..self.rows.len()).map(|r| f64::from(self.weight(r))).sum()
    }

    /// Makes pairs with the weights of the rows of block `b`.
    pub(super) fn pairs(&self, b: usize, v: States<'_>, h: Tiles) -> PairBlock {
        let n_visible = self.rbm.n_visible();
        match self.weights {
            None => PairBlock::new(v, n_visible, h),
            Some(weights) => {
                let weights: Vec<f32> = self.block_rows(b).iter().map(|&r| weights[r]).collect();
                PairBlock::weighted(v, n_visible, h, &weights)
            }
        }
    }

    /// Computes the positive phase of block `b`: rows of the data with `E[h|v]`.
    fn positive(&self, b: usize, scratch: &mut Scratch) -> PairBlock {
        let v = self.data.block_of(self.block_rows(b));
        let mut h = Tiles::zeros(self.block_rows(b).len(), self.rbm.n_hidden());
        means(Isa::best(), self.rbm.up(), v.states(), scratch, &mut h);
        self.pairs(b, v.states(), h)
    }

    /// Computes [`positive`](Self::positive), and draws hidden states from `p(h|v)`.
    fn positive_and_hidden(&self, b: usize, scratch: &mut Scratch) -> (PairBlock, Vec<u64>) {
        let (v, n_rows) = (self.data.block_of(self.block_rows(b)), self.block_rows(b).len());
        let mut h = Tiles::zeros(n_rows, self.rbm.n_hidden());
        let mut bits = vec![0; n_rows * words_for(self.rbm.n_hidden())];
        let of = |r: usize| {
            let index = u64::from(self.step.epoch) << 24 | (b * BLOCK + r) as u64;
            stream(self.step.seed, Purpose::Positive, index).at(self.step.update)
        };
        let draws: Vec<Draws> = (0..n_rows).map(of).collect();
        sample(Isa::best(), self.rbm.up(), v.states(), &draws, scratch, &mut bits, Some(&mut h));
        (self.pairs(b, v.states(), h), bits)
    }
}
