//! Go on from a trained model, and find the likelihood where that leads.

use super::{DataSets, Likelihoods, NoReport, likelihood};
use crate::task::{AscentOf, LikelihoodOf};
use mclv::data::Split;
use mclv::progress::Progress;
use mclv::train::Trainer;
use mclv::{Rbm, Result};

pub(super) fn run(of: &AscentOf, rbm: Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<Likelihoods> {
    let data = sets.load(&of.model, Split::Train, progress)?;
    let mut trainer = Trainer::from_model(of.then.clone(), rbm, &data.rows, None)?;
    while !trainer.is_finished() {
        trainer.epoch(&data.rows, &NoReport(progress))?;
        progress.report(trainer.epochs_done() as u64, of.then.epochs as u64);
    }
    let exact = LikelihoodOf { model: of.model.clone(), exact: true };
    likelihood::run(&exact, trainer.rbm(), None, sets, &NoReport(progress))
}
