//! One file per command.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod likelihood;
pub(crate) mod logz;
pub(crate) mod selftest;
pub(crate) mod train;

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
