//! Test whether intervals of `log Z` hold on models that mislead: coverage, share declined, labels.
//!
//! `cargo run --release -p mclv-benches --bin truth -- [METHODS] [SEEDS] [held|fresh] [WORD]`, for
//! example `mclv,ais,bar 20`. With a word, only models with that word in their kind or name run.
//! `best` is the plan without a method of the user's choice, without enumeration.

#[path = "../../../crates/mclv/tests/hard_models/mod.rs"]
mod hard_models;

use hard_models::{Case, Choice};
use mclv::partition::{Budget, Inputs, LogZ, Method, MethodSettings, Plan};
use mclv::progress::Silent;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let methods = args.first().map_or("mclv,ais,bar", String::as_str);
    let n_seeds: u64 = args.get(1).map_or(Ok(20), |n| n.parse())?;
    let choice = if args.get(2).is_some_and(|a| a == "fresh") { Choice::Fresh } else { Choice::HeldIn };
    let only = args.get(3).map_or("", String::as_str);
    let cases = hard_models::all(choice);
    for method in methods.split(',') {
        let method: Option<Method> = if method == "best" { None } else { Some(method.parse()?) };
        let mut kinds: Vec<(&str, usize, usize, usize)> = Vec::new();
        let mut easy = (0, 0);
        let mut labels: Vec<(&str, f64)> = Vec::new();
        for case in cases.iter().filter(|case| format!("{}, {}", case.kind, case.name).contains(only)) {
            let begun = Instant::now();
            let estimates: Vec<LogZ> = (0..n_seeds).map(|seed| estimate(case, method, seed)).collect();
            let given: Vec<(f64, f64)> = estimates.iter().filter_map(|z| z.interval).collect();
            let covered = given.iter().filter(|(low, high)| (*low..=*high).contains(&case.log_z)).count();
            let ratios: Vec<f64> = estimates.iter().map(|z| (z.value - case.log_z).exp()).collect();
            let mean_z = ratios.iter().sum::<f64>() / n_seeds as f64;
            let squares: f64 = ratios.iter().map(|ratio| (ratio - mean_z).powi(2)).sum();
            let error = (squares / (n_seeds as f64 - 1.0) / n_seeds as f64).sqrt();
            labels.push((estimates[0].guarantee.of_z(), (mean_z - 1.0) / error.max(1e-9)));
            let errors: Vec<f64> = estimates.iter().map(|z| z.value - case.log_z).collect();
            let worst = errors.iter().copied().fold(0.0, |w: f64, e| if e.abs() > w.abs() { e } else { w });
            println!(
                "{:28} {:34} {:>4}: {covered:2}/{:2} cover, {:2} declined; worst {worst:+.3}, mean Ẑ/Z {mean_z:.3}, {} by {}, {:.2} s",
                case.kind,
                case.name,
                method.map_or("best".into(), |m| m.to_string()),
                given.len(),
                n_seeds as usize - given.len(),
                estimates[0].guarantee.of_z(),
                estimates[0].method,
                begun.elapsed().as_secs_f64() / n_seeds as f64
            );
            if case.is_easy {
                easy = (easy.0 + n_seeds as usize - given.len(), easy.1 + n_seeds as usize);
            }
            match kinds.iter_mut().find(|kind| kind.0 == case.kind) {
                Some(kind) => {
                    (kind.1, kind.2, kind.3) =
                        (kind.1 + covered, kind.2 + given.len(), kind.3 + n_seeds as usize)
                }
                None => kinds.push((case.kind, covered, given.len(), n_seeds as usize)),
            }
        }
        if easy.1 > 0 {
            println!("## declined on easy models: {} of {} (at most 5 % are expected)", easy.0, easy.1);
        }
        // A label holds if no mean of Ẑ/Z is far above 1. For unbiased estimates, none may be far
        // below 1 either.
        for label in ["unbiased", "lower bound"] {
            let of_label: Vec<f64> =
                labels.iter().filter(|(l, _)| l.contains(label)).map(|(_, z)| *z).collect();
            let (high, low) = of_label.iter().fold((f64::NAN, f64::NAN), |(h, l), &z| (z.max(h), z.min(l)));
            println!(
                "## label {label}: {} models, mean of Ẑ/Z from {low:.1} to {high:.1} standard errors above 1",
                of_label.len()
            );
        }
        for (kind, covered, given, all) in kinds {
            println!(
                "## {} {kind}: {covered} of {given} cover ({:.1} %), {:.1} % declined",
                method.map_or("best".into(), |m| m.to_string()),
                100.0 * covered as f64 / given as f64,
                100.0 * (all - given) as f64 / all as f64
            );
        }
    }
    Ok(())
}

fn estimate(case: &Case, method: Option<Method>, seed: u64) -> LogZ {
    let budget = Budget { seconds: 0.0, n_betas: 3000, ..Budget::COMMAND };
    let settings = MethodSettings { budget, seed, ..Default::default() };
    let inputs = Inputs { rows: case.rows.as_ref(), ..Default::default() };
    Plan::new(&case.rbm, method, &settings).run(&inputs, &Silent).unwrap()
}
