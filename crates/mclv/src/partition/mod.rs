//! The partition function `Z`, and what each way to it guarantees.

mod ais;
mod exact;
mod log_z;

pub(crate) use ais::base_bias;
pub use ais::{AisSettings, ais};
pub use exact::{ExactSettings, exact, nominal_seconds};
pub(crate) use exact::{prepare, smaller_layer_hidden, sum_tasks};
pub use log_z::{Guarantee, LogZ};
