//! All defaults and rules: one function turns settings and a number of rows into checked settings.

use super::{
    Auto, EstimatorName, EstimatorSettings, EvalEvery, Limit, LvsSettings, Optimizer, Preset, Restarts, Rule,
    Schedule, Settings, Snapshots, Starts, Statistics, TourLength, Unfinished,
};
use crate::chain::VisibleChain;
use crate::model::Init;
use crate::{Error, Result};
use serde::{Serialize, Serializer};

/// The largest number of hidden units for which chains are expected to reach a stopping set.
const MOST_FOR_TOURS: usize = 64;
/// Ladders of parallel tempering.
const N_LADDERS: usize = 32;
/// Rungs of a ladder, for small models and for larger ones. With 500 hidden units on MNIST, a sixth
/// of the exchanges is accepted after 6 epochs with 10 rungs. States climb fastest for the same work
/// if about half of them are accepted.
const N_RUNGS: (usize, usize) = (10, 20);
/// Steps after which a pair of coupled chains is cut. With 128 rows, an update then makes at most
/// 256,000 steps, about a second for a model of MNIST.
const MAX_MEETING: usize = 1000;
/// The most Gibbs steps of a chain per update. More take hours for a single update.
const MOST_STEPS: u32 = 1_000_000;
/// The same for tours that are carried on, which keep each of their steps.
const MOST_CARRIED_STEPS: u32 = 10_000;
/// The most states that are drawn for a stopping set.
pub(crate) const MOST_STATES: usize = 1 << 24;
/// Chains, or tours per update, in the paper.
const PAPER_CHAINS: usize = 128;

