use super::*;
use crate::Experiment;
use crate::report::{Cell, Report, Table};
use crate::schedule::Listener;
use mclv::progress::Progress;
use mclv::settings::Starts;
use std::path::Path;

struct Quiet;

impl Progress for Quiet {
    fn report(&self, _done: u64, _total: u64) {}
}

impl Listener for Quiet {
    fn finished(&self, _name: &str, _seconds: f64, _done: usize, _total: usize) {}
}

const N_ROWS: usize = 300;

/// Rows of eight units that copy each other with errors. The rows of one part can be inverted.
fn write_rows(path: &Path, inverted: Option<Split>) {
    let inverted = inverted.map_or_else(Vec::new, |part| part.of_file(N_ROWS, 0));
    let row = |r: usize| -> String {
        let is_on = |i: usize| (r.wrapping_mul(2_654_435_761) >> (7 + i / 2)) % 5 < 2 + r % 2;
        let bits = (0..8).map(|i| is_on(i) != inverted.contains(&r));
        bits.map(|bit| if bit { "1" } else { "0" }).collect::<Vec<_>>().join(",") + "\n"
    };
    std::fs::write(path, (0..N_ROWS).map(row).collect::<String>()).unwrap();
}

/// The report of an experiment on such rows.
fn report(inverted: Option<Split>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    write_rows(&path, inverted);
    let options = Options {
        data: Some(path.to_str().unwrap().into()),
        seeds: vec![0, 1],
        quick: true,
        starts: Starts::Fresh,
        models: None,
    };
    let store = Store::open(&folder.path().join("results")).unwrap();
    Experiment::Density.run(&options, "", &store, 2, &Quiet).unwrap()
}

/// The cells of a column, by the beginning of its name.
fn column(report: &Report, table: &str, name: &str) -> Vec<Cell> {
    let table: &Table = report.tables.iter().find(|t| t.name == table).unwrap();
    let at = table.columns.iter().position(|(column, _)| column.starts_with(name)).unwrap();
    table.rows.iter().map(|row| row[at].clone()).collect()
}

/// What has been chosen, and what has chosen it.
fn choices(report: &Report) -> (Vec<Cell>, Vec<Vec<Cell>>, Vec<serde_json::Value>) {
    let sweep = report.tables.iter().find(|t| t.name == "sweep").unwrap();
    let values = sweep.rows.iter().map(|row| row[1..].to_vec()).collect();
    let trained = report.runs.iter().filter(|run| run.name.starts_with("train"));
    (column(report, "", "which is"), values, trained.map(|run| run.result["curve"].clone()).collect())
}

#[test]
fn no_test_row_is_used_for_any_choice() {
    let [whole, other_test, other_validation] =
        [None, Some(Split::Test), Some(Split::Validation)].map(report);
    assert!(choices(&whole).2.len() > 5);
    assert_eq!(choices(&whole), choices(&other_test));
    for name in ["independent units", "tree", "mixture", "default", "best by validation rows"] {
        assert_ne!(column(&whole, "", name), column(&other_test, "", name), "test rows decide {name}");
    }
    // The control: validation rows are used, and their change shows.
    assert_ne!(choices(&whole).1, choices(&other_validation).1);
    // The same test rows, so the same values of what nothing was chosen for.
    assert_eq!(column(&whole, "", "independent"), column(&other_validation, "", "independent"));
}

#[test]
fn test_rows_are_read_after_the_choice() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        data: Some("digits".into()),
        seeds: vec![0],
        quick: true,
        starts: Starts::Fresh,
        models: None,
    };
    let store = Store::open(folder.path()).unwrap();
    let of_test = |task: &Task| match task {
        Task::Baseline(of) => of.split == Split::Test,
        Task::Score(of) => of.split == Split::Test,
        Task::Quality(_) => true,
        _ => false,
    };
    // Nothing is finished, so only the first stage is known.
    let first = tasks(&options, &store).unwrap();
    assert!(!first.is_empty() && !first.iter().any(of_test));
    for stage in stages(&options) {
        let set = &sets(&options).unwrap()[0];
        let tasks = stage.tasks(set, &[], &options, &store).unwrap();
        let chooses = matches!(stage, Stage::First | Stage::Mixtures | Stage::Sweep(_));
        assert!(!tasks.is_empty() || !chooses);
        assert!(!chooses || !tasks.iter().any(of_test));
    }
}
