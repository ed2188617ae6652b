//! Compute one layer given the other: inputs `b + Wᵀx`, means, and Bernoulli bits.
//!
//! For each state (a packed row of bits, or a row of reals) the positions of its non-zero units are listed
//! once; then, tile by tile, the rows of `W` at those positions are added up in registers and the result is
//! turned into means or bits before it ever reaches memory. With 0/1 states this is additions only, and as
//! few as there are ones.
//!
//! # The law of a bit
//!
//! Unit `i` with input `x` is 1 with probability `σ(x)`. The *unlikely* value, of probability
//! `q = 1/(1 + e^|x|)`, is chosen if `u·(1 + e^|x|) < 1` for the unit's uniform `u` (see
//! [`rng`](crate::rng) for which one that is). `u` has a spacing of 2⁻³¹ near 0, so a tail
//! probability `q` comes out with an error of at most `2⁻³² + 2⁻²²·q`; below 2⁻³² it is 0. A NaN input gives a
//! bit like any other: look for NaN in the parameters, not here.

use crate::arch::{F64Lanes, Lanes, Simd, U64Lanes};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::math::{exp_normal, sigmoid, softplus};
use crate::rng::{Draws, MULTIPLIERS, N_ROUNDS, WEYL};
use crate::tiles::{CELL, Cell, Segment, TILE, Tiles};

/// The affine map from one layer's states to the other's inputs.
///
/// ```
/// use mclv_kernels::{Isa, layer::{Affine, Scratch, States, inputs}, tiles::Tiles};
/// // Two units below, three above; W is 2 × 3.
/// let up = Affine::new(Tiles::from_rows(2, 3, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]), &[0.5, 0.5, 0.5]);
/// let mut out = Tiles::zeros(1, 3);
/// inputs(Isa::best(), &up, States::Bits(&[0b11]), &mut Scratch::default(), &mut out);
/// assert_eq!(out.to_rows(), [11.5, 22.5, 33.5]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    weights: Tiles,
    /// Padded with −∞, so that a padding unit has mean 0 and is never on.
    bias: Vec<Cell>,
}

impl Affine {
    /// Weights as (units read × units computed), and a bias for each unit computed.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn new(weights: Tiles, bias: &[f32]) -> Self {
        let mut affine = Self { bias: vec![Cell([0.0; CELL]); bias.len().div_ceil(CELL)], weights };
        affine.set_bias(bias);
        affine
    }

    /// Replace the bias.
    ///
    /// # Panics
    /// If it has another size.
    pub fn set_bias(&mut self, bias: &[f32]) {
        assert_eq!(bias.len(), self.n_out(), "one bias for each unit");
        for (cell, part) in self.bias.iter_mut().zip(bias.chunks(CELL)) {
            cell.0 = [f32::NEG_INFINITY; CELL];
            cell.0[..part.len()].copy_from_slice(part);
        }
    }

    /// The weights.
    pub fn weights(&self) -> &Tiles {
        &self.weights
    }

    /// The weights, to be updated.
    pub fn weights_mut(&mut self) -> &mut Tiles {
        &mut self.weights
    }

    fn check(&self, states: States<'_>, out: &Tiles) {
        let wanted = (states.n_rows(self.n_in()), self.n_out());
        assert_eq!((out.n_rows(), out.n_columns()), wanted, "shape of the output");
    }

    /// Units read.
    pub fn n_in(&self) -> usize {
        self.weights.n_rows()
    }

    /// Units computed.
    pub fn n_out(&self) -> usize {
        self.weights.n_columns()
    }
}

/// Whole states of one layer, row after row.
#[derive(Clone, Copy, Debug)]
pub enum States<'a> {
    /// Packed bits: `words_for(n)` words a row.
    Bits(&'a [u64]),
    /// Real values: `n` a row.
    Reals(&'a [f32]),
}

impl States<'_> {
    fn n_rows(self, n_units: usize) -> usize {
        let (len, per_row) = match self {
            Self::Bits(words) => (words.len(), words_for(n_units)),
            Self::Reals(values) => (values.len(), n_units),
        };
        assert!(per_row > 0 && len.is_multiple_of(per_row), "{len} elements in rows of {per_row}");
        len / per_row
    }
}

/// Reusable memory: the non-zero units of each state.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Where each state's list ends.
    ends: Vec<usize>,
    index: Vec<u32>,
    /// Beside `index` for real states; not used for bits.
    value: Vec<f32>,
    kind: ListKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ListKind {
    /// `index` names the ones.
    #[default]
    Ones,
    /// `index` and `value` name the non-zeros.
    Sparse,
    /// `value` has every unit.
    Dense,
}

