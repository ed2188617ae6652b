//! Read IDX and CSV files, good and bad.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use mclv::Error;
use mclv::data::{Dataset, Rows, read};
use mclv::rng::{Purpose, stream};
use tempfile::TempDir;

fn write(dir: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn write_gzip(dir: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap();
    path
}

fn csv(text: &str, label_column: Option<&str>) -> mclv::Result<Dataset> {
    let dir = tempfile::tempdir().unwrap();
    read(write(&dir, "table.csv", text), label_column)
}

fn csv_error(text: &str, label_column: Option<&str>) -> String {
    csv(text, label_column).unwrap_err().to_string()
}

fn reals(data: &Dataset) -> &[f32] {
    let Rows::Reals(rows) = &data.rows else { panic!("{} is packed", data.name) };
    rows.values()
}

fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
    let sizes = shape.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, 8, shape.len() as u8].into_iter().chain(sizes).chain(bytes.iter().copied()).collect()
}

#[test]
fn idx_pictures_are_read_plain_and_gzipped_whatever_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = idx(&[2, 1, 2], &[0, 51, 102, 255]);
    let plain = read(write(&dir, "plain.idx", &file), None).unwrap();
    assert_eq!(reals(&plain), [0.0, 0.2, 0.4, 1.0]);
    assert_eq!((plain.image_shape, plain.provenance.preprocessing.as_str()), (Some((1, 2)), "value/255"));
    for path in [
        write_gzip(&dir, "a-idx3-ubyte.gz", &file),
        write_gzip(&dir, "gzip-without-saying-so.idx", &file),
        write_gzip(&dir, "no-extension", &file),
        write(&dir, "plain-idx3-ubyte.gz", &file),
        write(&dir, "plain-without-extension", &file),
    ] {
        let data = read(&path, None).unwrap();
        assert_eq!(data.rows, plain.rows);
        assert_eq!(data.provenance.sha256, plain.provenance.sha256);
    }
}

#[test]
fn idx_labels_are_read_from_the_file_beside() {
    let dir = tempfile::tempdir().unwrap();
    let images = write(&dir, "train-images-idx3-ubyte", idx(&[2, 1, 2], &[0, 0, 255, 255]));
    assert_eq!(read(&images, None).unwrap().labels, None);
    write(&dir, "train-labels-idx1-ubyte", idx(&[2], &[7, 3]));
    let data = read(&images, None).unwrap();
    assert!(matches!(data.rows, Rows::Bits(_)));
    assert_eq!(data.labels.unwrap().name(0), "7");
    write(&dir, "train-labels-idx1-ubyte", idx(&[3], &[7, 3, 1]));
    assert!(matches!(read(&images, None), Err(Error::ShapeMismatch { expected: 2, got: 3, .. })));
    let result = read(dir.path().join("train-labels-idx1-ubyte"), None);
    assert!(result.unwrap_err().to_string().contains("holds labels"));
}

#[test]
fn damaged_idx_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = idx(&[2, 1, 2], &[0, 51, 102, 255]);
    for (bytes, text) in [
        (b"P5 28 28\n".to_vec(), "does not begin like an IDX file"),
        (file[..file.len() - 1].to_vec(), "announces 4 bytes of data, but it has 3"),
        ([file.as_slice(), &[0]].concat(), "has more bytes than"),
        (idx(&[u32::MAX; 4], &[1; 64]), "is cut short"),
        (idx(&[u32::MAX, 28, 28], &[1; 64]), "is cut short"),
        (idx(&[0, 28, 28], &[]), "is empty"),
        (idx(&[5, 0, 28], &[]), "is empty"),
    ] {
        for path in [write(&dir, "bad.idx", &bytes), write_gzip(&dir, "bad.idx", &bytes)] {
            let error = read(&path, None).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("bad.idx"), "{error}");
        }
    }
}

#[test]
fn truncated_gzip_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(write_gzip(&dir, "whole.idx", idx(&[100, 1, 1], &[5; 100]))).unwrap();
    for cut in [5, 20, whole.len() - 4] {
        let error = read(write(&dir, "cut.idx.gz", &whole[..cut]), None).unwrap_err().to_string();
        assert!(error.contains("gzip file that was cut short"), "{error}");
    }
    let csv = write(&dir, "cut.csv.gz", &whole[..20]);
    assert!(read(csv, None).unwrap_err().to_string().contains("gzip file that was cut short"));
}

