//! Add up the rows of a matrix that states list, tile by tile, and pass the sums to a [`Sink`].

use super::Affine;
use super::lists::{List, ListKind, Lists};
use crate::arch::{Lanes, Simd};
use crate::tiles::{CELL, Cell, TILE};

/// A receiver of the inputs of a layer.
pub(super) trait Sink<S: Simd> {
    /// Called before a tile of `width` cells begins.
    #[inline(always)]
    fn begin(&mut self, _tile: usize, _width: usize) {}

    /// Takes the inputs of `8·V` units of state `row`, from cell `cell` of tile `tile` on.
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize);
}

/// Feeds `sink` with `bias + Σ weights` of every listed state, tile by tile.
#[inline(always)]
pub(super) fn run<S: Simd, K: Sink<S>, const LARGE: bool>(
    affine: &Affine,
    lists: Lists<'_>,
    partial: &mut Vec<Cell>,
    sink: &mut K,
) {
    for (t, tile) in affine.weights.tiles().enumerate() {
        let bias = &affine.bias[t * TILE..][..tile.0];
        run_tile::<S, K, LARGE>(Some(bias), t, tile, lists, partial, sink);
    }
}

/// Processes one tile in pieces of 8, 4, 2 and 1 cells.
#[inline(always)]
pub(super) fn run_tile<S: Simd, K: Sink<S>, const LARGE: bool>(
    bias: Option<&[Cell]>,
    t: usize,
    (width, tile): (usize, &[Cell]),
    lists: Lists<'_>,
    partial: &mut Vec<Cell>,
    sink: &mut K,
) {
    sink.begin(t, width);
    if lists.kind == ListKind::Dense {
        return dense_tile::<S, K>(bias, t, (width, tile), lists, sink);
    }
    let mut offset = 0;
    while offset < width {
        offset += match width - offset {
            8.. => piece::<S, K, 8, LARGE>(bias, tile, [t, width, offset], lists, partial, sink),
            4.. => piece::<S, K, 4, LARGE>(bias, tile, [t, width, offset], lists, partial, sink),
            2.. => piece::<S, K, 2, LARGE>(bias, tile, [t, width, offset], lists, partial, sink),
            _ => piece::<S, K, 1, LARGE>(bias, tile, [t, width, offset], lists, partial, sink),
        };
    }
}

/// Processes one tile of dense states, four rows at a time, so that each weight that is read serves
/// four sums.
#[inline(always)]
fn dense_tile<S: Simd, K: Sink<S>>(
    bias: Option<&[Cell]>,
    t: usize,
    (width, tile): (usize, &[Cell]),
    lists: Lists<'_>,
    sink: &mut K,
) {
    const ROWS: usize = 4;
    let n_units = lists.n_units;
    let mut offset = 0;
    while offset < width {
        let v = if width - offset >= 2 { 2 } else { 1 };
        for (group, rows) in lists.value.chunks(ROWS * n_units.max(1)).enumerate() {
            let first = ROWS * group;
            match (v, rows.len() == ROWS * n_units) {
                (2, true) => dense_rows::<S, K, 2, ROWS>(bias, tile, [t, width, offset], rows, first, sink),
                (_, true) => dense_rows::<S, K, 1, ROWS>(bias, tile, [t, width, offset], rows, first, sink),
                (2, false) => {
                    for (r, row) in (first..).zip(rows.chunks_exact(n_units)) {
                        dense_rows::<S, K, 2, 1>(bias, tile, [t, width, offset], row, r, sink);
                    }
                }
                (_, false) => {
                    for (r, row) in (first..).zip(rows.chunks_exact(n_units)) {
                        dense_rows::<S, K, 1, 1>(bias, tile, [t, width, offset], row, r, sink);
                    }
                }
            }
        }
        offset += v;
    }
}

