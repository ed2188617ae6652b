//! `mclv sample`: draws samples from a model, freely or given some units.

use super::{check_output, model_data, model_file};
use crate::cli::Global;
use crate::flags::{PictureShape, Preparation};
use crate::half_blocks;
use crate::output::{Output, facts, tell};
use crate::rows_table::rows_table;
use crate::terminal_picture;
use crate::watch::Watch;
use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use mclv::bits::BitRows;
use mclv::data::{Binarize, Dataset, Rows, Split};
use mclv::mixing::{Doubt, Mixing};
use mclv::rng::{Purpose, stream};
use mclv::sample::{Given, Known, Ladders, Ranges, SampleMethod, SampleSettings, Samples, Start, sample};
use mclv::{ModelFile, Rbm, human_seconds, picture, write_atomically};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv sample model.safetensors                          shows 12 samples in the terminal
  mclv sample model.safetensors -n 100 -o samples.png    a grid of 10 × 10 pictures
  mclv sample model.safetensors -n 10000 -o samples.npy  a matrix of bytes 0 and 1, a row per sample
  mclv sample model.safetensors -o samples.csv           with the column names of the training rows
  mclv sample model.safetensors --method tempering -o samples.npy
  mclv sample model.safetensors --start digits --split train --burn-in 10 --means -o near.npz
  mclv sample model.safetensors --given digits --split test --known rows:0-3 -o filled.png

Methods:
  exact      Independent samples, by enumeration of the smaller layer. No chain, no burn-in.
  gibbs      Each sample is the last state of its own chain, after --burn-in steps of block Gibbs
             sampling. The first 16 chains are compared with 16 more chains that start in random
             states.
  tempering  16 ladders of chains, from independent units to the model, exchange their states.
             Samples are states of the top rungs, two autocorrelation times apart. The ladders are
             compared with each other; half of them start in random states.

Without --method, samples are exact if this takes at most about two seconds longer than Gibbs
chains. Otherwise Gibbs chains are tried, and tempering replaces them if they do not mix. With
--start, --given or --burn-in, the method is gibbs. If chains differ (R-hat of 1.1 or more), the
samples still depend on where the chains started, and a warning says so.