/// One state, as the kernels add it up.
#[derive(Clone, Copy)]
enum List<'a> {
    Ones(&'a [u32]),
    Sparse(&'a [u32], &'a [f32]),
    Dense(&'a [f32]),
}

impl Scratch {
    /// List states of `n_units` units that `n_out` sums are to be made of.
    #[inline(always)]
    fn list(&mut self, states: States<'_>, n_units: usize, n_out: usize) {
        self.ends.clear();
        match states {
            States::Bits(words) => {
                self.kind = ListKind::Ones;
                // A word's list is written eight at a time, past its end, and cut there.
                let most = words.iter().map(|w| w.count_ones() as usize).sum::<usize>() + 64;
                if self.index.len() < most {
                    self.index.resize(most, 0);
                }
                let mut n = 0;
                for row in words.chunks_exact(words_for(n_units)) {
                    for (k, &word) in row.iter().enumerate() {
                        n += list_word(word, k as u32 * 64, &mut self.index[n..]);
                    }
                    self.ends.push(n);
                }
            }
            States::Reals(values) => self.list_reals(values, n_units, n_out),
        }
    }

    #[inline(always)]
    fn list_reals(&mut self, values: &[f32], n_units: usize, n_out: usize) {
        let n_zeros: usize = values.iter().map(|&x| usize::from(x == 0.0)).sum();
        // To list an element takes about as long as to add it to 64 sums. Zeros change no sum, so the choice is free.
        if n_zeros * n_out < 64 * values.len() {
            self.kind = ListKind::Dense;
            self.value.clear();
            self.value.extend_from_slice(values);
            self.ends.extend((1..=values.len() / n_units).map(|r| r * n_units));
            return;
        }
        self.kind = ListKind::Sparse;
        let most = values.len() - n_zeros + 1;
        if self.index.len() < most {
            self.index.resize(most, 0);
        }
        if self.value.len() < most {
            self.value.resize(most, 0.0);
        }
        let mut n = 0;
        for row in values.chunks_exact(n_units) {
            for (i, &x) in row.iter().enumerate() {
                // Written always, kept if not zero: no branch to mispredict.
                self.index[n] = i as u32;
                self.value[n] = x;
                n += usize::from(x != 0.0);
            }
            self.ends.push(n);
        }
    }

    /// The lists, a row each.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = List<'_>> {
        let mut from = 0;
        self.ends.iter().map(move |&to| {
            let range = std::mem::replace(&mut from, to)..to;
            match self.kind {
                ListKind::Ones => List::Ones(&self.index[range]),
                ListKind::Sparse => List::Sparse(&self.index[range.clone()], &self.value[range]),
                ListKind::Dense => List::Dense(&self.value[range]),
            }
        })
    }
}

/// States by unit instead of by row: for each unit, in which states it is not zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    n_rows: usize,
    n_units: usize,
    kind: ColumnKind,
}

#[derive(Clone, Debug, PartialEq)]
enum ColumnKind {
    /// Packed, `words_for(n_rows)` words a unit.
    Bits(Vec<u64>),
    /// `n_rows` values a unit.
    Reals(Vec<f32>),
}

impl Columns {
    /// Turn states of `n_units` units on their side.
    ///
    /// # Panics
    /// If `states` is not a whole number of rows.
    pub fn new(n_units: usize, states: States<'_>) -> Self {
        let n_rows = states.n_rows(n_units);
        let kind = match states {
            States::Bits(words) => ColumnKind::Bits(transpose_bits(words, n_rows, n_units)),
            States::Reals(values) => ColumnKind::Reals(transpose_reals(values, n_rows, n_units)),
        };
        Self { n_rows, n_units, kind }
    }

    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.n_units
    }

    /// List the states of each unit of a range.
    #[inline(always)]
    fn list(&self, units: std::ops::Range<usize>, n_out: usize, scratch: &mut Scratch) {
        assert!(units.end <= self.n_units, "units {units:?} of {}", self.n_units);
        match &self.kind {
            ColumnKind::Bits(words) => {
                let per_unit = words_for(self.n_rows);
                let words = &words[units.start * per_unit..units.end * per_unit];
                scratch.list(States::Bits(words), self.n_rows, n_out);
            }
            ColumnKind::Reals(values) => {
                let values = &values[units.start * self.n_rows..units.end * self.n_rows];
                scratch.list(States::Reals(values), self.n_rows, n_out);
            }
        }
    }
}

/// Row-major to column-major, in blocks that stay in cache.
fn transpose_reals(values: &[f32], n_rows: usize, n_columns: usize) -> Vec<f32> {
    const BLOCK: usize = 16;
    let mut out = vec![0.0; values.len()];
    for first_row in (0..n_rows).step_by(BLOCK) {
        let rows = first_row..n_rows.min(first_row + BLOCK);
        for first_column in (0..n_columns).step_by(BLOCK) {
            for c in first_column..n_columns.min(first_column + BLOCK) {
                for r in rows.clone() {
                    out[c * n_rows + r] = values[r * n_columns + c];
                }
            }
        }
    }
    out
}

/// `n_rows` packed rows of `n_bits` bits to `n_bits` packed rows of `n_rows` bits.
fn transpose_bits(words: &[u64], n_rows: usize, n_bits: usize) -> Vec<u64> {
    let (per_row, per_column) = (words_for(n_bits), words_for(n_rows));
    let mut columns = vec![0; n_bits * per_column];
    for row_block in 0..per_column {
        let rows = row_block * 64..n_rows.min(row_block * 64 + 64);
        for word in 0..per_row {
            let mut block = [0; 64];
            for (b, r) in block.iter_mut().zip(rows.clone()) {
                *b = words[r * per_row + word];
            }
            transpose_64(&mut block);
            for (b, i) in block.iter().zip(word * 64..n_bits) {
                columns[i * per_column + row_block] = *b;
            }
        }
    }
    columns
}

