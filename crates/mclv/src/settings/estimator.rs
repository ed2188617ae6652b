//! Gradient estimators with every setting decided.

use super::{Auto, Settings, TourLength};
use crate::chain::VisibleChain;
use crate::words::words;

/// The gradient estimators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimatorName {
    /// Contrastive divergence.
    Cd,
    /// Persistent contrastive divergence.
    Pcd,
    /// Las Vegas tours.
    Lvs,
    /// Parallel tempering.
    Tempered,
    /// Unbiased contrastive divergence.
    Ucd,
    /// Enumeration.
    Exact,
}

words!(EstimatorName as "gradient" {
    Cd = "cd",
    Pcd = "pcd",
    Lvs = "lvs",
    Tempered = "tempered",
    Ucd = "ucd",
    Exact = "exact",
});

/// What happens to tours that have not returned after `k` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// They are left out, as in the paper. With a true Gibbs chain, the gradient then never lowers
    /// the probability of states far from the stopping set, and training diverges.
    Drop,
    /// The states that they have visited so far count.
    Keep,
    /// They continue in the next update. A tour that returns starts again within the same update.
    Carry,
}

words!(Unfinished as "unfinished" { Drop = "drop", Keep = "keep", Carry = "carry" });

/// How starts are drawn from `π_S` under the current parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// Evaluate the whole set at every update.
    Fresh,
    /// Draw from an older table and weight the tours (not with [`Unfinished::Carry`]).
    Weighted,
    /// Propose from an older table, accept by the Metropolis ratio (only with
    /// [`Unfinished::Carry`]).
    Metropolis,
}

words!(Starts as "starts" { Fresh = "fresh", Weighted = "weighted", Metropolis = "metropolis" });

impl Starts {
    /// Returns true if tours with this policy can start this way.
    pub(super) fn goes_with(self, policy: Unfinished) -> bool {
        match self {
            Self::Fresh => true,
            Self::Weighted => policy != Unfinished::Carry,
            Self::Metropolis => policy == Unfinished::Carry,
        }
    }
}

/// What is averaged along a tour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// `v_k h_kᵀ` itself.
    Sampled,
    /// `v_k E[h|v_k]ᵀ`.
    MeanHidden,
    /// `E[v|h_k] h_kᵀ`.
    MeanVisible,
}

words!(Statistics as "statistics" {
    Sampled = "sampled",
    MeanHidden = "mean-hidden",
    MeanVisible = "mean-visible",
});

/// A gradient estimator and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum EstimatorSettings {
    /// Contrastive divergence (Hinton 2002): `k` Gibbs steps from the data. Biased.
    Cd {
        /// Gibbs steps.
        k: usize,
        /// The visible layer of the chain.
        visible: VisibleChain,
    },
    /// Persistent contrastive divergence (Tieleman 2008): chains continue from update to update.
    Pcd {
        /// Gibbs steps per update.
        k: usize,
        /// Number of chains; `None`: one per row of the first minibatch.
        n_chains: Option<usize>,
        /// The visible layer of the chain.
        visible: VisibleChain,
    },
    /// Las Vegas tours (Savarese, Kakodkar and Ribeiro 2018).
    Lvs(LvsSettings),
    /// Parallel tempering (Desjardins and others 2010): ladders of chains at rising temperatures
    /// continue from update to update and exchange their states.
    Tempered {
        /// Gibbs steps of each chain per update.
        k: usize,
        /// Number of ladders.
        n_chains: usize,
        /// Number of rungs of a ladder above the lowest one, which has no chain.
        n_rungs: usize,
    },
    /// Unbiased contrastive divergence (Qiu, Zhang and Wang 2020): pairs of coupled chains from the
    /// data, with a correction of CD that lasts until they meet.
    Ucd {
        /// Gibbs steps before the correction begins.
        k: usize,
        /// The number of Gibbs steps after which a pair that has not met is cut.
        max_meeting: usize,
    },
    /// The exact gradient by enumeration of the smaller layer: small models only.
    Exact,
}

/// The settings of Las Vegas tours.
#[derive(Clone, Debug, PartialEq)]
pub struct LvsSettings {
    /// Steps after which a tour is cut (with [`Unfinished::Carry`]: steps per update), or until all
    /// tours have returned.
    pub k: TourLength,
    /// Tours per update; `None`: one per row of the minibatch.
    pub n_tours: Option<usize>,
    /// What happens to tours that have not returned.
    pub unfinished: Unfinished,
    /// How starts are drawn under parameters that change with every update.
    pub starts: Starts,
    /// What is averaged along a tour.
    pub statistics: Statistics,
    /// The visible layer of the chain.
    pub visible: VisibleChain,
    /// Hidden states drawn for each row when the stopping set is made.
    pub samples_per_row: usize,
    /// Share of the training rows used for the stopping set.
    pub row_fraction: f64,
    /// Epochs until the stopping set is drawn again.
    pub redraw_every: usize,
    /// With weighted or Metropolis starts, the table of starts is rebuilt when the effective sample
    /// size falls below this share.
    pub min_ess: f64,
    /// The size of the stopping set (rows and samples per row) adapts so that this share of tours
    /// returns within `k` steps; `None`: it does not adapt.
    pub target_completion: Option<f64>,
    /// Memory limit of an adaptive set: the largest number of states drawn for it.
    pub max_states: usize,
    /// Time limit of an adaptive set: states drawn and evaluated for it per Gibbs step of the
    /// tours. Drawing or evaluating a state is about half the work of a Gibbs step on any machine.
    /// `None`: no limit.
    pub max_set_cost: Option<f64>,
}

