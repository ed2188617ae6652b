//! Las Vegas tours: the negative phase from tours between visits to a stopping set.
//!
//! A tour starts at `h ~ π_S`, makes Gibbs steps, and ends when its hidden state is in the set again. Then
//! `E[Σ_{k≤ξ} f(X(k))] = (Z/Z_S)·E_p[f]`, so the ratio `Σ f / Σ ξ` over tours estimates `E_p[f]`.
//!
//! **Guarantee**: with a sampled chain, starts from `π_S` and all tours finished, `Σ_k f(X(k)) − ξ·E_p[f]` has mean 0; the
//! ratio is consistent, with a bias of order 1/R. With `carry` the model's distribution is invariant for fixed
//! parameters. `drop` and `keep` are biased by what they cut off. A mean-field chain is not the model's chain.

use super::moments::BLOCK;
use super::pcd::first_states;
use super::settings::{Lvs, Starts, Statistics, Unfinished};
use super::{
    Moments, NegativePhase, PairBlock, PhaseState, Step, Update, Visible, VisibleChain, chain, total_weight,
};
use crate::bits::{BitRows, words_for};
use crate::data::Rows;
use crate::model::Rbm;
use crate::rng::{Purpose, Stream, stream};
use crate::team;
use crate::tour::{StartTable, StoppingSet};
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, sample};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What happened to tours over an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TourInfo {
    /// Tours started.
    pub n_started: u64,
    /// Tours that returned to the stopping set.
    pub n_completed: u64,
    /// Of these, tours that ended in the state they had started from.
    pub n_completed_at_own_start: u64,
    /// Tours cut at their limit.
    pub n_truncated: u64,
    /// Times that a running tour (`carry`) went through an update without returning.
    #[serde(default)]
    pub n_carried: u64,
    /// Gibbs steps made.
    pub n_steps: u64,
    /// Sum of the lengths of completed tours.
    pub total_length: u64,
    /// Longest completed tour.
    pub longest: u64,
    /// Metropolis proposals made and accepted.
    pub n_proposed: u64,
    /// Metropolis proposals accepted.
    pub n_accepted: u64,
    /// Updates from which nothing could be learnt: no tour returned.
    pub n_skipped_updates: u64,
    /// Times the start table was made.
    pub n_tables: u64,
    /// Smallest effective sample size of the start weights, as a share of the tours; 1 if they are not weighted.
    pub min_ess: f64,
    /// States in the stopping set.
    pub set_size: usize,
    /// Hidden states drawn per row for it.
    pub samples_per_row: usize,
    /// Rows that it was drawn from.
    #[serde(default)]
    pub n_rows: usize,
    /// `log Z_S` when the table was last made.
    pub log_z_s: f64,
}
team::parcel!(TourInfo {
    n_started,
    n_completed,
    n_completed_at_own_start,
    n_truncated,
    n_carried,
    n_steps,
    total_length,
    longest,
    n_proposed,
    n_accepted,
    n_skipped_updates,
    n_tables,
    min_ess,
    set_size,
    samples_per_row,
    n_rows,
    log_z_s,
});

impl TourInfo {
    /// Mean length of completed tours.
    pub fn mean_length(&self) -> f64 {
        self.total_length as f64 / self.n_completed as f64
    }

    /// Share of tours that returned within `k` steps; of running tours, returns among returns and updates without one.
    pub fn completion(&self) -> f64 {
        self.n_completed as f64 / self.n_tried().max(1) as f64
    }

    /// Returns, and chances to return that passed.
    pub(crate) fn n_tried(&self) -> u64 {
        self.n_completed + self.n_truncated + self.n_carried
    }

    fn merge(&mut self, other: &Self) {
        self.n_started += other.n_started;
        self.n_completed += other.n_completed;
        self.n_completed_at_own_start += other.n_completed_at_own_start;
        self.n_truncated += other.n_truncated;
        self.n_carried += other.n_carried;
        self.n_steps += other.n_steps;
        self.total_length += other.total_length;
        self.longest = self.longest.max(other.longest);
        self.n_proposed += other.n_proposed;
        self.n_accepted += other.n_accepted;
    }

