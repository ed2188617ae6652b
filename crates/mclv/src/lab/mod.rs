//! A laboratory for gradients: bias, variance and cost of estimators at fixed parameters, against
//! the exact gradient or a long run.
//!
//! A gradient is the rows' part minus the model's part. Estimators differ only in the model's part,
//! so only that part is compared. All estimators get the same minibatch of rows, and so the same
//! rows' part, which cancels from every error.

mod contender;
mod errors;
mod reference;
mod replicates;
mod results;
#[cfg(test)]
mod tests;

pub use results::{FALSE_ALARMS, Lab, LabEstimator, LabNote, Measured, Reference, Unbiasedness};

use crate::data::Rows;
use crate::gradient::{EXACT_UNITS, Gradient, Minibatch, Step, Update};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::settings::{EstimatorName, EstimatorSettings, LvsSettings, Unfinished};
use crate::{Error, Result};
use contender::Contender;
use errors::Errors;
use replicates::Replicates;
use std::time::Instant;

/// The fewest replicates that give each half of them a spread.
const LEAST_REPLICATES: usize = 8;
/// The largest number of numbers that are kept for the estimates of one estimator: 2 gigabytes.
const MOST_NUMBERS: usize = 1 << 29;

/// Settings of [`lab`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSettings {
    /// The estimators, each as `NAME[:POLICY][:K][:SETTING=VALUE…]`: `cd:10`, `lvs:drop:1`,
    /// `pcd:1:n-chains=50`.
    pub estimators: Vec<String>,
    /// The number of independent estimates of each estimator.
    pub n_replicates: usize,
    /// The number of rows in the minibatch, which is the same for all estimates.
    pub batch_size: usize,
    /// The number of updates that persistent chains make, at the fixed parameters, before the
    /// update that counts.
    pub burn_in: usize,
    /// The number of samples of the reference, if the model is too large for the exact gradient.
    pub n_reference: usize,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Default for LabSettings {
    /// All estimators, 64 estimates each for a minibatch of 128 rows, 100 updates of burn-in.
    fn default() -> Self {
        let estimators =
            ["cd:1", "cd:10", "pcd:1", "lvs:drop:1", "lvs:keep:1", "lvs:carry:3", "tempered", "ucd"];
        Self {
            estimators: estimators.map(String::from).to_vec(),
            n_replicates: 64,
            batch_size: 128,
            burn_in: 100,
            n_reference: 16_000,
            seed: 0,
        }
    }
}

impl LabSettings {
    fn check(&self, rbm: &Rbm, data: &Rows) -> Result<()> {
        rbm.check_width(data.n_columns())?;
        let refuse =
            |name, value: usize, cure| Err(Error::InvalidSetting { name, value: value.to_string(), cure });
        if data.n_rows() == 0 {
            return Err(Error::Empty { what: "data".into(), cure: "give data with rows" });
        }
        if self.estimators.is_empty() {
            return refuse("estimators", 0, "name at least one, such as cd:1");
        }
        let n_components = (rbm.n_visible() + 1) * (rbm.n_hidden() + 1);
        let most = (MOST_NUMBERS / n_components).min(1 << 20);
        if !(LEAST_REPLICATES..=most).contains(&self.n_replicates) {
            return refuse(
                "n-replicates",
                self.n_replicates,
                "give at least 8, and few enough for 2 GB of memory",
            );
        }
        if self.batch_size == 0 || self.batch_size >= 1 << 24 {
            return refuse("batch-size", self.batch_size, "give at least one row, and fewer than 16,777,216");
        }
        if self.burn_in > 1_000_000 {
            return refuse("burn-in", self.burn_in, "give at most 1,000,000 updates");
        }
        if !(2 * reference::N_GROUPS..=1 << 24).contains(&self.n_reference) {
            return refuse(
                "n-reference",
                self.n_reference,
                "give at least 32 samples, and at most 16,777,216",
            );
        }
        Ok(())
    }
}

