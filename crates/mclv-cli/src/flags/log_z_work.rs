//! Flags that control how log Z is computed, and how much work this may take.

use super::parse_duration;
use clap::{Args, ValueHint};
use mclv::chain::VisibleChain;
use mclv::partition::{Budget, Method, StepLimit};
use std::path::PathBuf;

/// Settings of the methods for log Z.
#[derive(Args)]
#[command(next_help_heading = "Estimates of log Z")]
pub(crate) struct WorkArgs {
    /// Wanted standard error of log Z; a pilot chooses the number of tours, temperatures or steps
    /// that reaches it [default: for mclv and ladder 0.01, for their likelihoods 0.05; the other
    /// methods have a fixed size without it]
    #[arg(long, value_name = "NATS", conflicts_with = "n_tours")]
    pub(crate) target_se: Option<f64>,
    /// mclv, ladder: number of tours, instead of a wanted standard error
    #[arg(long, alias = "tours", value_name = "N")]
    pub(crate) n_tours: Option<usize>,
    /// mclv: hidden states per row in the stopping set [default: chosen by pilot tours; 1 with
    /// --n-tours]
    #[arg(long, value_name = "M")]
    pub(crate) samples_per_row: Option<usize>,
    /// mclv, ladder: read the stopping set from this file [default: mclv draws it from data, ladder
    /// has none]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stopping_set: Option<PathBuf>,
    /// ladder: read the ladder from this file, which --save-ladder wrote, instead of making it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ladder: Option<PathBuf>,
    /// ladder: write the ladder to this file, to use it again with other seeds or a smaller target
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "ladder")]
    pub(crate) save_ladder: Option<PathBuf>,
    /// mclv, ladder, and any method with --target-se: step budget, including pilots: a number, `minute`
    /// (the steps of about one minute on one core), or `none`; Z by tours is unbiased only with
    /// `none`
    #[arg(long, value_name = "N", default_value_t = StepLimit::Minute)]
    pub(crate) max_steps: StepLimit,
    /// mclv: visible layer of the chain: `sampled` (a true Gibbs chain) or `mean-field` (as in the
    /// paper's code; no guarantee)
    #[arg(long, value_name = "HOW", default_value_t = VisibleChain::Sampled)]
    pub(crate) visible: VisibleChain,
    /// ais, reverse-ais: number of chains
    #[arg(long, alias = "chains", value_name = "N", default_value_t = 128)]
    pub(crate) n_chains: usize,
    /// ais, reverse-ais: number of temperatures (bar chooses its own) [default: 10000, fewer for
    /// large models; with --target-se chosen by a pilot]
    #[arg(long, alias = "betas", value_name = "N")]
    pub(crate) n_betas: Option<usize>,
    /// bar: number of ladders, each a set of tempered chains
    #[arg(long, alias = "ladders", value_name = "N", default_value_t = 8)]
    pub(crate) n_ladders: usize,
    /// bar: steps per ladder, after a burn-in of a quarter of this number [default: 2000; with
    /// --target-se chosen by a pilot]
    #[arg(long, value_name = "N")]
    pub(crate) ladder_steps: Option<usize>,
    /// bar: models that are rungs below the model, such as RUN/snapshots: a folder or model files, in
    /// order [default: temperatures between independent units and the model]
    #[arg(long, value_name = "MODELS", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) rungs: Vec<PathBuf>,
    /// reverse-ais: start at exact samples of the model [default: if drawing them takes only
    /// seconds]
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) exact_samples: Option<bool>,
}

#[derive(Args)]
pub(crate) struct TimeLimit {
    /// exact: longest time that enumeration may take: 90s, 30min, 2h, 3d or none [default: 45s,
    /// which is enough for 30 hidden units on MNIST; 1h with --method exact]
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) time_limit: Option<f64>,
}

impl TimeLimit {
    /// Seconds that an enumeration may take: more if the user chose it by name.
    pub(crate) fn seconds(&self, methods: &[Option<Method>]) -> f64 {
        let by_name = methods.contains(&Some(Method::Exact));
        self.time_limit.unwrap_or(if by_name { 3600.0 } else { Budget::COMMAND.seconds })
    }
}
