//! Turn gradients into parameter steps.

use crate::gradient::Gradient;
use crate::model::{Offsets, Rbm};
use crate::settings::Optimizer;
use mclv_kernels::Isa;
use mclv_kernels::tiles::{Segment, TILE_UNITS};
use mclv_kernels::update::{AdamStep, Decay, adam, plain_sgd, sgd};

/// An optimiser in use: its rule and its memory.
#[derive(Clone, Debug)]
pub(crate) struct Stepper {
    rule: Optimizer,
    /// The decay of the weights. Biases do not decay.
    decay: Decay,
    n_steps: u64,
    first: Option<Gradient>,
    second: Option<Gradient>,
}

impl Stepper {
    pub(crate) fn new(rule: Optimizer, decay: Decay, n_visible: usize, n_hidden: usize) -> Self {
        let zeros = || Some(Gradient::zeros(n_visible, n_hidden));
        let (first, second) = match rule {
            Optimizer::Sgd { momentum: 0.0 } => (None, None),
            Optimizer::Sgd { .. } => (zeros(), None),
            Optimizer::Adam { .. } => (zeros(), zeros()),
        };
        Self { rule, decay, n_steps: 0, first, second }
    }

    /// Finishes `gradient`, centred about `offsets` if there are any, and moves `rbm` uphill along
    /// it.
    pub(crate) fn step(
        &mut self,
        rbm: &mut Rbm,
        gradient: &mut Gradient,
        offsets: Option<&Offsets>,
        rate: f64,
    ) {
        self.n_steps += 1;
        let (rule, decay) = (self.rule.at(rate, self.n_steps), self.decay);
        let n_pieces = gradient.n_pieces();
        let (first, first_a) = Memory::pieces(self.first.as_mut(), n_pieces);
        let (second, second_a) = Memory::pieces(self.second.as_mut(), n_pieces);
        let (model, a) = rbm.parts_mut();
        let memories = first.into_iter().zip(second);
        let pieces: Vec<_> = model.into_iter().zip(memories).collect();
        gradient.finish_beside(offsets, pieces, |w, b, (mut piece, (mut first, mut second))| {
            for (k, (to, w)) in piece.w.iter_mut().zip(w).enumerate() {
                rule.apply(to.as_mut_slice(), w.as_slice(), first.w(k), second.w(k), decay);
            }
            piece.transpose();
            rule.apply(piece.b, b, first.b, second.b, Decay::default());
        });
        rule.apply(a, &gradient.a, first_a, second_a, Decay::default());
        rbm.biases_changed();
    }

    /// Returns the memory that a resumed run needs to continue exactly.
    pub(crate) fn memory(&self) -> (u64, [Option<&Gradient>; 2]) {
        (self.n_steps, [self.first.as_ref(), self.second.as_ref()])
    }

    /// Continues from saved memory.
    pub(crate) fn restore(&mut self, n_steps: u64, memory: [Option<Gradient>; 2]) {
        self.n_steps = n_steps;
        [self.first, self.second] = memory;
    }
}

/// The memory of an optimiser for 64 visible units: nothing, or one number for each parameter.
struct Memory<'a> {
    w: Vec<Segment<'a>>,
    b: &'a mut [f32],
}

impl<'a> Memory<'a> {
    /// Returns all pieces, and the part of the hidden biases.
    fn pieces(memory: Option<&'a mut Gradient>, n_pieces: usize) -> (Vec<Self>, &'a mut [f32]) {
        let Some(memory) = memory else {
            let nothing = || Self { w: Vec::new(), b: &mut [] };
            return (std::iter::repeat_with(nothing).take(n_pieces).collect(), &mut []);
        };
        let n_tiles = memory.a.len().div_ceil(TILE_UNITS);
        let mut w = memory.w.row_blocks_mut(TILE_UNITS).into_iter();
        let piece = |b| Self { w: w.by_ref().take(n_tiles).collect(), b };
        (memory.b.chunks_mut(TILE_UNITS).map(piece).collect(), &mut memory.a)
    }

    fn w(&mut self, k: usize) -> &mut [f32] {
        self.w.get_mut(k).map_or(&mut [], |w| w.as_mut_slice())
    }
}

/// A rule with the constants of one step.
#[derive(Clone, Copy)]
enum RuleAt {
    Plain { rate: f32 },
    Momentum { rate: f32, momentum: f32 },
    Adam(AdamStep),
}

impl Optimizer {
    fn at(self, rate: f64, n_steps: u64) -> RuleAt {
        match self {
            Self::Sgd { momentum: 0.0 } => RuleAt::Plain { rate: rate as f32 },
            Self::Sgd { momentum } => RuleAt::Momentum { rate: rate as f32, momentum: momentum as f32 },
            Self::Adam { beta1, beta2, epsilon } => {
                let t = n_steps.min(1 << 20) as i32;
                RuleAt::Adam(AdamStep {
                    rate: (rate / (1.0 - beta1.powi(t))) as f32,
                    beta1: beta1 as f32,
                    beta2: beta2 as f32,
                    correction2: (1.0 / (1.0 - beta2.powi(t))).sqrt() as f32,
                    epsilon: epsilon as f32,
                })
            }
        }
    }
}

impl RuleAt {
    fn apply(self, x: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], decay: Decay) {
        let isa = Isa::best();
        match self {
            Self::Plain { rate } => plain_sgd(isa, x, gradient, rate, decay),
            Self::Momentum { rate, momentum } => sgd(isa, x, gradient, first, rate, momentum, decay),
            Self::Adam(step) => adam(isa, x, gradient, first, second, step, decay),
        }
    }
}
