//! Make the tours of one update: separate tours that end with it, or running tours that are carried
//! on.

use super::pairs::Pairs;
use super::{LvsEstimator, TourInfo};
use crate::bits::{BitRows, words_for};
use crate::chain::{BLOCK, Chains, Clock};
use crate::gradient::{PairBlock, Step, Update};
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::settings::{LvsSettings, Starts, Unfinished};
use crate::team::{Exchange, Parcel};
use crate::tour::{Place, StartTable, StoppingSet, Walk};
use mclv_kernels::layer::Scratch;

/// The result of one block of tours: its pairs, if any count, and its counts.
pub(super) type OfBlock = (Option<PairBlock>, TourInfo);

/// Separate tours: their starts and their weights.
pub(super) struct Separate {
    starts: Vec<usize>,
    weights: Vec<f32>,
}

/// Nothing of a separate tour outlives its update.
impl Exchange for Separate {
    fn pack(&self, _to: &mut Vec<u8>) {}
    fn unpack(&mut self, _from: &mut &[u8]) {}
}

/// Tours that continue from update to update (`carry`).
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) chains: Chains,
    /// The start of each tour, as packed hidden states.
    pub(super) start: Vec<u64>,
    /// The number of steps that each tour has made so far.
    pub(super) length: Vec<u64>,
}

impl Exchange for Running {
    fn pack(&self, to: &mut Vec<u8>) {
        Exchange::pack(&self.chains, to);
        self.start.pack(to);
        self.length.pack(to);
    }

    fn unpack(&mut self, from: &mut &[u8]) {
        Exchange::unpack(&mut self.chains, from);
        self.start = Parcel::unpack(from);
        self.length = Parcel::unpack(from);
    }
}

impl LvsEstimator {
    /// Returns the starts of `n_tours` separate tours, their weights relative to the largest, and
    /// the logarithm of that largest weight.
    fn separate_starts(&mut self, rbm: &Rbm, n_tours: usize, step: Step) -> (Vec<Separate>, f64) {
        let starts: Vec<usize> =
            (0..n_tours).map(|tour| self.table.draw(tour_stream(step, tour).at(0))).collect();
        let (weights, log_unit) = match self.settings.starts {
            Starts::Weighted => self.start_weights(rbm, &starts),
            Starts::Fresh | Starts::Metropolis => (vec![1.0; n_tours], 0.0),
        };
        let blocks = starts.chunks(BLOCK).zip(weights.chunks(BLOCK));
        let block = |(starts, weights): (&[usize], &[f32])| Separate {
            starts: starts.to_vec(),
            weights: weights.to_vec(),
        };
        (blocks.map(block).collect(), log_unit)
    }

    /// Returns the ratio of the current `p*(h)` to that in the table for each start, relative to
    /// the largest ratio, and the logarithm of the largest ratio.
    fn start_weights(&mut self, rbm: &Rbm, starts: &[usize]) -> (Vec<f32>, f64) {
        let now = rbm.quick_log_weights_h(&self.set.states().select(starts));
        let then = self.table.log_weights();
        let ratio: Vec<f64> = now.iter().zip(starts).map(|(now, &start)| now - then[start]).collect();
        let largest = ratio.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = ratio.iter().map(|x| (x - largest).exp()).collect();
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        let ess = sum * sum / squares / starts.len() as f64;
        self.info.min_ess = self.info.min_ess.min(ess);
        if ess < self.settings.min_ess {
            // The new table serves the next update: redrawing this update because of its weights
            // would bias it.
            self.make_table(rbm);
        }
        (weights.iter().map(|w| *w as f32).collect(), largest)
    }

    /// Walks separate tours, beside the positive phase. Returns the pairs that count, and the
    /// logarithm of the unit of their weights.
    pub(in crate::gradient) fn separate_tours(
        &mut self,
        update: &Update<'_>,
        n_tours: usize,
    ) -> (Vec<PairBlock>, f64) {
        let (rbm, step) = (update.rbm(), update.step());
        let (mut blocks, log_unit) = self.separate_starts(rbm, n_tours, step);
        // Taken after the starts were drawn, which may have made the table anew for the next
        // update.
        let (settings, set) = (&self.settings, &self.set);
        let results = update.work(&mut blocks, |b, tours, scratch| {
            tours.walk(rbm, set, settings, |tour| tour_stream(step, b * BLOCK + tour), scratch)
        });
        (self.note_all(results), log_unit)
    }