    fn complete(&mut self, length: u64, at_own_start: bool) {
        self.n_completed += 1;
        self.n_completed_at_own_start += u64::from(at_own_start);
        self.total_length += length;
        self.longest = self.longest.max(length);
    }
}

/// Tours that run on from update to update (`carry`).
#[derive(Clone, Debug, Default)]
struct Running {
    h: BitRows,
    /// Where each tour started.
    start: BitRows,
    /// Steps made so far.
    length: Vec<u64>,
}

/// How often in an epoch the stopping set is drawn anew because no tour has returned to it.
const MOST_REDRAWS: u64 = 20;

pub(super) struct LvsPhase {
    settings: Lvs,
    set: StoppingSet,
    table: StartTable,
    running: Running,
    /// Current, where the size of the set adapts.
    samples_per_row: usize,
    /// Rows that the set is drawn from; 0 before the first.
    n_rows: usize,
    seen: Seen,
    info: TourInfo,
}

/// What has been seen since the size of the set was last chosen.
#[derive(Clone, Copy, Default)]
struct Seen {
    n_completed: u64,
    n_tried: u64,
    n_steps: u64,
    /// States drawn for the set, and states evaluated for its tables.
    n_states: u64,
}

impl LvsPhase {
    pub(super) fn new(settings: Lvs) -> Self {
        Self {
            samples_per_row: settings.samples_per_row,
            n_rows: 0,
            seen: Seen::default(),
            set: StoppingSet::default(),
            table: StartTable::default(),
            running: Running::default(),
            info: TourInfo { min_ess: 1.0, ..TourInfo::default() },
            settings,
        }
    }

    fn draw_set(&mut self, rbm: &Rbm, data: &Rows, step: Step) -> Result<()> {
        // A set redrawn within an epoch must differ from the epoch's first one.
        let occasion = u64::from(step.epoch & 0xff_ffff) << 8 | self.info.n_skipped_updates & 0xff;
        let mut rows: Vec<usize> = (0..data.n_rows()).collect();
        if self.n_rows < rows.len() {
            stream(step.seed, Purpose::StoppingSetRows, occasion).reader().shuffle(&mut rows);
            rows.truncate(self.n_rows);
            rows.sort_unstable();
        }
        self.set = StoppingSet::draw(rbm, data, &rows, self.samples_per_row, step.seed, occasion)?;
        self.seen.n_states += self.n_drawn();
        self.info.set_size = self.set.len();
        self.info.samples_per_row = self.samples_per_row;
        self.info.n_rows = self.n_rows;
        self.make_table(rbm);
        Ok(())
    }

    fn make_table(&mut self, rbm: &Rbm) {
        self.table = StartTable::new(rbm, &self.set);
        self.seen.n_states += self.set.len() as u64;
        self.info.n_tables += 1;
        self.info.log_z_s = self.table.log_z_s();
    }

    /// States drawn for a set of the present size.
    fn n_drawn(&self) -> u64 {
        (self.n_rows as u64).saturating_mul(self.samples_per_row as u64)
    }

