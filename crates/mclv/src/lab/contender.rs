//! Read the name of an estimator and its settings: `lvs:drop:1`, `pcd:1:n-chains=50`.

use super::{LabSettings, names, persists};
use crate::model::Rbm;
use crate::settings::{EstimatorName, EstimatorSettings, Settings, TourLength, Unfinished};
use crate::words::unknown;
use crate::{Error, Result};
use serde_json::{Map, Value};

/// The settings that an estimator may be given by name.
const SETTINGS: [&str; 11] = [
    "k",
    "n-chains",
    "n-rungs",
    "max-meeting",
    "visible",
    "unfinished",
    "starts",
    "statistics",
    "samples-per-row",
    "row-fraction",
    "min-ess",
];

/// An estimator in the laboratory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contender {
    /// As the user has written it.
    pub(super) text: String,
    pub(super) settings: EstimatorSettings,
    /// The number of rows in a minibatch.
    pub(super) n_rows: usize,
}

impl Contender {
    /// Reads an estimator for a model, data of `n_all` rows, and minibatches of `n_rows`.
    pub(super) fn new(text: &str, rbm: &Rbm, n_all: usize, n_rows: usize) -> Result<Self> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let name: EstimatorName = name.parse().map_err(|_| unknown("estimators", name, &names()))?;
        let mut fields = Map::new();
        for part in parts {
            let (field, value) = match part.split_once('=') {
                Some((field, value)) if SETTINGS.contains(&field) => (field, value),
                Some((field, _)) => return Err(unknown("settings of estimators", field, &SETTINGS)),
                None if part.parse::<Unfinished>().is_ok() => ("unfinished", part),
                None if part.parse::<TourLength>().is_ok() => ("k", part),
                None => {
                    let cure = "after the name of an estimator come drop, keep or carry (lvs), the number of Gibbs \
                                steps, or a setting such as n-chains=50";
                    let (name, value) = ("estimators", text.into());
                    return Err(Error::InvalidSetting { name, value, cure });
                }
            };
            let value = serde_json::from_str::<serde_json::Number>(value)
                .map_or_else(|_| Value::from(value), Value::Number);
            fields.insert(field.into(), value);
        }
        let cure = |e: serde_json::Error| {
            let (name, value) = ("estimators", text.into());
            Error::InvalidChoice { name, value, cure: e.to_string() }
        };
        let given: Settings = serde_json::from_value(Value::Object(fields)).map_err(cure)?;
        let settings = Settings {
            gradient: Some(name),
            n_hidden: Some(rbm.n_hidden()),
            batch_size: Some(n_rows),
            ..given
        };
        Ok(Self { text: text.into(), settings: settings.check(n_all)?.gradient, n_rows })
    }

    /// The number of updates that all estimates take.
    pub(super) fn n_updates(&self, settings: &LabSettings) -> u64 {
        let of_each = if persists(&self.settings) { settings.burn_in + 1 } else { 1 };
        (of_each * settings.n_replicates) as u64
    }

    /// Returns true if tours that are cut do not count.
    pub(super) fn drops_tours(&self) -> bool {
        matches!(&self.settings, EstimatorSettings::Lvs(lvs) if lvs.unfinished == Unfinished::Drop)
    }

    /// The number of steps after which tours or pairs are cut.
    pub(super) fn cut_at(&self) -> u64 {
        match &self.settings {
            EstimatorSettings::Lvs(lvs) => u64::from(lvs.k.limit()),
            EstimatorSettings::Ucd { max_meeting, .. } => *max_meeting as u64,
            _ => 0,
        }
    }

    /// The number of Gibbs steps of an update, if it is always the same.
    pub(super) fn fixed_steps(&self) -> Option<u64> {
        let steps = match &self.settings {
            EstimatorSettings::Cd { k, .. } => k * self.n_rows,
            EstimatorSettings::Pcd { k, n_chains, .. } => k * n_chains.unwrap_or(self.n_rows),
            EstimatorSettings::Tempered { k, n_chains, n_rungs } => k * n_chains * n_rungs,
            EstimatorSettings::Exact => 0,
            EstimatorSettings::Lvs(_) | EstimatorSettings::Ucd { .. } => return None,
        };
        Some(steps as u64)
    }
}
