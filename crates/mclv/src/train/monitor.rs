//! Evaluate a model in training, within a budget that does not depend on the clock.

use super::guard::Warning;
use super::weights;
use crate::Result;
use crate::data::Rows;
use crate::gradient::TourInfo;
use crate::model::Rbm;
use crate::partition::{
    Budget, Effort, Inputs, LogZ, MethodSettings, NOMINAL_STEP, Plan, base_bias, nominal_seconds, spread,
};
use crate::progress::Progress;
use crate::settings::{CheckedSettings, EstimatorSettings, EvalEvery};
use serde::{Deserialize, Serialize};

/// Share of the training time that evaluations may take.
const SHARE: f64 = 0.05;
/// Rows on which the training likelihood is watched; the final one is over all rows.
const WATCHED_ROWS: usize = 5000;
/// Rows on which pseudo-likelihood, reconstruction and unit statistics are computed.
const PROBED_ROWS: usize = 500;

/// What is known of a run after an epoch. Likelihoods are in nats per row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Epochs finished.
    pub epoch: usize,
    /// Hidden units.
    pub n_hidden: usize,
    /// Learning rate at the beginning of the epoch.
    pub learning_rate: f64,
    /// Norm of the gradient of the epoch's last update; 0 if nothing could be learnt from that one.
    pub gradient_norm: f64,
    /// Root mean square of the weights.
    pub weight_rms: f64,
    /// `log Z`, if the epoch was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z: Option<LogZ>,
    /// Mean log-likelihood of training rows (5,000 of them until the end), by their weights if they have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_log_likelihood: Option<f64>,
    /// Mean log-likelihood of the validation rows, by their weights if they have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_log_likelihood: Option<f64>,
    /// Mean pseudo-log-likelihood of 500 training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo_log_likelihood: Option<f64>,
    /// Mean squared reconstruction error of 500 training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstruction_error: Option<f64>,
    /// Hidden units that are on for every one of 500 rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_saturated: Option<usize>,
    /// Hidden units that are off for every one of 500 rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_dead: Option<usize>,
    /// Share of hidden bits of persistent chains that changed over the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains_moved: Option<f64>,
    /// What happened to tours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tours: Option<TourInfo>,
    /// What the guards said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Seconds of training and evaluation so far.
    pub seconds: f64,
}

/// Rows, and how much each counts if not all the same.
#[derive(Clone, Copy)]
pub(super) struct Weighted<'a> {
    pub(super) rows: &'a Rows,
    pub(super) weights: Option<&'a [f32]>,
}

/// How and when to evaluate.
pub(super) struct Monitor {
    watched: Rows,
    watched_weights: Option<Vec<f32>>,
    probed: Rows,
    base: Vec<f32>,
    /// What `log Z` may cost in an evaluation.
    budget: Budget,
    /// Epochs between two evaluations; `None`: never.
    every: Option<usize>,
}

impl Monitor {
    pub(super) fn new(settings: &CheckedSettings, train: Weighted<'_>) -> Self {
        let Weighted { rows: train, weights } = train;
        let (n_visible, n_hidden) = (train.n_columns(), settings.n_hidden);
        let k = match &settings.gradient {
            EstimatorSettings::Cd { k, .. } | EstimatorSettings::Pcd { k, .. } => *k,
            EstimatorSettings::Lvs(lvs) => 2 * lvs.k.limit().min(10) as usize,
            EstimatorSettings::Exact => 1000,
        };
        let epoch_seconds = train.n_rows() as f64 * n_visible as f64 * NOMINAL_STEP * k as f64;
        let epochs_for = |seconds: f64| (seconds / (SHARE * epoch_seconds)).ceil().max(1.0) as usize;
        // Enumerate if that can be afforded twenty times or more in the whole training.
        let exact_every = epochs_for(nominal_seconds(n_visible, n_hidden));
        let is_exact = exact_every <= (settings.epochs / 20).max(1);
        let budget = Budget { seconds: if is_exact { f64::INFINITY } else { 0.0 }, ..Budget::EVALUATION };
        let every = match settings.eval_every {
            EvalEvery::Epochs(n) => Some(n),
            EvalEvery::Never => None,
            EvalEvery::Auto => {
                Some(epochs_for(budget.nominal_seconds(n_visible, n_hidden)).max(settings.epochs / 100))
            }
        };
        let watched = spread(train.n_rows(), WATCHED_ROWS);
        Self {
            watched: train.select(&watched),
            watched_weights: weights
                .map(|weights| watched.iter().map(|&r| weights[r]).collect::<Vec<f32>>())
                .filter(|weights| weights.iter().any(|&w| w > 0.0)),
            probed: train.select(&spread(train.n_rows(), PROBED_ROWS)),
            base: base_bias(&train.column_means(), train.n_rows()),
            budget,
            every,
        }
    }

    /// Whether to evaluate after `epoch` of `epochs`.
    pub(super) fn is_due(&self, epoch: usize, epochs: usize) -> bool {
        self.every.is_some_and(|every| epoch == epochs || epoch.is_multiple_of(every))
    }

