//! Shares of modes: how much of a model's mass is near which rows, beside the share of the data.
//!
//! A [`ModeMap`] assigns each visible state to one mode: a class, a distinct row or a cluster of
//! rows. [`mode_shares`] estimates `E_p[1{mode(v) = m}]`, the share of the model's mass in each mode
//! `m`, and compares it with the share of the rows. A model that puts a fifth of its mass near one
//! row in sixty can look fine in every curve of its training. Its shares show it.

mod estimate;
mod map;
mod shares;
#[cfg(test)]
mod tests;

pub use estimate::mode_shares;
pub use map::{ModeKind, ModeMap, ModeSettings};
pub use shares::{FALSE_ALARMS, LOST, ModeShare, ModeShares, OVER_WEIGHTED, ShareGuarantee, Standing};
