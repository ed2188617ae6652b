//! Make a stopping set from pilot chains, if there are no data or if the model's states lie
//! elsewhere.

use super::StoppingSet;
use crate::bits::BitRows;
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;

/// Settings for [`StoppingSet::from_pilot`]: Gibbs chains whose states become a stopping set.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotSettings {
    /// The number of chains.
    pub n_chains: usize,
    /// The number of steps of each chain before its states are taken.
    pub burn_in: u32,
    /// The number of steps of each chain whose states are taken.
    pub n_steps: u32,
    /// The seed of the chains, which share no random numbers with tours.
    pub seed: u64,
}

impl Default for PilotSettings {
    /// 64 chains of 1,000 steps, then 500 steps whose states are taken.
    fn default() -> Self {
        Self { n_chains: 64, burn_in: 1000, n_steps: 500, seed: 0 }
    }
}

impl StoppingSet {
    /// Returns the hidden states that pilot chains visit. The chains begin in the states of `from`
    /// in turn, or in random states if `from` is `None`.
    ///
    /// No tour contributes to the set, so tours may end in it without bias.
    ///
    /// ```
    /// use mclv::{Rbm, StoppingSet, tour::PilotSettings};
    /// let rbm = Rbm::new(4, 3, &[1.0; 12], &[-1.0; 4], &[-1.0; 3])?;
    /// let set = StoppingSet::from_pilot(&rbm, None, &PilotSettings::default())?;
    /// assert_eq!(set.len(), 8, "all states are visited");
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no chains or no steps, or if `from` is empty or not as wide as the hidden
    /// layer.
    pub fn from_pilot(rbm: &Rbm, from: Option<&Self>, settings: &PilotSettings) -> Result<Self> {
        let PilotSettings { n_chains, burn_in, n_steps, seed } = *settings;
        for (name, value, most) in [
            ("n-chains", n_chains as u64, u64::from(u32::MAX)),
            ("n-steps", u64::from(n_steps), 1 << 30),
            ("burn-in", u64::from(burn_in) + 1, 1 << 30),
        ] {
            if value == 0 || value > most {
                let cure = "at least 1 chain and 1 step, at most 2³⁰ steps";
                return Err(Error::InvalidSetting { name, value: value.to_string(), cure });
            }
        }
        let n_hidden = rbm.n_hidden();
        let mut h = BitRows::zeros(n_chains, n_hidden);
        for chain in 0..n_chains {
            match from {
                Some(set) => {
                    if set.is_empty() {
                        return Err(Error::Empty {
                            what: "the set of first states".into(),
                            cure: "give it one",
                        });
                    }
                    if set.states().n_bits() != n_hidden {
                        let what = "hidden units (the model's against the first states')".into();
                        return Err(Error::ShapeMismatch {
                            what,
                            expected: n_hidden,
                            got: set.states().n_bits(),
                        });
                    }
                    h.row_mut(chain).copy_from_slice(set.states().row(chain % set.len()));
                }
                None => {
                    let mut rng = stream(seed, Purpose::PilotStates, 1 << 40 | chain as u64).reader();
                    (0..n_hidden).for_each(|j| h.set(chain, j, rng.next_u32() & 1 == 1));
                }
            }
        }
        let of_block = |block: usize| {
            let chains = block * BLOCK..n_chains.min((block + 1) * BLOCK);
            let first = h.rows(chains.start, chains.len()).to_vec();
            let clock = |chain: usize| Clock::new(stream(seed, Purpose::PilotStates, chain as u64), 0);
            let mut chains = Chains::new(rbm, VisibleChain::Sampled, first, chains.map(clock).collect());
            let mut visited = Vec::with_capacity(n_steps as usize * chains.h().len());
            let mut scratch = Scratch::of_thread();
            for t in 0..burn_in + n_steps {
                chains.step(rbm, &mut scratch, None);
                if t >= burn_in {
                    visited.extend_from_slice(chains.h());
                }
            }
            visited
        };
        // The final states of the chains are not needed: only the states that they visited are
        // exchanged.
        let visited: Vec<Vec<u64>> = team::map_blocks(n_chains.div_ceil(BLOCK), of_block);
        Ok(Self::new(&BitRows::from_words(n_hidden, visited.concat())))
    }

    /// Returns the set of the states of both sets.
    ///
    /// # Panics
    /// If the states of the two sets differ in width.
    pub fn union(&self, other: &Self) -> Self {
        let mut states = self.states().clone();
        states.append(other.states());
        Self::new(&states)
    }

    /// Returns this set with the states of `more`, if there are any.
    pub(crate) fn joined_by(self, more: Option<&Self>) -> Self {
        match more {
            Some(more) => self.union(more),
            None => self,
        }
    }
}
