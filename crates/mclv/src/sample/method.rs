//! Name the methods that draw samples.

use crate::words::words;

/// A method that draws samples from a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleMethod {
    /// One block-Gibbs chain for each sample.
    Gibbs,
    /// Ladders of chains that exchange their states (parallel tempering).
    Tempering,
    /// Independent draws, by enumeration of the smaller layer.
    Exact,
}

words!(SampleMethod as "method" { Gibbs = "gibbs", Tempering = "tempering", Exact = "exact" });
