//! Test that bad input is rejected with a helpful message and leaves all files unchanged.

use crate::support::{Sandbox, npy};

/// Refuse the file `name` as data, wherever data can be given.
fn refused_as_data(name: &str, content: impl AsRef<[u8]>, words: &[&str]) {
    let sandbox = Sandbox::new().with_file(name, content).with_model("m.safetensors", 3);
    let words = [&[name], words].concat();
    sandbox.refuses(&["data", "show", name], &words);
    sandbox.refuses(&["init", name, "-o", "new.safetensors", "--split", "all"], &words);
    sandbox.refuses(&["likelihood", "m.safetensors", "--data", name, "--split", "all"], &words);
}

/// Refuse the file `name` as a model, wherever a model can be given.
fn refused_as_model(sandbox: &Sandbox, name: &str, words: &[&str]) {
    let words = [&[name], words].concat();
    sandbox.refuses(&["inspect", name], &words);
    sandbox.refuses(&["logz", name], &words);
    sandbox.refuses(&["likelihood", name, "--data", "digits"], &words);
    sandbox.refuses(&["convert", name, "out.npz"], &words);
}

#[test]
fn files_that_do_not_begin_like_their_format_are_refused() {
    refused_as_data(
        "pictures-idx3-ubyte",
        [0, 0, 7, 3, 0, 0, 0, 1],
        &["does not begin like an IDX file", "0000080n expected", "found 00000703"],
    );
    refused_as_data("rows.npy", b"\x93NUMPX\x01\x00\x01\x00", &["does not begin like a NumPy file"]);
    refused_as_data("rows.npz", b"not a zip archive", &["does not begin like an .npz"]);
    let sandbox = Sandbox::new().with_file("m.safetensors", "no tensors here, safe or not");
    refused_as_model(&sandbox, "m.safetensors", &["not an intact .safetensors file"]);
    let sandbox = Sandbox::new().with_file("m.npz", "no arrays");
    refused_as_model(&sandbox, "m.npz", &["does not begin like an .npz"]);
    let sandbox = Sandbox::new().with_file("m.weights.npy", "no array");
    refused_as_model(&sandbox, "m.weights.npy", &["ends too early"]);
}

#[test]
fn a_truncated_gzip_file_is_refused() {
    // A header, and the first 4 of 20 bytes stored as they are.
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let block = [1, 20, 0, 0xff - 20, 0xff, 0, 0, 8, 3];
    refused_as_data(
        "rows-idx3-ubyte.gz",
        [&header[..], &block].concat(),
        &["gzip", "cut short", "download or copy it again"],
    );
}

#[test]
fn a_truncated_file_is_refused() {
    let idx = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 255, 255, 255];
    refused_as_data(
        "cut-idx3-ubyte",
        idx,
        &["cut short", "announces 8 bytes", "it has 3", "get a complete copy"],
    );
    let whole = npy(&[2, 2], &[0.0, 1.0, 1.0, 0.0]);
    refused_as_data("cut.npy", &whole[..whole.len() - 5], &["cut short", "get a complete copy"]);
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    let bytes = sandbox.bytes("m.safetensors");
    let sandbox = sandbox.with_file("m.safetensors", &bytes[..bytes.len() - 1]);
    refused_as_model(&sandbox, "m.safetensors", &["not an intact .safetensors file"]);
}

#[test]
fn a_word_among_numbers_is_refused_with_its_place() {
    refused_as_data("t.csv", "0,1\n0,setosa\n", &["\"setosa\"", "line 2, column 2", "label-column"]);
}

#[test]
fn values_outside_the_unit_interval_are_refused_with_their_place() {
    let words = ["row 2, column 1 is 255", "values must lie in [0, 1]", "--scale 255"];
    refused_as_data("t.csv", "0,1\n255,0.5\n", &words);
    refused_as_data("t.npy", npy(&[2, 2], &[0.0, 1.0, 255.0, 0.5]), &words);
}

