//! Test that models, checkpoints and runs stand for each other where users expect it.

use crate::support::{Sandbox, without_times};
use serde_json::Value;

/// A run folder whose name a shell would split, with an early best model.
const RUN: [&str; 8] = ["train", "digits", "--n-hidden", "6", "--epochs", "4", "-o", "my run"];

fn npz(sandbox: &Sandbox, model: &str) -> Vec<u8> {
    sandbox.succeeds(&["convert", model, "weights.npz", "--force"]);
    sandbox.bytes("weights.npz")
}

#[test]
fn a_run_folder_stands_for_its_best_model_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let checkpoint = "my run/checkpoints/latest.safetensors";
    let best = "my run/best.safetensors";
    for command in ["inspect", "likelihood", "logz", "modes", "sample", "transform", "tours"] {
        let args = match command {
            "transform" => vec![command, "my run", "--force"],
            "tours" => vec![command, "my run", "--tours", "500"],
            "sample" => vec![command, "my run", "-n", "2"],
            _ => vec![command, "my run"],
        };
        let text = sandbox.succeeds(&args);
        assert!(
            text.starts_with(&format!("model: {best} (the best model of this run)\n")),
            "{command}: {text}"
        );
        let of = |model: &'static str| {
            let args: Vec<&str> = args.iter().map(|arg| if *arg == "my run" { model } else { arg }).collect();
            let mut json = without_times(sandbox.json(&args));
            let path = json["model"].take();
            (path, json)
        };
        assert_eq!(of("my run").0, best);
        assert_eq!(of("my run").1, of("my run/best.safetensors").1, "{command}");
        // The last model of this run is its best one, and its checkpoint holds the same model.
        let (path, from_checkpoint) = of("my run/checkpoints/latest.safetensors");
        assert_eq!(path, checkpoint);
        if command != "inspect" {
            assert_eq!(from_checkpoint, of("my run/model.safetensors").1, "{command}");
        }
    }
    assert!(
        npz(&sandbox, "my run") == npz(&sandbox, best) && npz(&sandbox, best) == npz(&sandbox, checkpoint)
    );
    // Without a best model, the last one stands for the run; then the checkpoint.
    std::fs::remove_file(sandbox.path(best)).unwrap();
    assert!(
        sandbox.succeeds(&["inspect", "my run"]).contains("model: my run/model.safetensors (the last model")
    );
    std::fs::remove_file(sandbox.path("my run/model.safetensors")).unwrap();
    assert!(sandbox.succeeds(&["inspect", "my run"]).contains("latest.safetensors (the last checkpoint"));
    sandbox.json(&["likelihood", "my run", "--split", "test"]);
}

#[test]
fn a_file_of_a_run_stands_for_its_run() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    for file in ["my run/best.safetensors", "my run/checkpoints/latest.safetensors"] {
        let json = sandbox.json(&["report", file]);
        assert_eq!(json["report"], "my run/report.html");
        sandbox.json(&["plot", "likelihood", file, "-o", "curve.svg", "--force"]);
    }
    let finished = sandbox.json(&["train", "--resume", "my run/model.safetensors"]);
    assert_eq!((&finished["run"], &finished["metrics"]["epoch"]), (&"my run".into(), &4.into()));
    sandbox.refuses(
        &["train", "digits", "-o", "my run"],
        &["holds a run already", "mclv train --resume 'my run'"],
    );
}

