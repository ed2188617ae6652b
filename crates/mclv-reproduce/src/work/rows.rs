//! Compares the rows of the data: their likelihood, the tours that start at them, and how odd they
//! are.

use super::ranks::{area, precision, spearman};
use super::{DataSets, check_cancelled};
use crate::task::RowsOf;
use mclv::bits::BitRows;
use mclv::data::{Dataset, Rows, Split};
use mclv::progress::Progress;
use mclv::tour::{TourEngine, TourSettings};
use mclv::{Rbm, Result, StoppingSet};
use serde::{Deserialize, Serialize};

/// Shares of the rows that are examined as the oddest ones.
const TOP: [f64; 2] = [0.01, 0.05];

/// How the probability of the training rows is spread, and what tours say of each row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowsCompared {
    /// The number of training rows.
    pub n_rows: usize,
    /// The share of their probability, `Σ p*(v)`, that the ten likeliest rows have.
    pub of_ten: f64,
    /// The share of the likeliest percent.
    pub of_percent: f64,
    /// `(Σ p*)²/Σ p*²`: the number of rows that carry the probability.
    pub effective_rows: f64,
    /// The log-likelihood of the likeliest row above the median, in nats.
    pub best_above_median: f64,
    /// The log-likelihood of the median above the least likely row, in nats.
    pub median_above_worst: f64,
    /// Tours by row, if they were asked for.
    pub tours: Option<ToursByRow>,
}

/// Tours by the row at which they start, beside other scores of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToursByRow {
    /// The number of rows examined.
    pub n_rows: usize,
    /// The number of tours.
    pub n_tours: usize,
    /// Tours that did not return.
    pub n_unfinished: usize,
    /// Rank correlation of tour length and log-likelihood.
    pub with_likelihood: f64,
    /// Rank correlation of tour length and distance to the nearest other row.
    pub with_distance: f64,
    /// Rank correlation of log-likelihood and distance to the nearest other row.
    pub likelihood_with_distance: f64,
    /// The share of odd rows: those whose nearest other row has another label. `None` without labels.
    pub odd: Option<f64>,
    /// How well each score finds odd rows.
    pub scores: Vec<OutlierScore>,
}

/// How well a score of rows finds the odd ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierScore {
    /// The name.
    pub name: String,
    /// The probability that it ranks an odd row above another.
    pub area: f64,
    /// The share of odd rows in the top percent, and in the top five percent.
    pub precision: [f64; 2],
}

pub(super) fn run(of: &RowsOf, rbm: &Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<RowsCompared> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let log_p: Vec<f64> = rbm.free_energy(&data.rows)?.into_iter().map(|free| -free).collect();
    let mut sorted = log_p.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (best, n) = (sorted[0], sorted.len());
    let sum = |of: &[f64], power: f64| -> f64 { of.iter().map(|x| (power * (x - best)).exp()).sum() };
    let all = sum(&sorted, 1.0);
    let tours = if of.n_rows > 0 { Some(tours(of, rbm, &data, &log_p, progress)?) } else { None };
    Ok(RowsCompared {
        n_rows: n,
        of_ten: sum(&sorted[..n.min(10)], 1.0) / all,
        of_percent: sum(&sorted[..n.div_ceil(100)], 1.0) / all,
        effective_rows: all * all / sum(&sorted, 2.0),
        best_above_median: best - sorted[n / 2],
        median_above_worst: sorted[n / 2] - sorted[n - 1],
        tours,
    })
}

fn tours(
    of: &RowsOf,
    rbm: &Rbm,
    data: &Dataset,
    log_p: &[f64],
    progress: &dyn Progress,
) -> Result<ToursByRow> {
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let set = StoppingSet::draw(rbm, &data.rows, &all, 1, of.seed, 0)?;
    let n = of.n_rows.min(data.n_rows());
    let chosen: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    let engine = TourEngine::new(rbm, &set)?;
    let settings = TourSettings {
        n_tours: n * of.tours_per_row,
        visible: of.visible,
        max_length: Some(of.max_length),
        seed: of.seed,
        ..Default::default()
    };
    let tours = engine.run_from_rows(&data.rows.select(&chosen), &settings, progress)?;
    // The mean of log min(ξ, K): a few long tours do not decide it.
    let (mut sums, mut counts) = (vec![0.0; n], vec![0.0; n]);
    for tour in tours.as_slice() {
        sums[tour.start as usize] += f64::from(tour.length).ln();
        counts[tour.start as usize] += 1.0;
    }
    let seen: Vec<usize> = (0..n).filter(|&k| counts[k] > 0.0).collect();
    let lengths: Vec<f64> = seen.iter().map(|&k| sums[k] / counts[k]).collect();
    let log_p: Vec<f64> = seen.iter().map(|&k| log_p[chosen[k]]).collect();
    let nearest = nearest(&data.rows, seen.iter().map(|&k| chosen[k]), progress)?;
    let distances: Vec<f64> = nearest.iter().map(|&(_, distance)| f64::from(distance)).collect();
    let is_odd: Option<Vec<bool>> = data.labels.as_ref().map(|labels| {
        let of_row = |row: usize| labels.ids[row % labels.ids.len()];
        seen.iter().zip(&nearest).map(|(&k, &(other, _))| of_row(chosen[k]) != of_row(other)).collect()
    });
    let unlikely: Vec<f64> = log_p.iter().map(|x| -x).collect();
    let scores = is_odd.iter().flat_map(|is_odd| {
        [("tour length", &lengths), ("−log-likelihood", &unlikely), ("distance", &distances)].map(
            |(name, score)| {
                let top =
                    TOP.map(|share| precision(score, is_odd, ((share * score.len() as f64) as usize).max(1)));
                OutlierScore { name: name.into(), area: area(score, is_odd), precision: top }
            },
        )
    });
    Ok(ToursByRow {
        n_rows: seen.len(),
        n_tours: tours.n_tours(),
        n_unfinished: tours.n_tours() - tours.n_complete(),
        with_likelihood: spearman(&lengths, &log_p),
        with_distance: spearman(&lengths, &distances),
        likelihood_with_distance: spearman(&log_p, &distances),
        odd: is_odd.as_ref().map(|odd| odd.iter().filter(|odd| **odd).count() as f64 / odd.len() as f64),
        scores: scores.collect(),
    })
}

/// The nearest other row of some rows, and its distance: the number of pixels that differ, cut at
/// one half.
fn nearest(
    rows: &Rows,
    of: impl Iterator<Item = usize>,
    progress: &dyn Progress,
) -> Result<Vec<(usize, u32)>> {
    let bits = match rows {
        Rows::Bits(bits) => bits.clone(),
        other => {
            let mut bits = BitRows::zeros(other.n_rows(), other.n_columns());
            for row in 0..other.n_rows() {
                let on = (0..other.n_columns()).filter(|&unit| other.get(row, unit) > 0.5);
                on.for_each(|unit| bits.set(row, unit, true));
            }
            bits
        }
    };
    of.map(|row| {
        check_cancelled(progress)?;
        let apart = |other: usize| -> u32 {
            bits.row(row).iter().zip(bits.row(other)).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let others = (0..bits.n_rows()).filter(|&other| other != row).map(|other| (other, apart(other)));
        Ok(others.min_by_key(|&(_, distance)| distance).expect("more than one row"))
    })
    .collect()
}
