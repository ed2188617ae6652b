//! Markov chains: the kind of their visible layer, and a block of chains that step together.

mod block;
mod probe;

pub(crate) use block::{BLOCK, Chains, Clock};
pub(crate) use probe::{Probe, Records, scatter};

use crate::words::words;

/// The values of the visible layer in a Markov chain: sampled states or means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VisibleChain {
    /// `v ~ p(v|h)`: a true Gibbs chain of the model.
    #[default]
    Sampled,
    /// `v = E[v|h]`, as in the paper's code. This is not the model's Gibbs chain.
    MeanField,
}

words!(VisibleChain as "visible" { Sampled = "sampled", MeanField = "mean-field" });
