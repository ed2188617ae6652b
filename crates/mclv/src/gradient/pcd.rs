//! Persistent contrastive divergence: chains that go on from update to update (Tieleman 2008).
//!
//! **Guarantee**: none while parameters move; for fixed parameters the chains leave the model's distribution invariant,
//! and averages over them converge to the exact gradient.

use super::moments::BLOCK;
use super::{Moments, NegativePhase, PairBlock, PhaseState, Update, VisibleChain, chain};
use crate::bits::BitRows;
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::{Scratch, ThreadScratch};
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
pub(super) fn first_states(update: &Update<'_>, n_chains: usize) -> Result<BitRows> {
    let seed = update.step.seed;
    let rows = if n_chains == 0 || n_chains == update.rows.len() {
        update.data.select(update.rows)
    } else {
        let mut rng = stream(seed, Purpose::FirstStates, u64::from(u32::MAX)).reader();
        let n_rows = update.data.n_rows() as u64;
        let chosen: Vec<usize> = (0..n_chains).map(|_| rng.below(n_rows) as usize).collect();
        update.data.select(&chosen)
    };
    update.rbm.sample_h_from_v(&rows, |r| stream(seed, Purpose::FirstStates, r as u64).at(0))
}

impl NegativePhase for Pcd {
    fn subtract(&mut self, update: &Update<'_>, moments: &mut Moments) -> Result<Option<Vec<PairBlock>>> {
        if self.h.n_rows() == 0 {
            self.h = first_states(update, self.n_chains)?;
        }
        let Update { rbm, step, .. } = *update;
        let (k, visible, n_words) = (self.k, self.visible, self.h.n_words());
        let (n_rows, n_chains) = (update.n_blocks(), self.h.n_rows().div_ceil(BLOCK));
        let of_block = |scratch: &mut ThreadScratch, (b, h): (usize, Option<&mut [u64]>)| {
            let positive = (b < n_rows).then(|| update.positive(b, scratch));
            let negative = h.map(|h| {
                let draws = |r: usize, t: u32| step.chain_draws(k, b * BLOCK + r, t);
                let (v, means) = chain::advance(rbm, h, k, visible, h.len() / n_words, scratch, draws);
                PairBlock::new(v.states(), rbm.n_visible(), means)
            });
            (positive, negative)
        };
        // A block of rows goes with a block of chains, as far as there are both: equal work for all.
        let n_blocks = n_rows.max(n_chains);
        let h = self.h.words_mut();
        let both = team::share_all(n_blocks, |blocks| {
            let chunks = h.chunks_mut(BLOCK * n_words).map(Some).chain(std::iter::repeat_with(|| None));
            let work: Vec<_> = (0..blocks.end).zip(chunks).skip(blocks.start).collect();
            work.into_par_iter().map_init(Scratch::of_thread, of_block).collect()
        });
        team::exchange(h, BLOCK * n_words, n_blocks);
        let (positive, negative): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        moments.add(negative.into_iter().flatten(), (-1.0 / self.h.n_rows() as f64) as f32);
        Ok(Some(positive.into_iter().flatten().collect()))
    }

    fn take_chains_moved(&mut self) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, self.h.clone());
        let n_bits = before.n_rows() * before.n_bits();
        let changed: u32 = before.words().iter().zip(self.h.words()).map(|(x, y)| (x ^ y).count_ones()).sum();
        (n_bits > 0).then(|| f64::from(changed) / n_bits as f64)
    }

    fn chains(&self) -> Option<BitRows> {
        (self.h.n_rows() > 0).then(|| self.h.clone())
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
