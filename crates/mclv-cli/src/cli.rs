//! The list of commands and the flags that all commands share.
//!
//! The arguments of each command are in its file under `commands`.

use crate::commands::completions::CompletionsArgs;
use crate::commands::convert::ConvertArgs;
use crate::commands::data::DataCommand;
use crate::commands::init::InitArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::lab::LabArgs;
use crate::commands::likelihood::LikelihoodArgs;
use crate::commands::logz::LogzArgs;
use crate::commands::modes::ModesArgs;
use crate::commands::plot::PlotArgs;
use crate::commands::report::ReportArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::sample::SampleArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::tours::ToursArgs;
use crate::commands::train::TrainArgs;
use crate::commands::transform::TransformArgs;
use crate::output::tell;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use mclv::settings::{Settings, Spelling, spell};
use mclv::team::Facts;
use std::num::{ParseFloatError, ParseIntError};

/// Train Restricted Boltzmann Machines (models of rows of zeros and ones), and know how good they are.
#[derive(Parser)]
#[command(name = "mclv", version, max_term_width = 100, after_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
    /// All arguments as they were given.
    #[arg(skip)]
    matches: ArgMatches,
}

const TOP_EXAMPLES: &str = "\
Examples:
  mclv train digits                                train on the built-in digits, in seconds
  mclv train table.csv --label-column class        train on a table of your own
  mclv likelihood runs/digits-1                    likelihood of train, validation and test rows
  mclv inspect runs/table-1                        what is each hidden unit about?
  mclv logz model.safetensors                      exact log Z, or an estimate with an error bar
  mclv sample runs/digits-1 -o samples.png         pictures of samples from the model
  mclv tours runs/digits-1                         tour lengths, and log Z estimated from them
  mclv modes runs/digits-1                         is a class lost or over-weighted?
  mclv lab runs/digits-1                           bias and variance of gradient estimators
  mclv sweep digits --n-hidden 8,16 --seeds 0..2   several settings, chosen by validation rows
  mclv reproduce table2 --quick                    a short version of a table of the paper
  mclv report runs/digits-1                        an HTML page about a run
  mclv data list                                   the built-in and downloadable data sets
  mclv selftest                                    check that mclv works correctly on this machine

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

/// Settings that `mclv train -h` shows. `--help` shows all.
const COMMON_SETTINGS: [&str; 7] =
    ["n_hidden", "gradient", "epochs", "batch_size", "learning_rate", "patience", "validation_fraction"];

/// Arguments that may differ between the processes of a job.
const OF_ONE_PROCESS: [&str; 3] = ["threads", "verbose", "json"];

impl Cli {
    /// Parses the arguments of the process. Wrong usage ends the process.
    pub(crate) fn from_arguments() -> Self {
        let matches = Self::spelled().try_get_matches().unwrap_or_else(|error| refuse(&with_tip(error)));
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
        Self { matches, ..cli }
    }

    /// The command and its arguments, which all processes of a job must have.
    pub(crate) fn facts(&self) -> Facts {
        facts(&self.matches)
    }

    /// All commands. The help of settings comes from the library and is rewritten for flags.
    pub(crate) fn spelled() -> clap::Command {
        let command = Self::command().mut_subcommand("train", |train| {
            // A resumed run keeps its settings, but may be given more epochs.
            let others = Settings::NAMES.iter().filter(|name| !["epochs", "seed"].contains(name));
            let train = with_split(train);
            train.mut_arg("resume", |arg| arg.conflicts_with_all(others)).mut_args(as_flag)
        });
        let command = command.mut_subcommand("sweep", |sweep| with_split(sweep).mut_args(as_flag));
        taking_negative_numbers(command)
    }
}

