//! Evaluate a model in training, within a budget that does not depend on the clock.

use super::guard::Warning;
use super::settings::TrainSettings;
use super::weights;
use crate::Result;
use crate::data::Rows;
use crate::gradient::{Gradient, TourInfo};
use crate::likelihood::log_likelihoods;
use crate::model::Rbm;
use crate::partition::{
    self, AisSettings, ExactSettings, LogZ, NOMINAL_STEP, base_bias, mclv_within, nominal_seconds,
};
use crate::progress::Progress;
use crate::tour::StoppingSet;
use serde::{Deserialize, Serialize};

/// Share of the training time that evaluations may take.
const BUDGET: f64 = 0.05;
/// Rows on which the training likelihood is watched; the final one is over all rows.
const WATCHED_ROWS: usize = 5000;
/// Rows on which pseudo-likelihood, reconstruction and unit statistics are computed.
const PROBED_ROWS: usize = 500;
/// Seconds that a final exact evaluation may take on a nominal machine.
const FINAL_SECONDS: f64 = 5.0;

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

/// At most `n` of `n_rows` rows, evenly spread: data may be sorted.
fn spread(n_rows: usize, n: usize) -> Vec<usize> {
    let n = n.min(n_rows);
    (0..n).map(|k| k * n_rows / n).collect()
}

/// How and when to evaluate.
pub(super) struct Monitor {
    watched: Rows,
    watched_weights: Option<Vec<f32>>,
    probed: Rows,
    base: Vec<f32>,
    exact: bool,
    every: usize,
}

impl Monitor {
    pub(super) fn new(settings: &TrainSettings, train: Weighted<'_>) -> Self {
        let Weighted { rows: train, weights } = train;
        let (n_visible, n_hidden) = (train.n_columns(), settings.n_hidden);
        let k = match &settings.gradient {
            Gradient::Cd { k, .. } | Gradient::Pcd { k, .. } => *k,
            Gradient::Lvs(lvs) => 2 * lvs.k.limit().min(10) as usize,
            Gradient::Exact => 1000,
        };
        let epoch_seconds = train.n_rows() as f64 * n_visible as f64 * NOMINAL_STEP * k as f64;
        let per_evaluation = |seconds: f64| (seconds / (BUDGET * epoch_seconds)).ceil().max(1.0) as usize;
        let exact_every = per_evaluation(nominal_seconds(n_visible, n_hidden));
        let exact = exact_every <= (settings.epochs / 20).max(1);
        let every = match (settings.eval_every, exact) {
            (0, true) => exact_every.max(settings.epochs / 100).max(1),
            (0, false) => {
                per_evaluation(estimate_steps() * n_visible as f64 * NOMINAL_STEP).max(settings.epochs / 100)
            }
            (n, _) => n,
        };
        let watched = spread(train.n_rows(), WATCHED_ROWS);
        Self {
            watched: train.select(&watched),
            watched_weights: weights
                .map(|weights| watched.iter().map(|&r| weights[r]).collect::<Vec<f32>>())
                .filter(|weights| weights.iter().any(|&w| w > 0.0)),
            probed: train.select(&spread(train.n_rows(), PROBED_ROWS)),
            base: base_bias(&train.column_means(), train.n_rows()),
            exact,
            every,
        }
    }

    /// Whether to evaluate after `epoch` of `epochs`.
    pub(super) fn is_due(&self, epoch: usize, epochs: usize) -> bool {
        epoch == epochs || epoch.is_multiple_of(self.every)
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
        let affordable = nominal_seconds(rbm.n_visible(), rbm.n_hidden()) <= FINAL_SECONDS;
        let log_z = if self.exact || (last && affordable) {
            partition::exact(rbm, &ExactSettings { time_limit: f64::INFINITY }, progress)?
        } else {
            self.estimate(rbm, train.rows, last, seed ^ metrics.epoch as u64, progress)?
        };
        let watched = Weighted { rows: &self.watched, weights: self.watched_weights.as_deref() };
        let mean = |part: Weighted<'_>| -> Result<f64> {
            Ok(weights::mean(&log_likelihoods(rbm, part.rows, &log_z)?, part.weights))
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

    /// By tours that return to the hidden states of data, or by AIS where they do not.
    fn estimate(
        &self,
        rbm: &Rbm,
        train: &Rows,
        last: bool,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<LogZ> {
        let (rows, max_states, max_steps) = if last {
            (train, FINAL_STATES, TOUR_STEPS * FINAL_FACTOR)
        } else {
            (&self.watched, TOUR_STATES, TOUR_STEPS)
        };
        let rows_of_set = spread(rows.n_rows(), max_states);
        let set = StoppingSet::draw(rbm, rows, &rows_of_set, 1, seed, 0)?;
        if let Some(log_z) = mclv_within(rbm, &set, max_steps, seed, progress)? {
            return Ok(log_z);
        }
        let settings = AisSettings {
            n_chains: AIS_CHAINS * if last { 4 } else { 1 },
            n_betas: AIS_BETAS * if last { 10 } else { 1 },
            base_bias: Some(self.base.clone()),
            seed,
            ..Default::default()
        };
        let mut log_z = partition::ais(rbm, &settings, progress)?;
        log_z.notes.insert(0, format!("tours did not return within {max_steps} steps: by AIS instead"));
        Ok(log_z)
    }
}

/// Rows whose hidden states tours return to, and steps of all tours together; in the end there are more of both.
const TOUR_STATES: usize = 2000;
const FINAL_STATES: usize = 50_000;
const TOUR_STEPS: u64 = 30_000;
const FINAL_FACTOR: u64 = 40;
/// What it takes to draw and weigh a state of the stopping set, in steps.
const STEPS_PER_STATE: usize = 5;

const AIS_CHAINS: usize = 64;
const AIS_BETAS: usize = 300;

/// Steps of an evaluation: tours, or a quarter of them and then AIS.
fn estimate_steps() -> f64 {
    let ais = TOUR_STEPS as f64 / 4.0 + (AIS_CHAINS * AIS_BETAS) as f64;
    (STEPS_PER_STATE * TOUR_STATES) as f64 + ais.max(TOUR_STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::partition::Guarantee;
    use crate::progress::Silent;
    use crate::rng::{Purpose, stream};

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
        let settings = TrainSettings { n_hidden: N_HIDDEN, epochs: 3, ..Default::default() };
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
        for (bias, method) in [(-8.0, "mclv"), (0.0, "ais")] {
            let (rbm, exact) = model(bias);
            for last in [false, true] {
                let one = evaluate(&rbm, last, 1);
                assert!(one == evaluate(&rbm, last, 2) && one == evaluate(&rbm, last, 5), "{method}, {last}");
                let log_z = one.log_z.unwrap();
                assert_eq!((log_z.method.as_str(), log_z.guarantee), (method, Guarantee::UnbiasedZ));
                assert!((log_z.value - exact).abs() < 6.0 * log_z.std_err, "{log_z:?}, exact {exact}");
                let told = log_z.notes.first().is_some_and(|note| note.contains("by AIS instead"));
                assert_eq!(told, method == "ais", "{:?}", log_z.notes);
            }
        }
    }
}
