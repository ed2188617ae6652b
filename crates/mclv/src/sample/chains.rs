//! Run one block-Gibbs chain for each sample.

use super::Given;
use crate::bits::{BitRows, words_for};
use crate::chain::{Chains, Clock, VisibleChain};
use crate::data::{RealRows, Rows};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::numpy::{to_npy, to_npz};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
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
mod tests {
    use super::*;
    use crate::model::tests::{all_states, random_rbm};
    use crate::progress::Silent;
    use crate::sample::Known;
    use std::sync::atomic::AtomicBool;

    /// `p(v)` of every state by enumeration.
    fn probabilities(rbm: &Rbm) -> Vec<f64> {
        let f = rbm.free_energy(&Rows::Bits(all_states(rbm.n_visible()))).unwrap();
        let weights: Vec<f64> = f.iter().map(|f| (-f).exp()).collect();
        let z: f64 = weights.iter().sum();
        weights.iter().map(|w| w / z).collect()
    }

    /// `p(v | v & mask == known)` of every state.
    fn conditioned(p: &[f64], mask: usize, known: usize) -> Vec<f64> {
        let keep = |(s, &p): (usize, &f64)| if s & mask == known { p } else { 0.0 };
        let z: f64 = p.iter().enumerate().map(keep).sum();
        p.iter().enumerate().map(keep).map(|p| p / z).collect()
    }

    fn draw(p: &[f64], u: f64) -> usize {
        let mut sum = 0.0;
        p.iter()
            .position(|p| {
                sum += p;
                u < sum
            })
            .unwrap_or(p.len() - 1)
    }

    /// Total variation between `p` and the states, in units of what `n` exact draws would show on average at most.
    fn distance(p: &[f64], states: &[usize]) -> f64 {
        let n = states.len() as f64;
        let mut counts = vec![0.0; p.len()];
        states.iter().for_each(|&s| counts[s] += 1.0 / n);
        let tv = p.iter().zip(&counts).map(|(p, c)| (p - c).abs()).sum::<f64>() / 2.0;
        tv / (p.iter().map(|p| (p * (1.0 - p) / n).sqrt()).sum::<f64>() / 2.0)
    }

    fn states(samples: &Samples) -> Vec<usize> {
        samples.v.words().iter().map(|&w| w as usize).collect()
    }

    fn settings(n_samples: usize, burn_in: u32, seed: u64) -> SampleSettings {
        SampleSettings { n_samples, burn_in, means: false, seed }
    }

    /// From exact draws, any number of steps gives exact draws: TV stays within four times its Monte Carlo floor
    /// (false alarm far below 1e-6). A sampler of a model without its hidden biases does not.
    #[test]
    fn exact_draws_stay_exact_and_those_of_a_broken_model_do_not() {
        let n = 200_000;
        let rbm = random_rbm(5, 3, 1.5, 120);
        let broken = Rbm::new(5, 3, &rbm.weights(), rbm.visible_bias(), &[0.0; 3]).unwrap();
        let p = probabilities(&rbm);
        let mut rng = stream(121, Purpose::SelfTest, 0).reader();
        let exact: Vec<usize> = (0..n).map(|_| draw(&p, rng.uniform())).collect();
        let rows = Rows::Bits(all_states(5).select(&exact));
        for steps in [1, 3] {
            let of = |rbm: &Rbm| {
                let samples = sample(rbm, &settings(n, steps, 122), Start::Rows(&rows), None, &Silent);
                distance(&p, &states(&samples.unwrap()))
            };
            assert!(of(&rbm) < 4.0, "{} after {steps} steps", of(&rbm));
            assert!(of(&broken) > 4.0, "the control must be caught");
        }
    }

    /// A chain that mixes forgets the biases it began with; before the first steps it has not (same criterion).
    #[test]
    fn chains_from_the_biases_reach_the_model() {
        let rbm = random_rbm(5, 3, 1.0, 123);
        let p = probabilities(&rbm);
        let after = |steps| {
            let samples = sample(&rbm, &settings(100_000, steps, 124), Start::Bias, None, &Silent);
            distance(&p, &states(&samples.unwrap()))
        };
        assert!(after(200) < 4.0, "{}", after(200));
        assert!(after(1) > 4.0, "one step is not enough: {}", after(1));
    }

    /// Chains with two sets of known values, one after the other: each half has its own conditional distribution
    /// (criterion as above), from exact starts and from the biases. Clamped at the start only, they drift away.
    #[test]
    fn known_units_condition_the_rest_and_only_if_clamped_in_every_step() {
        let n = 200_000;
        let rbm = random_rbm(5, 3, 1.5, 125);
        let (mask, known) = (0b10011, [0b00001, 0b10010]);
        let p = probabilities(&rbm);
        let targets = known.map(|k| conditioned(&p, mask, k));
        let given = Given::new(
            BitRows::from_words(5, vec![mask as u64]),
            // What stands at unknown units must not matter.
            BitRows::from_words(5, known.map(|k| k as u64 | 0b00100).to_vec()),
        )
        .unwrap();
        let mut rng = stream(126, Purpose::SelfTest, 0).reader();
        let exact: Vec<usize> = (0..n).map(|r| draw(&targets[r % 2], rng.uniform())).collect();
        let rows = Rows::Bits(all_states(5).select(&exact));
        let run = |start, given, steps| {
            let drawn = states(&sample(&rbm, &settings(n, steps, 127), start, given, &Silent).unwrap());
            [0, 1].map(|half| {
                // Only the unknown units are compared, so that the control is not caught by the known ones.
                let unknown = |p: &[f64]| {
                    let mut sums = vec![0.0; 32];
                    p.iter().enumerate().for_each(|(s, p)| sums[s & !mask] += p);
                    sums
                };
                let drawn: Vec<usize> = drawn.iter().skip(half).step_by(2).map(|s| s & !mask).collect();
                distance(&unknown(&targets[half]), &drawn)
            })
        };
        for (what, distances) in [
            ("exact starts", run(Start::Rows(&rows), Some(&given), 3)),
            ("biases", run(Start::Bias, Some(&given), 200)),
        ] {
            assert!(distances.iter().all(|&d| d < 4.0), "{what}: {distances:?}");
        }
        let drifting = run(Start::Rows(&rows), None, 3);
        assert!(drifting.iter().all(|&d| d > 4.0), "the control must be caught: {drifting:?}");
    }

