//! Draws one figure of one or more runs.

use crate::compare;
use crate::model::Model;
use mclv::data::Dataset;
use mclv::progress::Progress;
use mclv::train::RunRecord;
use mclv::{Error, Result};
use mclv_report::figure::{Drawing, Figure, PictureGrid, Stack};
use mclv_report::run::{Against, Comparison, likelihood, likelihoods, mean_likelihood, spectra};
use mclv_report::{generated, pictures, tours};

/// Figures of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum What {
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
    /// All figures, with their names.
    pub const NAMED: [(&'static str, Self); 12] = [
        ("likelihood", Self::Likelihood),
        ("ccdf", Self::Ccdf),
        ("filters", Self::Filters),
        ("samples", Self::Samples),
        ("chains", Self::Chains),
        ("reconstructions", Self::Reconstructions),
        ("tours", Self::Tours),
        ("spectrum", Self::Spectrum),
        ("means", Self::Means),
        ("correlations", Self::Correlations),
        ("projections", Self::Projections),
        ("neighbours", Self::Neighbours),
    ];

    /// Returns the figure of this name.
    ///
    /// # Errors
    /// If no figure has this name.
    pub fn named(name: &str) -> Result<Self> {
        match Self::NAMED.iter().find(|(known, _)| *known == name) {
            Some((_, what)) => Ok(*what),
            None => Err(Error::InvalidChoice {
                name: "figure",
                value: name.into(),
                cure: format!("known figures are {}", Self::NAMED.map(|(known, _)| known).join(", ")),
            }),
        }
    }

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

/// Settings of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSettings {
    /// Its title; an empty text removes it. `None`: a title of its own.
    pub title: Option<String>,
    /// The name of the horizontal axis.
    pub x_label: Option<String>,
    /// The name of the vertical axis.
    pub y_label: Option<String>,
    /// Draw likelihoods against time instead of epochs.
    pub is_against_time: bool,
    /// Draw runs that differ only in the seed as one curve.
    pub mean: bool,
    /// Pixels for each unit of a picture.
    pub scale: Option<u8>,
}

/// A figure, and what a reader of it should know.
pub struct Plotted {
    /// The figure.
    pub drawing: Box<dyn Drawing>,
    /// Why it has several parts.
    pub note: Option<String>,
    /// Why it may mislead.
    pub warning: Option<String>,
}

/// Chains or samples, rows, and tours of each kind in a figure.
const N_PICTURES: usize = 64;
const N_ROWS: usize = 10;
const N_TOURS: usize = 10;

/// Draws a figure of these runs. The training rows of one run may be `given`.
///
/// # Errors
/// If settings or runs do not suit the figure, if there is nothing to draw, or if the listener asks
/// to stop.
pub fn plot(
    what: What,
    runs: &[RunRecord],
    given: Option<&Dataset>,
    settings: &PlotSettings,
    progress: &dyn Progress,
) -> Result<Plotted> {
    check(what, settings)?;
    let [first, others @ ..] = runs else {
        let cure = "give at least one run";
        return Err(Error::Empty { what: "the list of runs".into(), cure });
    };
    let path = first.folder.path();
    let labelled = |figure: Figure| match figure.is_empty() {
        true => Err(Error::malformed(path, format!("there is nothing to draw: {}", what.why_nothing()))),
        false => Ok(figure.renamed(
            settings.title.as_deref(),
            settings.x_label.as_deref(),
            settings.y_label.as_deref(),
        )),
    };
    let (mut note, mut warning) = (None, None);
    let drawing: Box<dyn Drawing> = match what {
        What::Likelihood => {
            let (figures, why) = curves(runs, settings)?;
            note = why;
            match figures.as_slice() {
                [] => Box::new(labelled(Figure::new(""))?),
                [figure] => Box::new(labelled(figure.clone().size(640.0, 400.0))?),
                _ => {
                    // Each figure keeps its own title, which names its data.
                    let axes = (settings.x_label.as_deref(), settings.y_label.as_deref());
                    let of = |figure: Figure| figure.size(640.0, 400.0).renamed(None, axes.0, axes.1);
                    Box::new(Stack::new(figures.into_iter().map(of)))
                }
            }
        }
        What::Ccdf => {
            let tails = runs.iter().map(|run| Model::new(run, given, progress)?.tail(progress));
            Box::new(labelled(tours::tail_figure(&tails.collect::<Result<Vec<_>>>()?))?)
        }
        _ => {
            if let Some(other) = others.first() {
                let problem = "this figure shows one run; leave this one out";
                return Err(Error::malformed(other.folder.path(), problem));
            }
            let model = Model::new(first, given, progress)?;
            if what.is_pictures() {
                let grid = pictures_of(what, first, &model, progress)?;
                let grid = grid.pixels_per_unit(settings.scale.map(usize::from));
                Box::new(grid.renamed(settings.title.as_deref()))
            } else {
                let (figure, doubt) = figure_of(what, &model, progress)?;
                warning = doubt;
                Box::new(labelled(figure)?)
            }
        }
    };
    Ok(Plotted { drawing, note, warning })
}

