//! Opens the model that a command names: a model file, a checkpoint, or the folder of a run or sweep.

use crate::output::Output;
use mclv::ModelFile;
use mclv::train::{Standing, SweepFolder, find_model};
use std::path::{Path, PathBuf};

/// Reads a model, and returns it with the path of its file. If `path` is the folder of a run or of a
/// sweep, the output of the command says which model was read.
pub(crate) fn open(path: &Path, out: &Output) -> mclv::Result<(PathBuf, ModelFile)> {
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
