//! Train a model on the built-in digits and print its exact likelihood.
//!
//! `cargo run --release --example train`

#![allow(clippy::print_stdout)] // An example prints its results.

use mclv::data::{self, DataSpec, Split};
use mclv::partition;
use mclv::progress::{Progress, Silent};
use mclv::settings::Settings;
use mclv::train::{Listener, Metrics, Training};

/// Prints a line for each evaluation.
struct Print;

impl Progress for Print {}

impl Listener for Print {
    fn epoch(&mut self, metrics: &Metrics) {
        if let Some(value) = metrics.validation_log_likelihood {
            println!("epoch {:3}: {value:.2} nats per validation row", metrics.epoch);
        }
    }
}

fn main() -> mclv::Result<()> {
    let digits =
        |split| data::load(&DataSpec { source: "digits".into(), split, ..Default::default() }, &Silent);
    let (train, validation, test) = (digits(Split::Train)?, digits(Split::Validation)?, digits(Split::Test)?);

    // Defaults decide all other settings: tours that are carried on, a learning rate that falls to
    // zero.
    let settings = Settings { n_hidden: Some(16), epochs: Some(20.into()), ..Default::default() };
    let trained =
        Training::new(settings).validation(&validation.rows).observe(&mut Print).fit(&train.rows)?;

    let log_z = partition::exact(&trained.model, &Default::default(), &Silent)?;
    let likelihood = trained.model.log_likelihood(&test.rows, &log_z)?;
    println!("log Z = {:.4} (exact)", log_z.value);
    println!("test rows: {:.2} nats per row", likelihood.mean);
    Ok(())
}
