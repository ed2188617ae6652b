//! Samples and features are drawn, saved and shown as asked.

use crate::support::{Sandbox, keys, npy, without_times};
use serde_json::{Value, json};

/// Quick chains: most tests are not about mixing.
const QUICK: [&str; 2] = ["--burn-in", "5"];

fn sample<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["sample", "m.safetensors"], args, &QUICK].concat()
}

/// Shape, element type and data of a `.npy` file.
fn read(bytes: &[u8]) -> (Vec<u64>, String, Vec<u8>) {
    let file = npyz::NpyFile::new(bytes).unwrap();
    let (shape, kind) = (file.shape().to_vec(), file.dtype().descr());
    let size = file.dtype().num_bytes().unwrap() * file.len() as usize;
    (shape, kind, bytes[bytes.len() - size..].to_vec())
}

/// The values of a `.npy` file of `f32`.
fn floats(bytes: &[u8]) -> Vec<f32> {
    npyz::NpyFile::new(bytes).unwrap().into_vec().unwrap()
}

/// Writes a model with these visible biases and zero weights, as arrays without provenance.
fn bare_model(sandbox: Sandbox, bias: &[f32]) -> Sandbox {
    let n = bias.len() as u64;
    sandbox
        .with_file("bare.weights.npy", npy(&[n, 1], &vec![0.0; bias.len()]))
        .with_file("bare.visible_bias.npy", npy(&[n], bias))
        .with_file("bare.hidden_bias.npy", npy(&[1], &[0.0]))
}

#[test]
fn samples_are_saved_as_a_matrix_of_bytes() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 4);
    let text = sandbox.succeeds(&sample(&["-o", "s.npy"]));
    for word in ["wrote", "s.npy", "64 of 64 units", "5 steps from the visible biases"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let (shape, kind, data) = read(&sandbox.bytes("s.npy"));
    assert_eq!((shape, kind.as_str()), (vec![64, 64], "'|u1'"));
    assert!(data.contains(&0) && data.contains(&1) && data.iter().all(|&b| b < 2));
    sandbox.succeeds(&sample(&["-n", "10", "--means", "-o", "p.npy"]));
    let (shape, kind, _) = read(&sandbox.bytes("p.npy"));
    assert_eq!((shape, kind.as_str()), (vec![10, 64], "'<f4'"));
    assert!(floats(&sandbox.bytes("p.npy")).iter().any(|&p| p > 0.0 && p < 1.0));
    // What was written is data again.
    let shown = sandbox.json(&["data", "show", "s.npy"]);
    assert_eq!((&shown["binary"], &shown["provenance"]["n_columns"]), (&json!(true), &json!(64)));
    sandbox.succeeds(&sample(&["-n", "10", "--means", "-o", "s.npz"]));
    let shown = sandbox.json(&["data", "show", "s.npz"]);
    assert_eq!((&shown["binary"], &shown["provenance"]["n_rows"]), (&json!(true), &json!(10)));
}

#[test]
fn a_summary_says_what_was_done() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 4);
    let json = sandbox.json(&sample(&["-n", "7", "-o", "s.npy", "--seed", "3", "--start", "digits"]));
    let expected = [
        "burn_in",
        "gibbs",
        "given",
        "image_shape",
        "known",
        "ladders",
        "mean",
        "means",
        "method",
        "mixing",
        "model",
        "n_known",
        "n_samples",
        "n_visible",
        "output",
        "seconds",
        "seed",
        "start",
        "warning",
    ];
    assert_eq!(keys(&json), expected);
    assert_eq!(
        (&json["n_samples"], &json["burn_in"], &json["seed"], &json["image_shape"], &json["given"]),
        (&json!(7), &json!(5), &json!(3), &json!([8, 8]), &Value::Null)
    );
    assert_eq!(json["start"]["name"], "digits");
    assert_eq!(
        (&json["method"], &json["ladders"], &json["gibbs"]),
        (&json!("gibbs"), &Value::Null, &Value::Null)
    );
    // Without a file the samples are in the summary.
    let json = sandbox.json(&sample(&["-n", "2"]));
    let rows = json["samples"].as_array().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.as_str().is_some_and(|row| row.len() == 64)));
}

