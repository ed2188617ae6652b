//! List the data sets that have a name.

use std::path::PathBuf;

use super::named::sets;
use super::{SearchPath, digits, ising};
use crate::Error;

/// The origin of a named data set: built in, or in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The set is part of this program, or made by it.
    BuiltIn,
    /// The set is in files of its own.
    Files {
        /// The folder that holds all files of the set, if there is one. The content of small files
        /// (labels, validation rows) is verified; that of the others only on loading.
        found: Option<PathBuf>,
    },
}

/// A data set that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name, with its default parameter if it has one.
    pub name: &'static str,
    /// A short description of the set.
    pub description: &'static str,
    /// The number of rows of [`Split::All`](super::Split::All).
    pub n_rows: usize,
    /// The number of values per row.
    pub n_columns: usize,
    /// The origin of the set.
    pub origin: Origin,
}

/// Lists every named data set.
///
/// ```
/// assert!(mclv::data::catalogue().iter().any(|entry| entry.name == "digits"));
/// ```
pub fn catalogue() -> Vec<CatalogueEntry> {
    catalogue_in(&SearchPath::from_env())
}

/// Lists every named data set like [`catalogue`], and looks for files in folders of the caller's
/// choice.
pub fn catalogue_in(search: &SearchPath) -> Vec<CatalogueEntry> {
    let built_in = |name, description, n_rows, n_columns| CatalogueEntry {
        name,
        description,
        n_rows,
        n_columns,
        origin: Origin::BuiltIn,
    };
    let files = sets().map(|set| CatalogueEntry {
        name: set.name,
        description: set.description,
        n_rows: set.n_all_rows(),
        n_columns: set.n_columns,
        origin: Origin::Files { found: set.find(search) },
    });
    [
        built_in(
            "digits",
            "handwritten digits, 8 × 8 (Alpaydin, Kaynak; UCI; CC BY 4.0)",
            digits::N_ROWS,
            digits::N_COLUMNS,
        ),
        built_in("bars-and-stripes:4", "every pattern of bars or stripes, N × N; :N sets the side", 30, 16),
        built_in(
            "ising",
            "exact draws from a 4 × 4 Ising torus; :BETA sets the inverse temperature",
            ising::N_ROWS,
            16,
        ),
    ]
    .into_iter()
    .chain(files)
    .collect()
}

/// The names without parameters.
fn names() -> impl Iterator<Item = &'static str> {
    ["digits", "bars-and-stripes", "ising"].into_iter().chain(sets().map(|set| set.name))
}

/// Splits a source into its name and the parameter after the colon.
pub(super) fn parse_name(source: &str) -> (&str, Option<&str>) {
    source.split_once(':').map_or((source, None), |(name, parameter)| (name, Some(parameter)))
}

/// Returns true if a source names a set, whether or not its parameter is valid.
pub(crate) fn is_name(source: &str) -> bool {
    names().any(|name| name == parse_name(source).0)
}

/// Returns the error for a name that belongs to no set.
pub(super) fn unknown(name: &str) -> Error {
    let stem = parse_name(name).0.to_lowercase();
    let suggestion = names()
        .map(|set| (strsim::damerau_levenshtein(&stem, set), set))
        .min()
        // A set further away than this is not suggested.
        .filter(|&(distance, set)| distance <= set.len() / 3)
        .map(|(_, set)| set.into());
    Error::UnknownData { name: name.into(), suggestion, known: names().collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(name: &str) -> Option<String> {
        let Error::UnknownData { suggestion, .. } = unknown(name) else { panic!("another error") };
        suggestion
    }

    #[test]
    fn near_misses_get_a_suggestion() {
        for (name, set) in [
            ("minst", "mnist"),
            ("MNIST", "mnist"),
            ("fashion_mnist", "fashion-mnist"),
            ("digit", "digits"),
            ("bars-and-stripe:4", "bars-and-stripes"),
            ("mnist:3", "mnist"),
        ] {
            assert_eq!(suggestion(name).as_deref(), Some(set), "{name}");
        }
        assert_eq!(suggestion("imagenet"), None);
        let text = unknown("minst").to_string();
        assert!(
            text.contains("did you mean \"mnist\"?") && text.contains("digits, bars-and-stripes"),
            "{text}"
        );
    }
}
