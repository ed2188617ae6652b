//! Run one block-Gibbs chain for each sample.

use super::Given;
use crate::bits::{BitRows, words_for};
use crate::chain::{Chains, Clock, Probe, Records, VisibleChain, scatter};
use crate::data::{RealRows, Rows};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::numpy::{to_npy, to_npz};
use crate::progress::{Progress, Silent};
use crate::rng::{Purpose, Rng, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::{Scratch, ThreadScratch};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains per unit of parallel work. No result depends on this number.
const BLOCK: usize = 16;

/// Steps between two checks for cancellation.
const STEPS_PER_ROUND: u32 = 64;

/// The largest number of steps of a chain: each step takes two of its stream's 2³² numbers, and the
/// start takes two more.
const MAX_STEPS: u32 = u32::MAX / 2 - 1;

/// The number of times that the chains of the first block are recorded over the second half of
/// their steps. These few records cost almost nothing.
const RECORDS: u32 = 256;

/// The number of chains from random states that the first block is compared with.
const WITNESSES: usize = BLOCK;

/// The largest number of values in all samples together, a byte each in a file.
const MAX_VALUES: usize = 1 << 33;

/// Settings for [`sample`]: how many samples to draw, and how long each chain runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSettings {
    /// The number of samples, each from a chain of its own.
    pub n_samples: usize,
    /// The number of block-Gibbs steps from a chain's start to its sample.
    pub burn_in: u32,
    /// If true, `E[v|h]` of the last step is kept too.
    pub means: bool,
    /// The seed of the chains.
    pub seed: u64,
}

impl Default for SampleSettings {
    /// 64 samples, each after 1000 steps.
    fn default() -> Self {
        Self { n_samples: 64, burn_in: 1000, means: false, seed: 0 }
    }
}

/// The states that chains begin in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// Draws from the visible biases alone, as independent units.
    Bias,
    /// Chain `r` begins at row `r`, counting from the first row again after the last. Grey rows are
    /// used as they are.
    Rows(&'a Rows),
}

/// The result of [`sample`]: samples, their means, and how the chains mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The sampled `v`, one per row.
    pub v: BitRows,
    /// `E[v|h]` at the hidden states that `v` was drawn from, if requested: the same samples,
    /// smoothed. Known units have their given values.
    pub means: Option<RealRows>,
    /// How the first 16 chains mixed over the second half of their steps, with times in steps.
    /// `None` if that half was too short to judge. The chains are compared with 16 more chains that
    /// begin in random states, by the free energy and by the leading directions of the weights; the
    /// worst of these numbers counts. Chains with different known values are not compared with each
    /// other.
    pub mixing: Option<Mixing>,
}

impl Samples {
    /// Returns the rows to show: the means if they were requested, else the samples.
    pub fn rows(&self) -> Rows {
        match &self.means {
            Some(means) => Rows::Reals(means.clone()),
            None => Rows::Bits(self.v.clone()),
        }
    }

    /// Returns the bytes of a `.npy` file: the means (f32) if they were requested, else the samples
    /// (u8, 0 and 1).
    pub fn to_npy(&self) -> Vec<u8> {
        self.means.as_ref().map_or_else(|| bits_to_npy(&self.v), reals_to_npy)
    }

    /// Returns the bytes of an `.npz` file: `samples` (u8, 0 and 1) and, if they were requested,
    /// `means` (f32).
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

/// Draws `v` from `p(v)`, or from `p(v_unknown | v_known)`, with one block-Gibbs chain for each
/// sample.
///
/// A step draws `h ~ p(h|v)` and then `v ~ p(v|h)`. Known units are set to their values at the
/// start and after each draw of `v`, so that the chain has the conditional distribution as its
/// target.
///
/// # Guarantee
/// Samples are independent of each other given their starts. Each step leaves the target
/// distribution invariant, but **there is no guarantee that `burn_in` steps reach it**: if the
/// model has modes that chains seldom leave, samples depend on their starts. The same seed gives
/// the same samples for any number of threads, and the first `n` of many samples are the `n`
/// samples of a shorter run.
///
/// # Cost
/// `n_samples × burn_in` steps. A step costs about as much as the random numbers of all its units.
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
/// If there is nothing to draw, if a width is not the model's, or if the listener cancels.
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
    Ok(Samples { v, means, mixing })
}

impl Rbm {
    /// Draws `n_samples` visible states, each from a Gibbs chain that makes `burn_in` steps from
    /// independent units.
    ///
    /// `rng` is any generator with `rand`'s trait. One number of it becomes the seed of all chains.
    ///
    /// # Guarantee
    /// The guarantee of [`sample`]. That function has more options (starts, known units, means) and
    /// also reports how the chains mixed.
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

/// The number of steps between two records.
fn stride(burn_in: u32) -> u32 {
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
    settings: &'a SampleSettings,
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
