//! Test that `mclv train` makes only true statements.
//!
//! Each run is made twice: by the program, and epoch by epoch in the library with the same seed.
//! The library gives the model after every epoch, and enumeration gives the likelihoods of these
//! models. Everything that the program prints or writes is compared with them: the terminal's
//! table, JSON, `metrics.jsonl`, model files and the page.

use crate::support::{Sandbox, without_times};
use mclv::data::{DataSpec, Rows, Split};
use mclv::progress::Silent;
use mclv::settings::Settings;
use mclv::train::{Metrics, Run, RunInput};
use mclv::{ModelFile, Rbm, data, partition};
use serde_json::Value;

/// A run, as the flags of the program describe it.
struct Case {
    data: &'static str,
    flags: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case { data: "digits", flags: &["--n-hidden", "16", "--epochs", "12"] },
    Case {
        data: "digits",
        flags: &["--n-hidden", "16", "--epochs", "10", "--eval-every", "3", "--gradient", "pcd"],
    },
    Case { data: "bars-and-stripes:4", flags: &["--n-hidden", "8", "--epochs", "150"] },
    Case { data: "bars-and-stripes:4", flags: &["--n-hidden", "8", "--epochs", "60", "--gradient", "cd"] },
    Case { data: "bars-and-stripes:4", flags: &["--n-hidden", "8", "--epochs", "60", "--gradient", "exact"] },
    Case {
        data: "bars-and-stripes:4",
        flags: &["--n-hidden", "8", "--epochs", "60", "--gradient", "lvs", "--unfinished", "keep"],
    },
    // The learning rate is so large that the last model is not the best.
    Case {
        data: "digits",
        flags: &["--n-hidden", "12", "--epochs", "8", "--learning-rate", "2", "--schedule", "constant"],
    },
    Case {
        data: "digits",
        flags: &[
            "--n-hidden",
            "12",
            "--epochs",
            "60",
            "--learning-rate",
            "1",
            "--schedule",
            "constant",
            "--patience",
            "3",
        ],
    },
];

/// The mean log-likelihood of rows by enumeration.
fn exact(rbm: &Rbm, rows: &Rows) -> f64 {
    let log_z = partition::exact(rbm, &Default::default(), &Silent).unwrap();
    let mean = rbm.log_likelihood(rows, &log_z).unwrap().mean;
    assert!(mean.is_finite());
    mean
}

fn near(got: f64, expected: f64, tolerance: f64) -> bool {
    assert!(got.is_finite() && expected.is_finite());
    (got - expected).abs() <= tolerance
}

/// A run with its models, the initial one first.
struct Truth {
    models: Vec<Rbm>,
    history: Vec<Metrics>,
    train: Rows,
    validation: Option<Rows>,
}

impl Truth {
    fn of(config: RunInput) -> Self {
        let spec = DataSpec { split: Split::Validation, ..config.data.clone() };
        let run = Run::load(config, &Silent).unwrap();
        let validation = data::load(&spec, &Silent).map(|part| part.rows).ok();
        let validation = validation.filter(|rows| rows != run.rows());
        let mut session = run.training().begin(run.rows()).unwrap();
        let mut models = vec![session.rbm().clone()];
        while session.epoch().unwrap().is_none() {
            models.push(session.rbm().clone());
        }
        models.push(session.rbm().clone());
        Self { models, history: session.history().to_vec(), train: run.rows().clone(), validation }
    }

    /// The exact likelihood that chooses the best model.
    fn judged(&self, epoch: usize) -> f64 {
        exact(&self.models[epoch], self.validation.as_ref().unwrap_or(&self.train))
    }
}

/// A number in the line of the table or of the facts that begins with `name`.
fn number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().map(str::trim_start).find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().find_map(|word| word.replace('−', "-").parse().ok())
}

/// The likelihood in the line of the table for one part of the data, which also has the number of its
/// rows.
fn likelihood(text: &str, part: &str, rows: &Rows) -> Option<f64> {
    let line = text.lines().map(str::trim_start).find(|line| line.starts_with(part))?;
    let mut words = line[part.len()..].split_whitespace();
    assert_eq!(words.next()?.parse(), Ok(rows.n_rows()), "{line}");
    words.next()?.replace('−', "-").parse().ok()
}