With --given, the --known units keep the values of the given rows in every step, and the other units
are drawn from their distribution given these values. Only chains with the same known values are
compared.")]
pub(crate) struct SampleArgs {
    /// Model file, checkpoint, or the folder of a run or sweep (its best model)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Number of samples [default: 64; 12 in the terminal; one per given row]
    #[arg(short, long, value_name = "N")]
    pub(crate) n_samples: Option<usize>,
    /// How to draw [default: exact if quick, else gibbs if its chains mix, else tempering; gibbs with
    /// --start, --given or --burn-in]
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<SampleMethod>,
    /// Steps of each chain, or of each ladder of chains, before its first sample [default: 1000;
    /// tempering makes up to 8000 if 1000 are too few]
    #[arg(long, value_name = "STEPS")]
    pub(crate) burn_in: Option<u32>,
    /// Start of Gibbs chains: `bias` (independent units with the visible biases), or random rows of
    /// this data set
    #[arg(long, default_value = "bias", value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) start: String,
    /// Rows to complete: sample k keeps the known units of row k; grey values are cut at 0.5 unless
    /// --binarize is given
    #[arg(long, value_name = "DATA", requires = "known", value_hint = ValueHint::FilePath)]
    pub(crate) given: Option<String>,
    /// Known units of the given rows: rows:0-13 or columns:0-13 (of pictures), units:0-99,200, or a
    /// .npy file of 0 and 1
    #[arg(long, value_name = "MASK", requires = "given")]
    pub(crate) known: Option<Known>,
    /// Part of the data of --start and --given: all, train, validation or test
    #[arg(long, default_value = "all", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Rows of --given to complete, counted from 0, such as 0-9,20 [default: the first rows]
    #[arg(long, value_name = "ROWS", requires = "given")]
    pub(crate) rows: Option<Ranges>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    #[command(flatten)]
    pub(crate) picture: PictureShape,
    /// Show or save the probabilities E[v|h] of the last step instead of the samples (.npz: both)
    #[arg(long)]
    pub(crate) means: bool,
    /// Pictures per line of a .png [default: a square grid]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) columns: Option<u16>,
    /// File to write: .npy, .npz, .csv (with the names of the columns) or .png [default: show
    /// pictures, or a table, in the terminal]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Default number of samples for a file, and for the terminal.
const IN_FILE: usize = 64;
const IN_TERMINAL: usize = 12;

/// Known values must be 0 or 1, so grey values are cut.
const GIVEN_BINARIZE: Binarize = Binarize::Threshold(0.5);

pub(crate) fn run(args: &SampleArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    let format = match &args.output {
        Some(path) => {
            Some(check_output(path, args.force, &["npy", "npz", "csv", "png"], ".npy, .npz, .csv and .png")?)
        }
        None => None,
    };
    let (model_path, model) = model_file::open(&args.model, out)?;
    let load = |source: &str, preparation: &Preparation| {
        model_data::load((&model_path, &model), Some(source), preparation, args.split, global)
    };
    let start = match args.start.as_str() {
        "bias" => None,
        source => Some(load(source, &args.preparation).context("--start")?),
    };
    let given = match &args.given {
        Some(source) => {
            let binarize = Some(args.preparation.binarize.unwrap_or(GIVEN_BINARIZE));
            let preparation = Preparation { binarize, ..args.preparation.clone() };
            Some(load(source, &preparation).context("--given")?)
        }
        None => None,
    };
    let n_visible = model.rbm.n_visible();
    let are_spins = model_data::recorded(&model).is_some_and(|spec| spec.spins);
    let shape = model_data::image_shape(args.picture.shape, &model, [&given, &start].into_iter().flatten())?;
    // Check before the long work that the shape is known.
    if format.as_deref() == Some("png") && shape.is_none() {
        bail!(
            "the height and width of pictures with {n_visible} visible units are not known for {}; give --shape HxW, \
             or write a table with -o \
             FILE.csv",
            model_path.display()
        );
    }

    let n_samples = args.n_samples.unwrap_or(if args.output.is_some() { IN_FILE } else { IN_TERMINAL });
    let known = match (&given, &args.known) {
        (Some(set), Some(known)) => Some(condition(args, set, known, n_samples, shape)?),
        _ => None,
    };
    let n_given = known.as_ref().map(|(_, n_rows)| *n_rows);
    let settings = SampleSettings {
        n_samples: args.n_samples.or(n_given).unwrap_or(n_samples),
        method: args.method,
        burn_in: args.burn_in,
        means: args.means,
        seed: global.seed(),
    };
    let shuffled = start.as_ref().map(|set| shuffle(&set.rows, global.seed()));
    let begun = Instant::now();
    let samples = sample(
        &model.rbm,
        &settings,
        shuffled.as_ref().map_or(Start::Bias, Start::Rows),
        known.as_ref().map(|(given, _)| given),
        &Watch::new("sampling", "steps"),
    )?;
    let seconds = begun.elapsed().as_secs_f64();

    if let (Some(path), Some(format)) = (&args.output, format.as_deref()) {
        let bytes = match (format, shape) {
            ("npy", _) if are_spins => samples.spins_to_npy(),
            ("npz", _) if are_spins => samples.spins_to_npz(),
            ("npy", _) => samples.to_npy(),
            ("npz", _) => samples.to_npz(),
            ("csv", _) => samples.to_csv(column_names(&model), are_spins),
            (_, shape) => {
                let shape = shape.context("no shape")?;
                picture::grid(&samples.rows(), shape, columns(args, settings.n_samples))?
            }
        };
        write_atomically(path, &bytes)?;
    }
    let is_free = start.is_none() && given.is_none();
    let warning = samples.doubt().map(|doubt| format!("{doubt}; {}", cure(&doubt, samples.method, is_free)));
    if let Some(warning) = &warning {
        tell(&format!("warning: {warning}"));
    }
    let n_known = known.as_ref().map(|(given, _)| given.n_known());
    let mut json = json!({ "model": model_path.to_string_lossy(),
        "output": args.output.as_ref().map(|p| p.to_string_lossy()),
        "n_samples": settings.n_samples, "n_visible": n_visible, "method": samples.method,
        "burn_in": samples.burn_in, "ladders": samples.ladders, "gibbs": samples.gibbs,
        "seed": settings.seed, "means": settings.means, "image_shape": shape,
        "start": start.as_ref().map(|set| &set.provenance),
        "given": given.as_ref().map(|set| &set.provenance),
        "known": args.known.as_ref().map(ToString::to_string), "n_known": n_known,
        "mixing": samples.mixing, "warning": warning, "mean": fraction_on(&samples.v), "seconds": seconds });
    if are_spins {
        json["spins"] = json!(true);
    }
    if args.output.is_none() {
        json["samples"] = (0..settings.n_samples).map(|r| digits(&samples.v, r)).collect();
    }
    out.print(&json, || {
        let from = match &start {
            Some(set) => format!("rows of {} ({})", set.name, set.provenance.split),
            None => "the visible biases".into(),
        };
        let what = if args.means { "means" } else { "samples" };
        let mut lines = vec![
            (
                what,
                format!(
                    "{} of {n_visible} units, {:.4} on average",
                    settings.n_samples,
                    fraction_on(&samples.v)
                ),
            ),
            ("method", format!("{}, {}", how(&samples, &model.rbm, &from), human_seconds(seconds))),
        ];
        if let Some(gibbs) = &samples.gibbs {
            lines.push(("chosen", instead_of(gibbs)));
        }
        if let Some(ladders) = &samples.ladders {
            lines.push(("ladders", describe(ladders)));
        }
        if samples.method != SampleMethod::Exact {
            lines.push(("mixing", mixing(&samples)));
        }
        if let (Some(set), Some(known), Some(n)) = (&given, &args.known, n_known) {
            lines.push(("given", format!("{known} ({n} units) of {} ({})", set.name, set.provenance.split)));
        }
        if let Some(path) = &args.output {
            let is_array = format.as_deref() != Some("png");
            let values = if are_spins && is_array { " (-1 and 1, like the rows of the model)" } else { "" };
            lines.insert(0, ("wrote", format!("{}{values}", path.display())));
        }
        let mut text = facts(&lines);
        if let (None, None) = (&args.output, shape) {
            let rows: Vec<Vec<f32>> = match are_spins {
                true => {
                    pictures(&samples).iter().map(|row| row.iter().map(|x| 2.0 * x - 1.0).collect()).collect()
                }
                false => pictures(&samples),
            };
            text.push_str(&format!("\n{}", rows_table(&rows, column_names(&model), None)));
        }
        if let (None, Some(shape)) = (&args.output, shape) {
            let grid = picture::grid(&samples.rows(), shape, columns(args, settings.n_samples)).ok();
            match grid.and_then(|png| terminal_picture::inline(&png)) {
                Some(picture) => out.end_with(picture),
                None => text.push_str(&half_blocks::gallery(&pictures(&samples), None, shape)),
            }
        }
        text
    })
}

/// The names of the columns of the training rows; empty if they have none.
fn column_names(model: &ModelFile) -> &[String] {
    model.provenance.data.as_ref().map_or(&[], |data| &data.column_names)
}

/// Advice against a doubt. Samples are free without starts and without known units.
fn cure(doubt: &Doubt, method: SampleMethod, is_free: bool) -> &'static str {
    match (method, doubt) {
        (SampleMethod::Gibbs, Doubt::ChainsDiffer { .. }) if is_free => {
            "use --method tempering, a longer --burn-in, or --start from data"
        }
        (SampleMethod::Gibbs, _) if is_free => "use a longer --burn-in, or --method tempering",
        (SampleMethod::Tempering, _) => "use --method tempering with a longer --burn-in",
        _ => "use a longer --burn-in",
    }
}

