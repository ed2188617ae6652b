//! Tours: the tail of their lengths, how they end, pictures of the shortest and the longest.

use crate::figure::{Axis, Figure, PictureGrid, Point, Series};
use crate::page::{Block, Cell, Column, Table};
use crate::pictures::values;
use mclv::data::Rows;
use mclv::tour::{Ccdf, End, TailFit, Tour, TourEngine, TourSettings, Tours};
use mclv::{Rbm, Result, StoppingSet, human_seconds};

/// Neighbouring lengths of a drawn tail differ by this factor at least.
const THINNING: f64 = 1.03;

/// What tours of one stopping set came to.
pub struct Toured<'a> {
    /// What to call them: `m = 1`.
    pub name: String,
    /// States in the stopping set.
    pub n_states: usize,
    /// The tours.
    pub tours: &'a Tours,
}

/// A tail function with its name, and the geometric tail fitted to it, if there is one.
pub struct Tail {
    /// Its name.
    pub name: String,
    /// `p(ξ > k)`.
    pub ccdf: Ccdf,
    /// The fit.
    pub fit: Option<TailFit>,
}

/// `p(ξ > k)` on logarithmic axes, with limits, and fitted tails dashed.
pub fn tail_figure(tails: &[Tail]) -> Figure {
    let mut figure = Figure::new("Lengths of tours").x(Axis::log("k")).y(Axis::log("p(ξ > k)"));
    for (k, Tail { name, ccdf, fit }) in tails.iter().enumerate() {
        let thin = ccdf.thinned(THINNING);
        let mut points: Vec<Point> = thin
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
        if let Some(fit) = fit.filter(|fit| fit.rate > 0.0) {
            figure =
                figure.with(Series::line(format!("{name}, fitted"), fitted(ccdf, &fit)).dashed().colour(k));
        }
    }
    figure
}

/// The fitted tail where it was fitted.
fn fitted(ccdf: &Ccdf, fit: &TailFit) -> Vec<Point> {
    let Some(start) = ccdf.at(fit.threshold.max(1)) else { return Vec::new() };
    let last = ccdf.known_up_to.or(ccdf.points.last().map(|p| p.k)).unwrap_or(fit.threshold);
    let from = f64::from(fit.threshold.max(1));
    let ratio = (f64::from(last.max(fit.threshold + 1)) / from).powf(1.0 / 24.0);
    let at = |k: i32| from * ratio.powi(k);
    (0..=24).map(|k| Point::new(at(k), start.p * fit.rate.powf(at(k) - from))).collect()
}

/// A table of what tours came to, and the figure of their tails.
pub fn blocks(toured: &[Toured<'_>]) -> Vec<Block> {
    if toured.is_empty() {
        return Vec::new();
    }
    let mut header = vec![Column::text("")];
    header.extend(toured.iter().map(|t| Column::number(&t.name)));
    let columns: Vec<Vec<(&str, String)>> = toured.iter().map(lines).collect();
    let rows = (0..columns[0].len()).map(|k| {
        let name = Cell::text(columns[0][k].0);
        std::iter::once(name).chain(columns.iter().map(|c| Cell::number(0.0, &c[k].1))).collect()
    });
    let tails: Vec<Tail> = toured
        .iter()
        .map(|t| Tail { name: t.name.clone(), ccdf: t.tours.ccdf(), fit: t.tours.tail_fit() })
        .collect();
    let note = "Bands: 95 % limits, each length by itself. Dashed: a geometric tail fitted to the longest tours; nothing is guaranteed beyond the longest tour seen.";
    let table = Table { rows: rows.collect(), header, sortable: false, runs: Vec::new() };
    vec![Block::chart(tail_figure(&tails), note), Block::Table(table)]
}

fn lines(toured: &Toured<'_>) -> Vec<(&'static str, String)> {
    let tours = toured.tours;
    let all = tours.as_slice();
    let share = |n: usize| format!("{:.2} %", 100.0 * n as f64 / all.len() as f64);
    let one_step = all.iter().filter(|t| t.is_complete() && t.length == 1).count();
    let cut = !tours.all_complete();
    let mean = tours.mean_length();
    let fit = tours.tail_fit();
    vec![
        ("states in S", toured.n_states.to_string()),
        ("log Z_S", format!("{:.4}", tours.log_z_s())),
        ("tours", tours.n_tours().to_string()),
        ("complete", share(tours.n_complete())),
        ("back in own start", share(tours.n_own_start())),
        ("back in another state", share(all.iter().filter(|t| matches!(t.end, End::Elsewhere(_))).count())),
        ("one step only", share(one_step)),
        ("mean length", format!("{}{:.4} ± {:.4}", if cut { "≥ " } else { "" }, mean.value, mean.std_err)),
        (
            "longest",
            format!("{}{}", if cut { "> " } else { "" }, all.iter().map(|t| t.length).max().unwrap_or(0)),
        ),
        ("tail rate (empirical)", fit.map_or("–".into(), |f| format!("{:.5} ± {:.5}", f.rate, f.std_err))),
        ("steps", tours.n_steps().to_string()),
        ("time", human_seconds(tours.seconds())),
    ]
}

/// The numbers of the `n` shortest tours that returned, and of the `n` longest, at most one from each start.
pub fn extremes(tours: &[Tour], n: usize) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..tours.len()).collect();
    // Stable: of tours of one length the first ones.
    order.sort_by_key(|&t| tours[t].length);
    let take = |numbers: &mut dyn Iterator<Item = usize>| {
        let mut seen = std::collections::HashSet::new();
        numbers.filter(|&t| seen.insert(tours[t].start)).take(n).collect()
    };
    let shortest = take(&mut order.iter().copied().filter(|&t| tours[t].is_complete()));
    order.sort_by_key(|&t| std::cmp::Reverse(tours[t].length));
    (shortest, take(&mut order.iter().copied()))
}

