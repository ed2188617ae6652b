//! Sum the states of one task, or list the logarithms of their terms.

use super::plan::{HIGHS, LOWS, MAX_LOW_BITS};
use super::{Enumeration, Scaled};
use crate::arch::{F64Lanes, Lanes, Simd};
use crate::isa::kernels;
use crate::math;
use std::f64::consts::LN_2;

/// Reusable memory of one task.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// `b_i + Σ_top W`, then `c_i A_i`.
    a: Vec<f64>,
    c: Vec<f64>,
    /// `c_i A_i M_i` of four middle values.
    high: Vec<[f64; HIGHS]>,
}

#[inline(always)]
fn task_generic<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled {
    let common = begin::<S>(plan, task, scratch);
    if !plan.is_tabulated() {
        return common;
    }
    let mut total = Scaled::ZERO;
    each_middle::<S>(plan, scratch, |middle, mantissa, exponent| {
        let sum = scaled_sum::<S>(mantissa, exponent, &plan.low_weight);
        total = total + sum * plan.middle_weight[middle];
    });
    total * common
}

#[inline(always)]
fn log_terms_generic<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch, out: &mut [f64]) {
    assert_eq!(out.len() as u64, plan.states_per_task(), "one term for each state of a task");
    let common = begin::<S>(plan, task, scratch);
    if !plan.is_tabulated() {
        out[0] = common.ln();
        return;
    }
    let n_low = 1 << plan.low_bits;
    each_middle::<S>(plan, scratch, |middle, mantissa, exponent| {
        let common = common * plan.middle_weight[middle];
        let out = &mut out[middle * n_low..(middle + 1) * n_low];
        for ((out, low), (&mantissa, &exponent)) in
            out.iter_mut().zip(&plan.low_weight).zip(mantissa.iter().zip(&*exponent))
        {
            *out = (Scaled { mantissa, exponent } * *low * common).ln();
        }
    });
}

