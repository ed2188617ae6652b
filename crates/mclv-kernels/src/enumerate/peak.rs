//! Measure how many multiply-adds the machine can do.

use crate::arch::{Lanes, Simd};
use crate::isa::kernels;
use std::hint::black_box;

#[inline(always)]
fn fma_peak_generic<S: Simd>(n_rounds: u64) -> f64 {
    // Twelve different chains hide the latency of two units; the compiler must not know their
    // limits.
    let (factor, term) = (S::F64::splat(black_box(0.999_9)), S::F64::splat(black_box(1e-3)));
    let mut x = [S::F64::splat(0.0); 12];
    for (k, x) in x.iter_mut().enumerate() {
        *x = S::F64::splat(black_box(k as f64));
    }
    for _ in 0..n_rounds {
        for x in &mut x {
            *x = x.mul_add(factor, term);
        }
    }
    let mut sum = [0.0; 4];
    x.into_iter().fold(S::F64::splat(0.0), Lanes::add).store(&mut sum);
    sum.iter().sum()
}

kernels! {
    /// Does `48 · n_rounds` multiply-adds in registers (twelve chains of four lanes), as a
    /// reference for benchmarks.
    pub fn fma_peak(n_rounds: u64) -> f64 = fma_peak_generic;
}

/// The number of multiply-adds per round of [`fma_peak`].
pub const FMAS_PER_ROUND: u64 = 48;
