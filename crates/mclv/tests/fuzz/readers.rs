//! Every reader of files, with small valid files for it. Both the tests and `cargo fuzz` call these
//! functions.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use mclv::ModelFile;
use mclv::data::{self, DataSpec, Rows};
use mclv::partition::{Inputs, Ladder, LadderTourSettings};
use mclv::progress::Silent;
use mclv::settings::{EstimatorName, Settings};
use mclv::train::{Run, RunFolder, RunInput, Snapshot};
use sha2::{Digest, Sha256};

/// A reader of files.
pub(crate) struct Reader {
    /// The name of the reader.
    pub(crate) name: &'static str,
    /// Reads a file with this content in a folder of its own. A file that cannot be read is no
    /// failure; a panic is one, and so is a value that no file may have.
    pub(crate) read: fn(&Path, &[u8]),
    /// Small valid files, in the parts that `join` takes.
    pub(crate) seeds: fn() -> Vec<Vec<Vec<u8>>>,
    /// Makes a file of its parts: lengths and checksums fit them.
    pub(crate) join: fn(&[Vec<u8>]) -> Vec<u8>,
    /// The number of files that are read for each file of the slowest reader.
    pub(crate) weight: u64,
}

/// All readers.
pub(crate) const READERS: &[Reader] = &[
    Reader { name: "npy", read: read_npy, seeds: seeds_of_npy, join: join_npy, weight: 12 },
    Reader { name: "npz", read: read_npz, seeds: seeds_of_npz, join: join_npz, weight: 8 },
    Reader { name: "sparse", read: read_sparse, seeds: seeds_of_sparse, join: join_sparse, weight: 8 },
    Reader { name: "idx", read: read_idx, seeds: seeds_of_idx, join: whole, weight: 8 },
    Reader { name: "text", read: read_text, seeds: seeds_of_text, join: whole, weight: 12 },
    Reader { name: "gzip", read: read_gzip, seeds: seeds_of_text, join: join_gzip, weight: 8 },
    Reader { name: "model", read: read_model, seeds: seeds_of_model, join: join_safetensors, weight: 10 },
    Reader {
        name: "numpy-model",
        read: read_npz_model,
        seeds: seeds_of_npz_model,
        join: join_npz_model,
        weight: 8,
    },
    Reader {
        name: "checkpoint",
        read: read_checkpoint,
        seeds: seeds_of_checkpoint,
        join: join_safetensors,
        weight: 8,
    },
    Reader { name: "resume", read: resume, seeds: seeds_of_checkpoint, join: join_safetensors, weight: 1 },
    Reader { name: "config", read: read_config, seeds: seeds_of_config, join: whole, weight: 10 },
    Reader { name: "metrics", read: read_metrics, seeds: seeds_of_metrics, join: whole, weight: 6 },
    Reader { name: "ladder", read: read_ladder, seeds: seeds_of_ladder, join: whole, weight: 10 },
];

