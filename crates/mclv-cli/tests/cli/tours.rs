//! Tours are made, counted, fitted, shown and saved as asked.

use crate::support::{Sandbox, keys, npy, without_times};
use serde_json::{Value, json};

fn tours<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["tours", "m.safetensors", "--n-tours", "2000"], args].concat()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A model of 4,096 hidden states, of which the stopping sets hold a part: tours are of several
/// steps.
fn digits() -> Sandbox {
    Sandbox::new().with_model("m.safetensors", 12)
}

#[test]
fn every_set_is_reported() {
    let json = digits().json(&tours(&["--samples-per-row", "1,4", "--seed", "3"]));
    assert_eq!(keys(&json), ["csv", "data", "model", "pictures", "report", "sets", "settings", "starts"]);
    assert_eq!((&json["data"]["name"], &json["data"]["split"]), (&json!("digits"), &json!("train")));
    assert_eq!((&json["starts"], &json["settings"]["n-tours"]), (&json!("pi"), &json!(2000)));
    let sets = json["sets"].as_array().unwrap();
    assert_eq!(sets.iter().map(|s| s["samples_per_row"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4]);
    assert!(number(&sets[0]["n_states"]) < number(&sets[1]["n_states"]));
    assert!(number(&sets[0]["log_z_s"]) < number(&sets[1]["log_z_s"]));
    for set in sets {
        assert_eq!((&set["n_complete"], &set["cut_at"]), (&json!(2000), &Value::Null));
        assert_eq!(number(&set["n_own_start"]) + number(&set["n_elsewhere"]), 2000.0);
        assert_eq!(set["log_z"]["guarantee"], "lower-bound");
        let mean = &set["mean_length"];
        assert_eq!(mean["guarantee"], "unless-cut");
        let log_z = number(&set["log_z_s"]) + number(&mean["value"]).ln();
        assert!((number(&set["log_z"]["value"]) - log_z).abs() < 1e-12);
        let labels = set["by_label"].as_array().unwrap();
        assert!(labels.len() == 10 && labels[7]["label"] == "7");
        let sum = |what: &dyn Fn(&Value) -> f64| labels.iter().map(what).sum::<f64>();
        assert!((sum(&|l| number(&l["n_tours"])) - 2000.0).abs() < 1e-6);
        let steps = sum(&|l| number(&l["n_tours"]) * number(&l["mean_length"]));
        assert!((steps - number(&set["n_steps"])).abs() < 1e-6);
        let points = set["ccdf"]["points"].as_array().unwrap();
        assert_eq!((&points[0]["k"], &points[0]["p"]), (&json!(0), &json!(1.0)));
        assert_eq!(points.last().unwrap()["k"], set["longest"]);
        assert!(points.windows(2).all(|w| number(&w[0]["p"]) > number(&w[1]["p"])));
        assert!(
            points
                .iter()
                .all(|p| p["low"].as_f64() <= p["p"].as_f64() && p["p"].as_f64() <= p["high"].as_f64())
        );
    }
}

#[test]
fn the_table_holds_what_was_asked_for() {
    let text = digits().succeeds(&tours(&["--samples-per-row", "1,4"]));
    let words = [
        "digits (train), value/16; tours from π_S",
        "m = 1",
        "m = 4",
        "back in own start",
        "tail rate (empirical)",
        "log Ẑ",
        "lower bound on average",
        "low on average",
        "p(ξ > k)",
        "● m = 1   ○ m = 4",
        "mean length",
        "unfinished",
    ];
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 80 || line.contains("interval") || line.contains("budget")),
        "{text}"
    );
}

/// Five standard errors: fewer than one choice of seeds in a million would fail.
#[test]
fn log_z_is_that_of_enumeration() {
    let sandbox = digits();
    let exact = number(&sandbox.json(&["logz", "m.safetensors"])["estimates"][0]["value"]);
    for set in sandbox.json(&tours(&["--samples-per-row", "1,2"]))["sets"].as_array().unwrap() {
        let (value, std_err) = (number(&set["log_z"]["value"]), number(&set["log_z"]["std_err"]));
        assert!(
            std_err > 0.0 && (value - exact).abs() < 5.0 * std_err,
            "{value} ± {std_err} against {exact}"
        );
    }
}

