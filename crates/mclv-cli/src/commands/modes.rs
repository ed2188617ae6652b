//! `mclv modes`: shows which share of a model's mass is near which rows, beside the share of the
//! data.

use super::{model_data, model_file};
use crate::cli::Global;
use crate::flags::{Preparation, TimeLimit};
use crate::output::{Output, table, wrapped};
use crate::watch::Watch;
use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use mclv::data::Split;
use mclv::human_seconds;
use mclv::modes::{
    FALSE_ALARMS, ModeKind, ModeMap, ModeSettings, ModeShare, ModeShares, ShareGuarantee, mode_shares,
};
use mclv::partition::{Budget, Effort, Inputs, Method, MethodSettings, StepLimit};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv modes model.safetensors                         of the data recorded in the model file
  mclv modes model.safetensors --by cluster --n-clusters 20
  mclv modes model.safetensors --data mnist --split test
  mclv modes big.safetensors --method ladder --max-steps 20000000 --json

Each visible state belongs to the mode of its nearest prototype: a distinct row, a centre of a
cluster, or one of several centres of a class. The share of the data is the share of the rows in a
mode, the share of the model its probability. A mode is lost if the model's share is below a tenth
of the data's share, and over-weighted if it is above three times the data's share. Both are said
only if errors cannot explain them: one false statement in a hundred models at these limits, over
all modes together.

Methods:
  exact   Sums over all visible states if there are few, else counts independent exact samples.
  mclv    Counts states along tours from the hidden states of the data.
  ladder  Counts states along tours up and down a ladder of models. They return at any size.")]
pub(crate) struct ModesArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Data set or file [default: the data recorded in the model file]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Part of the data: all, train, validation or test
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// The modes [default: pattern if there are at most 64 distinct rows, else class if the data
    /// have labels, else cluster]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<ModeKind>,
    /// Number of clusters, from 2 to 64
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) n_clusters: usize,
    /// exact, mclv or ladder [default: exact if it takes only seconds, else mclv if tours return,
    /// else ladder]
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    /// Wanted standard error of a share; pilot tours choose the number of tours that reaches it
    #[arg(long, value_name = "SHARE", default_value_t = 0.005, conflicts_with = "n_tours")]
    pub(crate) target_se: f64,
    /// Number of tours or of exact samples, instead of a wanted standard error
    #[arg(long, alias = "tours", value_name = "N")]
    pub(crate) n_tours: Option<usize>,
    /// mclv, ladder: step budget of all tours together, including pilots: a number, `minute` (the
    /// steps of about one minute on one core), or `none`
    #[arg(long, value_name = "N", default_value_t = StepLimit::Minute)]
    pub(crate) max_steps: StepLimit,
    #[command(flatten)]
    pub(crate) limit: TimeLimit,
}

pub(crate) fn run(args: &ModesArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let (model_path, model) = model_file::open(&args.model, out)?;
    let named = (model_path.as_path(), &model);
    let data = model_data::load(named, args.data.as_deref(), &args.preparation, args.split, global)?;
    let settings = ModeSettings { by: args.by, n_clusters: args.n_clusters, seed: global.seed() };
    let map = ModeMap::new(&data.rows, data.labels.as_ref(), &settings)?;
    let budget = Budget {
        seconds: args.limit.seconds(&[args.method]),
        max_steps: args.max_steps,
        ..Budget::command(model.rbm.n_visible(), model.rbm.n_hidden())
    };
    let settings = MethodSettings {
        effort: args.n_tours.map_or(Effort::TargetSe(args.target_se), Effort::Tours),
        budget,
        seed: global.seed(),
        ..MethodSettings::default()
    };
    let inputs = Inputs { rows: Some(&data.rows), ..Inputs::default() };
    let watch = Watch::new("mode shares", "steps");
    let shares =
        mode_shares(&model.rbm, &map, &inputs, args.method, &settings, &watch).map_err(|e| match e {
            mclv::Error::TooSlow { limit, .. } if limit.is_finite() => {
                anyhow!("{e} with --time-limit TIME (or none), or choose --method mclv or ladder")
            }
            e => e.into(),
        });
    drop(watch);
    let shares = shares.context("mode shares")?;
    let json = to_json(&shares, json!(model_path.to_string_lossy()), json!(data.provenance), global.seed());
    out.print(&json, || {
        let rows = format!("{}, {}: {} rows", data.name, data.provenance.preparation(), shares.n_rows);
        text(&shares, &rows)
    })
}

/// The shares as JSON, where each note also has its text.
fn to_json(shares: &ModeShares, model: Value, data: Value, seed: u64) -> Value {
    let mut value = json!(shares);
    value["notes"] = shares.notes.iter().map(|note| note.to_string()).collect();
    let object = value.as_object_mut().expect("shares are an object");
    object.insert("model".into(), model);
    object.insert("data".into(), data);
    object.insert("seed".into(), seed.into());
    object.insert("false_alarms".into(), FALSE_ALARMS.into());
    object.insert("verdict".into(), shares.verdict().into());
    value
}

fn text(shares: &ModeShares, rows: &str) -> String {
    let what = shares.by.word();
    let mut text = format!("{rows}; {}, {}\n", how(shares), human_seconds(shares.seconds));
    let header = [what, "rows", "data", "model", "std. error", "95 % interval", "model / data", "standing"];
    let far = ModeShare { name: "(far from all)".into(), ..shares.far.clone() };
    let listed = shares.modes.iter().map(|mode| row(mode, mode.standing.word()));
    text.push_str(&table(&header, &[1, 2, 3, 4, 6], listed.chain([row(&far, "")])));
    text.push('\n');
    if let Some(agreement) = shares.agreement {
        text.push_str(&format!("{:.1} % of the rows are nearest to their own class.\n", 100.0 * agreement));
    }
    let by_chance = shares.total_variation_by_chance.map(|x| format!(" (errors alone would give {x:.4})"));
    text.push_str(&format!(
        "Total variation: {:.4}{}\n",
        shares.total_variation,
        by_chance.unwrap_or_default()
    ));
    for note in &shares.notes {
        text.push_str(&format!("{}: {note}\n", shares.method));
    }
    text + &wrapped(&shares.verdict())
}

/// The method, and its guarantee if the method does not say it.
fn how(shares: &ModeShares) -> String {
    match shares.guarantee {
        ShareGuarantee::Exact => "exact".into(),
        ShareGuarantee::Unbiased => "exact samples (unbiased)".into(),
        guarantee => format!("{} ({})", shares.method, guarantee.in_words()),
    }
}

fn row(mode: &ModeShare, standing: &str) -> Vec<String> {
    let percent = |x: f64| format!("{:.2} %", 100.0 * x);
    vec![
        mode.name.clone(),
        mode.n_rows.to_string(),
        percent(mode.data),
        if mode.model.is_nan() { "unknown".into() } else { percent(mode.model) },
        match mode.std_err {
            Some(0.0) => "0".into(),
            Some(std_err) => percent(std_err),
            None => "unknown".into(),
        },
        match mode.interval {
            Some((low, high)) if low < high => format!("{:.2} … {:.2} %", 100.0 * low, 100.0 * high),
            _ => "–".into(),
        },
        mode.ratio.filter(|ratio| !ratio.is_nan()).map_or("–".into(), |ratio| format!("{ratio:.2}")),
        standing.into(),
    ]
}
