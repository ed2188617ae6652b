//! `mclv selftest`: check the program on this machine.

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
            let chance = if c.false_alarm > 0.0 { format!("{:.0e}", c.false_alarm) } else { "never".into() };
            vec![passed.to_owned(), c.name.into(), c.detail.clone(), chance]
        });
        let verdict = match n_failed {
            0 => format!("All {} checks passed; kernels: {}.", checks.len(), mclv::kernels()),
            n => format!("{n} of {} checks FAILED: do not trust results from this machine.", checks.len()),
        };
        format!(
            "{}\n{verdict} With random seeds, a right machine would fail one time in {:.0}; the seeds are fixed.",
            table(&["", "check", "measured", "false alarm"], &[3], rows),
            1.0 / false_alarm
        )
    })?;
    anyhow::ensure!(n_failed == 0, "{n_failed} checks failed");
    Ok(())
}
