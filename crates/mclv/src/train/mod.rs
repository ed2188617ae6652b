//! Train a model: minibatches, optimiser, schedule, evaluations, warnings, checkpoints.

mod agree;
mod best;
mod checkpoint;
mod feed;
mod files;
mod folder;
mod follow;
mod guard;
mod listener;
mod monitor;
mod old_checkpoint;
mod optimizer;
mod run;
mod session;
mod sitting;
mod standing;
#[cfg(test)]
mod tests;
mod timetable;
pub(crate) mod trainer;
mod training;
mod weights;

pub use crate::settings::{Optimizer, Schedule};
pub use best::BestModel;
pub use checkpoint::Snapshot;
pub use feed::Feed;
pub use files::Checkpoints;
pub use folder::{RunFolder, RunRecord, WarningHistory};
pub use follow::FollowedRun;
pub use guard::{Advice, Warning};
pub use listener::Listener;
pub use monitor::{JudgedRows, Metrics};
pub use run::{Run, RunInput, StartModel};
pub use session::Session;
pub use sitting::Sitting;
pub use standing::{Standing, SweepFolder, find_model};
pub use training::{Outcome, Trained, Training};
