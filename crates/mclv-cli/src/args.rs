//! What can be typed.

use crate::report_args::{LookArgs, PlotArgs, ReportArgs};
use clap::{Args, Parser, Subcommand, ValueHint};
use mclv::Init;
use mclv::data::{Binarize, DataSpec, Split};
use mclv::gradient::{Gradient, Lvs, Starts, Statistics, TourLength, Unfinished, VisibleChain};
use mclv::partition::Method;
use mclv::sample::{Known, Ranges};
use mclv::train::Schedule;
use std::path::PathBuf;

/// Restricted Boltzmann Machines whose training and evaluation carry statistical guarantees.
#[derive(Parser)]
#[command(name = "mclv", version, max_term_width = 100, after_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const TOP_EXAMPLES: &str = "\
Examples:
  mclv train digits                                    train on the built-in digits, seconds
  mclv likelihood runs/digits-1/model.safetensors      exact likelihood on train, validation and test
  mclv logz model.safetensors                          exact log Z, or an estimate with its error bar
  mclv sample model.safetensors -o samples.png         what it has learnt
  mclv tours model.safetensors                         how its chain returns to the data, and log Z from that
  mclv reproduce table2 --quick                        the paper's experiments
  mclv report runs/digits-1                            a page to look at, or to compare several runs
  mclv data list                                       the data sets known by name
  mclv selftest                                        is everything right on this machine?

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

/// Flags of every command.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print results as JSON, for machines
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of all random numbers [default: 0]; the same seed gives the same result
    #[arg(long, global = true, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Say more on standard error (-vv: still more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    /// The seed that was given, or the default.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List, fetch and look at data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// Train a model, in a run folder that can be resumed
    Train(Box<TrainArgs>),
    /// Make an initial model for a data set
    Init(InitArgs),
    /// Show what a model file holds
    Inspect(InspectArgs),
    /// Compute the partition function of a model
    Logz(LogzArgs),
    /// Compute the log-likelihood of data under a model
    Likelihood(LikelihoodArgs),
    /// Draw samples from a model, or fill in what is missing of given rows
    Sample(SampleArgs),
    /// Show how the model's chain returns to a stopping set: tour lengths, by label too, and log Z
    Tours(ToursArgs),
    /// Make an HTML page of a run, or of several side by side
    Report(ReportArgs),
    /// Draw one figure of a run for a paper: .svg or .png
    Plot(PlotArgs),
    /// Turn data into features: the hidden probabilities of each row
    Transform(TransformArgs),
    /// Convert a model between file formats, which go by extension
    Convert(ConvertArgs),
    /// Make the paper's tables and figures, and go beyond them
    Reproduce(ReproduceArgs),
    /// Check the program on this machine: closed forms, enumeration, random numbers, kernels
    Selftest,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  mclv completions bash > ~/.local/share/bash-completion/completions/mclv"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether several processes share its work; else the first does it alone.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Train(_) | Self::Logz(_) | Self::Likelihood(_) | Self::Tours(_) | Self::Sample(_) => true,
            Self::Transform(_) => true,
            Self::Reproduce(args) => args.render.is_none(),
            _ => false,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    /// List the data sets known by name
    List,
    /// Download a named data set into the cache, verified by SHA-256
    #[command(after_help = "Examples:
  mclv data fetch mnist
  MCLV_CACHE_DIR=/data/cache mclv data fetch fashion-mnist

Files are looked for in MCLV_DATA_DIR, then in the cache folder; only what is missing is fetched.")]
    Fetch {
        /// The data set
        name: String,
    },
    /// Describe a data set and show some of its rows
    #[command(after_help = "Examples:
  mclv data show digits
  mclv data show mnist --binarize threshold=0.5 --rows 4
  mclv data show measurements.csv --label-column class --split test")]
    Show {
        #[command(flatten)]
        data: DataArgs,
        /// Rows to show
        #[arg(long, default_value_t = 6, value_name = "N")]
        rows: usize,
        /// Which part
        #[arg(long, default_value = "all", value_name = "SPLIT")]
        split: Split,
    },
}

/// Which data, and how they are prepared.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// A named data set (see `mclv data list`) or a file: IDX (.gz or not), .npy, .npz, .csv
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
}

