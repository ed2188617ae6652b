//! Run folders: one owner at a time, damage is found, links are not followed.

use mclv::data::DataSpec;
use mclv::progress::{Progress, Silent};
use mclv::settings::{EstimatorName, EvalEvery, Rule, Settings, Snapshots};
use mclv::train::{Listener, Outcome, Run, RunFolder, RunInput, Snapshot};
use mclv::{ModelFile, Owner, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Stops a run after a number of updates.
struct StopAfter(AtomicU64, u64);

impl Progress for StopAfter {
    fn report(&self, _done: u64, _total: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= self.1
    }
}

impl Listener for StopAfter {}

fn bars(train: Settings) -> RunInput {
    let data = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
    let train = Settings {
        n_hidden: Some(3),
        epochs: Some(6.into()),
        batch_size: Some(5),
        snapshots: Some(Snapshots::from(vec![1])),
        ..train
    };
    RunInput { data, train, ..RunInput::default() }
}

fn with(gradient: EstimatorName) -> Settings {
    Settings { gradient: Some(gradient), ..Settings::default() }
}

/// Every estimator with a memory, and every optimiser.
fn cases() -> Vec<RunInput> {
    vec![
        bars(Settings { optimizer: Some(Rule::Adam), ..with(EstimatorName::Pcd) }),
        bars(with(EstimatorName::Lvs)),
        bars(Settings {
            n_chains: Some(4.into()),
            n_rungs: Some(2),
            momentum: Some(0.5),
            ..with(EstimatorName::Tempered)
        }),
    ]
}

/// Begins a run that stops in its third epoch.
fn begun(folder: &Path, input: &RunInput) {
    let run = Run::load(input.clone(), &Silent).unwrap();
    let mut stop = StopAfter(AtomicU64::new(0), 7);
    let trained = run.training().in_folder(folder).observe(&mut stop).fit(run.rows()).unwrap();
    assert!(matches!(trained.outcome, Outcome::Interrupted { epochs: 2 }), "{:?}", trained.outcome);
}

fn go_on(folder: &Path) -> Result<Outcome> {
    let run = Run::open(folder, &Silent)?;
    Ok(run.training().resume(folder, run.rows())?.finish()?.outcome)
}

/// All regular files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else if path.is_file() && !path.is_symlink() {
            found.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    found
}

