//! Block-Gibbs step h → v → h' (both layers sampled) against its own floor: the random numbers and sigmoids
//! alone. Run on a quiet machine: `cargo run --release -p mclv-benches --bin gibbs`.

use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::bits::{BitRows, words_for};
use mclv_kernels::layer::{Affine, Scratch, States, sample};
use mclv_kernels::rng::{Draws, Stream};
use mclv_kernels::tiles::Tiles;

/// States per call: what a block of chains has.
const N_ROWS: usize = 64;

fn main() {
    println!("{}", machine());
    println!(
        "{:>6} {:>8} {:>8} {:>12} {:>12} {:>7}",
        "isa", "visible", "hidden", "step ns", "floor ns", "ratio"
    );
    for isa in Isa::available().into_iter().rev() {
        for (n_visible, n_hidden) in [(784, 16), (784, 32), (784, 64), (784, 500), (64, 32)] {
            step(isa, n_visible, n_hidden);
        }
    }
}

/// About a fifth of the visible and half of the hidden units on, as in models of MNIST: the cost depends on little else.
fn step(isa: Isa, n_visible: usize, n_hidden: usize) {
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
    let draws =
        |step: u32| -> Vec<Draws> { (0..N_ROWS).map(|r| Stream::new(7, r as u64).at(step)).collect() };
    let mut t = 0;
    let seconds = best_seconds(1.0, || {
        for _ in 0..4 {
            sample(isa, &down, States::Bits(h.words()), &draws(t), &mut scratch, v.words_mut(), None);
            sample(isa, &up, States::Bits(v.words()), &draws(t + 1), &mut scratch, h.words_mut(), None);
            t += 2;
        }
    }) / 4.0;
    let on = |rows: &BitRows| {
        rows.words().iter().map(|w| w.count_ones()).sum::<u32>() as f64 / (N_ROWS * rows.n_bits()) as f64
    };

    // As many units as one step draws, in one long layer that reads nothing.
    let n_units = 16 * (n_visible + n_hidden);
    let alone = Affine::new(Tiles::zeros(1, n_units), &vec![0.3; n_units]);
    let mut bits = vec![0; words_for(n_units)];
    let floor = best_seconds(1.0, || {
        sample(isa, &alone, States::Bits(&[0]), &draws(t)[..1], &mut scratch, &mut bits, None);
        t += 1;
    }) / 16.0;
    println!(
        "{:>6} {n_visible:>8} {n_hidden:>8} {:>12.0} {:>12.0} {:>7.2}   ({:.0} % of visible, {:.0} % of hidden on)",
        isa.name().split('+').next().unwrap_or_default(),
        seconds / N_ROWS as f64 * 1e9,
        floor * 1e9,
        seconds / N_ROWS as f64 / floor,
        100.0 * on(&v),
        100.0 * on(&h),
    );
}
