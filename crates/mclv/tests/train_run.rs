//! Runs: going on after an interruption, divergence, early stopping, configuration.

use mclv::bits::BitRows;
use mclv::chain::VisibleChain;
use mclv::data::{Binarize, DataSpec};
use mclv::progress::{Progress, Silent};
use mclv::settings::{
    EstimatorName, EvalEvery, Limit, Rule, Schedule, Settings, Snapshots, Starts, TourLength, Unfinished,
};
use mclv::train::{
    Checkpoints, Listener, Metrics, Outcome, Run, RunFolder, RunInput, Snapshot, Training, Warning,
};
use mclv::{ModelFile, Rbm, Result, human_seconds};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A listener that stops the run after a given number of reports, and keeps warnings and evaluations.
#[derive(Default)]
struct Script {
    stop_after: u64,
    reports: AtomicU64,
    warnings: Vec<Warning>,
    /// Epochs evaluated, the model then, and the states of its chains.
    evaluated: Vec<(usize, Rbm, Option<BitRows>)>,
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
    fn warning(&mut self, warning: &Warning) {
        self.warnings.push(warning.clone());
    }

    fn evaluated(&mut self, metrics: &Metrics, rbm: &Rbm, chains: Option<&BitRows>) {
        self.evaluated.push((metrics.epoch, rbm.clone(), chains.cloned()));
    }
}

/// Begin a run in a folder, and go as far as the listener lets it.
fn begin(folder: &Path, input: &RunInput, listener: &mut dyn Listener) -> Result<Outcome> {
    begin_with(folder, input, Checkpoints::default(), listener)
}

fn begin_with(
    folder: &Path,
    input: &RunInput,
    checkpoints: Checkpoints,
    listener: &mut dyn Listener,
) -> Result<Outcome> {
    let run = Run::load(input.clone(), &Silent)?;
    let training = run.training().in_folder(folder).checkpoints(checkpoints).observe(listener);
    Ok(training.fit(run.rows())?.outcome)
}

/// Go on with the run in a folder, as far as the listener lets it.
fn go_on(folder: &Path, listener: &mut dyn Listener) -> Result<Outcome> {
    go_on_with(folder, Checkpoints::default(), listener)
}

fn go_on_with(folder: &Path, checkpoints: Checkpoints, listener: &mut dyn Listener) -> Result<Outcome> {
    let run = Run::open(folder, &Silent)?;
    let training = run.training().checkpoints(checkpoints).observe(listener);
    Ok(training.resume(folder, run.rows())?.finish()?.outcome)
}

fn trained(folder: &Path, input: &RunInput) -> Outcome {
    begin(folder, input, &mut Silent).unwrap()
}

fn refusal(result: Result<Outcome>) -> String {
    result.expect_err("a refusal").to_string()
}

fn with(gradient: EstimatorName) -> Settings {
    Settings { gradient: Some(gradient), ..Settings::default() }
}

fn pcd() -> Settings {
    with(EstimatorName::Pcd)
}

/// One step per update, and a stopping set from all rows.
fn lvs() -> Settings {
    Settings { k: Some(TourLength::Steps(1)), row_fraction: Some(1.0.into()), ..with(EstimatorName::Lvs) }
}

fn digits(train: Settings) -> RunInput {
    let data =
        DataSpec { source: "digits".into(), binarize: Binarize::Threshold(0.5), ..DataSpec::default() };
    let train = Settings {
        n_hidden: Some(8),
        epochs: Some(5.into()),
        eval_every: Some(EvalEvery::Epochs(2)),
        seed: Some(3),
        ..train
    };
    RunInput { data, train, ..RunInput::default() }
}

/// The metrics without the times, which no two runs share.
fn metrics(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().retain(|name, _| !name.ends_with("seconds"));
            for log_z in ["/log_z", "/best/log_z"] {
                if let Some(z) = value.pointer_mut(log_z).and_then(|z| z.as_object_mut()) {
                    z.remove("seconds");
                }
            }
            value
        })
        .collect()
}

