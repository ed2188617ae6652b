//! Test `mclv sweep`: the runs, the choice by validation rows, and the test of the chosen setting.

use crate::support::{Sandbox, without_times};
use mclv::data::Split;
use serde_json::Value;

const ROWS: usize = 60;

/// Rows of two patterns with some noise. The values of the rows `others` are all ones.
fn rows(others: &[usize]) -> String {
    let line = |r: usize| -> String {
        let bit = |c: usize| match others.contains(&r) {
            true => 1,
            false => (usize::from(c % 2 == r % 2) + usize::from((r * 7 + c * 5).is_multiple_of(11))) % 2,
        };
        (0..8).map(|c| bit(c).to_string()).collect::<Vec<_>>().join(",")
    };
    (0..ROWS).map(line).collect::<Vec<_>>().join("\n")
}

const SWEEP: [&str; 11] = [
    "sweep",
    "rows.csv",
    "--n-hidden",
    "2,4",
    "--lr",
    "0.05,0.3",
    "--epochs",
    "6",
    "--seeds",
    "0..1",
    "--threads",
];

fn sweep(sandbox: &Sandbox, threads: &str, out: &str) -> Value {
    sandbox.json(&[&SWEEP[..], &[threads, "-o", out]].concat())
}

/// The results without times and without the paths of the sweep.
fn results(json: &Value) -> Value {
    let mut results = without_times(json["results"].clone());
    results["best_run"].take();
    for setting in results["settings"].as_array_mut().unwrap() {
        for run in setting["runs"].as_array_mut().unwrap() {
            run["run"].take();
        }
    }
    results
}

