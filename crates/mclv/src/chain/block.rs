//! Advance a block of Markov chains: their states, their buffers and their random numbers.

use super::VisibleChain;
use crate::bits::words_for;
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::team;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, means, sample};
use mclv_kernels::tiles::Tiles;

/// Chains that step together. The number is fixed, so sums do not depend on the number of threads.
pub(crate) const BLOCK: usize = 64;

/// The random numbers of one chain: a stream, and the number of the next half-step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    stream: Stream,
    next: u32,
}

impl Clock {
    /// Reads the numbers of `stream`, beginning with half-step `next`.
    pub(crate) fn new(stream: Stream, next: u32) -> Self {
        Self { stream, next }
    }

    /// Returns the numbers of the next half-step and advances.
    pub(crate) fn tick(&mut self) -> Draws {
        let draws = self.stream.at(self.next);
        // The last number of a stream may be followed by a tick whose numbers are not used.
        self.next = self.next.wrapping_add(1);
        draws
    }

    /// Returns the numbers that [`tick`](Self::tick) would return, without advancing.
    pub(crate) fn peek(&self) -> Draws {
        self.stream.at(self.next)
    }
}

/// Some Markov chains of one model.
///
/// A chain is a hidden state `h`, the visible state `v` drawn last, and a [`Clock`]. A Gibbs step
/// is [`draw_visible`](Self::draw_visible) and then [`draw_hidden`](Self::draw_hidden). Between the
/// two, `(v, h)` is a state of the joint chain. Every half-step takes one tick of every clock. No
/// step allocates memory.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    kind: VisibleChain,
    n_visible: usize,
    n_hidden: usize,
    clocks: Vec<Clock>,
    h: Vec<u64>,
    v: Vec<u64>,
    /// Visible values that are not bits: means, or grey rows that chains begin at.
    real_v: Vec<f32>,
    v_is_real: bool,
    /// Room for the means of a mean-field chain.
    tiles: Tiles,
    draws: Vec<Draws>,
}

impl Chains {
    /// Begins chains in the packed hidden states `h`, with a clock for each.
    pub(crate) fn new(rbm: &Rbm, kind: VisibleChain, h: Vec<u64>, clocks: Vec<Clock>) -> Self {
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        assert_eq!(h.len(), clocks.len() * words_for(n_hidden), "a hidden state for each clock");
        Self {
            kind,
            n_visible,
            n_hidden,
            h,
            v: vec![0; clocks.len() * words_for(n_visible)],
            real_v: Vec::new(),
            v_is_real: false,
            tiles: Tiles::zeros(0, n_visible),
            draws: Vec::with_capacity(clocks.len()),
            clocks,
        }
    }

    /// The number of chains.
    pub(crate) fn len(&self) -> usize {
        self.clocks.len()
    }

    /// The number of hidden units of each chain.
    pub(crate) fn n_hidden(&self) -> usize {
        self.n_hidden
    }

    /// The packed hidden states.
    pub(crate) fn h(&self) -> &[u64] {
        &self.h
    }

    /// The packed hidden state of one chain.
    pub(crate) fn h_of(&self, chain: usize) -> &[u64] {
        let n_words = words_for(self.n_hidden);
        &self.h[chain * n_words..][..n_words]
    }

