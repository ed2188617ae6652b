//! The random numbers of one tile of a layer, drawn ahead of their use.

use crate::arch::{Simd, U64Lanes};
use crate::rng::{Draws, MULTIPLIERS, N_ROUNDS, WEYL};
use crate::tiles::CELL;

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

    /// Computes `G` times four Philox blocks, the first of each four with the given counter. Only
    /// the low half of each lane is used.
    ///
    /// The upper halves are arbitrary; no operation reads them. A block is one long chain of
    /// dependent operations, so several are computed side by side.
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
pub(super) struct TileDraws {
    words: Vec<[u32; CELL]>,
    per_row: usize,
}

impl TileDraws {
    /// Draws for tile `t`, `width` cells wide. The numbers are drawn before they are used, so that
    /// the chains of dependent operations of many states overlap.
    #[inline(always)]
    pub(super) fn fill<S: Simd>(&mut self, t: usize, width: usize, draws: &[Draws]) {
        let n_groups = width.div_ceil(4);
        self.per_row = 2 * n_groups;
        self.words.resize(draws.len() * self.per_row, [0; CELL]);
        let first = (8 * t) as u32;
        // Sixteen registers' worth side by side, or eight if there are fewer registers.
        match (n_groups, S::N_REGISTERS >= 32) {
            (1, true) => self.fill_rows::<S, 4, 4>(draws, [[0, 0], [1, 0], [2, 0], [3, 0]], first),
            (1, false) => self.fill_rows::<S, 2, 2>(draws, [[0, 0], [1, 0]], first),
            (_, true) => self.fill_rows::<S, 2, 4>(draws, [[0, 0], [0, 4], [1, 0], [1, 4]], first),
            (_, false) => self.fill_rows::<S, 1, 2>(draws, [[0, 0], [0, 4]], first),
        }
    }

    /// Fills `R` rows at a time, with `G` times four blocks. `places` gives the row of each, and
    /// its place after the first.
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
            // The last few, or rows of different seeds, are filled one after the other.
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

    /// Returns the numbers for `8·V` units of state `row`, from cell `cell` of the tile on.
    #[inline(always)]
    pub(super) fn get(&self, row: usize, cell: usize, n_cells: usize) -> &[[u32; CELL]] {
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
