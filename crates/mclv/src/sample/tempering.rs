//! Draw samples by parallel tempering: ladders of chains that exchange their states.

use super::SampleMethod;
use super::chains::stride;
use super::draw::{BURN_IN, SampleSettings, Samples, doubt, wide};
use crate::bits::{BitRows, words_for};
use crate::chain::{Chains, Clock, Probe, Records, VisibleChain, scatter};
use crate::data::Rows;
use crate::ladder::{Kept, LadderSeed, LadderState, Path, Pilot, ReplicaExchange, exchange_rates};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::partition::{NOMINAL_STEP, spread_out_base};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::{Scratch, States};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of ladders. Samples take turns on them.
pub(super) const N_LADDERS: usize = 16;

/// Temperatures of the pilot that places the rungs, and the distance between neighbours at which
/// about half of the exchanges succeed.
const PILOT_BETAS: usize = 200;
const DISTANCE: f64 = 0.95;
/// The least and the most rungs above the lowest.
const N_RUNGS: (usize, usize) = (2, 1000);

/// A burn-in that the caller did not name is doubled at most this number of times, and only if it
/// then takes at most this number of seconds on a nominal machine.
const MAX_DOUBLINGS: u32 = 3;
const MAX_SECONDS: f64 = 60.0;

/// Samples of one ladder are this number of autocorrelation times apart. If correlations fall
/// exponentially, e⁻⁴ of them is left.
pub(super) const TIMES_APART: f64 = 2.0;

/// The least samples of one ladder, if time is short and more are wanted.
const MIN_ROUNDS: u32 = 16;

/// Steps between two checks for cancellation.
const STEPS_PER_ROUND: u32 = 64;

/// The largest number of steps of a ladder. Its random numbers end soon after.
const MAX_STEPS: u64 = 1 << 30;

/// What ladders of chains did while they drew samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladders {
    /// The number of independent ladders.
    pub n_ladders: usize,
    /// The number of rungs of each ladder, from independent units to the model.
    pub n_rungs: usize,
    /// The number of steps between two samples of one ladder. `None` if no ladder gave more than
    /// one.
    pub thinning: Option<u32>,
    /// The smallest share of accepted exchanges between two neighbouring rungs.
    pub least_swap_rate: f64,
    /// The mean number of round trips of a ladder: a state went from the lowest rung to the top
    /// rung and back.
    pub round_trips: f64,
    /// The share of the samples whose state has not been on the lowest rung since the run began.
    pub not_renewed: f64,
}

/// Draws samples from the top rungs of ladders. See [`sample`](super::sample).
pub(super) fn by_tempering(rbm: &Rbm, settings: &SampleSettings, progress: &dyn Progress) -> Result<Samples> {
    let samples = tempered(rbm, settings, None, progress)?;
    Ok(samples.expect("only a limit of time can forbid tempering"))
}

/// Does the work of [`by_tempering`] within about `seconds` of a nominal machine for the burn-in, and
/// as much again for the samples, of which there are fewer, or closer to each other, if necessary.
/// Returns `None` if a burn-in of the usual length takes longer.
pub(super) fn quickly(
    rbm: &Rbm,
    settings: &SampleSettings,
    seconds: f64,
    progress: &dyn Progress,
) -> Result<Option<Samples>> {
    tempered(rbm, settings, Some(seconds), progress)
}

