//! Test `mclv lab` on small models: what it says about estimators of known bias.

use crate::support::{Sandbox, keys};
use serde_json::Value;

fn of<'a>(model: &'a Value, estimator: &str) -> &'a Value {
    let all = model["estimators"].as_array().unwrap();
    all.iter().find(|found| found["estimator"] == estimator).unwrap_or_else(|| panic!("{estimator}"))
}

/// An estimator without bias is called biased for one seed in a thousand.
#[test]
fn it_tells_biased_estimators_from_others_and_covers_snapshots() {
    let sandbox = Sandbox::new();
    let train =
        ["train", "bars-and-stripes:3", "--n-hidden", "6", "--epochs", "200", "--snapshots", "20,200"];
    assert_eq!(sandbox.run(&[&train[..], &["-o", "run"]].concat()).code, Some(0));
    let estimators = "lvs:drop:1,ucd:1:max-meeting=100000,lvs:drop:dynamic,exact";
    let lab = [
        "lab",
        "run",
        "--estimators",
        estimators,
        "--replicates",
        "2000",
        "--plot",
        "bias.svg",
        "--csv",
        "lab.csv",
    ];
    let json = sandbox.json(&lab);
    let models = json["models"].as_array().unwrap();
    assert_eq!(models.iter().map(|model| model["epoch"].as_u64()).collect::<Vec<_>>(), [Some(20), Some(200)]);
    for model in models {
        assert_eq!(model["reference"]["is_exact"], true);
        assert_eq!(of(model, "ucd:1:max-meeting=100000")["is_biased"], false);
        assert_eq!(of(model, "exact")["mse"]["value"], 0.0);
        assert!(of(model, "lvs:drop:dynamic")["linear"]["p"].as_f64().unwrap() > 0.001);
    }
    assert_eq!(of(&models[1], "lvs:drop:1")["is_biased"], true);
    assert_eq!(
        keys(of(&models[0], "lvs:drop:1")),
        [
            "bias",
            "cosine",
            "estimator",
            "is_biased",
            "linear",
            "mse",
            "n_estimates",
            "n_steps",
            "name",
            "notes",
            "per_second",
            "per_step",
            "rmse_at_equal_seconds",
            "rmse_at_equal_steps",
            "seconds",
            "variance"
        ]
    );
    let csv = String::from_utf8(sandbox.bytes("lab.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 4, "{csv}");
    assert!(String::from_utf8(sandbox.bytes("bias.svg")).unwrap().contains("ucd:1"));
    // One model: another figure, and text.
    let model = "run/model.safetensors";
    let text = sandbox.succeeds(&["lab", model, "--estimators", "cd:1,pcd:1", "--plot", "work.svg"]);
    assert!(text.contains("against the exact gradient") && text.contains("no bias seen"), "{text}");
    assert!(text.contains("pcd:1: each estimate is that of a run of its own, after 100 updates"), "{text}");
}

#[test]
fn wrong_estimators_and_files_are_refused_before_the_work() {
    let sandbox = Sandbox::new();
    let train = ["train", "bars-and-stripes:3", "--n-hidden", "3", "--epochs", "1", "-o", "run"];
    assert_eq!(sandbox.run(&train).code, Some(0));
    std::fs::write(sandbox.path("there.csv"), "mine").unwrap();
    for (args, cure) in [
        (vec!["--estimators", "cdd:1"], "did you mean `cd`"),
        (vec!["--estimators", "lvs:1:walk=3"], "choose --k"),
        (vec!["--estimators", "tempered:carry"], "--unfinished"),
        (vec!["--replicates", "3"], "at least 8"),
        (vec!["--plot", "figure.html"], ".svg"),
        (vec!["--csv", "there.csv"], "--force"),
    ] {
        let run = sandbox.run(&[vec!["lab", "run"], args.clone()].concat());
        assert!(run.code == Some(1) && run.stderr.contains(cure), "{args:?}: {}", run.stderr);
    }
    assert_eq!(sandbox.bytes("there.csv"), b"mine");
}
