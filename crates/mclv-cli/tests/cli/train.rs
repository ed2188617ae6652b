//! `mclv train` as people use it.

use crate::support::{Sandbox, without_times};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn training_on_digits_needs_no_other_argument_and_raises_the_likelihood() {
    let sandbox = Sandbox::new().with_model("start.safetensors", 25);
    // A warning of idle units is right here: without six of its units, the likelihood of test rows
    // changes by 0.006 nats.
    let outcome = sandbox.run(&["train", "digits"]);
    assert_eq!(outcome.code, Some(0));
    assert!(
        outcome.stderr.lines().all(|line| line.contains("hidden units do next to nothing")),
        "{}",
        outcome.stderr
    );
    let text = outcome.stdout;
    assert!(text.contains("runs/digits-1") && text.contains("mclv likelihood"), "{text}");
    let mean = |model: &str| {
        let result = sandbox.json(&["likelihood", model, "--data", "digits", "--split", "test"]);
        result["likelihoods"][0]["mean"].as_f64().unwrap()
    };
    let (before, after) = (mean("start.safetensors"), mean("runs/digits-1/model.safetensors"));
    assert!(after > before + 2.0, "{before} → {after}");
    for file in ["config.toml", "metrics.jsonl", "best.safetensors", "checkpoints/latest.safetensors"] {
        assert!(sandbox.path("runs/digits-1").join(file).is_file(), "{file}");
    }
    // The model knows what it was made from.
    assert_eq!(
        sandbox.json(&["likelihood", "runs/digits-1/model.safetensors"])["likelihoods"][0]["n_rows"],
        1297
    );
    assert!(sandbox.succeeds(&["train", "digits", "--epochs", "1"]).contains("runs/digits-2"));
}

#[test]
fn threads_instruction_sets_and_repetition_do_not_change_the_model() {
    let sandbox = Sandbox::new();
    let portable = Sandbox::new().with_variable("MCLV_ISA", "portable");
    for gradient in ["cd", "pcd", "lvs", "exact"] {
        let args = |out: &'static str, threads: &'static str| {
            let mut args = vec![
                "train",
                "digits",
                "--epochs",
                "2",
                "--n-hidden",
                "6",
                "--seed",
                "5",
                "--binarize",
                "threshold=0.5",
            ];
            args.extend(["--threads", threads, "--output", out, "--gradient", gradient]);
            args
        };
        let one = sandbox.json(&args("one", "1"));
        let three = sandbox.json(&args("three", "3"));
        portable.json(&args("one", "2"));
        let model = |sandbox: &Sandbox, run: &str| sandbox.bytes(&format!("{run}/model.safetensors"));
        assert!(model(&sandbox, "one") == model(&sandbox, "three"), "{gradient}");
        assert!(model(&sandbox, "one") == model(&portable, "one"), "{gradient} on portable kernels");
        assert_eq!(without_times(one)["metrics"], without_times(three)["metrics"]);
        for run in ["one", "three"] {
            std::fs::remove_dir_all(sandbox.path(run)).unwrap();
        }
        std::fs::remove_dir_all(portable.path("one")).unwrap();
    }
}

#[test]
fn a_config_file_gives_the_run_again() {
    let sandbox = Sandbox::new();
    sandbox.json(&[
        "train",
        "ising",
        "--epochs",
        "2",
        "--n-hidden",
        "4",
        "--gradient",
        "lvs",
        "--k",
        "3",
        "--seed",
        "9",
        "-o",
        "a",
    ]);
    sandbox.json(&["train", "--config", "a/config.toml", "-o", "b"]);
    assert!(sandbox.bytes("a/model.safetensors") == sandbox.bytes("b/model.safetensors"));
    assert!(sandbox.bytes("a/config.toml") == sandbox.bytes("b/config.toml"));
    // A seed on the command line wins over the file, even if it is the default seed.
    sandbox.json(&["train", "--config", "a/config.toml", "--seed", "0", "-o", "c"]);
    assert!(String::from_utf8(sandbox.bytes("c/config.toml")).unwrap().contains("seed = 0"));
}

