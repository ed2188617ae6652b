//! Define the models between independent units and an RBM, and move chains along them.
//!
//! ```text
//! p_β(v) ∝ exp(b₀ᵀv) · exp(β dᵀv) · Π_j (1 + e^{β(a + Wᵀv)_j}),      d = b − b₀,  0 ≤ β ≤ 1
//! ```
//! `β = 0` is the base model, whose `Z` is known; `β = 1` is the model. The products `Wᵀv` and `Wh`
//! do not depend on `β`. They are made once for a state and scaled afterwards, so all temperatures
//! share one matrix.

use crate::bits::{ones, words_for};
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Scratch, States, inputs, log_weight_at, sample_at};
use mclv_kernels::tiles::Tiles;
use std::f64::consts::LN_2;

/// The models between a base without weights and an RBM.
pub(super) struct Path {
    /// From `v` to `a + Wᵀv`.
    up: Affine,
    /// From `h` to `d + Wh`.
    down: Affine,
    /// `b₀`, in one row.
    base: Tiles,
    /// `d`.
    difference: Vec<f32>,
    log_z_base: f64,
}

impl Path {
    /// Builds the path from independent units with the biases `base`, or with the model's own, to
    /// `rbm`.
    pub(super) fn new(rbm: &Rbm, base: Option<&[f32]>) -> Result<Self> {
        let base = base.unwrap_or(rbm.visible_bias());
        rbm.check_width(base.len())?;
        if let Some(index) = base.iter().position(|b| !b.is_finite()) {
            return Err(Error::NotFinite { what: "base_bias", index, value: base[index] });
        }
        let difference: Vec<f32> = rbm.visible_bias().iter().zip(base).map(|(b, b0)| b - b0).collect();
        let mut down = rbm.down().clone();
        down.set_bias(&difference);
        let softplus = |&b: &f32| f64::from(b).max(0.0) + (-f64::from(b).abs()).exp().ln_1p();
        Ok(Self {
            up: rbm.up().clone(),
            down,
            base: Tiles::from_rows(1, base.len(), base),
            difference,
            log_z_base: base.iter().map(softplus).sum::<f64>() + rbm.n_hidden() as f64 * LN_2,
        })
    }

    /// `log Z` of the base model.
    pub(super) fn log_z_base(&self) -> f64 {
        self.log_z_base
    }
}

/// Visible states, each with its own random numbers and its own temperature.
pub(super) struct Replicas<'a> {
    path: &'a Path,
    streams: Vec<Stream>,
    v: Vec<u64>,
    h: Vec<u64>,
    /// `a + Wᵀv` of each state.
    up: Tiles,
    /// `d + Wh` of each state.
    down: Tiles,
    /// `dᵀv` of each state.
    linear: Vec<f64>,
    betas: Vec<f32>,
    draws: Vec<Draws>,
    scratch: Scratch,
}

impl<'a> Replicas<'a> {
    /// Draws one state from the base model for each stream.
    pub(super) fn from_base(path: &'a Path, streams: Vec<Stream>) -> Self {
        let v = vec![0; streams.len() * words_for(path.up.n_in())];
        let mut replicas = Self::new(path, streams, v);
        replicas.draw_visible(0);
        replicas.find_inputs();
        replicas
    }

    /// Takes the packed states `v`, one for each stream.
    pub(super) fn from_states(path: &'a Path, streams: Vec<Stream>, v: &[u64]) -> Self {
        let mut replicas = Self::new(path, streams, v.to_vec());
        replicas.find_inputs();
        replicas
    }

    fn new(path: &'a Path, streams: Vec<Stream>, v: Vec<u64>) -> Self {
        let (n, n_visible, n_hidden) = (streams.len(), path.up.n_in(), path.up.n_out());
        Self {
            path,
            v,
            h: vec![0; n * words_for(n_hidden)],
            up: Tiles::zeros(n, n_hidden),
            down: Tiles::zeros(n, n_visible),
            linear: vec![0.0; n],
            betas: vec![0.0; n],
            draws: Vec::with_capacity(n),
            scratch: Scratch::default(),
            streams,
        }
    }

    /// Makes one block-Gibbs step, number `t ≥ 1` of its chain: `h ~ p_β(h|v)`, `v ~ p_β(v|h)` with
    /// state `r` at `betas[r]`. The step leaves `p_β(v)` invariant and is reversible.
    pub(super) fn step(&mut self, betas: impl Fn(usize) -> f64, t: u32) {
        self.betas.iter_mut().enumerate().for_each(|(r, beta)| *beta = betas(r) as f32);
        self.set_draws(2 * t);
        let Self { path, up, down, h, betas, draws, scratch, .. } = self;
        sample_at(Isa::best(), up, None, betas, draws, scratch, h);
        inputs(Isa::best(), &path.down, States::Bits(h), scratch, down);
        self.draw_visible(2 * t + 1);
        self.find_inputs();
    }

    /// `log p*_β(v) − b₀ᵀv` of state `r`.
    pub(super) fn log_weight(&self, r: usize, beta: f64) -> f64 {
        beta * self.linear[r] + log_weight_at(Isa::best(), &self.up, None, r, beta)
    }

    /// The derivative of [`log_weight`](Self::log_weight) with respect to `β`, by a difference over
    /// a small range of temperatures.
    pub(super) fn slope(&self, r: usize, beta: f64) -> f64 {
        const RANGE: f64 = 1e-3;
        let (low, high) = ((beta - RANGE).max(0.0), beta + RANGE);
        (self.log_weight(r, high) - self.log_weight(r, low)) / (high - low)
    }

    /// The packed visible states.
    pub(super) fn visible(&self) -> &[u64] {
        &self.v
    }

    /// Exchanges the states of `r` and `s`. Random numbers and temperatures stay where they are.
    pub(super) fn swap(&mut self, r: usize, s: usize) {
        let n_words = words_for(self.path.up.n_in());
        (0..n_words).for_each(|k| self.v.swap(r * n_words + k, s * n_words + k));
        self.up.swap_rows(r, s);
        self.linear.swap(r, s);
    }

    fn set_draws(&mut self, step: u32) {
        self.draws.clear();
        self.draws.extend(self.streams.iter().map(|stream| stream.at(step)));
    }

    fn draw_visible(&mut self, step: u32) {
        self.set_draws(step);
        let Self { path, down, v, betas, draws, scratch, .. } = self;
        sample_at(Isa::best(), down, Some(&path.base), betas, draws, scratch, v);
    }

    fn find_inputs(&mut self) {
        let Self { path, v, up, linear, scratch, .. } = self;
        inputs(Isa::best(), &path.up, States::Bits(v), scratch, up);
        for (linear, v) in linear.iter_mut().zip(v.chunks_exact(words_for(path.up.n_in()))) {
            *linear = ones(v).map(|i| f64::from(path.difference[i])).sum();
        }
    }
}
