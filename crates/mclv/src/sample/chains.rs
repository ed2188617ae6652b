//! Run one block-Gibbs chain for each sample.

use super::Given;
use crate::bits::{BitRows, words_for};
use crate::chain::{Chains, Clock, VisibleChain};
use crate::data::{RealRows, Rows};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::numpy::{to_npy, to_npz};
use crate::progress::{Progress, Silent};
use crate::rng::{Purpose, Rng, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{self, Scratch, ThreadScratch};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains per unit of parallel work. Fixed, though no result depends on it.
const BLOCK: usize = 16;

/// Steps between two looks at whether to stop.
const STEPS_PER_ROUND: u32 = 64;

/// The longest chain: each step takes two numbers of its stream's 2³², the start two more.
const MAX_STEPS: u32 = u32::MAX / 2 - 1;

/// Free energies recorded of each chain of the first block, over the second half of its steps: too few to be felt.
const RECORDS: u32 = 256;

/// Values in all samples together, a byte each in a file.
const MAX_VALUES: usize = 1 << 33;

/// How many samples to draw, and how long each chain runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSettings {
    /// Samples, each from a chain of its own.
    pub n_samples: usize,
    /// Block-Gibbs steps from a chain's start to its sample.
    pub burn_in: u32,
    /// Whether to keep `E[v|h]` of the last step too.
    pub means: bool,
    /// Seed of the chains.
    pub seed: u64,
}

impl Default for SampleSettings {
    /// 64 samples after 1000 steps.
    fn default() -> Self {
        Self { n_samples: 64, burn_in: 1000, means: false, seed: 0 }
    }
}

/// Where chains begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// At draws from the visible biases alone: independent units.
    Bias,
    /// Chain `r` at row `r`, after the last row from the first again. Grey rows are taken as they are.
    Rows(&'a Rows),
}

/// What [`sample`] draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The sampled `v`, a row each.
    pub v: BitRows,
    /// `E[v|h]` at the hidden states that `v` was drawn from, if asked for: the same samples, smoothed. Units whose
    /// values were given have these.
    pub means: Option<RealRows>,
    /// How the free energy of the first 16 chains moved over the second half of their steps, times in steps; `None` if
    /// that was too short to say. Chains with different known units are not compared with each other.
    pub mixing: Option<Mixing>,
}

impl Samples {
    /// What there is to look at: the means if they were asked for, else the samples.
    pub fn rows(&self) -> Rows {
        match &self.means {
            Some(means) => Rows::Reals(means.clone()),
            None => Rows::Bits(self.v.clone()),
        }
    }

    /// The bytes of a `.npy` file: the means (f32) if they were asked for, else the samples (u8, 0 and 1).
    pub fn to_npy(&self) -> Vec<u8> {
        self.means.as_ref().map_or_else(|| bits_to_npy(&self.v), reals_to_npy)
    }

    /// The bytes of an `.npz` file: `samples` (u8, 0 and 1) and, if they were asked for, `means` (f32).
    pub fn to_npz(&self) -> Vec<u8> {
        let mut arrays = vec![("samples", bits_to_npy(&self.v))];
        arrays.extend(self.means.as_ref().map(|means| ("means", reals_to_npy(means))));
        to_npz(&arrays)
    }
}

fn bits_to_npy(rows: &BitRows) -> Vec<u8> {
    let mut bytes = vec![0u8; rows.n_rows() * rows.n_bits()];
    for (r, row) in bytes.chunks_exact_mut(rows.n_bits()).enumerate() {
        crate::bits::ones(rows.row(r)).for_each(|i| row[i] = 1);
    }
    to_npy(&[rows.n_rows(), rows.n_bits()], &bytes)
}

fn reals_to_npy(rows: &RealRows) -> Vec<u8> {
    to_npy(&[rows.n_rows(), rows.n_columns()], rows.values())
}

