//! The text that is printed after a finished run.

use crate::output::{facts, table};
use mclv::human_seconds;
use mclv::partition::Guarantee;
use mclv::shell;
use mclv::train::{Metrics, Run, RunFolder, RunInput};
use std::path::Path;

/// The time of the run and the part of it that evaluations took.
fn time(metrics: &Metrics) -> String {
    let all = human_seconds(metrics.seconds);
    if metrics.log_z.is_none() {
        return all;
    }
    let training = human_seconds(metrics.seconds - metrics.evaluation_seconds);
    format!("{all} (training {training}, evaluations {})", human_seconds(metrics.evaluation_seconds))
}

/// A table of likelihoods, followed by facts about the run.
pub(super) fn summary(metrics: &Metrics, early: bool, run: &Run, input: &RunInput, folder: &Path) -> String {
    let number = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.3}"));
    let log_z = metrics.log_z.as_ref();
    let likelihood = |x: f64| log_z.map_or(format!("{x:.3}"), |z| z.with_error(x, 3));
    let rows = [
        ("training", metrics.train_log_likelihood, metrics.train_rows),
        ("validation", metrics.validation_log_likelihood, metrics.validation_rows),
    ];
    // Runs of earlier versions have no numbers of rows.
    let rows = rows.into_iter().filter_map(|(name, value, rows)| {
        let error = rows.and_then(|rows| rows.std_err).map_or("–".into(), |error| format!("{error:.3}"));
        let n = rows.map_or("–".into(), |rows| rows.n_rows.to_string());
        let method = log_z.map_or("–".into(), |z| z.method.to_string());
        Some(vec![name.into(), n, likelihood(value?), error, method])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = String::new();
    if !rows.is_empty() {
        let header = ["rows", "number", "log-likelihood (nats per row)", "error over rows", "log Z by"];
        text = table(&header, &[1, 2, 3], rows);
        text.push('\n');
    }
    let mut lines = vec![
        ("rows", run.parts().to_string()),
        (
            "epochs",
            format!(
                "{}{}",
                metrics.epoch,
                if early { " (stopped early: the validation likelihood did not improve)" } else { "" }
            ),
        ),
        ("time", time(metrics)),
        (
            "log Z",
            log_z.map_or("–".into(), |z| match z.guarantee {
                Guarantee::Exact => format!("{:.4} (exact)", z.value),
                guarantee => format!("{} ({}; {guarantee})", z.with_error(z.value, 4), z.method),
            }),
        ),
        ("pseudo-LL", number(metrics.pseudo_log_likelihood)),
        ("reconstruction", metrics.reconstruction_error.map_or("–".into(), |x| format!("{x:.5} (MSE)"))),
    ];
    if let Some(best) = &metrics.best {
        let what = if best.epoch == metrics.epoch {
            "the last model (no evaluation found a better one)".to_owned()
        } else {
            let value = best.log_z.with_error(best.log_likelihood, 3);
            format!("{value} after epoch {} (best.safetensors)", best.epoch)
        };
        lines.push(("best", what));
    }
    if let Some(path) = &input.weights {
        lines.push(("weights", format!("{}: likelihoods are weighted means", path.display())));
    }
    if let Some(from) = &input.from {
        lines.push(("from", from.file.display().to_string()));
    }
    lines.push(("run", folder.display().to_string()));
    let files = RunFolder::new(folder);
    let is_earlier = metrics.best.as_ref().is_some_and(|best| best.epoch != metrics.epoch);
    let model = if is_earlier { files.best_model() } else { files.model() };
    lines.push(("next", format!("mclv likelihood {}", shell::path(&model))));
    text.push_str(&facts(&lines));
    text
}