/// Words of all formats, which mutations insert.
pub(crate) const WORDS: &[&str] = &[
    "'descr'",
    "'fortran_order'",
    "'shape'",
    "'<f8'",
    "'>f2'",
    "'<U9'",
    "'|O'",
    "True",
    "False",
    "None",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ";",
    "\t",
    "\r\n",
    "\"",
    "\\",
    "#",
    "=",
    " ",
    "0",
    "1",
    "-1",
    "255",
    "256",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "1e9",
    "1e38",
    "1e39",
    "1e308",
    "1e309",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "null",
    "true",
    "[]",
    "{}",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[2J",
    "\u{0}",
    "train",
    "validation",
    "test",
    "weights",
    "F32",
    "F64",
    "BF16",
    "data_offsets",
    "__metadata__",
    "mclv",
    "epoch",
    "[train]",
    "[data]",
    "n-hidden",
    "estimator",
];

fn whole(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

/// Loads a data set, and checks what every data set promises.
fn load(path: &Path, change: impl FnOnce(&mut DataSpec)) {
    let mut spec = DataSpec { source: path.to_str().expect("a plain path").into(), ..DataSpec::default() };
    change(&mut spec);
    let Ok(set) = data::load(&spec, &Silent) else { return };
    let (n_rows, n_columns) = (set.n_rows(), set.n_columns());
    assert!(n_rows > 0 && n_columns > 0, "an empty set");
    for k in 0..100 {
        let value = set.rows.get(k * 7919 % n_rows, k * 104_729 % n_columns);
        assert!((0.0..=1.0).contains(&value), "{value} is not in [0, 1]");
    }
    if let Rows::Reals(rows) = &set.rows {
        assert_eq!(rows.values().len(), n_rows * n_columns);
    }
    if let Some(labels) = &set.labels {
        assert!(
            labels.ids.len() == n_rows && labels.ids.iter().all(|&id| (id as usize) < labels.names.len())
        );
    }
    assert_eq!((set.provenance.n_rows, set.provenance.n_columns), (n_rows, n_columns));
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("a folder of ours");
    path
}

fn npy_text(name: &str, order: &str, shape: &str) -> Vec<u8> {
    format!("{{'descr': '{name}', 'fortran_order': {order}, 'shape': {shape}, }}\n").into_bytes()
}

/// A header of the right length, and the data.
fn join_npy(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(parts[0].len() as u16).to_le_bytes()[..], &parts[0], &parts[1]].concat()
}

fn seeds_of_npy() -> Vec<Vec<Vec<u8>>> {
    let reals: Vec<u8> = [0.0f32, 0.25, 0.5, 1.0, 0.0, 0.75].iter().flat_map(|x| x.to_le_bytes()).collect();
    let words: Vec<u8> = "train testval  ".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    vec![
        vec![npy_text("|u1", "False", "(2, 3)"), vec![0, 1, 1, 1, 0, 0]],
        vec![npy_text("|b1", "True", "(3, 2)"), vec![0, 1, 1, 1, 0, 0]],
        vec![npy_text("<f4", "False", "(1, 2, 3)"), reals.clone()],
        vec![npy_text("<f4", "True", "(2, 1, 3)"), reals],
        vec![npy_text(">i2", "False", "(2, 1)"), vec![0, 0, 0, 1]],
        vec![npy_text("<f2", "False", "(2, 1)"), vec![0, 0x3c, 0, 0x38]],
        vec![npy_text("<U5", "False", "(3,)"), words],
        vec![npy_text("<i8", "False", "(3,)"), [0u64, 1, 2].iter().flat_map(|x| x.to_le_bytes()).collect()],
    ]
}

fn read_npy(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "x.npy", bytes);
    load(&path, |_| ());
    load(&path, |spec| spec.spins = true);
    // As the parts of other rows, and as their weights.
    let rows = write(folder, "rows.csv", b"0,1\n1,0\n1,1\n");
    load(&rows, |spec| spec.split_file = path.to_str().map(Into::into));
    let data = DataSpec { source: rows.to_str().expect("a plain path").into(), ..DataSpec::default() };
    let _ = Run::load(RunInput { weights: Some(path), data, ..RunInput::default() }, &Silent);
}

fn join_arrays(names: &[&str], parts: &[Vec<u8>]) -> Vec<u8> {
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, parts) in names.iter().zip(parts.chunks(2)) {
        zip.start_file(format!("{name}.npy"), options).expect("memory");
        zip.write_all(&join_npy(parts)).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

fn join_npz(parts: &[Vec<u8>]) -> Vec<u8> {
    join_arrays(&["data", "y"], parts)
}

fn seeds_of_npz() -> Vec<Vec<Vec<u8>>> {
    let arrays = seeds_of_npy();
    let both = |a: usize, b: usize| [arrays[a].clone(), arrays[b].clone()].concat();
    vec![both(1, 7), both(1, 6), both(0, 7), both(2, 7), both(4, 6)]
}

fn read_npz(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "x.npz", bytes);
    load(&path, |_| ());
    load(&path, |spec| (spec.label_column, spec.split_column) = (Some("data".into()), Some("y".into())));
}

