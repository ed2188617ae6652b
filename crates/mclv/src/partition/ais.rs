//! Estimate `log Z` by annealed importance sampling (Neal 2001; Salakhutdinov and Murray 2008).

use super::annealing::{Begin, anneal};
use super::scouts::{Errand, Scouts, spread_out_base};
use super::target::Target;
use super::weights::Weights;
use super::{Guarantee, LogZ, Method, Note};
use crate::ladder::{Kept, Path, Spacing};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::Purpose;
use crate::tour::TourEngine;
use crate::{Error, Result};
use std::time::Instant;

/// Settings for [`ais`]: how many chains and temperatures, the base model, the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct AisSettings {
    /// The number of independent chains.
    pub n_chains: usize,
    /// The number of temperatures between the base model and the model. With a `target`, a pilot
    /// chooses it instead.
    pub n_betas: usize,
    /// A wanted standard error.
    pub target: Option<Target>,
    /// How the temperatures are spaced.
    pub spacing: Spacing,
    /// Visible biases of the base model, which has no weights. The best choice is the biases of the
    /// data (see [`base_bias`](super::base_bias)). With `None`, the biases are the inputs of the
    /// visible units when every hidden unit is half active; chains from there reach all modes
    /// alike. (Chains from the model's own visible biases reach one mode only.)
    pub base_bias: Option<Vec<f32>>,
    /// The number of chains from a second base model, and of scouts, that must confirm the estimate
    /// before it gets an interval. With 0, none are run, and the estimate has no interval.
    pub n_check: usize,
    /// The seed of the chains.
    pub seed: u64,
}

impl Default for AisSettings {
    /// 128 chains, 10,000 temperatures, and 64 chains from the second base model.
    fn default() -> Self {
        Self {
            n_chains: 128,
            n_betas: 10_000,
            target: None,
            spacing: Spacing::default(),
            base_bias: None,
            n_check: 64,
            seed: 0,
        }
    }
}

/// Returns visible biases of independent units whose means are `means`, the column means of
/// `n_rows` data rows.
///
/// The means are moved slightly towards ½, so that no bias is infinite.
///
/// ```
/// let bias = mclv::partition::base_bias(&[0.5, 0.0], 99);
/// assert!(bias[0].abs() < 1e-6 && (bias[1] - (0.5f32 / 99.5).ln()).abs() < 1e-6);
/// ```
pub fn base_bias(means: &[f64], n_rows: usize) -> Vec<f32> {
    let n = n_rows as f64;
    means.iter().map(|m| (m * n + 0.5) / (n + 1.0)).map(|p| (p / (1.0 - p)).ln() as f32).collect()
}

