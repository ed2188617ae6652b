//! Combines the flags of `mclv train` with a configuration file.

use super::args::TrainArgs;
use crate::cli::Global;
use anyhow::Context;
use mclv::train::RunInput;

/// Reads the configuration file, if there is one, and puts the flags over it.
pub(super) fn resolve(args: &TrainArgs, global: &Global) -> anyhow::Result<RunInput> {
    let mut input = match &args.config {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            RunInput::from_toml(&text, path)?
        }
        None => RunInput::default(),
    };
    if args.data.is_some() || args.weights.is_some() {
        // The paths of flags start from here, and those of the file from where they were given.
        input.weights = input.weights.map(|path| input.data.locate(path));
        input.data = input.data.detached();
    }
    if let Some(source) = &args.data {
        input.data.source.clone_from(source);
    }
    input.data = args.parts.over(args.preparation.over(input.data));
    if let Some(path) = &args.weights {
        input.weights = Some(path.clone());
    }
    let mut flags = args.settings.clone();
    if args.no_centring {
        flags.centred = Some(false);
    }
    if let Some(seed) = global.seed {
        (flags.seed, input.data.seed) = (Some(seed), seed);
    }
    Ok(RunInput { train: flags.over(input.train), ..input })
}
