//! Flags that choose the data of a command and their preparation.

use crate::cli::Global;
use clap::{Args, ValueHint};
use mclv::data::{Binarize, DataSpec, Split};

/// The data set and its preparation.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Name of a data set (see `mclv data list`), or a file: IDX (plain or .gz), .npy, .npz, .csv
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
}

#[derive(Args)]
pub(crate) struct Preparation {
    /// Treatment of grey values: keep them (`grey`), cut them at a threshold (`threshold=0.5`), or
    /// draw bits with these probabilities (`bernoulli`)
    #[arg(long, value_name = "HOW")]
    pub(crate) binarize: Option<Binarize>,
    /// Column of a .csv (its name, or its number from 0; -1 is the last) or array of an .npz that
    /// holds the labels
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