/// Transpose 64 × 64 bits in place by swapping ever smaller off-diagonal blocks.
fn transpose_64(block: &mut [u64; 64]) {
    let (mut half, mut mask) = (32, 0x0000_0000_ffff_ffff_u64);
    while half > 0 {
        for k in (0..64).filter(|k| k & half == 0) {
            let swap = (block[k] >> half ^ block[k + half]) & mask;
            block[k] ^= swap << half;
            block[k + half] ^= swap;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

/// Write the positions of the ones of `word`, plus `first`, and return how many there are.
#[inline(always)]
fn list_word(mut word: u64, first: u32, index: &mut [u32]) -> usize {
    let n = word.count_ones() as usize;
    let mut at = 0;
    // Rounds of eight without a branch for each bit: a branch at a random place costs more than eight stores.
    while at < n {
        let out: &mut [u32; 8] = index[at..].first_chunk_mut().expect("room for eight");
        for slot in out {
            *slot = first + (word.trailing_zeros() & 63);
            word &= word.wrapping_sub(1);
        }
        at += 8;
    }
    n
}

/// Add up to `acc` the parts of the listed rows that begin at cell `offset` of a tile `width` cells wide.
#[inline(always)]
fn gather<S: Simd, const V: usize>(
    acc: [S::F32; V],
    tile: &[Cell],
    width: usize,
    offset: usize,
    list: List<'_>,
) -> [S::F32; V] {
    if width == V {
        // The rule: rows are then whole chunks, with one bounds check each.
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
                for (a, cell) in acc.iter_mut().zip(row(i as usize)) {
                    *a = a.add(S::F32::load(&cell.0));
                }
            }
        }
        List::Sparse(index, value) => {
            for (&i, &x) in index.iter().zip(value) {
                acc = add_row::<S, V>(acc, x, row(i as usize));
            }
        }
        List::Dense(value) => {
            for (i, &x) in value.iter().enumerate() {
                acc = add_row::<S, V>(acc, x, row(i));
            }
        }
    }
    acc
}

#[inline(always)]
fn add_row<S: Simd, const V: usize>(mut acc: [S::F32; V], x: f32, row: &[Cell; V]) -> [S::F32; V] {
    let x = S::F32::splat(x);
    for (a, cell) in acc.iter_mut().zip(row) {
        *a = x.mul_add(S::F32::load(&cell.0), *a);
    }
    acc
}

/// The round keys of one seed.
#[derive(Clone, Copy)]
struct RoundKeys<S: Simd>([[S::U64; 2]; N_ROUNDS]);

impl<S: Simd> RoundKeys<S> {
    #[inline(always)]
    fn new([k0, k1]: [u32; 2]) -> Self {
        let mut keys = [[S::U64::splat(0); 2]; N_ROUNDS];
        for (round, key) in (0u32..).zip(&mut keys) {
            *key = [
                S::U64::splat(u64::from(k0.wrapping_add(round.wrapping_mul(WEYL[0])))),
                S::U64::splat(u64::from(k1.wrapping_add(round.wrapping_mul(WEYL[1])))),
            ];
        }
        Self(keys)
    }

    /// Philox blocks `first …`, four to a register and `G` registers' worth; the low half of each lane counts.
    ///
    /// The upper halves are left as they fall: no operation looks at them. A block is one long chain of
    /// dependent operations, so several go abreast.
    #[inline(always)]
    fn blocks<const G: usize>(&self, first: u32, [c1, c2, c3]: [u32; 3]) -> [[S::U64; 4]; G] {
        let splat = |x: u32| S::U64::splat(u64::from(x));
        let m = MULTIPLIERS.map(splat);
        let lanes = S::U64::load(&[0, 1, 2, 3]);
        let mut x = [[splat(0), splat(c1), splat(c2), splat(c3)]; G];
        for (g, x) in (0u32..).zip(&mut x) {
            x[0] = splat(first + 4 * g).add(lanes);
        }
        for key in &self.0 {
            for x in &mut x {
                let p0 = m[0].mul_low_halves(x[0]);
                let p1 = m[1].mul_low_halves(x[2]);
                *x = [p1.high_half().xor(x[1]).xor(key[0]), p1, p0.high_half().xor(x[3]).xor(key[1]), p0];
            }
        }
        x
    }
}

/// Draw bits of `8·V` units from `cell` on, as the low bits of the result.
#[inline(always)]
fn bernoulli<S: Simd, const V: usize>(
    x: [S::F32; V],
    cell: usize,
    keys: &RoundKeys<S>,
    tail: [u32; 3],
) -> u64 {
    // Two cells to a group of four blocks.
    match V {
        1 | 2 => bernoulli_groups::<S, V, 1>(x, cell, keys, tail),
        8 if S::N_REGISTERS >= 32 => bernoulli_groups::<S, V, 4>(x, cell, keys, tail),
        _ => bernoulli_groups::<S, V, 2>(x, cell, keys, tail),
    }
}

#[inline(always)]
fn bernoulli_groups<S: Simd, const V: usize, const G: usize>(
    x: [S::F32; V],
    cell: usize,
    keys: &RoundKeys<S>,
    tail: [u32; 3],
) -> u64 {
    // Beyond 80 the unlikely value has probability 0 in any case; e⁸⁰ is still finite.
    let limit = S::F32::splat(80.0);
    let one = S::F32::splat(1.0);
    let mut bits = 0;
    for (part, x) in x.chunks(2 * G).enumerate() {
        let first_cell = cell + 2 * G * part;
        let k = keys.blocks::<G>((2 * first_cell) as u32, tail);
        let mut part_bits = 0;
        for (c, x) in x.iter().enumerate() {
            let k = &k[c / 2][2 * (c % 2)..];
            let u = S::uniforms(k[0], k[1]);
            let e = exp_normal(x.abs().min(limit));
            let unlikely = u.mul_add(e, u).lt_mask(one);
            part_bits |= (unlikely ^ x.sign_mask() ^ 0xff) << (CELL * c);
        }
        bits |= part_bits << (CELL * 2 * G * part);
    }
    bits
}

/// What becomes of the inputs of a layer.
trait Sink<S: Simd> {
    /// Take the inputs of `8·V` units of state `row`, from cell `cell` of tile `tile` on.
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize);
}

