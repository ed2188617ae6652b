//! Lay out matrices so that a kernel reads them in order.
//!
//! A [`Tiles`] cuts its columns into tiles of 64 (eight registers, one word of bits). A tile holds
//! its part of every row, row after row. The last tile is only as wide as needed, in steps of 8
//! columns:
//!
//! ```text
//! 3 rows × 84 columns:   tile 0: columns 0–63                   tile 1: columns 64–83, 4 of padding
//!                        row 0 │ row 1 │ row 2  (64 floats each) row 0 │ row 1 │ row 2  (24 floats each)
//! ```
//! Adding row `i` of a tile to an accumulator takes eight loads from consecutive addresses, and all
//! rows of a tile stay together in cache while many states are processed. Weights, means and
//! gradients all use this layout.

use crate::arch::{Lanes, Simd};
use crate::isa::kernels;

/// The number of units per tile, the block size of matrices and their transposes.
pub const TILE_UNITS: usize = TILE * CELL;

/// Eight floats, aligned to a register.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(32))]
pub(crate) struct Cell(pub(crate) [f32; 8]);

/// Columns per cell.
pub(crate) const CELL: usize = 8;
/// Cells per full tile.
pub(crate) const TILE: usize = 8;

/// A matrix of `f32` in tiles of 64 columns.
///
/// ```
/// use mclv_kernels::tiles::Tiles;
/// let m = Tiles::from_rows(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// assert_eq!(m.get(1, 2), 6.0);
/// assert_eq!(m.to_rows(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// assert_eq!(m.transposed().to_rows(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    n_rows: usize,
    n_columns: usize,
    cells: Vec<Cell>,
}

