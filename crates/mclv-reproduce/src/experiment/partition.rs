//! Z from growing numbers of tours, compared with exact Z.

use super::{Parts, column, likelihood};
use crate::options::Options;
use crate::report::{Axis, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{ModelOf, Task, ToursFrom, ToursOf};
use crate::work::{Likelihoods, Toured};
use mclv::Result;
use mclv::chain::VisibleChain;
use mclv::settings::Settings;

const CHAINS: [(VisibleChain, &str); 2] =
    [(VisibleChain::MeanField, "mean field"), (VisibleChain::Sampled, "true Gibbs")];

/// The model of the paper's figure, saved after the warm-up, and the same after the whole training.
fn models(options: &Options) -> [(&'static str, ModelOf); 2] {
    let n_hidden = options.hidden(32);
    let seed = options.seeds[0];
    let trained = options.paper("LVS-1", n_hidden, 0.1, seed);
    let epochs = Some(trained.train.warm_up_epochs().into());
    let warm_up = options.paper("CD-1", n_hidden, 0.1, seed);
    let warm_up = warm_up.with(Settings { epochs, ..Settings::default() });
    [("after the warm-up", warm_up), ("after training", trained)]
}

fn tours(model: &ModelOf, visible: VisibleChain, options: &Options) -> Task {
    Task::Tours(ToursOf {
        model: model.clone(),
        visible,
        from: ToursFrom::Pi,
        samples_per_row: 1,
        n_tours: 1000,
        max_length: options.scaled(100_000, 1000) as u32,
        n_pictures: 0,
        seed: options.seeds[0],
    })
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let of_model = |(_, model): (_, ModelOf)| {
        let mut tasks = CHAINS.map(|(chain, _)| tours(&model, chain, options)).to_vec();
        tasks.push(likelihood(&model, true));
        tasks
    };
    models(options).into_iter().flat_map(of_model).collect()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let (mut rows, mut plots) = (Vec::new(), Vec::new());
    for (k, (when, model)) in models(options).into_iter().enumerate() {
        let exact = store.get(&likelihood(&model, true))?.read::<Likelihoods>()?.log_z.value;
        let mut curves = Vec::new();
        for (visible, chain) in CHAINS {
            let toured: Toured = store.get(&tours(&model, visible, options))?.read()?;
            let points = toured.running.iter().map(|p| (p.n_tours as f64, p.log_z)).collect();
            let band =
                toured.running.iter().map(|p| (p.log_z - 1.96 * p.std_err, p.log_z + 1.96 * p.std_err));
            curves.push(Curve::new(chain, points).with_band(band.collect()));
            let log_z = toured.log_z.as_ref();
            rows.push(vec![
                when.into(),
                chain.into(),
                exact.into(),
                scientific(exact).into(),
                log_z.map(|z| z.value).into(),
                log_z.and_then(|z| z.std_err).into(),
                log_z.map(|z| z.value - exact).into(),
                log_z.map(|z| format!("{:.1e}", (z.value - exact).exp_m1()).replace('-', "−")).into(),
                (100.0 * toured.n_complete as f64 / toured.n_tours as f64).into(),
                toured.mean_length.value.into(),
            ]);
        }
        curves.push(Curve::new("exact", vec![(1.0, exact), (1000.0, exact)]).dashed());
        plots.push(Plot {
            name: ["warm-up", "trained"][k].into(),
            title: format!("log Z from tours, model {when}"),
            x: Axis::log("tours"),
            y: Axis::linear("log Z"),
            curves,
        });
    }
    let columns = vec![
        column("model", 0),
        column("chain", 0),
        column("exact log Z", 3),
        column("exact Z", 0),
        column("from tours", 3),
        column("standard error", 3),
        column("error", 3),
        column("relative error of Z", 0),
        column("returned (%)", 1),
        column("mean length", 2),
    ];
    let title = "log Z from 1,000 tours that start in the stopping set (one state per row).".into();
    let notes = vec![
        "Bands are 1.96 naive standard errors of the first tours. They are too narrow until long tours have been \
         observed. The theory holds only for the true Gibbs chain."
            .into(),
        "The paper has Z = 1.46·10¹⁰⁰ for its model after the warm-up, and an estimate that agrees to the tenth decimal. \
         Its model was not published, and its chain is the mean-field one."
            .into(),
    ];
    Ok(Parts {
        tables: vec![Table { name: String::new(), title, columns, rows }],
        plots,
        notes,
        ..Parts::default()
    })
}

/// `e^log_z` as a decimal number with its power of ten.
fn scientific(log_z: f64) -> String {
    let log_10 = log_z / std::f64::consts::LN_10;
    format!("{:.2}e{}", 10f64.powf(log_10 - log_10.floor()), log_10.floor())
}
