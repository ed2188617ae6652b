//! Define the models between independent units and an RBM, and move chains along them.
//!
//! ```text
//! p_β(v, h) ∝ exp(b₀ᵀv + β(dᵀv + aᵀh + vᵀWh)),      d = b − b₀,  0 ≤ β ≤ 1
//! ```
//! `β = 0` is the base model, whose `Z` is known; `β = 1` is the model. The products `Wᵀv` and `Wh`
//! do not depend on `β`. They are made once for a state and scaled afterwards, so all temperatures
//! share one matrix.
//!
//! Chains keep the states of one layer; the other layer is summed out of their weights. With `x` a
//! state of the layer that is kept, and `l₀ + βl` and `s₀ + βs` the biases of the layer that is kept
//! and of the layer that is summed out, at the inverse temperature `β`:
//!
//! ```text
//! log p*_β(x) = (l₀ + βl)ᵀx + Σ_j softplus(s₀_j + β(s + Wx)_j)
//! ```

use crate::bits::{ones, words_for};
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Scratch, States, inputs, log_weight_at, sample_at};
use mclv_kernels::tiles::Tiles;
use std::f64::consts::LN_2;

/// The layer whose states chains keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Visible,
    Hidden,
}

/// The models between a base without weights and an RBM, as models of one layer.
pub(crate) struct Path {
    kept: Side,
    summed: Side,
    log_z_base: f64,
}

/// One layer of a path.
struct Side {
    /// From states of the other layer to the part of the inputs that `β` multiplies.
    affine: Affine,
    /// The biases of the base model, in one row. `None` if they are 0.
    base: Option<Tiles>,
    /// The biases that `β` multiplies.
    slope: Vec<f32>,
}

impl Side {
    fn new(affine: &Affine, base: Option<&[f32]>, slope: &[f32]) -> Self {
        let mut affine = affine.clone();
        affine.set_bias(slope);
        Self { affine, base: base.map(|base| Tiles::from_rows(1, base.len(), base)), slope: slope.to_vec() }
    }

    fn n_units(&self) -> usize {
        self.slope.len()
    }
}

impl Path {
    /// Builds the path from independent units to `rbm`. `base` has the visible biases of the base
    /// model; with `None` they are the model's own.
    pub(crate) fn new(rbm: &Rbm, base: Option<&[f32]>, kept: Kept) -> Result<Self> {
        let base = base.unwrap_or(rbm.visible_bias());
        rbm.check_width(base.len())?;
        if let Some(index) = base.iter().position(|b| !b.is_finite()) {
            return Err(Error::NotFinite { what: "base_bias", index, value: base[index] });
        }
        let difference: Vec<f32> = rbm.visible_bias().iter().zip(base).map(|(b, b0)| b - b0).collect();
        let softplus = |&b: &f32| f64::from(b).max(0.0) + (-f64::from(b).abs()).exp().ln_1p();
        let log_z_base = base.iter().map(softplus).sum::<f64>() + rbm.n_hidden() as f64 * LN_2;
        let visible = Side::new(rbm.down(), Some(base), &difference);
        let hidden = Side::new(rbm.up(), None, rbm.hidden_bias());
        let (kept, summed) = match kept {
            Kept::Visible => (visible, hidden),
            Kept::Hidden => (hidden, visible),
        };
        Ok(Self { kept, summed, log_z_base })
    }

    /// `log Z` of the base model.
    pub(crate) fn log_z_base(&self) -> f64 {
        self.log_z_base
    }

    /// The number of units of the layer that is kept.
    pub(super) fn n_kept(&self) -> usize {
        self.kept.n_units()
    }
}

/// States of the layer that is kept, each with its own random numbers and its own temperature.
pub(crate) struct Replicas<'a> {
    path: &'a Path,
    clocks: Vec<(Stream, u32)>,
    kept: Vec<u64>,
    /// States of the other layer, drawn last.
    summed: Vec<u64>,
    /// The inputs of the other layer that belong to the states kept.
    of_summed: Tiles,
    /// The inputs of this layer that belong to the states of the other layer.
    of_kept: Tiles,
    /// `lᵀx` of each state.
    linear: Vec<f64>,
    betas: Vec<f32>,
    draws: Vec<Draws>,
    scratch: Scratch,
}

impl<'a> Replicas<'a> {
    /// Draws one state from the base model for each stream.
    pub(crate) fn from_base(path: &'a Path, streams: Vec<Stream>) -> Self {
        let kept = vec![0; streams.len() * words_for(path.n_kept())];
        let mut replicas = Self::new(path, streams.into_iter().map(|stream| (stream, 0)).collect(), kept);
        replicas.draw_kept();
        replicas
    }

    /// Takes the packed states `kept`, one for each stream.
    pub(crate) fn from_states(path: &'a Path, streams: Vec<Stream>, kept: &[u64]) -> Self {
        Self::at(path, streams.into_iter().map(|stream| (stream, 0)).collect(), kept)
    }

    /// Takes the packed states `kept`, each with its stream and the number of steps that it has
    /// made.
    pub(super) fn at(path: &'a Path, clocks: Vec<(Stream, u32)>, kept: &[u64]) -> Self {
        let mut replicas = Self::new(path, clocks, kept.to_vec());
        replicas.find_inputs();
        replicas
    }

