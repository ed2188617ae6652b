//! Open a data set and take parts of it, reading each of its files once.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::file::{FileRows, Reading};
use super::named::sets;
use super::preprocess::binarize_split;
use super::set_files::SetFiles;
use super::{
    Binarize, DataProvenance, DataSpec, Dataset, Mirrors, PartRows, Parts, SearchPath, Split,
    bars_and_stripes, catalogue, digits, file, ising,
};
use crate::progress::Progress;
use crate::team::{self, Facts};
use crate::{Error, Result};

/// An open data set, from which [`part`](Self::part) takes parts. No file is read twice, however
/// many parts are taken. The content stays in memory until the source is dropped.
pub struct DataSource<'a> {
    content: Content<'a>,
    /// The files of the validation and of the test rows, if they have their own.
    own: [Option<PartFile>; 2],
    spec: DataSpec,
    progress: &'a dyn Progress,
}

/// The origin of the rows.
enum Content<'a> {
    Digits,
    BarsAndStripes { side: usize },
    Ising { beta: f64 },
    Set(SetFiles<'a>),
    File(WholeFile),
}

/// A file, and how its rows are divided among the parts.
struct WholeFile {
    rows: FileRows,
    division: Division,
    /// The file that names the part of each row, with its digest.
    split_file: Option<FileDigest>,
}

/// How the rows of a file are divided.
enum Division {
    /// By the seed.
    Drawn,
    /// All rows train.
    Whole,
    /// The part of each row is given, by what `from` names.
    Given { splits: Vec<Split>, from: String },
}

/// A file that holds one part, and its rows once they were needed.
struct PartFile {
    path: String,
    rows: Option<Dataset>,
}

/// A file with its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileDigest {
    pub(crate) file: String,
    pub(crate) sha256: String,
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
    // The folder of the copies may differ.
    team::agree(&Facts::default().with("data", spec).without("data.folder"))?;
    let content = spec.check_parts().and_then(|()| {
        if catalogue::is_name(&spec.source) {
            named(spec, search, mirrors, progress)
        } else {
            read_file(spec, progress).map(Content::File)
        }
    });
    let own = |path: &Option<String>| path.clone().map(|path| PartFile { path, rows: None });
    let content = agree(content)?;
    if let Content::File(WholeFile { rows, split_file, .. }) = &content {
        let facts = Facts::default().with(&content_of(&spec.source), &rows.dataset.provenance.sha256);
        let by = split_file.iter().map(|file| (content_of(&file.file), &file.sha256));
        team::agree(&by.fold(facts, |facts, (name, sha256)| facts.with(&name, sha256)))?;
    }
    Ok(DataSource { content, own: [own(&spec.validation), own(&spec.test)], spec: spec.clone(), progress })
}

/// The name of the content of a file, where ranks compare it.
fn content_of(file: &str) -> String {
    format!("the content of {file}")
}

/// Returns the result, or an error if a rank has met one.
fn agree<T>(mine: Result<T>) -> Result<T> {
    match mine {
        // If ranks met an error while they read a file together, all of them know of it.
        failed @ Err(Error::OtherRank { .. }) => failed,
        mine => team::together(mine),
    }
}

/// Opens a named set. Nothing is read yet.
fn named<'a>(
    spec: &DataSpec,
    search: &SearchPath,
    mirrors: &Mirrors,
    progress: &'a dyn Progress,
) -> Result<Content<'a>> {
    for (name, value) in [
        ("label_column", spec.label_column.clone()),
        ("split_column", spec.split_column.clone()),
        ("split_file", spec.split_file.clone()),
        ("scale", spec.scale.map(|scale| scale.to_string())),
        ("spins", spec.spins.then(|| "true".into())),
    ] {
        // Files of validation or test rows may need their own range.
        let is_for_parts = spec.validation.is_some() || spec.test.is_some();
        if let Some(value) = value.filter(|_| !is_for_parts || name.starts_with("split")) {
            let cure = match name {
                "label_column" => "leave it out: only texts (.csv, …) and .npz files have named labels",
                "scale" | "spins" => "leave it out: it is for files, and a named set has its own range",
                _ => "leave it out: it is for files, and a named set has its own parts",
            };
            return Err(Error::InvalidSetting { name, value, cure });
        }
    }
    Ok(match catalogue::parse_name(&spec.source) {
        ("digits", None) => Content::Digits,
        ("bars-and-stripes", side) => {
            Content::BarsAndStripes { side: bars_and_stripes::parse_side(side.unwrap_or("4"))? }
        }
        ("ising", beta) => Content::Ising { beta: beta.map_or(Ok(ising::CRITICAL_BETA), ising::parse_beta)? },
        (name, parameter) => {
            let set = sets().find(|set| set.name == name && parameter.is_none());
            let set = set.ok_or_else(|| catalogue::unknown(&spec.source))?;
            Content::Set(SetFiles::new(set, search.clone(), mirrors.clone(), progress))
        }
    })
}

