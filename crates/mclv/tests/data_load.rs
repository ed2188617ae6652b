//! Load data sets by name and path, in parts, with and without their files.

use std::fs;
use std::path::{Path, PathBuf};

use mclv::Error;
use mclv::data::{
    Binarize, DataSource, DataSpec, Dataset, Mirrors, Origin, Rows, SearchPath, Split, binarize,
    catalogue_in, fetch_with, load_with, open_with,
};
use mclv::progress::Silent;

fn search(dir: &Path) -> SearchPath {
    SearchPath { data_dir: None, cache_dir: dir.join("cache") }
}

/// A listener that allows everything.
#[cfg(feature = "fetch")]
struct Allows;

#[cfg(feature = "fetch")]
impl mclv::progress::Progress for Allows {
    fn report(&self, _done: u64, _total: u64) {}

    fn may_fetch(&self, _how: &str) -> bool {
        true
    }
}

fn try_load(spec: &DataSpec) -> mclv::Result<Dataset> {
    let dir = tempfile::tempdir().unwrap();
    load_with(spec, &search(dir.path()), &Mirrors::none(), &Silent)
}

fn load(spec: &DataSpec) -> Dataset {
    try_load(spec).unwrap_or_else(|e| panic!("{e}"))
}

fn spec(source: &str) -> DataSpec {
    DataSpec { source: source.into(), ..DataSpec::default() }
}

#[test]
fn built_in_sets_load_by_name() {
    for (source, name, shape) in [
        ("digits", "digits", (1797, 64)),
        ("bars-and-stripes", "bars-and-stripes:4", (30, 16)),
        ("bars-and-stripes:3", "bars-and-stripes:3", (14, 9)),
        ("ising", "ising", (10_000, 16)),
        ("ising:0.3", "ising:0.3", (10_000, 16)),
    ] {
        let data = load(&spec(source));
        assert_eq!((data.name.as_str(), (data.n_rows(), data.n_columns())), (name, shape));
        assert_eq!((data.provenance.n_rows, data.provenance.n_columns), shape);
        assert_eq!(data.provenance.name, name);
    }
}

#[test]
fn every_split_of_bars_and_stripes_is_the_whole() {
    let all = load(&spec("bars-and-stripes"));
    for split in Split::EACH {
        let part = load(&DataSpec { split, ..spec("bars-and-stripes") });
        assert_eq!((&part.rows, part.provenance.split), (&all.rows, split));
        assert_eq!(part.provenance.seed, None);
    }
}

#[test]
fn the_ceiling_of_the_log_likelihood_survives_binarisation() {
    for how in ["grey", "threshold=0.5", "bernoulli"] {
        let spec = DataSpec { binarize: how.parse().unwrap(), ..spec("ising:0") };
        assert!((load(&spec).best_log_likelihood.unwrap() + 65_536f64.ln()).abs() < 1e-9);
    }
}

#[test]
fn binarisation_is_done_and_told() {
    let grey = load(&spec("digits"));
    assert_eq!(grey.provenance.preprocessing, "value/16");
    let threshold = load(&DataSpec { binarize: Binarize::Threshold(0.5), ..spec("digits") });
    assert_eq!(threshold.provenance.preprocessing, "value/16, threshold=0.5");
    assert_eq!(
        (threshold.rows, threshold.provenance.seed),
        (binarize(&grey.rows, Binarize::Threshold(0.5), 0, 0), None)
    );
    let error = try_load(&DataSpec { binarize: Binarize::Threshold(2.0), ..spec("digits") }).unwrap_err();
    assert!(matches!(error, Error::InvalidSetting { .. }), "{error}");
}

#[test]
fn epoch_0_of_the_training_rows_is_what_load_draws() {
    let train = DataSpec { split: Split::Train, seed: 5, ..spec("digits") };
    let drawn = load(&DataSpec { binarize: Binarize::Bernoulli, ..train.clone() });
    assert_eq!(drawn.rows, binarize(&load(&train).rows, Binarize::Bernoulli, 5, 0));
    assert_eq!(drawn.provenance.seed, Some(5));
}

