//! Say whether several estimates of one `log Z` agree.

use super::{Guarantee, LogZ};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Estimates disagree if they differ by more standard errors than this. By chance one pair in two thousand does.
const LIMIT: f64 = 3.5;

/// Relative error that the single precision of the parameters may cause.
const ROUNDING: f64 = 1e-6;

/// The comparison of two estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The names of the two estimates: their methods, unless [`Agreement::of_named`] gave others.
    pub methods: (String, String),
    /// The first estimate less the second, in nats.
    pub difference: f64,
    /// Standard error of the difference.
    pub std_err: f64,
    /// The difference in standard errors; 0 where bounds allow for it, whatever its size.
    pub sigma: f64,
    /// Whether they agree; `None` if nothing can be tested, as with two lower bounds.
    pub agree: Option<bool>,
    /// The names of those that have no guarantee.
    pub doubtful: Vec<String>,
}

/// The comparison of several estimates, in pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Whether no pair disagrees; `None` if no pair can be tested.
    pub agree: Option<bool>,
    /// All pairs, in order.
    pub pairs: Vec<Comparison>,
}

impl Agreement {
    /// Compare all pairs by their combined error bars. A lower bound can only be found too high and an upper bound only
    /// too low: a bound of no use agrees with everything on its side.
    ///
    /// # Guarantee
    /// None beyond that of the error bars: to agree is not to be right, as where no method has found a mode.
    ///
    /// ```
    /// use mclv::{Rbm, partition::{self, Agreement, AisSettings}, progress::Silent};
    /// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.1; 2])?;
    /// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
    /// let ais = partition::ais(&rbm, &AisSettings { n_betas: 100, ..Default::default() }, &Silent)?;
    /// let agreement = Agreement::new(&[exact, ais]);
    /// assert_eq!(agreement.agree, Some(true));
    /// assert!(agreement.to_string().starts_with("exact and ais agree"));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn new(estimates: &[LogZ]) -> Self {
        let named: Vec<(String, &LogZ)> = estimates.iter().map(|z| (z.method.to_string(), z)).collect();
        Self::of_named(&named)
    }

    /// As [`new`](Self::new), for estimates that other names than their methods tell apart.
    pub fn of_named(estimates: &[(String, &LogZ)]) -> Self {
        let pairs: Vec<Comparison> = estimates
            .iter()
            .enumerate()
            .flat_map(|(k, a)| estimates[k + 1..].iter().map(move |b| compare(a, b)))
            .collect();
        let mut tested = pairs.iter().filter_map(|pair| pair.agree).peekable();
        let agree = tested.peek().is_some().then(|| tested.all(|agree| agree));
        Self { agree, pairs }
    }
}

