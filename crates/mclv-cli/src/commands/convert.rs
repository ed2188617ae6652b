//! `mclv convert`: between model formats.

use super::{check_overwrite, hdf5};
use crate::args::ConvertArgs;
use crate::output::{Output, facts};
use anyhow::bail;
use mclv::ModelFile;
use serde_json::json;

pub(crate) fn run(args: &ConvertArgs, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output, args.force)?;
    let [from_hdf5, to_hdf5] = [&args.input, &args.output].map(|path| hdf5::is_hdf5(path));
    if args.update.is_some() && !from_hdf5 && !to_hdf5 {
        bail!("--update goes with HDF5 files (.h5, .hdf5) only");
    }
    let model = if from_hdf5 { hdf5::load(&args.input, args.update)? } else { ModelFile::load(&args.input)? };
    if to_hdf5 {
        // Of two HDF5 files, the first has the updates to choose from.
        hdf5::save(&model.rbm, &args.output, args.update.filter(|_| !from_hdf5).unwrap_or(1))?;
    } else {
        model.save(&args.output)?;
    }
    let loses = ModelFile::keeps_provenance(&args.input) && !ModelFile::keeps_provenance(&args.output);
    let (n_visible, n_hidden) = (model.rbm.n_visible(), model.rbm.n_hidden());
    let files: Vec<String> =
        ModelFile::files(&args.output).iter().map(|f| f.to_string_lossy().into_owned()).collect();
    let json = json!({ "input": args.input.to_string_lossy(), "output": args.output.to_string_lossy(),
        "files": files, "n_visible": n_visible, "n_hidden": n_hidden, "provenance_kept": !loses });
    out.print(&json, || {
        let mut lines =
            vec![("wrote", files.join(", ")), ("units", format!("{n_visible} visible, {n_hidden} hidden"))];
        if loses {
            lines.push((
                "note",
                "this format has no place for seed, settings and data: keep the .safetensors".into(),
            ));
        }
        facts(&lines)
    })
}
