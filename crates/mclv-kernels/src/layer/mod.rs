//! Compute one layer given the other: inputs `b + Wᵀx`, means, and Bernoulli bits.
//!
//! For each state (a packed row of bits, or a row of reals) the positions of its non-zero units are listed
//! once; then, tile by tile, the rows of `W` at those positions are added up in registers and the result is
//! turned into means or bits before it ever reaches memory. With 0/1 states this is additions only, and as
//! few as there are ones.
//!
//! # The law of a bit
//!
//! Unit `i` with input `x` is 1 with probability `σ(x)`. The *unlikely* value, of probability
//! `q = 1/(1 + e^|x|)`, is chosen if `u·(1 + e^|x|) < 1` for the unit's uniform `u`, of which 16 bits are drawn
//! (see [`rng`](crate::rng) for which). With a rough exponential they tell on which side of `q` the number lies,
//! unless it is too close: about once in 10,000 times. Then, and only then, 32 more are drawn and the exponential is
//! taken with care. A tail probability `q` so comes out with an error of at most `2⁻⁴⁹ + 2⁻²²·q`; below 2⁻⁴⁹ it
//! is 0. A NaN input gives a bit like any other: look for NaN in the parameters, not here.

mod affine;
mod draws;
mod inputs;
mod log_weights;
mod outer;
mod quick_log_weights;
mod sample;
mod scratch;
mod states;
mod sums;

pub use affine::Affine;
pub use inputs::{inputs, means};
pub use log_weights::log_weights;
pub use outer::{accumulate_outer, column_sums};
pub use quick_log_weights::quick_log_weights;
pub use sample::sample;
pub use scratch::{Scratch, ThreadScratch};
pub use states::{Columns, SparseStates, States};
