//! Errors: what went wrong, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Everything that can fail in this crate because of its caller, its files or the machine.
///
/// Statistical events (a truncated tour, a saturated unit) are not errors. Results count them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("cannot {action} {path}: {}", with_advice(.cause))]
    Io {
        /// `read`, `write`, `create`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's message. It is part of our message, so it is not also a source.
        cause: io::Error,
    },
    /// The path leads to a folder where a file was expected.
    #[error("{path} is a folder; give the path of a file")]
    IsAFolder {
        /// The folder.
        path: PathBuf,
    },
    /// No reader or writer handles this file's extension.
    #[error("{path}: unknown file type; known types are {known}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The known extensions, as text.
        known: &'static str,
    },
    /// The file's bytes do not follow its format.
    #[error("{path}: {problem}{}", .place.as_ref().map(|p| format!(" ({p})")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file: a line, a byte, a row.
        place: Option<String>,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The file ends before its own header says it should.
    #[error(
        "{path} is cut short: its header announces {expected} bytes of data, but it has {found}; get a complete copy"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes that the header announces.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// The content of a file would take more memory than a file of its length may.
    #[error(
        "{path} would take {} of memory or more; a file of its length may take {}; if you trust it, set \
         MCLV_MAX_MEMORY={}G and try again",
        human_bytes(*.wanted), human_bytes(*.at_most), gigabytes(*.wanted)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bytes of memory that its content would take, as far as it was read.
        wanted: u64,
        /// The bytes that it may take.
        at_most: u64,
    },
    /// A model file written by a later version of this program.
    #[error(
        "{path} has format version {found}, but this program reads versions up to {supported}; upgrade mclv"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program reads.
        supported: u32,
    },
    /// A data value is not in the range that its source may hold.
    #[error("{source_name}: row {row}, column {column} is {value}; values must {rule}: {cure}")]
    OutOfRange {
        /// The data set.
        source_name: String,
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The offending value.
        value: f64,
        /// What values must do, such as `lie in [0, 1]`.
        rule: String,
        /// What to do.
        cure: String,
    },
    /// Something that needs at least one element has none.
    #[error("{what} is empty: {cure}")]
    Empty {
        /// What is empty.
        what: String,
        /// What to do.
        cure: &'static str,
    },
    /// Two things that must have the same size do not.
    #[error("{what}: expected {expected}, got {got}")]
    ShapeMismatch {
        /// Which sizes are compared.
        what: String,
        /// The size wanted.
        expected: usize,
        /// The size found.
        got: usize,
    },
    /// A parameter of a model is NaN or infinite.
    #[error("{what} holds {value} at index {index}; a model must have finite parameters")]
    NotFinite {
        /// Which tensor.
        what: &'static str,
        /// Position in it, row-major.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A setting has a value that is not allowed.
    #[error("{name} = {value} is not allowed: {cure}")]
    InvalidSetting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        cure: &'static str,
    },
    /// A choice that does not exist, such as a column that the file does not have.
    #[error("{name} = {value} is not allowed: {cure}")]
    InvalidChoice {
        /// What is chosen.
        name: &'static str,
        /// The choice.
        value: String,
        /// The choices that exist.
        cure: String,
    },
    /// Two settings that exclude each other.
    #[error("`{name}` cannot be used with `{with}`")]
    Incompatible {
        /// The setting that was given.
        name: &'static str,
        /// The other setting and its value.
        with: String,
    },
    /// No data set has this name.
    #[error("no data set or file is called {name:?}{}; known data sets are {known}; or give a .npy, .npz, .csv, .txt or IDX file",
        .suggestion.as_ref().map(|s| format!(" (did you mean {s:?}?)")).unwrap_or_default())]
    UnknownData {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        suggestion: Option<String>,
        /// The known names.
        known: String,
    },
    /// A named data set is not on disk and could not be downloaded.
    #[error(
        "{name} is not on this machine and could not be fetched:\n{attempts}\nPut {files} into {folder} (or a folder named by MCLV_DATA_DIR), plain or .gz, and try again"
    )]
    NotAvailable {
        /// The data set.
        name: String,
        /// Each attempt and why it failed, one per line.
        attempts: String,
        /// The files that are missing.
        files: String,
        /// Where they are looked for.
        folder: PathBuf,
    },
    /// A named data set is not on disk, and the caller does not allow downloads.
    #[error(
        "{name} is not on this machine:\n{attempts}\nFetch it, or put {files} into {folder} (or a folder named by MCLV_DATA_DIR), plain or .gz, and try again"
    )]
    NotFetched {
        /// The data set.
        name: String,
        /// The places that were searched, one per line.
        attempts: String,
        /// The files that are missing.
        files: String,
        /// Where they are looked for.
        folder: PathBuf,
    },
    /// A file's SHA-256 differs from the one recorded for its data set.
    #[error(
        "{path} is {}: its SHA-256 is {found}, not {expected}; fetch an intact file (this one may stay where it is)",
        .belongs_to.map_or_else(|| "damaged, or not the file of this data set".into(), |set| format!("a file of {set}"))
    )]
    ChecksumMismatch {
        /// The file.
        path: PathBuf,
        /// The digest wanted.
        expected: String,
        /// The digest found.
        found: String,
        /// The named data set that has a file with the digest found.
        belongs_to: Option<&'static str>,
    },
    /// A run has not ended, but the caller wants to go on after its end.
    #[error("the run in {path} has made {done} of {epochs} epochs; it can be given more only after its end")]
    Unfinished {
        /// The run folder.
        path: PathBuf,
        /// The epochs made.
        done: usize,
        /// The epochs of the run.
        epochs: usize,
    },
    /// A sweep has not ended, so no run stands for it.
    #[error("the sweep in {path} has not ended, so none of its models is chosen yet")]
    UnfinishedSweep {
        /// The folder of the sweep.
        path: PathBuf,
    },
    /// Another process writes into a folder.
    #[error("{path} is in use by {owner}: wait until it has ended, or choose another folder")]
    InUse {
        /// The folder.
        path: PathBuf,
        /// How that process describes itself.
        owner: String,
    },
    /// Enumeration would take longer than the caller allows.
    #[error("exact enumeration of 2^{n_units} states would take about {}{}", human_seconds(*.seconds),
        if .limit.is_finite() { format!(" ({} allowed); raise the limit", human_seconds(*.limit)) }
        else { ", which no machine can do; use a model with a smaller layer".into() })]
    TooSlow {
        /// Units in the smaller layer.
        n_units: usize,
        /// Estimated seconds.
        seconds: f64,
        /// Allowed seconds.
        limit: f64,
    },
    /// A checkpoint lacks something that its settings call for.
    #[error("the checkpoint does not hold {what}: it was written with other settings or is damaged")]
    MissingState {
        /// What is missing.
        what: &'static str,
    },
    /// Another process of a job with several processes failed.
    #[error("rank {rank}: {problem}")]
    OtherRank {
        /// The rank of that process.
        rank: usize,
        /// Its error.
        problem: String,
    },
    /// The processes of a job were not started alike.
    #[error(
        "rank {rank} differs from rank 0: {how}; start all ranks with the same program, arguments and files"
    )]
    RanksDiffer {
        /// The first rank that differs.
        rank: usize,
        /// What differs, with its value and that of rank 0.
        how: String,
    },
    /// The caller asked to stop (Ctrl-C).
    #[error("interrupted")]
    Cancelled,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Adds the action and the file to an I/O error.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |cause| match Self::inside(cause) {
            Ok(own) => own,
            Err(cause) if cause.kind() == io::ErrorKind::IsADirectory => Self::IsAFolder { path },
            Err(cause) => Self::Io { action, path, cause },
        }
    }

    /// Returns the error of this crate that an I/O error carries, if it carries one: a reader has to
    /// fail with an I/O error, also if it was cancelled.
    pub(crate) fn inside(cause: io::Error) -> std::result::Result<Self, io::Error> {
        cause.downcast()
    }

    /// An error for a file that does not follow its format.
    pub fn malformed(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Malformed { path: path.as_ref().to_path_buf(), place: None, problem: problem.into() }
    }

    /// An error for a file that does not follow its format, with the place in the file.
    pub fn malformed_at(
        path: impl AsRef<Path>,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Malformed {
            path: path.as_ref().to_path_buf(),
            place: Some(place.into()),
            problem: problem.into(),
        }
    }
}