#[test]
fn folders_missing_files_and_unknown_formats_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(read(dir.path(), None), Err(Error::IsAFolder { .. })));
    let folder = dir.path().join("folder.csv");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(read(folder, None), Err(Error::IsAFolder { .. })));
    let missing = read(dir.path().join("missing.npy"), None).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }) && missing.to_string().contains("missing.npy"), "{missing}");
    let unknown = read(write(&dir, "picture.bmp", b"BM\0\0"), None).unwrap_err();
    assert!(matches!(unknown, Error::UnknownFormat { .. }), "{unknown}");
    assert!(unknown.to_string().contains(".npy, .npz, .csv"), "{unknown}");
    #[cfg(unix)]
    assert!(read(Path::new("/dev/null"), None).unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn a_label_column_is_for_files_that_have_columns_with_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "x.idx", idx(&[1, 1, 1], &[7]));
    assert!(matches!(read(path, Some("y")), Err(Error::InvalidSetting { .. })));
}

#[test]
fn csv_with_and_without_header_is_read() {
    for text in [
        "0,0.5\n1,0.25\n",
        "a,b\n0,0.5\n1,0.25",
        "0,b\n0,0.5\r\n\r\n1, 0.25\r\n",
        "\u{feff}a,b\n0,5e-1\n1,.25\n",
        "\"a\",\"b\"\n\"0\",0.5\n1,0.25\n",
    ] {
        let data = csv(text, None).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!((data.n_columns(), reals(&data)), (2, [0.0, 0.5, 1.0, 0.25].as_slice()), "{text:?}");
        assert_eq!(data.labels, None);
    }
}

#[test]
fn cells_may_be_separated_in_other_ways() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.csv", "a;b\n0;0.5\n1;0.25\n"),
        ("a.tsv", "a\tb c\n0\t0.5\n1\t0.25\n"),
        ("a.csv", "# a,b\n0,0.5\n1,0.25\n"),
        ("a.txt", "0 0.5\n1 0.25\n"),
        ("a.txt", "# numbers, made by hand\n 0.000e+00  5.000e-01\n\n 1.000e+00  2.500e-01\n"),
        ("a.dat", "a  b\n0  0.5\n1  0.25\n"),
        ("a.txt", "0\t0.5\r\n1\t0.25\r\n"),
    ] {
        for path in [write(&dir, name, text), write_gzip(&dir, &format!("{name}.gz"), text)] {
            let data = read(path, None).unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!((data.n_columns(), reals(&data)), (2, [0.0, 0.5, 1.0, 0.25].as_slice()), "{text:?}");
        }
    }
    let error = read(write(&dir, "a.txt", "0 1\n1 0\n1\n"), None).unwrap_err().to_string();
    assert!(error.contains("has 1 cells where line 1 has 2") && error.contains("(line 3)"), "{error}");
    let named = read(write(&dir, "a.csv", "# kind,b\ncat,0\ndog,1\n"), Some("kind")).unwrap();
    assert_eq!((named.n_columns(), named.labels.unwrap().names.concat()), (1, "catdog".into()));
    let labels = read(write(&dir, "a.txt", "0 1 cat\n1 0 dog\n"), Some("-1")).unwrap().labels.unwrap();
    assert_eq!(labels.names, ["cat", "dog"]);
}

#[test]
fn a_label_column_that_was_not_declared_is_suspected() {
    for (text, words) in [
        ("a,b,kind\n0,1,7\n1,1,3\n", "column 3 (\"kind\") alone holds whole numbers from 3 to 7"),
        ("a,b,kind\n0,1,7\n1,1,3\n", "set `label-column = kind`"),
        ("0,1,7\n1,1,3\n", "set `label-column = -1`"),
        ("7,1,0\n3,1,1\n", "set `label-column = 0`"),
        (",a,b\n0,1,0\n1,1,1\n2,0,0\n", "column 1 counts the rows"),
        ("0,1,2\n1,0,1\n1,1,1\n", "a header of numbers"),
        ("0,64\n255,0\n", "set `scale = 255`"),
        ("1,-1\n-1,-1\n", "set `spins`"),
    ] {
        let error = csv_error(text, None);
        assert!(error.contains(words) && error.contains("table.csv"), "{error}");
    }
}

#[test]
fn hdf5_files_are_read_or_a_way_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let error = read(write(&dir, "x.h5", b"\x89HDF\r\n\x1a\n"), None).unwrap_err().to_string();
    if cfg!(feature = "hdf5") {
        assert!(error.contains("is not an HDF5 file"), "{error}");
    } else {
        assert!(error.contains("--features hdf5") && error.contains("numpy.save"), "{error}");
    }
    assert!(matches!(read(dir.path().join("none.h5"), None), Err(Error::Io { .. })));
}

#[test]
fn csv_may_be_gzipped() {
    let dir = tempfile::tempdir().unwrap();
    let text = "0,0.5\n1,0.25\n";
    let (plain, gzip) = (write(&dir, "a.csv", text), write_gzip(&dir, "b.csv.gz", text));
    let (plain, gzip) = (read(plain, None).unwrap(), read(gzip, None).unwrap());
    assert_eq!((&plain.rows, &plain.provenance.sha256), (&gzip.rows, &gzip.provenance.sha256));
}

