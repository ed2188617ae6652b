//! Turn data into features for other tools: the hidden probabilities of each row.

use crate::Result;
use crate::data::{Dataset, Labels, RealRows};
use crate::model::Rbm;
use crate::numpy::{to_npy, to_npz};

/// The features of a data set for other tools: `E[h|v]` of its rows, with their labels.
///
/// ```
/// use mclv::{Features, Rbm, data::{Dataset, Rows}};
/// let set = Dataset::from_rows("toy", Rows::from_values("toy", 2, vec![0.0, 0.0, 1.0, 1.0])?);
/// let rbm = Rbm::new(2, 1, &[3.0, 3.0], &[0.0; 2], &[0.0])?;
/// let features = Features::new(&rbm, &set)?;
/// assert_eq!(features.means.row(0), [0.5]);
/// assert_eq!(features.to_csv(), b"h0\n0.5\n0.9975274\n");
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The probability that each hidden unit is on: n_rows × n_hidden.
    pub means: RealRows,
    /// The classes of the rows, if known.
    pub labels: Option<Labels>,
}

impl Features {
    /// Computes the features of `set` under `rbm`. Grey values are used as they are.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn new(rbm: &Rbm, set: &Dataset) -> Result<Self> {
        Ok(Self { means: rbm.mean_h_from_v(&set.rows)?, labels: set.labels.clone() })
    }

    /// Returns the class of each row as a number: the name of the class if all names are whole
    /// numbers, else its place among the names.
    pub fn label_numbers(&self) -> Option<Vec<i64>> {
        let labels = self.labels.as_ref()?;
        let names: Vec<i64> = labels
            .names
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()
            .unwrap_or_else(|_| (0..labels.names.len() as i64).collect());
        Some(labels.ids.iter().map(|&id| names[id as usize]).collect())
    }

    /// Returns the bytes of a `.npy` file: n_rows × n_hidden, f32.
    pub fn to_npy(&self) -> Vec<u8> {
        to_npy(&[self.means.n_rows(), self.means.n_columns()], self.means.values())
    }

    /// Returns the bytes of an `.npz` file: `features` (f32) and, if known, `labels` (i64, see
    /// [`label_numbers`](Self::label_numbers)).
    pub fn to_npz(&self) -> Vec<u8> {
        let mut arrays = vec![("features", self.to_npy())];
        arrays.extend(self.label_numbers().map(|numbers| ("labels", to_npy(&[numbers.len()], &numbers))));
        to_npz(&arrays)
    }

    /// Returns the bytes of a `.csv` file: a header, a line for each row, and the name of the class
    /// in the last column if known.
    pub fn to_csv(&self) -> Vec<u8> {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let mut write = || -> ::csv::Result<()> {
            let names = (0..self.means.n_columns()).map(|j| format!("h{j}"));
            writer.write_record(names.chain(self.labels.as_ref().map(|_| "label".into())))?;
            for r in 0..self.means.n_rows() {
                // The shortest text that gives the same number, with an exponent if it is tiny.
                let cells = self.means.row(r).iter().map(|x| format!("{x:?}"));
                let label = self.labels.as_ref().map(|labels| labels.name(r).to_owned());
                writer.write_record(cells.chain(label))?;
            }
            Ok(())
        };
        write().expect("memory takes all that is written to it");
        writer.into_inner().expect("memory takes all that is written to it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{self, DataSpec, Rows};
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;

    fn features(words: &[&str]) -> Features {
        let means = RealRows::new(2, vec![0.5, 1e-9, 1.0, 0.25, 0.1, 0.0]);
        Features { means, labels: Some(Labels::from_words(words)) }
    }

    #[test]
    fn features_are_the_hidden_means() {
        let rbm = random_rbm(64, 5, 0.3, 140);
        let set = data::load(&DataSpec::default(), &Silent).unwrap();
        let features = Features::new(&rbm, &set).unwrap();
        assert_eq!(features.means, rbm.mean_h_from_v(&set.rows).unwrap());
        assert_eq!(features.labels, set.labels);
        assert!(Features::new(&random_rbm(4, 2, 1.0, 1), &set).is_err());
    }

    #[test]
    fn every_format_is_read_back_as_data() {
        let folder = tempfile::tempdir().unwrap();
        for words in [["7", "-1", "7"], ["a, b", "\"c\"", "a, b"]] {
            let features = features(&words);
            for (name, bytes, column) in [
                ("f.npy", features.to_npy(), None),
                ("f.npz", features.to_npz(), None),
                ("f.csv", features.to_csv(), Some("label")),
            ] {
                let path = folder.path().join(name);
                std::fs::write(&path, bytes).unwrap();
                let spec = DataSpec {
                    source: path.to_str().unwrap().into(),
                    label_column: column.map(Into::into),
                    ..DataSpec::default()
                };
                let set = data::load(&spec, &Silent).unwrap();
                assert_eq!(set.rows, Rows::Reals(features.means.clone()), "{name}");
                let names: Option<Vec<&str>> =
                    set.labels.as_ref().map(|labels| (0..3).map(|r| labels.name(r)).collect());
                let expected = match (name, words[0]) {
                    ("f.npy", _) => None,
                    // Words become their places: "\"c\"" sorts before "a, b".
                    ("f.npz", "a, b") => Some(vec!["1", "0", "1"]),
                    _ => Some(words.to_vec()),
                };
                assert_eq!(names, expected, "{name}");
            }
        }
    }
}
