//! Restricted Boltzmann Machines whose training and evaluation carry statistical guarantees.
#![forbid(unsafe_code)]

pub mod data;
mod error;
pub mod progress;
pub mod rng;

pub use error::{Error, Result, human_seconds};
pub use mclv_kernels::bits;
