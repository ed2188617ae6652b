//! Schedules of the learning rate.

use crate::words::words;

/// How the learning rate changes over a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// `η₀` in every epoch.
    Constant,
    /// `η₀/⌈(1 + epoch)/10⌉`, as in the paper.
    Plateau,
    /// `η₀(1 − t)`, `t` from 0 to 1 over the run.
    Linear,
    /// `η₀(1 + cos πt)/2`.
    Cosine,
}

words!(Schedule as "schedule" {
    Constant = "constant",
    Plateau = "plateau",
    Linear = "linear",
    Cosine = "cosine",
});

impl Schedule {
    /// The rate at `update` of `n_updates` in `epoch` of `epochs`, all counted from 0.
    ///
    /// ```
    /// use mclv::settings::Schedule;
    /// assert_eq!(Schedule::Plateau.rate(0.1, 10, 100, 0, 429), 0.05);
    /// assert_eq!(Schedule::Linear.rate(1.0, 1, 2, 0, 4), 0.5);
    /// ```
    pub fn rate(self, initial: f64, epoch: usize, epochs: usize, update: usize, n_updates: usize) -> f64 {
        let t = (epoch as f64 + update as f64 / n_updates.max(1) as f64) / epochs.max(1) as f64;
        match self {
            Self::Constant => initial,
            Self::Plateau => initial / (1 + epoch).div_ceil(10) as f64,
            Self::Linear => initial * (1.0 - t),
            Self::Cosine => initial * 0.5 * (1.0 + (std::f64::consts::PI * t).cos()),
        }
    }
}
