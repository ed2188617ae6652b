//! Run one block-Gibbs chain for each sample.

use super::draw::{Samples, Start};
use super::{Given, SampleMethod};
use crate::bits::{BitRows, words_for};
use crate::chain::{Chains, Clock, Probe, Records, VisibleChain, scatter};
use crate::data::{RealRows, Rows};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::{Scratch, ThreadScratch};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains per unit of parallel work. No result depends on this number.
pub(super) const BLOCK: usize = 16;

/// Steps between two checks for cancellation.
const STEPS_PER_ROUND: u32 = 64;

/// The number of times that the chains of the first block are recorded over the second half of
/// their steps. These few records cost almost nothing.
const RECORDS: u32 = 256;

/// The number of chains from random states that the first block is compared with.
const WITNESSES: usize = BLOCK;

/// How many chains to run, and how long.
#[derive(Clone, Copy)]
pub(super) struct ChainSettings {
    pub(super) n_samples: usize,
    pub(super) burn_in: u32,
    pub(super) means: bool,
    pub(super) seed: u64,
}

/// Draws each sample from a chain of its own. See [`sample`](super::sample).
pub(super) fn by_gibbs(
    rbm: &Rbm,
    settings: &ChainSettings,
    start: Start<'_>,
    given: Option<&Given>,
    progress: &dyn Progress,
) -> Result<Samples> {
    let (n_visible, n_samples) = (rbm.n_visible(), settings.n_samples);
    let mut v = BitRows::zeros(n_samples, n_visible);
    let n_words = v.n_words();
    let done = AtomicU64::new(0);
    let probe = Probe::new(rbm);
    // Of this rank's share.
    let total = n_samples as u64 * u64::from(settings.burn_in) / team::size() as u64;
    let of_block = |scratch: &mut ThreadScratch, (b, v): (usize, &mut [u64])| {
        let n_rows = v.len() / n_words;
        let first = b * BLOCK;
        let probe = (first == 0).then_some(&probe);
        let block = Block { rbm, first, n_rows, settings, given: Conditions { given, n: n_samples }, probe };
        block.run(v, Some(start), scratch, |n_steps| {
            let n = u64::from(n_steps) * n_rows as u64;
            progress.report(done.fetch_add(n, Ordering::Relaxed) + n, total);
            progress.cancelled()
        })
    };
    let blocks = team::share_changes(v.words_mut(), BLOCK * n_words, |first, words| {
        let blocks = words.par_chunks_mut(BLOCK * n_words).enumerate().map(|(k, v)| (first + k, v));
        blocks.map_init(Scratch::of_thread, of_block).collect()
    })?;
    let n_first = n_samples.min(BLOCK);
    let conditions = Conditions { given, n: n_first };
    // Every rank runs them: they are few.
    let witnesses =
        Block { rbm, first: 0, n_rows: WITNESSES, settings, given: conditions, probe: Some(&probe) };
    let mut ends = vec![0; WITNESSES * n_words];
    let witnesses = witnesses.run(&mut ends, None, &mut Scratch::of_thread(), |_| progress.cancelled())?;
    let group_of = |chain: usize| {
        let chain = if chain < n_first { chain } else { chain - n_first };
        conditions.number_of(chain)
    };
    let records = [(&blocks[0].records, n_first), (&witnesses.records, WITNESSES)];
    let mixing = probe.judge(&records, group_of, stride(settings.burn_in));
    let means = settings.means.then(|| {
        let blocks: Vec<Vec<f32>> = blocks.into_iter().map(|block| block.means).collect();
        RealRows::new(n_visible, blocks.concat())
    });
    Ok(Samples {
        v,
        means,
        mixing,
        method: SampleMethod::Gibbs,
        burn_in: Some(settings.burn_in),
        ladders: None,
        gibbs: None,
    })
}

/// The number of steps between two records.
pub(super) fn stride(burn_in: u32) -> u32 {
    (burn_in / 2).div_ceil(RECORDS).max(1)
}

/// The known values of the first `n` chains. Chains after them use the same values again.
#[derive(Clone, Copy)]
struct Conditions<'a> {
    given: Option<&'a Given>,
    n: usize,
}

impl<'a> Conditions<'a> {
    /// Returns the number of the distribution of a chain. Chains with the same number have the same
    /// known values.
    fn number_of(&self, chain: usize) -> usize {
        self.given.map_or(0, |given| given.row_number(chain % self.n))
    }

    /// Returns the known values of a chain, packed, with zeros elsewhere.
    fn row_of(&self, chain: usize) -> Option<&'a [u64]> {
        self.given.map(|given| given.row_of_chain(chain % self.n))
    }
}

/// The results of a block of chains besides its samples.
struct Finished {
    /// The last means, if they were requested.
    means: Vec<f32>,
    /// The records of the probe, if there is one.
    records: Records,
}
team::parcel!(Finished { means, records });

