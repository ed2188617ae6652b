//! Reports of training runs, from what is in their folders.
//!
//! A folder with missing or damaged files still gives a report: [`RunFolder::problems`] says what is wrong, and so does the
//! page.

mod curves;
mod folder;
mod several;
mod single;

pub use curves::{Against, likelihood, watched};
pub use folder::{RunFolder, estimator_name};
pub use several::several_runs;
pub use single::{ModelParts, ModelView, single_run};
