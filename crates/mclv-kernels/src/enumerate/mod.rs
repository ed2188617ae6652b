//! Sum a product model over all `2^n` states of one layer.
//!
//! With `n` enumerated units `y` (biases `a`) and `m` summed-out units (biases `b`, weights `W`, m
//! × n):
//!
//! ```text
//! Z = Σ_y e^{aᵀy} Π_i (1 + e^{b_i + (W y)_i})
//! ```
//!
//! # Algorithm
//!
//! The bits of `y` are split into *low* (6), *middle* (7) and *top* bits. `B_i(low) = e^{Σ_low W}`
//! and `M_i(middle)` are tabulated once. A *task* is one value of the top bits. It computes
//! `A_i = e^{b_i + Σ_top W}`. Then each of its 8,192 states costs one multiply-add and one multiply
//! per unit, `Π_i (c_i + (c_i A_i M_i) B_i)`, with four states to a register and 4 × 8 states at a
//! time, with no exponential and no logarithm.
//!
//! # Numerics
//!
//! `c_i` is a power of two that centres the factor of unit `i` on 1 over the states of a task.
//! Products are split into mantissa and exponent before they can leave the range of `f64`, and sums
//! are scaled, so nothing overflows whatever the size of `Z`. The relative error is about `m`
//! roundings, 10⁻¹³ for m = 784. If a unit's low and middle weights add up to more than
//! [`MAX_RANGE`] in size, fewer bits are tabulated. If even five bits are too many, or if
//! parameters are beyond 10⁹, states are summed in log space, which is slower but equally exact.
//!
//! Memory: 1.2 MB for m = 784, for any `n`.

mod peak;
mod plan;
mod scaled;
mod task;
#[cfg(test)]
mod tests;

pub use peak::{FMAS_PER_ROUND, fma_peak};
pub use plan::{Enumeration, MAX_RANGE};
pub use scaled::Scaled;
pub use task::{Scratch, log_terms, run_task};