    /// The visible states drawn last.
    pub(crate) fn v(&self) -> States<'_> {
        if self.v_is_real { States::Reals(&self.real_v) } else { States::Bits(&self.v) }
    }

    /// The packed visible states drawn last.
    ///
    /// # Panics
    /// If they are not bits.
    pub(crate) fn v_bits(&self) -> &[u64] {
        assert!(!self.v_is_real, "these chains hold means");
        &self.v
    }

    /// Changes the visible states, to clamp some units. `reals` is called if they are not bits.
    pub(crate) fn change_v(&mut self, bits: impl FnOnce(&mut [u64]), reals: impl FnOnce(&mut [f32])) {
        if self.v_is_real { reals(&mut self.real_v) } else { bits(&mut self.v) }
    }

    /// Puts the chains into these visible states, given as packed bits.
    pub(crate) fn set_v_bits(&mut self, v: &[u64]) {
        self.v.copy_from_slice(v);
        self.v_is_real = false;
    }

    /// Puts the chains into these visible states, given as values in [0, 1], row-major.
    pub(crate) fn set_v_reals(&mut self, v: Vec<f32>) {
        assert_eq!(v.len(), self.len() * self.n_visible, "a value for each unit of each chain");
        self.real_v = v;
        self.v_is_real = true;
    }

    /// Gives every chain a clock.
    pub(crate) fn set_clocks(&mut self, clock: impl Fn(usize) -> Clock) {
        self.clocks.iter_mut().enumerate().for_each(|(chain, to)| *to = clock(chain));
    }

    /// The clock of one chain.
    pub(crate) fn clock_of(&mut self, chain: usize) -> &mut Clock {
        &mut self.clocks[chain]
    }

    /// Puts one chain into another hidden state.
    pub(crate) fn set_h_of(&mut self, chain: usize, h: &[u64]) {
        let n_words = words_for(self.n_hidden);
        self.h[chain * n_words..][..n_words].copy_from_slice(h);
    }

    /// Makes the first half of a step: `v ~ p(v|h)`, or `v = E[v|h]` for a mean-field chain.
    pub(crate) fn draw_visible(&mut self, rbm: &Rbm, scratch: &mut Scratch) {
        match self.kind {
            VisibleChain::Sampled => self.sample_visible(rbm, scratch, None),
            VisibleChain::MeanField => {
                self.clocks.iter_mut().for_each(|clock| _ = clock.tick());
                self.tiles.set_n_rows(self.clocks.len());
                means(Isa::best(), rbm.down(), States::Bits(&self.h), scratch, &mut self.tiles);
                self.tiles.write_rows(&mut self.real_v);
                self.v_is_real = true;
            }
        }
    }

    /// Draws `v ~ p(v|h)`. Also stores `E[v|h]` if `means` is given.
    pub(crate) fn sample_visible(&mut self, rbm: &Rbm, scratch: &mut Scratch, means: Option<&mut Tiles>) {
        self.tick();
        let h = States::Bits(&self.h);
        sample(Isa::best(), rbm.down(), h, &self.draws, scratch, &mut self.v, means);
        self.v_is_real = false;
    }

    /// Makes the second half of a step: `h ~ p(h|v)`. Also stores `E[h|v]` if `means` is given.
    pub(crate) fn draw_hidden(&mut self, rbm: &Rbm, scratch: &mut Scratch, means: Option<&mut Tiles>) {
        self.tick();
        let v = if self.v_is_real { States::Reals(&self.real_v) } else { States::Bits(&self.v) };
        sample(Isa::best(), rbm.up(), v, &self.draws, scratch, &mut self.h, means);
    }

    /// Makes one Gibbs step. Also stores `E[h|v]` if `means` is given.
    pub(crate) fn step(&mut self, rbm: &Rbm, scratch: &mut Scratch, means: Option<&mut Tiles>) {
        self.draw_visible(rbm, scratch);
        self.draw_hidden(rbm, scratch, means);
    }

    /// Makes `k ≥ 1` Gibbs steps and returns `E[h|v]` of the last.
    pub(crate) fn advance(&mut self, rbm: &Rbm, k: usize, scratch: &mut Scratch) -> Tiles {
        let mut means = Tiles::zeros(self.len(), self.n_hidden);
        for _ in 1..k {
            self.step(rbm, scratch, None);
        }
        self.step(rbm, scratch, Some(&mut means));
        means
    }

    /// Keeps the chains for which `keep` returns true, in their order.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let n_words = words_for(self.n_hidden);
        let mut kept = 0;
        for chain in 0..self.len() {
            if !keep(chain) {
                continue;
            }
            if kept < chain {
                self.clocks[kept] = self.clocks[chain];
                self.h.copy_within(chain * n_words..(chain + 1) * n_words, kept * n_words);
            }
            kept += 1;
        }
        self.clocks.truncate(kept);
        self.h.truncate(kept * n_words);
        // The values drawn last are no longer needed; the next half-step draws them for all chains.
        self.v.truncate(kept * words_for(self.n_visible));
    }

    fn tick(&mut self) {
        self.draws.clear();
        self.draws.extend(self.clocks.iter_mut().map(Clock::tick));
    }
}

/// Ranks exchange the hidden states only: clocks are set anew in every update, and the rest is
/// drawn anew.
impl team::Exchange for Chains {
    fn pack(&self, to: &mut Vec<u8>) {
        team::Parcel::pack(&self.h, to);
    }

    fn unpack(&mut self, from: &mut &[u8]) {
        self.h = team::Parcel::unpack(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::data::Rows;
    use crate::model::tests::random_rbm;
    use crate::rng::{Purpose, stream};

    fn clock(chain: usize) -> Clock {
        Clock::new(stream(3, Purpose::Chain, chain as u64), 10)
    }

    /// The oracle: the model's own conditionals, row by row, with the same numbers.
    #[test]
    fn a_step_is_the_models_conditionals_one_after_the_other() {
        let rbm = random_rbm(70, 66, 0.3, 12);
        for kind in [VisibleChain::Sampled, VisibleChain::MeanField] {
            let first = BitRows::zeros(9, 66);
            let mut chains = Chains::new(&rbm, kind, first.words().to_vec(), (0..9).map(clock).collect());
            let mut h = first;
            for step in 0..5 {
                let at = |half: u32| move |r: usize| clock(r).stream.at(10 + 2 * step + half);
                let given = Rows::Bits(h);
                let v = match kind {
                    VisibleChain::Sampled => Rows::Bits(rbm.sample_v_from_h(&given, at(0)).unwrap()),
                    VisibleChain::MeanField => Rows::Reals(rbm.mean_v_from_h(&given).unwrap()),
                };
                h = rbm.sample_h_from_v(&v, at(1)).unwrap();
                let means = rbm.mean_h_from_v(&v).unwrap();
                let of_step = chains.advance(&rbm, 1, &mut Scratch::default());
                assert_eq!(chains.h(), h.words(), "{kind:?}");
                assert_eq!(of_step.to_rows(), means.values(), "{kind:?}");
            }
        }
    }

    #[test]
    fn chains_that_are_kept_go_on_as_if_they_were_alone() {
        let rbm = random_rbm(12, 7, 1.0, 13);
        let scratch = &mut Scratch::default();
        let mut all = Chains::new(&rbm, VisibleChain::Sampled, vec![0; 6], (0..6).map(clock).collect());
        all.step(&rbm, scratch, None);
        let mut some = all.clone();
        some.retain(|chain| chain % 2 == 1);
        all.step(&rbm, scratch, None);
        some.step(&rbm, scratch, None);
        assert_eq!(some.len(), 3);
        for (k, chain) in [1, 3, 5].into_iter().enumerate() {
            assert_eq!(some.h_of(k), all.h_of(chain));
        }
    }
}