/// What the method did.
fn how(samples: &Samples, rbm: &Rbm, from: &str) -> String {
    let burn_in = samples.burn_in.unwrap_or(0);
    match (samples.method, &samples.ladders) {
        (SampleMethod::Exact, _) => {
            let n_units = rbm.n_visible().min(rbm.n_hidden());
            format!("exact: independent exact samples, by enumeration of 2^{n_units} states")
        }
        (SampleMethod::Tempering, Some(ladders)) => {
            let then = ladders.thinning.map(|n| format!(", then one every {n} steps of a ladder"));
            format!(
                "tempering: {} ladders of {} rungs, {burn_in} steps before the first sample{}",
                ladders.n_ladders,
                ladders.n_rungs,
                then.unwrap_or_default()
            )
        }
        _ => format!("gibbs: one chain per sample, {burn_in} steps from {from}"),
    }
}

/// Why tempering was chosen.
fn instead_of(gibbs: &Mixing) -> String {
    format!(
        "because Gibbs chains mix slowly: R-hat {:.3}, autocorrelation time {:.0} steps",
        gibbs.r_hat, gibbs.autocorrelation_time
    )
}

fn describe(ladders: &Ladders) -> String {
    let renewed = if ladders.not_renewed > 0.0 {
        format!("{:.1} % of the samples have not come from the lowest rung", 100.0 * ladders.not_renewed)
    } else {
        "all samples have come from the lowest rung".into()
    };
    format!(
        "neighbouring rungs accept {:.0} % of exchanges or more; {:.1} round trips per ladder; {renewed}",
        100.0 * ladders.least_swap_rate,
        ladders.round_trips
    )
}

