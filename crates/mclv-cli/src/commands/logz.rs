//! `mclv logz`: the partition function of a model.

use crate::args::{LogzArgs, Method, TimeLimit};
use crate::output::{Output, table};
use crate::watch::Watch;
use anyhow::{Context, anyhow};
use mclv::partition::{self, ExactSettings, LogZ};
use mclv::{ModelFile, Rbm, human_seconds};
use serde_json::json;

pub(crate) fn run(args: &LogzArgs, out: &Output) -> anyhow::Result<()> {
    let model = ModelFile::load(&args.model)?;
    let log_z = match args.method {
        Method::Exact => exact(&model.rbm, &args.limit)?,
    };
    out.print(&json!({ "model": args.model.to_string_lossy(), "estimates": [log_z] }), || {
        let row = vec![
            log_z.method.clone(),
            format!("{:.6}", log_z.value),
            format!("{}", log_z.std_err),
            log_z.guarantee.to_string(),
            format!("2^{}", log_z.n_states.log2()),
            human_seconds(log_z.seconds),
        ];
        table(&["method", "log Z (nats)", "std. error", "guarantee", "states", "time"], &[1, 2, 4, 5], [row])
    })
}

/// `log Z` by enumeration, with a progress bar.
pub(crate) fn exact(rbm: &Rbm, limit: &TimeLimit) -> anyhow::Result<LogZ> {
    let watch = Watch::new("enumerating", "states");
    partition::exact(rbm, &ExactSettings { time_limit: limit.time_limit }, &watch)
        .map_err(|e| match e {
            mclv::Error::TooSlow { limit, .. } if limit.is_finite() => {
                anyhow!("{e} with --time-limit TIME (or none)")
            }
            e => e.into(),
        })
        .context("log Z")
}
