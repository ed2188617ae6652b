//! Measure how the time of training grows with rows, units, density, chains and threads, beside the
//! least time that the machine could take.
//!
//! Run on a quiet machine (about three minutes):
//! `cargo run --release -p mclv-benches --bin growth -- [FIGURE.svg]`.
//!
//! One size varies at a time, from 20,000 rows of 784 bits, of which 15 % are ones, 32 hidden units,
//! minibatches of 128, 128 chains and all threads. The *limit* is the time of the random draws from
//! known inputs and of the additions at the speed of the first-level cache, both measured here.

use mclv::bits::BitRows;
use mclv::data::Rows;
use mclv::settings::{EstimatorName, Settings};
use mclv::train::Training;
use mclv_benches::limit::{addition, drawing};
use mclv_benches::machine;
use mclv_kernels::Isa;
use mclv_kernels::rng::Stream;
use mclv_report::figure::{Axis, Drawing, Figure, Point, Series, Stack, Theme};
use std::time::Instant;

/// The sizes of one measurement.
#[derive(Clone, Copy)]
struct Sizes {
    n_rows: usize,
    n_visible: usize,
    n_hidden: usize,
    /// The share of ones.
    density: f64,
    n_chains: usize,
    n_threads: usize,
}

/// A size that varies: its name, its values, and how a value changes the sizes.
type Sweep = (&'static str, &'static [f64], fn(&mut Sizes, f64));

const SWEEPS: [Sweep; 6] = [
    ("rows", &[1e4, 1e5, 1e6], |s, x| s.n_rows = x as usize),
    ("visible units", &[100.0, 300.0, 784.0, 3000.0, 10000.0], |s, x| s.n_visible = x as usize),
    ("hidden units", &[16.0, 32.0, 64.0, 128.0, 256.0, 500.0, 1000.0, 2000.0], |s, x| {
        s.n_hidden = x as usize
    }),
    ("share of ones, %", &[1.0, 3.0, 10.0, 30.0, 100.0], |s, x| s.density = x / 100.0),
    ("chains", &[32.0, 128.0, 512.0, 2048.0], |s, x| s.n_chains = x as usize),
    ("threads", &[1.0, 2.0, 4.0, 8.0, 16.0], |s, x| s.n_threads = x as usize),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", machine());
    let n_cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let base = Sizes {
        n_rows: 20_000,
        n_visible: 784,
        n_hidden: 32,
        density: 0.15,
        n_chains: 128,
        n_threads: n_cores,
    };
    let add = addition(Isa::best());
    println!("| what varies | value | µs a row | limit | ratio |\n|---|---|---|---|---|");
    let mut figures = Vec::new();
    for (name, values, change) in SWEEPS {
        let (mut measured, mut limits) = (Vec::new(), Vec::new());
        for &value in values {
            let mut sizes = base;
            change(&mut sizes, value);
            if sizes.n_threads > n_cores {
                continue;
            }
            let (seconds, hidden_on) = epoch(sizes)?;
            let limit = limit(sizes, hidden_on, add);
            println!(
                "| {name} | {value} | {:.2} | {:.2} | {:.2} |",
                seconds * 1e6,
                limit * 1e6,
                seconds / limit
            );
            measured.push(Point::new(value, seconds * 1e6));
            limits.push(Point::new(value, limit * 1e6));
        }
        let figure = Figure::new("")
            .x(Axis::log(name))
            .y(Axis::log("µs a row"))
            .size(420.0, 240.0)
            .with(Series::line("measured", measured))
            .with(Series::line("limit of the machine", limits).dashed());
        figures.push(figure);
    }
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(path, Stack::new(figures).svg(Theme::Paper))?;
    }
    Ok(())
}

/// Returns the seconds of an epoch of PCD-1 for each row, and the share of hidden units that are on.
fn epoch(sizes: Sizes) -> mclv::Result<(f64, f64)> {
    let Sizes { n_rows, n_visible, density, .. } = sizes;
    let rows = Rows::Bits(random_rows(n_rows, n_visible, density));
    let settings = Settings {
        gradient: Some(EstimatorName::Pcd),
        k: Some(1.into()),
        n_hidden: Some(sizes.n_hidden),
        n_chains: Some(sizes.n_chains.into()),
        batch_size: Some(128),
        learning_rate: Some(0.01),
        epochs: Some(10.into()),
        ..Settings::default()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(sizes.n_threads).build().expect("threads");
    pool.install(|| {
        let mut session = Training::new(settings).unwatched().begin(&rows)?;
        let mut best = f64::INFINITY;
        let begun = Instant::now();
        // The first epoch warms up.
        for k in 0..6 {
            let start = Instant::now();
            session.epoch()?;
            if k > 0 {
                best = best.min(start.elapsed().as_secs_f64());
            }
            if k > 0 && begun.elapsed().as_secs_f64() > 15.0 {
                break;
            }
        }
        let means = session.rbm().mean_h_from_v(&rows.select(&(0..100).collect::<Vec<_>>()))?;
        let on = means.values().iter().map(|&x| f64::from(x)).sum::<f64>() / means.values().len() as f64;
        Ok((best / n_rows as f64, on))
    })
}

fn random_rows(n_rows: usize, n_visible: usize, density: f64) -> BitRows {
    let mut rows = BitRows::zeros(n_rows, n_visible);
    let mut rng = Stream::new(3, 0).reader();
    for r in 0..n_rows {
        (0..n_visible).for_each(|i| rows.set(r, i, rng.uniform() < density));
    }
    rows
}

/// Returns the least seconds for each row: draws of both layers for each chain, and additions in
/// both directions and in the outer products.
fn limit(sizes: Sizes, hidden_on: f64, add: f64) -> f64 {
    let Sizes { n_visible, n_hidden, density, .. } = sizes;
    let cells = |n: usize| n.div_ceil(8) as f64;
    let chains_per_row = sizes.n_chains as f64 / 128.0;
    let up = density * n_visible as f64 * cells(n_hidden);
    let down = hidden_on * n_hidden as f64 * cells(n_visible);
    // Rows: means of h, and outer products. Chains: v, h, and outer products.
    let n_adds = 2.0 * up + chains_per_row * (down + 2.0 * up);
    let draws = chains_per_row * (drawing(Isa::best(), n_visible) + drawing(Isa::best(), n_hidden));
    (n_adds * add + draws) / sizes.n_threads as f64
}
