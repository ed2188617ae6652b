//! Ladders of models, from independent units to an RBM, and chains that climb them.
//!
//! AIS climbs a ladder step by step. Parallel tempering runs a chain on every rung. Tours with a
//! ladder walk up and down. Training runs many ladders while the model changes.

mod ladders;
mod path;
mod replica_exchange;
mod temperatures;
mod tempering;
mod tours;
mod trajectory;

pub(crate) use ladders::{Base, Exchanges, History, Ladders, Rising, equally_rejecting};
pub(crate) use path::{BaseModel, Kept, Path, Replicas};
pub(crate) use replica_exchange::{LadderSeed, LadderState, ReplicaExchange, exchange_rates};
pub(crate) use temperatures::Pilot;
pub use temperatures::Spacing;
#[cfg(test)]
pub(crate) use tempering::Record;
pub(crate) use tempering::{MAX_RECORDS, Tempering, combine, log_ratios, swap_rates, worst_r_hat};
pub(crate) use tours::{LadderEngine, LadderSettings, LadderTours, Rungs};
pub(crate) use trajectory::Trajectory;
