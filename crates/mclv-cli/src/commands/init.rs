//! `mclv init`: make an initial model for a data set.

use super::check_overwrite;
use crate::args::{Global, InitArgs};
use crate::output::{Output, facts};
use crate::watch::Watch;
use mclv::{ModelFile, Provenance, data};
use serde_json::json;

pub(crate) fn run(args: &InitArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    check_overwrite(&args.output.path, args.output.force)?;
    let spec = args.data.preparation.spec(&args.data.source, args.split, global);
    let set = data::load(&spec, &Watch::new("fetching", "B"))?;
    let rbm = args.init.model(&set.rows, args.hidden, global.seed())?;
    let settings = json!({ "command": "init", "init": args.init, "n_hidden": args.hidden, "data": spec });
    let provenance = Provenance {
        settings,
        seed: Some(global.seed()),
        data: Some(set.provenance),
        ..Provenance::default()
    };
    let model = ModelFile { rbm, provenance };
    model.save(&args.output.path)?;
    let (n_visible, n_hidden) = (model.rbm.n_visible(), model.rbm.n_hidden());
    let json =
        json!({ "model": args.output.path.to_string_lossy(), "n_visible": n_visible, "n_hidden": n_hidden });
    out.print(&json, || {
        facts(&[
            ("wrote", args.output.path.display().to_string()),
            ("units", format!("{n_visible} visible, {n_hidden} hidden")),
            ("next", format!("mclv likelihood {}", args.output.path.display())),
        ])
    })
}