fn cases() -> Vec<(&'static str, RunInput)> {
    let slow = |train: Settings| digits(Settings { learning_rate: Some(0.1), ..train });
    let tours = |unfinished, starts| Settings {
        k: Some(TourLength::Steps(3)),
        unfinished: Some(unfinished),
        starts: Some(starts),
        min_ess: Some(0.9),
        ..lvs()
    };
    let one_step = || Settings { k: Some(TourLength::Steps(1)), ..pcd() };
    vec![
        ("cd", slow(Settings { k: Some(TourLength::Steps(2)), ..with(EstimatorName::Cd) })),
        (
            "pcd with momentum",
            slow(Settings { n_chains: Some(50.into()), momentum: Some(0.5), l2: Some(1e-4), ..one_step() }),
        ),
        (
            "mean-field pcd with Adam",
            digits(Settings {
                optimizer: Some(Rule::Adam),
                visible: Some(VisibleChain::MeanField),
                ..one_step()
            }),
        ),
        ("lvs keep, weighted", slow(tours(Unfinished::Keep, Starts::Weighted))),
        ("lvs carry, metropolis", slow(tours(Unfinished::Carry, Starts::Metropolis))),
        ("lvs carry, fresh", slow(tours(Unfinished::Carry, Starts::Fresh))),
        (
            "lvs after a warm-up",
            slow(Settings { warm_up_epochs: Some(2), ..tours(Unfinished::Drop, Starts::Fresh) }),
        ),
        (
            "tempered",
            slow(Settings { n_chains: Some(50.into()), n_rungs: Some(4), ..with(EstimatorName::Tempered) }),
        ),
        ("ucd", slow(Settings { max_meeting: Some(20), ..with(EstimatorName::Ucd) })),
        ("exact", slow(with(EstimatorName::Exact))),
        ("too large to enumerate", {
            let mut input = slow(with(EstimatorName::Cd));
            (input.train.n_hidden, input.train.eval_every) = (Some(40), Some(EvalEvery::Epochs(1)));
            input
        }),
        (
            "lvs with a set that adapts",
            slow(Settings {
                row_fraction: Some(0.02.into()),
                target_completion: Some(0.9.into()),
                max_states: Some(700),
                ..lvs()
            }),
        ),
        ("evaluated as the budget allows, from the initial model on", {
            let mut input = slow(pcd());
            input.train.eval_every = None;
            input
        }),
        ("redrawn bits", {
            let mut input = digits(Settings { redraw_bits: Some(true), ..pcd() });
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
        assert!(matches!(trained(&whole, &input), Outcome::Finished { .. }), "{name}");
        // Digits make 11 updates an epoch: stop in the middle of epochs, at their ends, and in the warm-up.
        for stops in [vec![1, 30], vec![11], vec![22, 5, 7], vec![40]] {
            let broken = folder.path().join(format!("broken {stops:?}"));
            for (k, stop) in stops.iter().enumerate() {
                let script = &mut Script::stop_after(*stop);
                let outcome = if k == 0 { begin(&broken, &input, script) } else { go_on(&broken, script) };
                let outcome = outcome.unwrap();
                assert!(matches!(outcome, Outcome::Interrupted { .. }), "{name}: {outcome:?}");
            }
            go_on(&broken, &mut Silent).unwrap();
            for file in ["model.safetensors", "best.safetensors", "config.toml"] {
                let read = |run: &Path| std::fs::read(run.join(file)).unwrap();
                assert!(read(&whole) == read(&broken), "{name}: {file} after stops {stops:?}");
            }
            assert_eq!(metrics(&whole), metrics(&broken), "{name}, stops {stops:?}");
        }
    }
}

/// The snapshots of a run: epoch and bytes, in order of epochs.
fn snapshots(folder: &Path) -> Vec<(usize, Vec<u8>)> {
    let names = std::fs::read_dir(folder.join("snapshots")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let epoch = |name: &str| name.strip_prefix("epoch-")?.strip_suffix(".safetensors")?.parse().ok();
    let read = |name: &String| std::fs::read(folder.join("snapshots").join(name)).unwrap();
    names.iter().map(|name| (epoch(name).expect("the name of a snapshot"), read(name))).collect()
}

#[test]
fn snapshots_are_the_models_of_their_epochs_and_a_resumed_run_writes_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (settings, epochs) in
        [(Snapshots::Log, vec![1, 2, 5]), (Snapshots::from(vec![4, 0, 2]), vec![0, 2, 4])]
    {
        let whole = folder.path().join(format!("whole {settings}"));
        let input = digits(Settings { snapshots: Some(settings.clone()), ..pcd() });
        trained(&whole, &input);
        let kept = snapshots(&whole);
        assert_eq!(kept.iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), epochs);
        assert_eq!(RunFolder::new(&whole).snapshot_epochs(), epochs);
        // In memory: the same models, and the last of the listed epochs can be the last model.
        let run = Run::load(input.clone(), &Silent).unwrap();
        let in_memory = run.training().fit(run.rows()).unwrap();
        assert_eq!(in_memory.snapshots.len(), epochs.len());
        for ((epoch, rbm), (of_file, _)) in in_memory.snapshots.iter().zip(&kept) {
            let file =
                ModelFile::load(whole.join(format!("snapshots/epoch-{epoch:05}.safetensors"))).unwrap();
            assert_eq!((epoch, rbm), (of_file, &file.rbm));
            assert_eq!(file.provenance.history["epoch"], *epoch);
            assert_eq!((*rbm == in_memory.model, *epoch == 5), (*epoch == 5, *epoch == 5));
        }
        // Digits make 11 updates an epoch: stops before, in and after epochs that are kept.
        for stops in [vec![1], vec![11, 3], vec![25]] {
            let broken = folder.path().join(format!("broken {settings} {stops:?}"));
            begin(&broken, &input, &mut Script::stop_after(stops[0])).unwrap();
            stops[1..].iter().for_each(|&stop| _ = go_on(&broken, &mut Script::stop_after(stop)).unwrap());
            go_on(&broken, &mut Silent).unwrap();
            assert!(snapshots(&broken) == kept, "{settings} after stops {stops:?}");
        }
    }
    let without = folder.path().join("without");
    trained(&without, &digits(pcd()));
    assert!(!without.join("snapshots").exists());
}

#[test]
fn sittings_are_recorded_in_the_folder_and_in_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let input = digits(pcd());
    trained(&whole, &input);
    // Digits make 11 updates an epoch: the run stops in its third epoch.
    let run = Run::load(input, &Silent).unwrap();
    let typed = vec!["mclv".to_owned(), "train".to_owned()];
    let mut stop = Script::stop_after(25);
    run.training().command(typed).in_folder(&broken).observe(&mut stop).fit(run.rows()).unwrap();
    let sittings = || RunFolder::new(&broken).read_sittings();
    assert_eq!(sittings().len(), 1);
    let first = sittings().remove(0);
    assert_eq!((first.from_epoch, first.to_epoch), (0, Some(2)));
    assert_eq!(first.command_line().as_deref(), Some("mclv train"));
    assert!(first.seconds().is_some_and(|seconds| seconds < 600) && first.begun > 1_700_000_000);
    // A damaged line is left out; it stops nothing.
    let path = RunFolder::new(&broken).sittings();
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\n").unwrap();
    go_on(&broken, &mut Silent).unwrap();
    let all = sittings();
    assert_eq!(all.len(), 2);
    assert_eq!((&all[0], all[1].from_epoch, all[1].to_epoch), (&first, 2, Some(5)));
    assert_eq!((all[1].command_line(), all[1].n_ranks), (None, 1));
    let read = RunFolder::new(&broken).read().unwrap();
    assert_eq!((read.sittings, read.problems), (all, Vec::new()));
    for name in ["model.safetensors", "best.safetensors"] {
        assert_eq!(std::fs::read(whole.join(name)).unwrap(), std::fs::read(broken.join(name)).unwrap());
    }
}

