//! `mclv convert`: converts models between file formats.

use super::{check_overwrite, hdf5, model_file};
use crate::output::{Output, facts};
use anyhow::bail;
use clap::{Args, ValueHint};
use mclv::ModelFile;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv convert model.safetensors model.npz   for scikit-learn
  mclv convert sklearn.npz model.safetensors
  mclv convert model.safetensors parts.npy   one .npy file per tensor
  mclv convert rbms.h5 model.safetensors     from the rbms package (or to it)

The extension of a file decides its format. An .npz file holds components_, intercept_visible_ and
intercept_hidden_. OUT.npy becomes OUT.weights.npy, OUT.visible_bias.npy and OUT.hidden_bias.npy.
HDF5 files (.h5, .hdf5) need a program that was built with `--features hdf5`.")]
pub(crate) struct ConvertArgs {
    /// The model to read: a model file, a checkpoint, or the folder of a run or sweep (its
    /// best model)
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// HDF5 only: the update to read [default: the last], or the number to write [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) update: Option<u64>,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &ConvertArgs, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output, args.force)?;
    let [from_hdf5, to_hdf5] = [&args.input, &args.output].map(|path| hdf5::is_hdf5(path));
    if args.update.is_some() && !from_hdf5 && !to_hdf5 {
        bail!("--update works only with HDF5 files (.h5, .hdf5)");
    }
    let (input, model) = match from_hdf5 {
        true => (args.input.clone(), hdf5::load(&args.input, args.update)?),
        false => model_file::open(&args.input, out)?,
    };
    if to_hdf5 {
        // If both files are HDF5, --update chooses from the first.
        hdf5::save(&model.rbm, &args.output, args.update.filter(|_| !from_hdf5).unwrap_or(1))?;
    } else {
        model.save(&args.output)?;
    }
    let loses = ModelFile::keeps_provenance(&input) && !ModelFile::keeps_provenance(&args.output);
    let (n_visible, n_hidden) = (model.rbm.n_visible(), model.rbm.n_hidden());
    let files: Vec<String> =
        ModelFile::files(&args.output).iter().map(|f| f.to_string_lossy().into_owned()).collect();
    let json = json!({ "input": input.to_string_lossy(), "output": args.output.to_string_lossy(),
        "files": files, "n_visible": n_visible, "n_hidden": n_hidden, "provenance_kept": !loses });
    out.print(&json, || {
        let mut lines =
            vec![("wrote", files.join(", ")), ("units", format!("{n_visible} visible, {n_hidden} hidden"))];
        if loses {
            lines.push((
                "note",
                "this format cannot store seed, settings and data; keep the .safetensors file".into(),
            ));
        }
        facts(&lines)
    })
}
