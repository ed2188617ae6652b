//! Compare a block-Gibbs step h → v → h' (both layers sampled) with the best that the machine can
//! do: the random numbers and sigmoids alone, plus the additions of weights at the speed of the
//! first-level cache.
//!
//! Run on a quiet machine: `cargo run --release -p mclv-benches --bin gibbs`.

use mclv_benches::limit::{N_ROWS, addition, drawing, draws};
use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::bits::BitRows;
use mclv_kernels::layer::{Affine, Scratch, States, sample};
use mclv_kernels::rng::Stream;
use mclv_kernels::tiles::Tiles;

fn main() {
    println!("{}", machine());
    println!(
        "{:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>7}",
        "isa", "visible", "hidden", "step ns", "draws ns", "adds ns", "ratio"
    );
    for isa in Isa::available().into_iter().rev() {
        let add = addition(isa);
        for (n_visible, n_hidden) in [(784, 16), (784, 32), (784, 64), (784, 500), (64, 32)] {
            step(isa, n_visible, n_hidden, add);
        }
    }
}

/// Measures a step with about a fifth of the visible and half of the hidden units on, as in models
/// of MNIST. The cost depends on little else.
fn step(isa: Isa, n_visible: usize, n_hidden: usize, add: f64) {
    let mut rng = Stream::new(1, 0).reader();
    let scale = 0.1;
    let w: Vec<f32> = (0..n_visible * n_hidden).map(|_| (rng.normal() * scale) as f32).collect();
    let b: Vec<f32> = (0..n_visible).map(|_| (rng.normal() - 2.0) as f32).collect();
    // Centred: hidden units are on half of the time.
    let a: Vec<f32> =
        (0..n_hidden).map(|j| (0..n_visible).map(|i| -0.2 * w[i * n_hidden + j]).sum()).collect();
    let up = Affine::new(Tiles::from_rows(n_visible, n_hidden, &w), &a);
    let down = Affine::new(up.weights().transposed(), &b);
    let mut v = BitRows::zeros(N_ROWS, n_visible);
    let mut h = BitRows::zeros(N_ROWS, n_hidden);
    let mut scratch = Scratch::default();
    let mut t = 0;
    let seconds = best_seconds(1.0, || {
        for _ in 0..4 {
            sample(isa, &down, States::Bits(h.words()), &draws(t), &mut scratch, v.words_mut(), None);
            sample(isa, &up, States::Bits(v.words()), &draws(t + 1), &mut scratch, h.words_mut(), None);
            t += 2;
        }
    }) / (4 * N_ROWS) as f64;
    let on = |rows: &BitRows| {
        rows.words().iter().map(|w| w.count_ones()).sum::<u32>() as f64 / (N_ROWS * rows.n_bits()) as f64
    };
    let cells = |n: usize| n.div_ceil(8) as f64;
    let n_adds = on(&h) * n_hidden as f64 * cells(n_visible) + on(&v) * n_visible as f64 * cells(n_hidden);
    let (floor, adds) = (drawing(isa, n_visible) + drawing(isa, n_hidden), n_adds * add);
    println!(
        "{:>8} {n_visible:>8} {n_hidden:>8} {:>9.0} {:>9.0} {:>9.0} {:>7.2}   ({:.0} % of visible, {:.0} % of hidden on)",
        isa.name().split('+').next().unwrap_or_default(),
        seconds * 1e9,
        floor * 1e9,
        adds * 1e9,
        seconds / (floor + adds),
        100.0 * on(&v),
        100.0 * on(&h),
    );
}
