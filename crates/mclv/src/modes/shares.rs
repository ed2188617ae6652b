//! Compare the shares of modes in a model with those in the data.

use super::map::{ModeKind, ModeMap};
use crate::partition::{Method, Note};
use crate::statistics::normal_quantile;
use crate::words::words;
use serde::Serialize;
use std::f64::consts::FRAC_2_PI;

/// A mode is lost if the model's share is below this multiple of the data's share.
pub const LOST: f64 = 0.1;
/// A mode is over-weighted if the model's share is above this multiple of the data's share.
pub const OVER_WEIGHTED: f64 = 3.0;
/// The probability of at least one false statement about lost or over-weighted modes, over all
/// modes together, in a model whose shares are at these limits. It is smaller in models that are
/// away from them.
pub const FALSE_ALARMS: f64 = 0.01;

/// The 0.975 quantile of the normal law.
const Z: f64 = 1.959_963_984_540_054;
/// The number of unseen tours, as long as the longest, that intervals allow for.
const N_UNSEEN: f64 = 5.0;
/// The shortest length that an unseen tour is assumed to have.
const MIN_SCALE: f64 = 10.0;

/// How the model's share of a mode compares with the data's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The model's share is below a tenth of the data's share.
    Lost,
    /// The model's share is smaller, but not lost.
    Light,
    /// The shares do not differ by more than their errors.
    Even,
    /// The model's share is larger, but not over-weighted.
    Heavy,
    /// The model's share is above three times the data's share.
    OverWeighted,
    /// The model's share has no interval, so there is no judgement.
    Unknown,
}

words!(Standing as "standing" {
    Lost = "lost",
    Light = "light",
    Even = "even",
    Heavy = "heavy",
    OverWeighted = "over-weighted",
    Unknown = "unknown",
});

/// The guarantee of the model's shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareGuarantee {
    /// All states were enumerated.
    Exact,
    /// Independent exact samples were counted. The shares are right on average.
    Unbiased,
    /// Ratios of sums along tours. The shares are right in the limit of many tours. Their bias is of
    /// order one over the number of tours.
    Consistent,
    /// A step budget could have cut tours. Without it, the shares would be consistent.
    UnlessCut,
    /// No guarantee.
    None,
}

words!(ShareGuarantee as "guarantee" {
    Exact = "exact",
    Unbiased = "unbiased",
    Consistent = "consistent",
    UnlessCut = "unless-cut",
    None = "none",
});

impl ShareGuarantee {
    /// The guarantee in words for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Unbiased => "unbiased",
            Self::Consistent => "consistent",
            Self::UnlessCut => "consistent unless tours are cut",
            Self::None => "none",
        }
    }
}

/// The shares of one mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeShare {
    /// The name of the mode.
    pub name: String,
    /// The number of rows in the mode.
    pub n_rows: usize,
    /// The share of the rows.
    pub data: f64,
    /// The share of the model's mass.
    pub model: f64,
    /// The standard error of the model's share; `None` if it is unknown.
    pub std_err: Option<f64>,
    /// A 95 % interval for the model's share; `None` if none can be given.
    pub interval: Option<(f64, f64)>,
    /// The model's share divided by the data's share; `None` if no row is in the mode.
    pub ratio: Option<f64>,
    /// How the shares compare.
    pub standing: Standing,
}

/// The shares of all modes of a model, beside those of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeShares {
    /// What the modes are.
    pub by: ModeKind,
    /// The modes, in the order of the map.
    pub modes: Vec<ModeShare>,
    /// States that are farther from their mode than 99 % of the rows: their share in data and model.
    pub far: ModeShare,
    /// Half the sum of the differences between the shares: 0 if they are equal, 1 if they have
    /// nothing in common.
    pub total_variation: f64,
    /// The total variation that errors alone would give, on average, if the shares were equal;
    /// `None` if the errors are unknown.
    pub total_variation_by_chance: Option<f64>,
    /// The method.
    pub method: Method,
    /// The guarantee of the model's shares.
    pub guarantee: ShareGuarantee,
    /// For classes: the share of the rows that the map assigns to their own class.
    pub agreement: Option<f64>,
    /// The number of rows.
    pub n_rows: usize,
    /// States summed, samples drawn and Gibbs steps made, with pilots.
    pub n_states: f64,
    /// Wall time.
    pub seconds: f64,
    /// Things to know before relying on the shares, for example why there are no intervals.
    pub notes: Vec<Note>,
}

/// What was counted in the model.
pub(super) struct Counted {
    /// The share of each mode, then that of far states.
    pub(super) shares: Vec<f64>,
    /// The accuracy of each share; `None` if it is unknown.
    pub(super) accuracy: Option<Vec<Accuracy>>,
    /// True if intervals can be given.
    pub(super) has_intervals: bool,
    pub(super) method: Method,
    pub(super) guarantee: ShareGuarantee,
    pub(super) n_states: f64,
    pub(super) notes: Vec<Note>,
}

/// How accurate a share is: like the share of `n` independent draws, with `unseen` more mass that
/// may be anywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Accuracy {
    pub(super) n: f64,
    pub(super) unseen: f64,
}

