//! Specify which visible units are known, and their values.

use crate::bits::BitRows;
use crate::numpy::read_npy;
use crate::source::Source;
use crate::team::{Facts, agree};
use crate::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A list of indices from 0, written like `0-13,20`, with both ends included.
///
/// ```
/// use mclv::sample::Ranges;
/// let ranges: Ranges = "0-2,7".parse()?;
/// assert_eq!(ranges.indices("unit", 10)?, [0, 1, 2, 7]);
/// let error = ranges.indices("unit", 5).unwrap_err();
/// assert_eq!(error.to_string(), "unit = 7 is not allowed: there are 5, counted from 0 to 4");
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    /// Returns the indices, in the order they were written.
    ///
    /// # Errors
    /// If an index is not below `n`. `what` names the counted thing in the message.
    pub fn indices(&self, what: &'static str, n: usize) -> Result<Vec<usize>> {
        if let Some(&(_, last)) = self.0.iter().find(|(_, last)| *last >= n) {
            let cure = format!("there are {n}, counted from 0 to {}", n.saturating_sub(1));
            return Err(Error::InvalidChoice { name: what, value: last.to_string(), cure });
        }
        Ok(self.0.iter().flat_map(|&(first, last)| first..=last).collect())
    }
}

impl FromStr for Ranges {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some((first, last))
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self).ok_or_else(|| Error::InvalidSetting {
            name: "range",
            value: format!("{text:?}"),
            cure: "write numbers and ranges from 0, lower end first, such as 0-13 or 0-9,20",
        })
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, (first, last)) in self.0.iter().enumerate() {
            let comma = if k == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// The choice of visible units that are known.
///
/// It is written `rows:0-13` or `columns:0-13` for pictures, `units:0-99,200`, or as the name of a
/// `.npy` file:
///
/// ```
/// use mclv::sample::Known;
/// let upper: Known = "rows:0-1".parse()?;
/// let mask = upper.mask(12, Some((4, 3)))?;
/// assert_eq!(mask.row(0), [0b000_000_111_111]);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Rows of pictures.
    Rows(Ranges),
    /// Columns of pictures.
    Columns(Ranges),
    /// Units by number.
    Units(Ranges),
    /// A `.npy` file of zeros and ones (unknown, known), one for each unit, in any shape.
    File(PathBuf),
}

impl Known {
    /// Returns one row of `n_visible` bits: 1 where a unit is known. Rows and columns are those of
    /// pictures of `image_shape`.
    ///
    /// # Errors
    /// If the shape is needed and is missing or does not fit `n_visible` units, if an index is out
    /// of range, or if the file does not hold a mask.
    pub fn mask(&self, n_visible: usize, image_shape: Option<(usize, usize)>) -> Result<BitRows> {
        let shape = || match image_shape {
            Some((height, width)) if height.checked_mul(width) == Some(n_visible) => Ok((height, width)),
            Some((height, width)) => Err(Error::ShapeMismatch {
                what: format!("units of a picture of {height} × {width}"),
                expected: n_visible,
                got: height.saturating_mul(width),
            }),
            None => Err(Error::InvalidSetting {
                name: "known",
                value: self.to_string(),
                cure: "it is not known how the units make a picture; name the shape, or units:…",
            }),
        };
        let units: Vec<usize> = match self {
            Self::Rows(ranges) => {
                let (height, width) = shape()?;
                let rows = ranges.indices("row of the picture", height)?;
                rows.iter().flat_map(|y| y * width..(y + 1) * width).collect()
            }
            Self::Columns(ranges) => {
                let (height, width) = shape()?;
                let columns = ranges.indices("column of the picture", width)?;
                columns.iter().flat_map(|&x| (0..height).map(move |y| y * width + x)).collect()
            }
            Self::Units(ranges) => ranges.indices("visible unit", n_visible)?,
            Self::File(path) => units_of_file(path, n_visible)?,
        };
        let mut mask = BitRows::zeros(1, n_visible);
        units.into_iter().for_each(|i| mask.set(0, i, true));
        Ok(mask)
    }
}

fn units_of_file(path: &Path, n_visible: usize) -> Result<Vec<usize>> {
    let (array, sha256) = read_npy(Source::open(path)?)?;
    agree(&Facts::default().with(&format!("the content of {}", path.display()), &sha256))?;
    let (shape, values) = (array.shape.clone(), array.into_reals());
    if values.len() != n_visible {
        let problem = format!(
            "has the shape {shape:?}, {} values; the model has {n_visible} visible units, give a 0 or a 1 for each",
            values.len()
        );
        return Err(Error::malformed(path, problem));
    }
    if let Some(at) = values.iter().position(|&x| x != 0.0 && x != 1.0) {
        let problem = format!("holds {}; a mask holds 0 (unknown) and 1 (known)", values[at]);
        return Err(Error::malformed_at(path, format!("value {at}"), problem));
    }
    Ok((0..n_visible).filter(|&i| values[i] == 1.0).collect())
}

impl FromStr for Known {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("rows", ranges)) => Ok(Self::Rows(ranges.parse()?)),
            Some(("columns", ranges)) => Ok(Self::Columns(ranges.parse()?)),
            Some(("units", ranges)) => Ok(Self::Units(ranges.parse()?)),
            _ if Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) => {
                Ok(Self::File(text.into()))
            }
            _ => Err(Error::InvalidSetting {
                name: "known",
                value: format!("{text:?}"),
                cure: "write rows:0-13, columns:0-13, units:0-99,200 or the name of a .npy mask",
            }),
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(ranges) => write!(f, "rows:{ranges}"),
            Self::Columns(ranges) => write!(f, "columns:{ranges}"),
            Self::Units(ranges) => write!(f, "units:{ranges}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The values of known visible units, on which samples are conditioned.
///
/// Chain `r` has row `r` of the values, counting from the first row again after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// A single row.
    mask: BitRows,
    /// Zero where the mask is zero.
    values: BitRows,
}

