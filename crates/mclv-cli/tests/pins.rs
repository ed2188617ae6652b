//! Pin what commands print and write, so that every change of behaviour shows in a file of
//! `tests/pins`.
//!
//! Each line of the table below is a test: a name, and one or several commands, separated by `;`.
//! The commands run in a folder that holds a copy of `tests/pins/given`. `tests/pins/NAME.json`
//! holds their output and the files that they made or changed, without times and versions of the
//! program. `MCLV_UPDATE_PINS=1 cargo test -p mclv-cli --test pins` writes these files anew; read
//! their differences before you commit them. `RAYON_NUM_THREADS` and `MCLV_ISA=portable` change no
//! pin.

#[allow(dead_code, reason = "the other test program uses the rest")]
#[path = "cli/support.rs"]
mod support;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::Sandbox;

macro_rules! pins {
    ($($name:ident: $commands:literal;)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            check(stringify!($name), $commands);
        })*
    };
}

// In `tests/pins/given`, `bars.safetensors` (16 × 10 units), `digits.safetensors` (64 × 12) and
// `grey.safetensors` (4 × 3) are trained models, `set.safetensors` is a stopping set of the second.
// `runs` holds interrupted runs. `rows.csv` has labels in its last column, and `weights.csv` a
// weight for each of its rows.
pins! {
    // Training: the defaults, every gradient, every policy for tours that have not returned.
    train_default_up_to_64_units: "train digits --hidden 12 --epochs 3 -o run";
    train_default_above_64_units: "train digits --hidden 65 --epochs 2 --eval-every 9 -o run";
    train_default_seed_7: "train bars-and-stripes:3 --hidden 8 --epochs 20 --seed 7 -o run";
    train_cd_1: "train bars-and-stripes:4 --hidden 6 --epochs 12 --gradient cd -o run";
    train_cd_3: "train digits --hidden 6 --epochs 2 --gradient cd --k 3 -o run";
    train_cd_mean_field: "train digits --hidden 6 --epochs 2 --gradient cd --visible mean-field -o run";
    train_pcd: "train digits --hidden 6 --epochs 2 --gradient pcd --k 1 -o run";
    train_pcd_named: "train digits --n-hidden 6 --epochs 2 --gradient pcd -o run";
    train_pcd_50_chains: "train digits --hidden 6 --epochs 2 --gradient pcd --k 2 --chains 50 --visible mean-field -o run";
    train_tempered: "train digits --hidden 12 --epochs 3 --gradient tempered --n-chains 16 --n-rungs 4 --snapshots 0,2 -o run";
    train_lvs_named: "train digits --hidden 12 --epochs 3 --gradient lvs -o run";
    train_lvs_carry_metropolis: "train digits --hidden 12 --epochs 3 --gradient lvs --k 3 --unfinished carry --starts metropolis --min-ess 0.9 --row-fraction 1 --lr 3 -o run";
    train_lvs_carry_fresh: "train digits --hidden 12 --epochs 2 --gradient lvs --k 3 --unfinished carry --starts fresh --row-fraction 0.1 --lr 0.4 -o run";
    train_lvs_keep: "train digits --hidden 12 --epochs 2 --gradient lvs --k 3 --row-fraction 0.2 --unfinished keep --statistics mean-hidden -o run";
    train_lvs_drop_weighted: "train digits --hidden 12 --epochs 3 --gradient lvs --k 5 --row-fraction 0.2 --unfinished drop --starts weighted --statistics mean-visible --samples-per-row 2 --redraw-every 2 --min-ess 0.9 --lr 3 -o run";
    train_lvs_drop_fresh_mean_field: "train digits --hidden 12 --epochs 2 --gradient lvs --k 5 --unfinished drop --starts fresh --visible mean-field --tours 40 -o run";
    train_lvs_dynamic: "train bars-and-stripes:4 --hidden 6 --epochs 12 --gradient lvs --k dynamic --unfinished keep -o run";
    train_lvs_more_rows_for_completion: "train digits --hidden 12 --epochs 7 --gradient lvs --k 2 --row-fraction 0.02 --target-completion 0.9 --max-states 700 --max-set-cost 20 --lr 0.4 -o run";
    train_lvs_more_samples_for_completion: "train digits --hidden 12 --epochs 4 --gradient lvs --k 1 --row-fraction 0.5 --target-completion 0.99 --unfinished drop -o run";
    train_lvs_no_tour_returns: "train digits --hidden 20 --epochs 2 --gradient lvs --unfinished drop --row-fraction 0.01 --eval-every 9 --no-report -o run";
    train_exact: "train bars-and-stripes:4 --hidden 8 --epochs 30 --gradient exact -o run";
    train_paper_lvs: "train digits --preset paper --gradient lvs --k 2 --hidden 12 --epochs 4 --warm-up-epochs 2 -o run";
    train_paper_cd: "train digits --preset paper --gradient cd --hidden 6 --epochs 2 -o run";
    train_paper_pcd: "train digits --preset paper --gradient pcd --k 2 --hidden 6 --epochs 2 -o run";
    train_paper_default_gradient: "train digits --preset paper --hidden 6 --epochs 2 --warm-up-epochs 1 -o run";

    // Training: everything else that can be set.
    train_adam: "train digits --hidden 6 --epochs 2 --gradient cd --optimizer adam --schedule constant -o run";
    train_adam_default_gradient: "train digits --hidden 12 --epochs 2 --optimizer adam -o run";
    train_momentum_cosine: "train digits --hidden 6 --epochs 3 --gradient pcd --k 1 --momentum 0.9 --lr 0.05 --schedule cosine -o run";
    train_decay_clip_not_centred: "train digits --hidden 6 --epochs 2 --gradient pcd --k 1 --l1 1e-4 --l2 1e-3 --clip 0.5 --no-centring --init paper -o run";
    train_plateau_offset_drop_last: "train digits --hidden 12 --epochs 3 --schedule plateau --offset-rate 0.1 --drop-last --batch-size 100 -o run";
    train_warm_up: "train digits --hidden 12 --epochs 3 --gradient lvs --k 2 --row-fraction 1 --lr 0.4 --warm-up-epochs 1 -o run";
    train_redrawn_bits: "train digits --hidden 12 --epochs 2 --binarize bernoulli --redraw-bits --seed 3 -o run";
    train_threshold: "train digits --hidden 6 --epochs 2 --binarize threshold=0.5 --gradient cd -o run";
    train_patience: "train digits --hidden 6 --epochs 30 --gradient cd --lr 3 --schedule constant --eval-every 1 --patience 2 -o run";
    train_csv_with_labels_and_weights: "train rows.csv --label-column -1 --weights weights.csv --hidden 3 --epochs 10 -o run";
    train_automatic_epochs: "train bars-and-stripes:3 --hidden 3 --gradient cd --batch-size 1 -o run";
    train_watched_exactly: "train digits --hidden 16 --epochs 19 --eval-every 6 --gradient pcd --k 1 --no-report -o run";
    train_names_its_folder: "train ising --hidden 4 --epochs 1; train ising --hidden 4 --epochs 1 --no-report";
    train_config_and_flags: "train --config config.toml --hidden 12 --k 2 --seed 4 --lr 0.1 -o run; train --config run/config.toml -o again";

    // Runs that an earlier version began and did not finish: the same model as that of the whole
    // run.
    resume_lvs: "train --resume runs/lvs; train --config runs/lvs/config.toml --no-report -o whole";
    resume_pcd_adam: "train --resume runs/pcd-adam; train --config runs/pcd-adam/config.toml --no-report -o whole";
    resume_in_warm_up: "train --resume runs/warm-up; train --config runs/warm-up/config.toml --no-report -o whole";
    resume_finished: "train bars-and-stripes:3 --hidden 3 --epochs 2 -o run; train --resume run";

    // log Z: every method, and the choice of one.
    logz_default: "logz bars.safetensors";
    logz_exact: "logz digits.safetensors --method exact";
    logz_mclv: "logz digits.safetensors --method mclv --target-se 0.05";
    logz_mclv_fixed_tours: "logz digits.safetensors --method mclv --tours 3000 --samples-per-row 3 --seed 5";
    logz_mclv_mean_field: "logz digits.safetensors --method mclv --tours 2000 --visible mean-field";
    logz_mclv_set_from_a_file: "logz digits.safetensors --method mclv --tours 2000 --stopping-set set.safetensors";
    logz_mclv_pilot_states: "convert bars.safetensors bare.npz; logz bare.npz --method mclv --tours 2000";
    logz_ais: "logz digits.safetensors --method ais --betas 200 --chains 64";
    logz_reverse_ais: "logz digits.safetensors --method reverse-ais --betas 200";
    logz_reverse_ais_from_data: "logz digits.safetensors --method reverse-ais --betas 200 --exact-samples false";
    logz_ladder: "logz digits.safetensors --method ladder --target-se 0.1";
    logz_bar: "logz digits.safetensors --method bar --ladders 4 --ladder-steps 400";
    logz_agreement: "logz bars.safetensors --method exact,mclv,ais,reverse-ais,bar --betas 300 --target-se 0.05 --ladders 4 --ladder-steps 400";
    logz_tours_chosen: "logz digits.safetensors --time-limit 0 --target-se 0.05";
    logz_ais_chosen: "init digits --hidden 300 -o wide.safetensors; logz wide.safetensors --max-steps 20000 --betas 100";
    logz_lower_bound: "init digits --hidden 300 -o wide.safetensors; logz wide.safetensors --method mclv --max-steps 20000";
    logz_without_data: "convert digits.safetensors bare.npz; logz bare.npz --time-limit 0 --betas 200";
    logz_other_data: "logz grey.safetensors --data rows.csv --label-column -1 --split all --method mclv --target-se 0.1";

    // Tours.
    tours_from_pi: "tours digits.safetensors --tours 2000 --samples-per-row 1,4 --csv tail.csv --pictures tours.png";
    tours_from_rows: "tours digits.safetensors --tours 2000 --starts rows --split test --max-steps 9000";
    tours_mean_field: "tours digits.safetensors --tours 2000 --visible mean-field --pictures tours.png --columns 5";
    tours_cut: "tours digits.safetensors --tours 2000 --max-length 2 --seed 3";
    tours_solved_exactly: "init bars-and-stripes:3 --hidden 6 -o small.safetensors; tours small.safetensors --tours 2000";

    // Likelihoods, samples, features.
    likelihood_exact: "likelihood digits.safetensors --pseudo";
    likelihood_by_tours: "likelihood digits.safetensors --method mclv --target-se 0.05 --split test --seed 2";
    likelihood_by_reverse_ais: "likelihood digits.safetensors --method reverse-ais --betas 200 --split validation,test";
    likelihood_chosen: "likelihood digits.safetensors --time-limit 0 --split test --binarize bernoulli --seed 5";
    likelihood_csv: "likelihood grey.safetensors --split all,train,test";
    sample_free: "sample digits.safetensors -n 20 --burn-in 50 -o s.npz --means; sample digits.safetensors -n 10 --burn-in 5 -o s.png";
    sample_printed: "sample bars.safetensors -n 8 --burn-in 100 --seed 3";
    sample_chosen: "sample bars.safetensors -n 8 --seed 3";
    sample_exact: "sample digits.safetensors -n 20 --method exact --means -o s.npz";
    sample_tempered: "sample digits.safetensors -n 40 --method tempering --burn-in 200 --means -o s.npz; sample bars.safetensors -n 8 --method tempering --burn-in 100";
    sample_from_rows: "sample digits.safetensors -n 20 --burn-in 10 --start digits --split train -o s.npy";
    sample_conditioned: "sample digits.safetensors --given digits --split test --rows 0-4,7 --known rows:0-3 --burn-in 20 -o s.npy";
    sample_conditioned_by_mask: "sample bars.safetensors -n 6 --given bars-and-stripes:4 --known units:0-3,8 --burn-in 20 --means -o s.npy";
    transform_npy: "transform digits.safetensors --split test -o f.npy";
    transform_npz: "transform digits.safetensors --data digits --binarize bernoulli --seed 3 -o f.npz";
    transform_csv: "transform grey.safetensors --split all -o f.csv";

    // Files of models and data.
    convert: "convert bars.safetensors m.npz; convert m.npz parts.npy; convert parts.npy back.safetensors; convert bars.safetensors copy.safetensors";
    init_data: "init digits --hidden 5 --binarize threshold=0.5 --seed 3 -o m.safetensors; inspect m.safetensors";
    init_paper: "init bars-and-stripes:4 --hidden 5 --init paper --split all -o m.safetensors; inspect m.safetensors";
    inspect: "inspect digits.safetensors; inspect bars.safetensors; inspect grey.safetensors";
    data_show: "data show digits; data show digits --binarize bernoulli --seed 3 --split test; data show bars-and-stripes:3; data show ising:0.2 --seed 5; data show rows.csv --label-column -1 --split train";

    // The paper's experiments.
    reproduce_table2: "reproduce table2 --quick --data digits --seeds 1 -o r";
    reproduce_partition: "reproduce partition --quick --data digits --seeds 1 -o r";
    reproduce_tour_images: "reproduce tour-images --quick --data digits --seeds 1 -o r";

    // What is refused, with its reason.
    refused_gradients: "train digits --gradient cd --chains 5; train digits --gradient pcd --k dynamic; train digits --gradient exact --k 2; train digits --gradient lvs --starts weighted; train digits --gradient lvs --row-fraction 2; train digits --preset paper --gradient lvs --epochs 10";
    refused_training: "train digits --lr 0; train digits --epochs 0; train digits --redraw-bits; train digits --optimizer adam --momentum 0.9; train rows.csv --label-column -1 --weights config.toml; train --config typo.toml; train --resume runs";
    refused_questions: "logz digits.safetensors --method mclv --tours 0; logz digits.safetensors --method mclv --target-se 0; logz bars.safetensors --data digits; tours digits.safetensors --max-steps 5; sample digits.safetensors --given digits --known rows:0-9";
}

