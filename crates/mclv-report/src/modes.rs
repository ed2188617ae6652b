//! Shows the shares of modes in a model beside those in the data.

use crate::figure::{Axis, Figure, Point, Series};
use crate::page::{Block, Cell, Column, Level, Table, Verdict};
use mclv::modes::{ModeKind, ModeShare, ModeShares, Standing};

/// Bars of both shares, with 95 % intervals of the model's share.
pub fn figure(shares: &ModeShares) -> Figure {
    let limits = |mode: &ModeShare| {
        let (low, high) = mode.interval.filter(|(low, high)| low < high)?;
        Some((100.0 * low, 100.0 * high))
    };
    let numbered = || shares.modes.iter().enumerate().map(|(k, mode)| (k as f64, mode));
    let data = numbered().map(|(x, mode)| Point::new(x, 100.0 * mode.data));
    let model = numbered().map(|(x, mode)| Point { x, y: 100.0 * mode.model, limits: limits(mode) });
    let by = shares.by.word();
    Figure::new(format!("Mass of the model by {by}, beside the data"))
        .x(Axis::named(by, (0..shares.modes.len()).map(|k| label(shares, k))))
        .y(Axis::linear("share (%)"))
        .with(Series::bars("data", data))
        .with(Series::bars("model", model))
}

/// A short name for an axis.
fn label(shares: &ModeShares, k: usize) -> String {
    match shares.by {
        ModeKind::Class => shares.modes[k].name.clone(),
        _ => (k + 1).to_string(),
    }
}

/// The verdict: bad if a mode is lost or over-weighted, and a note if the shares are not judged.
pub fn verdict(shares: &ModeShares) -> Verdict {
    let level = match (shares.is_bad(), shares.is_judged()) {
        (true, _) => Level::Warning,
        (false, true) => Level::Good,
        (false, false) => Level::Note,
    };
    Verdict::new(level, format!("Modes: {}", shares.verdict()))
}

/// The verdict, a figure and a table.
pub fn blocks(shares: &ModeShares) -> Vec<Block> {
    let mut note = format!(
        "A state belongs to the {} whose rows it is nearest to. Model: {} ({}).",
        shares.by.word(),
        shares.method,
        shares.guarantee.in_words()
    );
    if let Some(agreement) = shares.agreement {
        note.push_str(&format!(" {:.1} % of the rows are nearest to their own class.", 100.0 * agreement));
    }
    let header = vec![
        Column::text(shares.by.word()),
        Column::number("rows"),
        Column::number("data"),
        Column::number("model"),
        Column::number("std. error"),
        Column::number("model / data"),
        Column::text("standing"),
    ];
    let rows = shares.modes.iter().map(row).collect();
    vec![
        Block::Verdicts(vec![verdict(shares)]),
        Block::chart(figure(shares), note),
        Block::Table(Table { header, rows, sortable: true, runs: Vec::new() }),
    ]
}

fn row(mode: &ModeShare) -> Vec<Cell> {
    let percent = |x: f64| Cell::number(x, format!("{:.2} %", 100.0 * x));
    let standing = Cell::text(mode.standing.word());
    vec![
        Cell::text(&mode.name),
        Cell::number(mode.n_rows as f64, mode.n_rows.to_string()),
        percent(mode.data),
        percent(mode.model),
        mode.std_err.map_or(Cell::text("unknown"), percent),
        mode.ratio.map_or(Cell::text("–"), |ratio| Cell::number(ratio, format!("{ratio:.2}"))),
        match mode.standing {
            Standing::Lost | Standing::OverWeighted => standing.marked(),
            _ => standing,
        },
    ]
}
