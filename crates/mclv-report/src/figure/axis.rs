//! Axes: their range, their ticks and their labels.

/// The largest value that is shown.
const LARGEST: f64 = 1e200;
/// The most ticks.
const MOST_TICKS: usize = 200;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic, for positive values only.
    Log,
}

impl Scale {
    /// Returns true if the scale can show a value. Values near the ends of double precision are left
    /// out, because their distances are infinite or zero.
    pub(super) fn shows(self, value: f64) -> bool {
        value.abs() <= LARGEST && (self == Scale::Linear || value >= 1.0 / LARGEST)
    }

    pub(super) fn forward(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }
}

/// A horizontal or vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) range: Option<(f64, f64)>,
    pub(super) names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None, names: Vec::new() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// An axis of names: these are the labels at 0, 1, 2, ….
    pub fn named<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let range = Some((-0.5, names.len().max(1) as f64 - 0.5));
        Self { names, range, ..Self::linear(label) }
    }

    /// Limits the axis to this range. Without it, the axis shows all values.
    #[must_use]
    pub fn from_to(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

/// A tick of an axis. Ticks without text are small.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// An axis with its range.
pub(super) struct Span {
    scale: Scale,
    /// The range: exponents if the scale is logarithmic.
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Span {
    /// Fits an axis to values, with about `n_ticks` ticks. `from_zero` includes zero, for bars.
    pub(super) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        from_zero: bool,
        n_ticks: usize,
    ) -> Self {
        let scale = axis.scale;
        let asked = axis.range.filter(|&(a, b)| scale.shows(a) && scale.shows(b) && a < b);
        let (mut low, mut high) = values
            .filter(|&v| scale.shows(v))
            .map(|v| scale.forward(v))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        match asked {
            Some((a, b)) => (low, high) = (scale.forward(a), scale.forward(b)),
            None => {
                if from_zero && scale == Scale::Linear {
                    (low, high) = (low.min(0.0), high.max(0.0));
                }
                if high - low <= (1e-9 * high.abs().max(low.abs())).max(1.0 / LARGEST) {
                    let half = if scale == Scale::Log { 0.5 } else { (0.05 * high.abs()).max(0.5) };
                    (low, high) = (low - half, high + half);
                }
                // Add a margin, but not below the zero line of bars.
                let air = 0.04 * (high - low);
                let keep = |end: f64| from_zero && end == 0.0;
                (low, high) =
                    (if keep(low) { low } else { low - air }, if keep(high) { high } else { high + air });
            }
        }
        let ticks = if !axis.names.is_empty() {
            let tick = |(k, name): (usize, &String)| Tick { at: k as f64, text: name.clone() };
            axis.names.iter().enumerate().map(tick).collect()
        } else if scale == Scale::Log && high - low >= 1.0 {
            decades(low, high, n_ticks)
        } else {
            let (a, b) = if scale == Scale::Log { (10f64.powf(low), 10f64.powf(high)) } else { (low, high) };
            even(a, b, n_ticks)
        };
        Self { scale, low, high, ticks }
    }

    /// The position of a value: 0 at the lower end, 1 at the upper end.
    pub(super) fn place(&self, value: f64) -> f64 {
        (self.scale.forward(value) - self.low) / (self.high - self.low)
    }

    /// The position of a limit. A limit that a logarithmic axis cannot show is placed at the edge.
    pub(super) fn place_of_limit(&self, value: f64) -> f64 {
        if self.scale == Scale::Log && value <= 0.0 { -0.01 } else { self.place(value).clamp(-0.01, 1.01) }
    }
}

/// Ticks at 1, 2 or 5 times a power of ten.
fn even(low: f64, high: f64, n_ticks: usize) -> Vec<Tick> {
    let rough = (high - low) / n_ticks.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let large = low.abs().max(high.abs()) >= 1e5 || step < 1e-4;
    let text = |value: f64| {
        let text = if large { scientific(value) } else { format!("{value:.digits$}") };
        if text.starts_with('-') { text.replacen('-', "−", 1) } else { text }
    };
    (first..=last).take(MOST_TICKS).map(|k| k as f64 * step).map(|at| Tick { at, text: text(at) }).collect()
}

/// Ticks at powers of ten, with text at about `n_ticks` of them, and small ticks between.
fn decades(low: f64, high: f64, n_ticks: usize) -> Vec<Tick> {
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let every = ((f64::from(last - first) / n_ticks.max(1) as f64).ceil() as i32).max(1);
    let mut ticks = Vec::new();
    for exponent in first..=last {
        let text = if exponent.rem_euclid(every) == 0 { power_of_ten(exponent) } else { String::new() };
        ticks.push(Tick { at: 10f64.powi(exponent), text });
        if last - first <= 6 {
            let between = |m: i32| Tick { at: f64::from(m) * 10f64.powi(exponent), text: String::new() };
            ticks.extend((2..10).map(between));
        }
    }
    ticks.retain(|tick| (low - 1e-9..=high + 1e-9).contains(&tick.at.log10()));
    ticks
}

/// `0.01`, `1`, `100`, `10⁶`.
fn power_of_ten(exponent: i32) -> String {
    match exponent {
        -2..=3 => format!("{}", 10f64.powi(exponent)),
        _ => format!("10{}", superscript(exponent)),
    }
}

fn superscript(n: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        c => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][c as usize - '0' as usize],
    };
    n.to_string().chars().map(digit).collect()
}