/// Settings of a training. All values are decided, and they do not contradict each other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CheckedSettings {
    /// The source of the defaults.
    pub preset: Preset,
    /// Hidden units.
    pub n_hidden: usize,
    /// The initial parameters.
    pub init: Init,
    /// The gradient estimator.
    pub gradient: EstimatorSettings,
    /// Epochs of warm-up, and their estimator.
    pub warm_up: Option<(usize, EstimatorSettings)>,
    /// Passes over the data, the warm-up included.
    pub epochs: usize,
    /// Rows per update.
    pub batch_size: usize,
    /// True if an incomplete last minibatch is skipped.
    pub drop_last: bool,
    /// Initial learning rate.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// The epochs at which the schedule begins again, in ascending order.
    pub restarts: Restarts,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// L1 weight decay (absolute values).
    pub l1: f64,
    /// L2 weight decay (squares).
    pub l2: f64,
    /// Largest norm of a gradient.
    pub clip: Option<f64>,
    /// True if the gradient is centred.
    pub centred: bool,
    /// Weight of one minibatch in the running mean of hidden activities that centring subtracts.
    pub offset_rate: f64,
    /// True if the bits of grey data are resampled every epoch.
    pub redraw_bits: bool,
    /// When the likelihood is evaluated.
    pub eval_every: EvalEvery,
    /// The standard error of `log Z` that the last evaluation aims for. With `None`, it gets what
    /// its budget allows.
    pub final_se: Option<f64>,
    /// Training stops after this number of evaluations without a better validation likelihood.
    pub patience: Option<usize>,
    /// Share of the training rows held out for validation.
    pub validation_fraction: Option<f64>,
    /// The epochs after which a copy of the model is kept.
    pub snapshots: Snapshots,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Settings {
    /// Fills in defaults and checks all settings, for training on `n_rows` rows.
    ///
    /// With [`Preset::Default`] and no estimator chosen, models with up to 64 hidden units are
    /// trained by tours that are carried over from update to update, with a small stopping set. A
    /// chain that reaches the set may continue from another state of the set, and so find modes
    /// that it would not find by itself. In larger models few chains reach the set, and persistent
    /// chains do the same in less time. A default estimator has the same defaults as one that is
    /// chosen by name.
    ///
    /// # Errors
    /// Names a setting that is out of range, or two settings that exclude each other.
    pub fn check(&self, n_rows: usize) -> Result<CheckedSettings> {
        let checked = self.decide(n_rows)?;
        checked.check_rows(n_rows)?;
        Ok(checked)
    }

    /// Like [`check`](Self::check), but before the rows are known. Numbers that depend on the rows
    /// are decided as for one row.
    ///
    /// Settings returned by [`CheckedSettings::settings`] have no such numbers.
    ///
    /// # Errors
    /// Names a setting that is out of range, or two settings that exclude each other.
    pub fn check_without_rows(&self) -> Result<CheckedSettings> {
        self.decide(1)
    }

    /// The chosen estimator, or the default one.
    pub(super) fn estimator(&self) -> EstimatorName {
        let small = self.n_hidden() <= MOST_FOR_TOURS;
        let default = if self.is_paper() || small { EstimatorName::Lvs } else { EstimatorName::Pcd };
        self.gradient.unwrap_or(default)
    }

    /// The chosen optimiser, or the default one.
    pub(super) fn rule(&self) -> Rule {
        self.optimizer.unwrap_or(Rule::Sgd)
    }

    fn is_paper(&self) -> bool {
        self.preset == Some(Preset::Paper)
    }

    fn n_hidden(&self) -> usize {
        self.n_hidden.unwrap_or(25)
    }

    fn decide(&self, n_rows: usize) -> Result<CheckedSettings> {
        self.check_owners()?;
        let paper = self.is_paper();
        let n_hidden = self.n_hidden();
        let batch_size = self.batch_size.unwrap_or(128);
        let visible =
            self.visible.unwrap_or(if paper { VisibleChain::MeanField } else { VisibleChain::Sampled });
        at_least_one("n-hidden", n_hidden, "must be a positive number")?;
        at_least_one("batch-size", batch_size, "must be a positive number")?;
        within("batch-size", batch_size, batch_size < 1 << 24, "must be fewer than 16,777,216 rows")?;
        let gradient = self.decide_gradient(visible, n_rows)?;
        let epochs = match self.epochs {
            Some(Auto::Given(epochs)) => {
                let cure = "must be at least one; leave it out or give `auto` for the default";
                at_least_one("epochs", epochs, cure)?;
                // Random numbers are a function of the epoch, which has 32 bits there.
                within("epochs", epochs, epochs <= u32::MAX as usize, "give at most 4,294,967,295 epochs")?;
                epochs
            }
            None if paper => 100,
            None | Some(Auto::Auto) => 10_000usize.div_ceil(n_rows.div_ceil(batch_size).max(1)).max(100),
        };
        let warm_up = self.decide_warm_up(&gradient, visible, epochs)?;
        let optimizer = self.decide_optimizer()?;
        let learning_rate = self.learning_rate.unwrap_or(match (&optimizer, &gradient) {
            // Adam's steps have the size of the rate, whatever the size of the gradient.
            (Optimizer::Adam { .. }, _) => 0.01,
            _ if paper => 0.1,
            (_, EstimatorSettings::Lvs(lvs))
                if lvs.unfinished == Unfinished::Carry && n_hidden <= MOST_FOR_TOURS =>
            {
                0.6
            }
            // Tours that are dropped or kept collapse at 0.6.
            _ => 0.4,
        });
        let positive = learning_rate > 0.0 && learning_rate.is_finite();
        within("learning-rate", learning_rate, positive, "must be a positive number")?;
        let (l1, l2) = (self.l1.unwrap_or(0.0), self.l2.unwrap_or(0.0));
        for (name, decay) in [("l1", l1), ("l2", l2)] {
            within(name, decay, decay >= 0.0 && decay.is_finite(), "must be 0 or more")?;
        }
        let clip = limit(
            "clip",
            self.clip,
            |&norm| norm > 0.0 && norm.is_finite(),
            "give a positive number, or `off`",
        )?;
        let offset_rate = self.offset_rate.unwrap_or(0.01);
        within(
            "offset-rate",
            offset_rate,
            offset_rate > 0.0 && offset_rate <= 1.0,
            "must be more than 0 and at most 1",
        )?;
        let eval_every = self.eval_every.unwrap_or_default();
        if let EvalEvery::Epochs(n) = eval_every {
            at_least_one("eval-every", n, "give at least one epoch, or `auto`, or `never`")?;
        }
        let final_se = self.final_se.and_then(Auto::get);
        if let Some(se) = final_se {
            within("final-se", se, se > 0.0 && se.is_finite(), "give a positive number, or `auto`")?;
        }
        let patience =
            limit("patience", self.patience, |&n| n > 0, "give at least one evaluation, or `off`")?;
        let validation_fraction = limit(
            "validation-fraction",
            self.validation_fraction,
            |&share| share > 0.0 && share < 1.0,
            "give a number above 0 and below 1, or `off`",
        )?;
        let snapshots = self.snapshots.clone().unwrap_or_default();
        if let Some(last) = snapshots.last() {
            within(
                "snapshots",
                last,
                last <= epochs,
                "there are fewer `epochs`; give epochs up to the last",
            )?;
        }
        let restarts = self.restarts.clone().unwrap_or_default();
        if let Some(bad) = restarts.epochs().iter().find(|&&restart| restart == 0 || restart >= epochs) {
            return refuse("restarts", bad, "give epochs above 0 and below the number of `epochs`");
        }
        Ok(CheckedSettings {
            preset: self.preset.unwrap_or_default(),
            n_hidden,
            init: self.init.unwrap_or(if paper { Init::Paper } else { Init::Data }),
            gradient,
            warm_up,
            epochs,
            batch_size,
            drop_last: self.drop_last.unwrap_or(paper),
            learning_rate,
            schedule: self.schedule.unwrap_or(if paper { Schedule::Plateau } else { Schedule::Linear }),
            restarts,
            optimizer,
            l1,
            l2,
            clip,
            centred: self.centred.unwrap_or(!paper),
            offset_rate,
            redraw_bits: self.redraw_bits.unwrap_or(false),
            eval_every,
            final_se,
            patience,
            validation_fraction,
            snapshots,
            seed: self.seed.unwrap_or(0),
        })
    }

    /// Rejects settings that belong to another estimator, or to another optimiser, than the chosen.
    fn check_owners(&self) -> Result<()> {
        let (estimator, rule) = (self.estimator(), self.rule());
        let warms_up = self.warm_up_epochs.is_some_and(|n| n > 0);
        let mut given = self.clone();
        // The exact gradient has no chain; ladders and coupled chains are always sampled. So `visible`
        // matters only to their warm-up.
        let has_no_choice =
            matches!(estimator, EstimatorName::Exact | EstimatorName::Tempered | EstimatorName::Ucd);
        if has_no_choice && (warms_up || given.visible == Some(VisibleChain::Sampled)) {
            given.visible = None;
        }
        let estimators = given.of_estimators();
        let foreign =
            estimators.iter().find(|(_, field, owners)| field.is_set() && !owners.contains(&estimator));
        if let Some(&(name, ..)) = foreign {
            return Err(Error::Incompatible { name, with: format!("gradient = {estimator}") });
        }
        let rules = given.of_rules();
        if let Some(&(name, ..)) = rules.iter().find(|(_, field, owner)| field.is_set() && *owner != rule) {
            return Err(Error::Incompatible { name, with: format!("optimizer = {rule}") });
        }
        Ok(())
    }

    fn decide_gradient(&self, visible: VisibleChain, n_rows: usize) -> Result<EstimatorSettings> {
        let n_chains = match self.n_chains {
            Some(n_chains) => n_chains.get(),
            None => self.is_paper().then_some(PAPER_CHAINS),
        };
        if let Some(n) = n_chains {
            at_least_one(
                "n-chains",
                n,
                "must be at least one; leave it out or give `auto` for one per row of a minibatch",
            )?;
        }
        match self.estimator() {
            EstimatorName::Cd => Ok(EstimatorSettings::Cd { k: self.gibbs_steps(1)?, visible }),
            EstimatorName::Pcd => {
                let few = n_chains.is_none_or(|n| n < 1 << 24);
                within("n-chains", n_chains.unwrap_or(0), few, "must be fewer than 16,777,216 chains")?;
                let k = self.gibbs_steps(if self.is_paper() { 1 } else { 3 })?;
                Ok(EstimatorSettings::Pcd { k, n_chains, visible })
            }
            EstimatorName::Lvs => {
                let few = n_chains.is_none_or(|n| n <= 1 << 16);
                within("n-chains", n_chains.unwrap_or(0), few, "give at most 65,536 tours per update")?;
                self.decide_tours(n_chains, visible, n_rows).map(EstimatorSettings::Lvs)
            }
            EstimatorName::Tempered => {
                // One ladder per row would cost ten times as much as one chain per row.
                let n_chains = self.n_chains.and_then(Auto::get).unwrap_or(N_LADDERS);
                let small = self.n_hidden() <= MOST_FOR_TOURS;
                let n_rungs = self.n_rungs.unwrap_or(if small { N_RUNGS.0 } else { N_RUNGS.1 });
                at_least_one("n-rungs", n_rungs, "give at least one rung: that of the model")?;
                let cure = "must be fewer than 16,777,216 chains on all rungs";
                within("n-rungs", n_rungs, n_rungs < 1 << 24, cure)?;
                within("n-chains", n_chains, n_chains < (1 << 24) / (n_rungs + 1), cure)?;
                Ok(EstimatorSettings::Tempered { k: self.gibbs_steps(1)?, n_chains, n_rungs })
            }
            EstimatorName::Ucd => {
                let (k, max_meeting) = (self.gibbs_steps(1)?, self.max_meeting.unwrap_or(MAX_MEETING));
                let cure = "give at least `k` steps, and at most 1,000,000";
                let allowed = k.max(1)..=MOST_STEPS as usize;
                within("max-meeting", max_meeting, allowed.contains(&max_meeting), cure)?;
                Ok(EstimatorSettings::Ucd { k, max_meeting })
            }
            EstimatorName::Exact => Ok(EstimatorSettings::Exact),
        }
    }

    /// `k` of an estimator without tours.
    fn gibbs_steps(&self, default: u32) -> Result<usize> {
        match self.k.unwrap_or(TourLength::Steps(default)) {
            TourLength::Steps(0) => refuse("k", 0, "give at least one Gibbs step"),
            TourLength::Steps(k) => few_steps(k, MOST_STEPS, "give at most 1,000,000 Gibbs steps per update"),
            TourLength::Dynamic => {
                refuse("k", "dynamic", "only tours (`gradient = lvs`) return; give a number of Gibbs steps")
            }
        }
    }

    fn decide_tours(
        &self,
        n_tours: Option<usize>,
        visible: VisibleChain,
        n_rows: usize,
    ) -> Result<LvsSettings> {
        let paper = self.is_paper();
        let unfinished = self.unfinished.unwrap_or(if paper { Unfinished::Drop } else { Unfinished::Carry });
        let carry = unfinished == Unfinished::Carry;
        let k = self.k.unwrap_or(TourLength::Steps(if carry && !paper { 3 } else { 1 }));
        match k {
            TourLength::Steps(0) => return refuse("k", 0, "give at least one Gibbs step, or `dynamic`"),
            TourLength::Dynamic if carry => {
                return refuse("k", k, "with `unfinished = carry`, give the number of steps per update");
            }
            TourLength::Steps(k) if carry => {
                let cure = "give at most 10,000 steps per update, because carried tours keep all of them";
                few_steps(k, MOST_CARRIED_STEPS, cure)?;
            }
            TourLength::Steps(k) => {
                few_steps(k, MOST_STEPS, "give at most 1,000,000 steps, or `dynamic`")?;
            }
            TourLength::Dynamic => {}
        }
        let starts = self.starts.unwrap_or(match unfinished {
            _ if paper => Starts::Fresh,
            Unfinished::Carry => Starts::Metropolis,
            Unfinished::Keep | Unfinished::Drop => Starts::Weighted,
        });
        if !starts.goes_with(unfinished) {
            return refuse(
                "starts",
                starts,
                if carry {
                    "with `unfinished = carry` use metropolis or fresh, because tours from different tables cannot be pooled"
                } else {
                    "it needs `unfinished = carry`; use weighted or fresh"
                },
            );
        }
        let statistics =
            self.statistics.unwrap_or(if paper { Statistics::Sampled } else { Statistics::MeanHidden });
        if statistics == Statistics::MeanVisible && visible == VisibleChain::MeanField {
            return refuse(
                "statistics",
                statistics,
                "a mean-field chain already holds E[v|h]; use `statistics = sampled`",
            );
        }
        let samples_per_row = self.samples_per_row.unwrap_or(1);
        at_least_one("samples-per-row", samples_per_row, "give at least one hidden state per row")?;
        let row_fraction = match self.row_fraction {
            Some(Auto::Given(share)) => {
                let is_share = share > 0.0 && share <= 1.0;
                within("row-fraction", share, is_share, "give a number above 0 and up to 1, or `auto`")?;
                share
            }
            None if paper || !carry => 1.0,
            None | Some(Auto::Auto) => (1000.0 / n_rows.max(1) as f64).clamp(0.03, 1.0),
        };
        let n_chosen = (n_rows as f64 * row_fraction).ceil().max(1.0) as usize;
        let few = samples_per_row < MOST_STATES / n_chosen;
        within("samples-per-row", samples_per_row, few, "must draw fewer than 16,777,216 states in all")?;
        let redraw_every = self.redraw_every.unwrap_or(1);
        at_least_one("redraw-every", redraw_every, "give at least one epoch")?;
        let min_ess = self.min_ess.unwrap_or(0.2);
        within("min-ess", min_ess, (0.0..=1.0).contains(&min_ess), "give a number from 0 to 1")?;
        let share = |&share: &f64| share > 0.0 && share < 1.0;
        let target_completion = limit(
            "target-completion",
            self.target_completion,
            share,
            "give a number between 0 and 1, or `off`",
        )?;
        let max_states = self.max_states.unwrap_or(1_000_000);
        at_least_one("max-states", max_states, "give at least one state")?;
        let positive = |&cost: &f64| cost > 0.0 && cost.is_finite();
        let max_set_cost =
            limit("max-set-cost", self.max_set_cost, positive, "give a positive number, or `off`")?;
        Ok(LvsSettings {
            k,
            n_tours,
            unfinished,
            starts,
            statistics,
            visible,
            samples_per_row,
            row_fraction,
            redraw_every,
            min_ess,
            target_completion,
            max_states,
            max_set_cost,
        })
    }

    fn decide_warm_up(
        &self,
        gradient: &EstimatorSettings,
        visible: VisibleChain,
        epochs: usize,
    ) -> Result<Option<(usize, EstimatorSettings)>> {
        let of_paper = if self.is_paper() && matches!(gradient, EstimatorSettings::Lvs(_)) { 15 } else { 0 };
        let warm_up_epochs = self.warm_up_epochs.unwrap_or(of_paper);
        let cure = "must be fewer than `epochs`, or the chosen estimator is never used";
        within("warm-up-epochs", warm_up_epochs, warm_up_epochs < epochs, cure)?;
        let k = self.warm_up_k.unwrap_or(1);
        at_least_one("warm-up-k", k, "give at least one Gibbs step")?;
        within("warm-up-k", k, k <= MOST_STEPS as usize, "give at most 1,000,000 Gibbs steps per update")?;
        if warm_up_epochs == 0 {
            return match self.warm_up_k {
                Some(k) => refuse("warm-up-k", k, "there is no warm-up; give `warm-up-epochs` too"),
                None => Ok(None),
            };
        }
        Ok(Some((warm_up_epochs, EstimatorSettings::Cd { k, visible })))
    }

    fn decide_optimizer(&self) -> Result<Optimizer> {
        let share = |name, value: Option<f64>, default: f64| {
            let value = value.unwrap_or(default);
            within(name, value, (0.0..1.0).contains(&value), "must be at least 0 and less than 1")?;
            Ok::<f64, Error>(value)
        };
        match self.rule() {
            Rule::Sgd => Ok(Optimizer::Sgd { momentum: share("momentum", self.momentum, 0.0)? }),
            Rule::Adam => {
                let epsilon = self.epsilon.unwrap_or(1e-8);
                within(
                    "epsilon",
                    epsilon,
                    epsilon >= 1e-30 && epsilon.is_finite(),
                    "must be at least 1e-30",
                )?;
                let beta1 = share("beta1", self.beta1, 0.9)?;
                Ok(Optimizer::Adam { beta1, beta2: share("beta2", self.beta2, 0.999)?, epsilon })
            }
        }
    }
}

