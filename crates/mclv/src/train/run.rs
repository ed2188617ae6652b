//! Train in a run folder: data, updates, evaluations, checkpoints, and going on after an interruption.
//!
//! ```text
//! RUN/config.toml               the resolved settings: the truth about the run
//! RUN/metrics.jsonl             a line for each epoch
//! RUN/checkpoints/latest.…      everything needed to go on, bit for bit
//! RUN/model.safetensors         the model at the end
//! RUN/best.safetensors          the model with the best validation likelihood
//! ```

use super::checkpoint;
use super::course::{self, Advance, Best, Parts};
use super::guard::{self, Warning};
use super::monitor::{Metrics, Monitor, Weighted};
use super::settings::TrainSettings;
use super::trainer::Trainer;
use super::weights;
use crate::bits::BitRows;
use crate::data::{self, Binarize, DataSpec, Dataset, Rows, Split};
use crate::file::{ModelFile, Provenance, write_atomically};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::team;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a run is made from: the content of `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunInput {
    /// How much each row counts: a `.npy` or `.csv` file with a number for each training row, or, where the data are a
    /// file too, for each row of that.
    pub weights: Option<PathBuf>,
    /// The data; the splits are chosen by the run.
    pub data: DataSpec,
    /// How to train.
    pub train: TrainSettings,
}

impl RunInput {
    /// Parse TOML; a key that is not known is refused, with the nearest known one.
    ///
    /// # Errors
    /// If the text is not valid TOML or does not describe a run.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self> {
        toml::from_str(text).map_err(|e| {
            let problem = match suggestion(e.message()) {
                Some(known) => format!("{} — did you mean `{known}`?", e.message()),
                None => e.message().to_owned(),
            };
            let line = e.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            match line {
                Some(line) => Error::malformed_at(path, format!("line {line}"), problem),
                None => Error::malformed(path, problem),
            }
        })
    }

    /// As TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are plain TOML")
    }
}

/// The nearest of the fields that serde expected instead of an unknown one.
fn suggestion(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field").then(|| quoted.next())??;
    let distance = |known: &&str| strsim::damerau_levenshtein(unknown, known);
    quoted.min_by_key(distance).filter(|known| distance(known) <= unknown.len() / 2).map(str::to_owned)
}

/// Who is told how a run goes.
pub trait Listener: Progress {
    /// An epoch is finished.
    fn epoch(&self, metrics: &Metrics);
    /// Something should be said.
    fn warning(&self, warning: &Warning);
    /// An epoch was evaluated: its metrics, the model, and the hidden states of persistent chains if there are any.
    fn evaluated(&self, _metrics: &Metrics, _rbm: &Rbm, _chains: Option<&BitRows>) {}
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All epochs done, or stopped early for lack of progress.
    Finished {
        /// The last metrics.
        metrics: Box<Metrics>,
        /// The epoch with the best validation likelihood, and that likelihood.
        best: Option<(usize, f64)>,
        /// Whether patience ran out.
        early: bool,
    },
    /// A parameter became NaN; the model of the epoch before is kept.
    Diverged(Warning),
    /// Stopped by the listener; the checkpoint is ready to go on from.
    Interrupted {
        /// Epochs finished.
        epochs: usize,
    },
}

/// What a run remembers beside the trainer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progressed {
    /// Length of `metrics.jsonl` that belongs to this state.
    metrics_bytes: u64,
    #[serde(flatten)]
    best: Best,
    /// Seconds spent before.
    seconds: f64,
    /// SHA-256 of the training data and of the file of weights: going on with others would be another run.
    data_sha256: String,
    weights_sha256: Option<String>,
}

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checkpoints {
    /// Epochs between two.
    pub every_epochs: usize,
    /// Minutes after which one is written in any case.
    pub every_minutes: f64,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Self { every_epochs: 10, every_minutes: 5.0 }
    }
}

/// A run in its folder.
pub struct Run {
    folder: PathBuf,
    input: RunInput,
    train: Dataset,
    /// The grey values behind the training rows, where bits are redrawn in each epoch.
    grey: Option<Rows>,
    validation: Option<Dataset>,
    weights: Weights,
    trainer: Trainer,
    progressed: Progressed,
    begun: Instant,
}

impl Run {
    /// Begin a run in a new folder.
    ///
    /// # Errors
    /// If the folder holds a run already, or data and settings do not go together.
    pub fn create(folder: &Path, mut input: RunInput, progress: &dyn Progress) -> Result<Self> {
        input.train.check()?;
        // Of several ranks the first may already have begun to write when others look.
        team::together(if team::is_first() && config_path(folder).exists() {
            Err(Error::InvalidSetting {
                name: "run folder",
                value: folder.display().to_string(),
                cure: "it holds a run already: go on with --resume, or choose another folder",
            })
        } else {
            Ok(())
        })?;
        let (train, grey, validation) = load_data(&input, progress)?;
        let weights = load_weights(&input, &train, progress)?;
        input.train = input.train.resolved(train.n_rows());
        input.train.check()?;
        let trainer = Trainer::new(input.train.clone(), &train.rows, weights.train.clone())?;
        let checkpoints = folder.join("checkpoints");
        if team::is_first() {
            std::fs::create_dir_all(&checkpoints).map_err(Error::io("create", &checkpoints))?;
        }
        let run = Self {
            folder: folder.into(),
            input,
            grey,
            validation,
            trainer,
            progressed: Progressed {
                data_sha256: train.provenance.sha256.clone(),
                weights_sha256: weights.sha256.clone(),
                ..Progressed::default()
            },
            train,
            weights,
            begun: Instant::now(),
        };
        write_atomically(&run.folder.join("metrics.jsonl"), b"")?;
        run.save_checkpoint()?;
        // Last: a folder with a config has all it needs to go on.
        write_atomically(&config_path(folder), run.input.to_toml().as_bytes())?;
        Ok(run)
    }

    /// Go on with the run in a folder, exactly where its last checkpoint is.
    ///
    /// # Errors
    /// If the folder holds no run, the run is damaged, or its data or weights are no longer the same.
    pub fn resume(folder: &Path, progress: &dyn Progress) -> Result<Self> {
        // Nobody goes on, and writes, before all have read.
        team::together(Self::read(folder, progress))
    }

    fn read(folder: &Path, progress: &dyn Progress) -> Result<Self> {
        let config = config_path(folder);
        let text = std::fs::read_to_string(&config).map_err(Error::io("read", &config))?;
        let input = RunInput::from_toml(&text, &config)?;
        let (train, grey, validation) = load_data(&input, progress)?;
        let weights = load_weights(&input, &train, progress)?;
        let (state, progressed) = checkpoint::load(&checkpoint_path(folder))?;
        check_unchanged(Path::new(&input.data.source), &progressed.data_sha256, &train.provenance.sha256)?;
        if let (Some(path), Some(then), Some(now)) =
            (&input.weights, &progressed.weights_sha256, &weights.sha256)
        {
            check_unchanged(path, then, now)?;
        }
        let mut trainer = Trainer::new(input.train.clone(), &train.rows, weights.train.clone())?;
        if (state.rbm.n_visible(), state.rbm.n_hidden()) != (train.n_columns(), input.train.n_hidden) {
            let (expected, got) = (train.n_columns(), state.rbm.n_visible());
            return Err(Error::ShapeMismatch {
                what: "visible units of the checkpoint".into(),
                expected,
                got,
            });
        }
        trainer.restore(state)?;
        let metrics = folder.join("metrics.jsonl");
        if team::is_first() {
            let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&metrics);
            file.and_then(|f| f.set_len(progressed.metrics_bytes)).map_err(Error::io("write", &metrics))?;
        }
        Ok(Self {
            folder: folder.into(),
            input,
            train,
            grey,
            validation,
            weights,
            trainer,
            progressed,
            begun: Instant::now(),
        })
    }

    /// The settings.
    pub fn input(&self) -> &RunInput {
        &self.input
    }

    /// The training rows.
    pub fn train_data(&self) -> &Dataset {
        &self.train
    }

    /// Train to the end, or until the listener says stop.
    ///
    /// # Errors
    /// If a file cannot be written; the last checkpoint then still stands.
    pub fn go(&mut self, checkpoints: Checkpoints, listener: &dyn Listener) -> Result<Outcome> {
        let settings = self.input.train.clone();
        let monitor = Monitor::new(&settings, self.weighted_train());
        let mut last_checkpoint = Instant::now();
        let mut checkpoint_seconds = 0.0;
        let mut last = Metrics::default();
        while !self.trainer.is_finished() {
            // Also where a run that has stopped early is taken up again.
            if self.progressed.best.is_out_of_patience(settings.patience) {
                return self.finish(last, true);
            }
            let redrawn = self.grey.as_ref().map(|grey| {
                data::binarize(grey, Binarize::Bernoulli, settings.seed, self.trainer.epochs_done() as u64)
            });
            let train = Weighted { rows: &self.train.rows, weights: self.weights.train.as_deref() };
            let validation = self
                .validation
                .as_ref()
                .map(|d| Weighted { rows: &d.rows, weights: self.weights.validation.as_deref() });
            let parts = Parts { rows: redrawn.as_ref().unwrap_or(&self.train.rows), train, validation };
            let advance = course::advance(
                &mut self.trainer,
                &mut self.progressed.best,
                &settings,
                Some(&monitor),
                parts,
                listener,
            )?;
            let (mut metrics, judgement) = match advance {
                Advance::Interrupted => {
                    self.save_checkpoint()?;
                    return Ok(Outcome::Interrupted { epochs: self.trainer.epochs_done() });
                }
                Advance::Diverged(warning) => return self.diverged(warning, listener),
                Advance::Epoch(metrics, judgement) => (*metrics, judgement),
            };
            if judgement.is_best {
                self.model_file(self.trainer.rbm().clone(), &metrics)
                    .save(self.folder.join("best.safetensors"))?;
            }
            metrics.seconds = self.progressed.seconds + self.begun.elapsed().as_secs_f64();
            metrics.warnings = guard::judge(&metrics, metrics.tours.as_ref(), judgement.fallen);
            self.write_metrics(&metrics)?;
            listener.epoch(&metrics);
            metrics.warnings.iter().for_each(|warning| listener.warning(warning));
            if metrics.train_log_likelihood.is_some() {
                listener.evaluated(&metrics, self.trainer.rbm(), self.trainer.chains().as_ref());
            }
            last = metrics;
            let epoch = last.epoch;
            let since = last_checkpoint.elapsed().as_secs_f64();
            // However short epochs are, writing takes no more than 5 % of the time.
            let affordable = since >= 20.0 * checkpoint_seconds;
            if epoch.is_multiple_of(checkpoints.every_epochs.max(1)) && affordable
                || since >= 60.0 * checkpoints.every_minutes
            {
                let begun = Instant::now();
                self.save_checkpoint()?;
                last_checkpoint = Instant::now();
                checkpoint_seconds = (last_checkpoint - begun).as_secs_f64();
            }
        }
        self.finish(last, false)
    }

    fn weighted_train(&self) -> Weighted<'_> {
        Weighted { rows: &self.train.rows, weights: self.weights.train.as_deref() }
    }

    fn model_file(&self, rbm: Rbm, metrics: &Metrics) -> ModelFile {
        let mut settings =
            serde_json::json!({ "command": "train", "data": self.input.data, "train": self.input.train });
        if let (Some(path), Some(sha256)) = (&self.input.weights, &self.weights.sha256) {
            settings["weights"] = serde_json::json!({ "file": path, "sha256": sha256 });
        }
        let history = serde_json::json!({
            "epoch": metrics.epoch,
            "log_z": metrics.log_z.as_ref().map(|z| serde_json::json!({
                "value": z.value, "std_err": z.std_err, "method": z.method, "guarantee": z.guarantee })),
            "train_log_likelihood": metrics.train_log_likelihood,
            "validation_log_likelihood": metrics.validation_log_likelihood,
            "best_epoch": self.progressed.best.get().map(|b| b.0),
        });
        let provenance = Provenance {
            settings,
            seed: Some(self.input.train.seed),
            data: Some(self.train.provenance.clone()),
            history,
            ..Provenance::default()
        };
        ModelFile { rbm, provenance }
    }

    fn finish(&mut self, metrics: Metrics, early: bool) -> Result<Outcome> {
        let metrics = if metrics.epoch == 0 { self.read_last_metrics()? } else { metrics };
        self.model_file(self.trainer.rbm().clone(), &metrics).save(self.folder.join("model.safetensors"))?;
        self.save_checkpoint()?;
        let best = self.progressed.best.get();
        Ok(Outcome::Finished { metrics: Box::new(metrics), best, early })
    }

    fn diverged(&mut self, warning: Warning, listener: &dyn Listener) -> Result<Outcome> {
        listener.warning(&warning);
        let metrics = Metrics { epoch: self.trainer.epochs_done(), ..Metrics::default() };
        self.model_file(self.trainer.rbm().clone(), &metrics).save(self.folder.join("model.safetensors"))?;
        Ok(Outcome::Diverged(warning))
    }

    fn write_metrics(&mut self, metrics: &Metrics) -> Result<()> {
        if !team::is_first() {
            return Ok(());
        }
        let path = self.folder.join("metrics.jsonl");
        let line = format!("{}\n", serde_json::to_string(metrics).expect("metrics are plain JSON"));
        let mut file =
            std::fs::OpenOptions::new().append(true).open(&path).map_err(Error::io("write", &path))?;
        file.write_all(line.as_bytes()).map_err(Error::io("write", &path))?;
        self.progressed.metrics_bytes += line.len() as u64;
        Ok(())
    }

    fn read_last_metrics(&self) -> Result<Metrics> {
        let path = self.folder.join("metrics.jsonl");
        let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let last = text.lines().last().map(serde_json::from_str);
        Ok(last.and_then(|m| m.ok()).unwrap_or_default())
    }

    fn save_checkpoint(&self) -> Result<()> {
        let mut progressed = self.progressed.clone();
        progressed.seconds += self.begun.elapsed().as_secs_f64();
        checkpoint::save(&checkpoint_path(&self.folder), &self.trainer.state(), &progressed)
    }
}

fn config_path(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

pub(super) fn checkpoint_path(folder: &Path) -> PathBuf {
    folder.join("checkpoints").join("latest.safetensors")
}

/// Training rows, the grey values behind them if they are to be redrawn, and validation rows where the data have some of
/// their own.
fn load_data(input: &RunInput, progress: &dyn Progress) -> Result<(Dataset, Option<Rows>, Option<Dataset>)> {
    let load = |split: Split, binarize: Binarize| {
        data::load(&DataSpec { split, binarize, ..input.data.clone() }, progress)
    };
    let train = load(Split::Train, input.data.binarize)?;
    let redraw = input.train.redraw_bits && input.data.binarize == Binarize::Bernoulli;
    let grey = if redraw { Some(load(Split::Train, Binarize::Grey)?.rows) } else { None };
    let validation = match load(Split::Validation, input.data.binarize) {
        // A file of a few rows has none to spare.
        Err(Error::Empty { .. }) => None,
        other => Some(other?),
    };
    let validation = validation.filter(|validation| validation.rows != train.rows);
    Ok((train, grey, validation))
}

/// How much the rows of each part count, and the digest of the file that says so.
#[derive(Default)]
struct Weights {
    train: Option<Vec<f32>>,
    validation: Option<Vec<f32>>,
    sha256: Option<String>,
}

fn load_weights(input: &RunInput, train: &Dataset, progress: &dyn Progress) -> Result<Weights> {
    let Some(path) = &input.weights else { return Ok(Weights::default()) };
    let (all, sha256) = weights::read(path)?;
    let sha256 = Some(sha256);
    if all.len() == train.n_rows() {
        return Ok(Weights { train: Some(all), validation: None, sha256 });
    }
    let (n, n_train) = (all.len(), train.n_rows());
    if !data::is_name(&input.data.source) {
        let whole = DataSpec { split: Split::All, binarize: Binarize::Grey, ..input.data.clone() };
        if data::load(&whole, progress)?.n_rows() == n {
            let part = |split: Split| -> Vec<f32> {
                split.of_file(n, input.data.seed).into_iter().map(|r| all[r]).collect()
            };
            // Validation rows that count for nothing could not choose a model.
            let validation = Some(part(Split::Validation)).filter(|w| w.iter().any(|&w| w > 0.0));
            let train = part(Split::Train);
            if train.iter().all(|&w| w == 0.0) {
                return Err(Error::malformed(path, "gives every training row the weight 0"));
            }
            return Ok(Weights { train: Some(train), validation, sha256 });
        }
    }
    let problem = format!(
        "has {n} weights for {n_train} training rows of {}; give one for each of these, or for each row of a data file",
        input.data.source
    );
    Err(Error::malformed(path, problem))
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
