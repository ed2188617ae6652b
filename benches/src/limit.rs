//! Measure what the machine can do at best: additions of weights, and random draws.

use crate::best_seconds;
use mclv_kernels::Isa;
use mclv_kernels::bits::BitRows;
use mclv_kernels::layer::{Affine, Scratch, States, inputs, sample};
use mclv_kernels::rng::{Draws, Stream};
use mclv_kernels::tiles::Tiles;

/// The number of states per call, as in a block of chains.
pub const N_ROWS: usize = 64;

/// Returns the random numbers of a step.
pub fn draws(step: u32) -> Vec<Draws> {
    (0..N_ROWS).map(|r| Stream::new(7, r as u64).at(step)).collect()
}

/// Returns the seconds to add eight weights to eight sums, all in the first-level cache.
pub fn addition(isa: Isa) -> f64 {
    let affine = Affine::new(Tiles::zeros(64, 64), &[0.0; 64]);
    let ones = [u64::MAX; N_ROWS];
    let (mut scratch, mut out) = (Scratch::default(), Tiles::zeros(N_ROWS, 64));
    let seconds = best_seconds(0.3, || inputs(isa, &affine, States::Bits(&ones), &mut scratch, &mut out));
    seconds / (N_ROWS * 64 * 8) as f64
}

/// Returns the seconds to draw `n_units` units of each state from known inputs.
pub fn drawing(isa: Isa, n_units: usize) -> f64 {
    let alone = Affine::new(Tiles::zeros(1, n_units), &vec![0.3; n_units]);
    let (mut scratch, mut bits) = (Scratch::default(), BitRows::zeros(N_ROWS, n_units));
    let mut t = 0;
    let seconds = best_seconds(0.5, || {
        t += 1;
        sample(isa, &alone, States::Bits(&[0; N_ROWS]), &draws(t), &mut scratch, bits.words_mut(), None);
    });
    seconds / N_ROWS as f64
}
