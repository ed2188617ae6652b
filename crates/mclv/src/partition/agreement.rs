//! Tests whether several estimates of one `log Z` agree.

use super::{Guarantee, LogZ};
use crate::statistics::normal_quantile;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The probability that correct estimates, in any number, are reported as disagreeing.
const FALSE_ALARM: f64 = 1e-3;

/// Relative error that the single precision of the parameters may cause.
const ROUNDING: f64 = 1e-6;

/// The result of comparing two estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Both have an interval or are exact, and the difference is within their errors.
    Agree,
    /// The difference is larger than the errors allow.
    Disagree,
    /// One is a bound without an interval, and the other respects this bound.
    DoesNotContradict,
    /// One of them has neither an interval nor an error bar.
    NotCompared,
}

/// The comparison of two estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The names of the two estimates: their methods, unless [`Agreement::of_named`] gave others.
    pub methods: (String, String),
    /// The first estimate minus the second, in nats.
    pub difference: f64,
    /// The difference in standard errors, if the two were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// The result of the comparison.
    pub outcome: Outcome,
}

/// The comparison of several estimates, in pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// True if no pair disagrees; `None` if no two estimates with intervals were compared.
    pub agree: Option<bool>,
    /// All pairs, in order.
    pub pairs: Vec<Comparison>,
    /// Estimates without an interval that were compared with no other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Agreement {
    /// Compares all pairs of estimates.
    ///
    /// Two estimates that have intervals (or are exact) agree if their difference is within their
    /// errors. A bound without an interval can only contradict: a lower bound if it is too high, an
    /// upper bound if it is too low. All other pairs are left out, because their errors are
    /// unknown.
    ///
    /// # Guarantee
    /// If all intervals hold, one verdict in a thousand is "disagree", whatever the number of
    /// pairs. Estimates that agree can all be wrong, for example if no method has found a mode.
    ///
    /// ```
    /// use mclv::{Rbm, partition::{self, Agreement, AisSettings}, progress::Silent};
    /// let rbm = Rbm::new(3, 2, &[0.5; 6], &[0.0; 3], &[0.1; 2])?;
    /// let exact = partition::exact(&rbm, &Default::default(), &Silent)?;
    /// let ais = partition::ais(&rbm, &AisSettings { n_betas: 300, ..Default::default() }, &Silent)?;
    /// let agreement = Agreement::new(&[exact, ais]);
    /// assert_eq!(agreement.agree, Some(true));
    /// assert!(agreement.to_string().starts_with("exact and ais agree"));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    pub fn new(estimates: &[LogZ]) -> Self {
        let named: Vec<(String, &LogZ)> = estimates.iter().map(|z| (z.method.to_string(), z)).collect();
        Self::of_named(&named)
    }

    /// Like [`new`](Self::new), with a name for each estimate.
    pub fn of_named(estimates: &[(String, &LogZ)]) -> Self {
        let pairs = || {
            let of = |(k, a)| estimates[k + 1..].iter().map(move |b: &(String, &LogZ)| (a, b));
            estimates.iter().enumerate().flat_map(of)
        };
        let n_compared = pairs().filter(|(a, b)| sigma(a.1, b.1).is_some()).count();
        // Each of several comparisons has its share of the false alarms.
        let limit = normal_quantile(1.0 - FALSE_ALARM / (2.0 * n_compared.max(1) as f64));
        let pairs: Vec<Comparison> = pairs().map(|(a, b)| compare(a, b, limit)).collect();
        let is_compared = |name: &str| {
            let has = |pair: &Comparison| pair.methods.0 == name || pair.methods.1 == name;
            pairs.iter().any(|pair| has(pair) && pair.outcome != Outcome::NotCompared)
        };
        let left_out = estimates
            .iter()
            .filter(|(name, z)| !has_interval(z) && !is_compared(name))
            .map(|(name, _)| name.clone())
            .collect();
        let any = |outcome| pairs.iter().any(|pair| pair.outcome == outcome);
        let agree = if any(Outcome::Disagree) { Some(false) } else { any(Outcome::Agree).then_some(true) };
        Self { agree, pairs, left_out }
    }
}

/// Returns true if the error of the estimate is known on both sides.
fn has_interval(z: &LogZ) -> bool {
    z.is_exact() || z.interval.is_some()
}

/// The standard error of an estimate, for differences upwards or downwards.
fn error(z: &LogZ, above: bool) -> f64 {
    match z.interval {
        _ if z.is_exact() => 0.0,
        Some((_, high)) if above => (high - z.value) / 1.96,
        Some((low, _)) => (z.value - low) / 1.96,
        None => z.std_err.unwrap_or(f64::INFINITY),
    }
}

