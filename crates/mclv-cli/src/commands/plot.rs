//! `mclv plot`: draws one figure of one or more runs.

use super::check_output;
use crate::output::{Output, facts, tell};
use crate::watch::Watch;
use clap::{Args, ValueHint};
use mclv::train::RunFolder;
use mclv_report::figure::save;
use mclv_view::{PlotSettings, What};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv plot likelihood runs/pcd runs/lvs -o curves.svg --title \"MNIST, 25 hidden units\"
  mclv plot likelihood runs/pcd --against time -o curves.png
  mclv plot likelihood runs/pcd-* runs/lvs-* --mean -o means.pdf    a mean and a band over seeds
  mclv plot ccdf runs/pcd runs/lvs -o tails.svg
  mclv plot filters runs/digits-1 -o filters.png --scale 10         10 pixels for each weight
  mclv plot samples runs/digits-1 -o samples.png
  mclv plot correlations runs/digits-1 -o correlations.pdf

The extension of the file (.svg, .png or .pdf) decides the format. The colours are safe for
colour-blind readers.")]
pub(crate) struct PlotArgs {
    /// What to draw
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: What,
    /// Run folders, files in them, or sweep folders (the chosen run); only likelihood and ccdf accept
    /// more than one
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// File to write: .svg, .png or .pdf
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Title of the figure; an empty text removes it
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Name of the horizontal axis
    #[arg(long, value_name = "TEXT")]
    pub(crate) x_label: Option<String>,
    /// Name of the vertical axis
    #[arg(long, value_name = "TEXT")]
    pub(crate) y_label: Option<String>,
    /// Horizontal axis of likelihoods
    #[arg(long, value_enum, default_value_t = Axis::Epochs, value_name = "AXIS")]
    pub(crate) against: Axis,
    /// Draw runs that differ only in the seed as one curve: their mean, with a band of one standard
    /// deviation (likelihood by epochs only)
    #[arg(long)]
    pub(crate) mean: bool,
    /// Pixels for each unit of a picture, for filters, samples, chains, reconstructions and tours
    /// [default: the longer side gets about 56]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) scale: Option<u8>,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Axis {
    Epochs,
    Time,
}

pub(crate) fn run(args: &PlotArgs, out: &Output) -> anyhow::Result<()> {
    check_output(&args.output, args.force, &["svg", "png", "pdf"], ".svg, .png and .pdf")?;
    let runs = args.runs.iter().map(|run| RunFolder::of(run)?.read()).collect::<Result<Vec<_>, _>>()?;
    let settings = PlotSettings {
        title: args.title.clone(),
        x_label: args.x_label.clone(),
        y_label: args.y_label.clone(),
        is_against_time: args.against == Axis::Time,
        mean: args.mean,
        scale: args.scale,
    };
    let plotted = mclv_view::plot(args.what, &runs, None, &settings, &Watch::new("tours", "tours"))?;
    save(plotted.drawing.as_ref(), &args.output)?;
    if let Some(warning) = &plotted.warning {
        tell(&format!("warning: {warning}"));
    }
    let json = json!({ "figure": args.output.to_string_lossy(), "note": plotted.note });
    out.print(&json, || {
        let mut lines = vec![("wrote", args.output.display().to_string())];
        lines.extend(plotted.note.clone().map(|note| ("note", note)));
        facts(&lines)
    })
}
