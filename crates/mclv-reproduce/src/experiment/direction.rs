//! The direction of LVS-K gradients over training (Corollary 4), and training with dynamic K.

use super::{Parts, column, likelihood, likelihoods_of};
use crate::options::{Options, true_gibbs};
use crate::report::{Axis, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{DirectionOf, ModelOf, Task};
use crate::work::{Directions, Trained};
use mclv::Result;
use mclv::settings::{Settings, TourLength};
use mclv::statistics::Summary;

/// Small enough for exact gradients.
const N_HIDDEN: usize = 16;
const KS: [u32; 3] = [1, 3, 10];
/// Epochs at whose end directions are measured. Tours begin after epoch 15.
const EPOCHS: [usize; 4] = [16, 25, 50, 100];

/// The model after some epochs of the same training: the schedule depends only on the epoch.
fn model(options: &Options, epochs: usize) -> ModelOf {
    let whole = true_gibbs(&options.paper("LVS-1", options.hidden(N_HIDDEN), 0.1, options.seeds[0]));
    whole.with(Settings { epochs: Some(options.scaled(epochs, 4).into()), ..Settings::default() })
}

fn direction(options: &Options, epochs: usize) -> Task {
    Task::Direction(DirectionOf {
        model: model(options, epochs),
        ks: KS.to_vec(),
        n_updates: options.scaled(200, 20),
        n_tours: 128,
        seed: options.seeds[0],
    })
}

fn epochs(options: &Options) -> Vec<usize> {
    if options.quick { vec![50, 100] } else { EPOCHS.to_vec() }
}

/// Trainings with different K, and with dynamic K.
fn trainings(options: &Options, seed: u64) -> Vec<(String, ModelOf)> {
    let of = |k: TourLength| {
        let paper = true_gibbs(&options.paper("LVS-1", options.hidden(N_HIDDEN), 0.1, seed));
        paper.with(Settings { k: Some(k), ..Settings::default() })
    };
    let named = |k: u32| (format!("LVS-{k}"), of(TourLength::Steps(k)));
    KS.into_iter().map(named).chain([("LVS-dynamic".to_owned(), of(TourLength::Dynamic))]).collect()
}

pub(super) fn direction_tasks(options: &Options) -> Vec<Task> {
    epochs(options).into_iter().map(|epochs| direction(options, epochs)).collect()
}

pub(super) fn dynamic_tasks(options: &Options) -> Vec<Task> {
    let of_seed = |&seed: &u64| trainings(options, seed).into_iter().map(|(_, run)| likelihood(&run, true));
    options.seeds.iter().flat_map(of_seed).collect()
}

pub(super) fn direction_parts(options: &Options, store: &Store) -> Result<Parts> {
    let name = |k: Option<u32>| k.map_or("dynamic".to_owned(), |k| k.to_string());
    let degrees = |cosine: f64| cosine.clamp(-1.0, 1.0).acos().to_degrees();
    let mut rows = Vec::new();
    let mut curves: Vec<Curve> = Vec::new();
    for epochs in epochs(options) {
        let found: Directions = store.get(&direction(options, epochs))?.read()?;
        let epoch = options.scaled(epochs, 4);
        for of in &found.of_k {
            rows.push(vec![
                epoch.into(),
                name(of.k).into(),
                (100.0 * of.returned).into(),
                of.cosine.into(),
                of.cosine_sd.into(),
                degrees(of.cosine).into(),
                degrees(of.pooled_cosine).into(),
                of.relative_bias.into(),
                of.relative_noise.into(),
            ]);
            let curve = format!("K = {}", name(of.k));
            let at = curves.iter().position(|c| c.name == curve).unwrap_or_else(|| {
                curves.push(Curve::new(curve, Vec::new()));
                curves.len() - 1
            });
            curves[at].points.push((epoch as f64, degrees(of.pooled_cosine)));
        }
    }
    let columns = vec![
        column("epoch", 0),
        column("K", 0),
        column("returned (%)", 1),
        column("cosine, one update", 3),
        column("its sd", 3),
        column("angle (degrees)", 1),
        column("angle, all updates together", 1),
        column("error of all together", 3),
        column("of this, noise", 3),
    ];
    let title = format!(
        "The angle between LVS-K gradients (`drop`) and the exact gradient: LVS-1 by the paper's protocol with the true \
         Gibbs chain, {} hidden units, 128 tours an update.",
        options.hidden(N_HIDDEN)
    );
    let notes = vec![
        format!(
            "{} updates of the same model, which share their tours for all K. Together they show the bias: its norm is \
             given in norms of the exact gradient, with the part that noise alone would give.",
            options.scaled(200, 20)
        ),
        "Dynamic K uses all tours. The positive phase is that of all training rows.".into(),
    ];
    let plot = Plot {
        name: "plot".into(),
        title: "Angle of all updates together to the exact gradient".into(),
        x: Axis::linear("epoch"),
        y: Axis::linear("degrees"),
        curves,
    };
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        plots: vec![plot],
        notes,
        ..Parts::default()
    })
}

pub(super) fn dynamic_parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    for (k, (name, _)) in trainings(options, options.seeds[0]).into_iter().enumerate() {
        let (mut train, mut test, mut returned, mut steps, mut seconds) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut n_diverged = 0;
        for &seed in &options.seeds {
            let (_, run) = trainings(options, seed).swap_remove(k);
            let record = store.get(&Task::Train(run.clone()))?;
            let trained: Trained = record.read()?;
            n_diverged += usize::from(trained.diverged_in.is_some());
            // Runs that were interrupted have no CPU time.
            seconds.extend(record.cpu_seconds);
            if let Some(found) = likelihoods_of(&run, store)? {
                train.push(found.train.mean);
                test.push(found.test.mean);
            }
            if let Some((_, last)) = &trained.tours {
                returned.push(100.0 * last.n_completed as f64 / last.n_started.max(1) as f64);
                steps.push(last.n_steps as f64 / last.n_started.max(1) as f64);
            }
        }
        rows.push(vec![
            name.into(),
            Summary::of(&train).into(),
            Summary::of(&test).into(),
            Summary::of(&returned).into(),
            Summary::of(&steps).into(),
            Summary::of(&seconds).into(),
            n_diverged.into(),
        ]);
    }
    let columns = vec![
        column("training", 0),
        column("train", 2),
        column("test", 2),
        column("returned, last epoch (%)", 1),
        column("steps per tour, last epoch", 2),
        column("seconds of one core", 0),
        column("diverged", 0),
    ];
    let title = format!(
        "Training with dynamic K: the paper's protocol with the true Gibbs chain and `drop`, {} hidden units, exact \
         log-likelihoods, mean (standard deviation) over seeds.",
        options.hidden(N_HIDDEN)
    );
    let notes = vec!["With dynamic K all tours return, so `drop` drops none.".into()];
    Ok(Parts { tables: vec![Table { name: String::new(), title, columns, rows }], notes, ..Parts::default() })
}
