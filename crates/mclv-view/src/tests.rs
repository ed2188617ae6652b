//! No run folder makes a report panic, hang or take much memory, whatever its files are.

#[path = "../../mclv/tests/fuzz/drive.rs"]
#[expect(clippy::print_stderr, reason = "the output of a test")]
mod drive;
#[path = "../../mclv/tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../mclv/tests/fuzz/readers.rs"]
#[expect(dead_code, reason = "the other readers have their own test")]
mod readers;

use crate::{View, compare, page};
use mclv::progress::Silent;
use mclv::train::RunFolder;
use mclv_report::run::several_runs;
use readers::{Files, RUNS, Reader, join_safetensors, split_safetensors};
use std::path::Path;

const REPORT: &[Reader] = &[Reader { name: "report", read: report, seeds, join: pack, weight: 1 }];

/// The number of run folders that are read without `MCLV_FUZZ`.
const N_FOLDERS: u64 = 1_500;
/// One report of so many has tours and samples, which take time.
const PER_WHOLE: usize = 8;

/// The files of a run, in parts that are damaged before their lengths and checksums are made.
fn seeds() -> Vec<Vec<Vec<u8>>> {
    let parts = |files: &Files| {
        let texts = [files.config.clone().into_bytes(), files.metrics.clone(), files.sittings.clone()];
        let tensors = [&files.checkpoint, &files.model].map(|bytes| split_safetensors(bytes));
        texts.into_iter().chain(tensors.into_iter().flatten()).collect()
    };
    RUNS.iter().map(parts).collect()
}

/// All parts in one file, each after its length.
fn pack(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.iter().flat_map(|part| [&(part.len() as u32).to_le_bytes()[..], part].concat()).collect()
}

/// The parts of a file. Lengths may be damaged, too.
fn unpack(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (part, rest) = rest.split_at(rest.len().min(u32::from_le_bytes(*length) as usize));
        bytes = rest;
        part.to_vec()
    };
    (0..7).map(|_| next()).collect()
}

/// Makes the page of a run, and that of two runs.
fn report(folder: &Path, bytes: &[u8]) {
    let run = RunFolder::new(folder.join("run"));
    let parts = unpack(bytes);
    std::fs::create_dir_all(run.checkpoints()).expect("a folder of ours");
    let files = [
        (run.config(), parts[0].clone()),
        (run.metrics(), parts[1].clone()),
        (run.sittings(), parts[2].clone()),
        (run.checkpoint(), join_safetensors(&parts[3..5])),
        (run.model(), join_safetensors(&parts[5..7])),
    ];
    for (path, content) in files {
        std::fs::write(path, content).expect("a folder of ours");
    }
    let Ok(record) = run.read() else { return };
    let is_whole = bytes.len().is_multiple_of(PER_WHOLE);
    let view = View::new(&record, None, is_whole, &Silent).expect("problems are on the page");
    assert!(page(&record, &view).html().trim_end().ends_with("</html>"), "half a page");
    several_runs(&compare(vec![record.clone(), record])).html();
}

#[test]
fn reports_of_damaged_runs_never_panic_hang_or_take_much_memory() {
    drive::damage_and_read(REPORT, N_FOLDERS);
}

/// The control: the page of a sound run has no problem, and that of a damaged one names it.
#[test]
fn reports_of_sound_runs_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = seeds()[0].clone();
    report(folder.path(), &pack(&parts));
    let run = RunFolder::new(folder.path().join("run"));
    assert_eq!(run.read().unwrap().problems, [""; 0]);
    parts[6].truncate(9);
    report(folder.path(), &pack(&parts));
    let problems = run.read().unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("model.safetensors"), "{problems:?}");
}
