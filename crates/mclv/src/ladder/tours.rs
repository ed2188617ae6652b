//! Run tours up and down a ladder of models.
//!
//! A walker stands on a rung `k` with a hidden state `h`. A transition has two parts:
//!
//! 1. A Gibbs step of the model of rung `k`. On the lowest rung units are independent, so this step
//!    draws `h` afresh.
//! 2. A move to a neighbouring rung, accepted with probability
//!    `min(1, c_{k'} p*_{k'}(h) / (c_k p*_k(h)))`. The weights `c_k` are fixed.
//!
//! Both parts leave `π(k, h) ∝ c_k p*_k(h)` invariant. The stopping set is the whole lowest rung,
//! and some hidden states `H` on the top rung. Its weight `M_S` is known, so Kac's formula gives the
//! weight of the top rung: `Z = (M_S / c_K) · E[visits to the top rung]`, whatever the `c_k`. Bad
//! `c_k` cost variance.
//!
//! *Lifted* walkers have a direction, and turn round where a move is rejected. Half of the lowest
//! rung then belongs to the stopping set: the half that is on its way up.
//!
//! A ladder may have several *legs*, which begin at different base models and share the top rung.
//! The top rung then has a copy on each leg, and a walker on the top rung draws a new leg in every
//! transition. A walker that climbed one leg may descend another one, so modes that lie close to
//! different base models are all reached. The lowest rungs of all legs belong to the stopping set.
//!
//! A visit to the top rung is counted by its probability before the move, in every transition of a
//! tour, its last one included. The start is not counted.

use super::path::{Path, Replicas};
use crate::bits::words_for;
use crate::progress::Progress;
use crate::rng::{Purpose, Stream, stream};
use crate::team;
use crate::tour::{AddStatistics, TourEngine};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;
use std::sync::atomic::{AtomicU64, Ordering};

/// Walkers that step together. No result depends on this number.
const BLOCK: usize = 64;

/// Steps that all tours may make in the first round.
const FIRST_ROUND: u32 = 64;

/// The largest number of steps of a tour. Its random numbers end there.
const MAX_LENGTH: u32 = 1 << 30;

/// The block of random numbers that decides the moves along the ladder.
const MOVE_BLOCK: u32 = 1 << 30;

/// The rungs of one leg of a ladder: inverse temperatures that rise from 0 to 1, and the weight of
/// each. A leg with the single rung 1 has no lowest rung that belongs to the stopping set. The
/// weight of the last rung is that of a copy of the top rung. It is the same on all legs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rungs {
    pub(crate) betas: Vec<f64>,
    /// `log c_k`.
    pub(crate) log_c: Vec<f64>,
}

/// How many tours to run, and when to cut them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LadderSettings {
    pub(crate) n_tours: usize,
    /// The number of steps that all tours may make together. All tours are cut at the largest
    /// length that this allows.
    pub(crate) max_steps: Option<u64>,
    pub(crate) seed: u64,
    /// A number that tells runs of the same seed apart.
    pub(crate) occasion: u16,
}

/// A ladder and a stopping set, ready for tours.
pub(crate) struct LadderEngine<'a> {
    path: &'a Path<'a>,
    legs: &'a [Rungs],
    /// The states of the top rung that belong to the stopping set.
    top: Option<&'a TourEngine<'a>>,
    lifted: bool,
    #[cfg(test)]
    pub(super) fault: Option<Fault>,
}

/// Errors that tests make on purpose, to see that they are caught.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// All parts of the stopping set have the same share of the starts, whatever their weights.
    EqualShares,
    /// The weight of a rung falls with every step on it.
    Adapted,
}

/// The law of the starts of tours.
struct Starts {
    /// The parts of the stopping set: the share of the weight of each part and of all parts before
    /// it, and the leg whose lowest rung it is. The part without a leg is on the top rung.
    parts: Vec<(f64, Option<usize>)>,
    /// The logarithm of the weight of the stopping set.
    log_m_s: f64,
}

team::parcel! {
    /// A tour: where it is and what it has counted.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Walker {
        h: Vec<u64>,
        leg: u32,
        rung: u32,
        is_rising: bool,
        /// The number of transitions.
        pub(crate) length: u32,
        /// The expected number of visits to the top rung.
        pub(crate) visits: f64,
        /// Sums of statistics over the visits to the top rung.
        pub(crate) sums: Vec<f64>,
        /// True if the tour is in the stopping set again.
        pub(crate) is_complete: bool,
        /// True if the tour has been on the top rung.
        pub(crate) has_climbed: bool,
    }
}

