//! Look for modes that an estimate of `log Z` may miss.
//!
//! Every estimate depends on its starts: states of the data, or draws from a base model. A mode
//! that no start leads to is missing from the estimate and from its error bar. Scouts are chains
//! from *other* starts: random hidden states, and states that were annealed from several base
//! models. Their states are evidence that does not come from the estimate.
//!
//! - Before tours begin, the states that scouts visit join the stopping set, round after round,
//!   until new scouts find themselves in the set.
//! - After tours, new scouts must reach the stopping set. If one does not, a mode may be missing.
//! - `Σ p*(h)` over the states that scouts have visited is never above `Z`. An estimate below this
//!   sum is wrong.
//!
//! A mode that neither the data nor any scout leads to stays unseen. No method can exclude it.

use crate::bits::{BitRows, words_for};
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::data::Rows;
use crate::ladder::{Kept, Path, Replicas};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::tour::{StoppingSet, TourEngine, Tours};
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;

/// Temperatures of scouts that are annealed.
const N_BETAS: u32 = 200;
/// Steps of each scout at the temperature of the model, before its states are taken.
const BURN_IN: u32 = 50;
/// Steps of each scout whose states are taken.
const N_STEPS: u32 = 50;
/// The largest number of rounds of scouts whose states join a stopping set.
const MAX_ROUNDS: u16 = 4;
/// After tours, a scout may take this many times the longest tour to reach the stopping set, and at
/// least this many steps.
const PATIENCE: (u64, u64) = (2, 1_000);
/// The number of steps that all scouts together may always take.
const MIN_WATCH: u64 = 200_000;
/// The default number of scouts.
pub const N_SCOUTS: usize = 128;

/// The occasions on which scouts are sent. Each has its own random numbers.
#[derive(Clone, Copy)]
pub(super) enum Errand {
    /// For one round of a stopping set.
    Join(u16),
    /// To see whether a stopping set is reached.
    Reach,
    /// To find states of high probability for AIS and BAR.
    Find,
}

impl Errand {
    fn number(self) -> u64 {
        match self {
            Self::Join(round) => u64::from(round),
            Self::Reach => 100,
            Self::Find => 101,
        }
    }
}

/// The states that scouts have visited.
pub(super) struct Scouts {
    /// The distinct hidden states of all scouts in their last steps.
    pub(super) visited: StoppingSet,
    /// For each scout, the hidden states of its last steps, in order.
    paths: Vec<BitRows>,
    /// The final visible state of each scout.
    pub(super) visible: BitRows,
    /// The final hidden state of each scout.
    pub(super) hidden: BitRows,
    /// The number of steps that were made.
    pub(super) n_steps: u64,
}

