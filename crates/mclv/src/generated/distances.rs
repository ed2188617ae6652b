//! Measure distances to the nearest training row.

use crate::bits::BitRows;
use crate::team;

/// Rows of a block. No result depends on this number.
const BLOCK: usize = 16;

/// Distances to the nearest training row, in units that differ (Hamming distance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The distances of samples.
    pub samples: Vec<u32>,
    /// The distances of rows that the model was not trained on. Empty if there are none.
    pub held_out: Vec<u32>,
}

/// Which of a sample and a held-out row is nearer to its nearest training row, over all pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearer {
    /// The share of pairs in which the sample is nearer. Pairs at the same distance count half.
    pub samples: f64,
    /// The standard error of this share if noise alone decided, so that the share were one half
    /// (Mann and Whitney, without correction for equal distances).
    pub std_err_by_chance: f64,
}

impl Distances {
    pub(super) fn new(train: &BitRows, samples: &BitRows, held_out: Option<&BitRows>) -> Self {
        Self {
            samples: nearest(train, samples),
            held_out: held_out.map_or_else(Vec::new, |rows| nearest(train, rows)),
        }
    }

    /// Compares samples with held-out rows. `None` if there are no held-out rows.
    pub fn nearer(&self) -> Option<Nearer> {
        let mut others = self.held_out.clone();
        others.sort_unstable();
        let (n, m) = (self.samples.len() as f64, others.len() as f64);
        if others.is_empty() || self.samples.is_empty() {
            return None;
        }
        let farther = |&d: &u32| {
            let (below, up_to) = (others.partition_point(|&o| o < d), others.partition_point(|&o| o <= d));
            (others.len() - up_to) as f64 + 0.5 * (up_to - below) as f64
        };
        let samples = self.samples.iter().map(farther).sum::<f64>() / (n * m);
        Some(Nearer { samples, std_err_by_chance: ((n + m + 1.0) / (12.0 * n * m)).sqrt() })
    }

    /// Returns the number of samples, and of held-out rows, that are copies of a training row.
    pub fn n_copies(&self) -> (usize, usize) {
        let n = |distances: &[u32]| distances.iter().filter(|&&d| d == 0).count();
        (n(&self.samples), n(&self.held_out))
    }

    /// Returns the shares of distances in at most `most` bins of equal width, from 0 to the largest.
    pub fn histogram(&self, most: u32) -> Histogram {
        let largest = self.samples.iter().chain(&self.held_out).copied().max().unwrap_or(0);
        let width = (largest + 1).div_ceil(most.max(1));
        let shares = |distances: &[u32]| -> Vec<f64> {
            let mut counts = vec![0usize; (largest / width) as usize + 1];
            distances.iter().for_each(|d| counts[(d / width) as usize] += 1);
            counts.into_iter().map(|count| count as f64 / distances.len().max(1) as f64).collect()
        };
        Histogram { width, samples: shares(&self.samples), held_out: shares(&self.held_out) }
    }
}

/// The shares of distances in bins of equal width: the first from 0, the second from `width`, and so
/// on.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The width of a bin, in units.
    pub width: u32,
    /// The share of the samples in each bin.
    pub samples: Vec<f64>,
    /// The share of the held-out rows in each bin.
    pub held_out: Vec<f64>,
}

/// Returns the distance of each of `rows` to the nearest row of `train`.
fn nearest(train: &BitRows, rows: &BitRows) -> Vec<u32> {
    let of_row = |r: usize| {
        let row = rows.row(r);
        let distance = |other: &[u64]| row.iter().zip(other).map(|(x, y)| (x ^ y).count_ones()).sum::<u32>();
        train.words().chunks_exact(train.n_words().max(1)).map(distance).min().unwrap_or(0)
    };
    let of_block = |block: usize| -> Vec<u32> {
        (block * BLOCK..rows.n_rows().min((block + 1) * BLOCK)).map(of_row).collect()
    };
    team::map_blocks(rows.n_rows().div_ceil(BLOCK), of_block).concat()
}
