//! Curves over training, from the metrics of a run.

use super::{Comparison, DataKind};
use crate::figure::{Axis, Figure, Point, Series};
use mclv::statistics::Summary;
use mclv::train::{Metrics, RunRecord};

/// The largest number of points of a curve. More would not be visible.
const MOST: usize = 1000;

/// The horizontal axis of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Epochs finished.
    Epochs,
    /// Seconds of training and evaluation.
    Seconds,
}

impl Against {
    /// The axis with its label.
    pub fn axis(self) -> Axis {
        Axis::linear(match self {
            Self::Epochs => "epoch",
            Self::Seconds => "wall time (s)",
        })
    }

    fn of(self, m: &Metrics) -> f64 {
        match self {
            Self::Epochs => m.epoch as f64,
            Self::Seconds => m.seconds,
        }
    }
}

/// A curve of one value of the metrics.
fn curve(metrics: &[Metrics], x: Against, value: impl Fn(&Metrics) -> Option<Point>) -> Vec<Point> {
    thinned(metrics.iter().filter_map(|m| Some(Point { x: x.of(m), ..value(m)? })))
}

/// At most 1,000 of the finite points, including the last one.
fn thinned(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let all: Vec<Point> = points.filter(|p| p.y.is_finite()).collect();
    let every = all.len().div_ceil(MOST).max(1);
    let last = all.len().saturating_sub(1);
    all.into_iter().enumerate().filter(|(k, _)| k % every == 0 || *k == last).map(|(_, p)| p).collect()
}

/// A likelihood with limits from the error of `log Z`.
fn with_limits(m: &Metrics, value: Option<f64>) -> Option<Point> {
    let y = value?;
    Some(Point { x: 0.0, y, limits: m.log_z.as_ref().and_then(|z| z.limits_of_likelihood(y)) })
}

fn likelihood_figure(title: &str, x: Against) -> Figure {
    Figure::new(title).x(x.axis()).y(Axis::linear("nats per row")).size(960.0, 400.0)
}

fn both(run: &RunRecord, x: Against) -> (Vec<Point>, Vec<Point>) {
    let train = curve(&run.metrics, x, |m| with_limits(m, m.curve_log_likelihood()));
    (train, curve(&run.metrics, x, |m| with_limits(m, m.validation_log_likelihood)))
}

/// The one curve of a run beside others: of validation rows if there are some, else of training rows.
fn judged(run: &RunRecord, x: Against) -> (&'static str, Vec<Point>) {
    match both(run, x) {
        (train, validation) if validation.is_empty() => ("train", train),
        (_, validation) => ("validation", validation),
    }
}

/// Log-likelihoods of training and validation rows of one run.
pub fn likelihood(run: &RunRecord, x: Against) -> Figure {
    let (train, validation) = both(run, x);
    let figure = likelihood_figure("Log-likelihood", x).with(Series::line("train", train));
    if validation.is_empty() { figure } else { figure.with(Series::line("validation", validation)) }
}

/// Log-likelihoods of several runs. There is one figure for each kind of data, because likelihoods
/// of different data must not be compared. Runs that differ only in the seed have the same colour.
pub fn likelihoods(comparison: &Comparison, x: Against) -> Vec<Figure> {
    let Comparison { runs, groups, kinds, .. } = comparison;
    let figure = |kind: &DataKind| {
        let mut figure = likelihood_figure(&title("Log-likelihood", comparison, kind), x);
        for &k in &kind.runs {
            let (part, points) = judged(&runs[k], x);
            let colour = groups.iter().position(|group| group.contains(&k)).unwrap_or(0);
            let series = Series::line(format!("{} {part}", runs[k].name), points);
            figure = figure.with(series.colour(colour).of_run(&runs[k].name));
        }
        figure
    };
    kinds.iter().map(figure).collect()
}

/// The title of a figure of one kind of data; it names the data if there are several kinds.
fn title(what: &str, comparison: &Comparison, kind: &DataKind) -> String {
    if comparison.kinds.len() > 1 { format!("{what}: {}", kind.name) } else { what.into() }
}