/// The command and its arguments as facts, without those that may differ.
fn facts(matches: &ArgMatches) -> Facts {
    let mut facts = Facts::of_program();
    let (mut command, mut matches) = (Cli::command(), matches);
    command.build();
    while let Some((name, of_command)) = matches.subcommand() {
        facts = facts.with("the command", &name);
        let next = command.find_subcommand(name).cloned();
        (command, matches) = (next.unwrap_or(command), of_command);
        for arg in command.get_arguments().filter(|arg| !OF_ONE_PROCESS.contains(&arg.get_id().as_str())) {
            if let Ok(Some(values)) = matches.try_get_raw(arg.get_id().as_str()) {
                let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
                let name = arg.get_long().map_or(arg.get_id().to_string(), |long| format!("--{long}"));
                facts = facts.with(&name, &values.join(" "));
            }
        }
    }
    facts
}

/// Lets `--split` stand for `--split-file`, because other commands choose a part by `--split`. The
/// short help shows neither this flag nor `--split-column`.
fn with_split(command: clap::Command) -> clap::Command {
    let command = command.mut_arg("split_column", |arg| arg.hide_short_help(true));
    command.mut_arg("split_file", |arg| arg.hide_short_help(true).visible_alias("split"))
}

/// Rewrites the help of a setting, and hides rare settings from the short help.
fn as_flag(arg: clap::Arg) -> clap::Arg {
    let id = arg.get_id().as_str();
    let is_rare = Settings::NAMES.contains(&id) && !COMMON_SETTINGS.contains(&id);
    match arg.get_help().map(|help| help_of_flag(&help.to_string())) {
        Some(help) if is_rare => arg.help(help).hide_short_help(true),
        Some(help) => arg.help(help),
        None => arg,
    }
}

/// Lets every flag take a number below zero, so that the check of its value can name the cure.
fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    let of_arg = |arg: clap::Arg| match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(of_arg).mut_subcommands(taking_negative_numbers)
}