/// The system's message, with advice where we know some.
fn with_advice(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => "no such file or folder; check the path".into(),
        io::ErrorKind::PermissionDenied => format!("{cause}; check its permissions"),
        io::ErrorKind::StorageFull => format!("{cause}; make room and try again"),
        _ => cause.to_string(),
    }
}

/// Formats a number of bytes with a suitable unit.
fn human_bytes(n: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match UNITS.into_iter().find(|(size, _)| n as f64 >= *size) {
        Some((size, unit)) => format!("{:.0} {unit}", n as f64 / size),
        None => format!("{n} bytes"),
    }
}

/// Returns the number of whole gigabytes that hold `n` bytes.
fn gigabytes(n: u64) -> u64 {
    n.div_ceil(1_000_000_000)
}

/// Formats seconds with a suitable unit.
///
/// ```
/// assert_eq!(mclv::human_seconds(0.0014), "1.4 ms");
/// assert_eq!(mclv::human_seconds(0.25), "0.25 s");
/// assert_eq!(mclv::human_seconds(7200.0), "2.0 hours");
/// ```
pub fn human_seconds(seconds: f64) -> String {
    const UNITS: [(f64, &str); 5] =
        [(60.0, "s"), (3600.0, "min"), (86_400.0, "hours"), (31_557_600.0, "days"), (f64::INFINITY, "years")];
    if seconds < 0.1 {
        return format!("{:.1} ms", 1000.0 * seconds);
    }
    let mut size = 1.0;
    for (limit, unit) in UNITS {
        if seconds < limit {
            let value = seconds / size;
            return match value {
                v if unit == "s" && v < 10.0 => format!("{v:.2} s"),
                v if v < 10_000.0 => format!("{v:.1} {unit}"),
                v => format!("{v:.1e} {unit}"),
            };
        }
        size = limit;
    }
    format!("{seconds} s")
}
