//! Makes the page of a run in progress, from what is new in its folder.

use mclv::progress::Silent;
use mclv::train::{FollowedRun, RunFolder};
use mclv_report::page::{Live, Page};
use mclv_view::{TrainingRows, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Making pages takes at most one part in this number of the time, so that it does not slow down
/// training.
const SHARE: u32 = 50;

/// A page of the run, and what an open page asks for.
pub(super) struct Shown {
    /// Another one for each page.
    pub(super) version: String,
    /// The page as JSON.
    pub(super) state: String,
    page: Page,
    live: Live,
}

impl Shown {
    /// The whole page.
    pub(super) fn page(&self) -> String {
        self.page.live_html(&self.live)
    }
}

/// Makes pages.
pub(super) struct Maker {
    folder: RunFolder,
    run: Option<FollowedRun>,
    /// Some of the training rows, once they were loaded.
    rows: Option<TrainingRows<'static>>,
    shown: Option<Arc<Shown>>,
    n_made: u64,
    /// The time when the last page was ready, and the time to wait before another one.
    last: Option<(Instant, Duration)>,
}

impl Maker {
    pub(super) fn new(folder: RunFolder) -> Self {
        Self { folder, run: None, rows: None, shown: None, n_made: 0, last: None }
    }

    /// The page of the run as it is now, or was a short time ago.
    pub(super) fn shown(&mut self, ended: bool) -> Option<Arc<Shown>> {
        let is_last = ended && self.shown.as_ref().is_none_or(|shown| !shown.live.ended);
        if is_last || self.last.is_none_or(|(ready, pause)| ready.elapsed() >= pause) {
            let begun = Instant::now();
            self.make(ended, is_last);
            self.last = Some((Instant::now(), begun.elapsed() * SHARE));
        }
        self.shown.clone()
    }

    /// Makes a page if there is something new.
    fn make(&mut self, ended: bool, is_last: bool) -> Option<()> {
        let is_new = match &mut self.run {
            Some(run) => run.update(),
            None => {
                self.run = Some(self.folder.follow().ok()?);
                true
            }
        };
        if !is_new && !is_last && self.shown.is_some() {
            return None;
        }
        let run = self.run.as_ref()?.record();
        if self.rows.is_none() {
            self.rows = Some(TrainingRows::new(run, None, &Silent).ok()?.some());
        }
        // No tours: they would slow down training. The final report has them.
        let mut view = View::with_rows(run, self.rows.as_ref()?, false, &Silent).ok()?;
        view.set_running(!ended);
        let page = mclv_view::page(run, &view);
        let of = run.settings.as_ref().map(|settings| settings.epochs);
        let live = Live { epoch: run.epochs_done(), of, ended };
        self.n_made += 1;
        let version = self.n_made.to_string();
        let state = page.state(&version, &live);
        self.shown = Some(Arc::new(Shown { version, state, page, live }));
        Some(())
    }
}
