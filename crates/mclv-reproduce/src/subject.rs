//! Tasks of the comparison of densities: which model, which rows, what to compute.

use crate::task::{ModelOf, describe};
use mclv::data::{DataSpec, Split};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A model with a tractable likelihood, fitted to the training rows of a data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BaselineOf {
    /// The data.
    pub data: DataSpec,
    /// The model.
    pub model: Baseline,
    /// The part whose likelihood is computed.
    pub split: Split,
}

/// A tractable model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Independent units.
    Independent,
    /// The best tree of pairs.
    Tree,
    /// A mixture of products.
    Mixture {
        /// The number of components.
        n_components: usize,
    },
}

impl Baseline {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Independent => "independent units".into(),
            Self::Tree => "Chow-Liu tree".into(),
            Self::Mixture { n_components } => format!("mixture of {n_components}"),
        }
    }
}

/// An RBM to be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The model that stands for a training: the best one by validation rows.
    Run(ModelOf),
    /// The model of a training after an epoch.
    Snapshot(ModelOf, usize),
    /// A model in a file.
    File(FileOf),
}

/// A model in a file, from whatever program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileOf {
    /// The name of the file.
    pub name: String,
    /// The digest of its content.
    pub sha256: String,
    /// The number of hidden units.
    pub n_hidden: usize,
    /// Where it is. The result does not depend on it.
    #[serde(skip)]
    pub path: PathBuf,
}

impl Subject {
    /// The training that comes first.
    pub fn model(&self) -> Option<&ModelOf> {
        match self {
            Self::Run(model) | Self::Snapshot(model, _) => Some(model),
            Self::File(_) => None,
        }
    }

    /// The number of hidden units.
    pub fn n_hidden(&self) -> usize {
        match self {
            Self::Run(model) | Self::Snapshot(model, _) => model.train.n_hidden,
            Self::File(file) => file.n_hidden,
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Run(model) => describe(&model.train),
            Self::Snapshot(model, epoch) => format!("{} after {epoch}", describe(&model.train)),
            Self::File(file) => file.name.clone(),
        }
    }
}

/// A likelihood of one part of the data. Test rows are read only with `split` of test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScoreOf {
    /// The data.
    pub data: DataSpec,
    /// The model.
    pub subject: Subject,
    /// The part.
    pub split: Split,
}

impl ScoreOf {
    /// The same for another part.
    pub(crate) fn on(&self, split: Split) -> Self {
        Self { split, ..self.clone() }
    }

    /// Returns false for snapshots, whose likelihood of validation rows nobody asks for.
    pub(crate) fn is_first_on_validation(&self) -> bool {
        !matches!(self.subject, Subject::Snapshot(..))
    }
}

/// Samples to compare with the test rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct QualityOf {
    /// The data.
    pub data: DataSpec,
    /// What makes the samples.
    pub source: SampleSource,
    /// The number of samples.
    pub n_samples: usize,
    /// The seed.
    pub seed: u64,
}

/// What makes samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleSource {
    /// An RBM.
    Model(Box<Subject>),
    /// Training rows: samples of a perfect model.
    TrainingRows,
    /// Bits that are on with probability one half.
    RandomBits,
}

impl SampleSource {
    /// The RBM, if it is one.
    pub fn subject(&self) -> Option<&Subject> {
        if let Self::Model(subject) = self { Some(subject) } else { None }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Model(subject) => subject.name(),
            Self::TrainingRows => "training rows".into(),
            Self::RandomBits => "random bits".into(),
        }
    }
}