    /// Makes `k` steps of each running tour, beside the positive phase. A tour that returns starts
    /// again within the update.
    pub(super) fn running_tours(&mut self, update: &Update<'_>) -> Vec<PairBlock> {
        let (rbm, step) = (update.rbm(), update.step());
        let (set, table, settings) = (&self.set, &self.table, &self.settings);
        let results = update.work(&mut self.running, |b, tours, scratch| {
            tours.run_on(rbm, set, table, settings, (b, step), scratch)
        });
        let before = (self.info.n_proposed, self.info.n_accepted);
        let pairs = self.note_all(results);
        let proposed = self.info.n_proposed - before.0;
        let accepted = self.info.n_accepted - before.1;
        // The acceptance rate is used like an effective sample size.
        if proposed > 0 && (accepted as f64) < self.settings.min_ess * proposed as f64 {
            self.make_table(rbm);
        }
        pairs
    }

    fn note_all(&mut self, results: Vec<OfBlock>) -> Vec<PairBlock> {
        let mut pairs = Vec::with_capacity(results.len());
        for (block, info) in results {
            self.note(&info);
            pairs.extend(block);
        }
        pairs
    }

    /// Begins running tours in the middle, at the states `h`.
    pub(super) fn begin_running(&mut self, rbm: &Rbm, h: &BitRows, start: &BitRows, length: &[u64]) {
        let blocks = crate::gradient::pcd::in_blocks(rbm, self.settings.visible, h).into_iter();
        let starts = start.words().chunks(BLOCK * start.n_words().max(1)).zip(length.chunks(BLOCK));
        let running = |(chains, (start, length)): (Chains, (&[u64], &[u64]))| Running {
            chains,
            start: start.to_vec(),
            length: length.to_vec(),
        };
        self.running = blocks.zip(starts).map(running).collect();
    }
}

/// The random numbers of separate tour `tour` of an update.
fn tour_stream(step: Step, tour: usize) -> crate::rng::Stream {
    stream(step.seed, Purpose::Tour, step.number << 24 | tour as u64)
}

impl Separate {
    /// Walks until each tour has returned or reached the limit.
    pub(super) fn walk(
        &self,
        rbm: &Rbm,
        set: &StoppingSet,
        settings: &LvsSettings,
        stream: impl Fn(usize) -> crate::rng::Stream,
        scratch: &mut Scratch,
    ) -> OfBlock {
        let n = self.starts.len();
        let h = self.starts.iter().flat_map(|&start| set.states().row(start)).copied().collect();
        // The first number of a tour's stream has drawn its start.
        let clocks = (0..n).map(|tour| Clock::new(stream(tour), 1)).collect();
        let mut chains = Chains::new(rbm, settings.visible, h, clocks);
        let places = (0..n).map(|tour| Place { tour, length: 0 }).collect();
        let limit = u64::from(settings.k.limit());
        let mut pairs = Pairs::new(rbm, settings.statistics, settings.visible, n * limit.min(16) as usize);
        let mut info = TourInfo { n_started: n as u64, ..TourInfo::default() };
        let mut completed = vec![false; n];
        let mut walk = Walk::new(rbm, set, &mut chains, places, limit);
        while !walk.is_over() {
            info.n_steps += walk.places().len() as u64;
            let mut means = pairs.hidden_means(walk.places().len());
            let arrivals = walk.step(scratch, means.as_mut(), |chains, places, scratch| {
                pairs.visit(chains, places, scratch);
            });
            pairs.arrive(means);
            for arrival in &arrivals {
                let Place { tour, length } = walk.places()[arrival.place];
                match arrival.row {
                    Some(row) => {
                        completed[tour] = true;
                        info.complete(length, row == self.starts[tour]);
                    }
                    None => info.n_truncated += 1,
                }
            }
            walk.leave(arrivals);
        }
        let drop = settings.unfinished == Unfinished::Drop;
        let weight = |tour: usize| if drop && !completed[tour] { 0.0 } else { self.weights[tour] };
        (pairs.into_block(weight), info)
    }
}