#[test]
fn a_file_is_whole_or_split_by_the_seed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.csv");
    let text: String = (0..50).map(|i| format!("{},row{i}\n", f64::from(i) / 64.0)).collect();
    fs::write(&path, text).unwrap();
    let spec = |split, seed| DataSpec {
        split,
        seed,
        label_column: Some("-1".into()),
        ..spec(path.to_str().unwrap())
    };
    let all = load(&spec(Split::All, 1));
    assert_eq!((all.n_rows(), all.provenance.seed), (50, None));
    let parts = [Split::Train, Split::Validation, Split::Test].map(|split| load(&spec(split, 1)));
    assert_eq!(parts.each_ref().map(Dataset::n_rows), [40, 5, 5]);
    for part in &parts {
        assert_eq!((part.provenance.n_rows, part.provenance.seed), (part.n_rows(), Some(1)));
        // Each row still has its own label.
        let Rows::Reals(rows) = &part.rows else { panic!("packed") };
        for (r, value) in rows.values().iter().enumerate() {
            assert_eq!(part.labels.as_ref().unwrap().name(r), format!("row{}", value * 64.0));
        }
    }
    assert_ne!(load(&spec(Split::Train, 2)).rows, parts[0].rows);
}

/// A folder with a table of 40 rows, whose first column counts them in 64ths.
fn table() -> (tempfile::TempDir, DataSpec) {
    let dir = tempfile::tempdir().unwrap();
    let word = |i: usize| ["train", "dev", "Test", "TRAINING"][i % 4];
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", i as f64 / 64.0, i % 2, word(i))).collect();
    fs::write(dir.path().join("table.csv"), format!("x,y,part\n{rows}")).unwrap();
    let plain: String = (0..40).map(|i| format!("{},{}\n", i as f64 / 64.0, i % 2)).collect();
    fs::write(dir.path().join("plain.csv"), plain).unwrap();
    fs::write(dir.path().join("valid.csv"), "x,y\n0.5,1\n0.25,0\n0.75,1\n").unwrap();
    fs::write(dir.path().join("wide.csv"), "0,1,1\n").unwrap();
    let words: String = (0..40).map(|i| format!("{}\n", word(i))).collect();
    fs::write(dir.path().join("parts.txt"), format!("part\n{words}")).unwrap();
    let numbers: String = (0..40).map(|i| format!("{}\n", [0, 1, 2, 0][i % 4])).collect();
    fs::write(dir.path().join("numbers.csv"), numbers).unwrap();
    let spec = DataSpec { folder: Some(dir.path().into()), ..spec("table.csv") };
    (dir, spec)
}

/// The first column in 64ths.
fn counted(set: &Dataset) -> Vec<usize> {
    (0..set.n_rows()).map(|r| (64.0 * set.rows.get(r, 0)) as usize).collect()
}

#[test]
fn parts_are_those_that_a_column_or_a_file_names() {
    let (_dir, spec) = table();
    let by_column = DataSpec { split_column: Some("part".into()), ..spec.clone() };
    let by_number = DataSpec { split_column: Some("-1".into()), ..spec.clone() };
    let of_plain =
        |file: &str| DataSpec { split_file: Some(file.into()), source: "plain.csv".into(), ..spec.clone() };
    let parts_of = |spec: &DataSpec| {
        let mut source = open(spec);
        let parts = source.parts().unwrap();
        let rows = Split::EACH.map(|split| counted(&source.part(split, Binarize::Grey).unwrap()));
        for (k, split) in Split::EACH.into_iter().enumerate() {
            assert_eq!(source.row_numbers(split).as_ref(), Some(&rows[k]));
        }
        assert_eq!((parts.train.n_rows, parts.is_drawn), (20, false));
        (rows, parts.to_string(), source.part(Split::Train, Binarize::Grey).unwrap().provenance)
    };
    let where_is = |k: &[usize]| (0..40).filter(|i| k.contains(&(i % 4))).collect::<Vec<_>>();
    let expected = [where_is(&[0, 3]), where_is(&[1]), where_is(&[2]), where_is(&[0, 1, 2, 3])];
    for (spec, origin) in [
        (by_column, "table.csv by its column \"part\""),
        (by_number, "table.csv by column -1"),
        (of_plain("parts.txt"), "plain.csv by parts.txt"),
        (of_plain("numbers.csv"), "plain.csv by numbers.csv"),
    ] {
        let (rows, text, provenance) = parts_of(&spec);
        assert_eq!(rows, expected, "{origin}");
        assert_eq!(text, format!("20 train, 10 validation, 10 test ({origin})"));
        assert!(provenance.seed.is_none() && origin.contains(&provenance.division.unwrap()[..8]));
    }
}

