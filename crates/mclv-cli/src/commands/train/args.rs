//! The arguments of `mclv train`.

use crate::flags::{OwnParts, PictureShape, Preparation, parse_minutes};
use clap::{Args, ValueHint};
use mclv::settings::Settings;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "Examples:
  mclv train digits                               built-in data, default settings
  mclv train rows.csv --n-hidden 16 -o runs/mine  your own data: values from 0 to 1
  mclv train rows.csv --from runs/mine            start from the best model of a run
  mclv train --resume runs/mine                   continue an interrupted run
  mclv train --resume runs/mine --epochs 200      add 200 epochs after the end of a run

`mclv train --help` shows all settings and more examples.",
    after_long_help = "Examples:
  mclv train digits
  mclv train mnist --n-hidden 25 --epochs 100 --output runs/best
  mclv train mnist --preset paper --n-hidden 32
  mclv train mnist --gradient pcd --k 1 --centred=false
  mclv train bars-and-stripes:4 --gradient exact --optimizer adam --lr 0.2
  mclv train rows.npy --weights weights.npy --shape 28x28
  mclv train train.csv --validation valid.csv --test test.csv
  mclv train table.csv --split-column part --label-column class
  mclv train bytes.npy --scale 255 --no-validation
  mclv train rows.npy --from runs/best --lr 0.1
  mclv train --config runs/best/config.toml --seed 7 --output runs/again
  mclv train --resume runs/best
  mclv train --resume runs/best --epochs 200
  mclv train mnist --live --tensorboard

The run folder holds config.toml (all settings), metrics.jsonl (one line per epoch), checkpoints,
model.safetensors (the last model), best.safetensors (the best model), report.html and, with
--snapshots, models after some epochs. Ctrl-C writes a checkpoint. A resumed run gives the same bits
as a run without interruption.

With --resume RUN --epochs N, N epochs are added after the end of a run. The schedule has ended with
a learning rate near zero, so a new one begins (see --restarts). If the run was interrupted, it
makes its remaining epochs first.

Where standard error is not a terminal, a line of progress is printed every minute; MCLV_PROGRESS
sets the seconds between two lines, 0 for none."
)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Run folder to create [default: runs/DATA-1, runs/DATA-2, …]
    #[arg(short, long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Continue an interrupted run exactly where it stopped, with its own settings. With --epochs N,
    /// add N epochs after its end, with a new schedule of the learning rate
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "data", "output", "config", "weights", "Preparation", "OwnParts", "from", "shape", "no_centring"])]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The old spelling of `--centred=false`
    #[arg(long, hide = true, conflicts_with = "centred")]
    pub(crate) no_centring: bool,

    /// Epochs between two checkpoints
    #[arg(
        long,
        default_value_t = 10,
        value_name = "EPOCHS",
        help_heading = "Watching",
        hide_short_help = true
    )]
    pub(crate) checkpoint_every: usize,
    /// Minutes after which a checkpoint is always written
    #[arg(
        long,
        default_value_t = 5.0,
        value_name = "MINUTES",
        value_parser = parse_minutes,
        allow_negative_numbers = true,
        help_heading = "Watching",
        hide_short_help = true
    )]
    pub(crate) checkpoint_minutes: f64,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// What a training learns from.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// Name of a data set (see `mclv data list`), or a file: IDX, .npy, .npz, .csv, .tsv, .txt
    /// (also gzipped) [default: digits; with --from: the data of that model]
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    /// Start from this model: a model file, or the folder of a run or sweep (its best model). The
    /// model decides the number of hidden units
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::AnyPath, conflicts_with = "init")]
    pub(crate) from: Option<PathBuf>,
    /// Read settings from a TOML file, such as the config.toml of a run; flags override them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "preset")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) parts: OwnParts,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    #[command(flatten)]
    pub(crate) picture: PictureShape,
    /// Weights of rows: a .npy or .csv file with one number of 0 or more per training row (if DATA
    /// is a file: per row of that file)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
}

/// Flags for watching a training while it runs and afterwards.
#[derive(Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct LookArgs {
    /// Write TensorBoard events (scalars, histograms, images) into the run folder
    #[arg(long)]
    pub(crate) tensorboard: bool,
    /// Serve a live report to browsers on this machine while training runs
    #[arg(long)]
    pub(crate) live: bool,
    /// Port of --live; 0: any free port [default: 8377, or any free port]
    #[arg(long, value_name = "PORT", requires = "live", hide_short_help = true)]
    pub(crate) port: Option<u16>,
    /// Do not write report.html
    #[arg(long, hide_short_help = true)]
    pub(crate) no_report: bool,
}
