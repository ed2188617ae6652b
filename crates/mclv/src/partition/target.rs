//! Choose the size of AIS, reverse AIS and BAR that reaches a wanted standard error.
//!
//! A pilot measures how much chains or ladders differ. The estimate itself uses other random numbers
//! and decides nothing.

use super::budget::{AIS_STEPS, MIN_BETAS};
use super::{LogZ, Note};
use crate::ladder::MAX_RECORDS;
use crate::{Error, Result};

/// Temperatures of the pilot of AIS.
const PILOT_BETAS: usize = 1_000;
/// AIS aims for log weights with at most this standard deviation, because it has no interval if they
/// vary more than by 0.25.
const SPREAD: f64 = 0.2;
/// Steps of each ladder of the pilot of BAR.
const PILOT_STEPS: usize = 400;
/// The least and the most steps of each ladder of BAR.
const N_STEPS: (usize, usize) = (400, 1 << 24);
/// The most temperatures of AIS.
const MAX_BETAS: usize = 1 << 24;
/// Sizes are this much larger than the pilot says, because the pilot is short.
const MARGIN: f64 = 1.3;
/// A standard error is said to miss the target if it is larger by this factor.
const MISSED: f64 = 1.25;

/// A wanted standard error of `log Z`, for methods that otherwise have a fixed size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The wanted standard error.
    pub std_err: f64,
    /// The number of Gibbs steps that the method may make. `None` means no limit.
    pub max_steps: Option<u64>,
}

impl Target {
    /// Returns the number of temperatures at which `n_chains` chains of AIS should reach the target,
    /// and the number of steps of the pilot. `spread` returns the standard deviation of the log
    /// weights of chains through some number of temperatures.
    ///
    /// The variance of log weights is inversely proportional to the number of temperatures. If they
    /// are normal with variance `σ²`, the standard error of the log of their mean is
    /// `√((exp(σ²) − 1)/n)`.
    pub(super) fn n_betas(
        self,
        n_chains: usize,
        spread: impl FnOnce(usize) -> Result<f64>,
    ) -> Result<(usize, f64)> {
        self.check()?;
        let wanted = (n_chains as f64 * self.std_err.powi(2)).ln_1p().sqrt().min(SPREAD);
        let needed = PILOT_BETAS as f64 * (spread(PILOT_BETAS)? / wanted).powi(2) * MARGIN;
        let n_pilot = (n_chains * PILOT_BETAS) as f64;
        // A second base model takes half as many steps again.
        let per_beta = 1.5 * AIS_STEPS * n_chains as f64;
        let affordable = self.max_steps.map_or(f64::INFINITY, |n| n as f64 / per_beta);
        let n_betas = needed.min(affordable) as usize;
        Ok((n_betas.clamp(MIN_BETAS, MAX_BETAS), n_pilot))
    }

    /// Returns the number of recorded steps at which each ladder of BAR should reach the target.
    /// `pilot` runs ladders for some number of steps, and returns the standard error and the number
    /// of chains of all ladders.
    pub(super) fn n_steps(self, pilot: impl FnOnce(usize) -> Result<(f64, usize)>) -> Result<usize> {
        self.check()?;
        let (std_err, n_chains) = pilot(PILOT_STEPS)?;
        let needed = PILOT_STEPS as f64 * (std_err / self.std_err).powi(2) * MARGIN;
        // A quarter more for the burn-in, and half as many for a second base model.
        let per_step = 1.25 * 1.5 * AIS_STEPS * n_chains as f64;
        let affordable = self.max_steps.map_or(f64::INFINITY, |n| n as f64 / per_step);
        // The records of all ladders take memory.
        let recordable = (MAX_RECORDS / 2 / n_chains) as f64;
        Ok((needed.min(affordable).min(recordable) as usize).clamp(N_STEPS.0, N_STEPS.1))
    }

