//! Turns reports into Markdown, CSV and figures.

use crate::html::html;
use crate::report::{Axis, Cell, Curve, Mark, Pictures, Plot, Report, Table};
use flate2::read::GzDecoder;
use mclv::{Error, Result, human_seconds, open_file, read_file, write_inside};
use mclv_report::figure::{self, Drawing, Figure, PictureGrid, Point, Series, Theme};
use std::io::Read;
use std::path::Path;

/// Pixels of a PNG per unit of its SVG.
const PNG_SCALE: f32 = 2.0;
/// The largest length of a report in JSON.
const MAX_REPORT: u64 = 1 << 30;

/// Writes a report into a folder: its JSON and the files derived from it. Returns the names of the
/// files.
///
/// # Errors
/// If a file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<Vec<String>> {
    let json = serde_json::to_string_pretty(report).expect("reports are plain JSON");
    let mut files = vec![(format!("{}.json", report.experiment), format!("{json}\n").into_bytes())];
    files.extend(derived(report));
    for (name, bytes) in &files {
        write_inside(&folder.join(name), bytes)?;
    }
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

/// The files derived from a report: an HTML page, Markdown, a CSV file per table and plot, and SVG
/// and PNG files per plot and grid of pictures.
pub fn derived(report: &Report) -> Vec<(String, Vec<u8>)> {
    let text = format!("# {}\n\n{}", report.title, markdown(report, ""));
    let mut files = vec![
        (format!("{}.html", report.experiment), html(report).into_bytes()),
        (format!("{}.md", report.experiment), text.into_bytes()),
    ];
    for table in &report.tables {
        files.push((format!("{}.csv", report.file_name(&table.name)), csv_of_table(table).into_bytes()));
    }
    for plot in &report.plots {
        let (name, figure) = (report.file_name(&plot.name), figure_of(plot));
        files.push((format!("{name}.csv"), csv_of_plot(plot).into_bytes()));
        files.push((format!("{name}.svg"), figure.svg(Theme::Paper).into_bytes()));
        files.push((format!("{name}.png"), figure.png(PNG_SCALE)));
    }
    for pictures in &report.pictures {
        let (name, grid) = (report.file_name(&pictures.name), grid_of(pictures));
        files.push((format!("{name}.svg"), grid.svg(Theme::Paper).into_bytes()));
        files.push((format!("{name}.png"), grid.png(PNG_SCALE)));
    }
    files
}

/// Reads the report of an experiment from `NAME.json` or `NAME.json.gz` in a folder. Returns `None`
/// if neither file exists.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub fn read(folder: &Path, experiment: &str) -> Result<Option<Report>> {
    let plain = folder.join(format!("{experiment}.json"));
    let compressed = folder.join(format!("{experiment}.json.gz"));
    let (path, bytes) = if plain.exists() {
        let bytes = read_file(&plain, MAX_REPORT)?;
        (plain, bytes)
    } else if compressed.exists() {
        let (file, _) = open_file(&compressed)?;
        let mut bytes = Vec::new();
        let mut content = GzDecoder::new(file).take(MAX_REPORT);
        content.read_to_end(&mut bytes).map_err(Error::io("decompress", &compressed))?;
        (compressed, bytes)
    } else {
        return Ok(None);
    };
    let report = serde_json::from_slice(&bytes)
        .map_err(|e| Error::malformed(&path, format!("it is not a report: {e}")))?;
    Ok(Some(report))
}

/// The report as Markdown, without its title. Links to figures start with `folder`.
pub fn markdown(report: &Report, folder: &str) -> String {
    let mut text = String::new();
    if report.quick {
        text.push_str(
            "**Quick run**: it has fewer epochs, seeds and tours than the paper. These numbers show only that the \
             experiment works. Do not compare them with published numbers.\n\n",
        );
    }
    for table in &report.tables {
        text.push_str(&format!("{}\n\n{}\n", table.title, markdown_table(table)));
    }
    for plot in &report.plots {
        let file = report.file_name(&plot.name);
        text.push_str(&format!("![{}]({folder}{file}.svg)\n\n", plot.title));
    }
    for pictures in &report.pictures {
        let file = report.file_name(&pictures.name);
        text.push_str(&format!("![{}]({folder}{file}.png)\n\n", pictures.title));
    }
    for note in &report.notes {
        text.push_str(&format!("- {note}\n"));
    }
    let seeds: Vec<String> = report.seeds.iter().map(u64::to_string).collect();
    text.push_str(&format!(
        "- `{}`; {}; seeds {}; {} runs, {} of one core.\n",
        report.command,
        report.data,
        seeds.join(", "),
        report.runs.len(),
        human_seconds(report.core_seconds)
    ));
    text
}

/// A table with aligned columns.
pub fn markdown_table(table: &Table) -> String {
    let mut lines: Vec<Vec<String>> = vec![table.columns.iter().map(|(name, _)| name.clone()).collect()];
    let is_number =
        |k: usize| table.rows.iter().any(|row| matches!(row[k], Cell::Number(_) | Cell::Summary(_)));
    lines.push(
        (0..table.columns.len())
            .map(|k| if is_number(k) { "---:".into() } else { "---".to_owned() })
            .collect(),
    );
    for row in &table.rows {
        lines.push(
            row.iter().zip(&table.columns).map(|(cell, (_, digits))| cell_text(cell, *digits)).collect(),
        );
    }
    lines.into_iter().map(|line| format!("| {} |\n", line.join(" | "))).collect()
}

