//! The model itself: parameters, energies, conditionals, and quantities of data that do not need
//! `Z`.

mod centring;
mod digest;
mod init;
mod pseudo_likelihood;
mod rbm;
mod spectrum;
mod units;

pub use centring::Offsets;
pub use init::Init;
pub use rbm::Rbm;
pub use units::{StrongUnit, UnitUse};

#[cfg(test)]
pub(crate) use rbm::tests;
