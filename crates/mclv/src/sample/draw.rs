//! Draw samples from a model by the method that suits it.

use super::chains::{BLOCK, ChainSettings, by_gibbs};
use super::tempering::{self, by_tempering};
use super::{Given, Ladders, SampleMethod};
use crate::bits::BitRows;
use crate::data::{RealRows, Rows, spins};
use crate::error::human_seconds;
use crate::mixing::{Doubt, Mixing};
use crate::model::Rbm;
use crate::numpy::{to_npy, to_npz};
use crate::partition::{CHEAP_SAMPLES, ExactSettings, NOMINAL_STEP, exact_pairs, nominal_seconds};
use crate::progress::{Progress, Silent};
use crate::rng::Rng;
use crate::{Error, Result};

/// The number of steps before the first sample if the caller names none.
pub(super) const BURN_IN: u32 = 1000;

/// The largest number of steps of a chain: each step takes two of its stream's 2³² numbers, and the
/// start takes two more.
const MAX_STEPS: u32 = u32::MAX / 2 - 1;

/// The largest number of values in all samples together, a byte each in a file.
const MAX_VALUES: usize = 1 << 33;

/// The most seconds, on a nominal machine, of an enumeration that the caller did not ask for.
const MAX_ENUMERATION: f64 = 60.0;

/// Exact samples are drawn from groups of this number of states. To draw from all groups takes as
/// long as this number of enumerations: measured 16 with 784 visible units, 25 with 64.
const STATES_PER_GROUP: f64 = 8192.0;
const DRAW_PASSES: f64 = 25.0;

/// Exact samples for a quick look may take this many seconds longer than Gibbs chains.
const QUICK: f64 = 0.1;

/// From this R-hat on, chains are said to differ whatever their autocorrelation time is.
const TOO_HIGH_R_HAT: f64 = 1.1;

/// From this share on, samples that have not been on the lowest rung are worth a warning.
const MAX_NOT_RENEWED: f64 = 0.01;

/// Settings for [`sample`]: how many samples to draw, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSettings {
    /// The number of samples.
    pub n_samples: usize,
    /// The method. With `None`, it is chosen by the rules of [`sample`].
    pub method: Option<SampleMethod>,
    /// The number of steps from the start of a chain, or of a ladder of chains, to its first sample.
    /// With `None`, 1000 steps; ladders make more if these are too few and the time allows it.
    pub burn_in: Option<u32>,
    /// If true, `E[v|h]` of the last step is kept too.
    pub means: bool,
    /// The seed of the chains.
    pub seed: u64,
}

impl Default for SampleSettings {
    /// 64 samples by the method that suits the model.
    fn default() -> Self {
        Self { n_samples: 64, method: None, burn_in: None, means: false, seed: 0 }
    }
}

/// The states that Gibbs chains begin in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// Draws from the visible biases alone, as independent units.
    Bias,
    /// Chain `r` begins at row `r`, counting from the first row again after the last. Grey rows are
    /// used as they are.
    Rows(&'a Rows),
}

/// The result of [`sample`]: samples, their means, the method, and how its chains mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The sampled `v`, one per row.
    pub v: BitRows,
    /// `E[v|h]` at the hidden states that `v` was drawn from, if requested: the same samples,
    /// smoothed. Known units have their given values.
    pub means: Option<RealRows>,
    /// The method that drew the samples.
    pub method: SampleMethod,
    /// How the chains mixed, with times in steps, by the free energy and by the leading directions
    /// of the weights; the worst of these numbers counts. Gibbs: the first 16 chains, over the
    /// second half of their steps, are compared with 16 more chains that begin in random states.
    /// Chains with different known values are not compared with each other. Tempering: the top
    /// rungs of 16 ladders, half of which began in random states, over the second half of the
    /// burn-in. `None` if that half was too short to judge, and for exact samples.
    pub mixing: Option<Mixing>,
    /// The number of steps before the first sample. `None` for exact samples.
    pub burn_in: Option<u32>,
    /// What ladders of chains did. `None` for other methods.
    pub ladders: Option<Ladders>,
    /// How Gibbs chains mixed, if tempering was chosen because they did not.
    pub gibbs: Option<Mixing>,
}

