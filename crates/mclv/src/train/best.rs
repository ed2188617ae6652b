//! Track the best evaluation of a training, and check at the end whether it was more than luck.

use super::Metrics;
use crate::Result;
use crate::partition::LogZ;
use serde::{Deserialize, Serialize};

/// A guard warns of a fall only if the likelihood is lower by at least this many nats, …
const MIN_FALL: f64 = 1.0;
/// … by more than this many standard errors of the difference, …
const FALL_ERRORS: f64 = 3.0;
/// … in this many evaluations in a row, …
const MIN_EVALUATIONS_BELOW: usize = 2;
/// … and for the run's epochs divided by this number. With a high learning rate the likelihood can
/// drop by ten nats and recover a few epochs later.
const FALL_SHARE: usize = 10;
/// A candidate beats the last model only by more than this many standard errors of the difference.
const BETTER_ERRORS: f64 = 2.0;

/// The best model of a run, as determined by the last evaluation.
///
/// The likelihoods during training choose a candidate. The candidate and the last model are then
/// evaluated by the same method on the same rows, with random numbers that no choice has depended
/// on. The last model is the best unless the candidate is better by more than the error of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestModel {
    /// The number of epochs after which the model was the best.
    pub epoch: usize,
    /// The mean log-likelihood of the validation rows, or of all training rows if there are none,
    /// in nats per row.
    pub log_likelihood: f64,
    /// `log Z` of the model, with which the likelihood was computed.
    pub log_z: LogZ,
    /// The standard error of its lead: of the difference between its likelihood and that of the last
    /// model, for other rows and from both `log Z`. `None` for the last model itself, and if the
    /// error is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_std_err: Option<f64>,
}

impl BestModel {
    /// Returns true if this model is better than `other` by more than the error of both. Returns
    /// false if one of the errors is not known.
    fn is_above(&self, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (self.log_z.std_err, other.log_z.std_err) else { return false };
        self.log_likelihood - other.log_likelihood > BETTER_ERRORS * mine.hypot(theirs)
    }
}

/// Returns the better of the last model and a candidate. `evaluate` evaluates the candidate; each
/// call must use new random numbers.
///
/// # Guarantee
/// The reported likelihood of a candidate did not choose it: unless it is exact, the candidate is
/// evaluated again after it was found to be better.
pub(super) fn better(
    last: BestModel,
    mut evaluate: impl FnMut(Look) -> Result<BestModel>,
) -> Result<BestModel> {
    if last.log_z.std_err.is_none() {
        return Ok(last);
    }
    let candidate = evaluate(Look::Choose)?;
    match candidate.is_above(&last) {
        false => Ok(last),
        true if candidate.log_z.is_exact() => Ok(candidate),
        true => evaluate(Look::Report),
    }
}

/// The purpose of evaluating a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// To compare it with the last model.
    Choose,
    /// To report its likelihood.
    Report,
}

/// The best evaluation so far. Floats are kept as bits, because a resumed run must be exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    /// The epoch of the best evaluation, and its likelihood of validation rows (else of training
    /// rows) as bits.
    best: Option<(usize, u64)>,
    /// The number of evaluations since then.
    since_best: usize,
    /// The evaluation with the highest likelihood of training rows.
    #[serde(default)]
    peak: Option<Peak>,
}

/// The evaluation with the highest likelihood of training rows. Floats are kept as bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Peak {
    log_likelihood: u64,
    std_err: Option<u64>,
    reconstruction: u64,
    /// The number of evaluations in a row since then whose likelihood was lower by more than noise,
    /// with a better reconstruction.
    n_below: usize,
    /// The epoch of the first of these evaluations.
    #[serde(default)]
    first_below: usize,
}

/// The judgement of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Judgement {
    /// True if the model is better than any before.
    pub(super) is_best: bool,
    /// The fall of the likelihood of training rows, in nats, while the reconstruction improved.
    pub(super) fallen: Option<f64>,
}

impl Best {
    /// The epoch and the likelihood of the best evaluation.
    pub(super) fn get(&self) -> Option<(usize, f64)> {
        self.best.map(|(epoch, bits)| (epoch, f64::from_bits(bits)))
    }

    /// Returns true if this can be the record of a run of `epochs` epochs so far.
    pub(super) fn is_sound(&self, epochs: usize) -> bool {
        let is_finite = |bits: u64| f64::from_bits(bits).is_finite();
        let is_peak = |peak: &Peak| {
            is_finite(peak.log_likelihood)
                && peak.std_err.is_none_or(is_finite)
                && peak.n_below <= epochs + 1
                && peak.first_below <= epochs
        };
        self.best.is_none_or(|(epoch, value)| epoch <= epochs && is_finite(value))
            && self.since_best <= epochs + 1
            && self.peak.as_ref().is_none_or(is_peak)
    }

