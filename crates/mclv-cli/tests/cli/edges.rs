//! Numbers at the edge: extreme parameters, rates and sizes, and data without information. Every
//! command prints finite numbers, or says what is wrong. `MCLV_EDGES=all` tries every combination.

use crate::support::Sandbox;
use mclv::{ModelFile, Rbm};

/// Runs a command, which may fail with an error, but not in another way.
fn is_sound(sandbox: &Sandbox, args: &[&str]) -> bool {
    let outcome = sandbox.run(args);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(matches!(outcome.code, Some(0..=2)), "{args:?}: {:?} {said}", outcome.code);
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    let words =
        |text: &str| text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect::<Vec<_>>();
    let is_number = |word: &String| ["nan", "inf", "infinity"].contains(&word.as_str());
    let is_good = outcome.code == Some(0);
    if is_good {
        assert!(!words(&outcome.stdout).iter().any(is_number), "{args:?}: {}", outcome.stdout);
    } else {
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.len() > 20, "{args:?}: {said}");
    }
    is_good
}

/// All of a list for `MCLV_EDGES=all`, else those at these places.
fn some<T: Copy>(all: &[T], places: &[usize]) -> Vec<T> {
    match std::env::var("MCLV_EDGES") {
        Ok(_) => all.to_vec(),
        Err(_) => places.iter().map(|&k| all[k]).collect(),
    }
}

const SMALL: [&str; 12] = [
    "--n-tours",
    "50",
    "--n-chains",
    "20",
    "--n-betas",
    "20",
    "--n-ladders",
    "4",
    "--ladder-steps",
    "20",
    "--max-steps",
    "20000",
];

/// Weights to ±10⁴ and biases to ±10⁵, of both signs.
#[test]
fn extreme_parameters_give_finite_numbers() {
    let sandbox = Sandbox::new();
    for n_hidden in some(&[1, 63, 64, 65, 1000], &[0, 3]) {
        for (k, (w, b)) in
            some(&[(1e4, 1e5), (1e4, 0.0), (0.0, -1e5), (-1e4, 1e5)], &[0]).into_iter().enumerate()
        {
            let sign = |i: usize| if (i * 2_654_435_761) >> 7 & 1 == 0 { 1.0 } else { -1.0 };
            let some = |n: usize, scale: f32| (0..n).map(|i| scale * sign(i + k)).collect::<Vec<f32>>();
            let rbm =
                Rbm::new(9, n_hidden, &some(9 * n_hidden, w), &some(9, b), &some(n_hidden, -b)).unwrap();
            ModelFile::new(rbm).save(sandbox.path("m.npz")).unwrap();
            let data = ["--data", "bars-and-stripes:3"];
            let _ = std::fs::remove_dir_all(sandbox.path("run"));
            let _ = std::fs::remove_file(sandbox.path("ladder.json"));
            let mut n_good = 0;
            for args in [
                [&["logz", "m.npz"][..], &data].concat(),
                [&["logz", "m.npz", "--method", "mclv,ladder,ais,reverse-ais,bar"][..], &data, &SMALL]
                    .concat(),
                [&["likelihood", "m.npz", "--pseudo"][..], &data].concat(),
                [&["tours", "m.npz", "--n-tours", "200", "--max-steps", "1000"][..], &data].concat(),
                [&["modes", "m.npz"][..], &data].concat(),
                vec!["sample", "m.npz", "-n", "20", "-o", "s.npy", "--force"],
                vec![
                    "sample",
                    "m.npz",
                    "-n",
                    "20",
                    "--method",
                    "tempering",
                    "--burn-in",
                    "50",
                    "-o",
                    "s.npy",
                    "--force",
                ],
                [&["transform", "m.npz", "-o", "f.csv", "--force"][..], &data].concat(),
                vec!["inspect", "m.npz"],
                [&["logz", "m.npz", "--method", "ladder", "--save-ladder", "ladder.json"][..], &data, &SMALL]
                    .concat(),
                [&["logz", "m.npz", "--method", "ladder", "--ladder", "ladder.json"][..], &data, &SMALL]
                    .concat(),
                vec![
                    "train",
                    "bars-and-stripes:3",
                    "--from",
                    "m.npz",
                    "--epochs",
                    "2",
                    "--snapshots",
                    "1,2",
                    "-o",
                    "run",
                ],
                [&["logz", "run", "--method", "bar", "--rungs", "run/snapshots"][..], &SMALL].concat(),
                vec!["report", "run"],
            ] {
                n_good += usize::from(is_sound(&sandbox, &args));
            }
            assert!(n_good >= 10, "{n_hidden} hidden units, {w}, {b}: only {n_good} commands have answers");
        }
    }
}