#[derive(Args)]
pub(crate) struct Preparation {
    /// Grey values as they are (`grey`), cut at a threshold (`threshold=0.5`), or drawn (`bernoulli`)
    #[arg(long, value_name = "HOW")]
    pub(crate) binarize: Option<Binarize>,
    /// The column (.csv: by name, or by number from 0; -1 is the last) or array (.npz) that holds the labels
    #[arg(long, value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) label_column: Option<String>,
}

impl Preparation {
    pub(crate) fn spec(&self, source: &str, split: Split, global: &Global) -> DataSpec {
        DataSpec {
            source: source.into(),
            binarize: self.binarize.unwrap_or(Binarize::Grey),
            split,
            label_column: self.label_column.clone(),
            seed: global.seed(),
        }
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv train digits
  mclv train mnist --hidden 25 --epochs 100 --output runs/best
  mclv train mnist --preset paper --gradient lvs --hidden 32
  mclv train mnist --gradient lvs --unfinished carry --k 1
  mclv train bars-and-stripes:4 --gradient exact --hidden 16 --optimizer adam --lr 0.2 --epochs 400
  mclv train rows.npy --weights weights.npy
  mclv train --config runs/best/config.toml --seed 7 --output runs/again
  mclv train --resume runs/best
  mclv train mnist --live --tensorboard

The run folder holds config.toml (the resolved settings), metrics.jsonl (a line an epoch), checkpoints, model.safetensors,
best.safetensors and report.html. Ctrl-C writes a checkpoint; resuming gives the same bits as never having stopped.")]
pub(crate) struct TrainArgs {
    /// The data: a name (see `mclv data list`) or a file [default: digits]
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    /// Run folder to make [default: runs/DATA-1, -2, …]
    #[arg(short, long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Go on with an interrupted run, exactly where it stopped and with its own settings
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "data", "output", "config", "preset", "weights", "binarize", "label_column", "hidden", "init", "gradient", "k",
        "chains", "visible", "unfinished", "starts", "statistics", "samples_per_row", "row_fraction", "redraw_every",
        "min_ess", "target_completion", "max_states", "max_set_cost", "warm_up_epochs", "epochs", "batch_size",
        "drop_last", "learning_rate", "schedule", "optimizer", "momentum", "l1", "l2", "clip", "no_centring",
        "offset_rate", "redraw_bits", "eval_every", "patience"])]
    pub(crate) resume: Option<PathBuf>,
    /// Settings from a TOML file, such as a run's config.toml; flags override it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// `default`: the best we know; `paper`: the protocol of the paper's code
    #[arg(long, value_enum, default_value_t = Preset::Default, conflicts_with = "config")]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// How much each row counts: a .npy or .csv file, one number of 0 or more for each training row (where DATA is a
    /// file: for each of its rows)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,

    /// Number of hidden units [default: 25]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) hidden: Option<usize>,
    /// `data`: biases and scale from the data; `paper`: as in the paper's code
    #[arg(long, value_name = "HOW", help_heading = "Model")]
    pub(crate) init: Option<Init>,

    /// Gradient estimator [default: up to 64 hidden units lvs with --k 3, --row-fraction 0 and --learning-rate 0.6, else pcd with --k 3]
    #[arg(long, value_enum, help_heading = "Gradient")]
    pub(crate) gradient: Option<Estimator>,
    /// Gibbs steps per update; for tours also `dynamic`: until all return [default: 1 with --gradient, else 3]
    #[arg(long, value_name = "K", help_heading = "Gradient")]
    pub(crate) k: Option<TourLength>,
    /// Persistent chains, or tours per update [default: as many as rows in a minibatch]
    #[arg(long, visible_alias = "tours", value_name = "N", help_heading = "Gradient")]
    pub(crate) chains: Option<usize>,
    /// Visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code)
    #[arg(long, value_parser = named::<VisibleChain>, value_name = "HOW", help_heading = "Gradient")]
    pub(crate) visible: Option<VisibleChain>,
    /// Tours that have not returned: `drop` (the paper's), `keep`, or `carry` on
    #[arg(long, value_parser = named::<Unfinished>, value_name = "POLICY", help_heading = "Gradient")]
    pub(crate) unfinished: Option<Unfinished>,
    /// Starts of tours: `fresh`, `weighted`, or `metropolis` (with carry)
    #[arg(long, value_parser = named::<Starts>, value_name = "HOW", help_heading = "Gradient")]
    pub(crate) starts: Option<Starts>,
    /// What is averaged along tours: `sampled`, `mean-hidden` or `mean-visible`
    #[arg(long, value_parser = named::<Statistics>, value_name = "WHAT", help_heading = "Gradient")]
    pub(crate) statistics: Option<Statistics>,
    /// Hidden states per row in the stopping set [default: 1]
    #[arg(long, value_name = "M", help_heading = "Gradient")]
    pub(crate) samples_per_row: Option<usize>,
    /// Share of the rows that the stopping set is made from; 0: 3 %, but no fewer than 1,000 rows [default: 1 with --gradient, else 0]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) row_fraction: Option<f64>,
    /// Epochs between two stopping sets [default: 1]
    #[arg(long, value_name = "EPOCHS", help_heading = "Gradient")]
    pub(crate) redraw_every: Option<usize>,
    /// Make the start table anew when the effective sample size (or acceptance) falls below this share [default: 0.2]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) min_ess: Option<f64>,
    /// Adapt the stopping set (rows, and samples per row) until this share of tours returns [default: 0, do not]
    #[arg(long, value_name = "SHARE", help_heading = "Gradient")]
    pub(crate) target_completion: Option<f64>,
    /// Budget of memory of a set that adapts: most states drawn for it [default: 1000000]
    #[arg(long, value_name = "N", help_heading = "Gradient")]
    pub(crate) max_states: Option<usize>,
    /// Budget of time of a set that adapts: states drawn and evaluated for it, for each Gibbs step [default: 0, none]
    #[arg(long, value_name = "RATIO", help_heading = "Gradient")]
    pub(crate) max_set_cost: Option<f64>,
    /// Epochs of CD-1 before the estimator proper
    #[arg(long, value_name = "N", help_heading = "Gradient")]
    pub(crate) warm_up_epochs: Option<usize>,

    /// Passes over the data [default: 100, or as many as make 10,000 updates]
    #[arg(long, value_name = "N", help_heading = "Optimisation")]
    pub(crate) epochs: Option<usize>,
    /// Rows per update [default: 128]
    #[arg(long, value_name = "N", help_heading = "Optimisation")]
    pub(crate) batch_size: Option<usize>,
    /// Leave out a short last minibatch
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) drop_last: bool,
    /// Initial learning rate [default: 0.4, or 0.6 without --gradient up to 64 hidden units; paper: 0.1; with adam: 0.01]
    #[arg(long, visible_alias = "lr", value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) learning_rate: Option<f64>,
    /// `linear` to zero, `cosine`, `plateau` (the paper's) or `constant` [default: linear]
    #[arg(long, value_parser = named::<Schedule>, value_name = "HOW", help_heading = "Optimisation")]
    pub(crate) schedule: Option<Schedule>,
    /// Rule for steps [default: sgd]
    #[arg(long, value_enum, help_heading = "Optimisation")]
    pub(crate) optimizer: Option<Rule>,
    /// Momentum of sgd [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub(crate) momentum: Option<f64>,
    /// Weight decay, absolute values
    #[arg(long, value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) l1: Option<f64>,
    /// Weight decay, squares
    #[arg(long, value_name = "RATE", help_heading = "Optimisation")]
    pub(crate) l2: Option<f64>,
    /// Largest norm of a gradient
    #[arg(long, value_name = "NORM", help_heading = "Optimisation")]
    pub(crate) clip: Option<f64>,
    /// Do not centre the gradient
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) no_centring: bool,
    /// How fast the hidden offsets of centring follow the data [default: 0.01]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub(crate) offset_rate: Option<f64>,
    /// Draw the bits of grey data anew in each epoch (with --binarize bernoulli)
    #[arg(long, help_heading = "Optimisation")]
    pub(crate) redraw_bits: bool,

    /// Epochs between two evaluations [default: as 5 % of the time allows]
    #[arg(long, value_name = "EPOCHS", help_heading = "Watching")]
    pub(crate) eval_every: Option<usize>,
    /// Stop after so many evaluations without a better validation likelihood
    #[arg(long, value_name = "N", help_heading = "Watching")]
    pub(crate) patience: Option<usize>,
    /// Epochs between two checkpoints
    #[arg(long, default_value_t = 10, value_name = "EPOCHS", help_heading = "Watching")]
    pub(crate) checkpoint_every: usize,
    /// Minutes after which a checkpoint is written in any case
    #[arg(long, default_value_t = 5.0, value_name = "MINUTES", help_heading = "Watching")]
    pub(crate) checkpoint_minutes: f64,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preset {
    Default,
    Paper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rule {
    Sgd,
    Adam,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Estimator {
    /// Contrastive divergence
    Cd,
    /// Persistent contrastive divergence
    Pcd,
    /// Las Vegas tours
    Lvs,
    /// Enumeration; small models only
    Exact,
}

impl Estimator {
    pub(crate) fn default_settings(self) -> Gradient {
        let visible = VisibleChain::Sampled;
        match self {
            Self::Cd => Gradient::Cd { k: 1, visible },
            Self::Pcd => Gradient::Pcd { k: 1, n_chains: 0, visible },
            Self::Lvs => Gradient::Lvs(Lvs::default()),
            Self::Exact => Gradient::Exact,
        }
    }
}

/// A setting by the name that it has in configuration files.
fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.into())).map_err(|e| e.to_string())
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv init digits --hidden 16 -o digits.safetensors
  mclv init mnist --hidden 25 --init paper --seed 3 -o start.safetensors")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Number of hidden units
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub(crate) hidden: usize,
    /// `data`: biases and scale from the data; `paper`: as in the paper's code
    #[arg(long, default_value_t = Init::Data, value_name = "HOW")]
    pub(crate) init: Init,
    /// The part of the data to start from
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

