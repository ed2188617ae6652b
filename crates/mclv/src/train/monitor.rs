//! Evaluate a model during training, within a budget that does not depend on the clock.

use super::best::BestModel;
use super::guard::Warning;
use super::timetable::{N_CHAINS, SET_ROWS, Sizes, Timetable, Way};
use super::weights;
use crate::Result;
use crate::data::Rows;
use crate::gradient::{CouplingInfo, TemperingInfo, TourInfo};
use crate::model::Rbm;
use crate::partition::{
    AisSettings, Budget, Declined, Effort, ExactSettings, Inputs, LogZ, Method, MethodSettings, Plan, ais,
    base_bias, exact, mclv_from_tours, mean_interval, spread, states_to_join,
};
use crate::progress::Progress;
use crate::settings::CheckedSettings;
use crate::tour::{StoppingSet, TourEngine, TourSettings};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The number of rows whose training likelihood is computed during training. The last evaluation
/// uses all rows.
const WATCHED_ROWS: usize = 5000;
/// The number of rows for pseudo-likelihood, reconstruction and unit statistics.
const PROBED_ROWS: usize = 500;
/// The number of tours of a pilot, which decides whether an evaluation by tours is made, and with
/// how many.
const PILOT_TOURS: usize = 4_000;
/// Pilot tours may take the steps of an evaluation divided by this number.
const PILOT_SHARE: u64 = 4;
/// The number of scouts, which look for modes that an evaluation may miss. They may at first take
/// the steps of an evaluation divided by `SCOUT_SHARE`.
const N_SCOUTS: usize = 32;
const SCOUT_SHARE: u64 = 16;
/// The standard error that tours aim for.
const TARGET: f64 = 0.03;
/// The tours of the estimate may take up to this multiple of their expected steps.
const MARGIN: f64 = 1.5;
/// The most seconds, on a nominal machine, that an enumeration of the last evaluation may take.
const LAST_EXACT_SECONDS: f64 = 10.0;
/// Seconds on one core of a nominal machine that tours or AIS of the last evaluation may always
/// take. Three evaluations may be needed: of the last model, and twice of the best one. On two
/// cores they take two seconds.
const LAST_SECONDS: f64 = 1.3;
/// The standard error that tours of the last evaluation aim for, unless the user gives one.
const LAST_TARGET: f64 = 0.02;

/// The measurements of a run after one epoch. Likelihoods are in nats per row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The number of epochs finished.
    pub epoch: usize,
    /// The number of hidden units.
    pub n_hidden: usize,
    /// The learning rate at the beginning of the epoch.
    pub learning_rate: f64,
    /// The norm of the gradient of the epoch's last update. It is 0 if that update was skipped.
    pub gradient_norm: f64,
    /// The root mean square of the weights.
    pub weight_rms: f64,
    /// `log Z`, if the epoch was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_z: Option<LogZ>,
    /// The mean log-likelihood of training rows, weighted if the rows have weights. During training
    /// it covers at most 5,000 rows; in the last evaluation it covers all rows. To compare epochs,
    /// use [`Metrics::curve_log_likelihood`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_log_likelihood: Option<f64>,
    /// The number of training rows behind `train_log_likelihood`, and the error that comes from
    /// their choice. It is present only in the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_rows: Option<JudgedRows>,
    /// The mean log-likelihood of the rows that all earlier evaluations used. It is present only in
    /// the last evaluation, if there are more than 5,000 training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_log_likelihood: Option<f64>,
    /// The mean log-likelihood of the validation rows, weighted if the rows have weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_log_likelihood: Option<f64>,
    /// The number of validation rows, and the error that comes from their choice. It is present only
    /// in the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_rows: Option<JudgedRows>,
    /// The mean pseudo-log-likelihood of 500 training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pseudo_log_likelihood: Option<f64>,
    /// The mean squared reconstruction error of 500 training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstruction_error: Option<f64>,
    /// The number of hidden units that are on for all of 500 rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_saturated: Option<usize>,
    /// The number of hidden units that are off for all of 500 rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_dead: Option<usize>,
    /// The number of other hidden units that do almost nothing: see [`Warning::Idle`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_idle: Option<usize>,
    /// The share of hidden bits of persistent chains that changed over the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains_moved: Option<f64>,
    /// Counts of tours, if the estimator uses tours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tours: Option<TourInfo>,
    /// Counts of exchanges between rungs, if the estimator uses ladders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tempering: Option<TemperingInfo>,
    /// Counts of pairs of coupled chains, if the estimator uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling: Option<CouplingInfo>,
    /// The best model of the run. It is present only in the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestModel>,
    /// The warnings that guards gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The seconds of training and evaluation so far.
    pub seconds: f64,
    /// The part of `seconds` that evaluations took.
    #[serde(default)]
    pub evaluation_seconds: f64,
}