/// Feed `sink` with `bias + Σ weights` of every listed state, tile by tile.
#[inline(always)]
fn run<S: Simd, K: Sink<S>>(affine: &Affine, scratch: &Scratch, sink: &mut K) {
    for (t, tile) in affine.weights.tiles().enumerate() {
        run_tile::<S, K>(Some(&affine.bias[t * TILE..][..tile.0]), t, tile, scratch, sink);
    }
}

/// One tile, covered by pieces of 8, 4, 2 and 1 cells.
#[inline(always)]
fn run_tile<S: Simd, K: Sink<S>>(
    bias: Option<&[Cell]>,
    t: usize,
    (width, tile): (usize, &[Cell]),
    scratch: &Scratch,
    sink: &mut K,
) {
    if scratch.kind == ListKind::Dense {
        return dense_tile::<S, K>(bias, t, (width, tile), scratch, sink);
    }
    let mut offset = 0;
    while offset < width {
        offset += match width - offset {
            8.. => piece::<S, K, 8>(bias, tile, [t, width, offset], scratch, sink),
            4.. => piece::<S, K, 4>(bias, tile, [t, width, offset], scratch, sink),
            2.. => piece::<S, K, 2>(bias, tile, [t, width, offset], scratch, sink),
            _ => piece::<S, K, 1>(bias, tile, [t, width, offset], scratch, sink),
        };
    }
}

/// One tile of dense states: four rows at a time, so that each weight that is read serves four sums.
#[inline(always)]
fn dense_tile<S: Simd, K: Sink<S>>(
    bias: Option<&[Cell]>,
    t: usize,
    (width, tile): (usize, &[Cell]),
    scratch: &Scratch,
    sink: &mut K,
) {
    const ROWS: usize = 4;
    let n_units = scratch.ends.first().copied().unwrap_or(0);
    let mut offset = 0;
    while offset < width {
        let v = if width - offset >= 2 { 2 } else { 1 };
        for (group, rows) in scratch.value.chunks(ROWS * n_units.max(1)).enumerate() {
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

/// What sums begin with.
#[inline(always)]
fn base<S: Simd, const V: usize>(bias: Option<&[Cell]>, offset: usize) -> [S::F32; V] {
    let mut base = [S::F32::splat(0.0); V];
    if let Some(bias) = bias {
        for (b, cell) in base.iter_mut().zip(&bias[offset..]) {
            *b = S::F32::load(&cell.0);
        }
    }
    base
}

#[inline(always)]
fn piece<S: Simd, K: Sink<S>, const V: usize>(
    bias: Option<&[Cell]>,
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    scratch: &Scratch,
    sink: &mut K,
) -> usize {
    let base = base::<S, V>(bias, offset);
    for (row, list) in scratch.rows().enumerate() {
        sink.put(gather::<S, V>(base, tile, width, offset, list), row, t, offset);
    }
    V
}

/// Store the inputs or the means.
struct Store<'a, const MEANS: bool>(&'a mut Tiles);

impl<S: Simd, const MEANS: bool> Sink<S> for Store<'_, MEANS> {
    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize) {
        for (x, to) in x.into_iter().zip(self.0.cells_mut(row, tile, cell, V)) {
            let y = if MEANS { sigmoid(x) } else { x };
            y.store(&mut to.0);
        }
    }
}

/// Add the sums, scaled, to what is there.
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

/// Draw the bits and, if asked, store the means.
struct Sample<'a, S: Simd> {
    bits: &'a mut [u64],
    n_words: usize,
    draws: &'a [Draws],
    key: [u32; 2],
    keys: RoundKeys<S>,
    means: Option<Store<'a, true>>,
}

