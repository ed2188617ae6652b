//! The sweep of learning rates at 25 hidden units, from which the paper chose those of its second
//! table.

use super::{Parts, column, is_enumerable, likelihood, likelihoods_of};
use crate::options::Options;
use crate::report::{Axis, Curve, Plot, Table};
use crate::store::Store;
use crate::task::Task;
use mclv::Result;
use mclv::statistics::Summary;

const METHODS: [&str; 7] = ["CD-1", "CD-10", "PCD-1", "PCD-10", "LVS-1", "LVS-3", "LVS-10"];
const RATES: [f64; 5] = [1e-4, 1e-3, 1e-2, 0.1, 1.0];
const N_HIDDEN: usize = 25;
/// The range of the figure below the best value, in nats.
const SHOWN: f64 = 100.0;

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let exact = is_enumerable(options.hidden(N_HIDDEN));
    let mut tasks = Vec::new();
    for &seed in &options.seeds {
        for method in METHODS {
            tasks.extend(
                RATES.map(|rate| {
                    likelihood(&options.paper(method, options.hidden(N_HIDDEN), rate, seed), exact)
                }),
            );
        }
    }
    tasks
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for method in METHODS {
        let mut row = vec![method.into()];
        let mut points = Vec::new();
        for rate in RATES {
            let mut test = Vec::new();
            for &seed in &options.seeds {
                test.extend(
                    likelihoods_of(&options.paper(method, options.hidden(N_HIDDEN), rate, seed), store)?
                        .map(|l| l.test.mean),
                );
            }
            let summary = Summary::of(&test);
            row.push(if test.is_empty() { "diverged".into() } else { summary.into() });
            points.extend(summary.map(|s| (rate, s.mean)));
        }
        rows.push(row);
        curves.push(Curve::new(method, points));
    }
    let mut columns = vec![column("method", 0)];
    columns.extend(RATES.iter().map(|rate| column(&format!("{rate}"), 1)));
    let table = Table {
        name: String::new(),
        title: format!(
            "Average log-likelihood of test rows by learning rate, {} hidden units.",
            options.hidden(N_HIDDEN)
        ),
        columns,
        rows,
    };
    let plot = Plot {
        name: "plot".into(),
        title: "Test log-likelihood by learning rate".into(),
        x: Axis::log("learning rate"),
        y: Axis::linear("log-likelihood (nats)"),
        curves,
    };
    Ok(Parts { tables: vec![table], plots: vec![plot.within(SHOWN)], ..Parts::default() })
}