impl Tiles {
    /// Creates a matrix of zeros.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Self {
        Self { n_rows, n_columns, cells: vec![Cell([0.0; CELL]); n_rows * n_columns.div_ceil(CELL)] }
    }

    /// Creates a matrix from row-major values.
    ///
    /// # Panics
    /// If `values` does not hold `n_rows · n_columns` numbers.
    pub fn from_rows(n_rows: usize, n_columns: usize, values: &[f32]) -> Self {
        let mut tiles = Self::zeros(n_rows, n_columns);
        tiles.copy_from_rows(values);
        tiles
    }

    /// Overwrites the matrix with row-major values of the same shape.
    ///
    /// # Panics
    /// If `values` has another size.
    pub fn copy_from_rows(&mut self, values: &[f32]) {
        assert_eq!(
            values.len(),
            self.n_rows * self.n_columns,
            "values for {} × {}",
            self.n_rows,
            self.n_columns
        );
        if self.n_columns == 0 {
            return;
        }
        for (r, row) in values.chunks_exact(self.n_columns).enumerate() {
            for (k, part) in row.chunks(CELL).enumerate() {
                let at = self.cell_index(r, k);
                self.cells[at].0[..part.len()].copy_from_slice(part);
            }
        }
    }

    /// Changes the number of rows. All elements are then arbitrary. Memory is reused.
    pub fn set_n_rows(&mut self, n_rows: usize) {
        self.n_rows = n_rows;
        self.cells.resize(n_rows * self.n_columns.div_ceil(CELL), Cell([0.0; CELL]));
    }

    /// Returns the matrix as row-major values.
    pub fn to_rows(&self) -> Vec<f32> {
        let mut values = Vec::new();
        self.write_rows(&mut values);
        values
    }

    /// Replaces `values` by the row-major values of the matrix.
    pub fn write_rows(&self, values: &mut Vec<f32>) {
        values.clear();
        self.append_rows(values);
    }

    /// Appends the row-major values of the matrix to `values`.
    pub fn append_rows(&self, values: &mut Vec<f32>) {
        let n = self.n_columns;
        let from = values.len();
        values.resize(from + self.n_rows * n, 0.0);
        let values = &mut values[from..];
        for (t, (width, cells)) in self.tiles().enumerate() {
            let first = t * TILE * CELL;
            let n_here = (width * CELL).min(n - first);
            for (r, row) in cells.chunks_exact(width).enumerate() {
                let to = &mut values[r * n + first..][..n_here];
                for (to, cell) in to.chunks_mut(CELL).zip(row) {
                    to.copy_from_slice(&cell.0[..to.len()]);
                }
            }
        }
    }

    /// Returns the elements of one row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        let cells =
            (0..self.n_columns.div_ceil(CELL)).flat_map(move |k| self.cells[self.cell_index(row, k)].0);
        cells.take(self.n_columns)
    }

    /// Returns the transposed matrix.
    pub fn transposed(&self) -> Self {
        let mut out = Self::zeros(self.n_columns, self.n_rows);
        for r in 0..self.n_rows {
            for (c, x) in self.row(r).enumerate() {
                let at = out.cell_index(c, r / CELL);
                out.cells[at].0[r % CELL] = x;
            }
        }
        out
    }

    /// Cuts the matrix into pieces of at most `n_rows` rows of one tile each, which can be written
    /// in parallel.
    ///
    /// ```
    /// use mclv_kernels::tiles::Tiles;
    /// let mut m = Tiles::zeros(100, 70);
    /// let pieces = m.segments_mut(64);
    /// assert_eq!(pieces.len(), 4); // two ranges of rows × two tiles
    /// assert_eq!((pieces[1].first_row(), pieces[1].n_rows(), pieces[1].first_column()), (64, 36, 0));
    /// ```
    pub fn segments_mut(&mut self, n_rows: usize) -> Vec<Segment<'_>> {
        let mut segments = Vec::new();
        let (all_rows, n_tiles) = (self.n_rows, self.n_columns.div_ceil(CELL * TILE));
        let widths: Vec<usize> = (0..n_tiles).map(|t| self.width(t)).collect();
        let mut rest = self.cells.as_mut_slice();
        for (tile, width) in widths.into_iter().enumerate() {
            for first_row in (0..all_rows).step_by(n_rows.max(1)) {
                let n = n_rows.min(all_rows - first_row);
                let (cells, after) = rest.split_at_mut(n * width);
                rest = after;
                segments.push(Segment { tile, first_row, width, cells });
            }
        }
        segments
    }

    /// Cuts the matrix like [`segments_mut`](Self::segments_mut), with the pieces of the same rows
    /// one after the other.
    pub fn row_blocks_mut(&mut self, n_rows: usize) -> Vec<Segment<'_>> {
        let mut segments = self.segments_mut(n_rows);
        segments.sort_by_key(|s| s.first_row);
        segments
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns one element.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        assert!(
            row < self.n_rows && column < self.n_columns,
            "({row}, {column}) of {} × {}",
            self.n_rows,
            self.n_columns
        );
        self.cells[self.cell_index(row, column / CELL)].0[column % CELL]
    }

    /// Returns the sum of each column over the rows, rows in order.
    pub fn column_sums(&self) -> Vec<f32> {
        let mut sums = Vec::with_capacity(self.n_columns);
        for (width, cells) in self.tiles() {
            let mut here = [[0.0; CELL]; TILE];
            for row in cells.chunks_exact(width) {
                for (sum, cell) in here.iter_mut().zip(row) {
                    for (s, x) in sum.iter_mut().zip(cell.0) {
                        *s += x;
                    }
                }
            }
            sums.extend(here[..width].as_flattened());
        }
        sums.truncate(self.n_columns);
        sums
    }

    /// Sets every element, including padding, to zero.
    pub fn clear(&mut self) {
        self.cells.fill(Cell([0.0; CELL]));
    }

    /// Returns all numbers in memory order, including padding, for element-wise work on matrices of
    /// one shape.
    pub fn as_slice(&self) -> &[f32] {
        cells_as_floats(&self.cells)
    }

    /// Returns all numbers in memory order for writing, including padding. Keep the padding as it
    /// is.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        cells_as_floats_mut(&mut self.cells)
    }

    /// Returns the tiles as `(cells per row, cells)`.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = (usize, &[Cell])> {
        (0..self.n_columns.div_ceil(CELL * TILE)).map(|t| {
            let from = t * TILE * self.n_rows;
            let width = self.width(t);
            (width, &self.cells[from..from + width * self.n_rows])
        })
    }

    /// Returns the cells of a matrix of one row, from cell `first` on.
    #[inline(always)]
    pub(crate) fn row_cells(&self, first: usize) -> &[Cell] {
        debug_assert_eq!(self.n_rows, 1, "cells of one row follow each other");
        &self.cells[first..]
    }

    /// Sets the padding columns.
    #[cfg(test)]
    pub(crate) fn fill_padding(&mut self, x: f32) {
        let n_last = self.n_columns % CELL;
        if n_last > 0 {
            for row in 0..self.n_rows {
                let at = self.cell_index(row, self.n_columns / CELL);
                self.cells[at].0[n_last..].fill(x);
            }
        }
    }

    /// Copies row `from` of another matrix to row `to`.
    ///
    /// # Panics
    /// If the matrices do not have the same number of columns, or if a row does not exist.
    pub fn copy_row(&mut self, to: usize, other: &Self, from: usize) {
        assert_eq!(self.n_columns, other.n_columns, "rows of the same length");
        assert!(to < self.n_rows && from < other.n_rows, "row {from} of {}", other.n_rows);
        for cell in 0..self.n_columns.div_ceil(CELL) {
            let at = self.cell_index(to, cell);
            self.cells[at] = other.cells[other.cell_index(from, cell)];
        }
    }

    /// Exchanges two rows.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn swap_rows(&mut self, r: usize, s: usize) {
        assert!(r < self.n_rows && s < self.n_rows, "rows {r} and {s} of {}", self.n_rows);
        for cell in 0..self.n_columns.div_ceil(CELL) {
            let (a, b) = (self.cell_index(r, cell), self.cell_index(s, cell));
            self.cells.swap(a, b);
        }
    }

    /// Returns `n` cells of row `row` for writing, from cell `cell` of tile `tile` on.
    #[inline(always)]
    pub(crate) fn cells_mut(&mut self, row: usize, tile: usize, cell: usize, n: usize) -> &mut [Cell] {
        let at = self.cell_index(row, tile * TILE + cell);
        &mut self.cells[at..at + n]
    }

    /// Returns the number of cells per row of tile `t`.
    #[inline(always)]
    fn width(&self, t: usize) -> usize {
        TILE.min(self.n_columns.div_ceil(CELL) - t * TILE)
    }

    #[inline(always)]
    fn cell_index(&self, row: usize, cell: usize) -> usize {
        let t = cell / TILE;
        t * TILE * self.n_rows + row * self.width(t) + cell % TILE
    }
}