#[test]
fn training_starts_from_any_model() {
    let sandbox = Sandbox::new().with_model("start.safetensors", 6);
    sandbox.json(&RUN);
    // Of `init`, imported from another program, and of a run, whose data are known.
    sandbox.succeeds(&["convert", "start.safetensors", "sklearn.npz"]);
    sandbox.succeeds(&["convert", "sklearn.npz", "imported.safetensors"]);
    let still = ["--lr", "1e-30", "--epochs", "1", "--no-report"];
    let weights = npz(&sandbox, "start.safetensors");
    for (model, out) in [("start.safetensors", "a"), ("sklearn.npz", "b"), ("imported.safetensors", "c")] {
        let json = sandbox.json(&[&["train", "digits", "--from", model, "-o", out], &still[..]].concat());
        assert_eq!(
            (&json["config"]["train"]["n-hidden"], &json["config"]["from"]["file"]),
            (&6.into(), &model.into())
        );
        assert!(npz(&sandbox, &format!("{out}/model.safetensors")) == weights, "{model}");
    }
    let text = sandbox.succeeds(&[&["train", "--from", "my run", "-o", "d"], &still[..]].concat());
    assert!(text.contains("from            my run/best.safetensors"), "{text}");
    assert!(npz(&sandbox, "d/model.safetensors") == npz(&sandbox, "my run"));
    assert!(sandbox.succeeds(&["inspect", "d"]).contains(", from my run/best.safetensors"));
    // The configuration gives the run again.
    sandbox.json(&["train", "--config", "a/config.toml", "--no-report", "-o", "again"]);
    assert!(sandbox.bytes("a/model.safetensors") == sandbox.bytes("again/model.safetensors"));

    sandbox.refuses(
        &["train", "digits", "--from", "my run", "--n-hidden", "7"],
        &["--n-hidden 7 is not allowed", "has 6 hidden units", "leave --n-hidden out"],
    );
    sandbox.refuses(
        &["train", "bars-and-stripes:4", "--from", "my run"],
        &["my run/best.safetensors", "64 visible units", "bars-and-stripes:4 has 16 columns"],
    );
    sandbox.refuses(&["train", "--from", "sklearn.npz"], &["mclv train DATA --from sklearn.npz"]);
    sandbox.refuses(&["train", "digits", "--from", "absent.npz"], &["absent.npz", "cannot read"]);
    sandbox.refuses_usage(&["train", "digits", "--from", "my run", "--init", "paper"], &["--init", "--from"]);
}

