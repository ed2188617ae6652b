//! Follow a run in progress: read only what is new, and keep only as much as a page can show.

use super::checkpoint::Snapshot;
use super::folder::{RunFolder, RunRecord, WarningTally};
use super::monitor::Metrics;
use crate::Result;
use crate::file::ModelFile;
use crate::source::open_file;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Epochs of each kind (with and without an evaluation) that are always kept. At most twice as many
/// are kept at any time.
const KEPT: usize = 1000;
/// The most bytes of metrics that are read at a time.
const PIECE: u64 = 1 << 20;

/// The record of a run in progress. Its metrics are thinned, so its size does not grow with the
/// number of epochs.
///
/// ```
/// # use mclv::{data::DataSpec, progress::Silent, settings::Settings, train::{Run, RunInput, RunFolder}};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("run");
/// # let data = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
/// # let train = Settings { n_hidden: Some(2), epochs: Some(2.into()), ..Settings::default() };
/// # let run = Run::load(RunInput { data, train, ..RunInput::default() }, &Silent)?;
/// let mut session = run.training().in_folder(&path).begin(run.rows())?;
/// let mut followed = RunFolder::new(&path).follow()?;
/// session.epoch()?;
/// followed.update();
/// assert_eq!(followed.record().epochs_done(), 1);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Debug)]
pub struct FollowedRun {
    record: RunRecord,
    /// The bytes of whole lines of metrics that were read.
    position: u64,
    /// All bytes of metrics that were read from the file.
    n_bytes_read: u64,
    /// The number of epochs that are kept, without and with an evaluation.
    n_kept: [usize; 2],
    checkpoint: Written,
    model: Written,
}

/// The length of a file and the time when it was written; `None` if there is no file.
type Written = Option<(u64, Option<SystemTime>)>;

fn written(path: &Path) -> Written {
    let metadata = path.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

impl RunFolder {
    /// The model at the end, or the best so far.
    fn best_or_last(&self) -> PathBuf {
        Some(self.model()).filter(|path| path.exists()).unwrap_or_else(|| self.best_model())
    }

    /// Reads a run, to read what is new in it later.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn follow(&self) -> Result<FollowedRun> {
        let (checkpoint, model) = (written(&self.checkpoint()), written(&self.best_or_last()));
        let record = self.read_without_metrics()?;
        let mut followed =
            FollowedRun { record, position: 0, n_bytes_read: 0, n_kept: [0; 2], checkpoint, model };
        followed.update();
        Ok(followed)
    }
}

impl FollowedRun {
    /// Returns the run as far as it was read. If there are very many epochs, its metrics are some of
    /// them: the first, the last, and some between.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns how many bytes of metrics were read so far.
    pub fn n_bytes_read(&self) -> u64 {
        self.n_bytes_read
    }

    /// Reads what was written since the last time. Returns true if there was something.
    pub fn update(&mut self) -> bool {
        let before = (self.position, self.checkpoint, self.model);
        self.read_metrics();
        let folder = &self.record.folder;
        let (checkpoint, model) = (written(&folder.checkpoint()), written(&folder.best_or_last()));
        if checkpoint != self.checkpoint
            && let Ok(snapshot) = Snapshot::load(folder.path())
        {
            self.record.snapshot = Some(snapshot);
            self.checkpoint = checkpoint;
        }
        if model != self.model
            && let Ok(file) = ModelFile::load(folder.best_or_last())
        {
            self.record.model = Some(file);
            self.model = model;
        }
        let made_all = self.record.settings.as_ref().is_some_and(|s| s.epochs == self.record.epochs_done());
        self.record.is_finished = made_all || self.record.folder.model().exists();
        before != (self.position, self.checkpoint, self.model)
    }

