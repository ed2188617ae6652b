//! Limit the memory that the content of a file may take, because a small compressed file can hold a
//! thousand times its own length.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The variable that replaces the limit: a size, or `none`.
const VARIABLE: &str = "MCLV_MAX_MEMORY";
/// Without the variable, every file may take this much memory.
const FLOOR: u64 = 256_000_000;
/// Without the variable, a longer file may take this many times its length. Digits and tables of
/// zeros and ones that are saved compressed grow by a factor of 10 to 100.
const RATIO: u64 = 200;

/// Bytes of memory for each row, besides its values.
const ROW: u64 = 32;

/// The memory that the content of one file may take, and has taken so far.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    path: PathBuf,
    at_most: u64,
    used: u64,
}

impl Allowance {
    /// The allowance of a file of `length` bytes.
    ///
    /// # Errors
    /// If the variable `MCLV_MAX_MEMORY` is no size.
    pub(crate) fn of_file(path: &Path, length: u64) -> Result<Self> {
        let set = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        let at_most = set.map_or_else(|| Ok(limit(length)), |text| parse(&text))?;
        Ok(Self { path: path.into(), at_most, used: 0 })
    }

    /// The most memory in bytes.
    pub(crate) fn at_most(&self) -> u64 {
        self.at_most
    }

    /// Counts `n` more bytes before they are allocated. `None` is a number too large to represent.
    ///
    /// # Errors
    /// If the sum is above the limit.
    pub(crate) fn charge(&mut self, n: impl Into<Option<u64>>) -> Result<()> {
        let wanted = n.into().and_then(|n| self.used.checked_add(n)).unwrap_or(u64::MAX);
        if wanted > self.at_most {
            return Err(self.exceeded(wanted));
        }
        self.used = wanted;
        Ok(())
    }

    /// Counts what rows take besides their values: bits fill whole words, and sparse rows have ends.
    pub(crate) fn charge_rows(&mut self, n_rows: usize) -> Result<()> {
        self.charge((n_rows as u64).checked_mul(ROW))
    }

    /// The error of a file that wants so many bytes.
    pub(crate) fn exceeded(&self, wanted: u64) -> Error {
        Error::TooLarge { path: self.path.clone(), wanted, at_most: self.at_most }
    }
}

fn limit(length: u64) -> u64 {
    length.saturating_mul(RATIO).max(FLOOR)
}

/// Parses a size: a number of bytes, of kB (`K`), MB (`M`), GB (`G`) or TB (`T`), or `none`.
fn parse(text: &str) -> Result<u64> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(u64::MAX);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B') {
        "" => Some(1),
        "K" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        "T" => Some(1_000_000_000_000),
        _ => None,
    };
    let size = digits.parse::<u64>().ok().zip(factor).and_then(|(n, factor)| n.checked_mul(factor));
    size.filter(|&size| size > 0).ok_or_else(|| Error::InvalidSetting {
        name: VARIABLE,
        value: text.into(),
        cure: "give the most memory that a file may take, such as 500M or 8G, or none for no limit",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, size) in [("1", 1), ("3k", 3_000), ("500M", 500_000_000), ("8GB", 8_000_000_000)] {
            assert_eq!(parse(text).unwrap(), size, "{text}");
        }
        assert_eq!((parse("none").unwrap(), parse("NONE").unwrap()), (u64::MAX, u64::MAX));
        for text in ["0", "-1", "8X", "G", "nan", "1e9", "99999999999T", "8 G"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("MCLV_MAX_MEMORY") && error.contains("8G"), "{error}");
        }
    }

    #[test]
    fn a_small_file_may_take_the_floor_and_a_long_one_a_multiple_of_its_length() {
        assert_eq!((limit(10), limit(10_000_000), limit(u64::MAX)), (FLOOR, 2_000_000_000, u64::MAX));
        let mut allowance = Allowance { path: "x.npz".into(), at_most: 100, used: 0 };
        allowance.charge(60).unwrap();
        let error = allowance.charge(41).unwrap_err().to_string();
        assert!(error.contains("x.npz") && error.contains("MCLV_MAX_MEMORY=1G"), "{error}");
        // Nothing was added by the failure.
        allowance.charge(40).unwrap();
        assert!(allowance.charge(None).is_err() && allowance.charge(u64::MAX).is_err());
    }
}
