//! Training in memory: the model of a run, interruptions, rows in pieces.

use mclv::data::{self, DataSpec, Rows, Split};
use mclv::gradient::{Gradient, Lvs, VisibleChain};
use mclv::progress::{Progress, Silent};
use mclv::train::{
    Checkpoints, Fit, Listener, Metrics, Outcome, Run, RunInput, Schedule, TrainSettings, Trainer, Warning,
};
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
    let result = Fit::new(settings(), digits(Split::Train), None, Some(narrow.clone()), true);
    assert!(matches!(result.err(), Some(Error::ShapeMismatch { .. })));
    let mut trainer = Trainer::new(settings(), &digits(Split::Train), None).unwrap();
    assert!(matches!(trainer.feed(&narrow, &Silent), Err(Error::ShapeMismatch { .. })));
}

#[test]
fn rows_fed_whole_are_an_epoch() {
    let rows = digits(Split::Train);
    let mut fed = Trainer::new(settings(), &rows, None).unwrap();
    let mut trained = Trainer::new(settings(), &rows, None).unwrap();
    for _ in 0..3 {
        fed.feed(&rows, &Silent).unwrap();
        trained.epoch(&rows, &Silent).unwrap();
    }
    // The means of the same rows again are the same but for rounding.
    for (x, y) in fed.rbm().weights().iter().zip(trained.rbm().weights()) {
        assert!((x - y).abs() < 1e-4, "{x} {y}");
    }
}

#[test]
fn rows_fed_in_pieces_of_any_size_teach_as_much_as_all_at_once() {
    let rows = digits(Split::Train);
    let visible = VisibleChain::Sampled;
    let gradients = [
        Gradient::Cd { k: 1, visible },
        Gradient::Pcd { k: 1, n_chains: 64, visible },
        Gradient::Lvs(Lvs::default()),
    ];
    for gradient in gradients {
        let settings = TrainSettings {
            gradient,
            epochs: 1 << 20,
            schedule: Schedule::Constant,
            learning_rate: 0.05,
            ..settings()
        };
        let likelihood = |trainer: &Trainer| {
            let log_z = mclv::partition::exact(trainer.rbm(), &Default::default(), &Silent).unwrap();
            mclv::average_log_likelihood(trainer.rbm(), &rows, &log_z).unwrap().mean
        };
        let mut whole = Trainer::new(settings.clone(), &rows, None).unwrap();
        (0..20).for_each(|_| whole.feed(&rows, &Silent).unwrap());
        // Short pieces make more updates, each as large: no more than 20 passes are needed.
        let first = rows.select(&[0]);
        let mut pieces = Trainer::new(settings, &first, None).unwrap();
        pieces.feed(&first, &Silent).unwrap();
        let mut at = 0;
        for n in (0..).map(|k| [1, 7, 128, 300, 5][k % 5]).take(1 + 5 * 60) {
            let piece: Vec<usize> = (at..at + n).map(|r| r % rows.n_rows()).collect();
            pieces.feed(&rows.select(&piece), &Silent).unwrap();
            at += n;
        }
        let (a, b) = (likelihood(&pieces), likelihood(&whole));
        assert!(a > b - 0.5, "in pieces {a}, whole {b}");
    }
}

#[test]
fn a_stopped_piece_is_over() {
    let rows = digits(Split::Train);
    let mut trainer = Trainer::new(settings(), &rows, None).unwrap();
    assert!(matches!(trainer.feed(&rows, &stop_at(3)), Err(Error::Cancelled)));
    let before = trainer.rbm().clone();
    trainer.feed(&rows.select(&[1, 2]), &Silent).unwrap();
    assert_ne!(trainer.rbm(), &before);
    assert_eq!(trainer.epochs_done(), 2);
}