/// A file to write.
#[derive(Args)]
pub(crate) struct OutputFile {
    /// The file to write
    #[arg(short = 'o', long = "output", default_value = "model.safetensors", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  mclv inspect model.safetensors")]
pub(crate) struct InspectArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv logz model.safetensors
  mclv logz model.safetensors --method mclv,ais,reverse-ais,bar,exact
  mclv logz big.safetensors --method mclv --target-se 0.01 --json
  mclv logz big.npz --method ais --data mnist --chains 500 --betas 20000
  mclv logz big.safetensors --method exact --time-limit 20h

exact        enumeration of 2^n states, n being the size of the smaller layer: 25 units take seconds, 32 a few
             minutes, each further unit twice as long
mclv         Las Vegas tours: Z unbiased if all tours return, a lower bound if --max-steps cuts some. With --target-se
             pilots choose the stopping set and the number of tours; only fresh tours count
ais          annealed importance sampling: Z unbiased, log Z low on average
reverse-ais  from exact samples of the model an upper bound; from data (grey values cut at 0.5) no guarantee
bar          Bennett's acceptance ratio over tempered chains: no guarantee, and confidently wrong if all ladders miss a mode

Data give stopping sets, base models and starts; they are read only if a method has a use for them.")]
pub(crate) struct LogzArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// How: one or several of exact, mclv, ais, reverse-ais, bar [default: exact if the time limit allows it, else mclv
    /// if there are data and tours return, else ais]
    #[arg(long, value_delimiter = ',', value_name = "METHODS")]
    pub(crate) method: Vec<Method>,
    /// The data [default: what the model was made from, if it says so]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Which part of the data
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Write a page with the estimates and what they are worth to this .html file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Overwrite the report if it is there
    #[arg(short, long, requires = "report")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) limit: TimeLimit,
}

