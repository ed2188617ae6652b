//! What can be typed about reports and figures.

use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv report runs/digits-1                                  report.html in the run folder
  mclv report runs/digits-1 -o digits.html --force
  mclv report runs/pcd-* runs/lvs-* -o comparison.html       curves over each other, a table to sort

One HTML file, with nothing to fetch when it is looked at: mail it, print it, keep it. Of one run
it shows the likelihood with its error bands, what the guards said, tours, pictures and where
everything came from; of several their curves, results (mean ± standard deviation over seeds) and
the settings that differ. What is missing or damaged in a run folder is said.")]
pub(crate) struct ReportArgs {
    /// Run folders
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// The file to write [default: report.html, of one run in its folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Make no tours of the model: quicker
    #[arg(long)]
    pub(crate) no_tours: bool,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv plot likelihood runs/pcd runs/lvs -o curves.svg --title \"MNIST, 25 hidden units\"
  mclv plot likelihood runs/pcd --against time -o curves.png
  mclv plot ccdf runs/pcd runs/lvs -o tails.svg
  mclv plot filters runs/digits-1 -o filters.png
  mclv plot tours runs/digits-1 -o tours.svg

Figures for papers: .svg or .png by the extension, in colours that colour-blind people can tell
apart.")]
pub(crate) struct PlotArgs {
    /// What to draw
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: What,
    /// Run folders; pictures are of one run
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// The file to write: .svg or .png
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Title; empty for none
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Name of the horizontal axis
    #[arg(long, value_name = "TEXT")]
    pub(crate) x_label: Option<String>,
    /// Name of the vertical axis
    #[arg(long, value_name = "TEXT")]
    pub(crate) y_label: Option<String>,
    /// What likelihoods are drawn against
    #[arg(long, value_enum, default_value_t = Axis::Epochs, value_name = "AXIS")]
    pub(crate) against: Axis,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// Log-likelihoods over training, with error bands
    Likelihood,
    /// The tail function of tour lengths, with bands and fitted tails
    Ccdf,
    /// The weights of the hidden units
    Filters,
    /// What persistent chains show; else samples after 1,000 steps
    Samples,
    /// Training rows and their reconstructions
    Reconstructions,
    /// Starts and first steps of the shortest and longest tours
    Tours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Axis {
    Epochs,
    Time,
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
