//! Ask for `log Z` by any method, or by the best that can be afforded, with one set of settings.

use super::choice::{Chosen, SetOrigin, choose};
use super::mclv::{MIN_COMPLETION, probe};
use super::{
    AisSettings, BarSettings, Effort, ExactSettings, Guarantee, LogZ, MclvSettings, Origin,
    ReverseAisSettings, ais, bar, base_bias, exact, mclv, nominal_seconds, reverse_ais,
};
use crate::bits::BitRows;
use crate::data::{self, Binarize, Rows};
use crate::gradient::VisibleChain;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::tour::{PilotSettings, StoppingSet, TourEngine};
use crate::{Error, Result, sample};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// Seconds per Gibbs step and visible unit on a nominal machine: for budgets that must not depend on the clock.
pub(crate) const NOMINAL_STEP: f64 = 2e-9;

/// Seconds that tours may take on that machine, if nothing else is said.
const NOMINAL_BUDGET: f64 = 60.0;

/// Seconds that exact samples for reverse AIS may take on it, if they are not asked for.
const CHEAP_SAMPLES: f64 = 2.0;

/// Samples per row that a pilot chooses among, while the set has no more states than this.
const SAMPLES_PER_ROW: [usize; 3] = [1, 4, 16];
const MAX_STATES: usize = 1 << 20;

/// A way to `log Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Enumeration of the smaller layer.
    Exact,
    /// Las Vegas tours.
    Mclv,
    /// Annealed importance sampling.
    Ais,
    /// The same from the model to the base.
    ReverseAis,
    /// Bennett's acceptance ratio over a ladder of temperatures.
    Bar,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Mclv, Self::Ais, Self::ReverseAis, Self::Bar];

    /// Whether rows of data are of use to it.
    pub fn uses_data(self) -> bool {
        self != Self::Exact
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Mclv => "mclv",
            Self::Ais => "ais",
            Self::ReverseAis => "reverse-ais",
            Self::Bar => "bar",
        })
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.to_string() == text).ok_or_else(|| Error::InvalidSetting {
            name: "method",
            value: text.into(),
            cure: "choose exact, mclv, ais, reverse-ais or bar",
        })
    }
}

/// How much work each method may do.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodSettings {
    /// Tours, or the standard error that a pilot chooses their number for.
    pub effort: Effort,
    /// Hidden states per row in the stopping set; `None`: 1, or with a target error what pilots find cheapest.
    pub samples_per_row: Option<usize>,
    /// The chain of tours.
    pub visible: VisibleChain,
    /// Steps of all tours together, pilots included; `None`: a minute's on a nominal machine.
    pub max_steps: Option<u64>,
    /// Chains of AIS and reverse AIS.
    pub n_chains: usize,
    /// Their temperatures.
    pub n_betas: usize,
    /// Ladders of BAR, which finds its own temperatures.
    pub n_ladders: usize,
    /// Steps of each ladder that count; a quarter as many go before them.
    pub ladder_steps: usize,
    /// Whether reverse AIS begins at exact samples; `None`: if they take no more than seconds.
    pub exact_samples: Option<bool>,
    /// Seconds that an enumeration may take.
    pub time_limit: f64,
    /// Seed of everything.
    pub seed: u64,
}

impl Default for MethodSettings {
    /// Tours for a standard error of 0.01; 128 chains through 10,000 temperatures; 8 ladders of 2,000 steps; one hour.
    fn default() -> Self {
        Self {
            effort: Effort::TargetSe(0.01),
            samples_per_row: None,
            visible: VisibleChain::Sampled,
            max_steps: None,
            n_chains: 128,
            n_betas: 10_000,
            n_ladders: BarSettings::default().n_ladders,
            ladder_steps: BarSettings::default().n_steps,
            exact_samples: None,
            time_limit: ExactSettings::default().time_limit,
            seed: 0,
        }
    }
}

/// A model whose `log Z` is asked for, and what may help.
///
/// ```
/// use mclv::partition::{Agreement, Effort, Method, MethodSettings, Question};
/// use mclv::{Rbm, bits::BitRows, data::Rows, progress::Silent};
/// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
/// let rows = Rows::Bits(BitRows::from_words(4, vec![0b0000, 0b1111]));
/// let question = Question { rows: Some(&rows), ..Question::new(&rbm) };
/// let settings = MethodSettings { effort: Effort::Tours(5000), n_betas: 100, ..Default::default() };
/// let ask = |method| question.answer(method, &settings, &Silent);
/// let estimates = [ask(Method::Exact)?, ask(Method::Mclv)?, ask(Method::Ais)?];
/// assert_eq!(Agreement::new(&estimates).agree, Some(true));
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The model.
    pub rbm: &'a Rbm,
    /// Data: they give stopping sets, base models and starts of reverse AIS.
    pub rows: Option<&'a Rows>,
    /// A stopping set made before, instead of one from data or from a pilot chain.
    pub stopping_set: Option<&'a StoppingSet>,
}