fn tempered(
    rbm: &Rbm,
    settings: &SampleSettings,
    limit: Option<f64>,
    progress: &dyn Progress,
) -> Result<Option<Samples>> {
    let path = Path::new(rbm, Some(&spread_out_base(rbm)), Kept::Visible)?;
    let pilot = Pilot::run(&path, PILOT_BETAS, settings.seed, progress)?;
    let n_rungs = ((pilot.length() / DISTANCE).ceil() as usize).clamp(N_RUNGS.0, N_RUNGS.1);
    let betas = pilot.ladder(n_rungs);
    tracing::debug!("tempering with {N_LADDERS} ladders of {} rungs", betas.len());
    let mut run = Run::new(rbm, &path, &betas, settings.seed, progress);
    let burn_in = settings.burn_in.unwrap_or(BURN_IN);
    // Wide hidden layers count only where a limit was asked for: the length of a burn-in that was
    // not limited must not change.
    let width = if limit.is_some() { wide(rbm) } else { 1.0 };
    if limit.is_some_and(|seconds| width * run.nominal_seconds(burn_in) > seconds) {
        return Ok(None);
    }
    run.advance(burn_in / 2, None)?;
    let mut mixing = run.advance(burn_in - burn_in / 2, Some(stride(burn_in)))?;
    if settings.burn_in.is_none() {
        for _ in 0..MAX_DOUBLINGS {
            let made = run.n_steps();
            if run.is_settled(mixing) || width * run.nominal_seconds(2 * made) > limit.unwrap_or(MAX_SECONDS)
            {
                break;
            }
            // The steps made so far are the first half of the longer burn-in.
            mixing = run.advance(made, Some(stride(2 * made)))?;
        }
    }
    let burn_in = run.n_steps();
    let apart = mixing.map_or(f64::INFINITY, |mixing| (TIMES_APART * mixing.autocorrelation_time).ceil());
    let thinning = apart.clamp(1.0, f64::from(burn_in)) as u32;
    let (n_samples, thinning) = match limit {
        Some(seconds) => {
            let n_steps = (seconds / (width * run.nominal_seconds(1))) as u32;
            affordable(settings.n_samples, thinning, n_steps)
        }
        None => (settings.n_samples, thinning),
    };
    run.draw(&SampleSettings { n_samples, ..settings.clone() }, mixing, thinning).map(Some)
}

/// Returns how many of `n_samples` samples, and how many steps between two samples of one ladder,
/// `n_steps` steps of each ladder allow. A few samples of each ladder are drawn closer to each other if
/// necessary.
fn affordable(n_samples: usize, thinning: u32, n_steps: u32) -> (usize, u32) {
    let n_rounds = (n_steps / thinning).max(MIN_ROUNDS).min(n_samples.div_ceil(N_LADDERS) as u32);
    (n_samples.min(N_LADDERS * n_rounds as usize), thinning.min(n_steps / n_rounds).max(1))
}

/// Ladders between two calls.
struct Run<'a> {
    rbm: &'a Rbm,
    path: &'a Path<'a>,
    betas: &'a [f64],
    seed: u64,
    probe: Probe<'a>,
    states: Vec<LadderState>,
    progress: &'a dyn Progress,
}

team::parcel! {
    /// The end of a part of the burn-in of one ladder.
    struct Advanced {
        state: LadderState,
        records: Records,
    }
}

team::parcel! {
    /// The samples of one ladder, and its end.
    struct Drawn {
        /// Packed visible states.
        v: Vec<u64>,
        /// The packed hidden states that they were drawn from, if means are wanted.
        h: Vec<u64>,
        /// The number of samples whose state has not been on the lowest rung.
        n_not_renewed: usize,
        state: LadderState,
    }
}

impl<'a> Run<'a> {
    fn new(rbm: &'a Rbm, path: &'a Path, betas: &'a [f64], seed: u64, progress: &'a dyn Progress) -> Self {
        let n_rungs = betas.len();
        let random = random_states(rbm, N_LADDERS / 2 * n_rungs, seed);
        let mut random = random.chunks_exact(n_rungs * words_for(rbm.n_visible()));
        let state = |ladder: usize| {
            if ladder.is_multiple_of(2) {
                return ReplicaExchange::from_base(path, betas, seed_of(seed, ladder)).into_state();
            }
            let states = random.next().expect("states for every second ladder");
            LadderState::new(states.to_vec(), n_rungs)
        };
        let states = (0..N_LADDERS).map(state).collect();
        Self { rbm, path, betas, seed, probe: Probe::new(rbm), states, progress }
    }

