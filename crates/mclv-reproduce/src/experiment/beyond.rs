//! Beyond the paper: every method with the true chain and its best learning rate, compared by
//! epochs, steps and time.

use super::{Parts, column, is_enumerable, likelihood, likelihoods_of};
use crate::options::{Options, decided};
use crate::report::{Axis, Cell, Curve, Plot, Table};
use crate::store::Store;
use crate::task::{AscentOf, ModelOf, Task, TimingOf};
use crate::work::{Likelihoods, Timed};
use mclv::Result;
use mclv::partition::Guarantee;
use mclv::settings::{EstimatorName, Settings, TourLength, Unfinished};
use mclv::statistics::{Summary, paired_t_test};

/// Learning rates of the sweep.
const RATES: [f64; 6] = [0.075, 0.15, 0.3, 0.6, 1.2, 2.4];
const EPOCHS: usize = 100;
/// Epochs of ascent by exact gradients.
const CLIMB: usize = 50;
/// The range of the figure below the best value, in nats.
const SHOWN: f64 = 10.0;
/// Seeds of models with other numbers of hidden units.
const FEWER_SEEDS: usize = 3;

/// What all methods have in common in a comparison.
#[derive(Clone, Copy, PartialEq)]
enum Budget {
    Epochs,
    /// Gibbs steps of the negative phase.
    Steps,
    Time,
}

/// A way to train.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    centred: bool,
    gradient: fn() -> Settings,
    /// Epochs that take as long as 100 epochs of LVS-3 with `carry` and 3 % of the rows. They come
    /// from earlier measurements, which this experiment repeats. They are fixed here, because a
    /// result must not depend on the clock.
    epochs_by_time: usize,
}

impl Way {
    const fn new(name: &'static str, gradient: fn() -> Settings, epochs_by_time: usize) -> Self {
        Self { name, centred: true, gradient, epochs_by_time }
    }

    /// Compared by epochs only.
    const fn not_centred(name: &'static str, gradient: fn() -> Settings) -> Self {
        Self { centred: false, ..Self::new(name, gradient, 0) }
    }
}

const WAYS: [Way; 13] = [
    Way::new("CD-1", || cd(1), 207),
    PCD_1,
    PCD_3,
    Way::new("PCD-5", || pcd(5), 105),
    Way::new("LVS-1 drop", || lvs(1, Unfinished::Drop, 1.0), 48),
    Way::new("LVS-1 keep", || lvs(1, Unfinished::Keep, 1.0), 42),
    Way::new("LVS-1 carry", || lvs(1, Unfinished::Carry, 1.0), 63),
    // A small stopping set is cheap, and chains that reach it may continue from another of its
    // states.
    Way::new("LVS-3 carry, 3 % of the rows", || lvs(3, Unfinished::Carry, 0.03), 100),
    Way::not_centred("CD-1, not centred", || cd(1)),
    Way::not_centred("PCD-1, not centred", || pcd(1)),
    Way::not_centred("LVS-1 drop, not centred", || lvs(1, Unfinished::Drop, 1.0)),
    Way::not_centred("LVS-1 keep, not centred", || lvs(1, Unfinished::Keep, 1.0)),
    Way::not_centred("LVS-3 carry, 3 % of the rows, not centred", || lvs(3, Unfinished::Carry, 0.03)),
];

/// The unit of times.
const PCD_1: Way = Way::new("PCD-1", || pcd(1), 201);
/// The method that the others are compared with.
const PCD_3: Way = Way::new("PCD-3", || pcd(3), 144);
/// PCD-3 with a perfect negative phase.
const REFERENCE: Way = Way::new("exact gradient", || with(EstimatorName::Exact), 0);

fn with(gradient: EstimatorName) -> Settings {
    Settings { gradient: Some(gradient), ..Settings::default() }
}

fn cd(k: u32) -> Settings {
    Settings { k: Some(k.into()), ..with(EstimatorName::Cd) }
}

fn pcd(k: u32) -> Settings {
    Settings { k: Some(k.into()), n_chains: Some(128.into()), ..with(EstimatorName::Pcd) }
}

fn lvs(k: u32, unfinished: Unfinished, row_fraction: f64) -> Settings {
    Settings {
        k: Some(k.into()),
        n_chains: Some(128.into()),
        unfinished: Some(unfinished),
        row_fraction: Some(row_fraction.into()),
        ..with(EstimatorName::Lvs)
    }
}

impl Way {
    /// Gibbs steps per row of the data in an epoch.
    fn steps(&self) -> usize {
        match (self.gradient)().k {
            Some(TourLength::Steps(k)) => k as usize,
            _ => unreachable!("no such way is compared"),
        }
    }