#[test]
fn validation_and_test_rows_may_have_their_own_files() {
    let (dir, spec) = table();
    let plain = DataSpec { source: "plain.csv".into(), ..spec };
    let own =
        DataSpec { validation: Some("valid.csv".into()), test: Some("plain.csv".into()), ..plain.clone() };
    let mut source = open(&own);
    assert_eq!(
        source.parts().unwrap().to_string(),
        "40 train (all rows of plain.csv), 3 validation (valid.csv), 40 test (plain.csv)"
    );
    assert_eq!(counted(&source.part(Split::Train, Binarize::Grey).unwrap()), (0..40).collect::<Vec<_>>());
    let validation = source.part(Split::Validation, Binarize::Grey).unwrap();
    assert_eq!((counted(&validation), validation.name.as_str()), (vec![32, 16, 48], "valid.csv"));
    assert_eq!(validation.provenance.split, Split::Validation);
    // With one file, the other part is empty, and nothing is drawn.
    let mut source = open(&DataSpec { test: None, ..own.clone() });
    assert_eq!(
        source.parts().unwrap().to_string(),
        "40 train (all rows of plain.csv), 3 validation (valid.csv), no test"
    );
    let error = source.part(Split::Test, Binarize::Grey).unwrap_err().to_string();
    assert!(error.contains("the test part of plain.csv (40 rows) is empty: all its rows train"), "{error}");
    // A named set keeps its other parts.
    let path = dir.path().join("valid.csv").to_str().unwrap().to_owned();
    let mut ising = open(&DataSpec { source: "digits".into(), validation: Some(path), ..own.clone() });
    let error = ising.part(Split::Validation, Binarize::Grey).unwrap_err().to_string();
    assert!(error.contains("valid.csv (validation rows), as many as those of digits"), "{error}");
    assert_eq!(ising.part(Split::Train, Binarize::Grey).unwrap().n_rows(), 1297);
    let wide = DataSpec { validation: Some("wide.csv".into()), ..own };
    let error = open(&wide).parts().unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { expected: 2, got: 3, .. }), "{error}");
}