/// What `kill -9` leaves behind: an old checkpoint, metrics that ran ahead of it, perhaps half a line.
#[test]
fn a_killed_run_goes_on_from_its_last_checkpoint() {
    let (_, input) = cases().swap_remove(4);
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    trained(&whole, &input);
    let every_two = Checkpoints { every_epochs: 2, ..Checkpoints::default() };
    begin_with(&killed, &input, every_two, &mut Script::stop_after(25)).unwrap();
    let checkpoint = killed.join("checkpoints/latest.safetensors");
    let old = std::fs::read(&checkpoint).unwrap();
    go_on_with(&killed, every_two, &mut Script::stop_after(15)).unwrap();
    std::fs::write(&checkpoint, old).unwrap();
    let mut ahead = std::fs::read(killed.join("metrics.jsonl")).unwrap();
    ahead.extend_from_slice(b"{\"epoch\":4,\"n_hid");
    std::fs::write(killed.join("metrics.jsonl"), ahead).unwrap();
    go_on_with(&killed, every_two, &mut Silent).unwrap();
    let read = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
    assert!(read(&whole) == read(&killed));
    assert_eq!(metrics(&whole), metrics(&killed));
}

#[test]
fn a_diverging_run_stops_keeps_a_finite_model_and_says_what_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let input = digits(Settings { learning_rate: Some(1e30), ..pcd() });
    let mut script = Script::default();
    let outcome = begin(&run, &input, &mut script).unwrap();
    let Outcome::Diverged(warning) = outcome else { panic!("{outcome:?}") };
    assert!(warning.to_string().contains("smaller learning rate"), "{warning}");
    ModelFile::load(run.join("model.safetensors")).unwrap();
    assert!(script.warnings.contains(&warning));
}

