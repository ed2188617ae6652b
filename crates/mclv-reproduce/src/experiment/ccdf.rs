//! Tail functions of tour lengths: models of different sizes, and stopping sets of different sizes.

use super::{Parts, column};
use crate::options::Options;
use crate::report::{Axis, Cell, Curve, Mark, Plot, Table};
use crate::store::Store;
use crate::task::{ModelOf, Task, ToursFrom, ToursOf};
use crate::work::Toured;
use mclv::Result;
use mclv::chain::VisibleChain;

const CHAINS: [(VisibleChain, &str, &str); 2] =
    [(VisibleChain::MeanField, "mean field", "mean-field"), (VisibleChain::Sampled, "true Gibbs", "gibbs")];
/// As in the paper: 150 minibatches, and the length at which unfinished tours are recorded.
const N_TOURS: usize = 150 * 128;
const MAX_LENGTH: u32 = 1000;

fn hidden_sizes(options: &Options) -> Vec<usize> {
    if options.quick { vec![16, 20] } else { vec![16, 20, 32, 64] }
}

fn lvs(options: &Options, method: &str, n_hidden: usize) -> ModelOf {
    options.paper(method, n_hidden, 0.1, options.seeds[0])
}

fn tours(options: &Options, model: ModelOf, samples_per_row: usize, visible: VisibleChain) -> Task {
    Task::Tours(ToursOf {
        model,
        visible,
        from: ToursFrom::Rows,
        samples_per_row,
        n_tours: options.scaled(N_TOURS, 500),
        max_length: MAX_LENGTH,
        n_pictures: 0,
        seed: options.seeds[0],
    })
}

pub(super) fn hidden_tasks(options: &Options) -> Vec<Task> {
    cases_hidden(options).into_iter().flat_map(|(_, tasks)| tasks).collect()
}

pub(super) fn stopping_set_tasks(options: &Options) -> Vec<Task> {
    cases_set(options).into_iter().flat_map(|(_, tasks)| tasks).collect()
}

/// The model of the paper's plotting code, and that of the figure's caption.
const METHODS: [&str; 2] = ["LVS-1", "LVS-10"];

/// The name of a curve, and its tours under both chains.
type Case = (String, [Task; 2]);

fn cases_hidden(options: &Options) -> Vec<Case> {
    let case = |n| {
        (format!("nH = {n}"), CHAINS.map(|(chain, ..)| tours(options, lvs(options, "LVS-1", n), 1, chain)))
    };
    hidden_sizes(options).into_iter().map(case).collect()
}

fn cases_set(options: &Options) -> Vec<Case> {
    let n_hidden = options.hidden(32);
    let case = |(method, m): (&str, usize)| {
        let model = lvs(options, method, n_hidden);
        let tours = CHAINS.map(|(chain, ..)| tours(options, model.clone(), m, chain));
        (format!("{method}, m = {m}"), tours)
    };
    METHODS.into_iter().flat_map(|method| [1, 4, 7].map(|m| case((method, m)))).collect()
}

pub(super) fn hidden_parts(options: &Options, store: &Store) -> Result<Parts> {
    parts(&cases_hidden(options), "hidden units", store)
}

pub(super) fn stopping_set_parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut parts = parts(&cases_set(options), "states per row", store)?;
    parts.notes.push("Two models, stopping sets of m states per row. The paper's caption says LVS-10; its plotting code uses K = 1.".into());
    Ok(parts)
}

fn parts(cases: &[Case], first_column: &str, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    let mut plots = Vec::new();
    for (k, (_, chain, slug)) in CHAINS.iter().enumerate() {
        let mut curves = Vec::new();
        for (name, tasks) in cases {
            let toured: Toured = store.get(&tasks[k])?.read()?;
            let share = |n: usize| Cell::from(100.0 * n as f64 / toured.n_tours as f64);
            rows.push(vec![
                name.as_str().into(),
                (*chain).into(),
                toured.n_states.into(),
                share(toured.n_complete),
                share(toured.n_one_step),
                share(toured.n_own_start),
                (100.0 * toured.n_own_start_in_one_step as f64 / toured.n_one_step.max(1) as f64).into(),
                toured.mean_length.value.into(),
            ]);
            let points: Vec<_> = toured.ccdf.points.iter().filter(|p| p.k > 0).collect();
            let band = points.iter().map(|p| (p.low, p.high)).collect();
            let line = points.iter().map(|p| (f64::from(p.k), p.p)).collect();
            curves.push(Curve::new(name.as_str(), line).with_band(band).marked(Mark::Steps));
        }
        plots.push(Plot {
            name: (*slug).into(),
            title: format!("p(ξ > k), {chain}"),
            x: Axis::log("k"),
            y: Axis::log("p(ξ > k)"),
            curves,
        });
    }
    let columns = vec![
        column(first_column, 0),
        column("chain", 0),
        column("states in S", 0),
        column(&format!("returned within {MAX_LENGTH} (%)"), 2),
        column("after one step (%)", 2),
        column("to own start (%)", 2),
        column("of one-step tours, to own start (%)", 2),
        column("mean of min(ξ, 1000)", 2),
    ];
    let title =
        "Tours of LVS models from hidden states of data rows. They end in S or at their own start.".into();
    let notes = vec![
        "Starts are new draws from p(h|v) of rows, as in the paper, and are often not in S. So these tours do not \
         estimate Z. Bands are 95 % confidence limits."
            .into(),
        "The paper reads that more than 99 % of tours of one step end in their own start as memorisation. The last \
         column but one has this share."
            .into(),
    ];
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        plots,
        notes,
        ..Parts::default()
    })
}
