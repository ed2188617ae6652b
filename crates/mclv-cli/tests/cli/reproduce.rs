//! `mclv reproduce`: runs are made once, go on after an interruption, and pages follow from
//! results.

use crate::support::Sandbox;
use serde_json::Value;

const QUICK: [&str; 5] = ["--quick", "--data", "digits", "-o", "r"];

fn quick<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["reproduce", name], &QUICK[..], more].concat()
}

/// Names and times of all finished runs.
fn runs(sandbox: &Sandbox) -> Vec<(String, std::time::SystemTime)> {
    let mut runs: Vec<_> = std::fs::read_dir(sandbox.path("r/runs"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "json"))
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().modified().unwrap())
        })
        .collect();
    runs.sort();
    runs
}

#[test]
fn experiments_are_listed() {
    let sandbox = Sandbox::new();
    let list = sandbox.succeeds(&["reproduce"]);
    for name in ["table1", "table2", "ccdf-hidden", "tour-images", "complexity", "beyond"] {
        assert!(list.contains(name), "{list}");
    }
    sandbox.refuses(&["reproduce", "table3"], &["no experiment is called \"table3\"; choose one of table2"]);
}

#[test]
fn a_finished_run_is_never_made_again() {
    let sandbox = Sandbox::new();
    let text = sandbox.succeeds(&quick("table2", &["--seeds", "1"]));
    assert!(text.contains("Quick run") && text.contains("LVS-10"), "{text}");
    let first = runs(&sandbox);
    assert_eq!(first.len(), 14, "seven models and their likelihoods");
    sandbox.succeeds(&quick("table2", &["--seeds", "2"]));
    let second = runs(&sandbox);
    assert_eq!(second.len(), 28);
    assert!(first.iter().all(|run| second.contains(run)), "those of the first seed are still the same");
    let csv = String::from_utf8(sandbox.bytes("r/table2.csv")).unwrap();
    assert!(csv.starts_with("method,learning rate,train,train sd,train n,"), "{csv}");
    let report: Value = serde_json::from_slice(&sandbox.bytes("r/table2.json")).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), 28);
    assert_eq!(report["quick"], true);
}

#[test]
fn threads_do_not_show_in_results() {
    let results = |threads: &str| {
        let sandbox = Sandbox::new();
        sandbox.succeeds(&quick("partition", &["--seeds", "1", "--threads", threads]));
        (sandbox.bytes("r/partition.csv"), sandbox.bytes("r/partition-trained.svg"))
    };
    let one = results("1");
    assert!(one == results("3"));
    assert!(one.1.starts_with(b"<svg"));
}

#[test]
fn every_experiment_runs_and_pages_follow_from_its_results() {
    let sandbox = Sandbox::new().with_file("page.md", "# Page\n<!-- digits -->\n<!-- end digits -->\n");
    for name in [
        "ccdf-hidden",
        "ccdf-stopping-set",
        "digits",
        "tour-images",
        "inspection",
        "true-gibbs",
        "rows",
        "direction",
        "dynamic-k",
        "space",
    ] {
        sandbox.succeeds(&quick(name, &["--seeds", "1"]));
        assert!(sandbox.path(&format!("r/{name}.md")).exists(), "{name}");
    }
    assert!(sandbox.bytes("r/tour-images-gibbs.png").starts_with(b"\x89PNG"));
    let render = ["reproduce", "--render", "r", "--page", "page.md"];
    let check = [&render[..], &["--check"]].concat();
    sandbox.refuses(&check, &["these files are out of date: page.md"]);
    sandbox.succeeds(&render);
    sandbox.succeeds(&check);
    let page = String::from_utf8(sandbox.bytes("page.md")).unwrap();
    assert!(page.contains("](r/digits-one-step.svg)") && page.contains("Quick run"), "{page}");
    // A figure that was touched is noticed.
    std::fs::write(sandbox.path("r/digits-one-step.svg"), "<svg/>").unwrap();
    sandbox.refuses(&check, &["digits-one-step.svg"]);
}

#[test]
fn compressed_results_are_read_and_only_figures_that_a_page_shows_are_written() {
    use std::io::Write;
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("docs")).unwrap();
    std::fs::create_dir(sandbox.path("results")).unwrap();
    let sandbox = sandbox.with_file("docs/page.md", "<!-- digits -->\n<!-- end digits -->\n");
    sandbox.succeeds(&quick("digits", &["--seeds", "1"]));
    let file = std::fs::File::create(sandbox.path("results/digits.json.gz")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    gzip.write_all(&sandbox.bytes("r/digits.json")).unwrap();
    gzip.finish().unwrap();
    let render = ["reproduce", "--render", "results", "--page", "docs/page.md", "--figures", "docs/figures"];
    sandbox.succeeds(&render);
    let page = String::from_utf8(sandbox.bytes("docs/page.md")).unwrap();
    assert!(page.contains("](figures/digits-one-step.svg)"), "{page}");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(sandbox.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names("docs/figures"), ["digits-one-step.svg"]);
    assert_eq!(names("results"), ["digits.json.gz"]);
    sandbox.succeeds(&[&render[..], &["--check"]].concat());
    std::fs::write(sandbox.path("results/digits.json.gz"), b"\x1f\x8b no gzip").unwrap();
    sandbox.refuses(&render, &["digits.json.gz"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_is_done() {
    use std::process::{Command, Stdio};
    let sandbox = Sandbox::new();
    let args = ["reproduce", "table2", "--data", "digits", "-o", "r", "--seeds", "1", "-v"];
    let mut process =
        sandbox.command_heeding(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let folder = sandbox.path("r/runs");
    while !folder.is_dir() || std::fs::read_dir(&folder).unwrap().count() < 4 {
        assert!(process.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = format!("kill -INT {}", process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("the same command continues"), "{stderr}");
}