impl Given {
    /// Creates the condition: units where `mask` (one row) is 1 have their values in the rows of
    /// `values`. Other values are ignored.
    ///
    /// # Errors
    /// If there are no values, if the widths differ, or if the mask leaves nothing known or nothing
    /// to draw.
    pub fn new(mask: BitRows, mut values: BitRows) -> Result<Self> {
        for (what, expected, got) in [
            ("rows of a mask", 1, mask.n_rows()),
            ("visible units (the mask's width against the data's)", mask.n_bits(), values.n_bits()),
        ] {
            if expected != got {
                return Err(Error::ShapeMismatch { what: what.into(), expected, got });
            }
        }
        if values.n_rows() == 0 {
            return Err(Error::Empty { what: "the given data".into(), cure: "give at least one row" });
        }
        let n_known: usize = mask.words().iter().map(|w| w.count_ones() as usize).sum();
        if n_known == 0 {
            return Err(Error::Empty {
                what: "the set of known units".into(),
                cure: "name at least one, or draw without given values",
            });
        }
        if n_known == mask.n_bits() {
            return Err(Error::Empty {
                what: "the set of unknown units".into(),
                cure: "leave at least one to be drawn",
            });
        }
        for r in 0..values.n_rows() {
            values.row_mut(r).iter_mut().zip(mask.row(0)).for_each(|(value, mask)| *value &= mask);
        }
        Ok(Self { mask, values })
    }

    /// Returns the mask, one row: 1 where a unit is known.
    pub fn mask(&self) -> &BitRows {
        &self.mask
    }

    /// The number of known units.
    pub fn n_known(&self) -> usize {
        self.mask.words().iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The number of visible units, known and unknown.
    pub fn n_visible(&self) -> usize {
        self.mask.n_bits()
    }

    /// Returns the number of the row whose known values a chain has. Equal rows have the same
    /// number.
    pub(super) fn row_number(&self, chain: usize) -> usize {
        let row = self.row_of_chain(chain);
        (0..self.values.n_rows()).find(|&r| self.values.row(r) == row).unwrap_or(0)
    }

    /// Returns the known values of a chain, packed, with zeros elsewhere.
    pub(super) fn row_of_chain(&self, chain: usize) -> &[u64] {
        self.values.row(chain % self.values.n_rows())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numpy::to_npy;

    fn known(text: &str) -> Result<Known> {
        text.parse()
    }

    #[test]
    fn masks_are_what_they_say() {
        // A picture of 2 × 3.
        let mask = |text: &str| known(text).unwrap().mask(6, Some((2, 3))).unwrap().row(0)[0];
        assert_eq!(mask("rows:1"), 0b111_000);
        assert_eq!(mask("columns:0,2"), 0b101_101);
        assert_eq!(mask("units:0-1,5,1"), 0b100_011);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.npy");
        std::fs::write(&path, to_npy(&[2, 3], &[1u8, 0, 0, 0, 1, 0])).unwrap();
        assert_eq!(mask(path.to_str().unwrap()), 0b010_001);
    }

    #[test]
    fn texts_round_trip() {
        for text in ["rows:0-13", "columns:3", "units:0-99,200", "folder/mask.npy"] {
            assert_eq!(known(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for text in ["upper", "rows", "pixels:3", "mask.png", ""] {
            let error = known(text).unwrap_err().to_string();
            assert!(error.contains("rows:0-13") && error.contains(".npy mask"), "{error}");
        }
        for text in ["rows:", "rows:3-1", "units:a", "units:-3", "units:1-", "columns:0,,1"] {
            let error = known(text).unwrap_err().to_string();
            assert!(error.contains("lower end first"), "{error}");
        }
        let error = |text: &str, shape| known(text).unwrap().mask(6, shape).unwrap_err().to_string();
        assert!(
            error("rows:0-2", Some((2, 3))).contains("row of the picture = 2 is not allowed: there are 2")
        );
        assert!(error("columns:3", Some((2, 3))).contains("column of the picture = 3"));
        assert!(error("units:0-6", None).contains("visible unit = 6 is not allowed: there are 6"));
        assert!(error("rows:0", None).contains("name the shape"));
        assert!(error("rows:0", Some((2, 2))).contains("picture of 2 × 2: expected 6, got 4"));
    }

    #[test]
    fn files_that_are_no_masks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.npy");
        let error = |bytes: Vec<u8>| {
            std::fs::write(&path, bytes).unwrap();
            Known::File(path.clone()).mask(3, None).unwrap_err().to_string()
        };
        let size = error(to_npy(&[2], &[0u8, 1]));
        assert!(size.contains("mask.npy") && size.contains("3 visible units"), "{size}");
        let grey = error(to_npy(&[3], &[0.0f32, 1.0, 0.5]));
        assert!(grey.contains("holds 0.5") && grey.contains("value 2"), "{grey}");
    }

    #[test]
    fn values_must_leave_something_known_and_something_to_draw() {
        let error = |mask: u64, n_rows: usize, n_bits: usize| {
            let values = BitRows::zeros(n_rows, n_bits);
            Given::new(BitRows::from_words(3, vec![mask]), values).unwrap_err().to_string()
        };
        assert!(error(0, 1, 3).contains("known units is empty"));
        assert!(error(0b111, 1, 3).contains("unknown units is empty"));
        assert!(error(0b1, 0, 3).contains("given data is empty"));
        assert!(error(0b1, 1, 4).contains("expected 3, got 4"));
    }
}
