//! `mclv lab`: measures bias, variance and cost of gradient estimators at fixed parameters.

use super::model_data::{self, Wanted};
use super::{check_output, model_file};
use crate::cli::Global;
use crate::flags::Preparation;
use crate::output::{Output, table, wrapped};
use crate::watch::Watch;
use anyhow::Context;
use clap::{Args, ValueHint};
use mclv::data::Split;
use mclv::lab::{FALSE_ALARMS, Lab, LabEstimator, LabSettings, Unbiasedness, lab};
use mclv::train::RunFolder;
use mclv::{ModelFile, human_seconds, write_atomically};
use mclv_report::figure::{Drawing, save};
use mclv_report::lab::{Measured, errors_by_work, through_training};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  mclv lab model.safetensors --estimators cd:1,cd:10,pcd:1,ucd
  mclv lab runs/digits-1 --plot bias.svg               every snapshot of a run
  mclv lab model.safetensors --estimators lvs:drop:dynamic,lvs:keep:1,lvs:carry:3 --json
  mclv lab model.safetensors --estimators pcd:1:n-chains=50,cd:1:visible=mean-field

An estimator is NAME[:POLICY][:K][:SETTING=VALUE…]:
  cd:10               contrastive divergence with 10 Gibbs steps
  pcd:1               persistent chains, 1 step per update
  lvs:POLICY:K        tours: drop, keep or carry those that have not returned after K steps
  lvs:drop:dynamic    tours that run until they return
  tempered:1          parallel tempering
  ucd:1               coupled chains (max-meeting=N: pairs are cut after N steps)
  exact               enumeration, up to 20 units in the smaller layer

Only the model's part of the gradient is compared: all estimators get the same minibatch of rows,
whose part cancels. Each estimate is independent of the others. Those of pcd, tempered and
lvs:carry are the last updates of separate runs at fixed parameters, after --burn-in updates from
rows. A run folder with snapshots stands for all of them, in order of epochs.")]
pub(crate) struct LabArgs {
    /// Model file, checkpoint, or run folder (its snapshots, or its best model)
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) model: PathBuf,
    /// Data set or file [default: the data recorded in the model file]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Part of the data: all, train, validation or test
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Estimators to compare, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "cd:1,cd:10,pcd:1,lvs:drop:1,lvs:keep:1,lvs:carry:3,tempered,ucd"
    )]
    pub(crate) estimators: Vec<String>,
    /// Number of independent estimates of each estimator, at least 8
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) replicates: usize,
    /// Number of rows in the minibatch
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) batch_size: usize,
    /// Updates of persistent chains before the one that counts
    #[arg(long, value_name = "UPDATES", default_value_t = 100)]
    pub(crate) burn_in: usize,
    /// Samples of the reference, if the model is too large for the exact gradient
    #[arg(long, value_name = "N", default_value_t = 16_000)]
    pub(crate) reference_samples: usize,
    /// Draw a figure (.svg, .png or .pdf): the error against the work, or, for snapshots, bias and
    /// spread through the training
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,
    /// Write the table as .csv
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) csv: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// A model and its place in a training, if it is a snapshot.
struct Model {
    epoch: Option<usize>,
    path: PathBuf,
    file: ModelFile,
}

/// The models that `path` stands for.
fn models(path: &Path, out: &Output) -> anyhow::Result<Vec<Model>> {
    let run = RunFolder::new(path);
    let epochs = if path.is_dir() { run.snapshot_epochs() } else { Vec::new() };
    if epochs.is_empty() {
        let (path, file) = model_file::open(path, out)?;
        return Ok(vec![Model { epoch: None, path, file }]);
    }
    let open = |epoch: usize| {
        let path = run.snapshot(epoch);
        Ok(Model { epoch: Some(epoch), file: ModelFile::load(&path)?, path })
    };
    epochs.into_iter().map(open).collect()
}

