//! Draw the bits of a layer, and weigh it, at any temperature, from stored inputs.
//!
//! A unit whose stored input is `x` has the input `(1 − β)·base + βx` at the inverse temperature
//! `β`. The product with the weights is made once for a state, and serves all temperatures and all
//! bases.

use super::Scratch;
use super::sample::{Sample, mask_padding};
use super::sums::Sink;
use crate::arch::{F64Lanes, Lanes, Simd};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::math::exp_normal;
use crate::rng::Draws;
use crate::tiles::{CELL, Cell, TILE, Tiles};

/// The bases of the states of a block.
#[derive(Clone, Copy, Debug)]
pub struct Bases<'a> {
    /// The bases, one row each. Without any, the base is 0.
    pub rows: &'a [Tiles],
    /// The number of the base of each state.
    pub of_state: &'a [u32],
}

impl<'a> Bases<'a> {
    /// Returns the base of a state. `None` means 0.
    #[inline(always)]
    fn of(&self, state: usize) -> Option<&'a Tiles> {
        (!self.rows.is_empty()).then(|| &self.rows[self.of_state[state] as usize])
    }
}

/// Returns `(1 − β)·base + βx` of some cells. Without a base it is `βx`.
#[inline(always)]
fn heated<S: Simd, const V: usize>(x: &[Cell], base: Option<&[Cell]>, beta: f32) -> [S::F32; V] {
    let mut y = [S::F32::splat(0.0); V];
    let (beta, rest) = (S::F32::splat(beta), S::F32::splat(1.0 - beta));
    for (c, y) in y.iter_mut().enumerate() {
        let x = S::F32::load(&x[c].0);
        *y = match base {
            Some(base) => x.mul_add(beta, S::F32::load(&base[c].0).mul(rest)),
            None => x.mul(beta),
        };
    }
    y
}

/// Returns the cells of a base from cell `first` on.
#[inline(always)]
fn cells_from(base: Option<&Tiles>, first: usize) -> Option<&[Cell]> {
    base.map(|base| base.row_cells(first))
}

#[inline(always)]
fn sample_at_generic<S: Simd>(
    inputs: &Tiles,
    bases: Bases<'_>,
    betas: &[f32],
    draws: &[Draws],
    scratch: &mut Scratch,
    bits: &mut [u64],
) {
    let (n_rows, n_units) = (inputs.n_rows(), inputs.n_columns());
    assert_eq!((betas.len(), draws.len()), (n_rows, n_rows), "a temperature and draws for each state");
    assert_eq!(bases.of_state.len(), n_rows, "the number of a base for each state");
    assert_eq!(bits.len(), n_rows * words_for(n_units), "room for the sampled states");
    bases.rows.iter().for_each(|base| check_base(inputs, Some(base)));
    bits.fill(0);
    let mut sink = Sample::new(bits, n_units, draws, &mut scratch.tile_draws);
    for (t, (width, tile)) in inputs.tiles().enumerate() {
        Sink::<S>::begin(&mut sink, t, width);
        for ((row, cells), &beta) in tile.chunks_exact(width).enumerate().zip(betas) {
            let base = bases.of(row);
            let mut c = 0;
            while c < width {
                let (x, base) = (&cells[c..], cells_from(base, t * TILE + c));
                c += match width - c {
                    8.. => put::<S, 8>(&mut sink, heated::<S, 8>(x, base, beta), row, t, c),
                    4.. => put::<S, 4>(&mut sink, heated::<S, 4>(x, base, beta), row, t, c),
                    2.. => put::<S, 2>(&mut sink, heated::<S, 2>(x, base, beta), row, t, c),
                    _ => put::<S, 1>(&mut sink, heated::<S, 1>(x, base, beta), row, t, c),
                };
            }
        }
    }
    mask_padding(bits, n_units);
}

#[inline(always)]
fn put<S: Simd, const V: usize>(
    sink: &mut Sample<'_>,
    x: [S::F32; V],
    row: usize,
    tile: usize,
    cell: usize,
) -> usize {
    Sink::<S>::put(sink, x, row, tile, cell);
    V
}

#[inline(always)]
fn log_weight_at_generic<S: Simd>(inputs: &Tiles, base: Option<&Tiles>, row: usize, beta: f64) -> f64 {
    assert!(beta >= 0.0, "a temperature of {beta}");
    check_base(inputs, base);
    let (zero, one, limit) = (S::F32::splat(0.0), S::F32::splat(1.0), S::F32::splat(-87.0));
    // Σ ln(1 + e^y) = Σ max(y, 0) + ln Π (1 + e^−|y|).
    let (mut linear, mut product, mut logs) = ([S::F64::splat(0.0); 2], 1.0, 0.0);
    for (t, (width, tile)) in inputs.tiles().enumerate() {
        let mut lanes = one;
        for (c, cell) in tile[row * width..][..width].iter().enumerate() {
            let cell = std::slice::from_ref(cell);
            let [mut y] = heated::<S, 1>(cell, cells_from(base, t * TILE + c), beta as f32);
            let n_units = inputs.n_columns() - (t * TILE + c) * CELL;
            if n_units < CELL {
                y = without_padding::<S>(y, n_units);
            }
            let e = exp_normal(zero.sub(y.abs()).max(limit));
            lanes = lanes.mul_add(e, lanes);
            // Without a base, the part max(βx, 0) is multiplied by β in double precision.
            let positive = if base.is_some() { y } else { S::F32::load(&cell[0].0) };
            let mut halves = [0.0; CELL];
            positive.max(zero).store(&mut halves);
            let (halves, _) = halves.as_chunks::<4>();
            linear = [linear[0].add(S::F64::widen(&halves[0])), linear[1].add(S::F64::widen(&halves[1]))];
        }
        let mut factors = [0.0; CELL];
        lanes.store(&mut factors);
        let p = factors.map(f64::from);
        product *= ((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]));
        if product > 1e200 {
            logs += product.ln();
            product = 1.0;
        }
    }
    let mut sums = [0.0; 4];
    linear[0].add(linear[1]).store(&mut sums);
    let linear = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    (if base.is_some() { linear } else { beta * linear }) + logs + product.ln()
}