    /// Choose the size of the next set, by what tours did with those before; the tours that it will end are yet to come.
    ///
    /// Twice as large while too few tours return, if the budgets allow it; half as large where it is beyond a budget or
    /// where the odds of a return are four times those asked for. First the rows grow, then the samples of each; they shrink in the
    /// opposite order.
    fn adapt(&mut self, n_all: usize) {
        if self.n_rows == 0 {
            self.n_rows = ((n_all as f64 * self.settings.row_fraction).ceil() as usize).clamp(1, n_all);
        }
        let Lvs { target_completion: target, max_states, max_set_cost, .. } = self.settings;
        let seen = std::mem::take(&mut self.seen);
        if target == 0.0 {
            return;
        }
        // The cost is in proportion to the size.
        let costs_too_much = |factor: f64| {
            max_set_cost > 0.0
                && seen.n_steps > 0
                && factor * seen.n_states as f64 > max_set_cost * seen.n_steps as f64
        };
        let completion = seen.n_completed as f64 / seen.n_tried as f64;
        // Half the set about halves the odds of a return: a factor of four leaves room for a size to settle.
        let far_more = completion * (1.0 - target) > 4.0 * target * (1.0 - completion);
        if costs_too_much(1.0) || far_more {
            self.halve();
        } else if completion < target && 2 * self.n_drawn() <= max_states as u64 && !costs_too_much(2.0) {
            match self.n_rows < n_all {
                true => self.n_rows = (2 * self.n_rows).min(n_all),
                false => self.samples_per_row *= 2,
            }
        }
        while self.n_drawn() > max_states as u64 {
            self.halve();
        }
    }

    fn halve(&mut self) {
        match self.samples_per_row {
            1 => self.n_rows = (self.n_rows / 2).max(1),
            m => self.samples_per_row = m / 2,
        }
    }

    /// Remember what tours did.
    fn note(&mut self, info: &TourInfo) {
        self.info.merge(info);
        self.seen.n_completed += info.n_completed;
        self.seen.n_tried += info.n_tried();
        self.seen.n_steps += info.n_steps;
    }

    /// Independent tours, cut at the limit: the pairs that count, and the logarithm of the unit of their weights.
    pub(super) fn separate_tours(&mut self, rbm: &Rbm, n_tours: usize, step: Step) -> (Vec<PairBlock>, f64) {
        let id = step.number << 24;
        let of_tour = |r: usize| stream(step.seed, Purpose::Tour, id | r as u64);
        let starts: Vec<usize> = (0..n_tours).map(|r| self.table.draw(of_tour(r).at(0))).collect();
        let (weights, log_unit) = match self.settings.starts {
            Starts::Weighted => {
                let states = self.set.states().select(&starts);
                let now = rbm.quick_log_weights_h(&states);
                let ratio: Vec<f64> =
                    now.iter().zip(&starts).map(|(w, &k)| w - self.table.log_weights()[k]).collect();
                let largest = ratio.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = ratio.iter().map(|x| (x - largest).exp()).collect();
                let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
                let ess = sum * sum / squares / n_tours as f64;
                self.info.min_ess = self.info.min_ess.min(ess);
                if ess < self.settings.min_ess {
                    // For the next update: to redraw this one for its weights would bias it.
                    self.make_table(rbm);
                }
                (weights.iter().map(|w| *w as f32).collect(), largest)
            }
            Starts::Fresh | Starts::Metropolis => (vec![1.0; n_tours], 0.0),
        };
        let n_words = words_for(rbm.n_hidden());
        let states = self.set.states();
        let (settings, set) = (&self.settings, &self.set);
        let of_block = |b: usize| {
            let tours = b * BLOCK..n_tours.min((b + 1) * BLOCK);
            let (starts, weights): (&[usize], &[f32]) = (&starts[tours.clone()], &weights[tours]);
            let streams: Vec<Stream> = (0..starts.len()).map(|r| of_tour(b * BLOCK + r)).collect();
            let mut h = vec![0; starts.len() * n_words];
            for (h, &k) in h.chunks_exact_mut(n_words).zip(starts) {
                h.copy_from_slice(states.row(k));
            }
            tour_block(rbm, set, settings, h, starts, weights, &streams)
        };
        let results: Vec<(Option<PairBlock>, TourInfo)> =
            team::share_all(n_tours.div_ceil(BLOCK), |blocks| blocks.into_par_iter().map(of_block).collect());
        let counted = results.into_iter().filter_map(|(block, info)| {
            self.note(&info);
            block
        });
        (counted.collect(), log_unit)
    }