/// The text of a cell, with this number of digits after the point.
pub fn cell_text(cell: &Cell, digits: usize) -> String {
    let number = |x: f64| format!("{x:.digits$}").replace('-', "−");
    match cell {
        Cell::Number(x) => number(*x),
        Cell::Text(text) => text.clone(),
        Cell::Missing => "–".into(),
        Cell::Summary(s) => match s.sd {
            Some(sd) => format!("{} ({sd:.digits$})", number(s.mean)),
            None => number(s.mean),
        },
    }
}

fn csv_of_table(table: &Table) -> String {
    let is_summary = |k: usize| table.rows.iter().any(|row| matches!(row[k], Cell::Summary(_)));
    let mut lines = vec![
        table
            .columns
            .iter()
            .enumerate()
            .flat_map(|(k, (name, _))| {
                let name = quoted(name);
                if is_summary(k) {
                    vec![name.clone(), quoted(&format!("{name} sd")), quoted(&format!("{name} n"))]
                } else {
                    vec![name]
                }
            })
            .collect::<Vec<String>>(),
    ];
    for row in &table.rows {
        let cells = row.iter().enumerate().flat_map(|(k, cell)| {
            let mut cells = match cell {
                Cell::Number(x) => vec![format!("{x:?}")],
                Cell::Text(text) => vec![quoted(text)],
                Cell::Missing => vec![String::new()],
                Cell::Summary(s) => {
                    vec![
                        format!("{:?}", s.mean),
                        s.sd.map_or(String::new(), |sd| format!("{sd:?}")),
                        s.n.to_string(),
                    ]
                }
            };
            cells.resize(if is_summary(k) { 3 } else { 1 }, String::new());
            cells
        });
        lines.push(cells.collect());
    }
    lines.into_iter().map(|line| line.join(",") + "\n").collect()
}

fn csv_of_plot(plot: &Plot) -> String {
    let mut text = format!("curve,{},{},low,high\n", quoted(&plot.x.label), quoted(&plot.y.label));
    for curve in &plot.curves {
        for (k, (x, y)) in curve.points.iter().enumerate() {
            let band = curve.band.get(k).map_or(",".into(), |(low, high)| format!("{low:?},{high:?}"));
            text.push_str(&format!("{},{x:?},{y:?},{band}\n", quoted(&curve.name)));
        }
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

pub(crate) fn figure_of(plot: &Plot) -> Figure {
    let axis = |axis: &Axis| match axis {
        Axis { label, names, .. } if !names.is_empty() => {
            figure::Axis::named(label.as_str(), names.iter().cloned())
        }
        Axis { label, log: true, .. } => figure::Axis::log(label.as_str()),
        Axis { label, .. } => figure::Axis::linear(label.as_str()),
    };
    let figure = Figure::new(plot.title.as_str()).x(axis(&plot.x)).y(axis(&plot.y));
    plot.curves.iter().fold(figure, |figure, curve| figure.with(series_of(curve)))
}

fn series_of(curve: &Curve) -> Series {
    let points = curve.points.iter().enumerate().map(|(k, &(x, y))| Point {
        x,
        y,
        limits: curve.band.get(k).copied(),
    });
    let series = match curve.mark {
        Mark::Line => Series::line(curve.name.as_str(), points),
        Mark::Steps => Series::step(curve.name.as_str(), points),
        Mark::Bars => Series::bars(curve.name.as_str(), points),
    };
    if curve.dashed { series.dashed() } else { series }
}

pub(crate) fn grid_of(pictures: &Pictures) -> PictureGrid {
    let n_values = pictures.shape.0 * pictures.shape.1;
    let images: Vec<Vec<f32>> = pictures
        .lines
        .iter()
        .flat_map(|line| {
            let bytes: Vec<f32> = (0..line.len() / 2)
                .map(|k| f32::from(u8::from_str_radix(&line[2 * k..2 * k + 2], 16).unwrap_or(0)) / 255.0)
                .collect();
            bytes.chunks_exact(n_values).map(<[f32]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    let n_columns = images.len() / pictures.lines.len().max(1);
    PictureGrid::new(pictures.title.as_str(), images, pictures.shape, n_columns.max(1))
        .row_names(pictures.names.iter().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::statistics::Summary;

    #[test]
    fn tables_are_written_for_people_and_for_programs() {
        let table = Table {
            name: String::new(),
            title: "T".into(),
            columns: vec![("method".into(), 0), ("ours".into(), 1), ("n".into(), 0)],
            rows: vec![
                vec!["a, b".into(), Summary::of(&[-1.0, -2.0]).into(), Cell::Number(2.0)],
                vec!["c".into(), Summary::of(&[-3.25]).into(), Cell::Missing],
            ],
        };
        let expected =
            "| method | ours | n |\n| --- | ---: | ---: |\n| a, b | −1.5 (0.7) | 2 |\n| c | −3.2 | – |\n";
        assert_eq!(markdown_table(&table), expected);
        let csv = csv_of_table(&table);
        assert_eq!(
            csv,
            "method,ours,ours sd,ours n,n\n\"a, b\",-1.5,0.7071067811865476,2,2.0\nc,-3.25,,1,\n"
        );
    }
}
