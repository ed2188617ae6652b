//! Turn grey values into bits, or keep them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{RealRows, Rows, Split};
use crate::bits::BitRows;
use crate::rng::{Purpose, Stream, stream};
use crate::{Error, Result};

/// Rows per parallel task.
const BLOCK: usize = 256;

/// How values strictly between 0 and 1 are binarised.
///
/// It is written `grey`, `threshold=T` or `bernoulli`:
///
/// ```
/// use mclv::data::Binarize;
/// assert_eq!("threshold=0.5".parse::<Binarize>()?, Binarize::Threshold(0.5));
/// assert_eq!(Binarize::Bernoulli.to_string(), "bernoulli");
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Binarize {
    /// Values stay as they are.
    #[default]
    Grey,
    /// Values become 1 if they are at least this threshold, else 0. The threshold is above 0 and at
    /// most 1.
    Threshold(f32),
    /// Each value becomes 1 with a probability equal to itself, else 0.
    Bernoulli,
}

impl Binarize {
    /// Rejects a threshold that would turn a 0 into a 1 or a 1 into a 0.
    pub(super) fn check(self) -> Result<()> {
        match self {
            Self::Threshold(t) if !(t > 0.0 && t <= 1.0) => Err(Error::InvalidSetting {
                name: "binarize",
                value: self.to_string(),
                cure: "choose a threshold above 0 and not above 1",
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Binarize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grey => f.pad("grey"),
            Self::Threshold(t) => f.pad(&format!("threshold={t}")),
            Self::Bernoulli => f.pad("bernoulli"),
        }
    }
}

impl FromStr for Binarize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let binarize = match text {
            "grey" => Self::Grey,
            "bernoulli" => Self::Bernoulli,
            _ => {
                text.strip_prefix("threshold=").and_then(|t| t.parse().ok()).map(Self::Threshold).ok_or_else(
                    || Error::InvalidSetting {
                        name: "binarize",
                        value: text.into(),
                        cure: "choose grey, bernoulli or threshold=T, such as threshold=0.5",
                    },
                )?
            }
        };
        binarize.check()?;
        Ok(binarize)
    }
}