/// How much work estimates of log Z may be.
#[derive(Args)]
#[command(next_help_heading = "Estimates of log Z")]
pub(crate) struct WorkArgs {
    /// Standard error of log Z that a pilot chooses the number of tours for [default: 0.01; for likelihoods 0.05]
    #[arg(long, value_name = "NATS", conflicts_with = "tours")]
    pub(crate) target_se: Option<f64>,
    /// Number of tours, instead of a target error
    #[arg(long, value_name = "N")]
    pub(crate) tours: Option<usize>,
    /// Hidden states per row in the stopping set [default: as pilots choose; with --tours 1]
    #[arg(long, value_name = "M")]
    pub(crate) samples_per_row: Option<usize>,
    /// A stopping set from a file, instead of one from data
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stopping_set: Option<PathBuf>,
    /// Gibbs steps of all tours together, pilots included [default: about a minute's]
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u64>,
    /// Visible layer of tours: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code; no guarantee)
    #[arg(long, value_parser = named::<VisibleChain>, value_name = "HOW", default_value = "sampled")]
    pub(crate) visible: VisibleChain,
    /// Chains of ais and reverse-ais (bar: see --ladders)
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) chains: usize,
    /// Temperatures of ais and reverse-ais (bar finds its own by a pilot)
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) betas: usize,
    /// Ladders of tempered chains of bar
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) ladders: usize,
    /// Steps of each ladder that count; a quarter as many go before them
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) ladder_steps: usize,
    /// Whether reverse-ais begins at exact samples [default: if they take no more than seconds]
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) exact_samples: Option<bool>,
}

