//! `mclv likelihood`: computes the log-likelihood of data under a model.

use super::model_data::{self, Wanted};
use super::{logz, model_file};
use crate::cli::Global;
use crate::flags::{Preparation, TimeLimit, WorkArgs};
use crate::output::{Output, table};
use clap::{Args, ValueHint};
use mclv::data::{self, Split};
use mclv::partition::{Guarantee, Inputs, Method, Plan};
use mclv::{Likelihood, human_seconds};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv likelihood model.safetensors                        of the data recorded in the model file
  mclv likelihood model.safetensors --data mnist --split test
  mclv likelihood model.npz --data rows.npy --split all --binarize threshold=0.5
  mclv likelihood big.safetensors --method mclv --target-se 0.02

Log-likelihoods are in nats per row. log Z is exact if the time limit allows it. Otherwise it is
estimated by Las Vegas tours, or by AIS if tours do not return. The error of log Z is the same for
all rows. If log Z has an interval, so has the likelihood; if log Z is too low, the likelihood is
too high. The standard error over rows shows how much the mean varies between samples of rows. For
grey values, the result is a lower bound on the expected log-likelihood of binarised rows. Do not
compare results of different binarisations.")]
pub(crate) struct LikelihoodArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Data set or file [default: the data recorded in the model file]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Parts of the data: all, train, validation, test [default: train,validation,test, as far as
    /// they have rows]
    #[arg(long, value_delimiter = ',', value_name = "SPLITS")]
    pub(crate) split: Option<Vec<Split>>,
    /// Also compute the exact pseudo-log-likelihood
    #[arg(long)]
    pub(crate) pseudo: bool,
    /// Method for log Z: exact, mclv, ladder, ais, reverse-ais or bar [default: exact if the time
    /// limit allows it, else mclv if tours return, else ladder if tours climb it, else ais]
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) limit: TimeLimit,
}

/// Wanted standard error of log Z by tours: small compared with the standard error over rows.
const TARGET_SE: f64 = 0.05;

/// The likelihood of one part of the data, as printed.
#[derive(Serialize)]
struct Part {
    split: Split,
    #[serde(flatten)]
    likelihood: Likelihood,
    /// The guarantee for the likelihood: the opposite of the guarantee for log Z.
    guarantee: &'static str,
    pseudo_log_likelihood: Option<f64>,
    reconstruction_error: f64,
    data: data::DataProvenance,
}

pub(crate) fn run(args: &LikelihoodArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let (model_path, model) = model_file::open(&args.model, out)?;
    // Read the data before the long work, so that a wrong name costs no time.
    let sets = model_data::load_parts(
        (&model_path, &model),
        args.data.as_deref(),
        &args.preparation,
        args.split.as_deref().map_or(Wanted::All, Wanted::Each),
        global,
    )?;
    let stopping_set = logz::stopping_set(&args.work)?;
    // Stopping sets and base models come from the training rows if they are among the data.
    let near = sets.iter().find(|set| set.provenance.split == Split::Train).or(sets.first());
    let rows = near.map(|set| &set.rows);
    let rungs = logz::rungs(&args.work)?;
    let inputs = Inputs { rows, stopping_set: stopping_set.as_ref(), rungs: &rungs, ..Inputs::default() };
    let settings =
        logz::settings(&model.rbm, &args.work, args.limit.seconds(&[args.method]), global, TARGET_SE);
    let plan = Plan::new(&model.rbm, args.method, &settings);
    let by_ladder = (args.method == Some(Method::Ladder)).then_some(&plan);
    let ladder = logz::ladder(&args.work, by_ladder, &inputs)?;
    let log_z = logz::answer(&model.rbm, &plan, &Inputs { ladder: ladder.as_ref(), ..inputs })?;
    let mut parts = Vec::new();
    for set in sets {
        let pseudo =
            if args.pseudo { Some(mean(&model.rbm.pseudo_log_likelihood(&set.rows)?)) } else { None };
        let likelihood = model.rbm.log_likelihood(&set.rows, &log_z)?;
        parts.push(Part {
            split: set.provenance.split,
            guarantee: likelihood.guarantee(),
            likelihood,
            pseudo_log_likelihood: pseudo,
            reconstruction_error: model.rbm.reconstruction_error(&set.rows)?,
            data: set.provenance,
        });
    }
    let json = json!({ "model": model_path.to_string_lossy(), "log_z": logz::to_json(&log_z), "likelihoods": parts });
    out.print(&json, || {
        let first = &parts[0].data;
        let exact = log_z.guarantee == Guarantee::Exact;
        let mut header = vec!["split", "rows", "log-likelihood (nats)", "std. error"];
        if !exact {
            header.extend(["of log Z", "95 % interval (log Z)"]);
        }
        header.push("reconstruction (MSE)");
        if args.pseudo {
            header.push("pseudo-log-likelihood");
        }
        let rows = parts.iter().map(|p| {
            let mut row = vec![
                p.split.to_string(),
                p.likelihood.n_rows.to_string(),
                format!("{:.4}", p.likelihood.mean),
                number_or(p.likelihood.std_err_rows, "–"),
            ];
            if !exact {
                row.push(number_or(p.likelihood.std_err_log_z, "unknown"));
                row.push(match p.likelihood.interval {
                    Some((low, high)) => format!("{low:.4} … {high:.4}"),
                    None => "–".into(),
                });
            }
            row.push(format!("{:.5}", p.reconstruction_error));
            row.extend(p.pseudo_log_likelihood.map(|x| format!("{x:.4}")));
            row
        });
        let estimated =
            if exact { String::new() } else { format!(" by {}, {} steps", log_z.method, log_z.n_states) };
        let value = log_z.with_error(log_z.value, if exact { 6 } else { 4 });
        let equals = if value.starts_with('≈') { "" } else { "= " };
        let mut text = format!(
            "{}, {}; log Z {equals}{value}{estimated} ({}, {})\n{}\n",
            first.name,
            first.preparation(),
            log_z.guarantee,
            human_seconds(log_z.seconds),
            table(&header, &[1, 2, 3, 4, 5, 6, 7], rows)
        );
        if !exact {
            let side = match log_z.guarantee.of_likelihood() {
                "none" => "too low or too high, without any guarantee",
                side => side,
            };
            text.push_str(&format!(
                "The error of log Z makes these likelihoods {side}; it is the same for all rows.\n"
            ));
        }
        if parts.iter().any(|p| p.likelihood.is_grey) {
            text.push_str(
                "The rows have grey values. Each likelihood is a lower bound on the expected log-likelihood of randomly \
                 binarised rows. Do not compare it with likelihoods of binary rows.\n",
            );
        }
        text.push_str(&logz::about_intervals([&log_z]));
        text.push_str(&logz::notes(std::slice::from_ref(&log_z)));
        text
    })
}

fn number_or(x: Option<f64>, none: &str) -> String {
    x.map_or(none.into(), |x| format!("{x:.4}"))
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}