    /// The number of steps that each ladder has made.
    fn n_steps(&self) -> u32 {
        self.states[0].n_steps
    }

    /// The seconds that all ladders take for `n_steps` steps on a nominal machine.
    fn nominal_seconds(&self, n_steps: u32) -> f64 {
        let n_chains = (N_LADDERS * self.betas.len()) as f64;
        n_chains * f64::from(n_steps) * NOMINAL_STEP * self.rbm.n_visible() as f64
    }

    /// True if nothing speaks against samples from here on.
    fn is_settled(&self, mixing: Option<Mixing>) -> bool {
        let is_old = |state: &&LadderState| state.histories[self.betas.len() - 1].drawn.is_none();
        let n_old = self.states.iter().filter(is_old).count();
        doubt(mixing, self.n_steps(), n_old as f64 / N_LADDERS as f64).is_none()
    }

    /// Makes `n_steps` steps of all ladders. The top rungs are recorded every `stride` steps, and
    /// judged.
    fn advance(&mut self, n_steps: u32, stride: Option<u32>) -> Result<Option<Mixing>> {
        let steps = Steps::new(self, u64::from(n_steps) * N_LADDERS as u64);
        let of_ladder = |ladder: usize| {
            let mut chains = self.ladder(ladder);
            let (mut records, mut scratch) = (Records::new(), Scratch::default());
            for t in 1..=n_steps {
                chains.step();
                chains.exchange();
                if stride.is_some_and(|stride| t.is_multiple_of(stride)) {
                    self.probe.record_states(States::Bits(chains.top().0), 1, &mut scratch, &mut records);
                }
                steps.count(t, n_steps)?;
            }
            Ok(Advanced { state: chains.into_state(), records })
        };
        let (states, records): (Vec<_>, Vec<_>) = team::try_blocks(N_LADDERS, of_ladder)?
            .into_iter()
            .map(|Advanced { state, records }| (state, records))
            .unzip();
        self.states = states;
        let Some(stride) = stride else { return Ok(None) };
        let records: Vec<(&Records, usize)> = records.iter().map(|records| (records, 1)).collect();
        Ok(self.probe.judge(&records, |_| 0, stride))
    }