impl Metrics {
    /// Returns the log-likelihood of training rows that can be compared with other epochs of the
    /// run, because it covers the same rows in all of them.
    pub fn curve_log_likelihood(&self) -> Option<f64> {
        self.watched_log_likelihood.or(self.train_log_likelihood)
    }

    /// Returns the log-likelihood that chooses the best model: of validation rows, or of training
    /// rows if there are none.
    pub fn judged_log_likelihood(&self) -> Option<f64> {
        self.validation_log_likelihood.or(self.curve_log_likelihood())
    }
}

/// The rows behind a mean log-likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedRows {
    /// The number of rows.
    pub n_rows: usize,
    /// The standard error of the mean from the choice of rows, in nats per row: how much the mean
    /// would vary with other rows. `None` for a single row.
    pub std_err: Option<f64>,
}

/// Rows, and their weights if they have some.
#[derive(Clone, Copy)]
pub(super) struct Weighted<'a> {
    pub(super) rows: &'a Rows,
    pub(super) weights: Option<&'a [f32]>,
}

/// How and when to evaluate a run.
pub(super) struct Monitor {
    watched: Rows,
    watched_weights: Option<Vec<f32>>,
    /// True if the watched rows are not all of the training rows.
    is_partial: bool,
    probed: Rows,
    base: Vec<f32>,
    timetable: Timetable,
    /// The standard error of the last evaluation that the user asks for.
    final_se: Option<f64>,
}

/// The occasion of an evaluation, which determines its random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion {
    /// During training, after this epoch.
    Epoch(usize),
    /// The last evaluation.
    Last,
    /// The last evaluation, for the model of this epoch.
    Candidate(usize),
    /// The evaluation of a candidate that was found to be the best. The evaluation that chose it
    /// must not report on it.
    Winner(usize),
}

impl Occasion {
    /// Returns a seed for each occasion of a run.
    fn seed(self, run: u64) -> u64 {
        match self {
            Self::Epoch(epoch) => run ^ epoch as u64,
            Self::Last => run ^ 1 << 40,
            Self::Candidate(epoch) => run ^ 2 << 40 ^ epoch as u64,
            Self::Winner(epoch) => run ^ 3 << 40 ^ epoch as u64,
        }
    }
}

impl Monitor {
    pub(super) fn new(settings: &CheckedSettings, train: Weighted<'_>, n_validation: usize) -> Self {
        let Weighted { rows: train, weights } = train;
        let watched = spread(train.n_rows(), WATCHED_ROWS);
        let probed = spread(train.n_rows(), PROBED_ROWS);
        let sizes = Sizes {
            n_visible: train.n_columns(),
            n_rows: train.n_rows(),
            n_watched: watched.len() + n_validation,
            n_probed: probed.len(),
        };
        Self {
            is_partial: watched.len() < train.n_rows(),
            watched: train.select(&watched),
            watched_weights: weights
                .map(|weights| watched.iter().map(|&r| weights[r]).collect::<Vec<f32>>())
                .filter(|weights| weights.iter().any(|&w| w > 0.0)),
            probed: train.select(&probed),
            base: base_bias(&train.column_means(), train.n_rows()),
            timetable: Timetable::new(settings, sizes),
            final_se: settings.final_se,
        }
    }

    /// Returns true if the run is evaluated after `epoch`.
    pub(super) fn is_due(&self, epoch: usize) -> bool {
        self.timetable.is_due(epoch)
    }

    /// Fills in the metrics that do not need `log Z`: pseudo-likelihood, reconstruction, and the
    /// use of hidden units.
    pub(super) fn probe(&self, rbm: &Rbm, metrics: &mut Metrics) -> Result<()> {
        let pseudo = rbm.pseudo_log_likelihood(&self.probed)?;
        metrics.pseudo_log_likelihood = Some(pseudo.iter().sum::<f64>() / pseudo.len() as f64);
        metrics.reconstruction_error = Some(rbm.reconstruction_error(&self.probed)?);
        let units = rbm.unit_use(&self.probed)?;
        metrics.n_saturated = Some(units.n_saturated);
        metrics.n_dead = Some(units.n_dead);
        metrics.n_idle = Some(units.n_idle);
        Ok(())
    }