fn mixing(samples: &Samples) -> String {
    match samples.mixing {
        Some(Mixing { r_hat, autocorrelation_time, .. }) => {
            let what = if samples.ladders.is_some() { "ladders" } else { "chains" };
            format!(
                "autocorrelation time {autocorrelation_time:.1} steps; R-hat {r_hat:.3}, including {what} from random starts"
            )
        }
        None => "not checked: too few steps".into(),
    }
}

/// The given units, and the number of given rows.
fn condition(
    args: &SampleArgs,
    set: &Dataset,
    known: &Known,
    n_samples: usize,
    shape: Option<(usize, usize)>,
) -> anyhow::Result<(Given, usize)> {
    let rows = match &args.rows {
        Some(ranges) => ranges.indices("row of --given", set.n_rows()).context("--rows")?,
        None => (0..n_samples.min(set.n_rows())).collect(),
    };
    let Rows::Bits(values) = set.rows.select(&rows) else {
        bail!(
            "--given: {} has grey values; make them 0 and 1 with --binarize threshold=0.5 or bernoulli",
            set.name
        );
    };
    let n_rows = values.n_rows();
    let mask = known.mask(set.n_columns(), shape).context("--known")?;
    Ok((Given::new(mask, values).context("--known")?, n_rows))
}

/// The rows in random order, so that files sorted by class give a fair sample of starts.
fn shuffle(rows: &Rows, seed: u64) -> Rows {
    let mut order: Vec<usize> = (0..rows.n_rows()).collect();
    stream(seed, Purpose::FirstStates, 0).reader().shuffle(&mut order);
    rows.select(&order)
}

/// Pictures per line: the given number, or a square grid.
fn columns(args: &SampleArgs, n: usize) -> usize {
    args.columns.map_or_else(|| (n as f64).sqrt().ceil() as usize, usize::from)
}

fn pictures(samples: &Samples) -> Vec<Vec<f32>> {
    let rows = samples.rows();
    (0..rows.n_rows()).map(|r| (0..rows.n_columns()).map(|i| rows.get(r, i)).collect()).collect()
}

/// A row as a text of 0 and 1.
fn digits(rows: &BitRows, row: usize) -> String {
    (0..rows.n_bits()).map(|i| if rows.get(row, i) { '1' } else { '0' }).collect()
}

fn fraction_on(rows: &BitRows) -> f64 {
    let n: u64 = rows.words().iter().map(|w| u64::from(w.count_ones())).sum();
    n as f64 / (rows.n_rows() * rows.n_bits()) as f64
}
