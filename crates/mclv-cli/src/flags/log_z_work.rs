//! Flags that limit the work spent on log Z.

use super::parse_duration;
use clap::{Args, ValueHint};
use mclv::chain::VisibleChain;
use mclv::partition::{Budget, Method, StepLimit};
use std::path::PathBuf;

/// How much work estimates of log Z may be.
#[derive(Args)]
#[command(next_help_heading = "Estimates of log Z")]
pub(crate) struct WorkArgs {
    /// Standard error of log Z that a pilot chooses the number of tours for [default: 0.01; for likelihoods 0.05]
    #[arg(long, value_name = "NATS", conflicts_with = "n_tours")]
    pub(crate) target_se: Option<f64>,
    /// Number of tours, instead of a target error
    #[arg(long, alias = "tours", value_name = "N")]
    pub(crate) n_tours: Option<usize>,
    /// Hidden states per row in the stopping set [default: as pilots choose; with --n-tours 1]
    #[arg(long, value_name = "M")]
    pub(crate) samples_per_row: Option<usize>,
    /// A stopping set from a file, instead of one from data
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stopping_set: Option<PathBuf>,
    /// Gibbs steps of all tours together, pilots included: a number, `minute` (as many as take a minute on one core), or
    /// `none`; only without a budget are tours unbiased
    #[arg(long, value_name = "N", default_value_t = StepLimit::Minute)]
    pub(crate) max_steps: StepLimit,
    /// Visible layer of tours: `sampled` (a true Gibbs chain) or `mean-field` (the paper's code; no guarantee)
    #[arg(long, value_name = "HOW", default_value_t = VisibleChain::Sampled)]
    pub(crate) visible: VisibleChain,
    /// Chains of ais and reverse-ais (bar: see --n-ladders)
    #[arg(long, alias = "chains", value_name = "N", default_value_t = 128)]
    pub(crate) n_chains: usize,
    /// Temperatures of ais and reverse-ais; bar finds its own by a pilot [default: 10000, fewer for large models]
    #[arg(long, alias = "betas", value_name = "N")]
    pub(crate) n_betas: Option<usize>,
    /// Ladders of tempered chains of bar
    #[arg(long, alias = "ladders", value_name = "N", default_value_t = 8)]
    pub(crate) n_ladders: usize,
    /// Steps of each ladder that count; a quarter as many go before them
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) ladder_steps: usize,
    /// Whether reverse-ais begins at exact samples [default: if they take no more than seconds]
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) exact_samples: Option<bool>,
}

#[derive(Args)]
pub(crate) struct TimeLimit {
    /// Do not enumerate exactly if it would take longer: seconds, or with a unit (90s, 30min, 2h, 3d, none) [default:
    /// 45s, which is enough for 30 hidden units of MNIST; if enumeration is asked for by name, 1h]
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(crate) time_limit: Option<f64>,
}

impl TimeLimit {
    /// Seconds that an enumeration may take; more if the user asked for it by name.
    pub(crate) fn seconds(&self, methods: &[Option<Method>]) -> f64 {
        let by_name = methods.contains(&Some(Method::Exact));
        self.time_limit.unwrap_or(if by_name { 3600.0 } else { Budget::COMMAND.seconds })
    }
}