/// Chains that are advanced together.
struct Block<'a> {
    rbm: &'a Rbm,
    /// The first chain's number.
    first: usize,
    n_rows: usize,
    settings: &'a ChainSettings,
    given: Conditions<'a>,
    probe: Option<&'a Probe<'a>>,
}

impl Block<'_> {
    /// Runs all steps and leaves the samples in `v`. `pause` is called with the number of steps
    /// made and returns true to stop. Without a start, these are witnesses, which begin in random
    /// states and have their own random numbers.
    fn run(
        &self,
        v: &mut [u64],
        start: Option<Start<'_>>,
        scratch: &mut Scratch,
        pause: impl Fn(u32) -> bool,
    ) -> Result<Finished> {
        let (rbm, settings) = (self.rbm, self.settings);
        let purpose = if start.is_some() { Purpose::Sample } else { Purpose::SampleWitness };
        let mut means = settings.means.then(|| Tiles::zeros(self.n_rows, rbm.n_visible()));
        let mut chains = self.chains(purpose);
        match start {
            None => scatter(&mut chains, rbm, settings.seed, purpose, scratch),
            // No hidden unit is on, so only the visible biases act.
            Some(Start::Bias) => chains.sample_visible(rbm, scratch, None),
            Some(Start::Rows(rows)) => match rows.select(&self.cycle(rows.n_rows())) {
                Rows::Bits(rows) => chains.set_v_bits(rows.words()),
                Rows::Reals(rows) => chains.set_v_reals(rows.into_values()),
                Rows::Sparse(rows) => chains.set_v_reals(rows.to_reals().into_values()),
            },
        }
        // The first number of a chain is for its start. The second is not used.
        chains.set_clocks(|chain| self.clock(purpose, chain, 2));
        self.clamp(&mut chains);
        let mut records = Records::new();
        let stride = stride(settings.burn_in);
        for t in 1..=settings.burn_in {
            chains.draw_hidden(rbm, scratch, None);
            let wanted = means.as_mut().filter(|_| t == settings.burn_in);
            chains.sample_visible(rbm, scratch, wanted);
            self.clamp(&mut chains);
            if let Some(probe) = self.probe.filter(|_| t > settings.burn_in / 2 && t.is_multiple_of(stride)) {
                probe.record(&chains, scratch, &mut records);
            }
            let rest = t % STEPS_PER_ROUND;
            if rest == 0 || t == settings.burn_in {
                let n_steps = if rest == 0 { STEPS_PER_ROUND } else { rest };
                if pause(n_steps) {
                    return Err(Error::Cancelled);
                }
            }
        }
        v.copy_from_slice(chains.v_bits());
        let mut means = means.map_or_else(Vec::new, |means| means.to_rows());
        if !means.is_empty() {
            self.clamp_reals(&mut means);
        }
        Ok(Finished { means, records })
    }

    /// Creates chains with no hidden unit on.
    fn chains(&self, purpose: Purpose) -> Chains {
        let h = vec![0; self.n_rows * words_for(self.rbm.n_hidden())];
        let clocks = (0..self.n_rows).map(|chain| self.clock(purpose, chain, 0)).collect();
        Chains::new(self.rbm, VisibleChain::Sampled, h, clocks)
    }

    /// Returns the random numbers of one chain of the block, from half-step `next` on.
    fn clock(&self, purpose: Purpose, chain: usize, next: u32) -> Clock {
        Clock::new(stream(self.settings.seed, purpose, (self.first + chain) as u64), next)
    }

    /// Returns the row, out of `n`, that each chain takes.
    fn cycle(&self, n: usize) -> Vec<usize> {
        (self.first..self.first + self.n_rows).map(|chain| chain % n).collect()
    }

    fn clamp(&self, chains: &mut Chains) {
        if self.given.given.is_some() {
            chains.change_v(|v| self.clamp_bits(v), |v| self.clamp_reals(v));
        }
    }

    fn clamp_bits(&self, v: &mut [u64]) {
        let Some(mask) = self.given.given.map(Given::mask) else { return };
        for (row, chain) in v.chunks_exact_mut(words_for(self.rbm.n_visible())).zip(self.first..) {
            let known = mask.row(0).iter().zip(self.given.row_of(chain).into_iter().flatten());
            row.iter_mut().zip(known).for_each(|(word, (mask, value))| *word = *word & !mask | value);
        }
    }

    fn clamp_reals(&self, v: &mut [f32]) {
        let Some(mask) = self.given.given.map(Given::mask) else { return };
        for (row, chain) in v.chunks_exact_mut(self.rbm.n_visible()).zip(self.first..) {
            crate::bits::ones(mask.row(0)).for_each(|i| row[i] = 0.0);
            self.given.row_of(chain).into_iter().flat_map(crate::bits::ones).for_each(|i| row[i] = 1.0);
        }
    }
}

#[cfg(test)]
mod tests;
