//! The arguments of `mclv train`.

use crate::flags::{Preparation, named};
use clap::{Args, ValueHint};
use mclv::Init;
use mclv::gradient::{Starts, Statistics, TourLength, Unfinished, VisibleChain};
use mclv::train::Schedule;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv train digits
  mclv train mnist --hidden 25 --epochs 100 --output runs/best
  mclv train mnist --preset paper --gradient lvs --hidden 32
  mclv train mnist --gradient lvs --unfinished carry --k 1
  mclv train bars-and-stripes:4 --gradient exact --hidden 16 --optimizer adam --lr 0.2 --epochs 400
  mclv train rows.npy --weights weights.npy
  mclv train --config runs/best/config.toml --seed 7 --output runs/again
  mclv train --resume runs/best
  mclv train mnist --live --tensorboard

The run folder holds config.toml (the resolved settings), metrics.jsonl (a line an epoch), checkpoints, model.safetensors,
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
        "data", "output", "config", "preset", "weights", "binarize", "label_column", "hidden", "init", "gradient", "k",
        "chains", "visible", "unfinished", "starts", "statistics", "samples_per_row", "row_fraction", "redraw_every",
        "min_ess", "target_completion", "max_states", "max_set_cost", "warm_up_epochs", "epochs", "batch_size",
        "drop_last", "learning_rate", "schedule", "optimizer", "momentum", "l1", "l2", "clip", "no_centring",
        "offset_rate", "redraw_bits", "eval_every", "patience"])]
    pub(crate) resume: Option<PathBuf>,
    /// Settings from a TOML file, such as a run's config.toml; flags override it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// `default`: the best we know; `paper`: the protocol of the paper's code
    #[arg(long, value_enum, default_value_t = Preset::Default, conflicts_with = "config")]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// How much each row counts: a .npy or .csv file, one number of 0 or more for each training row (where DATA is a
    /// file: for each of its rows)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,

    /// Number of hidden units [default: 25]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) hidden: Option<usize>,
    /// `data`: biases and scale from the data; `paper`: as in the paper's code
    #[arg(long, value_name = "HOW", help_heading = "Model")]
    pub(crate) init: Option<Init>,

    /// Gradient estimator [default: up to 64 hidden units lvs with --k 3, --row-fraction 0 and --learning-rate 0.6, else pcd with --k 3]
    #[arg(long, value_enum, help_heading = "Gradient")]
    pub(crate) gradient: Option<Estimator>,
    /// Gibbs steps per update; for tours also `dynamic`: until all return [default: 1 with --gradient, else 3]
    #[arg(long, value_name = "K", help_heading = "Gradient")]
    pub(crate) k: Option<TourLength>,
    /// Persistent chains, or tours per update [default: as many as rows in a minibatch]
    #[arg(long, visible_alias = "tours", value_name = "N", help_heading = "Gradient")]
    pub(crate) chains: Option<usize>,
    /// Visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code)
    #[arg(long, value_parser = named::<VisibleChain>, value_name = "HOW", help_heading = "Gradient")]
    pub(crate) visible: Option<VisibleChain>,
    /// Tours that have not returned: `drop` (the paper's), `keep`, or `carry` on
    #[arg(long, value_parser = named::<Unfinished>, value_name = "POLICY", help_heading = "Gradient")]
    pub(crate) unfinished: Option<Unfinished>,
    /// Starts of tours: `fresh`, `weighted`, or `metropolis` (with carry)
    #[arg(long, value_parser = named::<Starts>, value_name = "HOW", help_heading = "Gradient")]
    pub(crate) starts: Option<Starts>,
    /// What is averaged along tours: `sampled`, `mean-hidden` or `mean-visible`
    #[arg(long, value_parser = named::<Statistics>, value_name = "WHAT", help_heading = "Gradient")]
    pub(crate) statistics: Option<Statistics>,
    /// Hidden states per row in the stopping set [default: 1]
    #[arg(long, value_name = "M", help_heading = "Gradient")]
    pub(crate) samples_per_row: Option<usize>,
    /// Share of the rows that the stopping set is made from; 0: 3 %, but no fewer than 1,000 rows [default: 1 with --gradient, else 0]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) row_fraction: Option<f64>,
    /// Epochs between two stopping sets [default: 1]
    #[arg(long, value_name = "EPOCHS", help_heading = "Gradient")]
    pub(crate) redraw_every: Option<usize>,
    /// Make the start table anew when the effective sample size (or acceptance) falls below this share [default: 0.2]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) min_ess: Option<f64>,
    /// Adapt the stopping set (rows, and samples per row) until this share of tours returns [default: 0, do not]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) target_completion: Option<f64>,
    /// Budget of memory of a set that adapts: most states drawn for it [default: 1000000]
    #[arg(long, value_name = "N", help_heading = "Gradient")]
    pub(crate) max_states: Option<usize>,
    /// Budget of time of a set that adapts: states drawn and evaluated for it, for each Gibbs step [default: 0, none]
    #[arg(long, value_name = "RATIO", help_heading = "Gradient")]
    pub(crate) max_set_cost: Option<f64>,
    /// Epochs of CD-1 before the estimator proper
    #[arg(long, value_name = "N", help_heading = "Gradient")]
    pub(crate) warm_up_epochs: Option<usize>,

    /// Passes over the data [default: 100, or as many as make 10,000 updates]
    #[arg(long, value_name = "N", help_heading = "Optimisation")]
    pub(crate) epochs: Option<usize>,
    /// Rows per update [default: 128]
    #[arg(long, value_name = "N", help_heading = "Optimisation")]
    pub(crate) batch_size: Option<usize>,
    /// Leave out a short last minibatch
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) drop_last: bool,
    /// Initial learning rate [default: 0.4, or 0.6 without --gradient up to 64 hidden units; paper: 0.1; with adam: 0.01]
    #[arg(long, visible_alias = "lr", value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) learning_rate: Option<f64>,
    /// `linear` to zero, `cosine`, `plateau` (the paper's) or `constant` [default: linear]
    #[arg(long, value_parser = named::<Schedule>, value_name = "HOW", help_heading = "Optimisation")]
    pub(crate) schedule: Option<Schedule>,
    /// Rule for steps [default: sgd]
    #[arg(long, value_enum, help_heading = "Optimisation")]
    pub(crate) optimizer: Option<Rule>,
    /// Momentum of sgd [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub(crate) momentum: Option<f64>,
    /// Weight decay, absolute values
    #[arg(long, value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) l1: Option<f64>,
    /// Weight decay, squares
    #[arg(long, value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) l2: Option<f64>,
    /// Largest norm of a gradient
    #[arg(long, value_name = "NORM", help_heading = "Optimisation")]
    pub(crate) clip: Option<f64>,
    /// Do not centre the gradient
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) no_centring: bool,
    /// How fast the hidden offsets of centring follow the data [default: 0.01]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub(crate) offset_rate: Option<f64>,
    /// Draw the bits of grey data anew in each epoch (with --binarize bernoulli)
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) redraw_bits: bool,

    /// Epochs between two evaluations [default: as 5 % of the time allows]
    #[arg(long, value_name = "EPOCHS", help_heading = "Watching")]
    pub(crate) eval_every: Option<usize>,
    /// Stop after so many evaluations without a better validation likelihood
    #[arg(long, value_name = "N", help_heading = "Watching")]
    pub(crate) patience: Option<usize>,
    /// Epochs between two checkpoints
    #[arg(long, default_value_t = 10, value_name = "EPOCHS", help_heading = "Watching")]
    pub(crate) checkpoint_every: usize,
    /// Minutes after which a checkpoint is written in any case
    #[arg(long, default_value_t = 5.0, value_name = "MINUTES", help_heading = "Watching")]
    pub(crate) checkpoint_minutes: f64,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preset {
    Default,
    Paper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rule {
    Sgd,
    Adam,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Estimator {
    /// Contrastive divergence
    Cd,
    /// Persistent contrastive divergence
    Pcd,
    /// Las Vegas tours
    Lvs,
    /// Enumeration; small models only
    Exact,
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