fn join_sparse(parts: &[Vec<u8>]) -> Vec<u8> {
    join_arrays(&["format", "shape", "data", "indices", "indptr"], parts)
}

fn seeds_of_sparse() -> Vec<Vec<Vec<u8>>> {
    let numbers = |values: &[u64]| -> Vec<u8> { values.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let matrix = |form: &str, shape: [u64; 2], ends: &[u64]| {
        vec![
            npy_text("|S3", "False", "()"),
            form.as_bytes().to_vec(),
            npy_text("<i8", "False", "(2,)"),
            numbers(&shape),
            npy_text("|u1", "False", "(3,)"),
            vec![1, 0, 1],
            npy_text("<i8", "False", "(3,)"),
            numbers(&[0, 1, 0]),
            npy_text("<i8", "False", &format!("({},)", ends.len())),
            numbers(ends),
        ]
    };
    vec![matrix("csr", [2, 70], &[0, 2, 3]), matrix("csc", [70, 2], &[0, 2, 3])]
}

fn read_sparse(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "x.npz", bytes);
    load(&path, |_| ());
    load(&path, |spec| spec.scale = "-1,1".parse().ok());
}

fn seeds_of_idx() -> Vec<Vec<Vec<u8>>> {
    vec![
        vec![vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 255, 255, 7, 0, 0]],
        vec![vec![0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 1, 1, 0]],
        vec![vec![0, 0, 8, 1, 0, 0, 0, 2, 3, 9]],
    ]
}

fn read_idx(folder: &Path, bytes: &[u8]) {
    load(&write(folder, "x.idx", bytes), |_| ());
    // As the labels of pictures.
    write(folder, "labels-idx1", bytes);
    let pictures = write(folder, "images-idx3", &seeds_of_idx()[0][0]);
    load(&pictures, |_| ());
}

fn seeds_of_text() -> Vec<Vec<Vec<u8>>> {
    [
        "0,1,0.5\n1,1,0\n",
        "a,b,\"c\"\n0,1,0.5\r\n1,1,\"0\"\n",
        "# a b\n0 1  0.5\n1 1 0\n",
        "x;y;kind\n0,5;1,0;cat\n1;0;dog\n",
        "p\tv\ntrain\t1\nvalidation\t0\ntest\t1\n",
        "weight\n1.5\n0\n2\n",
    ]
    .map(|text| vec![text.as_bytes().to_vec()])
    .into()
}

fn read_text(folder: &Path, bytes: &[u8]) {
    let path = write(folder, "x.csv", bytes);
    load(&path, |_| ());
    load(&path, |spec| spec.label_column = Some("-1".into()));
    load(&path, |spec| spec.split_column = Some("p".into()));
    let rows = write(folder, "rows.csv", b"0,1\n1,0\n1,1\n");
    load(&rows, |spec| spec.split_file = path.to_str().map(Into::into));
    let data = DataSpec { source: rows.to_str().expect("a plain path").into(), ..DataSpec::default() };
    let _ = Run::load(RunInput { weights: Some(path), data, ..RunInput::default() }, &Silent);
}

/// A gzip file of its content.
fn join_gzip(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    parts.iter().for_each(|part| encoder.write_all(part).expect("memory"));
    encoder.finish().expect("memory")
}

fn read_gzip(folder: &Path, bytes: &[u8]) {
    load(&write(folder, "x.csv.gz", bytes), |_| ());
    load(&write(folder, "x.gz", bytes), |_| ());
}

/// The parts of a `.safetensors` file: its header, and the bytes of its tensors.
pub(crate) fn split_safetensors(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk().expect("a length");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    vec![header.to_vec(), data.to_vec()]
}

