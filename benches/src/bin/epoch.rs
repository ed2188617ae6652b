//! Measure the seconds per epoch of every estimator on 55,000 rows of MNIST, in minibatches of 128,
//! and how they divide among kernels.
//!
//! Run on a quiet machine, with MNIST in `MCLV_DATA_DIR`:
//! `cargo run --release -p mclv-benches --bin epoch -- 32 500`. Add `lvs` to measure the tours of
//! the paper's protocol too (minutes). Names of methods and kinds of rows restrict the run:
//! `-- 32 PCD-1 grey`. `epochs=60` makes a run long enough for a profiler. For scikit-learn or
//! PyTorch in the same run: `benches/sklearn_epoch.sh`,
//! `benches/torch_epoch.sh`.

use mclv::data::{self, Binarize, DataSpec, Rows, Split};
use mclv::progress::Silent;
use mclv::settings::{EstimatorName, Settings, Starts};
use mclv::train::Training;
use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::bits::BitRows;
use mclv_kernels::layer::{Affine, Columns, Scratch, States, accumulate_outer, means, sample};
use mclv_kernels::rng::{Draws, Stream};
use mclv_kernels::tiles::{Tiles, transpose};
use mclv_kernels::update::{Decay, centre, plain_sgd};
use std::time::Instant;

fn main() {
    println!("{}", machine());
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![32, 500] } else { sizes };
    let with = |gradient, k: u32| Settings {
        gradient: Some(gradient),
        k: Some(k.into()),
        epochs: Some(100.into()),
        ..Settings::default()
    };
    let wanted = |name: &str, all: &[&str]| {
        let named: Vec<&String> = args.iter().filter(|arg| all.contains(&arg.as_str())).collect();
        named.is_empty() || named.iter().any(|arg| *arg == name)
    };
    let n_epochs = args.iter().find_map(|a| a.strip_prefix("epochs=")?.parse().ok()).unwrap_or(6);
    let (cd, pcd) = (|k| with(EstimatorName::Cd, k), |k| with(EstimatorName::Pcd, k));
    // All rows give states to the stopping set.
    let carry = Settings { row_fraction: Some(1.0.into()), ..with(EstimatorName::Lvs, 1) };
    for (how, binarize) in [("bits", Binarize::Threshold(0.5)), ("grey", Binarize::Grey)] {
        if !wanted(how, &["bits", "grey"]) {
            continue;
        }
        let spec = DataSpec { source: "mnist".into(), split: Split::Train, binarize, ..DataSpec::default() };
        let rows = data::load(&spec, &Silent).expect("MNIST").rows;
        for &n_hidden in &sizes {
            let mut cases = vec![("CD-1", cd(1)), ("PCD-1", pcd(1)), ("CD-10", cd(10))];
            if n_hidden <= 64 {
                cases.push(("LVS carry", carry.clone()));
            }
            let n_cases = cases.len();
            cases.retain(|(name, _)| wanted(name, &["CD-1", "PCD-1", "CD-10", "LVS carry"]));
            let all_methods = cases.len() == n_cases;
            for (name, settings) in cases {
                // The first epoch warms up; the best of the next counts.
                let settings = Settings { n_hidden: Some(n_hidden), learning_rate: Some(0.05), ..settings };
                let seconds = epochs(&rows, settings, n_epochs);
                let best = seconds[1..].iter().copied().fold(f64::INFINITY, f64::min);
                println!("{how} 784 × {n_hidden:<4} {name:<22} {best:7.3} s per epoch");
            }
            if let (Rows::Bits(bits), true) = (&rows, all_methods) {
                split(bits, n_hidden);
            }
        }
    }
    if args.iter().any(|a| a == "lvs") {
        let spec = DataSpec { source: "mnist".into(), split: Split::Train, ..DataSpec::default() };
        let rows = data::load(&spec, &Silent).expect("MNIST").rows;
        paper(&rows, 32);
    }
}

fn epochs(rows: &Rows, settings: Settings, n: usize) -> Vec<f64> {
    let mut session = Training::new(settings).unwatched().begin(rows).expect("settings");
    let epoch = |_| {
        let begun = Instant::now();
        session.epoch().expect("an epoch");
        begun.elapsed().as_secs_f64()
    };
    (0..n).map(epoch).collect()
}

/// Measures the paper's protocol, LVS-1 with lr 0.1: right after the warm-up and, with `weighted`
/// starts, over all its epochs.
fn paper(rows: &Rows, n_hidden: usize) {
    for (name, starts, n) in [("weighted", Starts::Weighted, 100), ("fresh", Starts::Fresh, 18)] {
        let settings = Settings { n_hidden: Some(n_hidden), starts: Some(starts), ..Settings::paper() };
        let warm_up = settings.check(rows.n_rows()).expect("settings").warm_up_epochs();
        let seconds = epochs(rows, settings, n);
        let mean = |s: &[f64]| s.iter().sum::<f64>() / s.len() as f64;
        println!(
            "grey 784 × {n_hidden:<4} LVS-1 paper, {name}: {:.3} s per epoch in the first three after the warm-up, {:.3} s on average to epoch {n}",
            mean(&seconds[warm_up..warm_up + 3]),
            mean(&seconds[warm_up..])
        );
    }
}