#[inline(always)]
fn dense_rows<S: Simd, K: Sink<S>, const V: usize, const R: usize>(
    bias: Option<&[Cell]>,
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    rows: &[f32],
    first: usize,
    sink: &mut K,
) {
    let n_units = rows.len() / R;
    let mut acc = [base::<S, V>(bias, offset); R];
    for (i, weights) in tile.chunks_exact(width).enumerate().take(n_units) {
        let weights: &[Cell; V] = weights[offset..].first_chunk().expect("a row of the tile");
        let w = weights.each_ref().map(|cell| S::F32::load(&cell.0));
        for (r, acc) in acc.iter_mut().enumerate() {
            let x = S::F32::splat(rows[r * n_units + i]);
            for (a, w) in acc.iter_mut().zip(w) {
                *a = x.mul_add(w, *a);
            }
        }
    }
    for (r, acc) in (first..).zip(acc) {
        sink.put(acc, r, t, offset);
    }
}

/// Returns the initial values of sums.
#[inline(always)]
pub(super) fn base<S: Simd, const V: usize>(bias: Option<&[Cell]>, offset: usize) -> [S::F32; V] {
    let mut base = [S::F32::splat(0.0); V];
    if let Some(bias) = bias {
        for (b, cell) in base.iter_mut().zip(&bias[offset..]) {
            *b = S::F32::load(&cell.0);
        }
    }
    base
}

/// The bytes of weights that stay in the first-level cache beside everything else.
const NEAR: usize = 16 << 10;

#[inline(always)]
pub(super) fn piece<S: Simd, K: Sink<S>, const V: usize, const LARGE: bool>(
    bias: Option<&[Cell]>,
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    lists: Lists<'_>,
    partial: &mut Vec<Cell>,
    sink: &mut K,
) -> usize {
    let base = base::<S, V>(bias, offset);
    if LARGE && lists.kind != ListKind::Dense {
        blocked_piece::<S, K, V>(base, tile, [t, width, offset], lists, partial, sink);
    } else {
        for row in 0..lists.n_rows {
            sink.put(gather::<S, V>(base, tile, width, offset, lists.row(row)), row, t, offset);
        }
    }
    V
}

/// Processes a tile that is too large for the first-level cache, part by part, some states at a
/// time. The sums and their order are the same.
#[inline(always)]
fn blocked_piece<S: Simd, K: Sink<S>, const V: usize>(
    base: [S::F32; V],
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    lists: Lists<'_>,
    partial: &mut Vec<Cell>,
    sink: &mut K,
) {
    const ROWS: usize = 32;
    let n_words = lists.n_words;
    let words_per_part = (NEAR / (64 * width * size_of::<Cell>())).max(1);
    partial.resize(ROWS * V, Cell([0.0; CELL]));
    let (sums, _) = partial.as_chunks_mut::<V>();
    for first_row in (0..lists.n_rows).step_by(ROWS) {
        let rows = first_row..lists.n_rows.min(first_row + ROWS);
        for sums in &mut *sums {
            base.into_iter().zip(sums).for_each(|(base, sum)| base.store(&mut sum.0));
        }
        for first_word in (0..n_words).step_by(words_per_part) {
            let words = first_word..(first_word + words_per_part).min(n_words);
            let near = tile.as_chunks::<V>().0.get(64 * first_word..).and_then(|rows| rows.first_chunk());
            // Each kind has a loop of its own, without the sink: the sums then stay in registers.
            match (lists.kind, near) {
                (ListKind::Ones, Some(near)) if width == V && words.len() == 1 => {
                    for (row, sums) in rows.clone().zip(&mut *sums) {
                        add_word::<S, V>(sums, near, lists.ones(row, words.clone()));
                    }
                }
                (ListKind::Ones, _) => {
                    for (row, sums) in rows.clone().zip(&mut *sums) {
                        let list = List::Ones(lists.ones(row, words.clone()));
                        add_list::<S, V>(sums, tile, width, offset, list);
                    }
                }
                _ => {
                    for (row, sums) in rows.clone().zip(&mut *sums) {
                        let (index, value) = lists.entries(row, words.clone());
                        add_list::<S, V>(sums, tile, width, offset, List::Sparse(index, value));
                    }
                }
            }
        }
        for (row, sums) in rows.zip(&*sums) {
            sink.put(sums.each_ref().map(|sum| S::F32::load(&sum.0)), row, t, offset);
        }
    }
}

