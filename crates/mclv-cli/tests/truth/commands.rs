//! Test that `mclv tours`, `sample`, `report`, `plot` and `selftest` make only true statements.
//!
//! Seeds are fixed, so that every test passes each time. Where a test rests on chance, its
//! false-alarm rate for random seeds is given.

use crate::support::Sandbox;
use mclv::bits::BitRows;
use mclv::partition::exact_samples;
use mclv::progress::Silent;
use mclv::rng::{Purpose, stream};
use mclv::tour::HiddenChain;
use mclv::{ModelFile, Rbm, StoppingSet};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A model with normal weights.
fn random_rbm(n_visible: usize, n_hidden: usize, scale: f64, seed: u64) -> Rbm {
    let mut rng = stream(seed, Purpose::SelfTest, 99).reader();
    let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| (rng.normal() * scale) as f32).collect() };
    let (w, b, a) = (draw(n_visible * n_hidden), draw(n_visible), draw(n_hidden));
    Rbm::new(n_visible, n_hidden, &w, &b, &a).unwrap()
}

/// Two equal modes, all units off and all on; the probability of leaving one is below 1e-9 for each
/// step.
fn two_modes(n: usize) -> Rbm {
    let w = 2.0;
    let bias = vec![-w * n as f32 / 2.0; n];
    Rbm::new(n, n, &vec![w; n * n], &bias, &bias).unwrap()
}

fn save(sandbox: &Sandbox, rbm: Rbm, name: &str) {
    ModelFile::new(rbm).save(sandbox.path(name)).unwrap();
}

/// Rows drawn from the model by enumeration, as a file.
fn exact_rows(rbm: &Rbm, n: usize) -> String {
    let v = exact_samples(rbm, n, 5, &Default::default(), &Silent).unwrap();
    csv(&v)
}

fn csv(rows: &BitRows) -> String {
    let line = |r: usize| {
        let bits: Vec<&str> = (0..rows.n_bits()).map(|i| if rows.get(r, i) { "1" } else { "0" }).collect();
        bits.join(",") + "\n"
    };
    (0..rows.n_rows()).map(line).collect()
}

