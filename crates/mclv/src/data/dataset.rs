//! Hold a data set with its labels and its provenance.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Rows, Split};
use crate::{Error, Result};

/// The classes of the rows of a data set: row `r` has the class `names[ids[r]]`.
///
/// ```
/// use mclv::data::Labels;
/// let labels = Labels::from_words(&["cat", "dog", "cat"]);
/// assert_eq!((labels.ids.as_slice(), labels.name(1)), ([0, 1, 0].as_slice(), "dog"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The class of each row, an index into `names`.
    pub ids: Vec<u32>,
    /// The names of the classes.
    pub names: Vec<String>,
}

impl Labels {
    /// Makes a class of each distinct word: in numerical order if all are whole numbers, else in
    /// alphabetical order.
    pub fn from_words<S: AsRef<str>>(words: &[S]) -> Self {
        let numbers: Result<Vec<i64>, _> = words.iter().map(|w| w.as_ref().parse()).collect();
        numbers.map_or_else(
            |_| Self::from_sorted(words.iter().map(|w| w.as_ref().to_owned()).collect()),
            Self::from_integers,
        )
    }

    /// Makes a class of each distinct number, in order.
    pub fn from_integers(numbers: Vec<i64>) -> Self {
        Self::from_sorted(numbers)
    }

    fn from_sorted<T: Ord + ToString>(values: Vec<T>) -> Self {
        let classes: Vec<&T> = values.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let id = |value| classes.partition_point(|&class| class < value) as u32;
        Self {
            ids: values.iter().map(id).collect(),
            names: classes.iter().map(|class| class.to_string()).collect(),
        }
    }

    /// Returns the name of the class of row `row`.
    pub fn name(&self, row: usize) -> &str {
        &self.names[self.ids[row] as usize]
    }

    /// Returns the labels of the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        Self { ids: indices.iter().map(|&i| self.ids[i]).collect(), names: self.names.clone() }
    }

    /// Rejects labels that are not one per row.
    pub(super) fn check(&self, source_name: &str, n_rows: usize) -> Result<()> {
        if self.ids.len() == n_rows {
            return Ok(());
        }
        Err(Error::ShapeMismatch {
            what: format!("labels of {source_name}, one per row"),
            expected: n_rows,
            got: self.ids.len(),
        })
    }
}

/// The provenance of rows: their source and their preprocessing, for the records of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataProvenance {
    /// The name of the set.
    pub name: String,
    /// The name of the file without its folder, or how the rows were made.
    pub source: String,
    /// The SHA-256, in hexadecimal. For a file, it is that of its content, uncompressed if it was
    /// gzipped (an `.npz` is hashed as it is). Without a file, it is that of the values (a byte per
    /// bit, a little-endian f32 per real).
    pub sha256: String,
    /// The preprocessing of the values, in order.
    pub preprocessing: String,
    /// The part of the set.
    pub split: Split,
    /// How the rows of a file were assigned to its parts, unless they were drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<String>,
    /// The seed, if it influenced the rows.
    pub seed: Option<u64>,
    /// The number of rows of this part.
    pub n_rows: usize,
    /// The number of values per row.
    pub n_columns: usize,
    /// The height and width, if rows are pictures.
    #[serde(default)]
    pub image_shape: Option<(usize, usize)>,
    /// The names of the columns, if the file has a header. Empty if it has none, or if the names are
    /// longer than a megabyte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub column_names: Vec<String>,
}

/// The most letters of column names that a provenance keeps.
const MAX_NAMES: usize = 1 << 20;

/// The names, or none if they are too long to be kept.
pub(super) fn kept_names(names: Vec<String>) -> Vec<String> {
    let n_letters: usize = names.iter().map(String::len).sum();
    if n_letters > MAX_NAMES { Vec::new() } else { names }
}

impl DataProvenance {
    /// Returns the name of a column: that of the header, or else its number from 1.
    ///
    /// ```
    /// use mclv::data::{Dataset, Rows};
    /// let mut toy = Dataset::from_rows("toy", Rows::from_values("toy", 2, vec![0.0, 1.0])?).provenance;
    /// assert_eq!(toy.column_name(0), "column 1");
    /// toy.column_names = vec!["wings".into(), "fins".into()];
    /// assert_eq!(toy.column_name(0), "wings");
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn column_name(&self, column: usize) -> String {
        self.column_names.get(column).cloned().unwrap_or_else(|| format!("column {}", column + 1))
    }

