//! Shows progress and downloads on standard error, and handles Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use mclv::progress::Progress;
use mclv::team;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);
static N_WATCHES: AtomicUsize = AtomicUsize::new(0);
/// Launchers and batch systems send a signal more than once. Signals within this time of the first
/// count as the same signal.
const SAME_WISH: Duration = Duration::from_secs(2);

/// A progress bar with rate and remaining time; silent if standard error is not a terminal.
///
/// The first Ctrl-C (or SIGTERM) asks the work to stop. Another one, at least two seconds later,
/// ends the process. If no work is watched, the first one ends the process.
pub(crate) struct Watch {
    bar: ProgressBar,
    /// True for the one process that prints.
    speaks: bool,
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
        Self { bar, speaks }
    }
}

impl Watch {
    /// Shows `text` after the bar.
    pub(crate) fn say(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Removes the bar from the screen.
    pub(crate) fn hide(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line above the bar, to standard error.
    pub(crate) fn above(&self, text: &str) {
        if self.speaks {
            self.bar.suspend(|| eprintln!("{text}"));
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
    }

    fn cancelled(&self) -> bool {
        STOP.load(Ordering::Relaxed)
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
    }
}

/// Returns true if a signal ends the process, false if it asks the work to stop.
fn ends_at_once(since_first: Option<Duration>, is_watched: bool) -> bool {
    since_first.map_or(!is_watched, |since| since >= SAME_WISH)
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
    fn watched_work_is_asked_first_and_a_repeated_signal_is_no_second_one() {
        assert!(ends_at_once(None, false), "nobody to ask");
        assert!(!ends_at_once(None, true));
        // It may be saving what it has, with nothing to watch.
        for is_watched in [false, true] {
            assert!(!ends_at_once(Some(SAME_WISH / 2), is_watched));
            assert!(ends_at_once(Some(SAME_WISH), is_watched));
        }
    }
}