/// Reads every row of a file.
fn read_file(spec: &DataSpec, progress: &dyn Progress) -> Result<WholeFile> {
    let path = spec.locate(&spec.source);
    if !path.exists() && !file::looks_like_a_path(&spec.source) {
        return Err(catalogue::unknown(&spec.source));
    }
    let reading = Reading {
        label_column: spec.label_column.as_deref(),
        split_column: spec.split_column.as_deref(),
        values: spec.values()?,
        progress,
    };
    let mut rows = file::read_as(&path, &reading)?;
    let mut split_file = None;
    let division = if let Some(splits) = rows.splits.take() {
        let column = spec.split_column.as_deref().unwrap_or_default();
        let by = match column.parse::<i64>() {
            Ok(number) => format!("by column {number}"),
            Err(_) => format!("by its column {column:?}"),
        };
        Division::Given { splits, from: by }
    } else if let Some(path) = &spec.split_file {
        let (splits, sha256) = file::read_splits(&spec.locate(path))?;
        let n_rows = rows.dataset.n_rows();
        if splits.len() != n_rows {
            let what = format!("parts in {path}, one for each row of {}", spec.source);
            return Err(Error::ShapeMismatch { what, expected: n_rows, got: splits.len() });
        }
        split_file = Some(FileDigest { file: path.clone(), sha256 });
        Division::Given { splits, from: format!("by {path}") }
    } else if spec.no_validation || spec.validation.is_some() || spec.test.is_some() {
        Division::Whole
    } else {
        Division::Drawn
    };
    if let Division::Given { splits, from } = &division {
        for (split, other) in [(Split::Validation, &spec.validation), (Split::Test, &spec.test)] {
            if let Some(other) = other.as_ref().filter(|_| splits.contains(&split)) {
                let problem = format!(
                    "has {split} rows ({from}), but {other} holds the {split} rows; name them in one place"
                );
                return Err(Error::malformed(&path, problem));
            }
        }
    }
    let file = WholeFile { rows, division, split_file };
    if file.row_numbers(Split::Train, spec.seed).is_empty() && !matches!(file.division, Division::Drawn) {
        return Err(Error::malformed(&path, "has no training rows: no row is named `train`"));
    }
    Ok(file)
}

impl WholeFile {
    /// Returns the rows of a part, in file order.
    fn row_numbers(&self, split: Split, seed: u64) -> Vec<usize> {
        let n_rows = self.rows.dataset.n_rows();
        match (&self.division, split) {
            (_, Split::All) | (Division::Whole, Split::Train) => (0..n_rows).collect(),
            (Division::Whole, _) => Vec::new(),
            (Division::Drawn, split) => split.of_file(n_rows, seed),
            (Division::Given { splits, .. }, split) => {
                (0..n_rows).filter(|&row| splits[row] == split).collect()
            }
        }
    }

    /// Returns the rows of a part as the file has them.
    fn part(&self, split: Split, seed: u64) -> Result<Cow<'_, Dataset>> {
        let whole = &self.rows.dataset;
        if split == Split::All {
            return Ok(Cow::Borrowed(whole));
        }
        let rows = self.row_numbers(split, seed);
        if rows.is_empty() {
            return Err(Error::Empty {
                what: format!("the {split} part of {} ({} rows)", whole.name, whole.n_rows()),
                cure: match self.division {
                    Division::Drawn => "give it 10 rows or more, or use all of them",
                    Division::Whole => "all its rows train; use its part train, or give these rows in a file",
                    Division::Given { .. } => "name the part of some rows so, or use another part",
                },
            });
        }
        let mut part = whole.select(&rows);
        match &self.division {
            Division::Drawn => part.provenance.seed = Some(seed),
            Division::Whole => part.provenance.division = Some("all rows train".into()),
            Division::Given { from, .. } => {
                let digest = self.split_file.as_ref().map(|file| format!(", SHA-256 {}", file.sha256));
                part.provenance.division = Some(format!("{from}{}", digest.unwrap_or_default()));
            }
        }
        Ok(Cow::Owned(part))
    }

    /// Where the rows of parts come from, in words.
    fn origin(&self, seed: u64) -> String {
        let name = &self.rows.dataset.name;
        match &self.division {
            Division::Drawn => format!("drawn from {name} by seed {seed}"),
            Division::Whole => format!("all rows of {name}"),
            Division::Given { from, .. } => format!("{name} {from}"),
        }
    }
}

