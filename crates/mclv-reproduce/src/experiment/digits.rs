//! Short and long tours by the digit at which they start, and their pictures.

use super::{Parts, column};
use crate::options::Options;
use crate::report::{Axis, Curve, Mark, Pictures, Plot, Table};
use crate::store::Store;
use crate::task::{Task, ToursFrom, ToursOf};
use crate::work::Toured;
use mclv::Result;
use mclv::chain::VisibleChain;

const CHAINS: [(VisibleChain, &str, &str); 2] =
    [(VisibleChain::MeanField, "mean field", "mean-field"), (VisibleChain::Sampled, "true Gibbs", "gibbs")];

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let n_hidden = options.hidden(32);
    let tours = |(visible, ..): (VisibleChain, &str, &str)| {
        Task::Tours(ToursOf {
            model: options.paper("LVS-1", n_hidden, 0.1, options.seeds[0]),
            visible,
            from: ToursFrom::Rows,
            samples_per_row: 1,
            n_tours: options.scaled(150 * 128, 500),
            max_length: options.scaled(99_999, 1000) as u32,
            n_pictures: 10,
            seed: options.seeds[0],
        })
    };
    CHAINS.map(tours).to_vec()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let [mean_field, gibbs] = read(options, store)?;
    let mut rows = Vec::new();
    for (a, b) in mean_field.by_label.iter().zip(&gibbs.by_label) {
        rows.push(vec![
            a.label.as_str().into(),
            a.n_tours.into(),
            (100.0 * a.one_step).into(),
            a.n_unfinished.into(),
            (100.0 * b.one_step).into(),
            b.n_unfinished.into(),
        ]);
    }
    let columns = vec![
        column("digit", 0),
        column("tours", 0),
        column("one step (%), mean field", 2),
        column("unfinished", 0),
        column("one step (%), true Gibbs", 2),
        column("unfinished", 0),
    ];
    let curve = |toured: &Toured, name: &str| {
        let points =
            toured.by_label.iter().enumerate().map(|(k, l)| (k as f64, 100.0 * l.one_step)).collect();
        Curve::new(name, points).marked(Mark::Bars)
    };
    let plot = Plot {
        name: "one-step".into(),
        title: "Tours of one step by digit".into(),
        x: Axis::named("digit", mean_field.by_label.iter().map(|l| l.label.clone()).collect()),
        y: Axis::linear("share of tours (%)"),
        curves: vec![curve(&mean_field, "mean field"), curve(&gibbs, "true Gibbs")],
    };
    let max_length = options.scaled(99_999, 1000);
    let title = format!(
        "Tours of an LVS-1 model by the digit at which they start. Unfinished tours did not return in {max_length} \
         steps."
    );
    let notes = vec![
        "The paper released no code for this figure. Here tours start at rows, as in the figures of tour lengths."
            .into(),
    ];
    let table = Table { name: String::new(), title, columns, rows };
    Ok(Parts { tables: vec![table], plots: vec![plot], notes, ..Parts::default() })
}

pub(super) fn picture_parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut pictures = Vec::new();
    let mut rows = Vec::new();
    for (toured, (_, chain, slug)) in read(options, store)?.into_iter().zip(CHAINS) {
        let Some(pictured) = toured.pictures else { continue };
        let list = |lengths: &[u32]| lengths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let [shortest, longest] = &pictured.lengths;
        rows.push(vec![chain.into(), list(shortest).into(), list(longest).into()]);
        let names = ["shortest: digit", "next v", "longest: digit", "next v"];
        pictures.push(Pictures {
            name: slug.into(),
            title: format!("Shortest and longest tours, {chain}"),
            names: names.map(str::to_owned).to_vec(),
            shape: pictured.shape,
            lines: pictured.lines.to_vec(),
        });
    }
    let columns =
        vec![column("chain", 0), column("lengths of the shortest", 0), column("lengths of the longest", 0)];
    let title = "Training digits and the next visible state of the shortest and the longest tours.".into();
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        pictures,
        ..Parts::default()
    })
}

fn read(options: &Options, store: &Store) -> Result<[Toured; 2]> {
    let tasks = tasks(options);
    Ok([store.get(&tasks[0])?.read()?, store.get(&tasks[1])?.read()?])
}
