//! Show progress on standard error, and hear Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mclv::progress::Progress;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static STOP: AtomicBool = AtomicBool::new(false);

/// A progress bar with rate and remaining time; silent if standard error is not a terminal.
///
/// The first Ctrl-C asks the work to stop, the second ends the process.
pub(crate) struct Watch {
    bar: ProgressBar,
}

impl Watch {
    /// Watch work that is measured in `unit` (`states`, `B`).
    pub(crate) fn new(what: &str, unit: &str) -> Self {
        listen_for_ctrl_c();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let amount = if unit == "B" { "{bytes}/{total_bytes} ({bytes_per_sec})" } else { "{per_sec}" };
        let style = format!("{what} {{bar:30}} {{percent:>3}} % {amount}, {{eta}} left");
        bar.set_style(ProgressStyle::with_template(&style).expect("a valid template"));
        Self { bar }
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
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn listen_for_ctrl_c() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let listening = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(crate::INTERRUPTED));
            }
        });
        if let Err(error) = listening {
            tracing::warn!("Ctrl-C will not be handled gently: {error}");
        }
    });
}
