//! Solve tours exactly on models small enough to enumerate.
//!
//! The hidden states of a Gibbs chain form a reversible Markov chain of their own,
//! `P(h,h') = Σ_v p(v|h) p(h'|v)`. Means and variances of sums along tours are linear systems in
//! `I − P` off the stopping set. They are solved by elimination without subtractions (Grassmann,
//! Taksar and Heyman 1985), so that even chains that hardly ever return keep all digits.

mod cut;
mod path;

pub(crate) use cut::energy_of;
pub use cut::{CutTours, energy_bound};
pub use path::total_variation;

use super::StoppingSet;
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::{Error, Result};
use rayon::prelude::*;

/// The most hidden units, and the most units of both layers together, that are enumerated.
const MAX_HIDDEN: usize = 12;
const MAX_UNITS: usize = 24;
/// Enumeration is quick if it takes about 2 to this power of operations.
const QUICK_WORK: usize = 27;

/// The Markov chain of the hidden states of a small model, enumerated exactly.
///
/// Models are limited to 12 hidden units and 24 units in both layers. Memory is
/// `16·2^(n_visible + n_hidden)` bytes and more, time `2^(2 n_hidden + n_visible)`.
#[derive(Clone, Debug)]
pub struct HiddenChain {
    n: usize,
    n_v: usize,
    log_z: f64,
    /// `p(h)`.
    stationary: Vec<f64>,
    /// `P(h, h')`, row by row.
    transition: Vec<f64>,
    /// `p(v|h)`, a row for each h.
    v_given_h: Vec<f64>,
    /// `p(h|v)`, a row for each v.
    h_given_v: Vec<f64>,
}

impl HiddenChain {
    /// Enumerates `rbm`.
    ///
    /// # Errors
    /// If the model is too large: see [`fits`](Self::fits).
    pub fn new(rbm: &Rbm) -> Result<Self> {
        if !Self::fits(rbm) {
            let (name, got) = if rbm.n_hidden() > MAX_HIDDEN {
                ("n-hidden", rbm.n_hidden())
            } else {
                ("n-visible", rbm.n_visible())
            };
            let cure = "tours are solved exactly for at most 12 hidden units and 24 units in both layers";
            return Err(Error::InvalidSetting { name, value: got.to_string(), cure });
        }
        let (n, n_v) = (1 << rbm.n_hidden(), 1 << rbm.n_visible());
        let free = rbm.free_energy_h(&Rows::Bits(BitRows::all_states(rbm.n_hidden())))?;
        let least = free.iter().copied().fold(f64::INFINITY, f64::min);
        let weights: Vec<f64> = free.iter().map(|f| (least - f).exp()).collect();
        let total: f64 = weights.iter().sum();
        let w: Vec<f64> = rbm.weights().into_iter().map(f64::from).collect();
        let of = |bias: &[f32]| -> Vec<f64> { bias.iter().map(|&x| f64::from(x)).collect() };
        let (n_i, n_j) = (rbm.n_visible(), rbm.n_hidden());
        let v_given_h = conditional(&of(rbm.visible_bias()), n_j, |i, j| w[i * n_j + j]);
        let h_given_v = conditional(&of(rbm.hidden_bias()), n_i, |j, i| w[i * n_j + j]);
        let mut transition = vec![0.0; n * n];
        transition.par_chunks_exact_mut(n).zip(v_given_h.par_chunks_exact(n_v)).for_each(|(row, p)| {
            for (&p, h) in p.iter().zip(h_given_v.chunks_exact(n)) {
                row.iter_mut().zip(h).for_each(|(x, h)| *x += p * h);
            }
        });
        let stationary = weights.iter().map(|w| w / total).collect();
        Ok(Self { n, n_v, log_z: total.ln() - least, stationary, transition, v_given_h, h_given_v })
    }

    /// Returns true if `rbm` has at most 12 hidden units and at most 24 units in both layers
    /// together.
    pub fn fits(rbm: &Rbm) -> bool {
        rbm.n_hidden() <= MAX_HIDDEN && rbm.n_hidden() + rbm.n_visible() <= MAX_UNITS
    }

    /// Enumerates `rbm` if that takes at most about a second; otherwise returns `None`.
    pub fn if_quick(rbm: &Rbm) -> Option<Self> {
        let is_quick = 2 * rbm.n_hidden() + rbm.n_visible().max(rbm.n_hidden()) <= QUICK_WORK;
        is_quick.then(|| Self::new(rbm).ok()).flatten()
    }

    /// Returns the exact `log Z`.
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// Returns the transition probability `P(h, h')` between two packed states.
    pub fn transition(&self, h: usize, next: usize) -> f64 {
        self.transition[h * self.n..][..self.n][next]
    }

