//! Test that `mclv logz` and `mclv likelihood` make only true statements.

use crate::support::{Sandbox, npy};
use serde_json::Value;

/// Two equal modes, all units off and all units on, as arrays of a model without any data: `w`
/// between all pairs, and biases of `-w/2` times the size of the other layer. `Z` is a sum over the
/// number of visible units that are on.
struct TwoModes {
    n_visible: usize,
    n_hidden: usize,
    w: f64,
}

impl TwoModes {
    fn log_z(&self) -> f64 {
        let (n, m, w) = (self.n_visible as f64, self.n_hidden as f64, self.w);
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let mut log_choose = 0.0;
        let terms: Vec<f64> = (0..=self.n_visible)
            .map(|k| {
                let k = k as f64;
                if k > 0.0 {
                    log_choose += ((n - k + 1.0) / k).ln();
                }
                log_choose - w * m / 2.0 * k + m * softplus(w * (k - n / 2.0))
            })
            .collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()
    }

    fn save(&self, sandbox: &Sandbox) {
        let (n, m, w) = (self.n_visible as u64, self.n_hidden as u64, self.w as f32);
        let write = |name: &str, shape: &[u64], value: f32| {
            let n: u64 = shape.iter().product();
            std::fs::write(sandbox.path(&format!("model.{name}.npy")), npy(shape, &vec![value; n as usize]))
                .unwrap();
        };
        write("weights", &[n, m], w);
        write("visible_bias", &[n], -w * m as f32 / 2.0);
        write("hidden_bias", &[m], -w * n as f32 / 2.0);
    }

    /// Rows near the mode in which all units are off.
    fn save_rows_of_one_mode(&self, sandbox: &Sandbox) {
        let n = self.n_visible;
        let values: Vec<f32> = (0..200 * n).map(|k| f32::from(u8::from(k % (7 * n + 3) == 0))).collect();
        std::fs::write(sandbox.path("rows.npy"), npy(&[200, n as u64], &values)).unwrap();
    }
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64().unwrap_or_else(|| panic!("a number: {value}"));
    assert!(number.is_finite());
    number
}

/// Asserts that the claims of an estimate are true: its interval contains `log_z`, and its error is
/// at most five error bars.
fn holds(estimate: &Value, log_z: f64) {
    if let Some(interval) = estimate["interval"].as_array() {
        let (low, high) = (number(&interval[0]), number(&interval[1]));
        assert!(low <= log_z && log_z <= high, "truth {log_z}: {estimate}");
    }
    if let Some(std_err) = estimate["std_err"].as_f64() {
        let error = (number(&estimate["value"]) - log_z).abs();
        assert!(error <= 5.0 * std_err + 1e-6, "truth {log_z}: {estimate}");
    }
}

/// Tests a model with two modes, without data and with rows of only one mode. An earlier version of
/// the program reported 0 with an error bar of 0, and "all agree".
#[test]
fn no_mode_is_missed_with_confidence() {
    let model = TwoModes { n_visible: 48, n_hidden: 48, w: 0.15 };
    let sandbox = Sandbox::new();
    model.save(&sandbox);
    model.save_rows_of_one_mode(&sandbox);
    let log_z = model.log_z();
    let methods = ["--method", "mclv,ais,bar", "--n-betas", "1000", "--ladder-steps", "500", "--seed", "1"];
    for data in [&[][..], &["--data", "rows.npy"]] {
        let args = [&["logz", "model.npy"][..], &methods, data].concat();
        let json = sandbox.json(&args);
        let estimates = json["estimates"].as_array().unwrap();
        estimates.iter().for_each(|estimate| holds(estimate, log_z));
        // Tours find both modes, with an interval.
        assert!((number(&estimates[0]["value"]) - log_z).abs() < 0.1, "{log_z}: {}", estimates[0]);
        assert!(estimates[0]["interval"].is_array(), "{}", estimates[0]);
        let text = sandbox.succeeds(&args);
        assert!(text.contains("a mode of the model that no chain has visited"), "{text}");
    }
    // The default method makes no false claim either.
    holds(&sandbox.json(&["logz", "model.npy", "--time-limit", "0"])["estimates"][0], log_z);
}

