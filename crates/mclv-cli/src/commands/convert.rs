//! `mclv convert`: between model formats.

use super::check_overwrite;
use crate::args::ConvertArgs;
use crate::output::{Output, facts};
use mclv::ModelFile;
use serde_json::json;

pub(crate) fn run(args: &ConvertArgs, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output, args.force)?;
    let model = ModelFile::load(&args.input)?;
    model.save(&args.output)?;
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