/// The `stuck` model has two modes, all units on and all units off, which no chain of this length
/// leaves. The `bare` model has independent units, so its chains mix.
#[test]
fn chains_that_do_not_mix_are_warned_of() {
    let sandbox = bare_model(Sandbox::new(), &[0.5; 4])
        .with_file("stuck.weights.npy", npy(&[8, 1], &[6.0; 8]))
        .with_file("stuck.visible_bias.npy", npy(&[8], &[-3.0; 8]))
        .with_file("stuck.hidden_bias.npy", npy(&[1], &[-24.1]))
        .with_file("apart.csv", "0,0,0,0,0,0,0,0\n1,1,1,1,1,1,1,1\n");
    let json = sandbox.json(&["sample", "bare.weights.npy", "--burn-in", "200", "-o", "s.npy"]);
    assert!(json["warning"].is_null() && json["mixing"]["r_hat"].as_f64().unwrap() < 1.05, "{json}");
    let args = ["sample", "stuck.weights.npy", "--start", "apart.csv", "--burn-in", "200", "-o", "t.npy"];
    let outcome = sandbox.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for word in ["warning: chains differ", "R-hat", "--burn-in"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
}

/// The model has two modes, all units on and all units off. Gibbs chains stay in one of them.
#[test]
fn the_method_is_chosen_or_named_and_reported() {
    let (n, w) = (34, 0.4);
    let bias = npy(&[n], &vec![-w * n as f32 / 2.0; n as usize]);
    let sandbox = bare_model(Sandbox::new(), &[0.5; 4])
        .with_file("two.weights.npy", npy(&[n, n], &vec![w; (n * n) as usize]))
        .with_file("two.visible_bias.npy", bias.clone())
        .with_file("two.hidden_bias.npy", bias);
    let json = sandbox.json(&["sample", "bare.weights.npy"]);
    assert_eq!(
        (&json["method"], &json["burn_in"], &json["mixing"]),
        (&json!("exact"), &Value::Null, &Value::Null)
    );
    let text = sandbox.succeeds(&["sample", "bare.weights.npy", "-o", "s.npy"]);
    assert!(text.contains("independent exact samples, by enumeration of 2^1 states"), "{text}");
    assert!(!text.contains("mixing"), "{text}");
    // It can be enumerated, but not quickly: Gibbs chains are tried, and replaced.
    let args = ["sample", "two.weights.npy", "-n", "32", "-o", "t.npy", "--force"];
    let text = sandbox.succeeds(&args);
    for word in
        ["tempering: 16 ladders", "because Gibbs chains mix slowly", "round trips", "ladders from random"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = sandbox.json(&args);
    assert_eq!((&json["method"], &json["warning"]), (&json!("tempering"), &Value::Null), "{json}");
    assert!(
        json["gibbs"]["r_hat"].as_f64().unwrap() > 1.1 && json["mixing"]["r_hat"].as_f64().unwrap() < 1.1
    );
    let fields = ["least_swap_rate", "n_ladders", "n_rungs", "not_renewed", "round_trips", "thinning"];
    assert_eq!(keys(&json["ladders"]), fields);
    let (_, _, data) = read(&sandbox.bytes("t.npy"));
    let on = data.chunks(n as usize).filter(|row| row.iter().filter(|&&x| x == 1).count() > 17).count();
    assert!((3..=29).contains(&on), "both modes are there: {on} of 32 samples");
    // The control: Gibbs chains are in one mode, and a warning names the cure.
    let outcome = sandbox.run(&[&args[..], &["--method", "gibbs"]].concat());
    for word in ["warning: chains differ", "--method tempering"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    let short = ["--method", "tempering", "--burn-in", "4"];
    let outcome = sandbox.run(&[&args[..], &short].concat());
    for word in ["have not come from the lowest rung", "with a longer --burn-in"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
}

#[test]
fn methods_that_do_not_fit_are_refused() {
    let sandbox = Sandbox::new()
        .with_model("m.safetensors", 4)
        .with_file("large.weights.npy", npy(&[70, 66], &[0.1; 70 * 66]))
        .with_file("large.visible_bias.npy", npy(&[70], &[0.0; 70]))
        .with_file("large.hidden_bias.npy", npy(&[66], &[0.0; 66]));
    let run = |args: &[&'static str]| [&["sample", "m.safetensors"], args].concat();
    let refuses = |args: &[&'static str], words: &[&str]| sandbox.refuses(&run(args), words);
    refuses(&["--method", "exact", "--burn-in", "5"], &["--burn-in 5 is not allowed", "leave it out"]);
    refuses(&["--method", "exact", "--start", "digits"], &["--method exact is not allowed", "`gibbs`"]);
    let given = ["--method", "tempering", "--given", "digits", "--known", "rows:0-3"];
    refuses(&given, &["--method tempering is not allowed", "known units"]);
    sandbox.refuses_usage(&run(&["--method", "gibs"]), &["gibs", "gibbs, tempering, exact"]);
    let exact = ["sample", "large.weights.npy", "--method", "exact", "-o", "s.npy"];
    sandbox.refuses(&exact, &["2^66 states would take about", "tempering"]);
}

#[test]
fn pictures_are_shown_in_the_terminal() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 4);
    let text = sandbox.succeeds(&sample(&[]));
    assert!(text.contains("12 of 64 units") && text.contains(['▀', '▄', '█']), "{text}");
    // Ten abreast, four lines each.
    assert_eq!(text.lines().count(), 3 + 2 * 5, "{text}");
    let grey = sandbox.succeeds(&sample(&["--means", "-n", "1"]));
    assert!(grey.contains(['░', '▒', '▓']), "{grey}");
}

#[test]
fn pictures_are_saved_as_a_grid() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 4);
    let size = |name: &str| {
        let bytes = sandbox.bytes(name);
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        (number(20), number(16))
    };
    sandbox.succeeds(&sample(&["-n", "10", "-o", "s.png"]));
    // 8 × 8 values, seven pixels each, a line between: 3 lines of 4.
    assert_eq!(size("s.png"), (3 * 57 + 1, 4 * 57 + 1));
    sandbox.succeeds(&sample(&["-n", "10", "-o", "t.png", "--columns", "10", "--shape", "4x16", "--means"]));
    assert_eq!(size("t.png"), (4 * 3 + 2, 10 * (16 * 3 + 1) + 1));
}

#[test]
fn a_model_of_independent_units_gives_them_back() {
    let sandbox = bare_model(Sandbox::new(), &[-50.0, 50.0, -50.0, 50.0]);
    sandbox.succeeds(&["sample", "bare.npy", "-n", "3", "-o", "s.npy"]);
    assert_eq!(read(&sandbox.bytes("s.npy")).2, [0, 1, 0, 1].repeat(3));
    let text = sandbox.succeeds(&["sample", "bare.npy", "-n", "1", "--shape", "2x2"]);
    assert!(text.ends_with("\n █\n"), "{text}");
}

#[test]
fn known_units_keep_the_values_of_their_rows() {
    let rows: [u8; 8] = [1, 0, 1, 1, 0, 1, 0, 0];
    let data: Vec<f32> = rows.iter().map(|&x| f32::from(x)).collect();
    let sandbox = bare_model(Sandbox::new(), &[0.0, 0.0, 50.0, -50.0])
        .with_file("rows.npy", npy(&[2, 2, 2], &data))
        .with_file("mask.npy", npy(&[2, 2], &[1.0, 1.0, 0.0, 0.0]));
    for known in ["units:0-1", "rows:0", "mask.npy"] {
        let args = ["sample", "bare.npy", "--given", "rows.npy", "--known", known, "-o", "s.npy", "-f"];
        let json = sandbox.json(&args);
        assert_eq!(
            (&json["n_samples"], &json["n_known"], &json["known"]),
            (&json!(2), &json!(2), &json!(known))
        );
        // The first half of each row is known. The biases decide the other half.
        assert_eq!(read(&sandbox.bytes("s.npy")).2, [1, 0, 1, 0, 0, 1, 1, 0], "{known}");
    }
    let args = ["--given", "rows.npy", "--known", "columns:1", "--rows", "1", "-n", "2", "-o", "t.npy"];
    sandbox.succeeds(&[&["sample", "bare.npy"][..], &args].concat());
    let drawn = read(&sandbox.bytes("t.npy")).2;
    assert_eq!((drawn[1], drawn[3], drawn[5], drawn[7]), (1, 0, 1, 0), "row 1 twice");
}

#[test]
fn grey_rows_are_cut_before_they_are_given() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 4);
    let filled = sample(&["--given", "digits", "--split", "test", "--known", "rows:0-3", "-n", "9"]);
    let text = sandbox.succeeds(&filled);
    assert!(text.contains("rows:0-3 (32 units) of digits (test)"), "{text}");
    let json = sandbox.json(&filled);
    assert_eq!(json["given"]["preprocessing"], "value/16, threshold=0.5");
    sandbox
        .refuses(&[&filled[..], &["--binarize", "grey"]].concat(), &["digits has grey values", "--binarize"]);
}