/// Estimates `log Z` by annealed importance sampling (AIS) from a model without weights to `rbm`.
///
/// The path is `p_β(v) ∝ exp(((1−β)b₀ + βb)ᵀv) Π_j (1 + e^{β(a + Wᵀv)_j})`.
///
/// # Guarantee
/// The mean weight is unbiased for `Z`; its logarithm is low on average. Adaptive temperatures keep
/// this guarantee, because other chains choose them. The error bar is that of the delta method over
/// independent chains. It is `None` if fewer than two thirds of the chains carry the weight. The
/// estimate has an interval only if all of these conditions hold:
///
/// - There are at least 128 chains, and the log weights of every fourth chain have a standard
///   deviation of at most 0.25. The other chains then give the interval, which covers in 93 % or
///   more of simulations.
/// - Chains from a second base model agree with the estimate within three standard errors.
/// - The estimate is not below the sum over all states that scouts have visited. This sum is never
///   above `Z`.
///
/// If the second base model or the scouts contradict the estimate, the error bar is `None` too. No
/// method can exclude a mode that no chain has visited.
///
/// # Cost
/// `n_chains × n_betas` block-Gibbs steps, 2.6 µs each on one core for 784 × 25 units. If the
/// weights are sound, `n_check × n_betas` more steps. The pilot that chooses temperatures and the
/// scouts add a few more. With a target, a pilot of `n_chains × 1,000` steps chooses `n_betas`.
///
/// ```
/// use mclv::{Rbm, partition::{AisSettings, ais}, progress::Silent};
/// // Without weights every chain has the same weight: no error at all.
/// let rbm = Rbm::new(5, 3, &[0.0; 15], &[0.5; 5], &[0.0; 3])?;
/// let log_z = ais(&rbm, &AisSettings { n_betas: 100, ..Default::default() }, &Silent)?;
/// let exact = 5.0 * 0.5f64.exp().ln_1p() + 3.0 * 2f64.ln();
/// assert!((log_z.value - exact).abs() < 1e-5 && log_z.std_err.unwrap() < 1e-9);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there are fewer than two chains or temperatures, if the base model has the wrong size, or if
/// the listener cancels.
pub fn ais(rbm: &Rbm, settings: &AisSettings, progress: &dyn Progress) -> Result<LogZ> {
    let begun = Instant::now();
    check_size("n-chains", settings.n_chains)?;
    check_size("n-betas", settings.n_betas)?;
    let spread_out = spread_out_base(rbm);
    let (base, second) = match &settings.base_bias {
        Some(base) => (base, spread_out),
        None => (&spread_out, vec![0.0; rbm.n_visible()]),
    };
    let (n_betas, n_pilot) = match settings.target {
        None => (settings.n_betas, 0.0),
        Some(target) => target.n_betas(settings.n_chains, |n_betas| {
            let pilot = AisSettings { n_betas, ..settings.clone() };
            let pilot = weigh(rbm, base, settings.n_chains, &pilot, Purpose::AisPilot, progress)?;
            Ok(pilot.weights.spread())
        })?,
    };
    let settings = &AisSettings { n_betas, ..settings.clone() };
    let first = weigh(rbm, base, settings.n_chains, settings, Purpose::Ais, progress)?;
    let mut log_z = LogZ {
        value: first.base + first.weights.log_mean,
        std_err: first.weights.known_std_err(),
        interval: first.weights.interval().map(|(from, to)| (first.base + from, first.base + to)),
        notes: first.weights.notes(),
        guarantee: Guarantee::UnbiasedZ,
        method: Method::Ais,
        n_states: (settings.n_chains * settings.n_betas) as f64 + n_pilot,
        seconds: 0.0,
    };
    if settings.n_check == 0 {
        if log_z.interval.take().is_some() {
            log_z.notes.push(Note::NotScouted);
        }
    } else {
        confirm(&mut log_z, rbm, (base, &second), settings, progress)?;
    }
    settings.target.inspect(|target| target.tell(&mut log_z));
    log_z.seconds = begun.elapsed().as_secs_f64();
    Ok(log_z)
}

/// Weights of chains from one base model.
struct Weighed {
    /// `log Z` of the base model.
    base: f64,
    weights: Weights,
}

fn weigh(
    rbm: &Rbm,
    base: &[f32],
    n_chains: usize,
    settings: &AisSettings,
    purpose: Purpose,
    progress: &dyn Progress,
) -> Result<Weighed> {
    let path = Path::new(rbm, Some(base), Kept::Visible)?;
    let betas = settings.spacing.ladder(&path, settings.n_betas, settings.seed, progress)?;
    let log_w = anneal(&path, &betas, Begin::Base(n_chains), (settings.seed, purpose), progress)?;
    Ok(Weighed { base: path.log_z_base(0), weights: Weights::new(&log_w) })
}

/// Removes the interval, and perhaps the error bar, if the second base model or the scouts do not
/// confirm the estimate.
fn confirm(
    log_z: &mut LogZ,
    rbm: &Rbm,
    (base, second): (&[f32], &[f32]),
    settings: &AisSettings,
    progress: &dyn Progress,
) -> Result<()> {
    /// Two bases agree within this many standard errors; by chance one pair in 370 does not.
    const APART: f64 = 3.0;
    if log_z.interval.is_some() {
        let n_chains = settings.n_check.max(2);
        let second = weigh(rbm, second, n_chains, settings, Purpose::SecondBase, progress)?;
        log_z.n_states += (n_chains * settings.n_betas) as f64;
        if second.weights.are_healthy() {
            let value = second.base + second.weights.log_mean;
            log_z.compare_with_second_base(value, second.weights.std_err, APART);
        } else {
            log_z.interval = None;
            log_z.notes.push(Note::SecondBaseUnsound);
        }
    }
    let scouts = Scouts::send(rbm, Some(base), settings.n_check, settings.seed, Errand::Find, progress)?;
    log_z.n_states += scouts.n_steps as f64;
    let known = TourEngine::new(rbm, &scouts.visited)?.log_z_s();
    log_z.compare_with_known(known);
    Ok(())
}

