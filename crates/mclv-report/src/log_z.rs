//! Estimates of `log Z` in a table, with what they are worth.

use crate::figure::{Axis, Figure, Point, Series};
use crate::page::{Block, Cell, Column, Level, Table, Verdict};
use mclv::human_seconds;
use mclv::partition::{Agreement, Guarantee, LogZ};

/// The table, what to know of the estimates, and whether they agree.
pub fn blocks(estimates: &[LogZ]) -> Vec<Block> {
    let header = vec![
        Column::text("method"),
        Column::number("log Z (nats)"),
        Column::number("std. error"),
        Column::text("95 % interval"),
        Column::text("of Z"),
        Column::text("of log Z"),
        Column::text("a likelihood from it is"),
        Column::number("steps"),
        Column::number("time"),
    ];
    let rows = estimates.iter().map(row).collect();
    let mut verdicts: Vec<Verdict> = Vec::new();
    if estimates.len() > 1 {
        verdicts.push(Verdict::new(Level::Note, Agreement::new(estimates).to_string().replace('\n', " ")));
    }
    let note = |z: &LogZ, note: &String| Verdict::new(Level::Note, format!("{}: {note}", z.method));
    verdicts.extend(estimates.iter().flat_map(|z| z.notes.iter().map(move |n| note(z, n))));
    vec![Block::Table(Table { header, rows, sortable: false, runs: Vec::new() }), Block::Verdicts(verdicts)]
}

/// The estimates beside each other, with their intervals.
pub fn figure(estimates: &[LogZ]) -> Figure {
    let point = |(k, z): (usize, &LogZ)| {
        let (low, high) = limits(z);
        Point::between(k as f64, z.value, low, high)
    };
    Figure::new("log Z by method")
        .x(Axis::named("", estimates.iter().map(|z| z.method.clone())))
        .y(Axis::linear("log Z (nats)"))
        .with(Series::points("", estimates.iter().enumerate().map(point)))
}

/// The 95 % interval, or what the standard error makes of one.
pub(crate) fn limits(z: &LogZ) -> (f64, f64) {
    z.interval.unwrap_or((z.value - 1.96 * z.std_err, z.value + 1.96 * z.std_err))
}

fn row(z: &LogZ) -> Vec<Cell> {
    let exact = z.guarantee == Guarantee::Exact;
    let digits = if exact { 6 } else { 4 };
    let interval = match z.interval {
        Some((low, high)) => format!("{low:.4} … {high:.4}"),
        None => "–".into(),
    };
    vec![
        Cell::text(&z.method),
        Cell::number(z.value, format!("{:.digits$}", z.value)),
        Cell::number(z.std_err, if exact { "0".into() } else { format!("{:.4}", z.std_err) }),
        Cell::text(if exact { "–".into() } else { interval }),
        Cell::text(z.guarantee.of_z()),
        Cell::text(z.guarantee.of_log_z()),
        Cell::text(z.guarantee.of_likelihood()),
        Cell::number(
            z.n_states,
            if exact { format!("2^{:.0} states", z.n_states.log2()) } else { format!("{:.0}", z.n_states) },
        ),
        Cell::number(z.seconds, human_seconds(z.seconds)),
    ]
}
