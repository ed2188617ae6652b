//! Find the model's part of the gradient that estimates are compared with.

use super::results::Reference;
use super::{Bench, LabSettings, list};
use crate::Result;
use crate::data::Rows;
use crate::sample::{SampleMethod, SampleSettings, Start, sample};
use crate::settings::EstimatorSettings;

/// Groups of samples, which are independent of each other: samples take turns on 16 ladders.
pub(super) const N_GROUPS: usize = 16;

/// A reference: its components, and the means of independent groups of samples, which show its error.
pub(super) struct Found {
    pub(super) mean: Vec<f32>,
    /// Empty for the exact gradient.
    pub(super) groups: Vec<Vec<f32>>,
    pub(super) facts: Reference,
}

/// Finds the exact gradient, or else draws samples.
pub(super) fn find(bench: &Bench<'_>, settings: &LabSettings, exact_units: usize) -> Result<Found> {
    let rbm = bench.rbm;
    if rbm.n_visible().min(rbm.n_hidden()) <= exact_units {
        let mut gradient = bench.zeros();
        let update = bench.update(0, 0);
        EstimatorSettings::Exact.estimator().estimate(&update, &mut gradient)?;
        let facts = Reference { is_exact: true, method: None, n_samples: 0, std_err: 0.0, doubt: None };
        return Ok(Found { mean: list(&mut gradient, -1.0), groups: Vec::new(), facts });
    }
    let n_samples = settings.n_reference / N_GROUPS * N_GROUPS;
    let of_samples = SampleSettings { n_samples, seed: settings.seed, ..SampleSettings::default() };
    let samples = sample(rbm, &of_samples, Start::Bias, None, bench.progress)?;
    let mut groups = Vec::new();
    for group in 0..N_GROUPS {
        let rows: Vec<usize> = (group..n_samples).step_by(N_GROUPS).collect();
        let v = Rows::Bits(samples.v.select(&rows));
        let mut gradient = bench.zeros();
        gradient.subtract_mean(&v, &rbm.mean_h_from_v(&v)?);
        groups.push(list(&mut gradient, -1.0));
    }
    let mean: Vec<f32> = (0..groups[0].len())
        .map(|k| (groups.iter().map(|group| f64::from(group[k])).sum::<f64>() / N_GROUPS as f64) as f32)
        .collect();
    let square = |group: &Vec<f32>| -> f64 {
        group.iter().zip(&mean).map(|(&x, &m)| (f64::from(x) - f64::from(m)).powi(2)).sum()
    };
    let variance = groups.iter().map(square).sum::<f64>() / (N_GROUPS - 1) as f64;
    let facts = Reference {
        is_exact: false,
        method: Some(samples.method),
        n_samples,
        std_err: (variance / N_GROUPS as f64).sqrt(),
        doubt: samples.doubt().filter(|_| samples.method != SampleMethod::Exact),
    };
    Ok(Found { mean, groups, facts })
}
