//! Implement the vector operations with AVX2 and FMA.
//!
//! The CPU must have both. The only callers are builds made by [`kernels!`](crate::isa::kernels),
//! which an [`Isa`](crate::Isa) of that kind guards.

use super::{F32Lanes, F64Lanes, Lanes, Simd, U64Lanes};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Defines inlined functions that call the intrinsics.
macro_rules! op {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block)*) => {
        $(#[inline(always)]
        fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: reached only through an `Isa` that found AVX2 and FMA; loads and stores are
            // of references to arrays of exactly one register.
            unsafe { $body }
        })*
    };
}

impl Lanes for __m256 {
    type Scalar = f32;
    type Array = [f32; 8];

    op! {
        fn splat(x: f32) -> Self { _mm256_set1_ps(x) }
        fn load(from: &[f32; 8]) -> Self { _mm256_loadu_ps(from.as_ptr()) }
        fn store(self: Self, to: &mut [f32; 8]) -> () { _mm256_storeu_ps(to.as_mut_ptr(), self) }
        fn add(self: Self, other: Self) -> Self { _mm256_add_ps(self, other) }
        fn sub(self: Self, other: Self) -> Self { _mm256_sub_ps(self, other) }
        fn mul(self: Self, other: Self) -> Self { _mm256_mul_ps(self, other) }
        fn div(self: Self, other: Self) -> Self { _mm256_div_ps(self, other) }
        fn mul_add(self: Self, factor: Self, term: Self) -> Self { _mm256_fmadd_ps(self, factor, term) }
        fn neg_mul_add(self: Self, factor: Self, term: Self) -> Self { _mm256_fnmadd_ps(self, factor, term) }
        fn min(self: Self, other: Self) -> Self { _mm256_min_ps(self, other) }
        fn max(self: Self, other: Self) -> Self { _mm256_max_ps(self, other) }
        fn abs(self: Self) -> Self { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self) }
        fn round(self: Self) -> Self {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self)
        }
        fn pow2(self: Self) -> Self {
            let n = _mm256_add_epi32(_mm256_cvtps_epi32(self), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
        }
        fn select_negative(self: Self, negative: Self, otherwise: Self) -> Self {
            _mm256_blendv_ps(otherwise, negative, self)
        }
    }
}

impl Lanes for __m256d {
    type Scalar = f64;
    type Array = [f64; 4];

    op! {
        fn splat(x: f64) -> Self { _mm256_set1_pd(x) }
        fn load(from: &[f64; 4]) -> Self { _mm256_loadu_pd(from.as_ptr()) }
        fn store(self: Self, to: &mut [f64; 4]) -> () { _mm256_storeu_pd(to.as_mut_ptr(), self) }
        fn add(self: Self, other: Self) -> Self { _mm256_add_pd(self, other) }
        fn sub(self: Self, other: Self) -> Self { _mm256_sub_pd(self, other) }
        fn mul(self: Self, other: Self) -> Self { _mm256_mul_pd(self, other) }
        fn div(self: Self, other: Self) -> Self { _mm256_div_pd(self, other) }
        fn mul_add(self: Self, factor: Self, term: Self) -> Self { _mm256_fmadd_pd(self, factor, term) }
        fn neg_mul_add(self: Self, factor: Self, term: Self) -> Self { _mm256_fnmadd_pd(self, factor, term) }
        fn min(self: Self, other: Self) -> Self { _mm256_min_pd(self, other) }
        fn max(self: Self, other: Self) -> Self { _mm256_max_pd(self, other) }
        fn abs(self: Self) -> Self { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self) }
        fn round(self: Self) -> Self {
            _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self)
        }
        fn pow2(self: Self) -> Self {
            // Adding 1.5·2⁵² leaves the integer in the low mantissa bits; the shift drops the rest.
            let n = _mm256_castpd_si256(_mm256_add_pd(self, _mm256_set1_pd(6_755_399_441_055_744.0)));
            let n = _mm256_add_epi64(n, _mm256_set1_epi64x(1023));
            _mm256_castsi256_pd(_mm256_slli_epi64::<52>(n))
        }
        fn select_negative(self: Self, negative: Self, otherwise: Self) -> Self {
            _mm256_blendv_pd(otherwise, negative, self)
        }
    }
}

