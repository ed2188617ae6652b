//! The partition function `Z`, and what each way to it guarantees.

mod exact;
mod log_z;

pub use exact::{ExactSettings, exact};
pub use log_z::{Guarantee, LogZ};