#[derive(Args)]
pub(crate) struct TimeLimit {
    /// Do not enumerate exactly if it would take longer: seconds, or with a unit (90s, 30min, 2h, 3d, none)
    #[arg(long, default_value = "1h", value_parser = parse_duration, value_name = "TIME")]
    pub(crate) time_limit: f64,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv likelihood model.safetensors                        on the data that the model was made from
  mclv likelihood model.safetensors --data mnist --split test
  mclv likelihood model.npz --data rows.npy --split all --binarize threshold=0.5
  mclv likelihood big.safetensors --method mclv --target-se 0.02

Likelihoods are in nats per row. log Z is exact if the time limit allows it; else by Las Vegas tours, or by AIS if tours
do not return. Its error is common to all rows: where log Z has an interval, so has the likelihood, and what is low of
log Z is high of the likelihood. The error bar over rows says how much the mean would vary had other rows been drawn.
On grey values the number is a lower bound on the expected log-likelihood of binarised rows: never compare it across
binarisations.")]
pub(crate) struct LikelihoodArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// The data [default: what the model was made from]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Which parts of the data
    #[arg(long, value_delimiter = ',', default_value = "train,validation,test", value_name = "SPLITS")]
    pub(crate) split: Vec<Split>,
    /// Also compute the exact pseudo-log-likelihood
    #[arg(long)]
    pub(crate) pseudo: bool,
    /// How to find log Z: exact, mclv, ais, reverse-ais or bar [default: the best that can be afforded]
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) limit: TimeLimit,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv convert model.safetensors model.npz     for scikit-learn: components_, intercept_visible_, intercept_hidden_
  mclv convert sklearn.npz model.safetensors
  mclv convert model.safetensors parts.npy     parts.weights.npy, parts.visible_bias.npy, parts.hidden_bias.npy
  mclv convert rbms.h5 model.safetensors       from the rbms package; also the other way round

