//! Hold the distinct hidden states at which a tour ends.

use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::rng::{Draws, Purpose, stream};
use crate::settings::MOST_STATES;
use crate::{Error, Result};
use hashbrown::HashTable;

/// A set of hidden states `H`; the stopping set proper is `S = H × {all v}`.
///
/// Only distinct states count: `Z_S = Σ_{h∈H} p*(h)`. The set must not be built from, or changed
/// by, the tours that end in it.
///
/// ```
/// use mclv::{StoppingSet, bits::BitRows};
/// let set = StoppingSet::new(&BitRows::pack(2, &[1, 0, 0, 1, 1, 0], |&x| x == 1));
/// assert_eq!(set.len(), 2);
/// assert_eq!(set.find(&[0b01]), Some(0));
/// assert_eq!(set.find(&[0b11]), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct StoppingSet {
    states: BitRows,
    /// Row numbers of `states`, by hash.
    index: HashTable<u32>,
}

impl StoppingSet {
    /// Creates the set of the distinct rows of `states`, in order of first appearance.
    pub fn new(states: &BitRows) -> Self {
        Self::with_members(states).0
    }

    /// Returns the set, and for each row of `states` its number in the set.
    fn with_members(states: &BitRows) -> (Self, Vec<u32>) {
        let mut members = Vec::with_capacity(states.n_rows());
        let mut index: HashTable<u32> = HashTable::with_capacity(states.n_rows());
        let mut first = Vec::new();
        for r in 0..states.n_rows() {
            let row = states.row(r);
            let known = index.find(hash(row), |&k| states.row(first[k as usize]) == row).copied();
            members.push(known.unwrap_or_else(|| {
                let k = first.len() as u32;
                first.push(r);
                index.insert_unique(hash(row), k, |&k| hash(states.row(first[k as usize])));
                k
            }));
        }
        (Self { states: states.select(&first), index }, members)
    }

    /// Creates a set of states drawn from `p(h|v_n)`, `n_per_row` for each of the data rows named
    /// by `rows`.
    ///
    /// `occasion`, below 2³², tells sets of the same seed apart.
    ///
    /// # Errors
    /// If the data do not have the model's width.
    pub fn draw(
        rbm: &Rbm,
        data: &Rows,
        rows: &[usize],
        n_per_row: usize,
        seed: u64,
        occasion: u64,
    ) -> Result<Self> {
        Ok(Self::draw_with_members(rbm, data, rows, n_per_row, seed, occasion)?.0)
    }

    /// Draws a set like [`draw`](Self::draw), and also returns the row number in the set of every
    /// draw. Draw `k` was made from row `rows[k % rows.len()]`.
    ///
    /// # Errors
    /// If the data do not have the model's width, or if 2²⁴ states or more are to be drawn.
    pub fn draw_with_members(
        rbm: &Rbm,
        data: &Rows,
        rows: &[usize],
        n_per_row: usize,
        seed: u64,
        occasion: u64,
    ) -> Result<(Self, Vec<u32>)> {
        if n_per_row.checked_mul(rows.len()).is_none_or(|n| n >= MOST_STATES) {
            let cure = "must draw fewer than 16,777,216 states in all";
            return Err(Error::InvalidSetting {
                name: "samples-per-row",
                value: n_per_row.to_string(),
                cure,
            });
        }
        let chosen = if rows.len() == data.n_rows() && rows.iter().enumerate().all(|(k, &r)| k == r) {
            None
        } else {
            Some(data.select(rows))
        };
        let chosen = chosen.as_ref().unwrap_or(data);
        let mut all = BitRows::zeros(0, rbm.n_hidden());
        for m in 0..n_per_row {
            let draws = |r: usize| draws_of(seed, occasion, r as u64, m as u64);
            all.append(&rbm.sample_h_from_v(chosen, draws)?);
        }
        Ok(Self::with_members(&all))
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.states.n_rows()
    }

    /// Returns true if the set has no states.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the states, one per row.
    pub fn states(&self) -> &BitRows {
        &self.states
    }

    /// Returns the bytes of the packed states and of the hash table that finds them.
    pub fn n_bytes(&self) -> usize {
        size_of_val(self.states.words()) + self.index.allocation_size()
    }

    /// Returns the bytes of a table of starts for this set: a weight of 8 bytes for each state, and 8
    /// bytes to draw it.
    pub fn n_bytes_of_starts(&self) -> usize {
        self.len() * (size_of::<f64>() + 2 * size_of::<u32>())
    }

    /// Returns the row number of `state`, or `None` if it is not in the set.
    pub fn find(&self, state: &[u64]) -> Option<usize> {
        self.index.find(hash(state), |&k| self.states.row(k as usize) == state).map(|&k| k as usize)
    }
}

/// Returns the random numbers of draw `m` from a row. No two draws of a seed share them.
///
/// Row numbers beyond 2²⁴ do not fit beside the occasion. Their further bits go into the number of
/// the step.
fn draws_of(seed: u64, occasion: u64, row: u64, m: u64) -> Draws {
    let (low, high) = (row & 0xff_ffff, row >> 24);
    let step = u32::try_from(high << 20 | m).ok().filter(|_| high == 0 || m < 1 << 20);
    let step = step.expect("at most 2³⁶ rows, and 2²⁰ draws from each where rows are more than 2²⁴");
    stream(seed, Purpose::StoppingSet, occasion << 24 | low).at(step)
}

/// Multiply, fold and rotate: states are near-random bits already.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0x243f_6a88_85a3_08d3, |hash: u64, &word| {
        let wide = u128::from(hash ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        (wide as u64) ^ (wide >> 64) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_draws_share_random_numbers_however_many_rows_there_are() {
        let far = 1 << 24;
        let mut seen = HashSet::new();
        for occasion in [0, 1, 2] {
            for row in [0, 1, far - 1, far, far + 1, 2 * far, 2 * far + 1] {
                for m in [0, 1, 7] {
                    assert!(seen.insert(draws_of(5, occasion, row, m).block(0)), "{occasion} {row} {m}");
                }
            }
        }
        // Sets of fewer rows are what they have always been.
        let old = stream(5, Purpose::StoppingSet, 2 << 24 | 77).at(3);
        assert_eq!(draws_of(5, 2, 77, 3).block(0), old.block(0));
    }

    #[test]
    fn membership_is_that_of_a_plain_set() {
        for n_bits in [5, 64, 130] {
            let mut rng = stream(3, Purpose::SelfTest, n_bits as u64).reader();
            let mut states = BitRows::zeros(500, n_bits);
            for r in 0..500 {
                // Few bits in play, so that many rows coincide.
                for bit in [0, 1, 2, 3, n_bits - 1] {
                    states.set(r, bit, rng.uniform() < 0.5);
                }
            }
            let plain: HashSet<&[u64]> = (0..400).map(|r| states.row(r)).collect();
            let (set, members) = StoppingSet::with_members(&states.select(&(0..400).collect::<Vec<_>>()));
            assert_eq!(set.len(), plain.len());
            assert!((0..400).all(|r| set.states().row(members[r] as usize) == states.row(r)));
            for r in 0..500 {
                let found = set.find(states.row(r));
                assert_eq!(found.is_some(), plain.contains(states.row(r)));
                assert!(found.is_none_or(|k| set.states().row(k) == states.row(r)));
            }
        }
    }
}
