//! A report as one HTML page, with sortable tables, interactive charts, and all runs behind them.

use crate::report::{Cell, Report, Table};
use crate::write::{cell_text, figure_of, grid_of};
use mclv::human_seconds;
use mclv_report::page::{self, Block, Column, Level, Page, Section, Verdict};

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let seeds: Vec<String> = report.seeds.iter().map(u64::to_string).collect();
    let subtitle = format!(
        "{}; seeds {}; {} runs, {} of one core; mclv {}",
        report.data,
        seeds.join(", "),
        report.runs.len(),
        human_seconds(report.core_seconds),
        report.version
    );
    let mut results = Vec::new();
    if report.quick {
        let text = "This is a quick run, with fewer epochs, seeds and tours than the paper. Do not compare it with \
                    published numbers.";
        results.push(Block::Verdicts(vec![Verdict::new(Level::Warning, text)]));
    }
    for table in &report.tables {
        results.push(Block::Note(table.title.clone()));
        results.push(Block::Table(table_of(table)));
    }
    let charts = report.plots.iter().map(|plot| Block::chart(figure_of(plot), ""));
    let pictures = report.pictures.iter().map(|p| Block::pictures(grid_of(p), p.names.join("; ")));
    let notes = report.notes.iter().map(|note| Block::Note(note.clone()));
    let runs = page::Table {
        header: vec![Column::text("run"), Column::number("seconds of one core")],
        rows: report
            .runs
            .iter()
            .map(|run| {
                let seconds = run.cpu_seconds.unwrap_or(run.seconds);
                vec![
                    page::Cell::text(run.name.as_str()),
                    page::Cell::number(seconds, format!("{seconds:.1}")),
                ]
            })
            .collect(),
        sortable: true,
        runs: Vec::new(),
    };
    let settings = report.runs.iter().map(|run| {
        let task = serde_json::to_string_pretty(&run.task).unwrap_or_default();
        Block::Details(run.name.clone(), vec![Block::Code(task)])
    });
    Page::new(report.title.as_str(), subtitle)
        .with(Section::new("Results", results))
        .with(Section::new("Figures", charts.chain(pictures)))
        .with(Section::new("Notes", notes))
        .with(Section::new("How to repeat it", [Block::Code(report.command.clone())]))
        .with(Section::new("Runs", [Block::Table(runs)]))
        .with(Section::new("Settings of all runs", settings))
        .html()
}

fn table_of(table: &Table) -> page::Table {
    let is_number =
        |k: usize| table.rows.iter().any(|row| matches!(row[k], Cell::Number(_) | Cell::Summary(_)));
    let header = table.columns.iter().enumerate().map(|(k, (name, _))| match is_number(k) {
        true => Column::number(name.as_str()),
        false => Column::text(name.as_str()),
    });
    let cell = |(cell, (_, digits)): (&Cell, &(String, usize))| {
        let text = cell_text(cell, *digits);
        match cell {
            Cell::Number(x) => page::Cell::number(*x, text),
            Cell::Summary(s) => page::Cell::number(s.mean, text),
            Cell::Text(_) | Cell::Missing => page::Cell::text(text),
        }
    };
    page::Table {
        header: header.collect(),
        rows: table.rows.iter().map(|row| row.iter().zip(&table.columns).map(cell).collect()).collect(),
        sortable: true,
        runs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Curve, Plot};
    use mclv::statistics::Summary;

    #[test]
    fn everything_of_a_report_is_on_its_page() {
        let report = Report {
            experiment: "table2".into(),
            title: "Likelihoods <of> models".into(),
            command: "mclv reproduce table2 --seeds 2".into(),
            data: "mnist".into(),
            seeds: vec![0, 1],
            quick: true,
            core_seconds: 90.0,
            version: "0.1.0".into(),
            tables: vec![Table {
                name: String::new(),
                title: "Exact likelihoods".into(),
                columns: vec![("method".into(), 0), ("test".into(), 1)],
                rows: vec![vec!["CD-1".into(), Summary::of(&[-169.0, -171.0]).unwrap().into()]],
            }],
            plots: vec![Plot {
                name: "curve".into(),
                title: "A curve".into(),
                x: Axis::linear("across"),
                y: Axis::log("up"),
                curves: vec![Curve::new("one", vec![(1.0, 1.0), (2.0, 3.0)])],
            }],
            pictures: Vec::new(),
            notes: vec!["Something to know.".into()],
            runs: Vec::new(),
        };
        let html = html(&report);
        for part in [
            "Likelihoods &lt;of&gt; models",
            "quick run",
            "Exact likelihoods",
            "CD-1",
            "−170.0 (1.4)",
            "A curve",
            "Something to know.",
            "mclv reproduce table2 --seeds 2",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("Likelihoods <of>"), "text is escaped");
    }
}