/// A constant large rate makes the likelihood jump about.
fn restless(patience: usize) -> Settings {
    Settings {
        learning_rate: Some(2.0),
        schedule: Some(Schedule::Constant),
        patience: Some(Limit::At(patience)),
        ..pcd()
    }
}

#[test]
fn patience_ends_a_run_and_the_best_model_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let input = digits(restless(2));
    let train = Settings { epochs: Some(200.into()), eval_every: Some(EvalEvery::Epochs(1)), ..input.train };
    let input = RunInput { train, ..input };
    let outcome = trained(&run, &input);
    let Outcome::Finished { metrics: last, best: Some(best), early: true } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(last.epoch, best.epoch + 2);
    let highest = metrics(&run)
        .into_iter()
        .filter_map(|m| m["validation_log_likelihood"].as_f64())
        .fold(f64::MIN, f64::max);
    assert_eq!(highest, best.log_likelihood);
    let kept = ModelFile::load(run.join("best.safetensors")).unwrap();
    assert_eq!(kept.provenance.history["epoch"], best.epoch);
    assert_eq!(kept.provenance.history["best_epoch"], best.epoch);
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
    assert!(error("[train]\ngradient = \"magic\"\n").contains("magic"));
    assert!(error("[train.gradient]\nestimator = \"magic\"\n").contains("magic"));
    assert!(error("[trian]\n").contains("did you mean `train`"));
}

#[test]
fn impossible_settings_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let refuse = |train: Settings| {
        let error = refusal(begin(&run, &digits(train), &mut Silent));
        assert!(!run.exists(), "{error}");
        error
    };
    assert!(refuse(Settings { starts: Some(Starts::Weighted), ..lvs() }).contains("carry"));
    assert!(refuse(Settings { k: Some(TourLength::Dynamic), ..lvs() }).contains("dynamic"));
    assert!(refuse(Settings { row_fraction: Some(1.5.into()), ..lvs() }).contains("row-fraction"));
    assert!(refuse(Settings { max_states: Some(0), ..lvs() }).contains("max-states"));
    assert!(refuse(Settings { max_set_cost: Some(f64::NAN.into()), ..lvs() }).contains("max-set-cost"));
    assert!(
        refuse(Settings { k: Some(TourLength::Steps(u32::MAX)), ..lvs() }).contains("at most 10,000 steps")
    );
    let adam = Settings { optimizer: Some(Rule::Adam), beta1: Some(1.0), ..pcd() };
    assert!(refuse(adam).contains("beta1"));
    assert!(refuse(Settings { warm_up_epochs: Some(5), ..pcd() }).contains("never used"));
    assert!(refuse(Settings { learning_rate: Some(f64::NAN), ..pcd() }).contains("learning-rate"));
    assert!(refuse(Settings { batch_size: Some(0), ..pcd() }).contains("batch-size"));
    let late = Settings { snapshots: Some(Snapshots::from(vec![1, 6])), ..pcd() };
    assert!(refuse(late).contains("snapshots = 6"));
    // Digits here are cut at a threshold.
    assert!(refuse(Settings { redraw_bits: Some(true), ..pcd() }).contains("`binarize = bernoulli`"));
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (_, input) = cases().swap_remove(4);
    begin(&run, &input, &mut Script::stop_after(20)).unwrap();
    let checkpoint = run.join("checkpoints/latest.safetensors");
    let good = std::fs::read(&checkpoint).unwrap();
    for n in [0, 7, 100, good.len() / 2, good.len() - 1] {
        std::fs::write(&checkpoint, &good[..n]).unwrap();
        let error = refusal(go_on(&run, &mut Silent));
        assert!(error.contains("latest.safetensors"), "{error}");
    }
    let again = refusal(begin(&run, &input, &mut Silent));
    assert!(again.contains("it holds a run already"), "{again}");
}

