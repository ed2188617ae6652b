//! Define the models between independent units and an RBM, and move chains along them.
//!
//! ```text
//! p_β(v) ∝ exp(b₀ᵀv) · exp(β dᵀv) · Π_j (1 + e^{β(a + Wᵀv)_j}),      d = b − b₀,  0 ≤ β ≤ 1
//! ```
//! `β = 0` is the base model, whose `Z` is known; `β = 1` is the model. `d` is stored as one more
//! column of `W`, whose hidden unit is always on. One product with `W` then gives all inputs that a
//! visible state determines, and one product with `β` times a hidden state gives the visible inputs
//! at any temperature. Weights are never scaled, so all temperatures share one matrix.

use crate::bits::words_for;
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{self, Affine, Scratch, States};
use mclv_kernels::math::{sigmoid_f64, softplus_sum};
use mclv_kernels::tiles::Tiles;
use std::f64::consts::LN_2;

/// The models between a base without weights and an RBM.
pub(super) struct Path {
    /// From `v` to `a + Wᵀv` and, last, `dᵀv`.
    up: Affine,
    /// From `β(h, 1)` to `b₀ + β(d + Wh)`.
    down: Affine,
    log_z_base: f64,
}

impl Path {
    /// Builds the path from independent units with the biases `base`, or with the model's own, to
    /// `rbm`.
    pub(super) fn new(rbm: &Rbm, base: Option<&[f32]>) -> Result<Self> {
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let base = base.unwrap_or(rbm.visible_bias());
        rbm.check_width(base.len())?;
        if let Some(index) = base.iter().position(|b| !b.is_finite()) {
            return Err(Error::NotFinite { what: "base_bias", index, value: base[index] });
        }
        let mut weights = Vec::with_capacity(n_visible * (n_hidden + 1));
        let biases = rbm.visible_bias().iter().zip(base);
        for (row, (b, b0)) in rbm.weights().chunks_exact(n_hidden).zip(biases) {
            weights.extend_from_slice(row);
            weights.push(b - b0);
        }
        let weights = Tiles::from_rows(n_visible, n_hidden + 1, &weights);
        let down = Affine::new(weights.transposed(), base);
        let up = Affine::new(weights, &[rbm.hidden_bias(), &[0.0]].concat());
        let softplus = |&b: &f32| f64::from(b).max(0.0) + (-f64::from(b).abs()).exp().ln_1p();
        let log_z_base = base.iter().map(softplus).sum::<f64>() + n_hidden as f64 * LN_2;
        Ok(Self { up, down, log_z_base })
    }

    /// `log Z` of the base model.
    pub(super) fn log_z_base(&self) -> f64 {
        self.log_z_base
    }

    fn n_hidden(&self) -> usize {
        self.up.n_out() - 1
    }
}

/// Visible states, each with its own random numbers and its own temperature.
pub(super) struct Replicas<'a> {
    path: &'a Path,
    streams: Vec<Stream>,
    v: Vec<u64>,
    /// `a + Wᵀv` and `dᵀv` of each state.
    inputs: Vec<f64>,
    /// `β(h, 1)` of each state.
    scaled_h: Vec<f32>,
    draws: Vec<Draws>,
    /// `βx` of one state.
    row: Vec<f64>,
    tiles: Tiles,
    scratch: Scratch,
}

impl<'a> Replicas<'a> {
    /// Draws one state from the base model for each stream.
    pub(super) fn from_base(path: &'a Path, streams: Vec<Stream>) -> Self {
        let v = vec![0; streams.len() * words_for(path.up.n_in())];
        let mut replicas = Self::new(path, streams, v);
        // No hidden unit is on, so only the base model is left.
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
        let (n, n_inputs) = (streams.len(), path.up.n_out());
        Self {
            path,
            v,
            inputs: vec![0.0; n * n_inputs],
            scaled_h: vec![0.0; n * n_inputs],
            draws: Vec::with_capacity(n),
            row: vec![0.0; path.n_hidden()],
            tiles: Tiles::zeros(n, n_inputs),
            scratch: Scratch::default(),
            streams,
        }
    }