impl F32Lanes for __m256 {
    op! {
        fn lt(self: Self, other: Self) -> Self { _mm256_cmp_ps::<_CMP_LT_OQ>(self, other) }
        fn and(self: Self, other: Self) -> Self { _mm256_and_ps(self, other) }
        fn or(self: Self, other: Self) -> Self { _mm256_or_ps(self, other) }
        fn xor(self: Self, other: Self) -> Self { _mm256_xor_ps(self, other) }
        fn shift_exponent(self: Self, integer: Self) -> Self {
            let n = _mm256_slli_epi32::<23>(_mm256_castps_si256(integer));
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self), n))
        }
        fn sign_mask(self: Self) -> u64 { u64::from(_mm256_movemask_ps(self) as u32) }
        fn sign_masks(x: [Self; 4]) -> u64 {
            // Saturation keeps signs; packing works on each half of a register, which the
            // permutation undoes.
            let low = _mm256_packs_epi32(_mm256_castps_si256(x[0]), _mm256_castps_si256(x[1]));
            let high = _mm256_packs_epi32(_mm256_castps_si256(x[2]), _mm256_castps_si256(x[3]));
            let bytes = _mm256_packs_epi16(low, high);
            let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
            u64::from(_mm256_movemask_epi8(bytes) as u32)
        }
    }
}

impl F64Lanes for __m256d {
    op! {
        fn split_exponent(self: Self) -> (Self, Self) {
            let one = _mm256_castpd_si256(_mm256_set1_pd(1.0));
            let bits = _mm256_castpd_si256(self);
            let m = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi64x((1 << 52) - 1)), one);
            // The exponent field as the low mantissa bits of 2⁵² + e.
            const SHIFT: f64 = 4_503_599_627_370_496.0;
            let e = _mm256_srli_epi64::<52>(bits);
            let e = _mm256_or_si256(e, _mm256_castpd_si256(_mm256_set1_pd(SHIFT)));
            let e = _mm256_sub_pd(_mm256_castsi256_pd(e), _mm256_set1_pd(SHIFT + 1023.0));
            (_mm256_castsi256_pd(m), e)
        }
        fn widen(from: &[f32; 4]) -> Self { _mm256_cvtps_pd(_mm_loadu_ps(from.as_ptr())) }
    }
}

impl U64Lanes for __m256i {
    op! {
        fn splat(x: u64) -> Self { _mm256_set1_epi64x(x as i64) }
        fn load(from: &[u64; 4]) -> Self { _mm256_loadu_si256(from.as_ptr().cast()) }
        fn add(self: Self, other: Self) -> Self { _mm256_add_epi64(self, other) }
        fn xor(self: Self, other: Self) -> Self { _mm256_xor_si256(self, other) }
        fn mul_low_halves(self: Self, other: Self) -> Self { _mm256_mul_epu32(self, other) }
        fn high_half(self: Self) -> Self { _mm256_srli_epi64::<32>(self) }
    }
}

impl Simd for Avx2 {
    type F32 = __m256;
    type F64 = __m256d;
    type U64 = __m256i;
    const N_REGISTERS: usize = 16;

