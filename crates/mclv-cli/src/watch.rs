//! Shows progress and downloads on standard error, and handles Ctrl-C.

use crate::output::tell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use mclv::progress::Progress;
use mclv::team;
use mclv::{human_seconds, printable};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);
static N_WATCHES: AtomicUsize = AtomicUsize::new(0);
/// True once some work has seen [`STOP`].
static HEARD: AtomicBool = AtomicBool::new(false);
/// Watches of work that has much to lose, such as training.
static N_PATIENT: AtomicUsize = AtomicUsize::new(0);
/// Launchers and batch systems send a signal more than once. Signals within this time of the first
/// count as the same signal.
const SAME_WISH: Duration = Duration::from_secs(2);

/// If no work has heard the first signal after this time, the process ends.
const DEAF: Duration = Duration::from_secs(2);
/// The same time for work that has much to lose. One update of a large model may take long.
const BUSY: Duration = Duration::from_secs(60);

/// The variable with the seconds between two lines of progress, where standard error is not a
/// terminal; 0 for no lines.
const PERIOD: &str = "MCLV_PROGRESS";
/// Its default.
const MINUTE: f64 = 60.0;

/// A progress bar with rate and remaining time. If standard error is not a terminal, a line of
/// progress is printed every minute instead.
///
/// The first Ctrl-C (or SIGTERM) asks the work to stop. Another one, at least two seconds later,
/// ends the process. If no work is watched, the first one ends the process; so it does after two
/// seconds if no work asks whether it should stop.
pub(crate) struct Watch {
    bar: ProgressBar,
    /// True if the work has much to lose, and so has more time to ask.
    is_patient: bool,
    what: String,
    /// True for the one process that prints.
    speaks: bool,
    /// The lines of progress, if there is no bar.
    lines: Option<Lines>,
}

/// Decides when a line of progress is due, and how much time is left.
struct Lines {
    period: Duration,
    state: Mutex<Printed>,
}

/// What lines of progress remember.
struct Printed {
    /// The time of the last line.
    last: Instant,
    part: Option<Part>,
}

/// The first report of a part of the work: when it came, how much was done, and of how much.
#[derive(Clone, Copy)]
struct Part {
    began: Instant,
    first: u64,
    total: u64,
}

impl Lines {
    fn new(period: Duration) -> Self {
        Self { period, state: Mutex::new(Printed { last: Instant::now(), part: None }) }
    }

    /// The lines that a variable asks for. `None` if it is 0.
    fn of_variable(seconds: Option<&str>) -> Option<Self> {
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(MINUTE);
        Duration::try_from_secs_f64(seconds).ok().filter(|period| !period.is_zero()).map(Self::new)
    }

    /// A line about `done` of `total` at the time `now`, if one is due.
    fn line(&self, done: u64, total: u64, now: Instant) -> Option<String> {
        let mut state = self.state.lock().ok()?;
        // Work of several parts counts each part from its beginning.
        let is_same = |part: &Part| part.total == total && part.first <= done;
        let part = state.part.filter(is_same).unwrap_or(Part { began: now, first: done, total });
        state.part = Some(part);
        let Part { began, first, .. } = part;
        if now - state.last < self.period || total == 0 {
            return None;
        }
        state.last = now;
        let percent = format!("{:.0} %", 100.0 * done as f64 / total as f64);
        let left = total.saturating_sub(done) as f64 / done.saturating_sub(first) as f64;
        let seconds = (now - began).as_secs_f64() * left;
        Some(match seconds.is_finite() {
            true => format!("{percent}, about {} left", human_seconds(seconds)),
            false => percent,
        })
    }
}