/// Tours that have been made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LadderTours {
    pub(crate) tours: Vec<Walker>,
    pub(crate) n_steps: u64,
    /// `log(M_S / c_K)`.
    pub(crate) log_scale: f64,
}

impl<'a> LadderEngine<'a> {
    /// Prepares tours to the lowest rung of each leg and to the states of `top` on the top rung.
    /// `path` keeps the hidden layer.
    pub(crate) fn new(
        path: &'a Path<'a>,
        legs: &'a [Rungs],
        top: Option<&'a TourEngine<'a>>,
        lifted: bool,
    ) -> Self {
        assert_eq!(path.n_legs(), legs.len(), "rungs for each leg");
        for rungs in legs {
            assert_eq!(rungs.betas.len(), rungs.log_c.len(), "a weight for each rung");
            assert!(rungs.betas.len() > 1 || top.is_some(), "a stopping set");
            assert_eq!(rungs.log_c.last(), legs[0].log_c.last(), "all legs share the top rung");
        }
        Self {
            path,
            legs,
            top,
            lifted,
            #[cfg(test)]
            fault: None,
        }
    }

    /// The logarithm of the weight of the lowest rung of a leg in the stopping set, if it is there.
    fn log_bottom(&self, leg: usize) -> Option<f64> {
        let half = if self.lifted { LN_2 } else { 0.0 };
        let rungs = &self.legs[leg];
        (rungs.betas.len() > 1).then(|| rungs.log_c[0] + self.path.log_z_base(leg) - half)
    }

    /// The logarithm of the weight of the top rung: of all of its copies together, per unit of `p*`.
    fn log_c_top(&self) -> f64 {
        let of_copy = self.legs[0].log_c[self.legs[0].log_c.len() - 1];
        of_copy + (self.legs.len() as f64).ln()
    }

    /// Returns the law of the starts: the stopping set, each part with its share of the weight.
    fn starts(&self) -> Starts {
        let bottoms = (0..self.legs.len()).filter_map(|leg| Some((self.log_bottom(leg)?, Some(leg))));
        let top = self.top.map(|top| (self.log_c_top() + top.log_z_s(), None));
        let parts: Vec<(f64, Option<usize>)> = bottoms.chain(top).collect();
        let most = parts.iter().fold(f64::NEG_INFINITY, |most, part| most.max(part.0));
        let total: f64 = parts.iter().map(|part| (part.0 - most).exp()).sum();
        let share = |log_weight: f64| (log_weight - most).exp() / total;
        #[cfg(test)]
        let share = |log_weight: f64| match self.fault {
            Some(Fault::EqualShares) => 1.0 / parts.len() as f64,
            _ => share(log_weight),
        };
        let mut sum = 0.0;
        let cumulative = parts.iter().map(|&(log_weight, leg)| {
            sum += share(log_weight);
            (sum, leg)
        });
        Starts { parts: cumulative.collect(), log_m_s: most + total.ln() }
    }

    /// Returns the rung on which a leg ends.
    fn last(&self, leg: u32) -> usize {
        self.legs[leg as usize].betas.len() - 1
    }

    /// Runs tours and sums `n_statistics` statistics along their visits to the top rung.
    ///
    /// # Errors
    /// If the listener cancels.
    pub(crate) fn run(
        &self,
        settings: &LadderSettings,
        n_statistics: usize,
        add: &AddStatistics<'_>,
        progress: &dyn Progress,
    ) -> Result<LadderTours> {
        let starts = self.starts();
        let log_scale = starts.log_m_s - self.log_c_top();
        let start = |t: usize| self.start(settings, t, &starts, n_statistics);
        let mut tours: Vec<Walker> = (0..settings.n_tours).map(start).collect();
        let mut open: Vec<u32> = (0..settings.n_tours as u32).collect();
        let (mut n_steps, mut made) = (0u64, 0u32);
        let n_complete = AtomicU64::new(0);
        loop {
            let left = settings.max_steps.map_or(u64::MAX, |n| n.saturating_sub(n_steps));
            let allowed = (left / open.len().max(1) as u64).min(u64::from(MAX_LENGTH)) as u32;
            let limit = (2 * made).clamp(FIRST_ROUND, MAX_LENGTH).min(made.saturating_add(allowed));
            if open.is_empty() || limit == made {
                break;
            }
            let walkers = team::share(open.len(), |mine| {
                let open = &open[mine];
                let n_threads = rayon::current_num_threads();
                let batch = open.len().div_ceil(n_threads).clamp(1, BLOCK);
                let piece = open.len().div_ceil(8 * n_threads).clamp(batch, 4096);
                let of_piece = |open: &[u32]| {
                    let walkers = open.iter().map(|&t| tours[t as usize].clone()).collect();
                    let round = Round { engine: self, settings, limit, add, progress };
                    let walkers = round.advance(open, walkers)?;
                    let n = walkers.iter().filter(|walker| walker.is_complete).count() as u64;
                    progress.report(n_complete.fetch_add(n, Ordering::Relaxed) + n, settings.n_tours as u64);
                    Ok(walkers)
                };
                let pieces: Result<Vec<Vec<Walker>>> = open.par_chunks(piece).map(of_piece).collect();
                Ok(pieces?.concat())
            })?;
            for (&t, walker) in open.iter().zip(walkers) {
                n_steps += u64::from(walker.length - tours[t as usize].length);
                tours[t as usize] = walker;
            }
            open.retain(|&t| !tours[t as usize].is_complete);
            made = limit;
        }
        Ok(LadderTours { tours, n_steps, log_scale })
    }

