//! `mclv plot`: draws one figure of one or more runs.

use super::check_output;
use crate::output::{Output, facts};
use crate::view::{self, Model};
use crate::watch::Watch;
use anyhow::ensure;
use clap::{Args, ValueHint};
use mclv::train::RunFolder;
use mclv_report::figure::{Drawing, Figure, Stack, save};
use mclv_report::run::{Against, Comparison, likelihood, likelihoods};
use mclv_report::{pictures, tours};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv plot likelihood runs/pcd runs/lvs -o curves.svg --title \"MNIST, 25 hidden units\"
  mclv plot likelihood runs/pcd --against time -o curves.png
  mclv plot ccdf runs/pcd runs/lvs -o tails.svg
  mclv plot filters runs/digits-1 -o filters.png
  mclv plot tours runs/digits-1 -o tours.svg

The extension of the file (.svg or .png) decides the format. The colours are safe for colour-blind
readers.")]
pub(crate) struct PlotArgs {
    /// What to draw
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: What,
    /// Run folders, or files in them; only likelihood and ccdf accept more than one
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// File to write: .svg or .png
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
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// Log-likelihoods over training, with error bands
    Likelihood,
    /// Tail function of tour lengths, with confidence bands and fitted tails
    Ccdf,
    /// Weights of the hidden units
    Filters,
    /// States of the persistent chains, or samples after 1,000 steps if there are none
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

/// Chains, rows and tours of each kind in a figure.
const N_CHAINS: usize = 64;
const N_ROWS: usize = 10;
const N_TOURS: usize = 10;

pub(crate) fn run(args: &PlotArgs, out: &Output) -> anyhow::Result<()> {
    check_output(&args.output, args.force, &["svg", "png"], ".svg and .png")?;
    let runs = args.runs.iter().map(|run| RunFolder::of(run).read()).collect::<Result<Vec<_>, _>>()?;
    let watch = Watch::new("tours", "tours");
    let labelled = |figure: Figure| {
        ensure!(
            !figure.is_empty(),
            "there is nothing to draw: no epoch was evaluated, or no tour has more than one step"
        );
        Ok(figure.renamed(args.title.as_deref(), args.x_label.as_deref(), args.y_label.as_deref()))
    };
    let mut note = None;
    let drawing: Box<dyn Drawing> = match args.what {
        What::Likelihood => {
            let against = if args.against == Axis::Time { Against::Seconds } else { Against::Epochs };
            match runs.as_slice() {
                [run] => Box::new(labelled(likelihood(run, against).size(640.0, 400.0))?),
                _ => {
                    let comparison = view::compare(runs.clone());
                    note = (comparison.kinds.len() > 1).then(|| unlike(&comparison));
                    let figures = likelihoods(&comparison, against).into_iter();
                    let figures: Vec<Figure> = figures.filter(|figure| !figure.is_empty()).collect();
                    match figures.as_slice() {
                        [] => labelled(Figure::new("")).map(Box::new)?,
                        [figure] => Box::new(labelled(figure.clone().size(640.0, 400.0))?),
                        _ => {
                            // Each figure keeps its own title, which names its data.
                            let axes = (args.x_label.as_deref(), args.y_label.as_deref());
                            let of = |figure: Figure| figure.size(640.0, 400.0).renamed(None, axes.0, axes.1);
                            Box::new(Stack::new(figures.into_iter().map(of)))
                        }
                    }
                }
            }
        }
        What::Ccdf => {
            let tails = runs.iter().map(|run| Model::new(run, &watch)?.tail(&watch));
            Box::new(labelled(tours::tail_figure(&tails.collect::<Result<Vec<_>, _>>()?))?)
        }
        What::Filters | What::Samples | What::Reconstructions | What::Tours => {
            ensure!(runs.len() == 1, "this figure shows one run; give one folder");
            let model = Model::new(&runs[0], &watch)?;
            let shape = model.shape()?;
            let grid = match args.what {
                What::Filters => pictures::filters(&model.filters(), model.n_hidden(), shape),
                What::Reconstructions => pictures::reconstructions(&model.reconstructions(N_ROWS)?, shape),
                What::Tours => tours::picture_grid(&model.extreme_tours(N_TOURS, &watch)?, shape),
                _ => match model.chains(N_CHAINS)? {
                    Some((_, means)) => pictures::chains(&means, shape),
                    None => pictures::samples(&model.samples(&watch)?, shape),
                },
            };
            Box::new(grid.renamed(args.title.as_deref()))
        }
    };
    save(drawing.as_ref(), &args.output)?;
    drop(watch);
    let json = json!({ "figure": args.output.to_string_lossy(), "note": note });
    let note = note.map(|note| ("note", note));
    out.print(&json, || {
        facts(
            &[Some(("wrote", args.output.display().to_string())), note]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
        )
    })
}

/// A note on why the figure has several parts.
fn unlike(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.kinds.iter().map(|kind| kind.name.as_str()).collect();
    format!(
        "likelihoods of different data, splits or binarisations cannot be compared, so each has its own axes: {}",
        names.join("; ")
    )
}