    /// Reads new whole lines of metrics. Damaged lines are left out.
    fn read_metrics(&mut self) {
        let path = self.record.folder.metrics();
        let Ok((mut file, length)) = open_file(&path) else { return };
        // A run that was resumed from a checkpoint has lost lines.
        if length < self.position {
            (self.position, self.record.metrics, self.n_kept) = (0, Vec::new(), [0; 2]);
            self.record.warned = Some(WarningTally::default());
        }
        if length == self.position || file.seek(SeekFrom::Start(self.position)).is_err() {
            return;
        }
        let mut left = Vec::new();
        loop {
            let begun = left.len();
            let read = (&mut file).take(PIECE).read_to_end(&mut left);
            self.n_bytes_read += (left.len() - begun) as u64;
            let whole = left.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            for line in left[..whole].split(|&byte| byte == b'\n') {
                if let Ok(metrics) = serde_json::from_slice::<Metrics>(line) {
                    self.add(metrics);
                }
            }
            self.position += whole as u64;
            left.drain(..whole);
            if !matches!(read, Ok(n) if n as u64 == PIECE) {
                return;
            }
        }
    }

    fn add(&mut self, metrics: Metrics) {
        let kept = &mut self.record.metrics;
        self.record.warned.get_or_insert_default().add(&metrics);
        let is_evaluated = |m: &Metrics| m.judged_log_likelihood().is_some();
        let kind = is_evaluated(&metrics);
        let n_kept = &mut self.n_kept[usize::from(kind)];
        *n_kept += 1;
        kept.push(metrics);
        if *n_kept > 2 * KEPT {
            // Their number is odd now, so the first and the last stay.
            let mut stays = false;
            kept.retain(|m| {
                stays ^= is_evaluated(m) == kind;
                is_evaluated(m) != kind || stays
            });
            *n_kept = KEPT + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Warning;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn line(epoch: usize) -> String {
        let likelihood = epoch.is_multiple_of(10).then_some(-(epoch as f64));
        let warnings =
            if epoch % 100 == 7 { vec![Warning::StaleChains { moved: epoch as f64 }] } else { Vec::new() };
        let metrics = Metrics { epoch, train_log_likelihood: likelihood, warnings, ..Metrics::default() };
        serde_json::to_string(&metrics).unwrap() + "\n"
    }

    fn append(folder: &RunFolder, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(folder.metrics()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// However many epochs there are, and however often it is asked, each byte is read once, and few
    /// epochs are kept.
    #[test]
    fn each_line_is_read_once_and_few_epochs_are_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(temporary.path());
        append(&folder, &line(0));
        let mut followed = folder.follow().unwrap();
        let mut n_bytes = line(0).len() as u64;
        const N: usize = 30_000;
        for epoch in 1..=N {
            append(&folder, &line(epoch));
            n_bytes += line(epoch).len() as u64;
            if epoch % 7 == 0 || epoch == N {
                assert!(followed.update() && !followed.update());
                let record = followed.record();
                assert_eq!((record.epochs_done(), record.metrics[0].epoch), (epoch, 0));
                assert!(record.metrics.len() <= 4 * KEPT, "{}", record.metrics.len());
            }
        }
        assert_eq!(followed.n_bytes_read(), n_bytes);
        let whole = folder.read().unwrap();
        let record = followed.record();
        assert_eq!(whole.metrics.len(), N + 1);
        let evaluated = record.metrics.iter().filter(|m| m.train_log_likelihood.is_some()).count();
        assert!(evaluated >= KEPT && record.metrics.len() - evaluated >= KEPT, "{evaluated}");
        assert!(record.metrics.is_sorted_by_key(|m| m.epoch));
        assert!(record.metrics.iter().all(|m| *m == whole.metrics[m.epoch]));
        // What is said about the whole run is still about the whole run.
        assert_eq!(record.warnings(), whole.warnings());
        assert_eq!(record.last_evaluated(), whole.last_evaluated());
    }

    #[test]
    fn half_lines_wait_and_a_run_that_went_back_is_read_again() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(temporary.path());
        append(&folder, &line(1));
        let mut followed = folder.follow().unwrap();
        let two = line(2);
        append(&folder, &two[..9]);
        assert!(!followed.update());
        append(&folder, &two[9..]);
        append(&folder, "no metrics\n");
        assert!(followed.update());
        let epochs =
            |followed: &FollowedRun| followed.record().metrics.iter().map(|m| m.epoch).collect::<Vec<_>>();
        assert_eq!(epochs(&followed), [1, 2]);
        std::fs::write(folder.metrics(), line(1)).unwrap();
        assert!(followed.update());
        assert_eq!(epochs(&followed), [1]);
        std::fs::remove_file(folder.metrics()).unwrap();
        assert!(!followed.update());
    }
}
