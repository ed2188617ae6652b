//! Give every use of randomness its own stream.
//!
//! A draw is a pure function of the seed, the purpose, an index (chain, tour, epoch) and a step. So
//! results do not depend on threads, and any draw can be repeated. See [`mclv_kernels::rng`] for
//! the generator.

pub(crate) mod seed;

pub use mclv_kernels::rng::{Draws, Reader, Stream};
pub use rand_core::Rng;

/// The purpose of random numbers. Streams of different purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Initial weights.
    Init = 1,
    /// Binarisation of grey values.
    Binarise = 2,
    /// Assignment of rows to splits.
    Split = 3,
    /// Synthetic data.
    Synthesis = 4,
    /// Markov chains.
    Chain = 5,
    /// Self-tests of the program.
    SelfTest = 6,
    /// The order of rows in an epoch.
    Shuffle = 7,
    /// Hidden states of the positive phase.
    Positive = 8,
    /// First states of persistent chains and running tours.
    FirstStates = 9,
    /// Tours during training.
    Tour = 10,
    /// Hidden states of a stopping set.
    StoppingSet = 11,
    /// Rows that a stopping set is drawn from.
    StoppingSetRows = 12,
    /// Annealed importance sampling.
    Ais = 13,
    /// Chains that produce samples.
    Sample = 14,
    /// Reverse annealed importance sampling.
    ReverseAis = 15,
    /// Chains of a ladder of temperatures.
    Ladder = 16,
    /// Starts of tours outside training.
    TourStart = 17,
    /// Steps of tours outside training.
    TourStep = 18,
    /// Resampling for intervals.
    Bootstrap = 19,
    /// A pilot that chooses temperatures.
    Pilot = 20,
    /// Estimators of gradients that are not part of this crate.
    Estimator = 21,
    /// Scouts: chains that look for modes which an estimate may miss.
    Scout = 22,
    /// The second base model of annealed importance sampling.
    SecondBase = 23,
    /// Chains of a ladder of temperatures above a second base model.
    SecondLadder = 24,
    /// Tours with a ladder.
    LadderTour = 25,
    /// Ladders of chains that find the weights of rungs.
    LadderPilot = 26,
    /// Pilot chains whose states make a stopping set.
    PilotStates = 30,
    /// Independent draws from an enumerated model.
    ExactSample = 31,
    /// Chains from random states that samples are compared with.
    SampleWitness = 32,
    /// Chains from random states and from stopping sets that tours are compared with.
    TourWitness = 33,
    /// Ladders of chains that produce samples.
    SampleLadder = 34,
    /// Random states in which such ladders begin.
    SampleLadderStart = 35,
    /// First centres of clusters of rows.
    Clusters = 38,
    /// Ladders of chains that place rungs.
    LadderPlaces = 39,
    /// Chains whose states make clusters.
    LadderStates = 40,
    /// Chains of the ladders of training by parallel tempering.
    TemperedChain = 36,
    /// Exchanges between the rungs of these ladders.
    TemperedExchange = 37,
    /// Pilots that choose the number of temperatures of annealed importance sampling.
    AisPilot = 41,
    /// Such pilots of reverse annealed importance sampling.
    ReverseAisPilot = 42,
    /// Pilots that choose the number of steps of BAR.
    BarPilot = 43,
    /// Ladders of chains along a trajectory of models.
    Trajectory = 44,
    /// Pilots that put models between those of a trajectory.
    TrajectoryPilot = 45,
    /// Pairs of coupled chains.
    Coupling = 70,
    /// Proposals of such pairs, for a layer that differs.
    CouplingProposal = 73,
    /// Seeds of the estimates that a laboratory compares.
    Lab = 71,
    /// The minibatch of a laboratory.
    LabRows = 72,
    /// Pairs of units whose correlations are compared.
    PairsOfUnits = 60,
    /// Starts of the search for principal components.
    Directions = 61,
    /// Hidden states at which contrastive divergence would start.
    StartsOfCd = 74,
}

/// Returns stream `index` for one purpose under `seed`.
///
/// ```
/// use mclv::rng::{Purpose, stream};
/// let mut rng = stream(42, Purpose::Init, 0).reader();
/// assert!(rng.uniform() < 1.0);
/// ```
///
/// # Panics
/// If `index` needs more than 56 bits.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Stream {
    assert!(index < 1 << 56, "stream index {index} needs more than 56 bits");
    Stream::new(seed, (purpose as u64) << 56 | index)
}