impl<'a> Question<'a> {
    /// A model, and nothing that helps.
    pub fn new(rbm: &'a Rbm) -> Self {
        Self { rbm, rows: None, stopping_set: None }
    }

    /// `log Z` by one method. Time and steps are those of all it took: pilots, stopping set, exact samples.
    ///
    /// # Guarantee
    /// That of [`exact`], [`mclv`], [`ais`], [`reverse_ais`] or [`bar`]; the same for any number of threads.
    ///
    /// # Errors
    /// What the method refuses, data that do not fit the model, or the listener's wish to stop.
    pub fn answer(&self, method: Method, settings: &MethodSettings, progress: &dyn Progress) -> Result<LogZ> {
        let begun = Instant::now();
        let mut log_z = match method {
            Method::Exact => exact(self.rbm, &ExactSettings { time_limit: settings.time_limit }, progress)?,
            Method::Mclv => self.by_tours(&self.stopping_set(settings)?, settings, progress)?,
            Method::Ais => ais(self.rbm, &self.ais_settings(settings)?, progress)?,
            Method::ReverseAis => self.by_reverse_ais(settings, progress)?,
            Method::Bar => {
                let settings = BarSettings {
                    n_ladders: settings.n_ladders,
                    n_steps: settings.ladder_steps,
                    burn_in: settings.ladder_steps / 4,
                    base_bias: self.base()?,
                    seed: settings.seed,
                    n_betas: None,
                };
                bar(self.rbm, &settings, progress)?.log_z
            }
        };
        log_z.seconds = begun.elapsed().as_secs_f64();
        Ok(log_z)
    }

