//! Test that all methods agree on log Z, and test the likelihoods computed from it.

use crate::support::{Sandbox, keys, without_times};
use serde_json::Value;

const ALL: &str = "exact,mclv,ais,reverse-ais,bar";

/// A folder with a model trained on bars and stripes, and one trained on digits.
fn trained() -> Sandbox {
    let sandbox = Sandbox::new();
    let bars =
        ["train", "bars-and-stripes:4", "--n-hidden", "10", "--epochs", "300", "-o", "bars", "--seed", "5"];
    assert_eq!(sandbox.run(&bars).code, Some(0));
    let digits = ["train", "digits", "--n-hidden", "12", "--epochs", "20", "-o", "digits"];
    assert_eq!(sandbox.run(&digits).code, Some(0));
    sandbox
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn all_methods_agree_with_enumeration() {
    let sandbox = trained();
    for run in ["bars", "digits"] {
        let model = format!("{run}/model.safetensors");
        let args = ["logz", &model, "--method", ALL, "--n-betas", "2000", "--target-se", "0.02"];
        let json = sandbox.json(&args);
        assert_eq!(keys(&json), ["agreement", "data", "estimates", "model", "report", "seed", "verdict"]);
        let estimates = json["estimates"].as_array().unwrap();
        let exact = number(&estimates[0]["value"]);
        for (estimate, (method, of_z)) in estimates.iter().zip([
            ("exact", "exact"),
            ("mclv", "lower bound on average"),
            ("ais", "unbiased"),
            ("reverse-ais", "upper bound on average"),
            ("bar", "none"),
        ]) {
            assert_eq!(
                (estimate["method"].as_str(), estimate["guarantee_of_z"].as_str()),
                (Some(method), Some(of_z))
            );
            let error = number(&estimate["value"]) - exact;
            // An error exceeds four error bars for one seed in 16,000, and this seed is fixed. An
            // estimate without an error bar makes no claim.
            if let Some(std_err) = estimate["std_err"].as_f64() {
                assert!(error.abs() <= 4.0 * std_err + 1e-9, "{run}: {estimate}");
            }
            if let Some(interval) = estimate["interval"].as_array() {
                assert!(number(&interval[0]) <= exact && exact <= number(&interval[1]), "{run}: {estimate}");
            }
            assert!(number(&estimate["n_states"]) > 0.0 && number(&estimate["seconds"]) > 0.0);
        }
        let (low, high) = (number(&estimates[1]["interval"][0]), number(&estimates[1]["interval"][1]));
        assert!(high - low < 0.15, "the target is met: {}", estimates[1]);
        assert_eq!(
            (&json["agreement"]["agree"], json["data"]["split"].as_str()),
            (&Value::Bool(true), Some("train"))
        );
        assert_eq!(json["agreement"]["pairs"].as_array().unwrap().len(), 10);
        let table = sandbox.succeeds(&args);
        for words in
            [" agree (", "95 % interval", "Z unbiased, log Z low on average", "mclv: the stopping set has"]
        {
            assert!(table.contains(words), "{words}: {table}");
        }
    }
}

#[test]
fn reverse_ais_from_data_has_no_guarantee_and_says_so() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 6);
    let args =
        ["logz", "m.safetensors", "--method", "reverse-ais", "--n-betas", "50", "--exact-samples", "false"];
    let estimate = &sandbox.json(&args)["estimates"][0];
    assert_eq!((estimate["guarantee"].as_str(), &estimate["interval"]), (Some("none"), &Value::Null));
    let notes = estimate["notes"].to_string();
    assert!(
        notes.contains("grey values were cut at 0.5") && notes.contains("chains start at data"),
        "{notes}"
    );
}

#[test]
fn threads_do_not_matter() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 9);
    let work = ["--n-betas", "60", "--target-se", "0.05"];
    let runs: [&[&str]; 2] =
        [&["logz", "m.safetensors", "--method", ALL], &["likelihood", "m.safetensors", "--time-limit", "0"]];
    for args in runs {
        let with = |n| without_times(sandbox.json(&[args, &work, &["--threads", n]].concat()));
        assert_eq!(with("1"), with("2"));
    }
}

