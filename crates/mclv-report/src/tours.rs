//! Shows tours: the tail of their lengths, where they end, and pictures of the shortest and
//! longest.

use crate::figure::{Axis, Figure, PictureGrid, Point, Series};
use crate::page::{Block, Cell, Column, Level, Table, Verdict};
use crate::pictures::Shape;
use mclv::human_seconds;
use mclv::tour::{Ccdf, Conclusion, Estimate, Extremes, FirstStep, TailFit, Tour, TourVerdict};

/// The results of the tours of one stopping set.
pub struct Toured {
    /// States in the stopping set.
    pub n_states: usize,
    /// `log Z_S`.
    pub log_z_s: f64,
    /// Number of tours.
    pub n_tours: usize,
    /// Tours that returned.
    pub n_complete: usize,
    /// Tours that returned to their own start.
    pub n_own_start: usize,
    /// Tours that returned to another state.
    pub n_elsewhere: usize,
    /// Tours that returned after one step.
    pub n_one_step: usize,
    /// Mean length of all tours, including those that were cut.
    pub mean_length: Estimate,
    /// Steps of the longest tour, including those that were cut.
    pub longest: u32,
    /// The tail function of their lengths. Its name also names the tours, such as `m = 1`.
    pub tail: Tail,
    /// The verdict: concentrated, mixing, stuck or unclear.
    pub conclusion: Conclusion,
    /// Gibbs steps made.
    pub n_steps: u64,
    /// Wall time.
    pub seconds: f64,
}

/// A tail function with its name, and the geometric tail fitted to it.
pub struct Tail {
    /// Its name.
    pub name: String,
    /// `p(ξ > k)` at the lengths that are drawn.
    pub ccdf: Ccdf,
    /// The geometric tail.
    pub fit: Option<TailFit>,
    /// Points `(k, p)` of the geometric tail where it was fitted, if it can be drawn.
    pub fitted: Option<Vec<(f64, f64)>>,
}

/// `p(ξ > k)` on logarithmic axes, with limits, and fitted tails dashed.
pub fn tail_figure<'a>(tails: impl IntoIterator<Item = &'a Tail>) -> Figure {
    let mut figure = Figure::new("Lengths of tours").x(Axis::log("k")).y(Axis::log("p(ξ > k)"));
    for (k, Tail { name, ccdf, fitted, .. }) in tails.into_iter().enumerate() {
        let mut points: Vec<Point> = ccdf
            .points
            .iter()
            .filter(|p| p.k > 0)
            .map(|p| Point::between(f64::from(p.k), p.p, p.low, p.high))
            .collect();
        if let (Some(last), Some(end)) = (points.last().copied(), ccdf.known_up_to)
            && f64::from(end) > last.x
        {
            points.push(Point { x: f64::from(end), ..last });
        }
        figure = figure.with(Series::step(name, points).colour(k));
        if let Some(fitted) = fitted {
            let points = fitted.iter().map(|&(k, p)| Point::new(k, p));
            figure = figure.with(Series::line(format!("{name}, fitted"), points).dashed().colour(k));
        }
    }
    figure
}

/// A smaller share of returned tours gives a warning.
const FEW: f64 = 0.5;

/// The verdicts on tours: whether their chain mixes, how many return to their own start, and how
/// many return at all.
fn verdicts(toured: &Toured) -> Vec<Verdict> {
    let Toured { conclusion, n_complete, n_tours, .. } = toured;
    let name = &toured.tail.name;
    let level = match conclusion.verdict {
        TourVerdict::Mixing => Level::Good,
        TourVerdict::Concentrated => Level::Good,
        TourVerdict::Unclear => Level::Warning,
        TourVerdict::Stuck => Level::Bad,
    };
    let mut verdicts = vec![
        Verdict::new(level, format!("Tours ({name}), {conclusion}")),
        Verdict::new(Level::Note, conclusion.own_starts()),
    ];
    let returned = *n_complete as f64 / *n_tours as f64;
    if returned < 1.0 {
        let level = if returned < FEW { Level::Warning } else { Level::Note };
        let text = format!(
            "{:.2} % of {n_tours} tours ({name}) returned before they were cut, so log Z from them is low on average.",
            100.0 * returned
        );
        verdicts.push(Verdict::new(level, text));
    }
    verdicts
}