/// Prints an error, or the help, and ends the process. Arguments may be names of files.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if error.use_stderr() && mclv::printable(&text) != text {
        tell(text.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Adds a tip to an error about a value that is no number.
pub(crate) fn with_tip(mut error: clap::Error) -> clap::Error {
    let source = std::error::Error::source(&error);
    let is_of = |name: &str| match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => arg.starts_with(name),
        _ => false,
    };
    let tip = match source {
        Some(source) if source.is::<ParseIntError>() => match is_of("--seed") {
            true => format!("give a whole number from 0 to {}", u64::MAX),
            false => "give a whole number, not below 0".to_owned(),
        },
        Some(source) if source.is::<ParseFloatError>() => "give a number, such as 0.05".to_owned(),
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Turns `Rows per update. Default: 128` into `Rows per update [default: 128]`, and names of
/// settings into flags.
fn help_of_flag(text: &str) -> String {
    let text = spell(text, Spelling::Flags);
    match text.split_once(". Default: ") {
        Some((help, default)) => format!("{help} [default: {default}]"),
        None => text,
    }
}

/// Flags that all commands share.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Number of threads [default: all cores]; it does not change results
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of all random numbers [default: 0]; the same seed gives the same results
    #[arg(long, global = true, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Print more messages to standard error (-vv: even more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    /// The given seed, or the default.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List, download and show data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// Train a model; interrupted runs can be resumed
    Train(Box<TrainArgs>),
    /// Train with several settings and seeds, and choose a setting by validation rows
    Sweep(Box<SweepArgs>),
    /// Create an untrained model for a data set
    Init(InitArgs),
    /// Show a model: its size, its origin, and the columns that its hidden units depend on
    Inspect(InspectArgs),
    /// Compute or estimate log Z, the log partition function of a model
    Logz(LogzArgs),
    /// Compute the log-likelihood of data under a model
    Likelihood(LikelihoodArgs),
    /// Draw samples from a model, or complete rows of which some units are known
    Sample(SampleArgs),
    /// Run tours: how long the model's chain takes to return to a stopping set, and log Z from that
    Tours(ToursArgs),
    /// Compare the model's share of each class, pattern or cluster of rows with the data's share
    Modes(ModesArgs),
    /// Measure bias, variance and cost of gradient estimators at the parameters of a model
    Lab(LabArgs),
    /// Write an HTML report of one run, or a comparison of several runs
    Report(ReportArgs),
    /// Draw a figure of one or more runs as .svg, .png or .pdf
    Plot(PlotArgs),
    /// Compute features of data: the hidden probabilities of each row
    Transform(TransformArgs),
    /// Convert a model between file formats
    Convert(ConvertArgs),
    /// Reproduce the paper's tables and figures, and run further experiments
    Reproduce(ReproduceArgs),
    /// Check that mclv works correctly on this machine
    Selftest,
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// Returns true if several processes share the work of this command. Otherwise the first
    /// process does it alone.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Train(_) | Self::Logz(_) | Self::Likelihood(_) | Self::Tours(_) | Self::Sample(_) => true,
            Self::Transform(_) | Self::Modes(_) | Self::Sweep(_) => true,
            Self::Reproduce(args) => args.render.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_change_results_are_facts() {
        let of = |line: &str| {
            let matches = Cli::spelled().try_get_matches_from(line.split(' ')).unwrap();
            facts(&matches)
        };
        let logz = of("mclv logz m.npz --seed 3 --method ais,bar");
        assert_eq!(of("mclv --seed=3 logz --method=ais,bar m.npz --threads 2 -v --json"), logz);
        for other in [
            "mclv logz m.npz --seed 4 --method ais,bar",
            "mclv logz m.npz --seed 3 --method ais",
            "mclv logz m.npz --method ais,bar",
            "mclv logz n.npz --seed 3 --method ais,bar",
            "mclv likelihood m.npz --seed 3",
            "mclv logz m.npz --seed 3 --method ais,bar --exact-samples",
        ] {
            assert_ne!(of(other), logz, "{other}");
        }
        assert_ne!(of("mclv data show digits"), of("mclv data show ising"));
    }

    #[test]
    fn no_line_of_a_help_is_broken_or_wider_than_100_columns() {
        fn visit(command: &mut clap::Command) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            let written: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
            let long = command.render_long_help().to_string();
            let shown = format!("{}{long}", command.render_help());
            for line in shown.lines().chain(written.iter().flat_map(|text| text.lines())) {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            for line in written.iter().flat_map(|text| text.lines()) {
                assert!(shown.lines().any(|shown| shown == line), "{} breaks: {line}", command.get_name());
                assert!(!line.ends_with('\\'), "{}: an example takes two lines: {line}", command.get_name());
            }
            command.get_subcommands_mut().for_each(visit);
        }
        let mut command = Cli::spelled();
        command.build();
        visit(&mut command);
    }

    #[test]
    fn the_short_help_of_training_fits_on_a_screen_and_names_every_default() {
        let mut command = Cli::spelled();
        command.build();
        let train = command.find_subcommand_mut("train").unwrap();
        let (short, long) = (train.render_help().to_string(), train.render_long_help().to_string());
        assert!(short.lines().count() <= 80, "{}", short.lines().count());
        for name in COMMON_SETTINGS {
            assert!(short.contains(&format!("--{}", name.replace('_', "-"))), "{name}");
        }
        for name in Settings::NAMES.iter().filter(|name| **name != "seed") {
            let flag = format!("--{}", name.replace('_', "-"));
            // The flag at the beginning of its own lines, not in the help of another.
            let own = [" ", "["].iter().find_map(|end| long.split_once(&format!("\n      {flag}{end}")));
            let (_, rest) = own.unwrap_or_else(|| panic!("{flag}"));
            let default = rest.find("[default:").unwrap_or_else(|| panic!("{flag} names no default"));
            assert!(rest.find("\n\n").is_none_or(|end| default < end), "{flag} names no default");
        }
        // Settings of tours are apart.
        assert!(long.contains("\nTours:\n") && !short.contains("--redraw-every"), "{long}");
    }

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
        Cli::spelled().debug_assert();
        visit(&Cli::spelled());
    }
}
