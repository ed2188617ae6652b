//! Define the operations of a vector unit, so that each kernel is written once and compiled for
//! each unit.
//!
//! A kernel is an `#[inline(always)]` function generic over [`Simd`]. The
//! [`kernels!`](crate::isa::kernels) macro gives it one safe entry point that picks the build for
//! the current CPU. Every operation is exactly rounded and its order is fixed, so all builds give
//! the same bits.
//!
//! These traits are private and free to change.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub(crate) mod portable;

/// Constants of a float type that the elementary functions need.
pub(crate) trait Scalar: Copy + 'static {
    const ONE: Self;
    const TWO: Self;
    const HALF: Self;
    const ZERO: Self;
    const LOG2_E: Self;
    /// `ln 2 = LN_2_HI + LN_2_LO`; products of `LN_2_HI` with any exponent are exact.
    const LN_2_HI: Self;
    const LN_2_LO: Self;
    /// Beyond ±this, `exp` has overflowed or vanished.
    const EXP_LIMIT: Self;
    /// `(eʳ − 1 − r)/r²` on `|r| ≤ ½ ln 2`, lowest power first.
    const EXP_TAIL: &'static [Self];
    /// `(2 atanh(s)/s − 2)/s²` as a polynomial in `s²` on `s ≤ 1/3`, lowest power first.
    const LOG1P_TAIL: &'static [Self];
}

// Both sets of polynomials are Chebyshev fits computed with 50 digits.
impl Scalar for f32 {
    const ONE: Self = 1.0;
    const TWO: Self = 2.0;
    const HALF: Self = 0.5;
    const ZERO: Self = 0.0;
    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const LN_2_HI: Self = 0.693_359_4;
    const LN_2_LO: Self = -2.121_944_4e-4;
    const EXP_LIMIT: Self = 110.0;
    // Relative error of eʳ: 8e-9.
    const EXP_TAIL: &'static [Self] = &[0.5, 0.166_665_77, 0.041_666_555, 0.008_363_179, 0.001_392_618_4];
    // Relative error of log1p: 4e-10.
    const LOG1P_TAIL: &'static [Self] = &[0.666_666_7, 0.399_997_06, 0.285_923_58, 0.217_065_76, 0.232_243_3];
}

#[allow(clippy::excessive_precision)]
impl Scalar for f64 {
    const ONE: Self = 1.0;
    const TWO: Self = 2.0;
    const HALF: Self = 0.5;
    const ZERO: Self = 0.0;
    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const LN_2_HI: Self = 6.931_471_803_691_238_16e-1;
    const LN_2_LO: Self = 1.908_214_929_270_587_70e-10;
    const EXP_LIMIT: Self = 760.0;
    // Relative error of eʳ: 2e-19.
    const EXP_TAIL: &'static [Self] = &[
        0.5,
        0.1666666666666667,
        0.04166666666666667,
        0.008333333333326136,
        0.0013888888888883748,
        0.00019841269874820627,
        2.4801587325547743e-05,
        2.7557255400206422e-06,
        2.75572736431103e-07,
        2.5105217004720745e-08,
        2.0914686968086876e-09,
    ];
    // Relative error of log1p: 2e-19.
    const LOG1P_TAIL: &'static [Self] = &[
        0.6666666666666666,
        0.39999999999999525,
        0.285714285716001,
        0.2222222219823677,
        0.18181819897962714,
        0.1538454396486055,
        0.13335178631449257,
        0.11734279061303197,
        0.10845178394880015,
        0.07492143795550767,
        0.1563057780092285,
    ];
}

/// A register of floats.
pub(crate) trait Lanes: Copy {
    type Scalar: Scalar;
    /// `[Scalar; number of lanes]`.
    type Array;

