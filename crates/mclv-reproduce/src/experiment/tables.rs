//! Tables 1 and 2: likelihoods of CD, PCD and LVS under the paper's protocol, ours and published.

use super::{Parts, column, is_enumerable, likelihood, likelihoods_of};
use crate::options::Options;
use crate::published::{Published, TABLE1, TABLE2};
use crate::report::{Cell, Table};
use crate::store::Store;
use crate::task::{ModelOf, Task};
use crate::work::Likelihoods;
use mclv::Result;
use mclv::partition::Guarantee;
use mclv::settings::Starts;
use mclv::statistics::{Summary, paired_t_test};

/// One of the two tables.
pub(super) struct Setup {
    n_hidden: usize,
    published: &'static [Published],
}

pub(super) const ONE: Setup = Setup { n_hidden: 32, published: &TABLE1 };
pub(super) const TWO: Setup = Setup { n_hidden: 25, published: &TABLE2 };

fn model(setup: &Setup, line: &Published, options: &Options, seed: u64) -> ModelOf {
    options.paper(line.method, options.hidden(setup.n_hidden), line.learning_rate, seed)
}

/// All seeds by enumeration if that takes seconds; else by estimates, and the first seed also by
/// enumeration.
pub(super) fn tasks(setup: &Setup, options: &Options) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (n, &seed) in options.seeds.iter().enumerate() {
        for line in setup.published {
            let model = model(setup, line, options, seed);
            let exact = is_enumerable(options.hidden(setup.n_hidden));
            tasks.push(likelihood(&model, exact));
            if !exact && n == 0 {
                tasks.push(likelihood(&model, true));
            }
        }
    }
    tasks
}

pub(super) fn parts(setup: &Setup, options: &Options, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    let mut all: Vec<(&str, Vec<Option<f64>>)> = Vec::new();
    let mut checks = Vec::new();
    let (mut largest_se, mut n_estimates) = (0.0f64, 0);
    for line in setup.published {
        let models: Vec<ModelOf> = options.seeds.iter().map(|&s| model(setup, line, options, s)).collect();
        let found: Vec<Option<Likelihoods>> =
            models.iter().map(|m| likelihoods_of(m, store)).collect::<Result<_>>()?;
        for l in found.iter().flatten().filter(|l| l.log_z.guarantee != Guarantee::Exact) {
            largest_se = largest_se.max(l.log_z.std_err.unwrap_or(f64::INFINITY));
            n_estimates += 1;
        }
        // If both are known, they are compared.
        for model in &models {
            if let (Some(exact), Some(estimate)) =
                (store.find(&likelihood(model, true))?, store.find(&likelihood(model, false))?)
            {
                checks.push((line.method, exact.read::<Likelihoods>()?, estimate.read::<Likelihoods>()?));
            }
        }
        let of =
            |value: &dyn Fn(&Likelihoods) -> f64| -> Vec<f64> { found.iter().flatten().map(value).collect() };
        let (train, test) = (of(&|l| l.train.mean), of(&|l| l.test.mean));
        let ours = Summary::of(&test);
        let published = |(mean, sd): (f64, f64)| {
            Cell::from(options.is_paper().then_some(Summary { mean, sd: Some(sd), n: 10 }))
        };
        rows.push(vec![
            line.method.into(),
            line.learning_rate.into(),
            Summary::of(&train).into(),
            published(line.train),
            ours.into(),
            published(line.test),
            ours.filter(|_| options.is_paper()).map(|s| s.mean - line.test.0).into(),
            test.len().into(),
        ]);
        all.push((line.method, found.iter().map(|l| l.as_ref().map(|l| l.test.mean)).collect()));
    }
    let columns = vec![
        column("method", 0),
        column("learning rate", 2),
        column("train", 1),
        column("published train", 1),
        column("test", 1),
        column("published test", 1),
        column("difference", 1),
        column("seeds", 0),
    ];
    let title = format!(
        "Average log-likelihood, mean (standard deviation) over seeds; {} hidden units; the difference is ours minus the \
         published test value.",
        options.hidden(setup.n_hidden)
    );
    let mut tables = vec![Table { name: String::new(), title, columns, rows }];
    tables.extend(t_tests(&all));
    if !checks.is_empty() {
        tables.push(check_table(&checks));
    }
    let mut notes = Vec::new();
    if options.starts == Starts::Weighted {
        notes.push(
            "Starts of tours are drawn from a table and weighted. The table is rebuilt when the effective sample size of \
             the weights falls below a fifth. In the limit this gives the distribution of the paper's `fresh` starts, \
             in a fraction of the time. `--starts fresh` uses the paper's starts."
                .into(),
        );
    }
    if n_estimates > 0 {
        notes.push(format!(
            "{n_estimates} of the likelihoods use estimates of log Z, by tours, or by AIS if tours do not return. Their \
             standard errors are at most {largest_se:.3} nats. The other likelihoods are exact."
        ));
    }
    Ok(Parts { tables, notes, ..Parts::default() })
}

/// Tests LVS against each of the others, on the seeds that both have.
fn t_tests(all: &[(&str, Vec<Option<f64>>)]) -> Option<Table> {
    let (tours, chains): (Vec<_>, Vec<_>) = all.iter().partition(|(method, _)| method.starts_with("LVS"));
    let mut rows = Vec::new();
    for (method, ours) in &tours {
        for (other, theirs) in &chains {
            let (a, b): (Vec<f64>, Vec<f64>) =
                ours.iter().zip(theirs).filter_map(|(a, b)| Some(((*a)?, (*b)?))).unzip();
            if let Some(test) = paired_t_test(&a, &b) {
                rows.push(vec![
                    format!("{method} − {other}").into(),
                    test.difference.into(),
                    test.t.into(),
                    p_value(test.p).into(),
                ]);
            }
        }
    }
    let columns = vec![column("pair", 0), column("difference", 1), column("t", 1), column("p", 0)];
    let title = "Paired t-tests of test likelihoods: same seed, same initial weights and minibatches.".into();
    (!rows.is_empty()).then(|| Table { name: "t-tests".into(), title, columns, rows })
}

fn p_value(p: f64) -> String {
    if p >= 1e-3 { format!("{p:.3}") } else { format!("{p:.0e}") }
}

fn check_table(checks: &[(&str, Likelihoods, Likelihoods)]) -> Table {
    let rows = checks.iter().map(|(method, exact, estimate)| {
        vec![
            (*method).into(),
            exact.log_z.value.into(),
            estimate.log_z.value.into(),
            estimate.log_z.std_err.into(),
            (estimate.log_z.value - exact.log_z.value).into(),
            estimate.log_z.method.to_string().into(),
        ]
    });
    let columns = vec![
        column("method", 0),
        column("exact log Z", 3),
        column("estimate", 3),
        column("standard error", 3),
        column("error", 3),
        column("by", 0),
    ];
    let title = "Estimates of log Z compared with enumeration, for the models that have both.".into();
    Table { name: "estimates".into(), title, columns, rows: rows.collect() }
}