    /// Adds a note to an estimate that misses the target.
    pub(super) fn tell(self, log_z: &mut LogZ) {
        if let Some(ratio) = log_z.std_err.map(|se| se / self.std_err).filter(|ratio| *ratio > MISSED) {
            log_z.notes.push(Note::TargetMissed { ratio });
        }
    }

    fn check(self) -> Result<()> {
        if self.std_err > 0.0 && self.std_err.is_finite() {
            return Ok(());
        }
        Err(Error::InvalidSetting { name: "target-se", value: self.std_err.to_string(), cure: "more than 0" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::partition::{
        AisSettings, BarSettings, Origin, ReverseAisSettings, ais, bar, exact, exact_samples, reverse_ais,
    };
    use crate::progress::Silent;

    /// Three methods at two targets on a model of 30 × 12 units: each reaches a standard error of at
    /// most 1.5 times the target, the errors are as large as this says (|z| < 5, false alarm 4e-6
    /// for a normal error), and a smaller target costs more steps.
    #[test]
    fn every_method_reaches_its_target() {
        let rbm = random_rbm(30, 12, 0.6, 900);
        let truth = exact(&rbm, &Default::default(), &Silent).unwrap().value;
        let states = exact_samples(&rbm, 128, 1, &Default::default(), &Silent).unwrap();
        type ByTarget<'a> = &'a dyn Fn(Option<Target>) -> LogZ;
        let methods: [(&str, ByTarget<'_>); 3] = [
            ("ais", &|target| ais(&rbm, &AisSettings { target, ..Default::default() }, &Silent).unwrap()),
            ("reverse-ais", &|target| {
                let settings = ReverseAisSettings { target, ..Default::default() };
                reverse_ais(&rbm, &states, Origin::ExactSamples, &settings, &Silent).unwrap()
            }),
            ("bar", &|target| {
                bar(&rbm, &BarSettings { target, ..Default::default() }, &Silent).unwrap().log_z
            }),
        ];
        for (name, method) in methods {
            let at = |std_err| method(Some(Target { std_err, max_steps: None }));
            let (rough, fine) = (at(0.02), at(0.005));
            for (log_z, target) in [(&rough, 0.02), (&fine, 0.005)] {
                let std_err = log_z.std_err.unwrap();
                assert!(std_err < 1.5 * target, "{name}: {std_err} for a target of {target}");
                let z = (log_z.value - truth) / std_err;
                assert!(z.abs() < 5.0, "{name}, target {target}: z = {z}");
            }
            assert!(fine.n_states > rough.n_states, "{name}");
            // Negative control: without a target, the size is that of the settings.
            let fixed = method(None);
            assert!(fixed.n_states != rough.n_states && fixed.n_states != fine.n_states, "{name}");
        }
    }

    #[test]
    fn a_budget_limits_the_size_and_the_estimate_says_so() {
        let rbm = random_rbm(30, 12, 1.0, 901);
        let target = Some(Target { std_err: 1e-4, max_steps: Some(200_000) });
        let by_ais = ais(&rbm, &AisSettings { target, ..Default::default() }, &Silent).unwrap();
        let by_bar = bar(&rbm, &BarSettings { target, ..Default::default() }, &Silent).unwrap().log_z;
        for log_z in [by_ais, by_bar] {
            assert!(log_z.n_states < 600_000.0, "{log_z:?}");
            let is_told = |note: &Note| matches!(note, Note::TargetMissed { .. });
            assert!(log_z.std_err.is_none() || log_z.notes.iter().any(is_told), "{log_z:?}");
        }
    }

    #[test]
    fn a_target_that_is_no_number_is_refused() {
        let rbm = random_rbm(4, 2, 1.0, 902);
        for std_err in [0.0, -1.0, f64::NAN] {
            let target = Some(Target { std_err, max_steps: None });
            assert!(ais(&rbm, &AisSettings { target, ..Default::default() }, &Silent).is_err());
            assert!(bar(&rbm, &BarSettings { target, ..Default::default() }, &Silent).is_err());
        }
    }
}
