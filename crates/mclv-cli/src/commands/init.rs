//! `mclv init`: make an initial model for a data set.

use super::check_overwrite;
use crate::cli::Global;
use crate::flags::DataArgs;
use crate::output::{Output, facts};
use crate::watch::Watch;
use clap::{Args, ValueHint};
use mclv::data::{self, Split};
use mclv::{Init, ModelFile, Provenance};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv init digits --n-hidden 16 -o digits.safetensors
  mclv init mnist --n-hidden 25 --init paper --seed 3 -o start.safetensors")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Number of hidden units
    #[arg(long, alias = "hidden", default_value_t = 32, value_name = "N")]
    pub(crate) n_hidden: usize,
    /// `data`: biases and scale from the data; `paper`: as in the paper's code
    #[arg(long, default_value_t = Init::Data, value_name = "HOW")]
    pub(crate) init: Init,
    /// The part of the data to start from
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

/// A file to write.
#[derive(Args)]
pub(crate) struct OutputFile {
    /// The file to write
    #[arg(short = 'o', long = "output", default_value = "model.safetensors", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &InitArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output.path, args.output.force)?;
    let spec = args.data.preparation.spec(&args.data.source, args.split, global);
    let set = data::load(&spec, &Watch::new("fetching", "B"))?;
    let rbm = args.init.model(&set.rows, args.n_hidden, global.seed())?;
    let settings = json!({ "command": "init", "init": args.init, "n_hidden": args.n_hidden, "data": spec });
    let provenance = Provenance {
        settings,
        seed: Some(global.seed()),
        data: Some(set.provenance),
        ..Provenance::default()
    };
    let model = ModelFile { rbm, provenance };
    model.save(&args.output.path)?;
    let (n_visible, n_hidden) = (model.rbm.n_visible(), model.rbm.n_hidden());
    let json =
        json!({ "model": args.output.path.to_string_lossy(), "n_visible": n_visible, "n_hidden": n_hidden });
    out.print(&json, || {
        facts(&[
            ("wrote", args.output.path.display().to_string()),
            ("units", format!("{n_visible} visible, {n_hidden} hidden")),
            ("next", format!("mclv likelihood {}", args.output.path.display())),
        ])
    })
}
