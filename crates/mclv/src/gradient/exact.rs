//! The exact gradient, by enumeration of the smaller layer: the yardstick.
//!
//! **Guarantee**: exact up to single-precision rounding. Cost: all `2^n` states in every update.

use super::{Moments, NegativePhase, PairBlock, Update, chain};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::{Scratch, States, ThreadScratch};
use mclv_kernels::tiles::Tiles;
use rayon::prelude::*;

/// The largest layer that is enumerated in every update.
pub(crate) const MAX_UNITS: usize = 20;

/// States per round: what is in memory at a time.
const STATES_PER_ROUND: usize = 4096;
const STATES_PER_BLOCK: usize = 64;

pub(super) struct ExactPhase;

impl NegativePhase for ExactPhase {
    fn subtract(&mut self, update: &Update<'_>, moments: &mut Moments) -> Result<Option<Vec<PairBlock>>> {
        let Update { rbm, progress, .. } = *update;
        let n_units = rbm.n_visible().min(rbm.n_hidden());
        if n_units > MAX_UNITS {
            return Err(Error::InvalidSetting {
                name: "estimator",
                value: "exact".into(),
                cure: "the smaller layer may have at most 20 units; use pcd or lvs for larger models",
            });
        }
        let states = BitRows::all_states(n_units);
        let over_hidden = rbm.n_hidden() <= rbm.n_visible();
        let free_energy = if over_hidden {
            rbm.free_energy_h(&Rows::Bits(states.clone()))?
        } else {
            rbm.free_energy(&Rows::Bits(states.clone()))?
        };
        let largest = free_energy.iter().map(|f| -f).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = free_energy.iter().map(|f| (-f - largest).exp()).collect();
        let z: f64 = weights.iter().sum();
        let p: Vec<f32> = weights.iter().map(|w| (w / z) as f32).collect();
        for first in (0..states.n_rows()).step_by(STATES_PER_ROUND) {
            if team::any(progress.cancelled()) {
                return Err(Error::Cancelled);
            }
            let end = states.n_rows().min(first + STATES_PER_ROUND);
            let of_block = |scratch: &mut ThreadScratch, block: usize| {
                let at = first + block * STATES_PER_BLOCK;
                let n = STATES_PER_BLOCK.min(end - at);
                let bits = states.rows(at, n);
                let p = &p[at..at + n];
                if over_hidden {
                    let v = chain::visible_means(rbm, bits, n, scratch);
                    PairBlock::weighted(States::Reals(&v), rbm.n_visible(), tiles_of(&states, at, n), p)
                } else {
                    let mut h = Tiles::zeros(n, rbm.n_hidden());
                    let isa = mclv_kernels::Isa::best();
                    mclv_kernels::layer::means(isa, rbm.up(), States::Bits(bits), scratch, &mut h);
                    PairBlock::weighted(States::Bits(bits), rbm.n_visible(), h, p)
                }
            };
            let blocks = team::share_all((end - first).div_ceil(STATES_PER_BLOCK), |blocks| {
                blocks.into_par_iter().map_init(Scratch::of_thread, of_block).collect()
            });
            moments.add(blocks, -1.0);
            moments.flush();
        }
        Ok(Some(update.all_positive()))
    }
}

/// Packed states as a matrix of zeros and ones.
pub(super) fn tiles_of(states: &BitRows, first: usize, n: usize) -> Tiles {
    let mut values = vec![0.0; n * states.n_bits()];
    for (r, row) in values.chunks_exact_mut(states.n_bits()).enumerate() {
        crate::bits::ones(states.row(first + r)).for_each(|j| row[j] = 1.0);
    }
    Tiles::from_rows(n, states.n_bits(), &values)
}
