//! Measure how much long tours contribute, and how much cutting them would cost.

use super::estimate::{Estimate, EstimateGuarantee};
use super::record::Tours;
use serde::{Deserialize, Serialize};

/// The contribution of tours of some lengths to the mean length, and so to `Ẑ`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// The shortest length of the group.
    pub from: u32,
    /// The longest length of the group.
    pub to: u32,
    /// The number of tours with these lengths.
    pub n_tours: u64,
    /// The share of these lengths in the mean: `Σ_k k·P[ξ = k] / E[ξ]`.
    pub of_mean: f64,
    /// The share of these lengths in the second moment, on which the error bar depends.
    pub of_second_moment: f64,
}

/// A geometric tail fitted to the longest tours. **Empirical**: nothing is guaranteed beyond the
/// longest tour seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailFit {
    /// The length above which tours were used for the fit.
    pub threshold: u32,
    /// The number of tours above the threshold.
    pub n_tours: u64,
    /// The rate `ρ` of `p(ξ > k) ∝ ρ^k`.
    pub rate: f64,
    /// The standard error of `ρ`.
    pub std_err: f64,
}

impl Tours {
    /// Returns the contributions of lengths 1, 2–3, 4–7, 8–15, …: the shares of `Ẑ` and of its
    /// error bar that come from tours of these lengths.
    pub fn contributions(&self) -> Vec<Contribution> {
        let mut bins: Vec<Contribution> = Vec::new();
        let (mut total, mut squares) = (0.0, 0.0);
        for tour in self.as_slice() {
            let bin = tour.length.ilog2() as usize;
            while bins.len() <= bin {
                let from = 1u32 << bins.len();
                let to = from + (from - 1);
                bins.push(Contribution { from, to, n_tours: 0, of_mean: 0.0, of_second_moment: 0.0 });
            }
            let length = f64::from(tour.length);
            bins[bin].n_tours += 1;
            bins[bin].of_mean += length;
            bins[bin].of_second_moment += length * length;
            total += length;
            squares += length * length;
        }
        for bin in &mut bins {
            bin.of_mean /= total;
            bin.of_second_moment /= squares;
        }
        bins
    }

    /// Returns `Σ_{j≥k} p(ξ > j) = E[(ξ − k)⁺]`: the amount by which cutting tours at `k` steps
    /// would lower the mean length (times `Z_S`: would lower `Ẑ`). Returns `None` if tours were
    /// cut, because their full lengths are not known.
    pub fn truncation_bias(&self, k: u32) -> Option<Estimate> {
        let beyond: Vec<f64> =
            self.as_slice().iter().map(|t| f64::from(t.length.saturating_sub(k))).collect();
        self.all_complete().then(|| self.mean(&beyond, EstimateGuarantee::Unbiased))
    }

    /// Fits a geometric tail to the longest tours: `√n_tours` of them, but at least 20. A tour that
    /// was cut counts as longer than the steps it made. Returns `None` if fewer than 10 of them
    /// ended, or if all of them ended in the first step beyond the others: that tells no rate.
    pub fn tail_fit(&self) -> Option<TailFit> {
        let mut lengths: Vec<u32> = self.as_slice().iter().map(|t| t.length).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let n_top = ((lengths.len() as f64).sqrt() as usize).max(20);
        let threshold = *lengths.get(n_top)?;
        let above = || self.as_slice().iter().filter(|t| t.length > threshold);
        // Each step beyond the threshold was a chance to end.
        let n_chances: f64 = above().map(|t| f64::from(t.length - threshold)).sum();
        let n_ends = above().filter(|t| t.is_complete()).count() as f64;
        let hazard = n_ends / n_chances;
        (n_ends >= 10.0 && hazard < 1.0).then(|| TailFit {
            threshold,
            n_tours: above().count() as u64,
            rate: 1.0 - hazard,
            std_err: hazard * ((1.0 - hazard) / n_ends).sqrt(),
        })
    }
}