/// Draw `v` from `p(v)`, or from `p(v_unknown | v_known)`, with a block-Gibbs chain for each sample.
///
/// A step draws `h ~ p(h|v)` and then `v ~ p(v|h)`; known units are set to their values at the start and after each
/// draw of `v`, which makes the chain one for the conditional distribution.
///
/// # Guarantee
/// Samples are independent of each other given their starts. Each step leaves the target distribution invariant, but
/// **nothing says that `burn_in` steps reach it**: where the model has modes that chains seldom leave, samples
/// remember where they began. The same seed gives the same samples for any number of threads, and the first `n` of
/// many samples are the `n` samples of a shorter run.
///
/// # Cost
/// `n_samples × burn_in` steps, each about as dear as the random numbers of all its units.
///
/// ```
/// use mclv::{Rbm, progress::Silent, sample::{SampleSettings, Start, sample}};
/// // The one visible unit is almost always on.
/// let rbm = Rbm::new(1, 1, &[0.0], &[9.0], &[0.0])?;
/// let settings = SampleSettings { n_samples: 100, burn_in: 3, ..Default::default() };
/// let samples = sample(&rbm, &settings, Start::Bias, None, &Silent)?;
/// assert!((0..100).filter(|&r| samples.v.get(r, 0)).count() > 95);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there is nothing to draw, a width is not the model's, or the listener says stop.
pub fn sample(
    rbm: &Rbm,
    settings: &SampleSettings,
    start: Start<'_>,
    given: Option<&Given>,
    progress: &dyn Progress,
) -> Result<Samples> {
    check(rbm, settings, start, given)?;
    let (n_visible, n_samples) = (rbm.n_visible(), settings.n_samples);
    let mut v = BitRows::zeros(n_samples, n_visible);
    let n_words = v.n_words();
    let done = AtomicU64::new(0);
    // Of this rank's share.
    let total = n_samples as u64 * u64::from(settings.burn_in) / team::size() as u64;
    let of_block = |scratch: &mut ThreadScratch, (b, v): (usize, &mut [u64])| {
        let n_rows = v.len() / n_words;
        let block = Block { rbm, first: b * BLOCK, n_rows, seed: settings.seed, given };
        block.run(v, start, settings, scratch, |n_steps| {
            let n = u64::from(n_steps) * n_rows as u64;
            progress.report(done.fetch_add(n, Ordering::Relaxed) + n, total);
            progress.cancelled()
        })
    };
    let blocks = team::share_changes(v.words_mut(), BLOCK * n_words, |first, words| {
        let blocks = words.par_chunks_mut(BLOCK * n_words).enumerate().map(|(k, v)| (first + k, v));
        blocks.map_init(Scratch::of_thread, of_block).collect()
    })?;
    let mixing = judge(&blocks[0].energies, n_samples.min(BLOCK), settings.burn_in, given.is_some());
    let means = settings.means.then(|| {
        let blocks: Vec<Vec<f32>> = blocks.into_iter().map(|block| block.means).collect();
        RealRows::new(n_visible, blocks.concat())
    });
    Ok(Samples { v, means, mixing })
}

impl Rbm {
    /// Draws `n_samples` visible states, each from a Gibbs chain of its own that makes `burn_in` steps from independent units.
    /// `rng` is any generator with `rand`'s trait; one number of it is the seed of all chains.
    ///
    /// # Guarantee
    /// That of [`sample`], which has more to choose from: starts, known units, means, and how the chains mixed.
    ///
    /// ```
    /// use mclv::{Rbm, rng::{Purpose, stream}};
    /// let rbm = Rbm::new(2, 1, &[0.0, 0.0], &[9.0, -9.0], &[0.0])?;
    /// let samples = rbm.sample(10, 5, &mut stream(1, Purpose::Sample, 0).reader())?;
    /// assert!((0..10).all(|r| samples.get(r, 0) && !samples.get(r, 1)));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn sample(&self, n_samples: usize, burn_in: u32, rng: &mut (impl Rng + ?Sized)) -> Result<BitRows> {
        let settings = SampleSettings { n_samples, burn_in, means: false, seed: rng.next_u64() };
        Ok(sample(self, &settings, Start::Bias, None, &Silent)?.v)
    }
}

/// Steps between two recorded energies.
fn stride(burn_in: u32) -> u32 {
    (burn_in / 2).div_ceil(RECORDS).max(1)
}

/// What the energies of `n_chains` chains, recorded together, say.
fn judge(energies: &[f64], n_chains: usize, burn_in: u32, conditional: bool) -> Option<Mixing> {
    let mut chains: Vec<Vec<f64>> =
        (0..n_chains).map(|r| energies.iter().skip(r).step_by(n_chains).copied().collect()).collect();
    if conditional {
        // Each chain has a distribution of its own: only its changes count.
        for chain in &mut chains {
            let mean = chain.iter().sum::<f64>() / chain.len().max(1) as f64;
            chain.iter_mut().for_each(|x| *x -= mean);
        }
    }
    let mixing = Mixing::new(&chains)?;
    let autocorrelation_time = mixing.autocorrelation_time * f64::from(stride(burn_in));
    Some(Mixing { autocorrelation_time, ..mixing })
}

fn check(rbm: &Rbm, settings: &SampleSettings, start: Start<'_>, given: Option<&Given>) -> Result<()> {
    let invalid = |name, value: String, cure| Err(Error::InvalidSetting { name, value, cure });
    let n_values = settings.n_samples.checked_mul(rbm.n_visible());
    if settings.n_samples == 0 || n_values.is_none_or(|n| n > MAX_VALUES) {
        let cure = "at least 1 and at most 2^33 values in all; draw more in several runs with other seeds";
        return invalid("n-samples", settings.n_samples.to_string(), cure);
    }
    if settings.burn_in == 0 || settings.burn_in > MAX_STEPS {
        return invalid("burn-in", settings.burn_in.to_string(), "at least 1 step, at most 2147483646");
    }
    if let Start::Rows(rows) = start {
        rbm.check_width(rows.n_columns())?;
        if rows.n_rows() == 0 {
            return Err(Error::Empty {
                what: "the start of the chains".into(),
                cure: "give at least one row",
            });
        }
    }
    given.map_or(Ok(()), |given| rbm.check_width(given.n_visible()))
}

