//! Runs that start from a model, and runs that go on after their end.

use mclv::data::{Binarize, DataSpec};
use mclv::progress::Silent;
use mclv::settings::{EstimatorName, EvalEvery, Limit, Settings};
use mclv::train::{Outcome, Run, RunFolder, RunInput, StartModel, Trained, Training};
use mclv::{ModelFile, Result};
use std::path::Path;

fn digits(train: Settings) -> RunInput {
    let data =
        DataSpec { source: "digits".into(), binarize: Binarize::Threshold(0.5), ..DataSpec::default() };
    let train = Settings {
        n_hidden: Some(6),
        epochs: Some(4.into()),
        eval_every: Some(EvalEvery::Epochs(2)),
        seed: Some(3),
        ..train
    };
    RunInput { data, train, ..RunInput::default() }
}

fn train(folder: &Path, input: RunInput) -> Result<Trained> {
    let run = Run::load(input, &Silent)?;
    run.training().in_folder(folder).fit(run.rows())
}

fn resume(folder: &Path, run: &Run) -> Result<Trained> {
    run.training().resume(folder, run.rows())?.finish()
}

fn from(input: RunInput, file: impl Into<std::path::PathBuf>) -> RunInput {
    let train = Settings { n_hidden: None, ..input.train };
    RunInput { from: Some(StartModel { file: file.into(), sha256: None }), train, ..input }
}

#[test]
fn a_run_starts_from_a_model_file_and_records_it() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name);
    let first = train(&path("first"), digits(Settings::default())).unwrap().model;
    let best = path("first/best.safetensors");
    let still = Settings { learning_rate: Some(1e-30), ..Settings::default() };
    let same = train(&path("second"), from(digits(still.clone()), path("first/model.safetensors"))).unwrap();
    assert_eq!(same.model.weights(), first.weights());
    // A checkpoint of the first run is a model file.
    let checkpoint = RunFolder::new(path("first")).checkpoint();
    let model = ModelFile::load(&checkpoint).unwrap();
    let saved = ModelFile::load(path("first/model.safetensors")).unwrap();
    assert_eq!((&model.rbm, &model.provenance.data), (&saved.rbm, &saved.provenance.data));
    assert_eq!(model.provenance.settings, saved.provenance.settings);
    let again = train(&path("third"), from(digits(still), &checkpoint)).unwrap();
    assert_eq!(again.model.weights(), first.weights());

    // The configuration and the model say where the run started, and give it again.
    let input = RunFolder::new(path("second")).read_input().unwrap();
    let recorded = input.from.clone().unwrap();
    assert_eq!(recorded.sha256.as_ref().map(String::len), Some(64));
    let model = ModelFile::load(path("second/model.safetensors")).unwrap();
    assert_eq!(model.provenance.settings["from"]["sha256"], recorded.sha256.unwrap().as_str());
    train(&path("copy"), input.clone()).unwrap();
    let bytes = |run: &str| std::fs::read(path(run).join("model.safetensors")).unwrap();
    assert!(bytes("copy") == bytes("second"));

    // A changed model is refused, and so is another number of units.
    ModelFile::new(first.clone()).save(path("first/model.safetensors")).unwrap();
    let error = train(&path("changed"), input).unwrap_err().to_string();
    assert!(error.contains("has changed since the run began"), "{error}");
    let other = Settings { n_hidden: Some(7), ..digits(Settings::default()).train };
    let error = Training::new(other.clone()).from_model(first.clone()).unwatched();
    let rows = Run::load(digits(Settings::default()), &Silent).unwrap();
    let error = error.fit(rows.rows()).unwrap_err().to_string();
    assert!(error.contains("n-hidden = 7") && error.contains("has 6 hidden units"), "{error}");
    let input = RunInput { train: other, ..from(digits(Settings::default()), &best) };
    let error = train(&path("other"), input).unwrap_err().to_string();
    assert!(error.contains("has 6 hidden units"), "{error}");
    let bars = DataSpec { source: "bars-and-stripes:3".into(), ..DataSpec::default() };
    let input = RunInput { data: bars, ..from(digits(Settings::default()), &best) };
    let error = train(&path("other"), input).unwrap_err().to_string();
    assert!(error.contains("64 visible units") && error.contains("9 columns"), "{error}");
    assert!(!path("other").exists() && !path("changed").exists());
    // A run that goes on does not need the model that it started from.
    std::fs::remove_dir_all(path("first")).unwrap();
    let trained = resume(&path("second"), &Run::open(&path("second"), &Silent).unwrap()).unwrap();
    assert_eq!(trained.model, same.model);
}