/// Rejects settings that the figure has no use for.
fn check(what: What, settings: &PlotSettings) -> Result<()> {
    let not = |name, value: String, cure: &str| Error::InvalidChoice { name, value, cure: cure.into() };
    if let Some(scale) = settings.scale.filter(|_| !what.is_pictures()) {
        let cure = "it is for pictures: filters, samples, chains, reconstructions and tours";
        return Err(not("scale", scale.to_string(), cure));
    }
    if settings.mean && settings.is_against_time {
        return Err(Error::Incompatible { name: "mean", with: "against = time".into() });
    }
    if settings.mean && what != What::Likelihood {
        return Err(not("mean", "true".into(), "it is for the likelihood: leave it out"));
    }
    Ok(())
}

/// The figures of likelihoods, and why there are several.
fn curves(runs: &[RunRecord], settings: &PlotSettings) -> Result<(Vec<Figure>, Option<String>)> {
    let against = if settings.is_against_time { Against::Seconds } else { Against::Epochs };
    if let ([run], false) = (runs, settings.mean) {
        return Ok((vec![likelihood(run, against)], None));
    }
    let comparison = compare(runs.to_vec());
    let note = (comparison.kinds.len() > 1).then(|| unlike(&comparison));
    let mut figures: Vec<Figure> = if settings.mean {
        comparison.kinds.iter().map(|kind| mean_likelihood(&comparison, kind)).collect()
    } else {
        likelihoods(&comparison, against)
    };
    figures.retain(|figure| !figure.is_empty());
    if settings.mean && figures.is_empty() {
        return Err(Error::InvalidSetting {
            name: "mean",
            value: "true".into(),
            cure: "there is nothing to average: no two of these runs differ only in the seed, or they were not \
                   evaluated at the same epochs",
        });
    }
    Ok((figures, note))
}

fn pictures_of(
    what: What,
    run: &RunRecord,
    model: &Model<'_>,
    progress: &dyn Progress,
) -> Result<PictureGrid> {
    let shape = model.shape()?;
    Ok(match what {
        What::Filters => pictures::filters(&model.filters(), model.n_hidden(), shape),
        What::Reconstructions => pictures::reconstructions(&model.reconstructions(N_ROWS)?, shape),
        What::Tours => tours::picture_grid(&model.extreme_tours(N_TOURS, progress)?, shape),
        What::Chains => match model.chains(N_PICTURES)? {
            Some((_, means)) => pictures::chains(&means, shape),
            None => {
                let problem = "this run keeps no chains: its gradient has none, or its checkpoint is missing; draw \
                               `samples` instead";
                return Err(Error::malformed(run.folder.path(), problem));
            }
        },
        _ => pictures::samples(&model.samples(N_PICTURES, progress)?, shape),
    })
}

/// A figure of a model, and why it may mislead.
fn figure_of(what: What, model: &Model<'_>, progress: &dyn Progress) -> Result<(Figure, Option<String>)> {
    if what == What::Spectrum {
        return Ok((spectra(&model.spectra()?).size(640.0, 400.0), None));
    }
    let beside = model.beside_data(progress)?;
    let warning = beside
        .samples
        .doubt()
        .map(|doubt| format!("{doubt}; differences between samples and data may come from the sampler"));
    let figure = match what {
        What::Means => generated::means(&beside.generated),
        What::Correlations => generated::correlations(&beside.generated),
        What::Projections => generated::projections(&beside.generated),
        _ => generated::neighbours(&beside),
    };
    Ok((figure, warning))
}

/// Why the figure has several parts.
fn unlike(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.kinds.iter().map(|kind| kind.name.as_str()).collect();
    format!(
        "likelihoods of different data, splits or binarisations cannot be compared, so each has its own axes: {}",
        names.join("; ")
    )
}