    op! {
        fn take_exponent(x: __m256, total: &mut __m256) -> __m256 {
            let bits = _mm256_castps_si256(x);
            let sum = _mm256_add_epi32(_mm256_castps_si256(*total), _mm256_srli_epi32::<23>(bits));
            *total = _mm256_castsi256_ps(sum);
            let mantissa = _mm256_and_si256(bits, _mm256_set1_epi32(0x007f_ffff));
            _mm256_castsi256_ps(_mm256_or_si256(mantissa, _mm256_set1_epi32(0x3f80_0000)))
        }
        fn transpose(x: [__m256; 8]) -> [__m256; 8] {
            // Pairs, then fours, within each half; then the halves.
            let (a, b) = (_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
            let (c, d) = (_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
            let (e, f) = (_mm256_unpacklo_ps(x[4], x[5]), _mm256_unpackhi_ps(x[4], x[5]));
            let (g, h) = (_mm256_unpacklo_ps(x[6], x[7]), _mm256_unpackhi_ps(x[6], x[7]));
            const LOW: i32 = 0b01_00_01_00;
            const HIGH: i32 = 0b11_10_11_10;
            let first = [
                _mm256_shuffle_ps::<LOW>(a, c),
                _mm256_shuffle_ps::<HIGH>(a, c),
                _mm256_shuffle_ps::<LOW>(b, d),
                _mm256_shuffle_ps::<HIGH>(b, d),
            ];
            let second = [
                _mm256_shuffle_ps::<LOW>(e, g),
                _mm256_shuffle_ps::<HIGH>(e, g),
                _mm256_shuffle_ps::<LOW>(f, h),
                _mm256_shuffle_ps::<HIGH>(f, h),
            ];
            [
                _mm256_permute2f128_ps::<0x20>(first[0], second[0]),
                _mm256_permute2f128_ps::<0x20>(first[1], second[1]),
                _mm256_permute2f128_ps::<0x20>(first[2], second[2]),
                _mm256_permute2f128_ps::<0x20>(first[3], second[3]),
                _mm256_permute2f128_ps::<0x31>(first[0], second[0]),
                _mm256_permute2f128_ps::<0x31>(first[1], second[1]),
                _mm256_permute2f128_ps::<0x31>(first[2], second[2]),
                _mm256_permute2f128_ps::<0x31>(first[3], second[3]),
            ]
        }
        fn store_low_halves(even: __m256i, odd: __m256i, to: &mut [u32; 8]) -> () {
            let k = _mm256_blend_epi32::<0b1010_1010>(even, _mm256_slli_epi64::<32>(odd));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), k);
        }
        fn halves(from: &[u32; 8]) -> [__m256; 2] {
            let k = _mm256_loadu_si256(from.as_ptr().cast());
            let low = _mm256_and_si256(k, _mm256_set1_epi32(0xffff));
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(k))]
        }
    }
}

/// The same operations, compiled for AVX-512's 32 registers and three-way logic. Bits are listed by
/// compression.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Simd for Avx512 {
    type F32 = __m256;
    type F64 = __m256d;
    type U64 = __m256i;
    const N_REGISTERS: usize = 32;

    #[inline(always)]
    fn take_exponent(x: __m256, total: &mut __m256) -> __m256 {
        Avx2::take_exponent(x, total)
    }

    #[inline(always)]
    fn transpose(x: [__m256; 8]) -> [__m256; 8] {
        Avx2::transpose(x)
    }

    #[inline(always)]
    fn store_low_halves(even: __m256i, odd: __m256i, to: &mut [u32; 8]) {
        Avx2::store_low_halves(even, odd, to);
    }

    #[inline(always)]
    fn halves(from: &[u32; 8]) -> [__m256; 2] {
        Avx2::halves(from)
    }

    #[inline(always)]
    fn list_ones(word: u64, first: u32, index: &mut [u32]) -> usize {
        static POSITIONS: [u8; 64] = {
            let mut positions = [0; 64];
            let mut i = 0;
            while i < 64 {
                positions[i] = i as u8;
                i += 1;
            }
            positions
        };
        let n = word.count_ones() as usize;
        // SAFETY: reached only through an `Isa` that found AVX-512 F and VBMI2; every store is of
        // 16 numbers to an array of 16.
        unsafe {
            let ones = _mm512_maskz_compress_epi8(word, _mm512_loadu_si512(POSITIONS.as_ptr().cast()));
            let first = _mm512_set1_epi32(first as i32);
            let mut put = |from: usize, part: __m128i| {
                let to: &mut [u32; 16] = index[from..].first_chunk_mut().expect("room for sixteen");
                let numbers = _mm512_add_epi32(_mm512_cvtepu8_epi32(part), first);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), numbers);
            };
            put(0, _mm512_castsi512_si128(ones));
            if n > 16 {
                put(16, _mm512_extracti32x4_epi32::<1>(ones));
                if n > 32 {
                    put(32, _mm512_extracti32x4_epi32::<2>(ones));
                    put(48, _mm512_extracti32x4_epi32::<3>(ones));
                }
            }
        }
        n
    }
}
