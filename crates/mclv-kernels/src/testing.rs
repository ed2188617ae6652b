//! What the tests of several kernels share: cases, random numbers, oracles and comparisons.

use crate::Isa;
use crate::bits::BitRows;
use crate::layer::{Affine, SparseStates, States};
use crate::rng::{Reader, Stream};
use crate::tiles::Tiles;
use proptest::test_runner::{Config, RngSeed};
use std::fmt::Debug;

/// Property tests draw the same cases in every run. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look
/// further.
pub(crate) fn cases() -> Config {
    let config = Config { failure_persistence: None, ..Config::default() };
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(2018), ..config },
        RngSeed::Fixed(_) => config,
    }
}

/// Draws `n` normal numbers with standard deviation `scale`.
pub(crate) fn normals(rng: &mut Reader, n: usize, scale: f64) -> Vec<f32> {
    (0..n).map(|_| (rng.normal() * scale) as f32).collect()
}

/// `ln(1 + e^x)` by the functions of the standard library.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `1/(1 + e^−x)` by the functions of the standard library.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// Runs a kernel with the portable instructions and asserts that every other instruction set
/// returns the same.
pub(crate) fn on_every_isa<T: PartialEq + Debug>(kernel: impl Fn(Isa) -> T) -> T {
    let portable = kernel(Isa::portable());
    for isa in Isa::available() {
        assert_eq!(kernel(isa), portable, "{isa} differs from portable");
    }
    portable
}

/// Returns the largest of some values, or NaN if one of them is NaN or there are none. So
/// `largest(…) < limit` is false where something cannot be compared; a fold with `f64::max` would
/// pass over NaN.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
    values.into_iter().reduce(larger).unwrap_or(f64::NAN)
}

/// A random layer and random states, as plain numbers for the oracles.
pub(crate) struct Case {
    pub(crate) n_in: usize,
    pub(crate) n_out: usize,
    pub(crate) w: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) x: Vec<f32>,
}

impl Case {
    pub(crate) fn new(n_in: usize, n_out: usize, n_rows: usize, seed: u64, real: bool) -> Self {
        let mut rng = Stream::new(seed, 0).reader();
        let w = normals(&mut rng, n_in * n_out, 1.0);
        let bias = normals(&mut rng, n_out, 1.0);
        let x = (0..n_rows * n_in)
            .map(|_| match rng.uniform() {
                u if u < 0.6 => 0.0,
                u if real => u as f32,
                _ => 1.0,
            })
            .collect();
        Self { n_in, n_out, w, bias, x }
    }

    pub(crate) fn affine(&self) -> Affine {
        Affine::new(Tiles::from_rows(self.n_in, self.n_out, &self.w), &self.bias)
    }

    pub(crate) fn packed(&self) -> BitRows {
        BitRows::pack(self.n_in, &self.x, |&x| x != 0.0)
    }

    /// The states as the kernels take them, in each form that they can have.
    pub(crate) fn held(&self, real: bool) -> Vec<Held> {
        if !real {
            return vec![Held::Bits(self.packed())];
        }
        let values = self.x.iter().copied().filter(|&x| x != 0.0).collect();
        vec![Held::Reals(self.x.clone()), Held::Sparse(self.packed(), values)]
    }

    /// `b_j + Σ_i w_ij x_i`, units in order, single precision: the sum that the kernels promise.
    pub(crate) fn inputs(&self) -> Vec<f32> {
        let mut out = Vec::new();
        for row in self.x.chunks(self.n_in) {
            for j in 0..self.n_out {
                let terms = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
                out.push(terms.fold(self.bias[j], |sum, (i, &x)| x.mul_add(self.w[i * self.n_out + j], sum)));
            }
        }
        out
    }
}

/// States that own their values.
#[derive(Debug)]
pub(crate) enum Held {
    Bits(BitRows),
    Reals(Vec<f32>),
    Sparse(BitRows, Vec<f32>),
}

impl Held {
    pub(crate) fn states(&self) -> States<'_> {
        match self {
            Self::Bits(rows) => States::Bits(rows.words()),
            Self::Reals(values) => States::Reals(values),
            Self::Sparse(marks, values) => States::Sparse(SparseStates { words: marks.words(), values }),
        }
    }
}

#[test]
fn the_largest_value_is_nan_if_any_is() {
    assert_eq!(largest([1.0, 3.0, 2.0]), 3.0);
    for values in [[f64::NAN, 0.0, 1.0], [0.0, f64::NAN, 1.0], [0.0, 1.0, f64::NAN]] {
        assert!(largest(values).is_nan());
    }
    assert!(largest([]).is_nan());
}
