//! Compute `exp`, `sigmoid` and `softplus` over slices.
//!
//! Errors were measured in the tests over the whole range: at most **2 ulp** in `f32` (against
//! `f64`) and **3 ulp** in `f64` (against the standard library, itself good to about one). Overflow
//! gives ∞, underflow is gradual, NaN gives NaN. No function branches on its data.

use crate::arch::{F32Lanes, Lanes, Scalar, Simd};
use crate::isa::kernels;

/// `c₀ + c₁x + c₂x² + …` by Horner's rule.
#[inline(always)]
fn polynomial<L: Lanes>(coefficients: &'static [L::Scalar], x: L) -> L {
    let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
    rest.iter().rev().fold(L::splat(*last), |p, &c| p.mul_add(x, L::splat(c)))
}

/// `eˣ = p·2ⁿ` with `p` in [0.7, 1.42]. NaN becomes a huge negative exponent's.
#[inline(always)]
fn exp_parts<L: Lanes>(x: L) -> (L, L) {
    let n = x.mul(L::splat(L::Scalar::LOG2_E)).round();
    let r = n.neg_mul_add(L::splat(L::Scalar::LN_2_HI), x);
    let r = n.neg_mul_add(L::splat(L::Scalar::LN_2_LO), r);
    let tail = polynomial(L::Scalar::EXP_TAIL, r);
    let p = tail.mul_add(r.mul(r), r).add(L::splat(L::Scalar::ONE));
    (p, n)
}

/// `eˣ` for `x` whose result is a normal number.
#[inline(always)]
pub(crate) fn exp_normal<L: Lanes>(x: L) -> L {
    let (p, n) = exp_parts(x);
    p.mul(n.pow2())
}

/// `eˣ` for `0 ≤ x ≤ 80`, with a relative error of at most 8·10⁻⁵, in half the time.
#[inline(always)]
pub(crate) fn rough_exp<L: F32Lanes>(x: L) -> L {
    let (log2_e, shift) = (L::splat(std::f32::consts::LOG2_E), L::splat(12_582_912.0));
    // Adding 1.5·2²³ leaves the integer nearest to `x log₂ e` in the lowest bits.
    let integer = x.mul_add(log2_e, shift);
    let f = x.mul_add(log2_e, shift.sub(integer));
    // 2^f on |f| ≤ ½ by a minimax cubic.
    let p = L::splat(0.055_171_683).mul_add(f, L::splat(0.242_611_15));
    let p = p.mul_add(f, L::splat(0.693_260_97)).mul_add(f, L::splat(0.999_928_06));
    p.shift_exponent(integer)
}

/// `eˣ`, overflowing to ∞ and underflowing gradually to 0.
#[inline(always)]
pub(crate) fn exp<L: Lanes>(x: L) -> L {
    let limit = L::splat(L::Scalar::EXP_LIMIT);
    // The operand order lets NaN through both.
    let x = limit.min(L::splat(L::Scalar::ZERO).sub(limit).max(x));
    let (p, n) = exp_parts(x);
    // 2ⁿ in two factors, each within the normal range.
    let half = n.mul(L::splat(L::Scalar::HALF)).round();
    p.mul(half.pow2()).mul(n.sub(half).pow2())
}

/// `1/(1 + e⁻ˣ)`, accurate in both tails.
#[inline(always)]
pub(crate) fn sigmoid<L: Lanes>(x: L) -> L {
    let one = L::splat(L::Scalar::ONE);
    let z = exp(L::splat(L::Scalar::ZERO).sub(x.abs()));
    x.select_negative(z, one).div(one.add(z))
}

/// `ln(1 + eˣ)`.
#[inline(always)]
pub(crate) fn softplus<L: Lanes>(x: L) -> L {
    let zero = L::splat(L::Scalar::ZERO);
    let z = exp(zero.sub(x.abs()));
    // ln(1 + z) = 2 atanh(s), s = z/(2 + z) ≤ 1/3.
    let s = z.div(L::splat(L::Scalar::TWO).add(z));
    let s2 = s.mul(s);
    let log1p = polynomial(L::Scalar::LOG1P_TAIL, s2).mul(s2).mul_add(s, s.add(s));
    // `zero.max(x)` keeps NaN.
    zero.max(x).add(log1p)
}

