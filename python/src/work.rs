//! Runs long work on other threads while Python handles signals and callbacks.

use crate::errors::{MclvError, exception};
use mclv::progress::Progress;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::any::Any;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// A call into Python. It returns true to stop the work.
type Call = Box<dyn FnOnce(Python<'_>) -> PyResult<bool> + Send>;

/// A message from a worker.
enum Event {
    /// A call, and the channel on which the worker hears that it has returned.
    Call(Call, Sender<()>),
    Finished,
}

/// The channel from the worker to the caller's thread.
pub(crate) struct Line {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    events: Mutex<Sender<Event>>,
}

impl Line {
    /// Runs `call` on the caller's thread and waits for it. If it returns true, the work should stop.
    pub(crate) fn call(&self, call: impl FnOnce(Python<'_>) -> PyResult<bool> + Send + 'static) {
        let (answer, answered) = channel::<()>();
        self.send(Event::Call(Box::new(call), answer));
        let _ = answered.recv();
    }

    fn send(&self, event: Event) {
        // The caller waits for the worker to finish, so the channel is open.
        let _ = self.events.lock().unwrap_or_else(PoisonError::into_inner).send(event);
    }
}

impl Progress for Line {
    fn report(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The result of work.
pub(crate) struct Done<T> {
    pub(crate) value: T,
    /// The exception of a signal or a callback during the work, after which the work was asked to
    /// stop.
    pub(crate) raised: Option<PyErr>,
}

/// Runs `work` without the interpreter lock on `n_threads` threads (`None`: the number of cores, or
/// what the environment allows). Meanwhile it checks for signals and calls `on_progress(done,
/// total)`.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    n_threads: Option<usize>,
    on_progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Line) -> T + Send,
) -> PyResult<Done<T>> {
    let threads = Threads::take(py, n_threads)?;
    let (sender, events) = channel();
    let line = Line {
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
        total: AtomicU64::new(0),
        events: Mutex::new(sender),
    };
    let pool = &threads.pool;
    let (value, raised) = py.detach(move || {
        std::thread::scope(|scope| {
            let line = &line;
            let worker = scope.spawn(move || {
                let value = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(line))));
                line.send(Event::Finished);
                value
            });
            let raised = attend(line, &events, on_progress.as_ref());
            (worker.join(), raised)
        })
    });
    threads.give_back(py);
    match value {
        Ok(Ok(value)) => Ok(Done { value, raised }),
        Ok(Err(panic)) | Err(panic) => Err(internal(&*panic)),
    }
}

/// The exception for a panic.
fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    MclvError::new_err(format!("internal error, please report it: {said}"))
}

/// Runs work that no threads share, on the caller's thread and without the interpreter lock.
pub(crate) fn quick<T: Send>(py: Python<'_>, work: impl FnOnce() -> mclv::Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => result.map_err(exception),
        Err(panic) => Err(internal(&*panic)),
    }
}

/// Refuses work that needs more memory than the system gives. Without this check, the allocation
/// would end the process.
pub(crate) fn check_memory(what: &str, n_bytes: u128) -> PyResult<()> {
    let is_given = |n| {
        let mut room = Vec::<u8>::new();
        let is_given = room.try_reserve_exact(n).is_ok();
        // The compiler must not leave out an allocation that nobody uses.
        black_box(&room);
        is_given
    };
    if usize::try_from(n_bytes).is_ok_and(is_given) {
        return Ok(());
    }
    let gigabytes = n_bytes as f64 / 1e9;
    Err(PyMemoryError::new_err(format!(
        "{what} would take {gigabytes:.3} GB, which is more memory than there is"
    )))
}

/// The memory of `n` rows of packed bits.
pub(crate) fn bytes_of_bits(n_rows: usize, n_bits: usize) -> u128 {
    8 * n_rows as u128 * n_bits.div_ceil(64) as u128
}

