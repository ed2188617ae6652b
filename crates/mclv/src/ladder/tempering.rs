//! Run parallel tempering: ladders of chains, one for each temperature, that exchange their states.

use super::path::Path;
use super::replica_exchange::{LadderSeed, LadderState, ReplicaExchange, exchange_rates};
use crate::bits::BitRows;
use crate::mixing::Mixing;
use crate::progress::Progress;
use crate::rng::Purpose;
use crate::team;
use crate::{Error, Result};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest number of values that are recorded, eight bytes each.
pub(crate) const MAX_RECORDS: usize = 1 << 28;

/// The step between the starts of consecutive chains. Starts of one kind stand beside each other.
const STRIDE: usize = 37;

/// Steps between two checks for cancellation.
const STEPS_PER_ROUND: usize = 64;

/// Settings of ladders of chains.
pub(crate) struct Tempering<'a> {
    /// The inverse temperatures, from 0 to 1.
    pub(crate) betas: Vec<f64>,
    /// States at which every second ladder begins, so that ladders that agree have come from
    /// different starts. The others begin at the base model.
    pub(crate) starts: Option<&'a BitRows>,
    pub(crate) n_ladders: usize,
    /// The number of steps of each ladder that are recorded.
    pub(crate) n_steps: usize,
    /// The number of steps that each ladder makes before those.
    pub(crate) burn_in: usize,
    pub(crate) seed: u64,
    pub(crate) purpose: Purpose,
}

/// The record of one ladder of chains.
#[derive(Clone)]
pub(crate) struct Record {
    /// For each pair of neighbours and each step: `log p*_k/p*_{k+1}` at a state of temperature
    /// `k`.
    pub(crate) up: Vec<Vec<f64>>,
    /// `log p*_{k+1}/p*_k` at a state of temperature `k+1`.
    pub(crate) down: Vec<Vec<f64>>,
    /// For each pair, the numbers of swaps accepted and tried.
    pub(super) swaps: Vec<(u32, u32)>,
}
team::parcel!(Record { up, down, swaps });

impl Tempering<'_> {
    /// The number of block-Gibbs steps of all chains.
    pub(crate) fn total_steps(&self) -> u64 {
        (self.n_ladders * self.betas.len() * (self.burn_in + self.n_steps)) as u64
    }

    /// Runs the ladders, and returns their records.
    pub(crate) fn run(&self, path: &Path<'_>, progress: &dyn Progress) -> Result<Vec<Record>> {
        let Self { betas, n_ladders, burn_in, .. } = self;
        let n_pairs = betas.len() - 1;
        let n_steps = burn_in.saturating_add(self.n_steps);
        let n_records = (2 * n_ladders * n_pairs).checked_mul(self.n_steps);
        if n_steps >= 1 << 30 || n_records.is_none_or(|n| n > MAX_RECORDS) {
            return Err(Error::InvalidSetting {
                name: "n-steps",
                value: self.n_steps.to_string(),
                cure: "fewer steps, ladders or temperatures: 2^28 numbers at most are recorded, 2^30 steps made",
            });
        }
        let done = AtomicU64::new(0);
        // Of this rank's share.
        let total = (n_ladders * n_steps / team::size()) as u64;
        let of_ladder = |ladder: usize| {
            let seed = LadderSeed { seed: self.seed, purpose: self.purpose, ladder };
            let mut chains = match self.starts.filter(|_| ladder % 2 == 1) {
                None => ReplicaExchange::from_base(path, betas, seed),
                Some(starts) => {
                    let start = |k: usize| (ladder * (n_pairs + 1) + k) * STRIDE % starts.n_rows();
                    let chosen: Vec<usize> = (0..=n_pairs).map(start).collect();
                    let state = LadderState::new(starts.select(&chosen).words().to_vec(), n_pairs + 1);
                    ReplicaExchange::resume(path, betas, seed, state)
                }
            };
            let empty = || (0..n_pairs).map(|_| Vec::with_capacity(self.n_steps)).collect();
            let (mut up, mut down): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (empty(), empty());
            for t in 1..=n_steps {
                chains.step();
                if t == burn_in + 1 {
                    chains.reset_exchanges();
                }
                if t > *burn_in {
                    chains.exchange_seen(|k, up_k, down_k| {
                        up[k].push(up_k);
                        down[k].push(down_k);
                    });
                } else {
                    chains.exchange();
                }
                if t.is_multiple_of(STEPS_PER_ROUND) || t == n_steps {
                    let n = (t - 1) % STEPS_PER_ROUND + 1;
                    progress.report(done.fetch_add(n as u64, Ordering::Relaxed) + n as u64, total);
                    if progress.cancelled() {
                        return Err(Error::Cancelled);
                    }
                }
            }
            Ok(Record { up, down, swaps: chains.into_state().exchanges })
        };
        team::try_blocks(*n_ladders, of_ladder)
    }
}

