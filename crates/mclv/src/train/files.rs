//! Write the folder of a run: settings, metrics, models, checkpoints.

use super::best::Best;
use super::checkpoint;
use super::folder::{MAX_METRICS, RunFolder};
use super::monitor::Metrics;
use super::run::Description;
use super::sitting::Sitting;
use super::trainer::TrainerState;
use crate::data::FileDigest;
use crate::file::{ModelFile, Owner, write_inside};
use crate::model::Rbm;
use crate::source::{open_file, read_file};
use crate::team;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Settings for checkpoints: how often they are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoints {
    /// The number of epochs between two checkpoints.
    pub every_epochs: usize,
    /// The number of minutes after which a checkpoint is written even if fewer epochs have passed.
    pub every_minutes: f64,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Self { every_epochs: 10, every_minutes: 5.0 }
    }
}

/// The values of a checkpoint besides those of the trainer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progressed {
    /// The length of `metrics.jsonl` that belongs to this state.
    metrics_bytes: u64,
    /// Seconds of training so far.
    seconds: f64,
    #[serde(flatten)]
    best: Best,
    /// The SHA-256 of the run's data.
    data_sha256: String,
    weights_sha256: Option<String>,
    /// The digests of the files of parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileDigest>,
}

/// The files of a run in progress.
pub(super) struct RunFiles {
    folder: RunFolder,
    description: Description,
    checkpoints: Checkpoints,
    metrics_bytes: u64,
    last_checkpoint: Instant,
    /// The seconds that writing the last checkpoint took.
    checkpoint_seconds: f64,
    /// This sitting, once it has begun.
    sitting: Option<Sitting>,
    /// Nobody else writes into the folder meanwhile.
    _owner: Owner,
}

/// A run as it was read from its folder.
pub(super) struct Resumed {
    pub(super) files: RunFiles,
    pub(super) state: TrainerState,
    pub(super) best: Best,
    pub(super) seconds: f64,
    pub(super) history: Vec<Metrics>,
}

impl RunFiles {
    /// Rejects a folder that holds a run.
    pub(super) fn check_new(path: &Path) -> Result<()> {
        // With several ranks, the first may already have begun to write when others look.
        team::together(if team::is_first() && RunFolder::new(path).holds_a_run() {
            Err(Error::InvalidSetting {
                name: "run folder",
                value: path.display().to_string(),
                cure: "it holds a run already: resume that run, or choose another folder",
            })
        } else {
            Ok(())
        })
    }

    /// Begins a run in a new folder.
    pub(super) fn create(
        path: &Path,
        description: Description,
        checkpoints: Checkpoints,
        state: &TrainerState,
    ) -> Result<Self> {
        let made = if team::is_first() { std::fs::create_dir_all(path) } else { Ok(()) };
        team::together(made.map_err(Error::io("create", path)))?;
        let owner = Owner::of(path)?;
        // Another process may have begun a run since the settings were read.
        Self::check_new(path)?;
        let mut files = Self::new(path, description, checkpoints, owner);
        files.folder.make(&files.folder.checkpoints())?;
        write_inside(&files.folder.metrics(), b"")?;
        files.save_checkpoint(state, &Best::default(), 0.0)?;
        // This file is written last: a folder with a config has everything needed to resume.
        let config = files.folder.config();
        write_inside(&config, files.description.input.to_toml().as_bytes())?;
        Ok(files)
    }