#[test]
fn a_finished_run_is_given_more_epochs_with_a_new_schedule() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let outcome = sandbox.run(&["train", "--resume", "my run", "--epochs", "3", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    for word in ["has made 4 epochs", "3 more follow", "new schedule", "linear from 0.6"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let train = &json["config"]["train"];
    assert_eq!(
        (&train["epochs"], &train["restarts"], &json["metrics"]["epoch"]),
        (&7.into(), &serde_json::json!([4]), &7.into())
    );
    // The same schedules in one run give the same model.
    sandbox.json(&[&RUN[..4], &["--epochs", "7", "--restarts", "4", "-o", "whole"]].concat());
    assert!(npz(&sandbox, "my run/model.safetensors") == npz(&sandbox, "whole/model.safetensors"));
    assert!(sandbox.path("my run/snapshots/epoch-00004.safetensors").is_file());

    // Only the number of epochs may change, and only after the end.
    sandbox.refuses_usage(
        &["train", "--resume", "my run", "--epochs", "3", "--lr", "0.1"],
        &["--learning-rate"],
    );
    sandbox.refuses(&["train", "--resume", "my run", "--seed", "3"], &["--seed", "keeps its seed"]);
    sandbox.refuses(&["train", "--resume", "my run", "--epochs", "0"], &["--epochs 0", "epochs to add"]);
}

#[test]
fn an_interrupted_run_makes_its_own_epochs_before_more() {
    let sandbox = Sandbox::new();
    // Runs that have made four of six epochs, as if they had been stopped.
    for out in ["one", "two"] {
        sandbox.json(&[&RUN[..4], &["--epochs", "4", "-o", out]].concat());
        std::fs::remove_file(sandbox.path(out).join("model.safetensors")).unwrap();
        let config = String::from_utf8(sandbox.bytes(&format!("{out}/config.toml"))).unwrap();
        let longer = config.replace("epochs = 4", "epochs = 6");
        assert_ne!(config, longer);
        std::fs::write(sandbox.path(out).join("config.toml"), longer).unwrap();
    }
    let outcome = sandbox.run(&["train", "--resume", "one", "--epochs", "3", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for word in ["one has made 4 of its 6 epochs", "then 3 more", "one has made 6 epochs; 3 more follow"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(json["metrics"]["epoch"], 9);
    // Two commands make the same model.
    sandbox.json(&["train", "--resume", "two"]);
    sandbox.run(&["train", "--resume", "two", "--epochs", "3"]);
    for file in ["model.safetensors", "snapshots/epoch-00006.safetensors"] {
        assert!(npz(&sandbox, &format!("one/{file}")) == npz(&sandbox, &format!("two/{file}")), "{file}");
    }
}

#[test]
fn the_shape_of_pictures_is_asked_for_once() {
    let line = |r: usize| if r.is_multiple_of(2) { "1,0,1,0,1,0" } else { "0,1,0,0,0,1" };
    let rows: Vec<&str> = (0..30).map(line).collect();
    let sandbox = Sandbox::new().with_file("rows.csv", rows.join("\n"));
    let train = |out: &'static str, more: &[&str]| {
        let args = ["train", "rows.csv", "--n-hidden", "2", "--epochs", "2", "-o", out];
        sandbox.json(&[&args[..], more].concat())
    };
    train("plain", &[]);
    assert_eq!(train("shaped", &["--shape", "2x3"])["config"]["shape"], serde_json::json!([2, 3]));
    sandbox.refuses(&["sample", "plain", "-o", "s.png"], &["--shape HxW"]);
    sandbox.json(&["sample", "shaped", "-n", "4", "-o", "s.png"]);
    sandbox.json(&["plot", "filters", "shaped", "-o", "f.png"]);
    sandbox.json(&["plot", "reconstructions", "shaped", "-o", "r.svg"]);
    let pages = ["plain/report.html", "shaped/report.html"]
        .map(|page| String::from_utf8(sandbox.bytes(page)).unwrap());
    assert!(!pages[0].contains("Reconstructions") || pages[0].len() < pages[1].len());
    // A model that starts from this one has its shape.
    sandbox.json(&["train", "rows.csv", "--from", "shaped", "--epochs", "1", "-o", "next"]);
    sandbox.json(&["sample", "next", "-n", "4", "-o", "n.png"]);
    sandbox.json(&["init", "rows.csv", "--shape", "3x2", "--n-hidden", "2", "-o", "init.safetensors"]);
    assert_eq!(
        sandbox.json(&["inspect", "init.safetensors"])["provenance"]["data"]["image_shape"],
        serde_json::json!([3, 2])
    );
    sandbox.refuses(
        &["train", "rows.csv", "--shape", "2x2"],
        &["--shape 2x2 is not allowed", "rows of 6 values"],
    );
}

#[test]
fn seeds_of_64_bits_survive_the_files() {
    let sandbox = Sandbox::new();
    let seed = u64::MAX.to_string();
    sandbox.json(&[&RUN[..], &["--seed", &seed]].concat());
    assert!(
        String::from_utf8(sandbox.bytes("my run/config.toml"))
            .unwrap()
            .contains(&format!("seed = \"{seed}\""))
    );
    assert_eq!(sandbox.json(&["inspect", "my run"])["provenance"]["seed"], u64::MAX);
    sandbox.json(&["train", "--config", "my run/config.toml", "-o", "again"]);
    assert!(sandbox.bytes("my run/model.safetensors") == sandbox.bytes("again/model.safetensors"));
    sandbox.json(&["train", "--resume", "again"]);
    sandbox.json(&["likelihood", "again"]);
}

#[test]
fn numbers_that_are_none_are_refused_with_the_right_tip() {
    let sandbox = Sandbox::new();
    sandbox.refuses(
        &["train", "digits", "--lr", "-1"],
        &["--learning-rate -1 is not allowed", "positive number"],
    );
    sandbox
        .refuses(&["train", "digits", "--learning-rate", "-0.5"], &["--learning-rate -0.5 is not allowed"]);
    sandbox.refuses(&["train", "digits", "--epochs", "0"], &["--epochs 0 is not allowed", "at least one"]);
    sandbox.refuses(&["train", "digits", "--n-hidden", "0"], &["--n-hidden 0 is not allowed"]);
    sandbox
        .refuses_usage(&["train", "digits", "--epochs", "-5"], &["'-5' for '--epochs <N>'", "give a number"]);
    sandbox.refuses_usage(
        &["train", "digits", "--n-hidden", "-3"],
        &["'-3' for '--n-hidden <N>'", "tip: give a whole number"],
    );
    sandbox.refuses_usage(&["train", "digits", "--lr", "fast"], &["tip: give a number, such as 0.05"]);
    let largest = format!("tip: give a whole number from 0 to {}", u64::MAX);
    for seed in ["abc", "-1", "18446744073709551616"] {
        sandbox.refuses_usage(&["train", "digits", "--seed", seed], &["--seed <SEED>", &largest]);
    }
    for args in [["sample", "m.npz", "-n", "-2"], ["logz", "m.npz", "--target-se", "-1"]] {
        let outcome = sandbox.run(&args);
        assert!(!outcome.stderr.contains("unexpected argument"), "{}", outcome.stderr);
    }
}

#[test]
fn the_closing_table_says_which_rows_how_many_and_how() {
    let sandbox = Sandbox::new();
    let text = sandbox.succeeds(&RUN);
    let header = text.lines().nth(1).unwrap();
    for word in ["rows", "number", "log-likelihood (nats per row)", "error over rows", "log Z by"] {
        assert!(header.contains(word), "{word}: {text}");
    }
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("training").contains("1297") && line("training").contains("exact"), "{text}");
    assert!(line("validation").contains(" 200 "), "{text}");
    assert!(text.contains("mclv likelihood 'my run/"), "{text}");
    // The errors are those of `mclv likelihood` for the same model.
    let json = sandbox.json(&["likelihood", "my run/model.safetensors"]);
    let metrics = String::from_utf8(sandbox.bytes("my run/metrics.jsonl")).unwrap();
    let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    for (part, name) in [(0, "train_rows"), (1, "validation_rows")] {
        let expected = &json["likelihoods"][part];
        assert_eq!(last[name]["n_rows"], expected["n_rows"]);
        let difference = last[name]["std_err"].as_f64().unwrap() - expected["std_err_rows"].as_f64().unwrap();
        assert!(difference.abs() < 1e-9, "{name}");
    }
}

#[test]
fn where_no_bar_can_be_drawn_lines_of_progress_are_printed() {
    let sandbox = Sandbox::new().with_variable("MCLV_PROGRESS", "0.05");
    let args = ["train", "digits", "--n-hidden", "16", "--epochs", "400", "--no-report", "-o", "run"];
    let outcome = sandbox.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("training: ")).collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains(" %")), "{}", outcome.stderr);
    assert!(lines.last().unwrap().contains("epoch ") && lines.last().unwrap().contains("left"), "{lines:?}");
}