#[test]
fn nothing_is_held_out_if_all_rows_train() {
    let (_dir, spec) = table();
    let all = |source: &str| DataSpec { no_validation: true, source: source.into(), ..spec.clone() };
    let mut file = open(&all("plain.csv"));
    assert_eq!(file.parts().unwrap().to_string(), "40 train (all rows of plain.csv), no validation, no test");
    assert_eq!(file.part(Split::Train, Binarize::Grey).unwrap().n_rows(), 40);
    let mut digits = open(&all("digits"));
    assert_eq!(digits.parts().unwrap().to_string(), "1497 train, 300 test (digits), no validation");
    let rows = |split| load(&DataSpec { split, ..all("digits") }).rows;
    let whole = load(&DataSpec { source: "digits".into(), ..DataSpec::default() }).rows;
    assert_eq!(rows(Split::Train), whole.select(&(0..1497).collect::<Vec<_>>()));
    assert_eq!(rows(Split::Test), whole.select(&(1497..1797).collect::<Vec<_>>()));
    let error = digits.part(Split::Validation, Binarize::Grey).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
    for (source, text) in [
        ("ising", "10000 train, 10000 test (ising: drawn by seed 0), no validation"),
        ("bars-and-stripes:3", "14 train, 14 test (bars-and-stripes:3: every pattern), no validation"),
        ("mnist", "60000 train, 10000 test (mnist), no validation"),
    ] {
        assert_eq!(open(&all(source)).parts().unwrap().to_string(), text);
    }
    assert_eq!(
        open(&DataSpec { no_validation: false, ..all("plain.csv") }).parts().unwrap().to_string(),
        "32 train, 4 validation, 4 test (drawn from plain.csv by seed 0)"
    );
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    let (dir, spec) = table();
    fs::write(dir.path().join("few.txt"), "train\ntest\n").unwrap();
    fs::write(dir.path().join("words.txt"), "train\ntest\nholdout\n").unwrap();
    let some = |text: &str| Some(text.to_string());
    let plain = DataSpec { source: "plain.csv".into(), ..spec.clone() };
    for (spec, words) in [
        (
            DataSpec { no_validation: true, validation: some("valid.csv"), ..plain.clone() },
            "`no-validation` cannot be used with `validation = valid.csv`",
        ),
        (
            DataSpec { no_validation: true, split_column: some("part"), ..spec.clone() },
            "`no-validation` cannot be used with `split-column = part`",
        ),
        (
            DataSpec { split_file: some("parts.txt"), split_column: some("part"), ..spec.clone() },
            "`split-file` cannot be used",
        ),
        (
            DataSpec { validation: some("valid.csv"), split_column: some("part"), ..spec.clone() },
            "valid.csv holds the validation rows; name them in one place",
        ),
        (
            DataSpec { label_column: some("part"), split_column: some("part"), ..spec.clone() },
            "`split-column` cannot be used with `label-column = part`",
        ),
        (DataSpec { split_column: some("kind"), ..spec.clone() }, "has no split column \"kind\""),
        (DataSpec { split_column: some("y"), ..spec.clone() }, "\"train\" is not a number"),
        (
            DataSpec { split_column: some("0"), ..plain.clone() },
            "\"0.015625\" is not a part; write train, validation or test, or 0, 1 or 2 (line 2, column 1)",
        ),
        (
            DataSpec { split_file: some("few.txt"), ..plain.clone() },
            "parts in few.txt, one for each row of plain.csv: expected 40, got 2",
        ),
        (DataSpec { split_file: some("words.txt"), ..plain.clone() }, "\"holdout\" is not a part"),
        (DataSpec { split_file: some("parts.txt"), ..DataSpec::default() }, "a named set has its own parts"),
        (
            DataSpec { scale: Some("255".parse().unwrap()), ..DataSpec::default() },
            "a named set has its own range",
        ),
        (
            DataSpec { scale: Some("255".parse().unwrap()), spins: true, ..plain.clone() },
            "`spins` cannot be used with `scale = 255`",
        ),
    ] {
        let error = try_load(&spec).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_file_is_found_again_from_elsewhere() {
    let (dir, spec) = table();
    let plain = DataSpec { source: "plain.csv".into(), ..spec };
    assert_eq!(plain.locate("plain.csv"), dir.path().join("plain.csv"));
    assert_eq!(plain.locate("no-such.csv"), Path::new("no-such.csv"));
    assert_eq!(plain.clone().anchored(), plain);
    let here = DataSpec { source: "plain.csv".into(), ..DataSpec::default() };
    assert_eq!(here.clone().anchored().folder, std::env::current_dir().ok());
    assert_eq!(DataSpec::default().anchored(), DataSpec::default());
    // Everything was moved: the file is looked for above the run folder.
    let gone = DataSpec { folder: Some("/no/such/folder".into()), ..plain.clone() };
    assert!(try_load(&gone).is_err());
    assert_eq!(gone.near(&dir.path().join("runs/x")).folder, Some(dir.path().into()));
    assert_eq!(load(&here.near(&dir.path().join("runs/x"))).n_rows(), 40);
    // Absolute paths need no folder.
    let path = dir.path().join("plain.csv").to_str().unwrap().to_owned();
    assert_eq!(plain.detached(), DataSpec { source: path, ..DataSpec::default() });
    assert_eq!(DataSpec::default().detached(), DataSpec::default());
}

fn open(spec: &DataSpec) -> DataSource<'static> {
    open_with(spec, &search(Path::new("no-such-folder")), &Mirrors::none(), &Silent).unwrap()
}

/// Every part in every preparation.
fn parts() -> impl Iterator<Item = (Split, Binarize)> {
    let each = [Binarize::Grey, Binarize::Threshold(0.5), Binarize::Bernoulli];
    Split::EACH.into_iter().flat_map(move |split| each.map(|binarize| (split, binarize)))
}

#[test]
fn every_part_of_an_open_set_is_what_load_gives() {
    for source in ["digits", "bars-and-stripes:3", "ising:0.3"] {
        let mut set = open(&spec(source));
        assert_eq!(set.row_numbers(Split::Train), None);
        for (split, binarize) in parts() {
            let loaded = load(&DataSpec { split, binarize, ..spec(source) });
            assert_eq!(set.part(split, binarize).unwrap(), loaded, "{source} {split} {binarize}");
        }
    }
}

#[test]
fn a_file_is_read_once_however_many_parts_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let grey: String = (0..50).map(|i| format!("{},0.5,{}\n", f64::from(i) / 64.0, i % 3)).collect();
    let bits: String = (0..50).map(|i| format!("{},1,{}\n", i % 2, i % 3)).collect();
    for (name, text) in [("grey.csv", grey), ("bits.csv", bits)] {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let source = path.to_str().unwrap();
        let spec = DataSpec { label_column: Some("2".into()), seed: 3, ..spec(source) };
        let loaded: Vec<Dataset> =
            parts().map(|(split, binarize)| load(&DataSpec { split, binarize, ..spec.clone() })).collect();
        let (mut file, other) = (open(&spec), open(&spec));
        fs::remove_file(&path).unwrap();
        for ((split, binarize), loaded) in parts().zip(&loaded) {
            assert_eq!(file.part(split, binarize).unwrap(), *loaded, "{name} {split} {binarize}");
        }
        assert_eq!(file.row_numbers(Split::All).unwrap(), (0..50).collect::<Vec<_>>());
        assert_eq!(file.row_numbers(Split::Test).unwrap(), Split::Test.of_file(50, 3));
        assert_eq!(file.into_part(Split::All, Binarize::Grey).unwrap(), loaded[9]);
        assert_eq!(other.into_part(Split::Test, Binarize::Bernoulli).unwrap(), loaded[8]);
    }
}

