//! Defaults, rules, and the complete form.

use super::*;
use crate::chain::VisibleChain;
use crate::model::Init;
use crate::rng::{Purpose, stream};
use serde_json::{Value, json};

const N_ROWS: usize = 55_000;

fn checked(settings: &Settings) -> CheckedSettings {
    settings.check(N_ROWS).unwrap()
}

fn refused(settings: Settings) -> String {
    settings.check(N_ROWS).unwrap_err().to_string()
}

/// Settings from keys and values, as a file has them.
fn from(value: Value) -> Settings {
    serde_json::from_value(value).unwrap()
}

fn tours(settings: &Settings) -> LvsSettings {
    match checked(settings).gradient {
        EstimatorSettings::Lvs(lvs) => lvs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_default_is_tours_for_small_models_and_chains_for_large_ones() {
    let small = checked(&Settings::default());
    let expected = CheckedSettings {
        preset: Preset::Default,
        n_hidden: 25,
        init: Init::Data,
        gradient: EstimatorSettings::Lvs(LvsSettings {
            k: TourLength::Steps(3),
            row_fraction: 0.03,
            ..LvsSettings::default()
        }),
        warm_up: None,
        epochs: 100,
        batch_size: 128,
        drop_last: false,
        learning_rate: 0.6,
        schedule: Schedule::Linear,
        restarts: Restarts::default(),
        optimizer: Optimizer::Sgd { momentum: 0.0 },
        l1: 0.0,
        l2: 0.0,
        clip: None,
        centred: true,
        offset_rate: 0.01,
        redraw_bits: false,
        eval_every: EvalEvery::Auto,
        final_se: None,
        patience: None,
        validation_fraction: None,
        snapshots: Snapshots::Off,
        seed: 0,
    };
    assert_eq!(small, expected);
    let large = checked(&from(json!({ "n-hidden": 65 })));
    let gradient = EstimatorSettings::Pcd { k: 3, n_chains: None, visible: VisibleChain::Sampled };
    assert_eq!(large, CheckedSettings { n_hidden: 65, gradient, learning_rate: 0.4, ..expected });
}

#[test]
fn to_name_the_default_changes_nothing() {
    for n_hidden in [1, 25, 64, 65, 500] {
        let default = from(json!({ "n-hidden": n_hidden }));
        let gradient = if n_hidden <= 64 { "lvs" } else { "pcd" };
        let named = from(json!({ "n-hidden": n_hidden, "gradient": gradient, "preset": "default" }));
        assert_eq!(checked(&default), checked(&named));
    }
}

#[test]
fn each_estimator_and_policy_has_its_defaults() {
    let of = |value: Value| {
        let checked = checked(&from(value));
        (checked.gradient.name(), checked.learning_rate)
    };
    assert_eq!(of(json!({ "gradient": "cd" })), ("CD-1".into(), 0.4));
    assert_eq!(of(json!({ "gradient": "pcd" })), ("PCD-3".into(), 0.4));
    assert_eq!(of(json!({ "gradient": "exact" })), ("exact gradient".into(), 0.4));
    assert_eq!(of(json!({ "gradient": "lvs" })), ("LVS-3 carry".into(), 0.6));
    assert_eq!(of(json!({ "gradient": "lvs", "n-hidden": 65 })), ("LVS-3 carry".into(), 0.4));
    assert_eq!(of(json!({ "unfinished": "keep" })), ("LVS-1 keep".into(), 0.4));
    assert_eq!(of(json!({ "unfinished": "drop" })), ("LVS-1 drop".into(), 0.4));
    assert_eq!(of(json!({ "gradient": "tempered" })), ("tempered-1".into(), 0.4));
    let tempered = |n_hidden: usize| {
        let EstimatorSettings::Tempered { n_chains, n_rungs, .. } =
            checked(&from(json!({ "gradient": "tempered", "n-hidden": n_hidden }))).gradient
        else {
            panic!("another estimator")
        };
        (n_chains, n_rungs)
    };
    assert_eq!([64, 65].map(tempered), [(32, 10), (32, 20)]);
    for gradient in ["cd", "pcd", "lvs", "tempered", "ucd", "exact"] {
        assert_eq!(of(json!({ "gradient": gradient, "optimizer": "adam" })).1, 0.01);
        assert_eq!(of(json!({ "gradient": gradient, "optimizer": "adam", "learning-rate": 0.2 })).1, 0.2);
    }
    let keep = tours(&from(json!({ "unfinished": "keep" })));
    assert_eq!((keep.starts, keep.row_fraction), (Starts::Weighted, 1.0));
}

#[test]
fn numbers_depend_on_rows_where_they_are_automatic() {
    let of = |n_rows: usize| {
        let checked = Settings::default().check(n_rows).unwrap();
        let EstimatorSettings::Lvs(lvs) = checked.gradient else { panic!() };
        (checked.epochs, lvs.row_fraction)
    };
    assert_eq!(of(30), (10_000, 1.0));
    assert_eq!(of(2_000), (625, 0.5));
    assert_eq!(of(55_000), (100, 0.03));
    let given = from(json!({ "epochs": 7, "row-fraction": 0.25 }));
    assert_eq!((checked(&given).epochs, tours(&given).row_fraction), (7, 0.25));
}

#[test]
fn the_paper_is_the_papers_protocol_whatever_the_estimator() {
    let visible = VisibleChain::MeanField;
    let paper = checked(&Settings::paper());
    let lvs = LvsSettings {
        n_tours: Some(128),
        unfinished: Unfinished::Drop,
        starts: Starts::Fresh,
        statistics: Statistics::Sampled,
        visible,
        ..LvsSettings::default()
    };
    assert_eq!(paper.gradient, EstimatorSettings::Lvs(lvs.clone()));
    assert_eq!(paper.warm_up, Some((15, EstimatorSettings::Cd { k: 1, visible })));
    let protocol = |c: &CheckedSettings| {
        (c.init, c.epochs, c.batch_size, c.drop_last, c.learning_rate, c.schedule, c.centred)
    };
    let expected = (Init::Paper, 100, 128, true, 0.1, Schedule::Plateau, false);
    assert_eq!(protocol(&paper), expected);
    let others = [
        ("cd", EstimatorSettings::Cd { k: 1, visible }),
        ("pcd", EstimatorSettings::Pcd { k: 1, n_chains: Some(128), visible }),
        ("tempered", EstimatorSettings::Tempered { k: 1, n_chains: 32, n_rungs: 10 }),
        ("ucd", EstimatorSettings::Ucd { k: 1, max_meeting: 1000 }),
        ("exact", EstimatorSettings::Exact),
    ];
    for (name, gradient) in others {
        let paper = checked(&from(json!({ "preset": "paper", "gradient": name })));
        assert_eq!((protocol(&paper), paper.warm_up, paper.gradient), (expected, None, gradient));
    }
    // Everything can be overridden.
    let weighted = tours(&from(json!({ "preset": "paper", "starts": "weighted", "k": 10 })));
    assert_eq!(weighted, LvsSettings { starts: Starts::Weighted, k: TourLength::Steps(10), ..lvs.clone() });
    let carry = tours(&from(json!({ "preset": "paper", "unfinished": "carry" })));
    assert_eq!(carry, LvsSettings { unfinished: Unfinished::Carry, ..lvs });
}

#[test]
fn a_warm_up_has_the_visible_layer_of_the_estimator() {
    let warm_up = |value: Value| checked(&from(value)).warm_up;
    let cd = |k, visible| Some((2, EstimatorSettings::Cd { k, visible }));
    assert_eq!(warm_up(json!({ "warm-up-epochs": 2 })), cd(1, VisibleChain::Sampled));
    let mean_field = json!({ "warm-up-epochs": 2, "warm-up-k": 5, "visible": "mean-field" });
    assert_eq!(warm_up(mean_field), cd(5, VisibleChain::MeanField));
    let exact = json!({ "gradient": "exact", "warm-up-epochs": 2, "visible": "mean-field" });
    assert_eq!(warm_up(exact), cd(1, VisibleChain::MeanField));
    let checked = checked(&from(json!({ "warm-up-epochs": 2, "epochs": 5 })));
    let warm_up = checked.warm_up.as_ref().map(|(epochs, warm_up)| (*epochs, warm_up.name()));
    assert_eq!(warm_up, Some((2, "CD-1".to_owned())));
    assert_eq!(checked.gradient.name(), "LVS-3 carry");
}

#[test]
fn zero_has_no_meaning_and_is_refused_with_the_cure() {
    for (name, cure) in [
        ("epochs", "`auto`"),
        ("n-chains", "`auto`"),
        ("row-fraction", "`auto`"),
        ("eval-every", "`never`"),
        ("final-se", "`auto`"),
        ("clip", "`off`"),
        ("patience", "`off`"),
        ("validation-fraction", "`off`"),
        ("target-completion", "`off`"),
        ("max-set-cost", "`off`"),
        ("k", "at least one"),
        ("warm-up-k", "at least one"),
        ("n-hidden", "positive"),
        ("batch-size", "positive"),
        ("learning-rate", "positive"),
        ("samples-per-row", "at least one"),
        ("redraw-every", "at least one"),
        ("max-states", "at least one"),
        ("offset-rate", "more than 0"),
        ("epsilon", "1e-30"),
    ] {
        let mut settings = json!({ name: 0 });
        if name == "epsilon" {
            settings["optimizer"] = "adam".into();
        }
        let text = refused(from(settings));
        assert!(text.starts_with(&format!("{name} = 0 is not allowed: ")) && text.contains(cure), "{text}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    for (settings, parts) in [
        (json!({ "gradient": "cd", "samples-per-row": 2 }), ["`samples-per-row`", "`gradient = cd`"]),
        (json!({ "gradient": "cd", "n-chains": 2 }), ["`n-chains`", "`gradient = cd`"]),
        (json!({ "gradient": "exact", "k": 2 }), ["`k`", "`gradient = exact`"]),
        (json!({ "gradient": "exact", "visible": "mean-field" }), ["`visible`", "`gradient = exact`"]),
        (json!({ "gradient": "tempered", "visible": "mean-field" }), ["`visible`", "`gradient = tempered`"]),
        (json!({ "gradient": "tempered", "k": "dynamic" }), ["k = dynamic", "`gradient = lvs`"]),
        (json!({ "gradient": "ucd", "visible": "mean-field" }), ["`visible`", "`gradient = ucd`"]),
        (json!({ "gradient": "ucd", "k": 9, "max-meeting": 8 }), ["max-meeting = 8", "at least `k`"]),
        (json!({ "gradient": "pcd", "max-meeting": 8 }), ["`max-meeting`", "`gradient = pcd`"]),
        (json!({ "gradient": "tempered", "n-rungs": 0 }), ["n-rungs = 0", "at least one rung"]),
        (json!({ "gradient": "tempered", "n-chains": 1 << 21 }), ["n-chains", "16,777,216"]),
        (json!({ "gradient": "pcd", "n-rungs": 5 }), ["`n-rungs`", "`gradient = pcd`"]),
        (json!({ "epochs": 5, "snapshots": [1, 6] }), ["snapshots = 6", "`epochs`"]),
        (json!({ "n-hidden": 65, "unfinished": "keep" }), ["`unfinished`", "`gradient = pcd`"]),
        (json!({ "optimizer": "adam", "momentum": 0.5 }), ["`momentum`", "`optimizer = adam`"]),
        (json!({ "beta1": 0.5 }), ["`beta1`", "`optimizer = sgd`"]),
        (json!({ "gradient": "pcd", "k": "dynamic" }), ["k = dynamic", "`gradient = lvs`"]),
        (json!({ "k": "dynamic" }), ["k = dynamic", "`unfinished = carry`"]),
        (json!({ "starts": "weighted" }), ["starts = weighted", "`unfinished = carry`"]),
        (json!({ "unfinished": "drop", "starts": "metropolis" }), ["starts = metropolis", "weighted"]),
        (json!({ "visible": "mean-field", "statistics": "mean-visible" }), ["mean-visible", "mean-field"]),
        (json!({ "epochs": 5, "warm-up-epochs": 5 }), ["warm-up-epochs = 5", "never used"]),
        (json!({ "preset": "paper", "epochs": 15 }), ["warm-up-epochs = 15", "never used"]),
        (json!({ "warm-up-k": 3 }), ["warm-up-k = 3", "`warm-up-epochs`"]),
        (json!({ "drop-last": true, "batch-size": 60_000 }), ["batch-size = 60000", "larger than the data"]),
        (json!({ "batch-size": 1 << 24 }), ["batch-size", "16,777,216"]),
        (json!({ "gradient": "pcd", "n-chains": 1 << 24 }), ["n-chains", "16,777,216"]),
        (json!({ "n-chains": 65_537 }), ["n-chains", "65,536"]),
        (json!({ "gradient": "pcd", "k": 900_000, "batch-size": 16 }), ["k = 3094200000", "2^30"]),
        (json!({ "gradient": "pcd", "k": 1_000_001 }), ["k = 1000001", "at most 1,000,000 Gibbs steps"]),
        (json!({ "k": 10_001 }), ["k = 10001", "at most 10,000 steps"]),
        (json!({ "unfinished": "drop", "k": 1_000_001 }), ["k = 1000001", "`dynamic`"]),
        (
            json!({ "warm-up-epochs": 1, "warm-up-k": 1_000_001 }),
            ["warm-up-k = 1000001", "at most 1,000,000"],
        ),
        (json!({ "samples-per-row": 1_000_000_000 }), ["samples-per-row = 1000000000", "16,777,216 states"]),
        (json!({ "epochs": 1u64 << 32 }), ["epochs = 4294967296", "at most 4,294,967,295"]),
        (json!({ "row-fraction": 1.5 }), ["row-fraction = 1.5", "up to 1"]),
        (json!({ "target-completion": 1 }), ["target-completion = 1", "between 0 and 1"]),
        (json!({ "min-ess": -0.5 }), ["min-ess = -0.5", "from 0 to 1"]),
        (json!({ "l2": -1 }), ["l2 = -1", "0 or more"]),
        (json!({ "momentum": 1 }), ["momentum = 1", "less than 1"]),
    ] {
        let text = refused(from(settings));
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    // The exact gradient has no chain, so to name the default one does no harm.
    checked(&from(json!({ "gradient": "exact", "visible": "sampled" })));
    checked(&from(json!({ "gradient": "tempered", "visible": "sampled" })));
    for nan in [
        Settings { learning_rate: Some(f64::NAN), ..Settings::default() },
        Settings { clip: Some(f64::NAN.into()), ..Settings::default() },
        Settings { row_fraction: Some(f64::NAN.into()), ..Settings::default() },
        Settings { min_ess: Some(f64::NAN), ..Settings::default() },
        Settings { momentum: Some(f64::NAN), ..Settings::default() },
    ] {
        assert!(refused(nan).contains("NaN"));
    }
}

#[test]
fn settings_win_over_those_below_them() {
    let base = from(json!({ "n-hidden": 10, "seed": 3, "clip": 2 }));
    let over = from(json!({ "n-hidden": 20, "clip": "off", "centred": false })).over(base);
    assert_eq!(over, from(json!({ "n-hidden": 20, "seed": 3, "clip": "off", "centred": false })));
}

#[test]
fn what_belongs_to_a_choice_goes_with_it() {
    let complete = |value: Value| checked(&from(value)).settings();
    // Another estimator drops the settings of tours and keeps the others.
    let lvs = complete(json!({ "unfinished": "keep", "k": 7, "l2": 0.5, "learning-rate": 0.3 }));
    let pcd = checked(&from(json!({ "gradient": "pcd" })).over(lvs.clone()));
    assert_eq!((pcd.gradient.name(), pcd.l2, pcd.learning_rate), ("PCD-3".into(), 0.5, 0.3));
    // The same estimator keeps all settings.
    assert_eq!(from(json!({ "gradient": "lvs" })).over(lvs.clone()), lvs);
    // The estimator of a file that does not name one is the default.
    let partial = from(json!({ "unfinished": "keep" }));
    assert_eq!(from(json!({ "gradient": "lvs" })).over(partial.clone()).unfinished, Some(Unfinished::Keep));
    assert_eq!(from(json!({ "gradient": "cd" })).over(partial).unfinished, None);
    // Another rule drops the constants of the old rule and the learning rate.
    let sgd = complete(json!({ "gradient": "pcd", "momentum": 0.5 }));
    let adam = checked(&from(json!({ "optimizer": "adam" })).over(sgd));
    assert_eq!((adam.optimizer, adam.learning_rate), (Optimizer::ADAM, 0.01));
    // Another policy: starts that do not go with it are dropped.
    let starts = |starts: &str, policy: &str, then: &str| {
        let base = complete(json!({ "unfinished": policy, "starts": starts, "k": 1 }));
        tours(&from(json!({ "unfinished": then })).over(base)).starts
    };
    assert_eq!(starts("metropolis", "carry", "drop"), Starts::Weighted);
    assert_eq!(starts("weighted", "keep", "carry"), Starts::Metropolis);
    assert_eq!(starts("fresh", "keep", "carry"), Starts::Fresh);
    // Settings that do not go together are rejected if they are given together.
    assert!(refused(from(json!({ "gradient": "pcd", "starts": "fresh" }))).contains("`starts`"));
}

/// Returns one to six random settings, which need not go together.
fn random_settings(seed: u64) -> Settings {
    let mut rng = stream(seed, Purpose::SelfTest, 0).reader();
    let choices = json!({
        "preset": ["default", "paper"], "n-hidden": [1, 64, 65], "init": ["data", "paper"],
        "gradient": ["cd", "pcd", "lvs", "tempered", "ucd", "exact"], "n-rungs": [1, 7], "max-meeting": [1, 50], "k": [1, 4, "dynamic"], "n-chains": ["auto", 1, 500],
        "visible": ["sampled", "mean-field"], "unfinished": ["drop", "keep", "carry"],
        "starts": ["fresh", "weighted", "metropolis"], "statistics": ["sampled", "mean-hidden", "mean-visible"],
        "samples-per-row": [1, 3], "row-fraction": ["auto", 0.5, 1], "redraw-every": [2], "min-ess": [0, 0.9],
        "target-completion": ["off", 0.5], "max-states": [10], "max-set-cost": ["off", 0.1],
        "warm-up-epochs": [0, 3], "warm-up-k": [1, 2], "epochs": ["auto", 4, 200], "batch-size": [1, 100],
    });
    let more = json!({
        "drop-last": [true, false], "learning-rate": [0.01, 1.5], "optimizer": ["sgd", "adam"],
        "schedule": ["constant", "plateau", "linear", "cosine"], "momentum": [0, 0.5], "beta1": [0.5],
        "beta2": [0.5], "epsilon": [1e-4], "l1": [0, 0.1], "l2": [0.1], "clip": ["off", 2.5],
        "centred": [true, false], "offset-rate": [0.5], "redraw-bits": [true, false],
        "eval-every": ["auto", "never", 3], "final-se": ["auto", 0.02], "patience": ["off", 2], "validation-fraction": ["off", 0.2], "snapshots": ["off", "log", [0, 3]], "restarts": ["off", [2]],
        "seed": [1, u64::MAX],
    });
    let choices = choices.as_object().unwrap().iter().chain(more.as_object().unwrap());
    let choices: Vec<_> = choices.collect();
    // Only a few settings are drawn, because most larger choices do not go together.
    let n = 1 + rng.below(6);
    let mut settings = serde_json::Map::new();
    for _ in 0..n {
        let (name, values) = choices[rng.below(choices.len() as u64) as usize];
        let values = values.as_array().unwrap();
        settings.insert(name.clone(), values[rng.below(values.len() as u64) as usize].clone());
    }
    from(Value::Object(settings))
}

#[test]
fn the_complete_form_gives_the_same_settings_again() {
    let mut set = std::collections::HashSet::new();
    let mut n_checked = 0;
    for seed in 0..4000 {
        let settings = random_settings(seed);
        let Ok(checked) = settings.check(N_ROWS) else { continue };
        n_checked += 1;
        let complete = checked.settings();
        for n_rows in [N_ROWS, 1_000_000] {
            assert_eq!(complete.check(n_rows).unwrap(), checked, "{settings:?}");
        }
        assert_eq!(complete.check_without_rows().unwrap(), checked);
        assert_eq!(settings.clone().over(complete.clone()).check(N_ROWS).unwrap(), checked, "{settings:?}");
        // In files too.
        let toml = toml::to_string_pretty(&complete).unwrap();
        assert_eq!(toml::from_str::<Settings>(&toml).unwrap(), complete, "{toml}");
        let json = serde_json::to_value(&complete).unwrap();
        assert_eq!(from(json.clone()), complete);
        set.extend(json.as_object().unwrap().keys().cloned());
    }
    assert!(n_checked > 1000, "{n_checked}");
    // Nothing is forgotten.
    for name in Settings::NAMES {
        assert!(set.contains(&name.replace('_', "-")), "{name} is missing in the complete form");
    }
}

#[test]
fn every_setting_has_a_help_text_that_ends_in_its_default() {
    let names: Vec<&str> = Settings::HELP.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Settings::NAMES);
    for (name, help) in Settings::HELP {
        let text = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Default: ") && text.ends_with('.'), "{name}: {text}");
    }
}
