//! Exact laws of states along tours (Lemma 1) and along the chains of contrastive divergence.

use super::{HiddenChain, TourTheory};
use crate::data::RealRows;

impl TourTheory<'_> {
    /// Returns the law of the hidden states of a tour of exactly `length` steps (Lemma 1): for each
    /// step, the probability of every state.
    ///
    /// The law does not depend on where other tours are cut: tours of this length that MCLV-K
    /// completes have it for every `K ≥ length`.
    ///
    /// # Panics
    /// If `length` is 0.
    pub fn states_given_length(&self, length: u32) -> Vec<Vec<f64>> {
        assert!(length > 0, "a tour has at least one step");
        let n = self.chain.n;
        // ways[s][h]: the probability to enter the set for the first time after s + 1 steps from h.
        let mut ways = vec![self.exits()];
        for s in 1..length as usize {
            let from = |h: usize| -> f64 {
                let row = &self.chain.transition[h * n..][..n];
                let off = row.iter().zip(&self.inside).zip(&ways[s - 1]).filter(|((_, inside), _)| !**inside);
                off.map(|((p, _), rest)| p * rest).sum()
            };
            ways.push((0..n).map(from).collect());
        }
        let mut p = self.starts();
        let mut laws = Vec::with_capacity(length as usize);
        for left in (0..length as usize).rev() {
            let joint: Vec<f64> = p.iter().zip(&ways[left]).map(|(p, rest)| p * rest).collect();
            let total: f64 = joint.iter().sum();
            laws.push(joint.into_iter().map(|x| x / total).collect());
            p = self.step_off(&p);
        }
        laws
    }

    /// Returns `π_S` of every hidden state: 0 off the set.
    pub fn starts(&self) -> Vec<f64> {
        let of = |(p, inside): (&f64, &bool)| if *inside { p / self.p_s } else { 0.0 };
        self.chain.stationary.iter().zip(&self.inside).map(of).collect()
    }

    /// Returns true if a hidden state is in the set.
    pub fn contains(&self, h: usize) -> bool {
        self.inside[h]
    }

    /// Returns the mean length of "tours" that end only in states of the set other than their
    /// start, as the paper conjectures one might do. `None` if the set has one state.
    ///
    /// The set of states that end such a tour depends on its start. It is not a stopping set, and
    /// Kac's identity does not hold: the value is not `Z/Z_S`.
    pub fn length_to_another_state(&self) -> Option<f64> {
        let states: Vec<usize> = (0..self.chain.n).filter(|&h| self.inside[h]).collect();
        let weights = self.starts();
        let from = |&start: &usize| -> f64 {
            let mut others = self.inside.clone();
            others[start] = false;
            let off = super::OffSet::new(self.chain, &others);
            let at = off.states.iter().position(|&h| h == start).expect("the start is off the set");
            weights[start] * off.solve(vec![1.0; off.states.len()])[at]
        };
        (states.len() > 1).then(|| states.iter().map(from).sum())
    }
}

impl HiddenChain {
    /// Returns `p(h)` of every hidden state.
    pub fn stationary(&self) -> &[f64] {
        &self.stationary
    }

    /// Returns the expectation of `f(v, h)` under the model. `f` receives states as packed bits.
    pub fn expectation(&self, f: impl Fn(usize, usize) -> f64) -> f64 {
        self.given_h(f).iter().zip(&self.stationary).map(|(f, p)| f * p).sum()
    }

    /// Returns the law of `h ~ p(h|v)` for a row drawn uniformly: where contrastive divergence
    /// starts. `means` holds `E[h|v]` of each row.
    pub fn starts_of_cd(&self, means: &RealRows) -> Vec<f64> {
        let n_units = self.n.ilog2() as usize;
        let mut law = vec![0.0; self.n];
        let mut of_row = Vec::with_capacity(self.n);
        for row in means.values().chunks_exact(n_units) {
            of_row.clear();
            of_row.push(1.0);
            for &mean in row {
                let on = f64::from(mean);
                for k in 0..of_row.len() {
                    of_row.push(of_row[k] * on);
                    of_row[k] *= 1.0 - on;
                }
            }
            law.iter_mut().zip(&of_row).for_each(|(x, p)| *x += p);
        }
        let total: f64 = law.iter().sum();
        law.into_iter().map(|x| x / total).collect()
    }

    /// Returns the expectation of `f(v_K, h')` of a chain that starts at `h_1 ~ starts`, with `v_K`
    /// drawn given `h_K`, and `h'` given `v_K`: the pair that CD-K uses.
    ///
    /// # Panics
    /// If `k` is 0.
    pub fn after_steps(&self, starts: &[f64], k: u32, f: impl Fn(usize, usize) -> f64) -> f64 {
        assert!(k > 0, "CD-K makes at least one step");
        let mut p = starts.to_vec();
        for _ in 1..k {
            let mut next = vec![0.0; self.n];
            for (p, row) in p.iter().zip(self.transition.chunks_exact(self.n)) {
                next.iter_mut().zip(row).for_each(|(x, q)| *x += p * q);
            }
            p = next;
        }
        let mut of_v = vec![0.0; self.n_v];
        for (p, row) in p.iter().zip(self.v_given_h.chunks_exact(self.n_v)) {
            of_v.iter_mut().zip(row).for_each(|(x, q)| *x += p * q);
        }
        let rows = self.h_given_v.chunks_exact(self.n).enumerate();
        let of_row = |(v, row): (usize, &[f64])| {
            of_v[v] * row.iter().enumerate().map(|(h, p)| p * f(v, h)).sum::<f64>()
        };
        rows.map(of_row).sum()
    }

    /// Returns `E[f(v, h) | h]` of every hidden state.
    pub(super) fn given_h(&self, f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let rows = self.v_given_h.chunks_exact(self.n_v).enumerate();
        rows.map(|(h, row)| row.iter().enumerate().map(|(v, p)| p * f(v, h)).sum()).collect()
    }
}

/// Returns the total variation distance of two laws on the same states.
pub fn total_variation(p: &[f64], q: &[f64]) -> f64 {
    assert_eq!(p.len(), q.len(), "laws on the same states");
    0.5 * p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>()
}
