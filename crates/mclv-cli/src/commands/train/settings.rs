//! Combines the flags of `mclv train` with a configuration file.

use super::args::{InputArgs, TrainArgs};
use crate::cli::Global;
use crate::commands::MAX_TEXT;
use anyhow::Context;
use mclv::data::DataSpec;
use mclv::settings::Settings;
use mclv::shell;
use mclv::train::{RunInput, StartModel, find_model};
use mclv::{ModelFile, read_text};
use serde::Deserialize;

/// Reads the configuration file, if there is one, and puts the flags over it.
pub(super) fn resolve(args: &TrainArgs, global: &Global) -> anyhow::Result<RunInput> {
    let mut flags = args.settings.clone();
    if args.no_centring {
        flags.centred = Some(false);
    }
    flags.seed = global.seed;
    resolve_with(&args.input, flags, global.seed)
}

/// Reads the configuration file, if there is one, and puts these settings and flags over it.
/// `seed` is that of the data.
pub(crate) fn resolve_with(
    args: &InputArgs,
    settings: Settings,
    seed: Option<u64>,
) -> anyhow::Result<RunInput> {
    let mut input = match &args.config {
        Some(path) => RunInput::from_toml(&read_text(path, MAX_TEXT)?, path)?,
        None => RunInput::default(),
    };
    if let Some(model) = &args.from {
        let (file, _) = find_model(model)?;
        if args.data.is_none() && args.config.is_none() {
            let provenance = ModelFile::load(&file)?.provenance;
            let recorded = provenance.settings.get("data").and_then(|spec| DataSpec::deserialize(spec).ok());
            let missing = || {
                let path = shell::path(model);
                format!("{path} does not record its data; give yours: mclv train DATA --from {path}")
            };
            input.data = recorded.with_context(missing)?;
        }
        input.from = Some(StartModel { file, sha256: None });
    }
    if args.data.is_some() || args.weights.is_some() {
        // The paths of flags start from here, and those of the file from where they were given.
        input.weights = input.weights.map(|path| input.data.locate(path));
        input.data = input.data.detached();
    }
    if let Some(source) = &args.data {
        input.data.source.clone_from(source);
    }
    input.data = args.parts.over(args.preparation.over(input.data));
    input.shape = args.picture.shape.or(input.shape);
    if let Some(path) = &args.weights {
        input.weights = Some(path.clone());
    }
    if let Some(seed) = seed {
        input.data.seed = seed;
    }
    Ok(RunInput { train: settings.over(input.train), ..input })
}