#[test]
fn the_default_preset_suits_the_size_and_flags_change_it() {
    let sandbox = Sandbox::new();
    let run = |flags: &[&str]| {
        let args = ["train", "digits", "--epochs", "1", "--eval-every", "9", "-o", "run"];
        let config = sandbox.json(&[&args, flags].concat())["config"]["train"].clone();
        std::fs::remove_dir_all(sandbox.path("run")).unwrap();
        config
    };
    let small = run(&["--n-hidden", "12"]);
    assert_eq!((&small["gradient"], &small["unfinished"]), (&"lvs".into(), &"carry".into()));
    assert_eq!((&small["k"], &small["learning-rate"]), (&3.into(), &0.6.into()));
    let fraction = small["row-fraction"].as_f64().unwrap();
    assert!(fraction > 0.03 && fraction < 1.0, "at least 1,000 rows of some more: {fraction}");
    let more = run(&["--n-hidden", "12", "--k", "5", "--n-chains", "50", "--learning-rate", "0.2"]);
    assert_eq!((&more["k"], &more["n-chains"], &more["learning-rate"]), (&5.into(), &50.into(), &0.2.into()));
    let large = run(&["--n-hidden", "65"]);
    assert_eq!((&large["gradient"], &large["learning-rate"]), (&"pcd".into(), &0.4.into()));
    // To name the default changes nothing.
    assert_eq!(run(&["--n-hidden", "12", "--gradient", "lvs"]), small);
    assert_eq!(run(&["--n-hidden", "65", "--gradient", "pcd"]), large);
    // The spellings of version 0.1 still work.
    let old = run(&["--hidden", "12", "--k", "5", "--chains", "50", "--lr", "0.2", "--no-centring"]);
    let mut expected = more.clone();
    expected["centred"] = false.into();
    assert_eq!(old, expected);
    assert_eq!(run(&["--hidden", "12", "--k", "5", "--tours", "50", "--lr", "0.2"]), more);
}

#[test]
fn flags_override_a_config_file_booleans_too() {
    let sandbox = Sandbox::new();
    let run = |flags: &[&str], out: &str| {
        let args = ["train", "--epochs", "1", "--eval-every", "never", "--no-report", "-o", out];
        sandbox.json(&[&args, flags].concat())["config"]["train"].clone()
    };
    let base = [
        "digits",
        "--n-hidden",
        "6",
        "--centred=false",
        "--drop-last",
        "--clip",
        "2",
        "--unfinished",
        "keep",
    ];
    let first = run(&base, "a");
    assert_eq!(
        (&first["centred"], &first["drop-last"], &first["clip"]),
        (&false.into(), &true.into(), &2.0.into())
    );
    let config = ["--config", "a/config.toml"];
    let back = run(&[&config[..], &["--centred", "--drop-last=false", "--clip", "off"]].concat(), "b");
    assert_eq!(
        (&back["centred"], &back["drop-last"], &back["clip"]),
        (&true.into(), &false.into(), &"off".into())
    );
    assert_eq!(back["unfinished"], "keep");
    // Another estimator drops the settings of tours.
    let pcd = run(&[&config[..], &["--gradient", "pcd"]].concat(), "c");
    assert_eq!((&pcd["k"], &pcd["unfinished"], &pcd["clip"]), (&3.into(), &Value::Null, &2.0.into()));
    let adam = run(&[&config[..], &["--optimizer", "adam"]].concat(), "d");
    assert_eq!(adam["learning-rate"], 0.01);
}

#[test]
fn the_papers_preset_is_the_papers_protocol() {
    let sandbox = Sandbox::new();
    let run = |gradient: &str| {
        sandbox.json(&[
            "train",
            "digits",
            "--preset",
            "paper",
            "--gradient",
            gradient,
            "--epochs",
            "16",
            "--n-hidden",
            "4",
            "-o",
            gradient,
        ])["config"]["train"]
            .clone()
    };
    let lvs = run("lvs");
    assert_eq!(
        (&lvs["warm-up-epochs"], &lvs["schedule"], &lvs["centred"]),
        (&15.into(), &"plateau".into(), &false.into())
    );
    for (key, value) in
        [("visible", "mean-field"), ("unfinished", "drop"), ("starts", "fresh"), ("statistics", "sampled")]
    {
        assert_eq!(lvs[key], value, "{lvs}");
    }
    assert_eq!(
        (&lvs["n-chains"], &lvs["init"], &lvs["drop-last"]),
        (&128.into(), &"paper".into(), &true.into())
    );
    assert_eq!(run("pcd")["n-chains"], 128);
    assert_eq!(run("cd")["warm-up-epochs"], 0);
    // Flags have the last word.
    let args = ["--preset", "paper", "--gradient", "lvs", "--unfinished", "keep", "--visible", "sampled"];
    let rest = ["--epochs", "2", "--warm-up-epochs", "1", "--n-hidden", "4", "-o", "changed"];
    let changed = &sandbox.json(&[&["train", "digits"], &args[..], &rest].concat())["config"]["train"];
    assert_eq!(changed["unfinished"], "keep");
    assert_eq!(changed["visible"], "sampled");
    assert_eq!(changed["schedule"], "plateau");
    sandbox.refuses(
        &["train", "digits", "--preset", "paper", "--gradient", "lvs", "--epochs", "10"],
        &["--warm-up-epochs 15", "never used"],
    );
}

