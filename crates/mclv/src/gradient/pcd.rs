//! Persistent contrastive divergence: chains that continue from update to update (Tieleman 2008).
//!
//! **Guarantee**: none while parameters move. For fixed parameters the chains leave the model's
//! distribution invariant, and averages over them converge to the exact gradient.

use super::{Estimator, EstimatorInfo, Gradient, PairBlock, State, Update};
use crate::bits::BitRows;
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::{Error, Result};

pub(super) struct Pcd {
    k: usize,
    n_chains: Option<usize>,
    visible: VisibleChain,
    /// The chains, in blocks; none before the first update.
    blocks: Vec<Chains>,
    /// The hidden states of all chains at the beginning of the epoch.
    before: BitRows,
}

impl Pcd {
    pub(super) fn new(k: usize, n_chains: Option<usize>, visible: VisibleChain) -> Self {
        Self { k, n_chains, visible, blocks: Vec::new(), before: BitRows::default() }
    }

    /// The hidden states of all chains.
    fn h(&self) -> BitRows {
        hidden_states(self.blocks.iter())
    }
}

/// Draws the first states `h ~ p(h|v)` from the rows of a minibatch, or from `n_chains` rows of the
/// data.
pub(super) fn first_states(update: &Update<'_>, n_chains: Option<usize>) -> Result<BitRows> {
    let seed = update.step().seed;
    let rows = match n_chains {
        Some(n) if n != update.rows().len() => {
            let mut rng = stream(seed, Purpose::FirstStates, u64::from(u32::MAX)).reader();
            let n_rows = update.data().n_rows() as u64;
            let chosen: Vec<usize> = (0..n).map(|_| rng.below(n_rows) as usize).collect();
            update.data().select(&chosen)
        }
        _ => update.data().select(update.rows()),
    };
    update.rbm().sample_h_from_v(&rows, |r| stream(seed, Purpose::FirstStates, r as u64).at(0))
}

/// Cuts chains into blocks. Each update sets their clocks.
pub(super) fn in_blocks(rbm: &Rbm, visible: VisibleChain, h: &BitRows) -> Vec<Chains> {
    let unset = Clock::new(stream(0, Purpose::Chain, 0), 0);
    let block = |words: &[u64]| {
        let clocks = vec![unset; words.len() / h.n_words()];
        Chains::new(rbm, visible, words.to_vec(), clocks)
    };
    h.words().chunks(BLOCK * h.n_words().max(1)).map(block).collect()
}

/// The hidden states of all chains.
pub(super) fn hidden_states<'a>(blocks: impl Iterator<Item = &'a Chains> + Clone) -> BitRows {
    let Some(first) = blocks.clone().next() else { return BitRows::default() };
    BitRows::from_words(first.n_hidden(), blocks.flat_map(Chains::h).copied().collect())
}

impl Estimator for Pcd {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let (rbm, step, k) = (update.rbm(), update.step(), self.k);
        if self.blocks.is_empty() {
            self.blocks = in_blocks(rbm, self.visible, &first_states(update, self.n_chains)?);
        }
        let negative = update.work(&mut self.blocks, |b, chains, scratch| {
            chains.set_clocks(|r| step.chain_clock(k, b * BLOCK + r));
            let means = chains.advance(rbm, k, scratch);
            PairBlock::new(chains.v(), rbm.n_visible(), means)
        });
        let n_chains: usize = self.blocks.iter().map(Chains::len).sum();
        gradient.add(negative, (-1.0 / n_chains as f64) as f32);
        Ok(true)
    }

    fn take_info(&mut self) -> EstimatorInfo {
        let now = self.h();
        let before = std::mem::replace(&mut self.before, now);
        let n_bits = before.n_rows() * before.n_bits();
        let changed = before.words().iter().zip(self.before.words()).map(|(x, y)| (x ^ y).count_ones());
        let changed: u32 = changed.sum();
        let chains_moved = (n_bits > 0).then(|| f64::from(changed) / n_bits as f64);
        EstimatorInfo { chains_moved, ..EstimatorInfo::default() }
    }

    fn chains(&self) -> Option<BitRows> {
        (!self.blocks.is_empty()).then(|| self.h())
    }

    fn save(&self) -> State {
        State::default()
            .with_words("chains", self.h().words().to_vec())
            .with_words("before", self.before.words().to_vec())
    }

    fn restore(&mut self, rbm: &Rbm, state: &State) -> Result<()> {
        let n_hidden = rbm.n_hidden();
        let (chains, before) = (state.bit_rows("chains", n_hidden)?, state.bit_rows("before", n_hidden)?);
        let is_one_of = |n: usize, wanted: usize| n == 0 || n == wanted;
        if !is_one_of(chains.n_rows(), self.n_chains.unwrap_or(chains.n_rows())) {
            return Err(Error::MissingState { what: "chains" });
        }
        if !is_one_of(before.n_rows(), chains.n_rows()) {
            return Err(Error::MissingState { what: "before" });
        }
        (self.blocks, self.before) = (in_blocks(rbm, self.visible, &chains), before);
        Ok(())
    }
}
