//! Shows results of `mclv` as figures for papers, self-contained HTML pages, and TensorBoard
//! events.
//!
//! This crate only lays out values that it is given. It computes no results.
#![forbid(unsafe_code)]

pub mod figure;
pub mod generated;
pub mod lab;
pub mod log_z;
pub mod modes;
pub mod page;
pub mod pictures;
pub mod run;
pub mod tensorboard;
pub mod theorems;
pub mod tours;