    /// Fills in likelihoods of the watched rows and of validation rows. There are none if pilot
    /// tours forecast that the budget of an evaluation does not allow a sound value.
    pub(super) fn evaluate(
        &self,
        rbm: &Rbm,
        validation: Option<Weighted<'_>>,
        seed: u64,
        metrics: &mut Metrics,
        progress: &dyn Progress,
    ) -> Result<()> {
        let seed = Occasion::Epoch(metrics.epoch).seed(seed);
        let Some(log_z) = self.log_z(self.timetable.way, rbm, &self.watched, seed, progress)? else {
            return Ok(());
        };
        metrics.train_log_likelihood = Some(mean_log_likelihood(rbm, self.watched(), &log_z)?);
        metrics.validation_log_likelihood =
            validation.map(|rows| mean_log_likelihood(rbm, rows, &log_z)).transpose()?;
        metrics.log_z = Some(log_z);
        Ok(())
    }

    /// Fills in the likelihoods of a last model by `log_z`: of all training rows, of the watched
    /// rows, and of validation rows.
    pub(super) fn fill_in_last(
        &self,
        rbm: &Rbm,
        train: Weighted<'_>,
        validation: Option<Weighted<'_>>,
        log_z: LogZ,
        metrics: &mut Metrics,
    ) -> Result<()> {
        let (mean, rows) = judge(rbm, train, &log_z)?;
        (metrics.train_log_likelihood, metrics.train_rows) = (Some(mean), Some(rows));
        metrics.watched_log_likelihood =
            self.is_partial.then(|| mean_log_likelihood(rbm, self.watched(), &log_z)).transpose()?;
        let judged = validation.map(|rows| judge(rbm, rows, &log_z)).transpose()?;
        (metrics.validation_log_likelihood, metrics.validation_rows) = judged.unzip();
        metrics.log_z = Some(log_z);
        Ok(())
    }

    /// Returns `log Z` of a model in the last evaluation, from all training rows: by `method`, or
    /// by the best method that the budget allows, as in `mclv logz`.
    pub(super) fn last_log_z(
        &self,
        method: Option<Method>,
        rbm: &Rbm,
        train: &Rows,
        (occasion, seed): (Occasion, u64),
        progress: &dyn Progress,
    ) -> Result<LogZ> {
        let method = method.or((self.timetable.way == Way::Exact).then_some(Method::Exact));
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let budget = match self.final_se {
            // As much as `mclv logz` may take, by a nominal clock.
            Some(_) => Budget { clock: false, ..Budget::command(n_visible, n_hidden) },
            None => {
                let seconds = (self.timetable.budget / 3.0).max(LAST_SECONDS);
                Budget::evaluation(LAST_EXACT_SECONDS, seconds, n_visible, n_hidden)
            }
        };
        let settings = MethodSettings {
            effort: Effort::TargetSe(self.final_se.unwrap_or(LAST_TARGET)),
            budget,
            seed: occasion.seed(seed),
            ..Default::default()
        };
        let inputs = Inputs { rows: Some(train), base_bias: Some(&self.base), ..Default::default() };
        let log_z = Plan::new(rbm, method, &settings).run(&inputs, progress)?;
        Ok(without_unsound_error(log_z))
    }

    fn watched(&self) -> Weighted<'_> {
        Weighted { rows: &self.watched, weights: self.watched_weights.as_deref() }
    }

    fn log_z(
        &self,
        way: Way,
        rbm: &Rbm,
        rows: &Rows,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Option<LogZ>> {
        match way {
            Way::Exact => exact(rbm, &ExactSettings { time_limit: f64::INFINITY }, progress).map(Some),
            Way::Tours { max_steps } => by_tours(rbm, rows, &self.base, max_steps, seed, progress),
            Way::Ais { n_betas } => {
                let base_bias = Some(self.base.clone());
                let settings = AisSettings {
                    n_chains: N_CHAINS,
                    n_betas,
                    base_bias,
                    n_check: N_SCOUTS,
                    seed,
                    ..Default::default()
                };
                Ok(Some(without_unsound_error(ais(rbm, &settings, progress)?)))
            }
        }
    }
}

/// Returns the mean log-likelihood of rows, weighted if they have weights, with its error.
fn judge(rbm: &Rbm, part: Weighted<'_>, log_z: &LogZ) -> Result<(f64, JudgedRows)> {
    let values = rbm.log_likelihoods(part.rows, log_z)?;
    let rows = JudgedRows { n_rows: values.len(), std_err: weights::std_err(&values, part.weights) };
    Ok((weights::mean(&values, part.weights), rows))
}

