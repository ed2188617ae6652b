//! Estimate the gradient of the log-likelihood: `⟨v hᵀ⟩_data − ⟨v hᵀ⟩_model`, and likewise for `v` and `h`.
//!
//! The positive phase is the minibatch. The estimators differ in the negative phase; each gives weighted pairs `(v, h)`
//! whose average stands for the expectation under the model.

mod cd;
mod chain;
mod exact;
mod lvs;
mod moments;
mod pcd;
mod settings;
#[cfg(test)]
mod tests;
mod update;

pub use lvs::TourInfo;
pub(crate) use moments::{Moments, PairBlock, Visible, total_weight};
pub use settings::{Gradient, Lvs, Starts, Statistics, TourLength, Unfinished, VisibleChain};
pub(crate) use update::{Step, Update};

use crate::Result;
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;

/// A negative phase that goes on from update to update.
pub(crate) trait NegativePhase: Send {
    /// Called before the first update of an epoch.
    fn begin_epoch(&mut self, _rbm: &Rbm, _data: &Rows, _step: Step) -> Result<()> {
        Ok(())
    }

    /// Subtract the model's moments from `moments` and return the pairs of the positive phase, which may be made side by
    /// side; `None` if there is nothing to learn from this time.
    fn subtract(&mut self, update: &Update<'_>, moments: &mut Moments) -> Result<Option<Vec<PairBlock>>>;

    /// What happened to tours since the last call, if there are any.
    fn take_tour_info(&mut self) -> Option<TourInfo> {
        None
    }

    /// Share of the hidden bits of persistent chains that changed since the last call, if there are any.
    fn take_chains_moved(&mut self) -> Option<f64> {
        None
    }

    /// The hidden states of persistent chains or running tours, if there are any.
    fn chains(&self) -> Option<BitRows> {
        None
    }

    /// What must be kept to go on exactly: named tensors of words and of numbers.
    fn state(&self) -> PhaseState {
        PhaseState::default()
    }

    /// Go on from a kept state.
    fn restore(&mut self, _rbm: &Rbm, _state: &PhaseState) -> Result<()> {
        Ok(())
    }
}

/// The memory of a negative phase, for checkpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PhaseState {
    pub(crate) words: Vec<(String, Vec<u64>)>,
    pub(crate) numbers: Vec<(String, Vec<f64>)>,
}

impl PhaseState {
    /// The hidden states of persistent chains or running tours, if there are any.
    pub(crate) fn chains(&self, n_hidden: usize) -> Option<BitRows> {
        let words = self.words("chains").or(self.words("tours")).filter(|words| !words.is_empty())?;
        let intact = words.len().is_multiple_of(n_hidden.div_ceil(64));
        intact.then(|| BitRows::from_words(n_hidden, words.to_vec()))
    }

    pub(crate) fn words(&self, name: &str) -> Option<&[u64]> {
        self.words.iter().find(|(n, _)| n == name).map(|(_, w)| w.as_slice())
    }

    pub(crate) fn numbers(&self, name: &str) -> Option<&[f64]> {
        self.numbers.iter().find(|(n, _)| n == name).map(|(_, w)| w.as_slice())
    }
}

impl Gradient {
    /// The negative phase that these settings describe.
    pub(crate) fn negative_phase(&self) -> Box<dyn NegativePhase> {
        match self {
            Self::Cd { k, visible } => Box::new(cd::Cd::new(*k, *visible)),
            Self::Pcd { k, n_chains, visible } => Box::new(pcd::Pcd::new(*k, *n_chains, *visible)),
            Self::Lvs(settings) => Box::new(lvs::LvsPhase::new(settings.clone())),
            Self::Exact => Box::new(exact::ExactPhase),
        }
    }
}
