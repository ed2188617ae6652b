//! The exact gradient, by enumeration of the smaller layer. It is the reference for the other
//! estimators.
//!
//! **Guarantee**: exact up to rounding. Expectations are computed in double precision and rounded
//! to single precision when they are subtracted from those of the data.
//!
//! **Cost**: all `2^n` states in every update, with about one division for each state and unit of
//! the other layer.

use super::{Estimator, Gradient, Update};
use crate::model::Rbm;
use crate::partition::{enumeration, smaller_layer_hidden};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::{Isa, enumerate, math, moments};

/// The largest layer, in units, that is enumerated in every update.
pub(crate) const MAX_UNITS: usize = 20;

/// Units of the larger layer that a thread takes at a time.
const UNITS_PER_BLOCK: usize = 16;

pub(super) struct Exact;

impl Estimator for Exact {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let rbm = update.rbm();
        if rbm.n_visible().min(rbm.n_hidden()) > MAX_UNITS {
            return Err(Error::InvalidSetting {
                name: "estimator",
                value: "exact".into(),
                cure: "the smaller layer may have at most 20 units; use pcd or lvs for larger models",
            });
        }
        if team::any(update.is_cancelled()) {
            return Err(Error::Cancelled);
        }
        let small = smaller_layer_hidden(rbm);
        let Expectations { v, h, vh } = Expectations::of(&small);
        let n_hidden = rbm.n_hidden();
        if rbm.n_hidden() <= rbm.n_visible() {
            gradient.subtract(&v, &h, |i, j| vh[i * n_hidden + j]);
        } else {
            // These are the expectations of the mirrored model.
            gradient.subtract(&h, &v, |i, j| vh[j * rbm.n_visible() + i]);
        }
        Ok(true)
    }
}

/// The expectations of a model's units and of their products (visible × hidden).
pub(super) struct Expectations {
    pub(super) v: Vec<f64>,
    pub(super) h: Vec<f64>,
    pub(super) vh: Vec<f64>,
}

impl Expectations {
    /// Computes them by enumeration of the hidden layer.
    pub(super) fn of(rbm: &Rbm) -> Self {
        let (isa, n_hidden, n_visible) = (Isa::best(), rbm.n_hidden(), rbm.n_visible());
        let mut p = probabilities(rbm);
        let weights = rbm.weights();
        let off_of_block = |block: usize| {
            let scratch = &mut moments::Scratch::default();
            let units = block * UNITS_PER_BLOCK..n_visible.min((block + 1) * UNITS_PER_BLOCK);
            let mut off = vec![0.0; units.len() * (n_hidden + 1)];
            for (i, off) in units.zip(off.chunks_exact_mut(n_hidden + 1)) {
                let w = &weights[i * n_hidden..(i + 1) * n_hidden];
                off[n_hidden] =
                    moments::off(isa, rbm.visible_bias()[i], w, &p, scratch, &mut off[..n_hidden]);
            }
            off
        };
        let off = team::map_blocks(n_visible.div_ceil(UNITS_PER_BLOCK), off_of_block);
        let mut h = vec![0.0; n_hidden];
        let one = moments::fold(&mut p, &mut h);
        let off: Vec<f64> = off.into_iter().flatten().collect();
        let units = off.chunks_exact(n_hidden + 1);
        Self {
            v: units.clone().map(|off| one - off[n_hidden]).collect(),
            vh: units.flat_map(|off| h.iter().zip(off).map(|(h, off)| h - off)).collect(),
            h,
        }
    }
}

/// The probability of each hidden state.
fn probabilities(rbm: &Rbm) -> Vec<f64> {
    let isa = Isa::best();
    let plan = enumeration(rbm, isa, rbm.n_hidden());
    let of_task = |task: usize| {
        let scratch = &mut enumerate::Scratch::default();
        let mut terms = vec![0.0; plan.states_per_task() as usize];
        enumerate::log_terms(isa, &plan, task as u64, scratch, &mut terms);
        terms
    };
    let terms = team::map_blocks(plan.n_tasks() as usize, of_task);
    let mut p: Vec<f64> = terms.into_iter().flatten().collect();
    let largest = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    p.iter_mut().for_each(|p| *p -= largest);
    math::exp_f64(isa, &mut p);
    let z: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= z);
    p
}
