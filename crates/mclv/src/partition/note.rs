//! Say what to know before relying on an estimate of `log Z`.

use super::choice::SetOrigin;
use super::interval::Declined;
use super::reverse_ais::Origin;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing to know before relying on an estimate of `log Z`.
///
/// The text (`Display`) is a sentence with its cure. It names settings in backquotes, in the
/// spelling that all fronts share (`max-steps`). In files a note is an object with its kind under
/// the key `note`; notes of earlier versions, which are plain strings, are read as [`Note::Text`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Note {
    /// Tours ended in a stopping set that the caller gave.
    GivenSet {
        /// States in the set.
        n_states: usize,
    },
    /// Tours ended in a stopping set that was drawn from data.
    DrawnSet {
        /// States in the set.
        n_states: usize,
        /// Rows that the states were drawn from.
        n_rows: usize,
        /// How the states were drawn.
        #[serde(flatten)]
        origin: SetOrigin,
    },
    /// There were no data, so tours ended in states that pilot chains had visited.
    VisitedSet {
        /// States in the set.
        n_states: usize,
    },
    /// Pilot tours did not return, so the estimate is by AIS.
    ToursDoNotReturn {
        /// Share of the pilot tours that returned.
        completion: f64,
        /// Steps of the pilot tours.
        n_steps: u64,
    },
    /// Some of the tours that count did not return, so the estimate is by AIS.
    ToursStayedOut {
        /// Steps that pilots and tours were allowed.
        max_steps: u64,
    },
    /// Some tours were cut, so there is no interval.
    ToursCut {
        /// Tours that were cut.
        n_cut: usize,
        /// Tours.
        n_tours: usize,
    },
    /// Tours moved by mean field, so there is no interval.
    MeanField,
    /// The tour lengths do not show their tail, so there is no interval.
    TailUnseen {
        /// Why the interval was declined.
        reason: Declined,
    },
    /// The standard error is larger than the target.
    TargetMissed {
        /// The standard error in units of the target.
        ratio: f64,
    },
    /// How many chains of AIS carry the weight.
    EffectiveSampleSize {
        /// `(Σw)²/Σw²`: this many equal weights would be as good.
        effective: f64,
        /// Chains.
        n_chains: usize,
        /// Standard deviation of the log weights.
        spread: f64,
    },
    /// Too few chains for an interval.
    FewChains {
        /// Chains that an interval takes.
        enough: usize,
    },
    /// The weights of chains vary too much for an interval.
    UnequalWeights,
    /// Reverse AIS began at exact samples of the model.
    ExactSamples,
    /// Reverse AIS began at rows whose grey values were cut at one half.
    GreyRowsCut,
    /// Reverse AIS began at states that are not samples of the model.
    NotFromModel {
        /// Where the states come from.
        origin: Origin,
    },
    /// How often neighbouring temperatures of a ladder exchange their states.
    SwapRate {
        /// The smallest share of accepted swaps between two neighbours.
        rate: f64,
        /// Temperatures, the base model's included.
        n_temperatures: usize,
    },
    /// The error bar of BAR contains only differences between ladders.
    LaddersOnly,
    /// Two neighbouring temperatures hardly exchange their states.
    RareSwaps {
        /// The lower inverse temperature of the two.
        beta: f64,
    },
    /// Ladders have seen different things.
    LaddersDisagree {
        /// The largest R-hat.
        r_hat: f64,
        /// Where it is: an inverse temperature.
        beta: f64,
    },
    /// Too few steps to say whether ladders agree.
    FewLadderSteps,
    /// A note in words only, from a file of an earlier version.
    #[serde(untagged)]
    Text(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GivenSet { n_states } => write!(f, "a given stopping set of {n_states} states"),
            Self::DrawnSet { n_states, n_rows, origin } => {
                write!(f, "a stopping set of {n_states} states: of {n_rows} rows, {origin}")
            }
            Self::VisitedSet { n_states } => {
                write!(f, "without data: a stopping set of {n_states} states visited by pilot chains")
            }
            Self::ToursDoNotReturn { completion, n_steps } => write!(
                f,
                "only {:.1} % of pilot tours returned to the stopping set within {n_steps} steps: by AIS instead",
                100.0 * completion
            ),
            Self::ToursStayedOut { max_steps } => write!(
                f,
                "not all tours returned to the stopping set within {max_steps} steps: by AIS instead"
            ),
            Self::ToursCut { n_cut, n_tours } => write!(
                f,
                "no interval: {n_cut} tours ({:.2} %) were cut; allow more steps (`max-steps`), \
                 or enlarge the stopping set (`samples-per-row`)",
                100.0 * *n_cut as f64 / *n_tours as f64
            ),
            Self::MeanField => f.write_str("no interval: a mean-field chain is not the model's chain"),
            Self::TailUnseen { reason } => write!(
                f,
                "no interval: of the tour lengths, {reason}; make more tours (`n-tours`), \
                 or enlarge the stopping set (`samples-per-row`)"
            ),
            Self::TargetMissed { ratio } => write!(
                f,
                "the standard error is {ratio:.2} times the target: either `max-steps` allows no more tours, \
                 or the pilot tours saw less of the tail"
            ),
            Self::EffectiveSampleSize { effective, n_chains, spread } => write!(
                f,
                "effective sample size of the weights: {effective:.1} of {n_chains}, whose logarithms have a \
                 standard deviation of {spread:.3}"
            ),
            Self::FewChains { enough } => {
                write!(f, "no interval: take {enough} chains or more (`n-chains`)")
            }
            Self::UnequalWeights => f.write_str(
                "weights vary so much that the error bar may be too small, and there is no interval: \
                 take more temperatures (`n-betas`)",
            ),
            Self::ExactSamples => f.write_str("begun at exact samples of the model"),
            Self::GreyRowsCut => f.write_str("grey values cut at 0.5: chains begin at bits"),
            Self::NotFromModel { origin } => write!(
                f,
                "begun at {}, not at samples of the model: neither a bound nor an interval",
                if *origin == Origin::Data { "data" } else { "the ends of chains" }
            ),
            Self::SwapRate { rate, n_temperatures } => {
                write!(
                    f,
                    "swaps accepted: {:.0} % or more between {n_temperatures} temperatures",
                    100.0 * rate
                )
            }
            Self::LaddersOnly => f.write_str(
                "the error bar and the interval come from differences between ladders: they do not contain \
                 what all ladders have missed, so compare with mclv",
            ),
            Self::RareSwaps { beta } => {
                write!(f, "swaps are rare at β = {beta:.3}: take more temperatures")
            }
            Self::LaddersDisagree { r_hat, beta } => write!(
                f,
                "ladders disagree (R-hat {r_hat:.2} at β = {beta:.3}), so the error bar may be too small: \
                 take more steps (`ladder-steps`)"
            ),
            Self::FewLadderSteps => {
                f.write_str("too few steps to say whether ladders agree: take more (`ladder-steps`)")
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}
