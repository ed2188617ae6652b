//! The parts of the gradient that tours of different lengths contribute (Corollary 3), and its
//! direction if long tours are left out (Corollary 4).
//!
//! The gradient is `⟨f⟩_data − ⟨f⟩_model` with `f = (v hᵀ, v, h)`. Tours give
//! `⟨f⟩_model = Σ_l s_l·N_l`: `s_l` is the share of steps in tours of lengths `l`, and `N_l` is the
//! mean of `f` over these steps. As shares sum to one, the gradient is `Σ_l s_l·(⟨f⟩_data − N_l)`.

use crate::Result;
use crate::bits::ones;
use crate::data::Rows;
use crate::gradient::{data_moments, model_moments};
use crate::progress::Progress;
use crate::tour::{Tour, TourEngine, TourGroups, TourSettings, Tours};
use serde::{Deserialize, Serialize};

/// Tours of some lengths, and the part of the gradient that they contribute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthPart {
    /// The shortest length.
    pub from: u32,
    /// The longest length.
    pub to: u32,
    /// The number of tours.
    pub n_tours: u64,
    /// Their share of all steps.
    pub of_steps: f64,
    /// Their share of the gradient: the projection of their part on the direction of the whole.
    /// Shares sum to one; a part that points the other way is negative.
    pub of_gradient: f64,
    /// The cosine between the gradient from all tours up to this length (LVS-K with `K = to`) and
    /// the reference.
    pub cosine_up_to: f64,
}

/// The gradient by the lengths of tours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientByLength {
    /// The parts, shortest tours first.
    pub parts: Vec<LengthPart>,
    /// The norm of the gradient from all tours.
    pub norm: f64,
    /// True if the reference of cosines is the exact gradient; else it is that of all these tours.
    pub is_exact: bool,
}

impl GradientByLength {
    /// Groups the tours by lengths 1, 2–3, 4–7, … and measures what each group contributes to the
    /// gradient of the mean log-likelihood of `rows`.
    ///
    /// # Cost
    /// The tours are run again. Models with at most 20 units in the smaller layer are enumerated.
    ///
    /// # Errors
    /// If the rows do not fit the model, if the tours are not those of a sampled chain from `π_S`,
    /// or if the listener cancels.
    pub fn measure(
        engine: &TourEngine<'_>,
        (tours, settings): (&Tours, &TourSettings),
        rows: &Rows,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let rbm = engine.rbm();
        let data = data_moments(rbm, rows)?;
        let n_groups = tours.longest().ilog2() as usize + 1;
        let group = |tour: &Tour| Some(tour.length.ilog2() as usize);
        let sums = sums_of_moments(engine, (tours, settings), (n_groups, &group), progress)?;
        let (mut n_tours, mut n_steps) = (vec![0; n_groups], vec![0.0; n_groups]);
        for tour in tours.as_slice() {
            n_tours[tour.length.ilog2() as usize] += 1;
            n_steps[tour.length.ilog2() as usize] += f64::from(tour.length);
        }
        let total: f64 = n_steps.iter().sum();
        let minus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let mean = |sum: &[f64], n: f64| -> Vec<f64> { sum.iter().map(|x| x / n).collect() };
        let mut so_far = vec![0.0; data.len()];
        sums.iter().for_each(|sum| so_far.iter_mut().zip(sum).for_each(|(x, y)| *x += y));
        let whole = minus(&data, &mean(&so_far, total));
        let norm = dot(&whole, &whole).sqrt();
        let exact = model_moments(rbm).map(|model| minus(&data, &model));
        let reference = exact.as_deref().unwrap_or(&whole);
        so_far.fill(0.0);
        let mut steps_so_far = 0.0;
        let mut parts = Vec::new();
        for (g, sum) in sums.iter().enumerate() {
            so_far.iter_mut().zip(sum).for_each(|(x, y)| *x += y);
            steps_so_far += n_steps[g];
            if n_tours[g] == 0 {
                continue;
            }
            let part = minus(&mean(&data, 1.0 / n_steps[g]), sum);
            let from = 1u32 << g;
            parts.push(LengthPart {
                from,
                to: from + (from - 1),
                n_tours: n_tours[g],
                of_steps: n_steps[g] / total,
                of_gradient: dot(&part, &whole) / total / (norm * norm),
                cosine_up_to: cosine(&minus(&data, &mean(&so_far, steps_so_far)), reference),
            });
        }
        Ok(Self { parts, norm, is_exact: exact.is_some() })
    }
}

/// Returns the means of `(v hᵀ, v, h)` over the states of the tours that return within each number
/// of steps in `ks`: the model's part of the gradient by LVS-K, for many `K` from the same tours.
/// `None` for a `K` within which no tour returns. `ks` must rise; `u32::MAX` stands for all tours
/// that returned.
///
/// # Errors
/// If the tours are not those of a sampled chain from `π_S`, or if the listener cancels.
pub fn lvs_moments(
    engine: &TourEngine<'_>,
    (tours, settings): (&Tours, &TourSettings),
    ks: &[u32],
    progress: &dyn Progress,
) -> Result<Vec<Option<Vec<f64>>>> {
    let group = |tour: &Tour| ks.iter().position(|&k| tour.is_complete() && tour.length <= k);
    let sums = sums_of_moments(engine, (tours, settings), (ks.len(), &group), progress)?;
    let mut so_far = vec![0.0; sums.first().map_or(0, Vec::len)];
    let of_k = |(&k, sum): (&u32, Vec<f64>)| {
        so_far.iter_mut().zip(sum).for_each(|(x, y)| *x += y);
        let within = tours.as_slice().iter().filter(|t| t.is_complete() && t.length <= k);
        let n_steps: f64 = within.map(|t| f64::from(t.length)).sum();
        (n_steps > 0.0).then(|| so_far.iter().map(|x| x / n_steps).collect())
    };
    Ok(ks.iter().zip(sums).map(of_k).collect())
}

/// Returns the cosine of the angle between two vectors; NaN if one of them is zero.
pub fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sums of `(v hᵀ, v, h)` over the states of groups of tours.
fn sums_of_moments(
    engine: &TourEngine<'_>,
    tours: (&Tours, &TourSettings),
    groups: TourGroups<'_>,
    progress: &dyn Progress,
) -> Result<Vec<Vec<f64>>> {
    let (n_v, n_h) = (engine.rbm().n_visible(), engine.rbm().n_hidden());
    let add = |v: &[u64], h: &[u64], sums: &mut [f64]| {
        let (vh, rest) = sums.split_at_mut(n_v * n_h);
        for i in ones(v) {
            ones(h).for_each(|j| vh[i * n_h + j] += 1.0);
            rest[i] += 1.0;
        }
        ones(h).for_each(|j| rest[n_v + j] += 1.0);
    };
    engine.sums_by_group(tours, groups, (n_v * n_h + n_v + n_h, &add), progress)
}