impl Scouts {
    /// Sends `n` scouts. A quarter of them begins at random hidden states. The others are annealed
    /// from base models: from independent fair units, from the visible units' inputs at half-active
    /// hidden units, and from `base`, if there is one.
    ///
    /// # Errors
    /// If the base model has the wrong size, or if the listener cancels.
    pub(super) fn send(
        rbm: &Rbm,
        base: Option<&[f32]>,
        n: usize,
        seed: u64,
        errand: Errand,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let fair = vec![0.0; rbm.n_visible()];
        let spread = spread_out_base(rbm);
        let kinds: [Option<&[f32]>; 4] = [None, Some(&fair), Some(&spread), Some(base.unwrap_or(&spread))];
        let per_kind = n.div_ceil(kinds.len());
        let index = |scout: usize| errand.number() << 32 | scout as u64;
        let stream_of = |scout: usize| stream(seed, Purpose::Scout, index(scout));
        let (words_v, words_h) = (words_for(rbm.n_visible()), words_for(rbm.n_hidden()));
        let mut first = Vec::with_capacity(kinds.len() * per_kind * words_h);
        for (k, kind) in kinds.into_iter().enumerate() {
            let scouts = k * per_kind..(k + 1) * per_kind;
            if let Some(base) = kind {
                let v = anneal(rbm, base, scouts.clone().map(stream_of).collect(), progress)?;
                let v = Rows::Bits(BitRows::from_words(rbm.n_visible(), v));
                let h = rbm.sample_h_from_v(&v, |r| stream_of(scouts.start + r).at(2 * N_BETAS + 2))?;
                first.extend_from_slice(h.words());
            } else {
                let mut h = BitRows::zeros(per_kind, rbm.n_hidden());
                for (r, scout) in scouts.enumerate() {
                    let mut rng = stream(seed, Purpose::Scout, 1 << 48 | index(scout)).reader();
                    (0..rbm.n_hidden()).for_each(|j| h.set(r, j, rng.next_u32() & 1 == 1));
                }
                first.extend_from_slice(h.words());
            }
        }
        let n = kinds.len() * per_kind;
        let of_block = |block: usize| {
            let scouts = block * BLOCK..n.min((block + 1) * BLOCK);
            let h = first[scouts.start * words_h..scouts.end * words_h].to_vec();
            let clocks = scouts.map(|scout| Clock::new(stream_of(scout), 2 * N_BETAS + 4)).collect();
            let mut chains = Chains::new(rbm, VisibleChain::Sampled, h, clocks);
            let mut scratch = Scratch::of_thread();
            let mut visited = Vec::with_capacity(N_STEPS as usize * chains.h().len());
            for t in 0..BURN_IN + N_STEPS {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                chains.step(rbm, &mut scratch, None);
                if t >= BURN_IN {
                    visited.extend_from_slice(chains.h());
                }
            }
            Ok((visited, chains.v_bits().to_vec()))
        };
        let blocks: Vec<(Vec<u64>, Vec<u64>)> = team::try_blocks(n.div_ceil(BLOCK), of_block)?;
        let (mut paths, mut all, mut visible) = (Vec::with_capacity(n), Vec::new(), Vec::new());
        for (visited, v) in &blocks {
            let n_chains = v.len() / words_v;
            for chain in 0..n_chains {
                let states = visited.chunks_exact(words_h).skip(chain).step_by(n_chains);
                paths.push(BitRows::from_words(rbm.n_hidden(), states.flatten().copied().collect()));
            }
            all.extend_from_slice(visited);
            visible.extend_from_slice(v);
        }
        let last = paths.iter().flat_map(|path: &BitRows| path.row(path.n_rows() - 1));
        Ok(Self {
            hidden: BitRows::from_words(rbm.n_hidden(), last.copied().collect()),
            visited: StoppingSet::new(&BitRows::from_words(rbm.n_hidden(), all)),
            paths,
            visible: BitRows::from_words(rbm.n_visible(), visible),
            n_steps: n as u64 * u64::from(BURN_IN + N_STEPS) + (n - per_kind) as u64 * u64::from(N_BETAS),
        })
    }

    /// The number of scouts.
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the final states of the scouts that visited no state of `set` in their last steps.
    fn outside(&self, set: &StoppingSet) -> BitRows {
        let n_hidden = self.visited.states().n_bits();
        let is_outside = |path: &&BitRows| !(0..path.n_rows()).any(|r| set.find(path.row(r)).is_some());
        let last = self.paths.iter().filter(is_outside).flat_map(|path| path.row(path.n_rows() - 1));
        BitRows::from_words(n_hidden, last.copied().collect())
    }
}

/// Returns the inputs of the visible units if every hidden unit is half active: a base model that
/// leads to all modes alike.
pub(crate) fn spread_out_base(rbm: &Rbm) -> Vec<f32> {
    let n_hidden = rbm.n_hidden();
    let weights = rbm.weights();
    let rows = weights.chunks_exact(n_hidden).zip(rbm.visible_bias());
    rows.map(|(row, b)| (f64::from(*b) + 0.5 * row.iter().map(|&w| f64::from(w)).sum::<f64>()) as f32)
        .collect()
}