#[test]
fn a_seed_decides_the_samples_to_the_byte_whatever_the_threads() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 6);
    let starts: [&[&str]; 3] = [
        &[],
        &["--start", "digits", "--split", "train"],
        &["--given", "digits", "--known", "units:0-20", "--binarize", "bernoulli"],
    ];
    for start in starts {
        for format in ["npy", "npz", "png"] {
            let make = |extra: &[&str]| {
                let name = format!("s.{format}");
                let args = [&sample(start)[..], &["-n", "50", "--means", "-o", &name, "-f"], extra].concat();
                (without_times(sandbox.json(&args)), sandbox.bytes(&name))
            };
            let first = make(&["--threads", "1"]);
            assert!(first == make(&["--threads", "1"]) && first == make(&["--threads", "3"]));
            assert!(first.1 != make(&["--seed", "1"]).1);
        }
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let sandbox = bare_model(Sandbox::new().with_model("m.safetensors", 3), &[0.0; 6])
        .with_file("narrow.npy", npy(&[1, 4], &[0.0, 1.0, 0.0, 1.0]))
        .with_file("half.npy", npy(&[8], &[1.0; 8]))
        .with_file("grey.npy", npy(&[64], &[0.5; 64]))
        .with_file("full.npy", npy(&[64], &[1.0; 64]))
        .with_file("taken.png", "mine");
    let refuses = |args: &[&str], words: &[&str]| sandbox.refuses(&sample(args), words);
    refuses(&["-o", "s.txt"], &["s.txt: unknown file type", ".npy, .npz, .csv and .png"]);
    refuses(&["-o", "s"], &["unknown file type"]);
    refuses(&["-o", "taken.png"], &["taken.png already exists", "--force"]);
    refuses(&["-o", "absent/s.npy"], &["cannot write absent/s.npy", "check the path"]);
    refuses(&["-n", "0", "-o", "s.npy"], &["--n-samples 0 is not allowed", "at least 1"]);
    sandbox.refuses(&["sample", "m.safetensors", "--burn-in", "0"], &["--burn-in 0 is not allowed"]);
    refuses(&["--start", "narrow.npy"], &["--start", "narrow.npy has 4 columns", "64 visible units"]);
    refuses(&["--shape", "8x9"], &["--shape", "picture of 8 × 9", "expected 64, got 72"]);
    let bare = ["sample", "bare.npy"];
    let words = ["6 visible units are not known for bare.npy", "--shape HxW", "-o FILE.csv"];
    // Without a shape, the terminal shows a table.
    assert!(sandbox.succeeds(&bare).contains(" 1   2   3   4   5   6"));
    sandbox.refuses(&[&bare[..], &["-o", "s.png"]].concat(), &words);

    let given = |known: &str, words: &[&str]| {
        sandbox.refuses(&sample(&["--given", "digits", "--known", known, "-o", "s.npy"]), words);
    };
    given("rows:0-8", &["--known", "row of the picture = 8", "there are 8, counted from 0 to 7"]);
    given("units:3,64", &["--known", "visible unit = 64", "counted from 0 to 63"]);
    given("units:0-63", &["unknown units is empty", "leave at least one"]);
    given("full.npy", &["unknown units is empty"]);
    given("half.npy", &["half.npy", "8 values", "64 visible units"]);
    given("grey.npy", &["grey.npy", "holds 0.5", "value 0"]);
    given("absent.npy", &["cannot read absent.npy", "check the path"]);
    refuses(
        &["--given", "digits", "--split", "test", "--rows", "300", "--known", "rows:0"],
        &["--rows", "there are 300, counted from 0 to 299"],
    );
    refuses(&["--given", "narrow.npy", "--known", "units:0"], &["--given", "narrow.npy has 4 columns"]);
}

