//! Data of one's own: parts, ranges, formats, and runs whose data are elsewhere.

use crate::support::{Sandbox, npy};
use serde_json::json;

/// Rows of three columns: a number, its opposite, and a part.
fn table(separator: char, n: usize) -> String {
    let word = |i: usize| ["train", "val", "test", "train"][i % 4];
    let rows = (0..n).map(|i| format!("{}{separator}{}{separator}{}\n", i % 2, (i + 1) % 2, word(i)));
    format!("a{separator}b{separator}part\n{}", rows.collect::<String>())
}

fn values(n: usize) -> String {
    (0..n).map(|i| format!("{},{}\n", i % 2, (i + 1) % 2)).collect()
}

const SMALL: [&str; 5] = ["--n-hidden", "2", "--epochs", "2", "--no-report"];

/// The arguments of a training with small settings.
fn train<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["train"], args, &SMALL[..]].concat()
}

#[test]
fn training_says_which_rows_it_uses() {
    let sandbox = Sandbox::new()
        .with_file("rows.csv", values(40))
        .with_file("valid.csv", values(6))
        .with_file("test.csv", values(5))
        .with_file("table.csv", table(',', 40));
    for (args, rows) in [
        (&["rows.csv"][..], "32 train, 4 validation, 4 test (drawn from rows.csv by seed 0)"),
        (&["rows.csv", "--no-validation"], "40 train (all rows of rows.csv), no validation, no test"),
        (
            &["rows.csv", "--validation", "valid.csv", "--test", "test.csv"],
            "40 train (all rows of rows.csv), 6 validation (valid.csv), 5 test (test.csv)",
        ),
        (
            &["table.csv", "--split-column", "part"],
            "20 train, 10 validation, 10 test (table.csv by its column \"part\")",
        ),
        (&["digits"], "1297 train, 200 validation, 300 test (digits)"),
    ] {
        let text = sandbox.succeeds(&train(args));
        let first = text.lines().next().unwrap();
        assert!(first.starts_with(&format!("rows: {rows}")), "{text}");
        assert_eq!(first.contains("--no-validation"), rows.contains("drawn"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("rows ") && line.ends_with(rows)), "{text}");
        let shown = sandbox.succeeds(&["data", "show"].iter().chain(args).copied().collect::<Vec<_>>());
        assert!(shown.lines().any(|line| line.starts_with("parts ") && line.ends_with(rows)), "{shown}");
    }
    let json = sandbox.json(&train(&["rows.csv", "--validation", "valid.csv", "-o", "own"]));
    assert_eq!(json["rows"]["validation"], json!({ "n_rows": 6, "from": "valid.csv" }));
    assert_eq!((&json["rows"]["test"], &json["rows"]["is_drawn"]), (&json!(null), &json!(false)));
}

#[test]
fn the_test_rows_of_a_run_are_found_again() {
    let sandbox = Sandbox::new()
        .with_file("table.csv", table(',', 40))
        .with_file("rows.csv", values(40))
        .with_file("test.csv", values(6))
        .with_file("parts.txt", "train\ntest\n".repeat(20));
    let rows_of = |model: &str| -> Vec<(String, u64)> {
        let json = sandbox.json(&["likelihood", model]);
        let parts = json["likelihoods"].as_array().unwrap().iter();
        parts.map(|p| (p["split"].as_str().unwrap().to_owned(), p["n_rows"].as_u64().unwrap())).collect()
    };
    let expect = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        rows.iter().map(|(split, n)| (split.to_string(), *n)).collect()
    };
    sandbox.succeeds(&train(&["table.csv", "--split-column", "part", "-o", "column"]));
    assert_eq!(
        rows_of("column/model.safetensors"),
        expect(&[("train", 20), ("validation", 10), ("test", 10)])
    );
    sandbox.succeeds(&train(&["rows.csv", "--test", "test.csv", "-o", "own"]));
    assert_eq!(rows_of("own/model.safetensors"), expect(&[("train", 40), ("test", 6)]));
    sandbox.succeeds(&train(&["rows.csv", "--split", "parts.txt", "-o", "file"]));
    assert_eq!(rows_of("file/model.safetensors"), expect(&[("train", 20), ("test", 20)]));
    // The same run again from its configuration.
    sandbox.succeeds(&["train", "--config", "file/config.toml", "--no-report", "-o", "again"]);
    assert_eq!(rows_of("again/model.safetensors"), expect(&[("train", 20), ("test", 20)]));
    sandbox.refuses(
        &["likelihood", "own/model.safetensors", "--split", "validation"],
        &["the validation part of rows.csv (40 rows) is empty"],
    );
    // Other test rows, or other parts, are noticed.
    let sandbox = sandbox.with_file("test.csv", values(7)).with_file("parts.txt", "test\ntrain\n".repeat(20));
    for (model, file) in [("own", "test.csv"), ("file", "parts.txt")] {
        let outcome = sandbox.run(&["likelihood", &format!("{model}/model.safetensors")]);
        let warning = format!("{file} is not the data that this model was made from");
        assert!(outcome.code == Some(0) && outcome.stderr.contains(&warning), "{}", outcome.stderr);
    }
}