#[test]
fn bad_settings_are_refused_with_the_flag_and_the_cure() {
    let sandbox = Sandbox::new()
        .with_file("typo.toml", "[train]\nlearning-rat = 0.1\n")
        .with_file("broken.toml", "[train\n");
    sandbox.refuses(
        &["train", "--config", "typo.toml"],
        &["typo.toml", "line 2", "did you mean `learning-rate`"],
    );
    sandbox.refuses(&["train", "--config", "broken.toml"], &["broken.toml"]);
    sandbox.refuses(&["train", "--config", "missing.toml"], &["missing.toml"]);
    sandbox.refuses(
        &["train", "digits", "--gradient", "cd", "--n-chains", "5"],
        &["--n-chains cannot be used with --gradient cd"],
    );
    sandbox.refuses(&["train", "digits", "--gradient", "pcd", "--k", "dynamic"], &["--gradient lvs"]);
    sandbox
        .refuses(&["train", "digits", "--gradient", "lvs", "--starts", "weighted"], &["carry", "metropolis"]);
    sandbox.refuses(&["train", "digits", "--learning-rate", "0"], &["--learning-rate 0", "positive"]);
    sandbox.refuses(&["train", "digits", "--epochs", "0"], &["--epochs 0", "`auto`"]);
    sandbox.refuses(&["train", "digits", "--redraw-bits"], &["--binarize bernoulli"]);
    sandbox.refuses(&["train", "digits", "--optimizer", "adam", "--momentum", "0.9"], &["--momentum"]);
    sandbox.refuses(&["train", "minst"], &["did you mean \"mnist\""]);
    sandbox.refuses(&["train", "--resume", "nowhere"], &["nowhere"]);
    sandbox.refuses_usage(&["train", "--resume", "run", "--k", "9"], &["--resume", "--k"]);
    sandbox.refuses_usage(&["train", "--resume", "run", "--preset", "default"], &["--resume", "--preset"]);
    sandbox.refuses_usage(&["train", "--resume", "run", "--no-centring"], &["--resume", "--no-centring"]);
    sandbox.refuses_usage(&["train", "digits", "--epochs", "many"], &["--epochs", "a number, or `auto`"]);
    sandbox.refuses_usage(&["train", "digits", "--optimizer", "adm"], &["--optimizer", "adam"]);
    sandbox.refuses_usage(&["train", "--preset", "paper", "--config", "c.toml"], &["--preset", "--config"]);
    sandbox.refuses_usage(&["train", "digits", "--schedule", "steep"], &["schedule", "plateau"]);
    sandbox.refuses_usage(&["train", "digits", "--k", "none"], &["dynamic"]);
}

#[test]
fn divergence_fails_with_advice_and_keeps_the_last_good_model() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.run(&["train", "digits", "--learning-rate", "1e30", "--epochs", "3", "-o", "run"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stdout.starts_with("rows: ") && outcome.stdout.lines().count() == 1,
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stderr.contains("diverged in epoch 1") && outcome.stderr.contains("smaller learning rate"),
        "{}",
        outcome.stderr
    );
    sandbox.succeeds(&["inspect", "run/model.safetensors"]);
}

