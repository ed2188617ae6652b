//! Beyond the paper: every method with the true chain and its best learning rate, by epochs and by time.

use super::{Parts, column, is_enumerable, likelihood, likelihoods_of};
use crate::options::Options;
use crate::report::{Axis, Cell, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{Task, TimingOf};
use crate::work::{Likelihoods, Timed};
use mclv::Result;
use mclv::gradient::{Gradient, Lvs, Starts, TourLength, Unfinished, VisibleChain};
use mclv::partition::Guarantee;
use mclv::statistics::{Summary, paired_t_test};
use mclv::train::{Optimizer, RunInput, TrainSettings};

/// Learning rates of the sweep.
const RATES: [f64; 4] = [0.15, 0.3, 0.6, 1.2];
const EPOCHS: usize = 100;
/// How far below the best, in nats, the figure goes.
const SHOWN: f64 = 10.0;
/// Seeds of models with other numbers of hidden units, and of the comparison by time.
const FEWER_SEEDS: usize = 3;

/// A way to train.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    centred: bool,
    gradient: fn() -> Gradient,
    /// Epochs that take as long as 100 of LVS-3 with `carry` and 3 % of the rows, by times measured before and compared with those
    /// that this experiment measures; fixed here, because a result must not depend on the clock. 0: not compared by time.
    epochs_by_time: usize,
}

impl Way {
    const fn new(name: &'static str, gradient: fn() -> Gradient, epochs_by_time: usize) -> Self {
        Self { name, centred: true, gradient, epochs_by_time }
    }

    const fn not_centred(name: &'static str, gradient: fn() -> Gradient) -> Self {
        Self { centred: false, ..Self::new(name, gradient, 0) }
    }
}

const WAYS: [Way; 10] = [
    Way::new("CD-1", || cd(1), 0),
    Way::not_centred("PCD-1, not centred", || pcd(1)),
    PCD_1,
    Way::new(PCD_3, || pcd(3), 144),
    Way::new("PCD-5", || pcd(5), 105),
    Way::new("LVS-1 drop", || lvs(1, Unfinished::Drop, 1.0), 0),
    Way::new("LVS-1 keep", || lvs(1, Unfinished::Keep, 1.0), 0),
    Way::new("LVS-1 carry", || lvs(1, Unfinished::Carry, 1.0), 0),
    Way::not_centred("LVS-3 carry, 3 % of the rows, not centred", || lvs(3, Unfinished::Carry, 0.03)),
    Way::new(FEW_ROWS, || lvs(3, Unfinished::Carry, 0.03), 100),
];

/// The unit of times.
const PCD_1: Way = Way::new("PCD-1", || pcd(1), 0);
/// What others are compared with.
const PCD_3: &str = "PCD-3";
/// A small stopping set: chains that come by it may go on from another of its states, at little cost.
const FEW_ROWS: &str = "LVS-3 carry, 3 % of the rows";
/// The ways that other sizes are trained in.
const ELSEWHERE: [&str; 2] = [PCD_3, FEW_ROWS];

fn cd(k: usize) -> Gradient {
    Gradient::Cd { k, visible: VisibleChain::Sampled }
}

fn pcd(k: usize) -> Gradient {
    Gradient::Pcd { k, n_chains: 128, visible: VisibleChain::Sampled }
}

fn lvs(k: u32, unfinished: Unfinished, row_fraction: f64) -> Gradient {
    let starts = if unfinished == Unfinished::Carry { Starts::Metropolis } else { Starts::Weighted };
    Gradient::Lvs(Lvs {
        k: TourLength::Steps(k),
        n_tours: 128,
        unfinished,
        starts,
        row_fraction,
        ..Lvs::default()
    })
}

impl Way {
    fn train(&self, n_hidden: usize, learning_rate: f64, seed: u64) -> TrainSettings {
        TrainSettings {
            n_hidden,
            learning_rate,
            epochs: EPOCHS,
            centred: self.centred,
            gradient: (self.gradient)(),
            seed,
            ..TrainSettings::default()
        }
    }

    fn run(&self, n_hidden: usize, learning_rate: f64, seed: u64, options: &Options) -> RunInput {
        let mut train = self.train(n_hidden, learning_rate, seed);
        train.epochs = options.scaled(train.epochs, 4);
        options.run(train)
    }

