//! Exact values of tours that are cut after `K` steps (MCLV-K), and the corrected bounds of
//! Theorem 1.

use super::TourTheory;
use crate::model::Rbm;
use serde::{Deserialize, Serialize};

/// Exact lengths of tours that are cut after `K` steps. Times `Z_S`, lengths estimate Z.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutTours {
    /// The number of steps `K`.
    pub k: u32,
    /// `p(ξ > K)`: the share of tours that are cut.
    pub unfinished: f64,
    /// `E[min(ξ, K)]`: the mean over all started tours.
    pub started: f64,
    /// `E[ξ | ξ ≤ K]`: the mean over completed tours, as in Theorem 1.
    pub completed: f64,
    /// `Σ_{k≥K} p(ξ>k)`. Times `Z_S·B`, it bounds the bias of the mean over all started tours, for
    /// every statistic `|f| ≤ B`. For `f = 1` the mean is low by exactly this amount.
    pub started_bound: f64,
    /// `E[ξ; ξ>K] + p(ξ>K)·E[ξ | ξ≤K]`. Times `Z_S·B`, it bounds the bias of the mean over
    /// completed tours, for every statistic `|f| ≤ B`.
    pub completed_bound: f64,
    /// `1 + Σ_{k≥K} p(ξ>k)`: the bound as printed in the paper, without its `B`. It lacks `Z_S` and
    /// does not vanish with `K`.
    pub printed_bound: f64,
}

