//! Implement the vector operations with arrays. Every CPU can run this path, and the others are
//! tested against it.
//!
//! `mul_add` is exact everywhere; on CPUs without fused multiply-add it is correct but slow.

use super::{F32Lanes, F64Lanes, Lanes, Simd, U64Lanes};
use std::array::from_fn;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

macro_rules! lanes {
    ($float:ty, $int:ty, $n:literal, mantissa $mantissa:literal, bias $bias:literal) => {
        impl Lanes for [$float; $n] {
            type Scalar = $float;
            type Array = [$float; $n];

            #[inline(always)]
            fn splat(x: $float) -> Self {
                [x; $n]
            }
            #[inline(always)]
            fn load(from: &[$float; $n]) -> Self {
                *from
            }
            #[inline(always)]
            fn store(self, to: &mut [$float; $n]) {
                *to = self;
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                from_fn(|l| self[l] + other[l])
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                from_fn(|l| self[l] - other[l])
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                from_fn(|l| self[l] * other[l])
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                from_fn(|l| self[l] / other[l])
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                from_fn(|l| self[l].mul_add(factor[l], term[l]))
            }
            #[inline(always)]
            fn neg_mul_add(self, factor: Self, term: Self) -> Self {
                from_fn(|l| (-self[l]).mul_add(factor[l], term[l]))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                from_fn(|l| if self[l] < other[l] { self[l] } else { other[l] })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                from_fn(|l| if self[l] > other[l] { self[l] } else { other[l] })
            }
            #[inline(always)]
            fn abs(self) -> Self {
                from_fn(|l| self[l].abs())
            }
            #[inline(always)]
            fn round(self) -> Self {
                from_fn(|l| self[l].round_ties_even())
            }
            #[inline(always)]
            fn pow2(self) -> Self {
                from_fn(|l| <$float>::from_bits(((self[l] as $int).wrapping_add($bias) << $mantissa) as _))
            }
            #[inline(always)]
            fn select_negative(self, negative: Self, otherwise: Self) -> Self {
                from_fn(|l| if self[l].is_sign_negative() { negative[l] } else { otherwise[l] })
            }
        }
    };
}
lanes!(f32, i32, 8, mantissa 23, bias 127);
lanes!(f64, i64, 4, mantissa 52, bias 1023);

/// Combines two registers bit by bit.
#[inline(always)]
fn bitwise(x: [f32; 8], y: [f32; 8], op: impl Fn(u32, u32) -> u32) -> [f32; 8] {
    from_fn(|l| f32::from_bits(op(x[l].to_bits(), y[l].to_bits())))
}

impl F32Lanes for [f32; 8] {
    #[inline(always)]
    fn lt(self, other: Self) -> Self {
        from_fn(|l| f32::from_bits(u32::from(self[l] < other[l]).wrapping_neg()))
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        bitwise(self, other, |x, y| x & y)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        bitwise(self, other, |x, y| x | y)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        bitwise(self, other, |x, y| x ^ y)
    }
    #[inline(always)]
    fn shift_exponent(self, integer: Self) -> Self {
        bitwise(self, integer, |x, n| x.wrapping_add(n << 23))
    }
    #[inline(always)]
    fn sign_mask(self) -> u64 {
        (0..8).fold(0, |mask, l| mask | u64::from(self[l].is_sign_negative()) << l)
    }
}

impl F64Lanes for [f64; 4] {
    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        const MANTISSA: u64 = (1 << 52) - 1;
        let m = from_fn(|l| f64::from_bits(self[l].to_bits() & MANTISSA | 1f64.to_bits()));
        let e = from_fn(|l| (self[l].to_bits() >> 52) as f64 - 1023.0);
        (m, e)
    }
    #[inline(always)]
    fn widen(from: &[f32; 4]) -> Self {
        from.map(f64::from)
    }
}

impl U64Lanes for [u64; 4] {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        [x; 4]
    }
    #[inline(always)]
    fn load(from: &[u64; 4]) -> Self {
        *from
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        from_fn(|l| self[l].wrapping_add(other[l]))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        from_fn(|l| self[l] ^ other[l])
    }
    #[inline(always)]
    fn mul_low_halves(self, other: Self) -> Self {
        from_fn(|l| u64::from(self[l] as u32) * u64::from(other[l] as u32))
    }
    #[inline(always)]
    fn high_half(self) -> Self {
        from_fn(|l| self[l] >> 32)
    }
}

impl Simd for Portable {
    type F32 = [f32; 8];
    type F64 = [f64; 4];
    type U64 = [u64; 4];
    const N_REGISTERS: usize = 16;

    #[inline(always)]
    fn take_exponent(x: [f32; 8], total: &mut [f32; 8]) -> [f32; 8] {
        *total = from_fn(|l| f32::from_bits(total[l].to_bits() + (x[l].to_bits() >> 23)));
        x.map(|x| f32::from_bits(x.to_bits() & 0x007f_ffff | 0x3f80_0000))
    }

    #[inline(always)]
    fn transpose(x: [[f32; 8]; 8]) -> [[f32; 8]; 8] {
        from_fn(|l| from_fn(|r| x[r][l]))
    }

    #[inline(always)]
    fn store_low_halves(even: [u64; 4], odd: [u64; 4], to: &mut [u32; 8]) {
        *to = from_fn(|i| [even, odd][i % 2][i / 2] as u32);
    }

    #[inline(always)]
    fn halves(from: &[u32; 8]) -> [[f32; 8]; 2] {
        [from.map(|k| (k & 0xffff) as f32), from.map(|k| (k >> 16) as f32)]
    }
}