    /// Returns the spectral gap `δ = 1 − λ₂`.
    pub fn spectral_gap(&self) -> f64 {
        if self.n == 1 {
            return 1.0;
        }
        // On functions of mean 0, `I − P` is inverted by fixing the value at one state and
        // subtracting the mean.
        let at = (0..self.n).max_by(|&a, &b| self.stationary[a].total_cmp(&self.stationary[b]));
        let inside: Vec<bool> = (0..self.n).map(|h| Some(h) == at).collect();
        let off = OffSet::new(self, &inside);
        let apply = |x: &mut Vec<f64>| {
            let rhs: Vec<f64> = off.states.iter().map(|&h| x[h]).collect();
            x.fill(0.0);
            off.states.iter().zip(off.solve(rhs)).for_each(|(&h, y)| x[h] = y);
            let mean: f64 = x.iter().zip(&self.stationary).map(|(x, p)| x * p).sum();
            x.iter_mut().for_each(|x| *x -= mean);
        };
        1.0 / largest_eigenvalue(self.n, &self.stationary, apply)
    }

    /// Returns the exact theory of tours of this chain between visits to `set`.
    ///
    /// # Errors
    /// If the set is empty, or if its states are not as wide as the hidden layer.
    pub fn tours(&self, set: &StoppingSet) -> Result<TourTheory<'_>> {
        let n_bits = self.n.ilog2() as usize;
        if set.is_empty() {
            return Err(Error::Empty { what: "the stopping set".into(), cure: "give it a state" });
        }
        if set.states().n_bits() != n_bits {
            let what = "hidden units (the model's against the stopping set's)".into();
            return Err(Error::ShapeMismatch { what, expected: n_bits, got: set.states().n_bits() });
        }
        let mut inside = vec![false; self.n];
        set.states().words().iter().for_each(|&h| inside[h as usize] = true);
        let p_s = inside.iter().zip(&self.stationary).filter(|(inside, _)| **inside).map(|(_, p)| p).sum();
        Ok(TourTheory { chain: self, off: OffSet::new(self, &inside), inside, p_s })
    }
}

/// Exact properties of tours between visits to a stopping set.
///
/// ```
/// use mclv::{Rbm, StoppingSet, bits::BitRows, tour::HiddenChain};
/// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.0; 2])?;
/// let chain = HiddenChain::new(&rbm)?;
/// let tours_of = StoppingSet::new(&BitRows::from_words(2, vec![0b11]));
/// let tours = chain.tours(&tours_of)?;
/// // Kac: the mean length is one over the probability of the set.
/// let (mean, _) = tours.length_moments();
/// assert!((mean * tours.set_probability() - 1.0).abs() < 1e-12);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TourTheory<'a> {
    chain: &'a HiddenChain,
    off: OffSet,
    inside: Vec<bool>,
    p_s: f64,
}

