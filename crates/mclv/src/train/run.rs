//! A run that is described by a configuration: its data, and how to train on them.

use super::RunFolder;
use super::checkpoint::Snapshot;
use super::monitor::Metrics;
use super::training::{Trained, Training, held_out, of_model};
use super::weights;
use crate::data::{
    self, Binarize, DataProvenance, DataSource, DataSpec, Dataset, FileDigest, PartRows, Parts, Rows, Split,
};
use crate::file::{MAX_MODEL, ModelFile, Provenance};
use crate::model::Rbm;
use crate::picture;
use crate::progress::Progress;
use crate::settings::{self, CheckedSettings, Settings};
use crate::source::{hex, read_file};
use crate::team::{self, Facts};
use crate::words;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The configuration of a run: the contents of `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunInput {
    /// The height and width of the rows, if they are pictures and the data do not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<(usize, usize)>,
    /// The weights of the rows: a `.npy` or `.csv` file with one number for each training row. If
    /// the data are a file too, it may instead hold one number for each row of that file.
    pub weights: Option<PathBuf>,
    /// The model that training starts from. Without one, training starts from an initial model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StartModel>,
    /// The data. The run chooses the splits.
    pub data: DataSpec,
    /// The settings of training.
    pub train: Settings,
}

/// A model file that a run starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StartModel {
    /// The path of the file.
    pub file: PathBuf,
    /// The SHA-256 of its content. A file with another content is refused. A run fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl RunInput {
    /// Parses TOML. An unknown key is rejected, with the nearest known one as a suggestion. Files
    /// of version 0.1 are accepted too.
    ///
    /// # Errors
    /// If the text is not valid TOML or does not describe a run.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self> {
        if let Some(input) = Self::from_old_toml(text) {
            return input.map_err(|problem| Error::malformed(path, problem));
        }
        toml::from_str(text).map_err(|e| {
            let problem = words::with_suggestion(e.message());
            let line = e.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            match line {
                Some(line) => Error::malformed_at(path, format!("line {line}"), problem),
                None => Error::malformed(path, problem),
            }
        })
    }

    /// Parses a file with settings of version 0.1. Returns `None` if the settings are not of that
    /// version.
    fn from_old_toml(text: &str) -> Option<Result<Self, String>> {
        let mut table: toml::Table = text.parse().ok()?;
        let train = serde_json::to_value(table.remove("train")?).ok().filter(settings::is_old)?;
        let input = table.try_into().map_err(|e: toml::de::Error| words::with_suggestion(e.message()));
        Some(input.and_then(|input: Self| Ok(Self { train: settings::read(train)?, ..input })))
    }

    /// Returns the configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are plain TOML")
    }

    /// Compares this configuration with that of other ranks.
    fn agree(&self) -> Result<()> {
        // The folder of the copies may differ.
        team::agree(&Facts::of_program().with("", self).without("data.folder"))
    }
}

/// The settings and data of a run, as its files describe them.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) input: RunInput,
    pub(super) data: DataProvenance,
    pub(super) weights_sha256: Option<String>,
    /// The files of parts, besides that of the training rows.
    pub(super) files: Vec<FileDigest>,
}

impl Description {
    /// Describes rows in memory.
    pub(super) fn of_memory(train: &Rows, column_names: Vec<String>, settings: &CheckedSettings) -> Self {
        let data = DataSpec { source: "memory".into(), ..DataSpec::default() };
        let provenance = Dataset::from_rows("memory", train.clone()).provenance;
        Self {
            input: RunInput { data, train: settings.settings(), ..RunInput::default() },
            data: DataProvenance { column_names, ..provenance },
            weights_sha256: None,
            files: Vec::new(),
        }
    }

    /// Returns the description with all settings decided.
    pub(super) fn with_settings(mut self, settings: &CheckedSettings) -> Self {
        self.input.train = settings.settings();
        self
    }

    /// Returns a model with its provenance. `best_epoch` is the epoch of the best model.
    pub(super) fn model_file(&self, rbm: Rbm, metrics: &Metrics, best_epoch: Option<usize>) -> ModelFile {
        ModelFile { rbm, provenance: self.provenance(metrics, best_epoch) }
    }

    /// Returns the provenance of a model with these metrics.
    pub(super) fn provenance(&self, metrics: &Metrics, best_epoch: Option<usize>) -> Provenance {
        let Self { input, data, weights_sha256, files } = self;
        let mut settings =
            serde_json::json!({ "command": "train", "data": input.data, "train": input.train });
        if let (Some(path), Some(sha256)) = (&input.weights, weights_sha256) {
            settings["weights"] = serde_json::json!({ "file": path, "sha256": sha256 });
        }
        if let Some(from) = &input.from {
            settings["from"] = serde_json::json!(from);
        }
        if !files.is_empty() {
            settings["files"] = serde_json::json!(files);
        }
        let history = serde_json::json!({
            "epoch": metrics.epoch,
            "log_z": metrics.log_z.as_ref().map(|z| serde_json::json!({
                "value": z.value, "std_err": z.std_err, "method": z.method, "guarantee": z.guarantee })),
            "train_log_likelihood": metrics.train_log_likelihood,
            "validation_log_likelihood": metrics.validation_log_likelihood,
            "best_epoch": best_epoch,
        });
        Provenance {
            settings,
            seed: input.train.seed,
            data: Some(data.clone()),
            history,
            ..Provenance::default()
        }
    }
}

/// A run as `config.toml` describes it, with its data loaded.
///
/// ```
/// use mclv::data::DataSpec;
/// use mclv::progress::Silent;
/// use mclv::settings::Settings;
/// use mclv::train::{Run, RunInput};
/// let data = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
/// let train = Settings { n_hidden: Some(4), epochs: Some(2.into()), ..Settings::default() };
/// let run = Run::load(RunInput { data, train, ..RunInput::default() }, &Silent)?;
/// let trained = run.training().fit(run.rows())?;
/// assert_eq!(trained.history.last().map(|m| m.epoch), Some(2));
/// # Ok::<(), mclv::Error>(())
/// ```
pub struct Run {
    input: RunInput,
    train: Dataset,
    /// The grey values behind the training rows, if bits are redrawn in each epoch.
    grey: Option<Rows>,
    validation: Option<Dataset>,
    weights: Weights,
    /// The model to start from.
    start: Option<Rbm>,
    /// The epochs after which the run goes on with a new schedule of the learning rate.
    extended_after: Option<usize>,
    parts: Parts,
    files: Vec<FileDigest>,
}

