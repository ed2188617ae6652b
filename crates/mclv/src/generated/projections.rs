//! Project rows and samples on the two directions in which the rows vary most.

use crate::bits::{BitRows, ones};
use crate::partition::spread;
use crate::rng::{Purpose, stream};
use crate::statistics::largest_distance;

/// The most rows that directions are found from, spread evenly.
const MOST_ROWS: usize = 2000;
/// The most rounds, and the change of a direction below which it counts as found.
const MAX_ROUNDS: usize = 200;
const FOUND: f64 = 1e-7;
/// A direction that explains less than this share of the variance is noise of rounding.
const LEAST_SHARE: f64 = 1e-9;
/// 95 % of two-sample Kolmogorov-Smirnov distances are below this number times `√(1/n + 1/m)`.
const KOLMOGOROV_95: f64 = 1.358;

/// Rows and samples along one principal component of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The direction, of length 1. Its largest element is positive.
    pub direction: Vec<f64>,
    /// The share of the variance of the rows along it.
    pub share: f64,
    /// The places of rows, from the mean of the rows.
    pub rows: Vec<f64>,
    /// The places of the samples, from the mean of the rows.
    pub samples: Vec<f64>,
    /// The largest distance between the distribution functions of both (Kolmogorov-Smirnov).
    pub distance: f64,
    /// The distance that noise alone exceeds in one of twenty comparisons.
    pub distance_by_chance: f64,
}

/// Rows and samples along the first two principal components of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Projections {
    /// The two components, the one with more variance first.
    pub components: [Component; 2],
}

impl Projections {
    /// Returns `None` if the rows vary in fewer than two directions.
    pub(super) fn new(rows: &BitRows, samples: &BitRows, seed: u64) -> Option<Self> {
        let rows = rows.select(&spread(rows.n_rows(), MOST_ROWS));
        let n = rows.n_rows() as f64;
        let mut means = vec![0.0; rows.n_bits()];
        for r in 0..rows.n_rows() {
            ones(rows.row(r)).for_each(|i| means[i] += 1.0 / n);
        }
        let total: f64 = means.iter().map(|p| p * (1.0 - p)).sum();
        let mut directions: Vec<Vec<f64>> = Vec::new();
        let mut rng = stream(seed, Purpose::Directions, 0).reader();
        for _ in 0..2 {
            let start = (0..rows.n_bits()).map(|_| rng.normal()).collect();
            directions.push(next_direction(&rows, &means, start, &directions)?);
        }
        let component = |direction: Vec<f64>| {
            let of_rows = places(&rows, &means, &direction);
            let of_samples = places(samples, &means, &direction);
            let share = of_rows.iter().map(|x| x * x).sum::<f64>() / n / total;
            let distance = largest_distance(&of_rows, &of_samples);
            let by_chance = KOLMOGOROV_95 * (1.0 / n + 1.0 / samples.n_rows() as f64).sqrt();
            let is_real = share > LEAST_SHARE;
            is_real.then_some(Component {
                direction,
                share,
                rows: of_rows,
                samples: of_samples,
                distance,
                distance_by_chance: by_chance,
            })
        };
        let second = directions.pop()?;
        Some(Self { components: [component(directions.pop()?)?, component(second)?] })
    }
}

/// The places of rows along a direction, from the mean.
fn places(rows: &BitRows, means: &[f64], direction: &[f64]) -> Vec<f64> {
    let middle: f64 = means.iter().zip(direction).map(|(m, d)| m * d).sum();
    let place = |r: usize| ones(rows.row(r)).map(|i| direction[i]).sum::<f64>() - middle;
    (0..rows.n_rows()).map(place).collect()
}

/// Returns the direction of most variance that is orthogonal to the directions found so far (power
/// iteration). Returns `None` if there is no variance left.
fn next_direction(rows: &BitRows, means: &[f64], start: Vec<f64>, found: &[Vec<f64>]) -> Option<Vec<f64>> {
    let mut direction = normalised(start, found)?;
    for _ in 0..MAX_ROUNDS {
        let places = places(rows, means, &direction);
        let sum: f64 = places.iter().sum();
        let mut next: Vec<f64> = means.iter().map(|m| -m * sum).collect();
        for (r, place) in places.iter().enumerate() {
            ones(rows.row(r)).for_each(|i| next[i] += place);
        }
        let next = normalised(next, found)?;
        let change: f64 = next.iter().zip(&direction).map(|(x, y)| (x - y).powi(2)).sum();
        direction = next;
        if change < FOUND * FOUND {
            break;
        }
    }
    let largest = direction.iter().copied().fold(0.0f64, |a, b| if b.abs() > a.abs() { b } else { a });
    if largest < 0.0 {
        direction.iter_mut().for_each(|x| *x = -*x);
    }
    Some(direction)
}

/// Makes a vector orthogonal to the directions found so far, with length 1. Returns `None` if nothing
/// is left of it.
fn normalised(mut vector: Vec<f64>, found: &[Vec<f64>]) -> Option<Vec<f64>> {
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let before = length(&vector);
    for other in found {
        let overlap: f64 = vector.iter().zip(other).map(|(x, y)| x * y).sum();
        vector.iter_mut().zip(other).for_each(|(x, y)| *x -= overlap * y);
    }
    let left = length(&vector);
    if left.is_nan() || left <= 1e-12 * before || left == 0.0 {
        return None;
    }
    vector.iter_mut().for_each(|x| *x /= left);
    Some(vector)
}
