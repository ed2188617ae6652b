//! The tail function `p(ξ > k)` of tour lengths, with confidence limits.

use super::binomial::clopper_pearson;
use super::record::Tours;
use serde::{Deserialize, Serialize};

/// One point of a [`Ccdf`]: `p(ξ > k)` at one length `k`, with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint {
    /// The length.
    pub k: u32,
    /// The share of tours longer than `k`.
    pub p: f64,
    /// The lower limit, 95 % pointwise.
    pub low: f64,
    /// The upper limit, 95 % pointwise.
    pub high: f64,
}

/// The tail function `p(ξ > k)` of tour lengths. It changes only at the lengths listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ccdf {
    /// The points of the function in increasing order of `k`, from `k = 0`.
    pub points: Vec<CcdfPoint>,
    /// The largest length at which the function is known, because a tour was cut there. `None` if
    /// no tour was cut.
    pub known_up_to: Option<u32>,
}

impl Ccdf {
    /// Returns the last point at or below `k`, or `None` if the tours were cut before `k`.
    ///
    /// ```
    /// use mclv::tour::{Ccdf, CcdfPoint};
    /// let point = |k, p| CcdfPoint { k, p, low: 0.0, high: 1.0 };
    /// let ccdf = Ccdf { points: vec![point(0, 1.0), point(1, 0.25), point(7, 0.125)], known_up_to: Some(10) };
    /// assert_eq!(ccdf.at(5).unwrap().p, 0.25);
    /// assert!(ccdf.at(11).is_none());
    /// ```
    pub fn at(&self, k: u32) -> Option<&CcdfPoint> {
        if self.known_up_to.is_some_and(|last| k > last) {
            return None;
        }
        self.points[..self.points.partition_point(|point| point.k <= k)].last()
    }

    /// Returns a copy with few enough points to print: each point is at least `ratio` times as long
    /// as the one before, and the last point stays.
    ///
    /// ```
    /// use mclv::tour::{Ccdf, CcdfPoint};
    /// let points = (0..=1000).map(|k| CcdfPoint { k, p: 1.0 - f64::from(k) / 1e3, low: 0.0, high: 1.0 }).collect();
    /// let few = Ccdf { points, known_up_to: None }.thinned(2.0);
    /// let lengths: Vec<u32> = few.points.iter().map(|point| point.k).collect();
    /// assert_eq!(lengths, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
    /// ```
    pub fn thinned(&self, ratio: f64) -> Self {
        let mut points: Vec<CcdfPoint> = Vec::new();
        for (k, point) in self.points.iter().enumerate() {
            let is_far = points.last().is_none_or(|last| f64::from(point.k) >= ratio * f64::from(last.k));
            if is_far || k + 1 == self.points.len() {
                points.push(*point);
            }
        }
        Self { points, known_up_to: self.known_up_to }
    }
}

impl Tours {
    /// Returns the tail function of the lengths, up to the length at which the first tour was cut.
    /// The limits are those of Clopper and Pearson. With stratified starts they are wider than
    /// necessary.
    pub fn ccdf(&self) -> Ccdf {
        let n = self.n_tours() as u64;
        let known_up_to = self.as_slice().iter().filter(|t| !t.is_complete()).map(|t| t.length).min();
        let last = known_up_to.unwrap_or(u32::MAX);
        let mut ends: Vec<u32> = self
            .as_slice()
            .iter()
            .filter(|t| t.is_complete() && t.length <= last)
            .map(|t| t.length)
            .collect();
        ends.sort_unstable();
        let point = |k, n_longer: u64| {
            let (low, high) = clopper_pearson(n_longer, n, 0.95);
            CcdfPoint { k, p: n_longer as f64 / n as f64, low, high }
        };
        let mut n_longer = n;
        let mut points = vec![CcdfPoint { k: 0, p: 1.0, low: 1.0, high: 1.0 }];
        for same in ends.chunk_by(|a, b| a == b) {
            n_longer -= same.len() as u64;
            points.push(point(same[0], n_longer));
        }
        Ccdf { points, known_up_to }
    }
}