HDF5 files (.h5, .hdf5) need a program that was built with `--features hdf5`.")]
pub(crate) struct ConvertArgs {
    /// The model to read
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Of an HDF5 file: which of the updates saved in it, or to save as [default: the last one; 1]
    #[arg(long, value_name = "N")]
    pub(crate) update: Option<u64>,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv sample model.safetensors                          some samples, in the terminal
  mclv sample model.safetensors -n 100 -o samples.png    a grid of 10 × 10 pictures
  mclv sample model.safetensors -n 10000 -o samples.npy  a matrix of bytes 0 and 1, a row each
  mclv sample model.safetensors --start digits --split train --burn-in 10 --means -o near.npz
  mclv sample model.safetensors --given digits --split test --known rows:0-3 -o filled.png

Each sample is the end of its own chain of --burn-in steps of block Gibbs sampling. Nothing says
that so many steps are enough: compare with other starts and longer chains. With --given, the
--known units keep the values of the given rows in every step, and the others are drawn from their
distribution given these.")]
pub(crate) struct SampleArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Samples to draw, each from a chain of its own [default: 64; 12 in the terminal; one for each given row]
    #[arg(short, long, value_name = "N")]
    pub(crate) n_samples: Option<usize>,
    /// Steps of each chain
    #[arg(long, default_value_t = 1000, value_name = "STEPS")]
    pub(crate) burn_in: u32,
    /// Where chains begin: `bias` (independent units with the visible biases), or rows of DATA drawn by the seed
    #[arg(long, default_value = "bias", value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) start: String,
    /// Rows to fill in: sample k has the known units of row k; grey values are cut at 0.5 unless --binarize is given
    #[arg(long, value_name = "DATA", requires = "known", value_hint = ValueHint::FilePath)]
    pub(crate) given: Option<String>,
    /// What is known of them: rows:0-13, columns:0-13 (of pictures), units:0-99,200, or a .npy file of 0 and 1
    #[arg(long, value_name = "MASK", requires = "given")]
    pub(crate) known: Option<Known>,
    /// Which part of the data of --start and --given
    #[arg(long, default_value = "all", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Which rows of that part of --given, from 0, such as 0-9,20 [default: the first of them]
    #[arg(long, value_name = "ROWS", requires = "given")]
    pub(crate) rows: Option<Ranges>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Height and width of pictures, such as 28x28 [default: those of the data, or of what the model was made from]
    #[arg(long, value_name = "HxW", value_parser = parse_shape)]
    pub(crate) shape: Option<(usize, usize)>,
    /// Show or save the probabilities E[v|h] of the last step instead of the samples (.npz: beside them)
    #[arg(long)]
    pub(crate) means: bool,
    /// Pictures in a line of a .png [default: as many as lines]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) columns: Option<u16>,
    /// The file to write: .npy, .npz or .png [default: show pictures in the terminal]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv tours model.safetensors                                 from the data that the model was made from
  mclv tours model.safetensors --samples-per-row 1,4,16        three stopping sets, side by side
  mclv tours model.safetensors --max-length 100 --csv tail.csv
  mclv tours model.safetensors --starts rows --pictures tours.png

The stopping set S holds the distinct hidden states drawn from the rows, M for each. A tour is a
Gibbs chain that begins in S and ends when it is in S again; its length is ξ. Drawn from π_S, the
model's distribution on S, tours have mean length Z/Z_S, which makes Z_S times the mean length an
unbiased estimate of Z if no tour was cut, and a lower bound on average if some were. From rows, and of
a mean-field chain, nothing of the kind holds.

Pictures: for each set two pairs of lines, the shortest tours and the longest, at most one from each
start. The upper line of a pair shows the starts (E[v|h], or the row), the lower one what the visible
layer holds after the first step.")]
pub(crate) struct ToursArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// The data [default: what the model was made from]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Which part of the data
    #[arg(long, default_value = "train", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// Hidden states drawn for each row; several numbers make several stopping sets
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) samples_per_row: Vec<u16>,
    /// Tours from each set
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) tours: u32,
    /// Where tours begin: `pi` (drawn from π_S) or `rows` (drawn given rows, as in the paper; no log Z)
    #[arg(long, value_enum, default_value_t = ToursFrom::Pi, value_name = "WHERE")]
    pub(crate) starts: ToursFrom,
    /// Visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code; no guarantee)
    #[arg(long, value_parser = named::<VisibleChain>, default_value = "sampled", value_name = "HOW")]
    pub(crate) visible: VisibleChain,
    /// Cut every tour after so many steps [default: do not]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    pub(crate) max_length: Option<u32>,
    /// Steps of all tours of a set together, which are cut at the length that this allows; or `none`
    #[arg(long, default_value = "100000000", value_parser = parse_budget, value_name = "STEPS")]
    pub(crate) max_steps: Budget,
    /// Cut all tours of a set after so much time (90s, 30min, 2h); the result then depends on the clock
    #[arg(long, default_value = "none", value_parser = parse_duration, value_name = "TIME")]
    pub(crate) time_limit: f64,
    /// Write the tail function to this .csv file: samples_per_row, k, ccdf, low, high
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) csv: Option<PathBuf>,
    /// Write a grid of starts and next states of the shortest and longest tours to this .png file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pictures: Option<PathBuf>,
    /// Write a page with tables, charts and pictures to this .html file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Pictures in a line
    #[arg(long, default_value_t = 10, value_name = "N", requires = "pictures", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) columns: u16,
    /// Height and width of pictures, such as 28x28 [default: those of the data, or of what the model was made from]
    #[arg(long, value_name = "HxW", value_parser = parse_shape)]
    pub(crate) shape: Option<(usize, usize)>,
    /// Overwrite files that are there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToursFrom {
    Pi,
    Rows,
}

/// A number of steps, if there is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(pub(crate) Option<u64>);

