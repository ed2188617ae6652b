//! Collect the pairs `(v, h)` that tours visit.

use super::super::PairBlock;
use crate::chain::{Chains, VisibleChain};
use crate::model::Rbm;
use crate::settings::Statistics;
use crate::tour::Place;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, means};
use mclv_kernels::tiles::Tiles;

/// The pairs visited along the tours of one block. Memory for all of them is allocated at the
/// beginning.
pub(super) struct Pairs<'a> {
    rbm: &'a Rbm,
    statistics: Statistics,
    v_bits: Vec<u64>,
    v_reals: Vec<f32>,
    /// One row for each pair, `n_hidden` numbers.
    h: Vec<f32>,
    /// The tour that each pair belongs to.
    tour: Vec<usize>,
    /// `E[h|v]` of the step that is being made.
    hidden_means: Tiles,
    /// `E[v|h]` of the step that is being made.
    visible_means: Tiles,
}

impl<'a> Pairs<'a> {
    /// Allocates memory for `n_pairs` pairs.
    pub(super) fn new(rbm: &'a Rbm, statistics: Statistics, chain: VisibleChain, n_pairs: usize) -> Self {
        let reals = chain == VisibleChain::MeanField || statistics == Statistics::MeanVisible;
        let (n_bits, n_reals) = if reals { (0, n_pairs) } else { (n_pairs, 0) };
        Self {
            rbm,
            statistics,
            v_bits: Vec::with_capacity(n_bits * crate::bits::words_for(rbm.n_visible())),
            v_reals: Vec::with_capacity(n_reals * rbm.n_visible()),
            h: Vec::with_capacity(n_pairs * rbm.n_hidden()),
            tour: Vec::with_capacity(n_pairs),
            hidden_means: Tiles::zeros(0, rbm.n_hidden()),
            visible_means: Tiles::zeros(0, rbm.n_visible()),
        }
    }

    /// Returns the buffer for `E[h|v]` of a step of `n` tours, if the statistics use `E[h|v]`.
    pub(super) fn hidden_means(&mut self, n: usize) -> Option<Tiles> {
        (self.statistics == Statistics::MeanHidden).then(|| {
            let mut means = std::mem::replace(&mut self.hidden_means, Tiles::zeros(0, 0));
            means.set_n_rows(n);
            means
        })
    }

    /// Takes the joint states `(v_k, h_k)`, one for each tour.
    pub(super) fn visit(&mut self, chains: &Chains, places: &[Place], scratch: &mut Scratch) {
        self.tour.extend(places.iter().map(|place| place.tour));
        if self.statistics != Statistics::MeanHidden {
            let n_hidden = self.rbm.n_hidden();
            for chain in 0..chains.len() {
                let from = self.h.len();
                self.h.resize(from + n_hidden, 0.0);
                crate::bits::ones(chains.h_of(chain)).for_each(|j| self.h[from + j] = 1.0);
            }
        }
        match chains.v() {
            States::Bits(_) if self.statistics == Statistics::MeanVisible => {
                self.visible_means.set_n_rows(chains.len());
                let (h, to) = (States::Bits(chains.h()), &mut self.visible_means);
                means(Isa::best(), self.rbm.down(), h, scratch, to);
                self.visible_means.append_rows(&mut self.v_reals);
            }
            States::Bits(words) => self.v_bits.extend_from_slice(words),
            States::Reals(values) => self.v_reals.extend_from_slice(values),
            States::Sparse(_) => unreachable!("chains hold bits or means"),
        }
    }

    /// Takes `E[h|v]` of the step.
    pub(super) fn arrive(&mut self, means: Option<Tiles>) {
        if let Some(means) = means {
            means.append_rows(&mut self.h);
            self.hidden_means = means;
        }
    }

    /// Returns all pairs whose tour has a positive weight as one block, or `None` if there are
    /// none.
    pub(super) fn into_block(self, weight: impl Fn(usize) -> f32) -> Option<PairBlock> {
        let weights: Vec<f32> = self.tour.iter().map(|&tour| weight(tour)).collect();
        if weights.iter().all(|&w| w == 0.0) {
            return None;
        }
        let v =
            if self.v_reals.is_empty() { States::Bits(&self.v_bits) } else { States::Reals(&self.v_reals) };
        let h = Tiles::from_rows(weights.len(), self.rbm.n_hidden(), &self.h);
        if weights.iter().all(|&w| w == 1.0) {
            Some(PairBlock::new(v, self.rbm.n_visible(), h))
        } else {
            Some(PairBlock::weighted(v, self.rbm.n_visible(), h, &weights))
        }
    }
}
