//! Name and read the files of a run folder.
//!
//! ```text
//! RUN/config.toml                      the resolved settings: the truth about the run
//! RUN/metrics.jsonl                    a line for each epoch
//! RUN/sittings.jsonl                   when, where and how the run was made
//! RUN/checkpoints/latest.safetensors   everything needed to go on, bit for bit
//! RUN/model.safetensors                the model at the end
//! RUN/best.safetensors                 the model with the best validation likelihood
//! RUN/snapshots/epoch-00010.safetensors  the model after an epoch, if the settings name that epoch
//! RUN/report.html                      the page about the run
//! RUN/events.out.tfevents.…            events for TensorBoard
//! ```

use super::best::BestModel;
use super::checkpoint::Snapshot;
use super::guard::Warning;
use super::monitor::Metrics;
use super::run::RunInput;
use super::sitting::Sitting;
use crate::file::ModelFile;
use crate::model::Rbm;
use crate::settings::CheckedSettings;
use crate::source::{read_file, read_text};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The largest lengths of the settings, and of the metrics of some ten million epochs.
const MAX_CONFIG: u64 = 1 << 24;
pub(super) const MAX_METRICS: u64 = 1 << 33;

/// The folder of a run: the paths of its files, whether or not they exist yet.
///
/// ```
/// use mclv::train::RunFolder;
/// let run = RunFolder::new("runs/digits-1");
/// assert_eq!(run.model(), std::path::Path::new("runs/digits-1/model.safetensors"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Names the run folder at `path`. Nothing is read or written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file of resolved settings. It is written last: a folder with this
    /// file can be resumed.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// Returns the path of the file with a line of JSON for each epoch.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Returns the path of the file with a line of JSON for each [`Sitting`].
    pub fn sittings(&self) -> PathBuf {
        self.path.join("sittings.jsonl")
    }

    /// Returns the path of the model at the end of training.
    pub fn model(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// Returns the path of the model with the best validation likelihood.
    pub fn best_model(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// Returns the path of the model that stands for the run: the best model; without one, because
    /// the likelihood was not evaluated, the last model; or else the last checkpoint. `None` if the
    /// folder has none of them.
    pub fn standing_model(&self) -> Option<PathBuf> {
        [self.best_model(), self.model(), self.checkpoint()].into_iter().find(|path| path.is_file())
    }

    /// Returns the path of the folder of snapshots: copies of the model after some epochs.
    pub fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    /// Returns the path of the snapshot of the model after `epoch`.
    pub fn snapshot(&self, epoch: usize) -> PathBuf {
        self.snapshots().join(format!("epoch-{epoch:05}.safetensors"))
    }

    /// Returns the epochs of the snapshots that are there, in ascending order.
    pub fn snapshot_epochs(&self) -> Vec<usize> {
        let entries = std::fs::read_dir(self.snapshots()).into_iter().flatten().flatten();
        let epoch = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_prefix("epoch-")?.strip_suffix(".safetensors")?.parse().ok()
        };
        let mut epochs: Vec<usize> = entries.filter_map(epoch).collect();
        epochs.sort_unstable();
        epochs
    }

    /// Returns the path of the folder of checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Creates a subfolder if it is missing. In a [team](crate::team), only the first rank does.
    pub(super) fn make(&self, subfolder: &Path) -> Result<()> {
        self.check_subfolders()?;
        let made = if crate::team::is_first() { std::fs::create_dir_all(subfolder) } else { Ok(()) };
        made.map_err(Error::io("create", subfolder))
    }

    /// Rejects links in the place of subfolders: nothing is written through the links of a run
    /// folder.
    pub(super) fn check_subfolders(&self) -> Result<()> {
        match [self.checkpoints(), self.snapshots()].into_iter().find(|folder| folder.is_symlink()) {
            Some(link) => Err(Error::malformed(link, "is a link; put the folder itself in its place")),
            None => Ok(()),
        }
    }

    /// Returns the path of the last checkpoint.
    pub fn checkpoint(&self) -> PathBuf {
        self.checkpoints().join("latest.safetensors")
    }

    /// Returns the path of the report about the run.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Returns the folder of TensorBoard's event files. It is the run folder, whose name
    /// TensorBoard shows.
    pub fn events(&self) -> &Path {
        &self.path
    }

    /// Returns true if the folder holds a run.
    pub fn holds_a_run(&self) -> bool {
        self.config().exists()
    }

    /// Reads the text of the settings.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_config(&self) -> Result<String> {
        let path = self.config();
        read_text(&path, MAX_CONFIG)
    }

    /// Reads the settings.
    ///
    /// # Errors
    /// If the file cannot be read or does not describe a run.
    pub fn read_input(&self) -> Result<RunInput> {
        RunInput::from_toml(&self.read_config()?, &self.config())
    }

    /// Reads the metrics of all epochs.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is damaged.
    pub fn read_metrics(&self) -> Result<Vec<Metrics>> {
        let path = self.metrics();
        let text = read_text(&path, MAX_METRICS)?;
        let parse = |line: &str| {
            serde_json::from_str(line)
                .map_err(|e| Error::malformed(&path, format!("is no file of metrics: {e}")))
        };
        text.lines().map(parse).collect()
    }

    /// Reads the sittings. Lines that cannot be read are left out, and so is the whole file if it is
    /// missing: runs of earlier versions have none.
    pub fn read_sittings(&self) -> Vec<Sitting> {
        let text = read_text(&self.sittings(), MAX_METRICS).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Reads everything that can be read. A run in progress or a damaged run gives a record too,
    /// which lists its problems.
    ///
    /// # Errors
    /// If there is no such folder, or if nothing in it can be read.
    pub fn read(&self) -> Result<RunRecord> {
        self.read_with(true)
    }

    /// Reads everything but the metrics.
    pub(super) fn read_without_metrics(&self) -> Result<RunRecord> {
        self.read_with(false)
    }

    fn read_with(&self, with_metrics: bool) -> Result<RunRecord> {
        let path = &self.path;
        if !path.is_dir() {
            let kind =
                if path.exists() { std::io::ErrorKind::NotADirectory } else { std::io::ErrorKind::NotFound };
            return Err(Error::io("read the run folder", path)(kind.into()));
        }
        let mut problems = Vec::new();
        let config = keep(self.read_config(), &mut problems);
        let input =
            config.as_ref().and_then(|text| keep(RunInput::from_toml(text, &self.config()), &mut problems));
        let settings = input.as_ref().and_then(|input| keep(input.train.check_without_rows(), &mut problems));
        let metrics = if with_metrics { self.read_whole_metrics(&mut problems) } else { Vec::new() };
        let snapshot = keep(Snapshot::load(path), &mut problems);
        let model_path = self.model();
        let has_model = model_path.exists();
        let done = metrics.last().map_or(0, |m| m.epoch);
        let made_all = settings.as_ref().is_some_and(|settings| settings.epochs == done);
        if has_model && done == 0 && with_metrics {
            problems.push(format!("{}: no epoch is recorded", self.metrics().display()));
        }
        // A run in progress need not have a model yet.
        if !has_model && made_all {
            problems.push(format!("{} is not there, although all epochs are made", model_path.display()));
        }
        let model_path = if has_model { model_path } else { self.best_model() };
        let model =
            if model_path.exists() { keep(ModelFile::load(&model_path), &mut problems) } else { None };
        if with_metrics && input.is_none() && metrics.is_empty() && model.is_none() && snapshot.is_none() {
            let [config, metrics] = [self.config(), self.metrics()].map(|path| name_of(&path));
            let problem = format!("holds nothing of a run: no {config}, {metrics} or model that can be read");
            return Err(Error::malformed(path, problem));
        }
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        Ok(RunRecord {
            folder: self.clone(),
            name: name_of(&whole),
            input,
            settings,
            config,
            metrics,
            sittings: self.read_sittings(),
            model,
            snapshot,
            is_finished: has_model || made_all,
            problems,
            warned: None,
        })
    }

    /// Returns the metrics of all lines that are complete and intact.
    fn read_whole_metrics(&self, problems: &mut Vec<String>) -> Vec<Metrics> {
        let path = self.metrics();
        let Some(bytes) = keep(read_file(&path, MAX_METRICS), problems) else { return Vec::new() };
        let text = String::from_utf8_lossy(&bytes);
        // The last line of a run in progress may be half written.
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
            problems.push(format!(
                "{}: {n} damaged lines are left out, the first is line {first}",
                path.display()
            ));
        }
        metrics
    }
}