impl Run {
    /// Loads the data of a new run, and the model that it starts from if there is one.
    ///
    /// # Errors
    /// If the data, the weights or the model cannot be read, or do not fit together.
    pub fn load(mut input: RunInput, progress: &dyn Progress) -> Result<Self> {
        input.agree()?;
        let Some(from) = &mut input.from else { return Self::without_start(input, progress) };
        let ModelFile { rbm, provenance } = load_start(from)?;
        let from = from.file.clone();
        if let Some(n_hidden) = input.train.n_hidden {
            check_n_hidden(n_hidden, &rbm)?;
        }
        let mut run = Self::without_start(input, progress)?;
        if rbm.n_visible() != run.train.n_columns() {
            let problem = format!(
                "the model has {} visible units, but {} has {} columns; use data and a model that fit each other",
                rbm.n_visible(),
                run.train.name,
                run.train.n_columns()
            );
            return Err(Error::malformed(&from, problem));
        }
        if let (None, Some(shape)) =
            (run.train.image_shape, provenance.data.and_then(|data| data.image_shape))
        {
            run.input.shape = Some(shape);
            (run.train.image_shape, run.train.provenance.image_shape) = (Some(shape), Some(shape));
        }
        run.start = Some(rbm);
        Ok(run)
    }

    /// Loads the data of the run in a folder. The model that the run started from is not needed.
    ///
    /// # Errors
    /// If the folder holds no run, or if its data cannot be read.
    pub fn open(folder: &Path, progress: &dyn Progress) -> Result<Self> {
        Self::without_start(Self::input_of(folder)?, progress)
    }

    /// Loads the data of the finished run in a folder, to go on for `n_epochs` more epochs. The old
    /// schedule of the learning rate has ended, so a new one begins: the epoch is added to the
    /// setting `restarts`. Nothing is written before [`Training::resume`].
    ///
    /// # Errors
    /// Those of [`open`](Self::open), or if the run has not ended.
    pub fn extend(folder: &Path, n_epochs: usize, progress: &dyn Progress) -> Result<Self> {
        let mut input = Self::input_of(folder)?;
        let extended_after = Some(add_epochs(folder, &mut input.train, n_epochs)?);
        Ok(Self { extended_after, ..Self::without_start(input, progress)? })
    }

    /// Reads the configuration of the run in a folder. Its data may have moved with the folder.
    fn input_of(folder: &Path) -> Result<RunInput> {
        let input = RunFolder::new(folder).read_input()?;
        input.agree()?;
        Ok(RunInput { data: input.data.near(folder), ..input })
    }

