//! Contrastive divergence: a few Gibbs steps from the data (Hinton 2002).
//!
//! **Guarantee**: none at finite `k`; the bias vanishes as `k` grows.

use super::moments::{BLOCK, total_weight};
use super::{Moments, NegativePhase, PairBlock, Update, VisibleChain, chain};
use crate::Result;
use mclv_kernels::layer::Scratch;
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
        let both = (0..update.n_blocks()).into_par_iter().map_init(Scratch::of_thread, |scratch, b| {
            let (positive, mut h) = update.positive_and_hidden(b, scratch);
            let draws = |r: usize, t: u32| update.step.chain_draws(self.k, b * BLOCK + r, t);
            let n_rows = update.block_rows(b).len();
            let (v, means) = chain::advance(update.rbm, &mut h, self.k, self.visible, n_rows, scratch, draws);
            (positive, update.pairs(b, &v, means))
        });
        let (positive, negative): (Vec<_>, Vec<_>) = both.unzip();
        let total = total_weight(&negative);
        moments.add(negative, (-1.0 / total) as f32);
        Ok(Some(positive))
    }
}