/// A `.safetensors` file: the length of its header fits.
pub(crate) fn join_safetensors(parts: &[Vec<u8>]) -> Vec<u8> {
    seal([&(parts[0].len() as u64).to_le_bytes()[..], &parts[0], &parts[1]].concat())
}

/// Puts the checksum of the damaged file into it: one that does not fit would hide what is behind it
/// from these tests.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    const NAME: &[u8] = br#"checksum\":\""#;
    const LENGTH: usize = 64;
    let Some(place) = bytes.windows(NAME.len()).rposition(|window| window == NAME) else { return bytes };
    let place = place + NAME.len();
    let Some(sum) = bytes.get_mut(place..place + LENGTH) else { return bytes };
    sum.fill(b'0');
    let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    bytes[place..place + LENGTH].copy_from_slice(sum.as_bytes());
    bytes
}

fn seeds_of_model() -> Vec<Vec<Vec<u8>>> {
    let models = RUNS.iter().map(|files| split_safetensors(&files.model));
    models.chain(seeds_of_checkpoint()).collect()
}

/// Reads a model, and checks what every model promises.
fn load_model(path: &Path) {
    let Ok(model) = ModelFile::load(path) else { return };
    let rbm = &model.rbm;
    let all = rbm.weights();
    assert_eq!(all.len(), rbm.n_visible() * rbm.n_hidden());
    let parameters = all.iter().chain(rbm.visible_bias()).chain(rbm.hidden_bias());
    assert!(parameters.into_iter().all(|x| x.is_finite()), "a parameter is not finite");
    let again = path.with_file_name("again.npz");
    if model.save(&again).is_ok() {
        assert_eq!(ModelFile::load(&again).expect("just written").rbm, model.rbm);
    }
}

fn read_model(folder: &Path, bytes: &[u8]) {
    load_model(&write(folder, "m.safetensors", bytes));
}

fn join_npz_model(parts: &[Vec<u8>]) -> Vec<u8> {
    join_arrays(&["components_", "intercept_visible_", "intercept_hidden_"], parts)
}

fn seeds_of_npz_model() -> Vec<Vec<Vec<u8>>> {
    let bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let shapes = ["(2, 4)", "(4,)", "(2,)"].map(|shape| npy_text("<f4", "False", shape));
    let [w, b, a] = shapes;
    vec![vec![w, bytes(&[0.5; 8]), b, bytes(&[0.0; 4]), a, bytes(&[1.0; 2])]]
}

fn read_npz_model(folder: &Path, bytes: &[u8]) {
    load_model(&write(folder, "m.npz", bytes));
}

/// The files of a short run.
pub(crate) struct Files {
    pub(crate) config: String,
    pub(crate) metrics: Vec<u8>,
    pub(crate) sittings: Vec<u8>,
    pub(crate) checkpoint: Vec<u8>,
    pub(crate) model: Vec<u8>,
    ladder: Vec<u8>,
}

/// Two short runs: the defaults, and another estimator.
pub(crate) static RUNS: LazyLock<[Files; 2]> = LazyLock::new(|| {
    [None, Some(EstimatorName::Pcd)].map(|gradient| {
        let folder = tempfile::tempdir().expect("a folder");
        let files = RunFolder::new(folder.path().join("run"));
        let data = DataSpec { source: "bars-and-stripes:2".into(), ..DataSpec::default() };
        let train = Settings { n_hidden: Some(2), epochs: Some(3.into()), gradient, ..Settings::default() };
        let run =
            Run::load(RunInput { data, train, ..RunInput::default() }, &Silent).expect("a built-in set");
        let trained = run.training().in_folder(files.path()).fit(run.rows()).expect("a short run");
        let ladder = folder.path().join("ladder.json");
        let made = Ladder::new(&trained.model, &Inputs::default(), &LadderTourSettings::default(), &Silent);
        made.expect("a small model").save(&ladder).expect("a folder of ours");
        let read = |path: &Path| fs::read(path).expect("just written");
        Files {
            config: files.read_config().expect("just written"),
            metrics: read(&files.metrics()),
            sittings: read(&files.sittings()),
            checkpoint: read(&files.checkpoint()),
            model: read(&files.model()),
            ladder: read(&ladder),
        }
    })
});