    /// Fill in what an evaluation measures.
    pub(super) fn evaluate(
        &self,
        rbm: &Rbm,
        train: Weighted<'_>,
        validation: Option<Weighted<'_>>,
        last: bool,
        seed: u64,
        metrics: &mut Metrics,
        progress: &dyn Progress,
    ) -> Result<()> {
        let log_z = self.log_z(rbm, train.rows, last, seed ^ metrics.epoch as u64, progress)?;
        let watched = Weighted { rows: &self.watched, weights: self.watched_weights.as_deref() };
        let mean = |part: Weighted<'_>| -> Result<f64> {
            Ok(weights::mean(&rbm.log_likelihoods(part.rows, &log_z)?, part.weights))
        };
        metrics.train_log_likelihood = Some(mean(if last { train } else { watched })?);
        metrics.validation_log_likelihood = validation.map(mean).transpose()?;
        let pseudo = rbm.pseudo_log_likelihood(&self.probed)?;
        metrics.pseudo_log_likelihood = Some(pseudo.iter().sum::<f64>() / pseudo.len() as f64);
        metrics.reconstruction_error = Some(rbm.reconstruction_error(&self.probed)?);
        let means = rbm.mean_h_from_v(&self.probed)?;
        let all = |on: bool| {
            (0..rbm.n_hidden())
                .filter(|&j| {
                    (0..means.n_rows())
                        .all(|r| (means.row(r)[j] > 0.99) == on && (means.row(r)[j] < 0.01) != on)
                })
                .count()
        };
        metrics.n_saturated = Some(all(true));
        metrics.n_dead = Some(all(false));
        metrics.log_z = Some(log_z);
        Ok(())
    }

    /// `log Z` by the best method that the budget allows; the last evaluation has a larger one.
    fn log_z(&self, rbm: &Rbm, train: &Rows, last: bool, seed: u64, progress: &dyn Progress) -> Result<LogZ> {
        let (rows, budget) = if last {
            let seconds = self.budget.seconds.max(Budget::LAST_EVALUATION.seconds);
            (train, Budget { seconds, ..Budget::LAST_EVALUATION })
        } else {
            (&self.watched, self.budget)
        };
        let settings = MethodSettings {
            effort: Effort::Affordable,
            samples_per_row: Some(1),
            budget,
            seed,
            ..Default::default()
        };
        let inputs = Inputs { rows: Some(rows), base_bias: Some(&self.base), stopping_set: None };
        Plan::new(rbm, None, &settings).run(&inputs, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::partition::{Guarantee, Method, Note};
    use crate::progress::Silent;
    use crate::rng::{Purpose, stream};
    use crate::settings::Settings;

    const N_VISIBLE: usize = 60;
    const N_HIDDEN: usize = 50;

    /// Too large to enumerate; `log Z` in closed form, since only the first weights are not 0: a visible unit with its hidden
    /// unit each. Hidden units are mostly off if `bias` is low, and then tours return.
    fn model(bias: f32) -> (Rbm, f64) {
        let mut w = vec![0.0; N_VISIBLE * N_HIDDEN];
        (0..N_HIDDEN).for_each(|j| w[j * N_HIDDEN + j] = 1.0);
        let rbm = Rbm::new(N_VISIBLE, N_HIDDEN, &w, &[-1.0; N_VISIBLE], &[bias; N_HIDDEN]).unwrap();
        let (b, a) = (-1.0, f64::from(bias));
        let pair = (1.0 + f64::exp(b) + f64::exp(a) + f64::exp(a + b + 1.0)).ln();
        (rbm, N_HIDDEN as f64 * pair + (N_VISIBLE - N_HIDDEN) as f64 * f64::exp(b).ln_1p())
    }

    fn rows() -> Rows {
        let mut rng = stream(5, Purpose::SelfTest, 0).reader();
        Rows::Bits(BitRows::from_words(N_VISIBLE, (0..300).map(|_| u64::from(rng.next_u32()) << 8).collect()))
    }

    fn evaluate(rbm: &Rbm, last: bool, n_threads: usize) -> Metrics {
        let rows = rows();
        let train = Weighted { rows: &rows, weights: None };
        let settings = Settings { n_hidden: Some(N_HIDDEN), epochs: Some(3.into()), ..Default::default() };
        let settings = settings.check(rows.n_rows()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let mut metrics = Metrics { epoch: 2, ..Default::default() };
        pool.install(|| {
            Monitor::new(&settings, train)
                .evaluate(rbm, train, None, last, 9, &mut metrics, &Silent)
                .unwrap();
        });
        metrics.log_z.as_mut().unwrap().seconds = 0.0;
        metrics
    }

    /// The method, its guarantee, and that the value is within six standard errors, each time for any number of threads.
    #[test]
    fn large_models_are_watched_by_tours_or_else_by_ais() {
        for (bias, method) in [(-8.0, Method::Mclv), (0.0, Method::Ais)] {
            let (rbm, exact) = model(bias);
            for last in [false, true] {
                let one = evaluate(&rbm, last, 1);
                assert!(one == evaluate(&rbm, last, 2) && one == evaluate(&rbm, last, 5), "{method}, {last}");
                let log_z = one.log_z.unwrap();
                assert_eq!((log_z.method, log_z.guarantee), (method, Guarantee::UnbiasedZ));
                assert!(
                    (log_z.value - exact).abs() < 6.0 * log_z.std_err.unwrap(),
                    "{log_z:?}, exact {exact}"
                );
                let told = matches!(log_z.notes.first(), Some(Note::ToursDoNotReturn { .. }));
                assert_eq!(told, method == Method::Ais, "{:?}", log_z.notes);
            }
        }
    }
}
