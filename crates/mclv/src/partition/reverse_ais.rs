//! Estimate `log Z` from above, by annealing from the model to the base model (Burda, Grosse and
//! Salakhutdinov 2015).

use super::ais::check_size;
use super::annealing::{Begin, anneal};
use super::scouts::spread_out_base;
use super::target::Target;
use super::weights::Weights;
use super::{Guarantee, LogZ, Method, Note};
use crate::bits::BitRows;
use crate::ladder::{Kept, Path, Spacing};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::Purpose;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The origin of the states that reverse AIS begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Independent draws from the model itself, such as those of
    /// [`exact_samples`](super::exact_samples).
    ExactSamples,
    /// Rows of data.
    Data,
    /// The ends of Markov chains.
    Chain,
}

/// Settings for [`reverse_ais`]: temperatures, base model and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReverseAisSettings {
    /// The number of temperatures between the model and the base model.
    pub n_betas: usize,
    /// A wanted standard error. A pilot then chooses the number of temperatures.
    pub target: Option<Target>,
    /// How the temperatures are spaced.
    pub spacing: Spacing,
    /// Visible biases of the base model, as for [`ais`](super::ais).
    pub base_bias: Option<Vec<f32>>,
    /// The seed of the chains.
    pub seed: u64,
}

impl Default for ReverseAisSettings {
    /// 10,000 temperatures.
    fn default() -> Self {
        Self { n_betas: 10_000, target: None, spacing: Spacing::default(), base_bias: None, seed: 0 }
    }
}

