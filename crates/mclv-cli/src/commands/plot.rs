//! `mclv plot`: draws one figure of one or more runs.

use super::check_output;
use crate::output::{Output, facts, tell};
use crate::view::{self, Model};
use crate::watch::Watch;
use anyhow::{bail, ensure};
use clap::{Args, ValueHint};
use mclv::train::RunFolder;
use mclv_report::figure::{Drawing, Figure, PictureGrid, Stack, save};
use mclv_report::run::{Against, Comparison, likelihood, likelihoods, mean_likelihood, spectra};
use mclv_report::{generated, pictures, tours};
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
    /// Run folders, or files in them; only likelihood and ccdf accept more than one
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
pub(crate) enum What {
    /// Log-likelihoods over training, with error bands
    Likelihood,
    /// Tail function of tour lengths, with confidence bands and fitted tails
    Ccdf,
    /// Weights of the hidden units
    Filters,
    /// Samples, drawn as `mclv sample` does, but within a small time
    Samples,
    /// Means E[v|h] of the states of the persistent chains
    Chains,
    /// Training rows and their reconstructions
    Reconstructions,
    /// Starts and first steps of the shortest and longest tours
    Tours,
    /// Singular values of the weights at some epochs
    Spectrum,
    /// Means of the visible units, in samples against training rows
    Means,
    /// Correlations of pairs of visible units, in samples against training rows
    Correlations,
    /// Training rows and samples along the two principal components of the rows
    Projections,
    /// Distances to the nearest training row, of samples and of test rows
    Neighbours,
}

impl What {
    /// Why a figure can be empty.
    fn why_nothing(self) -> &'static str {
        match self {
            Self::Likelihood => "no epoch was evaluated",
            Self::Ccdf => "no tour has more than one step",
            Self::Spectrum => "the weights are too many for their singular values",
            _ => "the training rows or the samples hardly vary",
        }
    }

    /// True for grids of pictures.
    fn is_pictures(self) -> bool {
        matches!(self, Self::Filters | Self::Samples | Self::Chains | Self::Reconstructions | Self::Tours)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Axis {
    Epochs,
    Time,
}

/// Chains or samples, rows, and tours of each kind in a figure.
const N_PICTURES: usize = 64;
const N_ROWS: usize = 10;
const N_TOURS: usize = 10;

pub(crate) fn run(args: &PlotArgs, out: &Output) -> anyhow::Result<()> {
    check_output(&args.output, args.force, &["svg", "png", "pdf"], ".svg, .png and .pdf")?;
    check_flags(args)?;
    let runs = args.runs.iter().map(|run| RunFolder::of(run).read()).collect::<Result<Vec<_>, _>>()?;
    let watch = Watch::new("tours", "tours");
    let labelled = |figure: Figure| {
        ensure!(!figure.is_empty(), "there is nothing to draw: {}", args.what.why_nothing());
        Ok(figure.renamed(args.title.as_deref(), args.x_label.as_deref(), args.y_label.as_deref()))
    };
    let mut note = None;
    let drawing: Box<dyn Drawing> = match args.what {
        What::Likelihood => {
            let against = if args.against == Axis::Time { Against::Seconds } else { Against::Epochs };
            match runs.as_slice() {
                [run] if !args.mean => Box::new(labelled(likelihood(run, against).size(640.0, 400.0))?),
                _ => {
                    let comparison = view::compare(runs.clone());
                    note = (comparison.kinds.len() > 1).then(|| unlike(&comparison));
                    let figures = if args.mean {
                        comparison.kinds.iter().map(|kind| mean_likelihood(&comparison, kind)).collect()
                    } else {
                        likelihoods(&comparison, against)
                    };
                    let is_shown = |figure: &Figure| !figure.is_empty();
                    let figures: Vec<Figure> = figures.into_iter().filter(is_shown).collect();
                    ensure!(
                        !args.mean || !figures.is_empty(),
                        "--mean: there is nothing to average: no two of these runs differ only in the seed, or they \
                         were not evaluated at the same epochs"
                    );
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
        _ => {
            ensure!(runs.len() == 1, "this figure shows one run; give one folder");
            let model = Model::new(&runs[0], &watch)?;
            if args.what.is_pictures() {
                let grid = pictures_of(args.what, &model, &watch)?;
                let grid = grid.pixels_per_unit(args.scale.map(usize::from));
                Box::new(grid.renamed(args.title.as_deref()))
            } else {
                Box::new(labelled(figure_of(args.what, &model, &watch)?)?)
            }
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

/// Refuses flags that the figure has no use for.
fn check_flags(args: &PlotArgs) -> anyhow::Result<()> {
    ensure!(
        args.scale.is_none() || args.what.is_pictures(),
        "--scale is for pictures: filters, samples, chains, reconstructions and tours"
    );
    ensure!(
        !args.mean || args.what == What::Likelihood && args.against == Axis::Epochs,
        "--mean is for `likelihood` by epochs: leave out --against time, or leave out --mean"
    );
    Ok(())
}

fn pictures_of(what: What, model: &Model<'_>, watch: &Watch) -> anyhow::Result<PictureGrid> {
    let shape = model.shape()?;
    Ok(match what {
        What::Filters => pictures::filters(&model.filters(), model.n_hidden(), shape),
        What::Reconstructions => pictures::reconstructions(&model.reconstructions(N_ROWS)?, shape),
        What::Tours => tours::picture_grid(&model.extreme_tours(N_TOURS, watch)?, shape),
        What::Chains => match model.chains(N_PICTURES)? {
            Some((_, means)) => pictures::chains(&means, shape),
            None => bail!(
                "this run keeps no chains: its gradient has none, or its checkpoint is missing; draw `samples` instead"
            ),
        },
        _ => pictures::samples(&model.samples(N_PICTURES, watch)?, shape),
    })
}

fn figure_of(what: What, model: &Model<'_>, watch: &Watch) -> anyhow::Result<Figure> {
    if what == What::Spectrum {
        return Ok(spectra(&model.spectra()?).size(640.0, 400.0));
    }
    let beside = model.beside_data(watch)?;
    if let Some(doubt) = beside.samples.doubt() {
        tell(&format!("warning: {doubt}; differences between samples and data may come from the sampler"));
    }
    Ok(match what {
        What::Means => generated::means(&beside.generated),
        What::Correlations => generated::correlations(&beside.generated),
        What::Projections => generated::projections(&beside.generated),
        _ => generated::neighbours(&beside),
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