/// All zeros, all ones, constant columns, one row, one column.
#[test]
fn data_without_information_are_trained_on() {
    let sandbox = Sandbox::new();
    let repeated = |row: &str| format!("{row}\n").repeat(12);
    let sets = [
        ("zeros.csv", repeated("0,0,0,0")),
        ("ones.csv", repeated("1,1,1,1")),
        ("columns.csv", repeated("0,1,1,0\n0,1,0,1")),
        ("row.csv", "1,0,1,0\n".into()),
        ("column.csv", repeated("0\n1")),
    ];
    for (name, text) in &sets {
        std::fs::write(sandbox.path(name), text).unwrap();
    }
    let names: Vec<&str> = sets.iter().map(|(name, _)| *name).collect();
    for name in some(&names, &[0, 1, 2, 3, 4]) {
        for n_hidden in some(&["1", "63", "64", "65", "1000"], &[0]) {
            for gradient in some(&["lvs", "cd", "pcd", "tempered", "exact"], &[0]) {
                let _ = std::fs::remove_dir_all(sandbox.path("run"));
                let train =
                    ["train", name, "--n-hidden", n_hidden, "--gradient", gradient, "--no-validation"];
                let few = ["--epochs", "3", "-o", "run"];
                if is_sound(&sandbox, &[&train[..], &few].concat()) {
                    let steps = ["--max-steps", "100"];
                    for (command, more) in
                        [("likelihood", &[][..]), ("logz", &[]), ("tours", &steps), ("modes", &[])]
                    {
                        is_sound(&sandbox, &[&[command, "run"], more].concat());
                    }
                    is_sound(&sandbox, &["sample", "run", "-n", "9", "-o", "s.npy", "--force"]);
                } else {
                    assert!(n_hidden == "1000" || gradient == "exact", "{name}, {n_hidden}, {gradient}");
                }
            }
        }
    }
}

/// A rate of 10⁶ diverges or stays finite; either is said.
#[test]
fn absurd_rates_end_in_a_model_or_in_advice() {
    let sandbox = Sandbox::new();
    for gradient in some(&["lvs", "cd", "pcd", "tempered", "exact"], &[1, 2]) {
        for rate in some(&["1e6", "1e30", "1e-300"], &[0]) {
            for optimizer in some(&["sgd", "adam"], &[0, 1]) {
                let _ = std::fs::remove_dir_all(sandbox.path("run"));
                let args = ["train", "bars-and-stripes:3", "--n-hidden", "3", "--epochs", "20", "-o", "run"];
                let how = ["--gradient", gradient, "--lr", rate, "--optimizer", optimizer];
                if is_sound(&sandbox, &[&args[..], &how].concat()) {
                    is_sound(&sandbox, &["likelihood", "run"]);
                    is_sound(&sandbox, &["tours", "run", "--max-steps", "100"]);
                }
            }
        }
    }
}

/// A sweep goes on where one of its settings cannot.
#[test]
fn a_sweep_with_an_absurd_setting_chooses_another() {
    let sandbox = Sandbox::new();
    let sweep =
        ["sweep", "bars-and-stripes:3", "--n-hidden", "2", "--gradient", "cd", "--learning-rate", "0.1,1e30"];
    let few = ["--epochs", "20", "--validation-fraction", "0.3", "-o", "sweep"];
    assert!(is_sound(&sandbox, &[&sweep[..], &few].concat()));
}