/// Log-likelihoods by epoch with one curve for each group of runs that differ only in the seed: the
/// mean of the group, with a band of one standard deviation. Empty if no run of this kind is repeated.
pub fn mean_likelihood(comparison: &Comparison, kind: &DataKind) -> Figure {
    let Comparison { runs, groups, curves, .. } = comparison;
    let mut figure =
        likelihood_figure(&title("Log-likelihood, mean over seeds", comparison, kind), Against::Epochs);
    let mut means = curves.iter();
    let mut is_repeated = false;
    for (k, group) in groups.iter().enumerate() {
        let curve = if group.len() > 1 { means.next() } else { None };
        if !kind.runs.contains(&group[0]) {
            continue;
        }
        let points = match curve {
            Some(means) => {
                is_repeated = true;
                let point = |&(epoch, Summary { mean, sd, .. }): &(usize, Summary)| {
                    Point::with_error(epoch as f64, mean, sd.unwrap_or(0.0))
                };
                thinned(means.iter().map(point))
            }
            None => judged(&runs[group[0]], Against::Epochs).1,
        };
        let series = Series::line(comparison.name_of_group(k), points).colour(k);
        figure = figure.with(group.iter().fold(series, |series, &run| series.of_run(&runs[run].name)));
    }
    if is_repeated { figure } else { Figure::new("") }
}

type Value = fn(&Metrics) -> Option<f64>;

/// Charts of the other values recorded in training, each with a note. The page leaves out empty
/// ones.
pub fn watched(run: &RunRecord) -> Vec<(Figure, &'static str)> {
    let chart = |title: &str, label: &str, curves: Vec<(&str, Value)>| {
        let mut figure = small(title, Axis::linear(label));
        for (name, value) in curves {
            let points = curve(&run.metrics, Against::Epochs, |m| Some(Point::new(0.0, value(m)?)));
            // A curve that is always zero is left out.
            if points.iter().any(|p| p.y != 0.0) {
                figure = figure.with(Series::line(name, points));
            }
        }
        figure
    };
    vec![
        (chart("Learning rate", "", vec![("", |m| Some(m.learning_rate))]), ""),
        (
            chart("Reconstruction error", "mean square", vec![("", |m| m.reconstruction_error)]),
            "The reconstruction error can improve while the likelihood gets worse. It is no measure of the model.",
        ),
        (chart("Pseudo-log-likelihood", "nats per row", vec![("", |m| m.pseudo_log_likelihood)]), ""),
        (chart("Weights, root mean square", "", vec![("", |m| Some(m.weight_rms))]), ""),
        (
            chart("Norm of the gradient", "", vec![("", |m| (m.epoch > 0).then_some(m.gradient_norm))]),
            "For the last update of each epoch.",
        ),
        (chart("log Z", "nats", vec![("", |m| m.log_z.as_ref().map(|z| z.value))]), ""),
        (
            chart("Chains that moved", "share of hidden bits", vec![("", |m| m.chains_moved)]),
            "Share of the hidden bits of persistent chains that changed during an epoch.",
        ),
        (
            chart(
                "Unused hidden units",
                "units",
                vec![
                    ("always on", |m| m.n_saturated.map(|n| n as f64)),
                    ("always off", |m| m.n_dead.map(|n| n as f64)),
                    ("idle (small weights, almost constant)", |m| m.n_idle.map(|n| n as f64)),
                ],
            ),
            "Judged on at most 500 training rows.",
        ),
    ]
}

