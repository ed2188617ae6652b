//! A value of `log Z` with its uncertainty, its guarantee and its cost.

use super::{Method, Note};
use serde::{Deserialize, Serialize};

/// The limit of every interval. Commands and pages print this sentence once where they show one.
pub const UNSEEN_MODES: &str =
    "An interval does not account for a mode of the model that no chain has visited.";

/// What a method guarantees about its estimates of `Z` and of `log Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Guarantee {
    /// The value is exact up to rounding.
    Exact,
    /// `E[Ẑ] = Z`. The logarithm is too small on average, and more so if its error bar is larger.
    UnbiasedZ,
    /// `E[Ẑ] ≤ Z`, and so `E[log Ẑ] ≤ log Z`. On average, a likelihood computed with it looks
    /// better than it is.
    LowerBound,
    /// `E[log Ẑ] ≥ log Z`. On average, a likelihood computed with it looks worse than it is.
    UpperBound,
    /// The estimate is consistent at best, and may be too small or too large.
    None,
}

impl Guarantee {
    /// The guarantee for `Z`, in words.
    pub fn of_z(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ => "unbiased",
            Self::LowerBound => "lower bound on average",
            Self::UpperBound => "upper bound on average",
            Self::None => "none",
        }
    }

    /// The guarantee for `log Z`, in words.
    pub fn of_log_z(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ | Self::LowerBound => "low on average",
            Self::UpperBound => "high on average",
            Self::None => "none",
        }
    }

    /// The guarantee for a likelihood computed with it, in words. It errs to the other side.
    pub fn of_likelihood(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnbiasedZ | Self::LowerBound => "optimistic on average",
            Self::UpperBound => "pessimistic on average",
            Self::None => "none",
        }
    }
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact | Self::None => f.write_str(self.of_z()),
            _ => write!(f, "Z {}, log Z {}", self.of_z(), self.of_log_z()),
        }
    }
}

