//! Compute outer products of states with rows of floats, and sums of states.

use super::Scratch;
use super::states::{ColumnKind, Columns};
use super::sums::{Sink, run_tile};
use crate::arch::{Lanes, Simd};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::tiles::{Segment, Tiles};

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
fn column_sums_generic<S: Simd>(columns: &Columns) -> Vec<f32> {
    match &columns.kind {
        ColumnKind::Bits(words) => {
            let count = |column: &[u64]| column.iter().map(|w| w.count_ones()).sum::<u32>() as f32;
            words.chunks_exact(words_for(columns.n_rows)).map(count).collect()
        }
        ColumnKind::Reals(values) => {
            values.chunks_exact(columns.n_rows).map(|column| column.iter().sum()).collect()
        }
        ColumnKind::Sparse { spans, values, .. } => {
            spans.iter().map(|&[from, to]| values[from..to].iter().fold(0.0, |sum, x| sum + x)).collect()
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
) {
    assert_eq!(right.n_rows(), columns.n_rows, "as many right-hand rows as states");
    let units = |out: &Segment<'_>| out.first_row..out.first_row + out.n_rows();
    for out in out.chunk_by_mut(|a, b| units(a) == units(b)) {
        let lists = columns.list::<S>(units(&out[0]), right.n_columns(), &mut scratch.lists);
        for out in out {
            let tile = right.tiles().nth(out.tile).expect("as many columns as the outer product");
            assert_eq!(tile.0, out.width, "columns of the outer product");
            let sink = &mut Accumulate { out, scale };
            run_tile::<S, _, false>(None, sink.out.tile, tile, lists, &mut scratch.partial, sink);
        }
    }
}

kernels! {
    /// Returns the sum of each unit over the states.
    pub fn column_sums(columns: &Columns) -> Vec<f32> = column_sums_generic;

    /// Adds `scale · Σ_r x_r[i] · right[r]` to each row `i` of pieces of a matrix: the outer
    /// products of states with rows of floats.
    ///
    /// Each element is summed over the states in order, so pieces may be given to threads in any
    /// way. Pieces of the same rows should be passed together.
    ///
    /// ```
    /// use mclv_kernels::{Isa, layer::{Columns, Scratch, States, accumulate_outer}, tiles::Tiles};
    /// let columns = Columns::new(2, States::Bits(&[0b01, 0b11])); // two states of two units
    /// let right = Tiles::from_rows(2, 1, &[0.25, 0.5]);
    /// let mut out = Tiles::zeros(2, 1);
    /// accumulate_outer(Isa::best(), &columns, &right, 1.0, &mut Scratch::default(), &mut out.segments_mut(64));
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
            let turned: Vec<Columns> = held.iter().map(|held| Columns::new(n_units, held.states())).collect();
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
                prop_assert_eq!(&column_sums(isa, columns), &sums);
                let copy = Columns::from_values(n_rows, n_units, columns.values());
                prop_assert_eq!(&copy, columns);
            }
            let right = Tiles::from_rows(n_rows, n_columns, &right);
            for (isa, columns) in both() {
                let mut out = Tiles::from_rows(n_units, n_columns, &vec![1.0; n_units * n_columns]);
                let mut pieces = out.segments_mut(1 + n_units / 3);
                accumulate_outer(isa, columns, &right, scale, &mut Scratch::default(), &mut pieces);
                prop_assert_eq!(out.to_rows(), expected.clone());
            }
        }
    }
}