impl Serialize for CheckedSettings {
    /// The [complete form](Self::settings).
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.settings().serialize(serializer)
    }
}

impl CheckedSettings {
    /// The complete form: every field that belongs to the estimator and the optimiser is set.
    /// Checking it again, for any number of rows, gives the same settings.
    pub fn settings(&self) -> Settings {
        let (warm_up_epochs, warm_up) = match &self.warm_up {
            Some((epochs, estimator)) => (*epochs, Settings::from(estimator)),
            None => (0, Settings::default()),
        };
        let warm_up_k =
            warm_up.k.and_then(|k| if let TourLength::Steps(k) = k { Some(k as usize) } else { None });
        let others = Settings {
            preset: Some(self.preset),
            n_hidden: Some(self.n_hidden),
            init: Some(self.init),
            // With the exact gradient, ladders and coupled chains, only the warm-up has a choice.
            visible: warm_up.visible,
            warm_up_epochs: Some(warm_up_epochs),
            warm_up_k,
            epochs: Some(self.epochs.into()),
            batch_size: Some(self.batch_size),
            drop_last: Some(self.drop_last),
            learning_rate: Some(self.learning_rate),
            schedule: Some(self.schedule),
            // Left out if there are none, so that records of earlier versions stay the same.
            restarts: Some(self.restarts.clone()).filter(|restarts| !restarts.epochs().is_empty()),
            l1: Some(self.l1),
            l2: Some(self.l2),
            clip: Some(self.clip.into()),
            centred: Some(self.centred),
            offset_rate: Some(self.offset_rate),
            redraw_bits: Some(self.redraw_bits),
            eval_every: Some(self.eval_every),
            // Left out if it is not given, so that records of earlier versions stay the same.
            final_se: self.final_se.map(Auto::Given),
            patience: Some(self.patience.into()),
            validation_fraction: Some(self.validation_fraction.into()),
            snapshots: Some(self.snapshots.clone()).filter(|snapshots| *snapshots != Snapshots::Off),
            seed: Some(self.seed),
            ..Settings::default()
        };
        Settings::from(&self.gradient).or(Settings::from(&self.optimizer)).or(others)
    }

