//! Define the models between independent units and an RBM, and move chains along them.
//!
//! ```text
//! p_β(v, h) ∝ exp(b_βᵀv + a_βᵀh + β vᵀWh),    b_β = (1−β)b₀ + βb,    a_β = (1−β)a₀ + βa,    0 ≤ β ≤ 1
//! ```
//! `β = 0` is the base model, whose `Z` is known; `β = 1` is the model. The products `b + Wh` and
//! `a + Wᵀv` do not depend on `β`. They are made once for a state and scaled afterwards, so all
//! temperatures share one matrix.
//!
//! A path may begin at several base models. The models between each of them and the RBM are a *leg*
//! of the path. All legs end at the RBM.
//!
//! Chains keep the states of one layer; the other layer is summed out of their weights. With `x` a
//! state of the layer that is kept, and `l` and `s` the biases of the layer that is kept and of the
//! layer that is summed out:
//!
//! ```text
//! log p*_β(x) = ((1−β)l₀ + βl)ᵀx + Σ_j softplus((1−β)s₀_j + β(s + Wx)_j)
//! ```

use crate::bits::{ones, words_for};
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Bases, Scratch, States, inputs, log_weight_at, sample_at};
use mclv_kernels::tiles::Tiles;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The layer whose states chains keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Visible,
    Hidden,
}

/// A model without weights, at which a leg begins: the biases of its units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BaseModel<'a> {
    pub(crate) visible: Cow<'a, [f32]>,
    pub(crate) hidden: Cow<'a, [f32]>,
}

/// The models between models without weights and an RBM, as models of one layer.
pub(crate) struct Path<'a> {
    kept: Side<'a>,
    summed: Side<'a>,
    /// `log Z` of each base model.
    log_z_bases: Vec<f64>,
}

/// One layer of a path.
struct Side<'a> {
    /// From states of the other layer to the inputs of the model.
    affine: &'a Affine,
    /// The biases of the base models, one row each. Empty if all of them are 0.
    bases: Vec<Tiles>,
    /// For each base model, the biases of the model minus those of the base model.
    slopes: Vec<Vec<f32>>,
}

impl<'a> Side<'a> {
    fn new(affine: &'a Affine, bias: &[f32], bases: &[&[f32]]) -> Self {
        let slope = |base: &&[f32]| bias.iter().zip(*base).map(|(l, l0)| l - l0).collect();
        let is_zero = bases.iter().all(|base| base.iter().all(|&b| b == 0.0));
        let row = |base: &&[f32]| Tiles::from_rows(1, base.len(), base);
        Self {
            affine,
            bases: if is_zero { Vec::new() } else { bases.iter().map(row).collect() },
            slopes: bases.iter().map(slope).collect(),
        }
    }

    fn n_units(&self) -> usize {
        self.affine.n_out()
    }
}

impl<'a> Path<'a> {
    /// Builds the path from independent units to `rbm`. `base` has the visible biases of the base
    /// model; with `None` they are the model's own. Its hidden biases are 0.
    pub(crate) fn new(rbm: &'a Rbm, base: Option<&[f32]>, kept: Kept) -> Result<Self> {
        let visible = Cow::Borrowed(base.unwrap_or(rbm.visible_bias()));
        let hidden = Cow::Owned(vec![0.0; rbm.n_hidden()]);
        Self::with_legs(rbm, &[BaseModel { visible, hidden }], kept)
    }

    /// Builds the paths from each of the base models to `rbm`.
    pub(crate) fn with_legs(rbm: &'a Rbm, bases: &[BaseModel<'_>], kept: Kept) -> Result<Self> {
        for base in bases {
            rbm.check_width(base.visible.len())?;
            assert_eq!(base.hidden.len(), rbm.n_hidden(), "a bias for each hidden unit");
            if let Some(index) = base.visible.iter().position(|b| !b.is_finite()) {
                return Err(Error::NotFinite { what: "base_bias", index, value: base.visible[index] });
            }
        }
        let softplus = |&b: &f32| f64::from(b).max(0.0) + (-f64::from(b).abs()).exp().ln_1p();
        let log_z = |base: &BaseModel<'_>| base.visible.iter().chain(&*base.hidden).map(softplus).sum();
        let of_visible: Vec<&[f32]> = bases.iter().map(|base| &*base.visible).collect();
        let of_hidden: Vec<&[f32]> = bases.iter().map(|base| &*base.hidden).collect();
        let visible = Side::new(rbm.down(), rbm.visible_bias(), &of_visible);
        let hidden = Side::new(rbm.up(), rbm.hidden_bias(), &of_hidden);
        let (kept, summed) = match kept {
            Kept::Visible => (visible, hidden),
            Kept::Hidden => (hidden, visible),
        };
        Ok(Self { kept, summed, log_z_bases: bases.iter().map(log_z).collect() })
    }

    /// The number of base models.
    pub(crate) fn n_legs(&self) -> usize {
        self.log_z_bases.len()
    }

    /// `log Z` of the base model of a leg.
    pub(crate) fn log_z_base(&self, leg: usize) -> f64 {
        self.log_z_bases[leg]
    }

    /// `(l − l₀)ᵀx` of a packed state.
    fn linear(&self, x: &[u64], leg: u32) -> f64 {
        let slope = &self.kept.slopes[leg as usize];
        ones(x).map(|i| f64::from(slope[i])).sum()
    }

    /// The number of units of the layer that is kept.
    pub(super) fn n_kept(&self) -> usize {
        self.kept.n_units()
    }
}

