//! Run tours: Gibbs chains from a start in the stopping set until they are in it again.
//!
//! Tours are rows of a batch. A finished tour hands its place to the next, so that batches stay
//! full. The random numbers of a tour depend only on its number and its step, so no result depends
//! on batches or threads.
//!
//! Limits apply breadth first: *all* tours are brought to `K` steps, then those still running to
//! `2K`, and so on. If tours began one after the other until the budget was spent, long tours would
//! decide how many are counted, and the mean of the started ones would be neither a lower nor an
//! upper bound.

use super::record::{End, StartedFrom, Tour, Tours};
use super::settings::{MAX_LENGTH, TourSettings};
use super::walk::{Place, Walk};
use super::{StartTable, StoppingSet};
use crate::bits::{BitRows, words_for};
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::data::{RealRows, Rows};
use crate::model::Rbm;
use crate::progress::{Progress, Silent};
use crate::rng::{Draws, Purpose, Stream, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The occasion of chains that are watched until they enter the set.
const WAYS: u16 = u16::MAX - 1;

/// Steps that all tours may make in the first round.
const FIRST_ROUND: u32 = 16;

#[cfg(test)]
thread_local! {
    /// The number of engines that this thread has made. No engine should be made twice.
    pub(crate) static N_ENGINES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A function `add(v, h, sums)` that adds the statistics `f(v, h)` of packed states to `sums`,
/// along tours.
pub type AddStatistics<'a> = dyn Fn(&[u64], &[u64], &mut [f64]) + Sync + 'a;

/// A model, a stopping set, and the distribution `π_S` of starts, ready for any number of tours.
///
/// # Cost
/// A step costs one Gibbs step plus one lookup in a hash table; `benches/src/bin/tours.rs` measures
/// the ratio. Each tour takes 16 bytes, and 8 for each statistic. Each tour that is still running
/// takes its packed hidden state and 16 bytes more. Creating the engine takes one `log p*(h)` for
/// each state of the set, in double precision.
///
/// ```
/// use mclv::{Rbm, StoppingSet, bits::BitRows, progress::Silent, tour::{TourEngine, TourSettings}};
/// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.0; 2])?;
/// // Every hidden state is in the set: every tour has one step.
/// let set = StoppingSet::new(&BitRows::all_states(2));
/// let engine = TourEngine::new(&rbm, &set)?;
/// let tours = engine.run(&TourSettings { n_tours: 100, ..Default::default() }, &Silent)?;
/// assert!(tours.all_complete() && tours.n_steps() == 100);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TourEngine<'a> {
    pub(super) rbm: &'a Rbm,
    set: Cow<'a, StoppingSet>,
    pub(super) table: StartTable,
}

impl<'a> TourEngine<'a> {
    /// Creates an engine and computes the distribution `π_S` of starts.
    ///
    /// # Errors
    /// If the set is empty or its states are not as wide as the model's hidden layer.
    pub fn new(rbm: &'a Rbm, set: &'a StoppingSet) -> Result<Self> {
        Self::with_set(rbm, Cow::Borrowed(set))
    }

    /// Creates an engine like [`new`](Self::new), with a set that the engine may own.
    pub(crate) fn with_set(rbm: &'a Rbm, set: Cow<'a, StoppingSet>) -> Result<Self> {
        #[cfg(test)]
        N_ENGINES.set(N_ENGINES.get() + 1);
        if set.is_empty() {
            return Err(Error::Empty {
                what: "the stopping set".into(),
                cure: "draw it from data, or from a pilot chain",
            });
        }
        let free = rbm.free_energy_h(&Rows::Bits(set.states().clone()))?;
        let table = StartTable::from_log_weights(free.into_iter().map(|f| -f).collect());
        Ok(Self { rbm, set, table })
    }

    /// The model.
    pub(crate) fn rbm(&self) -> &'a Rbm {
        self.rbm
    }

    /// The stopping set.
    pub(crate) fn set(&self) -> &StoppingSet {
        &self.set
    }

    /// `log p*(h)` of each state of the set.
    pub(crate) fn log_weights(&self) -> &[f64] {
        self.table.log_weights()
    }

    /// Returns the row of the stopping set that tours with these random numbers begin at.
    pub(crate) fn draw_start(&self, draws: Draws) -> usize {
        self.table.draw(draws)
    }

    /// Returns the stopping set. A borrowed one is copied.
    pub(crate) fn into_set(self) -> StoppingSet {
        self.set.into_owned()
    }

    /// Returns `log Z_S = log Σ_{h∈H} p*(h)`, the logarithm of the stopping set's weight.
    pub fn log_z_s(&self) -> f64 {
        self.table.log_z_s()
    }

    /// Runs tours from starts drawn from `π_S`.
    ///
    /// # Errors
    /// If a setting is not allowed, or if the listener cancels.
    pub fn run(&self, settings: &TourSettings, progress: &dyn Progress) -> Result<Tours> {
        self.run_with(settings, 0, &|_, _, _| {}, progress)
    }

    /// Runs tours from `π_S` and sums `n_statistics` statistics along each tour.
    ///
    /// ```
    /// # use mclv::{Rbm, StoppingSet, bits::BitRows, progress::Silent, tour::{TourEngine, TourSettings}};
    /// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.0; 2])?;
    /// let set = StoppingSet::new(&BitRows::from_words(2, vec![0b00, 0b11]));
    /// let engine = TourEngine::new(&rbm, &set)?;
    /// // How many visible units are on.
    /// let add = |v: &[u64], _h: &[u64], sums: &mut [f64]| sums[0] += f64::from(v[0].count_ones());
    /// let tours = engine.run_with(&TourSettings::default(), 1, &add, &Silent)?;
    /// let mean = tours.expectation(0);
    /// assert!((mean.value - 1.9).abs() < 0.2 && mean.std_err < 0.03);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a setting is not allowed, if statistics are requested of a mean-field chain (its `v` is
    /// not a state), or if the listener cancels.
    pub fn run_with(
        &self,
        settings: &TourSettings,
        n_statistics: usize,
        add: &AddStatistics<'_>,
        progress: &dyn Progress,
    ) -> Result<Tours> {
        settings.check()?;
        let of_tour = |t: usize| stream_of(settings, Purpose::TourStart, t).at(0);
        let starts: Vec<u32> = if settings.stratified {
            self.stratified_starts(settings)
        } else {
            (0..settings.n_tours).map(|t| self.table.draw(of_tour(t)) as u32).collect()
        };
        let states = self.set.states();
        let h = starts.iter().flat_map(|&s| states.row(s as usize)).copied().collect();
        let from = if settings.stratified { StartedFrom::Strata } else { StartedFrom::Pi };
        self.tours(settings, (starts, h, from), (n_statistics, add), progress)
    }

    /// Runs tours that begin at `h ~ p(h|v)` of rows drawn uniformly, as in the paper's figures of
    /// tour lengths. A start may lie outside the set. Such a tour also ends when it is in its own
    /// start again.
    ///
    /// # Errors
    /// If a setting is not allowed, if the rows do not fit the model, or if the listener cancels.
    pub fn run_from_rows(
        &self,
        rows: &Rows,
        settings: &TourSettings,
        progress: &dyn Progress,
    ) -> Result<Tours> {
        settings.check()?;
        if rows.n_rows() == 0 {
            return Err(Error::Empty { what: "the data".into(), cure: "tours begin at its rows" });
        }
        let of_tour = |t: usize| stream_of(settings, Purpose::TourStart, t);
        let starts: Vec<usize> = (0..settings.n_tours)
            .map(|t| ((u128::from(uniform_64(of_tour(t).at(0))) * rows.n_rows() as u128) >> 64) as usize)
            .collect();
        let h = self.rbm.sample_h_from_v(&rows.select(&starts), |t| of_tour(t).at(1))?;
        let starts = starts.into_iter().map(|s| s as u32).collect();
        let none: &AddStatistics<'_> = &|_, _, _| {};
        self.tours(settings, (starts, h.words().to_vec(), StartedFrom::Rows), (0, none), progress)
    }

    /// Runs chains from the hidden states `from`, which lie outside the set, until they enter it.
    /// The result has the form of tours, but Kac's identity does not apply.
    pub(crate) fn ways_to_set(&self, from: &BitRows, max_length: u32, seed: u64) -> Result<Tours> {
        let settings = TourSettings {
            n_tours: from.n_rows(),
            max_length: Some(max_length.min(MAX_LENGTH)),
            seed,
            occasion: WAYS,
            ..Default::default()
        };
        settings.check()?;
        let starts = (0..from.n_rows() as u32).collect();
        let none: &AddStatistics<'_> = &|_, _, _| {};
        self.tours(&settings, (starts, from.words().to_vec(), StartedFrom::Pi), (0, none), &Silent)
    }

    /// Returns the first `n_steps` states `(v_k, h_k)` of one of `tours`, or all of them if the
    /// tour is shorter.
    ///
    /// The tour is run again, with the `settings` (and for tours from rows, the `rows`) that it was
    /// run with. For a mean-field chain, `v_k` are the means.
    ///
    /// # Errors
    /// If the tour began at rows and `rows` is `None`.
    ///
    /// # Panics
    /// If there is no tour of that number, or if the rows or the set are not those of the original
    /// run.
    pub fn replay(
        &self,
        tours: &Tours,
        settings: &TourSettings,
        rows: Option<&Rows>,
        number: usize,
        n_steps: u32,
    ) -> Result<(Rows, BitRows)> {
        let tour = tours.as_slice()[number];
        let start = [tour.start as usize];
        let mut h = match (tours.started_from(), rows) {
            (StartedFrom::Rows, Some(rows)) => {
                let draws = |_| stream_of(settings, Purpose::TourStart, number).at(1);
                self.rbm.sample_h_from_v(&rows.select(&start), draws)?
            }
            (StartedFrom::Rows, None) => {
                return Err(Error::Empty {
                    what: "the data".into(),
                    cure: "give the rows that tours began at",
                });
            }
            _ => self.set.states().select(&start),
        };
        let steps = stream_of(settings, Purpose::TourStep, number);
        let (n_visible, n_hidden) = (self.rbm.n_visible(), self.rbm.n_hidden());
        let (mut bits, mut means, mut all_h) =
            (BitRows::zeros(0, n_visible), Vec::new(), BitRows::zeros(0, n_hidden));
        for k in 0..n_steps.min(tour.length) {
            all_h.append(&h);
            let given = Rows::Bits(h);
            let v = if tours.is_gibbs() {
                let v = self.rbm.sample_v_from_h(&given, |_| steps.at(2 * k))?;
                bits.append(&v);
                Rows::Bits(v)
            } else {
                let v = self.rbm.mean_v_from_h(&given)?;
                means.extend_from_slice(v.values());
                Rows::Reals(v)
            };
            h = self.rbm.sample_h_from_v(&v, |_| steps.at(2 * k + 1))?;
        }
        let all_v =
            if tours.is_gibbs() { Rows::Bits(bits) } else { Rows::Reals(RealRows::new(n_visible, means)) };
        Ok((all_v, all_h))
    }

    /// Draws two independent starts in each stratum of `π_S`, with states in order of falling
    /// weight.
    fn stratified_starts(&self, settings: &TourSettings) -> Vec<u32> {
        let log_weights = self.table.log_weights();
        let mut order: Vec<u32> = (0..log_weights.len() as u32).collect();
        order.sort_by(|&a, &b| log_weights[b as usize].total_cmp(&log_weights[a as usize]));
        let mut total = 0.0;
        let cumulated: Vec<f64> = order
            .iter()
            .map(|&s| {
                total += (log_weights[s as usize] - self.table.log_z_s()).exp();
                total
            })
            .collect();
        let n_strata = (settings.n_tours / 2) as f64;
        (0..settings.n_tours)
            .map(|t| {
                let bits = uniform_64(stream_of(settings, Purpose::TourStart, t).at(0));
                let u = ((bits >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
                let at = total * ((t / 2) as f64 + u) / n_strata;
                order[cumulated.partition_point(|&c| c <= at).min(order.len() - 1)]
            })
            .collect()
    }

    fn tours(
        &self,
        settings: &TourSettings,
        (starts, mut h, started_from): (Vec<u32>, Vec<u64>, StartedFrom),
        (n_statistics, add): (usize, &AddStatistics<'_>),
        progress: &dyn Progress,
    ) -> Result<Tours> {
        let begun = Instant::now();
        if n_statistics > 0 && settings.visible == VisibleChain::MeanField {
            return Err(Error::InvalidSetting {
                name: "visible",
                value: "mean-field".into(),
                cure: "statistics f(v, h) need the sampled chain",
            });
        }
        let n_tours = starts.len();
        let n_words = words_for(self.rbm.n_hidden());
        let round = Round {
            engine: self,
            settings,
            first: (started_from == StartedFrom::Rows).then(|| h.clone()),
            starts: &starts,
            n_statistics,
            add,
            // A budget that the clock cannot represent means no limit.
            deadline: settings
                .max_seconds
                .and_then(|s| begun.checked_add(Duration::try_from_secs_f64(s).ok()?)),
            progress,
            n_complete: AtomicU64::new(0),
        };
        // Every tour makes at least one step, even if the time is up before that.
        let mut tours: Vec<Tour> =
            starts.iter().map(|&start| Tour { start, length: 1, end: End::Cut }).collect();
        let mut sums = vec![0.0; n_tours * n_statistics];
        let mut open: Vec<u32> = (0..n_tours as u32).collect();
        let mut n_steps = 0;
        let mut made = 0u32;
        let longest = settings.max_length.unwrap_or(MAX_LENGTH);
        loop {
            let left = settings.max_steps.map_or(u64::MAX, |n| n - n_steps);
            let allowed = (left / open.len().max(1) as u64).min(u64::from(MAX_LENGTH)) as u32;
            let limit =
                made.saturating_mul(2).max(FIRST_ROUND).min(longest).min(made.saturating_add(allowed));
            if open.is_empty() || limit == made || round.is_over() {
                break;
            }
            let pieces: Vec<Piece> = team::share(open.len(), |tours| {
                let (open, h) = (&open[tours.clone()], &h[tours.start * n_words..tours.end * n_words]);
                // Results belong to tours, so the size of the pieces is free: full batches for all
                // threads, then more of them.
                let n_threads = rayon::current_num_threads();
                let batch = open.len().div_ceil(n_threads).clamp(1, BLOCK);
                let piece = open.len().div_ceil(8 * n_threads).clamp(batch, 4096);
                let pieces = open.par_chunks(piece).zip(h.par_chunks(piece * n_words));
                pieces.map(|(open, h)| round.advance(open, h, made, limit)).collect()
            })?;
            let mut still = Vec::new();
            h.clear();
            let mut rest = open.as_slice();
            for piece in &pieces {
                let open = rest.split_off(..piece.tours.len()).expect("a tour for each that was open");
                n_steps += piece.n_steps;
                h.extend_from_slice(&piece.h);
                for (k, (&t, tour)) in open.iter().zip(&piece.tours).enumerate() {
                    let t = t as usize;
                    tours[t] = *tour;
                    let from = &piece.sums[k * n_statistics..][..n_statistics];
                    sums[t * n_statistics..][..n_statistics].iter_mut().zip(from).for_each(|(s, x)| *s += x);
                    if !tour.is_complete() {
                        still.push(t as u32);
                    }
                }
            }
            open = still;
            made = limit;
        }
        Ok(Tours {
            tours,
            started_from,
            is_gibbs: settings.visible == VisibleChain::Sampled,
            has_budget: settings.max_length.is_some()
                || settings.max_steps.is_some()
                || settings.max_seconds.is_some(),
            log_z_s: self.log_z_s(),
            n_statistics,
            sums,
            n_steps,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

/// The values that all pieces of a round share.
struct Round<'a> {
    engine: &'a TourEngine<'a>,
    settings: &'a TourSettings,
    starts: &'a [u32],
    /// The start of each tour, if it need not be in the set.
    first: Option<Vec<u64>>,
    n_statistics: usize,
    add: &'a AddStatistics<'a>,
    deadline: Option<Instant>,
    progress: &'a dyn Progress,
    n_complete: AtomicU64,
}

team::parcel! {
    /// The results of some tours in one round.
    struct Piece {
        tours: Vec<Tour>,
        /// The states of the tours that are still running, in order.
        h: Vec<u64>,
        sums: Vec<f64>,
        n_steps: u64,
    }
}

impl Round<'_> {
    /// Returns true if all ranks stop here because one of them is late.
    fn is_over(&self) -> bool {
        self.deadline.is_some() && team::any(self.is_late())
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    /// Brings the tours `open`, now in the states `from` after `made` steps, to `limit` steps or to
    /// their ends.
    fn advance(&self, open: &[u32], from: &[u64], made: u32, limit: u32) -> Result<Piece> {
        let (rbm, n_statistics) = (self.engine.rbm, self.n_statistics);
        let (n_words, words_v) = (words_for(rbm.n_hidden()), words_for(rbm.n_visible()));
        let cut = |&t: &u32| Tour { start: self.starts[t as usize], length: made.max(1), end: End::Cut };
        let mut piece = Piece {
            tours: open.iter().map(cut).collect(),
            h: Vec::new(),
            sums: vec![0.0; open.len() * n_statistics],
            n_steps: 0,
        };
        let mut last = from.to_vec();
        // Tours are counted within the piece.
        let state = |k: usize| &from[k * n_words..][..n_words];
        let place = |k: usize| Place { tour: k, length: u64::from(made) };
        let clock =
            |k: usize| Clock::new(stream_of(self.settings, Purpose::TourStep, open[k] as usize), 2 * made);
        let first: Option<Vec<u64>> = self.first.as_ref().map(|first| {
            open.iter().flat_map(|&t| &first[t as usize * n_words..][..n_words]).copied().collect()
        });
        let mut next = open.len().min(BLOCK);
        let h = from[..next * n_words].to_vec();
        let mut chains = Chains::new(rbm, self.settings.visible, h, (0..next).map(clock).collect());
        let places = (0..next).map(place).collect();
        let mut walk = Walk::new(rbm, &self.engine.set, &mut chains, places, u64::from(limit))
            .ending_at_first(first.as_deref());
        let mut scratch = Scratch::of_thread();
        while !walk.is_over() && !self.is_late() {
            if self.progress.cancelled() {
                return Err(Error::Cancelled);
            }
            piece.n_steps += walk.places().len() as u64;
            let mut arrivals = walk.step(&mut scratch, None, |chains, places, _| {
                if n_statistics > 0 {
                    let states = chains.v_bits().chunks_exact(words_v).zip(chains.h().chunks_exact(n_words));
                    for (place, (v, h)) in places.iter().zip(states) {
                        (self.add)(v, h, &mut piece.sums[place.tour * n_statistics..][..n_statistics]);
                    }
                }
            });
            for at in walk.places() {
                piece.tours[at.tour].length = at.length as u32;
            }
            // A tour that has ended makes room for the next.
            arrivals.retain(|arrival| {
                let k = walk.places()[arrival.place].tour;
                let tour = &mut piece.tours[k];
                match (arrival.at_first, arrival.row) {
                    (true, _) => tour.end = End::OwnStart,
                    (false, Some(row)) => tour.end = self.end(open[k] as usize, row as u32),
                    (false, None) => {
                        last[k * n_words..][..n_words].copy_from_slice(walk.chains().h_of(arrival.place));
                    }
                }
                if next == open.len() {
                    return true;
                }
                walk.start(arrival.place, place(next), clock(next), state(next));
                next += 1;
                false
            });
            walk.leave(arrivals);
        }
        let out = piece.tours.iter().zip(last.chunks_exact(n_words)).filter(|(t, _)| !t.is_complete());
        piece.h = out.flat_map(|(_, h)| h).copied().collect();
        let n_complete = piece.tours.iter().filter(|t| t.is_complete()).count() as u64;
        let done = self.n_complete.fetch_add(n_complete, Ordering::Relaxed) + n_complete;
        self.progress.report(done, self.starts.len() as u64);
        Ok(piece)
    }

    /// Returns how tour `t` has ended, if it is in row `row` of the set.
    fn end(&self, t: usize, row: u32) -> End {
        let is_own = self.first.is_none() && row == self.starts[t];
        if is_own { End::OwnStart } else { End::Elsewhere(row) }
    }
}

/// The random numbers of one tour.
pub(super) fn stream_of(settings: &TourSettings, purpose: Purpose, tour: usize) -> Stream {
    stream(settings.seed, purpose, u64::from(settings.occasion) << 40 | tour as u64)
}

fn uniform_64(draws: Draws) -> u64 {
    let [a, b, ..] = draws.block(0);
    u64::from(a) << 32 | u64::from(b)
}
