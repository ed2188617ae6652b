//! Finds the tours in which chains are after K steps: long tours are over-represented (the
//! inspection paradox).
//!
//! A chain is an endless sequence of tours, cut at its visits to the stopping set. A tour of length
//! ξ covers ξ steps. After K steps, a chain is therefore in such a tour ξ times as often as the
//! distribution of lengths says. This is exact in the limit of large K, where the length of the
//! tour that is found has the mean `E[ξ²]/E[ξ]`.

use super::{DataSets, check_cancelled};
use crate::task::InspectionOf;
use mclv::bits::BitRows;
use mclv::data::{Rows, Split};
use mclv::progress::Progress;
use mclv::rng::{Purpose, stream};
use mclv::statistics::Summary;
use mclv::{Rbm, Result, StoppingSet};
use serde::{Deserialize, Serialize};

/// Tours of more steps are called long.
const LONG: u32 = 10;

/// The tours that were found after some steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// Steps made.
    pub k: u32,
    /// Mean length of the tours that the chains were in.
    pub mean_length: f64,
    /// Its standard error over chains.
    pub std_err: f64,
    /// The share of chains in a tour of more than ten steps.
    pub long: f64,
}

/// The tours that were found, compared with all tours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspected {
    /// After different numbers of steps.
    pub after: Vec<Inspection>,
    /// Number of complete tours on the way.
    pub n_tours: u64,
    /// Their mean length.
    pub mean_length: f64,
    /// The share of tours with more than ten steps.
    pub long: f64,
    /// The mean length of the tour of a random step: `Σξ²/Σξ`.
    pub mean_length_seen: f64,
    /// The share of steps in tours of more than ten steps.
    pub long_seen: f64,
    /// Chains whose last tour was not over. It is recorded with its length so far.
    pub n_cut: usize,
}

pub(super) fn run(
    of: &InspectionOf,
    rbm: &Rbm,
    sets: &DataSets,
    progress: &dyn Progress,
) -> Result<Inspected> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let (set, members) = StoppingSet::draw_with_members(rbm, &data.rows, &all, 1, of.seed, 0)?;
    let first: Vec<usize> =
        (0..of.n_chains).map(|c| members[c * members.len() / of.n_chains] as usize).collect();
    let mut h = set.states().select(&first);
    let mut chains: Vec<Chain> = (0..of.n_chains).map(|_| Chain { begun: 0, found: Vec::new() }).collect();
    let mut totals = Totals::default();
    let mut open: Vec<usize> = (0..of.n_chains).collect();
    let last = of.at.iter().copied().max().unwrap_or(0);
    let mut step = 0;
    while !open.is_empty() && step < last + of.max_length {
        check_cancelled(progress)?;
        let draws = |half: u32| {
            let open = &open;
            move |r: usize| stream(of.seed, Purpose::Chain, open[r] as u64).at(2 * step + half)
        };
        let v = rbm.sample_v_from_h(&Rows::Bits(h), draws(0))?;
        h = rbm.sample_h_from_v(&Rows::Bits(v), draws(1))?;
        step += 1;
        // If it ends here, the tour that started after `begun` steps holds the states begun + 1 …
        // step.
        let mut still = Vec::with_capacity(open.len());
        for (r, &c) in open.iter().enumerate() {
            let chain = &mut chains[c];
            if set.find(h.row(r)).is_some() {
                let length = step - chain.begun;
                chain.find(&of.at, step, length);
                totals.add(length);
                chain.begun = step;
            }
            if chain.found.len() < of.at.len() {
                still.push(r);
            }
        }
        h = select(h, &still);
        open = still.into_iter().map(|r| open[r]).collect();
        progress.report(u64::from(step), u64::from(last + of.max_length));
    }
    for &c in &open {
        let length = step - chains[c].begun;
        chains[c].find(&of.at, step, length);
    }
    let after = of.at.iter().enumerate().map(|(i, &k)| {
        let lengths: Vec<f64> = chains.iter().map(|chain| f64::from(chain.found[i])).collect();
        let summary = Summary::of(&lengths).expect("at least one chain");
        Inspection {
            k,
            mean_length: summary.mean,
            std_err: summary.sd.unwrap_or(0.0) / (lengths.len() as f64).sqrt(),
            long: lengths.iter().filter(|&&n| n > f64::from(LONG)).count() as f64 / lengths.len() as f64,
        }
    });
    Ok(Inspected {
        after: after.collect(),
        n_tours: totals.n,
        mean_length: totals.steps / totals.n as f64,
        long: totals.long / totals.n as f64,
        mean_length_seen: totals.squares / totals.steps,
        long_seen: totals.long_steps / totals.steps,
        n_cut: open.len(),
    })
}

fn select(h: BitRows, rows: &[usize]) -> BitRows {
    if rows.len() == h.n_rows() { h } else { h.select(rows) }
}

struct Chain {
    /// Number of steps at the start of the current tour.
    begun: u32,
    /// The length of the tour at each observed step, if known.
    found: Vec<u32>,
}

impl Chain {
    /// Records a tour of `length` that ends at `step`. It holds all observed steps up to here that
    /// belong to no earlier tour.
    fn find(&mut self, at: &[u32], step: u32, length: u32) {
        while at.get(self.found.len()).is_some_and(|&k| k <= step) {
            self.found.push(length);
        }
    }
}

#[derive(Default)]
struct Totals {
    n: u64,
    steps: f64,
    squares: f64,
    long: f64,
    long_steps: f64,
}

impl Totals {
    fn add(&mut self, length: u32) {
        let x = f64::from(length);
        self.n += 1;
        self.steps += x;
        self.squares += x * x;
        if length > LONG {
            self.long += 1.0;
            self.long_steps += x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_in_the_tour_that_holds_them() {
        let mut chain = Chain { begun: 0, found: Vec::new() };
        let at = [1, 2, 5, 6];
        chain.find(&at, 1, 1);
        chain.find(&at, 4, 3);
        assert_eq!(chain.found, [1, 3]);
        chain.find(&at, 6, 2);
        assert_eq!(chain.found, [1, 3, 2, 2]);
    }
}
