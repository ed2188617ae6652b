//! Compute inputs and means of one layer given the other.

use super::sums::{Sink, run};
use super::{Affine, Scratch, States};
use crate::Isa;
use crate::arch::{Lanes, Simd};
use crate::isa::kernels;
use crate::math::sigmoid;
use crate::tiles::Tiles;

/// Stores the inputs or the means.
pub(super) struct Store<'a, const MEANS: bool>(pub(super) &'a mut Tiles);

impl<S: Simd, const MEANS: bool> Sink<S> for Store<'_, MEANS> {
    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize) {
        for (x, to) in x.into_iter().zip(self.0.cells_mut(row, tile, cell, V)) {
            let y = if MEANS { sigmoid(x) } else { x };
            y.store(&mut to.0);
        }
    }
}

#[inline(always)]
fn store<S: Simd, const MEANS: bool, const LARGE: bool>(
    affine: &Affine,
    states: States<'_>,
    scratch: &mut Scratch,
    out: &mut Tiles,
) {
    affine.check(states, out);
    let lists = scratch.lists.list::<S>(states, affine.n_in(), affine.n_out());
    run::<S, _, LARGE>(affine, lists, &mut scratch.partial, &mut Store::<MEANS>(out));
}

/// Computes the inputs `b + Wᵀx` of each state, summed in single precision. Padding columns of `out`
/// become −∞.
///
/// # Panics
/// If `out` is not (states × units computed).
pub fn inputs(isa: Isa, affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    let inputs = if affine.is_large() { inputs_large } else { inputs_small };
    inputs(isa, affine, states, scratch, out);
}

/// Computes the means `σ(b + Wᵀx)` of each state. Padding columns of `out` become 0.
///
/// # Panics
/// If `out` is not (states × units computed).
pub fn means(isa: Isa, affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    let means = if affine.is_large() { means_large } else { means_small };
    means(isa, affine, states, scratch, out);
}

kernels! {
    fn inputs_small(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = store<false, false>;

    fn inputs_large(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = store<false, true>;

    fn means_small(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = store<true, false>;

    fn means_large(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = store<true, true>;
}