/// Charts of the tours that the gradient uses.
pub(super) fn tours_in_training(run: &RunRecord) -> Vec<(Figure, &'static str)> {
    let of = |value: fn(&mclv::gradient::TourInfo) -> f64| {
        curve(&run.metrics, Against::Epochs, |m| Some(Point::new(0.0, value(m.tours.as_ref()?))))
    };
    if run.metrics.iter().all(|m| m.tours.is_none()) {
        return Vec::new();
    }
    let mut shares = small("Tours that return", Axis::linear("share").from_to(-0.02, 1.02))
        .with(Series::line("returned", of(|t| t.completion())))
        .with(Series::line("of these, to their own start", of(|t| t.own_start())));
    let accepted = of(|t| t.acceptance());
    if !accepted.is_empty() {
        shares = shares.with(Series::line("restarts accepted", accepted));
    }
    let log_z = curve(&run.metrics, Against::Epochs, |m| {
        let z = m.log_z.as_ref()?;
        m.tours.as_ref().map(|_| Point { x: 0.0, y: z.value, limits: z.limits() })
    });
    let mut sets =
        small("log Z_S and log Z", Axis::linear("nats")).with(Series::line("log Z_S", of(|t| t.log_z_s)));
    if !log_z.is_empty() {
        sets = sets.with(Series::line("log Z", log_z));
    }
    vec![
        (
            shares,
            "A tour can return to its own start because the state rarely changes, not only because the model \
             memorised a row.",
        ),
        (
            small("Mean length of tours that returned", Axis::log("steps"))
                .with(Series::line("mean", of(|t| t.mean_length()))),
            "Tours that were cut are left out, so this is shorter than the mean of all tours.",
        ),
        (sets, ""),
        (small("States in S", Axis::linear("states")).with(Series::line("", of(|t| t.set_size as f64))), ""),
    ]
}

/// Charts of the ladders that the gradient uses.
pub(super) fn ladders_in_training(run: &RunRecord) -> Vec<(Figure, &'static str)> {
    let of = |value: fn(&mclv::gradient::TemperingInfo) -> Option<f64>| {
        curve(&run.metrics, Against::Epochs, |m| Some(Point::new(0.0, value(m.tempering.as_ref()?)?)))
    };
    if run.metrics.iter().all(|m| m.tempering.is_none()) {
        return Vec::new();
    }
    let share = |title: &str| small(title, Axis::linear("share").from_to(-0.02, 1.02));
    vec![
        (
            share("Exchanges between neighbours")
                .with(Series::line("mean of all pairs", of(|t| Some(t.swap_rate_mean))))
                .with(Series::line("smallest of any pair", of(|t| Some(t.swap_rate_min)))),
            "Share of the exchanges that were accepted. Below 0.1, states hardly pass.",
        ),
        (
            small("Round trips", Axis::linear("per ladder and epoch"))
                .with(Series::line("", of(|t| Some(t.round_trips)))),
            "States that were drawn on the lowest rung, reached the model, and came back.",
        ),
        (
            small("Age of the model's states", Axis::linear("updates"))
                .with(Series::line("mean", of(|t| t.mean_age))),
            "Updates since a state at the model was drawn on the lowest rung. States that never were do not count.",
        ),
        (
            share("Renewed states").with(Series::line("", of(|t| Some(t.renewed)))),
            "Share of the model's states that were drawn on the lowest rung since training began.",
        ),
    ]
}

/// The singular values of the weights of a model.
pub struct Spectrum {
    /// The number of epochs that the model was trained for.
    pub epoch: usize,
    /// The values, the largest first.
    pub values: Vec<f64>,
    /// The largest value that independent weights of the same size would have.
    pub by_chance: f64,
}

/// The singular values of the weights, one curve for each model, and for the last model what
/// independent weights would have.
pub fn spectra(spectra: &[Spectrum]) -> Figure {
    let mut figure = Figure::new("Singular values of the weights")
        .x(Axis::linear("number of the value"))
        .y(Axis::linear("singular value"))
        .size(540.0, 300.0);
    for Spectrum { epoch, values, .. } in spectra {
        let points = values.iter().enumerate().map(|(k, &y)| Point::new((k + 1) as f64, y));
        figure = figure.with(Series::line(format!("epoch {epoch}"), points));
    }
    match spectra.last() {
        Some(Spectrum { epoch, values, by_chance }) => {
            let points = [1, values.len().max(2)].map(|k| Point::new(k as f64, *by_chance));
            let name = format!("independent weights (epoch {epoch})");
            figure.with(Series::line(name, points).dashed().colour(spectra.len() - 1))
        }
        None => figure,
    }
}

/// How to read [`spectra`].
pub(super) const NOTE_ON_SPECTRA: &str = "Each value is the strength of one direction of the visible layer. Values above \
     the dashed line are larger than independent weights of the same size would give, so the model has learnt these \
     directions. A curve that hardly moves between epochs means that the weights have settled.";

fn small(title: &str, y: Axis) -> Figure {
    Figure::new(title).x(Against::Epochs.axis()).y(y).size(540.0, 300.0)
}
