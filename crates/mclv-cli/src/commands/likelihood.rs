//! `mclv likelihood`: the log-likelihood of data under a model.

use super::logz;
use crate::args::{Global, LikelihoodArgs};
use crate::output::{Output, table};
use crate::watch::Watch;
use anyhow::Context;
use mclv::data::{self, DataSpec, Dataset, Split};
use mclv::{Likelihood, ModelFile, average_log_likelihood, human_seconds};
use serde::Serialize;
use serde_json::json;

/// What is said of one part of the data.
#[derive(Serialize)]
struct Part {
    split: Split,
    #[serde(flatten)]
    likelihood: Likelihood,
    pseudo_log_likelihood: Option<f64>,
    reconstruction_error: f64,
    data: data::DataProvenance,
}

pub(crate) fn run(args: &LikelihoodArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let model = ModelFile::load(&args.model)?;
    // Read the data before the long work, so that a wrong name costs no time.
    let sets: Vec<Dataset> =
        args.split.iter().map(|&split| load(args, &model, split, global)).collect::<anyhow::Result<_>>()?;
    for set in &sets {
        anyhow::ensure!(
            set.n_columns() == model.rbm.n_visible(),
            "{} has {} columns, but {} has {} visible units; use data or a model that fits the other",
            set.name,
            set.n_columns(),
            args.model.display(),
            model.rbm.n_visible()
        );
    }
    let log_z = logz::exact(&model.rbm, &args.limit)?;
    let mut parts = Vec::new();
    for set in sets {
        let pseudo =
            if args.pseudo { Some(mean(&model.rbm.pseudo_log_likelihood(&set.rows)?)) } else { None };
        parts.push(Part {
            split: set.provenance.split,
            likelihood: average_log_likelihood(&model.rbm, &set.rows, &log_z)?,
            pseudo_log_likelihood: pseudo,
            reconstruction_error: model.rbm.reconstruction_error(&set.rows)?,
            data: set.provenance,
        });
    }
    let json = json!({ "model": args.model.to_string_lossy(), "log_z": log_z, "likelihoods": parts });
    out.print(&json, || {
        let first = &parts[0].data;
        let mut header = vec!["split", "rows", "log-likelihood (nats)", "std. error", "reconstruction (MSE)"];
        if args.pseudo {
            header.push("pseudo-log-likelihood");
        }
        let rows = parts.iter().map(|p| {
            let mut row = vec![
                p.split.to_string(),
                p.likelihood.n_rows.to_string(),
                format!("{:.4}", p.likelihood.mean),
                format!("{:.4}", p.likelihood.std_err_rows),
                format!("{:.5}", p.reconstruction_error),
            ];
            row.extend(p.pseudo_log_likelihood.map(|x| format!("{x:.4}")));
            row
        });
        format!(
            "{}, {}; log Z = {:.6} ({}, {})\n{}",
            first.name,
            first.preprocessing,
            log_z.value,
            log_z.guarantee,
            human_seconds(log_z.seconds),
            table(&header, &[1, 2, 3, 4, 5], rows)
        )
    })
}

/// The data asked for, else what the model was made from, prepared as it was then.
fn load(args: &LikelihoodArgs, model: &ModelFile, split: Split, global: &Global) -> anyhow::Result<Dataset> {
    let recorded: Option<DataSpec> =
        model.provenance.settings.get("data").and_then(|spec| serde_json::from_value(spec.clone()).ok());
    let mut spec = match (&args.data, recorded) {
        (Some(source), _) => args.preparation.spec(source, split, global),
        (None, Some(recorded)) => recorded,
        (None, None) => {
            anyhow::bail!("{} does not say what it was made from; name --data", args.model.display())
        }
    };
    spec.split = split;
    spec.binarize = args.preparation.binarize.unwrap_or(spec.binarize);
    spec.label_column = args.preparation.label_column.clone().or(spec.label_column);
    let set = data::load(&spec, &Watch::new("fetching", "B")).with_context(|| match &args.data {
        Some(data) => format!("{split} rows of {data}"),
        None => {
            format!("{split} rows of {}, what the model was made from (--data names others)", spec.source)
        }
    })?;
    if let (None, Some(then)) = (&args.data, &model.provenance.data)
        && then.split == split
        && then.sha256 != set.provenance.sha256
    {
        tracing::warn!("{} is not what this model was made from: its SHA-256 has changed", spec.source);
    }
    Ok(set)
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}
