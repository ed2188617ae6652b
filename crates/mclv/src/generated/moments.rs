//! Compare means and correlations of visible units.

use crate::bits::{BitRows, ones};
use crate::rng::{Purpose, stream};
use std::collections::BTreeSet;

/// A difference of more than this number of standard errors is called far.
const FAR: f64 = 3.0;
/// The share of differences that are far by chance, if they are normal.
const FAR_BY_CHANCE: f64 = 0.0027;

/// A number of the data beside that of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// The number in the data.
    pub data: f64,
    /// The number in the samples.
    pub model: f64,
    /// The standard error of their difference, if rows and samples are independent draws from one
    /// distribution.
    pub std_err: f64,
}

/// How far numbers of the samples are from those of the data, over all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The root mean square of the differences.
    pub rms: f64,
    /// The root mean square that noise alone would give.
    pub rms_by_chance: f64,
    /// The share of the differences that are above three standard errors.
    pub far: f64,
    /// The share of such differences that noise alone would give, if they are normal.
    pub far_by_chance: f64,
}

impl Gap {
    pub(super) fn of(all: &[Beside]) -> Self {
        let n = all.len() as f64;
        let rms = |value: fn(&Beside) -> f64| (all.iter().map(|b| value(b).powi(2)).sum::<f64>() / n).sqrt();
        let is_far = |b: &Beside| (b.data - b.model).abs() > FAR * b.std_err;
        Self {
            rms: rms(|b| b.data - b.model),
            rms_by_chance: rms(|b| b.std_err),
            far: all.iter().filter(|b| is_far(b)).count() as f64 / n,
            far_by_chance: FAR_BY_CHANCE,
        }
    }
}

/// Returns the standard error of the difference of two means of a unit that is on with probability
/// `p`, over `n_rows` and `n_samples` independent draws.
pub(super) fn std_err_of_means(p: f64, n_rows: usize, n_samples: usize) -> f64 {
    (p * (1.0 - p) * (1.0 / n_rows as f64 + 1.0 / n_samples as f64)).sqrt()
}

/// The bits of each column, packed over the rows.
pub(super) struct Columns {
    bits: BitRows,
    n_on: Vec<usize>,
}

impl Columns {
    pub(super) fn new(rows: &BitRows) -> Self {
        let mut bits = BitRows::zeros(rows.n_bits(), rows.n_rows());
        let n_words = bits.n_words();
        let words = bits.words_mut();
        for r in 0..rows.n_rows() {
            ones(rows.row(r)).for_each(|i| words[i * n_words + r / 64] |= 1 << (r % 64));
        }
        let n_on = |i: usize| bits.row(i).iter().map(|word| word.count_ones() as usize).sum();
        Self { n_on: (0..rows.n_bits()).map(n_on).collect(), bits }
    }

    fn n_rows(&self) -> usize {
        self.bits.n_bits()
    }

    fn mean(&self, unit: usize) -> f64 {
        self.n_on[unit] as f64 / self.n_rows() as f64
    }

    fn varies(&self, unit: usize) -> bool {
        (1..self.n_rows()).contains(&self.n_on[unit])
    }

    /// Returns the correlation of two units that vary, and its variance.
    fn correlation(&self, i: usize, j: usize) -> (f64, f64) {
        let both = self.bits.row(i).iter().zip(self.bits.row(j)).map(|(x, y)| (x & y).count_ones());
        let n = self.n_rows() as f64;
        let (p, q, both) = (self.mean(i), self.mean(j), f64::from(both.sum::<u32>()) / n);
        let cells =
            [(1.0, 1.0, both), (1.0, 0.0, p - both), (0.0, 1.0, q - both), (0.0, 0.0, 1.0 - p - q + both)];
        let standard = |x: f64, p: f64| (x - p) / (p * (1.0 - p)).sqrt();
        let expected = |of: &dyn Fn(f64, f64) -> f64| {
            cells.iter().map(|&(x, y, share)| share * of(standard(x, p), standard(y, q))).sum::<f64>()
        };
        let rho = expected(&|x, y| x * y);
        // The influence of one row on the correlation (delta method).
        let variance = expected(&|x, y| (x * y - 0.5 * rho * (x * x + y * y)).powi(2));
        (rho, variance / n)
    }
}

/// Compares the means of all units.
pub(super) fn means(rows: &Columns, samples: &Columns) -> Vec<Beside> {
    let (n, m) = (rows.n_rows(), samples.n_rows());
    let of_unit = |i: usize| {
        let pooled = (rows.n_on[i] + samples.n_on[i]) as f64 / (n + m) as f64;
        let std_err = std_err_of_means(pooled, n, m);
        Beside { data: rows.mean(i), model: samples.mean(i), std_err }
    };
    (0..rows.n_on.len()).map(of_unit).collect()
}

/// Pairs of units with their correlations.
type Pairs = Vec<((usize, usize), Beside)>;

/// Compares the correlations of at most `most` pairs of units. Returns also the number of pairs that
/// have a correlation.
pub(super) fn correlations(rows: &Columns, samples: &Columns, most: usize, seed: u64) -> (Pairs, usize) {
    let units: Vec<usize> = (0..rows.n_on.len()).filter(|&i| rows.varies(i) && samples.varies(i)).collect();
    let n_pairs = units.len() * units.len().saturating_sub(1) / 2;
    let of_pair = |(a, b): (usize, usize)| {
        let (i, j) = (units[a], units[b]);
        let ((data, of_rows), (model, of_samples)) = (rows.correlation(i, j), samples.correlation(i, j));
        ((i, j), Beside { data, model, std_err: (of_rows + of_samples).sqrt() })
    };
    let pairs = if n_pairs <= most {
        (0..units.len()).flat_map(|b| (0..b).map(move |a| (a, b))).collect()
    } else {
        drawn_pairs(units.len() as u64, most, seed)
    };
    (pairs.into_iter().map(of_pair).collect(), n_pairs)
}

/// Draws `n_pairs` different pairs of `n` places, in ascending order.
fn drawn_pairs(n: u64, n_pairs: usize, seed: u64) -> BTreeSet<(usize, usize)> {
    let mut rng = stream(seed, Purpose::PairsOfUnits, 0).reader();
    let mut pairs = BTreeSet::new();
    while pairs.len() < n_pairs {
        let (a, b) = (rng.below(n) as usize, rng.below(n) as usize);
        if a != b {
            pairs.insert((a.min(b), a.max(b)));
        }
    }
    pairs
}
