//! Read files that NumPy wrote; `fixtures/make_fixtures.py` makes them again.

use std::fs;
use std::path::PathBuf;

use mclv::Error;
use mclv::data::{DataSpec, Dataset, Rows, read};

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", name].iter().collect()
}

fn load(name: &str) -> Dataset {
    read(fixture(name), None).unwrap_or_else(|e| panic!("{e}"))
}

fn error(name: &str) -> String {
    read(fixture(name), None).unwrap_err().to_string()
}

fn reals(data: &Dataset) -> &[f32] {
    let Rows::Reals(rows) = &data.rows else { panic!("{} is packed", data.name) };
    rows.values()
}

const GREYS: [f32; 6] = [0.0, 0.25, 0.5, 0.75, 1.0, 0.125];

#[test]
fn every_type_of_zeros_and_ones_becomes_bits() {
    for dtype in ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "big_i4"] {
        let data = load(&format!("bits_{dtype}.npy"));
        let Rows::Bits(bits) = &data.rows else { panic!("{dtype} is not packed") };
        assert_eq!((bits.n_bits(), bits.words()), (3, [0b110, 0b001].as_slice()), "{dtype}");
    }
}

#[test]
fn every_type_of_reals_is_read() {
    for file in ["f2", "big_f2", "f4", "f8", "big_f4", "big_f8", "fortran"] {
        let data = load(&format!("greys_{file}.npy"));
        assert_eq!((data.n_rows(), data.n_columns(), data.image_shape), (2, 3, None), "{file}");
        assert_eq!(reals(&data), GREYS, "{file}");
    }
}

#[test]
fn pictures_are_flattened_and_their_shape_kept() {
    let expected: Vec<f32> = (0..12u8).map(|i| f32::from(i) / 16.0).collect();
    for file in ["3d", "3d_fortran", "4d_last", "4d_first"] {
        let data = load(&format!("images_{file}.npy"));
        assert_eq!((data.n_columns(), data.image_shape), (6, Some((2, 3))), "{file}");
        assert_eq!(reals(&data), expected, "{file}");
    }
}

#[test]
fn provenance_names_the_file_without_its_folder() {
    let provenance = load("greys_f8.npy").provenance;
    assert_eq!((provenance.source.as_str(), provenance.n_rows, provenance.n_columns), ("greys_f8.npy", 2, 3));
    assert_eq!(provenance.sha256.len(), 64);
    assert_eq!(provenance.seed, None);
}

fn scaled(name: &str, scale: &str) -> mclv::Result<Dataset> {
    let source = fixture(name).to_str().unwrap().into();
    let spec = DataSpec { source, scale: Some(scale.parse()?), ..DataSpec::default() };
    mclv::data::load(&spec, &mclv::progress::Silent)
}

#[test]
fn values_of_another_range_are_scaled() {
    let data = scaled("bytes_255.npy", "255").unwrap();
    assert_eq!(data.provenance.preprocessing, "value/255");
    assert_eq!([data.rows.get(0, 1), data.rows.get(1, 1)], [1.0 / 255.0, 1.0]);
    let data = scaled("greys_f8.npy", "-1,1").unwrap();
    let expected: Vec<f32> = GREYS.iter().map(|x| (x + 1.0) / 2.0).collect();
    assert_eq!((reals(&data), data.provenance.preprocessing.as_str()), (&expected[..], "(value + 1)/2"));
    let error = scaled("bytes_255.npy", "100").unwrap_err().to_string();
    assert!(error.contains("is 255; values must lie in [0, 100]: all values lie in [0, 255]"), "{error}");
}

#[test]
fn sparse_matrices_are_their_dense_twins() {
    // The matrix of the script: 1 where 3 r + 5 c is divisible by 7.
    let is_one = |r: usize, c: usize| (3 * r + 5 * c).is_multiple_of(7);
    for file in ["sparse_csr.npz", "sparse_csc.npz"] {
        let data = load(file);
        let Rows::Bits(bits) = &data.rows else { panic!("{file} is not packed") };
        assert_eq!((bits.n_rows(), bits.n_bits(), data.labels.as_ref()), (9, 20, None), "{file}");
        assert!((0..180).all(|k| bits.get(k / 20, k % 20) == is_one(k / 20, k % 20)), "{file}");
    }
    let data = scaled("sparse_grey.npz", "255").unwrap();
    assert!(matches!(data.rows, Rows::Sparse(_)));
    for k in 0..180 {
        let (r, c) = (k / 20, k % 20);
        assert_eq!(data.rows.get(r, c), if is_one(r, c) { (1 + k) as f32 / 255.0 } else { 0.0 });
    }
    // Values in one place are added.
    assert_eq!(load("sparse_twice.npz").rows.get(0, 1), 0.75);
    let column = read(fixture("sparse_csr.npz"), Some("y"));
    assert!(column.unwrap_err().to_string().contains("a sparse matrix has no other columns"));
}