#[test]
fn small_models_are_solved_beside() {
    let sandbox = Sandbox::new();
    sandbox.succeeds(&["init", "bars-and-stripes:3", "--n-hidden", "6", "-o", "m.safetensors"]);
    let set = &sandbox.json(&tours(&[]))["sets"][0];
    let (mean, exact) = (&set["mean_length"], &set["exact"]);
    let off = number(&mean["value"]) - number(&exact["mean_length"]);
    assert!(off.abs() < 5.0 * number(&mean["std_err"]), "{set}");
    let p = number(&exact["own_start_in_one_step"]);
    let off = number(&set["n_own_start_in_one_step"]) / 2000.0 - p;
    assert!(off.abs() < 5.0 * (p * (1.0 - p) / 2000.0).sqrt(), "{set}");
    assert!(sandbox.succeeds(&tours(&[])).contains("exactly"));
    let set = &sandbox.json(&tours(&["--starts", "rows"]))["sets"][0];
    assert!(set["exact"].is_null());
}

#[test]
fn tours_from_rows_print_no_estimate_of_z() {
    let sandbox = digits();
    let args = tours(&["--starts", "rows", "--split", "test"]);
    let json = sandbox.json(&args);
    let set = &json["sets"][0];
    assert!(set["log_z"].is_null() && json["starts"] == "rows" && json["data"]["split"] == "test");
    assert_eq!(set["mean_length"]["guarantee"], "none");
    assert_eq!(set["by_label"].as_array().unwrap().len(), 10);
    let text = sandbox.succeeds(&args);
    assert!(text.contains("they do not estimate Z") && !text.contains("log Ẑ"), "{text}");
    assert!(!text.contains("guarantee"), "{text}");
}

#[test]
fn mean_field_comes_with_no_guarantee() {
    let sandbox = digits();
    let set = &sandbox.json(&tours(&["--visible", "mean-field"]))["sets"][0];
    assert_eq!(set["log_z"]["guarantee"], "none");
    assert!(set["log_z"]["interval"].is_null());
    let text = sandbox.succeeds(&tours(&["--visible", "mean-field"]));
    assert!(text.contains("a mean-field chain is not the model's chain"), "{text}");
}

