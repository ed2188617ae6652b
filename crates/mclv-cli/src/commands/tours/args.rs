//! The arguments of `mclv tours`.

use super::theorems::TheoremArgs;
use crate::flags::{PictureShape, Preparation, parse_duration};
use clap::{Args, ValueHint};
use mclv::chain::VisibleChain;
use mclv::data::Split;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv tours model.safetensors                           a stopping set from the recorded data
  mclv tours model.safetensors --samples-per-row 1,4,16  three stopping sets
  mclv tours model.safetensors --max-length 100 --csv tail.csv
  mclv tours model.safetensors --starts rows --pictures tours.png
  mclv tours model.safetensors --theorems --error 0.05   how many tours are enough

The stopping set S holds distinct hidden states, M drawn for each row of data. A tour is a Gibbs
chain that starts in S and ends when it is in S again. Its number of steps is its length ξ. If tours
start in π_S, the model's distribution on S, their mean length is Z/Z_S. Then Z_S times the mean
length estimates Z: unbiased without limits (--max-steps none, no --max-length), and a lower bound
on average with limits. Tours from rows, and tours of a mean-field chain, do not estimate Z.

The --pictures file has two pairs of lines for each set: the shortest and the longest tours, at most
one per start. The upper line of a pair shows the starts (E[v|h], or the row). The lower line shows
the visible layer after the first step.")]
pub(crate) struct ToursArgs {
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
    /// Hidden states drawn per row; a list such as 1,4,16 gives one stopping set for each number
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) samples_per_row: Vec<u16>,
    /// Number of tours per stopping set
    #[arg(long, alias = "tours", default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) n_tours: u32,
    /// Where tours start: `pi` (states drawn from π_S) or `rows` (states drawn given rows, as in
    /// the paper; no log Z)
    #[arg(long, value_enum, default_value_t = ToursFrom::Pi, value_name = "WHERE")]
    pub(crate) starts: ToursFrom,
    /// Visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (as in the
    /// paper's code; no guarantee)
    #[arg(long, default_value_t = VisibleChain::Sampled, value_name = "HOW")]
    pub(crate) visible: VisibleChain,
    /// Cut every tour after this number of steps [default: no limit]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    pub(crate) max_length: Option<u32>,
    /// Step budget of all tours of a set together, or `none`; tours are cut at the length that the
    /// budget allows
    #[arg(long, default_value = "100000000", value_parser = parse_budget, value_name = "STEPS")]
    pub(crate) max_steps: Budget,
    /// Cut all tours of a set after this time (90s, 30min, 2h, none); the result then depends on
    /// the clock
    #[arg(long, default_value = "none", value_parser = parse_duration, value_name = "TIME")]
    pub(crate) time_limit: f64,
    /// Write the tail function to this .csv file: samples_per_row, k, ccdf, low, high
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) csv: Option<PathBuf>,
    /// Write pictures of the starts and first steps of the shortest and longest tours to this .png
    /// file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pictures: Option<PathBuf>,
    /// Write an HTML page with tables, charts and pictures to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) theorems: TheoremArgs,
    /// Pictures per line
    #[arg(long, default_value_t = 10, value_name = "N", requires = "pictures", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) columns: u16,
    #[command(flatten)]
    pub(crate) picture: PictureShape,
    /// Overwrite existing files
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToursFrom {
    Pi,
    Rows,
}

/// A limit on the number of steps, or none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_whole_numbers_or_none() {
        assert_eq!(parse_budget("1_000_000"), Ok(Budget(Some(1_000_000))));
        assert_eq!(parse_budget("none"), Ok(Budget(None)));
        assert!(parse_budget("1e6").is_err() && parse_budget("").is_err() && parse_budget("-1").is_err());
    }
}