#[test]
fn more_epochs_follow_with_a_new_schedule_and_the_configuration_gives_the_whole_run() {
    for gradient in [EstimatorName::Pcd, EstimatorName::Lvs] {
        let temporary = tempfile::tempdir().unwrap();
        let path = |name: &str| temporary.path().join(name);
        let settings = Settings { gradient: Some(gradient), ..Settings::default() };
        let first = train(&path("run"), digits(settings)).unwrap();
        let extended = Run::extend(&path("run"), 3, &Silent).unwrap();
        // Nothing is written before the training goes on.
        let old = RunFolder::new(path("run")).read_input().unwrap();
        assert_eq!(old.train.epochs, Some(4.into()));
        let trained = resume(&path("run"), &extended).unwrap();
        assert!(matches!(trained.outcome, Outcome::Finished { early: false, .. }));
        assert_eq!((trained.settings.epochs, trained.settings.restarts.epochs()), (7, [4].as_slice()));
        let rates: Vec<f64> =
            trained.history.iter().filter(|m| m.epoch > 0).map(|m| m.learning_rate).collect();
        let highest = rates[0];
        let expected = [1.0, 0.75, 0.5, 0.25, 1.0, 2.0 / 3.0, 1.0 / 3.0].map(|share| share * highest);
        assert!(rates.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{rates:?}");
        // The model at the first end is kept as a snapshot.
        let snapshot = ModelFile::load(RunFolder::new(path("run")).snapshot(4)).unwrap();
        assert_eq!(snapshot.rbm, first.model);
        // The same settings without an end in between give the same model.
        let whole = train(&path("whole"), RunFolder::new(path("run")).read_input().unwrap()).unwrap();
        assert_eq!(whole.model, trained.model);
        // Two more epochs, interrupted and resumed without settings.
        let again = Run::extend(&path("run"), 2, &Silent).unwrap();
        let mut session = again.training().resume(&path("run"), again.rows()).unwrap();
        assert!(session.epoch().unwrap().is_none());
        drop(session);
        let last = resume(&path("run"), &Run::open(&path("run"), &Silent).unwrap()).unwrap();
        assert_eq!((last.settings.epochs, last.settings.restarts.epochs()), (9, [4, 7].as_slice()));
        let whole = train(&path("longer"), RunFolder::new(path("run")).read_input().unwrap()).unwrap();
        assert_eq!(whole.model, last.model);
    }
}

#[test]
fn only_a_run_that_has_ended_is_given_more_epochs() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name);
    let run = Run::load(digits(Settings::default()), &Silent).unwrap();
    let mut session = run.training().in_folder(&path("run")).begin(run.rows()).unwrap();
    session.epoch().unwrap();
    drop(session);
    let refused = |n| Run::extend(&path("run"), n, &Silent).err().unwrap().to_string();
    assert!(refused(3).contains("has made 0 of 4 epochs"), "{}", refused(3));
    assert!(refused(0).contains("number of epochs to add"), "{}", refused(0));

    // A run that patience ended has ended, and its patience begins again.
    let restless = Settings {
        epochs: Some(50.into()),
        patience: Some(Limit::At(1)),
        learning_rate: Some(1e-30),
        eval_every: Some(EvalEvery::Epochs(1)),
        ..Settings::default()
    };
    let settings = restless.over(digits(Settings::default()).train);
    let input = RunInput { train: settings, ..digits(Settings::default()) };
    let first = train(&path("early"), input).unwrap();
    assert!(matches!(first.outcome, Outcome::Finished { early: true, .. }));
    let done = first.history.last().unwrap().epoch;
    let more = resume(&path("early"), &Run::extend(&path("early"), 5, &Silent).unwrap()).unwrap();
    assert!(more.history.last().unwrap().epoch > done && more.settings.epochs == done + 5);
}

#[test]
fn the_shape_of_pictures_travels_in_the_model() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name);
    let lines: Vec<&str> = (0..20).map(|r| ["0,1,0,1,1,0", "1,1,0,0,0,1"][r % 2]).collect();
    std::fs::write(path("rows.csv"), lines.join("\n")).unwrap();
    let data = DataSpec { source: path("rows.csv").to_str().unwrap().into(), ..DataSpec::default() };
    let train_it = |run: &str, shape, from: Option<&str>| {
        let settings = Settings { n_hidden: Some(2), epochs: Some(1.into()), ..Settings::default() };
        let from = from.map(|file| StartModel { file: path(file), sha256: None });
        train(
            &path(run),
            RunInput { data: data.clone(), train: settings, shape, from, ..RunInput::default() },
        )
    };
    let shape_of = |run: &str| {
        let model = ModelFile::load(path(run).join("model.safetensors")).unwrap();
        model.provenance.data.unwrap().image_shape
    };
    train_it("plain", None, None).unwrap();
    train_it("shaped", Some((2, 3)), None).unwrap();
    train_it("inherited", None, Some("shaped/model.safetensors")).unwrap();
    assert_eq!(
        [shape_of("plain"), shape_of("shaped"), shape_of("inherited")],
        [None, Some((2, 3)), Some((2, 3))]
    );
    let input = RunFolder::new(path("inherited")).read_input().unwrap();
    assert_eq!(input.shape, Some((2, 3)));
    let error = train_it("wrong", Some((2, 2)), None).unwrap_err().to_string();
    assert!(error.contains("shape = 2x2") && error.contains("rows of 6 values"), "{error}");
}

#[test]
fn a_run_with_the_largest_seed_is_resumed() {
    let temporary = tempfile::tempdir().unwrap();
    let mut input = digits(Settings::default());
    (input.train.seed, input.data.seed) = (Some(u64::MAX), u64::MAX);
    let first = train(temporary.path(), input).unwrap();
    let read = RunFolder::new(temporary.path()).read_input().unwrap();
    assert_eq!((read.train.seed, read.data.seed), (Some(u64::MAX), u64::MAX));
    let again = resume(temporary.path(), &Run::open(temporary.path(), &Silent).unwrap()).unwrap();
    assert_eq!((again.model, again.settings.seed), (first.model, u64::MAX));
}
