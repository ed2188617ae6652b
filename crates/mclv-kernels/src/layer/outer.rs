//! Compute outer products of states with rows of floats, and sums of states.

use super::marked::{ByState, Marks};
use super::states::{ColumnKind, Columns};
use super::sums::{Sink, run_tile};
use super::{Scratch, States};
use crate::arch::{Lanes, Simd};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::tiles::{Cell, Segment, Tiles};

/// Adds the sums, scaled, to the existing values.
struct Accumulate<'a, 'b> {
    out: &'a mut Segment<'b>,
    scale: f32,
}

impl<S: Simd> Sink<S> for Accumulate<'_, '_> {
    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, _tile: usize, cell: usize) {
        let scale = S::F32::splat(self.scale);
        let at = row * self.out.width + cell;
        for (x, to) in x.into_iter().zip(&mut self.out.cells[at..at + V]) {
            x.mul_add(scale, S::F32::load(&to.0)).store(&mut to.0);
        }
    }
}

#[inline(always)]
fn accumulate_generic<S: Simd>(
    columns: &Columns,
    right: &Tiles,
    scale: f32,
    scratch: &mut Scratch,
    out: &mut [Segment<'_>],
    mut sums: Option<&mut [f32]>,
) {
    let n_states = columns.n_rows;
    assert_eq!(right.n_rows(), n_states, "as many right-hand rows as states");
    let Scratch { lists, partial, marked, .. } = scratch;
    let units = |out: &Segment<'_>| out.first_row..out.first_row + out.n_rows();
    for out in out.chunk_by_mut(|a, b| units(a) == units(b)) {
        let units = units(&out[0]);
        assert!(units.end <= columns.n_units(), "units {units:?} of {}", columns.n_units());
        let sums = first_sums(&mut sums, units.len());
        let marks = |words| Marks { words, per_unit: words_for(n_states), units: units.clone() };
        match &columns.kind {
            ColumnKind::Bits(words) => {
                let marked = marked.bits(&marks(words));
                add_scaled(sums, scale, marked.totals.iter().copied());
                for out in out {
                    marked.add_tile::<S, _>(tile_of(right, out), &mut Accumulate { out, scale });
                }
            }
            ColumnKind::Sparse { words, values, starts } => {
                let (marks, states) = (marks(words), ByState { values, starts, n_states });
                let totals = if let [out] = out {
                    let (tile, sink) = (tile_of(right, out), &mut Accumulate { out, scale });
                    marked.add_tile_by_state::<S, _>(&marks, states, tile, sink)
                } else {
                    let (lists, totals) = marked.collect(&marks, states, lists);
                    for out in out {
                        let (tile, sink) = (tile_of(right, out), &mut Accumulate { out, scale });
                        run_tile::<S, _, false>(None, sink.out.tile, tile, lists, partial, sink);
                    }
                    totals
                };
                add_scaled(sums, scale, totals.iter().copied());
            }
            ColumnKind::Reals(values) => {
                let values = &values[units.start * n_states..units.end * n_states];
                let totals =
                    values.chunks_exact(n_states).map(|column| column.iter().fold(0.0, |sum, x| sum + x));
                add_scaled(sums, scale, totals);
                let lists = lists.list::<S>(States::Reals(values), n_states, right.n_columns());
                for out in out {
                    let (tile, sink) = (tile_of(right, out), &mut Accumulate { out, scale });
                    run_tile::<S, _, false>(None, sink.out.tile, tile, lists, partial, sink);
                }
            }
        }
    }
}

/// Takes the first `n` sums, if there are any.
#[inline(always)]
fn first_sums<'a>(sums: &mut Option<&'a mut [f32]>, n: usize) -> &'a mut [f32] {
    sums.as_mut().map_or(&mut [], |sums| sums.split_off_mut(..n).expect("a sum for each unit"))
}

#[inline(always)]
fn add_scaled(sums: &mut [f32], scale: f32, totals: impl Iterator<Item = f32>) {
    sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum = total.mul_add(scale, *sum));
}

/// Returns the tile of `right` that belongs to a piece of the outer product.
#[inline(always)]
fn tile_of<'a>(right: &'a Tiles, out: &Segment<'_>) -> (usize, &'a [Cell]) {
    let tile = right.tiles().nth(out.tile).expect("as many columns as the outer product");
    assert_eq!(tile.0, out.width, "columns of the outer product");
    tile
}

