//! `mclv plot`: one figure for a paper.

use super::check_output;
use crate::output::{Output, facts};
use crate::report_args::{Axis, PlotArgs, What};
use crate::watch::Watch;
use anyhow::ensure;
use mclv_report::figure::{Drawing, Figure, save};
use mclv_report::run::{Against, ModelParts, RunFolder, likelihood};
use mclv_report::{pictures, tours};
use serde_json::json;

pub(crate) fn run(args: &PlotArgs, out: &Output) -> anyhow::Result<()> {
    check_output(&args.output, args.force, &["svg", "png"], ".svg and .png")?;
    let runs = args.runs.iter().map(|run| RunFolder::read(run)).collect::<Result<Vec<_>, _>>()?;
    let watch = Watch::new("tours", "tours");
    let labelled = |figure: Figure| {
        ensure!(
            !figure.is_empty(),
            "there is nothing to draw: no epoch was evaluated, or no tour has two steps"
        );
        Ok(figure.renamed(args.title.as_deref(), args.x_label.as_deref(), args.y_label.as_deref()))
    };
    let drawing: Box<dyn Drawing> = match args.what {
        What::Likelihood => {
            let against = if args.against == Axis::Time { Against::Seconds } else { Against::Epochs };
            let all: Vec<&RunFolder> = runs.iter().collect();
            Box::new(labelled(likelihood(&all, against).size(640.0, 400.0))?)
        }
        What::Ccdf => {
            let tails = runs.iter().map(|run| ModelParts::new(run, &watch)?.tail(&watch));
            Box::new(labelled(tours::tail_figure(&tails.collect::<Result<Vec<_>, _>>()?))?)
        }
        What::Filters | What::Samples | What::Reconstructions | What::Tours => {
            ensure!(runs.len() == 1, "pictures are of one run; give one folder");
            let parts = ModelParts::new(&runs[0], &watch)?;
            let shape = parts.shape()?;
            let grid = match args.what {
                What::Filters => pictures::filters(parts.rbm, shape),
                What::Reconstructions => pictures::reconstructions(parts.rbm, parts.rows()?, shape, 10)?,
                What::Tours => parts.tour_pictures(shape, &watch)?,
                _ => parts.samples(shape, &watch)?,
            };
            Box::new(grid.renamed(args.title.as_deref()))
        }
    };
    save(drawing.as_ref(), &args.output)?;
    drop(watch);
    let json = json!({ "figure": args.output.to_string_lossy() });
    out.print(&json, || facts(&[("wrote", args.output.display().to_string())]))
}
