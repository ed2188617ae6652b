//! Find the likelihood of a model on training and test rows.

use super::DataSets;
use crate::task::LikelihoodOf;
use mclv::data::Split;
use mclv::partition::{self, Effort, ExactSettings, Guarantee, LogZ, MethodSettings, Question};
use mclv::progress::Progress;
use mclv::{Likelihood, Rbm, Result, average_log_likelihood};
use serde::{Deserialize, Serialize};

/// Aimed at where the value is an estimate; at most 0.05 is asked for.
const TARGET_SE: f64 = 0.02;

/// The likelihoods of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likelihoods {
    /// `log Z`, with its method and guarantee.
    pub log_z: LogZ,
    /// Training rows.
    pub train: Likelihood,
    /// Validation rows.
    pub validation: Likelihood,
    /// Test rows.
    pub test: Likelihood,
}

/// `known` is the last `log Z` of the training.
pub(super) fn run(
    of: &LikelihoodOf,
    rbm: &Rbm,
    known: Option<&LogZ>,
    sets: &DataSets,
    progress: &dyn Progress,
) -> Result<Likelihoods> {
    let train = sets.load(&of.model, Split::Train, progress)?;
    let known = known.filter(|log_z| of.exact && log_z.guarantee == Guarantee::Exact);
    let log_z = if let Some(log_z) = known {
        log_z.clone()
    } else if of.exact {
        partition::exact(rbm, &ExactSettings { time_limit: f64::INFINITY }, progress)?
    } else {
        let settings = MethodSettings {
            effort: Effort::TargetSe(TARGET_SE),
            n_chains: 256,
            n_betas: 20_000,
            // Estimates are asked for where enumeration is what they are to be compared with.
            time_limit: 0.0,
            seed: of.model.train.seed,
            ..Default::default()
        };
        Question { rows: Some(&train.rows), ..Question::new(rbm) }.best(&settings, progress)?
    };
    let of_split = |split: Split| -> Result<Likelihood> {
        average_log_likelihood(rbm, &sets.load(&of.model, split, progress)?.rows, &log_z)
    };
    Ok(Likelihoods {
        train: of_split(Split::Train)?,
        validation: of_split(Split::Validation)?,
        test: of_split(Split::Test)?,
        log_z,
    })
}
