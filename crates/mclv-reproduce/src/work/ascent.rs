//! Continues training from a trained model, and computes the likelihood of the result.

use super::train::Listening;
use super::{DataSets, Likelihoods, NoReport, likelihood};
use crate::task::{AscentOf, LikelihoodOf};
use mclv::data::Split;
use mclv::progress::Progress;
use mclv::train::{Outcome, Training};
use mclv::{Error, Rbm, Result};

pub(super) fn run(of: &AscentOf, rbm: Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<Likelihoods> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let mut listening = Listening(progress);
    let training = Training::new(of.then.settings()).from_model(rbm).unwatched().observe(&mut listening);
    let ascended = training.fit(&data.rows)?;
    if let Outcome::Interrupted { .. } = ascended.outcome {
        return Err(Error::Cancelled);
    }
    let exact = LikelihoodOf { model: of.model.clone(), exact: true };
    likelihood::run(&exact, &ascended.model, None, sets, &NoReport(progress))
}
