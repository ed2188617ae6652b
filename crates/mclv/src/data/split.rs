//! Name the parts of a data set, and divide files that have no parts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::rng::{Purpose, stream};
use crate::{Error, Result};

/// A part of a data set.
///
/// | set | train | validation | test | all |
/// |---|---|---|---|---|
/// | `mnist`, `fashion-mnist` | last 55,000 rows of the training file | its first 5,000 | the 10,000 of the test file | the 60,000 of the training file |
/// | `nltcs` and the other sets of its collection | the published training rows | the published validation rows | the published test rows | all three |
/// | `genome805` | 80 % of the persons, the same for every seed | 10 % | 10 % | 5,008 |
/// | `digits` | first 1,297 rows | next 200 | last 300 | 1,797 |
/// | `bars-and-stripes` | every pattern once | the same | the same | the same |
/// | `ising` | 10,000 independent draws | others | others | others |
/// | a file | 80 % drawn by the seed | 10 % | 10 % | every row |
///
/// [`DataSpec`](super::DataSpec) can name other parts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Rows to train on.
    Train,
    /// Rows to choose settings by.
    Validation,
    /// Rows to report results on.
    Test,
    /// All rows (of `mnist` and `fashion-mnist`: those of the training file).
    #[default]
    All,
}

impl Split {
    /// All parts, in this order.
    pub const EACH: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::All];

    /// The words for parts in files, for errors.
    pub(super) const CHOICES: &str = "write train, validation or test, or 0, 1 or 2";

    /// Returns the part that a word in a file stands for: `train`, `validation`, `test`, or a usual
    /// abbreviation.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        match word.to_lowercase().as_str() {
            "train" | "training" | "tr" | "trn" => Some(Self::Train),
            "validation" | "validate" | "valid" | "val" | "dev" | "development" => Some(Self::Validation),
            "test" | "testing" | "tst" => Some(Self::Test),
            _ => None,
        }
    }

    /// Returns the part that a cell of a file stands for: a word, or 0, 1 or 2.
    pub(super) fn of_cell(cell: &[u8]) -> Option<Self> {
        let word = std::str::from_utf8(cell).ok()?;
        Self::of_word(word).or_else(|| Self::of_number(word.parse().ok()?))
    }

    /// Returns the part that a number stands for: 0 is `train`, 1 `validation` and 2 `test`.
    pub(super) fn of_number(number: f64) -> Option<Self> {
        Self::EACH[..3]
            .iter()
            .copied()
            .zip([0.0, 1.0, 2.0])
            .find(|(_, n)| *n == number)
            .map(|(split, _)| split)
    }

    /// Returns the rows of this part of a file of `n_rows` rows, in file order. A permutation drawn
    /// by `seed` is cut after ⌊0.8 n⌋ and ⌊0.9 n⌋ rows, so the three parts are disjoint and make up
    /// the whole.
    ///
    /// ```
    /// use mclv::data::Split;
    /// assert_eq!(Split::Train.of_file(50, 1).len(), 40);
    /// assert_eq!(Split::All.of_file(3, 1), [0, 1, 2]);
    /// ```
    pub fn of_file(self, n_rows: usize, seed: u64) -> Vec<usize> {
        let (train, validation) = (n_rows * 8 / 10, n_rows * 9 / 10);
        let range = match self {
            Self::Train => 0..train,
            Self::Validation => train..validation,
            Self::Test => validation..n_rows,
            Self::All => return (0..n_rows).collect(),
        };
        let mut order: Vec<usize> = (0..n_rows).collect();
        stream(seed, Purpose::Split, 0).reader().shuffle(&mut order);
        let mut part = order[range].to_vec();
        part.sort_unstable();
        part
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::All => "all",
        })
    }
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::EACH.into_iter().find(|split| split.to_string() == text).ok_or_else(|| Error::InvalidSetting {
            name: "split",
            value: text.into(),
            cure: "choose train, validation, test or all",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for split in Split::EACH {
            assert_eq!(split.to_string().parse::<Split>().unwrap(), split);
            assert_eq!(serde_json::to_string(&split).unwrap(), format!("\"{split}\""));
        }
        let error = "dev".parse::<Split>().unwrap_err().to_string();
        assert_eq!(error, "split = dev is not allowed: choose train, validation, test or all");
    }

    #[test]
    fn usual_abbreviations_and_numbers_name_parts() {
        for (cells, split) in [
            (&["train", "Training", "TR", "0", "0.0"][..], Some(Split::Train)),
            (&["validation", "valid", "VAL", "dev", "1"], Some(Split::Validation)),
            (&["test", "Testing", "2"], Some(Split::Test)),
            (&["", "all", "3", "-1", "0.5", "nan", "holdout"], None),
        ] {
            assert!(cells.iter().all(|cell| Split::of_cell(cell.as_bytes()) == split), "{cells:?}");
        }
    }

    #[test]
    fn the_parts_of_a_file_are_disjoint_and_whole() {
        for n in [0, 1, 9, 10, 101] {
            let parts: Vec<_> = Split::EACH[..3].iter().map(|s| s.of_file(n, 5)).collect();
            let mut union = parts.concat();
            union.sort_unstable();
            assert_eq!(union, (0..n).collect::<Vec<_>>());
            assert_eq!(parts[0].len(), n * 8 / 10);
        }
    }

    #[test]
    fn the_seed_decides_the_parts() {
        assert_eq!(Split::Test.of_file(30, 1), Split::Test.of_file(30, 1));
        assert_ne!(Split::Test.of_file(30, 1), Split::Test.of_file(30, 2));
    }

    /// Other rows change results: mention it in the changelog.
    #[test]
    fn the_parts_are_stable() {
        assert_eq!(Split::Test.of_file(50, 42), [2, 14, 15, 19, 30]);
    }
}
