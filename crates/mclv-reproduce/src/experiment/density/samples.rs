//! The quality of samples on two sets.

use super::peers::Peer;
use super::{SAMPLED, Set, size};
use crate::experiment::column;
use crate::options::Options;
use crate::report::{Cell, Table};
use crate::store::Store;
use crate::subject::{QualityOf, SampleSource, Subject};
use crate::task::Task;
use crate::work::{Quality, WIDTHS};
use mclv::Result;

/// The most samples.
const N_SAMPLES: usize = 2000;

fn task(set: &Set, source: SampleSource, options: &Options) -> Task {
    let n_samples = options.scaled(N_SAMPLES, 100).min(set.n_rows[2]);
    Task::Quality(QualityOf { data: set.data.clone(), source, n_samples, seed: options.seeds[0] })
}

fn is_sampled(set: &Set, options: &Options) -> bool {
    options.data.is_some() || SAMPLED.contains(&set.name.as_str())
}

/// What is compared on every sampled set, with its name.
fn sources(set: &Set, options: &Options) -> Vec<(String, SampleSource)> {
    let default = set.default(size(options), options.seeds[0], options);
    vec![
        ("training rows".into(), SampleSource::TrainingRows),
        (format!("default, {} units", size(options)), SampleSource::Model(Box::new(Subject::Run(default)))),
        ("random bits".into(), SampleSource::RandomBits),
    ]
}

pub(super) fn tasks(set: &Set, options: &Options) -> Vec<Task> {
    if !is_sampled(set, options) {
        return Vec::new();
    }
    sources(set, options).into_iter().map(|(_, source)| task(set, source, options)).collect()
}

fn source_of_peer(peer: &Peer) -> Option<SampleSource> {
    peer.last.first().map(|model| SampleSource::Model(Box::new(Subject::File(model.file.clone()))))
}

pub(super) fn of_peer(set: &Set, peer: &Peer, options: &Options) -> Option<Task> {
    source_of_peer(peer).filter(|_| is_sampled(set, options)).map(|source| task(set, source, options))
}

pub(super) fn table(sets: &[Set], peers: &[Peer], options: &Options, store: &Store) -> Result<Option<Table>> {
    let mut rows = Vec::new();
    for set in sets.iter().filter(|set| is_sampled(set, options)) {
        let mut all = sources(set, options);
        for peer in peers.iter().filter(|peer| peer.set == set.name) {
            all.extend(source_of_peer(peer).map(|source| (peer.package.clone(), source)));
        }
        for (name, source) in all {
            if let Some(record) = store.find(&task(set, source, options))? {
                rows.push(row(set, &name, &record.read()?));
            }
        }
    }
    let mut columns = vec![
        column("set", 0),
        column("samples of", 0),
        column("means", 4),
        column("by chance", 4),
        column("correlations", 4),
        column("by chance", 4),
        column("nearer than test rows", 3),
    ];
    columns.extend(WIDTHS.map(|width| column(&format!("MMD², σ = {width} median"), 5)));
    let title = "Samples beside test rows: root mean square differences of the means of units and of the \
                 correlations of pairs, each with what chance alone gives; how often a sample is nearer to its \
                 nearest training row than a test row is to its own (one half for new rows); squared kernel \
                 distance (standard error)."
        .into();
    Ok((!rows.is_empty()).then(|| Table { name: "samples".into(), title, columns, rows }))
}

fn row(set: &Set, name: &str, quality: &Quality) -> Vec<Cell> {
    let name = match &quality.doubt {
        Some(doubt) => format!("{name} (chains in doubt: {doubt})"),
        None => name.into(),
    };
    let mut row: Vec<Cell> = vec![
        set.name.as_str().into(),
        name.into(),
        quality.means.0.into(),
        quality.means.1.into(),
        quality.correlations.map(|(rms, _)| rms).into(),
        quality.correlations.map(|(_, chance)| chance).into(),
        quality.nearer.map(|(share, std_err)| format!("{share:.3} ({std_err:.3})")).into(),
    ];
    let of_width = |found: &crate::mmd::Discrepancy| format!("{:.5} ({:.5})", found.mean, found.std_err);
    row.extend(quality.mmd.iter().map(|found| Cell::from(of_width(found).replace('-', "−"))));
    row
}
