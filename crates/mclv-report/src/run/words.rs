//! Settings of a run in a few words.

use mclv::train::RunRecord;

/// The estimator in a few words.
pub(super) fn estimator(run: &RunRecord) -> String {
    run.settings.as_ref().map_or("–".into(), |settings| settings.gradient.name())
}
