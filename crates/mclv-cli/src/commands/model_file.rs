//! Opens the model that a command names: a model file, a checkpoint, or the folder of a run.

use crate::output::Output;
use mclv::ModelFile;
use mclv::train::RunFolder;
use std::path::{Path, PathBuf};

/// Reads a model, and returns it with the path of its file. If `path` is a run folder, the output
/// of the command says which of its models was read.
pub(crate) fn open(path: &Path, out: &Output) -> anyhow::Result<(PathBuf, ModelFile)> {
    let (file, which) = find(path);
    if let Some(which) = which {
        out.begin_with(format!("model: {} ({which})", file.display()));
    }
    let model = ModelFile::load(&file)?;
    Ok((file, model))
}

/// The file of a model, and which model of its run it is if `path` is a run folder.
pub(crate) fn find(path: &Path) -> (PathBuf, Option<&'static str>) {
    let run = RunFolder::new(path);
    let found = if path.is_dir() { run.standing_model() } else { None };
    match found {
        None => (path.into(), None),
        Some(file) if file == run.best_model() => (file, Some("the best model of this run")),
        Some(file) if file == run.model() => {
            (file, Some("the last model of this run, which has no best model"))
        }
        Some(file) => (file, Some("the last checkpoint of this run, which has no other model")),
    }
}
