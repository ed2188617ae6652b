//! `mclv logz`: computes log Z of a model by one or more methods.

use super::{check_output, model_data, model_file, report};
use crate::cli::Global;
use crate::flags::{Preparation, TimeLimit, WorkArgs};
use crate::output::{Output, table};
use crate::watch::Watch;
use anyhow::{Context, anyhow, ensure};
use clap::{Args, ValueHint};
use mclv::data::{Dataset, Split};
use mclv::partition::{
    Budget, Effort, Guarantee, Inputs, Ladder, LogZ, Method, MethodSettings, Plan, UNSEEN_MODES,
    nominal_seconds,
};
use mclv::{ModelFile, Rbm, StoppingSet, human_seconds};
use mclv_report::page::{Block, Page, Section};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  mclv logz model.safetensors
  mclv logz model.safetensors --method mclv,ladder,ais,reverse-ais,bar,exact
  mclv logz big.safetensors --method mclv --target-se 0.01 --json
  mclv logz big.npz --method ais --data mnist --n-chains 500 --n-betas 20000
  mclv logz runs/a/model.safetensors --method bar --rungs runs/a/snapshots
  mclv logz big.safetensors --method exact --time-limit 20h

Methods:
  exact        Sums over all 2^n states of the smaller layer. 25 units take seconds, 32 units a few
               minutes; each further unit doubles the time.
  mclv         Las Vegas tours. Z is unbiased without a step budget (--max-steps none), and a lower
               bound on average with one. With --target-se, pilot tours choose the stopping set and
               the number of tours; the estimate uses only new tours.
  ladder       Tours up and down a ladder of models, from independent units to the model. They
               return at any size of the model. The ladder has a leg for each cluster of states, so
               that far modes are reached. Guarantees are those of mclv.
  ais          Annealed importance sampling. Z is unbiased; log Z is low on average.
  reverse-ais  Started at exact samples of the model, an upper bound on average. Started at data
               (grey values are cut at 0.5), no guarantee.
  bar          Bennett's acceptance ratio over tempered chains. No guarantee: if all ladders miss a
               mode, the value is wrong and its error bar does not show it.

The data provide stopping sets, base models and starts. They are read only if a method needs them.")]
pub(crate) struct LogzArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// One or more of exact, mclv, ladder, ais, reverse-ais, bar [default: exact if the time limit
    /// allows it, else mclv if there are data and tours return, else ladder if tours climb it, else
    /// ais]
    #[arg(long, value_delimiter = ',', value_name = "METHODS")]
    pub(crate) method: Vec<Method>,
    /// Data set or file [default: the data recorded in the model file, if any]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Part of the data: all, train, validation or test
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Write an HTML page with the estimates and their guarantees to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Overwrite an existing report
    #[arg(short, long, requires = "report")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) limit: TimeLimit,
}

/// Wanted standard error of log Z by tours.
const TARGET_SE: f64 = 0.01;

pub(crate) fn run(args: &LogzArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    if let Some(path) = &args.report {
        check_output(path, args.force, &["html", "htm"], ".html").context("--report")?;
    }
    let (model_path, model) = model_file::open(&args.model, out)?;
    let methods: Vec<Option<Method>> = match args.method.as_slice() {
        [] => vec![None],
        methods => methods.iter().copied().map(Some).collect(),
    };
    let settings = settings(&model.rbm, &args.work, args.limit.seconds(&methods), global, TARGET_SE);
    let set = stopping_set(&args.work)?;
    let plans: Vec<Plan<'_>> =
        methods.iter().map(|&method| Plan::new(&model.rbm, method, &settings)).collect();
    let data = data(args, (&model_path, &model), &plans, global)?;
    let rows = data.as_ref().map(|data| &data.rows);
    let rungs = rungs(&args.work)?;
    let inputs = Inputs { rows, stopping_set: set.as_ref(), rungs: &rungs, ..Inputs::default() };
    let by_ladder = plans.iter().find(|plan| plan.methods() == [Method::Ladder]);
    let ladder = ladder(&args.work, by_ladder, &inputs)?;
    let inputs = Inputs { ladder: ladder.as_ref(), ..inputs };
    let estimates: Vec<LogZ> =
        plans.iter().map(|plan| answer(&model.rbm, plan, &inputs)).collect::<anyhow::Result<_>>()?;
    let named: Vec<(String, &LogZ)> = estimates.iter().map(|z| (z.method.to_string(), z)).collect();
    let agreement = mclv_view::agreement(&named);
    if let Some(path) = &args.report {
        let subtitle = format!("{} visible × {} hidden units", model.rbm.n_visible(), model.rbm.n_hidden());
        let mut blocks = mclv_report::log_z::blocks(&named, agreement.as_ref());
        if estimates.len() > 1 {
            let figure = mclv_report::log_z::figure(&named);
            blocks.insert(1, Block::chart(figure, "95 % intervals, or ± 1.96 standard errors."));
        }
        let title = format!("log Z of {}", model_path.display());
        report::save(&Page::new(title, subtitle).with(Section::new("log Z", blocks)), path)?;
    }
    let json = json!({
        "model": model_path.to_string_lossy(),
        "data": data.as_ref().map(|data| &data.provenance),
        "seed": global.seed(),
        "report": args.report.as_ref().map(|path| path.to_string_lossy()),
        "estimates": estimates.iter().map(to_json).collect::<Vec<_>>(),
        "agreement": agreement,
        "verdict": agreement.as_ref().map(ToString::to_string),
    });
    out.print(&json, || {
        let header = ["method", "log Z (nats)", "std. error", "95 % interval", "guarantee", "steps", "time"];
        let mut text = table(&header, &[1, 2, 5, 6], estimates.iter().map(row));
        if let Some(agreement) = &agreement {
            text.push_str(&format!("\n{agreement}"));
        }
        text.push('\n');
        text.push_str(&about_intervals(&estimates));
        text.push_str(&notes(&estimates));
        text
    })
}