/// The columns of a source, which the files of its parts must have too.
struct Like<'a> {
    name: &'a str,
    n_columns: usize,
    /// The names of the columns, if the source is a file.
    provenance: Option<&'a DataProvenance>,
}

impl PartFile {
    /// Returns the rows, which must have as many columns as the source.
    fn read(
        &mut self,
        split: Split,
        spec: &DataSpec,
        like: Like<'_>,
        progress: &dyn Progress,
    ) -> Result<&Dataset> {
        if self.rows.is_none() {
            let label_column = spec.label_column.as_deref();
            let reading = Reading { label_column, split_column: None, values: spec.values()?, progress };
            let rows = agree(file::read_as(&spec.locate(&self.path), &reading))?.dataset;
            team::agree(&Facts::default().with(&content_of(&self.path), &rows.provenance.sha256))?;
            let Like { name, n_columns: expected, .. } = like;
            if rows.n_columns() != expected {
                let what = format!("columns of {} ({split} rows), as many as those of {name}", self.path);
                return Err(Error::ShapeMismatch { what, expected, got: rows.n_columns() });
            }
            if let Some(like) = like.provenance {
                like.check_order(&rows.provenance)?;
            }
            self.rows = Some(rows);
        }
        Ok(self.rows.as_ref().expect("read above"))
    }
}

impl DataSource<'_> {
    /// Returns the rows of a part, binarised if requested, as [`load`](super::load) does.
    ///
    /// # Errors
    /// If the part is empty, if the files of a named set cannot be read or may not be fetched, or
    /// if the threshold is not allowed.
    pub fn part(&mut self, split: Split, binarize: Binarize) -> Result<Dataset> {
        binarize.check()?;
        let Self { content, own, spec, progress } = self;
        let part = match own_file(own, split) {
            Some(file) => Cow::Borrowed(file.read(split, spec, content.shape(), *progress)?),
            None => content.part(split, spec)?,
        };
        Ok(prepare(part, split, binarize, spec.seed))
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
                Ok(prepare(Cow::Owned(whole.rows.dataset), split, binarize, self.spec.seed))
            }
            _ => self.part(split, binarize),
        }
    }

    /// Returns which rows of the source are those of a part. `None` for a named set, and for a part
    /// that has a file of its own.
    pub fn row_numbers(&self, split: Split) -> Option<Vec<usize>> {
        match &self.content {
            Content::File(whole) if self.own_path(split).is_none() => {
                Some(whole.row_numbers(split, self.spec.seed))
            }
            _ => None,
        }
    }

    fn own_path(&self, split: Split) -> Option<&str> {
        let at = own_place(split)?;
        self.own[at].as_ref().map(|file| file.path.as_str())
    }

    /// Counts the rows of each part. Files of validation and test rows are read.
    ///
    /// # Errors
    /// If a file cannot be read, or if a named set is not on disk and may not be fetched.
    pub fn parts(&mut self) -> Result<Parts> {
        let train = self.count(Split::Train)?;
        let train = train.unwrap_or_else(|| PartRows { n_rows: 0, from: self.spec.source.clone() });
        let (validation, test) = (self.count(Split::Validation)?, self.count(Split::Test)?);
        let is_drawn =
            matches!(&self.content, Content::File(whole) if matches!(whole.division, Division::Drawn));
        Ok(Parts { train, validation, test, n_unused: 0, is_drawn })
    }

    fn count(&mut self, split: Split) -> Result<Option<PartRows>> {
        let Self { content, own, spec, progress } = self;
        Ok(match own_file(own, split) {
            Some(file) => {
                let n_rows = file.read(split, spec, content.shape(), *progress)?.n_rows();
                PartRows::some(n_rows, &file.path)
            }
            None => content.count(split, spec),
        })
    }

    /// Returns the format of a file, in words.
    pub fn format(&self) -> Option<&str> {
        match &self.content {
            Content::File(whole) => Some(&whole.rows.format),
            _ => None,
        }
    }

    /// Returns the names of the columns of a file. Empty if it has none.
    pub fn column_names(&self) -> &[String] {
        match &self.content {
            Content::File(whole) => &whole.rows.dataset.provenance.column_names,
            _ => &[],
        }
    }

    /// Returns the digests of the files besides the source that were read.
    pub(crate) fn digests(&self) -> Vec<FileDigest> {
        let split_file = match &self.content {
            Content::File(whole) => whole.split_file.clone(),
            _ => None,
        };
        let own = self.own.iter().flatten().filter_map(|file| {
            let sha256 = file.rows.as_ref()?.provenance.sha256.clone();
            Some(FileDigest { file: file.path.clone(), sha256 })
        });
        split_file.into_iter().chain(own).collect()
    }
}

