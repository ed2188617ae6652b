//! The results of a sweep: the choice by validation rows, and then the test of the chosen setting.

use super::Planned;
use super::folder::Sweep;
use anyhow::{Context, ensure};
use mclv::data::{self, DataSpec, Dataset, Split};
use mclv::partition::LogZ;
use mclv::progress::Progress;
use mclv::statistics::Summary;
use mclv::train::{RunFolder, RunInput, RunRecord};
use mclv::{Likelihood, ModelFile};
use mclv_reproduce::{Store, work};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The test rows of a sweep. They are loaded after the choice, so nothing before it can use them.
pub(super) struct TestRows(Dataset);

impl TestRows {
    pub(super) fn load(run: &RunInput, progress: &dyn Progress) -> anyhow::Result<Self> {
        let spec = DataSpec { split: Split::Test, ..run.data.clone() };
        let rows = data::load(&spec, progress);
        Ok(Self(rows.with_context(|| format!("test rows of {}", run.data.source))?))
    }
}

/// The results of all runs, by setting.
pub(super) struct Results {
    settings: Vec<SettingResult>,
    varied: Vec<String>,
}

/// The runs of one combination of values.
pub(super) struct SettingResult {
    values: Vec<(String, String)>,
    pub(super) runs: Vec<RunResult>,
    pub(super) is_chosen: bool,
}

/// A run, and the test of its best model if its setting was chosen.
pub(super) struct RunResult {
    seed: u64,
    path: PathBuf,
    record: RunRecord,
    diverged_in: Option<usize>,
    test: Option<Likelihood>,
}

impl RunResult {
    /// The likelihood of validation rows under the best model, with its log Z. A run that diverged
    /// has none.
    fn judged(&self) -> Option<(f64, &LogZ)> {
        let best = self.record.best().filter(|_| self.diverged_in.is_none())?;
        Some((best.log_likelihood, &best.log_z))
    }
}

impl SettingResult {
    /// The value of a setting.
    pub(super) fn value_of(&self, name: &str) -> String {
        self.values.iter().find(|(other, _)| other == name).map_or(String::new(), |(_, value)| value.clone())
    }

    pub(super) fn n_diverged(&self) -> usize {
        self.runs.iter().filter(|run| run.diverged_in.is_some()).count()
    }

    /// The likelihoods of validation rows over the seeds. `None` if a run has none.
    pub(super) fn validation(&self) -> Option<Summary> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| Some(run.judged()?.0)).collect();
        Summary::of(&values?)
    }
}

impl Results {
    /// Reads the finished runs, and chooses the setting with the highest mean likelihood of
    /// validation rows. A setting with a run that diverged cannot be chosen.
    pub(super) fn read(sweep: &Sweep, planned: &[Planned], store: &Store) -> anyhow::Result<Self> {
        let grid = sweep.grid();
        let varied: Vec<String> = grid.varied().into_iter().map(str::to_owned).collect();
        let mut settings: Vec<SettingResult> = grid
            .combinations()
            .into_iter()
            .map(|values| SettingResult { values, runs: Vec::new(), is_chosen: false })
            .collect();
        for Planned { combination, seed, task, .. } in planned {
            let path = store.path(task);
            let trained: work::Trained = store.get(task)?.read()?;
            let record = RunFolder::new(&path).read()?;
            let diverged_in = trained.diverged_in;
            settings[*combination].runs.push(RunResult {
                seed: *seed,
                path,
                record,
                diverged_in,
                test: None,
            });
        }
        let mut results = Self { settings, varied };
        if let Some(chosen) = results.best_setting() {
            results.settings[chosen].is_chosen = true;
        }
        Ok(results)
    }

    /// The number of the setting with the highest mean; the first one, if several have it.
    fn best_setting(&self) -> Option<usize> {
        let means = self.settings.iter().enumerate().filter_map(|(k, s)| Some((k, s.validation()?.mean)));
        let better = |best: Option<(usize, f64)>, (k, mean): (usize, f64)| match best {
            Some((_, highest)) if mean <= highest => best,
            _ => Some((k, mean)),
        };
        means.fold(None, better).map(|(k, _)| k)
    }

    /// The number of the chosen setting.
    pub(super) fn chosen(&self) -> Option<usize> {
        self.settings.iter().position(|setting| setting.is_chosen)
    }

    /// Evaluates the best models of a setting on test rows, each with the log Z that its run has
    /// found.
    pub(super) fn evaluate(&mut self, setting: usize, test: &TestRows) -> anyhow::Result<()> {
        for run in &mut self.settings[setting].runs {
            let (_, log_z) = run.judged().context("a chosen run has a likelihood")?;
            let file = RunFolder::new(&run.path).standing_model().context("a finished run has a model")?;
            let model = ModelFile::load(&file)?;
            ensure!(
                model.provenance.history["epoch"] == run.record.best().map_or(0, |best| best.epoch),
                "{} is not the best model of its run; delete the folder of the run, and resume the sweep",
                file.display()
            );
            run.test = Some(model.rbm.log_likelihood(&test.0.rows, log_z)?);
        }
        Ok(())
    }

    pub(super) fn settings(&self) -> &[SettingResult] {
        &self.settings
    }

    pub(super) fn varied(&self) -> Vec<&str> {
        self.varied.iter().map(String::as_str).collect()
    }

    fn runs(&self) -> impl Iterator<Item = (&SettingResult, &RunResult)> {
        self.settings.iter().flat_map(|setting| setting.runs.iter().map(move |run| (setting, run)))
    }

    /// The records of all runs.
    pub(super) fn records(&self) -> Vec<RunRecord> {
        self.runs().map(|(_, run)| run.record.clone()).collect()
    }