impl Samples {
    /// Returns the reason why samples may still depend on where chains began, if there is one.
    /// Exact samples give no reason.
    pub fn doubt(&self) -> Option<Doubt> {
        let not_renewed = self.ladders.as_ref().map_or(0.0, |ladders| ladders.not_renewed);
        doubt(self.mixing, self.burn_in?, not_renewed)
    }

    /// Returns true if samples of one ladder are closer to each other than two autocorrelation times,
    /// so that they are worth fewer independent samples.
    pub fn are_correlated(&self) -> bool {
        let thinning = self.ladders.as_ref().and_then(|ladders| ladders.thinning);
        match (thinning, self.mixing) {
            (Some(steps), Some(mixing)) => {
                f64::from(steps) < tempering::TIMES_APART * mixing.autocorrelation_time
            }
            _ => false,
        }
    }

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

    /// Returns the bytes of a `.npy` file like [`to_npy`](Self::to_npy), where −1 stands for 0: the
    /// samples are i8, −1 and 1, and the means lie in [−1, 1].
    pub fn spins_to_npy(&self) -> Vec<u8> {
        self.means.as_ref().map_or_else(|| bits_to_spins(&self.v), |means| reals_to_npy(&spins(means)))
    }

    /// Returns the bytes of an `.npz` file like [`to_npz`](Self::to_npz), where −1 stands for 0.
    pub fn spins_to_npz(&self) -> Vec<u8> {
        let mut arrays = vec![("samples", bits_to_spins(&self.v))];
        arrays.extend(self.means.as_ref().map(|means| ("means", reals_to_npy(&spins(means)))));
        to_npz(&arrays)
    }

    /// Returns the bytes of a `.csv` file: a header with the names of the columns if there are some,
    /// and a line for each sample, or for its means if they were requested. With `spins`, −1 stands
    /// for 0.
    pub fn to_csv(&self, names: &[String], spins: bool) -> Vec<u8> {
        let rows = self.rows();
        let cell = |r: usize, i: usize| {
            let value = rows.get(r, i);
            let value = if spins { 2.0 * value - 1.0 } else { value };
            if self.means.is_some() { format!("{value:?}") } else { format!("{value}") }
        };
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let mut write = || -> ::csv::Result<()> {
            if names.len() == rows.n_columns() {
                writer.write_record(names)?;
            }
            (0..rows.n_rows())
                .try_for_each(|r| writer.write_record((0..rows.n_columns()).map(|i| cell(r, i))))
        };
        write().expect("memory takes all that is written to it");
        writer.into_inner().expect("memory takes all that is written to it")
    }
}

/// Returns the reason to doubt samples after `burn_in` steps, a share of which is not renewed.
pub(super) fn doubt(mixing: Option<Mixing>, burn_in: u32, not_renewed: f64) -> Option<Doubt> {
    match mixing {
        Some(Mixing { r_hat, .. }) if r_hat >= TOO_HIGH_R_HAT => Some(Doubt::ChainsDiffer { r_hat }),
        _ if not_renewed >= MAX_NOT_RENEWED => Some(Doubt::NotRenewed { share: not_renewed }),
        mixing => mixing?.doubt(burn_in),
    }
}

fn bits_to_npy(rows: &BitRows) -> Vec<u8> {
    let mut bytes = vec![0u8; rows.n_rows() * rows.n_bits()];
    for (r, row) in bytes.chunks_exact_mut(rows.n_bits()).enumerate() {
        crate::bits::ones(rows.row(r)).for_each(|i| row[i] = 1);
    }
    to_npy(&[rows.n_rows(), rows.n_bits()], &bytes)
}

