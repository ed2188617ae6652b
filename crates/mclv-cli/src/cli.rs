//! The top of the command line: the list of commands, and the flags that every command has.
//! Each command's own arguments are in its file under `commands`.

use crate::commands::completions::CompletionsArgs;
use crate::commands::convert::ConvertArgs;
use crate::commands::data::DataCommand;
use crate::commands::init::InitArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::likelihood::LikelihoodArgs;
use crate::commands::logz::LogzArgs;
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

impl Cli {
    /// What was typed; wrong usage ends the program.
    pub(crate) fn from_arguments() -> Self {
        Self::from_arg_matches(&Self::spelled().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// All commands. The help of settings comes from the library: it becomes that of flags.
    pub(crate) fn spelled() -> clap::Command {
        Self::command().mut_subcommand("train", |train| {
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

/// `Passes over the data. Default: 100` as `Passes over the data [default: 100]`, with flags in place of settings.
fn help_of_flag(text: &str) -> String {
    let text = spell(text, Spelling::Flags);
    match text.split_once(". Default: ") {
        Some((help, default)) => format!("{help} [default: {default}]"),
        None => text,
    }
}

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
    Completions(CompletionsArgs),
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
