//! Compare exact log Z with the double-precision multiply-add peak of this machine, measured in the
//! same run.
//!
//! A state costs `2·n_visible` lane operations (one multiply-add, one multiply per visible unit).
//! Run on a quiet machine: `cargo run --release -p mclv-benches --bin exact [-- HIDDEN…]`; 32 takes
//! minutes.

use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::enumerate::{Enumeration, FMAS_PER_ROUND, Scaled, Scratch, fma_peak, run_task};
use mclv_kernels::rng::Stream;
use rayon::prelude::*;
use std::ops::Add;
use std::time::Instant;

const N_VISIBLE: usize = 784;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![25, 28] } else { sizes };
    println!("{}", machine());
    let isa = Isa::best();
    for n_threads in [1, rayon::current_num_threads()] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        let peak = || {
            let n_rounds = 5_000_000;
            let seconds = best_seconds(0.5, || {
                pool.install(|| (0..n_threads).into_par_iter().map(|_| fma_peak(isa, n_rounds)).sum::<f64>())
            });
            n_threads as f64 * (n_rounds * FMAS_PER_ROUND) as f64 / seconds
        };
        for &n_hidden in sizes.iter().filter(|&&n| n_threads > 1 || n <= 25) {
            let before = peak();
            let (seconds, log_z) = pool.install(|| enumerate(isa, n_hidden));
            let peak = before.max(peak());
            let rate = 2.0 * N_VISIBLE as f64 * (1u64 << n_hidden) as f64 / seconds;
            println!(
                "{n_threads} threads, {N_VISIBLE} × {n_hidden}: {seconds:8.3} s, log Z = {log_z:.6}, {:5.1} Gops/s = {:.0} % of the \
                 {:.1} Gops/s multiply-add peak; 32 hidden units would take {:.0} s",
                rate / 1e9,
                100.0 * rate / peak,
                peak / 1e9,
                seconds * 2f64.powi(32 - n_hidden as i32),
            );
        }
    }
}

fn enumerate(isa: Isa, n_hidden: usize) -> (f64, f64) {
    let mut rng = Stream::new(1, 0).reader();
    let mut draw = |n: usize, sd: f64, mean: f64| -> Vec<f32> {
        (0..n).map(|_| (rng.normal() * sd + mean) as f32).collect()
    };
    // Weights of the size that training on MNIST gives.
    let (w, b, a) =
        (draw(N_VISIBLE * n_hidden, 0.8, 0.0), draw(N_VISIBLE, 1.0, -3.0), draw(n_hidden, 1.0, 0.0));
    let begun = Instant::now();
    let plan = Enumeration::new(isa, &w, &b, &a);
    let total = (0..plan.n_tasks())
        .into_par_iter()
        .map_init(Scratch::default, |scratch, task| run_task(isa, &plan, task, scratch))
        .reduce(|| Scaled::ZERO, Add::add);
    (begun.elapsed().as_secs_f64(), total.ln())
}
