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
//! `q = 1/(1 + e^|x|)`, is chosen if `u·(1 + e^|x|) < 1` for the unit's uniform `u`, of which 16 bits are drawn
//! (see [`rng`](crate::rng) for which). With a rough exponential they tell on which side of `q` the number lies,
//! unless it is too close: about once in 10,000 times. Then, and only then, 32 more are drawn and the exponential is
//! taken with care. A tail probability `q` so comes out with an error of at most `2⁻⁴⁹ + 2⁻²²·q`; below 2⁻⁴⁹ it
//! is 0. A NaN input gives a bit like any other: look for NaN in the parameters, not here.

use crate::Isa;
use crate::arch::{F32Lanes, F64Lanes, Lanes, Simd, U64Lanes};
use crate::bits::words_for;
use crate::isa::kernels;
use crate::math::{exp_normal, rough_exp, sigmoid, softplus};
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

    /// Whether tiles of the weights are too large for the first-level cache by far, and wide enough for it to matter.
    fn is_large(&self) -> bool {
        self.n_out() >= TILE * CELL && self.n_in() * TILE * size_of::<Cell>() > FAR
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

/// Reusable memory: the non-zero units of each state, and random numbers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Where each state's list ends; for bits, where the list of each of its words does.
    ends: Vec<usize>,
    n_words: usize,
    /// Sums that wait for more of their terms.
    partial: Vec<Cell>,
    index: Vec<u32>,
    /// Beside `index` for real states; not used for bits.
    value: Vec<f32>,
    kind: ListKind,
    tile_draws: TileDraws,
    /// Products of four exponentials, for each of the sixteen ways to choose among them.
    table: Vec<Cell>,
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

/// The [`Scratch`] of a thread, given back at the end. Whoever asks before that gets a new one.
#[derive(Debug)]
pub struct ThreadScratch(Scratch);

impl std::ops::Deref for ThreadScratch {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.0
    }
}

impl std::ops::DerefMut for ThreadScratch {
    fn deref_mut(&mut self) -> &mut Scratch {
        &mut self.0
    }
}

impl Drop for ThreadScratch {
    fn drop(&mut self) {
        SPARE.set(std::mem::take(&mut self.0));
    }
}

