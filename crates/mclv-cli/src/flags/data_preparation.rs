//! Flags that choose the data of a command, their parts and their preparation.

use crate::cli::Global;
use clap::{Args, ValueHint};
use mclv::data::{Binarize, DataSpec, Scale, Split};

/// The data set and its preparation.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Name of a data set (see `mclv data list`), or a file: .csv, .tsv, .txt, .npy, .npz, IDX, each
    /// but .npz also gzipped; .h5 if the program was built with HDF5
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) preparation: Preparation,
}

#[derive(Args, Clone, Default)]
pub(crate) struct Preparation {
    /// Treatment of grey values: keep them (`grey`), cut them at a threshold (`threshold=0.5`), or
    /// draw bits with these probabilities (`bernoulli`)
    #[arg(long, value_name = "HOW")]
    pub(crate) binarize: Option<Binarize>,
    /// Column of a text file (its name, or its number from 0; -1 is the last) or array of an .npz
    /// that holds the labels
    #[arg(long, value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) label_column: Option<String>,
    /// Range of the values of a file: its largest value, such as 255, or both ends, such as -1,1;
    /// it becomes [0, 1]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) scale: Option<Scale>,
    /// The file holds -1 and 1, which become 0 and 1; samples of the model are -1 and 1 again
    #[arg(long, conflicts_with = "scale")]
    pub(crate) spins: bool,
    /// Column of a text file, or array of an .npz, that names the part of each row: train,
    /// validation or test (also val, dev, …; or 0, 1, 2)
    #[arg(long, value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) split_column: Option<String>,
    /// File (.csv, .txt or .npy) that names the part of each row of the data file, one per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "split_column")]
    pub(crate) split_file: Option<String>,
}

impl Preparation {
    pub(crate) fn spec(&self, source: &str, split: Split, global: &Global) -> DataSpec {
        self.over(DataSpec { source: source.into(), split, seed: global.seed(), ..DataSpec::default() })
    }

    /// Returns the data with the given flags in place of what they say.
    pub(crate) fn over(&self, mut spec: DataSpec) -> DataSpec {
        if self.split_file.is_some() {
            // The path of a flag starts from here, and the others from where they were given.
            spec = spec.detached();
        }
        if self.scale.is_some() || self.spins {
            (spec.scale, spec.spins) = (self.scale, self.spins);
        }
        if self.split_column.is_some() || self.split_file.is_some() {
            (spec.split_column, spec.split_file) = (self.split_column.clone(), self.split_file.clone());
        }
        spec.binarize = self.binarize.unwrap_or(spec.binarize);
        spec.label_column = self.label_column.clone().or(spec.label_column);
        spec
    }
}

/// Files of validation and test rows, or none of them.
#[derive(Args)]
pub(crate) struct OwnParts {
    /// File of the validation rows; all rows of DATA train then
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) validation: Option<String>,
    /// File of the test rows; all rows of DATA train then
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) test: Option<String>,
    /// Train on all rows of a file and hold out none; of a named set, hold out the test rows only
    #[arg(long, conflicts_with = "validation")]
    pub(crate) no_validation: bool,
}

impl OwnParts {
    /// Returns the data with the given flags in place of what they say.
    pub(crate) fn over(&self, mut spec: DataSpec) -> DataSpec {
        if self.validation.is_some() || self.test.is_some() {
            spec = spec.detached();
        }
        spec.validation = self.validation.clone().or(spec.validation);
        spec.test = self.test.clone().or(spec.test);
        spec.no_validation |= self.no_validation;
        spec
    }
}