    fn epochs(&self, budget: Budget, options: &Options) -> usize {
        let epochs = match budget {
            Budget::Epochs => EPOCHS,
            Budget::Steps => EPOCHS / self.steps(),
            Budget::Time => self.epochs_by_time,
        };
        options.scaled(epochs, 4)
    }

    fn train(&self, n_hidden: usize, learning_rate: f64, seed: u64) -> Settings {
        Settings {
            n_hidden: Some(n_hidden),
            learning_rate: Some(learning_rate),
            epochs: Some(EPOCHS.into()),
            centred: Some(self.centred),
            seed: Some(seed),
            ..(self.gradient)()
        }
    }

    fn run(&self, n_hidden: usize, rate: f64, seed: u64, budget: Budget, options: &Options) -> ModelOf {
        let epochs = Some(self.epochs(budget, options).into());
        options.run(&Settings { epochs, ..self.train(n_hidden, rate, seed) })
    }

    fn timing(&self, options: &Options) -> Task {
        let train = self.train(size(options), 0.2, options.seeds[0]);
        let (n_before, n_timed) = (options.scaled(10, 1), options.scaled(10, 2));
        Task::Timing(TimingOf { model: options.run(&train), n_rows: 0, n_before, n_timed })
    }

    /// The validation likelihood of the first seed with each learning rate.
    fn sweep(&self, options: &Options, store: &Store) -> Result<Vec<(f64, Option<f64>)>> {
        let of = |rate: f64| {
            let run = self.run(size(options), rate, options.seeds[0], Budget::Epochs, options);
            let found = store.find(&likelihood(&run, true))?.is_some();
            Ok((rate, if found { likelihoods_of(&run, store)?.map(|l| l.validation.mean) } else { None }))
        };
        RATES.into_iter().map(of).collect()
    }

    /// The best learning rate after the sweep; `None` if all diverged.
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

/// The maximum-likelihood reference: the settings of PCD-3, but with exact gradients.
fn reference(options: &Options, store: &Store) -> Result<Option<ModelOf>> {
    let (n_hidden, seed) = (other_sizes(options)[0], options.seeds[0]);
    let rate = PCD_3.best(options, store)?;
    Ok(rate.map(|rate| REFERENCE.run(n_hidden, rate, seed, Budget::Epochs, options)))
}

/// The continuation towards the maximum: exact gradients of large minibatches, which have no bias
/// and little noise.
fn ascent(model: &ModelOf, options: &Options) -> Task {
    let then = Settings {
        n_hidden: Some(model.train.n_hidden),
        learning_rate: Some(0.1),
        epochs: Some(options.scaled(CLIMB, 4).into()),
        batch_size: Some(5500),
        seed: Some(model.train.seed),
        ..with(EstimatorName::Exact)
    };
    Task::Ascent(Box::new(AscentOf { model: model.clone(), then: decided(&then) }))
}

pub(super) fn tasks(options: &Options, store: &Store) -> Result<Vec<Task>> {
    let first = options.seeds[0];
    let of_way = |way: &Way| {
        RATES.map(|rate| likelihood(&way.run(size(options), rate, first, Budget::Epochs, options), true))
    };
    let mut tasks: Vec<Task> = WAYS.iter().flat_map(of_way).collect();
    let swept = tasks.iter().map(|task| store.find(task)).collect::<Result<Option<Vec<_>>>>()?.is_some();
    if !swept {
        return Ok(tasks);
    }
    // It takes longest, so it starts first.
    tasks.extend(reference(options, store)?.map(|run| likelihood(&run, true)));
    for budget in [Budget::Epochs, Budget::Steps, Budget::Time] {
        for line in lines(size(options), &options.seeds, budget, options, store)? {
            tasks.extend(line.runs.iter().map(|run| likelihood(run, true)));
        }
    }
    for line in on_hills(options, store)? {
        tasks.extend(line.runs.iter().map(|run| ascent(run, options)));
    }
    for n_hidden in other_sizes(options) {
        for line in lines(n_hidden, fewer_seeds(options), Budget::Epochs, options, store)? {
            let exact = |run: &ModelOf| is_enumerable(n_hidden) || run.train.seed == first;
            tasks.extend(line.runs.iter().map(|run| likelihood(run, exact(run))));
        }
    }
    tasks.extend(WAYS.iter().map(|way| way.timing(options)));
    Ok(tasks)
}

/// A line of a table: a way at its best rate.
struct Line {
    way: &'static Way,
    rate: Option<f64>,
    /// One for each seed; none if all rates diverged.
    runs: Vec<ModelOf>,
}

/// The models that continue with exact gradients: those of the smaller size, including the
/// reference.
fn on_hills(options: &Options, store: &Store) -> Result<Vec<Line>> {
    let mut all = lines(other_sizes(options)[0], fewer_seeds(options), Budget::Epochs, options, store)?;
    if let Some(run) = reference(options, store)? {
        all.push(Line { way: &REFERENCE, rate: Some(run.train.learning_rate), runs: vec![run] });
    }
    Ok(all)
}

/// All methods that are compared with this budget and this number of hidden units.
fn lines(
    n_hidden: usize,
    seeds: &[u64],
    budget: Budget,
    options: &Options,
    store: &Store,
) -> Result<Vec<Line>> {
    let in_all = budget == Budget::Epochs && n_hidden == size(options);
    let line = |way: &'static Way| {
        let rate = way.best(options, store)?;
        let runs = rate
            .iter()
            .flat_map(|&rate| seeds.iter().map(move |&seed| way.run(n_hidden, rate, seed, budget, options)));
        Ok(Line { way, rate, runs: runs.collect() })
    };
    WAYS.iter().filter(|way| way.centred || in_all).map(line).collect()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let notes = vec![
        "All methods use the model's own Gibbs chain, 128 chains or tours, minibatches of 128 rows, a learning rate \
         that falls linearly to zero, and weights initialised from the data. Gradients are centred unless the name says \
         otherwise. Learning rates were chosen once, by the validation rows of the first seed in the comparison by \
         epochs, and are used for every budget and size."
            .into(),
        "Steps are Gibbs steps of the negative phase per row of the data. Times are in units of an epoch of PCD-1, from \
         epochs without evaluations on one thread, measured in one process. The cost of stopping sets is part of the \
         time, but not of the steps."
            .into(),
    ];
    let (sweep, plot) = sweep(options, store)?;
    let tables = vec![
        comparison(Budget::Epochs, options, store)?,
        comparison(Budget::Steps, options, store)?,
        comparison(Budget::Time, options, store)?,
        sizes(options, store)?,
        hills(options, store)?,
        sweep,
    ];
    Ok(Parts { tables, plots: vec![plot], notes, ..Parts::default() })
}

