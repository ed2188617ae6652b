//! Compare inputs `b + Wᵀx` of dense real states by our kernel with a general matrix product (the
//! `gemm` crate), on one thread: `cargo run --release -p mclv-benches --bin dense`.

use mclv_benches::{best_seconds, machine};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Affine, Scratch, States, inputs};
use mclv_kernels::rng::Stream;
use mclv_kernels::tiles::Tiles;

fn main() {
    println!("{}", machine());
    for (n_in, n_out) in [(784, 32), (784, 500), (500, 784), (32, 784)] {
        for density in [0.19, 1.0] {
            compare(n_in, n_out, density);
        }
    }
}

fn compare(n_in: usize, n_out: usize, density: f64) {
    const N_ROWS: usize = 64;
    let mut rng = Stream::new(1, 0).reader();
    let w: Vec<f32> = (0..n_in * n_out).map(|_| rng.normal() as f32).collect();
    let x: Vec<f32> = (0..N_ROWS * n_in)
        .map(|_| if rng.uniform() < density { rng.uniform() as f32 } else { 0.0 })
        .collect();
    let affine = Affine::new(Tiles::from_rows(n_in, n_out, &w), &vec![0.0; n_out]);
    let mut out = Tiles::zeros(N_ROWS, n_out);
    let mut scratch = Scratch::default();
    let ours = best_seconds(0.5, || {
        inputs(Isa::best(), &affine, States::Reals(&x), &mut scratch, &mut out);
    });
    let mut product = vec![0.0f32; N_ROWS * n_out];
    let theirs = best_seconds(0.5, || {
        // SAFETY: all three matrices are row-major vectors of exactly these sizes.
        unsafe {
            gemm::gemm(
                N_ROWS,
                n_out,
                n_in,
                product.as_mut_ptr(),
                1,
                n_out as isize,
                false,
                x.as_ptr(),
                1,
                n_in as isize,
                w.as_ptr(),
                1,
                n_out as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    });
    println!(
        "{n_in:>4} → {n_out:<4} {:>3.0} % non-zero: ours {:7.1} µs, gemm {:7.1} µs, ratio {:.2}",
        100.0 * density,
        1e6 * ours,
        1e6 * theirs,
        ours / theirs
    );
}
