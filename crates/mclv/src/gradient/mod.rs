//! Estimate the gradient of the log-likelihood: `⟨v hᵀ⟩_data − ⟨v hᵀ⟩_model`, and likewise for `v`
//! and `h`.
//!
//! The trainer computes the positive phase from the minibatch. An [`Estimator`] computes the
//! negative phase: it subtracts weighted pairs `(v, h)` whose average stands for the expectation
//! under the model.

mod cd;
mod exact;
mod lvs;
mod moments;
mod pairs;
mod pcd;
mod state;
mod tempered;
#[cfg(test)]
pub(crate) mod tests;
mod ucd;
mod update;
mod value;

pub(crate) use exact::MAX_UNITS as EXACT_UNITS;
pub use lvs::TourInfo;
pub use moments::{data_moments, model_moments};
pub(crate) use pairs::{PairBlock, total_weight};
pub use state::{Array, State};
pub use tempered::TemperingInfo;
pub use ucd::CouplingInfo;
pub use update::Update;
pub(crate) use update::{Minibatch, Step};
pub use value::Gradient;

use crate::Result;
use crate::bits::BitRows;
use crate::model::Rbm;
use crate::settings::EstimatorSettings;

/// An estimator of the model's part of the gradient, called once per update.
///
/// To try an estimator of your own, implement [`estimate`](Self::estimate) and pass it to
/// [`Training::estimator`](crate::train::Training::estimator). `examples/own_estimator.rs` shows
/// one in a few lines. If the estimator has chains or other memory, implement [`save`](Self::save)
/// and [`restore`](Self::restore) too, so that a run in a folder can be resumed.
pub trait Estimator: Send {
    /// Prepares for an epoch. It is called with the first update of the epoch, before that update
    /// is estimated.
    ///
    /// # Errors
    /// If the epoch cannot begin.
    fn begin_epoch(&mut self, _update: &Update<'_>) -> Result<()> {
        Ok(())
    }

    /// Subtracts an estimate of the model's expectations from `gradient`. Returns false if nothing
    /// can be estimated this time; the update is then skipped.
    ///
    /// # Errors
    /// If the estimator cannot do its work, or [`Error::Cancelled`](crate::Error::Cancelled).
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool>;

    /// Returns counts of what happened since the last call. It is called after each epoch.
    fn take_info(&mut self) -> EstimatorInfo {
        EstimatorInfo::default()
    }

    /// Returns the hidden states of persistent chains or running tours, if there are any.
    fn chains(&self) -> Option<BitRows> {
        None
    }

    /// Returns the state that a resumed run needs to continue exactly.
    fn save(&self) -> State {
        State::default()
    }

    /// Continues from a state that [`save`](Self::save) returned.
    ///
    /// # Errors
    /// If the state does not belong to an estimator of this kind.
    fn restore(&mut self, _rbm: &Rbm, _state: &State) -> Result<()> {
        Ok(())
    }
}

/// Counts of an estimator's chains, tours, ladders or coupled pairs over an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimatorInfo {
    /// The share of the hidden bits of persistent chains that changed, if there are chains.
    pub chains_moved: Option<f64>,
    /// The counts of tours, if there are tours.
    pub tours: Option<TourInfo>,
    /// The counts of exchanges between rungs, if there are ladders.
    pub tempering: Option<TemperingInfo>,
    /// The counts of pairs, if there are coupled chains.
    pub coupling: Option<CouplingInfo>,
}

impl EstimatorSettings {
    /// Creates the estimator that these settings describe.
    pub(crate) fn estimator(&self) -> Box<dyn Estimator> {
        match self {
            Self::Cd { k, visible } => Box::new(cd::Cd::new(*k, *visible)),
            Self::Pcd { k, n_chains, visible } => Box::new(pcd::Pcd::new(*k, *n_chains, *visible)),
            Self::Lvs(settings) => Box::new(lvs::LvsEstimator::new(settings.clone())),
            Self::Tempered { k, n_chains, n_rungs } => {
                Box::new(tempered::Tempered::new(*k, *n_chains, *n_rungs))
            }
            Self::Ucd { k, max_meeting } => Box::new(ucd::Ucd::new(*k, *max_meeting)),
            Self::Exact => Box::new(exact::Exact),
        }
    }
}