#[test]
fn parts_that_contradict_each_other_are_refused_by_flag() {
    let sandbox = Sandbox::new().with_file("rows.csv", values(40)).with_file("few.csv", "train\n");
    sandbox.refuses_usage(
        &train(&["rows.csv", "--no-validation", "--validation", "rows.csv"]),
        &["--validation"],
    );
    sandbox.refuses(
        &train(&["rows.csv", "--no-validation", "--validation-fraction", "0.2"]),
        &["--no-validation cannot be used with --validation-fraction 0.2"],
    );
    sandbox.refuses(&train(&["rows.csv", "--split", "few.csv"]), &["parts in few.csv", "expected 40, got 1"]);
    sandbox.refuses(
        &train(&["digits", "--split-column", "x"]),
        &["--split-column x is not allowed", "its own parts"],
    );
    sandbox.refuses(&train(&["rows.csv", "--validation", "none.csv"]), &["none.csv", "no such file"]);
}

#[test]
fn other_ranges_and_spins_are_read_and_remembered() {
    let bytes: Vec<f32> = (0..80).map(|k| if k % 3 == 0 { 255.0 } else { (k % 5) as f32 }).collect();
    let spins: Vec<f32> = (0..80).map(|k| if k % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let sandbox = Sandbox::new()
        .with_file("bytes.npy", npy(&[20, 4], &bytes))
        .with_file("spins.npy", npy(&[20, 4], &spins));
    sandbox.refuses(&train(&["bytes.npy"]), &["values must lie in [0, 1]", "--scale 255"]);
    sandbox.refuses(&train(&["spins.npy"]), &["all values are -1 or 1: set --spins"]);
    sandbox.refuses(&train(&["spins.npy", "--scale", "1"]), &["must lie in [0, 1]", "--scale -1,1"]);
    let shown = sandbox.json(&["data", "show", "bytes.npy", "--scale", "255", "--rows", "1"]);
    assert_eq!(shown["provenance"]["preprocessing"], "value/255");
    assert_eq!(shown["first_rows"][0][0], 1.0);
    let signed = sandbox.json(&["data", "show", "bytes.npy", "--scale", "-255,255"]);
    assert_eq!(signed["provenance"]["preprocessing"], "(value + 255)/510");

    sandbox.succeeds(&train(&["spins.npy", "--spins", "-o", "spins"]));
    let model = "spins/model.safetensors";
    assert_eq!(sandbox.json(&["likelihood", model, "--split", "all"])["likelihoods"][0]["n_rows"], 20);
    let said = sandbox.succeeds(&["sample", model, "-n", "30", "-o", "s.npy"]);
    assert!(said.contains("s.npy (-1 and 1, like the rows of the model)"), "{said}");
    let samples: Vec<i8> = npyz::NpyFile::new(&sandbox.bytes("s.npy")[..]).unwrap().into_vec().unwrap();
    assert!(samples.len() == 120 && samples.iter().all(|&s| s == 1 || s == -1) && samples.contains(&-1));
    sandbox.succeeds(&["sample", model, "-n", "30", "--means", "-o", "m.npy"]);
    let means: Vec<f32> = npyz::NpyFile::new(&sandbox.bytes("m.npy")[..]).unwrap().into_vec().unwrap();
    assert!(means.iter().all(|m| (-1.0..=1.0).contains(m)) && means.iter().any(|&m| m < 0.0));
    // The samples are such rows again.
    sandbox.succeeds(&["likelihood", model, "--data", "s.npy", "--spins", "--split", "all"]);
}

#[test]
fn texts_of_other_separators_are_read_and_described() {
    let sandbox = Sandbox::new()
        .with_file("semi.csv", table(';', 8))
        .with_file("tabs.tsv", table('\t', 8))
        .with_file("spaces.txt", table(' ', 8));
    for (name, word) in [("semi.csv", "semicolons"), ("tabs.tsv", "tabs"), ("spaces.txt", "spaces")] {
        let shown = sandbox.json(&["data", "show", name, "--split-column", "part"]);
        assert_eq!(shown["format"], format!("text, cells separated by {word}, with a header"));
        assert_eq!((&shown["parts"]["train"]["n_rows"], &shown["binary"]), (&json!(4), &json!(true)));
    }
}

#[test]
fn the_first_rows_and_what_is_there_twice_are_shown() {
    let rows = "up,down,same,flat\n1,0,1,1\n0,1,0,1\n1,0,1,1\n0.5,1,0.5,1\n";
    let sandbox = Sandbox::new().with_file("t.csv", rows);
    let text = sandbox.succeeds(&["data", "show", "t.csv", "--rows", "2"]);
    for words in [
        "rows         4 (all); 1 repeats an earlier row",
        "columns      4; 1 constant (flat); 1 equal another (same = up)",
        "grey, in [0, 1], mean 0.6875; 62.50 % are 1, 25.00 % are 0",
        "up  down  same  flat",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).contains(&squeezed(words)), "{words}: {text}");
    }
    let json = sandbox.json(&["data", "show", "t.csv", "--rows", "2"]);
    assert_eq!(json["first_rows"], json!([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]]));
    assert_eq!((&json["n_duplicate_rows"], &json["duplicate_columns"]), (&json!(1), &json!([[2, 0]])));
    assert_eq!((&json["constant_columns"], &json["share_of_ones"]), (&json!([3]), &json!(0.625)));
    assert_eq!(json["column_names"], json!(["up", "down", "same", "flat"]));
}