    /// Running tours: `k` steps each, restarting within the update.
    fn running_tours(&mut self, rbm: &Rbm, step: Step) -> Vec<PairBlock> {
        let Running { h, start, length } = &mut self.running;
        let (set, table, settings) = (&self.set, &self.table, &self.settings);
        let n_words = h.n_words();
        let of_block = |b: usize, h: &mut [u64], start: &mut [u64], length: &mut [u64]| {
            let streams: Vec<Stream> = (0..length.len())
                .map(|r| {
                    stream(step.seed, Purpose::Tour, u64::from(step.epoch) << 24 | (b * BLOCK + r) as u64)
                })
                .collect();
            run_on(rbm, set, table, settings, step, h, start, length, &streams)
        };
        let n_blocks = length.len().div_ceil(BLOCK);
        let (h, start) = (h.words_mut(), start.words_mut());
        let results: Vec<(Vec<PairBlock>, TourInfo)> = team::share_all(n_blocks, |blocks| {
            let rows = blocks.start * BLOCK..length.len().min(blocks.end * BLOCK);
            let words = rows.start * n_words..rows.end * n_words;
            let h = h[words.clone()].par_chunks_mut(BLOCK * n_words);
            let start = start[words].par_chunks_mut(BLOCK * n_words);
            let running = h.zip(start).zip(length[rows].par_chunks_mut(BLOCK)).enumerate();
            running.map(|(k, ((h, start), length))| of_block(blocks.start + k, h, start, length)).collect()
        });
        team::exchange(h, BLOCK * n_words, n_blocks);
        team::exchange(start, BLOCK * n_words, n_blocks);
        team::exchange(length, BLOCK, n_blocks);
        let mut blocks = Vec::new();
        let before = (self.info.n_proposed, self.info.n_accepted);
        for (block, info) in results {
            self.note(&info);
            blocks.extend(block);
        }
        let proposed = self.info.n_proposed - before.0;
        let accepted = self.info.n_accepted - before.1;
        // The acceptance rate plays the part of the effective sample size.
        if proposed > 0 && (accepted as f64) < self.settings.min_ess * proposed as f64 {
            self.make_table(rbm);
        }
        blocks
    }
}

/// Tours of one block until each has returned or reached the limit.
fn tour_block(
    rbm: &Rbm,
    set: &StoppingSet,
    settings: &Lvs,
    mut h: Vec<u64>,
    starts: &[usize],
    weights: &[f32],
    streams: &[Stream],
) -> (Option<PairBlock>, TourInfo) {
    let n_words = words_for(rbm.n_hidden());
    let mut pairs = Pairs::new(settings);
    let mut info = TourInfo { n_started: starts.len() as u64, ..TourInfo::default() };
    let mut active: Vec<usize> = (0..starts.len()).collect();
    let mut completed = vec![false; starts.len()];
    let mut scratch = Scratch::of_thread();
    for k in 1..=settings.k.limit() {
        if active.is_empty() {
            break;
        }
        let draws = |t: u32| -> Vec<_> { active.iter().map(|&r| streams[r].at(t)).collect() };
        let next = pairs.step(rbm, &h, &draws(2 * k - 1), &draws(2 * k), &active, &mut scratch);
        info.n_steps += active.len() as u64;
        let mut still = Vec::with_capacity(active.len());
        h.clear();
        for (&r, state) in active.iter().zip(next.chunks_exact(n_words)) {
            match set.find(state) {
                Some(end) => {
                    completed[r] = true;
                    info.complete(u64::from(k), end == starts[r]);
                }
                None => {
                    still.push(r);
                    h.extend_from_slice(state);
                }
            }
        }
        active = still;
    }
    info.n_truncated = active.len() as u64;
    let drop = settings.unfinished == Unfinished::Drop;
    let block = pairs.into_block(rbm, |r| if drop && !completed[r] { 0.0 } else { weights[r] });
    (block, info)
}