/// The difference of two estimates in standard errors; 0 if a bound allows the difference; `None`
/// if the two cannot be compared.
fn sigma(a: &LogZ, b: &LogZ) -> Option<f64> {
    let bounds = |z: &LogZ| {
        let is = |side| !has_interval(z) && z.guarantee == side && z.std_err.is_some();
        (is(Guarantee::LowerBound), is(Guarantee::UpperBound))
    };
    let ((a_low, a_high), (b_low, b_high)) = (bounds(a), bounds(b));
    let is_known = |z: &LogZ, is_bound: bool| has_interval(z) || is_bound;
    if !is_known(a, a_low || a_high) || !is_known(b, b_low || b_high) {
        return None;
    }
    // The sides on which a difference shows an error.
    let (above, below) = (!a_high && !b_low, !a_low && !b_high);
    if !above && !below {
        return None;
    }
    let difference = a.value - b.value;
    if (difference > 0.0 && !above) || (difference < 0.0 && !below) {
        return Some(0.0);
    }
    let rounding = ROUNDING * a.value.abs().max(b.value.abs()).max(1.0);
    let a_is_above = difference > 0.0;
    let error = error(a, !a_is_above).hypot(error(b, a_is_above)).hypot(rounding);
    let sigma = (difference / error).abs();
    Some(if sigma.is_nan() { f64::INFINITY } else { sigma })
}

fn compare((name_a, a): &(String, &LogZ), (name_b, b): &(String, &LogZ), limit: f64) -> Comparison {
    let sigma = sigma(a, b);
    let outcome = match sigma {
        None => Outcome::NotCompared,
        Some(sigma) if sigma > limit => Outcome::Disagree,
        Some(_) if has_interval(a) && has_interval(b) => Outcome::Agree,
        Some(_) => Outcome::DoesNotContradict,
    };
    Comparison { methods: (name_a.clone(), name_b.clone()), difference: a.value - b.value, sigma, outcome }
}