/// Likelihoods of a way by seed; none where training diverged.
type Found = Vec<Option<Likelihoods>>;

fn of_runs(runs: &[ModelOf], store: &Store) -> Result<Found> {
    runs.iter().map(|run| likelihoods_of(run, store)).collect()
}

fn summary(found: &[Option<Likelihoods>], value: impl Fn(&Likelihoods) -> f64) -> Cell {
    mean(found.iter().flatten(), value)
}

fn mean<'a>(found: impl IntoIterator<Item = &'a Likelihoods>, value: impl Fn(&Likelihoods) -> f64) -> Cell {
    let values: Vec<f64> = found.into_iter().map(value).collect();
    if values.is_empty() { "diverged".into() } else { Summary::of(&values).into() }
}

/// Against PCD-3 with the same seeds: difference and p.
fn against(way: &Way, found: &[Option<Likelihoods>], other: &[Option<Likelihoods>]) -> (Cell, Cell) {
    if way.name == PCD_3.name {
        return (Cell::Missing, Cell::Missing);
    }
    let pairs =
        found.iter().zip(other).filter_map(|(a, b)| Some((a.as_ref()?.test.mean, b.as_ref()?.test.mean)));
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
    paired_t_test(&a, &b).map_or((Cell::Missing, Cell::Missing), |t| (t.difference.into(), t.p.into()))
}

/// Likelihoods of each line, and of PCD-3 among them.
fn found(lines: &[Line], store: &Store) -> Result<(Vec<Found>, Found)> {
    let all = lines.iter().map(|line| of_runs(&line.runs, store)).collect::<Result<Vec<_>>>()?;
    let pcd = lines.iter().position(|line| line.way.name == PCD_3.name).map(|at| all[at].clone());
    Ok((all, pcd.unwrap_or_default()))
}

/// All ways with the same budget.
fn comparison(budget: Budget, options: &Options, store: &Store) -> Result<Table> {
    let base: Timed = store.get(&PCD_1.timing(options))?.read()?;
    let lines = lines(size(options), &options.seeds, budget, options, store)?;
    let (all, pcd) = found(&lines, store)?;
    let mut rows = Vec::new();
    for (line, found) in lines.iter().zip(&all) {
        let timed: Timed = store.get(&line.way.timing(options))?.read()?;
        let epochs = line.way.epochs(budget, options);
        let (difference, p) = against(line.way, found, &pcd);
        rows.push(vec![
            line.way.name.into(),
            line.rate.into(),
            epochs.into(),
            (epochs * line.way.steps()).into(),
            (epochs as f64 * timed.seconds / base.seconds).into(),
            summary(found, |l| l.train.mean),
            summary(found, |l| l.test.mean),
            difference,
            p,
        ]);
    }
    let columns = vec![
        column("method", 0),
        column("rate", 3),
        column("epochs", 0),
        column("steps", 0),
        column("time", 0),
        column("train", 2),
        column("test", 2),
        column("test minus PCD-3", 2),
        column("p", 3),
    ];
    let (name, what) = match budget {
        Budget::Epochs => ("", "The same epochs"),
        Budget::Steps => ("steps", "The same Gibbs steps"),
        Budget::Time => ("time", "The same time"),
    };
    let title = format!(
        "{what}, {} hidden units: exact log-likelihood, mean (sd) over {} seeds; paired t-test against PCD-3.",
        size(options),
        options.seeds.len()
    );
    Ok(Table { name: name.into(), title, columns, rows })
}