/// `k` steps of the running tours of one block.
#[allow(clippy::too_many_arguments)]
fn run_on(
    rbm: &Rbm,
    set: &StoppingSet,
    table: &StartTable,
    settings: &Lvs,
    step: Step,
    h: &mut [u64],
    start: &mut [u64],
    length: &mut [u64],
    streams: &[Stream],
) -> (Vec<PairBlock>, TourInfo) {
    let n_words = words_for(rbm.n_hidden());
    let steps = settings.k.limit();
    let all: Vec<usize> = (0..length.len()).collect();
    let mut returned = vec![false; length.len()];
    let mut info = TourInfo::default();
    let mut pairs = Pairs::new(settings);
    let mut scratch = Scratch::of_thread();
    for k in 0..steps {
        // Three half-steps each: v, h, restart.
        let at = 3 * (step.update * steps + k);
        let draws = |t: u32| -> Vec<_> { streams.iter().map(|s| s.at(at + t)).collect() };
        let next = pairs.step(rbm, h, &draws(0), &draws(1), &all, &mut scratch);
        h.copy_from_slice(&next);
        info.n_steps += all.len() as u64;
        // Those that have entered the set, with the proposals of where to start again.
        let mut entered = Vec::new();
        for (r, state) in next.chunks_exact(n_words).enumerate() {
            length[r] += 1;
            if let Some(end) = set.find(state) {
                let own = set.states().row(end) == &start[r * n_words..(r + 1) * n_words];
                info.complete(length[r], own);
                info.n_started += 1;
                length[r] = 0;
                returned[r] = true;
                entered.push((r, end, table.draw(streams[r].at(at + 2))));
            }
        }
        let accepted: Vec<bool> = match settings.starts {
            Starts::Fresh | Starts::Weighted => vec![true; entered.len()],
            Starts::Metropolis => {
                info.n_proposed += entered.len() as u64;
                let both: Vec<usize> =
                    entered.iter().flat_map(|&(_, end, proposal)| [end, proposal]).collect();
                let now = rbm.quick_log_weights_block(&set.states().select(&both), &mut scratch);
                let old = |k: usize| table.log_weights()[k];
                entered
                    .iter()
                    .zip(now.chunks_exact(2))
                    .map(|(&(r, end, proposal), now)| {
                        // p*/q of the proposal against that of the state entered.
                        let log_ratio = (now[1] - old(proposal)) - (now[0] - old(end));
                        let u = (f64::from(streams[r].at(at + 2).block(1)[0]) + 0.5) / 4_294_967_296.0;
                        u.ln() < log_ratio
                    })
                    .collect()
            }
        };
        for (&(r, end, proposal), accepted) in entered.iter().zip(accepted) {
            info.n_accepted += u64::from(accepted && settings.starts == Starts::Metropolis);
            let state = set.states().row(if accepted { proposal } else { end });
            h[r * n_words..(r + 1) * n_words].copy_from_slice(state);
            start[r * n_words..(r + 1) * n_words].copy_from_slice(state);
        }
    }
    info.n_carried = returned.iter().filter(|&&returned| !returned).count() as u64;
    (pairs.into_block(rbm, |_| 1.0).into_iter().collect(), info)
}

/// The pairs met along tours.
struct Pairs {
    chain: VisibleChain,
    statistics: Statistics,
    v_bits: Vec<u64>,
    v_reals: Vec<f32>,
    /// One row for each pair, n_hidden numbers.
    h: Vec<f32>,
    /// Which tour each pair belongs to.
    tour: Vec<usize>,
}

impl Pairs {
    fn new(settings: &Lvs) -> Self {
        Self {
            chain: settings.visible,
            statistics: settings.statistics,
            v_bits: Vec::new(),
            v_reals: Vec::new(),
            h: Vec::new(),
            tour: Vec::new(),
        }
    }