/// Returns the value, or adds the error to the problems.
fn keep<T>(result: Result<T>, problems: &mut Vec<String>) -> Option<T> {
    result.map_err(|e| problems.push(e.to_string())).ok()
}

/// Returns the last part of a path, or all of it if it has none.
fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The contents of a run folder, as far as they could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The folder that the record was read from.
    pub folder: RunFolder,
    /// The name of the run, which is the name of its folder.
    pub name: String,
    /// The configuration of the run.
    pub input: Option<RunInput>,
    /// The checked settings of `input`.
    pub settings: Option<CheckedSettings>,
    /// The text of the settings.
    pub config: Option<String>,
    /// The metrics of each epoch.
    pub metrics: Vec<Metrics>,
    /// When, where and how the run was made. Empty if that is not recorded.
    pub sittings: Vec<Sitting>,
    /// The model at the end, or the best so far if training has not ended.
    pub model: Option<ModelFile>,
    /// The last checkpoint.
    pub snapshot: Option<Snapshot>,
    /// True if training has ended: there is a final model, or all epochs are done.
    pub is_finished: bool,
    /// The missing or damaged files, in sentences.
    pub problems: Vec<String>,
    /// The warnings of all epochs, if `metrics` holds only some of the epochs.
    pub(super) warned: Option<WarningTally>,
}