#[test]
fn a_run_whose_settings_have_changed_names_the_layer_that_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    begin(&run, &digits(pcd()), &mut Script::stop_after(20)).unwrap();
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    std::fs::write(run.join("config.toml"), config.replace("n-hidden = 8", "n-hidden = 9")).unwrap();
    let error = refusal(go_on(&run, &mut Silent));
    assert!(error.contains("hidden units") && error.contains("expected 9, got 8"), "{error}");
}

/// Bars and stripes, 4 × 4: 30 patterns, so the best possible likelihood is −ln 30.
#[test]
fn the_exact_gradient_reaches_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataSpec { source: "bars-and-stripes:4".into(), ..DataSpec::default() };
    let train = Settings {
        n_hidden: Some(16),
        epochs: Some(200.into()),
        optimizer: Some(Rule::Adam),
        learning_rate: Some(0.2),
        eval_every: Some(EvalEvery::Epochs(200)),
        seed: Some(1),
        ..with(EstimatorName::Exact)
    };
    let run = folder.path().join("run");
    let outcome = trained(&run, &RunInput { data, train, ..RunInput::default() });
    let Outcome::Finished { metrics, .. } = outcome else { panic!("{outcome:?}") };
    let gap = -30f64.ln() - metrics.train_log_likelihood.unwrap();
    assert!(gap > -1e-9 && gap < 0.1, "{gap} nats from the optimum after {}", human_seconds(metrics.seconds));
}

/// Says stop the `n`th time that it is asked, wherever that is.
struct NthQuestion(AtomicU64, u64);

impl Progress for NthQuestion {
    fn cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) + 1 == self.1
    }
}

impl Listener for NthQuestion {}

/// The exact gradient can be stopped in the middle of an update, when the offsets have moved already.
#[test]
fn a_stop_within_an_update_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let input = digits(Settings { offset_rate: Some(0.5), ..with(EstimatorName::Exact) });
    trained(&folder.path().join("whole"), &input);
    let model = |run: &str| std::fs::read(folder.path().join(run).join("model.safetensors")).unwrap();
    for n in [1, 2, 3, 4, 22, 23] {
        let name = format!("stopped {n}");
        let run = folder.path().join(&name);
        let outcome = begin(&run, &input, &mut NthQuestion(AtomicU64::new(0), n)).unwrap();
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{outcome:?}");
        go_on(&run, &mut Silent).unwrap();
        assert!(model("whole") == model(&name), "stopped at question {n}");
    }
}

#[test]
fn a_run_that_stopped_early_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let input = digits(restless(1));
    let train = Settings { epochs: Some(200.into()), eval_every: Some(EvalEvery::Epochs(3)), ..input.train };
    let input = RunInput { train, ..input };
    assert!(matches!(trained(&run, &input), Outcome::Finished { early: true, .. }));
    let model = std::fs::read(run.join("model.safetensors")).unwrap();
    let again = go_on(&run, &mut Silent).unwrap();
    assert!(matches!(again, Outcome::Finished { early: true, .. }), "{again:?}");
    assert!(std::fs::read(run.join("model.safetensors")).unwrap() == model);
}

