//! Fits a tractable model, and computes its likelihood of one part of the data.

use super::{DataSets, check_cancelled};
use crate::baseline::{Density, Independent, Mixture, MixtureSettings, Tree, mean_log_likelihood};
use crate::subject::{Baseline, BaselineOf};
use mclv::bits::BitRows;
use mclv::data::{Dataset, Rows, Split};
use mclv::progress::Progress;
use mclv::{Error, Result};
use serde::{Deserialize, Serialize};

/// The likelihood of a part of the data under a tractable model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// The mean log-likelihood, in nats per row. It is exact.
    pub mean: f64,
    /// The standard error of the mean from the choice of rows.
    pub std_err_rows: Option<f64>,
}

pub(super) fn run(of: &BaselineOf, sets: &DataSets, progress: &dyn Progress) -> Result<Fitted> {
    let part = |split: Split| sets.load(&of.data, split, progress);
    let (train, rows) = (part(Split::Train)?, part(of.split)?);
    let (train, rows) = (bits(&train)?, bits(&rows)?);
    check_cancelled(progress)?;
    let model: Box<dyn Density> = match of.model {
        Baseline::Independent => Box::new(Independent::fit(train)),
        Baseline::Tree => Box::new(Tree::fit(train)),
        Baseline::Mixture { n_components } => {
            let validation = part(Split::Validation)?;
            Box::new(Mixture::fit(train, bits(&validation)?, &MixtureSettings { n_components, seed: 0 }))
        }
    };
    let (mean, std_err_rows) = mean_log_likelihood(&*model, rows);
    Ok(Fitted { mean, std_err_rows })
}

/// The rows as bits.
pub(super) fn bits(set: &Dataset) -> Result<&BitRows> {
    match &set.rows {
        Rows::Bits(bits) => Ok(bits),
        _ => Err(Error::InvalidChoice {
            name: "data",
            value: set.name.clone(),
            cure: "the comparison of densities needs rows of 0 and 1".into(),
        }),
    }
}
