//! Show what `mclv` computes: figures for papers, self-contained pages for people, event files for TensorBoard.
#![forbid(unsafe_code)]

pub mod figure;
pub mod log_z;
pub mod page;
pub mod pictures;
pub mod run;
pub mod tensorboard;
pub mod tours;
