//! Run tours: Gibbs chains that start in the data's hidden states and end when they are there
//! again.
//!
//! `cargo run --release --example tours`

#![allow(clippy::print_stdout)] // An example prints its results.

use mclv::StoppingSet;
use mclv::data::{self, DataSpec};
use mclv::partition::{self, N_SCOUTS, mclv_from_tours};
use mclv::progress::Silent;
use mclv::settings::Settings;
use mclv::tour::{TourEngine, TourSettings};
use mclv::train::Training;

fn main() -> mclv::Result<()> {
    let digits = data::load(&DataSpec { source: "digits".into(), ..Default::default() }, &Silent)?;
    let settings = Settings { n_hidden: Some(12), epochs: Some(10.into()), ..Default::default() };
    let rbm = Training::new(settings).fit(&digits.rows)?.model;

    // The stopping set: one hidden state for each row of the data.
    let all: Vec<usize> = (0..digits.n_rows()).collect();
    let set = StoppingSet::draw(&rbm, &digits.rows, &all, 1, 0, 0)?;
    let engine = TourEngine::new(&rbm, &set)?;

    // Along each tour, add up how many visible units are on.
    let add = |v: &[u64], _h: &[u64], sums: &mut [f64]| sums[0] += f64::from(v[0].count_ones());
    let tours = engine.run_with(&TourSettings { n_tours: 20_000, ..Default::default() }, 1, &add, &Silent)?;
    println!("{} states, mean length {:.3}", set.len(), tours.mean_length().value);
    let on = tours.expectation(0);
    println!("units that are on: {:.3} ± {:.3} under the model", on.value, on.std_err);

    // Kac's formula: Z is the weight of the set times the mean length, without bias.
    let estimate = mclv_from_tours(&engine, &tours, N_SCOUTS, 0, &Silent)?;
    let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
    println!("log Z = {} by tours", estimate.with_error(estimate.value, 4));
    println!("log Z = {:.4} by enumeration", exact.value);
    Ok(())
}
