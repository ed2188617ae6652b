//! Represent positive numbers beyond the range of `f64`.

use std::f64::consts::LN_2;
use std::ops::{Add, Mul};

/// A positive number `mantissa · 2^exponent`, which may be beyond the range of `f64`.
///
/// ```
/// use mclv_kernels::enumerate::Scaled;
/// let huge = Scaled::exp(1e5);
/// let sum = huge + huge;
/// assert!((sum.ln() - (1e5 + 2f64.ln())).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    pub(super) mantissa: f64,
    pub(super) exponent: f64,
}

impl Scaled {
    /// Zero, the neutral element of addition.
    pub const ZERO: Self = Self { mantissa: 0.0, exponent: f64::NEG_INFINITY };

    /// Returns `e^x`.
    pub fn exp(x: f64) -> Self {
        let exponent = (x / LN_2).round();
        // The remainder is at most ½ ln 2, unless `x` is so large that its own rounding is more
        // than that.
        Self { mantissa: exponent.mul_add(-LN_2, x).clamp(-1.0, 1.0).exp(), exponent }
    }

    /// Returns the mantissa and the exponent of two, for sending elsewhere.
    pub fn parts(self) -> (f64, f64) {
        (self.mantissa, self.exponent)
    }

    /// Creates a number from the values that [`parts`](Self::parts) returned.
    pub fn from_parts(mantissa: f64, exponent: f64) -> Self {
        Self { mantissa, exponent }
    }

    /// Returns the natural logarithm.
    pub fn ln(self) -> f64 {
        if self.mantissa == 0.0 { f64::NEG_INFINITY } else { self.exponent.mul_add(LN_2, self.mantissa.ln()) }
    }
}

impl Add for Scaled {
    type Output = Self;

    /// Returns the sum, scaled by the larger exponent.
    fn add(self, other: Self) -> Self {
        let (big, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if small.mantissa == 0.0 {
            return big;
        }
        let mantissa = big.mantissa + small.mantissa * (small.exponent - big.exponent).exp2();
        Self { mantissa, exponent: big.exponent }
    }
}

impl Mul for Scaled {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { mantissa: self.mantissa * other.mantissa, exponent: self.exponent + other.exponent }
    }
}
