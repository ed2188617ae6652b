//! Show what `mclv` computes: figures for papers, self-contained pages for people, event files for TensorBoard.
//!
//! Everything that is shown is given: this crate lays out and computes no results.
#![forbid(unsafe_code)]

pub mod figure;
pub mod log_z;
pub mod page;
pub mod pictures;
pub mod run;
pub mod tensorboard;
pub mod tours;