fn bits_to_spins(rows: &BitRows) -> Vec<u8> {
    let mut spins = vec![-1i8; rows.n_rows() * rows.n_bits()];
    for (r, row) in spins.chunks_exact_mut(rows.n_bits()).enumerate() {
        crate::bits::ones(rows.row(r)).for_each(|i| row[i] = 1);
    }
    to_npy(&[rows.n_rows(), rows.n_bits()], &spins)
}

fn reals_to_npy(rows: &RealRows) -> Vec<u8> {
    to_npy(&[rows.n_rows(), rows.n_columns()], rows.values())
}

/// Draws `v` from `p(v)`, or from `p(v_unknown | v_known)`.
///
/// **Exact** samples come from an enumeration of the smaller layer
/// ([`exact_samples`](crate::partition::exact_samples)).
///
/// **Gibbs** samples are the last states of chains, one chain for each sample. A step draws
/// `h ~ p(h|v)` and then `v ~ p(v|h)`. Known units are set to their values at the start and after
/// each draw of `v`, so that the chain has the conditional distribution as its target.
///
/// **Tempering** runs 16 ladders of chains, from independent units to the model, that exchange their
/// states. Samples are states of the top rungs. A pilot places the rungs such that about half of the
/// exchanges succeed. Samples of one ladder are two autocorrelation times apart. Half of the ladders
/// begin in random states, so that R-hat compares different starts.
///
/// If no method is named:
///
/// - With starts, known units or a burn-in, the method is Gibbs.
/// - Else, samples are exact if this takes at most two seconds longer than Gibbs chains on a nominal
///   machine.
/// - Else, 16 Gibbs chains are tried. If nothing speaks against them ([`Samples::doubt`]), all
///   samples come from Gibbs chains. Otherwise they come from tempering. The burn-in of tempering is
///   doubled, up to three times, as long as there is a doubt and a minute of a nominal machine is not
///   used up.
///
/// # Guarantee
/// Exact samples are independent draws from the model. Gibbs samples are independent of each other
/// given their starts. Samples by tempering come from 16 independent ladders. Each step of a chain or
/// of a ladder leaves the target distribution invariant, but **there is no guarantee that the burn-in
/// reaches it**: chains that agree may all have missed a mode. [`Samples::doubt`] says what was
/// reached if chains do not agree (R-hat of 1.1 or more). The same seed gives the same samples for
/// any number of threads. With the same method, the first `n` of many samples are the `n` samples of
/// a shorter run.
///
/// # Cost
/// Exact: the enumeration, and up to 25 times as long if there are many samples. Gibbs: `n_samples × burn_in` steps. A step costs about as much as the random numbers of all its
/// units. Tempering: for each rung, `16 × burn_in` steps and then, for each sample, two
/// autocorrelation times.
///
/// ```
/// use mclv::{Rbm, progress::Silent, sample::{SampleMethod, SampleSettings, Start, sample}};
/// // The one visible unit is almost always on.
/// let rbm = Rbm::new(1, 1, &[0.0], &[9.0], &[0.0])?;
/// let settings = SampleSettings { n_samples: 100, ..Default::default() };
/// let samples = sample(&rbm, &settings, Start::Bias, None, &Silent)?;
/// assert_eq!(samples.method, SampleMethod::Exact);
/// assert!((0..100).filter(|&r| samples.v.get(r, 0)).count() > 95);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there is nothing to draw, if a width is not the model's, if the method does not allow the other
/// settings, or if the listener cancels.
pub fn sample(
    rbm: &Rbm,
    settings: &SampleSettings,
    start: Start<'_>,
    given: Option<&Given>,
    progress: &dyn Progress,
) -> Result<Samples> {
    check(rbm, settings, start, given)?;
    let &SampleSettings { n_samples, burn_in, means, seed, .. } = settings;
    let of_chains = ChainSettings { n_samples, burn_in: burn_in.unwrap_or(BURN_IN), means, seed };
    let is_free = given.is_none() && start == Start::Bias && burn_in.is_none();
    match settings.method {
        Some(SampleMethod::Exact) => by_enumeration(rbm, settings, progress),
        Some(SampleMethod::Tempering) => by_tempering(rbm, settings, progress),
        None if is_free && is_quick(rbm.n_visible(), rbm.n_hidden(), n_samples) => {
            by_enumeration(rbm, settings, progress)
        }
        None if is_free => {
            let few = ChainSettings { n_samples: n_samples.min(BLOCK), ..of_chains };
            let trial = by_gibbs(rbm, &few, start, given, progress)?;
            if trial.doubt().is_some() {
                let tempered = by_tempering(rbm, settings, progress)?;
                Ok(Samples { gibbs: trial.mixing, ..tempered })
            } else if few.n_samples == n_samples {
                Ok(trial)
            } else {
                by_gibbs(rbm, &of_chains, start, given, progress)
            }
        }
        Some(SampleMethod::Gibbs) | None => by_gibbs(rbm, &of_chains, start, given, progress),
    }
}

