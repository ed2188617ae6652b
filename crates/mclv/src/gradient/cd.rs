//! Contrastive divergence: the negative phase from a few Gibbs steps that begin at the data (Hinton
//! 2002).
//!
//! **Guarantee**: none at finite `k`. The bias vanishes as `k` grows.

use super::{Estimator, Gradient, Update, total_weight};
use crate::Result;
use crate::chain::{BLOCK, Chains, VisibleChain};

pub(super) struct Cd {
    k: usize,
    visible: VisibleChain,
}

impl Cd {
    pub(super) fn new(k: usize, visible: VisibleChain) -> Self {
        Self { k, visible }
    }
}

impl Estimator for Cd {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let (k, visible, rbm, step) = (self.k, self.visible, update.rbm(), update.step());
        let negative = update.work_from_rows(|minibatch, b, h, scratch| {
            let n_rows = minibatch.block_rows(b).len();
            let clocks = (0..n_rows).map(|r| step.chain_clock(k, b * BLOCK + r)).collect();
            let mut chains = Chains::new(rbm, visible, h, clocks);
            let means = chains.advance(rbm, k, scratch);
            minibatch.pairs(b, chains.v(), means)
        });
        let total = total_weight(&negative);
        gradient.add(negative, (-1.0 / total) as f32);
        Ok(true)
    }
}
