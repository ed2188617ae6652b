//! Count what happens to tours in training.

use crate::team;
use serde::{Deserialize, Serialize};

/// Defines the counts of tours, each named once with how two of them are merged.
macro_rules! counts {
    ($($(#[$meta:meta])* $merge:ident $field:ident: $kind:ty,)*) => {
        /// Counts of tours over an epoch of training: started, completed, cut, and how long they
        /// were.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct TourInfo { $($(#[$meta])* pub $field: $kind,)* }

        team::parcel!(TourInfo { $($field),* });

        impl TourInfo {
            /// Adds the counts of other tours.
            pub(super) fn merge(&mut self, other: &Self) {
                $(counts!(@$merge self.$field, other.$field);)*
            }
        }
    };
    (@sum $to:expr, $from:expr) => { $to += $from };
    (@largest $to:expr, $from:expr) => { $to = $to.max($from) };
    // The estimator sets these itself.
    (@own $to:expr, $from:expr) => {};
}

counts! {
    /// The number of tours started.
    sum n_started: u64,
    /// The number of tours that returned to the stopping set.
    sum n_completed: u64,
    /// The number of completed tours that ended in the state they had started from.
    sum n_completed_at_own_start: u64,
    /// The number of tours cut at their limit.
    sum n_truncated: u64,
    /// The number of times that a running tour (`carry`) went through an update without returning.
    #[serde(default)]
    sum n_carried: u64,
    /// The number of Gibbs steps made.
    sum n_steps: u64,
    /// The sum of the lengths of completed tours.
    sum total_length: u64,
    /// The length of the longest completed tour.
    largest longest: u64,
    /// The number of Metropolis proposals made.
    sum n_proposed: u64,
    /// The number of Metropolis proposals accepted.
    sum n_accepted: u64,
    /// The number of updates that were skipped because no tour returned.
    own n_skipped_updates: u64,
    /// The number of times that the start table was computed.
    own n_tables: u64,
    /// The smallest effective sample size of the start weights, as a share of the tours. It is 1 if
    /// starts are not weighted.
    own min_ess: f64,
    /// The number of states in the stopping set.
    own set_size: usize,
    /// The number of hidden states drawn per row for the stopping set.
    own samples_per_row: usize,
    /// The number of rows that the stopping set was drawn from.
    #[serde(default)]
    own n_rows: usize,
    /// `log Z_S` when the start table was last computed.
    own log_z_s: f64,
}

impl TourInfo {
    /// Returns the counts of an epoch that has not begun.
    pub(super) fn new() -> Self {
        Self { min_ess: 1.0, ..Self::default() }
    }

    /// The mean length of completed tours.
    pub fn mean_length(&self) -> f64 {
        self.total_length as f64 / self.n_completed as f64
    }

    /// The share of tours that returned within `k` steps.
    ///
    /// With `carry`, it is the number of returns divided by the number of returns plus the number
    /// of updates that a tour went through without returning.
    pub fn completion(&self) -> f64 {
        self.n_completed as f64 / self.n_tried().max(1) as f64
    }

    /// The share of completed tours that ended in the state they had started from.
    pub fn own_start(&self) -> f64 {
        self.n_completed_at_own_start as f64 / self.n_completed as f64
    }

    /// The share of Metropolis proposals that were accepted. NaN if there were no proposals.
    pub fn acceptance(&self) -> f64 {
        self.n_accepted as f64 / self.n_proposed as f64
    }

    /// The number of returns plus the number of chances to return that passed.
    pub(crate) fn n_tried(&self) -> u64 {
        // A file may hold any numbers.
        self.n_completed.saturating_add(self.n_truncated).saturating_add(self.n_carried)
    }

    /// Counts a tour that has returned.
    pub(super) fn complete(&mut self, length: u64, at_own_start: bool) {
        self.n_completed += 1;
        self.n_completed_at_own_start += u64::from(at_own_start);
        self.total_length += length;
        self.longest = self.longest.max(length);
    }
}