#[test]
fn commands_that_begin_at_the_same_time_get_folders_of_their_own() {
    const N: usize = 20;
    let sandbox = Sandbox::new();
    let train = ["train", "bars-and-stripes:3", "--hidden", "2", "--epochs", "1", "--no-report", "--json"];
    let start = |_| sandbox.command(&train).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let processes: Vec<_> = (0..N).map(start).collect();
    let folder = |process: std::process::Child| {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["run"].as_str().unwrap().to_owned()
    };
    let mut folders: Vec<String> = processes.into_iter().map(folder).collect();
    folders.sort();
    folders.dedup();
    assert_eq!(folders.len(), N, "{folders:?}");
    for folder in folders {
        let metrics = sandbox.bytes(&format!("{folder}/metrics.jsonl"));
        assert_eq!(
            metrics.iter().filter(|byte| **byte == b'\n').count(),
            2,
            "the initial model and one epoch"
        );
    }
}

/// A power cut can take lines that a checkpoint counts.
#[test]
fn lost_metrics_are_told_with_what_is_lost() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let metrics = sandbox.path("my run/metrics.jsonl");
    let text = std::fs::read_to_string(&metrics).unwrap();
    let two: usize = text.split_inclusive('\n').take(2).map(str::len).sum();
    std::fs::write(&metrics, &text[..two + 5]).unwrap();
    let outcome = sandbox.run(&["train", "--resume", "my run"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let counted = format!("has {two} bytes of whole lines, but the checkpoint counts {}", text.len());
    for words in [counted.as_str(), "metrics.jsonl", "the metrics of some epochs after epoch 1 are lost"] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    assert_eq!(std::fs::read_to_string(&metrics).unwrap(), text[..two]);
    let model = sandbox.json(&["inspect", "my run/model.safetensors"]);
    assert_eq!(model["provenance"]["history"]["epoch"], 4, "{model}");
}

#[test]
fn a_folder_in_use_is_refused_with_its_owner() {
    let sandbox = Sandbox::new();
    sandbox.json(&RUN);
    let owner = mclv::Owner::of(&sandbox.path("my run")).unwrap();
    let me = format!("process {}", std::process::id());
    for args in [["--resume", "my run"], ["--resume", "my run/model.safetensors"]] {
        sandbox
            .refuses(&["train", args[0], args[1]], &["my run is in use by", &me, "wait until it has ended"]);
    }
    drop(owner);
    sandbox.json(&["train", "--resume", "my run"]);
}