/// What a block of chains leaves beside its samples.
struct Finished {
    /// The last means, if they are wanted.
    means: Vec<f32>,
    /// `−F(v)` of all chains, again and again, if this is the first block.
    energies: Vec<f64>,
}
team::parcel!(Finished { means, energies });

/// Some chains that are advanced together.
struct Block<'a> {
    rbm: &'a Rbm,
    /// The first chain's number.
    first: usize,
    n_rows: usize,
    seed: u64,
    given: Option<&'a Given>,
}

impl Block<'_> {
    /// Run all steps; `pause` hears how many were made and says whether to stop. Leaves the samples in `v`.
    fn run(
        &self,
        v: &mut [u64],
        start: Start<'_>,
        settings: &SampleSettings,
        scratch: &mut Scratch,
        pause: impl Fn(u32) -> bool,
    ) -> Result<Finished> {
        let rbm = self.rbm;
        let mut means = settings.means.then(|| Tiles::zeros(self.n_rows, rbm.n_visible()));
        let mut chains = self.chains();
        match start {
            // No hidden unit is on: what is left is the visible biases.
            Start::Bias => chains.sample_visible(rbm, scratch, None),
            Start::Rows(rows) => match rows.select(&self.cycle(rows.n_rows())) {
                Rows::Bits(rows) => chains.set_v_bits(rows.words()),
                Rows::Reals(rows) => chains.set_v_reals(rows.into_values()),
                Rows::Sparse(rows) => chains.set_v_reals(rows.to_reals().into_values()),
            },
        }
        // The first number of a chain is for its start, the second is not used.
        chains.set_clocks(|chain| self.clock(chain, 2));
        self.clamp(&mut chains);
        let mut energies = Vec::new();
        let stride = stride(settings.burn_in);
        for t in 1..=settings.burn_in {
            chains.draw_hidden(rbm, scratch, None);
            let wanted = means.as_mut().filter(|_| t == settings.burn_in);
            chains.sample_visible(rbm, scratch, wanted);
            self.clamp(&mut chains);
            if self.first == 0 && t > settings.burn_in / 2 && t.is_multiple_of(stride) {
                let from = energies.len();
                energies.resize(from + self.n_rows, 0.0);
                let out = &mut energies[from..];
                layer::quick_log_weights(Isa::best(), rbm.up(), rbm.visible_bias(), chains.v(), scratch, out);
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
        Ok(Finished { means, energies })
    }

    /// Chains with no hidden unit on.
    fn chains(&self) -> Chains {
        let h = vec![0; self.n_rows * words_for(self.rbm.n_hidden())];
        let clocks = (0..self.n_rows).map(|chain| self.clock(chain, 0)).collect();
        Chains::new(self.rbm, VisibleChain::Sampled, h, clocks)
    }

    /// The random numbers of one chain of the block, from half-step `next` on.
    fn clock(&self, chain: usize, next: u32) -> Clock {
        Clock::new(stream(self.seed, Purpose::Sample, (self.first + chain) as u64), next)
    }

    /// Which of `n` rows each chain takes.
    fn cycle(&self, n: usize) -> Vec<usize> {
        (self.first..self.first + self.n_rows).map(|chain| chain % n).collect()
    }

    fn clamp(&self, chains: &mut Chains) {
        if self.given.is_some() {
            chains.change_v(|v| self.clamp_bits(v), |v| self.clamp_reals(v));
        }
    }

    fn clamp_bits(&self, v: &mut [u64]) {
        let Some(given) = self.given else { return };
        for (row, chain) in v.chunks_exact_mut(words_for(self.rbm.n_visible())).zip(self.first..) {
            let known = given.mask().row(0).iter().zip(given.row_of_chain(chain));
            row.iter_mut().zip(known).for_each(|(word, (mask, value))| *word = *word & !mask | value);
        }
    }

    fn clamp_reals(&self, v: &mut [f32]) {
        let Some(given) = self.given else { return };
        for (row, chain) in v.chunks_exact_mut(self.rbm.n_visible()).zip(self.first..) {
            crate::bits::ones(given.mask().row(0)).for_each(|i| row[i] = 0.0);
            crate::bits::ones(given.row_of_chain(chain)).for_each(|i| row[i] = 1.0);
        }
    }
}

#[cfg(test)]
mod tests;