/// Sets the inputs of padding units to −∞.
#[inline(always)]
fn without_padding<S: Simd>(y: S::F32, n_units: usize) -> S::F32 {
    let mut lanes = [0.0; CELL];
    y.store(&mut lanes);
    lanes[n_units..].fill(f32::NEG_INFINITY);
    S::F32::load(&lanes)
}

fn check_base(inputs: &Tiles, base: Option<&Tiles>) {
    if let Some(base) = base {
        assert_eq!((base.n_rows(), base.n_columns()), (1, inputs.n_columns()), "one base for each unit");
    }
}

kernels! {
    /// Draws each unit of state `r` from `σ((1 − β_r)·base + β_r x)`, where `x` are the stored inputs
    /// of the state.
    ///
    /// ```
    /// use mclv_kernels::{Isa, layer::{Bases, Scratch, sample_at}, rng::Stream, tiles::Tiles};
    /// let (inputs, base) = (Tiles::from_rows(1, 2, &[400.0, -400.0]), Tiles::from_rows(1, 2, &[-200.0, 0.0]));
    /// let mut bits = [0];
    /// let draws = [Stream::new(1, 0).at(0)];
    /// let bases = Bases { rows: &[base], of_state: &[0] };
    /// sample_at(Isa::best(), &inputs, bases, &[0.5], &draws, &mut Scratch::default(), &mut bits);
    /// assert_eq!(bits, [0b01]);
    /// ```
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn sample_at(
        inputs: &Tiles,
        bases: Bases<'_>,
        betas: &[f32],
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
    ) = sample_at_generic;

    /// Computes `Σ_j softplus((1 − β)·base_j + βx_j)` of the stored inputs of one state: what the units of
    /// a layer add to the logarithm of the state's weight. Exponentials have single precision.
    ///
    /// The error is below `10⁻⁶` per unit, and the same for the same inputs, so that it cancels from
    /// ratios at close temperatures.
    ///
    /// # Panics
    /// If the sizes do not fit, or if `beta` is negative.
    pub fn log_weight_at(inputs: &Tiles, base: Option<&Tiles>, row: usize, beta: f64) -> f64 = log_weight_at_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::bits::BitRows;
    use crate::layer::sample::tests::naive_bit;
    use crate::rng::Stream;
    use crate::testing::{cases, normals, on_every_isa, softplus};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn bits_and_weights_equal_those_of_scaled_inputs(
            n_units in 1usize..=200, n_rows in 1usize..=20, seed in any::<u64>(), n_bases in 0usize..=2
        ) {
            let mut rng = Stream::new(seed, 0).reader();
            let x = normals(&mut rng, n_rows * n_units, 4.0);
            let bases: Vec<Vec<f32>> = (0..n_bases).map(|_| normals(&mut rng, n_units, 2.0)).collect();
            let of_state: Vec<u32> = (0..n_rows).map(|r| (r % n_bases.max(1)) as u32).collect();
            let of_base = |r: usize, j: usize| bases.get(of_state[r] as usize).map(|base| base[j]);
            // The first state has temperature 0, at which padding must not matter either.
            let betas: Vec<f32> = (0..n_rows).map(|r| r as f32 / 7.0).collect();
            let mut inputs = Tiles::from_rows(n_rows, n_units, &x);
            inputs.fill_padding(f32::NEG_INFINITY);
            let tiles: Vec<Tiles> = bases.iter().map(|base| Tiles::from_rows(1, n_units, base)).collect();
            let draws: Vec<Draws> = (0..n_rows).map(|r| Stream::new(seed, r as u64).at(3)).collect();
            let mut expected = BitRows::zeros(n_rows, n_units);
            for (k, &x) in x.iter().enumerate() {
                let (r, j) = (k / n_units, k % n_units);
                // The sign of a zero counts.
                let y = match of_base(r, j) {
                    Some(base) => x.mul_add(betas[r], base * (1.0 - betas[r])),
                    None => x * betas[r],
                };
                expected.set(r, j, naive_bit(y, draws[r], j));
            }
            for isa in Isa::available() {
                let mut bits = BitRows::zeros(n_rows, n_units);
                let bases = Bases { rows: &tiles, of_state: &of_state };
                sample_at(isa, &inputs, bases, &betas, &draws, &mut Scratch::default(), bits.words_mut());
                prop_assert_eq!(&bits, &expected);
            }
            for (r, (row, &beta)) in x.chunks(n_units).zip(&betas).enumerate() {
                let beta = f64::from(beta);
                let y = |(j, &x): (usize, &f32)| {
                    (1.0 - beta) * f64::from(of_base(r, j).unwrap_or(0.0)) + beta * f64::from(x)
                };
                let naive: f64 = row.iter().enumerate().map(|x| softplus(y(x))).sum();
                let base = tiles.get(of_state[r] as usize);
                let got = on_every_isa(|isa| log_weight_at(isa, &inputs, base, r, beta));
                prop_assert!((got - naive).abs() < 1e-6 * n_units as f64, "{} {}", got, naive);
            }
        }
    }
}
