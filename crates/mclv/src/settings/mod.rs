//! Settings of training: one definition, one function that decides and checks them, and their
//! spelling on the command line, in files and in Python.
//!
//! [`Settings`] holds the user's choices. [`Settings::check`] fills in defaults, rejects settings
//! that contradict each other, and returns [`CheckedSettings`] for training. To add a setting, add
//! a field in `overrides.rs` and its default and rule in `rules.rs`. The command line, files,
//! Python and the table in `docs/reference/settings.md` follow.

mod estimator;
mod legacy;
mod optimizer;
mod overrides;
mod restarts;
mod rules;
mod schedule;
mod snapshots;
mod spelling;
#[cfg(test)]
mod tests;
mod values;

pub use estimator::{EstimatorName, EstimatorSettings, LvsSettings, Starts, Statistics, Unfinished};
pub(crate) use legacy::{is_old, read};
pub use optimizer::{Optimizer, Rule};
pub use overrides::{Preset, Settings};
pub use restarts::Restarts;
pub use rules::CheckedSettings;
pub(crate) use rules::MOST_STATES;
pub use schedule::Schedule;
pub use snapshots::Snapshots;
pub use spelling::{Spelling, spell};
pub use values::{Auto, EvalEvery, Limit, Number, TourLength};
