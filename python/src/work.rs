//! Do long work on other threads while Python lives on: signals are heard, callbacks are called.

use crate::errors::{MclvError, exception};
use mclv::progress::Progress;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often signals are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// Something to be done with Python at hand; says whether to stop.
type Call = Box<dyn FnOnce(Python<'_>) -> PyResult<bool> + Send>;

/// What a worker says.
enum Event {
    Call(Call),
    Finished,
}

/// The worker's line to the caller's thread.
pub(crate) struct Line {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    events: Mutex<Sender<Event>>,
}

impl Line {
    /// Have `call` made on the caller's thread and wait for it. It says whether to stop.
    pub(crate) fn call(&self, call: impl FnOnce(Python<'_>) -> PyResult<bool> + Send + 'static) {
        let (answer, answered) = channel::<()>();
        let call: Call = Box::new(move |py| {
            let stop = call(py);
            // Nobody waits if the work has been given up.
            let _ = answer.send(());
            stop
        });
        self.send(Event::Call(call));
        let _ = answered.recv();
    }

    fn send(&self, event: Event) {
        // The other end waits for the worker to finish: it is always there.
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

/// What work came to.
pub(crate) struct Done<T> {
    pub(crate) value: T,
    /// A signal or a callback raised this while the work was going on; the work was asked to stop.
    pub(crate) raised: Option<PyErr>,
}

/// Do `work` on `n_threads` threads (`None`: as many as there are cores, or as the environment allows) without the
/// interpreter lock. Signals are looked for all the while, and `on_progress(done, total)` is called.
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

/// Until the worker has finished: make the calls it asks for, look for signals, tell how far it has come.
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

/// [`run`] for work that is of no use unless it is finished.
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

/// The threads of the last call; they are kept, for they are dear to start.
static POOL: Mutex<Option<(u32, usize, Arc<ThreadPool>)>> = Mutex::new(None);

/// A pool of `n_threads`. Never rayon's global one: its threads do not survive a fork, and work would wait for ever.
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
    // A pool of the process that this one was forked from has no threads that could be ended.
    if let Some((of_process, _, old)) = kept.replace((process, n, Arc::clone(&pool)))
        && of_process != process
    {
        std::mem::forget(old);
    }
    Ok(pool)
}

/// What the environment says, as joblib does to its workers; else one for each core.
fn n_threads_by_default() -> usize {
    ["MCLV_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
