//! Advance a block of Markov chains.

use super::{Visible, VisibleChain};
use crate::bits::words_for;
use crate::model::Rbm;
use crate::rng::Draws;
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, means, sample};
use mclv_kernels::tiles::Tiles;

/// `v` given `h`, for a block of chains.
pub(crate) fn visible_from(
    rbm: &Rbm,
    h: &[u64],
    chain: VisibleChain,
    draws: &[Draws],
    scratch: &mut Scratch,
) -> Visible {
    let n_rows = draws.len();
    match chain {
        VisibleChain::Sampled => {
            let mut v = vec![0; n_rows * words_for(rbm.n_visible())];
            sample(Isa::best(), rbm.down(), States::Bits(h), draws, scratch, &mut v, None);
            Visible::Bits(v)
        }
        VisibleChain::MeanField => Visible::Reals(visible_means(rbm, h, n_rows, scratch)),
    }
}

/// `E[v|h]`, row-major.
pub(crate) fn visible_means(rbm: &Rbm, h: &[u64], n_rows: usize, scratch: &mut Scratch) -> Vec<f32> {
    let mut out = Tiles::zeros(n_rows, rbm.n_visible());
    means(Isa::best(), rbm.down(), States::Bits(h), scratch, &mut out);
    out.to_rows()
}

/// Make `k` block-Gibbs steps h → v → h'; `h` holds the chains before and after. Returns the last `v` and `E[h|v]`.
///
/// `draws(r, t)` is what row `r` uses in half-step `t`: even for `v`, odd for `h`.
pub(crate) fn advance(
    rbm: &Rbm,
    h: &mut [u64],
    k: usize,
    chain: VisibleChain,
    n_rows: usize,
    scratch: &mut Scratch,
    draws: impl Fn(usize, u32) -> Draws,
) -> (Visible, Tiles) {
    let mut hidden_means = Tiles::zeros(n_rows, rbm.n_hidden());
    let mut v = Visible::Bits(Vec::new());
    for t in 0..k as u32 {
        let of = |half: u32| -> Vec<Draws> { (0..n_rows).map(|r| draws(r, 2 * t + half)).collect() };
        v = visible_from(rbm, h, chain, &of(0), scratch);
        let wanted = (t + 1 == k as u32).then_some(&mut hidden_means);
        sample(Isa::best(), rbm.up(), v.states(), &of(1), scratch, h, wanted);
    }
    (v, hidden_means)
}
