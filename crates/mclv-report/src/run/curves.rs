//! Curves over training, from the metrics of a run.

use super::RunFolder;
use crate::figure::{Axis, Figure, Point, Series};
use crate::log_z::limits;
use mclv::train::Metrics;

/// More points than this are not seen.
const MOST: usize = 1000;

/// What a curve is drawn against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Epochs finished.
    Epochs,
    /// Seconds of training and evaluation.
    Seconds,
}

impl Against {
    /// Its axis.
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

/// A curve of what metrics hold, at most 1,000 points of it; the last one stays.
pub(super) fn curve(
    metrics: &[Metrics],
    x: Against,
    value: impl Fn(&Metrics) -> Option<Point>,
) -> Vec<Point> {
    let all: Vec<Point> = metrics
        .iter()
        .filter_map(|m| Some(Point { x: x.of(m), ..value(m)? }))
        .filter(|p| p.y.is_finite())
        .collect();
    let every = all.len().div_ceil(MOST).max(1);
    let last = all.len().saturating_sub(1);
    all.into_iter().enumerate().filter(|(k, _)| k % every == 0 || *k == last).map(|(_, p)| p).collect()
}

/// A likelihood with the limits that those of log Z give it, the other way round.
fn with_limits(m: &Metrics, value: Option<f64>) -> Option<Point> {
    let y = value?;
    let Some(z) = m.log_z.as_ref().filter(|z| z.std_err > 0.0 || z.interval.is_some()) else {
        return Some(Point::new(0.0, y));
    };
    let (low, high) = limits(z);
    Some(Point::between(0.0, y, y + z.value - high, y + z.value - low))
}

/// Log-likelihoods of training and validation rows, of one run or several over each other. Runs that differ in the seed only
/// have one colour.
pub fn likelihood(runs: &[&RunFolder], x: Against) -> Figure {
    let mut figure =
        Figure::new("Log-likelihood").x(x.axis()).y(Axis::linear("nats per row")).size(960.0, 400.0);
    let one = runs.len() == 1;
    let groups = repetitions(runs);
    let colour =
        |run: &RunFolder| groups.iter().position(|g| g.iter().any(|r| std::ptr::eq(*r, run))).unwrap_or(0);
    for run in runs {
        let name = |part: &str| if one { part.to_owned() } else { format!("{} {part}", run.name) };
        let train = curve(&run.metrics, x, |m| with_limits(m, m.train_log_likelihood));
        let validation = curve(&run.metrics, x, |m| with_limits(m, m.validation_log_likelihood));
        let both = !train.is_empty() && !validation.is_empty();
        if one {
            figure = figure.with(Series::line("train", train));
            if both {
                figure = figure.with(Series::line("validation", validation));
            }
        } else {
            // One curve a run is enough to compare them: on rows that were not learnt from, if there are some.
            let (part, points) = if both { ("validation", validation) } else { ("train", train) };
            figure = figure.with(Series::line(name(part), points).colour(colour(run)).of_run(&run.name));
        }
    }
    figure
}

/// Runs by what they repeat: those of a group differ in the seed only.
pub(super) fn repetitions<'a>(runs: &[&'a RunFolder]) -> Vec<Vec<&'a RunFolder>> {
    type Settings = Vec<(String, String)>;
    let mut groups: Vec<(Settings, Vec<&RunFolder>)> = Vec::new();
    for &run in runs {
        let settings: Settings = run
            .settings()
            .into_iter()
            .filter(|(name, _)| !matches!(name.as_str(), "train.seed" | "data.seed"))
            .collect();
        // Of a run without settings nothing is known: it repeats none.
        match groups.iter_mut().find(|(other, _)| !settings.is_empty() && *other == settings) {
            Some((_, members)) => members.push(run),
            None => groups.push((settings, vec![run])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Mean log-likelihood of repeated runs by epoch; bands are one standard deviation over the seeds. Empty if nothing is repeated.
pub(super) fn mean_likelihood(groups: &[Vec<&RunFolder>]) -> Figure {
    let mut figure = Figure::new("Log-likelihood, mean over seeds")
        .x(Against::Epochs.axis())
        .y(Axis::linear("nats per row"));
    for (k, group) in groups.iter().enumerate().filter(|(_, group)| group.len() > 1) {
        let judged = |m: &Metrics| m.validation_log_likelihood.or(m.train_log_likelihood);
        let point = |m: &Metrics| {
            let at = |run: &&RunFolder| judged(run.metrics.iter().find(|other| other.epoch == m.epoch)?);
            let values = group.iter().map(at).collect::<Option<Vec<f64>>>()?;
            let (mean, sd) = mean_and_sd(&values);
            Some(Point::with_error(0.0, mean, sd))
        };
        let name = format!("{} ({} seeds)", group[0].estimator(), group.len());
        figure = figure.with(Series::line(name, curve(&group[0].metrics, Against::Epochs, point)).colour(k));
    }
    figure.size(960.0, 400.0)
}

/// Mean and standard deviation.
pub(super) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

type Value = fn(&Metrics) -> Option<f64>;

/// What else was watched: a chart each, with a note; empty ones are left out by the page.
pub fn watched(run: &RunFolder) -> Vec<(Figure, &'static str)> {
    let chart = |title: &str, label: &str, curves: Vec<(&str, Value)>| {
        let mut figure = small(title, Axis::linear(label));
        for (name, value) in curves {
            let points = curve(&run.metrics, Against::Epochs, |m| Some(Point::new(0.0, value(m)?)));
            // Units that never failed to say something are no news.
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
            "It can fall while the likelihood falls: it guarantees nothing.",
        ),
        (chart("Pseudo-log-likelihood", "nats per row", vec![("", |m| m.pseudo_log_likelihood)]), ""),
        (chart("Weights, root mean square", "", vec![("", |m| Some(m.weight_rms))]), ""),
        (
            chart("Norm of the gradient", "", vec![("", |m| Some(m.gradient_norm))]),
            "Of the last update of each epoch.",
        ),
        (chart("log Z", "nats", vec![("", |m| m.log_z.as_ref().map(|z| z.value))]), ""),
        (
            chart("Chains that moved", "share of hidden bits", vec![("", |m| m.chains_moved)]),
            "Hidden bits of persistent chains that changed over an epoch.",
        ),
        (
            chart(
                "Hidden units that say nothing",
                "units",
                vec![
                    ("always on", |m| m.n_saturated.map(|n| n as f64)),
                    ("always off", |m| m.n_dead.map(|n| n as f64)),
                ],
            ),
            "On 500 training rows.",
        ),
    ]
}

/// What became of the tours of the gradient: a chart each.
pub(super) fn tours_in_training(run: &RunFolder) -> Vec<(Figure, &'static str)> {
    let of = |value: fn(&mclv::gradient::TourInfo) -> f64| {
        curve(&run.metrics, Against::Epochs, |m| Some(Point::new(0.0, value(m.tours.as_ref()?))))
    };
    if run.metrics.iter().all(|m| m.tours.is_none()) {
        return Vec::new();
    }
    let mut shares = small("Tours that return", Axis::linear("share").from_to(-0.02, 1.02))
        .with(Series::line("returned", of(|t| t.completion())))
        .with(Series::line(
            "of these, to their own start",
            of(|t| t.n_completed_at_own_start as f64 / t.n_completed as f64),
        ));
    let accepted = of(|t| t.n_accepted as f64 / t.n_proposed as f64);
    if !accepted.is_empty() {
        shares = shares.with(Series::line("restarts accepted", accepted));
    }
    let log_z = curve(&run.metrics, Against::Epochs, |m| {
        let z = m.log_z.as_ref()?;
        let (low, high) = limits(z);
        m.tours.as_ref().map(|_| Point::between(0.0, z.value, low, high))
    });
    let mut sets =
        small("log Z_S and log Z", Axis::linear("nats")).with(Series::line("log Z_S", of(|t| t.log_z_s)));
    if !log_z.is_empty() {
        sets = sets.with(Series::line("log Z", log_z));
    }
    vec![
        (
            shares,
            "Returns to the own start measure how likely a state is to stay, not only what was memorised.",
        ),
        (
            small("Mean length of tours that returned", Axis::log("steps"))
                .with(Series::line("mean", of(|t| t.mean_length()))),
            "Without those that were cut: shorter than the mean of all.",
        ),
        (sets, ""),
        (small("States in S", Axis::linear("states")).with(Series::line("", of(|t| t.set_size as f64))), ""),
    ]
}

fn small(title: &str, y: Axis) -> Figure {
    Figure::new(title).x(Against::Epochs.axis()).y(y).size(540.0, 300.0)
}