/// Estimates `log Z` by AIS from the model to a model without weights, with one chain from each row
/// of `states`.
///
/// # Guarantee
/// From exact samples, the mean weight is unbiased for `1/Z`, so the estimate of `log Z` is high on
/// average. Together with [`ais`](super::ais), which is low on average, it brackets `log Z`. From
/// data or from the ends of chains, nothing is guaranteed: states that the model itself would
/// seldom draw make the estimate too low or too high. The estimate never has an interval; read it
/// beside [`ais`](super::ais).
///
/// # Cost
/// `n_betas` block-Gibbs steps for each state.
///
/// ```
/// use mclv::partition::{Guarantee, Origin, ReverseAisSettings, exact_samples, reverse_ais};
/// use mclv::{Rbm, progress::Silent};
/// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.1; 2])?;
/// let states = exact_samples(&rbm, 100, 1, &Default::default(), &Silent)?;
/// let settings = ReverseAisSettings { n_betas: 100, ..Default::default() };
/// let log_z = reverse_ais(&rbm, &states, Origin::ExactSamples, &settings, &Silent)?;
/// assert_eq!(log_z.guarantee, Guarantee::UpperBound);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there are fewer than two states or temperatures, if a width is not the model's, or if the
/// listener cancels.
pub fn reverse_ais(
    rbm: &Rbm,
    states: &BitRows,
    origin: Origin,
    settings: &ReverseAisSettings,
    progress: &dyn Progress,
) -> Result<LogZ> {
    let begun = Instant::now();
    check_size("n-states", states.n_rows())?;
    check_size("n-betas", settings.n_betas)?;
    rbm.check_width(states.n_bits())?;
    let base_bias = settings.base_bias.clone().unwrap_or_else(|| spread_out_base(rbm));
    let path = Path::new(rbm, Some(&base_bias), Kept::Visible)?;
    let weigh = |n_betas: usize, purpose: Purpose| {
        let mut betas = settings.spacing.ladder(&path, n_betas, settings.seed, progress)?;
        betas.reverse();
        let log_w = anneal(&path, &betas, Begin::States(states), (settings.seed, purpose), progress)?;
        Ok::<_, Error>(Weights::new(&log_w))
    };
    let (n_betas, n_pilot) = match settings.target {
        None => (settings.n_betas, 0.0),
        Some(target) => target
            .n_betas(states.n_rows(), |n_betas| Ok(weigh(n_betas, Purpose::ReverseAisPilot)?.spread()))?,
    };
    let weights = weigh(n_betas, Purpose::ReverseAis)?;
    let base = path.log_z_base(0);
    let mut notes = weights.notes();
    let exact = origin == Origin::ExactSamples;
    if !exact {
        notes.push(Note::NotFromModel { origin });
    }
    let mut log_z = LogZ {
        value: base - weights.log_mean,
        std_err: weights.known_std_err(),
        interval: None,
        notes,
        guarantee: if exact { Guarantee::UpperBound } else { Guarantee::None },
        method: Method::ReverseAis,
        n_states: (states.n_rows() * n_betas) as f64 + n_pilot,
        seconds: begun.elapsed().as_secs_f64(),
    };
    settings.target.inspect(|target| target.tell(&mut log_z));
    Ok(log_z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::partition::exact_samples;
    use crate::progress::Silent;

    /// z of the mean of `Z/Ẑ` over 400 runs of 4 states, and the mean of `log Ẑ − log Z` in its
    /// standard errors.
    fn z_scores(rbm: &Rbm, states: impl Fn(u64) -> BitRows) -> (f64, f64) {
        let exact = crate::partition::exact(rbm, &Default::default(), &Silent).unwrap().value;
        let errors: Vec<f64> = (0..400)
            .map(|seed| {
                let base_bias = Some(rbm.visible_bias().to_vec());
                let settings = ReverseAisSettings { n_betas: 2, base_bias, seed, ..Default::default() };
                let log_z =
                    reverse_ais(rbm, &states(seed), Origin::ExactSamples, &settings, &Silent).unwrap();
                log_z.value - exact
            })
            .collect();
        let z = |x: Vec<f64>, expected: f64| {
            let n = x.len() as f64;
            let mean = x.iter().sum::<f64>() / n;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (mean - expected) / (variance / n).sqrt()
        };
        (z(errors.iter().map(|e| (-e).exp()).collect(), 1.0), z(errors, 0.0))
    }

    /// From exact samples `E[Z/Ẑ] = 1` within 4.5 standard errors (false alarm 7e-6) and `log Ẑ` is
    /// high on average; from draws of the base model instead the identity fails.
    #[test]
    fn the_inverse_of_z_is_unbiased_from_exact_samples_only() {
        let rbm = random_rbm(7, 4, 1.5, 120);
        let (identity, side) =
            z_scores(&rbm, |seed| exact_samples(&rbm, 4, seed, &Default::default(), &Silent).unwrap());
        assert!(identity.abs() < 4.5, "z = {identity}");
        assert!(side > 3.0, "high on average: {side} standard errors");
        let base = Rbm::new(7, 4, &[0.0; 28], rbm.visible_bias(), &[0.0; 4]).unwrap();
        let (identity, _) =
            z_scores(&rbm, |seed| exact_samples(&base, 4, seed, &Default::default(), &Silent).unwrap());
        assert!(identity.abs() > 4.5, "the control must be caught: z = {identity}");
    }

    #[test]
    fn only_exact_samples_give_a_bound_and_without_weights_there_is_no_error() {
        let rbm = Rbm::new(5, 3, &[0.0; 15], &[0.5; 5], &[0.25; 3]).unwrap();
        let exact = crate::partition::exact(&rbm, &Default::default(), &Silent).unwrap().value;
        let states = BitRows::zeros(128, 5);
        let settings = ReverseAisSettings { n_betas: 50, ..Default::default() };
        for (origin, guarantee, n_notes) in [
            (Origin::ExactSamples, Guarantee::UpperBound, 1),
            (Origin::Data, Guarantee::None, 2),
            (Origin::Chain, Guarantee::None, 2),
        ] {
            let log_z = reverse_ais(&rbm, &states, origin, &settings, &Silent).unwrap();
            assert!((log_z.value - exact).abs() < 1e-5 && log_z.std_err.unwrap() < 1e-9);
            assert_eq!((log_z.guarantee, log_z.interval), (guarantee, None));
            assert_eq!(log_z.notes.len(), n_notes, "{:?}", log_z.notes);
        }
        assert!(
            reverse_ais(&rbm, &BitRows::zeros(5, 4), Origin::Data, &Default::default(), &Silent).is_err()
        );
        assert!(
            reverse_ais(&rbm, &BitRows::zeros(1, 5), Origin::Data, &Default::default(), &Silent).is_err()
        );
    }

    #[test]
    fn threads_do_not_matter() {
        let rbm = random_rbm(30, 12, 1.0, 121);
        let states = exact_samples(&rbm, 40, 2, &Default::default(), &Silent).unwrap();
        let run = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            let settings = ReverseAisSettings { n_betas: 30, ..Default::default() };
            pool.install(|| {
                reverse_ais(&rbm, &states, Origin::ExactSamples, &settings, &Silent).unwrap().value.to_bits()
            })
        };
        assert!(run(1) == run(2) && run(1) == run(5));
    }
}
