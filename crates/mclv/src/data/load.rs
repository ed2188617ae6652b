//! Load a data set by name or path: find it, take a part of it, and binarise it if requested.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::scale::{Scale, Values};
use super::{Binarize, Dataset, Mirrors, SearchPath, Split, catalogue, open_with};
use crate::progress::Progress;
use crate::{Error, Result};

/// The specification of a data set: its source, its part and its preprocessing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSpec {
    /// A name of the [`catalogue`](super::catalogue()), with or without a parameter (`digits`,
    /// `bars-and-stripes:4`, `ising:0.3`, `mnist`, `dna`), or the path of a file (see
    /// [`read`](super::read)). A file that has the name of a set needs its folder: `./mnist`.
    pub source: String,
    /// How grey values are binarised.
    pub binarize: Binarize,
    /// The part of the set.
    pub split: Split,
    /// The column of the labels in a text (by name, or by number from 0; −1 is the last), or
    /// their array in an `.npz`.
    pub label_column: Option<String>,
    /// The seed of all randomness: `bernoulli`, the parts of a file, the draws of `ising`.
    #[serde(with = "crate::rng::seed")]
    pub seed: u64,
    /// A file of validation rows, in place of those of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<String>,
    /// A file of test rows, in place of those of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// If true, all rows of a file train. Validation rows of a named set join its training rows;
    /// its test rows stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_validation: bool,
    /// The column of a text (by name or number, like `label_column`), or the array of an `.npz`,
    /// that names the part of each row: train, validation or test (or `val`, `dev`, …; or 0, 1, 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_column: Option<String>,
    /// A text or a `.npy` file that names the part of each row, as in `split_column`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_file: Option<String>,
    /// The range of the values of files, if they do not lie in [0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// If true, files hold −1 and 1, which become 0 and 1.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spins: bool,
    /// The folder that relative paths start from: the working directory in which they were given.
    /// A file that is not there is looked for in the present working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
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
            validation: None,
            test: None,
            no_validation: false,
            split_column: None,
            split_file: None,
            scale: None,
            spins: false,
            folder: None,
        }
    }
}

impl DataSpec {
    /// Returns where a file of this data set is: the path itself if it is absolute, else below
    /// [`folder`](Self::folder) if the file is there, else the path from the working directory.
    pub fn locate(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        // A path from here stays short, as people typed it.
        let elsewhere =
            self.folder.as_ref().filter(|folder| std::env::current_dir().ok().as_ref() != Some(folder));
        let below = elsewhere.map(|folder| folder.join(path));
        below.filter(|below| below.exists()).unwrap_or_else(|| path.into())
    }

    /// The paths of all files, as they were given. A named set has none of its own.
    fn paths(&mut self) -> impl Iterator<Item = &mut String> {
        let source = (!catalogue::is_name(&self.source)).then_some(&mut self.source);
        source.into_iter().chain(&mut self.validation).chain(&mut self.test).chain(&mut self.split_file)
    }

    /// Returns the specification with the folder that relative paths start from, so that the files
    /// are found from other working directories too. Nothing changes if the folder is known, or if
    /// no path is relative.
    pub fn anchored(mut self) -> Self {
        if self.folder.is_none() && self.paths().any(|path| Path::new(path.as_str()).is_relative()) {
            self.folder = std::env::current_dir().ok();
        }
        self
    }

    /// Returns the specification without [`folder`](Self::folder): paths that start from there
    /// become absolute. Without a folder nothing changes.
    pub fn detached(mut self) -> Self {
        if self.folder.is_some() {
            let spec = self.clone();
            for path in self.paths() {
                let absolute = std::path::absolute(spec.locate(path.as_str()));
                if let Some(absolute) = absolute.ok().and_then(|p| p.to_str().map(str::to_owned)) {
                    *path = absolute;
                }
            }
            self.folder = None;
        }
        self
    }

    /// Returns the specification for files that may have been moved together with `place`, a run
    /// folder or a model file: if the source is not where it was, the folders above `place` are
    /// searched for it.
    pub fn near(mut self, place: &Path) -> Self {
        let source = PathBuf::from(&self.source);
        if catalogue::is_name(&self.source) || source.is_absolute() || self.locate(&source).exists() {
            return self;
        }
        let place = std::path::absolute(place).unwrap_or_else(|_| place.into());
        if let Some(folder) = place.ancestors().skip(1).find(|folder| folder.join(&source).is_file()) {
            self.folder = Some(folder.into());
        }
        self
    }

    /// The values that files may hold.
    pub(super) fn values(&self) -> Result<Values> {
        match (self.scale, self.spins) {
            (None, false) => Ok(Values::Unit),
            (Some(scale), false) => Ok(Values::Scaled(scale)),
            (None, true) => Ok(Values::Spins),
            (Some(scale), true) => {
                Err(Error::Incompatible { name: "spins", with: format!("scale = {scale}") })
            }
        }
    }

    /// Rejects ways to name the parts that exclude each other.
    pub(super) fn check_parts(&self) -> Result<()> {
        let refuse = |name, with: &str, value: &str| {
            let with = if value.is_empty() { with.into() } else { format!("{with} = {value}") };
            Err(Error::Incompatible { name, with })
        };
        let column = self.split_column.as_deref();
        match (&self.validation, column, self.split_file.as_deref()) {
            (Some(file), _, _) if self.no_validation => refuse("no-validation", "validation", file),
            (_, Some(column), _) if self.no_validation => refuse("no-validation", "split-column", column),
            (_, _, Some(file)) if self.no_validation => refuse("no-validation", "split-file", file),
            (_, Some(column), Some(_)) => refuse("split-file", "split-column", column),
            _ => Ok(()),
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
