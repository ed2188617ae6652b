//! Say which gradient estimator to use, and how.

pub use crate::chain::VisibleChain;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A gradient estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "estimator", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Gradient {
    /// Contrastive divergence (Hinton 2002): `k` Gibbs steps from the data. Biased.
    Cd {
        /// Gibbs steps.
        #[serde(default = "one")]
        k: usize,
        /// The visible layer of the chain.
        #[serde(default)]
        visible: VisibleChain,
    },
    /// Persistent contrastive divergence (Tieleman 2008): chains that go on from update to update.
    Pcd {
        /// Gibbs steps per update.
        #[serde(default = "one")]
        k: usize,
        /// Chains; 0: as many as rows in a minibatch.
        #[serde(default)]
        n_chains: usize,
        /// The visible layer of the chain.
        #[serde(default)]
        visible: VisibleChain,
    },
    /// Las Vegas tours (Savarese, Kakodkar and Ribeiro 2018).
    Lvs(Lvs),
    /// The exact gradient by enumeration of the smaller layer: small models only.
    Exact,
}

fn one() -> usize {
    1
}

/// Settings of [`Gradient::Lvs`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lvs {
    /// Steps after which a tour is cut (with `carry`: steps per update), or until all have returned.
    pub k: TourLength,
    /// Tours per update; 0: as many as rows in a minibatch.
    pub n_tours: usize,
    /// Hidden states drawn for each row when the stopping set is made.
    pub samples_per_row: usize,
    /// Share of the training rows that the stopping set is made from; 0: 3 % of them, but no fewer than 1,000.
    pub row_fraction: f64,
    /// Epochs between two stopping sets.
    pub redraw_every: usize,
    /// What becomes of tours that have not returned.
    pub unfinished: Unfinished,
    /// How starts are drawn under parameters that change with every update.
    pub starts: Starts,
    /// With weighted or metropolis starts: make the table anew when the effective sample size falls below this share.
    pub min_ess: f64,
    /// What is averaged along a tour.
    pub statistics: Statistics,
    /// The visible layer of the chain.
    pub visible: VisibleChain,
    /// Adapt the size of the stopping set (samples per row, and how many rows) so that this share of tours returns
    /// within `k` steps; 0: do not. `samples_per_row` and `row_fraction` then only say where to begin.
    pub target_completion: f64,
    /// When the size adapts, the most states that are drawn for a set: the budget of memory.
    pub max_states: usize,
    /// When the size adapts, the budget of time: states drawn and evaluated for the set, for each Gibbs step of the
    /// tours. Both are about half a Gibbs step's work, whatever the machine. 0: no limit.
    pub max_set_cost: f64,
}

impl Default for Lvs {
    /// Running tours with Metropolis restarts: stable, and ahead of `drop` and `keep` at equal cost.
    fn default() -> Self {
        Self {
            k: TourLength::Steps(1),
            n_tours: 0,
            samples_per_row: 1,
            row_fraction: 1.0,
            redraw_every: 1,
            unfinished: Unfinished::Carry,
            starts: Starts::Metropolis,
            min_ess: 0.2,
            statistics: Statistics::MeanHidden,
            visible: VisibleChain::Sampled,
            target_completion: 0.0,
            max_states: 1_000_000,
            max_set_cost: 0.0,
        }
    }
}

/// How long a tour may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TourLength {
    /// This many steps.
    Steps(u32),
    /// Until it returns.
    Dynamic,
}

/// Beyond this even a dynamic tour is cut, counted, and treated as unfinished.
pub(crate) const MAX_DYNAMIC_STEPS: u32 = 100_000;

impl TourLength {
    pub(crate) fn limit(self) -> u32 {
        match self {
            Self::Steps(k) => k,
            Self::Dynamic => MAX_DYNAMIC_STEPS,
        }
    }
}

impl std::str::FromStr for TourLength {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s.parse() {
            Ok(k) if k > 0 => Ok(Self::Steps(k)),
            _ if s == "dynamic" => Ok(Self::Dynamic),
            _ => Err(Error::InvalidSetting {
                name: "k",
                value: s.into(),
                cure: "give a number of steps, or `dynamic`",
            }),
        }
    }
}

impl std::fmt::Display for TourLength {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Steps(k) => write!(f, "{k}"),
            Self::Dynamic => f.write_str("dynamic"),
        }
    }
}

impl Serialize for TourLength {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Steps(k) => serializer.serialize_u32(*k),
            Self::Dynamic => serializer.serialize_str("dynamic"),
        }
    }
}

