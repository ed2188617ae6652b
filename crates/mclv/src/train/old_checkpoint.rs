//! Read the estimator's state from a checkpoint of version 1, which numbered its counts instead of
//! naming them.

use crate::gradient::{Array, State};
use serde_json::{Map, Value};

/// The names of the counts of tours in their order: those of the epoch, the size of the set, and
/// the counts since it was chosen.
const INFO: [&str; 15] = [
    "n_started",
    "n_completed",
    "n_completed_at_own_start",
    "n_truncated",
    "n_steps",
    "total_length",
    "longest",
    "n_proposed",
    "n_accepted",
    "n_skipped_updates",
    "n_tables",
    "set_size",
    "samples_per_row",
    "n_carried",
    "n_rows",
];
const SIZE: [&str; 2] = ["samples_per_row", "n_rows"];
const SEEN: [&str; 4] = ["n_completed", "n_tried", "n_steps", "n_states"];

/// Returns the state in the form of this version. `arrays` has the names of version 1.
pub(super) fn upgrade(arrays: impl Iterator<Item = (String, Array)>) -> State {
    let mut state = State::default();
    let (mut counts, mut numbers) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        match (name.as_str(), array) {
            ("counts", Array::Words(words)) => counts = words,
            ("info", Array::Numbers(values)) => numbers = values,
            ("tours", Array::Words(words)) => state = state.with_words("chains", words),
            (name, Array::Words(words)) => state = state.with_words(name, words),
            (name, Array::Numbers(values)) => state = state.with_numbers(name, values),
        }
    }
    // Other estimators have no counts. If counts are damaged, the estimator reports it.
    if let (&[min_ess, log_z_s], 21) = (numbers.as_slice(), counts.len()) {
        let mut counts = counts.into_iter();
        let mut named = |names: &[&str]| -> Map<String, Value> {
            names.iter().zip(counts.by_ref()).map(|(&name, count)| (name.into(), count.into())).collect()
        };
        let mut info = named(&INFO);
        info.extend([("min_ess".into(), min_ess.into()), ("log_z_s".into(), log_z_s.into())]);
        state.facts = serde_json::json!({ "info": info, "size": named(&SIZE), "seen": named(&SEEN) });
    }
    state
}