/// The place of a part among those that may have a file of their own.
fn own_place(split: Split) -> Option<usize> {
    match split {
        Split::Validation => Some(0),
        Split::Test => Some(1),
        Split::Train | Split::All => None,
    }
}

fn own_file(own: &mut [Option<PartFile>; 2], split: Split) -> Option<&mut PartFile> {
    own[own_place(split)?].as_mut()
}

impl Content<'_> {
    /// Returns the rows of a part as the source has them.
    fn part(&mut self, split: Split, spec: &DataSpec) -> Result<Cow<'_, Dataset>> {
        let seed = spec.seed;
        if let (false, true) = (matches!(self, Self::File(_)), spec.no_validation) {
            if split == Split::Validation {
                let what = format!("the validation part of {}", spec.source);
                let cure = "its validation rows train too; use another part";
                return Err(Error::Empty { what, cure });
            }
            if split == Split::Train {
                return Ok(Cow::Owned(self.with_validation(seed)?));
            }
        }
        Ok(match self {
            Self::File(whole) => whole.part(split, seed)?,
            Self::Set(files) => Cow::Owned(files.part(split)?),
            Self::Digits => Cow::Owned(digits::make(split)?),
            Self::BarsAndStripes { side } => Cow::Owned(bars_and_stripes::make(*side)),
            Self::Ising { beta } => Cow::Owned(ising::make(*beta, split, seed)),
        })
    }

    /// Returns the training rows of a named set together with its validation rows.
    fn with_validation(&mut self, seed: u64) -> Result<Dataset> {
        let joined = |mut set: Dataset| {
            set.provenance.division = Some("validation rows train too".into());
            set
        };
        Ok(match self {
            Self::Set(files) => joined(files.train_and_validation()?),
            Self::Digits => {
                let n_rows = digits::N_ROWS - N_TEST_DIGITS;
                joined(digits::make(Split::All)?.select(&(0..n_rows).collect::<Vec<_>>()))
            }
            // Their validation rows are the training rows, or further draws.
            Self::BarsAndStripes { side } => bars_and_stripes::make(*side),
            Self::Ising { beta } => ising::make(*beta, Split::Train, seed),
            Self::File(_) => unreachable!("a file has its own division"),
        })
    }

    /// Counts the rows of a part. Nothing is read.
    fn count(&self, split: Split, spec: &DataSpec) -> Option<PartRows> {
        let of_named = |[train, validation, test]: [usize; 3]| {
            let (train, validation) = match (self, spec.no_validation) {
                (_, false) => (train, validation),
                (Self::Digits | Self::Set(_), true) => (train + validation, 0),
                (_, true) => (train, 0),
            };
            match split {
                Split::Train => train,
                Split::Validation => validation,
                _ => test,
            }
        };
        let (n_rows, from) = match self {
            Self::File(whole) => (whole.row_numbers(split, spec.seed).len(), whole.origin(spec.seed)),
            Self::Set(files) => (of_named(files.n_rows()), spec.source.clone()),
            Self::Digits => {
                let n_rows = [1_297, 200, N_TEST_DIGITS];
                (of_named(n_rows), spec.source.clone())
            }
            Self::BarsAndStripes { side } => {
                let n_rows = (2 << side) - 2;
                (of_named([n_rows; 3]), format!("{}: every pattern", spec.source))
            }
            Self::Ising { .. } => {
                (of_named([ising::N_ROWS; 3]), format!("{}: drawn by seed {}", spec.source, spec.seed))
            }
        };
        PartRows::some(n_rows, &from)
    }

    /// Describes the columns of the source.
    fn shape(&self) -> Like<'_> {
        let (name, n_columns) = match self {
            Self::File(whole) => (whole.rows.dataset.name.as_str(), whole.rows.dataset.n_columns()),
            Self::Set(files) => (files.name(), files.n_columns()),
            Self::Digits => ("digits", digits::N_COLUMNS),
            Self::BarsAndStripes { side } => ("bars-and-stripes", side * side),
            Self::Ising { .. } => ("ising", ising::N_SITES),
        };
        let provenance = match self {
            Self::File(whole) => Some(&whole.rows.dataset.provenance),
            _ => None,
        };
        Like { name, n_columns, provenance }
    }
}

/// The number of test rows of the digits.
const N_TEST_DIGITS: usize = 300;

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