/// `a`, `a and b`, or `a, b and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pair: &Comparison| format!("{} and {}", pair.methods.0, pair.methods.1);
        let with = |outcome| self.pairs.iter().filter(move |pair| pair.outcome == outcome);
        let mut parts: Vec<String> = with(Outcome::Disagree)
            .map(|pair| format!("{} disagree by {:.1} sigma", names(pair), pair.sigma.unwrap_or(f64::NAN)))
            .collect();
        let agreeing: Vec<&Comparison> = with(Outcome::Agree).collect();
        if parts.is_empty() {
            match agreeing.as_slice() {
                [] => {}
                [pair] => {
                    parts.push(format!(
                        "{} agree ({:.1} sigma apart)",
                        names(pair),
                        pair.sigma.unwrap_or(0.0)
                    ));
                }
                several => {
                    let mut of: Vec<String> = Vec::new();
                    for pair in several {
                        for name in [&pair.methods.0, &pair.methods.1] {
                            if !of.contains(name) {
                                of.push(name.clone());
                            }
                        }
                    }
                    let worst = several.iter().filter_map(|pair| pair.sigma).fold(0.0, f64::max);
                    parts.push(format!("{} agree (at most {worst:.1} sigma apart)", list(&of)));
                }
            }
        }
        let bounds: Vec<String> = with(Outcome::DoesNotContradict)
            .map(|pair| format!("{} do not contradict each other, but one is only a bound", names(pair)))
            .collect();
        parts.extend(bounds);
        match self.left_out.as_slice() {
            [] => {}
            [one] => parts.push(format!("{one} has no interval and was not compared")),
            several => parts.push(format!("{} have no intervals and were not compared", list(several))),
        }
        f.write_str(&if parts.is_empty() { "nothing to compare".into() } else { parts.join("; ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Method;

    /// An estimate with an interval of ± 1.96 standard errors, unless it is exact or has no error
    /// bar.
    fn made_up(method: Method, value: f64, std_err: Option<f64>, guarantee: Guarantee) -> LogZ {
        let is_exact = guarantee == Guarantee::Exact;
        let interval = std_err.filter(|_| !is_exact).map(|se| (value - 1.96 * se, value + 1.96 * se));
        LogZ { value, std_err, interval, guarantee, method, n_states: 1.0, seconds: 0.0, notes: Vec::new() }
    }

    fn exact() -> LogZ {
        made_up(Method::Exact, 100.0, Some(0.0), Guarantee::Exact)
    }

    #[test]
    fn a_doctored_estimate_is_caught_and_named() {
        let mut estimates = vec![
            exact(),
            made_up(Method::Mclv, 100.02, Some(0.01), Guarantee::UnbiasedZ),
            made_up(Method::Bar, 99.97, Some(0.02), Guarantee::None),
        ];
        let good = Agreement::new(&estimates);
        assert_eq!((good.agree, good.pairs.len()), (Some(true), 3));
        assert_eq!(good.to_string(), "exact, mclv and bar agree (at most 2.2 sigma apart)");
        estimates[2] = made_up(Method::Bar, 99.9, Some(0.02), Guarantee::None);
        let bad = Agreement::new(&estimates);
        assert_eq!(bad.agree, Some(false));
        let text = bad.to_string();
        assert!(text.contains("exact and bar disagree by 5.0 sigma"), "{text}");
        assert!(text.contains("mclv and bar disagree by 5.4 sigma") && !text.contains("exact and mclv"));
        estimates[2].value = f64::NAN;
        assert_eq!(Agreement::new(&estimates).agree, Some(false), "NaN agrees with nothing");
        let named = [("m = 1".to_owned(), &estimates[0]), ("m = 4".to_owned(), &estimates[1])];
        assert_eq!(Agreement::of_named(&named).to_string(), "m = 1 and m = 4 agree (2.0 sigma apart)");
    }

    /// With one comparison 3.3 sigma is too much, with 45 comparisons 4.2.
    #[test]
    fn the_number_of_comparisons_is_taken_into_account() {
        let apart = |sigma: f64| made_up(Method::Ais, 100.0 + 0.1 * sigma, Some(0.1), Guarantee::UnbiasedZ);
        assert_eq!(Agreement::new(&[exact(), apart(3.5)]).agree, Some(false));
        let mut many = vec![exact(); 9];
        many.push(apart(3.5));
        assert_eq!(Agreement::new(&many).agree, Some(true));
        many.push(apart(4.6));
        assert_eq!(Agreement::new(&many).agree, Some(false));
    }

    #[test]
    fn bounds_without_an_interval_can_only_contradict() {
        let compare = |value, guarantee| {
            let bound = LogZ { interval: None, ..made_up(Method::Mclv, value, Some(0.1), guarantee) };
            Agreement::new(&[exact(), bound]).pairs[0].outcome
        };
        use Guarantee::{LowerBound, UnbiasedZ, UpperBound};
        assert_eq!(compare(47.0, LowerBound), Outcome::DoesNotContradict, "53 nats low");
        assert_eq!(compare(100.2, LowerBound), Outcome::DoesNotContradict);
        assert_eq!(compare(101.0, LowerBound), Outcome::Disagree);
        assert_eq!(compare(110.0, UpperBound), Outcome::DoesNotContradict);
        assert_eq!(compare(99.0, UpperBound), Outcome::Disagree);
        assert_eq!(compare(100.0, UnbiasedZ), Outcome::NotCompared, "the interval was declined");
        let pair = |a, b| {
            let of = |value, guarantee| LogZ {
                interval: None,
                ..made_up(Method::Mclv, value, Some(0.1), guarantee)
            };
            Agreement::new(&[of(90.0, a), of(95.0, b)]).pairs[0].outcome
        };
        assert_eq!(pair(LowerBound, UpperBound), Outcome::DoesNotContradict);
        assert_eq!(pair(UpperBound, LowerBound), Outcome::Disagree);
        assert_eq!(pair(LowerBound, LowerBound), Outcome::NotCompared, "nothing to be learnt");
        assert_eq!(Agreement::new(&[exact()]).to_string(), "nothing to compare");
    }

    /// An unknown error bar gives neither agreement nor disagreement.
    #[test]
    fn unknown_errors_are_left_out() {
        let unknown = made_up(Method::Mclv, 100.0004, None, Guarantee::LowerBound);
        let agreement = Agreement::new(&[exact(), unknown.clone()]);
        assert_eq!((agreement.agree, agreement.pairs[0].sigma), (None, None));
        assert!(agreement.to_string().contains("mclv"), "{agreement}");
        let third = made_up(Method::Bar, 100.0, Some(0.1), Guarantee::None);
        let text = Agreement::new(&[exact(), unknown, third]).to_string();
        assert_eq!(text, "exact and bar agree (0.0 sigma apart); mclv has no interval and was not compared");
    }
}
