//! Measure error and time of the estimators of `log Z` against enumeration, over several seeds.
//!
//! `cargo run --release -p mclv-benches --bin logz -- MODEL [DATA]`: the rows of DATA give the base
//! model and the starts of reverse AIS from data.

use mclv::data::{self, Binarize, DataSpec, Rows};
use mclv::partition::{self, AisSettings, BarSettings, LogZ, Origin, ReverseAisSettings, Spacing, base_bias};
use mclv::progress::Silent;
use mclv::{ModelFile, sample};
use std::time::Instant;

const SEEDS: u64 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(model), source) = (args.next(), args.next()) else {
        return Err("usage: logz MODEL [DATA]".into());
    };
    let rbm = ModelFile::load(model)?.rbm;
    let rows = match source {
        Some(source) => {
            let spec = DataSpec { source, binarize: Binarize::Threshold(0.5), ..Default::default() };
            Some(data::load(&spec, &Silent)?.rows)
        }
        None => None,
    };
    let base = rows.as_ref().map(|rows| base_bias(&rows.column_means(), rows.n_rows()));
    let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
    println!("exact: {:.4} in {:.2} s", exact.value, exact.seconds);

    let show = |name: &str,
                run: &dyn Fn(u64) -> mclv::Result<LogZ>|
     -> Result<(), Box<dyn std::error::Error>> {
        let estimates: Vec<LogZ> = (1..=SEEDS).map(run).collect::<mclv::Result<_>>()?;
        let mean = |f: &dyn Fn(&LogZ) -> f64| estimates.iter().map(f).sum::<f64>() / SEEDS as f64;
        let error = |x: &LogZ| x.value - exact.value;
        let covered = estimates
            .iter()
            .filter(|x| x.interval.is_some_and(|(from, to)| (from..=to).contains(&exact.value)))
            .count();
        let given = estimates.iter().filter(|x| x.interval.is_some()).count();
        println!(
            "{name:30} error {:+.4} (rms {:.4}), error bar {:.4}, intervals {covered}/{given}, {:.2e} steps, {:.2} s; {}",
            mean(&error),
            mean(&|x| error(x).powi(2)).sqrt(),
            mean(&|x| x.std_err.unwrap_or(f64::NAN)),
            estimates[0].n_states,
            mean(&|x| x.seconds),
            estimates[0].notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        );
        Ok(())
    };
    for n_betas in [300, 1000, 3000, 10_000] {
        for spacing in [Spacing::Linear, Spacing::Sigmoid, Spacing::Adaptive] {
            show(&format!("ais 128 x {n_betas} {spacing:?}"), &|seed| {
                let settings = AisSettings {
                    n_chains: 128,
                    n_betas,
                    target: None,
                    spacing,
                    base_bias: base.clone(),
                    n_check: 0,
                    seed,
                };
                partition::ais(&rbm, &settings, &Silent)
            })?;
        }
    }
    let begun = Instant::now();
    let samples = sample::exact(&rbm, 128 * SEEDS as usize, 1, &Default::default(), &Silent)?;
    println!("{} exact samples in {:.2} s", samples.n_rows(), begun.elapsed().as_secs_f64());
    for n_betas in [1000, 10_000] {
        let settings =
            |seed| ReverseAisSettings { n_betas, base_bias: base.clone(), seed, ..Default::default() };
        let part = |first: usize| (first..first + 128).collect::<Vec<_>>();
        show(&format!("reverse-ais 128 x {n_betas} exact"), &|seed| {
            let states = samples.select(&part(128 * (seed as usize - 1)));
            partition::reverse_ais(&rbm, &states, Origin::ExactSamples, &settings(seed), &Silent)
        })?;
        if let Some(Rows::Bits(rows)) = &rows {
            show(&format!("reverse-ais 128 x {n_betas} data"), &|seed| {
                let states = rows.select(&part(128 * seed as usize));
                partition::reverse_ais(&rbm, &states, Origin::Data, &settings(seed), &Silent)
            })?;
        }
    }
    for n_steps in [1000, 10_000] {
        show(&format!("bar 8 x {n_steps}"), &|seed| {
            let settings = BarSettings {
                n_steps,
                burn_in: n_steps / 4,
                base_bias: base.clone(),
                seed,
                ..Default::default()
            };
            partition::bar(&rbm, &settings, &Silent).map(|bar| bar.log_z)
        })?;
    }
    Ok(())
}