/// The settings of the methods for log Z.
pub(crate) fn settings(
    rbm: &Rbm,
    work: &WorkArgs,
    seconds: f64,
    global: &Global,
    target_se: f64,
) -> MethodSettings {
    let command = Budget::command(rbm.n_visible(), rbm.n_hidden());
    // A size that the user gave is kept.
    MethodSettings {
        effort: match work.n_tours {
            Some(n) => Effort::Tours(n),
            None => Effort::TargetSe(work.target_se.unwrap_or(target_se)),
        },
        samples_per_row: work.samples_per_row,
        visible: work.visible,
        budget: Budget {
            seconds,
            max_steps: work.max_steps,
            n_chains: work.n_chains,
            n_betas: work.n_betas.unwrap_or(command.n_betas),
            ..command
        },
        n_ladders: work.n_ladders,
        ladder_steps: work.ladder_steps.unwrap_or(MethodSettings::default().ladder_steps),
        ais_target_se: work.target_se.filter(|_| work.n_betas.is_none()),
        bar_target_se: work.target_se.filter(|_| work.ladder_steps.is_none()),
        exact_samples: work.exact_samples,
        seed: global.seed(),
    }
}

pub(crate) fn stopping_set(work: &WorkArgs) -> anyhow::Result<Option<StoppingSet>> {
    let set = work.stopping_set.as_ref().map(|path| StoppingSet::load(path));
    set.transpose().context("--stopping-set")
}

/// Reads the models that are rungs of BAR, those of a folder in the order of their names.
pub(crate) fn rungs(work: &WorkArgs) -> anyhow::Result<Vec<Rbm>> {
    let mut files = Vec::new();
    for path in &work.rungs {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = path.read_dir().with_context(|| format!("--rungs: cannot read {}", path.display()))?;
        let mut models = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        models.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
        ensure!(!models.is_empty(), "--rungs: {} has no .safetensors files", path.display());
        models.sort();
        files.extend(models);
    }
    let load = |path: PathBuf| Ok(ModelFile::load(path).context("--rungs")?.rbm);
    files.into_iter().map(load).collect()
}

/// Reads the ladder that the flags name, or makes and saves it. `plan` uses tours with a ladder.
pub(crate) fn ladder(
    work: &WorkArgs,
    plan: Option<&Plan<'_>>,
    inputs: &Inputs<'_>,
) -> anyhow::Result<Option<Ladder>> {
    if let Some(path) = &work.ladder {
        return Ladder::load(path).map(Some).context("--ladder");
    }
    let Some(path) = &work.save_ladder else { return Ok(None) };
    let plan = plan.context("--save-ladder needs --method ladder")?;
    let ladder = plan.make_ladder(inputs, &Watch::new("placing rungs", "steps"))?;
    ladder.save(path).context("--save-ladder")?;
    Ok(Some(ladder))
}

/// Work that is expected to take at least this number of seconds is announced.
const ANNOUNCED: f64 = 10.0;

/// The methods of a plan, and the time that they take.
fn expectation(plan: &Plan<'_>, seconds: f64) -> String {
    let methods: Vec<String> = plan.methods().iter().map(ToString::to_string).collect();
    let time = match plan.methods() {
        [Method::Exact, ..] => return format!("enumeration, about {}", human_seconds(seconds)),
        _ if seconds.is_infinite() => "without a limit of time".to_owned(),
        _ => format!("at most about {} on one core", human_seconds(seconds)),
    };
    format!("by {}, {time}", methods.join(", else "))
}