/// Training reaches the optimum of the weighted likelihood. A run resumes only with the same
/// weights.
#[test]
fn weights_come_from_a_file_and_are_checked_when_a_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // There are two kinds of rows, ten of each. The seed divides the file into parts, so all rows
    // of a kind have the same weight.
    let rows = ["1,1,0,0", "0,0,1,1"];
    let lines: Vec<&str> = (0..20).map(|r| rows[r % 2]).collect();
    std::fs::write(path("rows.csv"), lines.join("\n")).unwrap();
    let weights =
        |first: &'static str| (0..20).map(|r| if r % 2 == 0 { first } else { "1" }).collect::<Vec<_>>();
    std::fs::write(path("w.csv"), weights("3").join("\n")).unwrap();
    let input = RunInput {
        weights: Some(path("w.csv")),
        data: DataSpec { source: path("rows.csv").to_str().unwrap().into(), seed: 1, ..DataSpec::default() },
        train: Settings {
            n_hidden: Some(2),
            epochs: Some(3000.into()),
            learning_rate: Some(0.5),
            eval_every: Some(EvalEvery::Epochs(3000)),
            seed: Some(1),
            ..with(EstimatorName::Exact)
        },
        ..RunInput::default()
    };
    let Outcome::Finished { metrics: last, .. } = trained(&path("run"), &input) else { panic!() };
    // The weighted optimum: with weights 3 and 1 and n1, n2 training rows, p = 3 n1/(3 n1 + n2).
    let file = mclv::data::Split::Train.of_file(20, 1);
    let n1 = file.iter().filter(|&&r| r % 2 == 0).count() as f64;
    let p = 3.0 * n1 / (3.0 * n1 + (file.len() as f64 - n1));
    let optimum = p * p.ln() + (1.0 - p) * (1.0 - p).ln();
    let gap = optimum - last.train_log_likelihood.unwrap();
    assert!(gap > -1e-9 && gap < 0.05, "{gap} from the weighted optimum");
    let model = ModelFile::load(path("run").join("model.safetensors")).unwrap();
    assert_eq!(model.provenance.settings["weights"]["sha256"].as_str().unwrap().len(), 64);

    // A resumed run gives the same model with the same weights. Without the file, or with another,
    // it is rejected.
    let broken = path("broken");
    begin(&broken, &input, &mut Script::stop_after(100)).unwrap();
    let resume = || go_on(&broken, &mut Silent);
    std::fs::write(path("w.csv"), weights("2").join("\n")).unwrap();
    let changed = refusal(resume());
    assert!(changed.contains("w.csv") && changed.contains("has changed since the run began"), "{changed}");
    std::fs::remove_file(path("w.csv")).unwrap();
    assert!(refusal(resume()).contains("w.csv"));
    std::fs::write(path("w.csv"), weights("3").join("\n")).unwrap();
    let data = std::fs::read(path("rows.csv")).unwrap();
    std::fs::write(
        path("rows.csv"),
        lines[1..].iter().chain(&lines[..1]).copied().collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    let changed = refusal(resume());
    assert!(changed.contains("rows.csv") && changed.contains("has changed"), "{changed}");
    std::fs::write(path("rows.csv"), data).unwrap();
    resume().unwrap();
    let read = |run: &str| std::fs::read(path(run).join("model.safetensors")).unwrap();
    assert!(read("run") == read("broken"));

    // The file may have one weight for each training row instead. Any other number is rejected.
    std::fs::write(path("w.csv"), vec!["1"; 16].join("\n")).unwrap();
    trained(&path("sixteen"), &input);
    std::fs::write(path("w.csv"), vec!["1"; 17].join("\n")).unwrap();
    let error = refusal(begin(&path("none"), &input, &mut Silent));
    assert!(error.contains("17 weights for 16 training rows"), "{error}");
}

/// Parts in files of their own: they are counted, they choose the best model, they are recorded, and
/// a run does not go on with others.
#[test]
fn parts_in_files_of_their_own_belong_to_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &[&str]| {
        let lines: Vec<&str> = (0..20).map(|r| rows[r % rows.len()]).collect();
        std::fs::write(folder.path().join(name), lines.join("\n")).unwrap();
    };
    write("rows.csv", &["1,1,0,0", "1,1,0,0", "0,0,1,1"]);
    write("valid.csv", &["1,1,0,0"]);
    write("test.csv", &["0,1,1,0"]);
    let data = DataSpec {
        source: "rows.csv".into(),
        validation: Some("valid.csv".into()),
        test: Some("test.csv".into()),
        folder: Some(folder.path().into()),
        ..DataSpec::default()
    };
    let train =
        Settings { n_hidden: Some(1), epochs: Some(30.into()), seed: Some(1), ..with(EstimatorName::Exact) };
    let input = RunInput { data, train, ..RunInput::default() };
    let text = "20 train (all rows of rows.csv), 20 validation (valid.csv), 20 test (test.csv)";
    assert_eq!(Run::load(input.clone(), &Silent).unwrap().parts().to_string(), text);
    let path = |name: &str| folder.path().join(name);
    let Outcome::Finished { metrics, .. } = trained(&path("run"), &input) else { panic!() };
    assert!(metrics.validation_log_likelihood.unwrap() > metrics.train_log_likelihood.unwrap());
    let model = ModelFile::load(path("run").join("model.safetensors")).unwrap();
    let files = model.provenance.settings["files"].as_array().unwrap();
    assert_eq!(files.iter().map(|file| &file["file"]).collect::<Vec<_>>(), ["valid.csv", "test.csv"]);
    assert_eq!(model.provenance.data.unwrap().division.as_deref(), Some("all rows train"));

    begin(&path("broken"), &input, &mut Script::stop_after(5)).unwrap();
    let resume = || go_on(&path("broken"), &mut Silent);
    write("valid.csv", &["1,1,0,1"]);
    let changed = refusal(resume());
    assert!(
        changed.contains("valid.csv") && changed.contains("has changed since the run began"),
        "{changed}"
    );
    write("valid.csv", &["1,1,0,0"]);
    assert_eq!(Run::open(&path("broken"), &Silent).unwrap().parts().to_string(), text);
    resume().unwrap();
    let read = |run: &str| std::fs::read(path(run).join("model.safetensors")).unwrap();
    assert!(read("run") == read("broken"));
}