#[test]
fn a_run_finds_its_data_from_other_folders() {
    let sandbox = Sandbox::new().with_file("rows.csv", values(40)).with_file("test.csv", values(6));
    let args = ["rows.csv", "--test", "test.csv", "--checkpoint-every", "1", "-o", "runs/x"];
    let first = sandbox.json(&train(&args));
    assert_eq!(first["config"]["data"]["source"], "rows.csv");
    let elsewhere = sandbox.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let run = |args: &[&str]| {
        let output = sandbox.command(args).current_dir(&elsewhere).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    };
    run(&["likelihood", "../runs/x/model.safetensors"]);
    run(&["train", "--resume", "../runs/x"]);
    run(&["report", "../runs/x"]);
    run(&["train", "--config", "../runs/x/config.toml", "--no-report", "-o", "again"]);
    // Everything moves together: the data are found above the run folder.
    let (old, new) = (sandbox.path("runs"), sandbox.path("elsewhere/project/runs"));
    std::fs::create_dir(sandbox.path("elsewhere/project")).unwrap();
    std::fs::rename(old, &new).unwrap();
    for name in ["rows.csv", "test.csv"] {
        std::fs::rename(sandbox.path(name), sandbox.path("elsewhere/project").join(name)).unwrap();
    }
    run(&["likelihood", "project/runs/x/model.safetensors"]);
    run(&["train", "--resume", "project/runs/x"]);
}

/// MNIST's names of files with another content.
#[test]
fn a_set_is_not_listed_because_of_another_sets_files() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("no-data");
    std::fs::create_dir(&folder).unwrap();
    for name in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"] {
        std::fs::write(folder.join(format!("{name}-ubyte")), [0, 0, 8, 1, 0, 0, 0, 1, 7]).unwrap();
    }
    for entry in sandbox.json(&["data", "list"]).as_array().unwrap() {
        assert_eq!(entry["found"], json!(null), "{entry}");
    }
}

