//! Markov chains: what their visible layer holds, and a block of them that steps together.

mod block;
mod probe;

pub(crate) use block::{BLOCK, Chains, Clock};
pub(crate) use probe::{Probe, Records, scatter};

use crate::words::words;

/// What the visible layer of a chain holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VisibleChain {
    /// `v ~ p(v|h)`: a true Gibbs chain.
    #[default]
    Sampled,
    /// `v = E[v|h]`, as in the paper's code. This is not the model's Gibbs chain.
    MeanField,
}

words!(VisibleChain as "visible" { Sampled = "sampled", MeanField = "mean-field" });
