//! Make independent estimates of the model's part of the gradient.

use super::contender::Contender;
use super::{Bench, LabSettings, list, persists};
use crate::gradient::EstimatorInfo;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use std::time::Instant;

/// Estimates by one estimator, and what they cost.
pub(super) struct Replicates {
    /// All components of each estimate. An update that the estimator skipped has none.
    pub(super) estimates: Vec<Vec<f32>>,
    /// The number of Gibbs steps of each estimate.
    pub(super) steps: Vec<u64>,
    /// The states that each estimate of separate tours counts; empty for other estimators.
    pub(super) lengths: Vec<f64>,
    /// The seconds of each estimate, the rows' part included.
    pub(super) seconds: Vec<f64>,
    pub(super) n_skipped: u64,
    /// Tours or pairs: all, and those that were cut.
    pub(super) n_parts: u64,
    pub(super) n_cut: u64,
}

impl Replicates {
    /// Makes all estimates. `report` receives the number of updates made.
    pub(super) fn make(
        bench: &Bench<'_>,
        contender: &Contender,
        settings: &LabSettings,
        report: impl Fn(u64) + Sync,
    ) -> Result<Self> {
        let mut all = Self {
            estimates: Vec::new(),
            steps: Vec::new(),
            lengths: Vec::new(),
            seconds: Vec::new(),
            n_skipped: 0,
            n_parts: 0,
            n_cut: 0,
        };
        let of_each = contender.n_updates(settings) / settings.n_replicates as u64;
        let mut seeds = stream(settings.seed, Purpose::Lab, 0).reader();
        let seeds: Vec<u64> = (0..settings.n_replicates).map(|_| seeds.next_u64()).collect();
        for (r, seed) in seeds.into_iter().enumerate() {
            let mut result = Ok(());
            let team = team::current();
            // On a worker thread: handing each update to the pool from outside costs more than its
            // work.
            rayon::scope(|_| {
                result = team::with(team, || {
                    all.add(bench, contender, seed, |n| report(r as u64 * of_each + n), of_each as u32)
                });
            });
            result?;
        }
        Ok(all)
    }

    /// Makes one estimate: the last of `n_updates` updates.
    fn add(
        &mut self,
        bench: &Bench<'_>,
        contender: &Contender,
        seed: u64,
        report: impl Fn(u64),
        n_updates: u32,
    ) -> Result<()> {
        let mut estimator = contender.settings.estimator();
        let mut gradient = bench.zeros();
        for number in 0..n_updates {
            if team::any(bench.progress.cancelled()) {
                return Err(Error::Cancelled);
            }
            let update = bench.update(seed, number);
            if number == 0 {
                estimator.begin_epoch(&update)?;
            }
            gradient.clear();
            let is_last = number + 1 == n_updates;
            if is_last {
                // The counts of the burn-in.
                _ = estimator.take_info();
            }
            let begun = Instant::now();
            let is_made = estimator.estimate(&update, &mut gradient)?;
            if is_last {
                gradient.flush();
                _ = update.into_positive();
                let seconds = begun.elapsed().as_secs_f64();
                if is_made {
                    self.estimates.push(list(&mut gradient, -1.0));
                    self.note(contender, &estimator.take_info(), seconds);
                } else {
                    self.n_skipped += 1;
                }
            }
            report(u64::from(number) + 1);
        }
        Ok(())
    }

    fn note(&mut self, contender: &Contender, info: &EstimatorInfo, seconds: f64) {
        let mut steps = contender.fixed_steps().unwrap_or(0);
        if let Some(tours) = &info.tours {
            steps = tours.n_steps;
            if !persists(&contender.settings) {
                let counted = if contender.drops_tours() { tours.total_length } else { tours.n_steps };
                self.lengths.push(counted as f64);
            }
            (self.n_parts, self.n_cut) = (self.n_parts + tours.n_started, self.n_cut + tours.n_truncated);
        }
        if let Some(pairs) = &info.coupling {
            steps = pairs.n_steps;
            (self.n_parts, self.n_cut) = (self.n_parts + pairs.n_pairs, self.n_cut + pairs.n_cut);
        }
        self.steps.push(steps);
        self.seconds.push(seconds);
    }
}