impl TourTheory<'_> {
    /// Returns the chain of the tours.
    pub fn chain(&self) -> &HiddenChain {
        self.chain
    }

    /// Returns `Z_S/Z`, the probability of the stopping set.
    pub fn set_probability(&self) -> f64 {
        self.p_s
    }

    /// Returns `E[ξ]` and `E[ξ²]`, each by a linear solve. The identity `E[ξ] = Z/Z_S` is not used.
    pub fn length_moments(&self) -> (f64, f64) {
        self.sum_moments(|_, _| 1.0)
    }

    /// Returns the variance of `ξ`.
    pub fn length_variance(&self) -> f64 {
        let (mean, second) = self.length_moments();
        second - mean * mean
    }

    /// Returns the first and second moment of `Σ_{k≤ξ} f(v_k, h_k)`. `f` receives states as packed
    /// bits.
    pub fn sum_moments(&self, f: impl Fn(usize, usize) -> f64) -> (f64, f64) {
        let chain = self.chain;
        // Σ_v p(v|h) of f times something of v; and of f².
        let given_h = |h: usize, x: &dyn Fn(usize, f64) -> f64| -> f64 {
            let p = &chain.v_given_h[h * chain.n_v..][..chain.n_v];
            p.iter().enumerate().map(|(v, p)| p * x(v, f(v, h))).sum()
        };
        let first: Vec<f64> = (0..chain.n).map(|h| given_h(h, &|_, f| f)).collect();
        let rest = self.solve(&first);
        // The sum that is still to come, given v. It is zero if the next state is in the set.
        let to_come: Vec<f64> = chain
            .h_given_v
            .chunks_exact(chain.n)
            .map(|p| p.iter().zip(&rest).map(|(p, r)| p * r).sum())
            .collect();
        let squares: Vec<f64> =
            (0..chain.n).map(|h| given_h(h, &|v, f| f * (f + 2.0 * to_come[v]))).collect();
        let rest_of_squares = self.solve(&squares);
        (self.along_tour(&first, &rest), self.along_tour(&squares, &rest_of_squares))
    }

    /// Returns the expected sum of `cost` from each state off the set until the set is entered; 0
    /// on the set.
    fn solve(&self, cost: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.chain.n];
        let solution = self.off.solve(self.off.states.iter().map(|&h| cost[h]).collect());
        self.off.states.iter().zip(solution).for_each(|(&h, x)| out[h] = x);
        out
    }

    /// Returns the expected sum of `cost` along a tour from `π_S`, given the sums `rest` from the
    /// states off the set.
    fn along_tour(&self, cost: &[f64], rest: &[f64]) -> f64 {
        let starts = (0..self.chain.n).filter(|&h| self.inside[h]);
        let sum: f64 = starts
            .map(|h| {
                let row = &self.chain.transition[h * self.chain.n..][..self.chain.n];
                let to_come: f64 = row.iter().zip(rest).map(|(p, r)| p * r).sum();
                self.chain.stationary[h] * (cost[h] + to_come)
            })
            .sum();
        sum / self.p_s
    }

    /// Returns the spectral radius `ρ` of `P` off the set: in the limit of large `k`, `p(ξ > k)`
    /// falls like `ρ^k`. It is 0 if no state is off the set.
    ///
    /// For every `k ≥ 1`, `p(ξ > k) ≤ p(ξ > 1)·ρ^(k−1) ≤ ρ^k`: lengths from 1 on are a mixture of
    /// geometric laws with rates of at most `ρ`, because the hidden chain is reversible and positive.
    pub fn tail_rate(&self) -> f64 {
        let off = &self.off;
        if off.states.is_empty() {
            return 0.0;
        }
        let weights: Vec<f64> = off.states.iter().map(|&h| self.chain.stationary[h]).collect();
        let apply = |x: &mut Vec<f64>| *x = off.solve(std::mem::take(x));
        1.0 - 1.0 / largest_eigenvalue(weights.len(), &weights, apply)
    }

    /// Returns `ε = min_v Σ_{h∈H} p(h|v)`. Every step ends the tour with at least this probability,
    /// so `p(ξ > k) ≤ (1−ε)^k`.
    pub fn epsilon(&self) -> f64 {
        let of_v = |p: &[f64]| -> f64 {
            p.iter().zip(&self.inside).filter(|(_, inside)| **inside).map(|(p, _)| p).sum()
        };
        self.chain.h_given_v.chunks_exact(self.chain.n).map(of_v).fold(1.0, f64::min)
    }

    /// Returns `p(ξ > k)` for `k = 0 … n_steps`.
    pub fn survival(&self, n_steps: usize) -> Vec<f64> {
        let mut p = self.starts();
        let mut survival = vec![1.0];
        for _ in 0..n_steps {
            p = self.step_off(&p);
            survival.push(p.iter().sum());
        }
        survival
    }

    /// Returns `Σ_{j≥k} p(ξ > j) = E[(ξ − k)⁺]`: the amount by which cutting tours at `k ≥ 1` steps
    /// lowers the mean length.
    pub fn truncation_bias(&self, k: usize) -> f64 {
        // A difference would lose its digits. So: where the tours still running are, times how long
        // they have to go.
        let p = (0..k).fold(self.starts(), |p, _| self.step_off(&p));
        let rest = self.solve(&vec![1.0; self.chain.n]);
        p.iter().zip(&rest).map(|(p, r)| p * r).sum()
    }

    /// Returns where tours at `p` are after a step, without those that have ended.
    fn step_off(&self, p: &[f64]) -> Vec<f64> {
        let n = self.chain.n;
        let mut next = vec![0.0; n];
        for (p, row) in p.iter().zip(self.chain.transition.chunks_exact(n)).filter(|(p, _)| **p > 0.0) {
            next.iter_mut().zip(row).for_each(|(x, q)| *x += p * q);
        }
        next.iter_mut().zip(&self.inside).filter(|(_, inside)| **inside).for_each(|(x, _)| *x = 0.0);
        next
    }

    /// Returns the corrected bound of Theorem 3, `E[ξ²] ≤ Z/Z_S + 2(1 − Z_S/Z)(Z/Z_S)²/δ`.
    ///
    /// The bound as printed in the paper is smaller and false. A test has the counterexample.
    pub fn second_moment_bound(&self) -> f64 {
        let p = self.p_s;
        1.0 / p + 2.0 * (1.0 - p) / (p * p * self.chain.spectral_gap())
    }

    /// Returns `Σ_h π_S(h) P(h,h)`: the probability that a tour ends in its own start after one
    /// step.
    pub fn own_start_in_one_step(&self) -> f64 {
        let inside = (0..self.chain.n).filter(|&h| self.inside[h]);
        inside.map(|h| self.chain.stationary[h] * self.chain.transition(h, h)).sum::<f64>() / self.p_s
    }
}

