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

pub use lvs::TourInfo;
pub(crate) use moments::{BLOCK, Moments, PairBlock, Visible};
pub use settings::{Gradient, Lvs, Starts, Statistics, TourLength, Unfinished, VisibleChain};

use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;

/// Where in a run an update stands; all its random numbers follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) seed: u64,
    pub(crate) epoch: u32,
    /// Minibatch within the epoch.
    pub(crate) update: u32,
    /// Minibatches per epoch.
    pub(crate) n_updates: u32,
}

/// The positive phase of a block of rows.
pub(crate) struct PositiveBlock {
    pub(crate) v: Visible,
    pub(crate) n_rows: usize,
    /// `h ~ p(h|v)`, if the estimator asked for it.
    pub(crate) h: Vec<u64>,
    /// Weights of the rows; none: all are 1.
    pub(crate) weights: Option<Vec<f32>>,
}

/// A negative phase that goes on from update to update.
pub(crate) trait NegativePhase: Send {
    /// Whether the positive phase should also draw hidden states.
    fn wants_hidden_states(&self) -> bool {
        false
    }

    /// Called before the first update of an epoch.
    fn begin_epoch(&mut self, _rbm: &Rbm, _data: &Rows, _step: Step) -> Result<()> {
        Ok(())
    }

    /// Subtract the model's moments from `moments`; `false` if there is nothing to learn from this time.
    fn subtract(
        &mut self,
        rbm: &Rbm,
        data: &Rows,
        positive: &[PositiveBlock],
        step: Step,
        moments: &mut Moments,
        progress: &dyn Progress,
    ) -> Result<bool>;

    /// What happened to tours since the last call, if there are any.
    fn take_tour_info(&mut self) -> Option<TourInfo> {
        None
    }

    /// Share of the hidden bits of persistent chains that changed since the last call, if there are any.
    fn take_chains_moved(&mut self) -> Option<f64> {
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
