//! Hold rows of packed 0/1 states.
//!
//! ```text
//! row r, 100 bits, 2 words:   word 0                      word 1
//!                             bit 0 … bit 63 (LSB first)  bit 64 … bit 99, then 28 zero bits
//! ```
//! Bit `i` of a row is bit `i % 64` of word `i / 64`. The padding bits after the last one are
//! always zero, so words can be compared, hashed and counted without masking.

use std::fmt;

/// Returns the number of 64-bit words that hold `n_bits` bits.
///
/// ```
/// assert_eq!(mclv_kernels::bits::words_for(784), 13);
/// ```
pub const fn words_for(n_bits: usize) -> usize {
    n_bits.div_ceil(64)
}

/// Returns the positions of the set bits of a packed row, in increasing order.
///
/// ```
/// let ones: Vec<usize> = mclv_kernels::bits::ones(&[0b1010, 1]).collect();
/// assert_eq!(ones, [1, 3, 64]);
/// ```
pub fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(k, &word)| {
        std::iter::successors((word != 0).then_some(word), |w| {
            let rest = w & (w - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |w| k * 64 + w.trailing_zeros() as usize)
    })
}

/// A matrix of bits, one packed row per state.
///
/// ```
/// use mclv_kernels::bits::BitRows;
/// let mut states = BitRows::zeros(2, 70);
/// states.set(1, 69, true);
/// assert!(states.get(1, 69) && !states.get(0, 69));
/// assert_eq!(states.row(1), &[0, 1 << 5]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct BitRows {
    n_rows: usize,
    n_bits: usize,
    words: Vec<u64>,
}

impl BitRows {
    /// Creates `n_rows` states of `n_bits` zero bits.
    pub fn zeros(n_rows: usize, n_bits: usize) -> Self {
        Self { n_rows, n_bits, words: vec![0; n_rows * words_for(n_bits)] }
    }

    /// Packs `n_rows × n_bits` values, row by row. `on` returns true for the values that become
    /// ones.
    ///
    /// # Panics
    /// If `values` is not a whole number of rows.
    pub fn pack<T>(n_bits: usize, values: &[T], on: impl Fn(&T) -> bool) -> Self {
        assert!(
            n_bits > 0 && values.len().is_multiple_of(n_bits),
            "{} values in rows of {n_bits}",
            values.len()
        );
        let mut rows = Self::zeros(values.len() / n_bits, n_bits);
        for (r, row) in values.chunks_exact(n_bits).enumerate() {
            for (word, chunk) in rows.row_mut(r).iter_mut().zip(row.chunks(64)) {
                *word = chunk.iter().enumerate().fold(0, |w, (i, x)| w | (u64::from(on(x)) << i));
            }
        }
        rows
    }

    /// Creates rows from packed words, row after row. The padding bits must be zero.
    ///
    /// # Panics
    /// If the words do not make whole rows.
    pub fn from_words(n_bits: usize, words: Vec<u64>) -> Self {
        let n = words_for(n_bits);
        assert!(n > 0 && words.len().is_multiple_of(n), "{} words in rows of {n}", words.len());
        Self { n_rows: words.len() / n, n_bits, words }
    }

    /// Returns true if all padding bits are zero. Words from a file need this check.
    pub fn is_padded_with_zeros(&self) -> bool {
        let used = self.n_bits % 64;
        used == 0 || (0..self.n_rows).all(|r| self.row(r).last().is_none_or(|word| word >> used == 0))
    }

    /// Returns all `2^n_bits` states, counting up.
    ///
    /// # Panics
    /// If there are more than `2^30` states.
    pub fn all_states(n_bits: usize) -> Self {
        assert!((1..=30).contains(&n_bits), "2^{n_bits} states");
        Self::from_words(n_bits, (0..1 << n_bits).collect())
    }

    /// Appends the rows of `other`.
    ///
    /// # Panics
    /// If the rows of `other` have another length.
    pub fn append(&mut self, other: &Self) {
        assert_eq!(self.n_bits, other.n_bits, "bits per row");
        self.words.extend_from_slice(&other.words);
        self.n_rows += other.n_rows;
    }

    /// The number of states.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of bits per state.
    pub fn n_bits(&self) -> usize {
        self.n_bits
    }

    /// The number of words per state.
    pub fn n_words(&self) -> usize {
        words_for(self.n_bits)
    }

    /// Returns all words, row after row.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the packed words of state `row`.
    pub fn row(&self, row: usize) -> &[u64] {
        let n = self.n_words();
        &self.words[row * n..(row + 1) * n]
    }

    /// Returns the packed words of state `row` for writing. Keep the padding bits zero.
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        let n = self.n_words();
        &mut self.words[row * n..(row + 1) * n]
    }

    /// Returns the rows `first .. first + n` as one slice of words.
    pub fn rows(&self, first: usize, n: usize) -> &[u64] {
        let w = self.n_words();
        &self.words[first * w..(first + n) * w]
    }

    /// Returns all words for writing. Keep the padding bits zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Returns bit `bit` of state `row`.
    pub fn get(&self, row: usize, bit: usize) -> bool {
        assert!(bit < self.n_bits, "bit {bit} of {}", self.n_bits);
        self.row(row)[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Sets bit `bit` of state `row`.
    pub fn set(&mut self, row: usize, bit: usize, on: bool) {
        assert!(bit < self.n_bits, "bit {bit} of {}", self.n_bits);
        let word = &mut self.row_mut(row)[bit / 64];
        *word = *word & !(1 << (bit % 64)) | u64::from(on) << (bit % 64);
    }

    /// Returns a new matrix of the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut words = Vec::with_capacity(indices.len() * self.n_words());
        for &i in indices {
            words.extend_from_slice(self.row(i));
        }
        Self { n_rows: indices.len(), n_bits: self.n_bits, words }
    }
}

impl fmt::Debug for BitRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitRows({} × {})", self.n_rows, self.n_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::cases())]

        #[test]
        fn packing_agrees_with_single_bits(n_bits in 1usize..=130, seed in any::<u64>()) {
            let n_rows = 3;
            let values: Vec<bool> =
                (0..n_rows * n_bits).map(|i| (seed.rotate_left(i as u32 % 64) ^ i as u64).count_ones() % 2 == 1).collect();
            let packed = BitRows::pack(n_bits, &values, |&x| x);
            let mut set = BitRows::zeros(n_rows, n_bits);
            for (i, &x) in values.iter().enumerate() {
                set.set(i / n_bits, i % n_bits, x);
                prop_assert_eq!(packed.get(i / n_bits, i % n_bits), x);
            }
            prop_assert_eq!(&packed, &set);
            for r in 0..n_rows {
                let on: Vec<usize> = (0..n_bits).filter(|&i| values[r * n_bits + i]).collect();
                prop_assert_eq!(&ones(packed.row(r)).collect::<Vec<_>>(), &on);
                let count: u32 = packed.row(r).iter().map(|w| w.count_ones()).sum();
                prop_assert_eq!(count as usize, on.len(), "padding is zero");
            }
        }
    }

    #[test]
    fn clearing_a_bit_leaves_the_others() {
        let mut rows = BitRows::zeros(1, 65);
        rows.set(0, 3, true);
        rows.set(0, 64, true);
        rows.set(0, 3, false);
        assert_eq!(rows.row(0), &[0, 1]);
        assert_eq!(rows.select(&[0, 0]).words(), &[0, 1, 0, 1]);
    }
}
