//! `mclv selftest`: checks the program on this machine.

use crate::output::{Output, table};
use serde_json::json;

pub(crate) fn run(out: &Output) -> anyhow::Result<()> {
    let checks = mclv::selftest();
    let n_failed = checks.iter().filter(|c| !c.passed).count();
    let false_alarm: f64 = checks.iter().map(|c| c.false_alarm).sum();
    let json = json!({ "kernels": mclv::kernels(), "checks": checks, "n_failed": n_failed,
        "false_alarm": false_alarm });
    out.print(&json, || {
        let rows = checks.iter().map(|c| {
            let passed = if c.passed { "ok" } else { "FAILED" };
            let detail = match c.false_alarm {
                0.0 => c.detail.clone(),
                rate => format!("{}; false-alarm rate {rate:.0e}", c.detail),
            };
            vec![passed.to_owned(), c.name.into(), detail]
        });
        let verdict = match n_failed {
            0 => format!("All {} checks passed; kernels: {}.", checks.len(), mclv::kernels()),
            n => format!("{n} of {} checks FAILED: do not trust results from this machine.", checks.len()),
        };
        format!(
            "{}\n{verdict}\nSeeds are fixed. With random seeds, a correct machine would fail with probability \
             {false_alarm:.0e}.",
            table(&["", "check", "measured"], &[], rows)
        )
    })?;
    anyhow::ensure!(n_failed == 0, "{n_failed} checks failed");
    Ok(())
}