    /// Makes one block-Gibbs step, number `t ≥ 1` of its chain: `h ~ p_β(h|v)`, `v ~ p_β(v|h)` with
    /// state `r` at `betas[r]`. The step leaves `p_β(v)` invariant and is reversible.
    pub(super) fn step(&mut self, betas: impl Fn(usize) -> f64, t: u32) {
        let isa = Isa::best();
        let n_inputs = self.path.up.n_out();
        let rows = self.inputs.chunks_exact(n_inputs).zip(self.scaled_h.chunks_exact_mut(n_inputs));
        for (r, (x, h)) in rows.enumerate() {
            let beta = betas(r);
            scale(&mut self.row, beta, x);
            sigmoid_f64(isa, &mut self.row);
            let draws = self.streams[r].at(2 * t);
            let (h, always_on) = h.split_at_mut(n_inputs - 1);
            for (block, (h, p)) in (0..).zip(h.chunks_mut(4).zip(self.row.chunks(4))) {
                for ((h, p), k) in h.iter_mut().zip(p).zip(draws.block(block)) {
                    let on = (f64::from(k) + 0.5) * (1.0 / 4_294_967_296.0) < *p;
                    *h = if on { beta as f32 } else { 0.0 };
                }
            }
            always_on[0] = beta as f32;
        }
        self.draw_visible(2 * t + 1);
        self.find_inputs();
    }

    /// `log p*_β(v) − b₀ᵀv` of state `r`.
    pub(super) fn log_weight(&mut self, r: usize, beta: f64) -> f64 {
        let x = &self.inputs[r * self.path.up.n_out()..][..self.path.up.n_out()];
        scale(&mut self.row, beta, x);
        beta * x[x.len() - 1] + softplus_sum(Isa::best(), &self.row)
    }

    /// The derivative of [`log_weight`](Self::log_weight) with respect to `β`.
    pub(super) fn slope(&mut self, r: usize, beta: f64) -> f64 {
        let x = &self.inputs[r * self.path.up.n_out()..][..self.path.up.n_out()];
        scale(&mut self.row, beta, x);
        sigmoid_f64(Isa::best(), &mut self.row);
        x[x.len() - 1] + self.row.iter().zip(x).map(|(p, x)| p * x).sum::<f64>()
    }

    /// The packed visible states.
    pub(super) fn visible(&self) -> &[u64] {
        &self.v
    }

    /// Exchanges the states of `r` and `s`. Random numbers and temperatures stay where they are.
    pub(super) fn swap(&mut self, r: usize, s: usize) {
        swap_rows(&mut self.v, words_for(self.path.up.n_in()), r, s);
        swap_rows(&mut self.inputs, self.path.up.n_out(), r, s);
    }

    fn draw_visible(&mut self, step: u32) {
        self.draws.clear();
        self.draws.extend(self.streams.iter().map(|stream| stream.at(step)));
        let h = States::Reals(&self.scaled_h);
        layer::sample(Isa::best(), &self.path.down, h, &self.draws, &mut self.scratch, &mut self.v, None);
    }

    fn find_inputs(&mut self) {
        layer::inputs(Isa::best(), &self.path.up, States::Bits(&self.v), &mut self.scratch, &mut self.tiles);
        for (r, inputs) in self.inputs.chunks_exact_mut(self.path.up.n_out()).enumerate() {
            inputs.iter_mut().zip(self.tiles.row(r)).for_each(|(to, x)| *to = f64::from(x));
        }
    }
}

/// Computes `βx` for the hidden units. The last input does not belong to a hidden unit.
fn scale(row: &mut [f64], beta: f64, x: &[f64]) {
    row.iter_mut().zip(x).for_each(|(y, x)| *y = beta * x);
}

fn swap_rows<T>(rows: &mut [T], width: usize, r: usize, s: usize) {
    let (first, second) = rows.split_at_mut(r.max(s) * width);
    first[r.min(s) * width..][..width].swap_with_slice(&mut second[..width]);
}