/// Applies `f` to each element, eight or four at a time. The last few are padded with zeros.
macro_rules! map_in_place {
    ($($(#[$meta:meta])* $name:ident, $generic:ident, $float:ty, $lanes:ident, $n:literal, $f:ident;)*) => {
        $(#[inline(always)]
        pub(crate) fn $generic<S: Simd>(x: &mut [$float]) {
            let (chunks, tail) = x.as_chunks_mut::<$n>();
            for chunk in chunks {
                $f(S::$lanes::load(chunk)).store(chunk);
            }
            if !tail.is_empty() {
                let mut last = [0.0; $n];
                last[..tail.len()].copy_from_slice(tail);
                $f(S::$lanes::load(&last)).store(&mut last);
                tail.copy_from_slice(&last[..tail.len()]);
            }
        }
        kernels! {
            $(#[$meta])*
            pub fn $name(x: &mut [$float]) = $generic;
        })*
    };
}

map_in_place! {
    /// Replaces each `x` by `eˣ`.
    exp_f32, exp_f32_generic, f32, F32, 8, exp;
    /// Replaces each `x` by `eˣ`.
    exp_f64, exp_f64_generic, f64, F64, 4, exp;
    /// Replaces each `x` by `1/(1 + e⁻ˣ)`.
    ///
    /// ```
    /// use mclv_kernels::{Isa, math};
    /// let mut x = [0.0, -100.0, 100.0];
    /// math::sigmoid_f32(Isa::best(), &mut x);
    /// assert_eq!(x, [0.5, 3.783506e-44, 1.0]);
    /// ```
    sigmoid_f32, sigmoid_f32_generic, f32, F32, 8, sigmoid;
    /// Replaces each `x` by `1/(1 + e⁻ˣ)`.
    sigmoid_f64, sigmoid_f64_generic, f64, F64, 4, sigmoid;
    /// Replaces each `x` by `ln(1 + eˣ)`.
    softplus_f32, softplus_f32_generic, f32, F32, 8, softplus;
    /// Replaces each `x` by `ln(1 + eˣ)`.
    softplus_f64, softplus_f64_generic, f64, F64, 4, softplus;
}

#[inline(always)]
pub(crate) fn softplus_sum_generic<S: Simd>(x: &[f64]) -> f64 {
    let (chunks, tail) = x.as_chunks::<4>();
    let mut sum = S::F64::splat(0.0);
    for chunk in chunks {
        sum = sum.add(softplus(S::F64::load(chunk)));
    }
    if !tail.is_empty() {
        let mut last = [f64::NEG_INFINITY; 4];
        last[..tail.len()].copy_from_slice(tail);
        sum = sum.add(softplus(S::F64::load(&last)));
    }
    let mut lanes = [0.0; 4];
    sum.store(&mut lanes);
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

kernels! {
    /// Returns `Σ ln(1 + eˣ)`, the main part of a free energy.
    ///
    /// ```
    /// use mclv_kernels::{Isa, math};
    /// let sum = math::softplus_sum(Isa::best(), &[0.0, -1e6, 1e6]);
    /// assert!((sum - (2f64.ln() + 1e6)).abs() < 1e-9);
    /// ```
    pub fn softplus_sum(x: &[f64]) -> f64 = softplus_sum_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::testing::{self, cases, largest, on_every_isa};
    use proptest::prelude::*;

    /// Distance in units in the last place; equal infinities and NaN with NaN count as 0.
    fn ulps_f64(a: f64, b: f64) -> f64 {
        if a == b || a.is_nan() && b.is_nan() {
            return 0.0;
        }
        let ulp = (b.abs().next_up() - b.abs()).max(f64::from_bits(1));
        ((a - b) / ulp).abs()
    }

    fn ulps_f32(a: f32, b: f64) -> f64 {
        if a.is_nan() && b.is_nan() || f64::from(a) == b || (a == f32::INFINITY && b > f64::from(f32::MAX)) {
            return 0.0;
        }
        let near = (b.abs() as f32).min(f32::MAX);
        let ulp = f64::from(near.next_up().min(f32::MAX) - near).max(f64::from(f32::from_bits(1)));
        ((f64::from(a) - b) / ulp).abs()
    }

    const SPECIAL: [f64; 16] = [
        0.0, -0.0, 1e-300, -1e-30, 1.0, -1.0, 87.3, 88.8, -87.4, -103.5, 709.5, 710.0, -708.0, -745.5, 1e9,
        -1e9,
    ];

    #[test]
    fn the_rough_exponential_is_as_good_as_it_says() {
        let errors = (0..=800_000)
            .map(|k| k as f32 * 1e-4)
            .map(|x| (f64::from(rough_exp([x; 8])[0]) / f64::from(x).exp() - 1.0).abs());
        let worst = largest(errors);
        assert!(worst < 8e-5, "{worst:e}");
    }

    #[test]
    fn errors_are_within_two_ulp_everywhere() {
        let grid = (-80_000..80_000).map(|k| f64::from(k) * 0.00937 + 1e-5);
        let xs: Vec<f64> = grid.chain(SPECIAL).chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).collect();
        let xs32: Vec<f32> = xs.iter().map(|&x| x as f32).collect();
        type Case64 = (fn(Isa, &mut [f64]), fn(f64) -> f64);
        type Case32 = (fn(Isa, &mut [f32]), fn(f64) -> f64);
        let cases64: [Case64; 3] =
            [(exp_f64, f64::exp), (sigmoid_f64, testing::sigmoid), (softplus_f64, testing::softplus)];
        let cases32: [Case32; 3] =
            [(exp_f32, f64::exp), (sigmoid_f32, testing::sigmoid), (softplus_f32, testing::softplus)];
        for isa in Isa::available() {
            for (k, (kernel, exact)) in cases64.iter().enumerate() {
                let mut y = xs.clone();
                kernel(isa, &mut y);
                for (&x, &y) in xs.iter().zip(&y) {
                    // The libm values compared with are themselves good to about 1 ulp, composed
                    // ones to 2.
                    assert!(
                        ulps_f64(y, exact(x)) <= 3.0,
                        "{isa} f64 function {k} at {x}: {y} vs {}",
                        exact(x)
                    );
                }
            }
            for (k, (kernel, exact)) in cases32.iter().enumerate() {
                let mut y = xs32.clone();
                kernel(isa, &mut y);
                for (&x, &y) in xs32.iter().zip(&y) {
                    assert!(
                        ulps_f32(y, exact(f64::from(x))) <= 2.0,
                        "{isa} f32 function {k} at {x}: {y} vs {}",
                        exact(f64::from(x))
                    );
                }
            }
        }
    }

    proptest! {
        #![proptest_config(cases())]

        /// Any length, any value: all instruction sets give the same bits.
        #[test]
        fn all_instruction_sets_agree_to_the_bit(
            x in prop::collection::vec(prop_oneof![any::<f64>(), -100f64..100.0], 0..=130)
        ) {
            let x32: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let run = |isa| {
                let mut bits = Vec::new();
                for f in [exp_f64, sigmoid_f64, softplus_f64] {
                    let mut y = x.clone();
                    f(isa, &mut y);
                    bits.extend(y.iter().map(|y| if y.is_nan() { 0 } else { y.to_bits() }));
                }
                for f in [exp_f32, sigmoid_f32, softplus_f32] {
                    let mut y = x32.clone();
                    f(isa, &mut y);
                    bits.extend(y.iter().map(|y| if y.is_nan() { 0 } else { u64::from(y.to_bits()) }));
                }
                let sum = softplus_sum(isa, &x);
                bits.push(if sum.is_nan() { 0 } else { sum.to_bits() });
                bits
            };
            on_every_isa(run);
        }

        #[test]
        fn softplus_sum_is_the_sum_of_softplus(x in prop::collection::vec(-800f64..800.0, 0..=130)) {
            let naive: f64 = x.iter().map(|&x| testing::softplus(x)).sum();
            prop_assert!((softplus_sum(Isa::best(), &x) - naive).abs() <= 1e-13 * naive.max(1.0));
        }
    }
}
