//! The page of `mclv tours --report`.

use super::Report;
use mclv::data::Dataset;
use mclv::partition::LogZ;
use mclv_report::figure::{Axis, Figure, PictureGrid, Point, Series};
use mclv_report::page::{Block, Page, Section};
use mclv_report::tours::Toured;

/// The page of tours: tails, results, by label, pictures, log Z.
pub(super) fn page(
    title: String,
    data: &Dataset,
    reports: &[Report],
    toured: &[Toured],
    grids: Vec<PictureGrid>,
) -> Page {
    let name = |report: &Report| format!("m = {}", report.samples_per_row);
    let mut by_label = Figure::new("Longer than one step, by label").y(Axis::linear("% of tours"));
    let labels = reports.iter().find_map(|report| report.by_label.as_ref());
    if let Some(labels) = labels {
        by_label = by_label.x(Axis::named("label", labels.iter().map(|l| l.label.clone())));
    }
    for report in reports {
        let bars = report.by_label.iter().flatten().enumerate();
        let bars = bars.map(|(k, l)| Point::new(k as f64, 100.0 * (1.0 - l.tours.one_step)));
        by_label = by_label.with(Series::bars(name(report), bars));
    }
    let estimates: Vec<(String, &LogZ)> = reports
        .iter()
        .filter_map(|report| {
            let log_z = report.log_z.as_ref()?;
            Some((format!("{}, {}", log_z.method, name(report)), log_z))
        })
        .collect();
    let mut blocks = mclv_report::tours::blocks(toured);
    blocks.insert(2, Block::chart(by_label, ""));
    let pictures = grids.into_iter().map(|grid| {
        Block::pictures(grid, "Above: starts of tours. Below: the visible layer after the first step.")
    });
    let statements = reports.iter().flat_map(|report| {
        let several = (reports.len() > 1).then(|| Block::Note(format!("{}:", name(report))));
        let blocks = report.theorems.as_ref().map(mclv_report::theorems::blocks);
        several.filter(|_| blocks.is_some()).into_iter().chain(blocks.into_iter().flatten())
    });
    let log_z = mclv_report::log_z::blocks(&estimates, mclv_view::agreement(&estimates).as_ref());
    Page::new(title, format!("{} ({}), {}", data.name, data.provenance.split, data.provenance.preparation()))
        .with(Section::new("Tours", blocks))
        .with(Section::new("The paper's statements", statements))
        .with(Section::new("Pictures", pictures))
        .with(Section::new("log Z", log_z))
}