/// `2.5·10⁶`.
fn scientific(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = format!("{value:.3e}");
    let (mantissa, exponent) = text.split_once('e').expect("the format has an e");
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let power = format!("10{}", superscript(exponent.parse().expect("the format has a number")));
    match mantissa {
        "1" => power,
        "-1" => format!("-{power}"),
        _ => format!("{mantissa}·{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| t.text.as_str()).filter(|t| !t.is_empty()).collect()
    }

    #[test]
    fn even_ticks_are_round_numbers() {
        assert_eq!(texts(&even(0.0, 1.0, 5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&even(-31.0, -22.0, 5)), ["−30", "−28", "−26", "−24", "−22"]);
        assert_eq!(texts(&even(0.0, 2.5e6, 5)), ["0", "5·10⁵", "10⁶", "1.5·10⁶", "2·10⁶", "2.5·10⁶"]);
        assert_eq!(texts(&even(-3e5, 0.0, 3)), ["−3·10⁵", "−2·10⁵", "−10⁵", "0"]);
    }

    #[test]
    fn decades_are_named_and_divided() {
        let ticks = decades(-3.2, 1.1, 6);
        assert_eq!(texts(&ticks), ["10⁻³", "0.01", "0.1", "1", "10"]);
        assert!(ticks.iter().any(|t| t.text.is_empty() && (t.at - 0.02).abs() < 1e-12));
        assert_eq!(texts(&decades(0.0, 24.0, 5)), ["1", "10⁵", "10¹⁰", "10¹⁵", "10²⁰"]);
    }

    #[test]
    fn places_are_shares_of_the_way() {
        let log = Span::new(&Axis::log("").from_to(1.0, 100.0), [].into_iter(), false, 5);
        assert!((log.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(log.place_of_limit(0.0), -0.01);
        let bars = Span::new(&Axis::linear(""), [3.0, 7.0].into_iter(), true, 5);
        assert!(bars.place(0.0).abs() < 1e-12 && bars.place(7.0) < 1.0);
        let flat = Span::new(&Axis::linear(""), [5.0].into_iter(), false, 5);
        assert!((flat.place(5.0) - 0.5).abs() < 1e-12);
        for huge in [[-1e308, 1e308], [f64::MIN, 1.0], [0.0, 5e-324], [1e-310, 2e-310], [1e200, -1e200]] {
            for axis in [Axis::linear(""), Axis::log("")] {
                let span = Span::new(&axis, huge.into_iter(), false, 5);
                let n = span.ticks.len();
                assert!((1..=MOST_TICKS).contains(&n) && span.place(1.0).is_finite(), "{huge:?}: {n}");
            }
        }
        let nothing = Span::new(&Axis::log(""), [f64::NAN, -1.0].into_iter(), false, 5);
        assert!(nothing.place(1.0).is_finite() && !nothing.ticks.is_empty());
    }
}
