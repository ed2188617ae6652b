//! One file or folder per command. It holds the command's arguments and the code that runs it.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
mod hdf5;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod likelihood;
pub(crate) mod logz;
pub(crate) mod model_data;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod selftest;
pub(crate) mod tours;
pub(crate) mod train;
pub(crate) mod transform;

use anyhow::bail;
use mclv::ModelFile;
use std::path::Path;

/// Refuse to overwrite a model unless told to.
fn check_overwrite(path: &Path, force: bool) -> anyhow::Result<()> {
    match ModelFile::files(path).into_iter().find(|file| file.is_file()) {
        Some(file) if !force => bail!("{} is already there; use --force to overwrite it", file.display()),
        _ => Ok(()),
    }
}

/// The lower-case extension of a file to be written, if it is one of `known` (named as `names`) and the file may be
/// written.
fn check_output(path: &Path, force: bool, known: &[&str], names: &'static str) -> anyhow::Result<String> {
    if path.is_dir() {
        return Err(mclv::Error::IsAFolder { path: path.into() }.into());
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    if !known.contains(&extension.as_str()) {
        return Err(mclv::Error::UnknownFormat { path: path.into(), known: names }.into());
    }
    if path.is_file() && !force {
        bail!("{} is already there; use --force to overwrite it", path.display());
    }
    Ok(extension)
}
