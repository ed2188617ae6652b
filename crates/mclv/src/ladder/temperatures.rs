//! Choose the temperatures between a base model and a model.

use super::path::{Path, Replicas};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How inverse temperatures are spaced between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Evenly spaced.
    Linear,
    /// Closer at both ends: evenly spaced points through a logistic function from −4 to 4.
    Sigmoid,
    /// Dense where the distribution changes fast: equal steps of thermodynamic length, which a
    /// pilot of other chains measures.
    #[default]
    Adaptive,
}

impl Spacing {
    /// Returns `n + 1` temperatures from 0 to 1.
    pub(crate) fn ladder(
        self,
        path: &Path<'_>,
        n: usize,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<f64>> {
        let even = |t: usize| t as f64 / n as f64;
        Ok(match self {
            Self::Linear => (0..=n).map(even).collect(),
            Self::Sigmoid => (0..=n).map(|t| logistic(even(t))).collect(),
            Self::Adaptive => Pilot::run(path, (n / 4).clamp(20, 500), seed, progress)?.ladder(n),
        })
    }
}

/// Maps [0, 1] to [0, 1] by a logistic curve, flat at both ends.
fn logistic(t: f64) -> f64 {
    const STEEPNESS: f64 = 4.0;
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let end = sigmoid(-STEEPNESS);
    ((sigmoid(STEEPNESS * (2.0 * t - 1.0)) - end) / (1.0 - 2.0 * end)).clamp(0.0, 1.0)
}

/// Chains of the pilot, and chains per unit of parallel work.
const PILOT_CHAINS: usize = 32;
const BLOCK: usize = 16;

/// The share of the temperatures that are placed without the pilot, because the pilot may have
/// missed something.
const RESERVE: f64 = 0.1;

/// Measurements of pilot chains along the path. These chains are not part of any estimate.
pub(crate) struct Pilot {
    /// A coarse ladder.
    betas: Vec<f64>,
    /// The thermodynamic length `∫ sd(d log p*_β / dβ) dβ` from 0 to each temperature of `betas`.
    length: Vec<f64>,
}

impl Pilot {
    /// Anneals along `n` temperatures and measures how much the slopes of the log weights differ
    /// between chains.
    pub(crate) fn run(path: &Path<'_>, n: usize, seed: u64, progress: &dyn Progress) -> Result<Self> {
        let betas: Vec<f64> = (0..=n).map(|t| logistic(t as f64 / n as f64)).collect();
        let of_block = |block: usize| {
            let chains = block * BLOCK..(block + 1) * BLOCK;
            let streams = chains.map(|chain| stream(seed, Purpose::Pilot, chain as u64)).collect();
            let mut replicas = Replicas::from_base(path, streams);
            let mut slopes = vec![Vec::new(); BLOCK];
            for (t, &beta) in betas.iter().enumerate() {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                if t > 0 {
                    replicas.step(|_| beta);
                }
                for (r, slopes) in slopes.iter_mut().enumerate() {
                    slopes.push(replicas.slope(r, beta));
                }
            }
            Ok(slopes)
        };
        let slopes: Vec<Vec<f64>> = team::try_blocks(PILOT_CHAINS / BLOCK, of_block)?.concat();
        let sd: Vec<f64> = (0..=n).map(|t| standard_deviation(slopes.iter().map(|s| s[t]))).collect();
        let mut length = vec![0.0; n + 1];
        for t in 1..=n {
            length[t] = length[t - 1] + 0.5 * (sd[t] + sd[t - 1]) * (betas[t] - betas[t - 1]);
        }
        Ok(Self { betas, length })
    }

    /// The thermodynamic length of the whole path.
    pub(crate) fn length(&self) -> f64 {
        self.length[self.length.len() - 1]
    }

