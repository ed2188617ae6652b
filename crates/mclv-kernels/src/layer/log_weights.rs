//! Compute logarithms of the marginal weights of states, in double precision.

use super::lists::{List, Lists};
use super::{Affine, Scratch, States};
use crate::arch::{F64Lanes, Lanes, Simd};
use crate::isa::kernels;
use crate::math::softplus;
use crate::tiles::{Cell, TILE};

#[inline(always)]
fn log_weights_generic<S: Simd>(
    affine: &Affine,
    bias_in: &[f32],
    states: States<'_>,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    assert_eq!(bias_in.len(), affine.n_in(), "one bias for each unit read");
    assert_eq!(out.len(), states.n_rows(affine.n_in()), "room for one number for each state");
    let lists = scratch.lists.list::<S>(states, affine.n_in(), affine.n_out());
    linear_terms(bias_in, lists, out);
    for (t, (width, tile)) in affine.weights.tiles().enumerate() {
        let bias = &affine.bias[t * TILE..][..width];
        let mut offset = 0;
        while offset < width {
            offset += match width - offset {
                4.. => add_cells::<S, 4>(bias, (width, tile), offset, lists, out),
                _ => add_cells::<S, 1>(bias, (width, tile), offset, lists, out),
            };
        }
    }
}

/// Adds `V` cells of `Σ softplus`. Sums of several cells are made side by side, because each of them
/// is one long chain of dependent additions.
#[inline(always)]
fn add_cells<S: Simd, const V: usize>(
    bias: &[Cell],
    (width, tile): (usize, &[Cell]),
    offset: usize,
    lists: Lists<'_>,
    out: &mut [f64],
) -> usize {
    let bias: &[Cell; V] = bias[offset..].first_chunk().expect("a bias for each cell");
    for (out, list) in out.iter_mut().zip(lists.rows()) {
        let mut acc = [[S::F64::splat(0.0); 2]; V];
        for (acc, cell) in acc.iter_mut().zip(bias) {
            *acc = widen::<S>(cell);
        }
        match list {
            List::Ones(index) => {
                for &i in index {
                    add_row::<S, V>(&mut acc, &tile[i as usize * width + offset..], 1.0);
                }
            }
            List::Sparse(index, value) => {
                for (&i, &x) in index.iter().zip(value) {
                    add_row::<S, V>(&mut acc, &tile[i as usize * width + offset..], x);
                }
            }
            List::Dense(value) => {
                for (i, &x) in value.iter().enumerate() {
                    add_row::<S, V>(&mut acc, &tile[i * width + offset..], x);
                }
            }
        }
        for acc in acc {
            let mut lanes = [0.0; 4];
            softplus(acc[0]).add(softplus(acc[1])).store(&mut lanes);
            *out += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        }
    }
    V
}

/// Adds `x` times the first cells of `row`.
#[inline(always)]
fn add_row<S: Simd, const V: usize>(acc: &mut [[S::F64; 2]; V], row: &[Cell], x: f32) {
    let row: &[Cell; V] = row.first_chunk().expect("a row of the tile");
    let x = S::F64::splat(f64::from(x));
    for (acc, cell) in acc.iter_mut().zip(row) {
        let w = widen::<S>(cell);
        *acc = [x.mul_add(w[0], acc[0]), x.mul_add(w[1], acc[1])];
    }
}

#[inline(always)]
fn widen<S: Simd>(cell: &Cell) -> [S::F64; 2] {
    let (halves, _) = cell.0.as_chunks::<4>();
    [S::F64::widen(&halves[0]), S::F64::widen(&halves[1])]
}

/// Computes `b_inᵀx` of each listed state.
#[inline(always)]
pub(super) fn linear_terms(bias_in: &[f32], lists: Lists<'_>, out: &mut [f64]) {
    let b = |i: u32| f64::from(bias_in[i as usize]);
    for (out, list) in out.iter_mut().zip(lists.rows()) {
        *out = match list {
            List::Ones(index) => index.iter().map(|&i| b(i)).sum(),
            List::Sparse(index, value) => index.iter().zip(value).map(|(&i, &x)| b(i) * f64::from(x)).sum(),
            List::Dense(value) => bias_in.iter().zip(value).map(|(&b, &x)| f64::from(b) * f64::from(x)).sum(),
        };
    }
}

kernels! {
    /// Computes the logarithm of the marginal weight of each state,
    /// `b_inᵀx + Σ_j softplus(b_j + (Wᵀx)_j)`, in double precision throughout.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn log_weights(
        affine: &Affine,
        bias_in: &[f32],
        states: States<'_>,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) = log_weights_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::layer::quick_log_weights;
    use crate::testing::{Case, cases, on_every_isa, softplus};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn log_weights_equal_the_naive_sum(
            n_in in 1usize..=100, n_out in 1usize..=100, many in any::<bool>(), wide in any::<bool>(),
            seed in any::<u64>(), real in any::<bool>()
        ) {
            let n_rows = if many { 40 } else { 3 };
            let mut case = Case::new(n_in, n_out, n_rows, seed, real);
            if wide {
                case.w.iter_mut().step_by(7).for_each(|w| *w *= 30.0);
            }
            let bias_in: Vec<f32> = case.w.iter().cycle().skip(3).take(n_in).copied().collect();
            let packed = case.packed();
            let states = if real { States::Reals(&case.x) } else { States::Bits(packed.words()) };
            // The sum, and the sum of the absolute values of its terms: rounding errors are in
            // proportion to the terms, not to the sum.
            let naive: Vec<(f64, f64)> = case.x.chunks(n_in).map(|row| {
                let mut magnitude = 0.0;
                let mut dot = |w: &mut dyn Iterator<Item = f32>| -> f64 {
                    let terms = row.iter().zip(w).map(|(&x, w)| f64::from(x) * f64::from(w));
                    terms.inspect(|x| magnitude += x.abs()).sum()
                };
                let linear = dot(&mut bias_in.iter().copied());
                let soft: f64 = (0..n_out).map(|j| {
                    let x = f64::from(case.bias[j]) + dot(&mut case.w.iter().skip(j).step_by(n_out).copied());
                    softplus(x)
                }).sum();
                magnitude += case.bias.iter().map(|&b| f64::from(b).abs() + 1.0).sum::<f64>();
                (linear + soft, magnitude)
            }).collect();
            let out = on_every_isa(|isa| {
                let mut out = vec![f64::NAN; n_rows];
                log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut out);
                out
            });
            for (x, (y, magnitude)) in out.iter().zip(&naive) {
                prop_assert!((x - y).abs() <= 1e-14 * magnitude, "{} {} of {}", x, y, magnitude);
            }
            for isa in Isa::available() {
                let mut quick = vec![f64::NAN; n_rows];
                quick_log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut quick);
                for (x, (y, magnitude)) in quick.iter().zip(&naive) {
                    prop_assert!((x - y).abs() <= 1e-6 * magnitude, "{} {} of {}", x, y, magnitude);
                }
            }
        }
    }
}
