//! Compares samples with test rows: means, correlations, nearest training rows, kernel distance.

use super::baseline::bits;
use super::{DataSets, NoReport, subject};
use crate::mmd::{Discrepancy, median_distance};
use crate::store::Store;
use crate::subject::{QualityOf, SampleSource};
use mclv::Result;
use mclv::bits::BitRows;
use mclv::data::Split;
use mclv::generated::{Gap, Generated, GeneratedSettings};
use mclv::progress::Progress;
use mclv::rng::{Purpose, stream};
use mclv::sample::{SampleSettings, Start, sample};
use serde::{Deserialize, Serialize};

/// Widths of the kernel, as shares of the median distance between training rows.
pub(crate) const WIDTHS: [f64; 2] = [0.5, 1.0];

/// Samples beside test rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Differences of the means of units, and what chance alone gives (root mean squares).
    pub means: (f64, f64),
    /// The same of the correlations of pairs.
    pub correlations: Option<(f64, f64)>,
    /// The share of pairs in which the sample is nearer to its nearest training row than the test
    /// row, and its standard error by chance.
    pub nearer: Option<(f64, f64)>,
    /// The squared kernel distance for each width, with its standard error.
    pub mmd: Vec<Discrepancy>,
    /// How samples were drawn.
    pub method: String,
    /// The reason to doubt that they are samples of the model.
    pub doubt: Option<String>,
}

pub(super) fn run(
    of: &QualityOf,
    store: &Store,
    sets: &DataSets,
    progress: &dyn Progress,
) -> Result<Quality> {
    let part = |split: Split| sets.load(&of.data, split, progress);
    let (train, test) = (part(Split::Train)?, part(Split::Test)?);
    let (train_bits, test_bits) = (bits(&train)?, bits(&test)?);
    let n = of.n_samples;
    let (samples, method, doubt) = match &of.source {
        SampleSource::Model(model) => {
            let rbm = subject(model, store)?;
            let settings = SampleSettings { n_samples: n, seed: of.seed, ..SampleSettings::default() };
            let samples = sample(&rbm, &settings, Start::Bias, None, &NoReport(progress))?;
            let doubt = samples.doubt().map(|doubt| doubt.to_string());
            (samples.v, samples.method.to_string(), doubt)
        }
        SampleSource::TrainingRows => {
            let some = n.min(train_bits.n_rows());
            let spread: Vec<usize> = (0..some).map(|k| k * train_bits.n_rows() / some).collect();
            (train_bits.select(&spread), "rows".into(), None)
        }
        SampleSource::RandomBits => (random_bits(n, train_bits.n_bits(), of.seed), "coins".into(), None),
    };
    // Means and correlations are compared with test rows, neighbours with training rows.
    let settings = GeneratedSettings::default();
    let beside_test = Generated::new(&samples, &test.rows, None, &settings)?;
    let beside_train = Generated::new(&samples, &train.rows, Some(&test.rows), &settings)?;
    let of_gap = |gap: Gap| (gap.rms, gap.rms_by_chance);
    let median = median_distance(train_bits);
    Ok(Quality {
        means: of_gap(beside_test.gap_of_means()),
        correlations: beside_test.gap_of_correlations().map(of_gap),
        // A training row is its own neighbour.
        nearer: match of.source {
            SampleSource::TrainingRows => None,
            _ => beside_train.distances.nearer().map(|nearer| (nearer.samples, nearer.std_err_by_chance)),
        },
        mmd: WIDTHS.iter().map(|width| Discrepancy::new(test_bits, &samples, width * median)).collect(),
        method,
        doubt,
    })
}

fn random_bits(n_rows: usize, n_bits: usize, seed: u64) -> BitRows {
    let mut rng = stream(seed, Purpose::Estimator, 1).reader();
    let mut rows = BitRows::zeros(n_rows, n_bits);
    for r in 0..n_rows {
        (0..n_bits).for_each(|i| rows.set(r, i, rng.uniform() < 0.5));
    }
    rows
}