/// Runs a plan for this model, with a progress bar.
pub(crate) fn answer(rbm: &Rbm, plan: &Plan<'_>, inputs: &Inputs<'_>) -> anyhow::Result<LogZ> {
    // A plan with several methods decides later which of them to use.
    let method = if let [method] = plan.methods() { Some(*method) } else { None };
    let (what, unit) = match method {
        None => ("log Z", "steps"),
        Some(Method::Exact) => ("enumerating", "states"),
        Some(Method::Mclv) => ("running tours", "tours"),
        Some(_) => ("annealing", "steps"),
    };
    let watch = Watch::new(what, unit);
    // Tours of a small model end long before their limit.
    let seconds = plan.nominal_seconds();
    if seconds.min(nominal_seconds(rbm.n_visible(), rbm.n_hidden())) >= ANNOUNCED {
        watch.announce(&format!("log Z: {}", expectation(plan, seconds)));
    }
    let cured = plan.run(inputs, &watch).map_err(|e| match e {
        mclv::Error::TooSlow { limit, .. } if limit.is_finite() => {
            anyhow!("{e} with --time-limit TIME (or none)")
        }
        mclv::Error::Empty { .. } if inputs.rows.is_none() && method == Some(Method::ReverseAis) => {
            anyhow!("{e}: give --data DATA, or --exact-samples")
        }
        e => e.into(),
    });
    match method {
        Some(method) if method != Method::Exact => cured.with_context(|| format!("log Z by {method}")),
        _ => cured.context("log Z"),
    }
}

/// The data, if a plan needs them and the model or the user names some.
fn data(
    args: &LogzArgs,
    (path, model): (&Path, &ModelFile),
    plans: &[Plan<'_>],
    global: &Global,
) -> anyhow::Result<Option<Dataset>> {
    let is_useful = plans.iter().any(Plan::needs_data);
    let is_named = args.data.is_some() || model.provenance.settings.get("data").is_some();
    if args.data.is_none() && !(is_useful && is_named) {
        return Ok(None);
    }
    let loaded = model_data::load((path, model), args.data.as_deref(), &args.preparation, args.split, global);
    loaded.map(Some)
}

/// The estimate with its guarantee in words.
pub(crate) fn to_json(log_z: &LogZ) -> Value {
    let mut value = with_texts(log_z);
    value["guarantee_of_z"] = log_z.guarantee.of_z().into();
    value["guarantee_of_log_z"] = log_z.guarantee.of_log_z().into();
    value
}

/// The estimate as JSON, where each note also has its text.
pub(crate) fn with_texts(log_z: &LogZ) -> Value {
    let mut value = json!(log_z);
    let notes = value.get_mut("notes").and_then(Value::as_array_mut).into_iter().flatten();
    for (json, note) in notes.zip(&log_z.notes) {
        if let Some(object) = json.as_object_mut() {
            object.insert("text".into(), note.to_string().into());
        }
    }
    value
}

fn row(log_z: &LogZ) -> Vec<String> {
    let exact = log_z.guarantee == Guarantee::Exact;
    vec![
        log_z.method.to_string(),
        format!("{:.*}", if exact { 6 } else { 4 }, log_z.value),
        match log_z.std_err {
            _ if exact => "0".into(),
            Some(se) => format!("{se:.4}"),
            None => "unknown".into(),
        },
        match log_z.interval {
            Some((low, high)) => format!("{low:.4} … {high:.4}"),
            None => "–".into(),
        },
        log_z.guarantee.to_string(),
        if exact { format!("2^{} states", log_z.n_states.log2()) } else { grouped(log_z.n_states) },
        human_seconds(log_z.seconds),
    ]
}

/// A line on the limit of intervals, if there is an interval.
pub(crate) fn about_intervals<'a>(estimates: impl IntoIterator<Item = &'a LogZ>) -> String {
    if estimates.into_iter().any(|z| z.interval.is_some()) {
        format!("{UNSEEN_MODES}\n")
    } else {
        String::new()
    }
}

/// The notes of all estimates, each with the name of its method.
pub(crate) fn notes(estimates: &[LogZ]) -> String {
    let of = |z: &LogZ| -> String { z.notes.iter().map(|note| format!("{}: {note}\n", z.method)).collect() };
    estimates.iter().map(of).collect()
}

/// `1,234,567`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let n = digits.len();
    let comma = |(k, c): (usize, char)| {
        let before = if k > 0 && (n - k).is_multiple_of(3) { "," } else { "" };
        format!("{before}{c}")
    };
    digits.chars().enumerate().map(comma).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_work_is_announced_with_its_methods_and_its_time() {
        use mclv::partition::{Method, MethodSettings, Plan};
        let of = |n_hidden: usize, method| {
            let rbm =
                mclv::Rbm::new(100, n_hidden, &vec![0.0; 100 * n_hidden], &[0.0; 100], &vec![0.0; n_hidden]);
            let rbm = rbm.unwrap();
            let plan = Plan::new(&rbm, method, &MethodSettings::default());
            super::expectation(&plan, plan.nominal_seconds())
        };
        assert_eq!(of(90, None), "by mclv, else ladder, else ais, at most about 60.0 s on one core");
        assert_eq!(of(90, Some(Method::Mclv)), "by mclv, at most about 60.0 s on one core");
        assert!(of(20, None).starts_with("enumeration, about "));
    }

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(super::grouped(number), text);
        }
    }
}