/// Some rows of one tile of a matrix, for writing.
#[derive(Debug)]
pub struct Segment<'a> {
    pub(crate) tile: usize,
    pub(crate) first_row: usize,
    pub(crate) width: usize,
    pub(crate) cells: &'a mut [Cell],
}

impl Segment<'_> {
    /// Returns the number of the first row in the whole matrix.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// Returns the number of the first column in the whole matrix.
    pub fn first_column(&self) -> usize {
        self.tile * TILE * CELL
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.cells.len() / self.width
    }

    /// Returns the rows, padded to whole registers. The last few columns of the last tile may be
    /// padding.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.cells.chunks_exact_mut(self.width).map(cells_as_floats_mut)
    }

    /// Returns all numbers in memory order for writing, including padding. Keep the padding as it
    /// is.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        cells_as_floats_mut(self.cells)
    }

    /// Returns all numbers in memory order, including padding.
    pub fn as_slice(&self) -> &[f32] {
        cells_as_floats(self.cells)
    }

    /// Sets every element to zero.
    pub fn clear(&mut self) {
        self.cells.fill(Cell([0.0; CELL]));
    }
}

#[inline(always)]
fn transpose_generic<S: Simd>(from: &[Segment<'_>], to: &mut Segment<'_>) {
    // One cell of each of eight rows becomes one cell of eight columns.
    for from in from {
        let n_rows = from.n_rows();
        for cell in 0..from.width {
            let first = from.first_column() + CELL * cell;
            let n_columns = CELL.min(to.n_rows().saturating_sub(first));
            for group in 0..n_rows.div_ceil(CELL) {
                let mut block = [S::F32::splat(0.0); CELL];
                for (b, r) in block.iter_mut().zip(CELL * group..n_rows) {
                    *b = S::F32::load(&from.cells[r * from.width + cell].0);
                }
                let block = S::transpose(block);
                for (x, c) in block.into_iter().zip(first..first + n_columns) {
                    x.store(&mut to.cells[c * to.width + group].0);
                }
            }
        }
    }
}

kernels! {
    /// Writes the transpose of up to 64 rows of a matrix, given in pieces, into the corresponding
    /// tile of the transposed matrix.
    ///
    /// ```
    /// use mclv_kernels::{Isa, tiles::{Tiles, transpose}};
    /// let mut m = Tiles::from_rows(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// let mut t = Tiles::zeros(3, 2);
    /// transpose(Isa::best(), &m.row_blocks_mut(64), &mut t.segments_mut(usize::MAX)[0]);
    /// assert_eq!(t.to_rows(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// ```
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn transpose(from: &[Segment<'_>], to: &mut Segment<'_>) = transpose_generic;
}

fn cells_as_floats(cells: &[Cell]) -> &[f32] {
    // SAFETY: `Cell` is `repr(C)` around `[f32; 8]`; 32 bytes of size and alignment leave no gaps.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len() * CELL) }
}

fn cells_as_floats_mut(cells: &mut [Cell]) -> &mut [f32] {
    // SAFETY: `Cell` is `repr(C)` around `[f32; 8]`; 32 bytes of size and alignment leave no gaps.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast(), cells.len() * CELL) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    #[test]
    fn every_shape_survives_the_round_trip_and_transposes() {
        for (n_rows, n_columns) in
            [(0, 5), (1, 1), (3, 8), (5, 9), (2, 63), (7, 64), (4, 65), (9, 130), (130, 9), (6, 200)]
        {
            let values: Vec<f32> = (0..n_rows * n_columns).map(|i| i as f32 + 1.0).collect();
            let tiles = Tiles::from_rows(n_rows, n_columns, &values);
            assert_eq!(tiles.to_rows(), values);
            let t = tiles.transposed();
            for r in 0..n_rows {
                for c in 0..n_columns {
                    assert_eq!(tiles.get(r, c), values[r * n_columns + c]);
                    assert_eq!(t.get(c, r), tiles.get(r, c));
                }
            }
            assert_eq!(t.transposed(), tiles, "padding stays zero");
            for isa in Isa::available() {
                let (mut from, mut by_tiles) = (tiles.clone(), Tiles::zeros(n_columns, n_rows));
                let n_tiles = n_columns.div_ceil(TILE * CELL);
                for (k, to) in by_tiles.segments_mut(usize::MAX).iter_mut().enumerate() {
                    let rows = from.row_blocks_mut(TILE * CELL);
                    transpose(isa, &rows[k * n_tiles..][..n_tiles], to);
                }
                assert_eq!(by_tiles, t);
            }
            let sums: Vec<f32> = (0..n_columns).map(|c| (0..n_rows).map(|r| tiles.get(r, c)).sum()).collect();
            assert_eq!(tiles.column_sums(), sums);
            assert_eq!(tiles.as_slice().iter().filter(|&&x| x != 0.0).count(), values.len());
        }
    }
}
