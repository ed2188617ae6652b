//! Measures the direction of LVS-K gradients against the exact gradient (Corollary 4).
//!
//! Many updates of the same model each make new tours. The tours of an update run until they return;
//! LVS-K uses those that return within K steps, so all K share their tours.

use super::{DataSets, check_cancelled};
use crate::task::DirectionOf;
use mclv::data::Split;
use mclv::gradient::{data_moments, model_moments};
use mclv::progress::Progress;
use mclv::statistics::Summary;
use mclv::theorems::{cosine, lvs_moments};
use mclv::tour::{TourEngine, TourSettings};
use mclv::{Error, Rbm, Result, StoppingSet};
use serde::{Deserialize, Serialize};

/// The longest tour, in steps.
const MAX_LENGTH: u32 = 1_000_000;

/// The direction of gradients at one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directions {
    /// The norm of the exact gradient.
    pub norm: f64,
    /// Mean length of tours.
    pub mean_length: f64,
    /// For each K; the last one is dynamic.
    pub of_k: Vec<Direction>,
}

/// The direction of LVS-K gradients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// The number of steps; `None`: dynamic.
    pub k: Option<u32>,
    /// The share of tours that count.
    pub returned: f64,
    /// The cosine of the gradient of one update with the exact gradient: mean over updates.
    pub cosine: f64,
    /// Its standard deviation.
    pub cosine_sd: f64,
    /// The cosine of the pooled gradient of all updates, which shows the bias.
    pub pooled_cosine: f64,
    /// The norm of the pooled gradient's error, divided by the norm of the exact gradient.
    pub relative_bias: f64,
    /// What of `relative_bias` the noise of the pooled gradient alone would give.
    pub relative_noise: f64,
}

pub(super) fn run(
    of: &DirectionOf,
    rbm: &Rbm,
    sets: &DataSets,
    progress: &dyn Progress,
) -> Result<Directions> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let positive = data_moments(rbm, &data.rows)?;
    let Some(model) = model_moments(rbm) else {
        let cure = "the exact gradient needs at most 20 units in the smaller layer";
        return Err(Error::InvalidSetting { name: "n-hidden", value: rbm.n_hidden().to_string(), cure });
    };
    let minus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let exact = minus(&positive, &model);
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let set = StoppingSet::draw(rbm, &data.rows, &all, 1, of.seed, 0)?;
    let engine = TourEngine::new(rbm, &set)?;
    let ks: Vec<u32> = of.ks.iter().copied().chain([u32::MAX]).collect();
    let mut cosines = vec![Vec::new(); ks.len()];
    let mut sums = vec![vec![0.0; exact.len()]; ks.len()];
    let mut squares = vec![0.0; ks.len()];
    let (mut steps, mut counted) = (vec![0.0; ks.len()], vec![0.0; ks.len()]);
    let mut kept: Vec<Vec<(f64, Vec<f64>)>> = vec![Vec::new(); ks.len()];
    let (mut n_tours, mut n_steps) = (0.0, 0.0);
    for update in 0..of.n_updates {
        check_cancelled(progress)?;
        let settings = TourSettings {
            n_tours: of.n_tours,
            max_length: Some(MAX_LENGTH),
            seed: of.seed,
            occasion: update as u16 + 1,
            ..Default::default()
        };
        let tours = engine.run(&settings, progress)?;
        n_tours += tours.n_tours() as f64;
        n_steps += tours.n_steps() as f64;
        let moments = lvs_moments(&engine, (&tours, &settings), &ks, progress)?;
        for (k, moments) in moments.into_iter().enumerate() {
            let within = tours.as_slice().iter().filter(|t| t.is_complete() && t.length <= ks[k]);
            let of_update: f64 = within.clone().map(|t| f64::from(t.length)).sum();
            counted[k] += within.count() as f64;
            let Some(moments) = moments else { continue };
            cosines[k].extend(Some(cosine(&minus(&positive, &moments), &exact)).filter(|c| c.is_finite()));
            sums[k].iter_mut().zip(&moments).for_each(|(sum, x)| *sum += of_update * x);
            steps[k] += of_update;
            kept[k].push((of_update, moments));
        }
    }
    let of_k = ks.iter().enumerate().map(|(k, &steps_k)| {
        let mean: Vec<f64> = sums[k].iter().map(|x| x / steps[k]).collect();
        // The noise of a ratio of sums, by the updates as independent parts.
        for (weight, moments) in &kept[k] {
            squares[k] +=
                (weight / steps[k]).powi(2) * minus(moments, &mean).iter().map(|x| x * x).sum::<f64>();
        }
        let pooled = minus(&positive, &mean);
        let summary = Summary::of(&cosines[k]);
        Direction {
            k: (steps_k < u32::MAX).then_some(steps_k),
            returned: counted[k] / n_tours,
            cosine: summary.map_or(f64::NAN, |s| s.mean),
            cosine_sd: summary.and_then(|s| s.sd).unwrap_or(f64::NAN),
            pooled_cosine: cosine(&pooled, &exact),
            relative_bias: norm(&minus(&pooled, &exact)) / norm(&exact),
            relative_noise: squares[k].sqrt() / norm(&exact),
        }
    });
    Ok(Directions { norm: norm(&exact), mean_length: n_steps / n_tours, of_k: of_k.collect() })
}