/// Returns `p(x|y)` of every state `x` of a layer with the given biases, in one row for each of the
/// `2^n_given` states `y` of the other layer.
fn conditional(bias: &[f64], n_given: usize, weight: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(1 << (bias.len() + n_given));
    for y in 0..1usize << n_given {
        let mut row = vec![1.0];
        for (i, b) in bias.iter().enumerate() {
            let input = b + (0..n_given).filter(|j| y >> j & 1 == 1).map(|j| weight(i, j)).sum::<f64>();
            let (on, off) = (1.0 / (1.0 + (-input).exp()), 1.0 / (1.0 + input.exp()));
            let ones: Vec<f64> = row.iter().map(|p| p * on).collect();
            row.iter_mut().for_each(|p| *p *= off);
            row.extend(ones);
        }
        out.extend(row);
    }
    out
}

/// `I − P` off a set, factorised.
#[derive(Clone, Debug)]
struct OffSet {
    states: Vec<usize>,
    /// Reduced transitions below the diagonal, multipliers above it. The diagonal is not used.
    factors: Vec<f64>,
    pivots: Vec<f64>,
}

impl OffSet {
    fn new(chain: &HiddenChain, inside: &[bool]) -> Self {
        let states: Vec<usize> = (0..chain.n).filter(|&h| !inside[h]).collect();
        let m = states.len();
        let row_of = |h: usize| &chain.transition[h * chain.n..][..chain.n];
        let mut factors: Vec<f64> =
            states.iter().flat_map(|&h| states.iter().map(move |&next| row_of(h)[next])).collect();
        let mut exits: Vec<f64> = states
            .iter()
            .map(|&h| row_of(h).iter().zip(inside).filter(|(_, inside)| **inside).map(|(p, _)| p).sum())
            .collect();
        let mut pivots = vec![0.0; m];
        for k in (0..m).rev() {
            let (above, rest) = factors.split_at_mut(k * m);
            let row = &rest[..k];
            // 1 − P(k,k) as the sum of the probabilities that leave, so that nothing cancels.
            pivots[k] = exits[k] + row.iter().sum::<f64>();
            let (pivot, exit) = (pivots[k], exits[k]);
            above.par_chunks_exact_mut(m).zip(&mut exits[..k]).for_each(|(target, target_exit)| {
                let factor = target[k] / pivot;
                target[k] = factor;
                target.iter_mut().zip(row).for_each(|(x, p)| *x += factor * p);
                *target_exit += factor * exit;
            });
        }
        Self { states, factors, pivots }
    }

    /// Returns `(I − P)⁻¹ rhs`.
    fn solve(&self, mut rhs: Vec<f64>) -> Vec<f64> {
        let m = self.states.len();
        for k in (0..m).rev() {
            let from = rhs[k];
            for (i, x) in rhs[..k].iter_mut().enumerate() {
                *x += self.factors[i * m + k] * from;
            }
        }
        for k in 0..m {
            let known: f64 = self.factors[k * m..][..k].iter().zip(&rhs).map(|(p, x)| p * x).sum();
            rhs[k] = (rhs[k] + known) / self.pivots[k];
        }
        rhs
    }
}

/// Returns the largest eigenvalue of a positive operator that is self-adjoint under `weights`, by
/// power iteration.
fn largest_eigenvalue(n: usize, weights: &[f64], apply: impl Fn(&mut Vec<f64>)) -> f64 {
    // No eigenvector of a model can be expected to be orthogonal to this.
    let mut x: Vec<f64> = (0..n).map(|k| 1.0 + 0.5 * (1.3 * k as f64).sin()).collect();
    let dot =
        |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).zip(weights).map(|((x, y), w)| w * x * y).sum() };
    apply(&mut x);
    let mut eigenvalue = 0.0;
    for _ in 0..10_000 {
        let norm = dot(&x, &x).sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        let before = x.clone();
        apply(&mut x);
        let now = dot(&before, &x);
        if (now - eigenvalue).abs() <= 1e-14 * now {
            return now;
        }
        eigenvalue = now;
    }
    eigenvalue
}
