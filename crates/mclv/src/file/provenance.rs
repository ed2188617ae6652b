//! Describe how a model was made.

use crate::data::DataProvenance;
use serde::{Deserialize, Serialize};

/// The version of the model format that this program writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The provenance of a model: enough to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The version of the model format.
    pub format_version: u32,
    /// The version of the program that wrote the file. Empty if the file came from elsewhere.
    pub mclv_version: String,
    /// The command that made the model, with all its settings.
    pub settings: serde_json::Value,
    /// The seed of the random numbers.
    pub seed: Option<u64>,
    /// The data that the model was made from.
    pub data: Option<DataProvenance>,
    /// The metrics at the end of training, and the best ones.
    pub history: serde_json::Value,
    /// The file that the model was imported from, if it was imported.
    pub imported_from: Option<String>,
}

impl Default for Provenance {
    fn default() -> Self {
        Self {
            format_version: FORMAT_VERSION,
            mclv_version: env!("CARGO_PKG_VERSION").into(),
            settings: serde_json::Value::Null,
            seed: None,
            data: None,
            history: serde_json::Value::Null,
            imported_from: None,
        }
    }
}

impl Provenance {
    /// Describes a model read from a foreign file.
    pub(crate) fn imported(path: &std::path::Path) -> Self {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        Self { mclv_version: String::new(), imported_from: name, ..Self::default() }
    }
}