#[test]
fn samples_cannot_be_asked_for_in_a_way_that_makes_no_sense() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    let refuses = |args: &[&str], words: &[&str]| sandbox.refuses_usage(&sample(args), words);
    refuses(&["--known", "rows:0-3"], &["--given"]);
    refuses(&["--given", "digits"], &["--known"]);
    refuses(&["--rows", "0-3"], &["--given"]);
    refuses(&["--given", "digits", "--known", "upper"], &["rows:0-13", ".npy mask"]);
    refuses(&["--given", "digits", "--known", "rows:5-2"], &["lower end first"]);
    refuses(&["--shape", "64"], &["such as 28x28"]);
    refuses(&["-n", "-3"], &["-3"]);
    refuses(&["--columns", "0"], &["1..=65535"]);
}

#[test]
fn features_are_saved_with_their_labels() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 5);
    let transform = |args: &[&str]| sandbox.json(&[&["transform", "m.safetensors"], args].concat());
    let json = transform(&["--split", "test", "-o", "f.npy"]);
    let expected = ["classes", "data", "labels_kept", "model", "n_hidden", "n_rows", "output"];
    assert_eq!(keys(&json), expected);
    assert_eq!(
        (&json["n_rows"], &json["n_hidden"], &json["labels_kept"]),
        (&json!(300), &json!(5), &json!(false))
    );
    let (shape, kind, _) = read(&sandbox.bytes("f.npy"));
    assert_eq!((shape, kind.as_str()), (vec![300, 5], "'<f4'"));
    let values = floats(&sandbox.bytes("f.npy"));
    assert!(values.iter().all(|&p| p > 0.0 && p < 1.0));
    // The other formats hold the same numbers, and the labels of the digits.
    let json = transform(&["--data", "digits", "--split", "test", "-o", "f.csv"]);
    assert_eq!(json["labels_kept"], true);
    let csv = String::from_utf8(sandbox.bytes("f.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("h0,h1,h2,h3,h4,label"));
    for (line, row) in lines.by_ref().zip(values.chunks(5)) {
        let cells: Vec<f32> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(&cells[..5], row);
    }
    assert_eq!(csv.lines().count(), 301);
    transform(&["--split", "test", "-o", "f.npz"]);
    for (file, extra) in [("f.npz", &[][..]), ("f.csv", &["--label-column", "label"])] {
        let shown = sandbox.json(&[&["data", "show", file][..], extra].concat());
        assert_eq!(
            (&shown["provenance"]["n_columns"], &shown["provenance"]["n_rows"]),
            (&json!(5), &json!(300))
        );
        assert_eq!(shown["classes"].as_array().map(Vec::len), Some(10), "{file}");
    }
    // Binarised data have other features, and the text says what was done.
    let text =
        sandbox.succeeds(&["transform", "m.safetensors", "--binarize", "threshold=0.5", "-o", "b.npy"]);
    assert!(text.contains("1797 rows × 5 hidden") && text.contains("threshold=0.5"), "{text}");
    assert!(text.contains("left out"), "{text}");
}

#[test]
fn what_cannot_be_transformed_is_refused() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3).with_file("taken.csv", "mine");
    let refuses = |args: &[&str], words: &[&str]| {
        sandbox.refuses(&[&["transform", "m.safetensors"], args].concat(), words);
    };
    refuses(&["-o", "f.png"], &["f.png: unknown file type", ".npy, .npz and .csv"]);
    refuses(&["-o", "taken.csv"], &["taken.csv already exists", "--force"]);
    refuses(&["--data", "bars-and-stripes:4"], &["has 16 columns", "64 visible units"]);
    refuses(&["--data", "digist"], &["did you mean \"digits\"?"]);
    sandbox.succeeds(&["convert", "m.safetensors", "m.npz"]);
    sandbox.refuses(&["transform", "m.npz"], &["does not record its data", "--data"]);
    std::fs::create_dir(sandbox.path("f.npy")).unwrap();
    refuses(&["-o", "f.npy"], &["is a folder; give the path of a file"]);
}
