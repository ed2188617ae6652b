//! `mclv init`: creates an untrained model for a data set.

use super::check_overwrite;
use crate::cli::Global;
use crate::flags::{DataArgs, PictureShape};
use crate::output::{Output, facts};
use crate::watch::Watch;
use anyhow::Context;
use clap::{Args, ValueHint};
use mclv::data::{self, Split};
use mclv::shell;
use mclv::{Init, ModelFile, Provenance, picture};
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
    /// Initial parameters: `data` computes biases and weight scale from the data, `paper` copies
    /// the paper's code
    #[arg(long, default_value_t = Init::Data, value_name = "HOW")]
    pub(crate) init: Init,
    /// Part of the data to use: all, train, validation or test
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    #[command(flatten)]
    pub(crate) picture: PictureShape,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

/// A file to write.
#[derive(Args)]
pub(crate) struct OutputFile {
    /// Model file to write
    #[arg(short = 'o', long = "output", default_value = "model.safetensors", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &InitArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output.path, args.output.force)?;
    let spec = args.data.preparation.spec(&args.data.source, args.split, global).anchored();
    let mut set = data::load(&spec, &Watch::new("fetching", "B"))?;
    if let Some(shape) = args.picture.shape {
        picture::check_shape(shape, set.n_columns()).context("--shape")?;
        set.provenance.image_shape = Some(shape);
    }
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
            ("next", format!("mclv train --from {}", shell::path(&args.output.path))),
        ])
    })
}