    /// The run that takes as long as the others.
    fn run_by_time(&self, learning_rate: f64, seed: u64, options: &Options) -> RunInput {
        let mut train = self.train(size(options), learning_rate, seed);
        train.epochs = options.scaled(self.epochs_by_time, 4);
        options.run(train)
    }

    fn timing(&self, options: &Options) -> Task {
        let train = self.train(size(options), 0.2, options.seeds[0]);
        let (n_before, n_timed) = (options.scaled(10, 1), options.scaled(10, 2));
        Task::Timing(TimingOf { model: options.run(train), n_rows: 0, n_before, n_timed })
    }

    /// The validation likelihood of the first seed with each learning rate.
    fn sweep(&self, options: &Options, store: &Store) -> Result<Vec<(f64, Option<f64>)>> {
        let of = |rate: f64| {
            let run = self.run(size(options), rate, options.seeds[0], options);
            let found = store.find(&likelihood(&run, true))?.is_some();
            Ok((rate, if found { likelihoods_of(&run, store)?.map(|l| l.validation.mean) } else { None }))
        };
        RATES.into_iter().map(of).collect()
    }

    /// The best learning rate, once the sweep is made; `None` if all diverged.
    fn best(&self, options: &Options, store: &Store) -> Result<Option<f64>> {
        let swept = self.sweep(options, store)?;
        let by_value = |a: &&(f64, Option<f64>), b: &&(f64, Option<f64>)| {
            a.1.unwrap_or(f64::MIN).total_cmp(&b.1.unwrap_or(f64::MIN))
        };
        Ok(swept.iter().max_by(by_value).filter(|(_, value)| value.is_some()).map(|(rate, _)| *rate))
    }
}

/// Hidden units of the main comparison.
fn size(options: &Options) -> usize {
    options.hidden(25)
}

fn other_sizes(options: &Options) -> Vec<usize> {
    if options.quick { vec![12] } else { vec![16, 32] }
}

fn fewer_seeds(options: &Options) -> &[u64] {
    &options.seeds[..options.seeds.len().min(FEWER_SEEDS)]
}

/// The maximum-likelihood reference: exact gradients of large minibatches.
fn reference(options: &Options) -> RunInput {
    let small = other_sizes(options)[0];
    options.run(TrainSettings {
        n_hidden: small,
        learning_rate: 0.02,
        epochs: options.scaled(100, 4),
        batch_size: 5500,
        optimizer: Optimizer::ADAM,
        gradient: Gradient::Exact,
        seed: options.seeds[0],
        ..TrainSettings::default()
    })
}

pub(super) fn tasks(options: &Options, store: &Store) -> Result<Vec<Task>> {
    let mut tasks: Vec<Task> = Vec::new();
    for way in &WAYS {
        tasks.extend(
            RATES.map(|rate| likelihood(&way.run(size(options), rate, options.seeds[0], options), true)),
        );
    }
    let swept = tasks.iter().map(|task| store.find(task)).collect::<Result<Option<Vec<_>>>>()?.is_some();
    if !swept {
        return Ok(tasks);
    }
    for &seed in &options.seeds {
        for way in &WAYS {
            if let Some(rate) = way.best(options, store)? {
                tasks.push(likelihood(&way.run(size(options), rate, seed, options), true));
            }
        }
    }
    for n_hidden in other_sizes(options) {
        for &seed in fewer_seeds(options) {
            for way in WAYS.iter().filter(|way| ELSEWHERE.contains(&way.name)) {
                if let Some(rate) = way.best(options, store)? {
                    tasks.push(likelihood(&way.run(n_hidden, rate, seed, options), is_enumerable(n_hidden)));
                }
            }
        }
    }
    tasks.push(likelihood(&reference(options), true));
    for &seed in fewer_seeds(options) {
        for way in WAYS.iter().filter(|way| way.epochs_by_time > 0) {
            if let Some(rate) = way.best(options, store)? {
                tasks.push(likelihood(&way.run_by_time(rate, seed, options), true));
            }
        }
    }
    tasks.extend(WAYS.iter().map(|way| way.timing(options)));
    Ok(tasks)
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let notes = vec![
        "All with the model's own Gibbs chain, 128 chains or tours, minibatches of 128, a rate that falls linearly to zero, weights \
         initialised from the data; centred unless said otherwise. Rates were chosen by the validation rows of the first seed."
            .into(),
        "Cost in steps: Gibbs steps of the negative phase for each row of the data; time: an epoch's on one thread without \
         evaluations, as a ratio to PCD-1's measured in the same process."
            .into(),
    ];
    let (sweep, plot) = sweep(options, store)?;
    Ok(Parts {
        tables: vec![by_epochs(options, store)?, by_time(options, store)?, sizes(options, store)?, sweep],
        plots: vec![plot],
        notes,
        ..Parts::default()
    })
}

