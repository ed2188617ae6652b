//! Draw samples from a model, either freely or given the values of some visible units.

mod chains;
mod draw;
mod known;
mod method;
mod tempering;

pub use crate::partition::exact_samples as exact;
pub use draw::{SampleSettings, Samples, Start, quick_samples, sample};
pub use known::{Given, Known, Ranges};
pub use method::SampleMethod;
pub use tempering::Ladders;
