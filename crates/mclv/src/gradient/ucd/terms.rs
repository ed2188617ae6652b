//! Collect the terms of sums: visible states with `E[h|v]` and a weight each.

use crate::chain::BLOCK;
use crate::gradient::PairBlock;
use crate::model::Rbm;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, means};
use mclv_kernels::tiles::Tiles;

/// Terms of many steps, in blocks of full size, whose outer products are cheaper.
pub(super) struct Terms<'a> {
    rbm: &'a Rbm,
    v: Vec<u64>,
    h: Vec<f32>,
    weights: Vec<f32>,
    full: Vec<PairBlock>,
}

impl<'a> Terms<'a> {
    pub(super) fn new(rbm: &'a Rbm) -> Self {
        Self { rbm, v: Vec::new(), h: Vec::new(), weights: Vec::new(), full: Vec::new() }
    }

    /// Adds a term for each visible state. `rows` and `weight` give its weight.
    pub(super) fn add_all(
        &mut self,
        v: &[u64],
        rows: &[usize],
        weight: &impl Fn(usize) -> f32,
        scratch: &mut Scratch,
    ) {
        let mut h = Tiles::zeros(rows.len(), self.rbm.n_hidden());
        means(Isa::best(), self.rbm.up(), States::Bits(v), scratch, &mut h);
        h.append_rows(&mut self.h);
        self.v.extend_from_slice(v);
        self.weights.extend(rows.iter().map(|&row| weight(row)));
        if self.weights.len() >= BLOCK {
            self.close();
        }
    }

    /// Makes a block of the terms collected so far.
    fn close(&mut self) {
        let (v, h, weights) =
            (std::mem::take(&mut self.v), std::mem::take(&mut self.h), std::mem::take(&mut self.weights));
        let h = Tiles::from_rows(weights.len(), self.rbm.n_hidden(), &h);
        self.full.push(PairBlock::weighted(States::Bits(&v), self.rbm.n_visible(), h, &weights));
    }

    /// Returns all terms.
    pub(super) fn into_blocks(mut self) -> Vec<PairBlock> {
        if !self.weights.is_empty() {
            self.close();
        }
        self.full
    }
}
