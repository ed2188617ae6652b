//! The arguments of `mclv train`.

use crate::flags::Preparation;
use clap::{Args, ValueHint};
use mclv::settings::Settings;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv train digits
  mclv train mnist --n-hidden 25 --epochs 100 --output runs/best
  mclv train mnist --preset paper --n-hidden 32
  mclv train mnist --gradient pcd --k 1 --centred=false
  mclv train bars-and-stripes:4 --gradient exact --n-hidden 16 --optimizer adam --learning-rate 0.2 --epochs 400
  mclv train rows.npy --weights weights.npy
  mclv train --config runs/best/config.toml --seed 7 --output runs/again
  mclv train --resume runs/best
  mclv train mnist --live --tensorboard

The run folder holds config.toml (all settings, decided), metrics.jsonl (a line an epoch), checkpoints, model.safetensors,
best.safetensors and report.html. Ctrl-C writes a checkpoint; resuming gives the same bits as never having stopped.")]
pub(crate) struct TrainArgs {
    /// The data: a name (see `mclv data list`) or a file [default: digits]
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    /// Run folder to make [default: runs/DATA-1, -2, …]
    #[arg(short, long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Go on with an interrupted run, exactly where it stopped and with its own settings
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "data", "output", "config", "weights", "binarize", "label_column", "Settings", "no_centring"])]
    pub(crate) resume: Option<PathBuf>,
    /// Settings from a TOML file, such as a run's config.toml; flags override it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "preset")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// How much each row counts: a .npy or .csv file, one number of 0 or more for each training row (where DATA is a
    /// file: for each of its rows)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The old spelling of `--centred=false`
    #[arg(long, hide = true, conflicts_with = "centred")]
    pub(crate) no_centring: bool,

    /// Epochs between two checkpoints
    #[arg(long, default_value_t = 10, value_name = "EPOCHS", help_heading = "Watching")]
    pub(crate) checkpoint_every: usize,
    /// Minutes after which a checkpoint is written in any case
    #[arg(long, default_value_t = 5.0, value_name = "MINUTES", help_heading = "Watching")]
    pub(crate) checkpoint_minutes: f64,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Ways to look at training while it runs, and after.
#[derive(Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct LookArgs {
    /// Write an event file for TensorBoard into the run folder: scalars, histograms, images
    #[arg(long)]
    pub(crate) tensorboard: bool,
    /// Serve the report to browsers on this machine, up to date while training runs
    #[arg(long)]
    pub(crate) live: bool,
    /// Port of --live; 0: any that is free [default: 8377, or one that is free]
    #[arg(long, value_name = "PORT", requires = "live")]
    pub(crate) port: Option<u16>,
    /// Write no report.html into the run folder
    #[arg(long)]
    pub(crate) no_report: bool,
}