/// Returns true if exact samples take at most two seconds longer than Gibbs chains on a nominal
/// machine.
fn is_quick(n_visible: usize, n_hidden: usize, n_samples: usize) -> bool {
    let gibbs = n_samples as f64 * f64::from(BURN_IN) * NOMINAL_STEP * n_visible as f64;
    nominal_seconds(n_visible, n_hidden) <= MAX_ENUMERATION
        && exact_seconds(n_visible, n_hidden, n_samples) <= CHEAP_SAMPLES + gibbs
}

/// The seconds that exact samples take on a nominal machine.
fn exact_seconds(n_visible: usize, n_hidden: usize, n_samples: usize) -> f64 {
    let n_groups = (n_visible.min(n_hidden) as f64).exp2() / STATES_PER_GROUP;
    let share_drawn = (n_samples as f64 / n_groups).min(1.0);
    nominal_seconds(n_visible, n_hidden) * (1.0 + DRAW_PASSES * share_drawn)
}

/// Draws at most `n_samples` samples for a look at a model, by the rules of [`sample`], but within a
/// small time: about `max_seconds` of a nominal machine, or four times what Gibbs chains would take if
/// that is less. There are fewer samples if they would take longer. Samples of one ladder can be
/// closer to each other than two autocorrelation times ([`Samples::are_correlated`]).
///
/// A limit of time can rule tempering out. The samples then come from Gibbs chains although these do
/// not mix, and [`Samples::doubt`] says so. The time is computed from the sizes of the model, not
/// measured, so the same seed gives the same samples.
///
/// ```
/// use mclv::{Rbm, progress::Silent, sample::quick_samples};
/// let rbm = Rbm::new(1, 1, &[0.0], &[9.0], &[0.0])?;
/// let samples = quick_samples(&rbm, 100, 1.0, 0, &Silent)?;
/// assert_eq!((samples.v.n_rows(), samples.doubt()), (100, None));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there is nothing to draw, or if the listener cancels.
pub fn quick_samples(
    rbm: &Rbm,
    n_samples: usize,
    max_seconds: f64,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Samples> {
    let settings = SampleSettings { n_samples, seed, ..SampleSettings::default() };
    check(rbm, &settings, Start::Bias, None)?;
    let of_chain = f64::from(BURN_IN) * NOMINAL_STEP * rbm.n_visible() as f64 * wide(rbm);
    let of_all = of_chain * n_samples as f64;
    let max_seconds = max_seconds.min(4.0 * of_all);
    if exact_seconds(rbm.n_visible(), rbm.n_hidden(), n_samples) <= max_seconds.min(QUICK + of_all) {
        return by_enumeration(rbm, &settings, progress);
    }
    let gibbs = |n_samples: usize| {
        let settings = ChainSettings { n_samples, burn_in: BURN_IN, means: false, seed };
        by_gibbs(rbm, &settings, Start::Bias, None, progress)
    };
    let few = n_samples.min(BLOCK);
    let trial = gibbs(few)?;
    if trial.doubt().is_some()
        && let Some(tempered) = tempering::quickly(rbm, &settings, 0.5 * max_seconds, progress)?
    {
        return Ok(Samples { gibbs: trial.mixing, ..tempered });
    }
    match ((max_seconds / of_chain) as usize).clamp(few, n_samples) {
        n if n == few => Ok(trial),
        n => gibbs(n),
    }
}

/// The time of a step beside that of a model with a narrow hidden layer.
pub(super) fn wide(rbm: &Rbm) -> f64 {
    (rbm.n_hidden() as f64 / 32.0).max(1.0)
}

/// Draws independent samples by an enumeration of the smaller layer.
fn by_enumeration(rbm: &Rbm, settings: &SampleSettings, progress: &dyn Progress) -> Result<Samples> {
    // The clock must not decide what is chosen.
    let limit = match settings.method {
        Some(_) => ExactSettings::default(),
        None => ExactSettings { time_limit: f64::INFINITY },
    };
    let pairs = exact_pairs(rbm, settings.n_samples, settings.seed, &limit, progress);
    let (v, h) = pairs.map_err(|error| match error {
        Error::TooSlow { n_units, seconds, .. } => Error::InvalidChoice {
            name: "method",
            value: SampleMethod::Exact.to_string(),
            cure: format!(
                "the enumeration of 2^{n_units} states would take about {}; choose `tempering` or `gibbs`",
                human_seconds(seconds)
            ),
        },
        other => other,
    })?;
    let means = settings.means.then(|| rbm.mean_v_from_h(&Rows::Bits(h))).transpose()?;
    Ok(Samples {
        v,
        means,
        method: SampleMethod::Exact,
        mixing: None,
        burn_in: None,
        ladders: None,
        gibbs: None,
    })
}

impl Rbm {
    /// Draws `n_samples` visible states, each from a Gibbs chain that makes `burn_in` steps from
    /// independent units.
    ///
    /// `rng` is any generator with `rand`'s trait. One number of it becomes the seed of all chains.
    ///
    /// # Guarantee
    /// The guarantee of [`sample`]. That function has more options (methods, starts, known units, means)
    /// and also reports how the chains mixed.
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
        let settings = SampleSettings {
            n_samples,
            method: Some(SampleMethod::Gibbs),
            burn_in: Some(burn_in),
            means: false,
            seed: rng.next_u64(),
        };
        Ok(sample(self, &settings, Start::Bias, None, &Silent)?.v)
    }
}

