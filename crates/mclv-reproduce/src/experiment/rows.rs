//! Claims about rows: which rows a model finds likely, and whether long tours start at odd digits.

use super::{Parts, column};
use crate::options::Options;
use crate::published::TABLE2;
use crate::report::Table;
use crate::store::Store;
use crate::task::{RowsOf, Task};
use crate::work::RowsCompared;
use mclv::Result;
use mclv::chain::VisibleChain;

const CHAINS: [(VisibleChain, &str); 2] =
    [(VisibleChain::MeanField, "mean field"), (VisibleChain::Sampled, "true Gibbs")];
/// The model whose tours are examined.
const TOURS_OF: &str = "LVS-1";

fn task(options: &Options, method: &str, learning_rate: f64, chain: Option<VisibleChain>) -> Task {
    Task::Rows(RowsOf {
        model: options.paper(method, options.hidden(25), learning_rate, options.seeds[0]),
        visible: chain.unwrap_or(VisibleChain::Sampled),
        n_rows: chain.map_or(0, |_| options.scaled(5000, 300)),
        tours_per_row: 8,
        max_length: 1000,
        seed: options.seeds[0],
    })
}

/// The rate that table 2 gives to a method.
fn rate(method: &str) -> f64 {
    TABLE2.iter().find(|line| line.method == method).expect("a method of table 2").learning_rate
}

fn with_tours(options: &Options) -> Vec<Task> {
    CHAINS.map(|(chain, _)| task(options, TOURS_OF, rate(TOURS_OF), Some(chain))).to_vec()
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    let likelihoods = TABLE2.iter().map(|line| task(options, line.method, line.learning_rate, None));
    likelihoods.chain(with_tours(options)).collect()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    for line in &TABLE2 {
        let task = task(options, line.method, line.learning_rate, None);
        let found: RowsCompared = store.get(&task)?.read()?;
        rows.push(vec![
            line.method.into(),
            (100.0 * found.of_ten).into(),
            (100.0 * found.of_percent).into(),
            found.effective_rows.into(),
            found.best_above_median.into(),
            found.median_above_worst.into(),
        ]);
    }
    let columns = vec![
        column("method", 0),
        column("ten likeliest rows (%)", 1),
        column("likeliest percent (%)", 1),
        column("effective rows", 1),
        column("likeliest above median (nats)", 1),
        column("median above least likely (nats)", 1),
    ];
    let title = format!(
        "How the probability of the training rows is shared out among them; models of table 2, {} hidden units.",
        options.hidden(25)
    );
    let spread = Table { name: "spread".into(), title, columns, rows };

    let (mut correlations, mut scores, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (task, (_, chain)) in with_tours(options).iter().zip(CHAINS) {
        let Some(tours) = store.get(task)?.read::<RowsCompared>()?.tours else { continue };
        correlations.push(vec![
            chain.into(),
            tours.n_rows.into(),
            (100.0 * tours.n_unfinished as f64 / tours.n_tours as f64).into(),
            tours.with_likelihood.into(),
            tours.with_distance.into(),
            tours.likelihood_with_distance.into(),
        ]);
        for score in &tours.scores {
            scores.push(vec![
                chain.into(),
                score.name.as_str().into(),
                score.area.into(),
                (100.0 * score.precision[0]).into(),
                (100.0 * score.precision[1]).into(),
            ]);
        }
        if let Some(odd) = tours.odd {
            notes.push(format!(
                "{chain}: {:.2} % of the rows are odd, which is the precision of chance.",
                100.0 * odd
            ));
        }
    }
    let columns = vec![
        column("chain", 0),
        column("rows", 0),
        column("unfinished tours (%)", 2),
        column("length – likelihood", 3),
        column("length – distance", 3),
        column("likelihood – distance", 3),
    ];
    let title = format!(
        "Rank correlations over rows, {TOURS_OF}: tour length (mean of log min(ξ, 1000)), log-likelihood, distance to the \
         nearest other row."
    );
    let correlations = Table { name: "correlations".into(), title, columns, rows: correlations };
    let columns = vec![
        column("chain", 0),
        column("score", 0),
        column("area under the curve", 3),
        column("precision, top 1 % (%)", 1),
        column("precision, top 5 % (%)", 1),
    ];
    let title = "Scores for odd digits: rows whose nearest other row has another label.".into();
    let scores = Table { name: "scores".into(), title, columns, rows: scores };
    notes.push(
        "Tours start at new draws from p(h|v) of rows, as in the paper's figures. Distances count the pixels that differ \
         when both rows are cut at one half."
            .into(),
    );
    Ok(Parts { tables: vec![spread, correlations, scores], notes, ..Parts::default() })
}
