//! The mean-field chain of the paper compared with the model's own Gibbs chain, in training and in
//! estimates.

use super::{Parts, column, likelihood, likelihoods_of};
use crate::options::{Options, true_gibbs};
use crate::report::{Cell, Table};
use crate::store::Store;
use crate::task::{ModelOf, Task, ToursFrom, ToursOf};
use crate::work::{Likelihoods, Toured, Trained};
use mclv::Result;
use mclv::chain::VisibleChain;
use mclv::settings::{EstimatorName, Settings, Unfinished};
use mclv::statistics::Summary;

const CHAINS: [(VisibleChain, &str); 2] =
    [(VisibleChain::MeanField, "mean field"), (VisibleChain::Sampled, "true Gibbs")];

fn n_hidden(options: &Options) -> usize {
    options.hidden(25)
}

/// Names, and the runs of one seed.
fn runs(options: &Options, seed: u64) -> Vec<(&'static str, ModelOf)> {
    let paper = |method, rate| options.paper(method, n_hidden(options), rate, seed);
    let gibbs = |method, rate| true_gibbs(&paper(method, rate));
    let keep = Settings { unfinished: Some(Unfinished::Keep), ..Settings::default() };
    vec![
        ("PCD-1, mean field", paper("PCD-1", 0.01)),
        ("PCD-1, true Gibbs", gibbs("PCD-1", 0.01)),
        ("LVS-1 drop, mean field", paper("LVS-1", 0.1)),
        ("LVS-1 drop, true Gibbs", gibbs("LVS-1", 0.1)),
        ("LVS-10 drop, true Gibbs", gibbs("LVS-10", 0.1)),
        ("LVS-1 keep, true Gibbs", gibbs("LVS-1", 0.1).with(keep)),
    ]
}

fn models(options: &Options) -> [(&'static str, ModelOf); 2] {
    let seed = options.seeds[0];
    let pcd = Settings {
        n_hidden: Some(n_hidden(options)),
        gradient: Some(EstimatorName::Pcd),
        epochs: Some(options.scaled(100, 4).into()),
        seed: Some(seed),
        ..Settings::default()
    };
    [
        ("LVS-1, the paper's", options.paper("LVS-1", n_hidden(options), 0.1, seed)),
        ("PCD-3, centred", options.run(&pcd)),
    ]
}

fn tours(model: &ModelOf, visible: VisibleChain, options: &Options) -> Task {
    Task::Tours(ToursOf {
        model: model.clone(),
        visible,
        from: ToursFrom::Pi,
        samples_per_row: 1,
        n_tours: options.scaled(20_000, 500),
        max_length: options.scaled(100_000, 1000) as u32,
        n_pictures: 0,
        seed: options.seeds[0],
    })
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (_, model) in models(options) {
        tasks.push(likelihood(&model, true));
        tasks.extend(CHAINS.map(|(chain, _)| tours(&model, chain, options)));
    }
    for &seed in &options.seeds {
        tasks.extend(runs(options, seed).into_iter().map(|(_, run)| likelihood(&run, true)));
    }
    tasks
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let notes = vec![
        "With `drop` and the true chain, tours that leave the data and do not return in K steps are left out. So \
         training never lowers the probability of the states that they reach."
            .into(),
        "The guarantees of tours hold for the true chain. The mean-field chain returns to its own start and reports \
         log Z_S with a small error bar."
            .into(),
    ];
    Ok(Parts {
        tables: vec![estimates(options, store)?, training(options, store)?],
        notes,
        ..Parts::default()
    })
}

fn estimates(options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, model) in models(options) {
        let exact = store.get(&likelihood(&model, true))?.read::<Likelihoods>()?.log_z.value;
        for (visible, chain) in CHAINS {
            let toured: Toured = store.get(&tours(&model, visible, options))?.read()?;
            let log_z = toured.log_z.as_ref();
            let share = |n: usize| Cell::from(100.0 * n as f64 / toured.n_tours as f64);
            rows.push(vec![
                name.into(),
                chain.into(),
                share(toured.n_complete),
                share(toured.n_own_start),
                toured.mean_length.value.into(),
                exact.into(),
                log_z.map(|z| z.value).into(),
                log_z.and_then(|z| z.std_err).into(),
                log_z.map(|z| z.value - exact).into(),
            ]);
        }
    }
    let columns = vec![
        column("model", 0),
        column("chain", 0),
        column("returned (%)", 2),
        column("to own start (%)", 1),
        column("mean length", 3),
        column("exact log Z", 3),
        column("from tours", 3),
        column("error bar", 4),
        column("its error", 3),
    ];
    let title = "Tours from the stopping set (one state per row) under both chains.".into();
    Ok(Table { name: "estimates".into(), title, columns, rows })
}

fn training(options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for (k, (name, _)) in runs(options, options.seeds[0]).into_iter().enumerate() {
        let (mut test, mut diverged, mut first, mut last, mut own) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &seed in &options.seeds {
            let (_, run) = &runs(options, seed)[k];
            let trained: Trained = store.get(&Task::Train(run.clone()))?.read()?;
            diverged.extend(trained.diverged_in);
            test.extend(likelihoods_of(run, store)?.map(|l| l.test.mean));
            if let Some((a, b)) = &trained.tours {
                let share = |n: u64, of: u64| 100.0 * n as f64 / of.max(1) as f64;
                first.push(share(a.n_completed, a.n_started));
                last.push(share(b.n_completed, b.n_started));
                own.push(share(b.n_completed_at_own_start, b.n_completed));
            }
        }
        let epochs: Vec<String> = diverged.iter().map(usize::to_string).collect();
        let fate = if diverged.is_empty() {
            "stable".to_owned()
        } else {
            format!("diverged in epoch {}", epochs.join(", "))
        };
        rows.push(vec![
            name.into(),
            Summary::of(&test).into(),
            fate.into(),
            Summary::of(&first).into(),
            Summary::of(&last).into(),
            Summary::of(&own).into(),
        ]);
    }
    let columns = vec![
        column("training", 0),
        column("test log-likelihood", 1),
        column("fate", 0),
        column("tours returned, first epoch (%)", 1),
        column("last epoch (%)", 1),
        column("of these to own start (%)", 1),
    ];
    let title =
        format!("Training by the paper's protocol under both chains, {} hidden units.", n_hidden(options));
    Ok(Table { name: "training".into(), title, columns, rows })
}
