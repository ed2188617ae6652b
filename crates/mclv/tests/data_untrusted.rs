//! Files that were made to waste time or memory are refused, and reading can be cancelled.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use mclv::data::{self, DataSpec, Dataset};
use mclv::progress::{Progress, Silent};
use mclv::{Error, ModelFile};
use tempfile::TempDir;

fn npy(name: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), data].concat()
}

/// Writes a deflated archive. Each array is its bytes, and then zeros.
fn write_npz(path: &Path, arrays: &[(&str, Vec<u8>, usize)]) {
    let options = zip::write::SimpleFileOptions::default();
    let options = options.compression_method(zip::CompressionMethod::Deflated);
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    let zeros = vec![0; 1 << 20];
    for (name, start, n_zeros) in arrays {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(start).unwrap();
        let mut left = *n_zeros;
        while left > 0 {
            let n = left.min(zeros.len());
            zip.write_all(&zeros[..n]).unwrap();
            left -= n;
        }
    }
    zip.finish().unwrap();
}

/// A member of a gzip file, which may have several.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn load(path: &Path, change: impl FnOnce(&mut DataSpec), progress: &dyn Progress) -> mclv::Result<Dataset> {
    let mut spec = DataSpec { source: path.to_str().unwrap().into(), ..DataSpec::default() };
    change(&mut spec);
    data::load(&spec, progress)
}

#[track_caller]
fn is_too_large(path: &Path, change: impl FnOnce(&mut DataSpec)) {
    let error = load(path, change, &Silent).unwrap_err();
    assert!(matches!(error, Error::TooLarge { at_most: 256_000_000, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()) && text.contains("set MCLV_MAX_MEMORY="), "{text}");
}

/// A parser that goes back at each bracket needs an hour for these 89 bytes.
#[test]
fn a_header_of_nested_brackets_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{{'descr': {}", "[".repeat(69));
    let bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    assert_eq!(bytes.len(), 89);
    for name in ["rows.npy", "m.weights.npy"] {
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let error = load(&path, |_| (), &Silent).unwrap_err().to_string();
        assert!(error.contains("nested too deeply"), "{error}");
    }
    let error = ModelFile::load(dir.path().join("m.npy")).unwrap_err().to_string();
    assert!(error.contains("nested too deeply"), "{error}");
    let path = dir.path().join("rows.npz");
    write_npz(&path, &[("data", bytes, 0)]);
    assert!(load(&path, |_| (), &Silent).unwrap_err().to_string().contains("nested too deeply"));
}

#[test]
fn small_files_that_would_take_much_memory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // 70 MB of bytes would become 280 MB of reals.
    let rows = || npy("|i1", "(70000, 1000)", &[]);
    let path = at("reals.npz");
    write_npz(&path, &[("data", rows(), 70_000_000)]);
    assert!(path.metadata().unwrap().len() < 200_000);
    is_too_large(&path, |_| ());
    let path = at("reals.npy.gz");
    let megabyte = gzip(&vec![0; 1_000_000]);
    fs::write(&path, [gzip(&rows()), megabyte.repeat(70)].concat()).unwrap();
    assert!(path.metadata().unwrap().len() < 200_000);
    is_too_large(&path, |_| ());
    // The arrays of one file count together: 40 MB of rows, and words that take 234 MB.
    let path = at("words.npz");
    let rows = ("data", npy("|u1", "(40000, 1000)", &[]), 40_000_000);
    write_npz(&path, &[rows, ("y", npy("<U1", "(4500000,)", &[]), 18_000_000)]);
    is_too_large(&path, |_| ());
    let path = at("labels.csv.gz");
    let lines = gzip(&b"a,1\n".repeat(100_000)).repeat(40);
    fs::write(&path, [gzip(b"y,x\n"), lines].concat()).unwrap();
    is_too_large(&path, |spec| spec.label_column = Some("y".into()));
}

/// A sparse matrix of a single entry has as many zeros as its shape says.
#[test]
fn a_sparse_matrix_with_a_huge_shape_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.npz");
    let write = |n_rows: u64, n_columns: u64| {
        let numbers = |values: &[u64]| -> Vec<u8> { values.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let ends = [vec![0], vec![1; n_rows as usize]].concat();
        write_npz(
            &path,
            &[
                ("format", npy("|S3", "()", b"csr"), 0),
                ("shape", npy("<i8", "(2,)", &numbers(&[n_rows, n_columns])), 0),
                ("data", npy("|u1", "(1,)", &[1]), 0),
                ("indices", npy("<i8", "(1,)", &numbers(&[7])), 0),
                ("indptr", npy("<i8", &format!("({},)", n_rows + 1), &numbers(&ends)), 0),
            ],
        );
    };
    write(2, 4_000_000_000);
    is_too_large(&path, |_| ());
    // Zeros that become other values take 32 times as much memory as bits.
    write(100, 1_000_000);
    assert_eq!(load(&path, |_| (), &Silent).unwrap().rows.get(0, 7), 1.0);
    is_too_large(&path, |spec| spec.scale = Some("-1,1".parse().unwrap()));
}

/// A listener that cancels at one question and at all later ones. Questions are counted from 0.
struct StopsAt(AtomicI64);

impl Progress for StopsAt {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) <= 0
    }
}

fn files(dir: &TempDir) -> Vec<PathBuf> {
    let at = |name: &str| dir.path().join(name);
    let n = 400_000;
    fs::write(at("a.npy"), npy("|u1", "(400, 1000)", &vec![1; n])).unwrap();
    write_npz(&at("b.npz"), &[("data", npy("<f4", "(100, 1000)", &[]), n)]);
    fs::write(at("c.csv"), "0,1\n".repeat(n / 4)).unwrap();
    fs::write(at("d.idx"), [&[0, 0, 8, 2, 0, 0, 1, 144, 0, 0, 3, 232][..], &vec![255; n]].concat()).unwrap();
    fs::write(at("e.csv.gz"), gzip("0 1\n".repeat(n / 4).as_bytes())).unwrap();
    ["a.npy", "b.npz", "c.csv", "d.idx", "e.csv.gz"].map(at).into()
}

#[test]
fn reading_is_cancelled_at_every_block() {
    let dir = tempfile::tempdir().unwrap();
    for path in files(&dir) {
        let mut n_questions = 0;
        loop {
            let listener = StopsAt(AtomicI64::new(n_questions));
            match load(&path, |_| (), &listener) {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::Cancelled), "{}: {error}", path.display()),
            }
            n_questions += 1;
        }
        assert!(n_questions >= 4, "{} asks {n_questions} times", path.display());
    }
}
