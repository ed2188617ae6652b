//! Warnings: detect problems of a training and suggest what to do.
//!
//! A warning is given only after enough evidence; the constants below state how much each needs.
//! Its advice names only settings that the user can still change and that would help in this run.

use super::Metrics;
use crate::gradient::{CouplingInfo, TourInfo};
use crate::settings::{CheckedSettings, EstimatorSettings, Spelling, Starts, Unfinished, spell};
use serde::{Deserialize, Serialize};

/// Rows that must be checked before a hidden unit is called dead, saturated or idle.
const MIN_ROWS: usize = 20;
/// Share of the epochs after which units are called dead or saturated, and idle. Before that, they
/// may still change.
const UNITS_AFTER: f64 = 0.1;
const IDLE_AFTER: f64 = 0.5;
/// The number of idle units, and their share of all units, that gives a warning. One idle unit does
/// no harm.
const MIN_IDLE: usize = 2;
const MIN_IDLE_SHARE: f64 = 0.1;
/// Metropolis proposals in an epoch before their acceptance is judged. With this number, a true
/// rate of 0.2 looks like one below 0.1 in fewer than 1 of 300 epochs.
const MIN_PROPOSALS: u64 = 100;
const MIN_ACCEPTANCE: f64 = 0.1;
/// The share of exchanges between neighbours of a ladder below which a warning is given. It needs
/// the same number of proposals.
const MIN_SWAPS: f64 = 0.1;
/// The share of pairs of coupled chains that are cut, and their number, that gives a warning.
const MAX_CUT: f64 = 0.01;
const MIN_CUT: u64 = 10;
/// Tours in an epoch before the share that returns is judged. With this number, a true share of
/// 0.15 looks like one below 0.05 in fewer than 1 of 300 epochs.
const MIN_TOURS: u64 = 100;
const MIN_COMPLETION: f64 = 0.05;
/// The share of updates without any returned tour, and their number, that gives a warning.
const MAX_SKIPPED: f64 = 0.05;
const MIN_SKIPPED: u64 = 5;
/// Updates in an epoch before the smallest effective sample size of start weights is judged.
const MIN_UPDATES: usize = 20;
const MIN_ESS: f64 = 0.1;
/// Hidden bits of all persistent chains, and steps of each chain in an epoch, before the movement
/// of chains is judged.
const MIN_BITS: usize = 1000;
const MIN_STEPS: usize = 20;
const MIN_MOVED: f64 = 0.01;
/// A model overfits if training rows are more likely than validation rows by more than this many
/// standard errors of the difference. A model that does not depend on the choice of training rows
/// exceeds it in 1 of 700 runs with many rows, and in 1 of 130 runs with the fewest that are judged.
const GAP_ERRORS: f64 = 3.0;
const MIN_JUDGED: usize = 10;
/// And an earlier model must be better for validation rows: by more than this many standard errors of
/// its lead, and by this share of the gap. A smaller lead is not worth a word.
const LEAD_ERRORS: f64 = 3.0;
const LEAD_SHARE: f64 = 0.1;

