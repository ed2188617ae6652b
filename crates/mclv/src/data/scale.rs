//! Bring the values of a file from their own range into [0, 1].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::rows::{RealRows, Rows, no_rows, value_of};
use super::sparse::SparseRows;
use crate::{Error, Result};

/// The range of the values of a file: `low` becomes 0 and `high` becomes 1.
///
/// It is written `HIGH`, or `LOW,HIGH`:
///
/// ```
/// use mclv::data::Scale;
/// assert_eq!("255".parse::<Scale>()?, "0,255".parse()?);
/// assert_eq!("-1,1".parse::<Scale>()?.to_string(), "-1,1");
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Scale {
    low: f32,
    high: f32,
}

impl Scale {
    /// Creates a range.
    ///
    /// # Errors
    /// If `low` is not below `high`, or if one of them is not finite.
    pub fn new(low: f32, high: f32) -> Result<Self> {
        if low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high {
            return Ok(Self { low, high });
        }
        Err(wrong(format!("{low},{high}")))
    }

    fn apply(self, value: f32) -> f32 {
        (value - self.low) / (self.high - self.low)
    }

    /// The formula in words.
    fn preprocessing(self) -> String {
        let Self { low, high } = self;
        match low {
            0.0 => format!("value/{high}"),
            low if low < 0.0 => format!("(value + {})/{}", -low, high - low),
            low => format!("(value - {low})/{}", high - low),
        }
    }
}

fn wrong(value: String) -> Error {
    let cure = "give the largest value, such as 255, or the smallest and the largest, such as -1,1";
    Error::InvalidSetting { name: "scale", value, cure }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low {
            0.0 => f.pad(&self.high.to_string()),
            low => f.pad(&format!("{low},{}", self.high)),
        }
    }
}

impl FromStr for Scale {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (low, high) = text.split_once(',').unwrap_or(("0", text));
        match (low.trim().parse(), high.trim().parse()) {
            (Ok(low), Ok(high)) => Self::new(low, high).map_err(|_| wrong(text.into())),
            _ => Err(wrong(text.into())),
        }
    }
}

/// A range as people write it in files and in Python.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    High(f32),
    Both([f32; 2]),
    Text(String),
}

impl TryFrom<Written> for Scale {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::High(high) => Self::new(0.0, high),
            Written::Both([low, high]) => Self::new(low, high),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Scale> for String {
    fn from(scale: Scale) -> Self {
        scale.to_string()
    }
}

/// The values that a file may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Values {
    /// Values in [0, 1].
    Unit,
    /// Values of another range.
    Scaled(Scale),
    /// Only −1, which becomes 0, and 1.
    Spins,
}

impl Values {
    /// Returns true if a file may hold this value.
    pub(super) fn allow(self, value: f32) -> bool {
        match self {
            Self::Unit => (0.0..=1.0).contains(&value),
            Self::Scaled(Scale { low, high }) => (low..=high).contains(&value),
            Self::Spins => value == -1.0 || value == 1.0,
        }
    }

    /// Returns true if a 0 in the file is allowed and stays 0.
    pub(super) fn keep_zeros(self) -> bool {
        self.allow(0.0) && self.apply(0.0) == 0.0
    }

    /// What the values are allowed to do, for errors.
    pub(super) fn rule(self) -> String {
        match self {
            Self::Unit => "lie in [0, 1]".into(),
            Self::Scaled(Scale { low, high }) => format!("lie in [{low}, {high}]"),
            Self::Spins => "be -1 or 1".into(),
        }
    }

    fn apply(self, value: f32) -> f32 {
        match self {
            Self::Unit => value,
            Self::Scaled(scale) => scale.apply(value),
            Self::Spins => (value + 1.0) / 2.0,
        }
    }

    /// What is done to the values, for the records of a run.
    pub(super) fn preprocessing(self) -> String {
        match self {
            Self::Unit => "none".into(),
            Self::Scaled(scale) => scale.preprocessing(),
            Self::Spins => "(value + 1)/2".into(),
        }
    }

    /// Makes rows of the values of a table.
    ///
    /// # Errors
    /// If the table is empty, or if a value is not allowed. The error names the likely cure.
    pub(super) fn rows(self, table: &Columns<'_>, mut values: Vec<f32>) -> Result<Rows> {
        let n_columns = table.n_columns;
        if n_columns == 0 || values.is_empty() {
            return Err(no_rows(table.name));
        }
        if let Some(at) = values.iter().position(|&value| !self.allow(value)) {
            return Err(self.refuse(table, at, &values));
        }
        values.iter_mut().for_each(|value| *value = self.apply(*value));
        Rows::from_values(table.name, n_columns, values)
    }

