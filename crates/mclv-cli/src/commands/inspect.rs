//! `mclv inspect`: shows the contents of a model file.

use super::model_file;
use crate::output::{Output, facts, table};
use clap::{Args, ValueHint};
use mclv::ModelFile;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:\n  mclv inspect model.safetensors")]
pub(crate) struct InspectArgs {
    /// Model file, checkpoint, or run folder (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
}

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
    let json = json!({ "model": model_path.to_string_lossy(), "n_visible": n_visible, "n_hidden": n_hidden,
        "weights": w, "visible_bias": b, "hidden_bias": a, "provenance": provenance });
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
        text
    })
}