/// A whole number, underscores allowed, or `none`.
fn parse_budget(text: &str) -> Result<Budget, String> {
    if text == "none" {
        return Ok(Budget(None));
    }
    let number =
        text.replace('_', "").parse().map_err(|_| "not a number of steps; write 1000000, or none")?;
    Ok(Budget(Some(number)))
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv transform model.safetensors --data mnist --split train -o features.npz
  mclv transform model.safetensors --data rows.csv --label-column -1 -o features.csv

A row of features for each row of data: the probability of each hidden unit given the row. Labels
go along: as the array `labels` of an .npz (numbers; words become 0, 1, … in alphabetical order),
as the last column of a .csv. A .npy file has no place for them.")]
pub(crate) struct TransformArgs {
    /// The model
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// The data [default: what the model was made from]
    #[arg(long, value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
    /// Which part of the data
    #[arg(long, default_value = "all", value_name = "SPLIT")]
    pub(crate) split: Split,
    /// The file to write: .npy, .npz or .csv
    #[arg(short, long, default_value = "features.npz", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mclv reproduce                                       the experiments
  mclv reproduce table2 --quick                        minutes: a tenth of the epochs, two seeds
  mclv reproduce table2 --seeds 5                      five of the paper's ten seeds
  mclv reproduce all -o results                        everything; hours
  mclv reproduce digits --quick --data digits          seconds, on the built-in digits
  mclv reproduce --render docs/reproduction --page docs/reproduction.md --check

Runs are made side by side, one thread each, and kept in OUTPUT/runs by their settings: a finished one is never made
again, whichever experiment asks for it, and an interrupted one goes on from its checkpoint. Each experiment leaves
NAME.json, NAME.md, .csv files, and figures as .svg and .png. -v prints a line for each finished run.")]
pub(crate) struct ReproduceArgs {
    /// The experiment, or `all` [default: list them]
    #[arg(value_name = "EXPERIMENT", conflicts_with = "render")]
    pub(crate) experiment: Option<String>,
    /// Seeds of each run, from --seed on [default: 10, as in the paper; with --quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) seeds: Option<u16>,
    /// A tenth of the epochs and tours: shows that it works, not what the paper shows
    #[arg(long)]
    pub(crate) quick: bool,
    /// The data: a name (see `mclv data list`) or a file
    #[arg(long, default_value = "mnist", value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: String,
    /// Starts of tours in training: `weighted`, or `fresh` as in the paper, which takes several times as long
    #[arg(long, value_parser = named::<Starts>, default_value = "weighted", value_name = "HOW")]
    pub(crate) starts: Starts,
    /// Folder for results
    #[arg(short, long, default_value = "reproduction", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Make figures and --page files again from the reports in this folder, and run nothing
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) render: Option<PathBuf>,
    /// With --render: a page with marks such as `<!-- table2 -->` … `<!-- end table2 -->`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "render")]
    pub(crate) page: Vec<PathBuf>,
    /// With --render: write nothing, fail if something is not up to date
    #[arg(long, requires = "render")]
    pub(crate) check: bool,
}

/// Height and width from `28x28`.
fn parse_shape(text: &str) -> Result<(usize, usize), String> {
    let size = |text: &str| text.trim().parse().ok().filter(|&n: &usize| n > 0);
    text.split_once(['x', 'X', '×'])
        .and_then(|(height, width)| size(height).zip(size(width)))
        .ok_or_else(|| "not a shape; write height and width, such as 28x28".into())
}

/// Seconds from `90`, `90s`, `30min`, `2h`, `3d` or `none`.
fn parse_duration(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(f64::INFINITY);
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("unknown unit {unit:?}; write 90s, 30min, 2h, 3d or none")),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n >= 0.0 && n.is_finite() => Ok(n * scale),
        _ => Err("not a time; write 90s, 30min, 2h, 3d or none".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_and_every_flag_is_explained() {
        fn visit(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string);
                assert!(help.is_some_and(|h| !h.is_empty()), "{} {}", command.get_name(), arg.get_id());
            }
            command.get_subcommands().for_each(visit);
        }
        Cli::command().debug_assert();
        visit(&Cli::command());
    }

    #[test]
    fn shapes_are_height_and_width() {
        assert_eq!(parse_shape("28x20"), Ok((28, 20)));
        for text in ["28", "0x3", "28x28x1", "axb", "-1x4", ""] {
            assert!(parse_shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn budgets_are_whole_numbers_or_none() {
        assert_eq!(parse_budget("1_000_000"), Ok(Budget(Some(1_000_000))));
        assert_eq!(parse_budget("none"), Ok(Budget(None)));
        assert!(parse_budget("1e6").is_err() && parse_budget("").is_err() && parse_budget("-1").is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("90"), Ok(90.0));
        assert_eq!(parse_duration("1.5h"), Ok(5400.0));
        assert_eq!(parse_duration("none"), Ok(f64::INFINITY));
        assert!(
            parse_duration("soon").is_err()
                && parse_duration("-1s").is_err()
                && parse_duration("3 weeks").is_err()
        );
    }
}
