//! Train a model: minibatches, optimiser, schedule, watching, checkpoints.

mod checkpoint;
mod course;
mod feed;
mod fit;
mod guard;
mod monitor;
mod optimizer;
mod run;
mod schedule;
mod settings;
mod trainer;
mod weights;

pub use checkpoint::Snapshot;
pub use feed::Feed;
pub use fit::Fit;
pub use guard::Warning;
pub use monitor::Metrics;
pub use optimizer::Optimizer;
pub use run::{Checkpoints, Listener, Outcome, Run, RunInput};
pub use schedule::Schedule;
pub use settings::TrainSettings;
pub use trainer::Trainer;