    #[test]
    fn known_units_keep_their_values_in_samples_and_means() {
        let rbm = random_rbm(70, 9, 1.0, 128);
        let known = Known::Units("0-9,65".parse().unwrap()).mask(70, None).unwrap();
        let values: BitRows = BitRows::pack(70, &(0..3 * 70).collect::<Vec<_>>(), |i| i % 3 == 0);
        let given = Given::new(known, values.clone()).unwrap();
        let grey = Rows::Reals(RealRows::new(70, vec![0.5; 140]));
        for start in [Start::Bias, Start::Rows(&grey)] {
            let settings = SampleSettings { means: true, ..settings(20, 2, 129) };
            let samples = sample(&rbm, &settings, start, Some(&given), &Silent).unwrap();
            let means = samples.means.as_ref().unwrap();
            for r in 0..20 {
                for i in (0..10).chain([65]) {
                    let value = values.get(r % 3, i);
                    assert_eq!(samples.v.get(r, i), value);
                    assert_eq!(means.row(r)[i], f32::from(u8::from(value)));
                }
            }
            assert!(means.values().iter().any(|&m| m > 0.01 && m < 0.99));
        }
    }

    #[test]
    fn threads_and_the_number_of_samples_do_not_matter() {
        let rbm = random_rbm(70, 20, 0.5, 130);
        let run = |n_threads, n_samples| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let settings = SampleSettings { means: true, ..settings(n_samples, 5, 131) };
            pool.install(|| sample(&rbm, &settings, Start::Bias, None, &Silent).unwrap())
        };
        let one = run(1, 100);
        assert!(run(2, 100) == one && run(5, 100) == one);
        let fewer = run(2, 37);
        assert_eq!(fewer.v.words(), one.v.rows(0, 37));
        assert_eq!(fewer.means.unwrap().values(), &one.means.unwrap().values()[..37 * 70]);
    }

    /// Other values are other results: that is for the changelog.
    #[test]
    fn samples_are_stable() {
        let rbm = random_rbm(20, 6, 1.0, 132);
        let settings = SampleSettings { means: true, ..settings(4, 10, 42) };
        let samples = sample(&rbm, &settings, Start::Bias, None, &Silent).unwrap();
        assert_eq!(samples.v.words(), [642_489, 388_264, 1_033_886, 836_993]);
        assert_eq!(samples.means.unwrap().row(0)[0], 0.823_376_7);
    }

    #[test]
    fn bad_settings_are_refused_and_stopping_stops() {
        let rbm = random_rbm(4, 2, 1.0, 133);
        let error = |settings: SampleSettings, start| {
            sample(&rbm, &settings, start, None, &Silent).unwrap_err().to_string()
        };
        assert!(error(settings(0, 1, 0), Start::Bias).starts_with("n-samples = 0 is not allowed"));
        assert!(error(settings(usize::MAX / 2, 1, 0), Start::Bias).contains("at most 2^33 values"));
        assert!(error(settings(1, 0, 0), Start::Bias).starts_with("burn-in = 0 is not allowed"));
        assert!(error(settings(1, u32::MAX, 0), Start::Bias).contains("at most 2147483646"));
        let wide = Rows::Bits(BitRows::zeros(1, 5));
        assert!(error(settings(1, 1, 0), Start::Rows(&wide)).contains("expected 4, got 5"));
        let none = Rows::Bits(BitRows::zeros(0, 4));
        assert!(error(settings(1, 1, 0), Start::Rows(&none)).contains("is empty"));
        let given = Given::new(BitRows::from_words(5, vec![1]), BitRows::zeros(1, 5)).unwrap();
        let width = sample(&rbm, &settings(1, 1, 0), Start::Bias, Some(&given), &Silent).unwrap_err();
        assert!(width.to_string().contains("expected 4, got 5"), "{width}");
        let stop = AtomicBool::new(true);
        let stopped = sample(&rbm, &settings(40, 1000, 0), Start::Bias, None, &stop);
        assert!(matches!(stopped, Err(Error::Cancelled)));
    }

    #[test]
    fn numpy_files_hold_bytes_and_floats() {
        let samples = Samples {
            v: BitRows::pack(2, &[1, 0, 1, 1], |&x| x == 1),
            means: Some(RealRows::new(2, vec![0.5, 0.25, 0.75, 1.0])),
            mixing: None,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.npz");
        std::fs::write(&path, samples.to_npz()).unwrap();
        let mut archive = crate::numpy::Archive::open(&path).unwrap();
        let bits = archive.array("samples").unwrap();
        assert_eq!((bits.shape, bits.values), (vec![2, 2], vec![1.0, 0.0, 1.0, 1.0]));
        assert_eq!(archive.array("means").unwrap().values, [0.5, 0.25, 0.75, 1.0]);
        let descr = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..60]).into_owned();
        assert!(descr(&samples.to_npy()).contains("'<f4'"));
        let bare = Samples { means: None, ..samples };
        assert!(descr(&bare.to_npy()).contains("'|u1'"));
        assert!(bare.to_npy().ends_with(&[1, 0, 1, 1]));
    }
}
