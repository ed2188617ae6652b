//! Run chains that are independent of the tours, to see whether the chain of the tours mixes.

use super::StoppingSet;
use crate::bits::words_for;
use crate::chain::{Chains, Clock, Probe, Records, VisibleChain, scatter};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;
use serde::{Deserialize, Serialize};

/// The number of chains of each kind, and the number of steps of each chain. The second half of the
/// steps is examined.
const N_CHAINS: usize = 16;
const N_STEPS: u32 = 1000;
/// The number of steps between two records.
const STRIDE: u32 = 2;

/// The results of independent chains, from random states and from the stopping set, that show how
/// the model's chain moves.
///
/// Tours alone cannot show that a chain is stuck: a chain that hardly moves is back in its start at
/// once, and its tours are short. These chains are independent of the tours, and half of them do
/// not depend on the data rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Witnesses {
    /// The number of chains that began in random states.
    pub n_random: usize,
    /// The number of chains that began in states of the stopping set.
    pub n_from_set: usize,
    /// The number of steps that each chain made.
    pub n_steps: u32,
    /// How the chains of both kinds mixed over the second half of their steps, by the free energy
    /// and by the leading directions of the weights; the worst of these numbers counts. `None` if a
    /// number was not finite.
    pub mixing: Option<Mixing>,
    /// The number of chains from random states that were in the stopping set at least once.
    pub n_reached: usize,
    /// The share of the second half of their steps that chains from random states spent in the
    /// stopping set. If the chains mix, this estimates `Z_S/Z`.
    pub share_in_set: f64,
}

impl Witnesses {
    /// Runs 16 chains from random states and 16 from states of `set`, 1,000 steps each.
    ///
    /// # Errors
    /// If the set is empty or not as wide as the hidden layer.
    pub fn run(rbm: &Rbm, set: &StoppingSet, visible: VisibleChain, seed: u64) -> Result<Self> {
        if set.is_empty() {
            return Err(Error::Empty { what: "the stopping set".into(), cure: "give it a state" });
        }
        if set.states().n_bits() != rbm.n_hidden() {
            let what = "hidden units (the model's against the stopping set's)".into();
            return Err(Error::ShapeMismatch { what, expected: rbm.n_hidden(), got: set.states().n_bits() });
        }
        let probe = Probe::new(rbm);
        let run = |from_set: bool| walk(rbm, (set, from_set), visible, seed, &probe);
        let (random, from_set) = rayon::join(|| run(false), || run(true));
        let records = [(&random.records, N_CHAINS), (&from_set.records, N_CHAINS)];
        Ok(Self {
            n_random: N_CHAINS,
            n_from_set: N_CHAINS,
            n_steps: N_STEPS,
            mixing: probe.judge(&records, |_| 0, STRIDE),
            n_reached: random.n_reached,
            share_in_set: random.n_in_set as f64 / (N_CHAINS as u32 * (N_STEPS - N_STEPS / 2)) as f64,
        })
    }
}

/// The results of chains of one kind.
struct Walked {
    records: Records,
    n_reached: usize,
    n_in_set: usize,
}

fn walk(
    rbm: &Rbm,
    (set, from_set): (&StoppingSet, bool),
    visible: VisibleChain,
    seed: u64,
    probe: &Probe<'_>,
) -> Walked {
    let first = if from_set { N_CHAINS } else { 0 };
    // The first two numbers of a stream are for the start.
    let clock = |chain: usize| Clock::new(stream(seed, Purpose::TourWitness, (first + chain) as u64), 2);
    let h = vec![0; N_CHAINS * words_for(rbm.n_hidden())];
    let mut chains = Chains::new(rbm, visible, h, (0..N_CHAINS).map(clock).collect());
    let mut scratch = Scratch::of_thread();
    if from_set {
        for chain in 0..N_CHAINS {
            chains.set_h_of(chain, set.states().row(chain * set.len() / N_CHAINS));
        }
    } else {
        scatter(&mut chains, rbm, seed, Purpose::TourWitness, &mut scratch);
        chains.draw_hidden(rbm, &mut scratch, None);
    }
    let mut walked = Walked { records: Records::new(), n_reached: 0, n_in_set: 0 };
    let mut has_reached = [false; N_CHAINS];
    for t in 1..=N_STEPS {
        chains.draw_visible(rbm, &mut scratch);
        let counts = t > N_STEPS / 2;
        if counts && t.is_multiple_of(STRIDE) {
            probe.record(&chains, &mut scratch, &mut walked.records);
        }
        chains.draw_hidden(rbm, &mut scratch, None);
        for (chain, has_reached) in has_reached.iter_mut().enumerate() {
            if set.find(chains.h_of(chain)).is_some() {
                *has_reached = true;
                walked.n_in_set += usize::from(counts);
            }
        }
    }
    walked.n_reached = has_reached.iter().filter(|&&reached| reached).count();
    walked
}
