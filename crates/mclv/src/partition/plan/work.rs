//! Carry out a plan, and add up what it costs.

use super::{Inputs, MethodSettings, Plan};
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::{self, Binarize, Rows};
use crate::model::Rbm;
use crate::partition::budget::{CHEAP_SAMPLES, SCOUT_SHARE};
use crate::partition::choice::{Chosen, SetOrigin, choose};
use crate::partition::forecast::Forecast;
use crate::partition::ladder::{Outcome, climb_along};
use crate::partition::scouts::states_to_join;
use crate::partition::{
    AisSettings, Along, BarSettings, Effort, Guarantee, LogZ, MclvSettings, Method, Note, Origin,
    ReverseAisSettings, Target, ais, bar, bar_along, base_bias, exact, exact_samples, nominal_seconds,
    reverse_ais,
};
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::tour::{PilotSettings, StoppingSet, TourEngine};
use crate::{Error, Result};
use std::borrow::Cow;
use std::time::Instant;

/// The numbers of samples per row that pilot tours choose among.
const SAMPLES_PER_ROW: [usize; 3] = [1, 4, 16];
/// The number of rows whose states are compared with scouts before a stopping set is drawn.
const JOIN_ROWS: usize = 20_000;
/// Several samples per row are tried only if they make no more draws than this.
const MAX_DRAWS: usize = 1 << 20;

/// A plan that is being carried out, with its costs so far and the notes for its result.
pub(super) struct Work<'a> {
    plan: &'a Plan<'a>,
    inputs: &'a Inputs<'a>,
    along: &'a Along<'a>,
    progress: &'a dyn Progress,
    begun: Instant,
    /// States and steps that are not part of the estimate: pilots, exact samples, tours given up.
    n_states: f64,
    notes: Vec<Note>,
    /// Sums of statistics along the tours of the estimate, tour by tour.
    sums: Vec<f64>,
}

