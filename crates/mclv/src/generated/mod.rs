//! Compare samples of a model with the rows of its data: means, correlations, projections and
//! distances, each with what the noise of sampling alone would give.
//!
//! A model that is equal to the distribution of the data would differ from the rows only by noise,
//! because samples and rows are finite.

mod distances;
mod moments;
mod projections;
#[cfg(test)]
mod tests;

pub use distances::{Distances, Histogram, Nearer};
pub use moments::{Beside, Gap};
pub use projections::{Component, Projections};

use crate::bits::BitRows;
use crate::data::{self, Binarize, Rows};
use crate::partition::spread;
use crate::{Error, Result};

/// Settings of a [`Generated`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSettings {
    /// The most pairs of units whose correlations are compared. If there are more, they are drawn at
    /// random.
    pub n_pairs: usize,
    /// The most training rows that are used, spread evenly over the data.
    pub n_rows: usize,
    /// The most samples, and the most held-out rows, whose nearest training row is looked for.
    pub n_neighbours: usize,
    /// The seed of the pairs, and of the bits of grey rows.
    pub seed: u64,
}

impl Default for GeneratedSettings {
    /// 1,000 pairs of units, 20,000 rows, 300 nearest rows.
    fn default() -> Self {
        Self { n_pairs: 1000, n_rows: 20_000, n_neighbours: 300, seed: 0 }
    }
}

/// Samples of a model beside the rows of its data.
///
/// Grey rows become bits first: each value is the probability of a one. So samples and rows are of
/// the same kind.
///
/// The same seed gives the same result for any number of threads.
///
/// ```
/// use mclv::{bits::BitRows, data::Rows, generated::Generated};
/// let rows = BitRows::from_words(3, vec![0b000, 0b011, 0b111, 0b011]);
/// let samples = BitRows::from_words(3, vec![0b011, 0b011]);
/// let generated = Generated::new(&samples, &Rows::Bits(rows), None, &Default::default())?;
/// assert_eq!((generated.means[0].data, generated.means[0].model), (0.75, 1.0));
/// assert_eq!(generated.distances.samples, [0, 0]);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The number of samples.
    pub n_samples: usize,
    /// The number of training rows that were used.
    pub n_rows: usize,
    /// The number of training rows.
    pub n_rows_in_all: usize,
    /// The mean of each visible unit.
    pub means: Vec<Beside>,
    /// Pairs of visible units, the smaller number first. Units that are constant in the rows or in the
    /// samples have no correlation.
    pub pairs: Vec<(usize, usize)>,
    /// The correlation of each of these pairs.
    pub correlations: Vec<Beside>,
    /// The number of pairs of units that have a correlation.
    pub n_pairs_in_all: usize,
    /// Rows and samples along the two directions in which the rows vary most. `None` if rows vary in
    /// fewer directions.
    pub projections: Option<Projections>,
    /// Distances to the nearest training row.
    pub distances: Distances,
}

impl Generated {
    /// Compares samples with the rows that the model was trained on, and with rows that it has not
    /// seen, if there are some.
    ///
    /// # Errors
    /// If there are no samples or no rows, or if their widths differ.
    pub fn new(
        samples: &BitRows,
        train: &Rows,
        held_out: Option<&Rows>,
        settings: &GeneratedSettings,
    ) -> Result<Self> {
        let empty = |what: &str, cure| Error::Empty { what: what.into(), cure };
        if samples.n_rows() == 0 {
            return Err(empty("the samples", "draw at least one"));
        }
        if train.n_rows() == 0 || settings.n_rows == 0 {
            return Err(empty("the data", "give at least one row"));
        }
        for rows in std::iter::once(train).chain(held_out) {
            if rows.n_columns() != samples.n_bits() {
                let what = "columns of the data".into();
                return Err(Error::ShapeMismatch { what, expected: samples.n_bits(), got: rows.n_columns() });
            }
        }
        let seed = settings.seed;
        let rows = drawn(train, settings.n_rows, seed, 0);
        let held_out = held_out.map(|rows| drawn(rows, settings.n_neighbours, seed, 1));
        let (of_rows, of_samples) = (moments::Columns::new(&rows), moments::Columns::new(samples));
        let (pairs, n_pairs_in_all) = moments::correlations(&of_rows, &of_samples, settings.n_pairs, seed);
        let (pairs, correlations) = pairs.into_iter().unzip();
        Ok(Self {
            n_samples: samples.n_rows(),
            n_rows: rows.n_rows(),
            n_rows_in_all: train.n_rows(),
            means: moments::means(&of_rows, &of_samples),
            pairs,
            correlations,
            n_pairs_in_all,
            projections: Projections::new(&rows, samples, seed),
            distances: Distances::new(
                &rows,
                &samples.select(&spread(samples.n_rows(), settings.n_neighbours)),
                held_out.as_ref(),
            ),
        })
    }

    /// The differences of the means.
    pub fn gap_of_means(&self) -> Gap {
        Gap::of(&self.means)
    }

    /// The standard error of the difference of two means by chance, for a unit that is on with
    /// probability `p`.
    pub fn noise_of_mean(&self, p: f64) -> f64 {
        moments::std_err_of_means(p, self.n_rows, self.n_samples)
    }

    /// The differences of the correlations. `None` if no pair has a correlation.
    pub fn gap_of_correlations(&self) -> Option<Gap> {
        (!self.correlations.is_empty()).then(|| Gap::of(&self.correlations))
    }
}

/// Returns at most `n` of the rows as bits. Draws of grey rows with another `number` are independent.
fn drawn(rows: &Rows, n: usize, seed: u64, number: u64) -> BitRows {
    let some = spread(rows.n_rows(), n);
    let chosen = if some.len() == rows.n_rows() { rows } else { &rows.select(&some) };
    match data::binarize(chosen, Binarize::Bernoulli, seed, number) {
        Rows::Bits(bits) => bits,
        _ => unreachable!("draws are bits"),
    }
}
