//! Read what there is of a run.

use mclv::gradient::{Gradient, TourLength, VisibleChain};
use mclv::train::{Metrics, RunInput, Snapshot};
use mclv::{Error, ModelFile, Result};
use std::path::{Path, PathBuf};

/// A run folder, as far as it could be read.
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Its name: the folder's.
    pub name: String,
    /// The settings.
    pub input: Option<RunInput>,
    /// The text of `config.toml`.
    pub config: Option<String>,
    /// A line an epoch.
    pub metrics: Vec<Metrics>,
    /// The model at the end.
    pub model: Option<ModelFile>,
    /// The last checkpoint.
    pub snapshot: Option<Snapshot>,
    /// What is missing or damaged, in sentences.
    pub problems: Vec<String>,
}

impl RunFolder {
    /// Read a run folder.
    ///
    /// # Errors
    /// If it is no folder, or holds nothing of a run.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            let kind =
                if path.exists() { std::io::ErrorKind::NotADirectory } else { std::io::ErrorKind::NotFound };
            return Err(Error::io("read the run folder", path)(kind.into()));
        }
        let mut problems = Vec::new();
        let config_path = path.join("config.toml");
        let config = keep(
            std::fs::read_to_string(&config_path).map_err(Error::io("read", &config_path)),
            &mut problems,
        );
        let input =
            config.as_ref().and_then(|text| keep(RunInput::from_toml(text, &config_path), &mut problems));
        let metrics = read_metrics(&path.join("metrics.jsonl"), &mut problems);
        let snapshot = keep(Snapshot::load(path), &mut problems);
        let model_path = path.join("model.safetensors");
        let ended = model_path.exists();
        let done = metrics.last().map_or(0, |m| m.epoch);
        if ended && done == 0 {
            problems.push(format!("{}: no epoch is recorded", path.join("metrics.jsonl").display()));
        }
        // Before the end of training it is no loss.
        if !ended && input.as_ref().is_some_and(|input| input.train.epochs == done) {
            problems.push(format!("{} is not there, although all epochs are made", model_path.display()));
        }
        let model_path = if ended { model_path } else { path.join("best.safetensors") };
        let model =
            if model_path.exists() { keep(ModelFile::load(&model_path), &mut problems) } else { None };
        if input.is_none() && metrics.is_empty() && model.is_none() && snapshot.is_none() {
            return Err(Error::malformed(
                path,
                "holds nothing of a run: no config.toml, metrics.jsonl or model that can be read",
            ));
        }
        let whole = path.canonicalize().unwrap_or_else(|_| path.into());
        let name = whole
            .file_name()
            .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        Ok(Self { path: path.into(), name, input, config, metrics, model, snapshot, problems })
    }

    /// The last epoch with a likelihood.
    pub fn last_evaluated(&self) -> Option<&Metrics> {
        self.metrics.iter().rev().find(|m| m.train_log_likelihood.is_some())
    }

    /// The best validation likelihood (training, if there are no validation rows) and its epoch.
    pub fn best(&self) -> Option<(usize, f64)> {
        let judged =
            |m: &Metrics| m.validation_log_likelihood.or(m.train_log_likelihood).filter(|x| x.is_finite());
        let evaluated = self.metrics.iter().filter_map(|m| Some((m.epoch, judged(m)?)));
        evaluated.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Whether all epochs were made.
    pub fn is_finished(&self) -> bool {
        let done = self.metrics.last().map_or(0, |m| m.epoch);
        self.path.join("model.safetensors").exists()
            || self.input.as_ref().is_some_and(|i| i.train.epochs == done)
    }

    /// The estimator in a few words.
    pub fn estimator(&self) -> String {
        self.input.as_ref().map_or("–".into(), |input| estimator_name(&input.train.gradient))
    }

    /// Every setting by its path, such as `train.gradient.k`.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut flat = Vec::new();
        if let Some(input) = &self.input {
            flatten("", &serde_json::to_value(input).unwrap_or_default(), &mut flat);
        }
        flat
    }
}

/// The value, or what is wrong noted.
fn keep<T>(result: Result<T>, problems: &mut Vec<String>) -> Option<T> {
    result.map_err(|e| problems.push(e.to_string())).ok()
}

fn read_metrics(path: &Path, problems: &mut Vec<String>) -> Vec<Metrics> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) => {
            problems.push(Error::io("read", path)(e).to_string());
            return Vec::new();
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    // The last line of a run under way may be half written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let (mut metrics, mut damaged) = (Vec::new(), Vec::new());
    for (k, line) in whole.lines().enumerate() {
        match serde_json::from_str::<Metrics>(line) {
            Ok(m) => metrics.push(m),
            Err(_) => damaged.push(k + 1),
        }
    }
    if let Some(first) = damaged.first() {
        let n = damaged.len();
        problems
            .push(format!("{}: {n} damaged lines are left out, the first is line {first}", path.display()));
    }
    metrics
}

fn flatten(name: &str, value: &serde_json::Value, flat: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, flat);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => flat.push((name.into(), text.clone())),
        value => flat.push((name.into(), value.to_string())),
    }
}

/// `PCD-3`, `LVS-1 (carry, metropolis)`.
pub fn estimator_name(gradient: &Gradient) -> String {
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
