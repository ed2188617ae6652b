//! The arguments of `mclv tours`.

use crate::flags::{PictureShape, Preparation, parse_duration};
use clap::{Args, ValueHint};
use mclv::chain::VisibleChain;
use mclv::data::Split;
use std::path::PathBuf;

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
    #[arg(long, alias = "tours", default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) n_tours: u32,
    /// Where tours begin: `pi` (drawn from π_S) or `rows` (drawn given rows, as in the paper; no log Z)
    #[arg(long, value_enum, default_value_t = ToursFrom::Pi, value_name = "WHERE")]
    pub(crate) starts: ToursFrom,
    /// Visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code; no guarantee)
    #[arg(long, default_value_t = VisibleChain::Sampled, value_name = "HOW")]
    pub(crate) visible: VisibleChain,
    /// Cut every tour after this number of steps [default: no limit]
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
    #[command(flatten)]
    pub(crate) picture: PictureShape,
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
