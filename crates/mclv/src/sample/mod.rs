//! Draw samples from a model, either freely or given the values of some visible units.

mod chains;
mod known;

pub use crate::partition::exact_samples as exact;
pub use chains::{SampleSettings, Samples, Start, sample};
pub use known::{Given, Known, Ranges};
