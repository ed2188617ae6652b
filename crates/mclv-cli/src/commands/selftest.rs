//! `mclv selftest`: check the program on this machine.

use crate::output::{Output, table};
use serde_json::json;

pub(crate) fn run(out: &Output) -> anyhow::Result<()> {
    let checks = mclv::selftest();
    let n_failed = checks.iter().filter(|c| !c.passed).count();
    out.print(&json!({ "kernels": mclv::kernels(), "checks": checks, "n_failed": n_failed }), || {
        let rows = checks.iter().map(|c| {
            vec![if c.passed { "ok".into() } else { "FAILED".to_owned() }, c.name.into(), c.detail.clone()]
        });
        let verdict = match n_failed {
            0 => format!("All {} checks passed; kernels: {}.", checks.len(), mclv::kernels()),
            n => format!("{n} of {} checks FAILED: do not trust results from this machine.", checks.len()),
        };
        format!("{}\n{verdict}", table(&["", "check", "measured"], &[], rows))
    })?;
    anyhow::ensure!(n_failed == 0, "{n_failed} checks failed");
    Ok(())
}