/// Waits for the worker. Meanwhile it runs the worker's calls, checks for signals and reports
/// progress.
fn attend(line: &Line, events: &Receiver<Event>, on_progress: Option<&Py<PyAny>>) -> Option<PyErr> {
    let mut raised = None;
    let mut told = Instant::now();
    loop {
        let (call, answer, is_finished) = match events.recv_timeout(PATIENCE) {
            Ok(Event::Call(call, answer)) => (Some(call), Some(answer), false),
            Ok(Event::Finished) => (None, None, true),
            Err(_) => (None, None, false),
        };
        let outcome = Python::try_attach(|py| {
            py.check_signals()?;
            if let Some(listener) = on_progress.filter(|_| is_finished || told.elapsed() >= PATIENCE) {
                told = Instant::now();
                listener
                    .call1(py, (line.done.load(Ordering::Relaxed), line.total.load(Ordering::Relaxed)))?;
            }
            call.map_or(Ok(false), |call| call(py))
        });
        // If Python is shutting down, this is a thread that nobody waits for: the work ends.
        let outcome = outcome.unwrap_or(Ok(true));
        if !matches!(outcome, Ok(false)) {
            line.stop.store(true, Ordering::Relaxed);
        }
        if let Err(error) = outcome {
            raised.get_or_insert(error);
        }
        // The worker goes on only now, when it can see that it should stop.
        if let Some(answer) = answer {
            let _ = answer.send(());
        }
        if is_finished {
            return raised;
        }
    }
}

/// Like [`run`], for work that has no partial result.
pub(crate) fn finish<T: Send>(
    py: Python<'_>,
    n_threads: Option<usize>,
    work: impl FnOnce(&Line) -> mclv::Result<T> + Send,
) -> PyResult<T> {
    let done = run(py, n_threads, None, work)?;
    match done.raised {
        Some(error) => Err(error),
        None => done.value.map_err(exception),
    }
}

/// Threads that no call uses now. They are kept because starting threads is slow.
struct Idle {
    process: u32,
    pools: Vec<Threads>,
}

/// This lock is held only by threads that also hold the interpreter lock. So it is free when Python
/// forks a process.
static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, pools: Vec::new() });

/// The number of idle pools that are kept.
const MAX_IDLE: usize = 4;

/// The largest number of threads of a call, unless there are more cores.
const MAX_THREADS: usize = 256;

/// The threads of one call. No other call uses them meanwhile: a call inside a callback of this one,
/// or on another Python thread, has its own.
///
/// They are never those of rayon's global pool, which do not survive a fork, so that work would wait
/// forever.
struct Threads {
    n: usize,
    pool: ThreadPool,
}

impl Threads {
    fn take(py: Python<'_>, n_threads: Option<usize>) -> PyResult<Self> {
        let n = n_threads.unwrap_or_else(n_threads_by_default).min(n_cores().max(MAX_THREADS));
        let idle = Self::idle(py, |pools| {
            let found = pools.iter().position(|threads| threads.n == n);
            found.map(|k| pools.remove(k))
        });
        if let Some(threads) = idle {
            return Ok(threads);
        }
        let pool = ThreadPoolBuilder::new().num_threads(n).thread_name(|k| format!("mclv-{k}")).build();
        let pool = pool.map_err(|e| MclvError::new_err(format!("cannot start {n} threads: {e}")))?;
        Ok(Self { n, pool })
    }

    fn give_back(self, py: Python<'_>) {
        let oldest = Self::idle(py, |pools| {
            pools.push(self);
            (pools.len() > MAX_IDLE).then(|| pools.remove(0))
        });
        drop(oldest);
    }

    /// Changes the list of idle pools.
    fn idle<T>(_py: Python<'_>, change: impl FnOnce(&mut Vec<Self>) -> T) -> T {
        let process = std::process::id();
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.process != process {
            // Pools inherited through a fork have no threads that could be ended.
            std::mem::forget(std::mem::take(&mut idle.pools));
            idle.process = process;
        }
        change(&mut idle.pools)
    }
}

/// The number of threads that the environment sets, as joblib does for its workers; else one per
/// core.
fn n_threads_by_default() -> usize {
    ["MCLV_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
        .unwrap_or_else(n_cores)
}

fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