impl TryFrom<String> for Binarize {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Binarize> for String {
    fn from(binarize: Binarize) -> Self {
        binarize.to_string()
    }
}

/// Returns the rows after binarisation. Rows that are bits already stay as they are.
///
/// `Bernoulli` bits are a pure function of the seed, the epoch and the place (row, column). So they
/// can be drawn once, or anew for each epoch, with any number of threads. Epoch 0 gives the bits
/// that [`load`](super::load) draws for training rows; `load` gives the other parts their own
/// streams.
///
/// # Numerics
/// A bit is 1 if `(k + ½)·2⁻³² < value` for a uniform 32-bit `k`. Its probability is within 2⁻³³ of
/// the value, and exact for 0 and 1.
///
/// ```
/// use mclv::data::{Binarize, Rows, binarize};
/// let grey = Rows::from_values("x", 3, vec![0.0, 0.5, 1.0])?;
/// let Rows::Bits(bits) = binarize(&grey, Binarize::Bernoulli, 42, 0) else { unreachable!() };
/// assert!(!bits.get(0, 0) && bits.get(0, 2));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Panics
/// If there are 2³² rows or more, or if `epoch` needs more than 48 bits.
pub fn binarize(rows: &Rows, how: Binarize, seed: u64, epoch: u64) -> Rows {
    binarize_split(rows, how, seed, Split::Train, epoch).unwrap_or_else(|| rows.clone())
}

/// Returns the bits of a part of a set, or `None` if the rows stay as they are. Each part has its
/// own streams, so that training and test rows at the same place have independent draws.
pub(super) fn binarize_split(
    rows: &Rows,
    how: Binarize,
    seed: u64,
    split: Split,
    epoch: u64,
) -> Option<Rows> {
    let grey = match rows {
        Rows::Bits(_) => return None,
        Rows::Reals(grey) => Cow::Borrowed(grey),
        Rows::Sparse(grey) => Cow::Owned(grey.to_reals()),
    };
    let bits = match how {
        Binarize::Grey => return None,
        Binarize::Threshold(t) => fill(&grey, |_, values| pack(values.iter().map(|&v| v >= t))),
        Binarize::Bernoulli => {
            assert!(epoch < 1 << 48, "epoch {epoch} needs more than 48 bits");
            let stream = stream(seed, Purpose::Binarise, (split as u64) << 48 | epoch);
            fill(&grey, |place, values| bernoulli(stream, place, values))
        }
    };
    Some(Rows::Bits(bits))
}

/// The place of a word of bits.
#[derive(Clone, Copy)]
struct Place {
    row: u32,
    word: u32,
}

/// Makes each word of bits from up to 64 values, in parallel over blocks of rows.
fn fill(grey: &RealRows, word_of: impl Fn(Place, &[f32]) -> u64 + Sync) -> BitRows {
    let mut bits = BitRows::zeros(grey.n_rows(), grey.n_columns());
    let n_words = bits.n_words();
    bits.words_mut().par_chunks_mut(n_words * BLOCK).enumerate().for_each(|(block, words)| {
        for (i, row_words) in words.chunks_exact_mut(n_words).enumerate() {
            let row = block * BLOCK + i;
            let place = |word| Place { row: u32::try_from(row).expect("fewer than 2³² rows"), word };
            for ((word, bits), values) in (0..).zip(row_words).zip(grey.row(row).chunks(64)) {
                *bits = word_of(place(word), values);
            }
        }
    });
    bits
}

fn pack(bits: impl Iterator<Item = bool>) -> u64 {
    bits.enumerate().fold(0, |word, (i, on)| word | u64::from(on) << i)
}

/// Word `c mod 4` of block `⌊c/4⌋` of step `r` decides row `r`, column `c`.
fn bernoulli(stream: Stream, place: Place, values: &[f32]) -> u64 {
    let draws = stream.at(place.row);
    (0..).zip(values.chunks(4)).fold(0, |word, (block, values)| {
        // Most pixels are black; a draw that cannot matter is skipped.
        if values.iter().all(|&v| v == 0.0) {
            return word;
        }
        let uniform = draws.block(16 * place.word + block);
        word | pack(values.iter().zip(uniform).map(|(&v, k)| u64::from(k) < threshold(v))) << (4 * block)
    })
}

/// Returns how many of the 2³² numbers `k` have `(k + ½)·2⁻³² < v`.
fn threshold(v: f32) -> u64 {
    (f64::from(v) * 4_294_967_296.0 - 0.5).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(n_rows: usize, pattern: &[f32]) -> Rows {
        Rows::Reals(RealRows::new(pattern.len(), pattern.repeat(n_rows)))
    }

    fn bits(rows: Rows) -> BitRows {
        let Rows::Bits(bits) = rows else { panic!("not bits") };
        bits
    }

    /// The z-scores of the column frequencies and of the frequencies of 1-1 in neighbouring
    /// columns, if bits are independent with these probabilities.
    fn z_scores(bits: &BitRows, p: &[f32]) -> Vec<f64> {
        let n = bits.n_rows() as f64;
        let z = |p: f64, on: &dyn Fn(usize) -> bool| {
            let count = (0..bits.n_rows()).filter(|&r| on(r)).count() as f64;
            (count - n * p) / (n * p * (1.0 - p)).sqrt()
        };
        let p: Vec<f64> = p.iter().map(|&p| f64::from(p)).collect();
        let single = (0..p.len()).map(|c| z(p[c], &|r| bits.get(r, c)));
        let pairs = (1..p.len()).map(|c| z(p[c - 1] * p[c], &|r| bits.get(r, c - 1) && bits.get(r, c)));
        single.chain(pairs).collect()
    }

    /// 139 two-sided tests at |z| < 5 (5.7e-7 each): a false alarm in 1 of 12,000 streams.
    fn agrees(bits: &BitRows, p: &[f32]) -> bool {
        z_scores(bits, p).iter().all(|z| z.abs() < 5.0)
    }

    fn probabilities() -> Vec<f32> {
        (0..70).map(|i| (i as f32 + 1.0) / 80.0).collect()
    }

    #[test]
    fn bernoulli_bits_have_their_probabilities_and_are_independent() {
        let p = probabilities();
        assert!(agrees(&bits(binarize(&grey(40_000, &p), Binarize::Bernoulli, 3, 0)), &p));
    }

    #[test]
    fn the_check_of_bernoulli_bits_notices_broken_draws() {
        let p = probabilities();
        let rows = grey(40_000, &p);
        // Probabilities off by 0.02.
        let shifted: Vec<f32> = p.iter().map(|p| p + 0.02).collect();
        assert!(!agrees(&bits(binarize(&grey(40_000, &shifted), Binarize::Bernoulli, 3, 0)), &p));
        // One uniform number for a whole row: right frequencies, dependent bits.
        let Rows::Reals(values) = &rows else { unreachable!() };
        let stream = stream(3, Purpose::Binarise, 0);
        let reused = fill(values, |place, values| {
            let k = u64::from(stream.at(place.row).block(0)[0]);
            pack(values.iter().map(|&v| k < threshold(v)))
        });
        assert!(!agrees(&reused, &p));
    }

    #[test]
    fn thresholds_of_the_draw_are_exact_at_the_ends() {
        assert_eq!((threshold(0.0), threshold(1.0), threshold(0.5)), (0, 1 << 32, 1 << 31));
        assert_eq!(threshold(f32::MIN_POSITIVE), 0);
    }

    #[test]
    fn a_value_at_the_threshold_is_on() {
        let rows = Rows::Reals(RealRows::new(4, vec![0.0, 0.49, 0.5, 1.0]));
        assert_eq!(bits(binarize(&rows, Binarize::Threshold(0.5), 0, 0)).words(), [0b1100]);
    }

    #[test]
    fn bits_stay_bits_and_grey_stays_grey() {
        let rows = Rows::from_values("x", 2, vec![0.0, 1.0]).unwrap();
        for how in [Binarize::Grey, Binarize::Threshold(1.0), Binarize::Bernoulli] {
            assert_eq!(binarize(&rows, how, 1, 0), rows);
        }
        let rows = grey(1, &[0.5]);
        assert_eq!(binarize(&rows, Binarize::Grey, 1, 0), rows);
    }

    #[test]
    fn threads_do_not_matter_but_seed_epoch_and_split_do() {
        let rows = grey(1_000, &probabilities());
        let draw = |seed, split, epoch| binarize_split(&rows, Binarize::Bernoulli, seed, split, epoch);
        let reference = draw(1, Split::Train, 0);
        for n_threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            assert_eq!(pool.install(|| draw(1, Split::Train, 0)), reference);
        }
        assert_ne!(draw(2, Split::Train, 0), reference);
        assert_ne!(draw(1, Split::Train, 1), reference);
        assert_ne!(draw(1, Split::Test, 0), reference);
    }

