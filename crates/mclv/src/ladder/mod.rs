//! Ladders of models, from independent units to an RBM, and chains that climb them.
//!
//! AIS climbs a ladder step by step. Parallel tempering runs a chain on every rung. Tours with a
//! ladder walk up and down.

mod path;
mod temperatures;
mod tempering;
mod tours;

pub(crate) use path::{Kept, Path, Replicas};
pub(crate) use temperatures::Pilot;
pub use temperatures::Spacing;
#[cfg(test)]
pub(crate) use tempering::Record;
pub(crate) use tempering::{Tempering, combine, log_ratios, swap_rates, worst_r_hat};
pub(crate) use tours::{LadderEngine, LadderSettings, LadderTours, Rungs};