/// A table of the results of tours, and a figure of their tails.
pub fn blocks(toured: &[Toured]) -> Vec<Block> {
    if toured.is_empty() {
        return Vec::new();
    }
    let mut header = vec![Column::text("")];
    header.extend(toured.iter().map(|t| Column::number(&t.tail.name)));
    let columns: Vec<Vec<(&str, String)>> = toured.iter().map(lines).collect();
    let rows = (0..columns[0].len()).map(|k| {
        let name = Cell::text(columns[0][k].0);
        std::iter::once(name).chain(columns.iter().map(|c| Cell::number(0.0, &c[k].1))).collect()
    });
    let note = "Bands: 95 % limits for each length. Dashed: a geometric tail fitted to the longest tours. Beyond the \
                longest observed tour, the fit has no guarantee.";
    let table = Table { rows: rows.collect(), header, sortable: false, runs: Vec::new() };
    vec![
        Block::Verdicts(toured.iter().flat_map(verdicts).collect()),
        Block::chart(tail_figure(toured.iter().map(|t| &t.tail)), note),
        Block::Table(table),
    ]
}

fn lines(toured: &Toured) -> Vec<(&'static str, String)> {
    let share = |n: usize| format!("{:.2} %", 100.0 * n as f64 / toured.n_tours as f64);
    let is_cut = toured.n_complete < toured.n_tours;
    let (at_least, more_than) = if is_cut { ("≥ ", "> ") } else { ("", "") };
    let Estimate { value, std_err, .. } = toured.mean_length;
    let rate = toured.tail.fit.map_or("–".into(), |f| format!("{:.5} ± {:.5}", f.rate, f.std_err));
    vec![
        ("states in S", toured.n_states.to_string()),
        ("log Z_S", format!("{:.4}", toured.log_z_s)),
        ("tours", toured.n_tours.to_string()),
        ("complete", share(toured.n_complete)),
        ("back in own start", share(toured.n_own_start)),
        ("back in another state", share(toured.n_elsewhere)),
        ("only one step", share(toured.n_one_step)),
        ("mean length", format!("{at_least}{value:.4} ± {std_err:.4}")),
        ("longest", format!("{more_than}{}", toured.longest)),
        ("tail rate (empirical)", rate),
        ("steps", toured.n_steps.to_string()),
        ("time", human_seconds(toured.seconds)),
    ]
}

/// Two grids, of the shortest and of the longest tours: their starts, and the visible layer after
/// the first step.
pub fn picture_grids(extremes: &Extremes, shape: Shape) -> Vec<PictureGrid> {
    let grid = |title: &str, steps: &[FirstStep]| {
        let (pictures, captions) = lines_of(steps);
        let grid = PictureGrid::new(title, pictures, shape, steps.len()).captions(captions);
        grid.row_names(["start", "next"]).framed()
    };
    vec![grid("The shortest tours", &extremes.shortest), grid("The longest tours", &extremes.longest)]
}

/// The pictures of [`picture_grids`] in one grid of four lines.
pub fn picture_grid(Extremes { shortest, longest }: &Extremes, shape: Shape) -> PictureGrid {
    // All lines have the same length.
    let n = shortest.len().min(longest.len());
    let (mut pictures, mut captions) = lines_of(&shortest[..n]);
    let below = lines_of(&longest[..n]);
    pictures.extend(below.0);
    captions.extend(below.1);
    let grid = PictureGrid::new("The shortest and the longest tours", pictures, shape, n).captions(captions);
    grid.row_names(["shortest: start", "next", "longest: start", "next"]).framed()
}

/// Pictures and captions of two lines: the starts, and below them the next visible layers with the
/// lengths of the tours.
fn lines_of(steps: &[FirstStep]) -> (Vec<Vec<f32>>, Vec<String>) {
    let starts = steps.iter().map(|step| step.start.clone());
    let pictures = starts.chain(steps.iter().map(|step| step.next.clone())).collect();
    let captions = steps.iter().map(|_| String::new()).chain(steps.iter().map(|step| length_of(step.tour)));
    (pictures, captions.collect())
}

fn length_of(tour: Tour) -> String {
    // Numbers of five digits leave no room for "ξ = ".
    match (tour.is_complete(), tour.length) {
        (true, length) if length < 10_000 => format!("ξ = {length}"),
        (true, length) => length.to_string(),
        (false, length) => format!("> {length}"),
    }
}
