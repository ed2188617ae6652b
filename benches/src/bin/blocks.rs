//! Test intervals of `log Z` on large models whose truth is known: small models side by side.
//!
//! `cargo run --release -p mclv-benches --bin blocks -- [METHODS] [HIDDEN] [MODELS] [SEEDS] [KIND] [TARGET]`,
//! for example `ladder,ais,bar 200 20 10 easy 0.05`. Each block has 40 visible and 10 hidden units,
//! and the units of all blocks are mixed. Kinds: `easy` (weak weights, one mode), `middling` (strong
//! random weights), `hard` (two far modes in each block). TARGET is the standard error that the
//! methods aim for.

#[path = "../../../crates/mclv/tests/hard_models/mod.rs"]
#[allow(dead_code)]
mod hard_models;

use hard_models::{TwoModes, random, reader, side_by_side};
use mclv::Rbm;
use mclv::partition::{Budget, Effort, Inputs, LogZ, Method, MethodSettings, Plan};
use mclv::progress::Silent;

/// Visible and hidden units of a block.
const BLOCK: (usize, usize) = (40, 10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize, default: u64| args.get(k).map_or(Ok(default), |n| n.parse());
    let methods = args.first().map_or("ladder", String::as_str);
    let (n_hidden, n_models, n_seeds) = (number(1, 200)?, number(2, 20)?, number(3, 10)?);
    let target: f64 = args.get(5).map_or(Ok(0.05), |se| se.parse())?;
    let kinds = args.get(4).map_or("easy,middling,hard", String::as_str);
    for kind in kinds.split(',') {
        let models: Vec<(Rbm, f64)> = (0..n_models).map(|m| model(kind, n_hidden as usize, m)).collect();
        for method in methods.split(',') {
            let method: Method = method.parse()?;
            let (mut covered, mut given, mut squares, mut seconds, mut steps) = (0, 0, 0.0, 0.0, 0.0);
            let mut worst_model = (0, 0);
            for (rbm, log_z) in &models {
                let estimates: Vec<LogZ> =
                    (0..n_seeds).map(|seed| estimate(rbm, method, target, seed)).collect();
                let intervals: Vec<(f64, f64)> = estimates.iter().filter_map(|z| z.interval).collect();
                let holds = intervals.iter().filter(|(low, high)| (*low..=*high).contains(log_z)).count();
                squares += estimates.iter().map(|z| (z.value - log_z).powi(2)).sum::<f64>();
                seconds += estimates.iter().map(|z| z.seconds).sum::<f64>();
                steps += estimates.iter().map(|z| z.n_states).sum::<f64>();
                (covered, given) = (covered + holds, given + intervals.len());
                if intervals.len() - holds > worst_model.1 - worst_model.0 {
                    worst_model = (holds, intervals.len());
                }
                eprintln!("{kind} {method}: {holds} of {} intervals hold", intervals.len());
            }
            let n = (n_models * n_seeds) as f64;
            println!(
                "{kind} {} × {n_hidden}, {method}: {covered} of {given} intervals hold ({:.1} %), {} declined; \
                 worst model {} of {}; rms error {:.4}; {:.1e} steps, {:.1} s each; rms error at 10^6 steps {:.4}",
                n_hidden as usize / BLOCK.1 * BLOCK.0,
                100.0 * covered as f64 / given as f64,
                (n_models * n_seeds) as usize - given,
                worst_model.0,
                worst_model.1,
                (squares / n).sqrt(),
                steps / n,
                seconds / n,
                (squares / n * (steps / n) / 1e6).sqrt()
            );
        }
    }
    Ok(())
}

/// Model number `m` of a kind, and its `log Z`.
fn model(kind: &str, n_hidden: usize, m: u64) -> (Rbm, f64) {
    let first = match kind {
        "easy" => 1_000,
        "middling" => 2_000,
        "hard" => 3_000,
        _ => panic!("kinds: easy, middling, hard"),
    };
    let mut rng = reader(first + m);
    let block = |rng: &mut _| match kind {
        "easy" => random(BLOCK.0, BLOCK.1, 0.3, rng),
        "middling" => random(BLOCK.0, BLOCK.1, 0.8, rng),
        _ => {
            let model = TwoModes::new(BLOCK.0, BLOCK.1, 0.4, rng);
            (model.rbm, model.log_z)
        }
    };
    let parts: Vec<(Rbm, f64)> = (0..n_hidden / BLOCK.1).map(|_| block(&mut rng)).collect();
    side_by_side(&parts, &mut rng)
}

fn estimate(rbm: &Rbm, method: Method, target: f64, seed: u64) -> LogZ {
    let budget = Budget::command(rbm.n_visible(), rbm.n_hidden());
    let settings = MethodSettings { budget, effort: Effort::TargetSe(target), seed, ..Default::default() };
    Plan::new(rbm, Some(method), &settings).run(&Inputs::default(), &Silent).unwrap()
}