fn sizes(options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for n_hidden in other_sizes(options) {
        let lines = lines(n_hidden, fewer_seeds(options), Budget::Epochs, options, store)?;
        let (all, pcd) = found(&lines, store)?;
        for (line, found) in lines.iter().zip(&all) {
            let (difference, p) = against(line.way, found, &pcd);
            let n_exact = found.iter().flatten().filter(|l| l.log_z.guarantee == Guarantee::Exact).count();
            let largest = found.iter().flatten().filter_map(|l| l.log_z.std_err).fold(0.0, f64::max);
            rows.push(vec![
                n_hidden.into(),
                line.way.name.into(),
                line.rate.into(),
                summary(found, |l| l.train.mean),
                summary(found, |l| l.test.mean),
                difference,
                p,
                format!("{n_exact} of {}", found.len()).into(),
                largest.into(),
            ]);
        }
    }
    let columns = vec![
        column("hidden units", 0),
        column("method", 0),
        column("rate", 3),
        column("train", 2),
        column("test", 2),
        column("test minus PCD-3", 2),
        column("p", 3),
        column("exact", 0),
        column("largest error bar", 3),
    ];
    let epochs = options.scaled(EPOCHS, 4);
    let title = format!("Other sizes, {epochs} epochs; paired t-test against PCD-3.");
    Ok(Table { name: "sizes".into(), title, columns, rows })
}

fn hills(options: &Options, store: &Store) -> Result<Table> {
    let mut rows = Vec::new();
    for line in on_hills(options, store)? {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for run in &line.runs {
            if let Some(found) = likelihoods_of(run, store)? {
                before.push(found);
                after.push(store.get(&ascent(run, options))?.read::<Likelihoods>()?);
            }
        }
        let gains: Vec<f64> = before.iter().zip(&after).map(|(b, a)| a.train.mean - b.train.mean).collect();
        rows.push(vec![
            line.way.name.into(),
            line.rate.into(),
            line.runs.len().into(),
            mean(&before, |l| l.train.mean),
            mean(&after, |l| l.train.mean),
            Summary::of(&gains).into(),
            mean(&before, |l| l.test.mean),
            mean(&after, |l| l.test.mean),
        ]);
    }
    let columns = vec![
        column("method", 0),
        column("rate", 3),
        column("seeds", 0),
        column("train", 2),
        column("train after", 2),
        column("gain", 2),
        column("test", 2),
        column("test after", 2),
    ];
    let title = format!(
        "The maximum-likelihood reference, {} hidden units: log-likelihoods after training, and after {} more epochs \
         with exact gradients (5,500 rows per step, rate 0.1). The last line used exact gradients from the start.",
        other_sizes(options)[0],
        options.scaled(CLIMB, 4)
    );
    Ok(Table { name: "hills".into(), title, columns, rows })
}

fn sweep(options: &Options, store: &Store) -> Result<(Table, Plot)> {
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for way in &WAYS {
        let swept = way.sweep(options, store)?;
        let mut row: Vec<Cell> = vec![way.name.into()];
        row.extend(swept.iter().map(|(_, value)| value.map_or("diverged".into(), Cell::from)));
        rows.push(row);
        if way.centred {
            let points = swept.iter().filter_map(|&(rate, value)| Some((rate, value?)));
            curves.push(Curve::new(way.name, points.collect()));
        }
    }
    let mut columns = vec![column("method", 0)];
    columns.extend(RATES.iter().map(|rate| column(&format!("{rate}"), 2)));
    let title =
        format!("The sweep: log-likelihood of validation rows by learning rate, seed {}.", options.seeds[0]);
    let plot = Plot {
        name: "sweep".into(),
        title: "Validation log-likelihood by learning rate, centred".into(),
        x: Axis::log("learning rate"),
        y: Axis::linear("log-likelihood (nats)"),
        curves,
    };
    Ok((Table { name: "sweep-table".into(), title, columns, rows }, plot.within(SHOWN)))
}