/// `log Z` in nats, with its uncertainty and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// `log Z`.
    pub value: f64,
    /// Standard error of `value`; 0 if exact, `None` if it is unknown.
    #[serde(default)]
    pub std_err: Option<f64>,
    /// A 95 % confidence interval for `log Z`; `None` if the method declines to give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// What the method guarantees.
    pub guarantee: Guarantee,
    /// The method.
    pub method: Method,
    /// States summed and Gibbs steps made. A [`Plan`](super::Plan) counts all its work: pilots,
    /// exact samples, and abandoned tours.
    pub n_states: f64,
    /// Wall time.
    pub seconds: f64,
    /// Things to know before relying on the value, for example why there is no interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl LogZ {
    /// Compares the estimate with the logarithm of a sum over some states, which is never above
    /// `log Z`. If the estimate is below it by more than its error, its error bar and its interval
    /// are removed.
    pub(super) fn compare_with_known(&mut self, log_sum: f64) {
        let rounding = 1e-6 * self.value.abs().max(1.0);
        let reach = self.interval.map_or(self.value + 3.0 * self.std_err.unwrap_or(0.0), |(_, high)| high);
        if reach + rounding < log_sum {
            (self.std_err, self.interval) = (None, None);
            self.notes.push(Note::BelowKnownStates { log_sum });
        }
    }

    /// Compares the estimate with one from a second base model. If they are more than `n_errors`
    /// standard errors apart, the error bar and the interval are removed.
    pub(super) fn compare_with_second_base(&mut self, value: f64, std_err: f64, n_errors: f64) {
        let difference = self.value - value;
        let error = self.std_err.unwrap_or(f64::INFINITY).hypot(std_err);
        let rounding = 1e-6 * self.value.abs().max(1.0);
        if difference.abs() > n_errors * error + rounding {
            (self.std_err, self.interval) = (None, None);
            self.notes.push(Note::BasesDisagree { difference });
        }
    }

    /// Returns true if the value is exact up to rounding.
    pub fn is_exact(&self) -> bool {
        self.guarantee == Guarantee::Exact
    }

    /// The 95 % interval or, without one, `value` ± 1.96 standard errors. `None` if both are
    /// unknown.
    pub fn limits(&self) -> Option<(f64, f64)> {
        let around = |se: f64| (self.value - 1.96 * se, self.value + 1.96 * se);
        self.interval.or(self.std_err.map(around))
    }

    /// The limits of a log-likelihood computed with this value: the limits of `log Z`, mirrored.
    /// `None` if the value is exact, or if its error is unknown.
    pub fn limits_of_likelihood(&self, log_likelihood: f64) -> Option<(f64, f64)> {
        let (low, high) = self.limits().filter(|_| !self.is_exact())?;
        Some((log_likelihood + self.value - high, log_likelihood + self.value - low))
    }

    /// Formats `number` (this value, or a log-likelihood computed with it) with the standard error
    /// of this value: `-1.50` if exact, `-1.50 ± 0.02` if the standard error is known, and `≈
    /// -1.50` if it is unknown.
    pub fn with_error(&self, number: f64, digits: usize) -> String {
        match self.std_err {
            _ if self.is_exact() => format!("{number:.digits$}"),
            Some(se) => format!("{number:.digits$} ± {se:.digits$}"),
            None => format!("≈ {number:.digits$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{Declined, Origin, SetOrigin};

    fn log_z(notes: Vec<Note>) -> LogZ {
        LogZ {
            value: 1.5,
            std_err: Some(0.25),
            interval: None,
            guarantee: Guarantee::UnbiasedZ,
            method: Method::ReverseAis,
            n_states: 100.0,
            seconds: 0.5,
            notes,
        }
    }

    /// Every kind of note is read back unchanged, and is an object with its kind.
    #[test]
    fn notes_come_back_from_files_as_they_were() {
        let origin = SetOrigin { samples_per_row: 4, pilot_steps: 1 << 40 };
        let notes = vec![
            Note::GivenSet { n_states: 3 },
            Note::DrawnSet { n_states: 7, n_rows: 5, origin, n_joined: 0 },
            Note::VisitedSet { n_states: 2 },
            Note::ToursDoNotReturn { completion: 0.125, n_steps: 10 },
            Note::ToursGivenUp { completion: 0.125, n_steps: 10 },
            Note::ToursDoNotClimb { climbed: 0.125, n_steps: 10 },
            Note::ToursCut { n_cut: 1, n_tours: 8 },
            Note::MeanField,
            Note::TailUnseen { reason: Declined::TooFew { n: 9 } },
            Note::TailUnseen { reason: Declined::NoVariation },
            Note::TailUnseen { reason: Declined::FewCarriers { n: 1.5 } },
            Note::TargetMissed { ratio: 2.0 },
            Note::EffectiveSampleSize { effective: 3.5, n_chains: 128, spread: 0.75 },
            Note::FewChains { enough: 128 },
            Note::UnequalWeights,
            Note::ExactSamples,
            Note::GreyRowsCut,
            Note::NotFromModel { origin: Origin::Data },
            Note::Ladder { n_legs: 9, n_rungs: 20, swap_rate: 0.5, climbed: 0.25, mean_length: 40.5 },
            Note::Tempering { low: 2.5, high: 2.75 },
            Note::TemperingDisagrees { difference: 0.5 },
            Note::TopNotReached,
            Note::LadderToursCut { n_cut: 1, n_tours: 8 },
            Note::VisitsUnseen { reason: Declined::NoVariation },
            Note::SwapRate { rate: 0.5, n_temperatures: 9 },
            Note::LaddersOnly,
            Note::RareSwaps { beta: 0.25 },
            Note::LaddersDisagree { r_hat: 1.25, beta: 0.5 },
            Note::FewLadders { n_ladders: 4, enough: 5 },
            Note::FewLadderSteps,
            Note::NotScouted,
            Note::FewLongTours,
            Note::SetNotReached { n_out: 3, n_scouts: 128, allowed: 1000 },
            Note::SecondBaseUnsound,
            Note::SecondLaddersUnsound,
            Note::BasesDisagree { difference: -0.5 },
            Note::BelowKnownStates { log_sum: 2.5 },
            Note::StepBudget { max_steps: 1 << 40 },
        ];
        for note in &notes {
            let json = serde_json::to_value(note).unwrap();
            assert!(json["note"].is_string(), "{json}");
            assert!(!note.to_string().contains("--"), "no flags of the command line: {note}");
        }
        let all = log_z(notes);
        let text = serde_json::to_string(&all).unwrap();
        assert!(text.contains(r#""method":"reverse-ais""#), "{text}");
        assert_eq!(serde_json::from_str::<LogZ>(&text).unwrap(), all);
        let drawn = serde_json::to_value(&all.notes[1]).unwrap();
        let expected = serde_json::json!({
            "note": "drawn-set", "n_states": 7, "n_rows": 5, "samples_per_row": 4, "pilot_steps": 1u64 << 40,
            "n_joined": 0,
        });
        assert_eq!(drawn, expected);
    }

    /// Files of earlier versions hold notes as plain strings, which are kept word for word.
    #[test]
    fn notes_in_words_are_read_and_written_as_they_are() {
        let old = r#"{"value":1.5,"std_err":0.25,"guarantee":"unbiased-z","method":"reverse-ais",
            "n_states":100.0,"seconds":0.5,"notes":["no interval: take 128 chains or more"]}"#;
        let words = "no interval: take 128 chains or more";
        let read: LogZ = serde_json::from_str(old).unwrap();
        assert_eq!(read, log_z(vec![Note::Text(words.into())]));
        assert_eq!(read.notes[0].to_string(), words);
        assert_eq!(serde_json::to_value(&read.notes[0]).unwrap(), words);
    }

    #[test]
    fn limits_are_the_interval_or_follow_from_the_error_bar() {
        let without = log_z(Vec::new());
        assert_eq!(without.limits(), Some((1.5 - 0.49, 1.5 + 0.49)));
        assert_eq!(without.with_error(-2.0, 2), "-2.00 ± 0.25");
        assert_eq!(LogZ { interval: Some((1.0, 3.0)), ..without.clone() }.limits(), Some((1.0, 3.0)));
        let unknown = LogZ { std_err: None, ..without };
        assert_eq!((unknown.limits(), unknown.limits_of_likelihood(-2.0)), (None, None));
        assert_eq!(unknown.with_error(-2.0, 2), "≈ -2.00");
    }

    #[test]
    fn limits_of_a_likelihood_are_those_of_log_z_turned_round() {
        let exact =
            LogZ { value: 10.0, std_err: Some(0.0), guarantee: Guarantee::Exact, ..log_z(Vec::new()) };
        assert_eq!((exact.limits(), exact.limits_of_likelihood(-3.0)), (Some((10.0, 10.0)), None));
        assert_eq!(exact.with_error(-3.0, 1), "-3.0");
        let guarantee = Guarantee::UnbiasedZ;
        let estimate = LogZ { interval: Some((9.0, 14.0)), guarantee, ..exact };
        assert_eq!(estimate.limits_of_likelihood(-3.0), Some((-7.0, -2.0)));
    }
}
