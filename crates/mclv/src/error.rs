//! Say what went wrong, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Everything that can fail in this crate because of its caller, its files or the machine.
///
/// Statistical events (a truncated tour, a saturated unit) are not errors: they are counted in results.
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
        /// What the system said. It is part of the message, so it is not also a source.
        cause: io::Error,
    },
    /// A folder stands where a file was expected.
    #[error("{path} is a folder; name a file")]
    IsAFolder {
        /// The folder.
        path: PathBuf,
    },
    /// No reader or writer goes by this file's extension.
    #[error("{path}: unknown file type; known are {known}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The extensions that are known, as text.
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
        "{path} is cut short: its header promises {expected} bytes of data, it has {found}; get it again"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes promised.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// A model file written by a later version of this program.
    #[error(
        "{path} has format version {found}, this program knows up to {supported}; upgrade mclv to read it"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },
    /// A data value is not a number in [0, 1].
    #[error("{source_name}: row {row}, column {column} is {value}; values must lie in [0, 1]: {cure}")]
    OutOfRange {
        /// The data set.
        source_name: String,
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The offending value.
        value: f64,
        /// What to do.
        cure: &'static str,
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
    /// A setting lies outside what it may be.
    #[error("{name} = {value} is not allowed: {cure}")]
    InvalidSetting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        cure: &'static str,
    },
    /// A choice that what it is made among does not offer.
    #[error("{name} = {value} is not allowed: {cure}")]
    InvalidChoice {
        /// What is chosen.
        name: &'static str,
        /// The choice.
        value: String,
        /// What there is.
        cure: String,
    },
    /// Two settings that do not go together.
    #[error("`{name}` does not go with `{with}`")]
    Incompatible {
        /// A setting that was given.
        name: &'static str,
        /// The setting, and its value, that the first does not go with.
        with: String,
    },
    /// No data set goes by this name.
    #[error("no data set or file is called {name:?}{}; known are {known}; or give a .npy, .npz, .csv or IDX file",
        .suggestion.as_ref().map(|s| format!(" (did you mean {s:?}?)")).unwrap_or_default())]
    UnknownData {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        suggestion: Option<String>,
        /// The known names.
        known: String,
    },
    /// A named data set is neither on disk nor to be had over the network.
    #[error(
        "{name} is not on this machine and could not be fetched:\n{attempts}\nPut {files} into {folder} (or a folder named by MCLV_DATA_DIR), plain or .gz, and try again"
    )]
    NotAvailable {
        /// The data set.
        name: String,
        /// What was tried and how it failed, a line each.
        attempts: String,
        /// The files that are missing.
        files: String,
        /// Where they are looked for.
        folder: PathBuf,
    },
    /// A named data set is not on disk, and the caller does not allow it to be fetched.
    #[error(
        "{name} is not on this machine:\n{attempts}\nFetch it, or put {files} into {folder} (or a folder named by MCLV_DATA_DIR), plain or .gz, and try again"
    )]
    NotFetched {
        /// The data set.
        name: String,
        /// Where it was looked for, a line each.
        attempts: String,
        /// The files that are missing.
        files: String,
        /// Where they are looked for.
        folder: PathBuf,
    },
    /// A file's SHA-256 is not the one its data set is known by.
    #[error(
        "{path} is not the file it should be: SHA-256 {found}, expected {expected}; delete it and fetch it again"
    )]
    ChecksumMismatch {
        /// The file.
        path: PathBuf,
        /// The digest wanted.
        expected: String,
        /// The digest found.
        found: String,
    },
    /// Enumeration would take longer than the caller allows.
    #[error("exact enumeration of 2^{n_units} states would take about {}{}", human_seconds(*.seconds),
        if .limit.is_finite() { format!(" ({} allowed); lift the limit", human_seconds(*.limit)) }
        else { ", more than any machine can do; take a model with a smaller layer".into() })]
    TooSlow {
        /// Units in the smaller layer.
        n_units: usize,
        /// Estimated seconds.
        seconds: f64,
        /// Allowed seconds.
        limit: f64,
    },
    /// A checkpoint lacks something that its settings call for.
    #[error("the checkpoint does not hold {what}: it was written by other settings or is damaged")]
    MissingState {
        /// What is missing.
        what: &'static str,
    },
    /// Another process of a job on several could not go on.
    #[error("rank {rank}: {problem}")]
    OtherRank {
        /// Which one.
        rank: usize,
        /// Its error.
        problem: String,
    },
    /// The caller asked to stop (Ctrl-C).
    #[error("interrupted")]
    Cancelled,
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wrap an I/O error with what was being done to which file.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |cause| match cause.kind() {
            io::ErrorKind::IsADirectory => Self::IsAFolder { path },
            _ => Self::Io { action, path, cause },
        }
    }

    /// The file does not follow its format.
    pub fn malformed(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Malformed { path: path.as_ref().to_path_buf(), place: None, problem: problem.into() }
    }

    /// The file does not follow its format at a place that can be named.
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

/// What the system said, and what to do about it where that is known.
fn with_advice(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder; check the path".into(),
        io::ErrorKind::PermissionDenied => format!("{cause}; check who may use it"),
        io::ErrorKind::StorageFull => format!("{cause}; make room and try again"),
        _ => cause.to_string(),
    }
}

/// Seconds as people say them.
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