    /// Rejects data whose columns have the names of these data in another order. Names that differ
    /// otherwise are accepted.
    ///
    /// # Errors
    /// If the order differs.
    pub fn check_order(&self, other: &Self) -> Result<()> {
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        let (names, others) = (&self.column_names, &other.column_names);
        let differs = names.iter().zip(others).position(|(name, other)| name != other);
        match differs {
            Some(k) if sorted(names) == sorted(others) => Err(Error::malformed(
                &other.source,
                format!(
                    "has the columns of {} in another order (column {} is {}, not {}); put them in the same order",
                    self.source,
                    k + 1,
                    others[k],
                    names[k]
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The preprocessing in words for people.
    pub fn preparation(&self) -> &str {
        if self.preprocessing == "none" { "values unchanged" } else { &self.preprocessing }
    }
}

/// A data set: rows with their labels, their shape and their provenance.
///
/// ```
/// use mclv::data::{Dataset, Rows};
/// let rows = Rows::from_values("toy", 2, vec![0.0, 1.0, 1.0, 0.0])?;
/// let toy = Dataset::from_rows("toy", rows);
/// assert_eq!((toy.n_rows(), toy.n_columns()), (2, 2));
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The name of the set.
    pub name: String,
    /// The values.
    pub rows: Rows,
    /// The classes of the rows, if known.
    pub labels: Option<Labels>,
    /// The height and width, if rows are pictures.
    pub image_shape: Option<(usize, usize)>,
    /// The highest expected log-likelihood per row, in nats, that any model can reach: minus the
    /// entropy of the distribution that the rows were drawn from. It is known for synthetic sets
    /// only.
    pub best_log_likelihood: Option<f64>,
    /// The provenance of the rows.
    pub provenance: DataProvenance,
}

impl Dataset {
    /// Creates a data set from rows made by the caller.
    pub fn from_rows(name: impl Into<String>, rows: Rows) -> Self {
        let name = name.into();
        let provenance = DataProvenance {
            name: name.clone(),
            source: "memory".into(),
            sha256: rows.sha256(),
            preprocessing: "none".into(),
            split: Split::All,
            division: None,
            seed: None,
            n_rows: rows.n_rows(),
            n_columns: rows.n_columns(),
            image_shape: None,
            column_names: Vec::new(),
        };
        Self { name, rows, labels: None, image_shape: None, best_log_likelihood: None, provenance }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    /// The number of values per row.
    pub fn n_columns(&self) -> usize {
        self.rows.n_columns()
    }

    /// Returns a copy of this set with other rows.
    pub(super) fn with_rows(&self, rows: Rows) -> Self {
        Self {
            name: self.name.clone(),
            rows,
            labels: self.labels.clone(),
            image_shape: self.image_shape,
            best_log_likelihood: self.best_log_likelihood,
            provenance: self.provenance.clone(),
        }
    }

    /// Returns the rows named by `indices`, in that order, as a set of their own.
    /// `best_log_likelihood` is dropped, because it need not hold for a selection of rows.
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            name: self.name.clone(),
            rows: self.rows.select(indices),
            labels: self.labels.as_ref().map(|labels| labels.select(indices)),
            image_shape: self.image_shape,
            best_log_likelihood: None,
            provenance: DataProvenance { n_rows: indices.len(), ..self.provenance.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_words_are_sorted_as_numbers() {
        let labels = Labels::from_words(&["10", "9", "-1", "9"]);
        assert_eq!(labels.names, ["-1", "9", "10"]);
        assert_eq!(labels.ids, [2, 1, 0, 1]);
        assert_eq!(Labels::from_words(&["10", "9", "x"]).names, ["10", "9", "x"]);
    }

    #[test]
    fn provenance_written_before_it_had_shapes_is_read() {
        let rows = Rows::from_values("toy", 1, vec![0.0, 1.0]).unwrap();
        let provenance = Dataset::from_rows("toy", rows).provenance;
        let mut json = serde_json::to_value(&provenance).unwrap();
        json.as_object_mut().unwrap().remove("image_shape").unwrap();
        assert_eq!(serde_json::from_value::<DataProvenance>(json).unwrap(), provenance);
    }

    #[test]
    fn selecting_rows_takes_their_labels_along() {
        let rows = Rows::from_values("toy", 1, vec![0.0, 0.25, 0.5]).unwrap();
        let mut toy = Dataset::from_rows("toy", rows);
        toy.labels = Some(Labels::from_words(&["a", "b", "c"]));
        let part = toy.select(&[2, 0]);
        assert_eq!(part.labels.unwrap().ids, [2, 0]);
        assert_eq!(part.provenance.n_rows, 2);
        let Rows::Reals(rows) = part.rows else { panic!("packed") };
        assert_eq!(rows.values(), [0.5, 0.0]);
    }
}
