//! Run folders and models from strangers: no command hangs, crashes, fills the memory, writes
//! elsewhere, or lets a file change the screen.

use crate::support::Sandbox;
use serde_json::{Value, json};
use std::fmt::Write;

const RUN: [&str; 8] = ["train", "bars-and-stripes:3", "--hidden", "3", "--epochs", "3", "-o", "run"];

/// Characters that change a terminal or the order of text.
const HOSTILE: &str = "a\x1b[2Jb\x07\u{9b}31m\u{202e}c\u{2066}d\u{200f}\u{2028}e";

fn is_hostile(c: char) -> bool {
    c.is_control() && c != '\n'
        || ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'].contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

/// Puts an object with these members in the place of each epoch of the run.
fn write_epochs(sandbox: &Sandbox, epochs: impl IntoIterator<Item = Value>) {
    let text = String::from_utf8(sandbox.bytes("run/metrics.jsonl")).unwrap();
    let good: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut lines = String::new();
    for epoch in epochs {
        let mut line = good.clone();
        for (name, value) in epoch.as_object().unwrap() {
            match name.strip_prefix('/') {
                Some(_) => *line.pointer_mut(name).unwrap() = value.clone(),
                None => line[name] = value.clone(),
            }
        }
        writeln!(lines, "{line}").unwrap();
    }
    std::fs::write(sandbox.path("run/metrics.jsonl"), lines).unwrap();
}

/// Commands that show a run.
fn show(sandbox: &Sandbox) {
    for args in [
        vec!["report", "run", "--no-tours"],
        vec!["report", "run", "run", "-o", "both.html", "--force"],
        vec!["plot", "likelihood", "run", "-o", "curve.png", "--force"],
        vec!["plot", "likelihood", "run", "-o", "curve.pdf", "--force"],
        vec!["plot", "likelihood", "run", "--against", "time", "-o", "curve.svg", "--force"],
    ] {
        let outcome = sandbox.run(&args);
        let stderr = &outcome.stderr;
        assert!(matches!(outcome.code, Some(0 | 1)) && !stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

#[test]
fn extreme_numbers_in_metrics_do_no_harm() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let given = std::fs::read(sandbox.path("run/metrics.jsonl")).unwrap();
    const NUMBERS: [&str; 7] = [
        "train_log_likelihood",
        "learning_rate",
        "gradient_norm",
        "weight_rms",
        "reconstruction_error",
        "seconds",
        "/log_z/value",
    ];
    const COUNTS: [&str; 5] = ["epoch", "n_hidden", "n_dead", "n_saturated", "n_idle"];
    let with = |names: &[&str], value: Value| {
        Value::Object(names.iter().map(|name| ((*name).to_owned(), value.clone())).collect())
    };
    let extremes =
        [1e308, -1e308, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, 1e16, 3.0].map(|x| with(&NUMBERS, json!(x)));
    let counts = [0, 1, 1 << 53, u64::MAX].map(|n| with(&COUNTS, json!(n)));
    let errors = [json!(1e308), json!(-1.0), json!(0.0), Value::Null].map(
        |std_err| json!({ "/log_z/std_err": std_err, "/log_z/guarantee": "none", "/log_z/value": 1e300 }),
    );
    let all = || extremes.iter().chain(&counts).chain(&errors).cloned();
    write_epochs(&sandbox, all());
    show(&sandbox);
    for one in all() {
        std::fs::write(sandbox.path("run/metrics.jsonl"), &given).unwrap();
        write_epochs(&sandbox, [one.clone()]);
        let outcome = sandbox.run(&["report", "run", "--no-tours"]);
        assert_eq!(outcome.code, Some(0), "{one}: {}", outcome.stderr);
    }
    // Lines that are no metrics are left out.
    let tours = r#"{"epoch":1,"n_hidden":3,"learning_rate":0.1,"gradient_norm":0,"weight_rms":1,"seconds":1"#;
    let counts =
        format!(r#"{tours},"tours":{{"n_started":{0},"n_completed":{0},"n_truncated":{0}}}}}"#, u64::MAX);
    let lines = [
        r#"{"epoch":1e999}"#,
        r#"{"epoch":-1}"#,
        "NaN",
        "{}",
        "[]",
        "\u{feff}",
        &counts,
        &format!("{tours}}}"),
    ];
    std::fs::write(sandbox.path("run/metrics.jsonl"), lines.join("\n") + "\n").unwrap();
    show(&sandbox);
    let missing = sandbox.json(&["report", "run", "--no-tours"])["missing"].to_string();
    assert!(missing.contains("damaged lines are left out"), "{missing}");
}

#[test]
fn a_run_of_very_many_epochs_is_shown() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let text = String::from_utf8(sandbox.bytes("run/metrics.jsonl")).unwrap();
    let last = text.lines().last().unwrap().split_once(',').unwrap().1.to_owned();
    let lines: String = (1..=30_000).map(|epoch| format!("{{\"epoch\":{epoch},{last}\n")).collect();
    std::fs::write(sandbox.path("run/metrics.jsonl"), lines).unwrap();
    std::fs::create_dir(sandbox.path("other")).unwrap();
    for file in ["config.toml", "metrics.jsonl"] {
        std::fs::copy(sandbox.path(&format!("run/{file}")), sandbox.path(&format!("other/{file}"))).unwrap();
    }
    sandbox.json(&["plot", "likelihood", "run", "other", "--mean", "-o", "mean.svg"]);
    let size = sandbox.json(&["report", "run", "--no-tours"])["n_bytes"].as_u64().unwrap();
    assert!(size < 3 << 20, "{size}");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_in_the_place_of_files_are_refused() {
    use std::os::unix::fs::symlink;
    use std::process::Command;
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let files = [
        "config.toml",
        "metrics.jsonl",
        "sittings.jsonl",
        "model.safetensors",
        "best.safetensors",
        "checkpoints/latest.safetensors",
    ];
    for file in files {
        let path = sandbox.path(&format!("run/{file}"));
        let kept = sandbox.path("kept");
        for device in ["fifo", "/dev/zero"] {
            std::fs::rename(&path, &kept).unwrap();
            match device {
                "fifo" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                device => symlink(device, &path).unwrap(),
            }
            // If one of these reads, it waits for ever.
            for args in [
                vec!["report", "run", "--no-tours"],
                vec!["plot", "likelihood", "run", "-o", "x.svg", "--force"],
                vec!["inspect", "run"],
                vec!["inspect", path.to_str().unwrap()],
                vec!["train", "--resume", "run"],
                vec!["train", "--config", path.to_str().unwrap()],
            ] {
                let outcome = sandbox.run(&args);
                assert!(
                    matches!(outcome.code, Some(0 | 1)),
                    "{file}, {device}, {args:?}: {}",
                    outcome.stderr
                );
            }
            let outcome = sandbox.run(&["train", "--config", path.to_str().unwrap()]);
            assert!(outcome.stderr.contains("not a regular file") || path.is_file(), "{}", outcome.stderr);
            let _ = std::fs::remove_file(&path);
            std::fs::rename(&kept, &path).unwrap();
        }
    }
}

/// Every flag that names a file, and every file of a folder that a flag names.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_wherever_a_file_is_named() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new().with_model("m.safetensors", 3).with_file("rows.csv", "0,1\n1,0\n".repeat(6));
    for folder in ["rungs", "sweep", "results"] {
        std::fs::create_dir(sandbox.path(folder)).unwrap();
    }
    let model = |args: &[&'static str]| [&[args[0], "m.safetensors"], &args[1..]].concat();
    let train = |args: &[&'static str]| [&["train"][..], args, &["-o", "run"]].concat();
    let cases = [
        ("pipe.csv", train(&["pipe.csv"])),
        ("pipe.npy", train(&["pipe.npy"])),
        ("pipe.npz", train(&["pipe.npz"])),
        ("pipe-ubyte", train(&["pipe-ubyte"])),
        ("pipe.csv.gz", train(&["pipe.csv.gz"])),
        ("./pipe", train(&["./pipe"])),
        ("pipe.csv", train(&["rows.csv", "--validation", "pipe.csv"])),
        ("pipe.csv", train(&["rows.csv", "--test", "pipe.csv"])),
        ("pipe.txt", train(&["rows.csv", "--split-file", "pipe.txt"])),
        ("pipe.npy", train(&["rows.csv", "--split-file", "pipe.npy"])),
        ("pipe.npy", train(&["digits", "--weights", "pipe.npy"])),
        ("pipe.csv", train(&["digits", "--weights", "pipe.csv"])),
        ("pipe.safetensors", train(&["digits", "--from", "pipe.safetensors"])),
        ("pipe.npz", train(&["digits", "--from", "pipe.npz"])),
        ("pipe.weights.npy", train(&["digits", "--from", "pipe.npy"])),
        ("pipe.toml", train(&["digits", "--config", "pipe.toml"])),
        ("pipe", model(&["logz", "--method", "mclv", "--stopping-set", "pipe"])),
        ("pipe", model(&["logz", "--method", "ladder", "--ladder", "pipe"])),
        ("pipe.npz", model(&["logz", "--method", "bar", "--rungs", "pipe.npz"])),
        ("rungs/pipe.safetensors", model(&["logz", "--method", "bar", "--rungs", "rungs"])),
        ("pipe.csv", model(&["likelihood", "--data", "pipe.csv"])),
        ("pipe.csv", model(&["tours", "--data", "pipe.csv"])),
        ("pipe.csv", model(&["modes", "--data", "pipe.csv"])),
        ("pipe.csv", model(&["transform", "--data", "pipe.csv", "-o", "f.npy"])),
        ("pipe.csv", model(&["sample", "--start", "pipe.csv", "-o", "s.npy"])),
        ("pipe.csv", model(&["sample", "--given", "pipe.csv", "--known", "units:0", "-o", "s.npy"])),
        ("pipe.npy", model(&["sample", "--given", "digits", "--known", "pipe.npy", "-o", "s.npy"])),
        ("pipe.npz", vec!["convert", "pipe.npz", "x.safetensors"]),
        ("pipe.csv", vec!["init", "pipe.csv", "-o", "x.npz"]),
        ("sweep/sweep.toml", vec!["sweep", "--resume", "sweep"]),
        ("results/digits.json", vec!["reproduce", "--render", "results"]),
    ];
    for (name, args) in cases {
        for device in ["fifo", "/dev/zero"] {
            let path = sandbox.path(name);
            match device {
                "fifo" => {
                    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success())
                }
                device => symlink(device, &path).unwrap(),
            }
            let outcome = sandbox.run(&args);
            assert_eq!(outcome.code, Some(1), "{args:?}, {device}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("not a regular file"), "{args:?}, {device}: {}", outcome.stderr);
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// A sweep is a folder that may come from a stranger, too.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_the_links_of_a_sweep() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new().with_file("victim", "precious");
    let sweep =
        ["sweep", "bars-and-stripes:3", "--n-hidden", "2", "--epochs", "2", "--validation-fraction", "0.5"];
    sandbox.json(&[&sweep[..], &["-o", "sweep"]].concat());
    for name in ["report.html", "sweep.csv"] {
        std::fs::remove_file(sandbox.path(&format!("sweep/{name}"))).unwrap();
        symlink(sandbox.path("victim"), sandbox.path(&format!("sweep/{name}"))).unwrap();
    }
    sandbox.json(&["sweep", "--resume", "sweep"]);
    assert_eq!(sandbox.bytes("victim"), b"precious");
    assert!(!sandbox.path("sweep/report.html").is_symlink());
    std::fs::rename(sandbox.path("sweep/runs"), sandbox.path("elsewhere")).unwrap();
    symlink(sandbox.path("elsewhere"), sandbox.path("sweep/runs")).unwrap();
    sandbox.refuses(&["sweep", "--resume", "sweep"], &["runs: is a link"]);
}

#[cfg(unix)]
#[test]
fn a_report_is_not_written_through_a_link_in_the_run_folder() {
    let sandbox = Sandbox::new().with_file("victim", "precious");
    sandbox.json(&RUN);
    let report = sandbox.path("run/report.html");
    std::fs::remove_file(&report).unwrap();
    std::os::unix::fs::symlink(sandbox.path("victim"), &report).unwrap();
    sandbox.json(&["report", "run", "--no-tours"]);
    assert_eq!(sandbox.bytes("victim"), b"precious");
    assert!(report.is_file() && !report.is_symlink());
    // A path that the user names may be a link.
    std::os::unix::fs::symlink(sandbox.path("victim"), sandbox.path("mine.html")).unwrap();
    sandbox.json(&["report", "run", "--no-tours", "-o", "mine.html", "--force"]);
    assert!(sandbox.bytes("victim").ends_with(b"</html>") && sandbox.path("mine.html").is_symlink());
}

#[test]
fn hostile_names_and_labels_reach_neither_terminal_nor_page() {
    let sandbox = Sandbox::new();
    let rows = format!("{HOSTILE},x\u{2067}y,label\n1,0,{HOSTILE}\n0,1,b\n1,1,{HOSTILE}\n0,0,b\n");
    let data = format!("{HOSTILE}.csv");
    std::fs::write(sandbox.path(&data), rows).unwrap();
    let run = format!("{HOSTILE} run");
    let model = format!("{run}/model.safetensors");
    let words = format!("{HOSTILE}.txt");
    std::fs::write(sandbox.path(&words), format!("train\n{HOSTILE}\ntrain\ntrain\n")).unwrap();
    let missing = format!("{HOSTILE} missing");
    let sweep = format!("{HOSTILE} sweep");
    let commands: [&[&str]; 24] = [
        &["data", "show", &data],
        &["data", "show", &data, "--label-column", "label"],
        &["train", &data, "--label-column", "label", "--hidden", "2", "--epochs", "1", "-o", &run],
        &["train", &data, "--label-column", "label", "--hidden", "2", "-o", &run],
        &["train", "--resume", &run],
        &["inspect", &model],
        &["inspect", &format!("{HOSTILE} missing.npz")],
        &["logz", &run],
        &["likelihood", &run, "--split", "all"],
        &["report", &run],
        &["convert", &model, &format!("{HOSTILE}.npz")],
        &["modes", &run],
        &["tours", &run, "--max-steps", "50"],
        &["sample", &run, "-n", "2", "-o", &format!("{HOSTILE}.npy"), "--force"],
        &["plot", "likelihood", &run, "-o", &format!("{HOSTILE}.svg"), "--force"],
        &["report", &run, &run, "-o", &format!("{HOSTILE}.html"), "--force"],
        &["train", &data, "--split-file", &words],
        &["train", &data, "--split-column", HOSTILE],
        &["train", &data, "--from", &missing],
        &["logz", &model, "--method", "ladder", "--ladder", &missing],
        &["logz", &model, "--method", "bar", "--rungs", &missing],
        &["sweep", &data, "--label-column", "label", "--n-hidden", "2", "--epochs", "1", "-o", &sweep],
        &["sweep", "--resume", &missing],
        &[HOSTILE],
    ];
    for args in commands {
        for json in [false, true] {
            let args: Vec<&str> = args.iter().copied().chain(json.then_some("--json")).collect();
            let outcome = sandbox.run(&args);
            for text in [&outcome.stdout, &outcome.stderr] {
                assert!(!text.contains(is_hostile), "{args:?}: {text:?}");
                assert!(!text.contains("panicked"), "{text}");
            }
        }
    }
    // Warnings of the log name files, too.
    std::fs::write(sandbox.path(&data), format!("{HOSTILE},xy,label\n{}", "1,0,b\n".repeat(4))).unwrap();
    let warned = sandbox.run(&["likelihood", &run, "--split", "train", "-vv"]).stderr;
    assert!(warned.contains("its SHA-256 has changed") && !warned.contains(is_hostile), "{warned:?}");
    let page = String::from_utf8(sandbox.bytes(&format!("{run}/report.html"))).unwrap();
    assert!(!page.contains(is_hostile) && page.contains("[U+202E]"));
}
