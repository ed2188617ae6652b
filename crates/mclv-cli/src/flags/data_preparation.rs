//! Flags that choose the data of a command and their preparation.

use crate::cli::Global;
use clap::{Args, ValueHint};
use mclv::data::{Binarize, DataSpec, Split};

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