impl<'a, S: Simd> Sample<'a, S> {
    #[inline(always)]
    fn new(bits: &'a mut [u64], n_units: usize, draws: &'a [Draws], means: Option<&'a mut Tiles>) -> Self {
        let key = draws.first().map_or([0; 2], |d| d.key());
        bits.fill(0);
        Self {
            bits,
            n_words: words_for(n_units),
            draws,
            key,
            keys: RoundKeys::new(key),
            means: means.map(Store),
        }
    }
}

impl<S: Simd> Sink<S> for Sample<'_, S> {
    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize) {
        let draws = self.draws[row];
        if draws.key() != self.key {
            self.key = draws.key();
            self.keys = RoundKeys::new(self.key);
        }
        let bits = bernoulli::<S, V>(x, tile * TILE + cell, &self.keys, draws.counter_tail());
        self.bits[row * self.n_words + tile] |= bits << (CELL * cell);
        if let Some(means) = &mut self.means {
            Sink::<S>::put(means, x, row, tile, cell);
        }
    }
}

#[inline(always)]
fn inputs_generic<S: Simd>(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    affine.check(states, out);
    scratch.list(states, affine.n_in(), affine.n_out());
    run::<S, _>(affine, scratch, &mut Store::<false>(out));
}

#[inline(always)]
fn means_generic<S: Simd>(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    affine.check(states, out);
    scratch.list(states, affine.n_in(), affine.n_out());
    run::<S, _>(affine, scratch, &mut Store::<true>(out));
}

#[inline(always)]
fn sample_generic<S: Simd>(
    affine: &Affine,
    states: States<'_>,
    draws: &[Draws],
    scratch: &mut Scratch,
    bits: &mut [u64],
    means: Option<&mut Tiles>,
) {
    let n_rows = states.n_rows(affine.n_in());
    assert_eq!(draws.len(), n_rows, "one set of draws for each state");
    assert_eq!(bits.len(), n_rows * words_for(affine.n_out()), "room for the sampled states");
    if let Some(means) = &means {
        affine.check(states, means);
    }
    scratch.list(states, affine.n_in(), affine.n_out());
    let mut sink = Sample::<S>::new(bits, affine.n_out(), draws, means);
    run::<S, _>(affine, scratch, &mut sink);
}

#[inline(always)]
fn log_weights_generic<S: Simd>(
    affine: &Affine,
    bias_in: &[f32],
    states: States<'_>,
    scratch: &mut Scratch,
    out: &mut [f64],
) {
    assert_eq!(bias_in.len(), affine.n_in(), "one bias for each unit read");
    assert_eq!(out.len(), states.n_rows(affine.n_in()), "room for one number for each state");
    scratch.list(states, affine.n_in(), affine.n_out());
    linear_terms(bias_in, scratch, out);
    for (t, (width, tile)) in affine.weights.tiles().enumerate() {
        for offset in 0..width {
            let bias = &affine.bias[t * TILE + offset].0;
            let (base, _) = bias.as_chunks::<4>();
            for (out, list) in out.iter_mut().zip(scratch.rows()) {
                let mut acc = [S::F64::widen(&base[0]), S::F64::widen(&base[1])];
                let mut add = |i: usize, x: f32| {
                    let (row, _) = tile[i * width + offset].0.as_chunks::<4>();
                    let x = S::F64::splat(f64::from(x));
                    for (a, w) in acc.iter_mut().zip(row) {
                        *a = x.mul_add(S::F64::widen(w), *a);
                    }
                };
                match list {
                    List::Ones(index) => index.iter().for_each(|&i| add(i as usize, 1.0)),
                    List::Sparse(index, value) => {
                        index.iter().zip(value).for_each(|(&i, &x)| add(i as usize, x))
                    }
                    List::Dense(value) => value.iter().enumerate().for_each(|(i, &x)| add(i, x)),
                }
                let mut lanes = [0.0; 4];
                softplus(acc[0]).add(softplus(acc[1])).store(&mut lanes);
                *out += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
            }
        }
    }
}

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
    scratch.list(states, affine.n_in(), affine.n_out());
    linear_terms(bias_in, scratch, out);
    let mut products = vec![1.0; out.len()];
    run::<S, _>(affine, scratch, &mut SoftplusSum { sums: out, products: &mut products });
    out.iter_mut().zip(&products).for_each(|(out, p)| *out += p.ln());
}

/// `b_inᵀx` of each listed state.
#[inline(always)]
fn linear_terms(bias_in: &[f32], scratch: &Scratch, out: &mut [f64]) {
    let b = |i: u32| f64::from(bias_in[i as usize]);
    for (out, list) in out.iter_mut().zip(scratch.rows()) {
        *out = match list {
            List::Ones(index) => index.iter().map(|&i| b(i)).sum(),
            List::Sparse(index, value) => index.iter().zip(value).map(|(&i, &x)| b(i) * f64::from(x)).sum(),
            List::Dense(value) => bias_in.iter().zip(value).map(|(&b, &x)| f64::from(b) * f64::from(x)).sum(),
        };
    }
}

/// Add `Σ softplus` of the inputs to a number for each state, up to a logarithm.
struct SoftplusSum<'a> {
    sums: &'a mut [f64],
    /// `Π (1 + e^−|x|)` so far: at most 2 to the number of units.
    products: &'a mut [f64],
}