impl TourTheory<'_> {
    /// Returns the exact lengths of tours that are cut after `k` steps, and the bounds of
    /// Theorem 1.
    ///
    /// # Panics
    /// If `k` is 0.
    pub fn cut_tours(&self, k: u32) -> CutTours {
        assert!(k > 0, "a tour has at least one step");
        let exits = self.exits();
        let mut p = self.starts();
        let (mut returned, mut of_returned, mut started) = (0.0, 0.0, 0.0);
        for step in 1..=k {
            // As a sum of what returns: small probabilities keep their digits.
            let ends: f64 = p.iter().zip(&exits).map(|(p, exit)| p * exit).sum();
            returned += ends;
            of_returned += f64::from(step) * ends;
            started += p.iter().sum::<f64>();
            p = self.step_off(&p);
        }
        let unfinished: f64 = p.iter().sum();
        let to_come = self.solve(&vec![1.0; self.chain.n]);
        let beyond: f64 = p.iter().zip(&to_come).map(|(p, rest)| p * rest).sum();
        let completed = of_returned / returned;
        CutTours {
            k,
            unfinished,
            started,
            completed,
            started_bound: beyond,
            completed_bound: beyond + unfinished * (f64::from(k) + completed),
            printed_bound: 1.0 + beyond,
        }
    }

    /// Returns `E[Σ_{j ≤ min(ξ,k)} f(X(j))]`: the mean over all started tours of sums that end after
    /// `k` steps. `f` receives states as packed bits.
    pub fn started_sum(&self, k: u32, f: impl Fn(usize, usize) -> f64) -> f64 {
        let of_h = self.chain.given_h(f);
        let (mut p, mut sum) = (self.starts(), 0.0);
        for _ in 0..k {
            sum += p.iter().zip(&of_h).map(|(p, f)| p * f).sum::<f64>();
            p = self.step_off(&p);
        }
        sum
    }

    /// Returns `E[Σ_{j≤ξ} f(X(j)) | ξ ≤ k]`: the mean of sums over completed tours (Theorem 1). `f`
    /// receives states as packed bits.
    ///
    /// # Cost
    /// `k·2^(n_visible + n_hidden)` operations.
    ///
    /// # Panics
    /// If `k` is 0.
    pub fn completed_sum(&self, k: u32, f: impl Fn(usize, usize) -> f64) -> f64 {
        let by_length = self.sums_up_to(k, f);
        let (share, sum) = by_length.into_iter().fold((0.0, 0.0), |(s, t), (p, x)| (s + p, t + x));
        sum / share
    }

    /// Returns `p(ξ = k)` and `E[Σ_{j≤ξ} f(X(j)); ξ = k]` for `k = 1 … most`: the contribution of
    /// each length to the mean sum (Corollary 3). `f` receives states as packed bits.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn sums_up_to(&self, most: u32, f: impl Fn(usize, usize) -> f64) -> Vec<(f64, f64)> {
        assert!(most > 0, "a tour has at least one step");
        let chain = self.chain;
        let (n, n_v) = (chain.n, chain.n_v);
        let f: Vec<f64> = (0..n).flat_map(|h| (0..n_v).map(move |v| (v, h))).map(|(v, h)| f(v, h)).collect();
        // From each h, for tours that end after exactly the steps so far: their probability, and the
        // expected sum of f on this event.
        let mut ends = vec![0.0; n];
        let mut sums = vec![0.0; n];
        let mut by_length = Vec::with_capacity(most as usize);
        for step in 0..most {
            // The same, from each v before the next h is drawn.
            let (mut ends_v, mut sums_v) = (vec![0.0; n_v], vec![0.0; n_v]);
            for (v, p) in chain.h_given_v.chunks_exact(n).enumerate() {
                for (h, p) in p.iter().enumerate() {
                    let is_last = step == 0;
                    if self.inside[h] {
                        ends_v[v] += if is_last { *p } else { 0.0 };
                    } else {
                        ends_v[v] += p * ends[h];
                        sums_v[v] += p * sums[h];
                    }
                }
            }
            for h in 0..n {
                let p = &chain.v_given_h[h * n_v..][..n_v];
                let f = &f[h * n_v..][..n_v];
                (ends[h], sums[h]) = (0.0, 0.0);
                for v in 0..n_v {
                    ends[h] += p[v] * ends_v[v];
                    sums[h] += p[v] * (f[v] * ends_v[v] + sums_v[v]);
                }
            }
            let of_starts = |x: &[f64]| -> f64 { self.starts().iter().zip(x).map(|(p, x)| p * x).sum() };
            by_length.push((of_starts(&ends), of_starts(&sums)));
        }
        by_length
    }

    /// `P(h, S)` of every state.
    pub(super) fn exits(&self) -> Vec<f64> {
        let rows = self.chain.transition.chunks_exact(self.chain.n);
        let of_row =
            |row: &[f64]| row.iter().zip(&self.inside).filter(|(_, inside)| **inside).map(|(p, _)| p).sum();
        rows.map(of_row).collect()
    }
}

/// Returns a bound `B ≥ |E(v,h)|` of the energy, from the weights: no sum of some of them exceeds
/// the sum of all positive ones, or falls below that of all negative ones.
pub fn energy_bound(rbm: &Rbm) -> f64 {
    let weights = rbm.weights();
    let all = weights.iter().chain(rbm.visible_bias()).chain(rbm.hidden_bias());
    let (above, below) = all.fold((0.0f64, 0.0f64), |(above, below), &x| {
        (above + f64::from(x.max(0.0)), below + f64::from((-x).max(0.0)))
    });
    above.max(below)
}

/// Returns the function `E(v, h)` of packed states, in double precision.
pub(crate) fn energy_of(rbm: &Rbm) -> impl Fn(&[u64], &[u64]) -> f64 + Sync + use<> {
    let n_hidden = rbm.n_hidden();
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|&x| f64::from(x)).collect() };
    let (w, b, a) = (wide(&rbm.weights()), wide(rbm.visible_bias()), wide(rbm.hidden_bias()));
    move |v, h| {
        let of_v: f64 = crate::bits::ones(v)
            .map(|i| b[i] + crate::bits::ones(h).map(|j| w[i * n_hidden + j]).sum::<f64>())
            .sum();
        -of_v - crate::bits::ones(h).map(|j| a[j]).sum::<f64>()
    }
}