    /// Reads a run that was begun with data and settings as in `description`, for a model of the
    /// size of `rbm`. `owner` is that of the folder `path`.
    pub(super) fn resume(
        path: &Path,
        description: Description,
        checkpoints: Checkpoints,
        owner: Owner,
        rbm: &Rbm,
    ) -> Result<Resumed> {
        let mut files = Self::new(path, description, checkpoints, owner);
        files.folder.check_subfolders()?;
        let (state, progressed) = checkpoint::load::<Progressed>(&files.folder.checkpoint())?;
        if !progressed.best.is_sound(state.epoch) {
            let problem = "not an intact checkpoint: its record of the best evaluation is impossible";
            return Err(Error::malformed(files.folder.checkpoint(), problem));
        }
        let Description { input, data, weights_sha256, files: own } = &files.description;
        check_unchanged(Path::new(&input.data.source), &progressed.data_sha256, &data.sha256)?;
        if let (Some(path), Some(then), Some(now)) =
            (&input.weights, &progressed.weights_sha256, weights_sha256)
        {
            check_unchanged(path, then, now)?;
        }
        for (then, now) in progressed.files.iter().zip(own) {
            check_unchanged(Path::new(&now.file), &then.sha256, &now.sha256)?;
        }
        for (layer, expected, got) in [
            ("visible", rbm.n_visible(), state.rbm.n_visible()),
            ("hidden", rbm.n_hidden(), state.rbm.n_hidden()),
        ] {
            if expected != got {
                let what = format!("{layer} units (the run's settings and data against its checkpoint)");
                return Err(Error::ShapeMismatch { what, expected, got });
            }
        }
        let history = files.cut_metrics(progressed.metrics_bytes)?;
        Ok(Resumed { files, state, best: progressed.best, seconds: progressed.seconds, history })
    }

