//! The paper's experiments, and further ones: runs that are never repeated, tables, figures, pages.
//!
//! ```text
//! Experiment ─→ Tasks ─ schedule ─→ Store (one file per task) ─→ Report
//! Report ─ write ─→ JSON, Markdown, CSV, SVG, PNG, HTML
//! Report ─ page ─→ text between the marks of a page
//! ```
#![forbid(unsafe_code)]

mod baseline;
mod experiment;
mod html;
mod mmd;
mod options;
pub mod page;
mod published;
pub mod report;
pub mod schedule;
mod store;
mod subject;
mod task;
pub mod work;
pub mod write;

pub use experiment::Experiment;
pub use options::Options;
pub use store::{Record, Store};
pub use subject::{Baseline, BaselineOf, FileOf, QualityOf, SampleSource, ScoreOf, Subject};
pub use task::{
    DirectionOf, InspectionOf, LikelihoodOf, ModelOf, RowsOf, SpaceOf, Task, TimingOf, ToursFrom, ToursOf,
};
