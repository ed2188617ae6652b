//! Training in memory: the model of a run, interruptions.

use mclv::data::{self, DataSpec, Rows, Split};
use mclv::progress::{Progress, Silent};
use mclv::train::{Checkpoints, Fit, Listener, Metrics, Outcome, Run, RunInput, TrainSettings, Warning};
use mclv::{Error, ModelFile};
use std::sync::atomic::{AtomicU64, Ordering};

/// Says stop when asked for the so-many-eth time; 0: never.
struct Stop(AtomicU64);

impl Progress for Stop {
    fn report(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0 && self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl Listener for Stop {
    fn epoch(&self, _metrics: &Metrics) {}
    fn warning(&self, _warning: &Warning) {}
}

fn stop_at(n: u64) -> Stop {
    Stop(AtomicU64::new(n))
}

fn digits(split: Split) -> Rows {
    data::load(&DataSpec { split, ..DataSpec::default() }, &Silent).unwrap().rows
}

fn settings() -> TrainSettings {
    TrainSettings { n_hidden: 8, epochs: 4, eval_every: 2, seed: 3, ..TrainSettings::default() }
}

fn finish(fit: &mut Fit) -> Outcome {
    loop {
        if let Some(outcome) = fit.epoch(&stop_at(0)).unwrap() {
            return outcome;
        }
    }
}

#[test]
fn rows_in_memory_give_the_models_and_metrics_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let input = RunInput { train: settings(), ..RunInput::default() };
    let mut run = Run::create(&path, input, &Silent).unwrap();
    let outcome = run.go(Checkpoints::default(), &stop_at(0)).unwrap();
    let (train, validation) = (digits(Split::Train), digits(Split::Validation));
    let mut fit = Fit::new(settings(), train, None, Some(validation), true).unwrap();
    let ours = finish(&mut fit);
    let theirs = |name| ModelFile::load(path.join(name)).unwrap().rbm;
    assert_eq!(fit.rbm(), &theirs("model.safetensors"));
    assert_eq!(fit.best(), Some(&theirs("best.safetensors")));
    let (Outcome::Finished { metrics: a, best: x, .. }, Outcome::Finished { metrics: b, best: y, .. }) =
        (ours, outcome)
    else {
        panic!("not finished")
    };
    assert_eq!((a.validation_log_likelihood, x), (b.validation_log_likelihood, y));
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_model() {
    let rows = digits(Split::Train);
    let fit = || Fit::new(settings(), rows.clone(), None, None, true).unwrap();
    let mut straight = fit();
    finish(&mut straight);
    let mut stopped = fit();
    let outcome = stopped.epoch(&stop_at(5)).unwrap();
    assert_eq!(outcome, Some(Outcome::Interrupted { epochs: 0 }));
    finish(&mut stopped);
    assert_eq!(stopped.rbm(), straight.rbm());
    assert_eq!(stopped.history().len(), straight.history().len());
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let narrow = Rows::from_values("narrow", 2, vec![0.0, 1.0]).unwrap();
    let result = Fit::new(settings(), digits(Split::Train), None, Some(narrow), true);
    assert!(matches!(result.err(), Some(Error::ShapeMismatch { .. })));
}

/// Thirty patterns far from each other: at these rates a chain by itself does not find them all, and mass moves to where it is.
/// (Chains can do with a rate of 0.02.)
#[test]
fn the_best_settings_learn_what_the_plain_ones_do_not() {
    let spec = DataSpec { source: "bars-and-stripes:4".into(), ..DataSpec::default() };
    let bars = data::load(&spec, &Silent).unwrap();
    let short_of_best = |settings: TrainSettings| {
        let mut fit = Fit::new(settings, bars.rows.clone(), None, None, false).unwrap();
        finish(&mut fit);
        let log_z = mclv::partition::exact(fit.rbm(), &Default::default(), &Silent).unwrap();
        let reached = mclv::average_log_likelihood(fit.rbm(), &bars.rows, &log_z).unwrap().mean;
        bars.best_log_likelihood.unwrap() - reached
    };
    let tours = short_of_best(TrainSettings { seed: 4, ..TrainSettings::best(16) });
    assert!((0.0..0.05).contains(&tours), "{tours}");
    let chains = short_of_best(TrainSettings { n_hidden: 16, seed: 4, ..TrainSettings::default() });
    assert!(chains > 1.0, "{chains}");
}
