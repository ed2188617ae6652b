//! Compute logarithms of the marginal weights of states, quickly and in single precision.

use super::lists::Lists;
use super::log_weights::linear_terms;
use super::sample::INPUT_LIMIT;
use super::sums::{Sink, base, piece};
use super::{Affine, Scratch, States};
use crate::arch::{F32Lanes, Lanes, Simd};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::math::exp_normal;
use crate::tiles::{CELL, Cell, TILE};

#[inline(always)]
fn quick_log_weights_generic<S: Simd>(
    affine: &Affine,
    bias_in: &[f32],
    states: States<'_>,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    assert_eq!(bias_in.len(), affine.n_in(), "one bias for each unit read");
    assert_eq!(out.len(), states.n_rows(affine.n_in()), "room for one number for each state");
    let Scratch { lists, partial, table, .. } = scratch;
    let lists = lists.list::<S>(states, affine.n_in(), affine.n_out());
    linear_terms(bias_in, lists, out);
    let mut sums = PieceSums {
        states,
        lists,
        partial,
        table,
        products: Products::new(out.len()),
        by_sums: SoftplusSum { sums: vec![0.0; out.len()], products: vec![1.0; out.len()] },
    };
    for (t, (width, tile)) in affine.weights.tiles().enumerate() {
        let bias = &affine.bias[t * TILE..][..width];
        let mut offset = 0;
        while offset < width {
            let at = [t, width, offset];
            offset += match width - offset {
                4.. => sums.add::<S, 4>(bias, tile, at),
                2.. => sums.add::<S, 2>(bias, tile, at),
                _ => sums.add::<S, 1>(bias, tile, at),
            };
        }
    }
    let PieceSums { products, by_sums, .. } = sums;
    for (r, out) in out.iter_mut().enumerate() {
        *out += products.log(r) + by_sums.sums[r] + by_sums.products[r].ln();
    }
}

/// The number of states from which tables of products save time.
const MIN_STATES: usize = 32;

/// The sums over the pieces of a layer so far, and what it takes to add a piece.
struct PieceSums<'a> {
    states: States<'a>,
    lists: Lists<'a>,
    partial: &'a mut Vec<Cell>,
    table: &'a mut Vec<Cell>,
    products: Products,
    by_sums: SoftplusSum,
}

impl PieceSums<'_> {
    /// Adds `V` cells of `Σ ln(1 + e^x)`. If no exponential can overflow and there are enough bit
    /// states, it is computed as `ln Π (1 + Π e^w)`, with the inner products over four units at a time
    /// from a table.
    #[inline(always)]
    fn add<S: Simd, const V: usize>(&mut self, bias: &[Cell], tile: &[Cell], at: [usize; 3]) -> usize {
        let Self { states, lists, partial, table, products, by_sums } = self;
        let [_, width, offset] = at;
        let States::Bits(words) = *states else {
            return piece::<S, _, V, false>(Some(bias), tile, at, *lists, partial, by_sums);
        };
        let n_in = tile.len() / width;
        let mut base = base::<S, V>(Some(bias), offset);
        // No input, and no partial sum, is beyond these.
        let (zero, limit) = (S::F32::splat(0.0), S::F32::splat(INPUT_LIMIT));
        let mut beyond = zero;
        for (c, base) in base.iter_mut().enumerate() {
            // Padding has bias −∞ and no weights.
            *base = base.max(zero.sub(limit));
            let (mut low, mut high) = (*base, *base);
            for i in 0..n_in {
                let w = S::F32::load(&tile[i * width + offset + c].0);
                low = low.add(w.min(zero));
                high = high.add(w.max(zero));
            }
            beyond = beyond.or(limit.lt(high.max(zero.sub(low))));
        }
        if beyond.sign_mask() != 0 || products.factors.len() < MIN_STATES {
            return piece::<S, _, V, false>(Some(bias), tile, at, *lists, partial, by_sums);
        }

        let n_groups = n_in.div_ceil(4);
        table.resize(n_groups * 16 * V, Cell([0.0; CELL]));
        let (table, _) = table.as_chunks_mut::<V>();
        for (g, entries) in table.chunks_exact_mut(16).enumerate() {
            for c in 0..V {
                let first = if g == 0 { exp_normal(base[c]) } else { S::F32::splat(1.0) };
                first.store(&mut entries[0][c].0);
                for j in 0..4 {
                    let unit = 4 * g + j;
                    let w = if unit < n_in { S::F32::load(&tile[unit * width + offset + c].0) } else { zero };
                    let e = exp_normal(w);
                    for s in 0..1 << j {
                        S::F32::load(&entries[s][c].0).mul(e).store(&mut entries[s | 1 << j][c].0);
                    }
                }
            }
        }
        let rows = words.chunks_exact(words_for(n_in));
        for ((words, factor), exponent) in rows.zip(&mut products.factors).zip(&mut products.exponents) {
            let mut e = [S::F32::splat(1.0); V];
            for (words, &word) in table.chunks(16 * 16).zip(words) {
                for (g, entries) in words.chunks_exact(16).enumerate() {
                    let entry = &entries[(word >> (4 * g) & 15) as usize];
                    for (e, cell) in e.iter_mut().zip(entry) {
                        *e = e.mul(S::F32::load(&cell.0));
                    }
                }
            }
            let (mut product, mut exponents) = (S::F32::load(&factor.0), S::F32::load(&exponent.0));
            for e in e {
                product = S::take_exponent(product.mul_add(e, product), &mut exponents);
            }
            product.store(&mut factor.0);
            exponents.store(&mut exponent.0);
        }
        products.n_taken += V;
        V
    }
}

