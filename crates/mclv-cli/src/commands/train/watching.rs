//! Shows a running training: a progress bar, warnings and TensorBoard events.

use crate::events::Events;
use crate::watch::Watch;
use mclv::Rbm;
use mclv::bits::BitRows;
use mclv::progress::Progress;
use mclv::settings::Spelling;
use mclv::team;
use mclv::train::{Listener, Metrics, Warning};
use std::collections::HashSet;
use std::sync::OnceLock;

/// A progress bar with the last likelihoods. Each kind of warning is printed once.
pub(super) struct Live {
    watch: Watch,
    /// The bar of the last evaluation, while that runs.
    last_evaluation: OnceLock<Watch>,
    said: HashSet<String>,
    quiet: bool,
    /// The log-likelihoods of the training rows, in order.
    likelihoods: Vec<f64>,
    events: Option<Events>,
}

impl Live {
    pub(super) fn new(quiet: bool, events: Option<Events>) -> Self {
        Self {
            watch: Watch::new("training", "updates").patient(),
            last_evaluation: OnceLock::new(),
            said: HashSet::new(),
            quiet,
            likelihoods: Vec::new(),
            events,
        }
    }

    /// The log-likelihoods of the training rows, one for each evaluation so far.
    pub(super) fn likelihoods(&self) -> &[f64] {
        &self.likelihoods
    }
}

impl Progress for Live {
    fn report(&self, done: u64, total: u64) {
        self.watch.report(done, total);
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

impl Listener for Live {
    fn last_evaluation(&self, done: u64, total: u64) {
        let watch = self.last_evaluation.get_or_init(|| {
            self.watch.hide();
            Watch::new("last evaluation", "")
        });
        watch.report(done, total);
    }

    fn epoch(&mut self, metrics: &Metrics) {
        self.last_evaluation.take();
        if let Some(events) = &self.events {
            events.epoch(metrics);
        }
        let Some(train) = metrics.curve_log_likelihood() else {
            if let Some(pseudo) = metrics.pseudo_log_likelihood {
                let text = format!(
                    "epoch {}: no log-likelihood, because tours do not return in time; pseudo-log-likelihood \
                     {pseudo:.2}",
                    metrics.epoch
                );
                tracing::info!("{text}");
                self.watch.say(text);
            }
            return;
        };
        let number = |x: f64| metrics.log_z.as_ref().map_or(format!("{x:.2}"), |z| z.with_error(x, 2));
        let validation = metrics
            .validation_log_likelihood
            .map_or(String::new(), |v| format!(", validation {}", number(v)));
        let text = format!("epoch {}: log-likelihood {}{validation}", metrics.epoch, number(train));
        tracing::info!("{text}");
        self.watch.say(text);
        self.likelihoods.push(train);
    }

    fn evaluated(&mut self, metrics: &Metrics, rbm: &Rbm, chains: Option<&BitRows>) {
        if let Some(events) = &self.events {
            team::alone(|| events.evaluated(metrics, rbm, chains));
        }
    }

    fn warning(&mut self, warning: &Warning) {
        // Numbers change from epoch to epoch, so each kind of warning is printed only once.
        let kind = serde_json::to_value(warning).ok().and_then(|v| v["warning"].as_str().map(str::to_owned));
        let new = self.said.insert(kind.unwrap_or_default());
        if new && !self.quiet && !matches!(warning, Warning::Diverged { .. }) {
            self.watch.above(&format!("warning: {}", warning.in_words(Spelling::Flags)));
        }
    }
}
