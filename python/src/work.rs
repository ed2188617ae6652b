//! Runs long work on other threads while Python handles signals and callbacks.

use crate::errors::{MclvError, exception};
use mclv::progress::Progress;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// A call into Python. It returns true to stop the work.
type Call = Box<dyn FnOnce(Python<'_>) -> PyResult<bool> + Send>;

/// A message from a worker.
enum Event {
    Call(Call),
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
    /// Runs `call` on the caller's thread and waits for it. Returns true to stop the work.
    pub(crate) fn call(&self, call: impl FnOnce(Python<'_>) -> PyResult<bool> + Send + 'static) {
        let (answer, answered) = channel::<()>();
        let call: Call = Box::new(move |py| {
            let stop = call(py);
            // If the work was abandoned, nobody waits for the answer.
            let _ = answer.send(());
            stop
        });
        self.send(Event::Call(call));
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
    let pool = pool(n_threads)?;
    let (sender, events) = channel();
    let line = Line {
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
        total: AtomicU64::new(0),
        events: Mutex::new(sender),
    };
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
    match value {
        Ok(Ok(value)) => Ok(Done { value, raised }),
        Ok(Err(panic)) | Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(MclvError::new_err(format!("internal error, please report it: {said}")))
        }
    }
}

/// Waits for the worker. Meanwhile it runs the worker's calls, checks for signals and reports
/// progress.
fn attend(line: &Line, events: &Receiver<Event>, on_progress: Option<&Py<PyAny>>) -> Option<PyErr> {
    let mut raised = None;
    let mut told = Instant::now();
    loop {
        let event = events.recv_timeout(PATIENCE);
        let is_finished = matches!(event, Ok(Event::Finished));
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            if let Some(listener) = on_progress.filter(|_| is_finished || told.elapsed() >= PATIENCE) {
                told = Instant::now();
                listener
                    .call1(py, (line.done.load(Ordering::Relaxed), line.total.load(Ordering::Relaxed)))?;
            }
            if let Ok(Event::Call(call)) = event { call(py) } else { Ok(false) }
        });
        if !matches!(outcome, Ok(false)) {
            line.stop.store(true, Ordering::Relaxed);
        }
        if let Err(error) = outcome {
            raised.get_or_insert(error);
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

/// The threads of the last call. They are kept because starting threads is slow.
static POOL: Mutex<Option<(u32, usize, Arc<ThreadPool>)>> = Mutex::new(None);

/// A pool of `n_threads`. It is never rayon's global pool, whose threads do not survive a fork, so
/// that work would wait forever.
fn pool(n_threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let (process, n) = (std::process::id(), n_threads.unwrap_or_else(n_threads_by_default));
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of_process, of_threads, pool)) = &*kept
        && (*of_process, *of_threads) == (process, n)
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(n).thread_name(|k| format!("mclv-{k}")).build();
    let pool = Arc::new(pool.map_err(|e| MclvError::new_err(format!("cannot start {n} threads: {e}")))?);
    // A pool inherited through a fork has no threads that could be ended.
    if let Some((of_process, _, old)) = kept.replace((process, n, Arc::clone(&pool)))
        && of_process != process
    {
        std::mem::forget(old);
    }
    Ok(pool)
}

/// The number of threads that the environment sets, as joblib does for its workers; else one per
/// core.
fn n_threads_by_default() -> usize {
    ["MCLV_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