/// Measures the time of each kernel in a PCD-1 update, on one thread.
fn split(data: &BitRows, n_hidden: usize) {
    const N_ROWS: usize = 64;
    let (isa, n_visible) = (Isa::best(), data.n_bits());
    let mut rng = Stream::new(1, 0).reader();
    let w: Vec<f32> = (0..n_visible * n_hidden).map(|_| (rng.normal() * 0.1) as f32).collect();
    let up = Affine::new(Tiles::from_rows(n_visible, n_hidden, &w), &vec![-1.0; n_hidden]);
    let down = Affine::new(up.weights().transposed(), &vec![-2.0; n_visible]);
    let draws: Vec<Draws> = (0..N_ROWS).map(|r| Stream::new(7, r as u64).at(0)).collect();
    let v = States::Bits(data.rows(0, N_ROWS));
    let (mut scratch, mut h_means) = (Scratch::default(), Tiles::zeros(N_ROWS, n_hidden));
    let (mut h, mut next) = (BitRows::zeros(N_ROWS, n_hidden), BitRows::zeros(N_ROWS, n_visible));
    let columns = Columns::new(isa, n_visible, v);
    let mut gradient = Tiles::zeros(n_visible, n_hidden);
    let mut weights = up.weights().clone();
    let mut transposed = down.weights().clone();
    let time = |mut work: Box<dyn FnMut() + '_>| best_seconds(0.2, &mut *work);
    // Two blocks of rows in each phase.
    let kernels = [
        ("means of h, data", 2.0 * time(Box::new(|| means(isa, &up, v, &mut scratch, &mut h_means)))),
        ("draw h", {
            let mut scratch = Scratch::default();
            2.0 * time(Box::new(|| {
                sample(isa, &up, v, &draws, &mut scratch, h.words_mut(), Some(&mut h_means));
            }))
        }),
        ("draw v", {
            let mut scratch = Scratch::default();
            let h = States::Bits(h.words());
            2.0 * time(Box::new(|| sample(isa, &down, h, &draws, &mut scratch, next.words_mut(), None)))
        }),
        ("turn v on its side", {
            4.0 * time(Box::new(|| {
                std::hint::black_box(Columns::new(isa, n_visible, v));
            }))
        }),
        ("outer products", {
            let mut scratch = Scratch::default();
            let mut pieces = gradient.row_blocks_mut(64);
            4.0 * time(Box::new(|| {
                for piece in pieces.chunks_mut(n_hidden.div_ceil(64)) {
                    accumulate_outer(isa, &columns, &h_means, 1e-9, &mut scratch, piece, None);
                }
            }))
        }),
        ("centring", {
            let padded = n_hidden.next_multiple_of(8);
            let (mu, a, mut of_a) = (vec![0.2; n_visible], vec![0.5; padded], vec![0.0; padded]);
            let mut of_b = vec![0.0; 64];
            time(Box::new(|| {
                for piece in &mut gradient.row_blocks_mut(64) {
                    let (rows, first) = (piece.n_rows(), piece.first_column());
                    let columns = first..padded.min(first + 64);
                    let a = &a[columns.clone()];
                    centre(
                        isa,
                        piece.as_mut_slice(),
                        (&mu[..rows], &mu[..rows]),
                        (a, a),
                        &mut of_a[columns],
                        &mut of_b[..rows],
                    );
                }
            }))
        }),
        ("step and transpose", {
            let gradient = Tiles::zeros(n_visible, n_hidden);
            time(Box::new(|| {
                plain_sgd(isa, weights.as_mut_slice(), gradient.as_slice(), 0.1, Decay::default());
                let pieces = weights.row_blocks_mut(64);
                let tiles = transposed.segments_mut(usize::MAX);
                for (from, mut to) in pieces.chunks(n_hidden.div_ceil(64)).zip(tiles) {
                    transpose(isa, from, &mut to);
                }
            }))
        }),
    ];
    let total: f64 = kernels.iter().map(|(_, s)| s).sum();
    println!(
        "  kernels of a PCD-1 update on one thread, {:.0} µs, {:.3} s an epoch:",
        total * 1e6,
        total * 430.0
    );
    for (name, seconds) in kernels {
        println!("  {name:<22} {:8.1} µs {:5.1} %", seconds * 1e6, 100.0 * seconds / total);
    }
}
