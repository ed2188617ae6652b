//! The figure: test likelihood against time on three sets.

use super::peers::Peer;
use super::{DRAWN, Set, size};
use crate::options::Options;
use crate::report::{Axis, Curve, Plot};
use crate::store::Store;
use crate::subject::{Baseline, Subject};
use crate::task::{ModelOf, Task};
use crate::work::{Fitted, Score};
use mclv::Result;
use mclv::data::Split;
use mclv::settings::Snapshots;

/// The copies of the model that a run keeps, for the figure.
pub(super) fn snapshots(set: &Set, n_hidden: usize, seed: u64, options: &Options) -> Option<Snapshots> {
    let is_first = n_hidden == size(options) && Some(&seed) == options.seeds.first();
    (is_first && is_drawn(set, options)).then_some(Snapshots::Log)
}

/// The default with such copies.
fn watched(set: &Set, options: &Options) -> ModelOf {
    set.default(size(options), options.seeds[0], options)
}

/// The epochs of the copies.
fn epochs(model: &ModelOf) -> Vec<usize> {
    let train = &model.train;
    (1..=train.epochs).filter(|&epoch| train.snapshots.is_due(epoch)).collect()
}

fn is_drawn(set: &Set, options: &Options) -> bool {
    options.data.is_some() || DRAWN.contains(&set.name.as_str())
}

fn points(set: &Set, model: &ModelOf) -> Vec<(usize, Task)> {
    let task = |epoch| set.score(Subject::Snapshot(model.clone(), epoch), Split::Test);
    epochs(model).into_iter().map(|epoch| (epoch, task(epoch))).collect()
}

pub(super) fn tasks(set: &Set, options: &Options) -> Vec<Task> {
    if !is_drawn(set, options) {
        return Vec::new();
    }
    points(set, &watched(set, options)).into_iter().map(|(_, task)| task).collect()
}

/// Models of another package along the way, with their log Z.
pub(super) fn of_peer(set: &Set, peer: &Peer, options: &Options) -> Vec<Task> {
    let drawn = peer.before.iter().filter(|_| is_drawn(set, options));
    drawn.flat_map(|model| [Split::Validation, Split::Test].map(|split| model.score(set, split))).collect()
}

pub(super) fn plot(sets: &[Set], peers: &[Peer], options: &Options, store: &Store) -> Result<Option<Plot>> {
    let mut curves = Vec::new();
    for set in sets.iter().filter(|set| is_drawn(set, options)) {
        let independent = set.baseline(Baseline::Independent, Split::Test);
        let Some(record) = store.find(&independent)? else { continue };
        let base = record.read::<Fitted>()?.mean;
        let gain = |task: &Task| -> Result<Option<f64>> {
            let record = store.find(task)?;
            record.map(|record| Ok(record.read::<Score>()?.likelihood.mean - base)).transpose()
        };
        let model = watched(set, options);
        if let Some(trained) = store.find(&Task::Train(model.clone()))? {
            let seconds = trained.cpu_seconds.unwrap_or(trained.seconds) / model.train.epochs as f64;
            let mut curve = Vec::new();
            for (epoch, task) in points(set, &model) {
                curve.extend(gain(&task)?.map(|gain| (epoch as f64 * seconds, gain)));
            }
            curves.push(Curve::new(format!("{}, default", set.name), curve));
        }
        for peer in peers.iter().filter(|peer| peer.set == set.name) {
            let mut curve = Vec::new();
            for model in peer.before.iter().chain(&peer.last[..1]) {
                curve.extend(gain(&model.score(set, Split::Test))?.map(|gain| (model.seconds, gain)));
            }
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            curves.push(Curve::new(format!("{}, {}", set.name, peer.package), curve).dashed());
        }
    }
    curves.retain(|curve| !curve.points.is_empty());
    let title = format!("Gain over independent units by time, {} hidden units", size(options));
    Ok((!curves.is_empty()).then(|| Plot {
        name: "time".into(),
        title,
        x: Axis::log("seconds of one core"),
        y: Axis::linear("test log-likelihood minus that of independent units (nats)"),
        curves,
    }))
}
