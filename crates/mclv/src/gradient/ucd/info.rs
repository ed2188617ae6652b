//! Count what happens to pairs of coupled chains.

use crate::team;
use serde::{Deserialize, Serialize};

team::parcel! {
    /// Counts of pairs of coupled chains over an epoch of training: how many met, when, and how many
    /// were cut.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct CouplingInfo {
        /// The number of pairs.
        pub n_pairs: u64,
        /// The number of pairs that were cut because they had not met. Each of them biases the
        /// gradient.
        pub n_cut: u64,
        /// The number of Gibbs steps made, of both chains.
        pub n_steps: u64,
        /// The sum of the meeting times of the pairs that met, in steps.
        pub total_meeting: u64,
        /// The largest meeting time of the pairs that met.
        pub longest: u64,
    }
}

impl CouplingInfo {
    /// Adds the counts of other pairs.
    pub(super) fn merge(&mut self, other: &Self) {
        self.n_pairs += other.n_pairs;
        self.n_cut += other.n_cut;
        self.n_steps += other.n_steps;
        self.total_meeting += other.total_meeting;
        self.longest = self.longest.max(other.longest);
    }

    /// Counts a pair that met at time `t`. It need not be kept: returns false.
    pub(super) fn meet(&mut self, t: u64) -> bool {
        self.total_meeting += t;
        self.longest = self.longest.max(t);
        false
    }

    /// The mean meeting time of the pairs that met. NaN if none did.
    pub fn mean_meeting(&self) -> f64 {
        self.total_meeting as f64 / (self.n_pairs.saturating_sub(self.n_cut)) as f64
    }

    /// The share of the pairs that were cut.
    pub fn cut_share(&self) -> f64 {
        self.n_cut as f64 / self.n_pairs as f64
    }
}
