//! Settings of a run in a few words.

use mclv::gradient::{Gradient, TourLength, VisibleChain};
use mclv::train::RunRecord;

/// The estimator in a few words.
pub(super) fn estimator(run: &RunRecord) -> String {
    run.input.as_ref().map_or("–".into(), |input| estimator_name(&input.train.gradient))
}

/// `PCD-3`, `LVS-1 (carry, metropolis)`.
fn estimator_name(gradient: &Gradient) -> String {
    let chain =
        |visible: &VisibleChain| if *visible == VisibleChain::MeanField { ", mean field" } else { "" };
    match gradient {
        Gradient::Cd { k, visible } => format!("CD-{k}{}", chain(visible)),
        Gradient::Pcd { k, visible, .. } => format!("PCD-{k}{}", chain(visible)),
        Gradient::Lvs(lvs) => {
            let k = match lvs.k {
                TourLength::Steps(k) => k.to_string(),
                TourLength::Dynamic => "dynamic".into(),
            };
            format!("LVS-{k} ({}, {}{})", word(&lvs.unfinished), word(&lvs.starts), chain(&lvs.visible))
        }
        Gradient::Exact => "exact gradient".into(),
    }
}

/// The name that a setting has in files.
fn word(setting: &impl serde::Serialize) -> String {
    serde_json::to_value(setting).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