/// What tours began at, and where their first step led.
pub struct FirstSteps {
    /// The rows that tours began at, or `E[v|h]` of their first hidden states.
    pub starts: Vec<Vec<f32>>,
    /// The visible layer after the first step.
    pub next: Vec<Vec<f32>>,
}

/// The first steps of tours given by their numbers.
///
/// # Errors
/// If the parts do not go together.
pub fn first_steps(
    (rbm, set): (&Rbm, &StoppingSet),
    engine: &TourEngine<'_>,
    (tours, settings): (&Tours, &TourSettings),
    rows: Option<&Rows>,
    numbers: &[usize],
) -> Result<FirstSteps> {
    let begun: Vec<usize> = numbers.iter().map(|&t| tours.as_slice()[t].start as usize).collect();
    let starts = match rows {
        Some(rows) => values(&rows.select(&begun)),
        None => {
            let means = rbm.mean_v_from_h(&Rows::Bits(set.states().select(&begun)))?;
            (0..begun.len()).map(|r| means.row(r).to_vec()).collect()
        }
    };
    let mut next = Vec::new();
    for &number in numbers {
        next.extend(values(&engine.replay(tours, settings, rows, number, 1)?.0));
    }
    Ok(FirstSteps { starts, next })
}

/// The shortest and the longest tours, a grid each: where they began, and the visible layer after the first step.
///
/// # Errors
/// If the parts do not go together.
pub fn picture_grids(
    model: (&Rbm, &StoppingSet),
    engine: &TourEngine<'_>,
    run: (&Tours, &TourSettings),
    rows: Option<&Rows>,
    shape: (usize, usize),
    n: usize,
) -> Result<Vec<PictureGrid>> {
    let (shortest, longest) = extremes(run.0.as_slice(), n);
    let mut grids = Vec::new();
    for (title, numbers) in [("The shortest tours", shortest), ("The longest tours", longest)] {
        let FirstSteps { starts, next } = first_steps(model, engine, run, rows, &numbers)?;
        let captions = vec![String::new(); numbers.len()].into_iter().chain(lengths(run.0, &numbers));
        let pictures = starts.into_iter().chain(next).collect();
        let grid = PictureGrid::new(title, pictures, shape, numbers.len()).captions(captions);
        grids.push(grid.row_names(["start", "next"]));
    }
    Ok(grids)
}

/// The same in one grid of four lines.
///
/// # Errors
/// If the parts do not go together.
pub fn picture_grid(
    model: (&Rbm, &StoppingSet),
    engine: &TourEngine<'_>,
    run: (&Tours, &TourSettings),
    rows: Option<&Rows>,
    shape: (usize, usize),
    n: usize,
) -> Result<PictureGrid> {
    let (mut shortest, mut longest) = extremes(run.0.as_slice(), n);
    // Lines of one length.
    let n = shortest.len().min(longest.len());
    shortest.truncate(n);
    longest.truncate(n);
    let (mut pictures, mut captions) = (Vec::new(), Vec::new());
    for numbers in [&shortest, &longest] {
        let FirstSteps { starts, next } = first_steps(model, engine, run, rows, numbers)?;
        pictures.extend(starts.into_iter().chain(next));
        captions.extend(vec![String::new(); n].into_iter().chain(lengths(run.0, numbers)));
    }
    let grid = PictureGrid::new("The shortest and the longest tours", pictures, shape, n).captions(captions);
    Ok(grid.row_names(["shortest: start", "next", "longest: start", "next"]))
}

fn lengths(tours: &Tours, numbers: &[usize]) -> Vec<String> {
    // Five digits leave no room for more.
    let caption = |tour: Tour| match (tour.is_complete(), tour.length) {
        (true, length) if length < 10_000 => format!("ξ = {length}"),
        (true, length) => length.to_string(),
        (false, length) => format!("> {length}"),
    };
    numbers.iter().map(|&t| caption(tours.as_slice()[t])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_of_different_starts() {
        let tour = |(start, length, end)| Tour { start, length, end };
        let tours =
            [(0, 1, End::OwnStart), (0, 1, End::OwnStart), (1, 9, End::Cut), (2, 3, End::Elsewhere(0))];
        let tours: Vec<Tour> = tours.into_iter().map(tour).collect();
        assert_eq!(extremes(&tours, 5), (vec![0, 3], vec![2, 3, 0]));
        assert_eq!(extremes(&tours, 1), (vec![0], vec![2]));
    }
}