/// The colour of a page, and the sentence beside it.
fn verdict(html: &str) -> (&str, &str) {
    let (_, rest) = html.split_once(r#"id="verdict"><li class=""#).expect("the page has a verdict");
    let (level, rest) = rest.split_once('"').unwrap();
    let text = rest.split("<span>").nth(1).unwrap().split("</span>").next().unwrap();
    (level, text)
}

/// `mclv tours` works for every shape of a small model, and adds exact numbers if the tours can be
/// solved.
#[test]
fn tours_work_whatever_the_shape_of_the_model() {
    let sandbox = Sandbox::new();
    let rows = |n: usize| (0..20).map(|r| (r * 2654435761u64) % (1 << n)).collect();
    for (n_visible, n_hidden, is_solved) in [
        (12, 12, false),
        (13, 3, true),
        (16, 4, true),
        (21, 3, true),
        (22, 3, false),
        (25, 2, false),
        (3, 14, false),
    ] {
        let rbm = random_rbm(n_visible, n_hidden, 0.3, 1);
        save(&sandbox, rbm.clone(), "m.safetensors");
        std::fs::write(sandbox.path("rows.csv"), csv(&BitRows::from_words(n_visible, rows(n_visible))))
            .unwrap();
        let args = ["tours", "m.safetensors", "--data", "rows.csv", "--split", "all", "--n-tours", "500"];
        let set = &sandbox.json(&args)["sets"][0];
        assert_eq!(set["exact"].is_object(), is_solved, "{n_visible} × {n_hidden}");
        assert_eq!(set["conclusion"]["verdict"], "mixing", "{n_visible} × {n_hidden}: {set}");
        if is_solved {
            // Five standard errors: 6e-7 for each shape.
            let mean = &set["mean_length"];
            let off = number(&mean["value"]) - number(&set["exact"]["mean_length"]);
            assert!(off.abs() <= 5.0 * number(&mean["std_err"]) + 1e-9, "{set}");
        }
    }
    // A trained model of 16 × 4 units is solved too.
    let train =
        ["train", "bars-and-stripes:4", "--n-hidden", "4", "--epochs", "5", "-o", "run", "--no-report"];
    sandbox.succeeds(&train);
    let text = sandbox.succeeds(&["tours", "run/model.safetensors", "--n-tours", "500"]);
    assert!(text.contains("exactly"), "{text}");
}

/// No chain leaves a mode of this model, so all tours return at once, most to their own start.
/// `mclv tours` reports the chain as stuck, and `mclv sample` warns of it.
#[test]
fn a_chain_that_hardly_moves_is_named_wherever_something_rests_on_it() {
    let sandbox = Sandbox::new().with_file("one.csv", csv(&BitRows::from_words(12, vec![0; 20])));
    let rbm = two_modes(12);
    save(&sandbox, rbm.clone(), "m.safetensors");
    let args = [
        "tours",
        "m.safetensors",
        "--data",
        "one.csv",
        "--split",
        "all",
        "--n-tours",
        "500",
        "--report",
        "t.html",
    ];
    let set = &sandbox.json(&args)["sets"][0];
    assert_eq!(
        (&set["n_complete"], &set["conclusion"]["verdict"]),
        (&set["n_tours"], &"stuck".into()),
        "{set}"
    );
    assert!(number(&set["n_own_start"]) > 0.9 * number(&set["n_tours"]), "{set}");
    let html = String::from_utf8(sandbox.bytes("t.html")).unwrap();
    let (level, text) = verdict(&html);
    assert!(level == "bad" && text.contains("stuck: the chain does not mix"), "{level}: {text}");
    let text = sandbox.succeeds(&[
        "tours",
        "m.safetensors",
        "--data",
        "one.csv",
        "--split",
        "all",
        "--n-tours",
        "500",
    ]);
    assert!(text.contains("stuck: the chain does not mix") && text.contains("R-hat"), "{text}");

    // All chains of these samples begin in the same mode and agree with each other.
    let args = ["sample", "m.safetensors", "--start", "one.csv", "--burn-in", "200", "-o", "s.npy"];
    let outcome = sandbox.run(&args);
    assert!(
        outcome.code == Some(0) && outcome.stderr.contains("warning: chains differ"),
        "{}",
        outcome.stderr
    );
}

/// The share of tours that return to their own start in one step is the enumerated staying
/// probability within five standard errors (false alarm 6e-7).
#[test]
fn own_starts_are_explained_by_staying_probabilities() {
    let rbm = random_rbm(8, 6, 1.5, 7);
    let sandbox = Sandbox::new().with_file("rows.csv", exact_rows(&rbm, 10));
    save(&sandbox, rbm.clone(), "m.safetensors");
    let args = ["tours", "m.safetensors", "--data", "rows.csv", "--split", "all", "--n-tours", "4000"];
    let set = &sandbox.json(&args)["sets"][0];
    let conclusion = &set["conclusion"];
    let stays = number(&conclusion["staying_probability"]);
    let seen = number(&conclusion["own_start_in_one_step"]);
    assert!((seen - stays).abs() < 5.0 * (stays * (1.0 - stays) / 4000.0).sqrt(), "{set}");
    assert!(stays > 0.0 && stays <= HiddenChain::new(&rbm).unwrap().transition(0, 0).max(1.0));
    let text = conclusion["own_starts"].as_str().unwrap();
    assert!(text.contains(&format!("{:.1} %", 100.0 * stays)), "{text}");
}

/// A model with all its probability on the rows' hidden states, and a chain that moves between
/// them.
#[test]
fn mass_on_the_rows_is_called_concentrated_only_if_the_chain_mixes() {
    let rbm = Rbm::new(4, 6, &[0.3; 24], &[0.0; 4], &[0.0, -9.0, -9.0, -9.0, -9.0, -9.0]).unwrap();
    let sandbox = Sandbox::new().with_file("rows.csv", exact_rows(&rbm, 50));
    save(&sandbox, rbm.clone(), "m.safetensors");
    let args = ["tours", "m.safetensors", "--data", "rows.csv", "--split", "all", "--n-tours", "500"];
    let conclusion = sandbox.json(&args)["sets"][0]["conclusion"].clone();
    assert_eq!(conclusion["verdict"], "concentrated", "{conclusion}");
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = StoppingSet::new(&BitRows::from_words(6, vec![0, 1]));
    let exact = chain.tours(&set).unwrap().set_probability();
    assert!(exact > 0.9 && (number(&conclusion["set_probability"]) - exact).abs() < 0.02, "{conclusion}");
}

/// 20 models whose clamped chains mix in a few steps, each with eight rows of known values: no
/// warning. A model with two modes, of which only one unit is known, is warned of.
#[test]
fn clamped_chains_that_mix_are_not_warned_of() {
    let sandbox = Sandbox::new();
    for seed in 0..20 {
        let rbm = random_rbm(16, 8, 1.5, 100 + seed);
        std::fs::write(sandbox.path("rows.csv"), exact_rows(&rbm, 8)).unwrap();
        save(&sandbox, rbm, "m.safetensors");
        let args = ["sample", "m.safetensors", "--given", "rows.csv", "--known", "units:0-12"];
        let json = sandbox.json(&args);
        assert!(json["warning"].is_null(), "{seed}: {}", json["warning"]);
        assert!(number(&json["mixing"]["r_hat"]) < 1.05, "{seed}: {}", json["mixing"]);
    }
    save(&sandbox, two_modes(12), "m.safetensors");
    std::fs::write(sandbox.path("rows.csv"), csv(&BitRows::from_words(12, vec![0, 1]))).unwrap();
    let outcome =
        sandbox.run(&["sample", "m.safetensors", "--given", "rows.csv", "--known", "units:0", "-o", "s.npy"]);
    assert!(outcome.stderr.contains("warning: chains differ"), "{}", outcome.stderr);
}

/// The verdict on the page of a run reports idle units and tours that do not return, whatever the
/// guards of training reported.
#[test]
fn the_worst_that_is_known_colours_the_page_of_a_run() {
    let sandbox = Sandbox::new();
    let train = ["train", "digits", "--no-report", "--eval-every", "3"];
    // This run has no problems until its model is changed below.
    sandbox.succeeds(&[&train[..], &["--n-hidden", "6", "--epochs", "30", "-o", "small"]].concat());
    let page = |run: &str| {
        sandbox.succeeds(&["report", run]);
        String::from_utf8(sandbox.bytes(&format!("{run}/report.html"))).unwrap()
    };
    let html = page("small");
    assert_eq!(verdict(&html).0, "good", "{:?}", verdict(&html));
    assert!(verdict(&html).1.contains("Checked: ") && verdict(&html).1.contains("hidden units"));

    // Two of the units lose their weights.
    let path = sandbox.path("small/model.safetensors");
    let model = ModelFile::load(&path).unwrap();
    let rbm = &model.rbm;
    let mut w = rbm.weights();
    w.chunks_exact_mut(6).for_each(|row| row[..2].fill(0.0));
    let mut a = rbm.hidden_bias().to_vec();
    a[..2].fill(0.3);
    let idle = Rbm::new(64, 6, &w, rbm.visible_bias(), &a).unwrap();
    ModelFile { rbm: idle, provenance: model.provenance }.save(&path).unwrap();
    let html = page("small");
    let (level, text) = verdict(&html);
    assert!(level == "warning" && text.contains("2 of 6 hidden units are idle"), "{level}: {text}");
    assert!(!html.contains("No problems found"));

    // 200 hidden units: no tour returns.
    sandbox.succeeds(
        &[&train[..], &["--n-hidden", "200", "--gradient", "pcd", "--epochs", "3", "-o", "large"]].concat(),
    );
    let html = page("large");
    assert!(html.contains("tours (m = 1) returned before they were cut"));
    assert!(["warning", "bad"].contains(&verdict(&html).0), "{:?}", verdict(&html));
    assert!(!html.contains("No problems found"));
}

/// Grey rows, thresholded rows and other data are three kinds of data. Each kind has a chart and a
/// title of its own, and a note says that likelihoods of different kinds cannot be compared.
#[test]
fn likelihoods_of_different_data_are_never_drawn_on_one_axis() {
    let sandbox = Sandbox::new();
    for (run, data, more) in [
        ("grey-1", "digits", &["--seed", "1"][..]),
        ("grey-2", "digits", &["--seed", "2"]),
        ("cut", "digits", &["--binarize", "threshold=0.5"]),
        ("bars", "bars-and-stripes:4", &[]),
    ] {
        let train = [
            "train",
            data,
            "--n-hidden",
            "4",
            "--epochs",
            "2",
            "--eval-every",
            "1",
            "--no-report",
            "-o",
            run,
        ];
        sandbox.succeeds(&[&train[..], more].concat());
    }
    let charts = |html: &str| -> Vec<Vec<String>> {
        let data = html.split(r#"id="charts">"#).nth(1).unwrap().split("</script>").next().unwrap();
        let charts: Value = serde_json::from_str(data).unwrap();
        let runs = |chart: &Value| -> Vec<String> {
            let series = chart[0]["series"].as_array().unwrap().iter();
            let runs = series.flat_map(|s| s["runs"].as_array().unwrap());
            runs.map(|run| run.as_str().unwrap().to_owned()).collect()
        };
        let named = charts.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("likelihood"));
        named.map(|(_, chart)| runs(chart)).collect()
    };
    let runs = ["grey-1", "grey-2", "cut", "bars"];
    sandbox.succeeds(&[&["report"], &runs[..], &["-o", "all.html"]].concat());
    let html = String::from_utf8(sandbox.bytes("all.html")).unwrap();
    assert_eq!(charts(&html), [vec!["grey-1", "grey-2"], vec!["cut"], vec!["bars"]]);
    assert!(
        html.contains("3 kinds of data") && html.contains("<th tabindex=\"0\" aria-sort=\"none\">data</th>")
    );

    let plot =
        |runs: &[&str]| sandbox.json(&[&["plot", "likelihood"], runs, &["-o", "l.svg", "--force"]].concat());
    let note = plot(&runs)["note"].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("cannot be compared")), "{note}");
    let svg = String::from_utf8(sandbox.bytes("l.svg")).unwrap();
    assert_eq!(svg.matches("Log-likelihood: ").count(), 2 * 3, "a title and a heading for each");

    // Runs of the same data share a chart, and nothing is said.
    sandbox.succeeds(&["report", "grey-1", "grey-2", "-o", "same.html"]);
    let html = String::from_utf8(sandbox.bytes("same.html")).unwrap();
    assert_eq!(charts(&html), [vec!["grey-1", "grey-2"]]);
    assert!(!html.contains("kinds of data") && plot(&["grey-1", "grey-2"])["note"].is_null());
}

/// The selftest covers what users rely on, and says how often it would fail by chance.
#[test]
fn the_selftest_holds_estimates_against_enumeration() {
    let json = Sandbox::new().json(&["selftest"]);
    assert_eq!(json["n_failed"], 0, "{json}");
    let checks = json["checks"].as_array().unwrap();
    for word in ["AIS", "tours", "samples", "CD, PCD and LVS", "exact gradient", "log Z"] {
        assert!(checks.iter().any(|check| check["name"].as_str().unwrap().contains(word)), "{word}");
    }
    let total: f64 = checks.iter().map(|check| number(&check["false_alarm"])).sum();
    assert!(total > 0.0 && total < 1e-4 && (total - number(&json["false_alarm"])).abs() < 1e-12);
}
