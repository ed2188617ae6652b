//! Run chains through a sequence of temperatures and weigh them.

use crate::bits::BitRows;
use crate::ladder::{Path, Replicas};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains per unit of parallel work. No result depends on this number.
const BLOCK: usize = 32;

/// Temperatures between two checks for cancellation.
const STEPS_PER_ROUND: u64 = 64;

/// Where chains begin.
#[derive(Clone, Copy)]
pub(super) enum Begin<'a> {
    /// At this many draws from the base model.
    Base(usize),
    /// At these states.
    States(&'a BitRows),
}

/// Returns `log Π_t p*_{β(t)}(v_t) / p*_{β(t−1)}(v_t)` for each chain.
///
/// `v_1` is the start of the chain. A step that leaves `p_{β(t)}` invariant leads from `v_t` to
/// `v_{t+1}`. If the start is a draw from the first model, the expectation of the product is the
/// ratio of the last model's `Z` to the first model's.
pub(super) fn anneal(
    path: &Path<'_>,
    betas: &[f64],
    begin: Begin<'_>,
    (seed, purpose): (u64, Purpose),
    progress: &dyn Progress,
) -> Result<Vec<f64>> {
    let n_chains = match begin {
        Begin::Base(n) => n,
        Begin::States(v) => v.n_rows(),
    };
    let done = AtomicU64::new(0);
    // Of this rank's share.
    let total = (n_chains * (betas.len() - 1) / team::size()) as u64;
    let of_block = |block: usize| {
        let chains = block * BLOCK..n_chains.min((block + 1) * BLOCK);
        let n = chains.len();
        let streams = chains.clone().map(|chain| stream(seed, purpose, chain as u64)).collect();
        let mut replicas = match begin {
            Begin::Base(_) => Replicas::from_base(path, streams),
            Begin::States(v) => Replicas::from_states(path, streams, v.rows(chains.start, n)),
        };
        let mut log_w = vec![0.0; n];
        let mut unreported = 0;
        for (t, pair) in betas.windows(2).enumerate() {
            if t > 0 {
                replicas.step(|_| pair[0]);
            }
            for (r, log_w) in log_w.iter_mut().enumerate() {
                *log_w += replicas.log_weight(r, pair[1]) - replicas.log_weight(r, pair[0]);
            }
            unreported += n as u64;
            if unreported == STEPS_PER_ROUND * n as u64 || t == betas.len() - 2 {
                progress.report(done.fetch_add(unreported, Ordering::Relaxed) + unreported, total);
                unreported = 0;
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
            }
        }
        Ok(log_w)
    };
    Ok(team::try_blocks(n_chains.div_ceil(BLOCK), of_block)?.concat())
}
