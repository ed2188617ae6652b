//! `mclv inspect`: shows the contents of a model file.

use super::model_file;
use crate::output::{Output, facts, table};
use clap::{Args, ValueHint};
use mclv::{ModelFile, StrongUnit};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv inspect model.safetensors
  mclv inspect runs/table-1 --units 25

For tables, it lists the hidden units with the largest weights, and for each of them the columns
with the largest weights. If the weight is positive, the unit is on more often in rows where the
column is 1. h0 is the first hidden unit, as in the files of `mclv transform`.")]
pub(crate) struct InspectArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Number of hidden units to list with their columns [default: 10; 0 for pictures]
    #[arg(long, value_name = "N")]
    pub(crate) units: Option<usize>,
}

/// The default number of hidden units that are listed, and the number of columns of each.
const N_UNITS: usize = 10;
const N_COLUMNS: usize = 5;

/// Summary statistics of a tensor.
#[derive(Serialize)]
struct Summary {
    mean: f64,
    sd: f64,
    min: f64,
    max: f64,
}

impl Summary {
    fn of(x: &[f32]) -> Self {
        let n = x.len() as f64;
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let sd = (x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n).sqrt();
        let fold = |f: fn(f64, f64) -> f64, first| x.iter().map(|&x| f64::from(x)).fold(first, f);
        Self { mean, sd, min: fold(f64::min, f64::INFINITY), max: fold(f64::max, f64::NEG_INFINITY) }
    }

    fn row(&self, name: &str, shape: String) -> Vec<String> {
        let number = |x: f64| format!("{x:.4}");
        vec![name.into(), shape, number(self.mean), number(self.sd), number(self.min), number(self.max)]
    }
}

pub(crate) fn run(args: &InspectArgs, out: &Output) -> anyhow::Result<()> {
    let (model_path, ModelFile { rbm, provenance }) = model_file::open(&args.model, out)?;
    let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
    let summaries =
        [Summary::of(&rbm.weights()), Summary::of(rbm.visible_bias()), Summary::of(rbm.hidden_bias())];
    let [w, b, a] = &summaries;
    let is_picture = provenance.data.as_ref().is_some_and(|data| data.image_shape.is_some());
    let n_listed = args.units.unwrap_or(if is_picture { 0 } else { N_UNITS });
    let units = rbm.strongest_units(n_listed, N_COLUMNS);
    let name = |column: usize| match &provenance.data {
        Some(data) => data.column_name(column),
        None => format!("column {}", column + 1),
    };
    let listed: Vec<_> = units
        .iter()
        .map(|unit| {
            let columns = unit
                .weights
                .iter()
                .map(|&(column, weight)| json!({ "column": name(column), "weight": weight }));
            json!({ "unit": unit.unit, "columns": columns.collect::<Vec<_>>() })
        })
        .collect();
    let json = json!({ "model": model_path.to_string_lossy(), "n_visible": n_visible, "n_hidden": n_hidden,
        "weights": w, "visible_bias": b, "hidden_bias": a, "strongest_units": listed, "provenance": provenance });
    out.print(&json, || {
        let unknown = || "not recorded".to_owned();
        let made = match (&provenance.imported_from, provenance.settings.get("command")) {
            (Some(file), _) => format!("imported from {file}"),
            (None, Some(command)) => {
                let from = provenance.settings["from"]["file"].as_str();
                let from = from.map_or(String::new(), |file| format!(", from {file}"));
                format!("mclv {} {}{from}", provenance.mclv_version, command.as_str().unwrap_or_default())
            }
            (None, None) => unknown(),
        };
        let data = provenance.data.as_ref().map_or_else(unknown, |d| {
            format!("{} ({}, {} rows, {}), SHA-256 {}", d.name, d.split, d.n_rows, d.preparation(), d.sha256)
        });
        let mut text = facts(&[
            ("model", model_path.display().to_string()),
            ("units", format!("{n_visible} visible, {n_hidden} hidden")),
            ("made by", made),
            ("seed", provenance.seed.map_or_else(unknown, |s| s.to_string())),
            ("data", data),
        ]);
        text.push('\n');
        let rows = [
            w.row("weights W", format!("{n_visible} × {n_hidden}")),
            b.row("visible bias b", n_visible.to_string()),
            a.row("hidden bias a", n_hidden.to_string()),
        ];
        text.push_str(&table(&["", "shape", "mean", "sd", "min", "max"], &[1, 2, 3, 4, 5], rows));
        if !units.is_empty() {
            let columns = |unit: &StrongUnit| {
                let of = |&(column, weight): &(usize, f32)| format!("{} {weight:+.2}", name(column));
                unit.weights.iter().map(of).collect::<Vec<_>>().join(", ")
            };
            let rows = units.iter().map(|unit| vec![format!("h{}", unit.unit), columns(unit)]);
            text.push_str("\n\n");
            text.push_str(&table(&["unit", "columns with the largest weights"], &[], rows));
            if units.len() < n_hidden {
                text.push_str(&format!("\n(--units {n_hidden} lists all hidden units)"));
            }
        }
        text
    })
}