#[test]
fn a_threshold_out_of_place_is_refused_for_any_part() {
    for split in Split::EACH {
        let error = open(&spec("digits")).part(split, Binarize::Threshold(0.0)).unwrap_err();
        assert!(matches!(error, Error::InvalidSetting { .. }), "{error}");
        let error = open(&spec("digits")).into_part(split, Binarize::Threshold(0.0)).unwrap_err();
        assert!(matches!(error, Error::InvalidSetting { .. }), "{error}");
    }
}

#[test]
fn a_part_without_rows_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("few.csv");
    fs::write(&path, "0,1\n").unwrap();
    let error = try_load(&DataSpec { split: Split::Train, ..spec(path.to_str().unwrap()) }).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
    assert!(error.to_string().contains("the train part of few.csv (1 rows)"), "{error}");
}

#[test]
fn unknown_names_and_missing_paths_are_told_apart() {
    let error = try_load(&spec("minst")).unwrap_err();
    assert!(matches!(&error, Error::UnknownData { suggestion: Some(s), .. } if s == "mnist"), "{error}");
    assert!(matches!(try_load(&spec("mnist:7")), Err(Error::UnknownData { .. })));
    assert!(matches!(try_load(&spec("")), Err(Error::UnknownData { suggestion: None, .. })));
    for path in ["no/such/thing", "nothing.csv", "nothing.npy.gz"] {
        let error = try_load(&spec(path)).unwrap_err();
        assert!(
            matches!(&error, Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound),
            "{error}"
        );
    }
}