kernels! {
    /// Adds `scale · Σ_r x_r[i] · right[r]` to each row `i` of pieces of a matrix: the outer
    /// products of states with rows of floats. Also adds `scale · Σ_r x_r[i]` to `sums`, if given:
    /// one number for each of these rows.
    ///
    /// Each element is summed over the states in order, so pieces may be given to threads in any
    /// way. Pieces of the same rows should be passed together.
    ///
    /// ```
    /// use mclv_kernels::{Isa, layer::{Columns, Scratch, States, accumulate_outer}, tiles::Tiles};
    /// let columns = Columns::new(Isa::best(), 2, States::Bits(&[0b01, 0b11])); // two states of two units
    /// let right = Tiles::from_rows(2, 1, &[0.25, 0.5]);
    /// let mut out = Tiles::zeros(2, 1);
    /// accumulate_outer(Isa::best(), &columns, &right, 1.0, &mut Scratch::default(), &mut out.segments_mut(64), None);
    /// assert_eq!(out.to_rows(), [0.75, 0.5]);
    /// ```
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn accumulate_outer(
        columns: &Columns,
        right: &Tiles,
        scale: f32,
        scratch: &mut Scratch,
        out: &mut [Segment<'_>],
        sums: Option<&mut [f32]>,
    ) = accumulate_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::testing::{Case, cases};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn outer_products_equal_the_naive_loops(
            n_units in 1usize..=130, n_columns in 1usize..=130, n_rows in 1usize..=70, seed in any::<u64>(), real in any::<bool>()
        ) {
            let case = Case::new(n_units, n_columns, n_rows, seed, real);
            let right: Vec<f32> = case.w.iter().cycle().take(n_rows * n_columns).copied().collect();
            let held = case.held(real);
            let turn = |isa| held.iter().map(move |held| Columns::new(isa, n_units, held.states())).collect::<Vec<_>>();
            let turned = turn(Isa::portable());
            for isa in Isa::available() {
                prop_assert_eq!(&turn(isa), &turned);
            }
            let scale = 0.75;
            let mut expected = vec![1.0f32; n_units * n_columns];
            for i in 0..n_units {
                for j in 0..n_columns {
                    let sum = (0..n_rows).fold(0.0f32, |s, r| match case.x[r * n_units + i] {
                        0.0 => s,
                        x => x.mul_add(right[r * n_columns + j], s),
                    });
                    let e = &mut expected[i * n_columns + j];
                    *e = sum.mul_add(scale, *e);
                }
            }
            let sums: Vec<f32> = (0..n_units).map(|i| case.x.iter().skip(i).step_by(n_units).sum()).collect();
            let both = || Isa::available().into_iter().flat_map(|isa| turned.iter().map(move |columns| (isa, columns)));
            for (isa, columns) in both() {
                prop_assert_eq!(columns.n_rows(), n_rows, "{}", isa);
                let copy = {
                    let (words, values) = columns.parts();
                    Columns::from_parts(n_rows, n_units, (words.map(<[_]>::to_vec), values.map(<[_]>::to_vec)))
                };
                prop_assert_eq!(&copy, columns);
            }
            let right = Tiles::from_rows(n_rows, n_columns, &right);
            for (isa, columns) in both() {
                let ones = Tiles::from_rows(n_units, n_columns, &vec![1.0; n_units * n_columns]);
                let scratch = &mut Scratch::default();
                // The pieces of some rows together: with more than one tile, values are collected once.
                let (mut out, mut got) = (ones.clone(), vec![1.0; n_units]);
                let mut blocks = out.row_blocks_mut(1 + n_units / 3);
                accumulate_outer(isa, columns, &right, scale, scratch, &mut blocks, Some(&mut got));
                let sums: Vec<f32> = sums.iter().map(|sum| sum.mul_add(scale, 1.0)).collect();
                prop_assert_eq!(got, sums);
                prop_assert_eq!(out.to_rows(), expected.clone());
                // Each piece alone.
                let mut out = ones;
                accumulate_outer(isa, columns, &right, scale, scratch, &mut out.segments_mut(1 + n_units / 3), None);
                prop_assert_eq!(out.to_rows(), expected.clone());
            }
        }
    }
}