#[test]
fn the_setting_with_the_best_validation_likelihood_is_chosen_and_alone_tested() {
    let sandbox = Sandbox::new().with_file("rows.csv", rows(&[]));
    let json = sweep(&sandbox, "2", "swept");
    let settings = json["results"]["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 4);
    let mean = |setting: &Value| setting["validation"]["mean"].as_f64().unwrap();
    let best = settings.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
    for setting in settings {
        assert_eq!(setting["is_chosen"], setting == best);
        let runs = setting["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2);
        let likelihoods: Vec<f64> =
            runs.iter().map(|run| run["validation_log_likelihood"].as_f64().unwrap()).collect();
        assert!((mean(setting) - (likelihoods[0] + likelihoods[1]) / 2.0).abs() < 1e-12);
        // Test rows were used for the chosen setting alone.
        assert!(runs.iter().all(|run| run["test"].is_null() != (setting == best)), "{setting}");
    }
    // The test is that of `mclv likelihood` for the same models.
    let tests: Vec<f64> = best["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let folder = run["run"].as_str().unwrap();
            let again = sandbox.json(&["likelihood", folder, "--split", "test"]);
            let mean = again["likelihoods"][0]["mean"].as_f64().unwrap();
            assert!((run["test"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
            mean
        })
        .collect();
    let test = &json["results"]["test"];
    let expected = (tests[0] + tests[1]) / 2.0;
    assert!(
        (test["mean"].as_f64().unwrap() - expected).abs() < 1e-9 && test["n"] == 2 && test["n_rows"] == 6
    );
    assert!((test["sd"].as_f64().unwrap() - (tests[0] - tests[1]).abs() / 2f64.sqrt()).abs() < 1e-9);
    // Files: a line for each run, a page, and run folders that other commands accept.
    let csv = String::from_utf8(sandbox.bytes("swept/sweep.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 8);
    assert!(csv.starts_with("run,n-hidden,learning-rate,epochs,seed,chosen,"), "{csv}");
    let page = String::from_utf8(sandbox.bytes("swept/report.html")).unwrap();
    assert!(page.contains("n-hidden=4,learning-rate=0.3,seed=1") && !page.contains("missing:"));
    assert!(page.contains("Chosen by the mean likelihood of validation rows over seeds: n-hidden"));
    let text = sandbox.succeeds(&["sweep", "--resume", "swept"]);
    for word in [
        "n-hidden",
        "learning-rate",
        "chosen",
        "sd over seeds",
        "on 6 test rows",
        "next    mclv likelihood swept\n",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // The folder stands for the best model of the chosen setting.
    let chosen = json["results"]["best_run"].as_str().unwrap();
    assert!(chosen.starts_with("swept/runs/n-hidden=") && chosen.contains(",seed="), "{chosen}");
    for command in ["likelihood", "inspect", "logz"] {
        let [of_sweep, of_run] = [&["swept"][..], &[chosen]]
            .map(|model| without_times(sandbox.json(&[&[command][..], model].concat())));
        assert_eq!(of_sweep, of_run, "{command}");
    }
    sandbox.json(&["sample", "swept", "-o", "samples.csv"]);
    sandbox.json(&["plot", "likelihood", "swept", "-o", "curve.svg"]);
    assert_eq!(sandbox.json(&["report", "swept"])["report"], format!("{chosen}/report.html"));
    let further = ["train", "--from", "swept", "--epochs", "1", "-o", "further"];
    let start = &sandbox.json(&further)["config"]["from"]["file"];
    assert!(start.as_str().unwrap().starts_with(chosen), "{start}");
    sandbox.refuses(
        &["train", "--resume", "swept"],
        &["swept is a sweep", "mclv sweep --resume swept", "mclv train --from swept"],
    );
    std::fs::remove_file(sandbox.path("swept/chosen.toml")).unwrap();
    sandbox.refuses(&["sample", "swept"], &["swept has not ended", "mclv sweep --resume swept"]);
}

/// Rows that no choice may depend on are replaced by others. Everything but the test stays as it is.
#[test]
fn test_rows_are_not_read_for_the_choice() {
    let test = Split::Test.of_file(ROWS, 0);
    let [honest, other] = [&[][..], &test].map(|others| {
        let sandbox = Sandbox::new().with_file("rows.csv", rows(others));
        results(&sweep(&sandbox, "2", "swept"))
    });
    let without_test = |results: &Value| {
        let mut results = results.clone();
        results["test"].take();
        for setting in results["settings"].as_array_mut().unwrap() {
            setting["runs"].as_array_mut().unwrap().iter_mut().for_each(|run| {
                run["test"].take();
            });
        }
        results
    };
    assert_eq!(without_test(&honest), without_test(&other));
    assert_ne!(honest["test"]["mean"], other["test"]["mean"]);
    // The control: other validation rows change what the choice rests on.
    let sandbox = Sandbox::new().with_file("rows.csv", rows(&Split::Validation.of_file(ROWS, 0)));
    assert_ne!(without_test(&results(&sweep(&sandbox, "2", "swept"))), without_test(&honest));
}

#[test]
fn threads_and_interruptions_do_not_change_a_sweep() {
    let sandbox = Sandbox::new().with_file("rows.csv", rows(&[]));
    let one = results(&sweep(&sandbox, "1", "one"));
    assert_eq!(one, results(&sweep(&sandbox, "3", "three")));
    // A sweep that has lost some runs, as if it had been stopped, makes these again and no others.
    let runs = std::fs::read_dir(sandbox.path("one/runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut records: Vec<_> = runs.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    records.sort();
    assert_eq!(records.len(), 8);
    let kept = std::fs::read(&records[0]).unwrap();
    for record in &records[5..] {
        std::fs::remove_file(record).unwrap();
    }
    std::fs::remove_dir_all(records[7].with_extension("")).unwrap();
    assert_eq!(one, results(&sandbox.json(&["sweep", "--resume", "one"])));
    assert!(std::fs::read(&records[0]).unwrap() == kept);
}

#[test]
fn sweeps_that_cannot_choose_are_refused_before_the_first_run() {
    let sandbox = Sandbox::new().with_file("rows.csv", rows(&[]));
    sandbox.refuses(
        &["sweep", "bars-and-stripes:3", "--n-hidden", "2,3"],
        &["no validation rows", "--validation-fraction"],
    );
    sandbox.refuses(&["sweep", "rows.csv", "--eval-every", "never", "-o", "s"], &["--eval-every never"]);
    sandbox.refuses(&["sweep", "rows.csv", "--lr", "0.1,-1", "-o", "s"], &["--learning-rate -1", "positive"]);
    sandbox
        .refuses_usage(&["sweep", "rows.csv", "--n-hidden", "4,x", "-o", "s"], &["'x' for '--n-hidden <N>'"]);
    sandbox.refuses_usage(
        &["sweep", "rows.csv", "--seeds", "2..0", "-o", "s"],
        &["--seeds", "lower to the higher"],
    );
    sandbox.refuses(&["sweep", "--resume", "absent"], &["absent/sweep.toml", "cannot read"]);
    sandbox.json(&[
        "sweep",
        "rows.csv",
        "--n-hidden",
        "2",
        "--epochs",
        "1",
        "--seeds",
        "3",
        "-o",
        "my sweep",
    ]);
    sandbox.refuses(
        &["sweep", "rows.csv", "--n-hidden", "3", "-o", "my sweep"],
        &["holds a sweep already", "mclv sweep --resume 'my sweep'"],
    );
    // Held-out rows take the place of validation rows.
    let args = ["sweep", "bars-and-stripes:3", "--n-hidden", "2,3", "--epochs", "1", "--seeds", "0"];
    sandbox.json(&[&args[..], &["--validation-fraction", "0.3", "-o", "held"]].concat());
}