#[test]
fn trainings_that_begin_at_the_same_time_get_folders_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    let run = Run::load(bars(with(EstimatorName::Cd)), &Silent).unwrap();
    let folders: BTreeSet<PathBuf> = std::thread::scope(|scope| {
        let train = || {
            let mut session = run.training().in_new_folder(parent.path(), "bars").begin(run.rows()).unwrap();
            while session.epoch().unwrap().is_none() {}
            session.folder().unwrap().path().to_path_buf()
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(train)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(folders, (1..=20).map(|n| parent.path().join(format!("bars-{n}"))).collect());
    for folder in folders {
        let epochs: Vec<usize> =
            RunFolder::new(folder).read_metrics().unwrap().iter().map(|metrics| metrics.epoch).collect();
        assert!(epochs.ends_with(&[1, 2, 3, 4, 5, 6]), "{epochs:?}");
    }
}

#[test]
fn a_run_has_one_owner_and_nothing_changes_for_the_others() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let input = &cases()[0];
    begun(&folder, input);
    let run = Run::open(&folder, &Silent).unwrap();
    let mut session = run.training().resume(&folder, run.rows()).unwrap();
    session.epoch().unwrap();
    let before = files(&folder);
    let refused = go_on(&folder).unwrap_err().to_string();
    assert!(
        refused.contains("is in use by process") && refused.contains("wait until it has ended"),
        "{refused}"
    );
    assert!(files(&folder) == before);
    drop(session);
    assert!(matches!(go_on(&folder), Ok(Outcome::Finished { .. })));

    // A new run and its folder, before the folder holds a run.
    let new = parent.path().join("new");
    std::fs::create_dir(&new).unwrap();
    let owner = Owner::of(&new).unwrap();
    let begin = || run.training().in_folder(&new).begin(run.rows()).map(|_| ());
    assert!(begin().unwrap_err().to_string().contains("in use"));
    assert_eq!(files(&new).len(), 1, "only the lock");
    drop(owner);
    begin().unwrap();
}

/// Random numbers for places to damage (Knuth's MMIX generator).
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

/// The number of bits that are flipped in each kind of file.
fn n_flips() -> usize {
    std::env::var("MCLV_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// A file as an earlier version would have written it: without a checksum.
fn without_checksum(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header: serde_json::Value = serde_json::from_slice(header).unwrap();
    for text in header["__metadata__"].as_object_mut().unwrap().values_mut() {
        let mut facts: serde_json::Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        assert!(facts.as_object_mut().unwrap().remove("checksum").is_some());
        *text = facts.to_string().into();
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// Copies a run folder.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    for (path, bytes) in files(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// `MCLV_FLIPS=10000` flips more bits.
#[test]
fn a_flipped_bit_of_a_checkpoint_or_model_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1;
    for (k, input) in cases().iter().enumerate() {
        let run = folder.path().join(k.to_string());
        begun(&run, input);
        let names = RunFolder::new(&run);
        for path in [names.checkpoint(), names.snapshot(1)] {
            let good = std::fs::read(&path).unwrap();
            assert!(ModelFile::load(&path).is_ok());
            for _ in 0..n_flips().div_ceil(cases().len()) {
                let bit = below(&mut state, 8 * good.len());
                let mut damaged = good.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(&path, damaged).unwrap();
                let error = ModelFile::load(&path).map(|_| ()).expect_err(&format!("bit {bit}")).to_string();
                assert!(error.contains(path.to_str().unwrap()), "bit {bit}: {error}");
                if path == names.checkpoint() {
                    assert!(Snapshot::load(&run).is_err(), "bit {bit}");
                }
            }
            std::fs::write(&path, good).unwrap();
        }
        assert!(matches!(go_on(&run), Ok(Outcome::Finished { .. })));
    }
}

/// Such damage cannot always be found, but it must neither crash nor hang.
#[test]
fn a_flipped_bit_of_an_older_checkpoint_ends_in_a_run_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged");
    let mut state = 2;
    for (k, input) in cases().iter().enumerate() {
        let run = folder.path().join(k.to_string());
        let unwatched = Settings { eval_every: Some(EvalEvery::Never), ..input.train.clone() };
        begun(&run, &RunInput { train: unwatched, ..input.clone() });
        let checkpoint = RunFolder::new(&run).checkpoint();
        let older = without_checksum(&std::fs::read(&checkpoint).unwrap());
        let model = |run: &Path| std::fs::read(RunFolder::new(run).model()).unwrap();
        copy(&run, &damaged);
        std::fs::write(RunFolder::new(&damaged).checkpoint(), &older).unwrap();
        go_on(&damaged).unwrap();
        let whole = model(&damaged);
        let (mut n_errors, mut n_harmless) = (0, 0);
        let n = n_flips().div_ceil(cases().len());
        for _ in 0..n {
            copy(&run, &damaged);
            let mut bytes = older.clone();
            let bit = below(&mut state, 8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(RunFolder::new(&damaged).checkpoint(), bytes).unwrap();
            match go_on(&damaged) {
                Err(_) => n_errors += 1,
                Ok(_) => n_harmless += usize::from(model(&damaged) == whole),
            }
        }
        eprintln!("{n} flips without a checksum: {n_errors} errors, {n_harmless} harmless");
        assert!(n_errors > n / 3);
    }
}

#[test]
fn metrics_that_are_too_short_lose_no_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    begun(&run, &cases()[0]);
    let metrics = RunFolder::new(&run).metrics();
    let text = std::fs::read_to_string(&metrics).unwrap();
    let first = text.split_inclusive('\n').next().unwrap();
    std::fs::write(&metrics, &text[..first.len() + 9]).unwrap();
    go_on(&run).unwrap();
    let after = std::fs::read_to_string(&metrics).unwrap();
    assert!(after.starts_with(first) && !after.contains('\0'), "{after}");
    let epochs: Vec<usize> =
        RunFolder::new(&run).read_metrics().unwrap().iter().map(|metrics| metrics.epoch).collect();
    assert_eq!(epochs[1..], [3, 4, 5, 6]);
    // Without the file, the epochs to come are recorded all the same.
    let run = folder.path().join("other");
    begun(&run, &cases()[0]);
    std::fs::remove_file(RunFolder::new(&run).metrics()).unwrap();
    go_on(&run).unwrap();
    assert_eq!(RunFolder::new(&run).read_metrics().unwrap().len(), 4);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_the_links_of_a_run_folder() {
    use std::os::unix::fs::symlink;
    let parent = tempfile::tempdir().unwrap();
    let (run, victim) = (parent.path().join("run"), parent.path().join("victim"));
    begun(&run, &cases()[1]);
    let names = RunFolder::new(&run);
    let untouched = |victim: &Path, content: &[u8]| assert_eq!(std::fs::read(victim).unwrap(), content);
    // Files that are read are linked to what they hold, and the others to anything.
    for file in [names.metrics(), names.sittings(), names.checkpoint(), names.config()] {
        std::fs::rename(&file, &victim).unwrap();
        symlink(&victim, &file).unwrap();
        let content = std::fs::read(&victim).unwrap();
        let run = Run::open(&run, &Silent).unwrap();
        let mut stop = StopAfter(AtomicU64::new(0), 1);
        let session = run.training().observe(&mut stop).resume(names.path(), run.rows()).unwrap();
        session.finish().unwrap();
        untouched(&victim, &content);
        if file.is_symlink() {
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, content).unwrap();
        }
    }
    std::fs::write(&victim, "precious").unwrap();
    for file in [names.model(), names.best_model()] {
        let _ = std::fs::remove_file(&file);
        symlink(&victim, &file).unwrap();
    }
    go_on(&run).unwrap();
    untouched(&victim, b"precious");
    assert!(ModelFile::load(names.model()).is_ok() && !names.model().is_symlink());
    // Folders, too.
    for (k, linked) in ["checkpoints", "snapshots"].into_iter().enumerate() {
        let run = parent.path().join(format!("linked {k}"));
        begun(&run, &cases()[1]);
        let elsewhere = parent.path().join(format!("elsewhere {k}"));
        std::fs::rename(run.join(linked), &elsewhere).unwrap();
        symlink(&elsewhere, run.join(linked)).unwrap();
        let before = files(&elsewhere);
        let error = go_on(&run).unwrap_err().to_string();
        assert!(error.contains(linked) && error.contains("is a link"), "{error}");
        assert!(files(&elsewhere) == before);
    }
}