#[test]
fn nan_is_refused_with_its_place() {
    let words = ["row 2, column 2 is NaN", "remove the row or fill in the missing value"];
    refused_as_data("t.csv", "0,1\n1,nan\n", &words);
    refused_as_data("t.npy", npy(&[2, 2], &[0.0, 1.0, 1.0, f32::NAN]), &words);
    let sandbox = Sandbox::new()
        .with_file("m.weights.npy", npy(&[2, 2], &[0.0, 1.0, 1.0, f32::NAN]))
        .with_file("m.visible_bias.npy", npy(&[2], &[0.0, 1.0]))
        .with_file("m.hidden_bias.npy", npy(&[2], &[0.0, 1.0]));
    refused_as_model(&sandbox, "m.weights.npy", &["NaN", "a model must have finite parameters"]);
}

#[test]
fn data_without_rows_are_refused() {
    let words = ["is empty", "at least one row"];
    refused_as_data("t.csv", "", &words);
    refused_as_data("header-only.csv", "a,b\n", &words);
    refused_as_data("t.npy", npy(&[0, 4], &[]), &words);
    refused_as_data("t-idx3-ubyte", [0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2], &words);
}

#[test]
fn a_part_without_rows_is_refused() {
    let sandbox = Sandbox::new().with_file("t.csv", "0,1\n1,0\n");
    sandbox.refuses(
        &["data", "show", "t.csv", "--split", "validation"],
        &["validation part of t.csv (2 rows) is empty", "10 rows"],
    );
}

#[test]
fn ragged_rows_are_refused_with_their_line() {
    refused_as_data("t.csv", "0,1\n0,1,1\n", &["line 2", "has 3 cells where line 1 has 2", "as many"]);
}

#[test]
fn data_of_another_width_than_the_model_are_refused() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    sandbox.refuses(
        &["likelihood", "m.safetensors", "--data", "bars-and-stripes:4"],
        &["bars-and-stripes:4 has 16 columns", "m.safetensors has 64 visible units", "that fit each other"],
    );
}

#[test]
fn missing_files_are_refused_once_and_by_name() {
    let sandbox = Sandbox::new();
    for name in ["absent.safetensors", "absent.npz", "absent.weights.npy", "absent"] {
        refused_as_model(&sandbox, name, &["cannot read", "no such file or folder; check the path"]);
    }
    for name in ["absent.npy", "absent.csv", "no/folder"] {
        sandbox.refuses(&["data", "show", name], &[name, "cannot read", "check the path"]);
    }
    let message = sandbox.run(&["inspect", "absent.npz"]).stderr;
    assert_eq!(message.matches("no such file").count(), 1, "the cause is said once: {message}");
    sandbox.refuses(
        &["init", "digits", "-o", "absent/m.safetensors"],
        &["cannot write absent/m.safetensors", "no such file or folder; check the path"],
    );
}

