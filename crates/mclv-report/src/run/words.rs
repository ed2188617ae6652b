//! Short texts about the settings of a run.

use mclv::train::RunRecord;

/// The name of the estimator.
pub(super) fn estimator(run: &RunRecord) -> String {
    run.settings.as_ref().map_or("–".into(), |settings| settings.gradient.name())
}