    /// Returns true if this many evaluations have brought no improvement.
    pub(super) fn is_out_of_patience(&self, patience: Option<usize>) -> bool {
        patience.is_some_and(|patience| self.since_best >= patience)
    }

    /// Counts evaluations without improvement from zero again.
    pub(super) fn renew_patience(&mut self) {
        self.since_best = 0;
    }

    /// Judges an evaluation of a run of `n_epochs`.
    pub(super) fn judge(&mut self, metrics: &Metrics, n_epochs: usize) -> Judgement {
        let Some(value) = metrics.judged_log_likelihood().filter(|v| v.is_finite()) else {
            return Judgement::default();
        };
        let is_best = self.get().is_none_or(|(_, best)| value > best);
        if is_best {
            self.best = Some((metrics.epoch, value.to_bits()));
            self.since_best = 0;
        } else {
            self.since_best += 1;
        }
        Judgement { is_best, fallen: self.fall(metrics, n_epochs) }
    }

    /// Returns how far the likelihood of training rows is below its peak, if the fall is more than
    /// noise, has lasted, and the reconstruction is better. Validation rows are not used: a fall on
    /// them while training rows gain is overfitting.
    fn fall(&mut self, metrics: &Metrics, n_epochs: usize) -> Option<f64> {
        let value = metrics.curve_log_likelihood()?;
        let std_err = metrics.log_z.as_ref().and_then(|z| z.std_err);
        let reconstruction = metrics.reconstruction_error.unwrap_or(f64::NAN);
        let peak = match &mut self.peak {
            Some(peak) if value <= f64::from_bits(peak.log_likelihood) => peak,
            higher => {
                *higher = Some(Peak {
                    log_likelihood: value.to_bits(),
                    std_err: std_err.map(f64::to_bits),
                    reconstruction: reconstruction.to_bits(),
                    n_below: 0,
                    first_below: 0,
                });
                return None;
            }
        };
        let by = f64::from_bits(peak.log_likelihood) - value;
        let noise = std_err.zip(peak.std_err).map(|(now, then)| now.hypot(f64::from_bits(then)));
        let is_below = noise.is_some_and(|noise| by > MIN_FALL + FALL_ERRORS * noise)
            && reconstruction < f64::from_bits(peak.reconstruction);
        if !is_below {
            peak.n_below = 0;
            return None;
        }
        if peak.n_below == 0 {
            peak.first_below = metrics.epoch;
        }
        peak.n_below += 1;
        let has_lasted = metrics.epoch - peak.first_below >= n_epochs / FALL_SHARE;
        (peak.n_below >= MIN_EVALUATIONS_BELOW && has_lasted).then_some(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{Guarantee, Method};
    use crate::rng::{Purpose, Reader, stream};

    fn log_z(std_err: Option<f64>) -> LogZ {
        let guarantee = if std_err == Some(0.0) { Guarantee::Exact } else { Guarantee::UnbiasedZ };
        let method = Method::Mclv;
        LogZ {
            value: 0.0,
            std_err,
            interval: None,
            guarantee,
            method,
            n_states: 0.0,
            seconds: 0.0,
            notes: vec![],
        }
    }

    fn model(epoch: usize, log_likelihood: f64, std_err: Option<f64>) -> BestModel {
        BestModel { epoch, log_likelihood, log_z: log_z(std_err), lead_std_err: None }
    }

    /// A standard normal number, by twelve uniform ones.
    fn normal(rng: &mut Reader) -> f64 {
        (0..12).map(|_| f64::from(rng.next_u32()) / 2f64.powi(32)).sum::<f64>() - 6.0
    }

    /// Many runs with twenty candidates and a last model, all of the same quality, and evaluations
    /// with a standard error of 0.05. The value reported for the best model is right on average:
    /// over 4,000 runs its mean is within 0.1 standard errors, which are 6 of its own (what remains
    /// of the choice between two is below 0.05). Given that a candidate was chosen, it is right as
    /// well. The control, the largest value of the curve, is off by 1.8.
    #[test]
    fn the_winner_has_no_curse() {
        const SE: f64 = 0.05;
        let mut rng = stream(31, Purpose::SelfTest, 0).reader();
        let (mut sum, mut of_candidates, mut n_candidates, mut naive) = (0.0, 0.0, 0, 0.0);
        let n_runs = 4000;
        for _ in 0..n_runs {
            let mut best = Best::default();
            for epoch in 1..=20 {
                best.judge(&evaluation(epoch, SE * normal(&mut rng), Some(SE), 0.1), 21);
            }
            let (epoch, largest) = best.get().unwrap();
            let last = model(21, SE * normal(&mut rng), Some(SE));
            let found = better(last, |_| Ok(model(epoch, SE * normal(&mut rng), Some(SE)))).unwrap();
            sum += found.log_likelihood;
            naive += largest;
            if found.epoch == epoch {
                (of_candidates, n_candidates) = (of_candidates + found.log_likelihood, n_candidates + 1);
            }
        }
        let (mean, naive) = (sum / f64::from(n_runs), naive / f64::from(n_runs));
        assert!(mean.abs() < 0.1 * SE, "{mean}");
        let of_candidates = of_candidates / f64::from(n_candidates);
        // A candidate is chosen by mistake in 2.3 % of the runs.
        assert!((50..140).contains(&n_candidates), "{n_candidates}");
        assert!(of_candidates.abs() < 4.5 * SE / f64::from(n_candidates).sqrt(), "{of_candidates}");
        assert!(naive > 1.5 * SE, "the control: {naive}");
    }

    fn evaluation(epoch: usize, likelihood: f64, std_err: Option<f64>, reconstruction: f64) -> Metrics {
        Metrics {
            epoch,
            train_log_likelihood: Some(likelihood),
            reconstruction_error: Some(reconstruction),
            log_z: Some(log_z(std_err)),
            ..Metrics::default()
        }
    }

    #[test]
    fn a_candidate_must_be_better_beyond_the_error_of_both() {
        let chosen = |last: (f64, Option<f64>), candidate: (f64, Option<f64>)| {
            better(model(9, last.0, last.1), |_| Ok(model(5, candidate.0, candidate.1))).unwrap().epoch
        };
        assert_eq!(chosen((-2.0, Some(0.0)), (-1.9, Some(0.0))), 5);
        assert_eq!(chosen((-2.0, Some(0.0)), (-2.0, Some(0.0))), 9);
        assert_eq!(chosen((-2.0, Some(0.05)), (-1.9, Some(0.05))), 9);
        assert_eq!(chosen((-2.0, Some(0.05)), (-1.8, Some(0.05))), 5);
        assert_eq!(chosen((-2.0, None), (-1.0, Some(0.05))), 9);
        assert_eq!(chosen((-2.0, Some(0.05)), (-1.0, None)), 9);
    }

    /// A fall is reported if the errors of both evaluations are known, and if it is larger than
    /// they explain, seen twice, and lasts a tenth of the run.
    #[test]
    fn a_fall_takes_evidence() {
        let falls = |then: Option<f64>, values: &[(f64, Option<f64>, f64)]| {
            let mut best = Best::default();
            best.judge(&evaluation(1, -10.0, then, 0.3), 20);
            let epochs = (2..).step_by(2);
            let all = epochs.zip(values).map(|(epoch, &(x, se, error))| evaluation(epoch, x, se, error));
            all.map(|metrics| best.judge(&metrics, 20).fallen).last().unwrap()
        };
        let (exact, noisy) = (Some(0.0), Some(0.5));
        assert_eq!(falls(exact, &[(-11.5, exact, 0.2)]), None);
        assert_eq!(falls(exact, &[(-11.5, exact, 0.2), (-11.5, exact, 0.2)]), Some(1.5));
        assert_eq!(falls(exact, &[(-11.5, exact, 0.2), (-10.5, exact, 0.2), (-11.5, exact, 0.2)]), None);
        assert_eq!(falls(exact, &[(-11.5, exact, 0.4), (-11.5, exact, 0.4)]), None);
        assert_eq!(falls(noisy, &[(-11.5, exact, 0.2), (-11.5, exact, 0.2)]), None);
        assert_eq!(falls(noisy, &[(-13.5, noisy, 0.2), (-13.5, noisy, 0.2)]), Some(3.5));
        assert_eq!(falls(exact, &[(-13.5, None, 0.2), (-13.5, None, 0.2)]), None);
        assert_eq!(falls(None, &[(-13.5, exact, 0.2), (-13.5, exact, 0.2)]), None);
        // Of 20 epochs, one does not count as lasting; in a run of 10 it does.
        for (n_epochs, expected) in [(20, None), (10, Some(1.5))] {
            let mut best = Best::default();
            let all = [(1, -10.0, 0.3), (2, -11.5, 0.2), (3, -11.5, 0.2)];
            let judged =
                all.map(|(epoch, x, e)| best.judge(&evaluation(epoch, x, exact, e), n_epochs).fallen);
            assert_eq!(judged, [None, None, expected]);
        }
    }

    /// Overfitting is not a fall: validation rows lose, training rows gain.
    #[test]
    fn overfitting_is_not_a_fall() {
        let mut best = Best::default();
        for epoch in 1..9 {
            let x = epoch as f64;
            let mut metrics = evaluation(epoch, -10.0 + x, Some(0.0), 0.3 - 0.01 * x);
            metrics.validation_log_likelihood = Some(-10.0 - 2.0 * x);
            assert_eq!(best.judge(&metrics, 9), Judgement { is_best: epoch == 1, fallen: None });
        }
        assert!(best.is_out_of_patience(Some(7)) && !best.is_out_of_patience(Some(8)));
    }
}