    /// Draws the start of a tour: the lowest rung of a leg, or a state of the top rung.
    fn start(&self, settings: &LadderSettings, tour: usize, starts: &Starts, n_statistics: usize) -> Walker {
        let draws = stream_of(settings, tour);
        let [u, coin, of_leg, _] = draws.at(1).block(0);
        let parts = &starts.parts;
        let part = parts.iter().position(|part| uniform(u) < part.0).unwrap_or(parts.len() - 1);
        let (h, leg, rung) = match (parts[part].1, self.top) {
            (None, Some(top)) => {
                let leg = self.draw_leg(of_leg);
                (top.set().states().row(top.draw_start(draws.at(0))).to_vec(), leg, self.last(leg))
            }
            (leg, _) => (vec![0; words_for(self.path.n_kept())], leg.unwrap_or(0) as u32, 0),
        };
        let is_bottom = parts[part].1.is_some();
        Walker {
            h,
            leg,
            rung: rung as u32,
            is_rising: is_bottom || coin & 1 == 1,
            length: 0,
            visits: 0.0,
            sums: vec![0.0; n_statistics],
            is_complete: false,
            has_climbed: !is_bottom,
        }
    }

    /// Draws a leg, each with the same probability.
    fn draw_leg(&self, x: u32) -> u32 {
        (uniform(x) * self.legs.len() as f64) as u32
    }

    /// Moves a walker along the ladder, given its state `r` after the Gibbs step.
    fn climb(&self, walker: &mut Walker, replicas: &mut Replicas<'_>, r: usize) {
        let (k, top) = (walker.rung as usize, self.last(walker.leg));
        let rungs = &self.legs[walker.leg as usize];
        let (stream, t) = replicas.clock_of(r);
        let [u, coin, of_leg, _] = stream.at(2 * t).block(MOVE_BLOCK);
        let is_rising = if self.lifted { walker.is_rising } else { coin & 1 == 1 };
        let to = if is_rising { Some(k + 1).filter(|&to| to <= top) } else { k.checked_sub(1) };
        let log_weight = |k: usize| rungs.log_c[k] + replicas.log_weight(r, rungs.betas[k]);
        let accept = to.map_or(0.0, |to| (log_weight(to) - log_weight(k)).exp().min(1.0));
        #[cfg(test)]
        let accept = match (self.fault, to) {
            (Some(Fault::Adapted), Some(to)) => {
                let lost = |k: usize| walker.sums[k];
                let accept = (log_weight(to) - lost(to) - log_weight(k) + lost(k)).exp().min(1.0);
                walker.sums[k] += 1.0;
                accept
            }
            _ => accept,
        };
        walker.visits += match to {
            _ if k == top => 1.0 - accept,
            Some(to) if to == top => accept,
            _ => 0.0,
        };
        match to {
            Some(to) if uniform(u) < accept => walker.rung = to as u32,
            _ => walker.is_rising = !walker.is_rising,
        }
        walker.length += 1;
        let k = walker.rung as usize;
        let is_home = top > 0 && k == 0 && (walker.is_rising || !self.lifted);
        let is_known = k == top && self.top.is_some_and(|top| top.set().find(replicas.kept_of(r)).is_some());
        walker.is_complete = is_home || is_known;
        if k == top {
            walker.has_climbed = true;
            walker.leg = self.draw_leg(of_leg);
            walker.rung = self.last(walker.leg) as u32;
            replicas.set_leg(r, walker.leg);
        }
    }
}