fn check(rbm: &Rbm, settings: &SampleSettings, start: Start<'_>, given: Option<&Given>) -> Result<()> {
    let invalid = |name, value: String, cure| Err(Error::InvalidSetting { name, value, cure });
    let n_values = settings.n_samples.checked_mul(rbm.n_visible());
    if settings.n_samples == 0 || n_values.is_none_or(|n| n > MAX_VALUES) {
        let cure = "at least 1 and at most 2^33 values in all; draw more in several runs with other seeds";
        return invalid("n-samples", settings.n_samples.to_string(), cure);
    }
    if let Some(n) = settings.burn_in.filter(|&n| n == 0 || n > MAX_STEPS) {
        return invalid("burn-in", n.to_string(), "at least 1 step, at most 2147483646");
    }
    if let Some(method) = settings.method.filter(|&method| method != SampleMethod::Gibbs) {
        let has_start = start != Start::Bias;
        if has_start || given.is_some() {
            let what = if has_start { "starts" } else { "known units" };
            let cure = format!("samples with {what} need `gibbs`; choose it, or leave the {what} out");
            return Err(Error::InvalidChoice { name: "method", value: method.to_string(), cure });
        }
        if let Some(n) = settings.burn_in.filter(|_| method == SampleMethod::Exact) {
            return invalid("burn-in", n.to_string(), "leave it out: exact samples do not come from a chain");
        }
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

#[cfg(test)]
mod tests;