/// The files below a folder by their names there; hidden ones are left out.
type Files = BTreeMap<String, Vec<u8>>;

fn pins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pins")
}

/// Compare what the commands do with the pin, or write the pin anew.
fn check(name: &str, commands: &str) {
    let found = run(commands);
    let path = pins().join(format!("{name}.json"));
    if std::env::var_os("MCLV_UPDATE_PINS").is_some() {
        return std::fs::write(path, found).unwrap();
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(difference) = difference(&pinned, &found) {
        panic!("{name} is not what tests/pins/{name}.json says:\n{difference}");
    }
}

/// Runs the commands and returns their output and files as the text of a pin.
fn run(commands: &str) -> String {
    let mut sandbox = Sandbox::new();
    if std::env::var("MCLV_ISA").is_ok_and(|isa| isa == "portable") {
        sandbox = sandbox.with_variable("MCLV_ISA", "portable");
    }
    let given = files(&pins().join("given"));
    for (name, bytes) in &given {
        let path = sandbox.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let outputs: Vec<Value> = commands.split("; ").map(|command| output(&sandbox, command)).collect();
    let mut written = files(&sandbox.path(""));
    written.retain(|name, bytes| given.get(name) != Some(bytes));
    let written: BTreeMap<&String, Value> =
        written.iter().filter_map(|(name, bytes)| Some((name, content(name, bytes)?))).collect();
    let pin = json!({ "commands": outputs, "files": written });
    let text = format!("{}\n", serde_json::to_string_pretty(&pin).unwrap());
    // Runs record the folder that the paths of their data start from.
    let folder = sandbox.path("").canonicalize().unwrap();
    text.replace(folder.to_str().unwrap(), "FOLDER")
}

/// Runs one command and returns its output. A failure adds the exit code, and a warning adds the
/// lines of standard error.
fn output(sandbox: &Sandbox, command: &str) -> Value {
    let args: Vec<&str> = command.split(' ').chain(["--json"]).collect();
    let outcome = sandbox.run(&args);
    let mut output = json!({ "command": format!("mclv {command}") });
    if outcome.code == Some(0) {
        output["json"] = stable(serde_json::from_str(&outcome.stdout).unwrap());
    } else {
        assert!(outcome.stdout.is_empty(), "mclv {command} prints although it fails");
        output["code"] = json!(outcome.code);
    }
    if !outcome.stderr.is_empty() {
        output["stderr"] = outcome.stderr.lines().collect();
    }
    output
}

fn files(folder: &Path) -> Files {
    fn visit(root: &Path, folder: &Path, files: &mut Files) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                visit(root, &path, files);
            } else if !path.file_name().unwrap().to_str().unwrap().starts_with('.') {
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    let mut files = Files::new();
    visit(folder, folder, &mut files);
    files
}

/// The most lines of metrics that a pin holds; of longer ones it holds a digest.
const READABLE: usize = 40;

/// Returns the pinned part of a file, which depends on its kind. Returns `None` for the run folders
/// of `reproduce`, because other files hold their results, and for the sittings of a run, because they
/// say when and on which machine it was made.
fn content(name: &str, bytes: &[u8]) -> Option<Value> {
    let text = || std::str::from_utf8(bytes).unwrap();
    let is_reproduction = name.starts_with("r/");
    if name.ends_with("sittings.jsonl") {
        return None;
    }
    if name.starts_with("r/runs/") && name.matches('/').count() > 2 {
        return None;
    }
    Some(match name.rsplit_once('.').unwrap().1 {
        "toml" => text().lines().collect(),
        "safetensors" => tensors(bytes),
        "jsonl" => {
            let lines: Vec<String> = text().lines().map(stable_line).collect();
            match lines.len() {
                n if n > READABLE => json!({ "lines": n, "sha256": sha256(lines.concat().as_bytes()) }),
                _ => json!(lines),
            }
        }
        "json" => json!({ "sha256": sha256(stable_line(text()).as_bytes()) }),
        // Pages show times.
        "html" => json!("a page"),
        // Its last line says how long it took.
        "md" => {
            text().lines().map(|line| line.rsplit_once(" runs, ").map_or(line, |(start, _)| start)).collect()
        }
        // The machine rounds the pixels of figures.
        "png" if is_reproduction => json!("a figure"),
        _ => json!({ "bytes": bytes.len(), "sha256": sha256(bytes) }),
    })
}

/// The tensors of a `.safetensors` file by digest, and its facts.
fn tensors(bytes: &[u8]) -> Value {
    let (size, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*size) as usize);
    let mut header: BTreeMap<String, Value> = serde_json::from_slice(header).unwrap();
    let mut facts = header.remove("__metadata__").unwrap_or_default();
    for (_, text) in facts.as_object_mut().into_iter().flatten() {
        *text = json!(stable_line(text.as_str().unwrap()));
    }
    let tensors: BTreeMap<String, String> = header
        .into_iter()
        .map(|(name, tensor)| {
            let at = |k: usize| tensor["data_offsets"][k].as_u64().unwrap() as usize;
            let what = format!("{} {}", tensor["dtype"].as_str().unwrap(), tensor["shape"]);
            (name, format!("{what} {}", sha256(&data[at(0)..at(1)])))
        })
        .collect();
    json!({ "facts": facts, "tensors": tensors })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Remove times, versions of the program, and lengths of files that hold times. The settings of a
/// run of `reproduce` are removed too: they decide the name of its file, which is pinned.
fn stable(mut value: Value) -> Value {
    const LEFT_OUT: [&str; 8] = [
        "seconds",
        "evaluation_seconds",
        "cpu_seconds",
        "core_seconds",
        "mclv_version",
        "metrics_bytes",
        "checksum",
        "task",
    ];
    fn visit(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|key, value| match key.as_str() {
                    "version" => value.is_number(),
                    key => !LEFT_OUT.contains(&key),
                });
                members.values_mut().for_each(visit);
            }
            Value::Array(items) => items.iter_mut().for_each(visit),
            _ => {}
        }
    }
    visit(&mut value);
    value
}