/// One state, as the kernels add it up.
#[derive(Clone, Copy)]
enum List<'a> {
    Ones(&'a [u32]),
    Sparse(&'a [u32], &'a [f32]),
    Dense(&'a [f32]),
}

thread_local! {
    static SPARE: std::cell::Cell<Scratch> = std::cell::Cell::default();
}

impl Scratch {
    /// This thread's own: what one call has made room for serves the next.
    pub fn of_thread() -> ThreadScratch {
        ThreadScratch(SPARE.take())
    }

    /// List states of `n_units` units that `n_out` sums are to be made of.
    #[inline(always)]
    fn list<S: Simd>(&mut self, states: States<'_>, n_units: usize, n_out: usize) {
        self.ends.clear();
        match states {
            States::Bits(words) => {
                self.kind = ListKind::Ones;
                self.n_words = words_for(n_units);
                // A word's list is written in whole registers, past its end, and cut there.
                let most = words.iter().map(|w| w.count_ones() as usize).sum::<usize>() + 64;
                if self.index.len() < most {
                    self.index.resize(most, 0);
                }
                let mut n = 0;
                for row in words.chunks_exact(words_for(n_units)) {
                    for (k, &word) in row.iter().enumerate() {
                        n += S::list_ones(word, k as u32 * 64, &mut self.index[n..]);
                        self.ends.push(n);
                    }
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
        let step = if self.kind == ListKind::Ones { self.n_words } else { 1 };
        self.ends.iter().skip(step - 1).step_by(step).map(move |&to| {
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

    /// Number of states.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The values, unit after unit, to be sent elsewhere.
    pub fn values(&self) -> States<'_> {
        match &self.kind {
            ColumnKind::Bits(words) => States::Bits(words),
            ColumnKind::Reals(values) => States::Reals(values),
        }
    }

    /// What [`values`](Self::values) gave.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn from_values(n_rows: usize, n_units: usize, values: States<'_>) -> Self {
        let (expected, got, kind) = match values {
            States::Bits(words) => (n_units * words_for(n_rows), words.len(), ColumnKind::Bits(words.into())),
            States::Reals(values) => (n_units * n_rows, values.len(), ColumnKind::Reals(values.into())),
        };
        assert_eq!(expected, got, "values of {n_rows} states of {n_units} units");
        Self { n_rows, n_units, kind }
    }

    /// List the states of each unit of a range.
    #[inline(always)]
    fn list<S: Simd>(&self, units: std::ops::Range<usize>, n_out: usize, scratch: &mut Scratch) {
        assert!(units.end <= self.n_units, "units {units:?} of {}", self.n_units);
        match &self.kind {
            ColumnKind::Bits(words) => {
                let per_unit = words_for(self.n_rows);
                let words = &words[units.start * per_unit..units.end * per_unit];
                scratch.list::<S>(States::Bits(words), self.n_rows, n_out);
            }
            ColumnKind::Reals(values) => {
                let values = &values[units.start * self.n_rows..units.end * self.n_rows];
                scratch.list::<S>(States::Reals(values), self.n_rows, n_out);
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
    swap_blocks::<32>(block, 0x0000_0000_ffff_ffff);
    swap_blocks::<16>(block, 0x0000_ffff_0000_ffff);
    swap_blocks::<8>(block, 0x00ff_00ff_00ff_00ff);
    swap_blocks::<4>(block, 0x0f0f_0f0f_0f0f_0f0f);
    swap_blocks::<2>(block, 0x3333_3333_3333_3333);
    swap_blocks::<1>(block, 0x5555_5555_5555_5555);
}

/// Swap the off-diagonal quarters of all blocks of `2·HALF` on the diagonal. Plain loops over halves: they become vectors.
#[inline(always)]
fn swap_blocks<const HALF: usize>(block: &mut [u64; 64], mask: u64) {
    for pair in block.chunks_exact_mut(2 * HALF) {
        let (above, below) = pair.split_at_mut(HALF);
        for (a, b) in above.iter_mut().zip(below) {
            let swap = (*a >> HALF ^ *b) & mask;
            *a ^= swap << HALF;
            *b ^= swap;
        }
    }
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

    /// `G` times four Philox blocks, the first of each four with the counter given; the low half of each lane counts.
    ///
    /// The upper halves are left as they fall: no operation looks at them. A block is one long chain of
    /// dependent operations, so several go abreast.
    #[inline(always)]
    fn blocks<const G: usize>(&self, counters: [[u32; 4]; G]) -> [[S::U64; 4]; G] {
        let splat = |x: u32| S::U64::splat(u64::from(x));
        let m = MULTIPLIERS.map(splat);
        let lanes = S::U64::load(&[0, 1, 2, 3]);
        let mut x = [[splat(0); 4]; G];
        for (x, [first, c1, c2, c3]) in x.iter_mut().zip(counters) {
            *x = [splat(first).add(lanes), splat(c1), splat(c2), splat(c3)];
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

/// The random numbers of one tile of a layer, two registers for each four cells of each state.
#[derive(Clone, Debug, Default)]
struct TileDraws {
    words: Vec<[u32; CELL]>,
    per_row: usize,
}

impl TileDraws {
    /// Draw for tile `t`, `width` cells wide. Made ahead of their use: the chains of dependent operations of
    /// many states overlap.
    #[inline(always)]
    fn fill<S: Simd>(&mut self, t: usize, width: usize, draws: &[Draws]) {
        let n_groups = width.div_ceil(4);
        self.per_row = 2 * n_groups;
        self.words.resize(draws.len() * self.per_row, [0; CELL]);
        let first = (8 * t) as u32;
        // Sixteen registers' worth abreast, or eight where there are not as many.
        match (n_groups, S::N_REGISTERS >= 32) {
            (1, true) => self.fill_rows::<S, 4, 4>(draws, [[0, 0], [1, 0], [2, 0], [3, 0]], first),
            (1, false) => self.fill_rows::<S, 2, 2>(draws, [[0, 0], [1, 0]], first),
            (_, true) => self.fill_rows::<S, 2, 4>(draws, [[0, 0], [0, 4], [1, 0], [1, 4]], first),
            (_, false) => self.fill_rows::<S, 1, 2>(draws, [[0, 0], [0, 4]], first),
        }
    }

    /// Fill `R` rows at a time, with `G` times four blocks: which row each is for, and its place after the first.
    #[inline(always)]
    fn fill_rows<S: Simd, const R: usize, const G: usize>(
        &mut self,
        draws: &[Draws],
        places: [[usize; 2]; G],
        first: u32,
    ) {
        let mut key = draws.first().map_or([0; 2], |d| d.key());
        let mut keys = RoundKeys::<S>::new(key);
        for (draws, words) in draws.chunks(R).zip(self.words.chunks_mut(2 * G)) {
            if draws.len() == R && draws.iter().all(|d| d.key() == key) {
                let mut counters = [[0; 4]; G];
                for (counter, [row, after]) in counters.iter_mut().zip(places) {
                    *counter = draws[row].counter(first + after as u32);
                }
                store_blocks::<S, G>(keys.blocks(counters), words);
                continue;
            }
            // The last few, or rows of different seeds: one after the other.
            for ([row, after], words) in places.into_iter().zip(words.chunks_mut(2)) {
                let d = draws[row];
                if d.key() != key {
                    key = d.key();
                    keys = RoundKeys::new(key);
                }
                store_blocks::<S, 1>(keys.blocks([d.counter(first + after as u32)]), words);
            }
        }
    }

    /// The numbers for `8·V` units of state `row`, from cell `cell` of the tile on.
    #[inline(always)]
    fn get(&self, row: usize, cell: usize, n_cells: usize) -> &[[u32; CELL]] {
        &self.words[row * self.per_row + cell / 2..][..n_cells.div_ceil(2)]
    }
}

#[inline(always)]
fn store_blocks<S: Simd, const G: usize>(blocks: [[S::U64; 4]; G], words: &mut [[u32; CELL]]) {
    let (words, _) = words.as_chunks_mut::<2>();
    let words: &mut [[[u32; CELL]; 2]; G] = words.first_chunk_mut().expect("room for all");
    for g in 0..G {
        S::store_low_halves(blocks[g][0], blocks[g][1], &mut words[g][0]);
        S::store_low_halves(blocks[g][2], blocks[g][3], &mut words[g][1]);
    }
}

/// Draw bits of `8·V` units from unit `first_unit` on, as the low bits of the result.
#[inline(always)]
fn bernoulli<S: Simd, const V: usize>(
    x: [S::F32; V],
    words: &[[u32; CELL]],
    first_unit: usize,
    draws: Draws,
) -> u64 {
    let mut open = S::F32::splat(0.0);
    let mut off = x;
    // Written out: a loop of this size is not unrolled, and would keep its registers in memory.
    bernoulli_pair::<S, V>(&mut off, 0, words, &mut open);
    if V > 2 {
        bernoulli_pair::<S, V>(&mut off, 1, words, &mut open);
    }
    if V > 4 {
        bernoulli_pair::<S, V>(&mut off, 2, words, &mut open);
        bernoulli_pair::<S, V>(&mut off, 3, words, &mut open);
    }
    let bits = !S::sign_bits(&off) & (u64::MAX >> (64 - CELL * V));
    if open.sign_mask() == 0 { bits } else { bits ^ flips::<S, V>(&x, words, first_unit, draws) }
}

/// Replace the inputs of two cells by numbers that are negative where the unit is off.
#[inline(always)]
fn bernoulli_pair<S: Simd, const V: usize>(
    x: &mut [S::F32; V],
    pair: usize,
    words: &[[u32; CELL]],
    open: &mut S::F32,
) {
    let k = S::halves(&words[pair]);
    let c = 2 * pair;
    x[c] = bernoulli_cell::<S>(x[c], k[0], open);
    if c + 1 < V {
        x[c + 1] = bernoulli_cell::<S>(x[c + 1], k[1], open);
    }
}

#[inline(always)]
fn bernoulli_cell<S: Simd>(x: S::F32, k: S::F32, open: &mut S::F32) -> S::F32 {
    let splat = S::F32::splat;
    let s = rough_exp(x.abs().min(splat(INPUT_LIMIT))).add(splat(1.0));
    // 2¹⁶ u lies between k and k + 1; s is off by less than 2⁻¹³ of itself.
    let least = k.mul(s);
    let unlikely = least.lt(splat(65_536.0 + 8.0));
    *open = open.or(unlikely.and(splat(65_536.0 - 8.0).lt(least.add(s))));
    x.xor(unlikely)
}

/// Beyond this the unlikely value has probability 0 in any case; its exponential is still finite.
const INPUT_LIMIT: f32 = 80.0;

/// Blocks from this one on decide what 16 bits left open.
const OPEN_BLOCK: u32 = 1 << 31;

/// Which units, unlikely by the first 16 bits of their uniforms, are not so by 32 more.
#[cold]
#[inline(never)]
fn flips<S: Simd, const V: usize>(
    x: &[S::F32; V],
    words: &[[u32; CELL]],
    first_unit: usize,
    draws: Draws,
) -> u64 {
    let mut flips = 0;
    for (c, &x) in x.iter().enumerate() {
        let mut open = S::F32::splat(0.0);
        bernoulli_cell::<S>(x, S::halves(&words[c / 2])[c % 2], &mut open);
        let mut e = [0.0; CELL];
        exp_normal(x.abs().min(S::F32::splat(INPUT_LIMIT))).store(&mut e);
        for lane in (0..CELL).filter(|lane| open.sign_mask() >> lane & 1 == 1) {
            let k = words[c / 2][lane] >> (16 * (c % 2)) & 0xffff;
            let more = draws.block(OPEN_BLOCK + (first_unit + CELL * c + lane) as u32)[0];
            let u = ((u64::from(k) << 32 | u64::from(more)) as f64 + 0.5) / (1u64 << 48) as f64;
            flips |= u64::from(u * (1.0 + f64::from(e[lane])) >= 1.0) << (CELL * c + lane);
        }
    }
    flips
}

/// What becomes of the inputs of a layer.
trait Sink<S: Simd> {
    /// A tile of `width` cells is about to begin.
    #[inline(always)]
    fn begin(&mut self, _tile: usize, _width: usize) {}

    /// Take the inputs of `8·V` units of state `row`, from cell `cell` of tile `tile` on.
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize);
}

/// Feed `sink` with `bias + Σ weights` of every listed state, tile by tile.
#[inline(always)]
fn run<S: Simd, K: Sink<S>, const LARGE: bool>(affine: &Affine, scratch: &mut Scratch, sink: &mut K) {
    for (t, tile) in affine.weights.tiles().enumerate() {
        run_tile::<S, K, LARGE>(Some(&affine.bias[t * TILE..][..tile.0]), t, tile, scratch, sink);
    }
}

/// One tile, covered by pieces of 8, 4, 2 and 1 cells.
#[inline(always)]
fn run_tile<S: Simd, K: Sink<S>, const LARGE: bool>(
    bias: Option<&[Cell]>,
    t: usize,
    (width, tile): (usize, &[Cell]),
    scratch: &mut Scratch,
    sink: &mut K,
) {
    sink.begin(t, width);
    if scratch.kind == ListKind::Dense {
        return dense_tile::<S, K>(bias, t, (width, tile), scratch, sink);
    }
    let mut offset = 0;
    while offset < width {
        offset += match width - offset {
            8.. => piece::<S, K, 8, LARGE>(bias, tile, [t, width, offset], scratch, sink),
            4.. => piece::<S, K, 4, LARGE>(bias, tile, [t, width, offset], scratch, sink),
            2.. => piece::<S, K, 2, LARGE>(bias, tile, [t, width, offset], scratch, sink),
            _ => piece::<S, K, 1, LARGE>(bias, tile, [t, width, offset], scratch, sink),
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

/// Bytes of weights that stay in the first-level cache beside all else.
const NEAR: usize = 16 << 10;

/// Bytes of a tile from which on it is worth while to go part by part.
const FAR: usize = 64 << 10;

#[inline(always)]
fn piece<S: Simd, K: Sink<S>, const V: usize, const LARGE: bool>(
    bias: Option<&[Cell]>,
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    scratch: &mut Scratch,
    sink: &mut K,
) -> usize {
    let base = base::<S, V>(bias, offset);
    if LARGE && scratch.kind == ListKind::Ones {
        blocked_piece::<S, K, V>(base, tile, [t, width, offset], scratch, sink);
    } else {
        for (row, list) in scratch.rows().enumerate() {
            sink.put(gather::<S, V>(base, tile, width, offset, list), row, t, offset);
        }
    }
    V
}

/// A tile too large for the first-level cache, part by part, some states at a time: the same sums in the same order.
#[inline(always)]
fn blocked_piece<S: Simd, K: Sink<S>, const V: usize>(
    base: [S::F32; V],
    tile: &[Cell],
    [t, width, offset]: [usize; 3],
    scratch: &mut Scratch,
    sink: &mut K,
) {
    const ROWS: usize = 32;
    let Scratch { ends, index, n_words, partial, .. } = scratch;
    let words_per_part = (NEAR / (64 * width * size_of::<Cell>())).max(1);
    partial.resize(ROWS * V, Cell([0.0; CELL]));
    let (sums, _) = partial.as_chunks_mut::<V>();
    for (chunk, row_ends) in ends.chunks(ROWS * *n_words).enumerate() {
        let first_row = chunk * ROWS;
        for first_word in (0..*n_words).step_by(words_per_part) {
            let last_word = (first_word + words_per_part).min(*n_words) - 1;
            for (r, sums) in sums.iter_mut().enumerate().take(row_ends.len() / *n_words) {
                let at = (first_row + r) * *n_words;
                let from = if at + first_word == 0 { 0 } else { ends[at + first_word - 1] };
                let list = List::Ones(&index[from..ends[at + last_word]]);
                let mut acc = base;
                if first_word > 0 {
                    acc.iter_mut().zip(&*sums).for_each(|(acc, sum)| *acc = S::F32::load(&sum.0));
                }
                acc = gather::<S, V>(acc, tile, width, offset, list);
                if last_word + 1 == *n_words {
                    sink.put(acc, first_row + r, t, offset);
                } else {
                    acc.into_iter().zip(sums).for_each(|(acc, sum)| acc.store(&mut sum.0));
                }
            }
        }
    }
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
struct Sample<'a> {
    bits: &'a mut [u64],
    n_words: usize,
    draws: &'a [Draws],
    tile_draws: TileDraws,
    means: Option<Store<'a, true>>,
}

impl<S: Simd> Sink<S> for Sample<'_> {
    #[inline(always)]
    fn begin(&mut self, tile: usize, width: usize) {
        self.tile_draws.fill::<S>(tile, width, self.draws);
    }

    #[inline(always)]
    fn put<const V: usize>(&mut self, x: [S::F32; V], row: usize, tile: usize, cell: usize) {
        let words = self.tile_draws.get(row, cell, V);
        let bits = bernoulli::<S, V>(x, words, (tile * TILE + cell) * CELL, self.draws[row]);
        self.bits[row * self.n_words + tile] |= bits << (CELL * cell);
        if let Some(means) = &mut self.means {
            Sink::<S>::put(means, x, row, tile, cell);
        }
    }
}

#[inline(always)]
fn inputs_generic<S: Simd>(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    affine.check(states, out);
    scratch.list::<S>(states, affine.n_in(), affine.n_out());
    run::<S, _, false>(affine, scratch, &mut Store::<false>(out));
}

#[inline(always)]
fn means_generic<S: Simd, const LARGE: bool>(
    affine: &Affine,
    states: States<'_>,
    scratch: &mut Scratch,
    out: &mut Tiles,
) {
    affine.check(states, out);
    scratch.list::<S>(states, affine.n_in(), affine.n_out());
    run::<S, _, LARGE>(affine, scratch, &mut Store::<true>(out));
}

#[inline(always)]
fn sample_generic<S: Simd, const LARGE: bool>(
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
    scratch.list::<S>(states, affine.n_in(), affine.n_out());
    bits.fill(0);
    let tile_draws = std::mem::take(&mut scratch.tile_draws);
    let mut sink =
        Sample { bits, n_words: words_for(affine.n_out()), draws, tile_draws, means: means.map(Store) };
    run::<S, _, LARGE>(affine, scratch, &mut sink);
    scratch.tile_draws = sink.tile_draws;
    // Padding is off by its bias of −∞, unless NaN has got into it.
    let n_last = affine.n_out() % 64;
    if n_last > 0 {
        let last = sink.bits.iter_mut().skip(sink.n_words - 1).step_by(sink.n_words);
        last.for_each(|word| *word &= (1 << n_last) - 1);
    }
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
    scratch.list::<S>(states, affine.n_in(), affine.n_out());
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
    scratch.list::<S>(states, affine.n_in(), affine.n_out());
    linear_terms(bias_in, scratch, out);
    let mut products = Products::new(out.len());
    let mut by_sums = SoftplusSum { sums: vec![0.0; out.len()], products: vec![1.0; out.len()] };
    for (t, (width, tile)) in affine.weights.tiles().enumerate() {
        let bias = &affine.bias[t * TILE..][..width];
        let mut offset = 0;
        while offset < width {
            let at = [t, width, offset];
            offset += match width - offset {
                4.. => product_piece::<S, 4>(bias, tile, at, states, scratch, &mut products, &mut by_sums),
                2.. => product_piece::<S, 2>(bias, tile, at, states, scratch, &mut products, &mut by_sums),
                _ => product_piece::<S, 1>(bias, tile, at, states, scratch, &mut products, &mut by_sums),
            };
        }
    }
    for (r, out) in out.iter_mut().enumerate() {
        *out += products.log(r) + by_sums.sums[r] + by_sums.products[r].ln();
    }
}

/// From this many states on, tables of products pay.
const MIN_STATES: usize = 32;

/// `V` cells of `Σ ln(1 + e^x)`: as `ln Π (1 + Π e^w)` with the inner products over four units at a time from a table, if
/// no exponential can overflow and there are enough bit states for it.
#[inline(always)]
fn product_piece<S: Simd, const V: usize>(
    bias: &[Cell],
    tile: &[Cell],
    at: [usize; 3],
    states: States<'_>,
    scratch: &mut Scratch,
    products: &mut Products,
    by_sums: &mut SoftplusSum,
) -> usize {
    let [_, width, offset] = at;
    let States::Bits(words) = states else {
        return piece::<S, _, V, false>(Some(bias), tile, at, scratch, by_sums);
    };
    let n_in = tile.len() / width;
    let mut base = base::<S, V>(Some(bias), offset);
    // No input, and no sum on the way to it, is beyond these.
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
        return piece::<S, _, V, false>(Some(bias), tile, at, scratch, by_sums);
    }

    let n_groups = n_in.div_ceil(4);
    let table = &mut scratch.table;
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

/// A product for each state, kept as eight mantissas and the sums of their exponents.
struct Products {
    factors: Vec<Cell>,
    /// Integers in the guise of floats, each with the bias of the exponents added `n_taken` times.
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
    out: &mut [Segment<'_>],
) {
    assert_eq!(right.n_rows(), columns.n_rows, "as many right-hand rows as states");
    let mut listed = 0..0;
    for out in out {
        let tile = right.tiles().nth(out.tile).expect("as many columns as the outer product");
        assert_eq!(tile.0, out.width, "columns of the outer product");
        let units = out.first_row..out.first_row + out.n_rows();
        if listed != units {
            columns.list::<S>(units.clone(), right.n_columns(), scratch);
            listed = units;
        }
        run_tile::<S, _, false>(None, out.tile, tile, scratch, &mut Accumulate { out, scale });
    }
}

/// Means `σ(b + Wᵀx)` of each state; padding columns of `out` become 0.
///
/// # Panics
/// If `out` is not (states × units computed).
pub fn means(isa: Isa, affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) {
    let means = if affine.is_large() { means_large } else { means_small };
    means(isa, affine, states, scratch, out);
}

/// Draw each unit from `σ(b + Wᵀx)`, the bits of state `r` from `draws[r]`; store the means too if asked.
///
/// # Panics
/// If there is not one [`Draws`] and one row of `bits` (and of `means`) for each state.
pub fn sample(
    isa: Isa,
    affine: &Affine,
    states: States<'_>,
    draws: &[Draws],
    scratch: &mut Scratch,
    bits: &mut [u64],
    means: Option<&mut Tiles>,
) {
    let sample = if affine.is_large() { sample_large } else { sample_small };
    sample(isa, affine, states, draws, scratch, bits, means);
}

kernels! {
    /// Inputs `b + Wᵀx` of each state, summed in single precision. Padding columns of `out` become −∞.
    ///
    /// # Panics
    /// If `out` is not (states × units computed).
    pub fn inputs(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = inputs_generic;

    fn means_small(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = means_generic<false>;

    fn means_large(affine: &Affine, states: States<'_>, scratch: &mut Scratch, out: &mut Tiles) = means_generic<true>;

    fn sample_small(
        affine: &Affine,
        states: States<'_>,
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
        means: Option<&mut Tiles>,
    ) = sample_generic<false>;

    fn sample_large(
        affine: &Affine,
        states: States<'_>,
        draws: &[Draws],
        scratch: &mut Scratch,
        bits: &mut [u64],
        means: Option<&mut Tiles>,
    ) = sample_generic<true>;

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

    /// [`log_weights`] with inputs summed and exponentials taken in single precision: the error is below
    /// `10⁻⁶ · Σ_j (1 + |b_j| + Σ_i |W_ij x_i|)` up to a hundred units, the time a tenth. For ratios of weights,
    /// not for likelihoods.
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

    /// Add `scale · Σ_r x_r[i] · right[r]` to each row `i` of pieces of a matrix: the outer products of states
    /// with rows of floats.
    ///
    /// Each element is summed over the states in order, so pieces may be dealt to threads at will. Pieces that have
    /// their rows in common should go together.
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

    /// The first 16 bits of the uniform that decides a unit, by the map that `rng` documents.
    fn first_bits(draws: Draws, unit: usize) -> u32 {
        let (g, rest) = (unit / 32, unit % 32);
        let (pair, upper, l, odd) = (rest / 16, rest % 16 / 8, rest % 8 / 2, rest % 2);
        draws.block((4 * g + l) as u32)[2 * pair + odd] >> (16 * upper) & 0xffff
    }

    fn naive_bit(x: f32, draws: Draws, i: usize) -> bool {
        let mut e = [x.abs().min(80.0)];
        exp_f32(Isa::portable(), &mut e);
        let (k, e) = (first_bits(draws, i), e[0]);
        let u = k as f32 / 65536.0;
        let least = u.mul_add(e, u);
        let beyond = e.mul_add(1.0 / 65536.0, 1.0 / 65536.0) + least;
        let unlikely = if least >= 1.0 || beyond <= 1.0 {
            least < 1.0
        } else {
            let more = draws.block(OPEN_BLOCK + i as u32)[0];
            let u = (f64::from(k) * 4294967296.0 + f64::from(more) + 0.5) / 281474976710656.0;
            u * (1.0 + f64::from(e)) < 1.0
        };
        unlikely != x.is_sign_positive()
    }

    fn draws(n_rows: usize, seed: u64) -> Vec<Draws> {
        (0..n_rows).map(|r| Stream::new(seed + r as u64 / 2, 5 + r as u64).at(9)).collect()
    }

    proptest! {
        #![proptest_config(crate::cases())]

        #[test]
        fn layers_equal_the_naive_loops_to_the_bit(
            n_in in 1usize..=300, n_out in 1usize..=200, n_rows in 1usize..=40, seed in any::<u64>(), real in any::<bool>()
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
                expected_bits.set(r, j, naive_bit(x, draws[r], j));
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
            n_in in 1usize..=100, n_out in 1usize..=100, many in any::<bool>(), wide in any::<bool>(),
            seed in any::<u64>(), real in any::<bool>()
        ) {
            let n_rows = if many { 40 } else { 3 };
            let mut case = Case::new(n_in, n_out, n_rows, seed, real);
            if wide {
                case.w.iter_mut().step_by(7).for_each(|w| *w *= 30.0);
            }
            let bias_in: Vec<f32> = case.w.iter().cycle().skip(3).take(n_in).copied().collect();
            let packed = case.packed();
            let states = if real { States::Reals(&case.x) } else { States::Bits(packed.words()) };
            // The sum, and that of all its terms without signs: roundings are as large as what is summed, not as the sum.
            let naive: Vec<(f64, f64)> = case.x.chunks(n_in).map(|row| {
                let mut magnitude = 0.0;
                let mut dot = |w: &mut dyn Iterator<Item = f32>| -> f64 {
                    let terms = row.iter().zip(w).map(|(&x, w)| f64::from(x) * f64::from(w));
                    terms.inspect(|x| magnitude += x.abs()).sum()
                };
                let linear = dot(&mut bias_in.iter().copied());
                let soft: f64 = (0..n_out).map(|j| {
                    let x = f64::from(case.bias[j]) + dot(&mut case.w.iter().skip(j).step_by(n_out).copied());
                    x.max(0.0) + (-x.abs()).exp().ln_1p()
                }).sum();
                magnitude += case.bias.iter().map(|&b| f64::from(b).abs() + 1.0).sum::<f64>();
                (linear + soft, magnitude)
            }).collect();
            let mut portable = vec![0.0; n_rows];
            log_weights(Isa::portable(), &case.affine(), &bias_in, states, &mut Scratch::default(), &mut portable);
            for isa in Isa::available() {
                let mut out = vec![f64::NAN; n_rows];
                log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut out);
                prop_assert_eq!(&out, &portable);
                for (x, (y, magnitude)) in out.iter().zip(&naive) {
                    prop_assert!((x - y).abs() <= 1e-14 * magnitude, "{} {} of {}", x, y, magnitude);
                }
                let mut quick = vec![f64::NAN; n_rows];
                quick_log_weights(isa, &case.affine(), &bias_in, states, &mut Scratch::default(), &mut quick);
                for (x, (y, magnitude)) in quick.iter().zip(&naive) {
                    prop_assert!((x - y).abs() <= 1e-6 * magnitude, "{} {} of {}", x, y, magnitude);
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
                let mut pieces = out.segments_mut(1 + n_units / 3);
                accumulate_outer(isa, &columns, &right, scale, &mut Scratch::default(), &mut pieces);
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

    /// Inputs chosen so that the first 16 bits leave every unit open: decided as the definition says, by all builds.
    #[test]
    fn what_16_bits_leave_open_is_decided_by_32_more() {
        let draws = Stream::new(8, 3).at(2);
        let x: Vec<f32> = (0..200)
            .map(|i| {
                let q = (f64::from(first_bits(draws, i)) + 0.5) / 65536.0;
                ((1.0 - q) / q).ln().abs() as f32 * if i % 3 == 0 { -1.0 } else { 1.0 }
            })
            .collect();
        let affine = Affine::new(Tiles::zeros(1, x.len()), &x);
        let expected = BitRows::pack(200, &(0..200).collect::<Vec<_>>(), |&i| naive_bit(x[i], draws, i));
        for isa in Isa::available() {
            let mut bits = BitRows::zeros(1, 200);
            let mut scratch = Scratch::default();
            sample(isa, &affine, States::Bits(&[0]), &[draws], &mut scratch, bits.words_mut(), None);
            assert_eq!(bits, expected);
        }
    }

    /// A probability of 1.7e-5, below what 16 bits resolve: 6.4 million draws give 107 ± 10 ones. False alarm of |z| < 5:
    /// 6e-7. The control, twice the probability, is caught.
    #[test]
    fn small_probabilities_come_out_right() {
        let count = |x: f32| -> f64 {
            let affine = Affine::new(Tiles::zeros(1, 64), &[x; 64]);
            let mut scratch = Scratch::default();
            let draw = |t: u32| {
                let mut word = [0];
                let draws = [Stream::new(9, 0).at(t)];
                sample(Isa::best(), &affine, States::Bits(&[0]), &draws, &mut scratch, &mut word, None);
                f64::from(word[0].count_ones())
            };
            (0..100_000).map(draw).sum()
        };
        let expected = 6.4e6 / (1.0 + 11f64.exp());
        let z = |count: f64| (count - expected) / expected.sqrt();
        assert!(z(count(-11.0)).abs() < 5.0, "z = {}", z(count(-11.0)));
        assert!(z(count(-11.0 + 2f32.ln())).abs() > 5.0);
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
    fn nan_sets_no_bit_beyond_the_units() {
        let (n_in, n_out, n_rows) = (3, 25, 40);
        let affine = Affine::new(Tiles::from_rows(n_in, n_out, &[f32::NAN; 75]), &[0.0; 25]);
        let states = [f32::NAN; 120];
        for isa in Isa::available() {
            let mut bits = vec![0; n_rows];
            sample(
                isa,
                &affine,
                States::Reals(&states),
                &draws(n_rows, 1),
                &mut Scratch::default(),
                &mut bits,
                None,
            );
            assert!(bits.iter().all(|word| word >> n_out == 0), "{bits:x?}");
        }
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
        assert_eq!(bits, [16489883542691007632, 57]);
    }
}