impl<S: Simd> Sink<S> for SoftplusSum<'_> {
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
    }
}

#[inline(always)]
fn accumulate_generic<S: Simd>(
    columns: &Columns,
    right: &Tiles,
    scale: f32,
    scratch: &mut Scratch,
    out: &mut Segment<'_>,
) {
    assert_eq!(right.n_rows(), columns.n_rows, "as many right-hand rows as states");
    let tile = right.tiles().nth(out.tile).expect("as many columns as the outer product");
    assert_eq!(tile.0, out.width, "columns of the outer product");
    columns.list(out.first_row..out.first_row + out.n_rows(), out.width * CELL, scratch);
    run_tile::<S, _>(None, out.tile, tile, scratch, &mut Accumulate { out, scale });
}

kernels! {
    /// Inputs `b + Wᵀx` of each state, summed in single precision. Padding columns of `out` become −∞.
    ///
    /// # Panics
    /// If `out` is not (states × units computed).
    pub fn inputs(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = inputs_generic;

    /// Means `σ(b + Wᵀx)` of each state; padding columns of `out` become 0.
    ///
    /// # Panics
    /// If `out` is not (states × units computed).
    pub fn means(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = means_generic;

    /// Draw each unit from `σ(b + Wᵀx)`, the bits of state `r` from `draws[r]`; store the means too if asked.
    ///
    /// # Panics
    /// If there is not one [`Draws`] and one row of `bits` (and of `means`) for each state.
    pub fn sample(
        affine: &Affine,
        states: States<'_>,
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
        means: Option<&mut Tiles>,
    ) = sample_generic;

    /// `b_inᵀx + Σ_j softplus(b_j + (Wᵀx)_j)` of each state, in double precision throughout: the logarithm of
    /// its marginal weight.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn log_weights(
        affine: &Affine,
        bias_in: &[f32],
        states: States<'_>,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) = log_weights_generic;

    /// [`log_weights`] with inputs summed and exponentials taken in single precision: the error is about
    /// `10⁻⁶ · Σ_j |input_j|`, the time a tenth. For ratios of weights, not for likelihoods.
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

    /// The sum of each unit over the states.
    pub fn column_sums(columns: &Columns) -> Vec<f32> = column_sums_generic;

    /// Add `scale · Σ_r x_r[i] · right[r]` to each row `i` of a piece of a matrix: the outer products of states
    /// with rows of floats.
    ///
    /// Each element is summed over the states in order, so pieces may be dealt to threads at will.
    ///
    /// ```
    /// use mclv_kernels::{Isa, layer::{Columns, Scratch, States, accumulate_outer}, tiles::Tiles};
    /// let columns = Columns::new(2, States::Bits(&[0b01, 0b11])); // two states of two units
    /// let right = Tiles::from_rows(2, 1, &[0.25, 0.5]);
    /// let mut out = Tiles::zeros(2, 1);
    /// for mut piece in out.segments_mut(64) {
    ///     accumulate_outer(Isa::best(), &columns, &right, 1.0, &mut Scratch::default(), &mut piece);
    /// }
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
        out: &mut Segment<'_>,
    ) = accumulate_generic;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::bits::BitRows;
    use crate::math::{exp_f32, sigmoid_f32};
    use crate::rng::Stream;
    use proptest::prelude::*;

    /// A random layer and random states, as plain numbers for the oracles.
    struct Case {
        n_in: usize,
        n_out: usize,
        w: Vec<f32>,
        bias: Vec<f32>,
        x: Vec<f32>,
    }

    impl Case {
        fn new(n_in: usize, n_out: usize, n_rows: usize, seed: u64, real: bool) -> Self {
            let mut rng = Stream::new(seed, 0).reader();
            let w = (0..n_in * n_out).map(|_| rng.normal() as f32).collect();
            let bias = (0..n_out).map(|_| rng.normal() as f32).collect();
            let x = (0..n_rows * n_in)
                .map(|_| match rng.uniform() {
                    u if u < 0.6 => 0.0,
                    u if real => u as f32,
                    _ => 1.0,
                })
                .collect();
            Self { n_in, n_out, w, bias, x }
        }

        fn affine(&self) -> Affine {
            Affine::new(Tiles::from_rows(self.n_in, self.n_out, &self.w), &self.bias)
        }

        fn packed(&self) -> BitRows {
            BitRows::pack(self.n_in, &self.x, |&x| x != 0.0)
        }

        /// `b_j + Σ_i w_ij x_i`, units in order, single precision: the sum that the kernels promise.
        fn inputs(&self) -> Vec<f32> {
            let mut out = Vec::new();
            for row in self.x.chunks(self.n_in) {
                for j in 0..self.n_out {
                    let terms = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
                    out.push(
                        terms.fold(self.bias[j], |sum, (i, &x)| x.mul_add(self.w[i * self.n_out + j], sum)),
                    );
                }
            }
            out
        }
    }

    /// The uniform that decides unit `i`, by the map that `rng` documents.
    fn uniform(draws: Draws, i: usize) -> f32 {
        let (g, rest) = (i / 16, i % 16);
        let (upper, l, odd) = (rest / 8, rest % 8 / 2, rest % 2);
        let k = draws.block((4 * g + l) as u32)[2 * upper + odd];
        ((k >> 1) as f32) / 2147483648.0 + 1.0 / 4294967296.0
    }

    fn naive_bit(x: f32, u: f32) -> bool {
        let mut e = [x.abs().min(80.0)];
        exp_f32(Isa::portable(), &mut e);
        let unlikely = u.mul_add(e[0], u) < 1.0;
        unlikely != x.is_sign_positive()
    }

    fn draws(n_rows: usize, seed: u64) -> Vec<Draws> {
        (0..n_rows).map(|r| Stream::new(seed + r as u64 / 2, 5 + r as u64).at(9)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("CI").is_some() { 1024 } else { 128 }))]

        #[test]
        fn layers_equal_the_naive_loops_to_the_bit(
            n_in in 1usize..=130, n_out in 1usize..=200, n_rows in 1usize..=5, seed in any::<u64>(), real in any::<bool>()
        ) {
            let case = Case::new(n_in, n_out, n_rows, seed, real);
            let (affine, packed) = (case.affine(), case.packed());
            let states = if real { States::Reals(&case.x) } else { States::Bits(packed.words()) };
            let expected = case.inputs();
            let mut expected_means = expected.clone();
            sigmoid_f32(Isa::portable(), &mut expected_means);
            let draws = draws(n_rows, seed >> 1);
            let mut expected_bits = BitRows::zeros(n_rows, n_out);
            for (k, &x) in expected.iter().enumerate() {
                let (r, j) = (k / n_out, k % n_out);
                expected_bits.set(r, j, naive_bit(x, uniform(draws[r], j)));
            }
            for isa in Isa::available() {
                let mut scratch = Scratch::default();
                let mut out = Tiles::zeros(n_rows, n_out);
                inputs(isa, &affine, states, &mut scratch, &mut out);
                prop_assert_eq!(&out.to_rows(), &expected);
                means(isa, &affine, states, &mut scratch, &mut out);
                prop_assert_eq!(&out.to_rows(), &expected_means);
                prop_assert_eq!(&Tiles::from_rows(n_rows, n_out, &expected_means), &out, "padding is zero");
                for with_means in [false, true] {
                    let mut bits = BitRows::zeros(n_rows, n_out);
                    bits.words_mut().fill(u64::MAX);
                    out.clear();
                    sample(isa, &affine, states, &draws, &mut scratch, bits.words_mut(), with_means.then_some(&mut out));
                    prop_assert_eq!(&bits, &expected_bits);
                    if with_means {
                        prop_assert_eq!(&out.to_rows(), &expected_means);
                    }
                }
            }
        }

        #[test]
        fn log_weights_equal_the_naive_sum(
            n_in in 1usize..=100, n_out in 1usize..=100, seed in any::<u64>(), real in any::<bool>()
        ) {
            let case = Case::new(n_in, n_out, 3, seed, real);
            let bias_in: Vec<f32> = case.w.iter().cycle().skip(3).take(n_in).copied().collect();
            let packed = case.packed();
            let states = if real { States::Reals(&case.x) } else { States::Bits(packed.words()) };
            let naive: Vec<f64> = case.x.chunks(n_in).map(|row| {
                let linear: f64 = row.iter().zip(&bias_in).map(|(&x, &b)| f64::from(x) * f64::from(b)).sum();
                let soft = (0..n_out).map(|j| {
                    let x: f64 = row.iter().enumerate().map(|(i, &x)| f64::from(x) * f64::from(case.w[i * n_out + j])).sum();
                    let x = x + f64::from(case.bias[j]);
                    x.max(0.0) + (-x.abs()).exp().ln_1p()
                });
                linear + soft.sum::<f64>()
            }).collect();
            let mut portable = vec![0.0; 3];
            log_weights(Isa::portable(), &case.affine(), &bias_in, states, &mut Scratch::default(), &mut portable);
            for isa in Isa::available() {
                let mut out = vec![f64::NAN; 3];
                log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut out);
                prop_assert_eq!(&out, &portable);
                for (x, y) in out.iter().zip(&naive) {
                    prop_assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{} {}", x, y);
                }
                let mut quick = vec![f64::NAN; 3];
                quick_log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut quick);
                for (x, y) in quick.iter().zip(&naive) {
                    prop_assert!((x - y).abs() <= 1e-5 * (n_out as f64).max(y.abs()), "{} {}", x, y);
                }
            }
        }

        #[test]
        fn outer_products_equal_the_naive_loops(
            n_units in 1usize..=130, n_columns in 1usize..=130, n_rows in 1usize..=70, seed in any::<u64>(), real in any::<bool>()
        ) {
            let case = Case::new(n_units, n_columns, n_rows, seed, real);
            let right: Vec<f32> = case.w.iter().cycle().take(n_rows * n_columns).copied().collect();
            let packed = case.packed();
            let states = if real { States::Reals(&case.x) } else { States::Bits(packed.words()) };
            let columns = Columns::new(n_units, states);
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
            for isa in Isa::available() {
                prop_assert_eq!(&column_sums(isa, &columns), &sums);
            }
            let right = Tiles::from_rows(n_rows, n_columns, &right);
            for isa in Isa::available() {
                let mut out = Tiles::from_rows(n_units, n_columns, &vec![1.0; n_units * n_columns]);
                for mut piece in out.segments_mut(1 + n_units / 3) {
                    accumulate_outer(isa, &columns, &right, scale, &mut Scratch::default(), &mut piece);
                }
                prop_assert_eq!(out.to_rows(), expected.clone());
            }
        }
    }

    /// How far the frequencies of the drawn bits are from `σ(x)`, as the largest |z| over inputs.
    fn worst_z(inputs: &[f32], n: usize, draw: impl Fn(usize, &mut [u64])) -> f64 {
        let mut counts = vec![0.0; inputs.len()];
        let mut bits = vec![0; words_for(inputs.len())];
        for t in 0..n {
            draw(t, &mut bits);
            for i in crate::bits::ones(&bits) {
                counts[i] += 1.0;
            }
        }
        let z = |(&x, &c): (&f32, &f64)| {
            let p = 1.0 / (1.0 + (-f64::from(x)).exp());
            (c - n as f64 * p) / (n as f64 * p * (1.0 - p)).sqrt()
        };
        inputs.iter().zip(&counts).map(z).fold(0.0, |worst, z| worst.max(z.abs()))
    }

    /// 100 inputs of every size at 200,000 draws: |z| stays below 5 with probability 1 − 6e-5.
    #[test]
    fn bits_have_the_right_frequencies_and_a_biased_draw_is_caught() {
        let x: Vec<f32> = (0..100).map(|i| (i as f32 - 49.5) / 10.0).collect();
        let affine = Affine::new(Tiles::zeros(1, x.len()), &x);
        // Negative control: the same bits from inputs that are off by 0.05.
        let shifted: Vec<f32> = x.iter().map(|x| x + 0.05).collect();
        let broken = Affine::new(Tiles::zeros(1, x.len()), &shifted);
        let frequencies = |affine: &Affine| {
            worst_z(&x, 200_000, |t, bits| {
                let draws = [Stream::new(3, 0).at(t as u32)];
                sample(Isa::best(), affine, States::Bits(&[0]), &draws, &mut Scratch::default(), bits, None);
            })
        };
        let (good, bad) = (frequencies(&affine), frequencies(&broken));
        assert!(good < 5.0, "worst |z| = {good}");
        assert!(bad > 5.0, "the control must be caught: {bad}");
    }

    /// Pairs of units with input 0 agree half of the time: |z| over all pairs of 64 stays below 6 (4e-6), while
    /// a draw that reuses one uniform for two units does not.
    #[test]
    fn bits_of_different_units_are_independent_and_a_reused_uniform_is_caught() {
        let n = 20_000;
        let affine = Affine::new(Tiles::zeros(1, 64), &[0.0; 64]);
        let worst = |reuse: bool| {
            let mut agree = vec![0.0; 64 * 64];
            let mut word = [0];
            for t in 0..n {
                let draws = [Stream::new(4, 1).at(t)];
                sample(
                    Isa::best(),
                    &affine,
                    States::Bits(&[0]),
                    &draws,
                    &mut Scratch::default(),
                    &mut word,
                    None,
                );
                let mut w = word[0];
                if reuse {
                    w = w & !2 | (w & 1) << 1;
                }
                for i in 0..64 {
                    let same = !(w ^ (w >> i & 1).wrapping_neg());
                    for j in 0..i {
                        agree[i * 64 + j] += (same >> j & 1) as f64;
                    }
                }
            }
            let n = f64::from(n);
            (0..64)
                .flat_map(|i| (0..i).map(move |j| i * 64 + j))
                .map(|k| ((agree[k] - n / 2.0) / (n / 4.0).sqrt()).abs())
                .fold(0.0, f64::max)
        };
        assert!(worst(false) < 6.0, "{}", worst(false));
        assert!(worst(true) > 6.0);
    }

    #[test]
    fn extreme_inputs_give_certain_bits() {
        let x = [f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 200.0, -200.0];
        let affine = Affine::new(Tiles::zeros(1, 6), &x);
        for isa in Isa::available() {
            for t in 0..1000 {
                let mut bits = [0];
                let draws = [Stream::new(1, 2).at(t)];
                sample(isa, &affine, States::Bits(&[0]), &draws, &mut Scratch::default(), &mut bits, None);
                assert_eq!(bits[0], 0b010101);
            }
        }
    }

    /// Pinned: changing a stream's values is a breaking change for everyone who wrote down a seed.
    #[test]
    fn values_are_stable() {
        let case = Case::new(20, 70, 1, 99, false);
        let mut bits = [0; 2];
        let draws = [Stream::new(1, 2).at(3)];
        let states = case.packed();
        sample(
            Isa::best(),
            &case.affine(),
            States::Bits(states.words()),
            &draws,
            &mut Scratch::default(),
            &mut bits,
            None,
        );
        assert_eq!(bits, [14769226580578805456, 45]);
    }
}