/// Returns the mean log-likelihood of rows, weighted if they have weights.
pub(super) fn mean_log_likelihood(rbm: &Rbm, part: Weighted<'_>, log_z: &LogZ) -> Result<f64> {
    Ok(weights::mean(&rbm.log_likelihoods(part.rows, log_z)?, part.weights))
}

/// Returns the standard error of the difference of two models' likelihoods of the same rows: over
/// rows, and from both `log Z`. `None` if it is not known.
pub(super) fn std_err_of_difference(
    (rbm, log_z): (&Rbm, &LogZ),
    (other, other_log_z): (&Rbm, &LogZ),
    part: Weighted<'_>,
) -> Result<Option<f64>> {
    let mut differences = rbm.log_likelihoods(part.rows, log_z)?;
    let others = other.log_likelihoods(part.rows, other_log_z)?;
    differences.iter_mut().zip(others).for_each(|(difference, other)| *difference -= other);
    let of_rows = weights::std_err(&differences, part.weights);
    let errors = [of_rows, log_z.std_err, other_log_z.std_err];
    Ok(errors.into_iter().try_fold(0.0f64, |sum, error| Some(sum.hypot(error?))))
}

/// Returns `log Z` by tours to states of the rows, with a standard error of about 0.03. Returns
/// `None` if pilot tours do not all return, do not show the tail of their lengths, or forecast more
/// steps than the budget allows.
///
/// Only pilot tours decide whether the estimate is made. The tours of the estimate must not decide
/// it, because estimates that are kept only if they look good are biased.
fn by_tours(
    rbm: &Rbm,
    rows: &Rows,
    base: &[f32],
    max_steps: u64,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Option<LogZ>> {
    let some = spread(rows.n_rows(), SET_ROWS);
    let drawn = StoppingSet::draw(rbm, rows, &some, 1, seed, 0)?;
    let max_scout_steps = max_steps / SCOUT_SHARE;
    let (found, n_scout_steps) =
        states_to_join(rbm, Some(&drawn), Some(base), N_SCOUTS, seed, max_scout_steps, progress)?;
    let set = drawn.joined_by(found.as_ref());
    let engine = TourEngine::with_set(rbm, Cow::Owned(set))?;
    let limit = max_steps / PILOT_SHARE;
    let pilot = TourSettings {
        n_tours: PILOT_TOURS.min(limit as usize),
        max_steps: Some(limit),
        seed,
        occasion: 1,
        ..Default::default()
    };
    let pilot = engine.run(&pilot, progress)?;
    let is_seen = matches!(mean_interval(&pilot.lengths()), Ok(_) | Err(Declined::NoVariation));
    if pilot.n_complete() < pilot.n_tours() || !is_seen {
        return Ok(None);
    }
    let length = pilot.mean_length();
    let n_tours = (length.std_err / length.value / TARGET).powi(2) * pilot.n_tours() as f64;
    let n_tours = n_tours.max(PILOT_TOURS as f64);
    if MARGIN * n_tours * length.value > (max_steps - pilot.n_steps()) as f64 {
        return Ok(None);
    }
    let counted = TourSettings {
        n_tours: n_tours as usize,
        max_steps: Some(max_steps - pilot.n_steps()),
        seed,
        ..Default::default()
    };
    let tours = engine.run(&counted, progress)?;
    let mut log_z = mclv_from_tours(&engine, &tours, N_SCOUTS, seed, progress)?;
    log_z.n_states += (pilot.n_steps() + n_scout_steps) as f64;
    Ok(Some(without_unsound_error(log_z)))
}

/// Removes the standard error if the method declines to give an interval: an error bar that rests
/// on a few tours or chains is too small.
fn without_unsound_error(log_z: LogZ) -> LogZ {
    let is_sound = log_z.is_exact() || log_z.interval.is_some();
    LogZ { std_err: log_z.std_err.filter(|_| is_sound), ..log_z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::partition::{Guarantee, Method};
    use crate::progress::Silent;
    use crate::rng::{Purpose, stream};
    use crate::settings::Settings;

    const N_VISIBLE: usize = 60;

    /// Too large to enumerate; `log Z` in closed form, since only the first weights are not 0: a
    /// visible unit with its hidden unit each. Hidden units are mostly off if `bias` is low, and
    /// then tours return.
    fn model(n_hidden: usize, bias: f32) -> (Rbm, f64) {
        let mut w = vec![0.0; N_VISIBLE * n_hidden];
        (0..n_hidden).for_each(|j| w[j * n_hidden + j] = 1.0);
        let rbm = Rbm::new(N_VISIBLE, n_hidden, &w, &[-1.0; N_VISIBLE], &vec![bias; n_hidden]).unwrap();
        let (b, a) = (-1.0, f64::from(bias));
        let pair = (1.0 + f64::exp(b) + f64::exp(a) + f64::exp(a + b + 1.0)).ln();
        (rbm, n_hidden as f64 * pair + (N_VISIBLE - n_hidden) as f64 * f64::exp(b).ln_1p())
    }

    fn rows() -> Rows {
        let mut rng = stream(5, Purpose::SelfTest, 0).reader();
        Rows::Bits(BitRows::from_words(N_VISIBLE, (0..300).map(|_| u64::from(rng.next_u32()) << 8).collect()))
    }

    /// An evaluation of the curve; the same for any number of threads.
    fn evaluate(rbm: &Rbm) -> Metrics {
        let rows = rows();
        let train = Weighted { rows: &rows, weights: None };
        let n_hidden = Some(rbm.n_hidden());
        let settings = Settings { n_hidden, epochs: Some(3.into()), ..Default::default() };
        let settings = settings.check(rows.n_rows()).unwrap();
        let with = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let mut metrics = Metrics { epoch: 2, ..Default::default() };
            pool.install(|| {
                let monitor = Monitor::new(&settings, train, 0);
                monitor.probe(rbm, &mut metrics).unwrap();
                monitor.evaluate(rbm, None, 9, &mut metrics, &Silent).unwrap();
            });
            if let Some(log_z) = &mut metrics.log_z {
                log_z.seconds = 0.0;
            }
            metrics
        };
        let one = with(1);
        assert!(one == with(2) && one == with(5));
        assert!(one.pseudo_log_likelihood.is_some() && one.n_idle.is_some());
        one
    }

    /// Tours are used if pilot tours return, and are then right within six standard errors.
    /// Otherwise there is no likelihood, and no other method replaces them.
    #[test]
    fn models_of_middle_size_are_watched_by_tours_or_have_no_likelihood() {
        let (rbm, exact) = model(38, -5.0);
        let log_z = evaluate(&rbm).log_z.unwrap();
        assert_eq!((log_z.method, log_z.guarantee), (Method::Mclv, Guarantee::LowerBound));
        let std_err = log_z.std_err.unwrap();
        assert!(std_err <= 0.05 && (log_z.value - exact).abs() < 6.0 * std_err, "{log_z:?}, exact {exact}");
        let hopeless = evaluate(&model(38, 0.0).0);
        assert_eq!((hopeless.log_z, hopeless.train_log_likelihood), (None, None));
    }

    /// AIS: the standard error is known only if AIS gives an interval.
    #[test]
    fn large_models_are_watched_by_ais() {
        let (rbm, exact) = model(50, 0.0);
        let log_z = evaluate(&rbm).log_z.unwrap();
        assert_eq!(log_z.method, Method::Ais);
        assert_eq!(log_z.std_err.is_some(), log_z.interval.is_some());
        assert!((log_z.value - exact).abs() < 0.2, "{log_z:?}, exact {exact}");
    }

    /// The last model is evaluated on all rows and on those of the curve, if these are not the
    /// same.
    #[test]
    fn the_curve_compares_like_with_like() {
        let rbm = Rbm::new(3, 2, &[0.5, -1.0, 1.0, 0.5, 0.0, 2.0], &[0.1, -0.2, 0.3], &[0.0, -0.5]).unwrap();
        let evaluate = |n: usize| {
            let rows =
                Rows::Bits(BitRows::from_words(3, (0..n as u64).map(|r| (r * r + r / 7) % 8).collect()));
            let train = Weighted { rows: &rows, weights: None };
            let settings = Settings { n_hidden: Some(2), ..Default::default() }.check(n).unwrap();
            let monitor = Monitor::new(&settings, train, 0);
            let (mut before, mut last) = (Metrics::default(), Metrics::default());
            monitor.evaluate(&rbm, None, 1, &mut before, &Silent).unwrap();
            let log_z = before.log_z.clone().unwrap();
            monitor.fill_in_last(&rbm, train, None, log_z.clone(), &mut last).unwrap();
            let all = mean_log_likelihood(&rbm, train, &log_z).unwrap();
            assert_eq!(last.train_log_likelihood, Some(all));
            assert_eq!(last.curve_log_likelihood(), before.curve_log_likelihood());
            last
        };
        let (small, large) = (evaluate(WATCHED_ROWS), evaluate(2 * WATCHED_ROWS + 77));
        assert_eq!(small.watched_log_likelihood, None);
        assert_ne!(large.watched_log_likelihood, large.train_log_likelihood);
    }
}