/// The number of nats by which the last likelihood may be below the best one before
/// [`RunRecord::fall`] reports it.
const MAX_FALL: f64 = 1.0;

impl RunRecord {
    /// Returns the model at the end, or the best so far, or that of the last checkpoint.
    pub fn rbm(&self) -> Option<&Rbm> {
        self.model.as_ref().map(|m| &m.rbm).or(self.snapshot.as_ref().map(|s| &s.rbm))
    }

    /// The number of epochs made.
    pub fn epochs_done(&self) -> usize {
        self.metrics.last().map_or(0, |m| m.epoch)
    }

    /// Returns the metrics of the last epoch that has a likelihood.
    pub fn last_evaluated(&self) -> Option<&Metrics> {
        self.metrics.iter().rev().find(|m| m.train_log_likelihood.is_some())
    }

    /// Returns the best model that the last evaluation of a finished run has found. `None` while a
    /// run is in progress.
    pub fn best(&self) -> Option<&BestModel> {
        self.metrics.last()?.best.as_ref()
    }

    /// Returns the epoch of the best model, and by how many nats the last model is worse. `None` if
    /// it is worse by at most 1.
    pub fn fall(&self) -> Option<(usize, f64)> {
        let best = self.best()?;
        let last = self.last_evaluated()?;
        let fall = best.log_likelihood - last.validation_log_likelihood.or(last.train_log_likelihood)?;
        (fall > MAX_FALL).then_some((best.epoch, fall))
    }

    /// Returns the warnings of the run, one entry for each kind, in the order of their first
    /// epochs.
    pub fn warnings(&self) -> Vec<WarningHistory> {
        match &self.warned {
            Some(tally) => tally.after(self.epochs_done()),
            None => {
                let mut tally = WarningTally::default();
                self.metrics.iter().for_each(|metrics| tally.add(metrics));
                tally.after(self.epochs_done())
            }
        }
    }

    /// Returns true if the settings of both runs are known and differ only in their seeds.
    pub fn repeats(&self, other: &Self) -> bool {
        let seedless = |run: &Self| {
            let mut input = run.input.clone()?;
            (input.train.seed, input.data.seed, input.data.folder) = (None, 0, None);
            Some(input)
        };
        seedless(self).is_some_and(|input| seedless(other) == Some(input))
    }
}

/// The warnings of epochs, counted one epoch after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WarningTally(Vec<WarningHistory>);

impl WarningTally {
    /// Counts the warnings of an epoch.
    pub(super) fn add(&mut self, Metrics { epoch, warnings, .. }: &Metrics) {
        for warning in warnings {
            let same = |h: &&mut WarningHistory| {
                std::mem::discriminant(&h.latest) == std::mem::discriminant(warning)
            };
            match self.0.iter_mut().find(same) {
                Some(history) => {
                    (history.latest, history.last_epoch) = (warning.clone(), *epoch);
                    history.n_epochs += 1;
                }
                None => self.0.push(WarningHistory {
                    latest: warning.clone(),
                    first_epoch: *epoch,
                    last_epoch: *epoch,
                    n_epochs: 1,
                    is_over: false,
                }),
            }
        }
    }

