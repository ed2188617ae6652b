//! Runs: going on after an interruption, divergence, early stopping, configuration.

use mclv::data::{Binarize, DataSpec};
use mclv::gradient::{Gradient, Lvs, Starts, TourLength, Unfinished, VisibleChain};
use mclv::progress::Progress;
use mclv::train::{
    Checkpoints, Listener, Metrics, Optimizer, Outcome, Run, RunInput, TrainSettings, Warning,
};
use mclv::{ModelFile, human_seconds};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Says stop after so many reports; remembers warnings.
#[derive(Default)]
struct Script {
    stop_after: u64,
    reports: AtomicU64,
    warnings: Mutex<Vec<Warning>>,
}

impl Script {
    fn stop_after(n: u64) -> Self {
        Self { stop_after: n, ..Self::default() }
    }
}

impl Progress for Script {
    fn report(&self, _done: u64, _total: u64) {
        self.reports.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stop_after > 0 && self.reports.load(Ordering::Relaxed) >= self.stop_after
    }
}

impl Listener for Script {
    fn epoch(&self, _metrics: &Metrics) {}

    fn warning(&self, warning: &Warning) {
        self.warnings.lock().unwrap().push(warning.clone());
    }
}

fn digits(train: TrainSettings) -> RunInput {
    let data =
        DataSpec { source: "digits".into(), binarize: Binarize::Threshold(0.5), ..DataSpec::default() };
    RunInput { data, train: TrainSettings { n_hidden: 8, epochs: 5, eval_every: 2, seed: 3, ..train } }
}

/// The metrics without the times, which no two runs share.
fn metrics(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().remove("seconds");
            if let Some(z) = value.get_mut("log_z").and_then(|z| z.as_object_mut()) {
                z.remove("seconds");
            }
            value
        })
        .collect()
}

fn cases() -> Vec<(&'static str, RunInput)> {
    let lvs = |unfinished, starts| {
        Gradient::Lvs(Lvs { unfinished, starts, k: TourLength::Steps(3), min_ess: 0.9, ..Lvs::default() })
    };
    let with = |gradient| TrainSettings { gradient, learning_rate: 0.1, ..TrainSettings::default() };
    let sampled = VisibleChain::Sampled;
    vec![
        ("cd", digits(with(Gradient::Cd { k: 2, visible: sampled }))),
        (
            "pcd with momentum",
            digits(TrainSettings {
                optimizer: Optimizer::Sgd { momentum: 0.5 },
                l2: 1e-4,
                ..with(Gradient::Pcd { k: 1, n_chains: 50, visible: sampled })
            }),
        ),
        (
            "mean-field pcd with Adam",
            digits(TrainSettings {
                optimizer: Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 },
                learning_rate: 0.01,
                ..with(Gradient::Pcd { k: 1, n_chains: 0, visible: VisibleChain::MeanField })
            }),
        ),
        ("lvs keep, weighted", digits(with(lvs(Unfinished::Keep, Starts::Weighted)))),
        ("lvs carry, metropolis", digits(with(lvs(Unfinished::Carry, Starts::Metropolis)))),
        ("lvs carry, fresh", digits(with(lvs(Unfinished::Carry, Starts::Fresh)))),
        (
            "lvs after a warm-up",
            digits(TrainSettings { warm_up_epochs: 2, ..with(lvs(Unfinished::Drop, Starts::Fresh)) }),
        ),
        ("redrawn bits", {
            let mut input = digits(TrainSettings { redraw_bits: true, ..TrainSettings::default() });
            input.data.binarize = Binarize::Bernoulli;
            input
        }),
    ]
}