/// Returns the share of accepted swaps of each pair of neighbours.
pub(crate) fn swap_rates(ladders: &[Record]) -> Vec<f64> {
    exchange_rates(ladders.iter().map(|ladder| ladder.swaps.as_slice()))
}

/// Returns Bennett's `log Z_{k+1}/Z_k` of each pair of neighbours, and how much each ladder moved
/// it, to first order.
pub(crate) fn log_ratios(ladders: &[Record]) -> Vec<(f64, Vec<f64>)> {
    let n_pairs = ladders[0].up.len();
    let of_pair = |k: usize| bennett(ladders.iter().map(|ladder| (&ladder.up[k], &ladder.down[k])));
    (0..n_pairs).into_par_iter().map(of_pair).collect()
}

/// Returns `log Z_1/Z_0` from the ratios of all pairs of neighbours, and its standard error from the
/// differences between ladders.
pub(crate) fn combine(pairs: &[(f64, Vec<f64>)]) -> (f64, f64) {
    let n_ladders = pairs[0].1.len();
    let n = n_ladders as f64;
    let influence = |l: usize| pairs.iter().map(|(_, influences)| influences[l]).sum::<f64>();
    let squares: f64 = (0..n_ladders).map(|l| influence(l).powi(2)).sum();
    (pairs.iter().map(|(log_ratio, _)| log_ratio).sum(), (n / (n - 1.0) * squares).sqrt())
}

/// Bennett's `log Z_{k+1}/Z_k`: the root `D` of `Σ f(up + D) = Σ f(down − D)`, `f(x) = 1/(1 + eˣ)`,
/// over all ladders. Also returns how much each ladder moved the root, to first order.
fn bennett<'a>(ladders: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)> + Clone) -> (f64, Vec<f64>) {
    let f = |x: f64| 1.0 / (1.0 + x.exp());
    // The difference of both sides and its slope; it falls with D.
    let balance = |(up, down): (&Vec<f64>, &Vec<f64>), d: f64| {
        let sums = |x: &Vec<f64>, d: f64| {
            x.iter().map(|x| f(x + d)).fold((0.0, 0.0), |(sum, slope), p| (sum + p, slope + p * (1.0 - p)))
        };
        let ((to, to_slope), (from, from_slope)) = (sums(up, d), sums(down, -d));
        (to - from, to_slope + from_slope)
    };
    let total = |d: f64| {
        let sums = ladders.clone().map(|ladder| balance(ladder, d));
        sums.fold((0.0, 0.0), |total, sum| (total.0 + sum.0, total.1 + sum.1))
    };
    // Below every −up and down the balance is positive, above all of them negative.
    let bounds = ladders.clone().flat_map(|(up, down)| up.iter().map(|x| -x).chain(down.iter().copied()));
    let (mut low, mut high) =
        bounds.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let mut root = 0.5 * (low + high);
    // Newton's steps, or halves where those lead out.
    for _ in 0..100 {
        let (value, slope) = total(root);
        if value > 0.0 {
            low = root;
        } else {
            high = root;
        }
        let newton = root + value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let moved = (next - root).abs();
        root = next;
        if moved <= 1e-10 * (1.0 + root.abs()) {
            break;
        }
    }
    let slope = total(root).1;
    let influences = ladders.map(|ladder| if slope > 0.0 { balance(ladder, root).0 / slope } else { 0.0 });
    (root, influences.collect())
}

/// Returns the temperature at which ladders differ most, and R-hat there. R-hat is `None` if there
/// are too few steps.
pub(crate) fn worst_r_hat(ladders: &[Record]) -> (usize, Option<f64>) {
    let r_hats: Option<Vec<f64>> = (0..ladders[0].down.len())
        .into_par_iter()
        .map(|k| {
            let chains: Vec<Vec<f64>> = ladders.iter().map(|ladder| ladder.down[k].clone()).collect();
            Mixing::new(&chains).map(|mixing| mixing.r_hat)
        })
        .collect();
    let Some(r_hats) = r_hats else { return (0, None) };
    let larger = |best: (usize, f64), (k, &x): (usize, &f64)| if x > best.1 { (k + 1, x) } else { best };
    let (k, worst) = r_hats.iter().enumerate().fold((1, f64::NEG_INFINITY), larger);
    (k, Some(worst))
}