/// A problem of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// A parameter became NaN, infinite or absurdly large.
    Diverged {
        /// The epoch in which it happened, from 1.
        epoch: usize,
        /// The learning rate in that epoch.
        learning_rate: f64,
        /// True if unfinished tours are dropped.
        drops_tours: bool,
    },
    /// Some hidden units are on for every row that was checked.
    Saturated {
        /// Number of these units.
        n_units: usize,
        /// Number of all hidden units.
        n_hidden: usize,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// Some hidden units are off for every row that was checked.
    Dead {
        /// Number of these units.
        n_units: usize,
        /// Number of all hidden units.
        n_hidden: usize,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// Some hidden units do next to nothing: over rows their mean has a standard deviation below
    /// 0.1, and the norm of their weights is below a quarter of the upper quartile over units (see
    /// [`Rbm::unit_use`](crate::Rbm::unit_use)).
    Idle {
        /// Number of these units.
        n_units: usize,
        /// Number of all hidden units.
        n_hidden: usize,
    },
    /// The likelihood of training rows fell while the reconstruction error fell too.
    LikelihoodFalls {
        /// Difference from the best evaluation, in nats.
        by: f64,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// The model fits its training rows, but no longer validation rows.
    Overfitting {
        /// The likelihood of training rows minus that of validation rows, in nats per row.
        gap: f64,
        /// The standard error of the gap over rows.
        std_err: f64,
        /// The epoch of the best model.
        best_epoch: usize,
        /// The likelihood of validation rows under the best model minus that under the last one.
        lead: f64,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// Few tours return to the stopping set.
    FewToursReturn {
        /// Share that returned.
        completion: f64,
        /// Updates in which no tour returned.
        n_skipped_updates: u64,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// Persistent chains hardly move.
    StaleChains {
        /// Share of hidden bits that changed over an epoch.
        moved: f64,
    },
    /// Few Metropolis restarts are accepted.
    LowAcceptance {
        /// Share accepted in the epoch.
        rate: f64,
    },
    /// Some neighbours on ladders of parallel tempering hardly exchange.
    FewExchanges {
        /// Smallest share of accepted exchanges of a pair of neighbours in the epoch.
        rate: f64,
        /// What to do.
        #[serde(default)]
        advice: Vec<Advice>,
    },
    /// Many pairs of coupled chains are cut before they meet.
    PairsCut {
        /// The share of the pairs of the epoch.
        share: f64,
    },
    /// The start weights of tours are too uneven.
    LowEss {
        /// Smallest effective sample size, as a share of the tours.
        ess: f64,
    },
}

/// A change of settings that would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Advice {
    /// Lower the learning rate.
    SmallerRate,
    /// Make more Gibbs steps per update.
    MoreSteps,
    /// Use persistent chains instead of chains that start at the rows.
    PersistentChains,
    /// Use weight decay.
    Decay,
    /// Centre the gradient.
    Centre,
    /// Use fewer hidden units.
    FewerUnits,
    /// Draw more states per row for the stopping set.
    MoreSamples,
    /// Draw the stopping set from more rows.
    MoreRows,
    /// Carry unfinished tours over to the next update.
    CarryOn,
    /// Use ladders with more rungs.
    MoreRungs,
    /// Train for fewer epochs.
    FewerEpochs,
}

impl Advice {
    /// The advice, as it follows the word "Use".
    fn text(self) -> &'static str {
        match self {
            Self::SmallerRate => "a smaller learning rate (`learning-rate`)",
            Self::MoreSteps => "more Gibbs steps (`k`)",
            Self::PersistentChains => "`gradient = pcd`",
            Self::Decay => "`l2 = 0.0001`",
            Self::Centre => "centred gradients (`centred = true`)",
            Self::FewerUnits => "fewer hidden units (`n-hidden`)",
            Self::MoreSamples => "a larger stopping set (`samples-per-row`)",
            Self::MoreRows => "a larger stopping set (`row-fraction`)",
            Self::CarryOn => "`unfinished = carry`",
            Self::MoreRungs => "longer ladders (`n-rungs`)",
            Self::FewerEpochs => "fewer epochs (`epochs`)",
        }
    }

    /// A sentence with all advice; empty if there is none.
    fn sentence(advice: &[Self]) -> String {
        let texts: Vec<&str> = advice.iter().map(|one| one.text()).collect();
        match texts.as_slice() {
            [] => String::new(),
            [one] => format!(" Use {one}."),
            [all @ .., last] => format!(" Use {} or {last}.", all.join(", ")),
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Diverged { epoch, learning_rate, drops_tours } => {
                write!(
                    f,
                    "training diverged in epoch {epoch}: a parameter is NaN, infinite or beyond 10⁶. \
                     The model of the previous epoch is kept. "
                )?;
                if *drops_tours {
                    write!(
                        f,
                        "Unfinished tours are dropped, so training never lowers the probability of states far from \
                         the stopping set: use `unfinished = keep` or carry, or a smaller learning rate than \
                         {learning_rate:.3}."
                    )
                } else {
                    write!(f, "Use a smaller learning rate than {learning_rate:.3}, or `clip = 1`.")
                }
            }
            Self::Saturated { n_units, n_hidden, advice } => {
                write!(
                    f,
                    "{n_units} of {n_hidden} hidden units are on for every row that was checked, so they act only \
                     as a bias.{}",
                    Advice::sentence(advice)
                )
            }
            Self::Dead { n_units, n_hidden, advice } => {
                write!(
                    f,
                    "{n_units} of {n_hidden} hidden units are off for every row that was checked.{}",
                    Advice::sentence(advice)
                )
            }
            Self::Idle { n_units, n_hidden } => {
                write!(
                    f,
                    "{n_units} of {n_hidden} hidden units do next to nothing: they are almost equally active for all \
                     rows, and their weights are small compared with those of the other units. The model would be as \
                     good without them. Use fewer hidden units (`n-hidden`)."
                )
            }
            Self::LikelihoodFalls { by, advice } => {
                write!(
                    f,
                    "the likelihood of the training rows fell by {by:.2} nats while the reconstruction error \
                     improved.{}",
                    Advice::sentence(advice)
                )
            }
            Self::Overfitting { gap, std_err, best_epoch, lead, advice } => {
                let (when, which) = match best_epoch {
                    0 => ("before training".to_owned(), "The initial model"),
                    epoch => (format!("after epoch {epoch}"), "The model of that epoch"),
                };
                write!(
                    f,
                    "the model overfits: training rows are {gap:.2} nats more likely than validation rows (standard \
                     error {std_err:.2}), and validation rows were {lead:.2} nats more likely \
                     {when}. {which} is kept as the best one.{}",
                    Advice::sentence(advice)
                )
            }
            Self::FewToursReturn { completion, n_skipped_updates, advice } => {
                write!(
                    f,
                    "only {:.1} % of tours returned, and in {n_skipped_updates} updates no tour returned.{}",
                    100.0 * completion,
                    Advice::sentence(advice)
                )
            }
            Self::StaleChains { moved } => {
                write!(
                    f,
                    "persistent chains hardly move: only {:.2} % of their hidden bits changed in an epoch. Use more \
                     Gibbs steps (`k`) or a smaller learning rate (`learning-rate`).",
                    100.0 * moved
                )
            }
            Self::LowAcceptance { rate } => {
                write!(
                    f,
                    "only {:.0} % of Metropolis restarts were accepted: the start table is too old. Raise \
                     `min-ess`, or use `starts = fresh`.",
                    100.0 * rate
                )
            }
            Self::FewExchanges { rate, advice } => {
                write!(
                    f,
                    "neighbours on the ladders hardly exchange: only {:.0} % of the exchanges of one pair were \
                     accepted, so states from the lowest rung rarely reach the model.{}",
                    100.0 * rate,
                    Advice::sentence(advice)
                )
            }
            Self::PairsCut { share } => {
                write!(
                    f,
                    "{:.1} % of the pairs of coupled chains were cut before they met, so the gradient is \
                     biased. Raise `max-meeting`, or use `gradient = pcd`.",
                    100.0 * share
                )
            }
            Self::LowEss { ess } => {
                write!(
                    f,
                    "the weights of tours are uneven: the effective sample size fell to {:.0} % of the tours. Raise \
                     `min-ess`, or use `starts = fresh`.",
                    100.0 * ess
                )
            }
        }
    }
}

impl Warning {
    /// The message with settings spelled as asked. `Display` uses [`Spelling::Plain`].
    pub fn in_words(&self, spelling: Spelling) -> String {
        spell(&self.to_string(), spelling)
    }
}

/// The warnings after an epoch of a training on `n_rows` rows.
pub(super) fn judge(
    metrics: &Metrics,
    settings: &CheckedSettings,
    n_rows: usize,
    fallen: Option<f64>,
) -> Vec<Warning> {
    let mut warnings = of_units(metrics, settings, n_rows);
    if let Some(by) = fallen {
        let mut advice = vec![Advice::SmallerRate];
        match &settings.gradient {
            EstimatorSettings::Cd { .. } => advice.extend([Advice::MoreSteps, Advice::PersistentChains]),
            EstimatorSettings::Pcd { .. }
            | EstimatorSettings::Lvs(_)
            | EstimatorSettings::Tempered { .. } => advice.push(Advice::MoreSteps),
            EstimatorSettings::Ucd { .. } | EstimatorSettings::Exact => {}
        }
        warnings.push(Warning::LikelihoodFalls { by, advice });
    }
    warnings.extend(of_overfitting(metrics, settings));
    let n_updates = settings.n_updates(n_rows);
    // The warm-up has an estimator of its own.
    let gradient = match &settings.warm_up {
        Some((epochs, warm_up)) if metrics.epoch <= *epochs => warm_up,
        _ => &settings.gradient,
    };
    if let (Some(tours), EstimatorSettings::Lvs(lvs)) = (&metrics.tours, gradient) {
        let mut advice = Vec::new();
        if lvs.target_completion.is_none() {
            advice.push(Advice::MoreSamples);
            advice.extend((lvs.row_fraction < 1.0).then_some(Advice::MoreRows));
        }
        advice.extend((lvs.unfinished != Unfinished::Carry).then_some(Advice::CarryOn));
        warnings.extend(of_tours(tours, n_updates, lvs.starts, advice));
    }
    if let (Some(moved), EstimatorSettings::Pcd { k, n_chains, .. }) = (metrics.chains_moved, gradient) {
        let n_bits = n_chains.unwrap_or(settings.batch_size) * metrics.n_hidden;
        if moved < MIN_MOVED && n_bits >= MIN_BITS && n_updates * k >= MIN_STEPS {
            warnings.push(Warning::StaleChains { moved });
        }
    }
    if let (Some(tempering), EstimatorSettings::Tempered { n_chains, .. }) = (&metrics.tempering, gradient) {
        // Every pair of neighbours is asked in every second update.
        let n_tried = (n_updates / 2 * n_chains) as u64;
        if n_tried >= MIN_PROPOSALS && tempering.swap_rate_min < MIN_SWAPS {
            let advice = vec![Advice::MoreRungs, Advice::SmallerRate];
            warnings.push(Warning::FewExchanges { rate: tempering.swap_rate_min, advice });
        }
    }
    let is_cut = |coupling: &&CouplingInfo| coupling.n_cut >= MIN_CUT && coupling.cut_share() > MAX_CUT;
    if let Some(coupling) = metrics.coupling.as_ref().filter(is_cut) {
        warnings.push(Warning::PairsCut { share: coupling.cut_share() });
    }
    warnings
}

/// Warnings about hidden units. Idle units are judged in the second half of a training, dead and
/// saturated ones after a tenth of it.
fn of_units(metrics: &Metrics, settings: &CheckedSettings, n_rows: usize) -> Vec<Warning> {
    let n_hidden = metrics.n_hidden;
    let done = metrics.epoch as f64 / settings.epochs as f64;
    let is_known = |n: Option<usize>, after: f64| n.filter(|&n| n > 0 && n_rows >= MIN_ROWS && done >= after);
    let mut warnings = Vec::new();
    if let Some(n_units) = is_known(metrics.n_saturated, UNITS_AFTER) {
        let decay = (settings.l2 == 0.0).then_some(Advice::Decay);
        let advice = [Some(Advice::SmallerRate), decay, Some(Advice::FewerUnits)];
        let advice = advice.into_iter().flatten().collect();
        warnings.push(Warning::Saturated { n_units, n_hidden, advice });
    }
    if let Some(n_units) = is_known(metrics.n_dead, UNITS_AFTER) {
        let centre = (!settings.centred).then_some(Advice::Centre);
        let advice = [Some(Advice::SmallerRate), centre, Some(Advice::FewerUnits)];
        let advice = advice.into_iter().flatten().collect();
        warnings.push(Warning::Dead { n_units, n_hidden, advice });
    }
    let are_many = |&n: &usize| n >= MIN_IDLE && n as f64 >= MIN_IDLE_SHARE * n_hidden as f64;
    if let Some(n_units) = is_known(metrics.n_idle, IDLE_AFTER).filter(are_many) {
        warnings.push(Warning::Idle { n_units, n_hidden });
    }
    warnings
}

/// The warning of the last evaluation that the model overfits. Whoever stops early by patience has
/// taken care of it.
fn of_overfitting(metrics: &Metrics, settings: &CheckedSettings) -> Option<Warning> {
    let validation = metrics.validation_log_likelihood?;
    let gap = metrics.train_log_likelihood? - validation;
    let (train_rows, validation_rows) = (metrics.train_rows?, metrics.validation_rows?);
    if train_rows.n_rows.min(validation_rows.n_rows) < MIN_JUDGED {
        return None;
    }
    let std_err = train_rows.std_err?.hypot(validation_rows.std_err?);
    let best = metrics.best.as_ref()?;
    let lead = best.log_likelihood - validation;
    let is_early = best.epoch < metrics.epoch && settings.patience.is_none();
    let is_clear = gap > GAP_ERRORS * std_err && lead > LEAD_ERRORS * best.lead_std_err?;
    if !is_early || !is_clear || lead < LEAD_SHARE * gap {
        return None;
    }
    let decay = (settings.l2 == 0.0).then_some(Advice::Decay);
    let advice = [Some(Advice::FewerUnits), decay, Some(Advice::FewerEpochs)];
    let (advice, best_epoch) = (advice.into_iter().flatten().collect(), best.epoch);
    Some(Warning::Overfitting { gap, std_err, best_epoch, lead, advice })
}

/// Warnings about the tours of an epoch. `advice` is for tours that do not return.
fn of_tours(tours: &TourInfo, n_updates: usize, starts: Starts, advice: Vec<Advice>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (completion, n_skipped_updates) = (tours.completion(), tours.n_skipped_updates);
    // A tour that is carried over still counts, as a persistent chain; a tour that is cut may not.
    let is_few = tours.n_carried == 0 && tours.n_tried() >= MIN_TOURS && completion < MIN_COMPLETION;
    let is_skipping =
        n_skipped_updates >= MIN_SKIPPED && n_skipped_updates as f64 > MAX_SKIPPED * n_updates as f64;
    if is_few || is_skipping {
        warnings.push(Warning::FewToursReturn { completion, n_skipped_updates, advice });
    }
    if tours.min_ess < MIN_ESS && n_updates >= MIN_UPDATES && starts == Starts::Weighted {
        warnings.push(Warning::LowEss { ess: tours.min_ess });
    }
    let rate = tours.acceptance();
    if tours.n_proposed >= MIN_PROPOSALS && rate < MIN_ACCEPTANCE {
        warnings.push(Warning::LowAcceptance { rate });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::TemperingInfo;
    use crate::model::Rbm;
    use crate::partition;
    use crate::progress::Silent;
    use crate::settings::{EstimatorName, Settings};
    use crate::train::{BestModel, JudgedRows};

    fn settings(gradient: EstimatorName) -> CheckedSettings {
        let settings = Settings { gradient: Some(gradient), epochs: Some(10.into()), ..Settings::default() };
        settings.check(1000).unwrap()
    }

    fn kinds(warnings: &[Warning]) -> Vec<String> {
        let kind = |w: &Warning| serde_json::to_value(w).unwrap()["warning"].as_str().unwrap().to_owned();
        warnings.iter().map(kind).collect()
    }

    /// One rejected proposal is no evidence; a hundred are.
    #[test]
    fn acceptance_and_completion_take_evidence() {
        let judged = |tours: TourInfo| {
            let metrics = Metrics { epoch: 5, n_hidden: 9, tours: Some(tours), ..Default::default() };
            kinds(&judge(&metrics, &settings(EstimatorName::Lvs), 1000, None))
        };
        let fine = TourInfo { min_ess: 1.0, n_completed: 500, ..Default::default() };
        assert!(judged(fine.clone()).is_empty());
        assert!(judged(TourInfo { n_proposed: 1, ..fine.clone() }).is_empty());
        assert!(judged(TourInfo { n_proposed: 99, ..fine.clone() }).is_empty());
        assert_eq!(judged(TourInfo { n_proposed: 100, n_accepted: 9, ..fine.clone() }), ["low-acceptance"]);
        assert!(judged(TourInfo { n_proposed: 100, n_accepted: 10, ..fine.clone() }).is_empty());
        let cut = |n_completed, n_truncated| TourInfo { n_completed, n_truncated, ..fine.clone() };
        assert!(judged(cut(0, 99)).is_empty());
        assert_eq!(judged(cut(4, 96)), ["few-tours-return"]);
        assert!(judged(TourInfo { n_carried: 96, ..cut(4, 0) }).is_empty(), "running tours count");
        assert!(judged(TourInfo { n_skipped_updates: 4, ..fine.clone() }).is_empty());
        assert_eq!(judged(TourInfo { n_skipped_updates: 5, ..fine }), ["few-tours-return"]);
    }

    #[test]
    fn units_are_judged_when_training_has_had_time() {
        let judged = |epoch, n_rows, n_idle| {
            let (n_dead, n_saturated, n_idle) = (Some(1), Some(2), Some(n_idle));
            let metrics = Metrics { epoch, n_hidden: 25, n_dead, n_saturated, n_idle, ..Default::default() };
            kinds(&judge(&metrics, &settings(EstimatorName::Pcd), n_rows, None))
        };
        assert!(judged(0, 1000, 9).is_empty() && judged(10, 19, 9).is_empty());
        assert_eq!(judged(1, 1000, 9), ["saturated", "dead"]);
        assert_eq!(judged(5, 1000, 2), ["saturated", "dead"]);
        assert_eq!(judged(5, 1000, 3), ["saturated", "dead", "idle"]);
    }

    #[test]
    fn chains_that_have_hardly_stepped_are_not_called_stale() {
        let judged = |n_rows| {
            let metrics = Metrics { epoch: 5, n_hidden: 40, chains_moved: Some(0.001), ..Default::default() };
            kinds(&judge(&metrics, &settings(EstimatorName::Pcd), n_rows, None))
        };
        assert!(judged(10).is_empty());
        assert_eq!(judged(100_000), ["stale-chains"]);
    }

    /// Ten pairs of a thousand are as few as chance may cut; eleven of a thousand are not.
    #[test]
    fn pairs_that_were_cut_are_reported_if_there_are_many() {
        let judged = |n_cut, n_pairs| {
            let coupling = Some(CouplingInfo { n_pairs, n_cut, ..Default::default() });
            let metrics = Metrics { epoch: 5, n_hidden: 40, coupling, ..Default::default() };
            kinds(&judge(&metrics, &settings(EstimatorName::Ucd), 1000, None))
        };
        assert_eq!(judged(11, 1000), ["pairs-cut"]);
        assert!(judged(10, 1000).is_empty() && judged(9, 10).is_empty() && judged(0, 0).is_empty());
    }

    /// Advice never names a setting that is already in use, and settings are spelled as asked.
    #[test]
    fn advice_is_about_what_can_be_changed() {
        let text = |gradient, spelling| {
            let warnings = judge(&Metrics::default(), &settings(gradient), 1000, Some(2.0));
            warnings[0].in_words(spelling)
        };
        assert!(text(EstimatorName::Cd, Spelling::Flags).contains("--gradient pcd"));
        for gradient in [EstimatorName::Pcd, EstimatorName::Lvs, EstimatorName::Exact] {
            let text = text(gradient, Spelling::Keywords);
            assert!(!text.contains("gradient=") && text.contains("learning_rate"), "{text}");
            assert_eq!(text.contains("(k)"), gradient != EstimatorName::Exact, "{text}");
        }
    }

    /// Each condition of overfitting is needed.
    #[test]
    fn overfitting_takes_a_gap_and_a_better_earlier_model() {
        let of_rows =
            |n_validation: usize, gap: f64, lead: f64, best_epoch: usize, patience: Option<usize>| {
                let rows = |n_rows, std_err| Some(JudgedRows { n_rows, std_err: Some(std_err) });
                let rbm = Rbm::new(1, 1, &[0.0], &[0.0], &[0.0]).unwrap();
                let best = BestModel {
                    epoch: best_epoch,
                    log_likelihood: -8.0 + lead,
                    log_z: partition::exact(&rbm, &Default::default(), &Silent).unwrap(),
                    lead_std_err: Some(0.1),
                };
                let metrics = Metrics {
                    epoch: 10,
                    n_hidden: 9,
                    train_log_likelihood: Some(-8.0 + gap),
                    validation_log_likelihood: Some(-8.0),
                    train_rows: rows(100, 0.3),
                    validation_rows: rows(n_validation, 0.4),
                    best: Some(best),
                    ..Default::default()
                };
                let settings = CheckedSettings { patience, ..settings(EstimatorName::Exact) };
                kinds(&judge(&metrics, &settings, 100, None))
            };
        let judged = |gap, lead, best_epoch, patience| of_rows(50, gap, lead, best_epoch, patience);
        assert_eq!(judged(1.6, 0.4, 5, None), ["overfitting"]);
        assert_eq!(of_rows(10, 1.6, 0.4, 5, None), ["overfitting"]);
        assert!(of_rows(9, 1.6, 0.4, 5, None).is_empty(), "too few rows to know the error");
        assert!(judged(1.4, 0.4, 5, None).is_empty(), "the gap may be chance");
        assert!(judged(1.6, 0.2, 5, None).is_empty(), "the lead may be chance");
        assert!(judged(5.0, 0.4, 5, None).is_empty(), "the lead is small");
        assert!(judged(1.6, 0.4, 10, None).is_empty(), "the last model is the best");
        assert!(judged(1.6, 0.4, 5, Some(3)).is_empty(), "training was to stop early");
    }

    /// Warnings from files without advice can be read.
    #[test]
    fn warnings_without_advice_are_read() {
        let old = r#"{"warning":"dead","n_units":2,"n_hidden":9}"#;
        let warning: Warning = serde_json::from_str(old).unwrap();
        assert_eq!(warning.to_string(), "2 of 9 hidden units are off for every row that was checked.");
    }

    #[test]
    fn ladders_whose_neighbours_hardly_exchange_are_noticed() {
        let of = |swap_rate_min: f64, n_rows: usize| {
            let tempering = Some(TemperingInfo { swap_rate_min, ..Default::default() });
            let metrics = Metrics { epoch: 5, n_hidden: 40, tempering, ..Default::default() };
            judge(&metrics, &settings(EstimatorName::Tempered), n_rows, None)
        };
        assert!(of(0.15, 1000).is_empty());
        let warnings = of(0.04, 1000);
        let text = warnings[0].in_words(Spelling::Flags);
        assert!(
            text.contains("only 4 %") && text.contains("--n-rungs") && text.contains("--learning-rate"),
            "{text}"
        );
        // Two updates with 32 ladders are too few to judge.
        assert!(of(0.04, 256).is_empty());
    }
}
