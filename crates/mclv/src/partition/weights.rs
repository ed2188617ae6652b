//! Summarise the importance weights of independent chains.

use super::Note;
use super::interval::split;

/// The mean of positive weights that are given by their logarithms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weights {
    /// The logarithm of the mean weight.
    pub(super) log_mean: f64,
    /// The standard error of `log_mean`, by the delta method.
    pub(super) std_err: f64,
    /// `(Σw)²/Σw²`: the number of equal weights that would give the same error.
    pub(super) effective: f64,
    /// The logarithm of the mean of log-normal weights with these moments, and its standard error.
    cox: (f64, f64),
    /// The standard deviation of the log weights.
    spread: f64,
    n: usize,
    interval: Option<(f64, f64)>,
}

/// An interval needs at least this many weights, and the log weights that decide may have at most
/// this standard deviation. If they vary more, the mean depends on large weights that have not been
/// seen.
const HEALTHY_SIZE: usize = 128;
const HEALTHY_SPREAD: f64 = 0.25;
/// A standard error needs this effective size, as a share of the chains. With a share of 0.37 and 32
/// hidden units, AIS was 3.5 standard errors too low; with 0.55 and 128 units, fifteen.
const KNOWN_SHARE: f64 = 2.0 / 3.0;
/// The upper half of the interval is widened by this factor, because a sample lacks large weights
/// rather than small ones.
const UPPER: f64 = 1.5;

impl Weights {
    /// Summarise at least two weights.
    pub(super) fn new(log_w: &[f64]) -> Self {
        let all = Self::without_interval(log_w);
        let (deciding, measuring) = split(log_w);
        let is_healthy =
            log_w.len() >= HEALTHY_SIZE && Self::without_interval(&deciding).spread <= HEALTHY_SPREAD;
        let interval = is_healthy.then(|| {
            let (low, high) = Self::without_interval(&measuring).around();
            // The reported value is the mean of all.
            (low.min(all.log_mean), high.max(all.log_mean))
        });
        Self { interval, ..all }
    }

    fn without_interval(log_w: &[f64]) -> Self {
        let n = log_w.len() as f64;
        let largest = log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let w = || log_w.iter().map(|x| (x - largest).exp());
        let mean = w().sum::<f64>() / n;
        let variance = w().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let mean_log = log_w.iter().sum::<f64>() / n;
        let variance_log = log_w.iter().map(|x| (x - mean_log).powi(2)).sum::<f64>() / (n - 1.0);
        let cox_variance = variance_log / n + variance_log.powi(2) / (2.0 * (n - 1.0));
        Self {
            cox: (mean_log + 0.5 * variance_log, cox_variance.sqrt()),
            log_mean: largest + mean.ln(),
            std_err: (variance / n).sqrt() / mean,
            effective: w().sum::<f64>().powi(2) / w().map(|w| w * w).sum::<f64>(),
            spread: variance_log.sqrt(),
            n: log_w.len(),
            interval: None,
        }
    }

    /// Returns a 95 % interval for the logarithm of the expected weight, or `None` if weights vary
    /// too much.
    ///
    /// Every fourth weight decides whether there is an interval, and the other weights give it. The
    /// interval is therefore independent of the decision, and samples that look good by chance do
    /// no harm.
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.interval
    }

    /// Returns the hull of two intervals: that of the delta method, which is right for many weights
    /// of any distribution, and Cox's for log-normal weights, which is right even if the rare large
    /// weights have not been seen.
    fn around(&self) -> (f64, f64) {
        let t = student(self.n - 1);
        let of = |(centre, error): (f64, f64)| (centre - t * error, centre + UPPER * t * error);
        let (plain, cox) = (of((self.log_mean, self.std_err)), of(self.cox));
        (plain.0.min(cox.0), plain.1.max(cox.1))
    }

    /// The standard deviation of the log weights.
    pub(super) fn spread(&self) -> f64 {
        self.spread
    }

    /// Returns true if the log weights vary so little that their mean can be trusted.
    pub(super) fn are_healthy(&self) -> bool {
        self.spread <= HEALTHY_SPREAD
    }

    /// Returns the standard error if at least two thirds of the chains carry the weight. Otherwise
    /// the standard error rests on a few large weights, and most often is far too small.
    pub(super) fn known_std_err(&self) -> Option<f64> {
        (self.effective >= KNOWN_SHARE * self.n as f64).then_some(self.std_err)
    }

    /// Returns notes for the reader, with remedies.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = vec![Note::EffectiveSampleSize {
            effective: self.effective,
            n_chains: self.n,
            spread: self.spread,
        }];
        if self.n < HEALTHY_SIZE {
            notes.push(Note::FewChains { enough: HEALTHY_SIZE });
        } else if self.interval.is_none() {
            notes.push(Note::UnequalWeights);
        }
        notes
    }
}

