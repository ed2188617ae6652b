//! Expectations by naive enumeration of all pairs (v, h).

use crate::model::Rbm;
use crate::rng::{Purpose, stream};

/// The joint distribution of a small machine. Lists of parameters and of moments go: W (row-major),
/// b, a.
pub(crate) struct Joint {
    n_visible: usize,
    n_hidden: usize,
    /// `p(v, h)` at `h · 2^n_visible + v`.
    p: Vec<f64>,
    pub(crate) log_z: f64,
}

/// `v_i h_j`, `v_i`, `h_j` of one pair.
fn features(n_visible: usize, n_hidden: usize, v: usize, h: usize) -> Vec<f64> {
    let bit = |x: usize, k: usize| (x >> k & 1) as f64;
    let pairs = (0..n_visible).flat_map(|i| (0..n_hidden).map(move |j| bit(v, i) * bit(h, j)));
    pairs.chain((0..n_visible).map(|i| bit(v, i))).chain((0..n_hidden).map(|j| bit(h, j))).collect()
}

pub(crate) fn parameters(rbm: &Rbm) -> Vec<f64> {
    let all = [rbm.weights(), rbm.visible_bias().to_vec(), rbm.hidden_bias().to_vec()].concat();
    all.into_iter().map(f64::from).collect()
}

impl Joint {
    pub(crate) fn new(rbm: &Rbm) -> Self {
        Self::of(rbm.n_visible(), rbm.n_hidden(), &parameters(rbm))
    }

    pub(crate) fn of(n_visible: usize, n_hidden: usize, parameters: &[f64]) -> Self {
        let minus_energy = |s: usize| -> f64 {
            let (v, h) = (s % (1 << n_visible), s >> n_visible);
            features(n_visible, n_hidden, v, h).iter().zip(parameters).map(|(f, x)| f * x).sum()
        };
        let weights: Vec<f64> = (0..1 << (n_visible + n_hidden)).map(|s| minus_energy(s).exp()).collect();
        let z: f64 = weights.iter().sum();
        Self { n_visible, n_hidden, p: weights.iter().map(|w| w / z).collect(), log_z: z.ln() }
    }

    fn mean_features(&self, weight: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_visible * self.n_hidden + self.n_visible + self.n_hidden];
        for (v, h) in (0..1 << self.n_hidden).flat_map(|h| (0..1 << self.n_visible).map(move |v| (v, h))) {
            let w = weight(v, h);
            let f = features(self.n_visible, self.n_hidden, v, h);
            sums.iter_mut().zip(f).for_each(|(sum, f)| *sum += w * f);
        }
        sums
    }

    /// `p(v, h)`.
    pub(crate) fn of_pair(&self, v: usize, h: usize) -> f64 {
        self.p[h << self.n_visible | v]
    }

    fn of_v(&self, v: usize) -> f64 {
        (0..1 << self.n_hidden).map(|h| self.of_pair(v, h)).sum()
    }

    /// `E_p[v hᵀ]`, `E_p[v]`, `E_p[h]`.
    pub(crate) fn moments(&self) -> Vec<f64> {
        self.mean_features(|v, h| self.of_pair(v, h))
    }

    /// `p(h)` of every hidden state.
    pub(crate) fn hidden(&self) -> Vec<f64> {
        self.p.chunks_exact(1 << self.n_visible).map(|p| p.iter().sum()).collect()
    }

    /// `log Z_S` of a set of hidden states.
    pub(crate) fn log_z_s(&self, set: &[u64]) -> f64 {
        let p = self.hidden();
        self.log_z + set.iter().map(|&h| p[h as usize]).sum::<f64>().ln()
    }

    /// `log p*(h)` of some hidden states.
    pub(crate) fn log_weights(&self, set: &[u64]) -> Vec<f64> {
        let p = self.hidden();
        set.iter().map(|&h| self.log_z + p[h as usize].ln()).collect()
    }

    /// Independent draws from `p(h)`.
    pub(crate) fn draw_hidden(&self, n: usize, replicate: u32) -> Vec<u64> {
        let p = self.hidden();
        let mut rng = stream(77, Purpose::SelfTest, u64::from(replicate)).reader();
        let mut draw = || {
            let mut u = rng.uniform();
            let passed = |p: &f64| {
                u -= p;
                u < 0.0
            };
            p.iter().position(passed).unwrap_or(p.len() - 1) as u64
        };
        (0..n).map(|_| draw()).collect()
    }

    /// Weighted mean of `log p(v)` over rows.
    pub(crate) fn log_likelihood(&self, rows: &[(usize, f64)]) -> f64 {
        let total: f64 = rows.iter().map(|(_, w)| w).sum();
        rows.iter().map(|&(v, w)| w * self.of_v(v).ln()).sum::<f64>() / total
    }

    /// The gradient of [`log_likelihood`](Self::log_likelihood): data minus model.
    pub(crate) fn gradient(&self, rows: &[(usize, f64)]) -> Vec<f64> {
        let total: f64 = rows.iter().map(|(_, w)| w).sum();
        let weight_of =
            |v: usize| rows.iter().filter(|(row, _)| *row == v).map(|(_, w)| w).sum::<f64>() / total;
        self.mean_features(|v, h| self.of_pair(v, h) * (weight_of(v) / self.of_v(v) - 1.0))
    }
}
