//! Stores results in a folder: one file per task, written when the task is finished. A stored
//! result is never computed again.
//!
//! ```text
//! OUTPUT/runs/KEY.json      a task and its result
//! OUTPUT/runs/KEY/          the run folder of a training: settings, metrics, model
//! OUTPUT/runs/NAME…         the same for tasks that have a name, as in a sweep
//! OUTPUT/NAME.json, .md …   the experiments made from them
//! ```

use crate::task::Task;
use mclv::train::RunFolder;
use mclv::{Error, Owner, Result, read_text, team, write_inside};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The largest length of a result in JSON.
const MAX_RECORD: u64 = 1 << 30;

/// A finished task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name for people.
    pub name: String,
    /// The task, with all settings. Settings that this version does not know are kept.
    pub task: Value,
    /// The result.
    pub result: Value,
    /// Wall time in seconds on one thread, while other tasks may have run.
    pub seconds: f64,
    /// CPU time in seconds of the thread; unknown if the run was interrupted.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// The version of this program.
    pub version: String,
}

impl Record {
    /// The result as a typed value.
    ///
    /// # Errors
    /// If the file holds another kind of result.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.result.clone())
            .map_err(|e| Error::malformed(&self.name, format!("it is not the result of such a task: {e}")))
    }
}

/// A folder of results. Only one process, or one team of processes, uses it at a time.
pub struct Store {
    folder: PathBuf,
    /// True if finished trainings keep their checkpoints.
    pub(crate) keeps_checkpoints: bool,
    /// Names of tasks, by their keys.
    names: HashMap<String, String>,
    _owner: Owner,
}

impl Store {
    /// Opens a folder, or creates it.
    ///
    /// # Errors
    /// If the folder cannot be created, or another process uses it.
    pub fn open(folder: &Path) -> Result<Self> {
        let runs = folder.join("runs");
        check_no_link(&runs)?;
        std::fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
        // Its owner removes what a killed one left, here and in `runs`.
        Ok(Self {
            folder: folder.into(),
            keeps_checkpoints: false,
            names: HashMap::new(),
            _owner: Owner::of(folder)?,
        })
    }

    /// Keeps the checkpoints of finished trainings, so that their runs can go on and their pages show
    /// chains.
    #[must_use]
    pub fn keeping_checkpoints(self) -> Self {
        Self { keeps_checkpoints: true, ..self }
    }

    /// Names the files of tasks, by the keys of the tasks. The files of other tasks are named by their
    /// keys. A name must not stand for two tasks.
    #[must_use]
    pub fn naming(mut self, names: impl IntoIterator<Item = (String, String)>) -> Self {
        for (key, name) in names {
            self.names.entry(key).or_insert(name);
        }
        self
    }

    /// The name of the files of a task.
    fn name(&self, task: &Task) -> String {
        let key = task.key();
        self.names.get(&key).cloned().unwrap_or(key)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the run of a task, into which the task writes.
    ///
    /// # Errors
    /// If there is a link in its place.
    pub(crate) fn run_folder(&self, task: &Task) -> Result<RunFolder> {
        let path = self.path(task);
        check_no_link(&path)?;
        Ok(RunFolder::new(path))
    }

    /// The path of the files of a task. Its record has this path with `.json`.
    pub fn path(&self, task: &Task) -> PathBuf {
        self.folder.join("runs").join(self.name(task))
    }

    fn record_path(&self, task: &Task) -> PathBuf {
        self.folder.join("runs").join(format!("{}.json", self.name(task)))
    }

    /// The record of a task, if it is finished.
    ///
    /// # Errors
    /// If its file is damaged, or belongs to another task.
    pub fn find(&self, task: &Task) -> Result<Option<Record>> {
        let path = self.record_path(task);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, MAX_RECORD)?;
        let record: Record = serde_json::from_str(&text).map_err(|e| {
            Error::malformed(&path, format!("it is not a result ({e}); delete it, and it is made again"))
        })?;
        if record.task != as_json(task) {
            return Err(Error::malformed(
                &path,
                "it holds the result of other settings than its name says; delete it, and it is made again",
            ));
        }
        // The process that stored it may have been killed right afterwards.
        self.remove_checkpoints(task)?;
        Ok(Some(record))
    }

    /// The record of a finished task.
    ///
    /// # Errors
    /// If the task is not finished.
    pub fn get(&self, task: &Task) -> Result<Record> {
        self.find(task)?.ok_or(Error::MissingState { what: "the result of a run that was to be made first" })
    }