/// Starts a long run, sends signals after some progress, and waits for the run to end. Returns its
/// exit code and standard error.
#[cfg(unix)]
fn stop(sandbox: &Sandbox, args: &[&str], signals: &[&str]) -> (Option<i32>, String) {
    let process = sandbox.command_heeding(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let metrics = sandbox.path("run/metrics.jsonl");
    let begun = Instant::now();
    while std::fs::read_to_string(&metrics).map_or(0, |text| text.lines().count()) < 25 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no progress");
        std::thread::sleep(Duration::from_millis(2));
    }
    let kill: Vec<String> = signals.iter().map(|signal| format!("kill -{signal} {}", process.id())).collect();
    assert!(Command::new("sh").args(["-c", &kill.join("; ")]).status().unwrap().success());
    let output = process.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[cfg(unix)]
#[test]
fn interrupted_and_killed_runs_go_on_to_the_same_model() {
    let sandbox = Sandbox::new();
    let args = |out: &'static str| {
        [
            "train",
            "digits",
            "--n-hidden",
            "6",
            "--epochs",
            "1500",
            "--seed",
            "2",
            "--eval-every",
            "500",
            "-o",
            out,
        ]
    };
    sandbox.json(&args("whole"));
    let same = |sandbox: &Sandbox| {
        sandbox.succeeds(&["train", "--resume", "run"]);
        assert!(sandbox.bytes("run/model.safetensors") == sandbox.bytes("whole/model.safetensors"));
        let lines = |run: &str| -> Vec<Value> {
            let text = String::from_utf8(sandbox.bytes(&format!("{run}/metrics.jsonl"))).unwrap();
            text.lines().map(|line| without_times(serde_json::from_str(line).unwrap())).collect()
        };
        assert_eq!(lines("run"), lines("whole"));
        std::fs::remove_dir_all(sandbox.path("run")).unwrap();
    };
    // Batch systems signal the launcher and the processes that it started, so a signal can arrive
    // more than once.
    for signals in [&["INT"], &["TERM"], ["TERM", "TERM", "TERM"].as_slice()] {
        let (code, said) = stop(&sandbox, &args("run"), signals);
        assert!(
            code == Some(130) && said.contains("mclv train --resume run"),
            "{signals:?}: {code:?} {said}"
        );
        same(&sandbox);
    }
    assert_eq!(stop(&sandbox, &args("run"), &["KILL"]).0, None);
    same(&sandbox);
}

#[test]
fn weights_change_the_model_and_bad_ones_are_refused_with_their_place_and_the_cure() {
    let ones = vec!["1"; 30].join("\n");
    let sandbox = Sandbox::new()
        .with_file("ones.csv", format!("weight\n{ones}\n"))
        .with_file("uneven.csv", format!("9\n{}\n", vec!["1"; 29].join("\n")))
        .with_file("negative.csv", format!("-1\n{ones}\n"))
        .with_file("words.csv", "1\nmany\n")
        .with_file("short.csv", "1\n2\n")
        .with_file("none.csv", "0\n0\n");
    let train = |out: &str, more: &[&str]| {
        let args = ["train", "bars-and-stripes:4", "--n-hidden", "3", "--epochs", "5", "-o", out];
        sandbox.json(&[&args[..], more].concat())["metrics"]["train_log_likelihood"].as_f64().unwrap()
    };
    let plain = train("plain", &[]);
    let even = train("even", &["--weights", "ones.csv"]);
    assert!((plain - even).abs() < 1e-4, "{plain} and {even}");
    let uneven = train("uneven", &["--weights", "uneven.csv"]);
    assert!((plain - uneven).abs() > 1e-2, "{plain} and {uneven}");
    // The configuration of the run records the weights.
    assert_eq!(
        sandbox.json(&["train", "--config", "uneven/config.toml", "-o", "again"])["metrics"]["train_log_likelihood"],
        uneven
    );
    for (file, parts) in [
        ("negative.csv", ["negative.csv", "row 1"]),
        ("words.csv", ["\"many\"", "line 2"]),
        ("short.csv", ["2 weights for 30 training rows", "give one for each"]),
        ("none.csv", ["no positive weight", "at least one"]),
        ("missing.npy", ["missing.npy", "cannot read"]),
        ("weights.txt", ["weights.txt", ".npy and .csv"]),
    ] {
        sandbox.refuses(&["train", "bars-and-stripes:4", "--weights", file], &parts);
    }
}