#[test]
fn the_best_method_that_can_be_afforded_is_taken() {
    let sandbox = trained();
    let model = "digits/model.safetensors";
    let method = |args: &[&str]| {
        let json = sandbox.json(&[&["logz", model, "--n-betas", "200", "--target-se", "0.1"], args].concat());
        let [estimate] = json["estimates"].as_array().unwrap().as_slice() else { panic!("{json}") };
        (estimate["method"].as_str().unwrap().to_owned(), estimate["notes"].to_string())
    };
    assert_eq!(method(&[]).0, "exact");
    assert_eq!(method(&["--time-limit", "0"]).0, "mclv");
    // 300 hidden units: no tour finds back.
    sandbox.succeeds(&["init", "digits", "--n-hidden", "300", "-o", "wide.safetensors"]);
    let args = ["logz", "wide.safetensors", "--max-steps", "20000", "--n-betas", "200"];
    let estimate = &sandbox.json(&args)["estimates"][0];
    assert_eq!(estimate["method"], "ais");
    let note = &estimate["notes"][0];
    assert!(note["text"].as_str().unwrap().contains("by another method"), "{estimate}");
    assert_eq!(
        (&note["note"], &note["completion"]),
        (&Value::from("tours-do-not-return"), &Value::from(0.0))
    );
    // With more steps, tours get a ladder.
    let estimate = &sandbox.json(&["logz", "wide.safetensors", "--target-se", "0.1"])["estimates"][0];
    assert_eq!((&estimate["method"], &estimate["notes"][1]["note"]), (&"ladder".into(), &"ladder".into()));
    // If tours are requested anyway, they give a lower bound.
    let estimate = &sandbox.json(&[&args[..], &["--method", "mclv"]].concat())["estimates"][0];
    assert_eq!((estimate["guarantee"].as_str(), &estimate["interval"]), (Some("lower-bound"), &Value::Null));
    // Without data, tours get a ladder. Requested tours use a stopping set from pilot chains.
    sandbox.succeeds(&["convert", model, "bare.npz"]);
    let bare = sandbox.json(&["logz", "bare.npz", "--time-limit", "0"]);
    assert_eq!((&bare["estimates"][0]["method"], &bare["data"]), (&Value::from("ladder"), &Value::Null));
    let text = sandbox.succeeds(&["logz", "bare.npz", "--method", "mclv", "--n-tours", "2000"]);
    assert!(text.contains("states visited by pilot chains"), "{text}");
}

#[test]
fn a_ladder_is_saved_and_used_again() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 5).with_model("other.safetensors", 4);
    let logz = ["logz", "m.safetensors", "--method", "ladder", "--target-se", "0.1"];
    let first = sandbox.json(&[&logz[..], &["--save-ladder", "ladder.json"]].concat());
    let again = sandbox.json(&[&logz[..], &["--ladder", "ladder.json"]].concat());
    let (first, again) = (&first["estimates"][0], &again["estimates"][0]);
    assert_eq!((&first["value"], &first["std_err"]), (&again["value"], &again["std_err"]));
    assert!(number(&first["n_states"]) > number(&again["n_states"]), "{first} {again}");
    let args = ["likelihood", "m.safetensors", "--method", "ladder", "--ladder", "ladder.json"];
    assert!(sandbox.json(&[&args[..], &["--data", "digits"]].concat())["log_z"]["std_err"].is_number());
    sandbox.refuses(
        &["logz", "other.safetensors", "--method", "ladder", "--ladder", "ladder.json"],
        &["another model", "--save-ladder"],
    );
    sandbox.refuses(&["logz", "m.safetensors", "--save-ladder", "l.json"], &["needs --method ladder"]);
    sandbox.refuses(&["logz", "m.safetensors", "--ladder", "m.safetensors"], &["not an intact ladder"]);
}

#[test]
fn snapshots_are_rungs() {
    let sandbox = Sandbox::new();
    let train = ["train", "digits", "--n-hidden", "8", "--epochs", "6", "--snapshots", "1,2,4", "-o", "run"];
    sandbox.succeeds(&train);
    let logz = ["logz", "run/model.safetensors", "--method", "exact,bar", "--rungs"];
    let json = sandbox.json(&[&logz[..], &["run/snapshots"]].concat());
    let (exact, bar) = (&json["estimates"][0], &json["estimates"][1]);
    let note = &bar["notes"][0];
    assert_eq!((&note["note"], &note["n_models"]), (&"trajectory".into(), &4.into()), "{bar}");
    let error = number(&bar["value"]) - number(&exact["value"]);
    assert!(error.abs() < 0.01, "{json}");
    sandbox.refuses(&[&logz[..], &["run/checkpoints/none"]].concat(), &["--rungs", "none"]);
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.refuses(&[&logz[..], &["empty"]].concat(), &["has no .safetensors files"]);
}