    /// Cuts the metrics to the length that they had at the last checkpoint, and returns them. If
    /// they are shorter, whole lines are kept.
    fn cut_metrics(&mut self, recorded: u64) -> Result<Vec<Metrics>> {
        let path = self.folder.metrics();
        let text = if path.exists() { read_file(&path, MAX_METRICS)? } else { Vec::new() };
        let n_recorded = usize::try_from(recorded).unwrap_or(usize::MAX).min(text.len());
        let kept = &text[..text[..n_recorded].iter().rposition(|&byte| byte == b'\n').map_or(0, |k| k + 1)];
        let lines = kept.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let history: Vec<Metrics> =
            lines.clone().filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let n_damaged = lines.count() - history.len();
        if n_damaged > 0 && team::is_first() {
            tracing::warn!("{}: {n_damaged} damaged lines are left out", path.display());
        }
        if (kept.len() as u64) < recorded && team::is_first() {
            let last = history.last().map_or(0, |metrics| metrics.epoch);
            tracing::warn!(
                "{} has {} bytes of whole lines, but the checkpoint counts {recorded}: the metrics of some epochs \
                 after epoch {last} are lost",
                path.display(),
                kept.len()
            );
        }
        // Lines are appended to this file from here on, so it must be no link.
        if kept.len() < text.len() || !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            write_inside(&path, kept)?;
        }
        self.metrics_bytes = kept.len() as u64;
        Ok(history)
    }

    fn new(path: &Path, description: Description, checkpoints: Checkpoints, owner: Owner) -> Self {
        Self {
            folder: RunFolder::new(path),
            description,
            checkpoints,
            metrics_bytes: 0,
            last_checkpoint: Instant::now(),
            checkpoint_seconds: 0.0,
            sitting: None,
            _owner: owner,
        }
    }

    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Begins a new schedule after the end of a run. The model at the end becomes a snapshot,
    /// because it is no longer the last one.
    pub(super) fn begin_again(&mut self, state: &TrainerState, best: &Best, seconds: f64) -> Result<()> {
        let (model, snapshot) = (self.folder.model(), self.folder.snapshot(state.epoch));
        if team::is_first() && model.exists() {
            self.folder.make(&self.folder.snapshots())?;
            std::fs::rename(&model, &snapshot).map_err(Error::io("rename", &model))?;
        }
        self.save_checkpoint(state, best, seconds)?;
        write_inside(&self.folder.config(), self.description.input.to_toml().as_bytes())
    }

    /// Records that a sitting begins after `from_epoch` epochs.
    pub(super) fn begin_sitting(&mut self, from_epoch: usize, command: Vec<String>) -> Result<()> {
        let sitting = Sitting::begin(from_epoch, command);
        let mut sittings = self.folder.read_sittings();
        sittings.push(sitting.clone());
        self.sitting = Some(sitting);
        self.save_sittings(&sittings)
    }

    /// Records that this sitting ends after `to_epoch` epochs.
    pub(super) fn end_sitting(&mut self, to_epoch: usize) -> Result<()> {
        let Some(mut sitting) = self.sitting.take() else { return Ok(()) };
        let mut sittings = self.folder.read_sittings();
        // Only the first rank writes the file, but all ranks end at about the same time.
        sittings.pop_if(|last| last.begun == sitting.begun);
        sitting.end(to_epoch);
        sittings.push(sitting);
        self.save_sittings(&sittings)
    }

    fn save_sittings(&self, sittings: &[Sitting]) -> Result<()> {
        let line = |sitting| serde_json::to_string(sitting).expect("sittings are plain JSON") + "\n";
        write_inside(&self.folder.sittings(), sittings.iter().map(line).collect::<String>().as_bytes())
    }

    /// Saves the best model so far, or at the end. `best_epoch` is its epoch.
    pub(super) fn save_best(&self, rbm: &Rbm, metrics: &Metrics, best_epoch: Option<usize>) -> Result<()> {
        self.description.model_file(rbm.clone(), metrics, best_epoch).save_inside(&self.folder.best_model())
    }

    /// Reads the best model so far, if the file belongs to `epoch`.
    pub(super) fn read_best(&self, epoch: usize) -> Option<Rbm> {
        let file = ModelFile::load(self.folder.best_model()).ok()?;
        (file.provenance.history["epoch"] == epoch).then_some(file.rbm)
    }

    /// Saves the model at the end. `best_epoch` is the epoch of the best model, if that is known.
    pub(super) fn save_model(&self, rbm: &Rbm, metrics: &Metrics, best_epoch: Option<usize>) -> Result<()> {
        self.description.model_file(rbm.clone(), metrics, best_epoch).save_inside(&self.folder.model())
    }

    /// Saves a snapshot of the model after the epoch of `metrics`.
    pub(super) fn save_snapshot(&self, rbm: &Rbm, metrics: &Metrics) -> Result<()> {
        self.folder.make(&self.folder.snapshots())?;
        let file = self.description.model_file(rbm.clone(), metrics, None);
        file.save_inside(&self.folder.snapshot(metrics.epoch))
    }

    /// Appends the metrics of an epoch.
    pub(super) fn append(&mut self, metrics: &Metrics) -> Result<()> {
        if !team::is_first() {
            return Ok(());
        }
        let path = self.folder.metrics();
        let line = format!("{}\n", serde_json::to_string(metrics).expect("metrics are plain JSON"));
        let mut file =
            std::fs::OpenOptions::new().append(true).open(&path).map_err(Error::io("write", &path))?;
        file.write_all(line.as_bytes()).map_err(Error::io("write", &path))?;
        self.metrics_bytes += line.len() as u64;
        Ok(())
    }

    /// Returns true if a checkpoint should be written after `epoch`.
    pub(super) fn is_checkpoint_due(&self, epoch: usize) -> bool {
        let since = self.last_checkpoint.elapsed().as_secs_f64();
        // Writing takes at most 5 % of the time, however short epochs are.
        let affordable = since >= 20.0 * self.checkpoint_seconds;
        epoch.is_multiple_of(self.checkpoints.every_epochs.max(1)) && affordable
            || since >= 60.0 * self.checkpoints.every_minutes
    }

    /// Writes a checkpoint.
    pub(super) fn save_checkpoint(&mut self, state: &TrainerState, best: &Best, seconds: f64) -> Result<()> {
        let begun = Instant::now();
        if team::is_first() {
            // A checkpoint must not count lines that a power cut takes away.
            let metrics = self.folder.metrics();
            open_file(&metrics)?.0.sync_all().map_err(Error::io("write", &metrics))?;
        }
        let progressed = Progressed {
            metrics_bytes: self.metrics_bytes,
            seconds,
            best: best.clone(),
            data_sha256: self.description.data.sha256.clone(),
            weights_sha256: self.description.weights_sha256.clone(),
            files: self.description.files.clone(),
        };
        let epoch = Metrics { epoch: state.epoch, ..Metrics::default() };
        let provenance = self.description.provenance(&epoch, None);
        checkpoint::save(&self.folder.checkpoint(), state, &progressed, &provenance)?;
        self.last_checkpoint = Instant::now();
        self.checkpoint_seconds = (self.last_checkpoint - begun).as_secs_f64();
        Ok(())
    }
}

fn check_unchanged(path: &Path, then: &str, now: &str) -> Result<()> {
    if then == now {
        return Ok(());
    }
    let problem = format!(
        "has changed since the run began (SHA-256 {now}, was {then}); put it back, or begin a new run"
    );
    Err(Error::malformed(path, problem))
}
