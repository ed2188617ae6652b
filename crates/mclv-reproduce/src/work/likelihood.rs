//! Computes the likelihood of a model for training and test rows.

use super::DataSets;
use crate::task::LikelihoodOf;
use mclv::data::Split;
use mclv::partition::{Budget, Effort, Guarantee, Inputs, LogZ, Method, MethodSettings, Plan};
use mclv::progress::Progress;
use mclv::{Likelihood, Rbm, Result};
use serde::{Deserialize, Serialize};

/// The wanted standard error of an estimate. The comparison needs at most 0.05.
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
    let train = sets.load(&of.model.data, Split::Train, progress)?;
    let known = known.filter(|log_z| of.exact && log_z.guarantee == Guarantee::Exact);
    let log_z = if let Some(log_z) = known {
        log_z.clone()
    } else {
        let (method, seconds) = if of.exact {
            (Some(Method::Exact), f64::INFINITY)
        } else {
            // Estimates are compared with enumeration, so none of them may enumerate.
            (None, 0.0)
        };
        let settings = MethodSettings {
            effort: Effort::TargetSe(TARGET_SE),
            budget: Budget { seconds, n_chains: 256, n_betas: 20_000, ..Budget::COMMAND },
            seed: of.model.train.seed,
            ..Default::default()
        };
        let inputs = Inputs { rows: Some(&train.rows), ..Inputs::default() };
        Plan::new(rbm, method, &settings).run(&inputs, progress)?
    };
    let of_split = |split: Split| -> Result<Likelihood> {
        rbm.log_likelihood(&sets.load(&of.model.data, split, progress)?.rows, &log_z)
    };
    Ok(Likelihoods {
        train: of_split(Split::Train)?,
        validation: of_split(Split::Validation)?,
        test: of_split(Split::Test)?,
        log_z,
    })
}
