//! Contrastive divergence: a few Gibbs steps from the data (Hinton 2002).
//!
//! **Guarantee**: none at finite `k`; the bias vanishes as `k` grows.

use super::{Moments, NegativePhase, PairBlock, PositiveBlock, Step, VisibleChain, chain, moments::BLOCK};
use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
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
    fn wants_hidden_states(&self) -> bool {
        true
    }

    fn subtract(
        &mut self,
        rbm: &Rbm,
        _data: &Rows,
        positive: &[PositiveBlock],
        step: Step,
        moments: &mut Moments,
        _progress: &dyn Progress,
    ) -> Result<bool> {
        let blocks: Vec<PairBlock> = positive
            .par_iter()
            .enumerate()
            .map(|(b, block)| {
                let mut h = block.h.clone();
                let draws = |r: usize, t: u32| {
                    let row = (b * BLOCK + r) as u64;
                    let first = step.update * 2 * self.k as u32;
                    stream(step.seed, Purpose::Chain, u64::from(step.epoch) << 24 | row).at(first + t)
                };
                let (v, means) = chain::advance(rbm, &mut h, self.k, self.visible, block.n_rows, draws);
                match &block.weights {
                    None => PairBlock::new(v.states(), rbm.n_visible(), means),
                    Some(weights) => PairBlock::weighted(v.states(), rbm.n_visible(), means, weights),
                }
            })
            .collect();
        let total: f64 = blocks.iter().map(PairBlock::total_weight).sum();
        moments.add(blocks, (-1.0 / total) as f32);
        Ok(true)
    }
}
