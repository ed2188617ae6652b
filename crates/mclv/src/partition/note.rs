//! Notes on an estimate of `log Z`.

use super::choice::SetOrigin;
use super::interval::Declined;
use super::reverse_ais::Origin;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing to know before relying on an estimate of `log Z`.
///
/// The text (`Display`) is a sentence, with advice where there is some. It names settings in
/// backquotes, in the spelling of files (`max-steps`). In files a note is an object with its kind
/// under the key `note`. Notes of earlier versions are plain strings and are read as
/// [`Note::Text`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Note {
    /// Tours used a stopping set that the caller gave.
    GivenSet {
        /// States in the set.
        n_states: usize,
    },
    /// Tours used a stopping set that was drawn from data.
    DrawnSet {
        /// States in the set.
        n_states: usize,
        /// Rows that the states were drawn from.
        n_rows: usize,
        /// How the states were drawn.
        #[serde(flatten)]
        origin: SetOrigin,
        /// States that scouts found and that joined the set.
        #[serde(default)]
        n_joined: usize,
    },
    /// There were no data, so tours used a stopping set of states that pilot chains had visited.
    VisitedSet {
        /// States in the set.
        n_states: usize,
    },
    /// Pilot tours did not return, so the estimate is by another method.
    ToursDoNotReturn {
        /// Share of the pilot tours that returned.
        completion: f64,
        /// Steps of the pilot tours.
        n_steps: u64,
    },
    /// Hardly any pilot tours returned, so only a few tours were made, and there is no interval.
    ToursGivenUp {
        /// Share of the pilot tours that returned.
        completion: f64,
        /// Steps of the pilot tours. The tours of the estimate made no more.
        n_steps: u64,
    },
    /// Too few pilot tours climbed a ladder, so the estimate is by another method.
    ToursDoNotClimb {
        /// Share of the pilot tours that reached the model.
        climbed: f64,
        /// Steps of all pilots.
        n_steps: u64,
    },
    /// Some tours were cut, so there is no interval.
    ToursCut {
        /// Number of tours that were cut.
        n_cut: usize,
        /// Number of all tours.
        n_tours: usize,
    },
    /// Tours used a mean-field chain, so there is no interval.
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
    /// The effective sample size of the weights of AIS.
    EffectiveSampleSize {
        /// `(Σw)²/Σw²`: this number of equal weights would be as good.
        effective: f64,
        /// Chains.
        n_chains: usize,
        /// Standard deviation of the log weights.
        spread: f64,
    },
    /// Too few chains for an interval.
    FewChains {
        /// Chains that an interval needs.
        enough: usize,
    },
    /// The weights of chains vary too much for an interval.
    UnequalWeights,
    /// Reverse AIS started at exact samples of the model.
    ExactSamples,
    /// Reverse AIS started at rows whose grey values were cut at one half.
    GreyRowsCut,
    /// Reverse AIS started at states that are not samples of the model.
    NotFromModel {
        /// Where the states come from.
        origin: Origin,
    },
    /// How tours climbed a ladder.
    Ladder {
        /// The number of legs.
        n_legs: usize,
        /// The largest number of rungs of a leg, above its base model.
        n_rungs: usize,
        /// The smallest share of accepted swaps between two neighbours, in the pilot.
        swap_rate: f64,
        /// The share of the tours that reached the top rung.
        climbed: f64,
        /// The mean number of steps of a tour.
        mean_length: f64,
    },
    /// The value of `log Z` by parallel tempering, which found the weights of a ladder.
    Tempering {
        /// The smallest value of a leg.
        low: f64,
        /// The largest value of a leg.
        high: f64,
    },
    /// Parallel tempering and tours with a ladder give different values.
    TemperingDisagrees {
        /// The estimate by tours minus that by parallel tempering.
        difference: f64,
    },
    /// No tour reached the top rung, so the value is that of parallel tempering.
    TopNotReached,
    /// Some tours with a ladder were cut, so there is no interval.
    LadderToursCut {
        /// Number of tours that were cut.
        n_cut: usize,
        /// Number of all tours.
        n_tours: usize,
    },
    /// The visits to the top rung do not show their tail, so there is no interval.
    VisitsUnseen {
        /// Why the interval was declined.
        reason: Declined,
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
    /// Ladders disagree.
    LaddersDisagree {
        /// The largest R-hat.
        r_hat: f64,
        /// Where it is: an inverse temperature.
        beta: f64,
    },
    /// The models of a trajectory, and how often their chains exchanged states.
    Trajectory {
        /// The smallest share of accepted swaps between two neighbours.
        rate: f64,
        /// Models of the trajectory.
        n_models: usize,
        /// Rungs: these models, the base model, and models between them.
        n_rungs: usize,
    },
    /// Ladders along a trajectory disagree.
    RungsDisagree {
        /// The largest R-hat.
        r_hat: f64,
        /// The rung where it is, from 0 for the base model.
        rung: usize,
    },
    /// Too few steps to tell whether ladders agree.
    FewLadderSteps,
    /// No independent chain searched for modes that the estimate may miss, so there is no interval.
    NotScouted,
    /// Nearly all tours have one step, so the interval starts at the weight of the stopping set.
    FewLongTours,
    /// Some chains from random starts do not reach the stopping set: modes may be missing.
    SetNotReached {
        /// Chains that did not reach the set.
        n_out: usize,
        /// Number of all chains.
        n_scouts: usize,
        /// Steps allowed per chain.
        allowed: u32,
    },
    /// The weights of chains from a second base model vary too much to confirm the estimate.
    SecondBaseUnsound,
    /// Ladders above a second base model disagree or hardly swap, so they confirm nothing.
    SecondLaddersUnsound,
    /// Two base models lead to different values: modes are missing from one of them or from both.
    BasesDisagree {
        /// The estimate minus that of the second base model.
        difference: f64,
    },
    /// The estimate is below the sum over known states: modes are missing.
    BelowKnownStates {
        /// The logarithm of the sum over the known states, which is never above `log Z`.
        log_sum: f64,
    },
    /// Tours had a step budget, so the estimate is a lower bound on average.
    StepBudget {
        /// Steps allowed for pilots and tours together.
        max_steps: u64,
    },
    /// There are too few ladders for an interval.
    FewLadders {
        /// Number of ladders.
        n_ladders: usize,
        /// Number of ladders that an interval needs.
        enough: usize,
    },
    /// A note in words only, from a file of an earlier version.
    #[serde(untagged)]
    Text(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GivenSet { n_states } => write!(f, "the given stopping set has {n_states} states"),
            Self::DrawnSet { n_states, n_rows, origin, n_joined } => {
                write!(f, "the stopping set has {n_states} states, made from {n_rows} rows: {origin}")?;
                if *n_joined > 0 {
                    write!(f, ", and {n_joined} that scouts found")?;
                }
                Ok(())
            }
            Self::VisitedSet { n_states } => write!(
                f,
                "there are no data, so the stopping set consists of {n_states} states visited by pilot chains"
            ),
            Self::ToursDoNotReturn { completion, n_steps } => write!(
                f,
                "only {:.1} % of pilot tours returned to the stopping set within {n_steps} steps, so log Z was \
                 estimated by another method",
                100.0 * completion
            ),
            Self::ToursGivenUp { completion, n_steps } => write!(
                f,
                "only {:.1} % of pilot tours returned to the stopping set within {n_steps} steps, so tours \
                 were given up and the value may be far too low; choose another `method`, such as ladder",
                100.0 * completion
            ),
            Self::ToursDoNotClimb { climbed, n_steps } => write!(
                f,
                "{:.1} % of pilot tours climbed the ladder to the model, too few for an estimate; log Z was \
                 estimated by another method, after {n_steps} steps",
                100.0 * climbed
            ),
            Self::FewLadders { n_ladders, enough } => write!(
                f,
                "no interval: {n_ladders} ladders are too few for one; run at least {enough} (`n-ladders`)"
            ),
            Self::ToursCut { n_cut, n_tours } => write!(
                f,
                "no interval: {n_cut} tours ({:.2} %) were cut before they returned; allow more steps \
                 (`max-steps`), or enlarge the stopping set (`samples-per-row`)",
                100.0 * *n_cut as f64 / *n_tours as f64
            ),
            Self::MeanField => f.write_str("no interval: a mean-field chain is not the model's chain"),
            Self::TailUnseen { reason } => write!(
                f,
                "no interval: the tail of the tour lengths is not known well enough ({reason}); run more tours \
                 (`n-tours`), or enlarge the stopping set (`samples-per-row`)"
            ),
            Self::TargetMissed { ratio } => write!(
                f,
                "the standard error is {ratio:.2} times the target: either `max-steps` allows no more work, \
                 or the pilot underestimated the error"
            ),
            Self::EffectiveSampleSize { effective, n_chains, spread } => write!(
                f,
                "the weights have an effective sample size of {effective:.1} of {n_chains} chains, and their \
                 logarithms a standard deviation of {spread:.3}"
            ),
            Self::FewChains { enough } => {
                write!(f, "no interval: there are too few chains; take {enough} chains or more (`n-chains`)")
            }
            Self::UnequalWeights => f.write_str(
                "no interval: the weights of the chains vary too much; if the effective sample size is below two \
                 thirds of the chains, there is no error bar either; take more temperatures (`n-betas`)",
            ),
            Self::ExactSamples => f.write_str("chains start at exact samples of the model"),
            Self::GreyRowsCut => {
                f.write_str("grey values were cut at 0.5, because chains start at binary states")
            }
            Self::NotFromModel { origin } => write!(
                f,
                "chains start at {}, not at samples of the model, so the value is not a bound and has no interval",
                if *origin == Origin::Data { "data" } else { "the ends of other chains" }
            ),
            Self::Ladder { n_legs, n_rungs, swap_rate, climbed, mean_length } => write!(
                f,
                "the ladder has {n_legs} leg{} of up to {n_rungs} rungs; {:.1} % of the tours reached the model, \
                 with {mean_length:.0} steps on average; neighbouring rungs accepted at least {:.0} % of swaps",
                if *n_legs == 1 { "" } else { "s" },
                100.0 * climbed,
                100.0 * swap_rate
            ),
            Self::Tempering { low, high } => write!(
                f,
                "parallel tempering, which found the weights of the rungs, gives {low:.2} to {high:.2}, by leg; it \
                 may miss modes far from a leg"
            ),
            Self::TemperingDisagrees { difference } => write!(
                f,
                "modes may be missing: the value by tours is {:.3} nats {} than that by parallel tempering, so \
                 there is neither an error bar nor an interval; allow more steps (`max-steps`)",
                difference.abs(),
                if *difference < 0.0 { "lower" } else { "higher" }
            ),
            Self::TopNotReached => f.write_str(
                "no tour reached the model, so the value is that of parallel tempering, without an error bar; \
                 allow more steps (`max-steps`)",
            ),
            Self::LadderToursCut { n_cut, n_tours } => write!(
                f,
                "no interval: {n_cut} tours ({:.2} %) were cut before they returned; allow more steps (`max-steps`)",
                100.0 * *n_cut as f64 / *n_tours as f64
            ),
            Self::VisitsUnseen { reason } => write!(
                f,
                "no interval: the tail of the numbers of visits to the model is not known well enough ({reason}); \
                 run more tours (`n-tours`), or allow more steps (`max-steps`)"
            ),
            Self::SwapRate { rate, n_temperatures } => {
                write!(
                    f,
                    "at least {:.0} % of swaps between neighbours of {n_temperatures} temperatures were accepted",
                    100.0 * rate
                )
            }
            Self::LaddersOnly => {
                f.write_str("the error bar is computed from the differences between ladders only")
            }
            Self::RareSwaps { beta } => {
                write!(f, "swaps are rare at β = {beta:.3}; take more temperatures")
            }
            Self::LaddersDisagree { r_hat, beta } => write!(
                f,
                "ladders disagree (R-hat {r_hat:.2} at β = {beta:.3}), so the error bar may be too small; \
                 take more steps (`ladder-steps`)"
            ),
            Self::Trajectory { rate, n_models, n_rungs } => write!(
                f,
                "at least {:.0} % of swaps between neighbours of {n_rungs} rungs were accepted; {n_models} of \
                 the rungs are the models of the trajectory",
                100.0 * rate
            ),
            Self::RungsDisagree { r_hat, rung } => write!(
                f,
                "ladders disagree (R-hat {r_hat:.2} on rung {rung}), so the error bar may be too small; take more \
                 steps (`ladder-steps`)"
            ),
            Self::FewLadderSteps => {
                f.write_str("there are too few steps to tell whether ladders agree; take more (`ladder-steps`)")
            }
            Self::NotScouted => f.write_str(
                "no interval: no independent chain has searched for modes that the estimate may miss",
            ),
            Self::FewLongTours => f.write_str(
                "nearly all tours have one step, so the interval starts at the weight of the stopping set, and its \
                 upper end allows for a few long tours that were not seen",
            ),
            Self::SetNotReached { n_out, n_scouts, allowed } => write!(
                f,
                "modes may be missing: {n_out} of {n_scouts} chains from random starts did not reach the stopping \
                 set within {allowed} steps, so there is neither an error bar nor an interval"
            ),
            Self::SecondBaseUnsound => f.write_str(
                "no interval: modes may be missing; a second base model could not confirm the estimate, \
                 because its weights vary too much; take more temperatures (`n-betas`)",
            ),
            Self::SecondLaddersUnsound => f.write_str(
                "no interval: modes may be missing; ladders from a second base model could not confirm the \
                 estimate, because they disagree with each other; take more steps (`ladder-steps`)",
            ),
            Self::BasesDisagree { difference } => write!(
                f,
                "modes may be missing: a second base model gives a value that is {:.3} nats {}, so there is \
                 neither an error bar nor an interval",
                difference.abs(),
                if *difference < 0.0 { "higher" } else { "lower" }
            ),
            Self::BelowKnownStates { log_sum } => write!(
                f,
                "modes are missing: log Z is at least {log_sum:.4}, the sum over states that independent chains \
                 visited, so the estimate is too low and has neither an error bar nor an interval"
            ),
            Self::StepBudget { max_steps } => {
                write!(
                    f,
                    "Z would be unbiased without the budget of {max_steps} steps, which can only make it smaller \
                     on average"
                )
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}
