//! Contrastive divergence: a few Gibbs steps from the data (Hinton 2002).
//!
//! **Guarantee**: none at finite `k`; the bias vanishes as `k` grows.

use super::moments::{BLOCK, total_weight};
use super::{Moments, NegativePhase, PairBlock, Update, VisibleChain, chain};
use crate::Result;
use crate::team;
use mclv_kernels::layer::{Scratch, ThreadScratch};
use rayon::prelude::*;

pub(super) struct Cd {
    k: usize,
    visible: VisibleChain,
}

impl Cd {
    pub(super) fn new(k: usize, visible: VisibleChain) -> Self {
        Self { k, visible }
    }
}

impl NegativePhase for Cd {
    fn subtract(&mut self, update: &Update<'_>, moments: &mut Moments) -> Result<Option<Vec<PairBlock>>> {
        let of_block = |scratch: &mut ThreadScratch, b: usize| {
            let (positive, mut h) = update.positive_and_hidden(b, scratch);
            let draws = |r: usize, t: u32| update.step.chain_draws(self.k, b * BLOCK + r, t);
            let n_rows = update.block_rows(b).len();
            let (v, means) = chain::advance(update.rbm, &mut h, self.k, self.visible, n_rows, scratch, draws);
            (positive, update.pairs(b, &v, means))
        };
        let both = team::share_all(update.n_blocks(), |blocks| {
            blocks.into_par_iter().map_init(Scratch::of_thread, of_block).collect()
        });
        let (positive, negative): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        let total = total_weight(&negative);
        moments.add(negative, (-1.0 / total) as f32);
        Ok(Some(positive))
    }
}