#[test]
fn every_number_of_a_run_is_that_of_enumeration() {
    for Case { data, flags } in CASES {
        let sandbox = Sandbox::new();
        let args = [&["train", data, "--seed", "5", "--output"], ["run"].as_slice(), flags].concat();
        let shown = sandbox.run(&args);
        assert_eq!(shown.code, Some(0), "{args:?}: {}", shown.stderr);
        let read = |name: &str| String::from_utf8(sandbox.bytes(name)).unwrap();
        let config = RunInput::from_toml(&read("run/config.toml"), "config.toml".as_ref()).unwrap();
        let truth = Truth::of(config);

        // Files: each line of metrics.jsonl is what the library found, and what enumeration finds.
        let lines: Vec<Value> =
            read("run/metrics.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = truth.history.iter().map(|m| without_times(serde_json::to_value(m).unwrap()));
        assert_eq!(
            lines.iter().cloned().map(without_times).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>()
        );
        let mut n_evaluated = 0;
        for m in truth.history.iter().filter(|m| m.train_log_likelihood.is_some()) {
            let rbm = &truth.models[m.epoch];
            assert!(m.log_z.as_ref().unwrap().is_exact(), "{args:?}, epoch {}", m.epoch);
            assert!(near(m.train_log_likelihood.unwrap(), exact(rbm, &truth.train), 1e-9), "{args:?}");
            assert_eq!(m.validation_log_likelihood.is_some(), truth.validation.is_some());
            if let (Some(value), Some(rows)) = (m.validation_log_likelihood, &truth.validation) {
                assert!(near(value, exact(rbm, rows), 1e-9), "{args:?}, epoch {}", m.epoch);
            }
            n_evaluated += 1;
        }
        let least = if flags.contains(&"--eval-every") { 4 } else { 8 };
        assert!(n_evaluated >= least, "{args:?}: {n_evaluated} evaluations");

        // The best model is the best by the exact value, of all that were evaluated.
        let last = truth.history.last().unwrap();
        let best = last.best.as_ref().unwrap();
        for m in truth.history.iter().filter(|m| m.train_log_likelihood.is_some()) {
            assert!(truth.judged(m.epoch) <= truth.judged(best.epoch) + 1e-9, "{args:?}: {}", m.epoch);
        }
        assert!(near(best.log_likelihood, truth.judged(best.epoch), 1e-9), "{args:?}");
        let file = |name: &str| ModelFile::load(sandbox.path("run").join(name)).unwrap();
        assert!(file("best.safetensors").rbm == truth.models[best.epoch], "{args:?}");
        assert_eq!(file("best.safetensors").provenance.history["epoch"], best.epoch);
        assert!(file("model.safetensors").rbm == truth.models[last.epoch], "{args:?}");
        assert_eq!(file("model.safetensors").provenance.history["best_epoch"], best.epoch);

        // The terminal.
        let table = |name| number(&shown.stdout, name).unwrap_or_else(|| panic!("{name}: {}", shown.stdout));
        let parts = [("training", Some(&truth.train)), ("validation", truth.validation.as_ref())];
        for (part, rows) in parts.into_iter().filter_map(|(part, rows)| Some((part, rows?))) {
            let shown = likelihood(&shown.stdout, part, rows).unwrap_or_else(|| panic!("{}", shown.stdout));
            assert!(near(shown, exact(&truth.models[last.epoch], rows), 6e-4), "{args:?}: {part}");
        }
        let line = shown.stdout.lines().find(|line| line.trim_start().starts_with("best")).unwrap();
        if best.epoch == last.epoch {
            assert!(line.contains("the last model"), "{line}");
        } else {
            assert!(line.contains(&format!("after epoch {} ", best.epoch)), "{line}");
            assert!(near(table("best"), truth.judged(best.epoch), 6e-4), "{line}");
        }
        check_warnings(&truth, &shown.stderr, &args);

        // The page.
        let page = read("run/report.html");
        assert!(page.contains(&format!("{:.3} after epoch {}", best.log_likelihood, best.epoch)), "{args:?}");
        assert!(
            page.contains(&format!("{:.3} nats per row", last.train_log_likelihood.unwrap())),
            "{args:?}"
        );
    }
}

/// Each kind of warning is printed once, and each is true of the models that it was given for.
fn check_warnings(truth: &Truth, stderr: &str, args: &[&str]) {
    let mut kinds = std::collections::BTreeSet::new();
    for m in &truth.history {
        for warning in &m.warnings {
            let json = serde_json::to_value(warning).unwrap();
            let kind = json["warning"].as_str().unwrap().to_owned();
            let n_units = json["n_units"].as_u64();
            let rbm = &truth.models[m.epoch];
            let means = rbm.mean_h_from_v(&truth.train).unwrap();
            let all = |on: bool| {
                let is =
                    |r: usize, j: usize| if on { means.row(r)[j] > 0.99 } else { means.row(r)[j] < 0.01 };
                (0..rbm.n_hidden()).filter(|&j| (0..means.n_rows()).all(|r| is(r, j))).count() as u64
            };
            match kind.as_str() {
                // The guard looked at 500 rows, so it can count more units than all rows would.
                "dead" => assert!(n_units.unwrap() >= all(false), "{args:?}"),
                "saturated" => assert!(n_units.unwrap() >= all(true), "{args:?}"),
                "idle" => assert!(n_units.unwrap() < rbm.n_hidden() as u64 / 2, "{args:?}"),
                "likelihood-falls" => {
                    let evaluated = truth.history.iter().filter(|e| e.epoch < m.epoch && e.log_z.is_some());
                    let of = |epoch: usize| exact(&truth.models[epoch], &truth.train);
                    let peak = evaluated.map(|e| of(e.epoch)).fold(f64::MIN, f64::max);
                    assert!(near(json["by"].as_f64().unwrap(), peak - of(m.epoch), 1e-6), "{args:?}");
                }
                "low-acceptance" => assert!(m.tours.as_ref().unwrap().n_proposed >= 100, "{args:?}"),
                "few-tours-return" | "stale-chains" | "low-ess" => {}
                other => panic!("{args:?}: {other} is not known here"),
            }
            kinds.insert(kind);
        }
    }
    let printed = stderr.lines().filter(|line| line.starts_with("warning: ")).count();
    assert_eq!(printed, kinds.len(), "{args:?}: {kinds:?}, {stderr}");
}

/// Training with default settings on the built-in digits gives no warning, for three seeds.
#[test]
fn default_settings_give_no_warning() {
    for seed in [0, 1, 2] {
        let settings = Settings { epochs: Some(10.into()), seed: Some(seed), ..Settings::default() };
        let truth = Truth::of(RunInput { train: settings, ..RunInput::default() });
        for m in truth.history {
            assert!(m.warnings.is_empty(), "seed {seed}, epoch {}: {:?}", m.epoch, m.warnings);
        }
    }
}