fn compare((name_a, a): &(String, &LogZ), (name_b, b): &(String, &LogZ)) -> Comparison {
    let difference = a.value - b.value;
    let rounding = ROUNDING * a.value.abs().max(b.value.abs()).max(1.0);
    let std_err =
        a.std_err.unwrap_or(f64::INFINITY).hypot(b.std_err.unwrap_or(f64::INFINITY)).hypot(rounding);
    let may_be = |z: &LogZ| (z.guarantee == Guarantee::LowerBound, z.guarantee == Guarantee::UpperBound);
    let ((a_low, a_high), (b_low, b_high)) = (may_be(a), may_be(b));
    // The sides on which a difference shows an error.
    let (above, below) = (!a_high && !b_low, !a_low && !b_high);
    let counts = if difference > 0.0 { above } else { below };
    let sigma = if counts { (difference / std_err).abs() } else { 0.0 };
    let sigma = if sigma.is_nan() { f64::INFINITY } else { sigma };
    Comparison {
        methods: (name_a.clone(), name_b.clone()),
        difference,
        std_err,
        sigma,
        agree: (above || below).then_some(sigma <= LIMIT),
        doubtful: [(name_a, a), (name_b, b)]
            .into_iter()
            .filter(|(_, z)| z.guarantee == Guarantee::None)
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pair: &Comparison| format!("{} and {}", pair.methods.0, pair.methods.1);
        let apart: Vec<String> = self
            .pairs
            .iter()
            .filter(|pair| pair.agree == Some(false))
            .map(|pair| {
                let doubtful = match pair.doubtful.as_slice() {
                    [] => String::new(),
                    [one] => format!(" ({one} has no guarantee)"),
                    _ => " (neither has a guarantee)".into(),
                };
                format!("{} disagree by {:.1} sigma{doubtful}", names(pair), pair.sigma)
            })
            .collect();
        let worst =
            self.pairs.iter().filter(|pair| pair.agree.is_some()).max_by(|a, b| a.sigma.total_cmp(&b.sigma));
        match (apart.as_slice(), worst) {
            (_, None) => f.write_str("nothing to compare"),
            ([], Some(worst)) if self.pairs.len() == 1 => {
                write!(f, "{} agree (within {:.1} sigma)", names(worst), worst.sigma)
            }
            ([], Some(worst)) => {
                write!(f, "all agree (at most {:.1} sigma apart: {})", worst.sigma, names(worst))
            }
            (apart, _) => f.write_str(&apart.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Method;

    fn made_up(method: Method, value: f64, std_err: f64, guarantee: Guarantee) -> LogZ {
        LogZ {
            value,
            std_err: Some(std_err),
            interval: None,
            guarantee,
            method,
            n_states: 1.0,
            seconds: 0.0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_doctored_estimate_is_caught_and_named() {
        let mut estimates = vec![
            made_up(Method::Exact, 100.0, 0.0, Guarantee::Exact),
            made_up(Method::Mclv, 100.02, 0.01, Guarantee::UnbiasedZ),
            made_up(Method::Bar, 99.97, 0.02, Guarantee::None),
        ];
        let good = Agreement::new(&estimates);
        assert_eq!((good.agree, good.pairs.len()), (Some(true), 3));
        assert_eq!(good.to_string(), "all agree (at most 2.2 sigma apart: mclv and bar)");
        estimates[2].value = 99.9;
        let bad = Agreement::new(&estimates);
        assert_eq!(bad.agree, Some(false));
        let text = bad.to_string();
        assert!(text.contains("exact and bar disagree by 5.0 sigma (bar has no guarantee)"), "{text}");
        assert!(text.contains("mclv and bar disagree by 5.4 sigma") && !text.contains("exact and mclv"));
        estimates[2].value = f64::NAN;
        assert_eq!(Agreement::new(&estimates).agree, Some(false), "NaN agrees with nothing");
        let named = [("m = 1".to_owned(), &estimates[0]), ("m = 4".to_owned(), &estimates[1])];
        assert_eq!(Agreement::of_named(&named).to_string(), "m = 1 and m = 4 agree (within 2.0 sigma)");
    }

    #[test]
    fn bounds_are_tested_on_their_side_only() {
        let exact = made_up(Method::Exact, 100.0, 0.0, Guarantee::Exact);
        let agree = |value, guarantee| {
            Agreement::new(&[exact.clone(), made_up(Method::Mclv, value, 0.1, guarantee)]).agree
        };
        assert_eq!(agree(90.0, Guarantee::LowerBound), Some(true));
        assert_eq!(agree(100.2, Guarantee::LowerBound), Some(true));
        assert_eq!(agree(101.0, Guarantee::LowerBound), Some(false));
        assert_eq!(agree(110.0, Guarantee::UpperBound), Some(true));
        assert_eq!(agree(99.0, Guarantee::UpperBound), Some(false));
        assert_eq!(agree(99.0, Guarantee::UnbiasedZ), Some(false));
        let pair = |a, b| {
            let (a, b) = (made_up(Method::Mclv, 90.0, 0.1, a), made_up(Method::Ais, 95.0, 0.1, b));
            [Agreement::new(&[a.clone(), b.clone()]).agree, Agreement::new(&[b, a]).agree]
        };
        use Guarantee::{LowerBound, UpperBound};
        assert_eq!(pair(LowerBound, UpperBound), [Some(true); 2]);
        assert_eq!(pair(UpperBound, LowerBound), [Some(false); 2]);
        assert_eq!(pair(LowerBound, LowerBound), [None; 2], "nothing to be learnt");
        assert_eq!(Agreement::new(&[exact]).to_string(), "nothing to compare");
    }
}
