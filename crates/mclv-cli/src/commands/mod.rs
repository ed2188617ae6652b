//! The commands: one file or folder per command, with its arguments and the code that runs it.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
mod hdf5;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lab;
pub(crate) mod likelihood;
pub(crate) mod logz;
pub(crate) mod model_data;
mod model_file;
pub(crate) mod modes;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod selftest;
pub(crate) mod sweep;
pub(crate) mod tours;
pub(crate) mod train;
pub(crate) mod transform;

use anyhow::bail;
use mclv::ModelFile;
use std::path::Path;

/// The largest length of a text that a command reads: a configuration, or a page.
const MAX_TEXT: u64 = 1 << 24;

/// Fails if a model file exists and `force` is false.
fn check_overwrite(path: &Path, force: bool) -> anyhow::Result<()> {
    match ModelFile::files(path).into_iter().find(|file| file.is_file()) {
        Some(file) if !force => bail!("{} already exists; use --force to overwrite it", file.display()),
        _ => Ok(()),
    }
}

/// Checks a file to be written and returns its extension in lower case. The extension must be one
/// of `known` (listed in messages as `names`), and an existing file needs `force`.
fn check_output(path: &Path, force: bool, known: &[&str], names: &'static str) -> anyhow::Result<String> {
    if path.is_dir() {
        return Err(mclv::Error::IsAFolder { path: path.into() }.into());
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    if !known.contains(&extension.as_str()) {
        return Err(mclv::Error::UnknownFormat { path: path.into(), known: names }.into());
    }
    if path.is_file() && !force {
        bail!("{} already exists; use --force to overwrite it", path.display());
    }
    Ok(extension)
}