/// A stopping set that tours can be run to.
struct Destination<'a> {
    engine: TourEngine<'a>,
    /// The forecast of pilot tours to the set, if pilot tours chose it.
    forecast: Option<Forecast>,
    note: Note,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        inputs: &'a Inputs<'a>,
        along: &'a Along<'a>,
        progress: &'a dyn Progress,
    ) -> Self {
        let (begun, notes, sums) = (Instant::now(), Vec::new(), Vec::new());
        Self { plan, inputs, along, progress, begun, n_states: 0.0, notes, sums }
    }

    /// Returns the estimate, with the cost of the whole plan and all notes, and the sums of
    /// statistics. Costs are added up only here.
    pub(super) fn finish(self, mut log_z: LogZ) -> (LogZ, Vec<f64>) {
        log_z.n_states += self.n_states;
        log_z.seconds = self.begun.elapsed().as_secs_f64();
        log_z.notes.splice(0..0, self.notes);
        (log_z, self.sums)
    }

    /// Returns the estimate of a method, or `None` if it gives way to the next one. The last method
    /// does not give way.
    pub(super) fn attempt(&mut self, method: Method, is_last: bool) -> Result<Option<LogZ>> {
        let (rbm, settings) = (self.plan.rbm, &self.plan.settings);
        let log_z = match method {
            Method::Exact => match exact(rbm, &settings.budget.enumeration(), self.progress) {
                Err(too_slow @ Error::TooSlow { .. }) if !is_last => {
                    tracing::debug!("{too_slow}");
                    return Ok(None);
                }
                result => result?,
            },
            Method::Mclv => return self.tours(is_last),
            Method::Ladder => {
                let settings = self.plan.ladder_settings(self.n_states as u64);
                if let Some(rows) = self.inputs.rows {
                    self.check_rows(rows)?;
                }
                let (outcome, sums) =
                    climb_along(rbm, self.inputs, &settings, !is_last, self.along, self.progress)?;
                self.sums = sums;
                match outcome {
                    Outcome::Estimate(log_z) => log_z,
                    Outcome::GivenUp { climbed, n_steps } => {
                        self.n_states += n_steps as f64;
                        self.notes.push(Note::ToursDoNotClimb { climbed, n_steps });
                        return Ok(None);
                    }
                }
            }
            Method::Ais => {
                let settings = AisSettings {
                    n_chains: settings.budget.n_chains,
                    n_betas: settings.budget.n_betas,
                    target: self.target_of(settings.ais_target_se),
                    base_bias: self.base()?,
                    n_check: settings.budget.n_scouts.min(settings.budget.n_chains) / 2,
                    seed: settings.seed,
                    ..Default::default()
                };
                ais(rbm, &settings, self.progress)?
            }
            Method::ReverseAis => self.reverse_ais()?,
            Method::Bar => {
                let settings = BarSettings {
                    n_ladders: settings.n_ladders,
                    n_steps: settings.ladder_steps,
                    burn_in: settings.ladder_steps / 4,
                    base_bias: self.base()?,
                    seed: settings.seed,
                    n_betas: None,
                    target: self.target_of(settings.bar_target_se),
                };
                match self.inputs.rungs {
                    [] => bar(rbm, &settings, self.progress)?.log_z,
                    rungs => {
                        let models: Vec<Rbm> = rungs.iter().chain([rbm]).cloned().collect();
                        bar_along(&models, &settings, self.progress)?
                    }
                }
            }
        };
        Ok(Some(log_z))
    }

    /// Runs tours. They give way if there is nothing to make a stopping set from, or if they do not
    /// return.
    fn tours(&mut self, is_last: bool) -> Result<Option<LogZ>> {
        if !is_last && self.inputs.rows.is_none() && self.inputs.stopping_set.is_none() {
            return Ok(None);
        }
        let Destination { engine, forecast, note } = self.destination()?;
        let forecast = match forecast {
            Some(forecast) => Some(forecast),
            None => self.forecast(&engine, is_last)?,
        };
        if let Some(forecast) = forecast.as_ref().filter(|forecast| !is_last && !forecast.returns()) {
            let Forecast { completion, n_steps, .. } = *forecast;
            self.notes.push(Note::ToursDoNotReturn { completion, n_steps });
            return Ok(None);
        }
        let mut settings = self.tour_settings();
        let hopeless = forecast.as_ref().filter(|forecast| forecast.is_hopeless());
        if let (Some(Forecast { n_steps, .. }), Some(max_steps)) = (hopeless, &mut settings.max_steps) {
            // Scouts could only take away the interval, which cut tours do not have anyway.
            settings.n_scouts = 0;
            *max_steps = (*max_steps).min(*n_steps);
        }
        let (mut log_z, sums) = settings.count(&engine, forecast.as_ref(), self.along, self.progress)?;
        self.sums = sums;
        if let Some(&Forecast { completion, n_steps, .. }) = hopeless {
            (log_z.std_err, log_z.interval) = (None, None);
            log_z.notes = vec![note, Note::ToursGivenUp { completion, n_steps }];
            return Ok(Some(log_z));
        }
        log_z.notes.insert(0, note);
        if let (Guarantee::LowerBound, Some(max_steps)) = (log_z.guarantee, self.max_steps()) {
            log_z.notes.push(Note::StepBudget { max_steps });
        }
        Ok(Some(log_z))
    }

    /// Runs pilot tours if the number of tours depends on them, or if tours may give way.
    fn forecast(&mut self, engine: &TourEngine<'_>, is_last: bool) -> Result<Option<Forecast>> {
        let settings = self.tour_settings();
        let forecast = match settings.forecast(engine)? {
            None if !is_last => Some(Forecast::probe(engine, &settings.limits())?),
            forecast => forecast,
        };
        self.n_states += forecast.as_ref().map_or(0.0, |forecast| forecast.n_steps as f64);
        Ok(forecast)
    }

    /// Returns the number of steps that pilots and tours may make together. `None` means no limit.
    fn max_steps(&self) -> Option<u64> {
        self.plan.settings.budget.steps(self.plan.rbm.n_visible(), self.plan.rbm.n_hidden())
    }

    /// Returns a wanted standard error with the steps that are left for it.
    fn target_of(&self, std_err: Option<f64>) -> Option<Target> {
        let max_steps = self.max_steps().map(|n| n.saturating_sub(self.n_states as u64));
        std_err.map(|std_err| Target { std_err, max_steps })
    }

    /// Returns the states that scouts found outside `set`.
    fn states_to_join(&mut self, set: Option<&StoppingSet>) -> Result<Option<StoppingSet>> {
        let MethodSettings { budget, seed, visible, .. } = self.plan.settings;
        if budget.n_scouts == 0 || visible != VisibleChain::Sampled {
            return Ok(None);
        }
        let max_steps = self.max_steps().unwrap_or(u64::MAX) / SCOUT_SHARE;
        let base = self.base()?;
        let (found, n_steps) = states_to_join(
            self.plan.rbm,
            set,
            base.as_deref(),
            budget.n_scouts,
            seed,
            max_steps,
            self.progress,
        )?;
        self.n_states += n_steps as f64;
        Ok(found)
    }

    /// Returns the settings of tours, limited to the steps that are left.
    fn tour_settings(&self) -> MclvSettings {
        let settings = &self.plan.settings;
        // Each tour may always make its first step.
        let least = if let Effort::Tours(n) = settings.effort { n as u64 } else { 1 };
        MclvSettings {
            effort: settings.effort,
            visible: settings.visible,
            max_steps: self.max_steps().map(|n| n.saturating_sub(self.n_states as u64).max(least)),
            n_scouts: settings.budget.n_scouts,
            seed: settings.seed,
            ..Default::default()
        }
    }

    /// Returns the set that was given, or one from data, or one from pilot chains.
    fn destination(&mut self) -> Result<Destination<'a>> {
        let (rbm, settings) = (self.plan.rbm, &self.plan.settings);
        if let Some(set) = self.inputs.stopping_set {
            let note = Note::GivenSet { n_states: set.len() };
            return Ok(Destination { engine: TourEngine::new(rbm, set)?, forecast: None, note });
        }
        let Some(rows) = self.inputs.rows else {
            let chains = PilotSettings { seed: settings.seed, ..Default::default() };
            let set = StoppingSet::from_pilot(rbm, None, &chains)?;
            self.n_states += chains.n_chains as f64 * f64::from(chains.burn_in + chains.n_steps);
            let found = self.states_to_join(Some(&set))?;
            let set = set.joined_by(found.as_ref());
            let note = Note::VisitedSet { n_states: set.len() };
            return Ok(Destination {
                engine: TourEngine::with_set(rbm, Cow::Owned(set))?,
                forecast: None,
                note,
            });
        };
        self.check_rows(rows)?;
        let rows = match settings.budget.max_states {
            Some(n) if n < rows.n_rows() => Cow::Owned(rows.select(&spread(rows.n_rows(), n))),
            _ => Cow::Borrowed(rows),
        };
        let n_rows = rows.n_rows();
        let some = rows.select(&spread(n_rows, JOIN_ROWS));
        let numbers: Vec<usize> = (0..some.n_rows()).collect();
        let of_some = StoppingSet::draw(rbm, &some, &numbers, 1, settings.seed, 1)?;
        let found = self.states_to_join(Some(&of_some))?;
        let (engine, forecast, origin) = match (settings.samples_per_row, settings.effort) {
            (Some(0), _) => {
                let (value, cure) = ("0".into(), "at least 1");
                return Err(Error::InvalidSetting { name: "samples-per-row", value, cure });
            }
            (None, Effort::TargetSe(target)) => {
                let mut candidates = SAMPLES_PER_ROW.to_vec();
                let most = settings.budget.affordable_states(rbm.n_visible(), rbm.n_hidden());
                candidates.retain(|&m| m == 1 || m * n_rows <= most.min(MAX_DRAWS));
                let chosen = choose(rbm, &rows, &candidates, found.as_ref(), target, &self.tour_settings())?;
                self.n_states += chosen.n_steps as f64;
                let Chosen { engine, forecast, origin, .. } = chosen;
                (engine, Some(forecast), origin)
            }
            (m, _) => {
                let origin = SetOrigin { samples_per_row: m.unwrap_or(1), pilot_steps: 0 };
                let all: Vec<usize> = (0..n_rows).collect();
                let drawn = StoppingSet::draw(rbm, &rows, &all, origin.samples_per_row, settings.seed, 0)?;
                let set = drawn.joined_by(found.as_ref());
                (TourEngine::with_set(rbm, Cow::Owned(set))?, None, origin)
            }
        };
        let n_joined = found.as_ref().map_or(0, StoppingSet::len);
        let note = Note::DrawnSet { n_states: engine.set().len(), n_rows, origin, n_joined };
        Ok(Destination { engine, forecast, note })
    }

    /// Runs reverse AIS, from exact samples if they are asked for or cheap, else from rows.
    fn reverse_ais(&mut self) -> Result<LogZ> {
        let (rbm, settings) = (self.plan.rbm, &self.plan.settings);
        let n_chains = settings.budget.n_chains;
        let (n_visible, n_hidden) = (rbm.n_visible(), rbm.n_hidden());
        let is_cheap = nominal_seconds(n_visible, n_hidden) <= CHEAP_SAMPLES.min(settings.budget.seconds);
        let (states, origin) = if settings.exact_samples.unwrap_or(is_cheap) {
            let limit = settings.budget.enumeration();
            let states = exact_samples(rbm, n_chains.max(1), settings.seed, &limit, self.progress)?;
            self.n_states += (n_visible.min(n_hidden) as f64).exp2();
            self.notes.push(Note::ExactSamples);
            (states, Origin::ExactSamples)
        } else {
            let rows = self.inputs.rows.ok_or_else(|| Error::Empty {
                what: "the data that reverse-ais begins at".into(),
                cure: "give data, or take exact samples of a model that can be enumerated",
            })?;
            self.check_rows(rows)?;
            if !matches!(rows, Rows::Bits(_)) {
                self.notes.push(Note::GreyRowsCut);
            }
            (draw_rows(rows, n_chains, settings.seed), Origin::Data)
        };
        let reverse = ReverseAisSettings {
            n_betas: settings.budget.n_betas,
            target: self.target_of(settings.ais_target_se),
            base_bias: self.base()?,
            seed: settings.seed,
            ..Default::default()
        };
        reverse_ais(rbm, &states, origin, &reverse, self.progress)
    }

    /// Returns the visible biases of the base model: those given, or those of the rows, or `None`.
    fn base(&self) -> Result<Option<Vec<f32>>> {
        match (self.inputs.base_bias, self.inputs.rows) {
            (Some(bias), _) => Ok(Some(bias.to_vec())),
            (None, None) => Ok(None),
            (None, Some(rows)) => {
                self.check_rows(rows)?;
                Ok(Some(base_bias(&rows.column_means(), rows.n_rows())))
            }
        }
    }

    fn check_rows(&self, rows: &Rows) -> Result<()> {
        if rows.n_rows() == 0 {
            return Err(Error::Empty { what: "the data".into(), cure: "give at least one row" });
        }
        self.plan.rbm.check_width(rows.n_columns())
    }
}

/// Returns at most `n` of `n_rows` row numbers, evenly spread because data may be sorted.
pub(crate) fn spread(n_rows: usize, n: usize) -> Vec<usize> {
    let n = n.min(n_rows);
    (0..n).map(|k| k * n_rows / n).collect()
}

/// Draws rows with replacement and returns them as bits.
fn draw_rows(rows: &Rows, n: usize, seed: u64) -> BitRows {
    let mut rng = stream(seed, Purpose::ReverseAis, u64::from(u32::MAX)).reader();
    let drawn: Vec<usize> = (0..n).map(|_| rng.below(rows.n_rows() as u64) as usize).collect();
    match data::binarize(&rows.select(&drawn), Binarize::Threshold(0.5), seed, 0) {
        Rows::Bits(bits) => bits,
        _ => unreachable!("a threshold makes bits"),
    }
}