#[test]
fn parameters_and_settings_out_of_place_are_refused() {
    for source in ["bars-and-stripes:99", "bars-and-stripes:x", "ising:-1"] {
        assert!(matches!(try_load(&spec(source)), Err(Error::InvalidSetting { .. })), "{source}");
    }
    let labelled = DataSpec { label_column: Some("y".into()), ..spec("digits") };
    assert!(matches!(try_load(&labelled), Err(Error::InvalidSetting { .. })));
}

#[test]
fn a_spec_round_trips_and_unknown_settings_are_refused() {
    let spec = DataSpec { binarize: Binarize::Threshold(0.5), split: Split::Test, ..DataSpec::default() };
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<DataSpec>(&json).unwrap(), spec);
    assert_eq!(serde_json::from_str::<DataSpec>("{}").unwrap(), DataSpec::default());
    assert!(serde_json::from_str::<DataSpec>(r#"{"sauce": "digits"}"#).is_err());
}

#[test]
fn the_catalogue_says_what_is_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let origin = || {
        let entries = catalogue_in(&search(dir.path()));
        entries.into_iter().find(|entry| entry.name == "mnist").unwrap().origin
    };
    assert_eq!(origin(), Origin::Files { found: None });
    let folder = dir.path().join("cache/mnist");
    fs::create_dir_all(&folder).unwrap();
    for name in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"] {
        fs::write(folder.join(format!("{name}-ubyte.gz")), "").unwrap();
    }
    // Files of these names, but of another content, are not the set.
    assert_eq!(origin(), Origin::Files { found: None });
    for entry in catalogue_in(&search(dir.path())) {
        if entry.origin == Origin::BuiltIn {
            let data = load(&spec(entry.name));
            assert_eq!((data.n_rows(), data.n_columns()), (entry.n_rows, entry.n_columns), "{}", entry.name);
        }
    }
}

#[test]
fn only_sets_with_files_are_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let error = fetch_with("minst", &search(dir.path()), &Mirrors::none(), &Silent).unwrap_err();
    assert!(matches!(error, Error::UnknownData { .. }), "{error}");
    assert_eq!(
        fetch_with("digits", &search(dir.path()), &Mirrors::none(), &Silent).unwrap(),
        Vec::<PathBuf>::new()
    );
}

#[test]
fn a_damaged_file_in_the_cache_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("cache/mnist");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("train-images-idx3-ubyte"), [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 9])
        .unwrap();
    let error = load_with(&spec("mnist"), &search(dir.path()), &Mirrors::none(), &Silent).unwrap_err();
    assert!(matches!(error, Error::ChecksumMismatch { .. }), "{error}");
}

#[test]
fn a_missing_set_is_not_fetched_for_a_listener_that_does_not_allow_it() {
    let dir = tempfile::tempdir().unwrap();
    let mirrors = Mirrors::At(vec!["http://127.0.0.1:1".into()]);
    let error = load_with(&spec("mnist"), &search(dir.path()), &mirrors, &Silent).unwrap_err();
    #[cfg(feature = "fetch")]
    assert!(matches!(error, Error::NotFetched { .. }), "{error}");
    let text = error.to_string();
    for part in ["mnist is not on this machine", "cache/mnist does not hold train-images", "MCLV_DATA_DIR"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("127.0.0.1"), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Tests the whole path from a mirror with wrong content to the error message. `data/download.rs`
/// tests the details.
#[cfg(feature = "fetch")]
#[test]
fn a_mirror_that_does_not_deliver_is_named_and_leaves_no_file() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/mnist/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let mirrors = Mirrors::At(vec![base.clone()]);
    // `fetch` may always download. `load` may download if its listener allows it.
    for error in [
        load_with(&spec("mnist"), &search(dir.path()), &mirrors, &Allows).unwrap_err(),
        fetch_with("mnist", &search(dir.path()), &mirrors, &Silent).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotAvailable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("{base}train-images-idx3-ubyte.gz: ")), "{text}");
        assert!(!dir.path().join("cache").exists());
    }
}