    fn without_start(mut input: RunInput, progress: &dyn Progress) -> Result<Self> {
        check_input(&input)?;
        input.data = match &input.weights {
            Some(path) if path.is_relative() && input.data.folder.is_none() => {
                DataSpec { folder: std::env::current_dir().ok(), ..input.data }
            }
            _ => input.data.anchored(),
        };
        let mut source = data::open(&input.data, progress)?;
        let (mut train, grey, validation) = load_parts(&input, &mut source)?;
        if let Some(shape) = input.shape {
            picture::check_shape(shape, train.n_columns()).map_err(|_| Error::InvalidChoice {
                name: "shape",
                value: format!("{}x{}", shape.0, shape.1),
                cure: format!("{} has rows of {} values", train.name, train.n_columns()),
            })?;
            (train.image_shape, train.provenance.image_shape) = (Some(shape), Some(shape));
        }
        let weights = load_weights(&input, &train, &source)?;
        let parts = count(&input, source.parts()?, validation.is_some());
        let files = source.digests();
        Ok(Self { input, train, grey, validation, weights, start: None, extended_after: None, parts, files })
    }

    /// Returns how many rows train, choose the best model and are left for tests, and where they
    /// come from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the configuration.
    pub fn input(&self) -> &RunInput {
        &self.input
    }

    /// Returns the configuration with all settings that a training has decided.
    pub fn resolved(&self, trained: &Trained) -> RunInput {
        RunInput { train: trained.settings.settings(), ..self.input.clone() }
    }

    /// Returns the training data.
    pub fn train_data(&self) -> &Dataset {
        &self.train
    }

    /// Returns true if the data have validation rows that are not the training rows.
    pub fn has_validation_rows(&self) -> bool {
        self.validation.is_some()
    }

    /// Fills in defaults and checks settings, as a training of this run does.
    ///
    /// # Errors
    /// If the settings contradict each other, the rows, or the model to start from.
    pub fn check(&self, settings: &Settings) -> Result<CheckedSettings> {
        let settings = match &self.start {
            Some(rbm) => of_model(settings.clone(), rbm)?,
            None => settings.clone(),
        };
        let n_rows = self.train.n_rows();
        let share = settings.check_without_rows()?.validation_fraction;
        settings.check(n_rows - share.map_or(0, |share| held_out(share, n_rows)))
    }

    /// Returns the training rows.
    pub fn rows(&self) -> &Rows {
        &self.train.rows
    }

    /// Returns a training with the settings, weights and validation rows of this run.
    pub fn training(&self) -> Training<'_> {
        let description = Description {
            input: self.input.clone(),
            data: self.train.provenance.clone(),
            weights_sha256: self.weights.sha256.clone(),
            files: self.files.clone(),
        };
        let mut training = Training::new(self.input.train.clone())
            .weights(self.weights.train.as_deref())
            .described(description);
        if let Some(rbm) = &self.start {
            training = training.from_model(rbm.clone());
        }
        if let Some(after) = self.extended_after {
            training = training.with_new_schedule(after);
        }
        if let Some(validation) = &self.validation {
            training = training.weighted_validation(&validation.rows, self.weights.validation.as_deref());
        }
        match &self.grey {
            Some(grey) => training.redraw_from(grey),
            None => training,
        }
    }
}

/// Adds epochs with a new schedule to the settings of the finished run in a folder. Returns the
/// number of epochs made.
pub(super) fn add_epochs(folder: &Path, train: &mut Settings, n_epochs: usize) -> Result<usize> {
    let (done, epochs) = (Snapshot::load(folder)?.epoch, train.check_without_rows()?.epochs);
    if n_epochs == 0 {
        return Err(Error::InvalidSetting {
            name: "epochs",
            value: "0".into(),
            cure: "give the number of epochs to add to the run",
        });
    }
    // The model at the end is there if all epochs are done, or if patience ran out.
    let is_ended = |model: ModelFile| model.provenance.history["epoch"] == done;
    if done < epochs && !ModelFile::load(RunFolder::new(folder).model()).is_ok_and(is_ended) {
        return Err(Error::Unfinished { path: folder.into(), done, epochs });
    }
    let restarts = train.restarts.take().unwrap_or_default();
    train.restarts = Some(if done > 0 { restarts.and(done) } else { restarts });
    train.epochs = Some((done + n_epochs).into());
    Ok(done)
}

/// Reads the model to start from, and fills in its digest.
fn load_start(from: &mut StartModel) -> Result<ModelFile> {
    let model = ModelFile::load(&from.file)?;
    // A model may consist of several files.
    let mut digest = Sha256::new();
    for file in ModelFile::files(&from.file) {
        digest.update(read_file(&file, MAX_MODEL)?);
    }
    let now = hex(&digest.finalize());
    if let Some(then) = from.sha256.as_ref().filter(|then| **then != now) {
        let problem = format!("has changed since the run began (SHA-256 {now}, was {then}); put it back");
        return Err(Error::malformed(&from.file, problem));
    }
    from.sha256 = Some(now);
    Ok(model)
}

