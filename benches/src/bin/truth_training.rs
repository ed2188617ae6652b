//! Test the likelihoods reported during training: every value against enumeration, over several
//! seeds.
//!
//! `cargo run --release -p mclv-benches --bin truth_training -- DATA N_HIDDEN SEEDS [EPOCHS]`.
//! Models that cannot be enumerated in an hour are compared with BAR of 32 ladders, whose own error
//! is then part of the comparison.

use mclv::data::DataSpec;
use mclv::partition::{self, BarSettings, ExactSettings, LogZ, base_bias};
use mclv::progress::Silent;
use mclv::settings::Settings;
use mclv::train::{Run, RunInput};
use mclv::{Error, Rbm};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [source, n_hidden, seeds, rest @ ..] = args.as_slice() else {
        return Err("usage: truth_training DATA N_HIDDEN SEEDS [EPOCHS]".into());
    };
    let (n_hidden, seeds): (usize, u64) = (n_hidden.parse()?, seeds.parse()?);
    let epochs = rest.first().map(|n| n.parse::<usize>()).transpose()?;
    println!("{}", mclv_benches::machine());
    let (mut n_values, mut n_beyond_three, mut n_beyond_five, mut n_rough, mut n_none) = (0, 0, 0, 0, 0);
    let (mut n_best, mut n_warnings) = (0, 0);
    for seed in 1..=seeds {
        let train = Settings {
            n_hidden: Some(n_hidden),
            epochs: epochs.map(Into::into),
            seed: Some(seed),
            ..Settings::default()
        };
        let data = DataSpec { source: source.clone(), seed, ..DataSpec::default() };
        let run = Run::load(RunInput { data, train, ..RunInput::default() }, &Silent)?;
        let mut session = run.training().begin(run.rows())?;
        let base = base_bias(&run.rows().column_means(), run.rows().n_rows());
        // The value that chooses the best model, by the reference, after each evaluated epoch.
        let mut judged: Vec<(usize, f64)> = Vec::new();
        let (mut seconds, mut seen) = (0.0, 0);
        let initial = session.rbm().clone();
        loop {
            let begun = Instant::now();
            let outcome = session.epoch()?;
            seconds += begun.elapsed().as_secs_f64();
            for m in &session.history()[seen..] {
                let rbm = if m.epoch == 0 { &initial } else { session.rbm() };
                for warning in &m.warnings {
                    n_warnings += 1;
                    println!("seed {seed}, epoch {:3}: {warning}", m.epoch);
                }
                let Some(log_z) = &m.log_z else {
                    if m.pseudo_log_likelihood.is_some() {
                        n_none += 1;
                        println!("seed {seed}, epoch {:3}: no likelihood", m.epoch);
                    }
                    continue;
                };
                let truth = reference(rbm, &base)?;
                // All likelihoods of an epoch have the error of its log Z, with the other sign.
                let error = truth.value - log_z.value;
                let value = m.validation_log_likelihood.or(m.train_log_likelihood).unwrap_or(f64::NAN);
                judged.push((m.epoch, value - error));
                let bar = log_z.std_err.map(|se| se.hypot(truth.std_err.unwrap_or(f64::NAN)));
                let off = bar.map(|bar| if error.abs() < 1e-9 { 0.0 } else { error.abs() / bar });
                match off {
                    None => n_rough += 1,
                    Some(off) => {
                        n_values += 1;
                        n_beyond_three += usize::from(off.is_nan() || off > 3.0);
                        n_beyond_five += usize::from(off.is_nan() || off > 5.0);
                    }
                }
                let shown = log_z.with_error(value, 3);
                println!(
                    "seed {seed}, epoch {:3}: {shown} by {}, off by {error:+.4} ({} error bars)",
                    m.epoch,
                    log_z.method,
                    off.map_or("no".into(), |off| format!("{off:.2}"))
                );
            }
            seen = session.history().len();
            if outcome.is_some() {
                break;
            }
        }
        let best = session.history().last().and_then(|m| m.best.clone());
        let of = |epoch: usize| judged.iter().find(|j| j.0 == epoch).map_or(f64::NAN, |j| j.1);
        let highest = judged.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(best), Some(highest)) = (best, highest) {
            let behind = highest.1 - of(best.epoch);
            n_best += usize::from(behind <= 1e-9);
            println!(
                "seed {seed}: best is epoch {}, by the reference epoch {} ({behind:.4} nats better); {seconds:.1} s",
                best.epoch, highest.0
            );
        }
    }
    println!(
        "{n_values} likelihoods with an error bar or exact: {n_beyond_three} beyond three error bars, \
         {n_beyond_five} beyond five; {n_rough} marked ≈; {n_none} evaluations without a likelihood; best is best \
         in {n_best} of {seeds} runs; {n_warnings} warnings"
    );
    Ok(())
}

/// Returns `log Z` by enumeration, or by BAR if that would take more than an hour.
fn reference(rbm: &Rbm, base: &[f32]) -> mclv::Result<LogZ> {
    match partition::exact(rbm, &ExactSettings::default(), &Silent) {
        Err(Error::TooSlow { .. }) => {
            let settings =
                BarSettings { n_ladders: 32, base_bias: Some(base.to_vec()), ..Default::default() };
            Ok(partition::bar(rbm, &settings, &Silent)?.log_z)
        }
        result => result,
    }
}
