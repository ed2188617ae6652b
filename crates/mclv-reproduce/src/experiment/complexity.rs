//! The claim that an epoch of LVS-K costs O(N·|W|·(m + K)), measured over N, hidden units, m and K.

use super::{Parts, column};
use crate::options::Options;
use crate::report::{Axis, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{Task, TimingOf};
use crate::work::Timed;
use mclv::Result;
use mclv::settings::{EstimatorName, Settings, Starts, TourLength, Unfinished};

/// The sizes. One is changed at a time, and the others keep their base values.
#[derive(Clone, Copy)]
struct Sizes {
    n_rows: usize,
    n_hidden: usize,
    m: usize,
    k: u32,
}

const BASE: Sizes = Sizes { n_rows: 4096, n_hidden: 32, m: 1, k: 1 };
const METHODS: [&str; 3] = ["LVS fresh", "LVS weighted", "PCD"];

fn sweep(options: &Options, name: &str) -> Vec<(f64, Sizes)> {
    let base = Sizes { n_rows: if options.quick { 1024 } else { BASE.n_rows }, ..BASE };
    let values: &[usize] = match name {
        "rows" => &[1024, 2048, 4096, 8192, 16_384],
        "hidden units" => &[16, 32, 64, 128, 256],
        "states per row" => &[1, 2, 4, 8, 16],
        _ => &[1, 2, 4, 8, 16, 32],
    };
    let values = if options.quick { &values[..3] } else { values };
    let at = |&x: &usize| {
        let sizes = match name {
            "rows" => Sizes { n_rows: if options.quick { x / 4 } else { x }, ..base },
            "hidden units" => Sizes { n_hidden: x, ..base },
            "states per row" => Sizes { m: x, ..base },
            _ => Sizes { k: x as u32, ..base },
        };
        (if name == "rows" { sizes.n_rows as f64 } else { x as f64 }, sizes)
    };
    values.iter().map(at).collect()
}

const SWEEPS: [&str; 4] = ["rows", "hidden units", "states per row", "steps K"];

fn task(method: &str, sizes: Sizes, options: &Options) -> Task {
    let common = Settings {
        n_hidden: Some(sizes.n_hidden),
        k: Some(TourLength::Steps(sizes.k)),
        n_chains: Some(128.into()),
        learning_rate: Some(0.01),
        epochs: Some(1000.into()),
        ..Settings::default()
    };
    let train = match method {
        "PCD" => Settings { gradient: Some(EstimatorName::Pcd), ..common },
        _ => Settings {
            gradient: Some(EstimatorName::Lvs),
            samples_per_row: Some(sizes.m),
            // With `drop`, an update without a finished tour would cost nothing and distort the
            // times.
            unfinished: Some(Unfinished::Keep),
            starts: Some(if method == "LVS fresh" { Starts::Fresh } else { Starts::Weighted }),
            ..common
        },
    };
    Task::Timing(TimingOf {
        model: options.run(&train),
        n_rows: sizes.n_rows,
        n_before: 1,
        n_timed: options.scaled(5, 2),
    })
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let mut tasks = Vec::new();
    for name in SWEEPS {
        for (_, sizes) in sweep(options, name) {
            // Alternate the methods, so that a slow machine affects all of them equally.
            tasks.extend(
                METHODS
                    .iter()
                    .filter(|&&method| name != "states per row" || method != "PCD")
                    .map(|method| task(method, sizes, options)),
            );
        }
    }
    tasks
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let (mut rows, mut plots) = (Vec::new(), Vec::new());
    for name in SWEEPS {
        let mut curves = Vec::new();
        for method in METHODS.into_iter().filter(|&method| name != "states per row" || method != "PCD") {
            let mut points = Vec::new();
            for (x, sizes) in sweep(options, name) {
                let timed: Timed = store.get(&task(method, sizes, options))?.read()?;
                points.push((x, 1e6 * timed.seconds / timed.n_rows as f64));
            }
            let (first, last) = (points[0], points[points.len() - 1]);
            rows.push(vec![
                name.into(),
                method.into(),
                format!("{} to {}", first.0, last.0).into(),
                first.1.into(),
                last.1.into(),
                exponent(&points).into(),
            ]);
            curves.push(Curve::new(method, points));
        }
        plots.push(Plot {
            name: crate::task::slug(name),
            title: format!("Time per row and epoch by {name}"),
            x: Axis::log(name),
            y: Axis::log("µs per row"),
            curves,
        });
    }
    let columns = vec![
        column("varied", 0),
        column("method", 0),
        column("from, to", 0),
        column("µs per row, first", 2),
        column("last", 2),
        column("exponent", 2),
    ];
    let title = format!(
        "Time of an epoch per row, on one thread. The other sizes are {} rows, {} hidden units, m = {}, K = {}. The \
         exponent is the slope of its logarithm: 0 if the time of an epoch is proportional to the number of rows.",
        sweep(options, "hidden units")[0].1.n_rows,
        BASE.n_hidden,
        BASE.m,
        BASE.k
    );
    let notes = vec![
        "The claim O(N·|W|·(m + K)) leaves out the table of starts. `fresh` starts evaluate all of S, up to m·N states, \
         at each of the N/128 updates, which costs O(m·N²·|W|) per epoch. `weighted` starts evaluate S only when the \
         table is out of date."
            .into(),
        "Tours that have not returned after K steps are kept, so that every update costs the same.".into(),
    ];
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        plots,
        notes,
        ..Parts::default()
    })
}

/// The slope of a straight line through the logarithms.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (mx, my) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let (sxy, sxx) =
        logs.iter().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + (x - mx) * (y - my), xx + (x - mx).powi(2)));
    sxy / sxx
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_has_its_exponent() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 8.0].map(|x: f64| (x, 3.0 * x.powf(1.5))).to_vec();
        assert!((exponent(&points) - 1.5).abs() < 1e-12);
    }
}
