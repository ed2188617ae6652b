#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod allowance;
pub mod chain;
mod clusters;
pub mod data;
mod error;
mod features;
mod file;
pub mod generated;
pub mod gradient;
pub mod lab;
mod ladder;
mod likelihood;
pub mod mixing;
mod model;
pub mod modes;
mod numpy;
pub mod partition;
pub mod picture;
pub mod progress;
pub mod rng;
pub mod sample;
mod selftest;
pub mod settings;
pub mod shell;
mod source;
pub mod statistics;
pub mod team;
pub mod theorems;
pub mod tour;
pub mod train;
mod words;

pub use error::{Error, Result, human_seconds};
pub use features::Features;
pub use file::{FORMAT_VERSION, ModelFile, Owner, Provenance, new_folder, write_atomically, write_inside};
pub use likelihood::Likelihood;
pub use mclv_kernels::bits;
pub use model::{Init, Offsets, Rbm, StrongUnit, UnitUse};
pub use selftest::{Check, selftest};
pub use source::{open_file, read_file, read_text};
pub use tour::StoppingSet;
pub use words::printable;

/// Returns the name of the instruction set that the kernels use on this machine.
pub fn kernels() -> &'static str {
    mclv_kernels::Isa::best().name()
}

/// The example of the project's README is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ProjectReadme;

/// The estimator on the page of the Rust library is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/rust.md")]
struct RustPage;
