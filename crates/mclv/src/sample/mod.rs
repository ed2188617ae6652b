//! Draw from a model: freely, or given the values of some visible units.

mod chains;
mod exact;
mod known;

pub use chains::{SampleSettings, Samples, Start, sample};
pub use exact::exact;
pub use known::{Given, Known, Ranges};