    /// Makes rows of bytes, like [`rows`](Self::rows).
    pub(super) fn rows_of_bytes(self, table: &Columns<'_>, bytes: &[u8]) -> Result<Rows> {
        let n_columns = table.n_columns;
        if n_columns == 0 || bytes.is_empty() {
            return Err(no_rows(table.name));
        }
        if let Some(at) = bytes.iter().position(|&byte| !self.allow(f32::from(byte))) {
            let values: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte)).collect();
            return Err(self.refuse(table, at, &values));
        }
        Ok(Rows::from_table(n_columns, bytes, std::array::from_fn(|byte| self.apply(byte as f32))))
    }

    /// Makes rows of sparse values, like [`rows`](Self::rows).
    pub(super) fn rows_of_sparse(self, table: &Columns<'_>, rows: SparseRows) -> Result<Rows> {
        let entries = || (0..rows.n_rows()).flat_map(|r| rows.row(r).map(move |(c, value)| (r, c, value)));
        let is_dense = 3 * entries().count() > rows.n_rows() * rows.n_columns();
        if is_dense || !self.keep_zeros() {
            return self.rows(table, rows.to_reals().into_values());
        }
        if let Some((r, c, value)) = entries().find(|&(_, _, value)| !self.allow(value)) {
            let all: Vec<f32> = entries().map(|(_, _, value)| value).chain([0.0]).collect();
            return Err(self.error(table, r, c, value, self.cure_by_range(value, &all)));
        }
        Rows::from_sparse(table.name, rows.map(|value| self.apply(value)))
    }

    /// Returns the error for the value at a place, with the likely cure.
    fn refuse(self, table: &Columns<'_>, at: usize, values: &[f32]) -> Error {
        let n = table.n_columns;
        let cure = self.cure_by_columns(table, at, values);
        let cure = cure.unwrap_or_else(|| self.cure_by_range(values[at], values));
        self.error(table, at / n, at % n, values[at], cure)
    }

    fn error(self, table: &Columns<'_>, row: usize, column: usize, value: f32, cure: String) -> Error {
        Error::OutOfRange {
            source_name: table.name.into(),
            row: row + 1,
            column: column + 1,
            value: value_of(value),
            rule: self.rule(),
            cure,
        }
    }

    /// The cure if a column or the first row does not belong to the values.
    fn cure_by_columns(self, table: &Columns<'_>, at: usize, values: &[f32]) -> Option<String> {
        let n = table.n_columns;
        let n_rows = values.len() / n;
        let is_whole = |value: f32| value.fract() == 0.0;
        let counts = |mut column: Box<dyn Iterator<Item = f32> + '_>| {
            let first = column.next().unwrap_or(f32::NAN);
            (first == 0.0 || first == 1.0) && (1..).zip(column).all(|(k, value)| value == first + k as f32)
        };
        if at < n && n > 2 && table.is_text && counts(Box::new(values[..n].iter().copied())) {
            let cure = "the first line counts the columns, like a header of numbers; remove it, or \
                        give the columns names";
            return Some(cure.into());
        }
        let column = at % n;
        let is_wrong = |c: usize| values.iter().skip(c).step_by(n).any(|&value| !self.allow(value));
        if n < 2 || (0..n).any(|c| c != column && is_wrong(c)) {
            return None;
        }
        let of_column = || values.iter().skip(column).step_by(n).copied();
        let name = table.column_name(column);
        if n_rows > 2 && counts(Box::new(of_column())) {
            let with_pandas = if table.is_text { " (pandas: to_csv with index=False)" } else { "" };
            return Some(format!("{name} counts the rows; write the file without it{with_pandas}"));
        }
        let most = of_column().fold(f32::NEG_INFINITY, f32::max);
        let least = of_column().fold(f32::INFINITY, f32::min);
        let is_at_an_end = column == 0 || column == n - 1;
        let are_classes = of_column().all(is_whole) && least >= 0.0 && most > 1.0 && most != 255.0;
        if !is_at_an_end || !are_classes {
            return None;
        }
        let cure = match table.label_column(column) {
            Some(label) => format!("set `label-column = {label}`"),
            None => "remove it from the array, or save it as `y` of an .npz file".into(),
        };
        Some(format!("{name} alone holds whole numbers from {least} to {most}; if they are labels, {cure}"))
    }

    /// The cure that the smallest and the largest value suggest.
    fn cure_by_range(self, value: f32, values: &[f32]) -> String {
        if value.is_nan() {
            return "remove the row or fill in the missing value".into();
        }
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let are_whole = values.iter().all(|value| value.fract() == 0.0);
        let range = if least < 0.0 { format!("{least},{most}") } else { most.to_string() };
        match self {
            Self::Spins if values.iter().all(|&value| value == 0.0 || value == 1.0) => {
                "the rows hold 0 and 1 already: leave out `spins`".into()
            }
            Self::Spins => "leave out `spins`, or make every value -1 or 1".into(),
            _ if !(least.is_finite() && most.is_finite()) => "replace what is not finite".into(),
            Self::Scaled(_) => format!("all values lie in [{least}, {most}]: set `scale = {range}`"),
            Self::Unit if values.iter().all(|&value| value == -1.0 || value == 1.0) => {
                "all values are -1 or 1: set `spins`".into()
            }
            Self::Unit if are_whole && least >= 0.0 && most <= 20.0 => format!(
                "the values are whole numbers up to {most}: make a column of 0 and 1 for each category; \
                 if they measure something, set `scale = {range}`"
            ),
            Self::Unit if are_whole && least >= 0.0 && most <= 255.0 => {
                format!("the values go up to {most}: if they are bytes, set `scale = 255`")
            }
            Self::Unit => {
                format!("the values go from {least} to {most}: set `scale = {range}` if this is their range")
            }
        }
    }
}

