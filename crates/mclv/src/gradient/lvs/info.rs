//! Count what happens to tours in training.

use crate::team;
use serde::{Deserialize, Serialize};

/// Defines the counts of tours, each named once with how two of them are merged.
macro_rules! counts {
    ($($(#[$meta:meta])* $merge:ident $field:ident: $kind:ty,)*) => {
        /// What happened to tours over an epoch.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct TourInfo { $($(#[$meta])* pub $field: $kind,)* }

        team::parcel!(TourInfo { $($field),* });

        impl TourInfo {
            /// Adds what happened to other tours.
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
    /// Tours started.
    sum n_started: u64,
    /// Tours that returned to the stopping set.
    sum n_completed: u64,
    /// Of these, tours that ended in the state they had started from.
    sum n_completed_at_own_start: u64,
    /// Tours cut at their limit.
    sum n_truncated: u64,
    /// Times that a running tour (`carry`) went through an update without returning.
    #[serde(default)]
    sum n_carried: u64,
    /// Gibbs steps made.
    sum n_steps: u64,
    /// Sum of the lengths of completed tours.
    sum total_length: u64,
    /// Longest completed tour.
    largest longest: u64,
    /// Metropolis proposals made and accepted.
    sum n_proposed: u64,
    /// Metropolis proposals accepted.
    sum n_accepted: u64,
    /// Updates from which nothing could be learnt: no tour returned.
    own n_skipped_updates: u64,
    /// Times the start table was made.
    own n_tables: u64,
    /// Smallest effective sample size of the start weights, as a share of the tours; 1 if they are not weighted.
    own min_ess: f64,
    /// States in the stopping set.
    own set_size: usize,
    /// Hidden states drawn per row for it.
    own samples_per_row: usize,
    /// Rows that it was drawn from.
    #[serde(default)]
    own n_rows: usize,
    /// `log Z_S` when the table was last made.
    own log_z_s: f64,
}

impl TourInfo {
    /// Counts of an epoch that has not begun.
    pub(super) fn new() -> Self {
        Self { min_ess: 1.0, ..Self::default() }
    }

    /// Mean length of completed tours.
    pub fn mean_length(&self) -> f64 {
        self.total_length as f64 / self.n_completed as f64
    }

    /// Share of tours that returned within `k` steps; of running tours, returns among returns and updates without one.
    pub fn completion(&self) -> f64 {
        self.n_completed as f64 / self.n_tried().max(1) as f64
    }

    /// Share of the tours that returned which ended in the state they had started from.
    pub fn own_start(&self) -> f64 {
        self.n_completed_at_own_start as f64 / self.n_completed as f64
    }

    /// Share of Metropolis proposals that were accepted; NaN without proposals.
    pub fn acceptance(&self) -> f64 {
        self.n_accepted as f64 / self.n_proposed as f64
    }

    /// Returns, and chances to return that passed.
    pub(crate) fn n_tried(&self) -> u64 {
        self.n_completed + self.n_truncated + self.n_carried
    }

    /// Counts a tour that has returned.
    pub(super) fn complete(&mut self, length: u64, at_own_start: bool) {
        self.n_completed += 1;
        self.n_completed_at_own_start += u64::from(at_own_start);
        self.total_length += length;
        self.longest = self.longest.max(length);
    }
}
