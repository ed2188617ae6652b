//! The partition function `Z`, and what each way to it guarantees.

mod ais;
mod exact;
mod interval;
mod log_z;
mod mclv;

pub(crate) use ais::base_bias;
pub use ais::{AisSettings, ais};
pub use exact::{ExactSettings, exact, nominal_seconds};
pub use interval::{Declined, mean_interval};
pub use log_z::{Guarantee, LogZ};
pub use mclv::{Effort, MclvSettings, choose_stopping_set, mclv, mclv_from_tours};