impl Accuracy {
    pub(super) const EXACT: Self = Self { n: f64::INFINITY, unseen: 0.0 };

    /// The accuracy of shares from `n` independent draws.
    pub(super) fn of_draws(n: usize) -> Self {
        Self { n: n as f64, unseen: 0.0 }
    }

    /// Returns the standard error of a share. If nothing or all was counted, it is that of half a
    /// draw.
    fn std_err(self, share: f64) -> f64 {
        let is_end = share == 0.0 || share == 1.0;
        let share = if is_end { (share * self.n + 0.5) / (self.n + 1.0) } else { share };
        if self.n.is_infinite() {
            return 0.0;
        }
        (share * (1.0 - share) / self.n).sqrt()
    }

    /// Returns limits of the share, by Wilson's formula at the normal quantile `z`, with room for
    /// unseen mass.
    fn limits(self, share: f64, z: f64) -> (f64, f64) {
        let (n, square) = (self.n, z * z);
        let (low, high) = if n.is_infinite() {
            (share, share)
        } else {
            let middle = (share + square / (2.0 * n)) / (1.0 + square / n);
            let half = z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
            ((middle - half).max(0.0), (middle + half).min(1.0))
        };
        let all = 1.0 + self.unseen;
        ((low / all).min(share), ((high + self.unseen) / all).max(share))
    }
}

/// Returns the ratio of each sum to the sum of all modes, with its accuracy. `sums` holds
/// `n_modes + 1` numbers for each tour: visits of each mode, and visits of far states.
///
/// Standard errors come from the differences between tours, which are independent (delta method).
/// The number of draws that would be as accurate follows from them. Room is left for five unseen
/// tours as long as the longest one, as in `partition/interval.rs`.
pub(super) fn of_tours(sums: &[f64], n_modes: usize) -> Option<(Vec<f64>, Vec<Accuracy>)> {
    let n_statistics = n_modes + 1;
    let n_tours = (sums.len() / n_statistics) as f64;
    let (mut totals, mut visits, mut squares, mut longest) = (vec![0.0; n_statistics], 0.0, 0.0, 0.0f64);
    for tour in sums.chunks_exact(n_statistics) {
        let length: f64 = tour[..n_modes].iter().sum();
        visits += length;
        squares += length * length;
        longest = longest.max(length);
        totals.iter_mut().zip(tour).for_each(|(total, x)| *total += x);
    }
    if visits <= 0.0 || n_tours < 2.0 {
        return None;
    }
    let shares: Vec<f64> = totals.iter().map(|total| total / visits).collect();
    let mut residuals = vec![0.0; n_statistics];
    for tour in sums.chunks_exact(n_statistics) {
        let length: f64 = tour[..n_modes].iter().sum();
        for (sum, (x, share)) in residuals.iter_mut().zip(tour.iter().zip(&shares)) {
            *sum += (x - share * length).powi(2);
        }
    }
    let unseen = N_UNSEEN * longest.max(MIN_SCALE) / visits;
    // As many draws as all tours are worth, for shares that no tour says anything about.
    let worth = visits * visits / squares;
    let accuracy = shares.iter().zip(residuals).map(|(share, residual)| {
        let variance = residual * n_tours / (n_tours - 1.0) / (visits * visits);
        let n = share * (1.0 - share) / variance;
        Accuracy { n: if n.is_finite() && n > 0.0 { n } else { worth }, unseen }
    });
    let accuracy = accuracy.collect();
    Some((shares, accuracy))
}

impl ModeShares {
    /// Compares what was counted in a model with the data.
    pub(super) fn new(map: &ModeMap, counted: Counted, seconds: f64) -> Self {
        let n_rows = map.n_rows();
        let n_modes = map.names().len();
        // Two statements about each mode.
        let z = normal_quantile(1.0 - FALSE_ALARMS / (2 * n_modes) as f64);
        let accuracy_of_data = |n: usize| match map.is_whole() {
            true => Accuracy::EXACT,
            false => Accuracy::of_draws(n),
        };
        let mode = |k: usize, name: &str, (n, of): (usize, usize)| {
            let (data, model) = (n as f64 / of as f64, counted.shares[k]);
            let accuracy = counted.accuracy.as_ref().map(|all| all[k]);
            let trusted = accuracy.filter(|_| counted.has_intervals);
            ModeShare {
                name: name.into(),
                n_rows: n,
                data,
                model,
                std_err: accuracy.map(|accuracy| accuracy.std_err(model)),
                interval: trusted.map(|accuracy| accuracy.limits(model, Z)),
                ratio: (data > 0.0).then(|| model / data),
                standing: trusted.map_or(Standing::Unknown, |accuracy| {
                    standing((data, accuracy_of_data(of)), (model, accuracy), z)
                }),
            }
        };
        let named = map.names().iter().zip(map.counts()).enumerate();
        let modes: Vec<ModeShare> = named.map(|(k, (name, &n))| mode(k, name, (n, n_rows))).collect();
        let total_variation = 0.5 * modes.iter().map(|mode| (mode.data - mode.model).abs()).sum::<f64>();
        let by_chance = |mode: &ModeShare| {
            let of_data = accuracy_of_data(n_rows).std_err(mode.data);
            Some(FRAC_2_PI.sqrt() * of_data.hypot(mode.std_err?))
        };
        let chances: Option<f64> = modes.iter().map(by_chance).sum();
        Self {
            by: map.kind(),
            far: mode(n_modes, "far", map.n_far()),
            modes,
            total_variation,
            total_variation_by_chance: chances.map(|sum| 0.5 * sum),
            method: counted.method,
            guarantee: counted.guarantee,
            agreement: map.agreement(),
            n_rows,
            n_states: counted.n_states,
            seconds,
            notes: counted.notes,
        }
    }