/// Measures estimators of the model's part of the gradient, for one model.
///
/// Each estimator makes `n_replicates` independent estimates for one minibatch of `data`. An estimate
/// is that of one update of training: with as many chains or tours as the estimator's settings say,
/// by default one for each row (32 ladders for `tempered`). Each estimate has its own seed and shares
/// nothing with others, stopping sets included. Estimators whose chains persist begin at rows and
/// make `burn_in` updates before the one that counts.
///
/// The reference is the exact gradient if the smaller layer has at most 20 units. Otherwise it is
/// the mean of `n_reference` samples ([`sample`](crate::sample::sample)), whose error enters all
/// errors; a doubt about these samples is in [`Reference::doubt`].
///
/// # Guarantee
/// Squared bias, variance and mean squared error are unbiased estimates: the share of the variance is
/// subtracted from the squared bias, which can therefore be negative. An estimator without bias is
/// called biased with probability [`FALSE_ALARMS`]: half of the estimates give a direction, and a
/// t-test asks whether the others err in this direction too. The same seed gives the same numbers for
/// any number of threads, except for seconds.
///
/// # Cost
/// `n_replicates` updates of each estimator, `burn_in + 1` times as many for those with persistent
/// chains. Memory: `n_replicates` gradients.
///
/// ```
/// use mclv::{Init, progress::Silent, data::{self, DataSpec}, lab::{LabSettings, lab}};
/// let spec = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
/// let rows = data::load(&spec, &Silent)?.rows;
/// let rbm = Init::Data.model(&rows, 4, 1)?;
/// let settings = LabSettings { estimators: vec!["cd:1".into(), "exact".into()], ..Default::default() };
/// let lab = lab(&rbm, &rows, &settings, &Silent)?;
/// assert_eq!(lab.estimators[1].mse.value, 0.0);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If an estimator or a setting is not allowed, or if the listener cancels.
pub fn lab(rbm: &Rbm, data: &Rows, settings: &LabSettings, progress: &dyn Progress) -> Result<Lab> {
    lab_with(rbm, data, settings, progress, EXACT_UNITS)
}

/// Does the work of [`lab`]. The reference is exact up to `exact_units` in the smaller layer.
fn lab_with(
    rbm: &Rbm,
    data: &Rows,
    settings: &LabSettings,
    progress: &dyn Progress,
    exact_units: usize,
) -> Result<Lab> {
    let begun = Instant::now();
    settings.check(rbm, data)?;
    let n_rows = settings.batch_size.min(data.n_rows());
    let contenders: Vec<Contender> = settings
        .estimators
        .iter()
        .map(|text| Contender::new(text, rbm, data.n_rows(), n_rows))
        .collect::<Result<_>>()?;
    let mut rows: Vec<usize> = (0..data.n_rows()).collect();
    stream(settings.seed, Purpose::LabRows, 0).reader().shuffle(&mut rows);
    rows.truncate(n_rows);
    rows.sort_unstable();
    let bench = Bench { rbm, data, rows: &rows, progress };
    let total: u64 = contenders.iter().map(|contender| contender.n_updates(settings)).sum();
    let reference = reference::find(&bench, settings, exact_units)?;
    let positive = bench.positive_phase();
    let mut done = 0;
    let mut estimators = Vec::new();
    let mut norm = f64::NAN;
    for contender in &contenders {
        let replicates = Replicates::make(&bench, contender, settings, |n| progress.report(done + n, total))?;
        done += contender.n_updates(settings);
        let errors = Errors::new(&replicates.estimates, &reference.groups, &reference.mean, &positive);
        norm = errors.gradient_norm();
        estimators.push(results::of_estimator(contender, &replicates, &errors, settings.burn_in));
    }
    Ok(Lab {
        n_rows,
        n_replicates: settings.n_replicates,
        burn_in: settings.burn_in,
        gradient_norm: norm,
        reference: reference.facts,
        estimators,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// The model and the rows of all estimates.
struct Bench<'a> {
    rbm: &'a Rbm,
    data: &'a Rows,
    /// The minibatch.
    rows: &'a [usize],
    progress: &'a dyn Progress,
}

impl Bench<'_> {
    /// Update number `number` of a run with this seed.
    fn update(&self, seed: u64, number: u32) -> Update<'_> {
        let &Self { rbm, data, rows, progress } = self;
        let step = Step { seed, epoch: 0, update: number, number: u64::from(number) };
        Update::new(Minibatch { rbm, data, rows, weights: None, step }, progress)
    }

    fn zeros(&self) -> Gradient {
        Gradient::zeros(self.rbm.n_visible(), self.rbm.n_hidden())
    }

    /// The rows' part of the gradient.
    fn positive_phase(&self) -> Vec<f32> {
        let mut gradient = self.zeros();
        gradient.add(self.update(0, 0).into_positive(), 1.0 / self.rows.len() as f32);
        list(&mut gradient, 1.0)
    }
}

/// All components of a gradient, times `scale`: weights, visible biases, hidden biases.
fn list(gradient: &mut Gradient, scale: f32) -> Vec<f32> {
    gradient.flush();
    let (w, b, a) = (gradient.w.to_rows(), gradient.b.iter(), gradient.a.iter());
    w.iter().chain(b).chain(a).map(|x| scale * x).collect()
}

/// Returns true if chains or tours go on from update to update.
fn persists(estimator: &EstimatorSettings) -> bool {
    match estimator {
        EstimatorSettings::Pcd { .. } | EstimatorSettings::Tempered { .. } => true,
        EstimatorSettings::Lvs(LvsSettings { unfinished, .. }) => *unfinished == Unfinished::Carry,
        EstimatorSettings::Cd { .. } | EstimatorSettings::Ucd { .. } | EstimatorSettings::Exact => false,
    }
}

/// The names of all estimators.
fn names() -> Vec<&'static str> {
    EstimatorName::ALL.iter().map(|name| name.word()).collect()
}
