//! Load a data set by name or path: find it, take a part of it, make it binary if asked.

use crate::team;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::named::SETS;
use super::preprocess::binarize_split;
use super::{
    Binarize, Dataset, Mirrors, SearchPath, Split, bars_and_stripes, catalogue, digits, file, ising,
};
use crate::progress::Progress;
use crate::{Error, Result};

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

/// Load a data set. Named sets that are not on disk are fetched (cargo feature `fetch`), and `progress`
/// hears of it.
///
/// ```
/// use mclv::data::{self, DataSpec};
/// let spec = DataSpec { source: "bars-and-stripes:4".into(), ..DataSpec::default() };
/// let set = data::load(&spec, &mclv::progress::Silent)?;
/// assert_eq!(set.n_rows(), 30);
/// assert_eq!(set.best_log_likelihood, Some(-(30f64.ln())));
/// # Ok::<(), mclv::Error>(())
/// ```
pub fn load(spec: &DataSpec, progress: &dyn Progress) -> Result<Dataset> {
    let load = || load_with(spec, &SearchPath::from_env(), &Mirrors::Public, progress);
    if team::size() == 1 {
        return load();
    }
    if catalogue::is_name(&spec.source) {
        // The first rank goes first: it may have to fetch the data, and the others find them then.
        let fetched = team::together(if team::is_first() { load().map(Some) } else { Ok(None) })?;
        return team::together(fetched.map_or_else(load, Ok));
    }
    match load() {
        // Met while reading together: all know of it.
        failed @ Err(Error::OtherRank { .. }) => failed,
        mine => team::together(mine),
    }
}

/// [`load`] with folders and mirrors of the caller's choice.
pub fn load_with(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &dyn Progress,
) -> Result<Dataset> {
    spec.binarize.check()?;
    let mut dataset = if catalogue::is_name(&spec.source) {
        named(spec, search, mirrors, progress)?
    } else {
        from_file(spec)?
    };
    dataset.provenance.split = spec.split;
    dataset.provenance.image_shape = dataset.image_shape;
    if let Some(bits) = binarize_split(&dataset.rows, spec.binarize, spec.seed, spec.split, 0) {
        dataset.rows = bits;
        let done = &mut dataset.provenance.preprocessing;
        *done = if done == "none" { spec.binarize.to_string() } else { format!("{done}, {}", spec.binarize) };
        if spec.binarize == Binarize::Bernoulli {
            dataset.provenance.seed = Some(spec.seed);
        }
    }
    Ok(dataset)
}

/// A named set.
fn named(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &dyn Progress,
) -> Result<Dataset> {
    if let Some(column) = &spec.label_column {
        return Err(Error::InvalidSetting {
            name: "label_column",
            value: column.clone(),
            cure: "leave it out: only .csv and .npz files have named labels",
        });
    }
    match catalogue::parse_name(&spec.source) {
        ("digits", None) => digits::make(spec.split),
        ("bars-and-stripes", side) => {
            Ok(bars_and_stripes::make(bars_and_stripes::parse_side(side.unwrap_or("4"))?))
        }
        ("ising", beta) => {
            let beta = beta.map_or(Ok(ising::CRITICAL_BETA), ising::parse_beta)?;
            Ok(ising::make(beta, spec.split, spec.seed))
        }
        (name, parameter) => SETS
            .iter()
            .find(|set| set.name == name && parameter.is_none())
            .ok_or_else(|| catalogue::unknown(&spec.source))?
            .load(spec.split, search, mirrors, progress),
    }
}

/// A part of a file.
fn from_file(spec: &DataSpec) -> Result<Dataset> {
    let path = Path::new(&spec.source);
    if !path.exists() && !file::looks_like_a_path(&spec.source) {
        return Err(catalogue::unknown(&spec.source));
    }
    let whole = file::read(path, spec.label_column.as_deref())?;
    if spec.split == Split::All {
        return Ok(whole);
    }
    let rows = spec.split.of_file(whole.n_rows(), spec.seed);
    if rows.is_empty() {
        return Err(Error::Empty {
            what: format!("the {} part of {} ({} rows)", spec.split, whole.name, whole.n_rows()),
            cure: "give it 10 rows or more, or use all of them",
        });
    }
    let mut part = whole.select(&rows);
    part.provenance.seed = Some(spec.seed);
    Ok(part)
}