    /// One step h → v → h' of the tours named; remembers the pair (v, h) and returns h'.
    fn step(
        &mut self,
        rbm: &Rbm,
        h: &[u64],
        draws_v: &[crate::rng::Draws],
        draws_h: &[crate::rng::Draws],
        tours: &[usize],
        scratch: &mut Scratch,
    ) -> Vec<u64> {
        let n = tours.len();
        let v = chain::visible_from(rbm, h, self.chain, draws_v, scratch);
        let mut next = vec![0; h.len()];
        let mut means = Tiles::zeros(n, rbm.n_hidden());
        let wanted = (self.statistics == Statistics::MeanHidden).then_some(&mut means);
        sample(Isa::best(), rbm.up(), v.states(), draws_h, scratch, &mut next, wanted);
        match self.statistics {
            Statistics::MeanHidden => self.h.extend(means.to_rows()),
            Statistics::Sampled | Statistics::MeanVisible => self.push_bits(rbm, h, n),
        }
        match (self.statistics, v) {
            (Statistics::MeanVisible, Visible::Bits(_)) => {
                self.v_reals.extend(chain::visible_means(rbm, h, n, scratch));
            }
            (_, Visible::Bits(words)) => self.v_bits.extend(words),
            (_, Visible::Reals(values)) => self.v_reals.extend(values),
        }
        self.tour.extend(tours);
        next
    }

    fn push_bits(&mut self, rbm: &Rbm, h: &[u64], n: usize) {
        let n_words = words_for(rbm.n_hidden());
        for row in h.chunks_exact(n_words).take(n) {
            let at = self.h.len();
            self.h.resize(at + rbm.n_hidden(), 0.0);
            crate::bits::ones(row).for_each(|j| self.h[at + j] = 1.0);
        }
    }

    /// All pairs whose tour has a positive weight, as one block; none if there are none.
    fn into_block(self, rbm: &Rbm, weight: impl Fn(usize) -> f32) -> Option<PairBlock> {
        let weights: Vec<f32> = self.tour.iter().map(|&r| weight(r)).collect();
        if weights.iter().all(|&w| w == 0.0) {
            return None;
        }
        let v =
            if self.v_reals.is_empty() { States::Bits(&self.v_bits) } else { States::Reals(&self.v_reals) };
        let h = Tiles::from_rows(weights.len(), rbm.n_hidden(), &self.h);
        if weights.iter().all(|&w| w == 1.0) {
            Some(PairBlock::new(v, rbm.n_visible(), h))
        } else {
            Some(PairBlock::weighted(v, rbm.n_visible(), h, &weights))
        }
    }
}

impl NegativePhase for LvsPhase {
    fn begin_epoch(&mut self, rbm: &Rbm, data: &Rows, step: Step) -> Result<()> {
        if self.set.is_empty() || (step.epoch as usize).is_multiple_of(self.settings.redraw_every) {
            self.adapt(data.n_rows());
            self.draw_set(rbm, data, step)?;
        }
        self.info.set_size = self.set.len();
        self.info.samples_per_row = self.samples_per_row;
        self.info.n_rows = self.n_rows;
        self.info.log_z_s = self.table.log_z_s();
        Ok(())
    }

    fn subtract(&mut self, update: &Update<'_>, moments: &mut Moments) -> Result<Option<Vec<PairBlock>>> {
        let Update { rbm, data, step, .. } = *update;
        if self.set.is_empty() {
            self.begin_epoch(rbm, data, step)?;
        } else if self.settings.starts == Starts::Fresh {
            self.make_table(rbm);
        }
        let n_tours = if self.settings.n_tours == 0 { update.rows.len() } else { self.settings.n_tours };
        let blocks = if self.settings.unfinished == Unfinished::Carry {
            if self.running.h.n_rows() == 0 {
                // The first update begins as PCD does, in the middle of tours.
                let h = first_states(update, n_tours)?;
                self.running = Running { start: h.clone(), length: vec![0; h.n_rows()], h };
                self.info.n_started += n_tours as u64;
            }
            self.running_tours(rbm, step)
        } else {
            self.separate_tours(rbm, n_tours, step).0
        };
        let total = total_weight(&blocks);
        // Weights are relative to the largest at any start. If all the large ones are dropped, single precision has nothing left.
        if total < 1e-30 {
            self.info.n_skipped_updates += 1;
            // Perhaps the set was unlucky; but to draw it again and again takes a hundred times as long as to skip.
            if self.info.n_skipped_updates <= MOST_REDRAWS {
                self.draw_set(rbm, data, step)?;
            }
            return Ok(None);
        }
        moments.add(blocks, (-1.0 / total) as f32);
        Ok(Some(update.all_positive()))
    }

