//! The affine map from the states of one layer to the inputs of the other.

use super::States;
use crate::tiles::{CELL, Cell, TILE, Tiles};

/// The size of a tile, in bytes, from which processing it part by part is worthwhile.
const FAR: usize = 64 << 10;

/// An affine map `x ↦ b + Wᵀx` from the states of one layer to the inputs of the other.
///
/// ```
/// use mclv_kernels::{Isa, layer::{Affine, Scratch, States, inputs}, tiles::Tiles};
/// // Two units below, three above; W is 2 × 3.
/// let up = Affine::new(Tiles::from_rows(2, 3, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]), &[0.5, 0.5, 0.5]);
/// let mut out = Tiles::zeros(1, 3);
/// inputs(Isa::best(), &up, States::Bits(&[0b11]), &mut Scratch::default(), &mut out);
/// assert_eq!(out.to_rows(), [11.5, 22.5, 33.5]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    pub(super) weights: Tiles,
    /// Padded with −∞, so that a padding unit has mean 0 and is never on.
    pub(super) bias: Vec<Cell>,
}

impl Affine {
    /// Creates a map from weights, as (units read × units computed), and a bias for each unit
    /// computed.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn new(weights: Tiles, bias: &[f32]) -> Self {
        let mut affine = Self { bias: vec![Cell([0.0; CELL]); bias.len().div_ceil(CELL)], weights };
        affine.set_bias(bias);
        affine
    }

    /// Replaces the bias.
    ///
    /// # Panics
    /// If the new bias has another size.
    pub fn set_bias(&mut self, bias: &[f32]) {
        assert_eq!(bias.len(), self.n_out(), "one bias for each unit");
        for (cell, part) in self.bias.iter_mut().zip(bias.chunks(CELL)) {
            cell.0 = [f32::NEG_INFINITY; CELL];
            cell.0[..part.len()].copy_from_slice(part);
        }
    }

    /// Returns the weights.
    pub fn weights(&self) -> &Tiles {
        &self.weights
    }

    /// Returns the weights for updates.
    pub fn weights_mut(&mut self) -> &mut Tiles {
        &mut self.weights
    }

    pub(super) fn check(&self, states: States<'_>, out: &Tiles) {
        let wanted = (states.n_rows(self.n_in()), self.n_out());
        assert_eq!((out.n_rows(), out.n_columns()), wanted, "shape of the output");
    }

    /// Returns true if tiles of the weights are far too large for the first-level cache, and wide
    /// enough for it to matter.
    pub(super) fn is_large(&self) -> bool {
        self.n_out() >= TILE * CELL && self.n_in() * TILE * size_of::<Cell>() > FAR
    }

    /// The number of units read.
    pub fn n_in(&self) -> usize {
        self.weights.n_rows()
    }

    /// The number of units computed.
    pub fn n_out(&self) -> usize {
        self.weights.n_columns()
    }
}