#[test]
fn rows_are_counted_with_those_that_the_settings_hold_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, "1,0\n0,1\n".repeat(20)).unwrap();
    let input = |no_validation, share: f64| RunInput {
        data: DataSpec { source: path.to_str().unwrap().into(), no_validation, ..DataSpec::default() },
        train: Settings {
            validation_fraction: (share > 0.0).then(|| share.into()),
            n_hidden: Some(1),
            epochs: Some(1.into()),
            ..with(EstimatorName::Exact)
        },
        ..RunInput::default()
    };
    let text = |no_validation, share| {
        Run::load(input(no_validation, share), &Silent).map(|run| run.parts().to_string())
    };
    assert_eq!(text(true, 0.0).unwrap(), "40 train (all rows of rows.csv), no validation, no test");
    assert_eq!(
        text(false, 0.25).unwrap(),
        "24 train (drawn from rows.csv by seed 0), 8 validation (a share of 0.25 of the training rows), \
         4 test (drawn from rows.csv by seed 0); 4 rows are not used"
    );
    let error = text(true, 0.25).unwrap_err().to_string();
    assert!(error.contains("`no-validation` cannot be used with `validation-fraction = 0.25`"), "{error}");
    // What is counted is what trains.
    let run = Run::load(input(false, 0.25), &Silent).unwrap();
    let mut metrics = None;
    if let Outcome::Finished { metrics: last, .. } = run.training().fit(run.rows()).unwrap().outcome {
        metrics = Some(last);
    }
    assert!(metrics.unwrap().validation_log_likelihood.is_some());
}

#[test]
fn a_file_of_a_few_rows_can_be_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("few.csv");
    std::fs::write(&path, "1,0\n0,1\n1,1\n").unwrap();
    for (name, settings) in [
        ("cd", with(EstimatorName::Cd)),
        ("pcd", Settings { k: Some(TourLength::Steps(1)), n_chains: Some(3.into()), ..pcd() }),
        ("lvs", lvs()),
        ("exact", with(EstimatorName::Exact)),
    ] {
        let data = DataSpec { source: path.to_str().unwrap().into(), ..DataSpec::default() };
        let train = Settings { n_hidden: Some(1), epochs: Some(3.into()), ..settings };
        let run = folder.path().join(name);
        let outcome = trained(&run, &RunInput { data, train, ..RunInput::default() });
        let Outcome::Finished { metrics, .. } = outcome else { panic!("{outcome:?}") };
        assert!(metrics.train_log_likelihood.unwrap().is_finite());
        assert_eq!(metrics.validation_log_likelihood, None);
    }
}

#[test]
fn an_update_from_which_nothing_was_learnt_has_no_gradient() {
    let digits = mclv::data::load(&DataSpec::default(), &mclv::progress::Silent).unwrap();
    // 60 fair hidden units never come back to one of a few states in one step.
    let settings = Settings {
        n_hidden: Some(60),
        epochs: Some(1.into()),
        unfinished: Some(Unfinished::Drop),
        starts: Some(Starts::Fresh),
        row_fraction: Some(0.01.into()),
        ..lvs()
    };
    let mut session = Training::new(settings).unwatched().begin(&digits.rows).unwrap();
    let before = session.rbm().clone();
    session.epoch().unwrap();
    let metrics = &session.history()[0];
    let tours = metrics.tours.as_ref().unwrap();
    assert_eq!((tours.n_skipped_updates, tours.n_completed), (15, 0));
    assert_eq!((metrics.gradient_norm, session.rbm().weights()), (0.0, before.weights()));
}