pub(crate) fn run(args: &LabArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    if let Some(path) = &args.plot {
        check_output(path, args.force, &["svg", "png", "pdf"], ".svg, .png and .pdf").context("--plot")?;
    }
    if let Some(path) = &args.csv {
        check_output(path, args.force, &["csv"], ".csv").context("--csv")?;
    }
    let models = models(&args.model, out)?;
    let settings = LabSettings {
        estimators: args.estimators.clone(),
        n_replicates: args.replicates,
        batch_size: args.batch_size,
        burn_in: args.burn_in,
        n_reference: args.reference_samples,
        seed: global.seed(),
    };
    let first = (models[0].path.as_path(), &models[0].file);
    let wanted = Wanted::Each(std::slice::from_ref(&args.split));
    let data =
        model_data::load_parts(first, args.data.as_deref(), &args.preparation, wanted, global)?.remove(0);
    let mut labs = Vec::new();
    for model in &models {
        let what = match model.epoch {
            Some(epoch) => format!("gradients of epoch {epoch}"),
            None => "gradients".into(),
        };
        let watch = Watch::new(&what, "updates");
        labs.push(lab(&model.file.rbm, &data.rows, &settings, &watch)?);
    }
    let epochs: Vec<Option<usize>> = models.iter().map(|model| model.epoch).collect();
    if let Some(path) = &args.csv {
        write_atomically(path, csv(&epochs, &labs).as_bytes())?;
    }
    if let Some(path) = &args.plot {
        save(figure(&epochs, &labs).as_ref(), path)?;
    }
    let written = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    let of_models = models.iter().zip(&labs).map(|(model, lab)| of_model(model, lab));
    let json = json!({ "data": data.provenance, "seed": global.seed(), "false_alarms": FALSE_ALARMS,
        "models": of_models.collect::<Vec<_>>(), "plot": written(&args.plot), "csv": written(&args.csv) });
    out.print(&json, || {
        let rows = format!("{}, {}", data.name, data.provenance.preparation());
        let texts: Vec<String> =
            models.iter().zip(&labs).map(|(model, lab)| text(model, lab, &rows)).collect();
        texts.join("\n\n")
    })
}

/// A model and its results as JSON, where notes also have their texts.
fn of_model(model: &Model, lab: &Lab) -> Value {
    let mut value = json!(lab);
    let work = Work::of(lab);
    for (json, estimator) in value["estimators"].as_array_mut().into_iter().flatten().zip(&lab.estimators) {
        json["notes"] = estimator.notes.iter().map(ToString::to_string).collect();
        json["is_biased"] = estimator.bias.map(|bias| bias.is_biased()).into();
        json["per_step"] = per(estimator, estimator.n_steps);
        json["per_second"] = per(estimator, estimator.seconds);
        json["rmse_at_equal_steps"] = finite(estimator.mse_at_steps(work.steps).sqrt());
        json["rmse_at_equal_seconds"] = finite(estimator.mse_at_seconds(work.seconds).sqrt());
    }
    if let Some(doubt) = lab.reference.doubt {
        value["reference"]["doubt"] = doubt.to_string().into();
    }
    value["equal_steps"] = finite(work.steps);
    value["equal_seconds"] = finite(work.seconds);
    value["epoch"] = model.epoch.into();
    value["model"] = model.path.to_string_lossy().into();
    value
}

/// Variance and mean squared error times work: what an estimate of one step, or one second, would
/// have if errors were all variance.
fn per(estimator: &LabEstimator, work: f64) -> Value {
    match work > 0.0 {
        true => json!({ "variance": estimator.variance.value * work, "mse": estimator.mse.value * work }),
        false => Value::Null,
    }
}

fn finite(x: f64) -> Value {
    if x.is_finite() { x.into() } else { Value::Null }
}

/// The work that all estimators are given for a comparison: that of the one with the largest.
struct Work {
    steps: f64,
    seconds: f64,
}

impl Work {
    fn of(lab: &Lab) -> Self {
        let most = |of: fn(&LabEstimator) -> f64| lab.estimators.iter().map(of).fold(0.0, f64::max);
        Self { steps: most(|e| e.n_steps), seconds: most(|e| e.seconds) }
    }
}

/// A bias with its error, or the limit that it is below.
fn bias_text(bias: Option<Unbiasedness>) -> String {
    match bias.map(|bias| (bias.norm(), bias.upper_limit())) {
        None => "unknown".into(),
        Some((Some(norm), _)) => format!("{} ± {}", short(norm.value), short(norm.std_err)),
        Some((None, limit)) => format!("< {}", short(limit)),
    }
}

/// A positive number with three digits.
fn short(x: f64) -> String {
    if !x.is_finite() {
        "–".into()
    } else if x == 0.0 {
        "0".into()
    } else if !(0.001..1e5).contains(&x) {
        format!("{x:.1e}")
    } else {
        let digits = (2 - x.log10().floor() as i32).clamp(0, 5) as usize;
        format!("{x:.digits$}")
    }
}