impl<'de> Deserialize<'de> for TourLength {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u32),
            Text(String),
        }
        let text = match Either::deserialize(deserializer)? {
            Either::Number(k) => k.to_string(),
            Either::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What becomes of tours that have not returned after `k` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfinished {
    /// They are left out, as in the paper. With a true Gibbs chain the escaping mass then goes unpunished, and training
    /// diverges.
    Drop,
    /// Their states so far count.
    Keep,
    /// They go on in the next update; a tour that returns starts again within the same update.
    Carry,
}

/// How starts are drawn from `π_S` under the current parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// Evaluate the whole set for each update.
    Fresh,
    /// Draw from an older table and weight the tours (not with `carry`).
    Weighted,
    /// Propose from an older table, accept by the Metropolis ratio (only with `carry`).
    Metropolis,
}

/// What is averaged in place of `v_k h_kᵀ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistics {
    /// `v_k h_kᵀ` itself.
    Sampled,
    /// `v_k E[h|v_k]ᵀ`.
    MeanHidden,
    /// `E[v|h_k] h_kᵀ`.
    MeanVisible,
}

impl Gradient {
    /// Whether the random numbers of `n_updates` updates last: each step of a chain takes up to three of the 2³²
    /// numbers that an epoch has for it.
    ///
    /// # Errors
    /// Names the setting and what it may be.
    pub(crate) fn check_steps(&self, n_updates: usize) -> Result<()> {
        let steps = match self {
            Self::Cd { k, .. } | Self::Pcd { k, .. } => k.saturating_mul(n_updates),
            Self::Lvs(lvs) if lvs.unfinished == Unfinished::Carry => {
                (lvs.k.limit() as usize).saturating_mul(n_updates)
            }
            Self::Lvs(lvs) => lvs.k.limit() as usize,
            Self::Exact => 0,
        };
        if steps > 1 << 30 {
            return Err(Error::InvalidSetting {
                name: "k",
                value: steps.to_string(),
                cure: "steps of a chain in one epoch (k times the updates) must not pass 2^30",
            });
        }
        Ok(())
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// Names the setting and what it may be.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, value: String, cure| Err(Error::InvalidSetting { name, value, cure });
        match self {
            Self::Cd { k, .. } | Self::Pcd { k, .. } if *k == 0 => {
                wrong("k", "0".into(), "at least one Gibbs step")
            }
            Self::Pcd { n_chains, .. } if *n_chains >= 1 << 24 => {
                wrong("n-chains", n_chains.to_string(), "fewer than 16,777,216 chains")
            }
            Self::Lvs(lvs) => {
                if lvs.n_tours > 1 << 16 {
                    return wrong("n-tours", lvs.n_tours.to_string(), "at most 65,536 tours per update");
                }
                if lvs.samples_per_row == 0 {
                    return wrong("samples-per-row", "0".into(), "at least one hidden state per row");
                }
                if !(0.0..=1.0).contains(&lvs.row_fraction) {
                    return wrong("row-fraction", lvs.row_fraction.to_string(), "a share between 0 and 1");
                }
                if lvs.redraw_every == 0 {
                    return wrong("redraw-every", "0".into(), "at least one epoch");
                }
                if !(0.0..=1.0).contains(&lvs.min_ess) {
                    return wrong("min-ess", lvs.min_ess.to_string(), "a share between 0 and 1");
                }
                if !(0.0..1.0).contains(&lvs.target_completion) {
                    return wrong(
                        "target-completion",
                        lvs.target_completion.to_string(),
                        "a share below 1, or 0 for none",
                    );
                }
                if lvs.max_states == 0 {
                    return wrong("max-states", "0".into(), "at least one state");
                }
                if !(lvs.max_set_cost >= 0.0 && lvs.max_set_cost.is_finite()) {
                    return wrong(
                        "max-set-cost",
                        lvs.max_set_cost.to_string(),
                        "a positive number, or 0 for no limit",
                    );
                }
                let carry = lvs.unfinished == Unfinished::Carry;
                if carry && lvs.k == TourLength::Dynamic {
                    return wrong(
                        "k",
                        "dynamic".into(),
                        "with `carry`, say how many steps each update makes",
                    );
                }
                match lvs.starts {
                    Starts::Weighted if carry => wrong(
                        "starts",
                        "weighted".into(),
                        "with `carry` use `metropolis` or `fresh`: tours from different tables cannot be pooled",
                    ),
                    Starts::Metropolis if !carry => {
                        wrong("starts", "metropolis".into(), "only with `carry`; use `weighted` or `fresh`")
                    }
                    _ if lvs.visible == VisibleChain::MeanField
                        && lvs.statistics == Statistics::MeanVisible =>
                    {
                        wrong(
                            "statistics",
                            "mean-visible".into(),
                            "a mean-field chain already holds E[v|h]; use `sampled`",
                        )
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