impl EstimatorSettings {
    /// The name for tables and files: `PCD-3`, `LVS-1 carry`, `CD-1, mean field`.
    pub fn name(&self) -> String {
        let name = match self {
            Self::Cd { k, .. } => format!("CD-{k}"),
            Self::Pcd { k, .. } => format!("PCD-{k}"),
            Self::Lvs(LvsSettings { k, unfinished, .. }) => format!("LVS-{k} {unfinished}"),
            Self::Tempered { k, .. } => format!("tempered-{k}"),
            Self::Ucd { k, .. } => format!("UCD-{k}"),
            Self::Exact => "exact gradient".into(),
        };
        let mean_field = self.visible() == Some(VisibleChain::MeanField);
        if mean_field { format!("{name}, mean field") } else { name }
    }

    /// The visible layer of the chain, if there is a chain.
    pub fn visible(&self) -> Option<VisibleChain> {
        match self {
            Self::Cd { visible, .. } | Self::Pcd { visible, .. } => Some(*visible),
            Self::Lvs(lvs) => Some(lvs.visible),
            Self::Tempered { .. } | Self::Ucd { .. } => Some(VisibleChain::Sampled),
            Self::Exact => None,
        }
    }

    /// The largest number of Gibbs steps that one chain makes in an epoch of `n_updates` updates.
    pub(super) fn steps_of_epoch(&self, n_updates: usize) -> usize {
        match self {
            Self::Cd { k, .. } | Self::Pcd { k, .. } | Self::Tempered { k, .. } => {
                k.saturating_mul(n_updates)
            }
            Self::Lvs(lvs) if lvs.unfinished == Unfinished::Carry => {
                (lvs.k.limit() as usize).saturating_mul(n_updates)
            }
            Self::Lvs(lvs) => lvs.k.limit() as usize,
            Self::Ucd { max_meeting, .. } => *max_meeting,
            Self::Exact => 0,
        }
    }
}

impl From<&EstimatorSettings> for Settings {
    /// Settings that choose this estimator, with nothing else set.
    fn from(estimator: &EstimatorSettings) -> Self {
        let steps = |k: &usize| Some(TourLength::Steps(u32::try_from(*k).unwrap_or(u32::MAX)));
        match estimator {
            EstimatorSettings::Cd { k, visible } => Self {
                gradient: Some(EstimatorName::Cd),
                k: steps(k),
                visible: Some(*visible),
                ..Self::default()
            },
            EstimatorSettings::Pcd { k, n_chains, visible } => Self {
                gradient: Some(EstimatorName::Pcd),
                k: steps(k),
                n_chains: Some((*n_chains).into()),
                visible: Some(*visible),
                ..Self::default()
            },
            EstimatorSettings::Lvs(lvs) => Self {
                gradient: Some(EstimatorName::Lvs),
                k: Some(lvs.k),
                n_chains: Some(lvs.n_tours.into()),
                visible: Some(lvs.visible),
                unfinished: Some(lvs.unfinished),
                starts: Some(lvs.starts),
                statistics: Some(lvs.statistics),
                samples_per_row: Some(lvs.samples_per_row),
                row_fraction: Some(lvs.row_fraction.into()),
                redraw_every: Some(lvs.redraw_every),
                min_ess: Some(lvs.min_ess),
                target_completion: Some(lvs.target_completion.into()),
                max_states: Some(lvs.max_states),
                max_set_cost: Some(lvs.max_set_cost.into()),
                ..Self::default()
            },
            EstimatorSettings::Tempered { k, n_chains, n_rungs } => Self {
                gradient: Some(EstimatorName::Tempered),
                k: steps(k),
                n_chains: Some(Auto::Given(*n_chains)),
                n_rungs: Some(*n_rungs),
                ..Self::default()
            },
            EstimatorSettings::Ucd { k, max_meeting } => Self {
                gradient: Some(EstimatorName::Ucd),
                k: steps(k),
                max_meeting: Some(*max_meeting),
                ..Self::default()
            },
            EstimatorSettings::Exact => Self { gradient: Some(EstimatorName::Exact), ..Self::default() },
        }
    }
}

#[cfg(test)]
impl Default for LvsSettings {
    /// For tests: one step per update, unfinished tours carried over, a set from all rows.
    fn default() -> Self {
        Self {
            k: TourLength::Steps(1),
            n_tours: None,
            unfinished: Unfinished::Carry,
            starts: Starts::Metropolis,
            statistics: Statistics::MeanHidden,
            visible: VisibleChain::Sampled,
            samples_per_row: 1,
            row_fraction: 1.0,
            redraw_every: 1,
            min_ess: 0.2,
            target_completion: None,
            max_states: 1_000_000,
            max_set_cost: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        let visible = VisibleChain::Sampled;
        assert_eq!(EstimatorSettings::Pcd { k: 3, n_chains: None, visible }.name(), "PCD-3");
        assert_eq!(EstimatorSettings::Lvs(LvsSettings::default()).name(), "LVS-1 carry");
        let mean_field = EstimatorSettings::Cd { k: 10, visible: VisibleChain::MeanField };
        assert_eq!(mean_field.name(), "CD-10, mean field");
        let tempered = EstimatorSettings::Tempered { k: 2, n_chains: 8, n_rungs: 4 };
        assert_eq!(tempered.name(), "tempered-2");
        assert_eq!(EstimatorSettings::Ucd { k: 1, max_meeting: 9 }.name(), "UCD-1");
        assert_eq!(EstimatorSettings::Exact.name(), "exact gradient");
    }
}