/// The columns of a table, for errors.
pub(super) struct Columns<'a> {
    /// The name of the table.
    pub name: &'a str,
    pub n_columns: usize,
    /// True if the table is a text.
    pub is_text: bool,
    /// The names of the columns with values, if there is a header.
    pub names: &'a [String],
    /// True if columns that stand before the last one are not among the values, so that columns
    /// without names cannot be counted.
    pub has_others: bool,
}

impl<'a> Columns<'a> {
    /// The columns of an array, which have no names.
    pub(super) fn of_array(name: &'a str, n_columns: usize) -> Self {
        Self { name, n_columns, is_text: false, names: &[], has_others: false }
    }

    fn column_name(&self, column: usize) -> String {
        match self.names.get(column).filter(|name| !name.is_empty()) {
            Some(name) => format!("column {} ({name:?})", column + 1),
            None => format!("column {}", column + 1),
        }
    }

    /// The value of `label-column` that names a column, if a text is read.
    fn label_column(&self, column: usize) -> Option<String> {
        let name = self.names.get(column).filter(|name| !name.is_empty() && name.parse::<i64>().is_err());
        match name {
            _ if !self.is_text => None,
            Some(name) => Some(name.clone()),
            None if column == 0 => Some("0".into()),
            None if self.has_others => Some("its number".into()),
            None => Some("-1".into()),
        }
    }
}