    /// Stores a result.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, task: &Task, result: Value, seconds: f64, cpu_seconds: Option<f64>) -> Result<Record> {
        let record = Record {
            name: task.name(),
            task: as_json(task),
            result,
            seconds,
            cpu_seconds,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let json = serde_json::to_string_pretty(&record).expect("records are plain JSON");
        write_inside(&self.record_path(task), json.as_bytes())?;
        self.remove_checkpoints(task)?;
        Ok(record)
    }

    /// Removes the checkpoints of a training whose record is stored. Until then a killed process
    /// needs them to go on.
    fn remove_checkpoints(&self, task: &Task) -> Result<()> {
        let checkpoints = RunFolder::new(self.path(task)).checkpoints();
        let is_kept = self.keeps_checkpoints || !matches!(task, Task::Train(_));
        if is_kept || !team::is_first() || !checkpoints.exists() {
            return Ok(());
        }
        std::fs::remove_dir_all(&checkpoints).map_err(Error::io("delete", &checkpoints))
    }
}

/// Rejects a link in the place of a folder: nothing is written through the links of a folder that may
/// come from a stranger.
fn check_no_link(folder: &Path) -> Result<()> {
    match folder.is_symlink() {
        true => Err(Error::malformed(folder, "is a link; put the folder itself in its place")),
        false => Ok(()),
    }
}

fn as_json(task: &Task) -> Value {
    serde_json::to_value(task).expect("tasks are plain JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use mclv::settings::{Settings, Starts};

    fn task(seed: u64) -> Task {
        let data = Some("digits".into());
        let options = Options { data, seeds: vec![0], quick: true, starts: Starts::Fresh, models: None };
        Task::Train(options.run(&Settings { seed: Some(seed), ..Settings::default() }))
    }

    #[test]
    fn results_are_found_again_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let abandoned = folder.path().join(".mclv-1.tmp");
        std::fs::write(&abandoned, "half").unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(!abandoned.exists(), "an owner who was killed left it");
        let task = task(0);
        assert!(store.find(&task).unwrap().is_none() && store.get(&task).is_err());
        let record = store.put(&task, Value::from(7), 1.5, None).unwrap();
        assert_eq!(store.find(&task).unwrap(), Some(record.clone()));
        assert_eq!(record.read::<u8>().unwrap(), 7);
        let other = super::tests::task(3);
        std::fs::copy(store.record_path(&task), store.record_path(&other)).unwrap();
        assert!(store.find(&other).unwrap_err().to_string().contains("other settings"));
        std::fs::write(store.record_path(&task), "{").unwrap();
        assert!(store.find(&task).unwrap_err().to_string().contains("made again"));
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_the_links_of_a_folder() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("victim")).unwrap();
        std::fs::write(at("victim/.lock"), "precious").unwrap();
        std::fs::create_dir(at("results")).unwrap();
        symlink(at("victim"), at("results/runs")).unwrap();
        let error = Store::open(&at("results")).err().unwrap().to_string();
        assert!(error.contains("runs: is a link"), "{error}");
        assert_eq!(std::fs::read(at("victim/.lock")).unwrap(), b"precious");
        let store = Store::open(&at("own")).unwrap();
        symlink(at("victim"), store.path(&task(0))).unwrap();
        assert!(store.run_folder(&task(0)).unwrap_err().to_string().contains("is a link"));
        assert!(store.run_folder(&task(1)).is_ok());
    }

    #[test]
    fn checkpoints_go_after_the_result_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let task = task(0);
        let checkpoints = RunFolder::new(Store::open(folder.path()).unwrap().path(&task)).checkpoints();
        let make = || std::fs::create_dir_all(&checkpoints).unwrap();
        make();
        let keeping = Store::open(folder.path()).unwrap().keeping_checkpoints();
        keeping.put(&task, Value::from(7), 1.5, None).unwrap();
        assert!(checkpoints.exists());
        drop(keeping);
        let store = Store::open(folder.path()).unwrap();
        store.put(&task, Value::from(7), 1.5, None).unwrap();
        assert!(!checkpoints.exists());
        // As if the process had been killed between the two.
        make();
        store.find(&task).unwrap().unwrap();
        assert!(!checkpoints.exists());
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(folder.path()).unwrap();
        assert!(Store::open(folder.path()).is_err_and(|e| e.to_string().contains("in use by process")));
        drop(first);
        let left = ["", "runs"].map(|sub| folder.path().join(sub).join(".mclv-1.tmp"));
        left.iter().for_each(|path| std::fs::write(path, "half").unwrap());
        assert!(Store::open(folder.path()).is_ok());
        assert!(!left.iter().any(|path| path.exists()), "the next owner tidies up");
    }
}
