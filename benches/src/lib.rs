//! Measure times on a noisy machine: run often, keep the best, and print the load of the machine.

#![forbid(unsafe_code)]

pub mod limit;

use std::hint::black_box;
use std::time::Instant;

/// Returns the seconds of one call of `work`: the best of many calls within about `budget` seconds.
pub fn best_seconds<T>(budget: f64, mut work: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    let mut n = 0;
    while n < 3 || begun.elapsed().as_secs_f64() < budget {
        let start = Instant::now();
        black_box(work());
        best = best.min(start.elapsed().as_secs_f64());
        n += 1;
    }
    best
}

/// Describes the machine in one line: cores, kernels, load.
pub fn machine() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!(
        "{} threads, kernels {}, load average {load} before the run",
        std::thread::available_parallelism().map_or(1, |n| n.get()),
        mclv_kernels::Isa::best()
    )
}