#[test]
fn tours_that_were_cut_are_said_to_be() {
    let sandbox = digits();
    let set = &sandbox.json(&tours(&["--max-length", "2"]))["sets"][0];
    assert_eq!((&set["cut_at"], &set["longest"]), (&json!(2), &json!(2)));
    assert!(number(&set["n_complete"]) < 2000.0);
    assert_eq!(set["log_z"]["guarantee"], "lower-bound");
    assert_eq!(set["ccdf"]["known_up_to"], 2);
    let labels = set["by_label"].as_array().unwrap();
    let n_unfinished: f64 = labels.iter().map(|l| number(&l["n_unfinished"])).sum();
    assert!((n_unfinished + number(&set["n_complete"]) - 2000.0).abs() < 1e-6);
    assert!(labels.iter().all(|l| l["longer_than_100"].is_null()));
    let text = sandbox.succeeds(&tours(&["--max-length", "2"]));
    for word in ["% at K = 2", "≥ ", "> 2", "lower bound", "were cut"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let whole = &sandbox.json(&tours(&["--max-steps", "none"]))["sets"][0];
    let bounded = &sandbox.json(&tours(&["--max-steps", "2000"]))["sets"][0];
    assert!(number(&bounded["n_steps"]) <= 2000.0 && bounded["cut_at"] == 1);
    assert!(number(&bounded["log_z"]["value"]) < number(&whole["log_z"]["value"]));
}

#[test]
fn the_tail_function_is_saved() {
    let sandbox = digits();
    let json = sandbox.json(&tours(&["--samples-per-row", "1,2", "--csv", "tail.csv"]));
    let text = String::from_utf8(sandbox.bytes("tail.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("samples_per_row,k,ccdf,low,high"));
    let rows: Vec<Vec<f64>> = lines.map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect();
    for (set, m) in json["sets"].as_array().unwrap().iter().zip([1.0, 2.0]) {
        let of_set: Vec<&Vec<f64>> = rows.iter().filter(|row| row[0] == m).collect();
        let at_one = of_set.iter().find(|row| row[1] == 1.0).unwrap();
        assert!((at_one[2] - (1.0 - number(&set["n_one_step"]) / 2000.0)).abs() < 1e-12);
        assert!(at_one[3] < at_one[2] && at_one[2] < at_one[4]);
        let last = of_set.last().unwrap();
        assert_eq!((last[1], last[2]), (number(&set["longest"]), 0.0));
        // The tail function sums to the mean length, so no length is left out.
        let sum: f64 = of_set.windows(2).map(|w| w[0][2] * (w[1][1] - w[0][1])).sum();
        assert!((sum - number(&set["mean_length"]["value"])).abs() < 1e-9);
    }
}

#[test]
fn the_shortest_and_longest_are_pictured() {
    let sandbox = digits();
    for extra in [&["--starts", "pi"][..], &["--starts", "rows"], &["--visible", "mean-field"]] {
        let args = tours(&[&["--pictures", "p.png", "--columns", "5", "--force"], extra].concat());
        let json = sandbox.json(&args);
        let set = &json["sets"][0];
        let pictured = &set["pictured"];
        assert_eq!(pictured["shortest"], json!([1, 1, 1, 1, 1]));
        assert_eq!(pictured["longest"][0], set["longest"]);
        let png = sandbox.bytes("p.png");
        assert!(png.starts_with(b"\x89PNG"));
        // Five and four pictures of 8 × 8, seven times enlarged, lines around them.
        assert_eq!(
            (&png[16..20], &png[20..24]),
            (&(5 * 57 + 1u32).to_be_bytes()[..], &(4 * 57 + 1u32).to_be_bytes()[..])
        );
    }
    sandbox.refuses(&tours(&["--pictures", "p.png"]), &["p.png already exists", "--force"]);
    let text = sandbox.succeeds(&tours(&["--pictures", "q.png", "--csv", "q.csv"]));
    for word in ["wrote  q.csv", "wrote  q.png", "m = 1  shortest 1 1"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn neither_threads_nor_instruction_sets_matter() {
    let run = |sandbox: &Sandbox, extra: &[&str]| -> Vec<Value> {
        let runs: [&[&str]; 3] = [
            &["--samples-per-row", "1,3"],
            &["--starts", "rows", "--max-steps", "9000"],
            &["--visible", "mean-field"],
        ];
        runs.into_iter().map(|args| without_times(sandbox.json(&tours(&[args, extra].concat())))).collect()
    };
    let sandbox = digits();
    let one = run(&sandbox, &["--threads", "1"]);
    for n in ["2", "5"] {
        assert_eq!(run(&sandbox, &["--threads", n]), one);
    }
    assert_ne!(run(&sandbox, &["--seed", "1"]), one);
    assert_eq!(run(&sandbox.with_variable("MCLV_ISA", "portable"), &[]), one);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sandbox = digits()
        .with_file("narrow.csv", "0,1\n1,0\n")
        .with_file("bare.weights.npy", npy(&[2, 1], &[0.5, 0.5]))
        .with_file("bare.visible_bias.npy", npy(&[2], &[0.0; 2]))
        .with_file("bare.hidden_bias.npy", npy(&[1], &[0.0]));
    sandbox.refuses(&["tours", "none.safetensors"], &["none.safetensors"]);
    sandbox.refuses(&["tours", "bare.weights.npy"], &["does not record its data", "--data"]);
    sandbox.refuses(&tours(&["--data", "narrow.csv"]), &["narrow", "2 columns", "64 visible units"]);
    sandbox.refuses(&tours(&["--data", "nothing.csv"]), &["nothing.csv"]);
    sandbox.refuses(&tours(&["--csv", "tail.txt"]), &["--csv", "tail.txt", ".csv"]);
    sandbox.refuses(&tours(&["--pictures", "p.jpg"]), &["--pictures", "p.jpg", ".png"]);
    sandbox.refuses(&tours(&["--pictures", "p.png", "--shape", "3x3"]), &["--shape"]);
    sandbox.refuses(&tours(&["--max-steps", "5"]), &["max-steps", "at least one step for each tour"]);
    sandbox.refuses(&tours(&["--time-limit", "0"]), &["--time-limit", "1s or more"]);
    let args = ["tours", "bare.weights.npy", "--data", "narrow.csv", "--split", "all", "--pictures", "p.png"];
    sandbox.refuses(&args, &["2 visible units", "--shape HxW"]);
    for (flag, value, word) in [
        ("--samples-per-row", "0", "1..=65535"),
        ("--samples-per-row", "1,,4", "--samples-per-row"),
        ("--n-tours", "1", "2.."),
        ("--starts", "nowhere", "pi, rows"),
        ("--visible", "none", "mean-field"),
        ("--max-length", "0", "1.."),
        ("--max-steps", "soon", "or none"),
        ("--columns", "0", "--columns"),
    ] {
        sandbox.refuses_usage(&["tours", "m.safetensors", flag, value], &[word]);
    }
    sandbox.succeeds(&args[..6]);
}

/// Measured values are within six standard errors of exact ones; bounds hold.
#[test]
fn the_statements_of_the_paper_are_measured_beside_exact_values() {
    let sandbox = Sandbox::new();
    sandbox.succeeds(&["init", "bars-and-stripes:3", "--hidden", "6", "-o", "small.safetensors"]);
    let command = ["tours", "small.safetensors", "--tours", "4000", "--theorems", "--cut-at", "3,1,3"];
    let json = sandbox.json(&[&command[..], &["--report", "t.html"]].concat());
    let found = &json["sets"][0]["theorems"];
    let rows = found["cut"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["k"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    let near = |pair: &Value| {
        let (measured, exact) = (&pair["measured"], number(&pair["exact"]));
        let error = (number(&measured["value"]) - exact).abs();
        assert!(error <= 6.0 * number(&measured["std_err"]) + 1e-9, "{pair}");
        exact
    };
    let mean_energy = near(&found["mean_energy"]);
    near(&found["set_probability"]);
    near(&found["second_moment"]);
    assert!(number(&found["second_moment_bound"]) >= number(&found["second_moment"]["exact"]) - 1e-9);
    for row in rows {
        near(&row["returned"]);
        near(&row["started"]);
        assert!((near(&row["completed"]) - 1.0).abs() <= number(&row["completed_bound"]) + 1e-9);
        assert!((near(&row["energy"]) - mean_energy).abs() <= number(&row["energy_bound"]) + 1e-9);
    }
    for row in found["tail"].as_array().unwrap() {
        let exact = number(&row["exact"]);
        assert!(
            exact <= number(&row["rate_bound"]) + 1e-12 && exact <= number(&row["epsilon_bound"]) + 1e-12
        );
    }
    let parts = found["gradient"]["parts"].as_array().unwrap();
    assert!((parts.iter().map(|part| number(&part["of_gradient"])).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(number(&found["needed"]["cv2_bound"]) >= number(&found["needed"]["cv2_exact"]) - 1e-9);
    let page = String::from_utf8(sandbox.bytes("t.html")).unwrap();
    assert!(page.contains("The paper's statements") || page.contains("The paper&#x27;s statements"));

    let text = sandbox.succeeds(&command);
    for word in [
        "Theorem 1",
        "Theorem 2",
        "Theorem 3",
        "Chebyshev",
        "Lemma 1",
        "Corollary 3",
        "CD-K and LVS-K",
        "ρ =",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // Without enumeration there are no exact columns.
    let text = digits().succeeds(&tours(&["--theorems"]));
    assert!(text.contains("it is empirical") || text.contains("they are empirical"), "{text}");
    sandbox
        .refuses(&[&command[..], &["--starts", "rows"]].concat(), &["--theorems", "leave out --starts rows"]);
    let mean_field = [&command[..], &["--visible", "mean-field"]].concat();
    sandbox.refuses(&mean_field, &["--theorems", "leave out --visible mean-field"]);
    for (flag, value, word) in
        [("--cut-at", "0", "1..=1000"), ("--alpha", "2", "probability"), ("--error", "-1", "above 0")]
    {
        let flag = format!("{flag}={value}");
        sandbox.refuses_usage(&["tours", "small.safetensors", "--theorems", &flag], &[word]);
    }
    sandbox.refuses_usage(&["tours", "small.safetensors", "--alpha", "0.1"], &["--theorems"]);
}
