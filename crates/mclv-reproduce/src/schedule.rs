//! Runs tasks side by side, such that no task waits for a later one.

use crate::store::Store;
use crate::task::Task;
use crate::work;
use cpu_time::ThreadTime;
use mclv::progress::Progress;
use mclv::{Error, Result, team};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// A listener to the progress of tasks. `report` counts thousandths of nominal seconds.
pub trait Listener: Progress {
    /// A task is finished after `seconds` on a core. `done` of the `total` tasks that were open at
    /// the start are finished.
    fn finished(&self, name: &str, seconds: f64, done: usize, total: usize);
}

struct State {
    waiting: Vec<Task>,
    /// Keys of unfinished tasks.
    open: HashSet<String>,
    n_done: usize,
    failed: Option<Error>,
}

/// Runs all unfinished `tasks`, and those that they need, `n_threads` at a time, each on one thread.
/// If there are fewer tasks than threads, each task has several.
///
/// Results do not depend on the number of threads. An interrupted training continues from its
/// checkpoint. In a [team], each rank runs whole tasks and then waits for the others.
///
/// # Errors
/// The first error of a task. Running tasks are then asked to stop, and can be continued later.
pub fn run(tasks: &[Task], store: &Store, n_threads: usize, listener: &dyn Listener) -> Result<()> {
    let done = run_mine(tasks, store, n_threads, listener);
    team::together(done)
}

/// The tasks of this rank. They do not depend on which tasks are finished, because other ranks may
/// be finishing theirs.
fn run_mine(tasks: &[Task], store: &Store, n_threads: usize, listener: &dyn Listener) -> Result<()> {
    let mut seen = HashSet::new();
    let mut waiting = Vec::new();
    // A task that another needs runs on the rank that needs it. Timings run on the first rank.
    let mut groups = HashMap::new();
    for task in tasks.iter().flat_map(|task| [task.needs(), Some(task.clone())]).flatten() {
        let group = task.needs().unwrap_or_else(|| task.clone()).key();
        let n_groups = groups.len();
        let rank = if task.is_alone() { 0 } else { *groups.entry(group).or_insert(n_groups) % team::size() };
        if seen.insert(task.key()) && rank == team::rank() && store.find(&task)?.is_none() {
            waiting.push(task);
        }
    }
    let total = waiting.len();
    let open = waiting.iter().map(Task::key).collect();
    let all: f64 = waiting.iter().map(Task::nominal_seconds).sum();
    let (mut alone, waiting): (Vec<Task>, Vec<Task>) = waiting.into_iter().partition(Task::is_alone);
    let n_workers = n_threads.min(waiting.len()).max(1);
    let shares = Shares { all, done: Mutex::default(), stop: AtomicBool::new(false), listener };
    let state = Mutex::new(State { waiting, open, n_done: 0, failed: None });
    let changed = Condvar::new();
    let sets = work::DataSets::default();
    let work = || {
        loop {
            let mut now = state.lock().expect("no worker panics");
            let task = loop {
                if now.failed.is_some() || now.waiting.is_empty() {
                    return;
                }
                let ready = |task: &Task| task.needs().is_none_or(|first| !now.open.contains(&first.key()));
                match now.waiting.iter().position(ready) {
                    Some(k) => break now.waiting.remove(k),
                    // Another worker is running the task that is needed.
                    None => now = changed.wait(now).expect("no worker panics"),
                }
            };
            drop(now);
            let n_each = if task.is_alone() { 1 } else { n_threads / n_workers };
            let threads = rayon::ThreadPoolBuilder::new().num_threads(n_each).build().expect("threads");
            let begun = Instant::now();
            let (done, cpu) = threads.install(|| {
                let begun = ThreadTime::now();
                (work::run(&task, store, &sets, &shares.of(&task)), begun.elapsed().as_secs_f64())
            });
            let kept = done.and_then(|(result, before)| {
                let seconds = before + begun.elapsed().as_secs_f64();
                // The clock of one thread does not count the work of others.
                store.put(&task, result, seconds, (before == 0.0 && n_each == 1).then_some(cpu))
            });
            let mut now = state.lock().expect("no worker panics");
            match kept {
                Ok(record) => {
                    now.open.remove(&task.key());
                    now.n_done += 1;
                    shares.finish(&task);
                    listener.finished(
                        &record.name,
                        record.cpu_seconds.unwrap_or(record.seconds),
                        now.n_done,
                        total,
                    );
                }
                Err(error) => {
                    shares.stop.store(true, Ordering::Relaxed);
                    now.failed = now.failed.take().or(Some(error));
                }
            }
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(work);
        }
    });
    // Timings run when no rank has other work.
    let so_far = state.lock().expect("no worker panics").failed.take();
    team::together(so_far.map_or(Ok(()), Err))?;
    state.lock().expect("no worker panics").waiting.append(&mut alone);
    if state.lock().expect("no worker panics").failed.is_none() {
        std::thread::scope(|scope| scope.spawn(work).join().expect("no worker panics"));
    }
    state.into_inner().expect("no worker panics").failed.map_or(Ok(()), Err)
}

/// The progress of all tasks.
struct Shares<'a> {
    all: f64,
    /// Nominal seconds done, for each started task.
    done: Mutex<HashMap<String, f64>>,
    /// True if a task has failed. The others then stop.
    stop: AtomicBool,
    listener: &'a dyn Listener,
}

impl<'a> Shares<'a> {
    fn of(&'a self, task: &Task) -> Share<'a> {
        Share { shares: self, key: task.key(), nominal: task.nominal_seconds() }
    }

    fn finish(&self, task: &Task) {
        self.note(task.key(), task.nominal_seconds());
    }

    fn note(&self, key: String, seconds: f64) {
        let mut done = self.done.lock().expect("no worker panics");
        done.insert(key, seconds);
        let sum: f64 = done.values().sum();
        self.listener.report((1000.0 * sum) as u64, (1000.0 * self.all) as u64);
    }
}

/// The progress of one task.
struct Share<'a> {
    shares: &'a Shares<'a>,
    key: String,
    nominal: f64,
}

impl Progress for Share<'_> {
    fn report(&self, done: u64, total: u64) {
        self.shares.note(self.key.clone(), self.nominal * done as f64 / total.max(1) as f64);
    }

    fn cancelled(&self) -> bool {
        self.shares.stop.load(Ordering::Relaxed) || self.shares.listener.cancelled()
    }

    fn may_fetch(&self, how: &str) -> bool {
        self.shares.listener.may_fetch(how)
    }
}