/// A product for each state, stored as eight mantissas and the sums of their exponents.
struct Products {
    factors: Vec<Cell>,
    /// Integers stored as floats, each with the bias of the exponents added `n_taken` times.
    exponents: Vec<Cell>,
    n_taken: usize,
}

impl Products {
    fn new(n: usize) -> Self {
        Self { factors: vec![Cell([1.0; CELL]); n], exponents: vec![Cell([0.0; CELL]); n], n_taken: 0 }
    }

    fn log(&self, row: usize) -> f64 {
        let mantissa: f64 = self.factors[row].0.iter().map(|&x| f64::from(x)).product();
        let exponent: i64 = self.exponents[row].0.iter().map(|x| i64::from(x.to_bits())).sum();
        let exponent = exponent - (127 * CELL * self.n_taken) as i64;
        mantissa.ln() + exponent as f64 * std::f64::consts::LN_2
    }
}

/// Adds `Σ softplus` of the inputs to a number for each state, up to a logarithm.
struct SoftplusSum {
    sums: Vec<f64>,
    /// `Π (1 + e^−|x|)` so far: at most 2 to the number of units.
    products: Vec<f64>,
}

impl<S: Simd> Sink<S> for SoftplusSum {
    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, _tile: usize, _cell: usize) {
        // Σ ln(1 + e^x) = Σ max(x, 0) + ln Π (1 + e^−|x|).
        let (zero, one) = (S::F32::splat(0.0), S::F32::splat(1.0));
        let limit = S::F32::splat(-87.0);
        let (mut linear, mut product) = (zero, one);
        for x in x {
            let e = exp_normal(zero.sub(x.abs()).max(limit));
            product = product.mul_add(e, product);
            linear = linear.add(x.max(zero));
        }
        let (mut sums, mut products) = ([0.0; 8], [0.0; 8]);
        linear.store(&mut sums);
        product.store(&mut products);
        let s = sums.map(f64::from);
        let p = products.map(f64::from);
        let sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
        let product = ((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]));
        self.sums[row] += sum;
        self.products[row] *= product;
        if self.products[row] > 1e200 {
            self.sums[row] += self.products[row].ln();
            self.products[row] = 1.0;
        }
    }
}

kernels! {
    /// Computes [`log_weights`](super::log_weights()) in single precision, in a tenth of the time.
    ///
    /// The error is below `10⁻⁶ · Σ_j (1 + |b_j| + Σ_i |W_ij x_i|)` up to a hundred units. Use it
    /// for ratios of weights, not for likelihoods.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn quick_log_weights(
        affine: &Affine,
        bias_in: &[f32],
        states: States<'_>,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) = quick_log_weights_generic;
}