/// Rejects sizes below two: an error bar needs two chains, and a path needs two temperatures.
pub(super) fn check_size(name: &'static str, value: usize) -> Result<()> {
    if (2..=1 << 26).contains(&value) {
        Ok(())
    } else {
        Err(Error::InvalidSetting { name, value: value.to_string(), cure: "at least 2, at most 2^26" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::partition::Note;
    use crate::progress::Silent;

    fn exact(rbm: &Rbm) -> f64 {
        crate::partition::exact(rbm, &Default::default(), &Silent).unwrap().value
    }

    /// The mean of `Ẑ/Z` over 400 independent runs is 1 within 4.5 standard errors (false alarm
    /// 7e-6 each), also with few temperatures and a base far from the model, however they are
    /// spaced; a base whose Z is mistaken is caught.
    #[test]
    fn z_is_unbiased_and_a_wrong_base_is_caught() {
        for (spacing, rbm_seed) in [(Spacing::Linear, 110), (Spacing::Sigmoid, 111), (Spacing::Adaptive, 112)]
        {
            let rbm = random_rbm(6, 4, 1.0, rbm_seed);
            let exact = exact(&rbm);
            let ratios: Vec<f64> = (0..400)
                .map(|seed| {
                    let base_bias = Some(vec![0.3; 6]);
                    let settings = AisSettings {
                        n_chains: 8,
                        n_betas: 5,
                        spacing,
                        base_bias,
                        n_check: 0,
                        seed,
                        target: None,
                    };
                    (ais(&rbm, &settings, &Silent).unwrap().value - exact).exp()
                })
                .collect();
            let n = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / n;
            let sd = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            let z = (mean - 1.0) / (sd / n.sqrt());
            assert!(z.abs() < 4.5, "{spacing:?}: z = {z}, mean {mean}");
            // Negative control: forgetting ln 2 of one hidden unit of the base halves the estimate.
            let broken = (mean / 2.0 - 1.0) / (sd / 2.0 / n.sqrt());
            assert!(broken.abs() > 4.5, "{spacing:?}: {broken}");
        }
    }

    /// 200 runs of 128 chains: the interval, where there is one, covers `log Z` at least 178 times
    /// of 200 if it covers 95 % of the time (false alarm 3e-4), and is there nearly always.
    #[test]
    fn intervals_cover() {
        let rbm = random_rbm(8, 5, 1.0, 113);
        let exact = exact(&rbm);
        let intervals: Vec<(f64, f64)> = (0..200)
            .filter_map(|seed| {
                let settings = AisSettings { n_chains: 128, n_betas: 200, seed, ..Default::default() };
                ais(&rbm, &settings, &Silent).unwrap().interval
            })
            .collect();
        let covered = intervals.iter().filter(|(from, to)| (*from..=*to).contains(&exact)).count();
        assert!(intervals.len() >= 195 && covered >= 178, "{covered} of {}", intervals.len());
    }

    #[test]
    fn threads_do_not_matter_and_few_chains_with_all_the_weight_are_told_of() {
        let rbm = random_rbm(30, 12, 2.0, 114);
        let settings = AisSettings { n_chains: 130, n_betas: 3, ..Default::default() };
        let run = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| LogZ { seconds: 0.0, ..ais(&rbm, &settings, &Silent).unwrap() })
        };
        let log_z = run(1);
        assert!(log_z == run(2) && log_z == run(5));
        assert!(log_z.interval.is_none() && log_z.notes[1] == Note::UnequalWeights, "{log_z:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        let rbm = random_rbm(4, 2, 1.0, 115);
        for settings in [
            AisSettings { n_chains: 1, ..Default::default() },
            AisSettings { n_betas: 0, ..Default::default() },
            AisSettings { base_bias: Some(vec![0.0; 3]), ..Default::default() },
            AisSettings { base_bias: Some(vec![f32::NAN; 4]), ..Default::default() },
        ] {
            assert!(ais(&rbm, &settings, &Silent).is_err(), "{settings:?}");
        }
    }
}
