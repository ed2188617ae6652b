//! Compute log Z of a trained model by enumeration, by tours and by annealing, and compare the
//! results.
//!
//! `cargo run --release --example log_z`

#![allow(clippy::print_stdout)] // An example prints its results.

use mclv::data::{self, DataSpec};
use mclv::partition::{Agreement, Budget, Inputs, Method, MethodSettings, Plan};
use mclv::progress::Silent;
use mclv::settings::Settings;
use mclv::train::Training;

fn main() -> mclv::Result<()> {
    let digits = data::load(&DataSpec { source: "digits".into(), ..Default::default() }, &Silent)?;
    let settings = Settings { n_hidden: Some(12), epochs: Some(10.into()), ..Default::default() };
    let rbm = Training::new(settings).fit(&digits.rows)?.model;

    let budget = Budget { n_betas: 2000, ..Budget::COMMAND };
    let settings = MethodSettings { budget, ..Default::default() };
    let inputs = Inputs { rows: Some(&digits.rows), ..Default::default() };
    let mut estimates = Vec::new();
    for method in [Method::Exact, Method::Mclv, Method::Ais] {
        let plan = Plan::new(&rbm, Some(method), &settings);
        println!("{plan}");
        let log_z = plan.run(&inputs, &Silent)?;
        println!("    log Z = {} ({})", log_z.with_error(log_z.value, 4), log_z.guarantee);
        estimates.push(log_z);
    }
    println!("{}", Agreement::new(&estimates));
    Ok(())
}
