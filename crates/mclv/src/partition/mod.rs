//! The partition function `Z`, and what each way to it guarantees.

mod ais;
mod exact;
mod log_z;

pub use ais::{AisSettings, ais};
pub use exact::{ExactSettings, exact, nominal_seconds};
pub use log_z::{Guarantee, LogZ};
