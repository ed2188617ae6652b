//! One file per command.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod likelihood;
pub(crate) mod logz;
pub(crate) mod selftest;

use std::path::Path;

/// Refuse to overwrite a file unless told to.
fn check_overwrite(path: &Path, force: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        force || !path.is_file(),
        "{} is already there; use --force to overwrite it",
        path.display()
    );
    Ok(())
}
