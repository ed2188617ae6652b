//! Persistent contrastive divergence: chains that go on from update to update (Tieleman 2008).
//!
//! **Guarantee**: none while parameters move; for fixed parameters the chains leave the model's distribution invariant,
//! and averages over them converge to the exact gradient.

use super::moments::BLOCK;
use super::{Moments, NegativePhase, PairBlock, PhaseState, PositiveBlock, Step, VisibleChain, chain};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::{Error, Result};
use rayon::prelude::*;

pub(super) struct Pcd {
    k: usize,
    n_chains: usize,
    visible: VisibleChain,
    /// The hidden states of the chains; none before the first update.
    h: BitRows,
    /// Those at the beginning of the epoch.
    before: BitRows,
}

impl Pcd {
    pub(super) fn new(k: usize, n_chains: usize, visible: VisibleChain) -> Self {
        Self { k, n_chains, visible, h: BitRows::default(), before: BitRows::default() }
    }
}

/// Begin chains at `h ~ p(h|v)` of the rows of a minibatch, or of as many rows of the data as there are chains.
pub(super) fn first_states(
    rbm: &Rbm,
    data: &Rows,
    positive: &[PositiveBlock],
    n_chains: usize,
    seed: u64,
) -> Result<BitRows> {
    let n_batch: usize = positive.iter().map(|b| b.n_rows).sum();
    let n = if n_chains == 0 { n_batch } else { n_chains };
    let draws = |r: usize| stream(seed, Purpose::FirstStates, r as u64).at(0);
    let rows = if n == n_batch {
        positive_rows(rbm, positive)
    } else {
        let chosen: Vec<usize> = {
            let mut rng = stream(seed, Purpose::FirstStates, u64::from(u32::MAX)).reader();
            (0..n).map(|_| rng.below(data.n_rows() as u64) as usize).collect()
        };
        data.select(&chosen)
    };
    rbm.sample_h_from_v(&rows, draws)
}

fn positive_rows(rbm: &Rbm, positive: &[PositiveBlock]) -> Rows {
    use super::Visible;
    use crate::data::RealRows;
    let bits = positive.iter().all(|b| matches!(b.v, Visible::Bits(_)));
    if bits {
        let words = positive.iter().flat_map(|b| match &b.v {
            Visible::Bits(words) => words.as_slice(),
            Visible::Reals(_) => &[],
        });
        Rows::Bits(BitRows::from_words(rbm.n_visible(), words.copied().collect()))
    } else {
        let values = positive.iter().flat_map(|b| match &b.v {
            Visible::Reals(values) => values.as_slice(),
            Visible::Bits(_) => &[],
        });
        Rows::Reals(RealRows::new(rbm.n_visible(), values.copied().collect()))
    }
}

impl NegativePhase for Pcd {
    fn subtract(
        &mut self,
        rbm: &Rbm,
        data: &Rows,
        positive: &[PositiveBlock],
        step: Step,
        moments: &mut Moments,
        _progress: &dyn Progress,
    ) -> Result<bool> {
        if self.h.n_rows() == 0 {
            self.h = first_states(rbm, data, positive, self.n_chains, step.seed)?;
        }
        let n_words = self.h.n_words();
        let (k, visible) = (self.k, self.visible);
        let blocks: Vec<PairBlock> = self
            .h
            .words_mut()
            .par_chunks_mut(BLOCK * n_words)
            .enumerate()
            .map(|(b, h)| {
                let draws = |r: usize, t: u32| {
                    let row = (b * BLOCK + r) as u64;
                    let first = step.update * 2 * k as u32;
                    stream(step.seed, Purpose::Chain, u64::from(step.epoch) << 24 | row).at(first + t)
                };
                let n_rows = h.len() / n_words;
                let (v, means) = chain::advance(rbm, h, k, visible, n_rows, draws);
                PairBlock::new(v.states(), rbm.n_visible(), means)
            })
            .collect();
        moments.add(blocks, (-1.0 / self.h.n_rows() as f64) as f32);
        Ok(true)
    }

    fn take_chains_moved(&mut self) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, self.h.clone());
        let n_bits = before.n_rows() * before.n_bits();
        let changed: u32 = before.words().iter().zip(self.h.words()).map(|(x, y)| (x ^ y).count_ones()).sum();
        (n_bits > 0).then(|| f64::from(changed) / n_bits as f64)
    }

    fn state(&self) -> PhaseState {
        let words = |name: &str, rows: &BitRows| (name.to_owned(), rows.words().to_vec());
        PhaseState {
            words: vec![words("chains", &self.h), words("before", &self.before)],
            numbers: Vec::new(),
        }
    }

    fn restore(&mut self, rbm: &Rbm, state: &PhaseState) -> Result<()> {
        let rows = |what: &'static str| {
            let words = state.words(what).ok_or(Error::MissingState { what })?;
            Ok(BitRows::from_words(rbm.n_hidden(), words.to_vec()))
        };
        self.h = rows("chains")?;
        self.before = rows("before").unwrap_or_default();
        Ok(())
    }
}