/// The set grows over rows, then over samples of each, until enough tours return; it stays within its budgets, and
/// shrinks where it is larger than it need be.
#[test]
fn the_stopping_set_adapts_to_a_completion_within_its_budgets() {
    let spec = DataSpec { binarize: Binarize::Threshold(0.5), ..DataSpec::default() };
    let digits = mclv::data::load(&spec, &mclv::progress::Silent).unwrap();
    let sizes = |settings: Settings| {
        let settings =
            Settings { n_hidden: Some(12), epochs: Some(12.into()), learning_rate: Some(0.1), ..settings };
        let trained = Training::new(settings).unwatched().fit(&digits.rows).unwrap();
        trained.history.into_iter().map(|metrics| metrics.tours.unwrap()).collect::<Vec<_>>()
    };
    let n_rows = digits.n_rows();
    let small = Settings {
        row_fraction: Some(0.05.into()),
        target_completion: Some(0.8.into()),
        redraw_every: Some(2),
        ..lvs()
    };
    let first = (n_rows as f64 * 0.05).ceil() as usize;

    let grown = sizes(small.clone());
    assert_eq!((grown[0].n_rows, grown[1].n_rows), (first, first), "a set is kept for two epochs");
    assert_eq!((grown[2].n_rows, grown[4].n_rows), (2 * first, 4 * first));
    let last = grown.last().unwrap();
    assert!(
        last.set_size > 3 * grown[0].set_size && last.completion() > 2.0 * grown[0].completion(),
        "{last:?}"
    );

    let memory = sizes(Settings { max_states: Some(250), ..small.clone() });
    assert!(memory.iter().all(|t| t.n_rows * t.samples_per_row <= 250 && t.set_size <= 250));
    assert_eq!(memory.last().unwrap().n_rows, 2 * first);

    // A large set at first: halved until a state costs less than a tenth of a step.
    let time = sizes(Settings {
        row_fraction: Some(1.0.into()),
        max_set_cost: Some(0.1.into()),
        redraw_every: Some(1),
        ..small.clone()
    });
    assert_eq!(time[0].n_rows, n_rows);
    let last = time.last().unwrap();
    assert!(last.n_rows <= n_rows / 4, "{last:?}");

    let shrunk = sizes(Settings {
        row_fraction: Some(1.0.into()),
        samples_per_row: Some(4),
        target_completion: Some(0.01.into()),
        redraw_every: Some(1),
        ..small
    });
    assert_eq!((shrunk[0].samples_per_row, shrunk[1].samples_per_row, shrunk[2].samples_per_row), (4, 2, 1));
    assert_eq!(shrunk[3].n_rows, n_rows / 2);
}

#[test]
fn what_is_recorded_is_what_the_listener_heard() {
    let carry = Settings { row_fraction: Some(0.002.into()), ..lvs() };
    let chains = Settings { k: Some(TourLength::Steps(1)), n_chains: Some(50.into()), ..pcd() };
    let cases = [(chains, Some(50)), (carry, Some(128)), (with(EstimatorName::Exact), None)];
    for (settings, n_chains) in cases {
        let folder = tempfile::tempdir().unwrap();
        let input = digits(Settings { learning_rate: Some(0.1), ..settings });
        let mut script = Script::default();
        begin(folder.path(), &input, &mut script).unwrap();

        let text = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
        let recorded: Vec<Metrics> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let warnings: Vec<Warning> = recorded.iter().flat_map(|m| m.warnings.clone()).collect();
        assert_eq!(warnings, script.warnings);
        let evaluated = script.evaluated;
        assert_eq!(evaluated.iter().map(|e| e.0).collect::<Vec<_>>(), [2, 4, 5]);

        // The last checkpoint shows the end.
        let snapshot = Snapshot::load(folder.path()).unwrap();
        let (epoch, rbm, chains) = evaluated.last().unwrap();
        assert_eq!((snapshot.epoch, &snapshot.rbm, &snapshot.chains), (*epoch, rbm, chains));
        assert_eq!(chains.as_ref().map(BitRows::n_rows), n_chains);
    }
    // Metrics of before there were warnings can still be read.
    let old =
        r#"{"epoch":1,"n_hidden":4,"learning_rate":0.1,"gradient_norm":1.0,"weight_rms":0.1,"seconds":0.5}"#;
    assert!(serde_json::from_str::<Metrics>(old).unwrap().warnings.is_empty());
}
