//! Opens the model that a command names: a model file, a checkpoint, or the folder of a run or sweep.

use crate::output::Output;
use anyhow::bail;
use mclv::ModelFile;
use mclv::shell;
use mclv::train::{Standing, SweepFolder, find_model};
use std::path::{Path, PathBuf};

/// Reads a model, and returns it with the path of its file. If `path` is the folder of a run or of a
/// sweep, the output of the command says which model was read.
pub(crate) fn open(path: &Path, out: &Output) -> anyhow::Result<(PathBuf, ModelFile)> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let is_table = extension.is_some_and(|extension| ["csv", "tsv"].contains(&extension.as_str()));
    if is_table && path.is_file() {
        let (path, quoted) = (path.display(), shell::path(path));
        bail!(
            "{path} is a table of data, not a model: give a model file or the folder of a run, and the data with \
             --data {quoted}"
        );
    }
    let (file, standing) = find_model(path)?;
    if let Some(standing) = standing {
        let whose = match SweepFolder::new(path).holds_a_sweep() {
            true => "the chosen run of this sweep",
            false => "this run",
        };
        let which = match standing {
            Standing::Best => format!("the best model of {whose}"),
            Standing::Last => format!("the last model of {whose}, which has no best model"),
            Standing::Checkpoint => format!("the last checkpoint of {whose}, which has no other model"),
        };
        out.begin_with(format!("model: {} ({which})", file.display()));
    }
    let model = ModelFile::load(&file)?;
    Ok((file, model))
}