    /// Draws the samples, one after the other from each ladder.
    fn draw(self, settings: &SampleSettings, mixing: Option<Mixing>, thinning: u32) -> Result<Samples> {
        let &SampleSettings { n_samples, means, .. } = settings;
        let (burn_in, n_rungs) = (self.n_steps(), self.betas.len());
        let n_rounds = n_samples.div_ceil(N_LADDERS) as u64;
        if u64::from(burn_in) + n_rounds * u64::from(thinning) > MAX_STEPS {
            return Err(Error::InvalidSetting {
                name: "n-samples",
                value: n_samples.to_string(),
                cure: "fewer samples, or a shorter burn-in: a ladder makes at most 2^30 steps; draw more in several runs with other seeds",
            });
        }
        let n_steps = 1 + (n_rounds - 1) * u64::from(thinning);
        let steps = Steps::new(&self, n_steps * N_LADDERS as u64);
        let of_ladder = |ladder: usize| {
            let mut chains = self.ladder(ladder);
            let (mut v, mut h, mut n_not_renewed) = (Vec::new(), Vec::new(), 0);
            for sample in (ladder..n_samples).step_by(N_LADDERS) {
                let n_steps = if sample == ladder { 1 } else { thinning };
                for t in 1..=n_steps {
                    chains.step();
                    if t == n_steps {
                        let (visible, hidden) = chains.top();
                        v.extend_from_slice(visible);
                        if means {
                            h.extend_from_slice(hidden);
                        }
                        n_not_renewed += usize::from(!chains.top_is_renewed());
                    }
                    chains.exchange();
                    steps.count(t, n_steps)?;
                }
            }
            Ok(Drawn { v, h, n_not_renewed, state: chains.into_state() })
        };
        let drawn = team::try_blocks(N_LADDERS, of_ladder)?;
        let in_turn = |rows: &dyn Fn(&Drawn) -> &[u64], n_bits: usize| {
            let n_words = words_for(n_bits);
            let of_sample = |r: usize| &rows(&drawn[r % N_LADDERS])[r / N_LADDERS * n_words..][..n_words];
            BitRows::from_words(n_bits, (0..n_samples).flat_map(of_sample).copied().collect())
        };
        let v = in_turn(&|drawn| &drawn.v, self.rbm.n_visible());
        let means = if means {
            let h = in_turn(&|drawn| &drawn.h, self.rbm.n_hidden());
            Some(self.rbm.mean_v_from_h(&Rows::Bits(h))?)
        } else {
            None
        };
        let rates = exchange_rates(drawn.iter().map(|drawn| drawn.state.exchanges.as_slice()));
        let round_trips: u64 = drawn.iter().map(|drawn| u64::from(drawn.state.round_trips)).sum();
        let n_not_renewed: usize = drawn.iter().map(|drawn| drawn.n_not_renewed).sum();
        let ladders = Ladders {
            n_ladders: N_LADDERS,
            n_rungs,
            thinning: (n_samples > N_LADDERS).then_some(thinning),
            least_swap_rate: rates.into_iter().fold(1.0, f64::min),
            round_trips: round_trips as f64 / N_LADDERS as f64,
            not_renewed: n_not_renewed as f64 / n_samples as f64,
        };
        Ok(Samples {
            v,
            means,
            method: SampleMethod::Tempering,
            mixing,
            burn_in: Some(burn_in),
            ladders: Some(ladders),
            gibbs: None,
        })
    }

    /// Goes on with one ladder.
    fn ladder(&self, ladder: usize) -> ReplicaExchange<'_> {
        let state = self.states[ladder].clone();
        ReplicaExchange::resume(self.path, self.betas, seed_of(self.seed, ladder), state)
    }
}

fn seed_of(seed: u64, ladder: usize) -> LadderSeed {
    LadderSeed { seed, purpose: Purpose::SampleLadder, ladder }
}

/// Returns `n` random visible states, packed: half of them uniform, half of them drawn from uniform
/// hidden states.
fn random_states(rbm: &Rbm, n: usize, seed: u64) -> Vec<u64> {
    let purpose = Purpose::SampleLadderStart;
    let clocks = (0..n).map(|chain| Clock::new(stream(seed, purpose, chain as u64), 0)).collect();
    let h = vec![0; n * words_for(rbm.n_hidden())];
    let mut chains = Chains::new(rbm, VisibleChain::Sampled, h, clocks);
    scatter(&mut chains, rbm, seed, purpose, &mut Scratch::default());
    chains.v_bits().to_vec()
}

/// Counts steps for a listener, and asks it whether to go on.
struct Steps<'a> {
    progress: &'a dyn Progress,
    n_rungs: u64,
    done: AtomicU64,
    /// Of this rank's share.
    total: u64,
}

impl<'a> Steps<'a> {
    fn new(run: &Run<'a>, n_steps: u64) -> Self {
        let n_rungs = run.betas.len() as u64;
        let total = n_steps * n_rungs / team::size() as u64;
        Self { progress: run.progress, n_rungs, done: AtomicU64::new(0), total }
    }

    /// Called after step `t` of `n` of a ladder.
    fn count(&self, t: u32, n: u32) -> Result<()> {
        let rest = t % STEPS_PER_ROUND;
        if rest != 0 && t != n {
            return Ok(());
        }
        let made = u64::from(if rest == 0 { STEPS_PER_ROUND } else { rest }) * self.n_rungs;
        self.progress.report(self.done.fetch_add(made, Ordering::Relaxed) + made, self.total);
        if self.progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
pub(super) mod tests;
