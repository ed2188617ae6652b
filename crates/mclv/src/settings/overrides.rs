//! The one definition of every training setting.
//!
//! A setting is a field of [`Settings`]. The field's name is its name in Rust, Python (`n_hidden`),
//! files (`n-hidden`) and flags (`--n-hidden`). Its doc comment is its help text. Its default and
//! its rules are in `rules.rs`.

use super::{
    Auto, EstimatorName, EvalEvery, Limit, Restarts, Rule, Schedule, Snapshots, Starts, Statistics,
    TourLength, Unfinished,
};
use crate::chain::VisibleChain;
use crate::model::Init;
use crate::words::words;
use serde::{Deserialize, Serialize};

/// A set of defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The best settings we know.
    #[default]
    Default,
    /// The protocol of the paper's code: a mean-field chain, no centring, a plateau schedule, and
    /// 15 epochs of CD-1 before tours.
    Paper,
}

words!(Preset as "preset" { Default = "default", Paper = "paper" });

/// Defines [`Settings`] from headings and fields. `#[arg]` holds clap's options for the flag.
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        $($heading:literal { $($(#[doc = $doc:literal])+ #[arg($($arg:tt)*)] $field:ident: $Type:ty,)+ })+
        not flags { $($(#[doc = $doc2:literal])+ #[serde($($serde:tt)*)] $field2:ident: $Type2:ty,)+ }
    ) => {
        $(#[$of_struct])*
        pub struct Settings {
            $($(
                $(#[doc = $doc])+
                #[cfg_attr(feature = "clap", arg(long, help_heading = $heading, $($arg)*))]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$Type>,
            )+)+
            $(
                $(#[doc = $doc2])+
                #[cfg_attr(feature = "clap", arg(skip))]
                #[serde(skip_serializing_if = "Option::is_none", $($serde)*)]
                pub $field2: Option<$Type2>,
            )+
        }

        impl Settings {
            /// The names of all settings, with underscores.
            pub const NAMES: &'static [&'static str] =
                &[$($(stringify!($field),)+)+ $(stringify!($field2),)+];

            /// The names of all settings, with underscores, and their help texts.
            pub const HELP: &'static [(&'static str, &'static str)] =
                &[$($((stringify!($field), concat!($($doc, "\n"),+)),)+)+
                  $((stringify!($field2), concat!($($doc2, "\n"),+)),)+];

            /// Fills the fields that are not set with those of `base`.
            pub(super) fn or(self, base: Self) -> Self {
                Self {
                    $($($field: self.$field.or(base.$field),)+)+
                    $($field2: self.$field2.or(base.$field2),)+
                }
            }
        }
    };
}

settings! {
    /// Settings of a training. Every field is optional; [`check`](Self::check) fills in defaults.
    ///
    /// ```
    /// use mclv::settings::Settings;
    /// let settings = Settings { n_hidden: Some(16), epochs: Some(5.into()), ..Settings::default() };
    /// let checked = settings.check(1000)?;
    /// assert_eq!((checked.n_hidden, checked.epochs, checked.batch_size), (16, 5, 128));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
    #[cfg_attr(feature = "clap", derive(clap::Args))]

    "Model" {
        /// Set of defaults: `default` is the best we know, `paper` is the protocol of the paper's
        /// code. Default: default.
        #[arg()]
        preset: Preset,
        /// Number of hidden units. Default: 25.
        #[arg(aliases = ["hidden", "n-components"], value_name = "N")]
        n_hidden: usize,
        /// Initial parameters: `data` computes biases and weight scale from the data, `paper`
        /// copies the paper's code. Default: data (paper: paper).
        #[arg(value_name = "HOW")]
        init: Init,
    }

    "Gradient" {
        /// Gradient estimator: `cd` (contrastive divergence), `pcd` (persistent contrastive
        /// divergence), `lvs` (Las Vegas tours), `tempered` (parallel tempering), `ucd` (unbiased
        /// contrastive divergence) or `exact` (enumeration, small models only).
        /// Default: lvs up to 64 hidden units, else pcd (paper: lvs).
        #[arg()]
        gradient: EstimatorName,
        /// Gibbs steps per update. Tours also accept `dynamic`: run until all tours return.
        /// Default: 3 for pcd and for lvs with `unfinished = carry`, else 1 (paper: 1).
        #[arg(value_name = "K")]
        k: TourLength,
        /// Number of persistent chains, of tours per update, or of ladders (tempered); `auto`: one
        /// per row of the minibatch, or 32 ladders. Default: auto (paper: 128, or 32 ladders).
        #[arg(aliases = ["chains", "tours"], value_name = "N")]
        n_chains: Auto<usize>,
        /// Number of rungs of each ladder, the model's own included (tempered only). More rungs
        /// exchange more often, and cost more. Default: 10 up to 64 hidden units, else 20.
        #[arg(value_name = "N")]
        n_rungs: usize,
        /// Gibbs steps after which two coupled chains that have not met are cut (ucd only). Each cut
        /// biases the gradient, and is counted. Default: 1000.
        #[arg(value_name = "N")]
        max_meeting: usize,
        /// Visible layer of the chain: `sampled` is a true Gibbs chain, `mean-field` uses
        /// probabilities as the paper's code does. Default: sampled (paper: mean-field).
        #[arg(value_name = "HOW")]
        visible: VisibleChain,
    }

    "Tours" {
        /// What to do with tours that have not returned: `drop` them (as in the paper), `keep` the
        /// steps made so far, or `carry` them over to the next update. Default: carry (paper:
        /// drop).
        #[arg(value_name = "POLICY")]
        unfinished: Unfinished,
        /// How tours choose their starts: `fresh` evaluates the whole stopping set at every update,
        /// `weighted` draws from an older table and weights the tours, `metropolis` proposes from
        /// an older table and accepts or rejects (only with `unfinished = carry`). Default:
        /// metropolis for carry, else weighted (paper: fresh).
        #[arg(value_name = "HOW")]
        starts: Starts,
        /// What is averaged along tours: the sampled states (`sampled`), or with E[h|v] or E[v|h]
        /// in place of one layer. Default: mean-hidden (paper: sampled).
        #[arg(value_name = "WHAT")]
        statistics: Statistics,
        /// Number of hidden states drawn per row for the stopping set. Default: 1.
        #[arg(value_name = "M")]
        samples_per_row: usize,
        /// Share of the training rows used for the stopping set; `auto`: 3 %, but at least 1,000
        /// rows. Default: auto for carry, else 1 (paper: 1).
        #[arg(value_name = "SHARE")]
        row_fraction: Auto<f64>,
        /// Epochs until the stopping set is drawn again. Default: 1.
        #[arg(value_name = "EPOCHS")]
        redraw_every: usize,
        /// Rebuild the table of starts when the effective sample size (or the acceptance rate)
        /// falls below this share. Default: 0.2.
        #[arg(value_name = "SHARE")]
        min_ess: f64,
        /// Adapt the size of the stopping set (rows and samples per row) until this share of tours
        /// returns; `off`: do not adapt it. Default: off.
        #[arg(value_name = "SHARE")]
        target_completion: Limit<f64>,
        /// Memory limit of an adaptive stopping set: the largest number of states drawn for it.
        /// Default: 1000000.
        #[arg(value_name = "N")]
        max_states: usize,
        /// Time limit of an adaptive stopping set: states drawn and evaluated for it per Gibbs step
        /// of the tours; `off`: no limit. Default: off.
        #[arg(value_name = "RATIO")]
        max_set_cost: Limit<f64>,
    }

    "Warm-up" {
        /// Epochs of contrastive divergence before the chosen estimator takes over, with the same
        /// kind of visible layer. Default: 0 (paper: 15 before lvs).
        #[arg(value_name = "EPOCHS")]
        warm_up_epochs: usize,
        /// Gibbs steps per update during the warm-up. Default: 1.
        #[arg(value_name = "K")]
        warm_up_k: usize,
    }

    "Optimisation" {
        /// Passes over the training rows; `auto`: 100, or more if 100 passes make fewer than 10,000
        /// updates. Default: auto (paper: 100).
        #[arg(value_name = "N")]
        epochs: Auto<usize>,
        /// Rows per update. Default: 128.
        #[arg(value_name = "N")]
        batch_size: usize,
        /// Skip the last minibatch of an epoch if it is incomplete. Default: false (paper: true).
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        drop_last: bool,
        /// Initial learning rate. Default: 0.6 for lvs with `unfinished = carry` up to 64 hidden
        /// units, else 0.4 (paper: 0.1); 0.01 with `optimizer = adam`.
        #[arg(visible_alias = "lr", value_name = "RATE")]
        learning_rate: f64,
        /// How the learning rate changes: `linear` or `cosine` falls to zero, `plateau` falls every
        /// ten epochs (as in the paper), `constant` does not fall. Default: linear (paper:
        /// plateau).
        #[arg(value_name = "HOW")]
        schedule: Schedule,
        /// Epochs at which the schedule of the learning rate begins again, such as `100,150`;
        /// `off`: it does not begin again. Default: off.
        #[arg(value_name = "EPOCHS")]
        restarts: Restarts,
        /// Optimiser. Default: sgd.
        #[arg()]
        optimizer: Rule,
        /// Momentum of sgd: the share of the previous step that is added to the next. Default: 0.
        #[arg(value_name = "SHARE")]
        momentum: f64,
        /// Decay rate of the mean gradient (adam only). Default: 0.9.
        #[arg(value_name = "SHARE")]
        beta1: f64,
        /// Decay rate of the mean squared gradient (adam only). Default: 0.999.
        #[arg(value_name = "SHARE")]
        beta2: f64,
        /// Small constant that keeps steps finite (adam only). Default: 1e-8.
        #[arg(value_name = "NUMBER")]
        epsilon: f64,
        /// L1 weight decay (absolute values). Default: 0.
        #[arg(value_name = "RATE")]
        l1: f64,
        /// L2 weight decay (squares). Default: 0.
        #[arg(value_name = "RATE")]
        l2: f64,
        /// Largest norm of a gradient; longer ones are scaled down; `off`: no limit. Default: off.
        #[arg(value_name = "NORM")]
        clip: Limit<f64>,
        /// Centre the gradient: subtract the mean activity of each unit. Default: true (paper:
        /// false).
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        centred: bool,
        /// Weight of one minibatch in the running mean of hidden activities that centring
        /// subtracts. Default: 0.01.
        #[arg(value_name = "SHARE")]
        offset_rate: f64,
        /// Resample the bits of grey data every epoch (with `binarize = bernoulli`). Default:
        /// false.
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        redraw_bits: bool,
    }

    "Watching" {
        /// Epochs between two evaluations of the likelihood; `auto`: the initial model, epochs 1,
        /// 2, 5, 10, …, and more if they fit into 10 % of the time; `never`: not even at the end.
        /// Default: auto.
        #[arg(value_name = "EPOCHS")]
        eval_every: EvalEvery,
        /// Standard error of log Z that the last evaluation aims for within a minute; `auto`: 0.02,
        /// or what 2 seconds or 10 % of the time allow. Default: auto.
        #[arg(value_name = "NATS")]
        final_se: Auto<f64>,
        /// Stop after this number of evaluations without a better validation likelihood; `off`: do
        /// not stop early. Default: off.
        #[arg(value_name = "N")]
        patience: Limit<usize>,
        /// Share of the training rows to hold out for validation, instead of the data set's own
        /// validation rows; `off`: hold out none. Default: off.
        #[arg(value_name = "SHARE")]
        validation_fraction: Limit<f64>,
        /// Epochs after which a copy of the model is kept: a list such as `1,2,5,10` (0 is the
        /// initial model), `log` (1, 2, 5, 10, 20, 50, …) or `off`. Default: off.
        #[arg(value_name = "EPOCHS")]
        snapshots: Snapshots,
    }

    not flags {
        /// Seed of all random numbers; the same seed gives the same result. Default: 0.
        #[serde(with = "crate::rng::seed::optional")]
        seed: u64,
    }
}

/// An optional setting, whatever its type.
pub(super) trait Field {
    fn is_set(&self) -> bool;
    fn unset(&mut self);
}

impl<T> Field for Option<T> {
    fn is_set(&self) -> bool {
        self.is_some()
    }

    fn unset(&mut self) {
        *self = None;
    }
}

impl Settings {
    /// The paper's protocol ([`Preset::Paper`]), with nothing else set.
    pub fn paper() -> Self {
        Self { preset: Some(Preset::Paper), ..Self::default() }
    }

    /// Combines these settings with those of `base`. A field that is set here wins.
    ///
    /// A setting of `base` that belongs to a choice is dropped together with that choice:
    ///
    /// - If these settings choose another estimator, the estimator settings of `base` are dropped.
    /// - If they choose another optimiser, its constants and the learning rate are dropped.
    /// - If they choose another policy for unfinished tours, starts that contradict it are dropped.
    ///
    /// For example, PCD over the settings of a run with tours gets the defaults of PCD and the
    /// learning rate of that run. In one set of settings, [`check`](Self::check) rejects PCD
    /// together with starts of tours.
    #[must_use]
    pub fn over(self, mut base: Self) -> Self {
        if self.gradient.is_some_and(|estimator| estimator != base.estimator()) {
            base.of_estimators().into_iter().for_each(|(_, field, _)| field.unset());
        }
        if self.optimizer.is_some_and(|rule| rule != base.rule()) {
            base.of_rules().into_iter().for_each(|(_, field, _)| field.unset());
            base.learning_rate = None;
        }
        if let (Some(policy), Some(starts)) = (self.unfinished, base.starts)
            && !starts.goes_with(policy)
        {
            base.starts = None;
        }
        self.or(base)
    }

    /// The settings that only some estimators have, with those estimators.
    pub(super) fn of_estimators(&mut self) -> Vec<(&'static str, &mut dyn Field, &'static [EstimatorName])> {
        use EstimatorName::{Cd, Lvs, Pcd, Tempered, Ucd};
        vec![
            ("k", &mut self.k, &[Cd, Pcd, Lvs, Tempered, Ucd]),
            ("visible", &mut self.visible, &[Cd, Pcd, Lvs]),
            ("n-chains", &mut self.n_chains, &[Pcd, Lvs, Tempered]),
            ("n-rungs", &mut self.n_rungs, &[Tempered]),
            ("max-meeting", &mut self.max_meeting, &[Ucd]),
            ("unfinished", &mut self.unfinished, &[Lvs]),
            ("starts", &mut self.starts, &[Lvs]),
            ("statistics", &mut self.statistics, &[Lvs]),
            ("samples-per-row", &mut self.samples_per_row, &[Lvs]),
            ("row-fraction", &mut self.row_fraction, &[Lvs]),
            ("redraw-every", &mut self.redraw_every, &[Lvs]),
            ("min-ess", &mut self.min_ess, &[Lvs]),
            ("target-completion", &mut self.target_completion, &[Lvs]),
            ("max-states", &mut self.max_states, &[Lvs]),
            ("max-set-cost", &mut self.max_set_cost, &[Lvs]),
        ]
    }

    /// The settings that only one optimiser has.
    pub(super) fn of_rules(&mut self) -> Vec<(&'static str, &mut dyn Field, Rule)> {
        vec![
            ("momentum", &mut self.momentum, Rule::Sgd),
            ("beta1", &mut self.beta1, Rule::Adam),
            ("beta2", &mut self.beta2, Rule::Adam),
            ("epsilon", &mut self.epsilon, Rule::Adam),
        ]
    }
}
