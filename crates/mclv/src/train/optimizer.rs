//! Turn gradients into steps.

use crate::gradient::Moments;
use crate::model::Rbm;
use crate::{Error, Result};
use mclv_kernels::Isa;
use mclv_kernels::update::{AdamStep, Decay, adam, plain_sgd, sgd};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Numbers per unit of parallel work.
const CHUNK: usize = 1 << 16;

/// A rule for steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Optimizer {
    /// Stochastic gradient ascent, with momentum if it is not 0.
    Sgd {
        /// Share of the last step that is made again.
        #[serde(default)]
        momentum: f64,
    },
    /// Adam (Kingma and Ba 2015).
    Adam {
        /// Decay of the mean of gradients.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the mean of their squares.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Keeps steps finite.
        #[serde(default = "epsilon")]
        epsilon: f64,
    },
}

fn beta1() -> f64 {
    0.9
}
fn beta2() -> f64 {
    0.999
}
fn epsilon() -> f64 {
    1e-8
}

impl Optimizer {
    /// Adam with its authors' constants.
    pub const ADAM: Self = Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

    /// Whether the constants make sense.
    ///
    /// # Errors
    /// Names the constant and what it may be.
    pub(super) fn check(&self) -> Result<()> {
        let share = "at least 0, less than 1";
        let constants = match *self {
            Self::Sgd { momentum } => vec![("momentum", momentum, (0.0..1.0).contains(&momentum), share)],
            Self::Adam { beta1, beta2, epsilon } => vec![
                ("beta1", beta1, (0.0..1.0).contains(&beta1), share),
                ("beta2", beta2, (0.0..1.0).contains(&beta2), share),
                ("epsilon", epsilon, epsilon >= 1e-30 && epsilon.is_finite(), "at least 1e-30"),
            ],
        };
        match constants.into_iter().find(|(_, _, good, _)| !good) {
            Some((name, value, _, cure)) => {
                Err(Error::InvalidSetting { name, value: value.to_string(), cure })
            }
            None => Ok(()),
        }
    }
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::Sgd { momentum: 0.0 }
    }
}

/// An optimiser at work: its rule and its memory.
#[derive(Clone, Debug)]
pub(crate) struct Stepper {
    rule: Optimizer,
    /// Decay of the weights; biases are left alone.
    decay: Decay,
    n_steps: u64,
    first: Option<Moments>,
    second: Option<Moments>,
}

impl Stepper {
    pub(crate) fn new(rule: Optimizer, decay: Decay, n_visible: usize, n_hidden: usize) -> Self {
        let zeros = || Some(Moments::zeros(n_visible, n_hidden));
        let (first, second) = match rule {
            Optimizer::Sgd { momentum: 0.0 } => (None, None),
            Optimizer::Sgd { .. } => (zeros(), None),
            Optimizer::Adam { .. } => (zeros(), zeros()),
        };
        Self { rule, decay, n_steps: 0, first, second }
    }

    /// Move `rbm` uphill along `gradient`.
    pub(crate) fn step(&mut self, rbm: &mut Rbm, gradient: &Moments, rate: f64) {
        self.n_steps += 1;
        let isa = Isa::best();
        let none = Decay::default();
        let Self { rule, decay, n_steps, first, second } = self;
        rbm.update(|w, b, a| {
            let parts = [
                (w.as_mut_slice(), gradient.w.as_slice(), *decay),
                (b, gradient.b.as_slice(), none),
                (a, gradient.a.as_slice(), none),
            ];
            match (*rule, first.as_mut(), second.as_mut()) {
                (Optimizer::Sgd { momentum }, Some(v), _) => {
                    let v = [v.w.as_mut_slice(), &mut v.b, &mut v.a];
                    for ((x, g, decay), v) in parts.into_iter().zip(v) {
                        let chunks =
                            x.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).zip(v.par_chunks_mut(CHUNK));
                        chunks.for_each(|((x, g), v)| sgd(isa, x, g, v, rate as f32, momentum as f32, decay));
                    }
                }
                (Optimizer::Adam { beta1, beta2, epsilon }, Some(m), Some(s)) => {
                    let t = (*n_steps).min(1 << 20) as i32;
                    let step = AdamStep {
                        rate: (rate / (1.0 - beta1.powi(t))) as f32,
                        beta1: beta1 as f32,
                        beta2: beta2 as f32,
                        correction2: (1.0 / (1.0 - beta2.powi(t))).sqrt() as f32,
                        epsilon: epsilon as f32,
                    };
                    let m = [m.w.as_mut_slice(), &mut m.b, &mut m.a];
                    let s = [s.w.as_mut_slice(), &mut s.b, &mut s.a];
                    for (((x, g, decay), m), s) in parts.into_iter().zip(m).zip(s) {
                        let chunks = x.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK));
                        let memory = m.par_chunks_mut(CHUNK).zip(s.par_chunks_mut(CHUNK));
                        chunks.zip(memory).for_each(|((x, g), (m, s))| adam(isa, x, g, m, s, step, decay));
                    }
                }
                _ => {
                    for (x, g, decay) in parts {
                        let chunks = x.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK));
                        chunks.for_each(|(x, g)| plain_sgd(isa, x, g, rate as f32, decay));
                    }
                }
            }
        });
    }

    /// Steps made so far.
    pub(crate) fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// What must be kept to go on exactly.
    pub(crate) fn memory(&self) -> (u64, [Option<&Moments>; 2]) {
        (self.n_steps, [self.first.as_ref(), self.second.as_ref()])
    }

    /// Go on from kept memory.
    pub(crate) fn restore(&mut self, n_steps: u64, memory: [Option<Moments>; 2]) {
        self.n_steps = n_steps;
        [self.first, self.second] = memory;
    }
}
