//! Turns errors of the library into exceptions of the package, whose classes are in
//! `mclv/errors.py`.

use mclv::settings::Spelling;
use mclv::{Error, printable};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::{PyErr, import_exception};
use std::io::ErrorKind;

import_exception!(mclv.errors, MclvError);
import_exception!(mclv.errors, SettingError);
import_exception!(mclv.errors, DataError);
import_exception!(mclv.errors, FormatError);
import_exception!(mclv.errors, FileError);
import_exception!(mclv.errors, MissingFileError);
import_exception!(mclv.errors, ForbiddenFileError);
import_exception!(mclv.errors, TooSlowError);

/// The exception for `error`.
pub(crate) fn exception(error: Error) -> PyErr {
    // In Python, settings are spelled as keywords. Python prints texts as they are.
    let text = printable(&error.in_words(Spelling::Keywords)).into_owned();
    match error {
        Error::Io { cause, .. } => match cause.kind() {
            ErrorKind::NotFound => MissingFileError::new_err(text),
            ErrorKind::PermissionDenied => ForbiddenFileError::new_err(text),
            _ => FileError::new_err(text),
        },
        Error::NotFetched { name, .. } => {
            MissingFileError::new_err(format!("{text}; fetch it with: mclv.datasets.fetch({name:?})"))
        }
        Error::IsAFolder { .. } | Error::NotAvailable { .. } | Error::InUse { .. } => {
            FileError::new_err(text)
        }
        Error::UnknownFormat { .. }
        | Error::Malformed { .. }
        | Error::Truncated { .. }
        | Error::TooLarge { .. }
        | Error::NewerFormat { .. }
        | Error::ChecksumMismatch { .. }
        | Error::MissingState { .. } => FormatError::new_err(text),
        Error::InvalidSetting { .. }
        | Error::InvalidChoice { .. }
        | Error::Incompatible { .. }
        | Error::UnknownData { .. } => SettingError::new_err(text),
        Error::OutOfRange { .. }
        | Error::Empty { .. }
        | Error::ShapeMismatch { .. }
        | Error::NotFinite { .. } => DataError::new_err(text),
        Error::TooSlow { .. } => TooSlowError::new_err(text),
        Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        _ => MclvError::new_err(text),
    }
}
