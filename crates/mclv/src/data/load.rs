//! Load a data set by name or path: find it, take a part of it, and binarise it if requested.

use serde::{Deserialize, Serialize};

use super::{Binarize, Dataset, Mirrors, SearchPath, Split, open_with};
use crate::Result;
use crate::progress::Progress;

/// The specification of a data set: its source, its part and its preprocessing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSpec {
    /// A name of the [`catalogue`](super::catalogue()), with or without a parameter (`digits`,
    /// `bars-and-stripes:4`, `ising:0.3`, `mnist`), or the path of a file (see
    /// [`read`](super::read)). A file that has the name of a set needs its folder: `./mnist`.
    pub source: String,
    /// How grey values are binarised.
    pub binarize: Binarize,
    /// The part of the set.
    pub split: Split,
    /// The column of the labels in a `.csv` (by name, or by number from 0; −1 is the last), or
    /// their array in an `.npz`.
    pub label_column: Option<String>,
    /// The seed of all randomness: `bernoulli`, the parts of a file, the draws of `ising`.
    #[serde(with = "crate::rng::seed")]
    pub seed: u64,
}

/// All of `digits`, in grey, with seed 0.
impl Default for DataSpec {
    fn default() -> Self {
        Self {
            source: "digits".into(),
            binarize: Binarize::Grey,
            split: Split::All,
            label_column: None,
            seed: 0,
        }
    }
}

/// Loads one part of a data set. To take several parts, use [`open`](super::open).
///
/// A named set that is not on disk is fetched only if `progress` allows that by
/// [`may_fetch`](Progress::may_fetch). [`Silent`](crate::progress::Silent) does not: call
/// [`fetch`](super::fetch) first.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// let spec = DataSpec { source: "bars-and-stripes:4".into(), ..DataSpec::default() };
/// let set = data::load(&spec, &mclv::progress::Silent)?;
/// assert_eq!(set.n_rows(), 30);
/// assert_eq!(set.best_log_likelihood, Some(-(30f64.ln())));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If no set or file has that name, if a file cannot be read or its content is not allowed, or if
/// the part is empty; [`NotFetched`](crate::Error::NotFetched) if a named set is not on disk and
/// may not be fetched.
pub fn load(spec: &DataSpec, progress: &dyn Progress) -> Result<Dataset> {
    load_with(spec, &SearchPath::from_env(), &Mirrors::Public, progress)
}

/// Loads one part of a data set like [`load`], with folders and mirrors of the caller's choice.
pub fn load_with(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &dyn Progress,
) -> Result<Dataset> {
    // This check comes first, so that a wrong threshold costs no time.
    spec.binarize.check()?;
    open_with(spec, search, mirrors, progress)?.into_part(spec.split, spec.binarize)
}