#[test]
fn a_target_holds_for_ais_and_bar_too() {
    let sandbox = trained();
    let args = ["logz", "bars/model.safetensors", "--method", "exact,ais,bar", "--target-se", "0.05"];
    let json = sandbox.json(&args);
    let [exact, estimates @ ..] = json["estimates"].as_array().unwrap().as_slice() else { panic!("{json}") };
    for estimate in estimates {
        let std_err = number(&estimate["std_err"]);
        assert!(std_err < 0.075, "{estimate}");
        assert!((number(&estimate["value"]) - number(&exact["value"])).abs() < 5.0 * std_err, "{estimate}");
    }
    // A size that the user gave is kept.
    let fixed = sandbox.json(&[&args[..], &["--n-betas", "100"]].concat());
    let of_ais = &fixed["estimates"][1];
    assert!(number(&of_ais["n_states"]) < number(&estimates[0]["n_states"]), "{of_ais}");
}

#[test]
fn a_likelihood_has_the_interval_of_log_z_and_the_other_side() {
    let sandbox = trained();
    let args = ["likelihood", "digits/model.safetensors", "--split", "test"];
    let exact = number(&sandbox.json(&args)["likelihoods"][0]["mean"]);
    let args = [&args[..], &["--method", "mclv", "--target-se", "0.02"]].concat();
    let json = sandbox.json(&args);
    let part = &json["likelihoods"][0];
    assert_eq!(part["guarantee"], "none: grey values err to one side, log Z may err to the other");
    assert!((number(&part["mean"]) - exact).abs() < 4.0 * number(&part["std_err_log_z"]), "{part}");
    let (log_z, turned) = (&json["log_z"], &part["interval"]);
    let sum = number(&part["mean"]) + number(&log_z["value"]);
    assert!((number(&turned[0]) - (sum - number(&log_z["interval"][1]))).abs() < 1e-9, "{json}");
    assert!((number(&turned[1]) - (sum - number(&log_z["interval"][0]))).abs() < 1e-9, "{json}");
    let text = sandbox.succeeds(&args);
    assert!(text.contains("makes these likelihoods optimistic on average"), "{text}");
    let upper = [&args[..3], &["test", "--method", "reverse-ais", "--n-betas", "300"]].concat();
    assert_eq!(sandbox.json(&upper)["likelihoods"][0]["is_grey"], true);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_cure() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 5).with_file("no.set", "nothing");
    sandbox
        .refuses_usage(&["logz", "m.safetensors", "--method", "magic"], &["choose exact, mclv, ladder, ais"]);
    sandbox.refuses_usage(
        &["logz", "m.safetensors", "--n-tours", "9", "--target-se", "1"],
        &["cannot be used with"],
    );
    let refuses = |args: &[&str], words: &[&str]| {
        sandbox
            .refuses(&[&["logz", "m.safetensors", "--method", "mclv,ais,reverse-ais"], args].concat(), words);
    };
    refuses(&["--target-se", "0"], &["--target-se 0 is not allowed", "above 0"]);
    refuses(&["--n-tours", "0"], &["--n-tours 0", "from 1"]);
    refuses(&["--samples-per-row", "0"], &["--samples-per-row 0", "at least 1"]);
    refuses(&["--n-tours", "50", "--n-chains", "1"], &["--n-chains 1", "at least 2"]);
    refuses(&["--stopping-set", "no.set"], &["--stopping-set", "not an intact stopping set"]);
    refuses(&["--data", "bars-and-stripes:4"], &["16 columns", "64 visible units"]);
    sandbox.succeeds(&["convert", "m.safetensors", "bare.npz"]);
    let args = ["logz", "bare.npz", "--method", "reverse-ais", "--exact-samples", "false"];
    sandbox.refuses(&args, &["reverse-ais", "--data DATA", "--exact-samples"]);
}