/// Returns the 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher. It is within
/// 0.01 from 4 degrees of freedom on.
pub(super) fn student(degrees: usize) -> f64 {
    let (z, d) = (1.959_963_985_f64, degrees as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * d)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * d * d)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * d.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Reader, stream};
    use std::f64::consts::{PI, SQRT_2};

    /// Log weights of unit standard deviation, and the logarithm of the mean weight if they are
    /// scaled by `sigma`.
    type Law = (&'static str, fn(&mut Reader) -> f64, fn(f64) -> f64);

    fn exponential(rng: &mut Reader) -> f64 {
        -rng.uniform().ln()
    }

    fn logit(rng: &mut Reader) -> f64 {
        let u = rng.uniform();
        (u / (1.0 - u)).ln()
    }

    /// From tails that end to weights like Pareto's. The last two had no part in the choice of
    /// constants.
    const LAWS: [Law; 5] = [
        ("normal", |rng| rng.normal(), |sigma| 0.5 * sigma * sigma),
        ("minus exponential", |rng| -exponential(rng), |sigma| -sigma.ln_1p()),
        ("exponential", exponential, |sigma| if sigma < 1.0 { -(-sigma).ln_1p() } else { f64::INFINITY }),
        ("Laplace", |rng| (exponential(rng) - exponential(rng)) / SQRT_2, |s| -(1.0 - 0.5 * s * s).ln()),
        (
            "logistic",
            |rng| logit(rng) * 3f64.sqrt() / PI,
            |s| {
                let x = 3f64.sqrt() * s;
                (x / x.sin()).ln()
            },
        ),
    ];

    /// The share of 4,000 simulated samples of size `n` that get an interval, and the share of all
    /// samples that it would cover. The deciding values do not measure, so this is also the
    /// coverage of the given intervals.
    fn coverage((_, draw, log_mean): Law, n: usize, sigma: f64) -> (f64, f64) {
        const RUNS: usize = 4000;
        let mut rng = stream(700, Purpose::SelfTest, n as u64).reader();
        let (mut given, mut covered) = (0, 0);
        for _ in 0..RUNS {
            let log_w: Vec<f64> = (0..n).map(|_| sigma * draw(&mut rng)).collect();
            given += usize::from(Weights::new(&log_w).interval().is_some());
            let (low, high) = Weights::without_interval(&split(&log_w).1).around();
            covered += usize::from((low..=high).contains(&log_mean(sigma)));
        }
        (given as f64 / RUNS as f64, covered as f64 / RUNS as f64)
    }

    /// By simulation, with light and heavy tails: where more than 0.2 % of samples get an interval,
    /// at least 93 % of these cover. The limit is 3.5 standard errors of 4,000 runs lower, at 91.6
    /// %: a law that covers exactly 93 % fails for 2 seeds in 10,000.
    #[test]
    fn intervals_cover_where_they_are_given() {
        eprintln!("law, n, standard deviation: given, coverage");
        for law in LAWS {
            for n in [128, 512] {
                for sigma in [0.05, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0] {
                    let (given, covered) = coverage(law, n, sigma);
                    let case = format!("{} {n} {sigma}: given {given:.4}, covers {covered:.3}", law.0);
                    eprintln!("{case}");
                    assert!(given <= 0.002 || covered >= 0.916, "{case}");
                    assert!(sigma > 0.15 || given > 0.97, "{case}");
                    assert!(sigma < 0.5 || given < 0.01, "{case}");
                }
            }
        }
    }

    /// The control: the delta method's interval, given always, falls short.
    #[test]
    fn the_plain_interval_is_caught() {
        let mut rng = stream(701, Purpose::SelfTest, 0).reader();
        let covers = |_: &usize| {
            let log_w: Vec<f64> = (0..128).map(|_| 0.6 * exponential(&mut rng)).collect();
            let weights = Weights::without_interval(&log_w);
            (weights.log_mean + 0.4f64.ln()).abs() < student(127) * weights.std_err
        };
        let covered = (0..4000).filter(covers).count() as f64 / 4000.0;
        assert!(covered < 0.9, "{covered}");
    }

    /// Where half of the samples or more print a standard error, the root mean square of the error in
    /// units of the printed one is at most 1.3. The control: if a quarter of the chains is enough, it
    /// is more than 1.8.
    #[test]
    fn printed_standard_errors_are_long_enough() {
        const RUNS: usize = 500;
        let mut worst = [0.0f64; 2];
        for (name, draw, log_mean) in LAWS {
            for sigma in [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9] {
                let mut rng = stream(702, Purpose::SelfTest, 0).reader();
                let samples: Vec<Weights> = (0..RUNS)
                    .map(|_| (0..128).map(|_| sigma * draw(&mut rng)).collect::<Vec<f64>>())
                    .map(|log_w| Weights::without_interval(&log_w))
                    .collect();
                for (worst, share) in worst.iter_mut().zip([KNOWN_SHARE, 0.25]) {
                    let printed: Vec<f64> = samples
                        .iter()
                        .filter(|weights| weights.effective >= share * 128.0)
                        .map(|weights| (weights.log_mean - log_mean(sigma)) / weights.std_err)
                        .collect();
                    let squares: f64 = printed.iter().map(|z| z * z).sum();
                    let rms = (squares / printed.len() as f64).sqrt();
                    eprintln!("{name} {sigma}, share {share:.2}: {} of {RUNS}, {rms:.2}", printed.len());
                    if 2 * printed.len() >= RUNS {
                        assert!(rms.is_finite());
                        *worst = worst.max(rms);
                    }
                }
            }
        }
        assert!(worst[0] <= 1.3 && worst[1] > 1.8, "{worst:?}");
    }

    #[test]
    fn quantiles_are_those_of_student() {
        for (degrees, t) in [(4, 2.776), (7, 2.365), (11, 2.201), (30, 2.042), (1000, 1.962)] {
            assert!((student(degrees) - t).abs() < 0.01, "{degrees}: {}", student(degrees));
        }
    }

    #[test]
    fn equal_weights_have_no_error_however_large() {
        let weights = Weights::new(&[1e4; 128]);
        assert_eq!((weights.log_mean, weights.std_err, weights.effective), (1e4, 0.0, 128.0));
        assert_eq!(weights.interval(), Some((1e4, 1e4)));
        assert_eq!(weights.notes().len(), 1);
        assert!(Weights::new(&[0.0; 127]).notes()[1].to_string().contains("take 128 chains"));
    }
}