    /// Epochs of warm-up; 0 if there is none.
    pub fn warm_up_epochs(&self) -> usize {
        self.warm_up.as_ref().map_or(0, |(epochs, _)| *epochs)
    }

    /// The learning rate at `update` of `n_updates` in `epoch`, all counted from 0.
    pub fn rate(&self, epoch: usize, update: usize, n_updates: usize) -> f64 {
        let (begin, end) = self.restarts.around(epoch);
        let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(self.epochs));
        self.schedule.rate(self.learning_rate, epoch - begin, end - begin, update, n_updates)
    }

    /// Updates in an epoch over `n_rows` rows.
    pub fn n_updates(&self, n_rows: usize) -> usize {
        if self.drop_last { n_rows / self.batch_size } else { n_rows.div_ceil(self.batch_size) }
    }

    /// Rejects settings that do not fit this number of rows.
    pub(crate) fn check_rows(&self, n_rows: usize) -> Result<()> {
        if self.drop_last && (1..self.batch_size).contains(&n_rows) {
            let cure = "larger than the data, and `drop-last` skips incomplete minibatches: nothing is left to train on";
            return refuse("batch-size", self.batch_size, cure);
        }
        // A chain has 2³² random numbers in an epoch, and each of its steps uses up to three of
        // them.
        let warm_up = self.warm_up.as_ref().map(|(_, estimator)| estimator);
        for estimator in [Some(&self.gradient), warm_up].into_iter().flatten() {
            let steps = estimator.steps_of_epoch(self.n_updates(n_rows));
            let cure = "a chain may make at most 2^30 steps per epoch (k times the number of updates)";
            within("k", steps, steps <= 1 << 30, cure)?;
        }
        Ok(())
    }
}

fn refuse<T>(name: &'static str, value: impl ToString, cure: &'static str) -> Result<T> {
    Err(Error::InvalidSetting { name, value: value.to_string(), cure })
}

fn within(name: &'static str, value: impl ToString, good: bool, cure: &'static str) -> Result<()> {
    if good { Ok(()) } else { refuse(name, value, cure) }
}

fn at_least_one(name: &'static str, value: usize, cure: &'static str) -> Result<()> {
    within(name, value, value > 0, cure)
}

/// The number of steps if there are at most `most`.
fn few_steps(k: u32, most: u32, cure: &'static str) -> Result<usize> {
    within("k", k, k <= most, cure)?;
    Ok(k as usize)
}

/// The limit if it passes the test; an error if it does not; `None` if there is no limit.
fn limit<T: Copy + ToString>(
    name: &'static str,
    limit: Option<Limit<T>>,
    good: impl Fn(&T) -> bool,
    cure: &'static str,
) -> Result<Option<T>> {
    let limit = limit.unwrap_or(Limit::Off).get();
    match limit.filter(|limit| !good(limit)) {
        Some(bad) => refuse(name, bad, cure),
        None => Ok(limit),
    }
}