/// A text of JSON without these members, in one line.
fn stable_line(json: &str) -> String {
    stable(serde_json::from_str(json).unwrap()).to_string()
}

/// The first lines in which two texts differ, if they do.
fn difference(pinned: &str, found: &str) -> Option<String> {
    const LINES: usize = 6;
    let (pinned, found): (Vec<&str>, Vec<&str>) = (pinned.lines().collect(), found.lines().collect());
    let first = (0..pinned.len().max(found.len())).find(|&k| pinned.get(k) != found.get(k))?;
    let shown = |sign: char, lines: &[&str]| -> String {
        lines.iter().skip(first).take(LINES).map(|line| format!("{sign}{line}\n")).collect()
    };
    Some(format!("line {}:\n{}{}", first + 1, shown('-', &pinned), shown('+', &found)))
}

#[test]
fn every_pin_has_its_line_in_the_table() {
    for name in files(&pins()).keys().filter(|name| !name.starts_with("given/")) {
        assert!(NAMES.contains(&name.trim_end_matches(".json")), "nothing makes tests/pins/{name}");
    }
}

#[test]
fn a_changed_number_is_reported_and_a_changed_time_is_not() {
    let pin = run("train bars-and-stripes:3 --hidden 3 --epochs 2 --gradient cd -o run");
    assert_eq!(difference(&pin, &pin), None);
    let other = run("train bars-and-stripes:3 --hidden 3 --epochs 2 --gradient cd -o run --seed 1");
    assert!(difference(&pin, &other).is_some());
    let digit = pin.rfind("\"weights\": \"F32").unwrap() + 30;
    let mut changed = pin.clone().into_bytes();
    changed[digit] = if changed[digit] == b'0' { b'1' } else { b'0' };
    let report = difference(&pin, std::str::from_utf8(&changed).unwrap()).unwrap();
    assert!(report.starts_with("line ") && report.contains("\n-") && report.contains("\n+"), "{report}");
    let longer = difference(&pin, &format!("{pin}more\n")).unwrap();
    assert!(longer.ends_with(":\n+more\n"), "{longer}");
    let metrics = json!({ "log_z": { "value": 0.1, "seconds": 3.0 }, "seconds": 2.0, "version": "0.1.0" });
    assert_eq!(stable(metrics), json!({ "log_z": { "value": 0.1 } }));
}