/// A lower bound far below the exact value is not reported as agreement, and an unknown error is
/// not reported as zero. Each note has a line of its own.
#[test]
fn bounds_and_unknown_errors_are_no_agreement() {
    let sandbox = Sandbox::new();
    let model = TwoModes { n_visible: 10, n_hidden: 70, w: 0.01 };
    model.save(&sandbox);
    model.save_rows_of_one_mode(&sandbox);
    let args = [
        "logz",
        "model.npy",
        "--data",
        "rows.npy",
        "--method",
        "exact,mclv",
        "--n-tours",
        "300",
        "--max-steps",
        "600",
    ];
    let json = sandbox.json(&args);
    let cut = &json["estimates"][1];
    assert!(number(&cut["value"]) < model.log_z() - 10.0, "{cut}");
    assert_eq!(
        (&cut["std_err"], &cut["interval"]),
        (&Value::Null, &Value::Null),
        "all tours were cut: {cut}"
    );
    assert_eq!(cut["guarantee_of_z"], "lower bound on average");
    assert_eq!(json["agreement"]["agree"], Value::Null, "{}", json["agreement"]);
    let text = sandbox.succeeds(&args);
    assert!(!text.contains(" agree") && text.contains("mclv has no interval and was not compared"), "{text}");
    assert!(text.contains("unknown"), "{text}");
    let one = sandbox.succeeds(&[
        "logz",
        "model.npy",
        "--data",
        "rows.npy",
        "--method",
        "mclv",
        "--n-tours",
        "300",
        "--max-steps",
        "600",
    ]);
    let notes = one.lines().filter(|line| line.starts_with("mclv: ")).count();
    assert!(notes >= 2, "each note has a line of its own: {one}");
}

/// Only a run that was asked to have no budget is called unbiased.
#[test]
fn only_tours_without_a_budget_are_unbiased() {
    let sandbox = Sandbox::new();
    TwoModes { n_visible: 6, n_hidden: 6, w: 0.2 }.save(&sandbox);
    for (max_steps, of_z) in [("minute", "lower bound on average"), ("none", "unbiased")] {
        let json = sandbox.json(&["logz", "model.npy", "--method", "mclv", "--max-steps", max_steps]);
        assert_eq!(json["estimates"][0]["guarantee_of_z"], of_z);
    }
    sandbox.refuses_usage(&["logz", "model.npy", "--max-steps", "few"], &["max-steps", "none"]);
}

/// Grey rows have no exact likelihood, and one row has no standard error.
#[test]
fn likelihoods_are_called_what_they_are() {
    let sandbox = Sandbox::new();
    TwoModes { n_visible: 6, n_hidden: 4, w: 0.2 }.save(&sandbox);
    std::fs::write(sandbox.path("grey.npy"), npy(&[2, 6], &[0.5; 12])).unwrap();
    std::fs::write(sandbox.path("one.npy"), npy(&[1, 6], &[1.0; 6])).unwrap();
    let of = |data: &str| {
        sandbox.json(&["likelihood", "model.npy", "--data", data, "--split", "all"])["likelihoods"][0].clone()
    };
    let grey = of("grey.npy");
    assert_eq!(grey["guarantee"], "a lower bound on the expectation over binarised rows", "{grey}");
    let one = of("one.npy");
    assert_eq!((&one["std_err_rows"], &one["guarantee"]), (&Value::Null, &Value::from("exact")), "{one}");
    let text = sandbox.succeeds(&["likelihood", "model.npy", "--data", "grey.npy", "--split", "all"]);
    assert!(text.contains("grey values"), "{text}");
}