#[test]
fn a_resumed_run_is_identical_to_one_that_never_stopped() {
    for (name, input) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let outcome = Run::create(&whole, input.clone(), &Script::default())
            .and_then(|mut run| run.go(Checkpoints::default(), &Script::default()))
            .unwrap();
        assert!(matches!(outcome, Outcome::Finished { .. }), "{name}");
        // Digits make 11 updates an epoch: stop in the middle of epochs, at their ends, and in the warm-up.
        for stops in [vec![1, 30], vec![11], vec![22, 5, 7], vec![40]] {
            let broken = folder.path().join(format!("broken {stops:?}"));
            let mut run = Run::create(&broken, input.clone(), &Script::default()).unwrap();
            for stop in &stops {
                let outcome = run.go(Checkpoints::default(), &Script::stop_after(*stop)).unwrap();
                assert!(matches!(outcome, Outcome::Interrupted { .. }), "{name}: {outcome:?}");
                run = Run::resume(&broken, &Script::default()).unwrap();
            }
            run.go(Checkpoints::default(), &Script::default()).unwrap();
            for file in ["model.safetensors", "best.safetensors", "config.toml"] {
                let read = |run: &Path| std::fs::read(run.join(file)).unwrap();
                assert!(read(&whole) == read(&broken), "{name}: {file} after stops {stops:?}");
            }
            assert_eq!(metrics(&whole), metrics(&broken), "{name}, stops {stops:?}");
        }
    }
}

/// What `kill -9` leaves behind: an old checkpoint, metrics that ran ahead of it, perhaps half a line.
#[test]
fn a_killed_run_goes_on_from_its_last_checkpoint() {
    let (_, input) = cases().swap_remove(4);
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    Run::create(&whole, input.clone(), &Script::default())
        .unwrap()
        .go(Checkpoints::default(), &Script::default())
        .unwrap();
    let every_two = Checkpoints { every_epochs: 2, ..Checkpoints::default() };
    let mut run = Run::create(&killed, input, &Script::default()).unwrap();
    run.go(every_two, &Script::stop_after(25)).unwrap();
    let checkpoint = killed.join("checkpoints/latest.safetensors");
    let old = std::fs::read(&checkpoint).unwrap();
    Run::resume(&killed, &Script::default()).unwrap().go(every_two, &Script::stop_after(15)).unwrap();
    std::fs::write(&checkpoint, old).unwrap();
    let mut ahead = std::fs::read(killed.join("metrics.jsonl")).unwrap();
    ahead.extend_from_slice(b"{\"epoch\":4,\"n_hid");
    std::fs::write(killed.join("metrics.jsonl"), ahead).unwrap();
    Run::resume(&killed, &Script::default()).unwrap().go(every_two, &Script::default()).unwrap();
    let read = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
    assert!(read(&whole) == read(&killed));
    assert_eq!(metrics(&whole), metrics(&killed));
}

#[test]
fn a_diverging_run_stops_keeps_a_finite_model_and_says_what_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let input = digits(TrainSettings { learning_rate: 1e30, ..TrainSettings::default() });
    let script = Script::default();
    let outcome = Run::create(&run, input, &script).unwrap().go(Checkpoints::default(), &script).unwrap();
    let Outcome::Diverged(warning) = outcome else { panic!("{outcome:?}") };
    assert!(warning.to_string().contains("smaller learning rate"), "{warning}");
    ModelFile::load(run.join("model.safetensors")).unwrap();
    assert!(script.warnings.lock().unwrap().contains(&warning));
}

#[test]
fn patience_ends_a_run_and_the_best_model_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // A constant large rate makes the likelihood jump about.
    let input = digits(TrainSettings {
        learning_rate: 2.0,
        schedule: mclv::train::Schedule::Constant,
        patience: 2,
        ..TrainSettings::default()
    });
    let input = RunInput { train: TrainSettings { epochs: 200, eval_every: 1, ..input.train }, ..input };
    let outcome = Run::create(&run, input, &Script::default())
        .unwrap()
        .go(Checkpoints::default(), &Script::default())
        .unwrap();
    let Outcome::Finished { metrics: last, best: Some((epoch, value)), early: true } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(last.epoch, epoch + 2);
    let best = metrics(&run)
        .into_iter()
        .filter_map(|m| m["validation_log_likelihood"].as_f64())
        .fold(f64::MIN, f64::max);
    assert_eq!(best, value);
    let kept = ModelFile::load(run.join("best.safetensors")).unwrap();
    assert_eq!(kept.provenance.history["epoch"], epoch);
}

