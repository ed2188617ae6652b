//! Hold what became of tours.

use serde::{Deserialize, Serialize};

/// How a tour ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It was cut before it returned.
    Cut,
    /// In the state that it began in.
    OwnStart,
    /// In another state of the stopping set, given by its row.
    Elsewhere(u32),
}

/// One tour. 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tour {
    /// The row of the stopping set that it began in; of the data, if it began there.
    pub start: u32,
    /// Its length `ξ`, or the steps made before it was cut.
    pub length: u32,
    /// How it ended.
    pub end: End,
}

impl Tour {
    /// Whether it returned to the stopping set.
    pub fn is_complete(&self) -> bool {
        self.end != End::Cut
    }
}

/// Where tours began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartedFrom {
    /// Independent draws from `π_S`.
    Pi,
    /// Two draws in each of equal strata of `π_S`: tours `2s` and `2s + 1` share a stratum.
    Strata,
    /// `h ~ p(h|v)` of data rows drawn uniformly: Kac's identity does not apply.
    Rows,
}

/// Independent tours, and sums of statistics along each.
#[derive(Clone, Debug, PartialEq)]
pub struct Tours {
    pub(super) tours: Vec<Tour>,
    pub(super) started_from: StartedFrom,
    pub(super) is_gibbs: bool,
    pub(super) log_z_s: f64,
    pub(super) n_statistics: usize,
    /// `n_statistics` for each tour.
    pub(super) sums: Vec<f64>,
    pub(super) n_steps: u64,
    pub(super) seconds: f64,
}

impl Tours {
    /// The tours, in the order of their numbers.
    pub fn as_slice(&self) -> &[Tour] {
        &self.tours
    }

    /// Number of tours; at least one.
    pub fn n_tours(&self) -> usize {
        self.tours.len()
    }

    /// Where they began.
    pub fn started_from(&self) -> StartedFrom {
        self.started_from
    }

    /// Whether the chain was the model's own Gibbs chain, not a mean-field one.
    pub fn is_gibbs(&self) -> bool {
        self.is_gibbs
    }

    /// Tours that returned.
    pub fn n_complete(&self) -> usize {
        self.tours.iter().filter(|t| t.is_complete()).count()
    }

    /// Tours that returned to the very state they began in.
    pub fn n_own_start(&self) -> usize {
        self.tours.iter().filter(|t| t.end == End::OwnStart).count()
    }

    /// The numbers of the `n` shortest tours that returned, and of the `n` longest, at most one from each start.
    pub fn extremes(&self, n: usize) -> (Vec<usize>, Vec<usize>) {
        let tours = &self.tours;
        let mut order: Vec<usize> = (0..tours.len()).collect();
        // Stable: of tours of one length the first ones.
        order.sort_by_key(|&t| tours[t].length);
        let take = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut seen = std::collections::HashSet::new();
            numbers.filter(|&t| seen.insert(tours[t].start)).take(n).collect()
        };
        let shortest = take(&mut order.iter().copied().filter(|&t| tours[t].is_complete()));
        order.sort_by_key(|&t| std::cmp::Reverse(tours[t].length));
        (shortest, take(&mut order.iter().copied()))
    }

    /// Whether every tour returned.
    pub fn all_complete(&self) -> bool {
        self.tours.iter().all(Tour::is_complete)
    }

    /// `min(ξ, K)` of each tour.
    pub fn lengths(&self) -> Vec<f64> {
        self.tours.iter().map(|t| f64::from(t.length)).collect()
    }

    /// `log Z_S`, in double precision.
    pub fn log_z_s(&self) -> f64 {
        self.log_z_s
    }

    /// The sums of the statistics along tour `tour`.
    pub fn sums(&self, tour: usize) -> &[f64] {
        &self.sums[tour * self.n_statistics..][..self.n_statistics]
    }

    /// Gibbs steps made.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Wall time of the steps.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_of_different_starts() {
        let tour = |(start, length, end)| Tour { start, length, end };
        let of = [(0, 1, End::OwnStart), (0, 1, End::OwnStart), (1, 9, End::Cut), (2, 3, End::Elsewhere(0))];
        let tours = Tours {
            tours: of.into_iter().map(tour).collect(),
            started_from: StartedFrom::Pi,
            is_gibbs: true,
            log_z_s: 0.0,
            n_statistics: 0,
            sums: Vec::new(),
            n_steps: 0,
            seconds: 0.0,
        };
        assert_eq!(tours.extremes(5), (vec![0, 3], vec![2, 3, 0]));
        assert_eq!(tours.extremes(1), (vec![0], vec![2]));
    }
}