/// Tables keep the names of their columns: in models, samples, lists of weights, and the report.
#[test]
fn names_of_columns_travel_with_the_model() {
    let names = "wings,fins,legs,kind";
    let line = |r: usize| if r.is_multiple_of(2) { "1,0,1,bird" } else { "0,1,0,fish" };
    let rows: Vec<&str> = (0..80).map(line).collect();
    let swapped: Vec<&str> = (0..80).map(|_| "0,1,1,bird").collect();
    let sandbox = Sandbox::new()
        .with_file("table.csv", format!("{names}\n{}", rows.join("\n")))
        .with_file("swapped.csv", format!("fins,wings,legs,kind\n{}", swapped.join("\n")));
    let data = ["table.csv", "--label-column", "kind"];
    sandbox.json(&[&["train"][..], &data, &["--n-hidden", "2", "--epochs", "50", "-o", "run"]].concat());
    let text = sandbox.succeeds(&["inspect", "run", "--units", "1"]);
    for word in ["wings", "fins", "legs", "--units 2 lists all"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = sandbox.json(&["inspect", "run"]);
    let units = json["strongest_units"].as_array().unwrap();
    // Fins and wings exclude each other, so their weights have different signs.
    let weight = |name: &str| {
        let columns = units[0]["columns"].as_array().unwrap();
        columns.iter().find(|c| c["column"] == name).unwrap()["weight"].as_f64().unwrap()
    };
    assert_eq!(units.len(), 2);
    assert!(weight("wings") * weight("fins") < 0.0 && weight("wings") * weight("legs") > 0.0, "{units:?}");
    let page = String::from_utf8(sandbox.bytes("run/report.html")).unwrap();
    assert!(page.contains("Hidden units") && page.contains("columns with the largest weights"));
    sandbox.json(&["sample", "run", "-n", "3", "-o", "samples.csv"]);
    let csv = String::from_utf8(sandbox.bytes("samples.csv")).unwrap();
    assert!(csv.starts_with("wings,fins,legs\n") && csv.lines().count() == 4, "{csv}");
    // The same columns in another order would be wrong without a word.
    let wrong = ["fins, not wings", "same order"];
    sandbox.refuses(
        &["likelihood", "run", "--data", "swapped.csv", "--label-column", "kind"],
        &[&wrong[..], &["swapped.csv"]].concat(),
    );
    sandbox.refuses(&[&["train"][..], &data, &["--test", "swapped.csv", "-o", "other"]].concat(), &wrong);
}

/// Noise cannot be learnt: a model with many hidden units overfits a small table of it. The control
/// has a pattern, few hidden units, and no warning.
#[test]
fn overfitting_of_a_small_table_is_told() {
    let mut state = 1u64;
    let mut coin = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 63
    };
    let noise: Vec<String> =
        (0..90).map(|_| (0..20).map(|_| coin().to_string()).collect::<Vec<_>>().join(",")).collect();
    let sandbox = Sandbox::new().with_file("noise.csv", noise.join("\n"));
    let args = ["train", "noise.csv", "--n-hidden", "12", "--epochs", "1500", "-o", "noise"];
    let outcome = sandbox.run(&[&args[..], &["--validation-fraction", "0.3"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for word in ["the model overfits", "kept as the best one", "--n-hidden", "--l2 0.0001", "--epochs"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    let page = String::from_utf8(sandbox.bytes("noise/report.html")).unwrap();
    assert!(page.contains("the model overfits") && !page.contains("No problems found"));
    let control =
        sandbox.run(&["train", "bars-and-stripes:3", "--n-hidden", "4", "--epochs", "300", "-o", "c"]);
    assert!(!control.stderr.contains("overfits"), "{}", control.stderr);
    let control = sandbox.run(&["train", "digits", "--n-hidden", "4", "--epochs", "20", "-o", "d"]);
    assert!(!control.stderr.contains("overfits"), "{}", control.stderr);
}
