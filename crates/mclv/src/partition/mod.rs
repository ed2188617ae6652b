//! The partition function `Z`, and what each way to it guarantees.

mod agreement;
mod ais;
mod annealing;
mod bridge;
mod choice;
mod exact;
mod interval;
mod log_z;
mod mclv;
mod path;
mod question;
mod reverse_ais;
mod temperatures;
mod weights;

pub use agreement::{Agreement, Comparison};
pub use ais::{AisSettings, ais, base_bias};
pub use bridge::{Bar, BarSettings, bar};
pub use choice::{SetOrigin, choose_stopping_set};
pub use exact::{ExactSettings, exact, nominal_seconds};
pub(crate) use exact::{enumeration, prepare, smaller_layer_hidden, sum_tasks};
pub use interval::{Declined, mean_interval};
pub use log_z::{Guarantee, LogZ};
pub(crate) use mclv::mclv_within;
pub use mclv::{Effort, MclvSettings, mclv, mclv_from_tours};
pub(crate) use question::NOMINAL_STEP;
pub use question::{Method, MethodSettings, Question};
pub use reverse_ais::{Origin, ReverseAisSettings, reverse_ais};
pub use temperatures::Spacing;
