//! Hold the results of tours.

use crate::team;
use serde::{Deserialize, Serialize};

/// How a tour ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The tour was cut before it returned.
    Cut,
    /// The tour ended in the state that it began in.
    OwnStart,
    /// The tour ended in another state of the stopping set, given by its row.
    Elsewhere(u32),
}

/// The result of one tour: its start, its length and its end (16 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tour {
    /// The row of the stopping set that the tour began in, or the row of the data if it began
    /// there.
    pub start: u32,
    /// The length `ξ`, or the number of steps made before the tour was cut.
    pub length: u32,
    /// How the tour ended.
    pub end: End,
}
team::parcel!(Tour { start, length, end });

impl team::Parcel for End {
    fn pack(&self, to: &mut Vec<u8>) {
        let (kind, row) = match *self {
            Self::Cut => (0u8, 0),
            Self::OwnStart => (1, 0),
            Self::Elsewhere(row) => (2, row),
        };
        kind.pack(to);
        row.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Self {
        match (u8::unpack(from), u32::unpack(from)) {
            (0, _) => Self::Cut,
            (1, _) => Self::OwnStart,
            (_, row) => Self::Elsewhere(row),
        }
    }
}

impl Tour {
    /// Returns true if the tour returned to the stopping set.
    pub fn is_complete(&self) -> bool {
        self.end != End::Cut
    }
}

/// The distribution that the starts of tours were drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartedFrom {
    /// Independent draws from `π_S`.
    Pi,
    /// Two draws in each of equal strata of `π_S`. Tours `2s` and `2s + 1` share a stratum.
    Strata,
    /// `h ~ p(h|v)` of data rows drawn uniformly. Kac's identity does not apply.
    Rows,
}

/// The results of independent tours, and sums of statistics along each.
#[derive(Clone, Debug, PartialEq)]
pub struct Tours {
    pub(super) tours: Vec<Tour>,
    pub(super) started_from: StartedFrom,
    pub(super) is_gibbs: bool,
    pub(super) has_budget: bool,
    pub(super) log_z_s: f64,
    pub(super) n_statistics: usize,
    /// `n_statistics` for each tour.
    pub(super) sums: Vec<f64>,
    pub(super) n_steps: u64,
    pub(super) seconds: f64,
}

impl Tours {
    /// Returns the tours, in the order of their numbers.
    pub fn as_slice(&self) -> &[Tour] {
        &self.tours
    }

    /// The number of tours, at least one.
    pub fn n_tours(&self) -> usize {
        self.tours.len()
    }

    /// Returns the distribution that the starts were drawn from.
    pub fn started_from(&self) -> StartedFrom {
        self.started_from
    }

    /// Returns true if the chain was the model's own Gibbs chain, not a mean-field one.
    pub fn is_gibbs(&self) -> bool {
        self.is_gibbs
    }

    /// Returns true if a budget could have cut tours, even if it cut none.
    pub fn has_budget(&self) -> bool {
        self.has_budget
    }

    /// The number of tours that returned.
    pub fn n_complete(&self) -> usize {
        self.tours.iter().filter(|t| t.is_complete()).count()
    }

    /// The number of tours that returned to the state they began in.
    pub fn n_own_start(&self) -> usize {
        self.tours.iter().filter(|t| t.end == End::OwnStart).count()
    }

    /// The number of tours that returned to another state than they began in.
    pub fn n_elsewhere(&self) -> usize {
        self.tours.iter().filter(|t| matches!(t.end, End::Elsewhere(_))).count()
    }

    /// The number of tours that returned after one step.
    pub fn n_one_step(&self) -> usize {
        self.tours.iter().filter(|t| t.is_complete() && t.length == 1).count()
    }

    /// The number of tours that returned to the state they began in after one step.
    pub fn n_own_start_in_one_step(&self) -> usize {
        self.tours.iter().filter(|t| t.length == 1 && t.end == End::OwnStart).count()
    }

    /// The number of steps of the longest tour, cut or not.
    pub fn longest(&self) -> u32 {
        self.tours.iter().map(|t| t.length).max().unwrap_or(0)
    }

    /// Returns true if every tour returned.
    pub fn all_complete(&self) -> bool {
        self.tours.iter().all(Tour::is_complete)
    }

    /// Returns the length `min(ξ, K)` of each tour.
    pub fn lengths(&self) -> Vec<f64> {
        self.tours.iter().map(|t| f64::from(t.length)).collect()
    }

    /// Returns `log Z_S` in double precision.
    pub fn log_z_s(&self) -> f64 {
        self.log_z_s
    }

    /// Returns the sums of the statistics along tour `tour`.
    pub fn sums(&self, tour: usize) -> &[f64] {
        &self.sums[tour * self.n_statistics..][..self.n_statistics]
    }

    /// Returns the sums of the statistics along all tours, tour by tour.
    pub(crate) fn into_sums(self) -> Vec<f64> {
        self.sums
    }

    /// The number of Gibbs steps made.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// The wall time of the steps, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}