    /// Returns `n + 1` temperatures from 0 to 1 at equal distances along the path.
    pub(crate) fn ladder(&self, n: usize) -> Vec<f64> {
        let last = self.betas.len() - 1;
        let total = self.length();
        // Without weights all chains have the same slopes, and any ladder will do.
        let reserve = if total > 0.0 { RESERVE } else { 1.0 };
        let position = |t: usize| {
            let seen = if total > 0.0 { self.length[t] / total } else { 0.0 };
            reserve * t as f64 / last as f64 + (1.0 - reserve) * seen
        };
        let mut ladder = Vec::with_capacity(n + 1);
        let mut t = 1;
        for k in 0..n {
            let wanted = k as f64 / n as f64;
            while t < last && position(t) < wanted {
                t += 1;
            }
            let (from, to) = (position(t - 1), position(t));
            let share = (wanted - from) / (to - from);
            ladder.push(self.betas[t - 1] + share * (self.betas[t] - self.betas[t - 1]));
        }
        ladder.push(1.0);
        ladder
    }
}

fn standard_deviation(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = x.clone().count() as f64;
    let mean = x.clone().sum::<f64>() / n;
    (x.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Kept;
    use crate::model::Rbm;
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;
    use crate::progress::tests::StopsOnce;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_ladder_rises_from_base_to_model() {
        let without_weights = Rbm::new(4, 2, &[0.0; 8], &[0.5; 4], &[0.0; 2]).unwrap();
        for rbm in [random_rbm(12, 6, 2.0, 300), without_weights] {
            let path = Path::new(&rbm, None, Kept::Visible).unwrap();
            for spacing in [Spacing::Linear, Spacing::Sigmoid, Spacing::Adaptive] {
                for n in [2, 3, 50, 1000] {
                    let ladder = spacing.ladder(&path, n, 1, &Silent).unwrap();
                    assert_eq!((ladder.len(), ladder[0], ladder[n]), (n + 1, 0.0, 1.0), "{spacing:?}");
                    assert!(ladder.windows(2).all(|pair| pair[0] < pair[1]), "{spacing:?}: {ladder:?}");
                }
            }
        }
    }

    /// Without weights, from a base of 0 to biases of 2, the slope is `2Σv` at `p_β`, whose
    /// variance is `Σ 4σ(2β)σ(−2β)`. Each of 400 standard deviations is known to 1/√62 from 32
    /// chains, and steps are independent: the length is within 5 % (more than 4.5 standard errors,
    /// false alarm 7e-6).
    #[test]
    fn the_length_of_independent_units_is_known() {
        let n = 50;
        let rbm = Rbm::new(n, 1, &vec![0.0; n], &vec![2.0; n], &[0.0]).unwrap();
        let path = Path::new(&rbm, Some(&vec![0.0; n]), Kept::Visible).unwrap();
        let pilot = Pilot::run(&path, 400, 3, &Silent).unwrap();
        let sd = |beta: f64| {
            let p = 1.0 / (1.0 + (-2.0 * beta).exp());
            (n as f64 * 4.0 * p * (1.0 - p)).sqrt()
        };
        let exact: f64 = (0..1000).map(|k| sd((k as f64 + 0.5) / 1000.0) / 1000.0).sum();
        assert!((pilot.length() / exact - 1.0).abs() < 0.05, "{} against {exact}", pilot.length());
    }

    #[test]
    fn a_pilot_stops_when_told() {
        let rbm = random_rbm(5, 3, 1.0, 301);
        let path = Path::new(&rbm, None, Kept::Visible).unwrap();
        let stop = AtomicBool::new(true);
        assert!(matches!(Spacing::Adaptive.ladder(&path, 10, 1, &stop), Err(Error::Cancelled)));
    }

    /// 2 blocks of chains ask at 21 temperatures each; one wish to stop, at any of them, is enough.
    #[test]
    fn a_pilot_stops_when_told_once() {
        let rbm = random_rbm(5, 3, 1.0, 301);
        let path = Path::new(&rbm, None, Kept::Visible).unwrap();
        for n in [0, 1, 20, 40] {
            let once = StopsOnce::at_question(n);
            assert!(matches!(Spacing::Adaptive.ladder(&path, 10, 1, &once), Err(Error::Cancelled)), "{n}");
        }
    }
}