impl Watch {
    /// Watches work that is measured in `unit` (`states`, `B`). If `unit` is empty, no rate is
    /// shown.
    pub(crate) fn new(what: &str, unit: &str) -> Self {
        listen_for_ctrl_c();
        N_WATCHES.fetch_add(1, Ordering::Relaxed);
        let speaks = team::is_first();
        let target =
            if speaks { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let amount = match unit {
            "" => "",
            "B" => "{bytes}/{total_bytes} ({bytes_per_sec}), ",
            _ => "{rate}, ",
        };
        let style = format!("{what} {{bar:30}} {{percent:>3}} % {amount}{{eta}} left  {{msg}}");
        let unit = unit.to_owned();
        let rate = move |state: &ProgressState, out: &mut dyn Write| {
            // The bar cannot report an error.
            let _ = match state.per_sec() {
                rate if rate >= 1e6 => write!(out, "{:.0} million {unit}/s", rate / 1e6),
                rate => write!(out, "{rate:.0} {unit}/s"),
            };
        };
        bar.set_style(ProgressStyle::with_template(&style).expect("a valid template").with_key("rate", rate));
        let lines = (speaks && !std::io::stderr().is_terminal())
            .then(|| Lines::of_variable(std::env::var(PERIOD).ok().as_deref()))
            .flatten();
        Self { bar, is_patient: false, what: what.into(), speaks, lines }
    }

    /// Gives the work more time to hear a signal.
    pub(crate) fn patient(mut self) -> Self {
        self.is_patient = true;
        N_PATIENT.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// Announces work that takes long, unless lines of progress are switched off.
    pub(crate) fn announce(&self, text: &str) {
        if self.lines.is_some() || std::io::stderr().is_terminal() {
            self.above(text);
        }
    }
}

impl Watch {
    /// Shows `text` after the bar.
    pub(crate) fn say(&self, text: String) {
        self.bar.set_message(printable(&text).into_owned());
    }

    /// Removes the bar from the screen.
    pub(crate) fn hide(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line above the bar, to standard error.
    pub(crate) fn above(&self, text: &str) {
        if self.speaks {
            self.bar.suspend(|| tell(text));
        }
    }
}

impl Progress for Watch {
    fn report(&self, done: u64, total: u64) {
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_position(done);
        if let Some(line) = self.lines.as_ref().and_then(|lines| lines.line(done, total, Instant::now())) {
            let message = self.bar.message();
            let after = if message.is_empty() { "" } else { "; " };
            tell(&format!("{}: {line}{after}{message}", self.what));
        }
    }

    fn cancelled(&self) -> bool {
        let stops = STOP.load(Ordering::Relaxed);
        if stops {
            HEARD.store(true, Ordering::Relaxed);
        }
        stops
    }

    /// A command on a named data set may download its files, and prints where they come from.
    fn may_fetch(&self, how: &str) -> bool {
        self.above(how);
        true
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        N_WATCHES.fetch_sub(1, Ordering::Relaxed);
        if self.is_patient {
            N_PATIENT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns true if a signal ends the process, false if it asks the work to stop.
fn ends_at_once(since_first: Option<Duration>, is_watched: bool) -> bool {
    since_first.map_or(!is_watched, |since| since >= SAME_WISH)
}

/// Waits until `heard` is true, but no longer than `patience`, which may change. Returns the last
/// state.
fn is_heard(heard: &AtomicBool, patience: impl Fn() -> Duration) -> bool {
    let begun = Instant::now();
    while !heard.load(Ordering::Relaxed) && begun.elapsed() < patience() {
        std::thread::sleep(Duration::from_millis(20));
    }
    heard.load(Ordering::Relaxed)
}

fn listen_for_ctrl_c() {
    static ONCE: Once = Once::new();
    static FIRST: OnceLock<Instant> = OnceLock::new();
    ONCE.call_once(|| {
        let listening = ctrlc::set_handler(|| {
            let since_first = FIRST.get().map(Instant::elapsed);
            if ends_at_once(since_first, N_WATCHES.load(Ordering::Relaxed) > 0) {
                std::process::exit(i32::from(crate::INTERRUPTED));
            }
            FIRST.get_or_init(Instant::now);
            STOP.store(true, Ordering::Relaxed);
            std::thread::spawn(|| {
                let patience = || if N_PATIENT.load(Ordering::Relaxed) > 0 { BUSY } else { DEAF };
                if !is_heard(&HEARD, patience) {
                    tell("error: interrupted");
                    std::process::exit(i32::from(crate::INTERRUPTED));
                }
            });
        });
        if let Err(error) = listening {
            tracing::warn!("Ctrl-C will end the program without saving: {error}");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_comes_once_in_a_period() {
        let lines = Lines::of_variable(None).unwrap();
        assert_eq!(lines.period, Duration::from_secs(60));
        let begun = lines.state.lock().unwrap().last;
        let at = |seconds: u64, done: u64| lines.line(done, 400, begun + Duration::from_secs(seconds));
        assert_eq!(at(0, 0), None);
        assert_eq!(at(59, 90), None);
        assert_eq!(at(100, 100).as_deref(), Some("25 %, about 5.0 min left"));
        assert_eq!(at(159, 200), None);
        assert_eq!(at(200, 200).as_deref(), Some("50 %, about 3.3 min left"));
        // Work that was done before the first report says nothing about the speed.
        let resumed = Lines::new(Duration::from_secs(1));
        let begun = resumed.state.lock().unwrap().last;
        assert_eq!(resumed.line(100, 200, begun + Duration::from_secs(2)).as_deref(), Some("50 %"));
        let line = resumed.line(150, 200, begun + Duration::from_secs(12));
        assert_eq!(line.as_deref(), Some("75 %, about 10.0 s left"));
        // The next part of the work has its own speed.
        let line = |done, seconds| resumed.line(done, 1000, begun + Duration::from_secs(seconds));
        assert_eq!(line(0, 20).as_deref(), Some("0 %"));
        assert_eq!(line(500, 30).as_deref(), Some("50 %, about 10.0 s left"));
        assert!(Lines::of_variable(Some("0")).is_none() && Lines::of_variable(Some("-1")).is_none());
        assert_eq!(Lines::of_variable(Some("0.5")).unwrap().period, Duration::from_millis(500));
    }

    #[test]
    fn watched_work_is_asked_first_and_a_repeated_signal_is_no_second_one() {
        assert!(ends_at_once(None, false), "nobody to ask");
        assert!(!ends_at_once(None, true));
        // It may be saving what it has, with nothing to watch.
        for is_watched in [false, true] {
            assert!(!ends_at_once(Some(SAME_WISH / 2), is_watched));
            assert!(ends_at_once(Some(SAME_WISH), is_watched));
        }
    }
    #[test]
    fn a_signal_that_nobody_hears_ends_the_process() {
        let (heard, long) = (AtomicBool::new(false), Duration::from_secs(1000));
        assert!(!is_heard(&heard, || Duration::ZERO));
        // Whoever hears it in time keeps its time.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| is_heard(&heard, || long));
            heard.store(true, Ordering::Relaxed);
            assert!(waits.join().unwrap());
        });
        assert!(is_heard(&heard, || Duration::ZERO));
    }
}