/// States of the layer that is kept, each with its own random numbers, leg and temperature.
pub(crate) struct Replicas<'a> {
    path: &'a Path<'a>,
    clocks: Vec<(Stream, u32)>,
    /// The leg that each state is on.
    legs: Vec<u32>,
    kept: Vec<u64>,
    /// States of the other layer, drawn last.
    summed: Vec<u64>,
    /// The inputs of the other layer that belong to the states kept.
    of_summed: Tiles,
    /// The inputs of this layer that belong to the states of the other layer.
    of_kept: Tiles,
    /// `(l − l₀)ᵀx` of each state.
    linear: Vec<f64>,
    betas: Vec<f32>,
    draws: Vec<Draws>,
    scratch: Scratch,
}

impl<'a> Replicas<'a> {
    /// Draws one state from the first base model for each stream.
    pub(crate) fn from_base(path: &'a Path<'a>, streams: Vec<Stream>) -> Self {
        let kept = vec![0; streams.len() * words_for(path.n_kept())];
        let clocks: Vec<_> = streams.into_iter().map(|stream| (stream, 0)).collect();
        let legs = vec![0; clocks.len()];
        let mut replicas = Self::new(path, clocks, legs, kept);
        replicas.draw_kept();
        replicas
    }

    /// Takes the packed states `kept`, one for each stream, on the first leg.
    pub(crate) fn from_states(path: &'a Path<'a>, streams: Vec<Stream>, kept: &[u64]) -> Self {
        let legs = vec![0; streams.len()];
        Self::at(path, streams.into_iter().map(|stream| (stream, 0)).collect(), legs, kept)
    }

    /// Takes the packed states `kept`, each with its stream, the number of steps that it has made,
    /// and its leg.
    pub(super) fn at(path: &'a Path<'a>, clocks: Vec<(Stream, u32)>, legs: Vec<u32>, kept: &[u64]) -> Self {
        let mut replicas = Self::new(path, clocks, legs, kept.to_vec());
        replicas.find_inputs();
        replicas
    }

    fn new(path: &'a Path<'a>, clocks: Vec<(Stream, u32)>, legs: Vec<u32>, kept: Vec<u64>) -> Self {
        let (n, n_kept, n_summed) = (clocks.len(), path.n_kept(), path.summed.n_units());
        assert_eq!(kept.len(), n * words_for(n_kept), "a state for each stream");
        Self {
            path,
            clocks,
            legs,
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
        let Self { path, legs, of_summed, of_kept, summed, betas, draws, scratch, .. } = self;
        let bases = Bases { rows: &path.summed.bases, of_state: legs };
        sample_at(Isa::best(), of_summed, bases, betas, draws, scratch, summed);
        inputs(Isa::best(), path.kept.affine, States::Bits(summed), scratch, of_kept);
    }

    /// Makes the second half of a step: draws the layer that is kept.
    pub(super) fn draw_kept(&mut self) {
        self.set_draws(1);
        let Self { path, legs, of_kept, kept, betas, draws, scratch, .. } = self;
        let bases = Bases { rows: &path.kept.bases, of_state: legs };
        sample_at(Isa::best(), of_kept, bases, betas, draws, scratch, kept);
        self.find_inputs();
    }

    /// `log p*_β(x) − l₀ᵀx` of state `r`, on its leg.
    pub(crate) fn log_weight(&self, r: usize, beta: f64) -> f64 {
        let base = self.path.summed.bases.get(self.legs[r] as usize);
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

    /// Replaces state `r`, its stream, its number of steps and its leg.
    pub(super) fn place(&mut self, r: usize, clock: (Stream, u32), leg: u32, kept: &[u64]) {
        let one = Self::at(self.path, vec![clock], vec![leg], kept);
        self.clocks[r] = clock;
        self.legs[r] = leg;
        self.kept[r * kept.len()..][..kept.len()].copy_from_slice(kept);
        self.of_summed.copy_row(r, &one.of_summed, 0);
        self.linear[r] = one.linear[0];
    }

    /// Moves state `r` to a leg. The inputs of a state are the same on all legs.
    pub(super) fn set_leg(&mut self, r: usize, leg: u32) {
        self.legs[r] = leg;
        self.linear[r] = self.path.linear(self.kept_of(r), leg);
    }

    /// Exchanges the states of `r` and `s`, which are on the same leg. Random numbers and
    /// temperatures stay where they are.
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
        let Self { path, legs, kept, of_summed, linear, scratch, .. } = self;
        inputs(Isa::best(), path.summed.affine, States::Bits(kept), scratch, of_summed);
        let states = kept.chunks_exact(words_for(path.n_kept())).zip(&*legs);
        for (linear, (x, &leg)) in linear.iter_mut().zip(states) {
            *linear = path.linear(x, leg);
        }
    }
}
