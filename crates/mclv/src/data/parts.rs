//! Count the rows of each part of a data set, and tell where they come from.

use std::fmt;

use serde::Serialize;

/// The rows of each part of a data set: how many there are, and where they come from.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// let parts = data::open(&DataSpec::default(), &mclv::progress::Silent)?.parts()?;
/// assert_eq!(parts.to_string(), "1297 train, 200 validation, 300 test (digits)");
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// The rows to train on.
    pub train: PartRows,
    /// The rows that choose the best model.
    pub validation: Option<PartRows>,
    /// The rows to report results on.
    pub test: Option<PartRows>,
    /// The number of rows that belong to no part.
    pub n_unused: usize,
    /// True if a seed has drawn which rows of a file belong to which part.
    pub is_drawn: bool,
}

/// The rows of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartRows {
    /// The number of rows.
    pub n_rows: usize,
    /// Where the rows come from, in words.
    pub from: String,
}

impl PartRows {
    /// Describes rows. Returns `None` if there are none.
    pub(crate) fn some(n_rows: usize, from: &str) -> Option<Self> {
        (n_rows > 0).then(|| Self { n_rows, from: from.into() })
    }
}

/// One line. Parts of one origin are named together.
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("train", Some(&self.train)),
            ("validation", self.validation.as_ref()),
            ("test", self.test.as_ref()),
        ];
        let there: Vec<(&str, &PartRows)> =
            parts.iter().filter_map(|(name, part)| Some((*name, (*part)?))).collect();
        for (k, (name, part)) in there.iter().enumerate() {
            write!(f, "{}{} {name}", if k > 0 { ", " } else { "" }, part.n_rows)?;
            if there.get(k + 1).is_none_or(|(_, next)| next.from != part.from) {
                write!(f, " ({})", part.from)?;
            }
        }
        for (name, _) in parts.iter().filter(|(_, part)| part.is_none()) {
            write!(f, ", no {name}")?;
        }
        match self.n_unused {
            0 => Ok(()),
            n => write!(f, "; {n} rows are not used"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_origin_are_named_together() {
        let rows = |n_rows, from| PartRows::some(n_rows, from);
        let text = |train, validation, test, n_unused| {
            Parts { train: rows(80, train).unwrap(), validation, test, n_unused, is_drawn: false }.to_string()
        };
        assert_eq!(
            text("a.csv", rows(10, "a.csv"), rows(9, "a.csv"), 0),
            "80 train, 10 validation, 9 test (a.csv)"
        );
        assert_eq!(
            text("a.csv", rows(10, "b.csv"), rows(9, "a.csv"), 0),
            "80 train (a.csv), 10 validation (b.csv), 9 test (a.csv)"
        );
        assert_eq!(
            text("a.csv", rows(0, "a.csv"), rows(9, "a.csv"), 3),
            "80 train, 9 test (a.csv), no validation; 3 rows are not used"
        );
        assert_eq!(text("a.csv", None, None, 0), "80 train (a.csv), no validation, no test");
    }
}