/// Computes the values that all states of a task have in common, and returns their common factor.
/// In log space a task has one state, and this factor is its whole term.
#[inline(always)]
fn begin<S: Simd>(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled {
    assert!(task < plan.n_tasks(), "task {task} of {}", plan.n_tasks());
    let top = plan.low_bits + plan.middle_bits..plan.n_bits;
    let n = plan.n_units;
    let Scratch { a, c, .. } = scratch;
    a.resize(n, 0.0);
    plan.sums(top.clone(), task, a);
    for (a, b) in a.iter_mut().zip(&plan.bias) {
        *a += b;
    }
    let top_weight = Scaled::exp(plan.linear(top, task));
    if !plan.is_tabulated() {
        return top_weight * Scaled::exp(math::softplus_sum_generic::<S>(a));
    }

    c.resize(n, 0.0);
    let mut shift = 0.0;
    for (i, (a, c)) in a.iter_mut().zip(&mut *c).enumerate() {
        // Halfway between the smallest and the largest ln(1 + e^x), to within ln 2, as a whole
        // number of octaves.
        let k = (0.5 / LN_2 * ((*a + plan.least[i]).max(0.0) + (*a + plan.greatest[i]).max(0.0)))
            .round_ties_even();
        shift += k;
        *a = k.mul_add(-LN_2, *a);
        *c = -k * LN_2;
    }
    math::exp_f64_generic::<S>(a);
    math::exp_f64_generic::<S>(c);
    top_weight * Scaled { mantissa: 1.0, exponent: shift }
}

/// Passes the products of all low states for each middle value to `visit`, as mantissas and
/// exponents that it may change.
#[inline(always)]
fn each_middle<S: Simd>(
    plan: &Enumeration,
    scratch: &mut Scratch,
    mut visit: impl FnMut(usize, &mut [f64], &mut [f64]),
) {
    let n = plan.n_units;
    let Scratch { a, c, high } = scratch;
    high.resize(n, [0.0; HIGHS]);
    let n_low = 1 << plan.low_bits;
    let mut mantissa = [[0.0; 1 << MAX_LOW_BITS]; HIGHS];
    let mut exponent = [[0.0; 1 << MAX_LOW_BITS]; HIGHS];
    for (block, middle) in plan.middle.chunks_exact(n).enumerate() {
        for ((high, &a), middle) in high.iter_mut().zip(&*a).zip(middle) {
            S::F64::splat(a).mul(S::F64::load(middle)).store(high);
        }
        for (chunk, low) in plan.low.chunks_exact(n).enumerate() {
            products::<S>(&plan.segments, high, c, low, chunk * LOWS, &mut mantissa, &mut exponent);
        }
        for h in 0..HIGHS {
            visit(block * HIGHS + h, &mut mantissa[h][..n_low], &mut exponent[h][..n_low]);
        }
    }
}

/// `Π_i (c_i + high_i low_i)` of 4 × 8 states, as mantissas and exponents.
#[inline(always)]
fn products<S: Simd>(
    segments: &[usize],
    high: &[[f64; HIGHS]],
    c: &[f64],
    low: &[[f64; LOWS]],
    at: usize,
    mantissa: &mut [[f64; 1 << MAX_LOW_BITS]; HIGHS],
    exponent: &mut [[f64; 1 << MAX_LOW_BITS]; HIGHS],
) {
    let one = S::F64::splat(1.0);
    let mut product = [[one; 2]; HIGHS];
    let mut octaves = [[S::F64::splat(0.0); 2]; HIGHS];
    let mut from = 0;
    for &to in segments {
        for ((high, &c), low) in high[from..to].iter().zip(&c[from..to]).zip(&low[from..to]) {
            let (low, _) = low.as_chunks::<4>();
            let low = [S::F64::load(&low[0]), S::F64::load(&low[1])];
            let c = S::F64::splat(c);
            for h in 0..HIGHS {
                let a = S::F64::splat(high[h]);
                product[h][0] = product[h][0].mul(a.mul_add(low[0], c));
                product[h][1] = product[h][1].mul(a.mul_add(low[1], c));
            }
        }
        for h in 0..HIGHS {
            for l in 0..2 {
                let (m, e) = product[h][l].split_exponent();
                product[h][l] = m;
                octaves[h][l] = octaves[h][l].add(e);
            }
        }
        from = to;
    }
    for h in 0..HIGHS {
        for l in 0..2 {
            let at = at + 4 * l;
            product[h][l].store(mantissa[h][at..].first_chunk_mut().expect("four lanes"));
            octaves[h][l].store(exponent[h][at..].first_chunk_mut().expect("four lanes"));
        }
    }
}

/// `Σ_s weight_s · mantissa_s · 2^exponent_s`, scaled by the largest exponent.
#[inline(always)]
fn scaled_sum<S: Simd>(mantissa: &mut [f64], exponent: &mut [f64], weight: &[Scaled]) -> Scaled {
    let mut largest = f64::NEG_INFINITY;
    for ((m, e), w) in mantissa.iter_mut().zip(&mut *exponent).zip(weight) {
        *m *= w.mantissa;
        *e += w.exponent;
        largest = largest.max(*e);
    }
    let (mantissa, _) = mantissa.as_chunks::<4>();
    let (exponent, _) = exponent.as_chunks::<4>();
    let (top, floor) = (S::F64::splat(largest), S::F64::splat(-1000.0));
    let mut sum = S::F64::splat(0.0);
    for (m, e) in mantissa.iter().zip(exponent) {
        // Terms below 2⁻¹⁰⁰⁰ of the largest do not matter.
        let scale = S::F64::load(e).sub(top).max(floor).pow2();
        sum = S::F64::load(m).mul_add(scale, sum);
    }
    let mut lanes = [0.0; 4];
    sum.store(&mut lanes);
    Scaled { mantissa: (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), exponent: largest }
}

kernels! {
    /// Returns the sum over the states of task `task`.
    ///
    /// # Panics
    /// If there is no such task.
    pub fn run_task(plan: &Enumeration, task: u64, scratch: &mut Scratch) -> Scaled = task_generic;

    /// Writes the logarithm of each term that [`run_task`] sums, in the order of the states.
    ///
    /// # Panics
    /// If there is no such task, or if `out` does not have the length of its states.
    pub fn log_terms(plan: &Enumeration, task: u64, scratch: &mut Scratch, out: &mut [f64]) = log_terms_generic;
}