/// Rejects a number of hidden units that is not that of the model to start from.
pub(super) fn check_n_hidden(n_hidden: usize, rbm: &Rbm) -> Result<()> {
    if n_hidden == rbm.n_hidden() {
        return Ok(());
    }
    Err(Error::InvalidChoice {
        name: "n-hidden",
        value: n_hidden.to_string(),
        cure: format!("the model to start from has {} hidden units; leave `n-hidden` out", rbm.n_hidden()),
    })
}

/// Rejects a configuration that is wrong whatever the data are.
fn check_input(input: &RunInput) -> Result<()> {
    if input.train.check_without_rows()?.redraw_bits && input.data.binarize != Binarize::Bernoulli {
        return Err(Error::InvalidSetting {
            name: "redraw-bits",
            value: "true".into(),
            cure: "needs `binarize = bernoulli`: there is nothing to draw anew",
        });
    }
    if let Some(share) = input.train.check_without_rows()?.validation_fraction {
        let with = format!("validation-fraction = {share}");
        if input.data.no_validation {
            return Err(Error::Incompatible { name: "no-validation", with });
        }
        if input.data.validation.is_some() {
            return Err(Error::Incompatible { name: "validation", with });
        }
    }
    Ok(())
}

/// Returns the training rows, the grey values behind them if their bits are to be redrawn, and the
/// validation rows if the data have their own.
fn load_parts(
    input: &RunInput,
    source: &mut DataSource<'_>,
) -> Result<(Dataset, Option<Rows>, Option<Dataset>)> {
    let binarize = input.data.binarize;
    let train = source.part(Split::Train, binarize)?;
    let redraw = input.train.redraw_bits == Some(true);
    let grey = if redraw { Some(source.part(Split::Train, Binarize::Grey)?.rows) } else { None };
    let validation = match source.part(Split::Validation, binarize) {
        // A file of a few rows has no validation rows.
        Err(Error::Empty { .. }) => None,
        other => Some(other?),
    };
    let validation = validation.filter(|validation| validation.rows != train.rows);
    Ok((train, grey, validation))
}

/// Counts the rows of a run, whose settings may hold out some of the training rows.
fn count(input: &RunInput, parts: Parts, is_validated: bool) -> Parts {
    let share = input.train.check_without_rows().ok().and_then(|settings| settings.validation_fraction);
    let Some(share) = share else {
        return Parts { validation: parts.validation.filter(|_| is_validated), ..parts };
    };
    let n_held_out = held_out(share, parts.train.n_rows);
    let train = PartRows { n_rows: parts.train.n_rows - n_held_out, ..parts.train };
    let from = format!("a share of {share} of the training rows");
    let n_unused = parts.validation.filter(|_| is_validated).map_or(0, |part| part.n_rows);
    Parts { train, validation: PartRows::some(n_held_out, &from), n_unused, ..parts }
}

/// The weights of the rows of each part, and the digest of the file that they came from.
#[derive(Default)]
struct Weights {
    train: Option<Vec<f32>>,
    validation: Option<Vec<f32>>,
    sha256: Option<String>,
}

fn load_weights(input: &RunInput, train: &Dataset, source: &DataSource<'_>) -> Result<Weights> {
    let Some(path) = &input.weights else { return Ok(Weights::default()) };
    let (all, sha256) = weights::read(&input.data.locate(path))?;
    let sha256 = Some(sha256);
    if all.len() == train.n_rows() {
        return Ok(Weights { train: Some(all), validation: None, sha256 });
    }
    let (n, n_train) = (all.len(), train.n_rows());
    if source.row_numbers(Split::All).is_some_and(|rows| rows.len() == n) {
        let part = |split: Split| -> Option<Vec<f32>> {
            Some(source.row_numbers(split)?.into_iter().map(|r| all[r]).collect())
        };
        // Validation rows of weight zero could not choose a model.
        let validation = part(Split::Validation).filter(|w| w.iter().any(|&w| w > 0.0));
        let train = part(Split::Train);
        if train.iter().flatten().all(|&w| w == 0.0) {
            return Err(Error::malformed(path, "gives every training row the weight 0"));
        }
        return Ok(Weights { train, validation, sha256 });
    }
    let problem = format!(
        "has {n} weights for {n_train} training rows of {}; give one for each of these, or for each row of a data file",
        input.data.source
    );
    Err(Error::malformed(path, problem))
}