#[test]
fn archives_are_read_under_the_usual_names() {
    for (file, labels) in [
        ("labelled.npz", Some((vec!["3", "7"], [1, 0]))),
        ("compressed.npz", Some((vec!["0", "1"], [0, 1]))),
        ("other_labels.npz", None),
    ] {
        let data = load(file);
        assert_eq!(reals(&data), GREYS, "{file}");
        let found = data
            .labels
            .as_ref()
            .map(|l| (l.names.iter().map(String::as_str).collect(), [l.ids[0], l.ids[1]]));
        assert_eq!(found, labels, "{file}");
    }
    assert_eq!(load("word_labels.npz").labels.unwrap().names, ["cat", "döner"]);
    assert_eq!(load("positional.npz").n_columns(), 3);
    assert_eq!(load("only_one_matrix.npz").image_shape, Some((2, 3)));
}

#[test]
fn labels_of_an_archive_can_be_named() {
    let data = read(fixture("other_labels.npz"), Some("kind")).unwrap();
    assert_eq!(data.labels.unwrap().names, ["4"]);
    let error = read(fixture("labelled.npz"), Some("kind")).unwrap_err().to_string();
    assert!(error.contains("has no array \"kind\"; it holds data [2, 3], labels [2]"), "{error}");
}

#[test]
fn an_archive_that_leaves_a_choice_is_refused_with_a_list() {
    let error = error("ambiguous.npz");
    assert!(error.contains("first [2, 3], second [2, 3], third [4]"), "{error}");
    assert!(error.contains("one of data, X, x, samples, arr_0"), "{error}");
}

#[test]
fn parts_are_read_from_arrays_of_words_and_of_numbers() {
    let load = |change: &dyn Fn(&mut DataSpec)| {
        let mut spec =
            DataSpec { source: fixture("split.npz").to_str().unwrap().into(), ..DataSpec::default() };
        change(&mut spec);
        let parts = mclv::data::open(&spec, &mclv::progress::Silent)?.parts()?;
        Ok::<_, Error>([Some(parts.train), parts.validation, parts.test].map(|p| p.map_or(0, |p| p.n_rows)))
    };
    for array in ["words", "bytes", "numbers"] {
        assert_eq!(load(&|spec| spec.split_column = Some(array.into())).unwrap(), [3, 1, 2], "{array}");
    }
    let file = |name: &str| load(&|spec| spec.split_file = Some(fixture(name).to_str().unwrap().into()));
    assert_eq!(file("split_words.npy").unwrap(), [3, 1, 2]);
    for (name, text) in [
        ("split_mask.npy", "true and false, which do not say what part is meant; save 0 for train"),
        ("bits_u1.npy", "has the shape [2, 3]; give one word or number per row"),
        ("vector.npy", "one for each row of"),
    ] {
        let error = file(name).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let wrong = load(&|spec| spec.split_column = Some("wrong".into())).unwrap_err().to_string();
    assert!(
        wrong.contains("3 is not a part; write train, validation or test") && wrong.contains("row 6"),
        "{wrong}"
    );
}

#[test]
fn labels_must_be_one_per_row() {
    let result = read(fixture("bad_labels.npz"), None);
    assert!(matches!(result, Err(Error::ShapeMismatch { expected: 2, got: 3, .. })), "{result:?}");
}

#[test]
fn what_is_not_rows_of_numbers_in_range_is_refused() {
    for (file, text) in [
        ("vector.npy", "shape [3]; rows × columns"),
        ("words.npy", "elements of type <U1"),
        (
            "bytes_255.npy",
            "row 2, column 2 is 255; values must lie in [0, 1]: the values go up to 255: if they",
        ),
        ("sparse_coo.npz", "is a sparse matrix in \"coo\" form; save it as CSR"),
        ("nan.npy", "row 1, column 2 is NaN"),
    ] {
        let error = error(file);
        assert!(error.contains(text), "{error}");
    }
    assert!(matches!(read(fixture("no_rows.npy"), None), Err(Error::Empty { .. })));
}

#[test]
fn damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let npy = fs::read(fixture("greys_f8.npy")).unwrap();
    let npz = fs::read(fixture("compressed.npz")).unwrap();
    let mut flipped = npz.clone();
    // In the middle of the first array's compressed data.
    flipped[130] ^= 0xff;
    for (name, bytes, text) in [
        ("cut.npy", &npy[..npy.len() - 1], "cut short: its header announces 48 bytes of data, but it has 47"),
        ("header.npy", &npy[..60], "ends too early"),
        ("more.npy", &[npy.as_slice(), b"x"].concat(), "has more bytes than"),
        ("magic.npy", b"PK\x03\x04abcdefghijkl".as_slice(), "does not begin like a NumPy file"),
        ("empty.npy", b"", "ends too early"),
        ("cut.npz", &npz[..npz.len() / 2], "a damaged .npz archive"),
        ("magic.npz", &npy, "does not begin like an .npz"),
        ("flipped.npz", &flipped, "array \"X\""),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = read(&path, None).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains(name), "{error}");
    }
}

#[test]
fn hostile_headers_allocate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for shape in ["(1099511627776, 1024)", "(4294967296, 4294967296)", "(0, 9223372036854775807, 4)"] {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let header =
            [b"\x93NUMPY\x01\x00", (text.len() as u16).to_le_bytes().as_slice(), text.as_bytes()].concat();
        let path = dir.path().join("hostile.npy");
        fs::write(&path, header).unwrap();
        let error = read(&path, None).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. } | Error::Malformed { .. }), "{error}");
    }
}