fn text(model: &Model, lab: &Lab, rows: &str) -> String {
    let work = Work::of(lab);
    let place = model.epoch.map(|epoch| format!("epoch {epoch}: ")).unwrap_or_default();
    let reference = &lab.reference;
    let against = match reference.method {
        None => "the exact gradient".to_owned(),
        Some(method) => {
            format!("{} samples ({method}), standard error {}", reference.n_samples, short(reference.std_err))
        }
    };
    let mut text = format!(
        "{place}{rows}; minibatch of {} rows, {} estimates of each, against {against}\n\
         norm of the gradient: {}; {}\n",
        lab.n_rows,
        lab.n_replicates,
        short(lab.gradient_norm),
        human_seconds(lab.seconds)
    );
    let at_steps = format!("rmse at {} steps", work.steps.round());
    let at_seconds = format!("rmse at {} ms", short(1e3 * work.seconds));
    let header = ["estimator", "bias", "spread", "rmse", "cosine", "steps", "ms", &at_steps, &at_seconds, ""];
    let row = |e: &LabEstimator| {
        vec![
            e.estimator.clone(),
            bias_text(e.bias),
            short(e.variance.value.max(0.0).sqrt()),
            short(e.mse.value.max(0.0).sqrt()),
            format!("{:.3}", e.cosine.value),
            short(e.n_steps),
            short(1e3 * e.seconds),
            short(e.mse_at_steps(work.steps).sqrt()),
            short(e.mse_at_seconds(work.seconds).sqrt()),
            match e.bias {
                Some(bias) if bias.is_biased() => "biased".into(),
                Some(_) => "no bias seen".into(),
                None => String::new(),
            },
        ]
    };
    text.push_str(&table(&header, &[2, 3, 4, 5, 6, 7, 8], lab.estimators.iter().map(row)));
    text.push('\n');
    for estimator in &lab.estimators {
        if let Some(linear) = estimator.linear {
            let holds = if linear.is_biased() { "does not hold" } else { "holds, as far as can be seen" };
            text.push_str(&format!(
                "{}: the linear identity of tours {holds} (error {} per step)\n",
                estimator.estimator,
                bias_text(Some(linear))
            ));
        }
        for note in &estimator.notes {
            text.push_str(&format!("{}: {note}\n", estimator.estimator));
        }
    }
    if let Some(doubt) = reference.doubt {
        text.push_str(&wrapped(&format!("warning: the reference is in doubt: {doubt}")));
        text.push('\n');
    }
    text
}

/// The table as CSV, a line for each model and estimator.
fn csv(epochs: &[Option<usize>], labs: &[Lab]) -> String {
    let mut csv = String::from(
        "epoch,estimator,gradient_norm,bias_squared,bias_squared_std_err,p,variance,variance_std_err,mse,\
         mse_std_err,cosine,cosine_std_err,n_steps,seconds\n",
    );
    for (epoch, lab) in epochs.iter().zip(labs) {
        for e in &lab.estimators {
            let epoch = epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
            let bias = e.bias.map(|bias| [bias.squared.value, bias.squared.std_err, bias.p]);
            let of = |m: mclv::lab::Measured| [m.value, m.std_err];
            let numbers = [lab.gradient_norm].into_iter().chain(bias.unwrap_or([f64::NAN; 3]));
            let numbers = numbers.chain(of(e.variance)).chain(of(e.mse)).chain(of(e.cosine));
            let numbers = numbers.chain([e.n_steps, e.seconds]).map(|x| x.to_string()).collect::<Vec<_>>();
            csv.push_str(&format!("{epoch},{},{}\n", e.estimator, numbers.join(",")));
        }
    }
    csv
}

/// The error against the work for one model, or bias and spread through a training.
fn figure(epochs: &[Option<usize>], labs: &[Lab]) -> Box<dyn Drawing> {
    let measured = |e: &LabEstimator| Measured {
        name: e.estimator.clone(),
        bias: e.bias.and_then(|bias| bias.norm()).map(|norm| (norm.value, norm.std_err)),
        limit: e.bias.map_or(f64::NAN, |bias| bias.upper_limit()),
        spread: e.variance.value.max(0.0).sqrt(),
        steps: e.n_steps,
    };
    match (epochs, labs) {
        ([_], [lab]) => Box::new(errors_by_work(
            &lab.estimators.iter().map(measured).collect::<Vec<_>>(),
            lab.gradient_norm,
        )),
        _ => {
            let of = |(epoch, lab): (&Option<usize>, &Lab)| {
                let all = lab.estimators.iter().map(measured).collect();
                (epoch.unwrap_or(0) as f64, lab.gradient_norm, all)
            };
            Box::new(through_training(&epochs.iter().zip(labs).map(of).collect::<Vec<_>>()))
        }
    }
}