    /// `log Z` by the best method that can be afforded: exact if the time limit allows it, else tours if there are data or a
    /// stopping set and tours return to it, else AIS. A note says why it was not a better one.
    ///
    /// # Guarantee
    /// That of the method, which the answer names. Whether tours return is found out by tours that do not count; if some
    /// of those that do are cut, AIS is taken instead of the lower bound.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn best(&self, settings: &MethodSettings, progress: &dyn Progress) -> Result<LogZ> {
        let begun = Instant::now();
        let finish = |log_z: LogZ, notes: Vec<String>| LogZ {
            notes: notes.into_iter().chain(log_z.notes).collect(),
            seconds: begun.elapsed().as_secs_f64(),
            ..log_z
        };
        let mut notes = Vec::new();
        if nominal_seconds(self.rbm.n_visible(), self.rbm.n_hidden()) <= settings.time_limit {
            match self.answer(Method::Exact, settings, progress) {
                Err(too_slow @ Error::TooSlow { .. }) => tracing::debug!("{too_slow}"),
                other => return other,
            }
        }
        if self.rows.is_some() || self.stopping_set.is_some() {
            let choice = self.stopping_set(settings)?;
            let engine = TourEngine::new(self.rbm, &choice.set)?;
            let budget = self.budget(settings);
            let first = probe(&engine, settings.visible, budget / 8, settings.seed)?;
            if first.completion < MIN_COMPLETION {
                notes.push(format!(
                    "only {:.1} % of first tours returned to the stopping set within {:.0} steps: by AIS instead",
                    100.0 * first.completion,
                    first.n_steps as f64
                ));
            } else {
                let log_z = self.by_tours(&choice, settings, progress)?;
                if log_z.guarantee != Guarantee::LowerBound {
                    return Ok(finish(log_z, notes));
                }
                notes.push(format!(
                    "not all tours returned to the stopping set within {budget} steps: by AIS instead"
                ));
            }
        }
        Ok(finish(self.answer(Method::Ais, settings, progress)?, notes))
    }

    fn budget(&self, settings: &MethodSettings) -> u64 {
        let nominal = NOMINAL_BUDGET / (NOMINAL_STEP * self.rbm.n_visible() as f64);
        settings.max_steps.unwrap_or(nominal as u64)
    }

    fn tour_settings(&self, settings: &MethodSettings) -> MclvSettings {
        MclvSettings {
            effort: settings.effort,
            visible: settings.visible,
            max_steps: Some(self.budget(settings)),
            seed: settings.seed,
            ..Default::default()
        }
    }

    /// The set that was given, or one from data, or from pilot chains.
    fn stopping_set(&self, settings: &MethodSettings) -> Result<Choice<'a>> {
        if let Some(set) = self.stopping_set {
            let note = format!("a given stopping set of {} states", set.len());
            return Ok(Choice { set: Cow::Borrowed(set), n_steps: 0, note });
        }
        let Some(rows) = self.rows else {
            let pilot = PilotSettings { seed: settings.seed, ..Default::default() };
            let set = StoppingSet::from_pilot(self.rbm, None, &pilot)?;
            let n_steps = pilot.n_chains as u64 * u64::from(pilot.burn_in + pilot.n_steps);
            let note =
                format!("without data: a stopping set of {} states visited by pilot chains", set.len());
            return Ok(Choice { set: Cow::Owned(set), n_steps, note });
        };
        self.check_rows(rows)?;
        let Chosen { set, origin, n_steps } = match (settings.samples_per_row, settings.effort) {
            (Some(0), _) => {
                let (value, cure) = ("0".into(), "at least 1");
                return Err(Error::InvalidSetting { name: "samples-per-row", value, cure });
            }
            (None, Effort::TargetSe(target)) => {
                let candidates: Vec<usize> = SAMPLES_PER_ROW
                    .into_iter()
                    .filter(|&m| m == 1 || m * rows.n_rows() <= MAX_STATES)
                    .collect();
                choose(self.rbm, rows, &candidates, target, &self.tour_settings(settings))?
            }
            (m, _) => {
                let origin = SetOrigin { samples_per_row: m.unwrap_or(1), pilot_steps: 0 };
                let all: Vec<usize> = (0..rows.n_rows()).collect();
                let set = StoppingSet::draw(self.rbm, rows, &all, origin.samples_per_row, settings.seed, 0)?;
                Chosen { set, origin, n_steps: 0 }
            }
        };
        let note = format!("a stopping set of {} states: of {} rows, {origin}", set.len(), rows.n_rows());
        Ok(Choice { set: Cow::Owned(set), n_steps, note })
    }

    fn by_tours(
        &self,
        choice: &Choice<'_>,
        settings: &MethodSettings,
        progress: &dyn Progress,
    ) -> Result<LogZ> {
        let mut tours = self.tour_settings(settings);
        // The budget has room for one step of each tour in any case.
        let least = if let Effort::Tours(n) = tours.effort { n as u64 } else { 1 };
        tours.max_steps = tours.max_steps.map(|n| n.saturating_sub(choice.n_steps).max(least));
        let mut log_z = mclv(self.rbm, &choice.set, &tours, progress)?;
        log_z.n_states += choice.n_steps as f64;
        log_z.notes.insert(0, choice.note.clone());
        Ok(log_z)
    }

    fn by_reverse_ais(&self, settings: &MethodSettings, progress: &dyn Progress) -> Result<LogZ> {
        let (n_visible, n_hidden) = (self.rbm.n_visible(), self.rbm.n_hidden());
        let affordable = nominal_seconds(n_visible, n_hidden) <= CHEAP_SAMPLES.min(settings.time_limit);
        let mut note = None;
        let (states, origin) = if settings.exact_samples.unwrap_or(affordable) {
            let limit = ExactSettings { time_limit: settings.time_limit };
            note = Some("begun at exact samples of the model".to_owned());
            (
                sample::exact(self.rbm, settings.n_chains.max(1), settings.seed, &limit, progress)?,
                Origin::ExactSamples,
            )
        } else {
            let rows = self.rows.ok_or_else(|| Error::Empty {
                what: "the data that reverse-ais begins at".into(),
                cure: "give data, or take exact samples of a model that can be enumerated",
            })?;
            self.check_rows(rows)?;
            if !matches!(rows, Rows::Bits(_)) {
                note = Some("grey values cut at 0.5: chains begin at bits".to_owned());
            }
            (draw_rows(rows, settings.n_chains, settings.seed), Origin::Data)
        };
        let reverse = ReverseAisSettings {
            n_betas: settings.n_betas,
            base_bias: self.base()?,
            seed: settings.seed,
            ..Default::default()
        };
        let mut log_z = reverse_ais(self.rbm, &states, origin, &reverse, progress)?;
        log_z.notes.splice(0..0, note);
        Ok(log_z)
    }

    fn ais_settings(&self, settings: &MethodSettings) -> Result<AisSettings> {
        Ok(AisSettings {
            n_chains: settings.n_chains,
            n_betas: settings.n_betas,
            base_bias: self.base()?,
            seed: settings.seed,
            ..Default::default()
        })
    }

    fn base(&self) -> Result<Option<Vec<f32>>> {
        let Some(rows) = self.rows else { return Ok(None) };
        self.check_rows(rows)?;
        Ok(Some(base_bias(&rows.column_means(), rows.n_rows())))
    }

    fn check_rows(&self, rows: &Rows) -> Result<()> {
        if rows.n_rows() == 0 {
            return Err(Error::Empty { what: "the data".into(), cure: "give at least one row" });
        }
        self.rbm.check_width(rows.n_columns())
    }
}

/// A stopping set, and what it took.
struct Choice<'a> {
    set: Cow<'a, StoppingSet>,
    n_steps: u64,
    note: String,
}

/// Rows drawn with replacement, as bits.
fn draw_rows(rows: &Rows, n: usize, seed: u64) -> BitRows {
    let mut rng = stream(seed, Purpose::ReverseAis, u64::from(u32::MAX)).reader();
    let drawn: Vec<usize> = (0..n).map(|_| rng.below(rows.n_rows() as u64) as usize).collect();
    match data::binarize(&rows.select(&drawn), Binarize::Threshold(0.5), seed, 0) {
        Rows::Bits(bits) => bits,
        _ => unreachable!("a threshold makes bits"),
    }
}
