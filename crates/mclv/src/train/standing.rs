//! Find the run and the model that a path stands for: of a file, of a run folder, or of a sweep.
//!
//! ```text
//! SWEEP/sweep.toml     what was asked for
//! SWEEP/runs/NAME/     a run folder for each combination of settings and each seed
//! SWEEP/runs/NAME.json the result of that run
//! SWEEP/chosen.toml    the run that stands for the sweep, written at its end
//! SWEEP/sweep.csv      a line for each run
//! SWEEP/report.html    the comparison of the runs
//! ```

use super::folder::RunFolder;
use crate::file::write_inside;
use crate::source::read_text;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// The largest length of the file that names a run.
const MAX_CHOSEN: u64 = 1 << 16;

/// The folder of a sweep: the paths of its files, whether or not they exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepFolder {
    path: PathBuf,
}

/// The content of `chosen.toml`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    /// The run folder inside the sweep; missing if no setting could be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

impl SweepFolder {
    /// Names the sweep folder at `path`. Nothing is read or written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file that says what was asked for.
    pub fn definition(&self) -> PathBuf {
        self.path.join("sweep.toml")
    }

    /// Returns the path of the file that names the run which stands for the sweep.
    fn chosen(&self) -> PathBuf {
        self.path.join("chosen.toml")
    }

    /// Returns the path of the table of runs.
    pub fn csv(&self) -> PathBuf {
        self.path.join("sweep.csv")
    }

    /// Returns the path of the page that compares the runs.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Returns true if the folder holds a sweep.
    pub fn holds_a_sweep(&self) -> bool {
        self.definition().is_file()
    }

    /// Records the run that stands for the sweep: a folder inside it, or none.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn choose(&self, run: Option<&Path>) -> Result<()> {
        let inside = |run: &Path| run.strip_prefix(&self.path).unwrap_or(run).to_string_lossy().into_owned();
        let text = toml::to_string(&Chosen { run: run.map(inside) }).expect("a path is plain TOML");
        write_inside(&self.chosen(), text.as_bytes())
    }

    /// Returns the run that stands for the sweep: the best run of the chosen setting.
    ///
    /// # Errors
    /// If the sweep has not ended, or if it has chosen no setting.
    pub fn chosen_run(&self) -> Result<RunFolder> {
        let path = self.chosen();
        if !path.exists() {
            return Err(Error::UnfinishedSweep { path: self.path.clone() });
        }
        let chosen: Chosen = toml::from_str(&read_text(&path, MAX_CHOSEN)?)
            .map_err(|e| Error::malformed(&path, e.message().to_owned()))?;
        let Some(run) = chosen.run else {
            let problem = "is a sweep that has chosen no setting; name one of the runs in its folder `runs`";
            return Err(Error::malformed(&self.path, problem));
        };
        // A file of a stranger must not name folders elsewhere.
        if !Path::new(&run).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Error::malformed(&path, "names a folder outside of the sweep"));
        }
        Ok(RunFolder::new(self.path.join(run)))
    }
}

impl RunFolder {
    /// Names the run that `path` stands for: the run in the folder `path`; the chosen run, if `path`
    /// is the folder of a sweep; or, if `path` is a model, checkpoint or snapshot inside a run
    /// folder, that run.
    ///
    /// # Errors
    /// If `path` is a sweep for which no run stands.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let sweep = SweepFolder::new(path);
        if sweep.holds_a_sweep() {
            return sweep.chosen_run();
        }
        let is_file = path.is_file();
        let holders = path.ancestors().skip(1).take(if is_file { 2 } else { 0 });
        let named =
            |folder: &Path| Self::new(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        Ok(holders.map(named).find(Self::holds_a_run).unwrap_or_else(|| Self::new(path)))
    }
}

/// The model that stands for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The best model.
    Best,
    /// The model at the end, because the run has no best model.
    Last,
    /// The last checkpoint, because the run has no other model.
    Checkpoint,
}

/// Returns the file of the model that `path` stands for. If `path` is the folder of a run or of a
/// sweep, also returns which model of the run it is.
///
/// # Errors
/// If `path` is a sweep for which no run stands.
pub fn find_model(path: impl AsRef<Path>) -> Result<(PathBuf, Option<Standing>)> {
    let path = path.as_ref();
    if !path.is_dir() {
        return Ok((path.into(), None));
    }
    let run = RunFolder::of(path)?;
    Ok(match run.standing_model() {
        None => (run.path().into(), None),
        Some(file) if file == run.best_model() => (file, Some(Standing::Best)),
        Some(file) if file == run.model() => (file, Some(Standing::Last)),
        Some(file) => (file, Some(Standing::Checkpoint)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn a_file_of_a_run_stands_for_the_run_and_a_run_for_its_best_model() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(temporary.path().join("run"));
        std::fs::create_dir_all(folder.path()).unwrap();
        assert_eq!(find_model(folder.path()).unwrap(), (folder.path().into(), None));
        let files = [
            (folder.checkpoint(), Standing::Checkpoint),
            (folder.model(), Standing::Last),
            (folder.best_model(), Standing::Best),
        ];
        for (file, standing) in &files {
            write(file);
            assert_eq!(folder.standing_model().as_ref(), Some(file));
            assert_eq!(find_model(folder.path()).unwrap(), (file.clone(), Some(*standing)));
            assert_eq!(find_model(file).unwrap(), (file.clone(), None));
        }
        // Without settings the folder holds no run.
        assert_eq!(RunFolder::of(&files[1].0).unwrap(), RunFolder::new(&files[1].0));
        write(&folder.config());
        for file in files.iter().map(|(file, _)| file).chain([&folder.config()]) {
            assert_eq!(RunFolder::of(file).unwrap(), folder, "{}", file.display());
        }
        assert_eq!(RunFolder::of(folder.path()).unwrap(), folder);
        assert_eq!(RunFolder::of(folder.checkpoints()).unwrap().path(), folder.checkpoints());
    }

    #[test]
    fn a_sweep_stands_for_its_chosen_run() {
        let temporary = tempfile::tempdir().unwrap();
        let sweep = SweepFolder::new(temporary.path().join("sweep"));
        let run = RunFolder::new(sweep.path().join("runs").join("n-hidden=2,seed=0"));
        write(&run.best_model());
        // Any folder may hold a file of this name.
        assert_eq!(RunFolder::of(sweep.path()).unwrap().path(), sweep.path());
        write(&sweep.definition());
        let error = RunFolder::of(sweep.path()).unwrap_err();
        assert!(matches!(&error, Error::UnfinishedSweep { path } if path == sweep.path()), "{error}");
        sweep.choose(Some(run.path())).unwrap();
        assert_eq!(RunFolder::of(sweep.path()).unwrap(), run);
        assert_eq!(find_model(sweep.path()).unwrap(), (run.best_model(), Some(Standing::Best)));
        sweep.choose(None).unwrap();
        assert!(find_model(sweep.path()).unwrap_err().to_string().contains("has chosen no setting"));
        for text in ["run = \"../other\"", "run = \"/etc\"", "run = 3", "walk = \"runs/a\""] {
            std::fs::write(sweep.chosen(), text).unwrap();
            assert!(RunFolder::of(sweep.path()).is_err(), "{text}");
        }
    }
}