    /// Returns the warnings after `end` epochs.
    fn after(&self, end: usize) -> Vec<WarningHistory> {
        // A warning that stopped in the last tenth of the run may come back.
        let is_over = |h: &WarningHistory| h.last_epoch.saturating_add(end / 10) < end;
        self.0.iter().map(|h| WarningHistory { is_over: is_over(h), ..h.clone() }).collect()
    }
}

/// The history of one kind of warning in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct WarningHistory {
    /// The last warning of this kind.
    pub latest: Warning,
    /// The first epoch with a warning of this kind.
    pub first_epoch: usize,
    /// The last epoch with a warning of this kind.
    pub last_epoch: usize,
    /// The number of warnings of this kind.
    pub n_epochs: usize,
    /// True if no warning of this kind was given in the last tenth of the epochs.
    pub is_over: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, RunFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(temporary.path().join("run"));
        std::fs::create_dir_all(folder.checkpoints()).unwrap();
        (temporary, folder)
    }

    fn epoch(epoch: usize, validation: Option<f64>) -> Metrics {
        Metrics {
            epoch,
            train_log_likelihood: validation.map(|x| x + 0.5),
            validation_log_likelihood: validation,
            ..Metrics::default()
        }
    }

    fn write_metrics(folder: &RunFolder, lines: &[String]) {
        std::fs::write(folder.metrics(), lines.join("\n")).unwrap();
    }

    fn record(metrics: Vec<Metrics>) -> RunRecord {
        let (_temporary, folder) = folder();
        let lines: Vec<String> = metrics.iter().map(|m| serde_json::to_string(m).unwrap() + "\n").collect();
        std::fs::write(folder.metrics(), lines.concat()).unwrap();
        let read = folder.read().unwrap();
        assert_eq!(read.metrics, metrics);
        read
    }

    #[test]
    fn the_files_of_a_run_keep_their_names() {
        let folder = RunFolder::new("run");
        let files = [
            (folder.config(), "run/config.toml"),
            (folder.metrics(), "run/metrics.jsonl"),
            (folder.sittings(), "run/sittings.jsonl"),
            (folder.model(), "run/model.safetensors"),
            (folder.best_model(), "run/best.safetensors"),
            (folder.snapshots(), "run/snapshots"),
            (folder.snapshot(10), "run/snapshots/epoch-00010.safetensors"),
            (folder.checkpoints(), "run/checkpoints"),
            (folder.checkpoint(), "run/checkpoints/latest.safetensors"),
            (folder.report(), "run/report.html"),
            (folder.events().into(), "run"),
        ];
        for (path, name) in files {
            assert_eq!(path, Path::new(name));
        }
    }

    #[test]
    fn damaged_metrics_are_refused_or_left_out() {
        let (_temporary, folder) = folder();
        let line = |k| serde_json::to_string(&epoch(k, None)).unwrap();
        write_metrics(&folder, &[line(1), line(2), String::new()]);
        assert_eq!(folder.read_metrics().unwrap(), [epoch(1, None), epoch(2, None)]);
        // Line 2 is damaged, and the last one is half written.
        write_metrics(&folder, &[line(1), "no".into(), line(3), line(4)[..9].into()]);
        assert!(folder.read_metrics().unwrap_err().to_string().contains("is no file of metrics"));
        let record = folder.read().unwrap();
        assert_eq!(record.metrics, [epoch(1, None), epoch(3, None)]);
        let problem = "1 damaged lines are left out, the first is line 2";
        assert!(record.problems.iter().any(|p| p.ends_with(problem)), "{:?}", record.problems);
    }

    #[test]
    fn a_record_needs_something_of_a_run() {
        let (temporary, folder) = folder();
        let error = folder.read().unwrap_err().to_string();
        assert!(error.contains("no config.toml, metrics.jsonl or model that can be read"), "{error}");
        assert!(!folder.holds_a_run() && folder.read_config().is_err());
        let nowhere = RunFolder::new(temporary.path().join("nowhere"));
        assert!(nowhere.read().unwrap_err().to_string().contains("cannot read the run folder"));
        let input = RunInput::default();
        std::fs::write(folder.config(), input.to_toml()).unwrap();
        assert!(folder.holds_a_run());
        assert_eq!(folder.read_input().unwrap(), input);
        let record = folder.read().unwrap();
        assert_eq!((record.name.as_str(), record.input.as_ref()), ("run", Some(&input)));
        assert!(!record.is_finished && record.rbm().is_none());
        // The metrics and the checkpoint are missing; before the end of training a model need not
        // be there.
        assert_eq!(record.problems.len(), 2, "{:?}", record.problems);
        std::fs::write(folder.config(), "train = 3").unwrap();
        assert!(folder.read_input().is_err());
    }

    #[test]
    fn a_run_that_has_made_all_epochs_is_finished() {
        let (_temporary, folder) = folder();
        let mut input = RunInput::default();
        input.train.epochs = Some(2.into());
        std::fs::write(folder.config(), input.to_toml()).unwrap();
        let line = |k| serde_json::to_string(&epoch(k, None)).unwrap();
        for (n, finished) in [(1, false), (2, true)] {
            let lines: Vec<String> = (1..=n).map(line).chain([String::new()]).collect();
            write_metrics(&folder, &lines);
            let record = folder.read().unwrap();
            assert_eq!((record.is_finished, record.epochs_done()), (finished, n));
            let missing = record.problems.iter().any(|p| p.contains("although all epochs are made"));
            assert_eq!(missing, finished, "{:?}", record.problems);
        }
    }

    #[test]
    fn a_fall_of_more_than_a_nat_is_told() {
        // The best likelihood during training does not decide the best model: only the last
        // evaluation does.
        let run = |last: f64, best: Option<f64>| {
            let mut metrics: Vec<Metrics> =
                vec![epoch(1, Some(-9.0)), epoch(2, Some(-3.0)), epoch(3, Some(last))];
            metrics[2].best = best.map(|log_likelihood| BestModel {
                epoch: 2,
                log_likelihood,
                log_z: crate::partition::exact(
                    &Rbm::new(1, 1, &[0.0], &[0.0], &[0.0]).unwrap(),
                    &Default::default(),
                    &crate::progress::Silent,
                )
                .unwrap(),
                lead_std_err: None,
            });
            record(metrics)
        };
        let fallen = run(-7.0, Some(-5.0));
        assert_eq!((fallen.best().unwrap().epoch, fallen.fall()), (2, Some((2, 2.0))));
        assert_eq!(fallen.last_evaluated().unwrap().epoch, 3);
        assert_eq!(run(-5.5, Some(-5.0)).fall(), None);
        assert_eq!((run(-7.0, None).best(), run(-7.0, None).fall()), (None, None));
    }

    #[test]
    fn warnings_are_told_once_of_each_kind() {
        let mut metrics: Vec<Metrics> = (1..=30).map(|k| epoch(k, None)).collect();
        let stale = |moved| Warning::StaleChains { moved };
        let dead = Warning::Dead { n_units: 1, n_hidden: 9, advice: Vec::new() };
        metrics[4].warnings = vec![stale(0.1), dead.clone()];
        metrics[6].warnings = vec![stale(0.2)];
        metrics[26].warnings = vec![dead.clone()];
        let history = |latest, first_epoch, last_epoch, is_over| WarningHistory {
            latest,
            first_epoch,
            last_epoch,
            n_epochs: 2,
            is_over,
        };
        let expected = [history(stale(0.2), 5, 7, true), history(dead, 5, 27, false)];
        assert_eq!(record(metrics).warnings(), expected);
    }

    #[test]
    fn runs_repeat_each_other_if_only_seeds_differ() {
        let with = |change: fn(&mut RunInput)| {
            let mut input = RunInput::default();
            change(&mut input);
            RunRecord { input: Some(input), ..record(vec![epoch(1, None)]) }
        };
        let first = with(|_| ());
        assert!(first.repeats(&with(|input| (input.train.seed, input.data.seed) = (Some(7), 8))));
        assert!(!first.repeats(&with(|input| input.train.batch_size = Some(7))));
        let unknown = record(vec![epoch(1, None)]);
        assert!(!unknown.repeats(&unknown) && !first.repeats(&unknown));
    }
}
