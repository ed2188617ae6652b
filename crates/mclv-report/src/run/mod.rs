//! Pages of training runs, from the contents of their folders.
//!
//! A folder with missing or damaged files still gives a page, which lists these problems.

mod curves;
mod several;
mod single;
mod words;

pub use curves::{Against, Spectrum, likelihood, likelihoods, mean_likelihood, spectra, watched};
pub use several::{Comparison, DataKind, Means, several_runs};
pub use single::{ModelPictures, ModelTours, ModelView, UnitColumns, single_run};
