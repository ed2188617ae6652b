//! Restricted Boltzmann Machines whose training and evaluation carry statistical guarantees.
#![forbid(unsafe_code)]

pub mod data;
mod error;
mod likelihood;
mod model;
pub mod partition;
pub mod progress;
pub mod rng;

pub use error::{Error, Result, human_seconds};
pub use likelihood::{Likelihood, average_log_likelihood, log_likelihoods};
pub use mclv_kernels::bits;
pub use model::{Init, Offsets, Rbm};
