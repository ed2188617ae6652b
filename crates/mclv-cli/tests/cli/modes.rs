//! Test `mclv modes` on models whose shares are known or close to those of the data.

use crate::support::{Sandbox, keys};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn standings(json: &Value) -> Vec<&str> {
    json["modes"].as_array().unwrap().iter().map(|mode| mode["standing"].as_str().unwrap()).collect()
}

/// Patterns, classes and clusters, each by its own methods. A difference between two methods
/// exceeds five standard errors for one seed in a million.
#[test]
fn methods_agree_on_shares_and_a_good_model_has_no_lost_mode() {
    let sandbox = Sandbox::new();
    let bars =
        ["train", "bars-and-stripes:4", "--n-hidden", "16", "--epochs", "300", "-o", "bars", "--seed", "5"];
    assert_eq!(sandbox.run(&bars).code, Some(0));
    let digits = ["train", "digits", "--n-hidden", "12", "--epochs", "20", "-o", "digits"];
    assert_eq!(sandbox.run(&digits).code, Some(0));
    for (run, by, n_modes) in [("bars", "pattern", 30), ("digits", "class", 10), ("digits", "cluster", 10)] {
        let model = format!("{run}/model.safetensors");
        let modes = |method: &str| sandbox.json(&["modes", &model, "--by", by, "--method", method]);
        let (exact, tours) = (modes("exact"), modes("mclv"));
        assert_eq!(exact["modes"].as_array().unwrap().len(), n_modes);
        for (a, b) in exact["modes"].as_array().unwrap().iter().zip(tours["modes"].as_array().unwrap()) {
            let error = number(&a["std_err"]).hypot(number(&b["std_err"]));
            let difference = number(&a["model"]) - number(&b["model"]);
            assert!(difference.abs() < 5.0 * error, "{run} by {by}: {a} {b}");
        }
        let text = sandbox.run(&["modes", &model, "--by", by]).stdout;
        assert!(text.contains("standing") && text.contains("Total variation"), "{text}");
        if run == "bars" {
            assert!(!standings(&exact).contains(&"lost"), "{exact}");
        }
    }
    // Without --by, few distinct rows are patterns, and labelled rows are classes.
    let by = |run: &str| sandbox.json(&["modes", &format!("{run}/model.safetensors")])["by"].clone();
    assert_eq!((by("bars"), by("digits")), ("pattern".into(), "class".into()));
    let json = sandbox.json(&["modes", "digits/model.safetensors"]);
    assert_eq!(
        keys(&json),
        [
            "agreement",
            "by",
            "data",
            "false_alarms",
            "far",
            "guarantee",
            "method",
            "model",
            "modes",
            "n_rows",
            "n_states",
            "notes",
            "seconds",
            "seed",
            "total_variation",
            "total_variation_by_chance",
            "verdict"
        ]
    );
}

/// A model of zeros has lost the rows of ones. Wrong choices are refused with their cure.
#[test]
fn rows_that_the_model_was_not_trained_on_are_lost() {
    let sandbox = Sandbox::new();
    let (zeros, ones) = ("0,0,0,0,0,0,0,0\n".repeat(950), "1,1,1,1,1,1,1,1\n".repeat(50));
    std::fs::write(sandbox.path("train.csv"), zeros.clone()).unwrap();
    std::fs::write(sandbox.path("all.csv"), zeros + &ones).unwrap();
    let train = ["train", "train.csv", "--n-hidden", "2", "--epochs", "100", "-o", "run"];
    assert_eq!(sandbox.run(&train).code, Some(0));
    let model = "run/model.safetensors";
    let json = sandbox.json(&["modes", model, "--data", "all.csv", "--split", "all"]);
    assert_eq!(standings(&json), ["heavy", "lost"], "{json}");
    let verdict = json["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("The model has lost pattern 11111111"), "{verdict}");
    for (args, cure) in [
        (vec!["--by", "class"], "choose cluster"),
        (vec!["--by", "cluster", "--n-clusters", "1"], "from 2 to 64"),
        (vec!["--method", "ais"], "exact, mclv or ladder"),
        (vec!["--target-se", "0"], "above 0"),
    ] {
        let args = [vec!["modes", model, "--data", "all.csv", "--split", "all"], args].concat();
        let run = sandbox.run(&args);
        assert!(run.code == Some(1) && run.stderr.contains(cure), "{args:?}: {}", run.stderr);
    }
}