#[test]
fn settings_survive_the_file_and_unknown_keys_are_refused_with_a_suggestion() {
    for (name, input) in cases() {
        let text = input.to_toml();
        assert_eq!(RunInput::from_toml(&text, Path::new("config.toml")).unwrap(), input, "{name}\n{text}");
    }
    let error = |text: &str| RunInput::from_toml(text, Path::new("c.toml")).unwrap_err().to_string();
    let typo = error("[train]\nepoch = 3\n");
    assert!(
        typo.contains("c.toml") && typo.contains("line 2") && typo.contains("did you mean `epochs`"),
        "{typo}"
    );
    assert!(error("[train]\nepochs = -3\n").contains("line 2"));
    assert!(error("[train.gradient]\nestimator = \"magic\"\n").contains("magic"));
    assert!(error("[trian]\n").contains("did you mean `train`"));
}

#[test]
fn impossible_settings_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let refuse = |train: TrainSettings| {
        let error =
            Run::create(&run, digits(train), &Script::default()).err().expect("a refusal").to_string();
        assert!(!run.exists(), "{error}");
        error
    };
    let with = |lvs: Lvs| TrainSettings { gradient: Gradient::Lvs(lvs), ..TrainSettings::default() };
    assert!(refuse(with(Lvs { starts: Starts::Weighted, ..Lvs::default() })).contains("carry"));
    assert!(refuse(with(Lvs { k: TourLength::Dynamic, ..Lvs::default() })).contains("dynamic"));
    assert!(refuse(with(Lvs { row_fraction: 0.0, ..Lvs::default() })).contains("row-fraction"));
    assert!(
        refuse(TrainSettings { learning_rate: f64::NAN, ..TrainSettings::default() })
            .contains("learning-rate")
    );
    assert!(refuse(TrainSettings { batch_size: 0, ..TrainSettings::default() }).contains("batch-size"));
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (_, input) = cases().swap_remove(4);
    Run::create(&run, input.clone(), &Script::default())
        .unwrap()
        .go(Checkpoints::default(), &Script::stop_after(20))
        .unwrap();
    let checkpoint = run.join("checkpoints/latest.safetensors");
    let good = std::fs::read(&checkpoint).unwrap();
    for n in [0, 7, 100, good.len() / 2, good.len() - 1] {
        std::fs::write(&checkpoint, &good[..n]).unwrap();
        let error = Run::resume(&run, &Script::default()).err().expect("an error").to_string();
        assert!(error.contains("latest.safetensors"), "{error}");
    }
    let again = Run::create(&run, input, &Script::default()).err().expect("an error").to_string();
    assert!(again.contains("--resume"), "{again}");
}

/// Bars and stripes, 3 × 3: 14 patterns, so the best possible likelihood is −ln 14.
#[test]
fn the_exact_gradient_reaches_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
    let train = TrainSettings {
        n_hidden: 8,
        epochs: 3000,
        gradient: Gradient::Exact,
        learning_rate: 0.5,
        eval_every: 3000,
        ..TrainSettings::default()
    };
    let run = folder.path().join("run");
    let outcome = Run::create(&run, RunInput { data, train }, &Script::default())
        .and_then(|mut run| run.go(Checkpoints::default(), &Script::default()))
        .unwrap();
    let Outcome::Finished { metrics, .. } = outcome else { panic!("{outcome:?}") };
    let gap = -14f64.ln() - metrics.train_log_likelihood.unwrap();
    assert!(gap > -1e-9 && gap < 0.1, "{gap} nats from the optimum after {}", human_seconds(metrics.seconds));
}