    /// Returns the modes with a standing.
    pub fn with_standing(&self, standing: Standing) -> impl Iterator<Item = &ModeShare> {
        self.modes.iter().filter(move |mode| mode.standing == standing)
    }

    /// Returns true if the shares can be judged: they are exact or have intervals.
    pub fn is_judged(&self) -> bool {
        self.modes.iter().all(|mode| mode.standing != Standing::Unknown)
    }

    /// Returns true if a mode is lost or over-weighted.
    pub fn is_bad(&self) -> bool {
        let is_bad = |mode: &ModeShare| matches!(mode.standing, Standing::Lost | Standing::OverWeighted);
        self.modes.iter().any(is_bad)
    }

    /// Returns the verdict in a few sentences, the worst first.
    pub fn verdict(&self) -> String {
        let what = self.by.word();
        let named = |mode: &ModeShare| match self.by {
            ModeKind::Cluster => mode.name.clone(),
            _ => format!("{what} {}", mode.name),
        };
        let list = |standing: Standing, of: &dyn Fn(&ModeShare) -> f64| {
            let mut modes: Vec<&ModeShare> = self.with_standing(standing).collect();
            modes.sort_by(|a, b| of(b).total_cmp(&of(a)));
            modes
        };
        let mut parts = Vec::new();
        let over = list(Standing::OverWeighted, &|mode| mode.model);
        if let Some(worst) = over.first() {
            parts.push(format!(
                "The model puts {} of its mass near {} of the rows ({}).{}",
                percent(worst.model),
                percent(worst.data),
                named(worst),
                others(over.len() - 1, "over-weighted, too")
            ));
        }
        let lost = list(Standing::Lost, &|mode| mode.data);
        if let Some(worst) = lost.first() {
            parts.push(format!(
                "The model has lost {}: it holds {} of the rows and {} of the model's mass.{}",
                named(worst),
                percent(worst.data),
                percent(worst.model),
                others(lost.len() - 1, "lost, too")
            ));
        }
        if !self.is_judged() {
            parts.push("The shares have no intervals, so they are not judged.".into());
        } else if parts.is_empty() {
            let is_unequal = |mode: &&ModeShare| mode.standing != Standing::Even;
            let n_unequal = self.modes.iter().filter(is_unequal).count();
            let all = self.modes.len();
            parts.push(match n_unequal {
                0 => "No mode is lost and none is over-weighted. All shares agree within their errors.".into(),
                n => format!(
                    "No mode is lost and none is over-weighted. {n} of {all} shares differ from the data by more than \
                     their errors."
                ),
            });
        }
        if self.far.standing == Standing::OverWeighted {
            parts.push(format!(
                "{} of the model's mass is farther from its mode than 99 % of the rows.",
                percent(self.far.model)
            ));
        }
        parts.join(" ")
    }
}

/// ` 2 more are lost, too.`, or nothing.
fn others(n: usize, what: &str) -> String {
    match n {
        0 => String::new(),
        1 => format!(" 1 more is {what}."),
        n => format!(" {n} more are {what}."),
    }
}

/// `1.5 %`, with two digits below a percent.
fn percent(share: f64) -> String {
    match 100.0 * share {
        x if x > 0.0 && x < 0.01 => "less than 0.01 %".into(),
        x if x > 0.0 && x < 1.0 => format!("{x:.2} %"),
        x => format!("{x:.1} %"),
    }
}

/// Compares two shares. The limits of a difference `x − c·y` follow from those of `x` and `y` (the
/// method of variance estimates recovery, MOVER).
pub(super) fn standing(
    (data, of_data): (f64, Accuracy),
    (model, of_model): (f64, Accuracy),
    z: f64,
) -> Standing {
    let (data_low, data_high) = of_data.limits(data, z);
    let (model_low, model_high) = of_model.limits(model, z);
    let is_above =
        |factor: f64| model - factor * data > (model - model_low).hypot(factor * (data_high - data));
    let is_below =
        |factor: f64| factor * data - model > (model_high - model).hypot(factor * (data - data_low));
    if is_below(LOST) {
        Standing::Lost
    } else if is_above(OVER_WEIGHTED) {
        Standing::OverWeighted
    } else if is_below(1.0) {
        Standing::Light
    } else if is_above(1.0) {
        Standing::Heavy
    } else {
        Standing::Even
    }
}
