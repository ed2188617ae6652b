//! Shows estimates of `log Z` in a table, with their guarantees.

use crate::figure::{Axis, Figure, Point, Series};
use crate::page::{Block, Cell, Column, Level, Table, Verdict};
use mclv::human_seconds;
use mclv::partition::{Agreement, Guarantee, LogZ, UNSEEN_MODES};

/// The table of named estimates, their notes, and their agreement if there are several. The section
/// is empty without estimates.
pub fn blocks(estimates: &[(String, &LogZ)], agreement: Option<&Agreement>) -> Vec<Block> {
    let header = vec![
        Column::text("method"),
        Column::number("log Z (nats)"),
        Column::number("std. error"),
        Column::text("95 % interval"),
        Column::text("guarantee for Z"),
        Column::text("guarantee for log Z"),
        Column::text("guarantee for likelihoods"),
        Column::number("steps"),
        Column::number("time"),
    ];
    let rows = estimates.iter().map(row).collect();
    let agreement = agreement.map(|agreement| {
        let level = if agreement.agree == Some(false) { Level::Warning } else { Level::Note };
        Verdict::new(level, agreement.to_string())
    });
    let has_interval = estimates.iter().any(|(_, z)| z.interval.is_some());
    let unseen = has_interval.then(|| Verdict::new(Level::Note, UNSEEN_MODES));
    let note = |(name, z): &(String, &LogZ)| -> Vec<Verdict> {
        z.notes.iter().map(|note| Verdict::new(Level::Note, format!("{name}: {note}"))).collect()
    };
    let notes = estimates.iter().flat_map(note);
    vec![
        Block::Table(Table { header, rows, sortable: false, runs: Vec::new() }),
        Block::Verdicts(verdict(estimates).into_iter().chain(agreement).chain(unseen).chain(notes).collect()),
    ]
}

/// The verdict on `log Z`, from the best of the estimates. `None` without estimates.
fn verdict(estimates: &[(String, &LogZ)]) -> Option<Verdict> {
    let exact = estimates.iter().find(|(_, z)| z.is_exact());
    let (name, z) = exact.or(estimates.iter().find(|(_, z)| z.interval.is_some())).or(estimates.first())?;
    let value = z.with_error(z.value, 4);
    Some(match z.interval {
        _ if z.is_exact() => Verdict::new(Level::Good, format!("{name}: log Z is exact.")),
        Some((low, high)) => {
            let text = format!("{name}: log Z = {value}, 95 % interval {low:.4} to {high:.4}.");
            Verdict::new(Level::Good, text)
        }
        None => {
            let text = format!(
                "{name}: log Z = {value} has no 95 % interval. Its error may be larger than it looks, and so may the \
                 error of likelihoods."
            );
            Verdict::new(Level::Warning, text)
        }
    })
}

/// A figure of the named estimates with their intervals.
pub fn figure(estimates: &[(String, &LogZ)]) -> Figure {
    let point =
        |(k, (_, z)): (usize, &(String, &LogZ))| Point { x: k as f64, y: z.value, limits: z.limits() };
    Figure::new("log Z by method")
        .x(Axis::named("", estimates.iter().map(|(name, _)| name.clone())))
        .y(Axis::linear("log Z (nats)"))
        .with(Series::points("", estimates.iter().enumerate().map(point)))
}

fn row((name, z): &(String, &LogZ)) -> Vec<Cell> {
    let exact = z.guarantee == Guarantee::Exact;
    let digits = if exact { 6 } else { 4 };
    let interval = match z.interval {
        Some((low, high)) => format!("{low:.4} … {high:.4}"),
        None => "–".into(),
    };
    vec![
        Cell::text(name),
        Cell::number(z.value, format!("{:.digits$}", z.value)),
        match z.std_err {
            Some(se) => Cell::number(se, if exact { "0".into() } else { format!("{se:.4}") }),
            None => Cell::text("unknown"),
        },
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
