//! `mclv likelihood`: the log-likelihood of data under a model.

use super::{logz, model_data};
use crate::args::{Global, LikelihoodArgs};
use crate::output::{Output, table};
use mclv::data::{self, Dataset, Split};
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
    let load = |&split: &Split| {
        model_data::load((&args.model, &model), args.data.as_deref(), &args.preparation, split, global)
    };
    let sets: Vec<Dataset> = args.split.iter().map(load).collect::<anyhow::Result<_>>()?;
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

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}
