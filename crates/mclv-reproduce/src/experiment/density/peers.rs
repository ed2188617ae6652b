//! Models of other packages, from a folder.

use super::Set;
use crate::options::Options;
use crate::subject::{FileOf, Subject};
use crate::task::Task;
use mclv::data::Split;
use mclv::{Error, ModelFile, Result, read_file, read_text};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// The largest model and the largest record that are read.
const MAX_MODEL: u64 = 1 << 30;
const MAX_RECORD: u64 = 1 << 20;

/// The models of one package for one set.
pub(super) struct Peer {
    pub(super) set: String,
    /// The package and its version.
    pub(super) package: String,
    /// What its settings are, in words.
    pub(super) settings: String,
    /// Seconds of one core that all trials took.
    pub(super) tuning_seconds: f64,
    /// The models at the end, one for each seed.
    pub(super) last: Vec<PeerModel>,
    /// Models before the end, of the first seed.
    pub(super) before: Vec<PeerModel>,
}

/// A model of another package.
pub(super) struct PeerModel {
    pub(super) file: FileOf,
    /// Seconds of one core that its training took.
    pub(super) seconds: f64,
}

impl PeerModel {
    pub(super) fn score(&self, set: &Set, split: Split) -> Task {
        set.score(Subject::File(self.file.clone()), split)
    }
}

/// A record that a script writes beside its models, `SET.PACKAGE.json`.
#[derive(Deserialize)]
struct RecordOfPeer {
    package: String,
    settings: serde_json::Map<String, serde_json::Value>,
    tuning_seconds: f64,
    models: Vec<RecordOfModel>,
}

#[derive(Deserialize)]
struct RecordOfModel {
    file: String,
    seconds: f64,
    #[serde(rename = "final")]
    is_final: bool,
}

/// Reads the records and models in the folder of the options.
pub(super) fn read(options: &Options, sets: &[Set]) -> Result<Vec<Peer>> {
    let Some(folder) = &options.models else { return Ok(Vec::new()) };
    let entries = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    let mut peers = Vec::new();
    for name in names {
        let set =
            sets.iter().find(|set| name.strip_prefix(&set.name).is_some_and(|rest| rest.starts_with('.')));
        if let Some(set) = set {
            peers.push(peer(folder, &name, set)?);
        }
    }
    Ok(peers)
}

fn peer(folder: &Path, name: &str, set: &Set) -> Result<Peer> {
    let path = folder.join(name);
    let record: RecordOfPeer = serde_json::from_str(&read_text(&path, MAX_RECORD)?)
        .map_err(|e| Error::malformed(&path, format!("it is not a record of models: {e}")))?;
    let settings: Vec<String> =
        record.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let (mut last, mut before) = (Vec::new(), Vec::new());
    for model in record.models {
        let path = folder.join(&model.file);
        let rbm = ModelFile::load(&path)?.rbm;
        if rbm.n_visible() != set.n_variables {
            let problem =
                format!("it has {} visible units, {} has {}", rbm.n_visible(), set.name, set.n_variables);
            return Err(Error::malformed(&path, problem));
        }
        let sha256 = Sha256::digest(read_file(&path, MAX_MODEL)?);
        let sha256 = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = FileOf { name: model.file, sha256, n_hidden: rbm.n_hidden(), path };
        let group = if model.is_final { &mut last } else { &mut before };
        group.push(PeerModel { file, seconds: model.seconds });
    }
    Ok(Peer {
        set: set.name.clone(),
        package: record.package,
        settings: settings.join(", "),
        tuning_seconds: record.tuning_seconds,
        last,
        before,
    })
}