/// What all pieces of a round share.
struct Round<'a> {
    engine: &'a LadderEngine<'a>,
    settings: &'a LadderSettings,
    /// The number of steps to which tours are brought.
    limit: u32,
    add: &'a AddStatistics<'a>,
    progress: &'a dyn Progress,
}

impl Round<'_> {
    /// Brings tours to their ends or to the limit. `numbers` are the numbers of the tours.
    fn advance(&self, numbers: &[u32], mut walkers: Vec<Walker>) -> Result<Vec<Walker>> {
        let LadderEngine { path, legs, .. } = self.engine;
        let clock =
            |k: usize, walker: &Walker| (stream_of(self.settings, numbers[k] as usize), walker.length);
        // The walker in each place. A walker that is done makes room for the next.
        let mut places: Vec<usize> = (0..walkers.len().min(BLOCK)).collect();
        let mut next = places.len();
        let begin = |places: &[usize], walkers: &[Walker]| {
            let clocks = places.iter().map(|&k| clock(k, &walkers[k])).collect();
            let legs = places.iter().map(|&k| walkers[k].leg).collect();
            let h: Vec<u64> = places.iter().flat_map(|&k| &walkers[k].h).copied().collect();
            Replicas::at(path, clocks, legs, &h)
        };
        let is_done = |walker: &Walker| walker.is_complete || walker.length >= self.limit;
        let mut replicas = begin(&places, &walkers);
        let mut n_active = places.len();
        while n_active > 0 {
            if self.progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let rung = |walker: &Walker| legs[walker.leg as usize].betas[walker.rung as usize];
            replicas.draw_summed(|r| rung(&walkers[places[r]]));
            for (r, &k) in places.iter().enumerate() {
                let walker = &mut walkers[k];
                let is_on_top = walker.rung as usize == self.engine.last(walker.leg);
                if is_on_top && !walker.sums.is_empty() && !is_done(walker) {
                    (self.add)(replicas.summed_of(r), replicas.kept_of(r), &mut walker.sums);
                }
            }
            replicas.draw_kept();
            for (r, place) in places.iter_mut().enumerate() {
                let walker = &mut walkers[*place];
                if is_done(walker) {
                    continue;
                }
                self.engine.climb(walker, &mut replicas, r);
                if is_done(walker) {
                    walker.h = replicas.kept_of(r).to_vec();
                    if next < walkers.len() {
                        *place = next;
                        let walker = &walkers[next];
                        replicas.place(r, clock(next, walker), walker.leg, &walker.h);
                        next += 1;
                    } else {
                        n_active -= 1;
                    }
                }
            }
            // Places that nobody needs are given up when they are half of all.
            if n_active > 0 && 2 * n_active <= places.len() {
                for (r, &k) in places.iter().enumerate() {
                    if !is_done(&walkers[k]) {
                        walkers[k].h = replicas.kept_of(r).to_vec();
                    }
                }
                places.retain(|&k| !is_done(&walkers[k]));
                replicas = begin(&places, &walkers);
            }
        }
        Ok(walkers)
    }
}

fn stream_of(settings: &LadderSettings, tour: usize) -> Stream {
    stream(settings.seed, Purpose::LadderTour, u64::from(settings.occasion) << 40 | tour as u64)
}

/// Returns a number in the open interval (0, 1).
fn uniform(x: u32) -> f64 {
    (f64::from(x) + 0.5) / 4_294_967_296.0
}

impl LadderTours {
    /// The expected number of visits to the top rung of each tour.
    pub(crate) fn visits(&self) -> Vec<f64> {
        self.tours.iter().map(|tour| tour.visits).collect()
    }

    /// The mean and the variance of the visits.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let n = self.tours.len() as f64;
        let mean = self.tours.iter().map(|tour| tour.visits).sum::<f64>() / n;
        let squares: f64 = self.tours.iter().map(|tour| (tour.visits - mean).powi(2)).sum();
        (mean, squares / (n - 1.0))
    }

    /// The share of the tours that reached the top rung.
    pub(crate) fn climbed(&self) -> f64 {
        self.tours.iter().filter(|tour| tour.has_climbed).count() as f64 / self.tours.len() as f64
    }

    /// The number of tours that were cut.
    pub(crate) fn n_cut(&self) -> usize {
        self.tours.iter().filter(|tour| !tour.is_complete).count()
    }
}

#[cfg(test)]
mod tests;
