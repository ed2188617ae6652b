//! `mclv transform`: computes the hidden probabilities of data.

use super::{check_output, model_data, model_file};
use crate::cli::Global;
use crate::flags::Preparation;
use crate::output::{Output, facts};
use clap::{Args, ValueHint};
use mclv::data::Split;
use mclv::{Features, write_atomically};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv transform model.safetensors --data mnist --split train -o features.npz
  mclv transform model.safetensors --data rows.csv --label-column -1 -o features.csv

The features of a row are the probabilities of all hidden units given the row. An .npz file also
holds the labels in the array `labels` (words become 0, 1, … in alphabetical order), and a .csv file
holds them in its last column. A .npy file cannot hold labels.")]
pub(crate) struct TransformArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Data set or file [default: the data recorded in the model file]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Part of the data: all, train, validation or test
    #[arg(long, default_value = "all", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// File to write: .npy, .npz or .csv
    #[arg(short, long, default_value = "features.npz", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &TransformArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let format = check_output(&args.output, args.force, &["npy", "npz", "csv"], ".npy, .npz and .csv")?;
    let (model_path, model) = model_file::open(&args.model, out)?;
    let set =
        model_data::load((&model_path, &model), args.data.as_deref(), &args.preparation, args.split, global)?;
    let features = Features::new(&model.rbm, &set)?;
    let bytes = match format.as_str() {
        "npy" => features.to_npy(),
        "npz" => features.to_npz(),
        _ => features.to_csv(),
    };
    write_atomically(&args.output, &bytes)?;
    let (n_rows, n_hidden) = (features.means.n_rows(), features.means.n_columns());
    let has_labels = features.labels.is_some();
    let classes = features.labels.map(|labels| labels.names);
    let json = json!({ "model": model_path.to_string_lossy(), "output": args.output.to_string_lossy(),
        "n_rows": n_rows, "n_hidden": n_hidden, "labels_kept": has_labels && format != "npy",
        "classes": classes, "data": set.provenance });
    out.print(&json, || {
        let mut lines = vec![
            ("wrote", args.output.display().to_string()),
            ("features", format!("{n_rows} rows × {n_hidden} hidden units")),
            ("data", format!("{} ({}), {}", set.name, set.provenance.split, set.provenance.preparation())),
        ];
        if let Some(classes) = classes {
            lines.push((
                "labels",
                match format.as_str() {
                    "npy" => "left out: a .npy file cannot hold them; use .npz or .csv".into(),
                    _ => classes.join(" "),
                },
            ));
        }
        facts(&lines)
    })
}
