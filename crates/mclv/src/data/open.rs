//! Open a data set and take parts of it, reading each of its files once.

use std::borrow::Cow;
use std::path::Path;

use super::named::SETS;
use super::preprocess::binarize_split;
use super::set_files::SetFiles;
use super::{
    Binarize, DataSpec, Dataset, Mirrors, SearchPath, Split, bars_and_stripes, catalogue, digits, file, ising,
};
use crate::progress::Progress;
use crate::{Error, Result, team};

/// An open data set, from which [`part`](Self::part) takes parts. No file is read twice, however
/// many parts are taken. The content stays in memory until the source is dropped.
pub struct DataSource<'a> {
    content: Content<'a>,
    seed: u64,
}

/// The origin of the rows.
enum Content<'a> {
    Digits,
    BarsAndStripes { side: usize },
    Ising { beta: f64 },
    Set(SetFiles<'a>),
    File(Dataset),
}

/// Opens the data set that `spec.source` names. `spec.split` and `spec.binarize` are not used;
/// [`DataSource::part`] takes them as arguments.
///
/// A file is read here, completely. The files of a named set are read when a part needs them. Files
/// that are not on disk are fetched only if `progress` allows that by
/// [`may_fetch`](Progress::may_fetch).
///
/// ```
/// use mclv::data::{self, Binarize, DataSpec, Split};
/// let mut digits = data::open(&DataSpec::default(), &mclv::progress::Silent)?;
/// let train = digits.part(Split::Train, Binarize::Bernoulli)?;
/// let test = digits.part(Split::Test, Binarize::Grey)?;
/// assert_eq!((train.n_rows(), test.n_rows()), (1297, 300));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If no set or file has that name, or if the file cannot be read.
pub fn open<'a>(spec: &DataSpec, progress: &'a dyn Progress) -> Result<DataSource<'a>> {
    open_with(spec, &SearchPath::from_env(), &Mirrors::Public, progress)
}

/// Opens a data set like [`open`], with folders and mirrors of the caller's choice.
///
/// # Errors
/// Those of [`open`].
pub fn open_with<'a>(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &'a dyn Progress,
) -> Result<DataSource<'a>> {
    let content = if catalogue::is_name(&spec.source) {
        named(spec, search, mirrors, progress)
    } else {
        read_file(spec).map(Content::File)
    };
    let content = match content {
        // If ranks met an error while they read the file together, all of them know of it.
        failed @ Err(Error::OtherRank { .. }) => failed,
        mine => team::together(mine),
    };
    Ok(DataSource { content: content?, seed: spec.seed })
}

/// Opens a named set. Nothing is read yet.
fn named<'a>(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &'a dyn Progress,
) -> Result<Content<'a>> {
    if let Some(column) = &spec.label_column {
        return Err(Error::InvalidSetting {
            name: "label_column",
            value: column.clone(),
            cure: "leave it out: only .csv and .npz files have named labels",
        });
    }
    Ok(match catalogue::parse_name(&spec.source) {
        ("digits", None) => Content::Digits,
        ("bars-and-stripes", side) => {
            Content::BarsAndStripes { side: bars_and_stripes::parse_side(side.unwrap_or("4"))? }
        }
        ("ising", beta) => Content::Ising { beta: beta.map_or(Ok(ising::CRITICAL_BETA), ising::parse_beta)? },
        (name, parameter) => {
            let set = SETS.iter().find(|set| set.name == name && parameter.is_none());
            let set = set.ok_or_else(|| catalogue::unknown(&spec.source))?;
            Content::Set(SetFiles::new(set, search.clone(), mirrors.clone(), progress))
        }
    })
}

/// Reads every row of a file.
fn read_file(spec: &DataSpec) -> Result<Dataset> {
    let path = Path::new(&spec.source);
    if !path.exists() && !file::looks_like_a_path(&spec.source) {
        return Err(catalogue::unknown(&spec.source));
    }
    file::read(path, spec.label_column.as_deref())
}

impl DataSource<'_> {
    /// Returns the rows of a part, binarised if requested, as [`load`](super::load) does.
    ///
    /// # Errors
    /// If the part is empty, if the files of a named set cannot be read or may not be fetched, or
    /// if the threshold is not allowed.
    pub fn part(&mut self, split: Split, binarize: Binarize) -> Result<Dataset> {
        binarize.check()?;
        Ok(prepare(self.content.part(split, self.seed)?, split, binarize, self.seed))
    }

    /// Returns the last part that is taken, like [`part`](Self::part). [`Split::All`] of a file is
    /// moved, not copied.
    ///
    /// # Errors
    /// Those of [`part`](Self::part).
    pub fn into_part(mut self, split: Split, binarize: Binarize) -> Result<Dataset> {
        binarize.check()?;
        match self.content {
            Content::File(whole) if split == Split::All => {
                Ok(prepare(Cow::Owned(whole), split, binarize, self.seed))
            }
            _ => self.part(split, binarize),
        }
    }

    /// The number of rows of the whole file. `None` for a named set, which is not divided by
    /// [`Split::of_file`].
    pub fn n_file_rows(&self) -> Option<usize> {
        match &self.content {
            Content::File(whole) => Some(whole.n_rows()),
            _ => None,
        }
    }
}

impl Content<'_> {
    /// Returns the rows of a part as the source has them.
    fn part(&mut self, split: Split, seed: u64) -> Result<Cow<'_, Dataset>> {
        Ok(match self {
            Self::File(whole) => part_of_file(whole, split, seed)?,
            Self::Set(files) => Cow::Owned(files.part(split)?),
            Self::Digits => Cow::Owned(digits::make(split)?),
            Self::BarsAndStripes { side } => Cow::Owned(bars_and_stripes::make(*side)),
            Self::Ising { beta } => Cow::Owned(ising::make(*beta, split, seed)),
        })
    }
}

fn part_of_file(whole: &Dataset, split: Split, seed: u64) -> Result<Cow<'_, Dataset>> {
    if split == Split::All {
        return Ok(Cow::Borrowed(whole));
    }
    let rows = split.of_file(whole.n_rows(), seed);
    if rows.is_empty() {
        return Err(Error::Empty {
            what: format!("the {split} part of {} ({} rows)", whole.name, whole.n_rows()),
            cure: "give it 10 rows or more, or use all of them",
        });
    }
    let mut part = whole.select(&rows);
    part.provenance.seed = Some(seed);
    Ok(Cow::Owned(part))
}

/// Binarises the rows of a part if requested, and records the preprocessing. Grey rows are copied
/// only if they are requested.
fn prepare(part: Cow<'_, Dataset>, split: Split, binarize: Binarize, seed: u64) -> Dataset {
    let mut dataset = match (binarize_split(&part.rows, binarize, seed, split, 0), part) {
        (None, part) => part.into_owned(),
        (Some(bits), part) => {
            let mut dataset = match part {
                Cow::Owned(part) => Dataset { rows: bits, ..part },
                Cow::Borrowed(part) => part.with_rows(bits),
            };
            let done = &mut dataset.provenance.preprocessing;
            *done = if done == "none" { binarize.to_string() } else { format!("{done}, {binarize}") };
            if binarize == Binarize::Bernoulli {
                dataset.provenance.seed = Some(seed);
            }
            dataset
        }
    };
    dataset.provenance.split = split;
    dataset.provenance.image_shape = dataset.image_shape;
    dataset
}
