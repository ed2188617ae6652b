//! Compute one layer given the other: inputs `b + Wᵀx`, means, and Bernoulli bits.
//!
//! For each state (a packed row of bits, or a row of reals) the positions of its non-zero units are
//! listed once. Then, tile by tile, the rows of `W` at those positions are added up in registers,
//! and the sums are turned into means or bits before they reach memory. With 0/1 states this takes
//! additions only, one row of `W` for each one.
//!
//! # The distribution of a bit
//!
//! Unit `i` with input `x` is 1 with probability `σ(x)`. The *unlikely* value, of probability
//! `q = 1/(1 + e^|x|)`, is chosen if `u·(1 + e^|x|) < 1` for the unit's uniform `u`, of which 16
//! bits are drawn (see [`rng`](crate::rng) for which). With a rough exponential these bits decide
//! on which side of `q` the number lies, unless it is too close, about once in 10,000 times. Only
//! then, 32 more bits are drawn and the exponential is computed accurately. So a tail probability
//! `q` has an error of at most `2⁻⁴⁹ + 2⁻²²·q`; below 2⁻⁴⁹ it is 0. A NaN input gives a bit like
//! any other: check parameters for NaN, not bits.

mod affine;
mod draws;
mod inputs;
mod lists;
mod log_weights;
mod marked;
mod outer;
mod quick_log_weights;
mod sample;
mod scratch;
mod states;
mod sums;
mod tempered;

pub use affine::Affine;
pub use inputs::{inputs, means};
pub use log_weights::log_weights;
pub use outer::accumulate_outer;
pub use quick_log_weights::quick_log_weights;
pub use sample::sample;
pub use scratch::{Scratch, ThreadScratch};
pub use states::{Columns, SparseStates, States};
pub use tempered::{Bases, log_weight_at, sample_at};