    fn splat(x: Self::Scalar) -> Self;
    fn load(from: &Self::Array) -> Self;
    fn store(self, to: &mut Self::Array);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self·factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `term − self·factor`, rounded once.
    fn neg_mul_add(self, factor: Self, term: Self) -> Self;
    /// `if self < other { self } else { other }`: `other` if either is NaN.
    fn min(self, other: Self) -> Self;
    /// `if self > other { self } else { other }`: `other` if either is NaN.
    fn max(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// Rounds to the nearest integer, ties to even.
    fn round(self) -> Self;
    /// `2^self` for integers in the normal exponent range.
    fn pow2(self) -> Self;
    /// `if self has its sign bit set { negative } else { otherwise }`.
    fn select_negative(self, negative: Self, otherwise: Self) -> Self;
}

/// Operations of registers of `f32` only.
pub(crate) trait F32Lanes: Lanes<Scalar = f32, Array = [f32; 8]> {
    /// All ones in the lanes in which `self` is below `other`, zeros elsewhere and for NaN.
    fn lt(self, other: Self) -> Self;
    /// Bitwise.
    fn and(self, other: Self) -> Self;
    /// Bitwise.
    fn or(self, other: Self) -> Self;
    /// Bitwise.
    fn xor(self, other: Self) -> Self;
    /// `self · 2ⁿ`, both factors and the product normal, with `n` in the lowest bits of `integer`.
    fn shift_exponent(self, integer: Self) -> Self;
    /// Bit `l` is the sign bit of lane `l`.
    fn sign_mask(self) -> u64;
    /// The sign masks of four registers, one after the other.
    #[inline(always)]
    fn sign_masks(x: [Self; 4]) -> u64 {
        x[0].sign_mask() | x[1].sign_mask() << 8 | x[2].sign_mask() << 16 | x[3].sign_mask() << 24
    }
}

/// Operations of registers of `f64` only.
pub(crate) trait F64Lanes: Lanes<Scalar = f64, Array = [f64; 4]> {
    /// `self = m·2^e` with `1 ≤ m < 2`, for positive normal numbers.
    fn split_exponent(self) -> (Self, Self);
    /// Widens four single-precision numbers.
    fn widen(from: &[f32; 4]) -> Self;
}

/// A register of four 64-bit integers.
pub(crate) trait U64Lanes: Copy {
    fn splat(x: u64) -> Self;
    fn load(from: &[u64; 4]) -> Self;
    fn add(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The product of the low halves.
    fn mul_low_halves(self, other: Self) -> Self;
    fn high_half(self) -> Self;
}

/// A vector unit: 256 bits as 8 × `f32`, 4 × `f64` or 4 × `u64`.
pub(crate) trait Simd: Copy {
    type F32: F32Lanes;
    type F64: F64Lanes;
    type U64: U64Lanes;

    /// The number of values that registers can hold.
    const N_REGISTERS: usize;

    /// Stores the low halves of the lanes, alternately of `even` and of `odd`.
    fn store_low_halves(even: Self::U64, odd: Self::U64, to: &mut [u32; 8]);

    /// Returns the low halves of eight numbers, then their high halves.
    fn halves(from: &[u32; 8]) -> [Self::F32; 2];

    /// Returns the mantissas, in [1, 2), of positive normal numbers. Their biased exponents are
    /// added to `total` as integers.
    fn take_exponent(x: Self::F32, total: &mut Self::F32) -> Self::F32;

    /// Transposes: lane `l` of register `r` becomes lane `r` of register `l`.
    fn transpose(x: [Self::F32; 8]) -> [Self::F32; 8];

    /// Returns the sign bits of up to eight registers, as the low bits of the result.
    #[inline(always)]
    fn sign_bits<const V: usize>(x: &[Self::F32; V]) -> u64 {
        match V {
            1 => x[0].sign_mask(),
            2 => x[0].sign_mask() | x[1].sign_mask() << 8,
            4 => Self::F32::sign_masks([x[0], x[1], x[2], x[3]]),
            8 => {
                let low = Self::F32::sign_masks([x[0], x[1], x[2], x[3]]);
                low | Self::F32::sign_masks([x[4], x[5], x[6], x[7]]) << 32
            }
            _ => unreachable!("pieces are of 1, 2, 4 or 8 cells"),
        }
    }

    /// Writes the positions of the ones of `word`, plus `first`, and returns their number.
    ///
    /// Up to 15 numbers beyond them may be written too.
    #[inline(always)]
    fn list_ones(word: u64, first: u32, index: &mut [u32]) -> usize {
        let (n, mut word, mut at) = (word.count_ones() as usize, word, 0);
        // Rounds of eight without a branch for each bit: a branch at a random place costs more than
        // eight stores.
        while at < n {
            let out: &mut [u32; 8] = index[at..].first_chunk_mut().expect("room for eight");
            for slot in out {
                *slot = first + (word.trailing_zeros() & 63);
                word &= word.wrapping_sub(1);
            }
            at += 8;
        }
        n
    }
}