impl Running {
    /// Makes `k` steps of each tour.
    fn run_on(
        &mut self,
        rbm: &Rbm,
        set: &StoppingSet,
        table: &StartTable,
        settings: &LvsSettings,
        (block, step): (usize, Step),
        scratch: &mut Scratch,
    ) -> OfBlock {
        let Self { chains, start, length } = self;
        let (n, n_words) = (length.len(), words_for(rbm.n_hidden()));
        let n_steps = settings.k.limit();
        // Three numbers for each step: v, h, restart.
        chains.set_clocks(|tour| {
            let index = u64::from(step.epoch) << 24 | (block * BLOCK + tour) as u64;
            Clock::new(stream(step.seed, Purpose::Tour, index), 3 * step.update * n_steps)
        });
        let places = length.iter().enumerate().map(|(tour, &length)| Place { tour, length }).collect();
        let n_pairs = n * n_steps as usize;
        let mut pairs = Pairs::new(rbm, settings.statistics, settings.visible, n_pairs);
        let mut info = TourInfo { n_steps: n_pairs as u64, ..TourInfo::default() };
        let mut returned = vec![false; n];
        let mut walk = Walk::new(rbm, set, chains, places, u64::MAX);
        // Restarts of one step: rows of the states entered and of the proposals in turn, these
        // states, their weights.
        let mut rows = Vec::with_capacity(2 * n);
        let (mut states, mut now) = (Vec::with_capacity(2 * n * n_words), Vec::with_capacity(2 * n));
        for _ in 0..n_steps {
            let mut means = pairs.hidden_means(n);
            let arrivals = walk.step(scratch, means.as_mut(), |chains, places, scratch| {
                pairs.visit(chains, places, scratch);
            });
            pairs.arrive(means);
            rows.clear();
            for arrival in &arrivals {
                let place = arrival.place;
                let end = arrival.row.expect("a running tour ends in the set");
                let own = set.states().row(end) == &start[place * n_words..][..n_words];
                info.complete(walk.places()[place].length, own);
                info.n_started += 1;
                returned[place] = true;
                let proposal = table.draw(walk.chains().clock_of(place).peek());
                rows.extend([end, proposal]);
            }
            if settings.starts == Starts::Metropolis {
                states.clear();
                rows.iter().for_each(|&row| states.extend_from_slice(set.states().row(row)));
                rbm.quick_log_weights_block(&states, scratch, &mut now);
            }
            for (k, (arrival, rows)) in arrivals.iter().zip(rows.chunks_exact(2)).enumerate() {
                let (place, end, proposal) = (arrival.place, rows[0], rows[1]);
                let clock = *walk.chains().clock_of(place);
                let mut accepted = true;
                if settings.starts == Starts::Metropolis {
                    // p*/q of the proposal against that of the state entered.
                    let old = |row: usize| table.log_weights()[row];
                    let log_ratio = (now[2 * k + 1] - old(proposal)) - (now[2 * k] - old(end));
                    let u = (f64::from(clock.peek().block(1)[0]) + 0.5) / 4_294_967_296.0;
                    accepted = u.ln() < log_ratio;
                    info.n_proposed += 1;
                    info.n_accepted += u64::from(accepted);
                }
                let state = set.states().row(if accepted { proposal } else { end });
                walk.start(place, Place { tour: place, length: 0 }, clock, state);
                start[place * n_words..][..n_words].copy_from_slice(state);
            }
            walk.reuse(arrivals);
            // The number for a restart is consumed even if no tour restarted.
            (0..n).for_each(|place| _ = walk.chains().clock_of(place).tick());
        }
        length.iter_mut().zip(walk.places()).for_each(|(to, place)| *to = place.length);
        info.n_carried = returned.iter().filter(|&&returned| !returned).count() as u64;
        (pairs.into_block(|_| 1.0), info)
    }
}
