//! Load a data set by name or path: find it, take a part of it, make it binary if asked.

use serde::{Deserialize, Serialize};

use super::{Binarize, Dataset, Mirrors, SearchPath, Split, open_with};
use crate::Result;
use crate::progress::Progress;

/// Which data are wanted, and how prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSpec {
    /// A name of the [`catalogue`](super::catalogue()), with or without a parameter (`digits`,
    /// `bars-and-stripes:4`, `ising:0.3`, `mnist`), or the path of a file (see [`read`](super::read)). A
    /// file that is called like a set needs its folder: `./mnist`.
    pub source: String,
    /// What becomes of grey values.
    pub binarize: Binarize,
    /// Which part.
    pub split: Split,
    /// The labels' column of a `.csv` (by name, or by number from 0; −1 is the last), or array of an
    /// `.npz`.
    pub label_column: Option<String>,
    /// Seed of everything random: `bernoulli`, the parts of a file, the draws of `ising`.
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

/// Load one part of a data set; [`open`](super::open) is for several.
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
/// If no set or file goes by that name, if a file cannot be read or its content is not allowed, or
/// if the part is empty; [`NotFetched`](crate::Error::NotFetched) if a named set is not on disk and
/// may not be fetched.
pub fn load(spec: &DataSpec, progress: &dyn Progress) -> Result<Dataset> {
    load_with(spec, &SearchPath::from_env(), &Mirrors::Public, progress)
}

/// [`load`] with folders and mirrors of the caller's choice.
pub fn load_with(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &dyn Progress,
) -> Result<Dataset> {
    // Before the file is read: a wrong threshold costs no time.
    spec.binarize.check()?;
    open_with(spec, search, mirrors, progress)?.into_part(spec.split, spec.binarize)
}
