//! The machine itself: parameters, energies, conditionals, and what can be said of data without `Z`.

mod centring;
mod init;
mod pseudo_likelihood;
mod rbm;

pub use centring::Offsets;
pub use init::Init;
pub use rbm::Rbm;

#[cfg(test)]
pub(crate) use rbm::tests;