/// Numbers that would take memory or time without end are refused, with what is allowed.
#[test]
fn absurd_numbers_are_refused_with_the_limit() {
    let sandbox = Sandbox::new().with_model("m.safetensors", 3);
    let train = |flags: &[&'static str]| [&["train", "digits", "-o", "run"][..], flags].concat();
    let model =
        |command: &'static str, flags: &[&'static str]| [&[command, "m.safetensors"][..], flags].concat();
    const BILLION: &str = "1000000000";
    for (args, word) in [
        (train(&["--gradient", "lvs", "--n-hidden", "8", "--samples-per-row", BILLION]), "samples-per-row"),
        (train(&["--gradient", "cd", "--k", BILLION]), "--k"),
        (train(&["--gradient", "lvs", "--n-hidden", "8", "--k", BILLION]), "--k"),
        (train(&["--checkpoint-minutes", "nan"]), "--checkpoint-minutes"),
        (train(&["--checkpoint-minutes", "-1"]), "--checkpoint-minutes"),
        (train(&["--epochs", "4294967296"]), "--epochs"),
        (train(&["--epochs", "18446744073709551615"]), "--epochs"),
        (train(&["--n-hidden", "4294967296"]), "2^32"),
        (train(&["--gradient", "pcd", "--n-chains", "4294967296"]), "chains"),
        (train(&["--gradient", "tempered", "--n-rungs", "4294967296"]), "--n-rungs"),
        (train(&["--gradient", "tempered", "--n-chains", BILLION]), "chains"),
        (train(&["--lr", "nan"]), "--learning-rate"),
        (train(&["--lr", "-1"]), "--learning-rate"),
        (train(&["--final-se", "nan"]), "--final-se"),
        (train(&["--momentum", "nan"]), "--momentum"),
        (train(&["--restarts", "4294967296"]), "--restarts"),
        (train(&["--snapshots", "18446744073709551616"]), "snapshots"),
        (model("tours", &["--samples-per-row", BILLION]), "samples-per-row"),
        (model("logz", &["--method", "mclv", "--samples-per-row", BILLION]), "samples-per-row"),
        (model("logz", &["--method", "ais", "--n-betas", "18446744073709551615"]), "n-betas"),
        (model("logz", &["--method", "bar", "--ladder-steps", "18446744073709551615"]), "ladder-steps"),
        (model("logz", &["--method", "bar", "--n-ladders", "18446744073709551615"]), "ladders"),
        (model("logz", &["--method", "mclv", "--n-tours", "18446744073709551615"]), "n-tours"),
        (model("logz", &["--method", "mclv", "--n-tours", "4000000000", "--max-steps", "none"]), "n-tours"),
        (model("logz", &["--method", "ladder", "--n-tours", "18446744073709551615"]), "n-tours"),
        (model("logz", &["--method", "ladder", "--n-tours", "2000000000"]), "n-tours"),
        (model("tours", &["--n-tours", "4000000000", "--max-steps", "none"]), "n-tours"),
        (model("modes", &["--n-tours", "4000000000", "--method", "mclv"]), "n-tours"),
        (model("logz", &["--target-se", "nan"]), "target-se"),
        (model("logz", &["--target-se", "0"]), "target-se"),
        (model("logz", &["--time-limit", "nan"]), "time-limit"),
        (model("sample", &["-n", "18446744073709551615", "-o", "s.npy"]), "n"),
        (model("sample", &["-n", "9", "-o", "s.npy", "--burn-in", "18446744073709551615"]), "burn-in"),
        (vec!["data", "show", "bars-and-stripes:1000000000"], "bars-and-stripes"),
        (vec!["data", "show", "ising:nan"], "ising"),
        (vec!["init", "digits", "--n-hidden", "4294967296", "-o", "x.npz"], "2^32"),
        (vec!["reproduce", "digits", "--data", "digits", "--seed", "18446744073709551615"], "--seed"),
        (vec!["sweep", "digits", "--n-hidden", "8", "--seeds", "0..18446744073709551615"], "seeds"),
    ] {
        let outcome = sandbox.run(&args);
        assert!(matches!(outcome.code, Some(1 | 2)), "{args:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.starts_with("error: ") && outcome.stderr.contains(word),
            "{args:?}: {}",
            outcome.stderr
        );
        assert!(
            !outcome.stderr.contains("panicked") && outcome.stdout.is_empty(),
            "{args:?}: {}",
            outcome.stderr
        );
        assert!(
            !sandbox.path("run").exists() && !sandbox.path("sweeps").exists(),
            "{args:?} leaves a folder"
        );
    }
}