    fn new(path: &'a Path, clocks: Vec<(Stream, u32)>, kept: Vec<u64>) -> Self {
        let (n, n_kept, n_summed) = (clocks.len(), path.n_kept(), path.summed.n_units());
        assert_eq!(kept.len(), n * words_for(n_kept), "a state for each stream");
        Self {
            path,
            clocks,
            kept,
            summed: vec![0; n * words_for(n_summed)],
            of_summed: Tiles::zeros(n, n_summed),
            of_kept: Tiles::zeros(n, n_kept),
            linear: vec![0.0; n],
            betas: vec![0.0; n],
            draws: Vec::with_capacity(n),
            scratch: Scratch::default(),
        }
    }

    /// Makes one block-Gibbs step of every state, with state `r` at `betas(r)`. The step leaves
    /// `p_β` invariant and is reversible.
    pub(crate) fn step(&mut self, betas: impl Fn(usize) -> f64) {
        self.draw_summed(betas);
        self.draw_kept();
    }

    /// Makes the first half of a step: draws the layer that is summed out.
    pub(super) fn draw_summed(&mut self, betas: impl Fn(usize) -> f64) {
        self.betas.iter_mut().enumerate().for_each(|(r, beta)| *beta = betas(r) as f32);
        self.clocks.iter_mut().for_each(|(_, t)| *t += 1);
        self.set_draws(0);
        let Self { path, of_summed, of_kept, summed, betas, draws, scratch, .. } = self;
        sample_at(Isa::best(), of_summed, path.summed.base.as_ref(), betas, draws, scratch, summed);
        inputs(Isa::best(), &path.kept.affine, States::Bits(summed), scratch, of_kept);
    }

    /// Makes the second half of a step: draws the layer that is kept.
    pub(super) fn draw_kept(&mut self) {
        self.set_draws(1);
        let Self { path, of_kept, kept, betas, draws, scratch, .. } = self;
        sample_at(Isa::best(), of_kept, path.kept.base.as_ref(), betas, draws, scratch, kept);
        self.find_inputs();
    }

    /// `log p*_β(x) − l₀ᵀx` of state `r`.
    pub(crate) fn log_weight(&self, r: usize, beta: f64) -> f64 {
        let base = self.path.summed.base.as_ref();
        beta * self.linear[r] + log_weight_at(Isa::best(), &self.of_summed, base, r, beta)
    }

    /// The derivative of [`log_weight`](Self::log_weight) with respect to `β`, by a difference over
    /// a small range of temperatures.
    pub(crate) fn slope(&self, r: usize, beta: f64) -> f64 {
        const RANGE: f64 = 1e-3;
        let (low, high) = ((beta - RANGE).max(0.0), beta + RANGE);
        (self.log_weight(r, high) - self.log_weight(r, low)) / (high - low)
    }

    /// The packed states that are kept.
    pub(crate) fn kept(&self) -> &[u64] {
        &self.kept
    }

    /// The packed state `r` of the layer that is kept.
    pub(super) fn kept_of(&self, r: usize) -> &[u64] {
        let n_words = words_for(self.path.n_kept());
        &self.kept[r * n_words..][..n_words]
    }

    /// The packed state `r` of the other layer, drawn last.
    pub(super) fn summed_of(&self, r: usize) -> &[u64] {
        let n_words = words_for(self.path.summed.n_units());
        &self.summed[r * n_words..][..n_words]
    }

    /// The stream of state `r`, and the number of steps that the state has made.
    pub(super) fn clock_of(&self, r: usize) -> (Stream, u32) {
        self.clocks[r]
    }

    /// Replaces state `r`, its stream and its number of steps.
    pub(super) fn place(&mut self, r: usize, clock: (Stream, u32), kept: &[u64]) {
        let one = Self::at(self.path, vec![clock], kept);
        self.clocks[r] = clock;
        self.kept[r * kept.len()..][..kept.len()].copy_from_slice(kept);
        self.of_summed.copy_row(r, &one.of_summed, 0);
        self.linear[r] = one.linear[0];
    }

    /// Exchanges the states of `r` and `s`. Random numbers and temperatures stay where they are.
    pub(crate) fn swap(&mut self, r: usize, s: usize) {
        let n_words = words_for(self.path.n_kept());
        (0..n_words).for_each(|k| self.kept.swap(r * n_words + k, s * n_words + k));
        self.of_summed.swap_rows(r, s);
        self.linear.swap(r, s);
    }

    /// Takes the random numbers of half-step `half` of each state.
    fn set_draws(&mut self, half: u32) {
        self.draws.clear();
        self.draws.extend(self.clocks.iter().map(|(stream, t)| stream.at(2 * t + half)));
    }

    fn find_inputs(&mut self) {
        let Self { path, kept, of_summed, linear, scratch, .. } = self;
        inputs(Isa::best(), &path.summed.affine, States::Bits(kept), scratch, of_summed);
        for (linear, x) in linear.iter_mut().zip(kept.chunks_exact(words_for(path.n_kept()))) {
            *linear = ones(x).map(|i| f64::from(path.kept.slope[i])).sum();
        }
    }
}