fn test_values(runs: &[RunInput], store: &Store) -> Result<Vec<Option<Likelihoods>>> {
    runs.iter().map(|run| likelihoods_of(run, store)).collect()
}

fn summary(found: &[Option<Likelihoods>], value: impl Fn(&Likelihoods) -> f64) -> Cell {
    let values: Vec<f64> = found.iter().flatten().map(value).collect();
    if values.is_empty() { "diverged".into() } else { Summary::of(&values).into() }
}

/// Against PCD with the same seeds.
fn against(found: &[Option<Likelihoods>], other: &[Option<Likelihoods>]) -> (Cell, Cell) {
    let pairs =
        found.iter().zip(other).filter_map(|(a, b)| Some((a.as_ref()?.test.mean, b.as_ref()?.test.mean)));
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
    paired_t_test(&a, &b).map_or((Cell::Missing, Cell::Missing), |t| (t.difference.into(), t.p.into()))
}

fn by_epochs(options: &Options, store: &Store) -> Result<Table> {
    let base: Timed = store.get(&PCD_1.timing(options))?.read()?;
    let mut lines = Vec::new();
    for way in &WAYS {
        let timed: Timed = store.get(&way.timing(options))?.read()?;
        let rate = way.best(options, store)?;
        let runs: Vec<RunInput> = rate
            .iter()
            .flat_map(|&rate| options.seeds.iter().map(move |&s| way.run(size(options), rate, s, options)))
            .collect();
        lines.push((way, rate, timed.seconds / base.seconds, test_values(&runs, store)?));
    }
    let pcd = lines.iter().find(|(way, ..)| way.name == PCD_3).map(|line| line.3.clone()).unwrap_or_default();
    let rows = lines.iter().map(|(way, rate, time, found)| {
        let (difference, p) =
            if way.name == PCD_3 { (Cell::Missing, Cell::Missing) } else { against(found, &pcd) };
        vec![
            way.name.into(),
            (*rate).into(),
            steps(&(way.gradient)()).into(),
            (*time).into(),
            summary(found, |l| l.train.mean),
            summary(found, |l| l.test.mean),
            difference,
            p,
        ]
    });
    let columns = vec![
        column("method", 0),
        column("rate", 2),
        column("steps", 0),
        column("time", 2),
        column("train", 2),
        column("test", 2),
        column("test minus PCD-3", 2),
        column("p", 3),
    ];
    let title = format!(
        "{} epochs, {} hidden units: exact log-likelihood, mean (sd) over {} seeds; paired t-test against PCD-3.",
        options.scaled(EPOCHS, 4),
        size(options),
        options.seeds.len()
    );
    Ok(Table { name: String::new(), title, columns, rows: rows.collect() })
}

fn steps(gradient: &Gradient) -> usize {
    match gradient {
        Gradient::Cd { k, .. } | Gradient::Pcd { k, .. } => *k,
        Gradient::Lvs(Lvs { k: TourLength::Steps(k), .. }) => *k as usize,
        _ => 0,
    }
}

