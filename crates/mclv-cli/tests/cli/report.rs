//! Reports, figures and event files, as people ask for them.

use crate::support::Sandbox;
use serde_json::{Value, json};

/// A small run of 6 epochs, each evaluated.
fn train(sandbox: &Sandbox, output: &str, more: &[&str]) {
    let args = [
        "train",
        "digits",
        "--n-hidden",
        "12",
        "--epochs",
        "6",
        "--eval-every",
        "1",
        "--json",
        "--output",
        output,
    ];
    let outcome = sandbox.run(&[&args, more].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let live = outcome.stderr.starts_with("live report: http://127.0.0.1:");
    assert_eq!(live, more.contains(&"--live"), "{}", outcome.stderr);
}

fn read(sandbox: &Sandbox, name: &str) -> String {
    String::from_utf8(sandbox.bytes(name)).unwrap()
}

/// The chart data within a page.
fn charts(html: &str) -> Value {
    let data = html.split(r#"id="charts">"#).nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(data).unwrap()
}

/// Nothing in the page is fetched from elsewhere.
fn is_self_contained(html: &str) -> bool {
    let own = |part: &str| part.starts_with("data:") || part.starts_with('#');
    let attributes = ["src=\"", "href=\""];
    let all_own = attributes.iter().all(|a| html.split(a).skip(1).all(own));
    all_own && !html.contains("@import") && !html.contains("url(") && html.len() < 2_000_000
}

#[test]
fn training_ends_in_a_report_of_what_was_recorded() {
    let sandbox = Sandbox::new();
    train(&sandbox, "run", &["--gradient", "lvs", "--unfinished", "carry"]);
    let html = read(&sandbox, "run/report.html");
    assert!(is_self_contained(&html));
    for text in [
        "Log-likelihood",
        "Learning rate",
        "Norm of the gradient",
        "Tours that return",
        "Lengths of tours",
        "Filters",
        "States of the chains",
        "Rows and their reconstructions",
        "The longest tours",
        "SHA-256",
        "mclv train --config",
        "low on average",
        "Means of visible units",
        "Correlations of pairs of visible units",
        "Principal components",
        "Distance to the nearest training row",
        "noise alone would give",
        "Singular values of the weights",
        "Draws of zeros and ones",
        "1000 independent exact samples, beside 1297 training rows. Rows are grey",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let charts = charts(&html);
    let likelihood = &charts["likelihood-0"][0]["series"];
    assert_eq!(likelihood[0]["name"], "train");
    let metrics = read(&sandbox, "run/metrics.jsonl");
    let recorded: Vec<f64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["train_log_likelihood"].as_f64().unwrap())
        .collect();
    let drawn: Vec<f64> =
        likelihood[0]["y"].as_array().unwrap().iter().map(|y| y.as_f64().unwrap()).collect();
    assert_eq!((recorded.len(), drawn.len()), (6, 6));
    assert!(recorded.iter().zip(&drawn).all(|(a, b)| (a - b).abs() < 1e-4), "{recorded:?} {drawn:?}");
    // When, where and by which command, and the terms.
    let sittings = read(&sandbox, "run/sittings.jsonl");
    let sitting: Value = serde_json::from_str(sittings.lines().next().unwrap()).unwrap();
    assert_eq!(
        (sittings.lines().count(), &sitting["from_epoch"], &sitting["to_epoch"]),
        (1, &0.into(), &6.into())
    );
    for text in ["mclv train digits --n-hidden 12 --epochs 6", " UTC</td>", "0 to 6", " cores, ", " threads"]
    {
        assert!(html.contains(text), "{text}");
    }
    assert!(
        html.contains(r#"popovertarget="term-log-z""#) && html.contains(r#"<div popover id="term-log-z""#)
    );
    // A second report of the same run has the same charts.
    sandbox.succeeds(&["report", "run", "-o", "again.html"]);
    assert_eq!(self::charts(&read(&sandbox, "again.html")), charts);
    // Without tours there are no samples.
    sandbox.succeeds(&["report", "run", "-o", "quick.html", "--no-tours"]);
    assert!(!read(&sandbox, "quick.html").contains("noise alone would give"));
    sandbox.refuses(&["report", "run", "-o", "again.html"], &["again.html", "--force"]);
}

#[test]
fn a_damaged_run_still_gives_a_report_that_says_what_is_missing() {
    let sandbox = Sandbox::new();
    train(&sandbox, "run", &["--no-report"]);
    assert!(!sandbox.path("run/report.html").exists());
    let metrics = read(&sandbox, "run/metrics.jsonl");
    let lines: Vec<&str> = metrics.lines().collect();
    let damaged = format!("{}\nnot json\n{}\n{}", lines[0], lines[2], &lines[3][..20]);
    std::fs::write(sandbox.path("run/metrics.jsonl"), damaged).unwrap();
    std::fs::write(sandbox.path("run/model.safetensors"), b"\x08\x00\x00\x00\x00\x00\x00\x00{}").unwrap();
    let report = sandbox.json(&["report", "run"]);
    let missing = report["missing"].to_string();
    assert!(missing.contains("1 damaged lines are left out, the first is line 2"), "{missing}");
    assert!(missing.contains("model.safetensors"), "{missing}");
    let html = read(&sandbox, "run/report.html");
    assert!(
        html.contains("damaged lines")
            && charts(&html)["likelihood-0"][0]["series"][0]["x"] == serde_json::json!([1.0, 3.0])
    );

    // The loop removes one file after the other. There is a report as long as one can be read.
    for (file, still) in [
        ("model.safetensors", true),
        ("best.safetensors", true),
        ("checkpoints/latest.safetensors", true),
        ("config.toml", true),
        ("metrics.jsonl", false),
    ] {
        std::fs::remove_file(sandbox.path("run").join(file)).unwrap();
        let outcome = sandbox.run(&["report", "run", "--no-tours"]);
        assert_eq!(outcome.code, Some(if still { 0 } else { 1 }), "{file}: {}", outcome.stderr);
        if still {
            assert!(read(&sandbox, "run/report.html").contains("Missing: "), "{file}");
        } else {
            assert!(outcome.stderr.contains("holds nothing of a run"), "{}", outcome.stderr);
        }
    }
    sandbox.refuses(&["report", "nowhere"], &["nowhere", "cannot read the run folder"]);
}

#[test]
fn several_runs_are_compared() {
    let sandbox = Sandbox::new();
    for (run, seed) in [("a", "1"), ("b", "2"), ("c", "3")] {
        train(&sandbox, run, &["--no-report", "--seed", seed]);
    }
    train(&sandbox, "cd", &["--no-report", "--gradient", "cd"]);
    sandbox.succeeds(&["report", "a", "b", "c", "cd"]);
    let html = read(&sandbox, "report.html");
    assert!(is_self_contained(&html) && html.contains("4 runs") && html.contains(r#"data-run="cd""#));
    // First the mean over seeds, then single runs.
    let tabs = &charts(&html)["likelihood-0"];
    let of_tab = |tab: usize| -> Vec<Value> {
        tabs[tab]["series"].as_array().unwrap().iter().map(|s| s["runs"].clone()).collect()
    };
    assert_eq!(of_tab(0), [json!(["a", "b", "c"]), json!(["cd"])]);
    assert_eq!(of_tab(1), [json!(["a"]), json!(["b"]), json!(["c"]), json!(["cd"])]);
    assert!(tabs[0]["series"][0]["low"].is_array() && tabs[0]["series"][1].get("low").is_none());
    assert_eq!(tabs[0]["series"][0]["name"], "a, … (LVS-3 carry) (3 seeds)");
    assert_eq!(tabs[2]["x"]["label"], "wall time (s)");

    // Mean and standard deviation over the three seeds, by hand.
    let last = |run: &str| {
        let metrics = read(&sandbox, &format!("{run}/metrics.jsonl"));
        let line: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        line["validation_log_likelihood"].as_f64().unwrap()
    };
    let values = ["a", "b", "c"].map(last);
    let mean = values.iter().sum::<f64>() / 3.0;
    let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(html.contains(&format!("{mean:.3} ± {sd:.3}")), "{mean} ± {sd}");
    let mean_of_chart = tabs[0]["series"][0]["y"].as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!((mean_of_chart - mean).abs() < 1e-4);
    sandbox.succeeds(&["plot", "likelihood", "a", "b", "c", "cd", "--mean", "-o", "mean.svg"]);
    let svg = read(&sandbox, "mean.svg");
    assert!(svg.contains("3 seeds") && svg.contains(">cd</text>") && svg.contains("fill-opacity"));
    sandbox.refuses(
        &["plot", "likelihood", "a", "cd", "--mean", "-o", "none.svg"],
        &["--mean", "only in the seed"],
    );
    sandbox.refuses(
        &["plot", "likelihood", "a", "b", "--mean", "--against", "time", "-o", "none.svg"],
        &["--mean", "--against time"],
    );
    assert!(html.contains(r#"<td>train.gradient</td>"#) && html.contains(r#"<td class="marked">cd</td>"#));
}

#[test]
fn figures_are_drawn_with_the_names_they_are_given() {
    let sandbox = Sandbox::new();
    train(&sandbox, "run", &["--no-report"]);
    train(&sandbox, "cd", &["--no-report", "--gradient", "cd"]);
    sandbox.succeeds(&[
        "plot",
        "likelihood",
        "run",
        "cd",
        "-o",
        "l.svg",
        "--title",
        "A & B",
        "--x-label",
        "pass",
        "--y-label",
        "ℓ",
    ]);
    let svg = read(&sandbox, "l.svg");
    for text in ["A &amp; B", ">pass<", ">ℓ<", "run validation", "cd validation"] {
        assert!(svg.contains(text), "{text}");
    }
    for (what, run) in [
        ("ccdf", "run"),
        ("filters", "run"),
        ("samples", "cd"),
        ("chains", "run"),
        ("reconstructions", "run"),
        ("tours", "run"),
        ("spectrum", "run"),
        ("means", "run"),
        ("correlations", "run"),
        ("projections", "run"),
        ("neighbours", "run"),
    ] {
        for (extension, start) in [("svg", "<svg".as_bytes()), ("png", b"\x89PNG"), ("pdf", b"%PDF")] {
            let file = format!("{what}-{run}.{extension}");
            sandbox.succeeds(&["plot", what, run, "-o", &file]);
            assert!(sandbox.bytes(&file).starts_with(start), "{file}");
        }
    }
    // Twelve filters of 8 × 8 weights: eight in a line, with four pixels between them.
    let width = |file: &str| u32::from_be_bytes(sandbox.bytes(file)[16..20].try_into().unwrap());
    sandbox.succeeds(&["plot", "filters", "run", "--scale", "20", "-o", "large.png"]);
    assert_eq!(width("large.png") - width("filters-run.png"), 2 * 8 * 8 * (20 - 7));
    sandbox.refuses(
        &["plot", "means", "run", "--scale", "3", "-o", "m.svg"],
        &["--scale 3 is not allowed", "for pictures"],
    );
    sandbox.refuses_usage(&["plot", "filters", "run", "--scale", "0", "-o", "m.svg"], &["--scale"]);
    sandbox.refuses(&["plot", "chains", "cd", "-o", "c.svg"], &["keeps no chains", "draw `samples`"]);
    sandbox.refuses(&["plot", "filters", "run", "cd", "-o", "f.svg"], &["shows one run"]);
    sandbox.refuses(&["plot", "filters", "run", "-o", "f.eps"], &["f.eps", ".svg, .png and .pdf"]);
}

#[test]
fn tours_and_log_z_can_be_reported() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 6);
    sandbox.succeeds(&[
        "logz",
        "m.safetensors",
        "--method",
        "exact,ais",
        "--n-chains",
        "16",
        "--n-betas",
        "100",
        "--report",
        "z.html",
    ]);
    let html = read(&sandbox, "z.html");
    assert!(
        is_self_contained(&html)
            && html.contains("log Z by method")
            && html.contains("optimistic on average")
    );
    sandbox.succeeds(&[
        "tours",
        "m.safetensors",
        "--n-tours",
        "500",
        "--samples-per-row",
        "1,2",
        "--report",
        "t.html",
    ]);
    let html = read(&sandbox, "t.html");
    assert!(is_self_contained(&html) && html.contains("The shortest tours") && html.contains("by label"));
    let names: Vec<Value> =
        charts(&html)["tours-0"][0]["series"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect();
    assert!(names.contains(&"m = 1".into()) && names.contains(&"m = 2".into()), "{names:?}");
    sandbox.refuses(&["tours", "m.safetensors", "--report", "t.html"], &["--report", "t.html", "--force"]);
}

#[test]
fn what_is_watched_does_not_change_the_model_or_the_record() {
    let sandbox = Sandbox::new();
    train(&sandbox, "plain", &["--no-report"]);
    train(&sandbox, "watched", &["--tensorboard", "--live", "--port", "0"]);
    assert_eq!(sandbox.bytes("plain/model.safetensors"), sandbox.bytes("watched/model.safetensors"));
    let names = || {
        std::fs::read_dir(sandbox.path("watched"))
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
    };
    let events: Vec<String> = names().filter(|name| name.starts_with("events.out.tfevents.")).collect();
    assert_eq!(events.len(), 1);
    assert!(sandbox.bytes(&format!("watched/{}", events[0])).len() > 5000);
}
