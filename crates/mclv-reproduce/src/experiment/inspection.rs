//! The inspection paradox: CD-K with K ≥ 2 finds long tours more often than their share of all
//! tours.

use super::{Parts, column};
use crate::options::Options;
use crate::report::{Axis, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{InspectionOf, ModelOf, Task};
use crate::work::Inspected;
use mclv::Result;
use mclv::settings::{EstimatorName, Settings};

fn models(options: &Options) -> [(&'static str, ModelOf); 2] {
    let n_hidden = options.hidden(25);
    let seed = options.seeds[0];
    let pcd = Settings {
        n_hidden: Some(n_hidden),
        gradient: Some(EstimatorName::Pcd),
        epochs: Some(options.scaled(100, 4).into()),
        seed: Some(seed),
        ..Settings::default()
    };
    [
        ("LVS-1, the paper's", options.paper("LVS-1", n_hidden, 0.1, seed)),
        ("PCD-3, centred", options.run(&pcd)),
    ]
}

fn task(model: &ModelOf, options: &Options) -> Task {
    Task::Inspection(InspectionOf {
        model: model.clone(),
        n_chains: options.scaled(5000, 500),
        at: vec![1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000],
        max_length: options.scaled(20_000, 2000) as u32,
        seed: options.seeds[0],
    })
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    models(options).iter().map(|(_, model)| task(model, options)).collect()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let (mut rows, mut curves, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, model) in models(options) {
        let found: Inspected = store.get(&task(&model, options))?.read()?;
        let mut line = |what: String, mean: f64, std_err: Option<f64>, long: f64| {
            rows.push(vec![name.into(), what.into(), mean.into(), std_err.into(), (100.0 * long).into()]);
        };
        line("a tour".into(), found.mean_length, None, found.long);
        for at in &found.after {
            line(format!("the tour seen by CD-{}", at.k), at.mean_length, Some(at.std_err), at.long);
        }
        line("the tour of a random step: E[ξ²]/E[ξ]".into(), found.mean_length_seen, None, found.long_seen);
        let points = found.after.iter().map(|at| (f64::from(at.k), at.mean_length)).collect();
        let band = found
            .after
            .iter()
            .map(|at| (at.mean_length - 1.96 * at.std_err, at.mean_length + 1.96 * at.std_err));
        curves.push(Curve::new(name, points).with_band(band.collect()));
        let level =
            |y: f64, what: &str| Curve::new(format!("{name}: {what}"), vec![(1.0, y), (1000.0, y)]).dashed();
        curves.push(level(found.mean_length, "mean of all tours"));
        if found.n_cut > 0 {
            notes.push(format!(
                "{name}: {} chains ended in an unfinished tour, which counts with its length so far.",
                found.n_cut
            ));
        }
    }
    let columns = vec![
        column("model", 0),
        column("what", 0),
        column("mean length", 2),
        column("standard error", 2),
        column("longer than 10 (%)", 2),
    ];
    let title = "Length of the tour in which a true Gibbs chain from the data is after K steps.".into();
    let plot = Plot {
        name: "plot".into(),
        title: "Mean length of the tour that CD-K sees".into(),
        x: Axis::log("K"),
        y: Axis::log("steps"),
        curves,
    };
    notes.insert(
        0,
        "Chains start at the states that rows gave to the stopping set. A tour ends at every visit to the set."
            .into(),
    );
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        plots: vec![plot],
        notes,
        ..Parts::default()
    })
}