#[test]
fn a_folder_is_not_a_file() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    for name in ["f.safetensors", "f.npy", "f.csv", "f"] {
        std::fs::create_dir(sandbox.path(name)).unwrap();
        let words = [name, "is a folder; give the path of a file"];
        let data = format!("./{name}");
        sandbox.refuses(&["data", "show", &data], &words);
        refused_as_model(&sandbox, name, &words[1..]);
        sandbox.refuses(&["init", "digits", "-o", name], &words);
        sandbox.refuses(&["convert", "m.safetensors", name, "--force"], &words);
        assert_eq!(std::fs::read_dir(sandbox.path(name)).unwrap().count(), 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_device_is_not_a_file() {
    let sandbox = Sandbox::new();
    for name in ["zero.safetensors", "zero.npz", "zero.weights.npy"] {
        std::os::unix::fs::symlink("/dev/zero", sandbox.path(name)).unwrap();
        refused_as_model(&sandbox, name, &["is not a regular file; save its content as one first"]);
    }
    sandbox.refuses(&["data", "show", "zero.npz"], &["is not a regular file"]);
}

#[test]
fn unknown_file_types_are_refused_with_the_known_ones() {
    let sandbox =
        Sandbox::new().with_model("m.safetensors", 3).with_file("m.txt", "0 1").with_file("m.bmp", "BM");
    refused_as_model(&sandbox, "m.txt", &["unknown file type", ".safetensors, .npz and .npy"]);
    std::fs::write(sandbox.path("data.csv"), "0,1\n").unwrap();
    sandbox.refuses(
        &["likelihood", "data.csv"],
        &["data.csv is a table of data, not a model", "--data data.csv"],
    );
    sandbox.refuses(&["init", "digits", "-o", "new.txt"], &["new.txt: unknown file type", ".safetensors"]);
    sandbox.refuses(&["data", "show", "m.bmp"], &["m.bmp: unknown file type", ".csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_the_device_stays_a_device() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    for name in ["full.safetensors", "full.npz", "full.weights.npy"] {
        symlink("/dev/full", sandbox.path(name)).unwrap();
    }
    let words = ["cannot write full", "No space left on device", "make room"];
    sandbox.refuses(&["init", "digits", "-o", "full.safetensors"], &words);
    sandbox.refuses(&["convert", "m.safetensors", "full.npz"], &words);
    sandbox.refuses(&["convert", "m.safetensors", "full.npy"], &words);
    assert!(sandbox.path("full.npz").is_symlink());
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn results_that_cannot_be_printed_are_a_failure() {
    if let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") {
        let output = Sandbox::new().command(&["data", "list"]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains("No space left"));
    }
}

#[test]
fn a_model_of_a_newer_version_is_refused() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    let mut bytes = sandbox.bytes("m.safetensors");
    let version = br#"format_version\":"#;
    let at = bytes.windows(version.len()).position(|w| w == version).unwrap() + version.len();
    bytes[at] = b'9';
    let sandbox = sandbox.with_file("m.safetensors", bytes);
    refused_as_model(
        &sandbox,
        "m.safetensors",
        &["has format version 9", "reads versions up to 1", "upgrade mclv"],
    );
}

#[test]
fn an_unknown_data_set_is_refused_with_a_suggestion() {
    let sandbox = Sandbox::new();
    let words = ["\"digist\"", "did you mean \"digits\"?", "bars-and-stripes, ising, mnist"];
    sandbox.refuses(&["data", "show", "digist"], &words);
    sandbox.refuses(&["data", "fetch", "digist"], &words);
    sandbox.refuses(&["init", "digist", "-o", "m.safetensors"], &words);
    sandbox.refuses(&["data", "show", "bars-and-stripes:99"], &["99"]);
    sandbox.refuses(&["data", "show", "ising:cold"], &["cold"]);
}

#[test]
fn a_model_is_overwritten_only_by_force() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3).with_model("other.safetensors", 4);
    sandbox.succeeds(&["convert", "m.safetensors", "m.npy"]);
    let words = ["already exists", "--force"];
    sandbox.refuses(&["init", "digits", "-o", "m.safetensors"], &words);
    sandbox.refuses(&["convert", "other.safetensors", "m.safetensors"], &words);
    sandbox.refuses(&["convert", "other.safetensors", "m.npy"], &["m.weights.npy already exists", "--force"]);
    sandbox.succeeds(&["convert", "other.safetensors", "m.safetensors", "--force"]);
    assert_eq!(sandbox.json(&["inspect", "m.safetensors"])["n_hidden"], 4);
    sandbox.succeeds(&["convert", "other.safetensors", "m.npy", "-f"]);
    assert_eq!(sandbox.json(&["inspect", "m.npy"])["n_hidden"], 4);
}

#[test]
fn an_enumeration_that_would_take_ages_is_refused_with_an_estimate() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 60);
    let words = ["2^60 states would take about", "(1.0 hours allowed)", "with --time-limit TIME (or none)"];
    let exact = ["--method", "exact"];
    sandbox.refuses(&[&["logz", "m.safetensors"][..], &exact].concat(), &words);
    sandbox.refuses(&[&["likelihood", "m.safetensors"][..], &exact].concat(), &words);
    let days = ["logz", "m.safetensors", "--time-limit", "2d"];
    sandbox.refuses(&[&days[..], &exact].concat(), &["(2.0 days allowed)"]);
    let sandbox = Sandbox::new().with_model("m.safetensors", 64);
    let words = ["2^64 states", "which no machine can do", "a smaller layer"];
    let none = ["logz", "m.safetensors", "--time-limit", "none"];
    sandbox.refuses(&[&none[..], &exact].concat(), &words);
}