    /// Other bits change all results: mention it in the changelog.
    #[test]
    fn bernoulli_bits_are_stable() {
        let drawn = bits(binarize(&grey(3, &[0.5; 70]), Binarize::Bernoulli, 42, 1));
        // Straight from the definition, bit by bit.
        let stream = stream(42, Purpose::Binarise, 1);
        for row in 0..3 {
            for column in 0..70 {
                let k = stream.at(row).block(column / 4)[column as usize % 4];
                assert_eq!(
                    drawn.get(row as usize, column as usize),
                    (f64::from(k) + 0.5) / 4_294_967_296.0 < 0.5
                );
            }
        }
    }

    #[test]
    fn texts_round_trip_and_nonsense_is_refused() {
        for text in ["grey", "bernoulli", "threshold=0.25"] {
            assert_eq!(text.parse::<Binarize>().unwrap().to_string(), text);
        }
        for text in ["gray?", "threshold", "threshold=", "threshold=0", "threshold=1.5", "threshold=NaN"] {
            assert!(matches!(text.parse::<Binarize>(), Err(Error::InvalidSetting { .. })), "{text}");
        }
        let json = serde_json::to_string(&Binarize::Threshold(0.5)).unwrap();
        assert_eq!(serde_json::from_str::<Binarize>(&json).unwrap(), Binarize::Threshold(0.5));
    }
}
