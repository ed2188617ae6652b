//! The list of commands and the flags that all commands share.
//!
//! The arguments of each command are in its file under `commands`.

use crate::commands::completions::CompletionsArgs;
use crate::commands::convert::ConvertArgs;
use crate::commands::data::DataCommand;
use crate::commands::init::InitArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::likelihood::LikelihoodArgs;
use crate::commands::logz::LogzArgs;
use crate::commands::modes::ModesArgs;
use crate::commands::plot::PlotArgs;
use crate::commands::report::ReportArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::sample::SampleArgs;
use crate::commands::tours::ToursArgs;
use crate::commands::train::TrainArgs;
use crate::commands::transform::TransformArgs;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use mclv::settings::{Spelling, spell};

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
  mclv train digits                                train on the built-in digits, in seconds
  mclv likelihood runs/digits-1/model.safetensors  likelihood of train, validation and test rows
  mclv logz model.safetensors                      exact log Z, or an estimate with an error bar
  mclv sample model.safetensors -o samples.png     pictures of samples from the model
  mclv tours model.safetensors                     tour lengths, and log Z estimated from them
  mclv modes model.safetensors                     is a class lost or over-weighted?
  mclv reproduce table2 --quick                    a short version of a table of the paper
  mclv report runs/digits-1                        an HTML page about a run
  mclv data list                                   the built-in and downloadable data sets
  mclv selftest                                    check that mclv works correctly on this machine

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

impl Cli {
    /// Parses the arguments of the process. Wrong usage ends the process.
    pub(crate) fn from_arguments() -> Self {
        Self::from_arg_matches(&Self::spelled().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// All commands. The help of settings comes from the library and is rewritten for flags.
    pub(crate) fn spelled() -> clap::Command {
        Self::command().mut_subcommand("train", |train| {
            // Other commands choose a part by --split.
            let train = train.mut_arg("split_file", |arg| arg.visible_alias("split"));
            train.mut_args(|arg| match arg.get_help() {
                Some(help) => {
                    let help = help_of_flag(&help.to_string());
                    arg.help(help)
                }
                None => arg,
            })
        })
    }
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
    /// Create an untrained model for a data set
    Init(InitArgs),
    /// Show the contents of a model file
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
    /// Write an HTML report of one run, or a comparison of several runs
    Report(ReportArgs),
    /// Draw a figure of one or more runs as .svg or .png
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
            Self::Transform(_) | Self::Modes(_) => true,
            Self::Reproduce(args) => args.render.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