    /// The run of the chosen setting with the best validation likelihood.
    pub(super) fn best_run(&self) -> Option<&Path> {
        let chosen = &self.settings[self.chosen()?];
        let judged = chosen.runs.iter().filter_map(|run| Some((run, run.judged()?.0)));
        judged.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(run, _)| run.path.as_path())
    }

    /// The likelihoods of test rows over the seeds of the chosen setting, the number of test rows,
    /// and the mean standard error over rows.
    pub(super) fn test(&self) -> Option<(Summary, usize, Option<f64>)> {
        let tests: Vec<&Likelihood> = self.runs().filter_map(|(_, run)| run.test.as_ref()).collect();
        let values: Vec<f64> = tests.iter().map(|test| test.mean).collect();
        let errors: Vec<f64> = tests.iter().filter_map(|test| test.std_err_rows).collect();
        Some((Summary::of(&values)?, tests[0].n_rows, Summary::of(&errors).map(|s| s.mean)))
    }

    /// The result on test rows.
    pub(super) fn test_in_words(&self) -> String {
        match self.test() {
            Some((summary, n_rows, error)) => format!(
                "{}: the chosen setting on {n_rows} test rows{}",
                with_sd(&summary),
                error.map_or(String::new(), |error| format!("; error over rows {error:.3}"))
            ),
            None => "not evaluated: no setting has a likelihood for every seed".into(),
        }
    }

    /// The choice and its result, for the page.
    pub(super) fn notes(&self) -> Vec<String> {
        let chosen = self.chosen().map(|k| {
            let values = self.settings[k].values.iter();
            let varied = values.filter(|(name, _)| self.varied.contains(name));
            let values: Vec<String> = varied.map(|(name, value)| format!("{name} {value}")).collect();
            let values = if values.is_empty() { "the only setting".into() } else { values.join(", ") };
            format!("Chosen by the mean likelihood of validation rows over seeds: {values}.")
        });
        chosen.into_iter().chain([format!("Test: {}.", self.test_in_words())]).collect()
    }

    /// A line for each run.
    pub(super) fn csv(&self) -> String {
        let names: Vec<&str> = match self.settings.first() {
            Some(setting) => setting.values.iter().map(|(name, _)| name.as_str()).collect(),
            None => Vec::new(),
        };
        let mut header = vec!["run"];
        header.extend(&names);
        header.extend([
            "seed",
            "chosen",
            "epochs_made",
            "best_epoch",
            "diverged_in",
            "train_log_likelihood",
            "validation_log_likelihood",
            "log_z_std_err",
            "test_log_likelihood",
            "test_std_err_rows",
            "seconds",
        ]);
        let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let rows = self.runs().map(|(setting, run)| {
            let last = run.record.metrics.last();
            let mut row = vec![run.path.to_string_lossy().into_owned()];
            row.extend(setting.values.iter().map(|(_, value)| value.clone()));
            row.extend([
                run.seed.to_string(),
                setting.is_chosen.to_string(),
                run.record.epochs_done().to_string(),
                run.record.best().map_or(String::new(), |best| best.epoch.to_string()),
                run.diverged_in.map_or(String::new(), |epoch| epoch.to_string()),
                number(run.record.last_evaluated().and_then(|m| m.train_log_likelihood)),
                number(run.judged().map(|(value, _)| value)),
                number(run.judged().and_then(|(_, log_z)| log_z.std_err)),
                number(run.test.as_ref().map(|test| test.mean)),
                number(run.test.as_ref().and_then(|test| test.std_err_rows)),
                number(last.map(|m| m.seconds)),
            ]);
            row
        });
        let line =
            |cells: Vec<String>| cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(",") + "\n";
        let header = line(header.into_iter().map(str::to_owned).collect());
        header + &rows.map(line).collect::<String>()
    }

    /// Everything that the text shows, and each run.
    pub(super) fn json(&self) -> Value {
        let of_summary = |s: Option<Summary>| s.map(|s| json!({ "mean": s.mean, "sd": s.sd, "n": s.n }));
        let of_run = |run: &RunResult| {
            json!({ "run": run.path.to_string_lossy(), "seed": run.seed, "diverged_in": run.diverged_in,
                "epochs": run.record.epochs_done(), "best_epoch": run.record.best().map(|best| best.epoch),
                "train_log_likelihood": run.record.last_evaluated().and_then(|m| m.train_log_likelihood),
                "validation_log_likelihood": run.judged().map(|(value, _)| value),
                "log_z_std_err": run.judged().and_then(|(_, log_z)| log_z.std_err),
                "test": run.test, "seconds": run.record.metrics.last().map(|m| m.seconds) })
        };
        let of_setting = |setting: &SettingResult| {
            let values: serde_json::Map<String, Value> =
                setting.values.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({ "values": values, "is_chosen": setting.is_chosen,
                "validation": of_summary(setting.validation()),
                "runs": setting.runs.iter().map(of_run).collect::<Vec<_>>() })
        };
        let test = self.test().map(|(summary, n_rows, error)| {
            json!({ "mean": summary.mean, "sd": summary.sd, "n": summary.n, "n_rows": n_rows, "std_err_rows": error })
        });
        json!({ "settings": self.settings.iter().map(of_setting).collect::<Vec<_>>(), "test": test,
            "best_run": self.best_run().map(|path| path.to_string_lossy().into_owned()) })
    }
}

/// A cell of a .csv file, in quotes if it needs them.
fn escaped(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.into(),
    }
}

/// A mean, with the standard deviation over seeds if there are several.
fn with_sd(summary: &Summary) -> String {
    match summary.sd {
        Some(sd) => format!("{:.3} nats per row (sd {sd:.3} over {} seeds)", summary.mean, summary.n),
        None => format!("{:.3} nats per row", summary.mean),
    }
}
