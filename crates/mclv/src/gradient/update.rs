//! One update: its minibatch, its random numbers, and the positive phase.

use super::moments::BLOCK;
use super::{PairBlock, Visible};
use crate::bits::words_for;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Draws, Purpose, stream};
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, means, sample};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;

/// Where in a run an update stands; all its random numbers follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) seed: u64,
    pub(crate) epoch: u32,
    /// Minibatch within the epoch.
    pub(crate) update: u32,
    /// Minibatch within the run.
    pub(crate) number: u64,
}

impl Step {
    /// What row `row` of a minibatch, or chain `row`, uses in half-step `t` of `k` Gibbs steps.
    pub(super) fn chain_draws(self, k: usize, row: usize, t: u32) -> Draws {
        let index = u64::from(self.epoch) << 24 | row as u64;
        stream(self.seed, Purpose::Chain, index).at(self.update * 2 * k as u32 + t)
    }
}

/// What a gradient is estimated from.
pub(crate) struct Update<'a> {
    pub(crate) rbm: &'a Rbm,
    pub(crate) data: &'a Rows,
    /// The rows of the data in the minibatch.
    pub(crate) rows: &'a [usize],
    /// A weight for each row of the data; none: all are 1.
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) step: Step,
    pub(crate) progress: &'a dyn Progress,
}

impl Update<'_> {
    /// Number of blocks of rows.
    pub(super) fn n_blocks(&self) -> usize {
        self.rows.len().div_ceil(BLOCK)
    }

    /// The rows of block `b`.
    pub(super) fn block_rows(&self, b: usize) -> &[usize] {
        &self.rows[b * BLOCK..self.rows.len().min((b + 1) * BLOCK)]
    }

    /// Pairs with the weights of the rows of block `b`.
    pub(super) fn pairs(&self, b: usize, v: &Visible, h: Tiles) -> PairBlock {
        let n_visible = self.rbm.n_visible();
        match self.weights {
            None => PairBlock::new(v.states(), n_visible, h),
            Some(weights) => {
                let weights: Vec<f32> = self.block_rows(b).iter().map(|&r| weights[r]).collect();
                PairBlock::weighted(v.states(), n_visible, h, &weights)
            }
        }
    }

    /// The positive phase of block `b`: rows of the data with `E[h|v]`.
    pub(super) fn positive(&self, b: usize, scratch: &mut Scratch) -> PairBlock {
        let v = self.visible(b);
        let mut h = Tiles::zeros(self.block_rows(b).len(), self.rbm.n_hidden());
        means(Isa::best(), self.rbm.up(), v.states(), scratch, &mut h);
        self.pairs(b, &v, h)
    }

    /// [`positive`](Self::positive), and hidden states drawn from `p(h|v)`.
    pub(super) fn positive_and_hidden(&self, b: usize, scratch: &mut Scratch) -> (PairBlock, Vec<u64>) {
        let (v, n_rows) = (self.visible(b), self.block_rows(b).len());
        let mut h = Tiles::zeros(n_rows, self.rbm.n_hidden());
        let mut bits = vec![0; n_rows * words_for(self.rbm.n_hidden())];
        let of = |r: usize| {
            let index = u64::from(self.step.epoch) << 24 | (b * BLOCK + r) as u64;
            stream(self.step.seed, Purpose::Positive, index).at(self.step.update)
        };
        let draws: Vec<Draws> = (0..n_rows).map(of).collect();
        sample(Isa::best(), self.rbm.up(), v.states(), &draws, scratch, &mut bits, Some(&mut h));
        (self.pairs(b, &v, h), bits)
    }

    /// The whole positive phase.
    pub(super) fn all_positive(&self) -> Vec<PairBlock> {
        team::share_all(self.n_blocks(), |blocks| {
            blocks
                .into_par_iter()
                .map_init(Scratch::of_thread, |scratch, b| self.positive(b, scratch))
                .collect()
        })
    }

    fn visible(&self, b: usize) -> Visible {
        let rows = self.block_rows(b);
        match self.data {
            Rows::Bits(bits) => {
                let mut words = Vec::with_capacity(rows.len() * bits.n_words());
                rows.iter().for_each(|&r| words.extend_from_slice(bits.row(r)));
                Visible::Bits(words)
            }
            Rows::Reals(reals) => {
                let mut values = Vec::with_capacity(rows.len() * reals.n_columns());
                rows.iter().for_each(|&r| values.extend_from_slice(reals.row(r)));
                Visible::Reals(values)
            }
            Rows::Sparse(sparse) => Visible::Reals(sparse.expand(rows.iter().copied())),
        }
    }
}