    fn take_tour_info(&mut self) -> Option<TourInfo> {
        let fresh = TourInfo { min_ess: 1.0, ..TourInfo::default() };
        Some(std::mem::replace(&mut self.info, fresh))
    }

    fn chains(&self) -> Option<BitRows> {
        (self.running.h.n_rows() > 0).then(|| self.running.h.clone())
    }

    fn state(&self) -> PhaseState {
        let info = &self.info;
        let counts = [
            info.n_started,
            info.n_completed,
            info.n_completed_at_own_start,
            info.n_truncated,
            info.n_steps,
            info.total_length,
            info.longest,
            info.n_proposed,
            info.n_accepted,
            info.n_skipped_updates,
            info.n_tables,
            info.set_size as u64,
            info.samples_per_row as u64,
            info.n_carried,
            info.n_rows as u64,
            self.samples_per_row as u64,
            self.n_rows as u64,
            self.seen.n_completed,
            self.seen.n_tried,
            self.seen.n_steps,
            self.seen.n_states,
        ];
        PhaseState {
            words: vec![
                ("set".into(), self.set.states().words().to_vec()),
                ("tours".into(), self.running.h.words().to_vec()),
                ("starts".into(), self.running.start.words().to_vec()),
                ("lengths".into(), self.running.length.clone()),
                ("counts".into(), counts.to_vec()),
            ],
            numbers: vec![
                ("table".into(), self.table.log_weights().to_vec()),
                ("info".into(), vec![info.min_ess, info.log_z_s]),
            ],
        }
    }

    fn restore(&mut self, rbm: &Rbm, state: &PhaseState) -> Result<()> {
        let words = |what: &'static str| state.words(what).ok_or(Error::MissingState { what });
        let numbers = |what: &'static str| state.numbers(what).ok_or(Error::MissingState { what });
        let rows = |words: &[u64]| BitRows::from_words(rbm.n_hidden(), words.to_vec());
        self.set = StoppingSet::new(&rows(words("set")?));
        self.running = Running {
            h: rows(words("tours")?),
            start: rows(words("starts")?),
            length: words("lengths")?.to_vec(),
        };
        let table = numbers("table")?;
        if !table.is_empty() {
            self.table = StartTable::from_log_weights(table.to_vec());
        }
        let (&[min_ess, log_z_s], Ok(counts)) = (numbers("info")?, <&[u64; 21]>::try_from(words("counts")?))
        else {
            return Err(Error::MissingState { what: "counts" });
        };
        let [s, c, o, t, n, l, m, p, a, k, b, size, per_row, carried, rows, ..] = *counts;
        self.info = TourInfo {
            n_started: s,
            n_completed: c,
            n_completed_at_own_start: o,
            n_truncated: t,
            n_steps: n,
            total_length: l,
            longest: m,
            n_proposed: p,
            n_accepted: a,
            n_skipped_updates: k,
            n_tables: b,
            min_ess,
            set_size: size as usize,
            samples_per_row: per_row as usize,
            n_carried: carried,
            n_rows: rows as usize,
            log_z_s,
        };
        let [.., per_row, rows, n_completed, n_tried, n_steps, n_states] = *counts;
        (self.samples_per_row, self.n_rows) = (per_row as usize, rows as usize);
        self.seen = Seen { n_completed, n_tried, n_steps, n_states };
        Ok(())
    }
}