#[test]
fn absurd_sizes_are_refused() {
    let sandbox = Sandbox::new();
    for (n, words) in [("0", "hidden layer is empty"), ("100000000000000000", "2^32 weights")] {
        sandbox.refuses(&["init", "digits", "--n-hidden", n, "-o", "m.safetensors"], &[words]);
    }
}

#[test]
fn a_model_of_unknown_descent_needs_data_to_be_named() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    sandbox.succeeds(&["convert", "m.safetensors", "m.npz"]);
    sandbox.refuses(&["likelihood", "m.npz"], &["m.npz does not record its data", "--data"]);
}

#[test]
fn wrong_usage_is_code_2_with_what_is_allowed() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    sandbox.refuses_usage(&["logz"], &["<MODEL>", "--help"]);
    sandbox
        .refuses_usage(&["logz", "m.safetensors", "--time-limit", "soon"], &["90s, 30min, 2h, 3d or none"]);
    sandbox.refuses_usage(&["logz", "m.safetensors", "--threads", "0"], &["--threads", "1..=1024"]);
    sandbox.refuses_usage(&["init", "digits", "--init", "best"], &["[possible values: data, paper]"]);
    sandbox.refuses_usage(&["data", "show", "digits", "--split", "dev"], &["train, validation, test or all"]);
    sandbox.refuses_usage(&["data", "show", "digits", "--binarize", "threshold=2"], &["not above 1"]);
}

#[test]
fn errors_are_json_if_results_would_be() {
    let sandbox = Sandbox::new();
    for args in [
        &["inspect", "absent.safetensors"][..],
        &["data", "show", "digist"],
        &["init", "digits", "--n-hidden", "0"],
    ] {
        let outcome = sandbox.run(&[args, &["--json"]].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
        let error: serde_json::Value = serde_json::from_str(&outcome.stderr).unwrap();
        assert_eq!(crate::support::keys(&error), ["error"]);
        assert!(error["error"].as_str().is_some_and(|text| text.len() > 20), "{error}");
    }
}

/// Nested brackets in the header of an array once took an hour.
#[test]
fn a_hostile_header_is_refused_at_once() {
    let text = format!("{{'descr': {}", "[".repeat(69));
    let file = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let words = ["nested too deeply"];
    refused_as_data("rows.npy", &file, &words);
    let sandbox = Sandbox::new().with_file("m.weights.npy", &file);
    refused_as_model(&sandbox, "m.weights.npy", &words);
    let sandbox = Sandbox::new().with_model("m.safetensors", 3).with_file("mask.npy", &file);
    sandbox.refuses(&["sample", "m.safetensors", "--given", "digits", "--known", "mask.npy"], &words);
    sandbox.refuses(&["train", "digits", "--weights", "mask.npy", "-o", "run"], &words);
}

#[test]
fn the_memory_of_a_file_is_limited_by_a_variable() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, "0,1\n".repeat(500_000).as_bytes()).unwrap();
    let file = encoder.finish().unwrap();
    let rows = ["data", "show", "rows.csv.gz", "--split", "all"];
    for enough in ["32M", "1G", "none", ""] {
        Sandbox::new()
            .with_variable("MCLV_MAX_MEMORY", enough)
            .with_file("rows.csv.gz", &file)
            .succeeds(&rows);
    }
    let words = ["rows.csv.gz would take", "MB", "may take 1 MB", "set MCLV_MAX_MEMORY=1G and try again"];
    Sandbox::new()
        .with_variable("MCLV_MAX_MEMORY", "1M")
        .with_file("rows.csv.gz", &file)
        .refuses(&rows, &words);
    let words = ["MCLV_MAX_MEMORY = much is not allowed", "500M or 8G"];
    let sandbox = Sandbox::new().with_variable("MCLV_MAX_MEMORY", "much").with_file("rows.csv.gz", &file);
    sandbox.refuses(&rows, &words);
}
