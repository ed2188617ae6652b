//! Give damaged files to readers.
//!
//! `MCLV_FUZZ=N` reads N damaged files instead of the usual number. `MCLV_FUZZ_FROM=K` begins with
//! case K.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use super::mutate;
use super::readers::Reader;

/// The most processor time that a small file may take. On a busy machine it passes slowly.
const MOST_WORK: Duration = Duration::from_secs(30);
/// The longest that it may take if it waits for something.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most memory of this process: eight times what the content of a small file may take.
const MAX_MEMORY: u64 = 2 << 30;
/// Memory is measured after this many files.
const PER_MEASUREMENT: u64 = 16;

/// The file that is being read, and when that began.
#[derive(Clone, Copy)]
struct Reading {
    begun: Instant,
    work_before: ProcessTime,
    reader: &'static str,
    case: u64,
}

static NOW: Mutex<Option<Reading>> = Mutex::new(None);

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.replace('_', "").parse().unwrap_or_else(|_| panic!("{variable} is no number")))
}

/// The largest memory of this process so far, if the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

/// Ends the process if a file takes too long: a test cannot be stopped from outside.
fn watch() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let Some(now) = *NOW.lock().unwrap() else { continue };
            let work = now.work_before.elapsed();
            if work > 2 * MOST_WORK || now.begun.elapsed() > PATIENCE {
                eprintln!("{}, case {}: not read after {work:?} of work", now.reader, now.case);
                std::process::abort();
            }
        }
    });
}

/// Reads one damaged file. Returns the problem if there is one.
fn read(reader: &'static Reader, seeds: &[Vec<Vec<u8>>], case: u64, folder: &Path) -> Option<String> {
    let bytes = mutate::file(reader, seeds, case);
    let work_before = ProcessTime::now();
    *NOW.lock().unwrap() = Some(Reading { begun: Instant::now(), work_before, reader: reader.name, case });
    let result = catch_unwind(AssertUnwindSafe(|| (reader.read)(folder, &bytes)));
    *NOW.lock().unwrap() = None;
    let problem = match result {
        Err(_) => "panics".into(),
        Ok(()) => {
            let work = work_before.elapsed();
            if work <= MOST_WORK {
                return None;
            }
            format!("takes {work:?} of work")
        }
    };
    let kept = std::env::temp_dir().join(format!("mclv-fuzz-{}-{case}", reader.name));
    std::fs::write(&kept, &bytes).unwrap();
    Some(format!("{}, case {case} {problem}; the file is {}", reader.name, kept.display()))
}

/// Gives damaged files to readers: `n_files` together, unless `MCLV_FUZZ` says another number.
///
/// # Panics
/// If a reader does, or takes too long or too much memory.
pub(crate) fn damage_and_read(readers: &'static [Reader], n_files: u64) {
    watch();
    let n_files = number("MCLV_FUZZ").unwrap_or(n_files);
    let first = number("MCLV_FUZZ_FROM").unwrap_or(0);
    let weights: u64 = readers.iter().map(|reader| reader.weight).sum();
    let mut problems = Vec::new();
    let mut total = 0;
    for reader in readers {
        let n = (n_files * reader.weight).div_ceil(weights);
        let seeds = (reader.seeds)();
        // In memory where possible: the files are small, many, and not worth a disk's time.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for seed in &seeds {
            (reader.read)(folder.path(), &(reader.join)(seed));
        }
        let begun = Instant::now();
        let base = peak_memory();
        for case in first..first + n {
            problems.extend(read(reader, &seeds, case, folder.path()));
            if case % PER_MEASUREMENT == 0
                && let Some(peak) = peak_memory().filter(|peak| *peak > MAX_MEMORY && Some(*peak) != base)
            {
                let from = case.saturating_sub(PER_MEASUREMENT);
                problems.push(format!("{}, cases {from} to {case}: {} MB", reader.name, peak >> 20));
                break;
            }
            if problems.len() >= 20 {
                break;
            }
        }
        total += n;
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{}: {n} files in {seconds:.1} s, {:.0} µs each", reader.name, 1e6 * seconds / n as f64);
    }
    let peak = peak_memory().unwrap_or(0) >> 20;
    eprintln!("{total} files; at most {peak} MB");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