#[test]
fn csv_labels_are_found_by_name_and_by_number() {
    let with_header = "x,kind,y\n0,cat,1\n1,dog,1\n0,cat,0\n";
    let without = with_header.split_once('\n').unwrap().1;
    for (text, column) in [(with_header, "kind"), (with_header, "1"), (with_header, "-2"), (without, "1")] {
        let data = csv(text, Some(column)).unwrap_or_else(|e| panic!("{column}: {e}"));
        let labels = data.labels.unwrap();
        assert_eq!((labels.names.join(" "), labels.ids), ("cat dog".into(), vec![0, 1, 0]));
        let Rows::Bits(bits) = data.rows else { panic!("not packed") };
        assert_eq!(bits.words(), [0b10, 0b11, 0b00]);
    }
    // The column names that pandas gives by default.
    let data = csv("0,1,label\n0,1,9\n1,1,10\n", Some("label")).unwrap();
    assert_eq!((data.n_rows(), data.labels.unwrap().names), (2, vec!["9".into(), "10".to_string()]));
}

#[test]
fn a_csv_label_column_that_is_not_there_is_named() {
    for column in ["kind", "3", "-4"] {
        let error = csv_error("a,b,c\n0,1,1\n", Some(column));
        assert!(
            error.contains(&format!("no label column {column:?}")) && error.contains("a, b, c"),
            "{error}"
        );
    }
}

#[test]
fn words_in_a_csv_are_named_by_line_and_column() {
    for (text, place) in [
        ("a,b\n0,1\n0,oops\n", "\"oops\" is not a number"),
        ("a,b\n0,1\n0,oops\n", "(line 3, column 2)"),
        ("0,1\n\n\nx,1\n", "(line 4, column 1)"),
        ("0,1\n,1\n", "a cell is empty"),
        ("a,b\n0,1\n0,NA\n", "stands for a missing value"),
        ("a,b\n0,1\n0,Yes\n", "write 1 for yes"),
        ("a|b\n0|1\n0|1\n", "by commas"),
        ("a;b\n0,5;1\n", "write decimals with a point"),
        ("a,b,p\n0,1,val\n", "set `split-column = p`"),
        ("a,b,p\n0,1,red\n", "a column of 0 and 1 for each of its words"),
        // A word among values is no header.
        ("0,1,oops\n0,1,1\n", "(line 1, column 3)"),
    ] {
        let error = csv_error(text, None);
        assert!(error.contains(place) && error.contains("table.csv"), "{error}");
    }
}

#[test]
fn values_out_of_range_in_a_csv_are_named_by_row_and_column() {
    assert!(csv_error("0,1\n0,255\n", None).contains("row 2, column 2 is 255"));
    assert!(csv_error("a,b\n0,1\nnan,1\n", None).contains("row 2, column 1 is NaN"));
    assert!(csv_error("a,b\n0,-0.5\n", None).contains("row 1, column 2 is -0.5"));
}

#[test]
fn ragged_and_empty_csv_files_are_refused() {
    for (text, place) in [("0,1\n0,1,1\n", "(line 2)"), ("a,b\n0,1\n0\n", "(line 3)")] {
        let error = csv_error(text, None);
        assert!(error.contains(place) && error.contains("cells where line 1 has 2"), "{error}");
    }
    for text in ["", "\n\n", "a,b\n"] {
        assert!(matches!(csv(text, None), Err(Error::Empty { .. })), "{text:?}");
    }
    // Nothing but labels.
    assert!(matches!(csv("cat\ndog\n", Some("0")), Err(Error::Empty { .. })));
}

/// Files that are damaged at random places give a value or an error, never a panic or a huge
/// allocation.
#[test]
fn damaged_files_never_panic() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let dir = tempfile::tempdir().unwrap();
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(fixtures)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .filter(|(name, _)| name.ends_with(".npy") || name.ends_with(".npz"))
        .collect();
    files.sort();
    let gzip = fs::read(write_gzip(&dir, "x.gz", idx(&[4, 2, 2], &[9; 16]))).unwrap();
    files.push(("x.idx.gz".into(), gzip));
    files.push(("y.idx".into(), idx(&[4, 2, 2], &[9; 16])));
    files.push(("z.csv".into(), b"a,b,\"c\"\n0,1,0.5\r\n1,1,\"0\"\n".to_vec()));
    files.push(("z.txt".into(), b"# a b\n0 1  0.5\n1 1 0\n".to_vec()));

    let mut rng = stream(2024, Purpose::SelfTest, 0).reader();
    for _ in 0..100 {
        for (name, sound) in &files {
            let mut bytes = sound.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(4) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes[at] = rng.next_u32() as u8,
                    2 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, b'9'),
                }
            }
            let _ = read(write(&dir, name, &bytes), None);
        }
    }
}
