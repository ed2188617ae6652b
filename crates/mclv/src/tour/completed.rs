//! Estimate from tours that are cut after `K` steps: the mean over completed tours, as in Theorem 1
//! of the paper, and the mean over all started tours.

use super::estimate::{Estimate, EstimateGuarantee};
use super::record::Tours;

/// A mean over some tours, and for each tour its share in the error of the mean.
pub(crate) type WithResiduals = (f64, Vec<f64>);

impl Tours {
    /// Returns true if it is known which tours return within `k` steps.
    pub fn are_known_up_to(&self, k: u32) -> bool {
        self.as_slice().iter().all(|tour| tour.is_complete() || tour.length >= k)
    }

    /// Returns the mean length of the tours that return within `k` steps. Times `Z_S`, it is the
    /// estimate `F̂^(K,R)` of Theorem 1 for `f = 1`.
    ///
    /// It estimates `E[ξ | ξ ≤ k]`, which is at most `Z/Z_S`. Returns `None` if no tour returns
    /// within `k` steps, or if tours were cut before.
    pub fn completed_length(&self, k: u32) -> Option<Estimate> {
        self.over_completed(k, &self.lengths()).map(|mean| self.of_cut(mean))
    }

    /// Returns the mean of the sums of a statistic over the tours that return within `k` steps.
    /// Times `Z_S`, it is the estimate `F̂^(K,R)` of Theorem 1.
    ///
    /// It estimates `E[Σ f | ξ ≤ k]`, which is not `(Z/Z_S)·E_p[f]`. Returns `None` like
    /// [`completed_length`](Self::completed_length).
    pub fn completed_sum(&self, k: u32, statistic: usize) -> Option<Estimate> {
        self.over_completed(k, &self.sums_of(statistic)).map(|mean| self.of_cut(mean))
    }

    /// Returns the mean of `min(ξ, k)` over all tours. It is below `Z/Z_S` on average, by
    /// `Σ_{j≥k} p(ξ>j)`. Returns `None` if tours were cut before `k` steps.
    pub fn started_length(&self, k: u32) -> Option<Estimate> {
        self.over_started(k).map(|mean| self.of_cut(mean))
    }

    /// The sums of one statistic, tour by tour.
    pub(crate) fn sums_of(&self, statistic: usize) -> Vec<f64> {
        (0..self.n_tours()).map(|t| self.sums(t)[statistic]).collect()
    }

    /// The mean of one number per tour, over the tours that return within `k` steps.
    pub(crate) fn over_completed(&self, k: u32, x: &[f64]) -> Option<WithResiduals> {
        let returns: Vec<bool> = self.as_slice().iter().map(|t| t.is_complete() && t.length <= k).collect();
        let n = returns.iter().filter(|returns| **returns).count() as f64;
        if n == 0.0 || !self.are_known_up_to(k) {
            return None;
        }
        let counted = || x.iter().zip(&returns);
        let mean = counted().filter(|(_, returns)| **returns).map(|(x, _)| x).sum::<f64>() / n;
        let weight = self.n_tours() as f64 / n;
        let residual = |(x, returns): (&f64, &bool)| if *returns { weight * (x - mean) } else { 0.0 };
        Some((mean, counted().map(residual).collect()))
    }

    /// The mean of `min(ξ, k)` over all tours.
    pub(crate) fn over_started(&self, k: u32) -> Option<WithResiduals> {
        let x: Vec<f64> = self.as_slice().iter().map(|t| f64::from(t.length.min(k))).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        self.are_known_up_to(k).then(|| (mean, x.into_iter().map(|x| x - mean).collect()))
    }

    /// An estimate with the guarantee of tours that a limit could have cut.
    pub(crate) fn of_cut(&self, (value, residuals): WithResiduals) -> Estimate {
        let Estimate { std_err, guarantee, .. } = self.mean(&residuals, EstimateGuarantee::UnlessCut);
        Estimate { value, std_err, guarantee }
    }
}