/// Returns the packed visible states of chains that were annealed from a base model, one for each
/// stream.
fn anneal(
    rbm: &Rbm,
    base: &[f32],
    streams: Vec<crate::rng::Stream>,
    progress: &dyn Progress,
) -> Result<Vec<u64>> {
    let path = Path::new(rbm, Some(base), Kept::Visible)?;
    let of_block = |block: usize| {
        let chains = block * BLOCK..streams.len().min((block + 1) * BLOCK);
        let mut replicas = Replicas::from_base(&path, streams[chains].to_vec());
        for t in 1..=N_BETAS {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            replicas.step(|_| f64::from(t) / f64::from(N_BETAS));
        }
        Ok(replicas.kept().to_vec())
    };
    Ok(team::try_blocks(streams.len().div_ceil(BLOCK), of_block)?.concat())
}

/// Returns the states that scouts found outside `set`, so that they can join it, and the number of
/// steps made. New scouts are sent until all of them find themselves in the set, for at most four
/// rounds and `max_steps` steps.
pub(crate) fn states_to_join(
    rbm: &Rbm,
    set: Option<&StoppingSet>,
    base: Option<&[f32]>,
    n_scouts: usize,
    seed: u64,
    max_steps: u64,
    progress: &dyn Progress,
) -> Result<(Option<StoppingSet>, u64)> {
    let mut found: Option<StoppingSet> = None;
    let mut n_steps = 0;
    for round in 0..MAX_ROUNDS {
        if n_steps > max_steps {
            break;
        }
        let scouts = Scouts::send(rbm, base, n_scouts, seed, Errand::Join(round), progress)?;
        n_steps += scouts.n_steps;
        let is_new = |path: &BitRows| {
            let of =
                |set: Option<&StoppingSet>, r: usize| set.is_some_and(|set| set.find(path.row(r)).is_some());
            !(0..path.n_rows()).any(|r| of(set, r) || of(found.as_ref(), r))
        };
        let n_new = scouts.paths.iter().filter(|path| is_new(path)).count();
        if n_new == 0 {
            break;
        }
        found = Some(match &found {
            Some(found) => found.union(&scouts.visited),
            None => scouts.visited,
        });
    }
    Ok((found, n_steps))
}

/// How many of some new scouts reached a stopping set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    pub(super) n_scouts: usize,
    /// The number of scouts that did not reach the set.
    pub(super) n_out: usize,
    /// The number of steps that each scout was allowed.
    pub(super) allowed: u32,
    /// The number of steps of the slowest scout that reached the set.
    pub(super) longest: u32,
    /// The number of steps that were made.
    pub(super) n_steps: u64,
}

impl Reach {
    /// Sends new scouts to the stopping set of `tours`. They may take twice as many steps as the
    /// longest tour: a tour that went where they are would have been seen.
    pub(super) fn of(
        engine: &TourEngine<'_>,
        tours: &Tours,
        n_scouts: usize,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let scouts = Scouts::send(engine.rbm(), None, n_scouts, seed, Errand::Reach, progress)?;
        let mut longest = None;
        let (mut n_out, mut n_steps) = (scouts.outside(engine.set()).n_rows(), scouts.n_steps);
        // All scouts together may take about as many steps as all tours.
        let affordable = (tours.n_steps() + MIN_WATCH) / n_out.max(1) as u64;
        let wanted = u64::from(tours.longest()) * PATIENCE.0;
        let allowed = wanted.min(affordable).clamp(PATIENCE.1, u64::from(u32::MAX / 2)) as u32;
        if n_out > 0 {
            let ways = engine.ways_to_set(&scouts.outside(engine.set()), allowed, seed)?;
            n_out = ways.n_tours() - ways.n_complete();
            n_steps += ways.n_steps();
            longest = ways.as_slice().iter().filter(|way| way.is_complete()).map(|way| way.length).max();
        }
        let longest = longest.map_or(0, |longest| longest + N_STEPS);
        Ok(Self { n_scouts: scouts.len(), n_out, allowed, longest, n_steps })
    }
}