fn by_time(options: &Options, store: &Store) -> Result<Table> {
    let base: Timed = store.get(&PCD_1.timing(options))?.read()?;
    let mut lines = Vec::new();
    for way in WAYS.iter().filter(|way| way.epochs_by_time > 0) {
        let timed: Timed = store.get(&way.timing(options))?.read()?;
        let epochs = options.scaled(way.epochs_by_time, 4);
        let rate = way.best(options, store)?;
        let runs: Vec<RunInput> = rate
            .iter()
            .flat_map(|&rate| fewer_seeds(options).iter().map(move |&s| way.run_by_time(rate, s, options)))
            .collect();
        lines.push((
            way,
            rate,
            epochs,
            epochs as f64 * timed.seconds / base.seconds,
            test_values(&runs, store)?,
        ));
    }
    let pcd = lines.iter().find(|line| line.0.name == PCD_3).map(|line| line.4.clone()).unwrap_or_default();
    let rows = lines.iter().map(|(way, rate, epochs, time, found)| {
        let (difference, p) =
            if way.name == PCD_3 { (Cell::Missing, Cell::Missing) } else { against(found, &pcd) };
        let test = summary(found, |l| l.test.mean);
        vec![way.name.into(), (*rate).into(), (*epochs).into(), (*time).into(), test, difference, p]
    });
    let columns = vec![
        column("method", 0),
        column("rate", 2),
        column("epochs", 0),
        column("time (epochs of PCD-1)", 0),
        column("test", 2),
        column("test minus PCD-3", 2),
        column("p", 3),
    ];
    let title = format!(
        "The same time, {} hidden units: epochs chosen so that training takes as long.",
        size(options)
    );
    Ok(Table { name: "time".into(), title, columns, rows: rows.collect() })
}

fn sizes(options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for n_hidden in other_sizes(options) {
        for way in WAYS.iter().filter(|way| ELSEWHERE.contains(&way.name)) {
            let Some(rate) = way.best(options, store)? else { continue };
            let runs: Vec<RunInput> =
                fewer_seeds(options).iter().map(|&s| way.run(n_hidden, rate, s, options)).collect();
            let found = test_values(&runs, store)?;
            let n_exact = found.iter().flatten().filter(|l| l.log_z.guarantee == Guarantee::Exact).count();
            let largest = found.iter().flatten().map(|l| l.log_z.std_err).fold(0.0, f64::max);
            rows.push(vec![
                n_hidden.into(),
                way.name.into(),
                rate.into(),
                summary(&found, |l| l.train.mean),
                summary(&found, |l| l.test.mean),
                format!("{n_exact} of {}", found.len()).into(),
                largest.into(),
            ]);
        }
        if n_hidden == other_sizes(options)[0] {
            let found = test_values(&[reference(options)], store)?;
            rows.push(vec![
                n_hidden.into(),
                "exact gradient, Adam".into(),
                reference(options).train.learning_rate.into(),
                summary(&found, |l| l.train.mean),
                summary(&found, |l| l.test.mean),
                "1 of 1".into(),
                0.0.into(),
            ]);
        }
    }
    let columns = vec![
        column("hidden units", 0),
        column("method", 0),
        column("rate", 2),
        column("train", 2),
        column("test", 2),
        column("exact", 0),
        column("largest error bar", 3),
    ];
    let title = "Other sizes, with the rates found above; the exact gradient is the reference for what any method could learn.".into();
    Ok(Table { name: "sizes".into(), title, columns, rows })
}

fn sweep(options: &Options, store: &Store) -> Result<(Table, Plot)> {
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for way in &WAYS {
        let swept = way.sweep(options, store)?;
        let mut row: Vec<Cell> = vec![way.name.into()];
        row.extend(swept.iter().map(|(_, value)| value.map_or("diverged".into(), Cell::from)));
        rows.push(row);
        if way.centred {
            curves.push((way.name, swept));
        }
    }
    // What has collapsed would leave the others no room.
    let best =
        curves.iter().flat_map(|(_, swept)| swept).filter_map(|(_, value)| *value).fold(f64::MIN, f64::max);
    let shown = |swept: Vec<(f64, Option<f64>)>| {
        swept
            .into_iter()
            .filter_map(|(rate, value)| Some((rate, value.filter(|&v| v > best - SHOWN)?)))
            .collect()
    };
    let curves = curves.into_iter().map(|(name, swept)| Curve::new(name, shown(swept)));
    let mut columns = vec![column("method", 0)];
    columns.extend(RATES.iter().map(|rate| column(&format!("{rate}"), 2)));
    let title =
        format!("The sweep: log-likelihood of validation rows by learning rate, seed {}.", options.seeds[0]);
    let plot = Plot {
        name: "sweep".into(),
        title: format!(
            "Validation log-likelihood by learning rate, centred, within {SHOWN} nats of the best"
        ),
        x: Axis::log("learning rate"),
        y: Axis::linear("log-likelihood (nats)"),
        curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
    };
    Ok((Table { name: "sweep-table".into(), title, columns, rows }, plot))
}