/// Adds the listed rows of 64 to sums in memory. Only the last six bits of a row number count, so
/// there are no bounds to check.
#[inline(always)]
fn add_word<S: Simd, const V: usize>(sums: &mut [Cell; V], rows: &[[Cell; V]; 64], index: &[u32]) {
    let mut acc = sums.each_ref().map(|sum| S::F32::load(&sum.0));
    // Without the black box the compiler keeps the start of all lists, and reloads it in each round.
    for &i in std::hint::black_box(index) {
        add_one::<S, V>(&mut acc, &rows[i as usize % 64]);
    }
    acc.into_iter().zip(sums).for_each(|(acc, sum)| acc.store(&mut sum.0));
}

/// Adds the parts of the listed rows to sums in memory.
#[inline(always)]
fn add_list<S: Simd, const V: usize>(
    sums: &mut [Cell; V],
    tile: &[Cell],
    width: usize,
    offset: usize,
    list: List<'_>,
) {
    let acc = sums.each_ref().map(|sum| S::F32::load(&sum.0));
    let acc = gather::<S, V>(acc, tile, width, offset, list);
    acc.into_iter().zip(sums).for_each(|(acc, sum)| acc.store(&mut sum.0));
}

/// Adds to `acc` the parts of the listed rows that begin at cell `offset` of a tile `width` cells
/// wide.
#[inline(always)]
fn gather<S: Simd, const V: usize>(
    acc: [S::F32; V],
    tile: &[Cell],
    width: usize,
    offset: usize,
    list: List<'_>,
) -> [S::F32; V] {
    if width == V {
        // This is the usual case: rows are whole chunks, with one bounds check each.
        let (rows, _) = tile.as_chunks::<V>();
        gather_rows::<S, V>(acc, |i| &rows[i], list)
    } else {
        gather_rows::<S, V>(
            acc,
            |i| tile[i * width + offset..].first_chunk().expect("a row of the tile"),
            list,
        )
    }
}

#[inline(always)]
fn gather_rows<'a, S: Simd, const V: usize>(
    mut acc: [S::F32; V],
    row: impl Fn(usize) -> &'a [Cell; V],
    list: List<'_>,
) -> [S::F32; V] {
    match list {
        List::Ones(index) => {
            for &i in index {
                add_one::<S, V>(&mut acc, row(i as usize));
            }
        }
        List::Sparse(index, value) => {
            for (&i, &x) in index.iter().zip(value) {
                add_row::<S, V>(&mut acc, x, row(i as usize));
            }
        }
        List::Dense(value) => {
            for (i, &x) in value.iter().enumerate() {
                add_row::<S, V>(&mut acc, x, row(i));
            }
        }
    }
    acc
}

/// Adds a row of a tile.
#[inline(always)]
pub(super) fn add_one<S: Simd, const V: usize>(acc: &mut [S::F32; V], row: &[Cell; V]) {
    for (a, cell) in acc.iter_mut().zip(row) {
        *a = a.add(S::F32::load(&cell.0));
    }
}

/// Adds `x` times a row of a tile.
#[inline(always)]
pub(super) fn add_row<S: Simd, const V: usize>(acc: &mut [S::F32; V], x: f32, row: &[Cell; V]) {
    let x = S::F32::splat(x);
    for (a, cell) in acc.iter_mut().zip(row) {
        *a = x.mul_add(S::F32::load(&cell.0), *a);
    }
}