/// Returns rows of real values as spins: 0 becomes −1, and 1 stays.
pub(crate) fn spins(rows: &RealRows) -> RealRows {
    RealRows::new(rows.n_columns(), rows.values().iter().map(|value| 2.0 * value - 1.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str) -> Values {
        Values::Scaled(text.parse().unwrap())
    }

    fn cure(values: Values, table: &Columns<'_>, numbers: &[f32]) -> String {
        values.rows(table, numbers.to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn ranges_are_read_as_they_are_written() {
        for (json, text) in
            [("255", "255"), ("[-1, 1]", "-1,1"), ("\"0,16\"", "16"), ("\" 2 , 4.5 \"", "2,4.5")]
        {
            let scale: Scale = serde_json::from_str(json).unwrap();
            assert_eq!((scale.to_string().as_str(), text.parse().unwrap()), (text, scale));
            let again = serde_json::to_string(&scale).unwrap();
            assert_eq!(serde_json::from_str::<Scale>(&again).unwrap(), scale);
        }
        for text in ["0", "1,0", "a", "nan", "0,inf", "1,2,3", "", "-3e38,3e38"] {
            let error = text.parse::<Scale>().unwrap_err().to_string();
            assert!(error.contains("scale = ") && error.contains("such as 255"), "{error}");
        }
    }

    /// Bytes, reals and sparse rows go different ways to the same values.
    #[test]
    fn all_kinds_of_rows_are_scaled_to_the_same_values() {
        let bytes: Vec<u8> = (0..120).map(|k| if k % 4 == 0 { (k * 2) as u8 } else { 0 }).collect();
        let reals: Vec<f32> = bytes.iter().map(|&b| f32::from(b)).collect();
        let table = Columns::of_array("x", 12);
        let sparse = || SparseRows::of_reals(&RealRows::new(12, reals.clone()));
        for values in [scaled("255"), scaled("-5,250"), scaled("0,238")] {
            let expected = values.rows(&table, reals.clone()).unwrap();
            assert_eq!(values.rows_of_bytes(&table, &bytes).unwrap(), expected);
            assert_eq!(values.rows_of_sparse(&table, sparse()).unwrap(), expected);
            let Scale { low, high } = match values {
                Values::Scaled(scale) => scale,
                _ => unreachable!(),
            };
            for (k, &x) in reals.iter().enumerate() {
                assert_eq!(expected.get(k / 12, k % 12), (x - low) / (high - low));
            }
        }
        assert_eq!(scaled("255").preprocessing(), "value/255");
        assert_eq!(scaled("-1,1").preprocessing(), Values::Spins.preprocessing());
        assert_eq!(scaled("2,4").preprocessing(), "(value - 2)/2");
    }

    #[test]
    fn spins_become_bits_and_bits_spins() {
        let rows = Values::Spins.rows(&Columns::of_array("x", 3), vec![-1.0, 1.0, 1.0]).unwrap();
        let Rows::Bits(bits) = &rows else { panic!("not packed") };
        assert_eq!(bits.words(), [0b110]);
        assert_eq!(spins(&RealRows::new(3, vec![0.0, 1.0, 0.75])).values(), [-1.0, 1.0, 0.5]);
    }

    #[test]
    fn what_is_not_allowed_comes_with_the_likely_cure() {
        let array = |n_columns| Columns::of_array("x", n_columns);
        let names = ["a".to_string(), "b".into(), "class".into()];
        let text = Columns { name: "x", n_columns: 3, is_text: true, names: &names, has_others: false };
        let bare = || Columns { name: "x", n_columns: 3, is_text: true, names: &[], has_others: false };
        for (values, table, numbers, words) in [
            (Values::Unit, array(2), &[0.0, 1.0, 255.0, 7.0][..], "set `scale = 255`"),
            (Values::Unit, array(2), &[0.5, 300.0, 2.0, 0.5], "from 0.5 to 300: set `scale = 300`"),
            (Values::Unit, array(2), &[-2.0, 1.0, 3.0, 0.5], "set `scale = -2,3`"),
            (Values::Unit, array(2), &[-1.0, 1.0, 1.0, -1.0], "set `spins`"),
            (Values::Unit, array(2), &[2.0, 1.0, 0.0, 3.0], "make a column of 0 and 1 for each category"),
            (Values::Unit, array(2), &[0.0, f32::NAN, 0.0, 3.0], "fill in the missing value"),
            (Values::Unit, array(2), &[0.0, f32::INFINITY, 0.5, 3.0], "not finite"),
            (
                Values::Unit,
                array(3),
                &[0.0, 1.0, 9.0, 1.0, 0.0, 4.0],
                "column 3 alone holds whole numbers from 4 to 9",
            ),
            (Values::Unit, array(3), &[0.0, 1.0, 9.0, 1.0, 0.0, 4.0], "remove it from the array"),
            (Values::Unit, text, &[0.0, 1.0, 9.0, 1.0, 0.0, 4.0], "column 3 (\"class\") alone"),
            (Values::Unit, bare(), &[0.0, 1.0, 9.0, 1.0, 0.0, 4.0], "set `label-column = -1`"),
            (Values::Unit, bare(), &[7.0, 1.0, 0.0, 2.0, 0.0, 0.5], "set `label-column = 0`"),
            (Values::Unit, bare(), &[0.0, 1.0, 2.0, 1.0, 0.0, 1.0], "header of numbers"),
            (
                Values::Unit,
                bare(),
                &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0],
                "column 1 counts the rows",
            ),
            (Values::Spins, array(2), &[0.0, 1.0, 0.0, 1.0], "leave out `spins`"),
            (
                Values::Spins,
                array(2),
                &[-1.0, 0.5, 0.0, 1.0],
                "values must be -1 or 1: leave out `spins`, or",
            ),
            (
                scaled("16"),
                array(2),
                &[3.0, 17.0, 20.0, 1.0],
                "must lie in [0, 16]: all values lie in [1, 20]",
            ),
        ] {
            let error = cure(values, &table, numbers);
            assert!(error.contains(words), "{error}");
        }
        let named = Columns { name: "x", n_columns: 3, is_text: true, names: &names, has_others: false };
        let error = cure(Values::Unit, &named, &[0.0, 1.0, 9.0, 1.0, 0.0, 4.0]);
        assert!(error.ends_with("set `label-column = class`"), "{error}");
    }
}