fn seeds_of_checkpoint() -> Vec<Vec<Vec<u8>>> {
    RUNS.iter().map(|files| split_safetensors(&files.checkpoint)).collect()
}

/// Puts a run into a folder, with this checkpoint.
fn lay_out(folder: &Path, files: &Files, checkpoint: &[u8]) -> RunFolder {
    let run = RunFolder::new(folder.join("run"));
    fs::create_dir_all(run.checkpoints()).expect("a folder of ours");
    fs::write(run.config(), &files.config).expect("a folder of ours");
    fs::write(run.metrics(), &files.metrics).expect("a folder of ours");
    fs::write(run.checkpoint(), checkpoint).expect("a folder of ours");
    run
}

fn read_checkpoint(folder: &Path, bytes: &[u8]) {
    let run = lay_out(folder, &RUNS[0], bytes);
    if let Ok(snapshot) = Snapshot::load(run.path()) {
        assert!(snapshot.rbm.weights().iter().all(|x| x.is_finite()), "a weight is not finite");
    }
    load_model(&run.checkpoint());
}

/// Resumes a run and makes an epoch.
fn resume(folder: &Path, bytes: &[u8]) {
    for files in RUNS.iter() {
        let folder = lay_out(folder, files, bytes);
        let Ok(run) = Run::open(folder.path(), &Silent) else { continue };
        let Ok(mut session) = run.training().resume(folder.path(), run.rows()) else { continue };
        let _ = session.epoch();
    }
}

fn seeds_of_config() -> Vec<Vec<Vec<u8>>> {
    let short =
        "[data]\nsource = \"digits\"\nscale = \"0,255\"\n[train]\nn-hidden = 64\nepochs = 10\nseed = 7\n";
    let old = "shape = [2, 2]\n[data]\nsource = \"x.csv\"\n[train]\nn_hidden = 3\nsnapshots = \"1,5,10\"\n";
    let runs = RUNS.iter().map(|files| files.config.as_str());
    runs.chain([short, old]).map(|text| vec![text.as_bytes().to_vec()]).collect()
}

fn read_config(folder: &Path, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let path = folder.join("config.toml");
    let Ok(input) = RunInput::from_toml(&text, &path) else { return };
    let Ok(settings) = input.train.check_without_rows() else { return };
    let decided = RunInput { train: settings.settings(), ..input };
    let again = RunInput::from_toml(&decided.to_toml(), &path).expect("settings that were decided are read");
    assert_eq!(again, decided, "settings change when they are saved");
}

fn seeds_of_metrics() -> Vec<Vec<Vec<u8>>> {
    RUNS.iter().flat_map(|files| [&files.metrics, &files.sittings]).map(|text| vec![text.clone()]).collect()
}

/// Reads a run as a report does.
fn read_metrics(folder: &Path, bytes: &[u8]) {
    let run = lay_out(folder, &RUNS[0], &RUNS[0].checkpoint);
    fs::write(run.metrics(), bytes).expect("a folder of ours");
    fs::write(run.sittings(), bytes).expect("a folder of ours");
    let _ = run.read_metrics();
    let Ok(record) = run.read() else { return };
    let _ =
        (record.warnings(), record.fall(), record.best(), record.last_evaluated(), record.repeats(&record));
}

fn seeds_of_ladder() -> Vec<Vec<Vec<u8>>> {
    RUNS.iter().map(|files| vec![files.ladder.clone()]).collect()
}

fn read_ladder(folder: &Path, bytes: &[u8]) {
    let _ = Ladder::load(&write(folder, "ladder.json", bytes));
}
