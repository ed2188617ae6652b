//! Training in memory: the model of a run, interruptions.

use mclv::bits::BitRows;
use mclv::data::{self, DataSpec, Rows, Split};
use mclv::gradient::{Estimator, Gradient, State, Update};
use mclv::progress::{Progress, Silent};
use mclv::settings::{EstimatorName, EvalEvery, Settings};
use mclv::train::{BestModel, Listener, Metrics, Outcome, Run, RunInput, Trained, Training};
use mclv::{Error, ModelFile, Rbm, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Says stop when asked for the `n`th time; 0: never.
struct Stop(AtomicU64);

impl Progress for Stop {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0 && self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl Listener for Stop {}

fn digits(split: Split) -> Rows {
    data::load(&DataSpec { split, ..DataSpec::default() }, &Silent).unwrap().rows
}

fn settings() -> Settings {
    Settings {
        n_hidden: Some(8),
        gradient: Some(EstimatorName::Pcd),
        epochs: Some(4.into()),
        eval_every: Some(EvalEvery::Epochs(2)),
        seed: Some(3),
        ..Settings::default()
    }
}

#[test]
fn rows_in_memory_give_the_models_and_metrics_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = Run::load(RunInput { train: settings(), ..RunInput::default() }, &Silent).unwrap();
    let theirs = run.training().in_folder(&path).fit(run.rows()).unwrap();
    let (train, validation) = (digits(Split::Train), digits(Split::Validation));
    let ours = Training::new(settings()).validation(&validation).fit(&train).unwrap();
    let file = |name| ModelFile::load(path.join(name)).unwrap().rbm;
    assert_eq!((&ours.model, &ours.model), (&theirs.model, &file("model.safetensors")));
    assert_eq!((&ours.best, ours.best.as_ref()), (&theirs.best, Some(&file("best.safetensors"))));
    let timeless = |trained: &Trained| -> Vec<Metrics> {
        let without = |m: &Metrics| {
            let timeless = |z: mclv::partition::LogZ| mclv::partition::LogZ { seconds: 0.0, ..z };
            let log_z = m.log_z.clone().map(timeless);
            let best = m.best.clone().map(|best| BestModel { log_z: timeless(best.log_z), ..best });
            Metrics { seconds: 0.0, evaluation_seconds: 0.0, log_z, best, ..m.clone() }
        };
        trained.history.iter().map(without).collect()
    };
    assert_eq!(timeless(&ours), timeless(&theirs));
    assert!(matches!(ours.outcome, Outcome::Finished { early: false, .. }));
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_model() {
    let rows = digits(Split::Train);
    let straight = Training::new(settings()).fit(&rows).unwrap();
    let mut stop = Stop(AtomicU64::new(5));
    let mut stopped = Training::new(settings()).observe(&mut stop).begin(&rows).unwrap();
    assert_eq!(stopped.epoch().unwrap(), Some(Outcome::Interrupted { epochs: 0 }));
    let stopped = stopped.finish().unwrap();
    assert_eq!(stopped.model, straight.model);
    assert_eq!(stopped.history.len(), straight.history.len());
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let narrow = Rows::from_values("narrow", 2, vec![0.0, 1.0]).unwrap();
    let result = Training::new(settings()).validation(&narrow).fit(&digits(Split::Train));
    assert!(matches!(result.err(), Some(Error::ShapeMismatch { .. })));
}

/// A listener hears of epochs, and of evaluations with their models, in memory as in a run.
#[test]
fn a_listener_hears_of_evaluations_in_memory_too() {
    #[derive(Default)]
    struct Heard(Vec<usize>, Vec<(usize, Rbm)>);
    impl Progress for Heard {}
    impl Listener for Heard {
        fn epoch(&mut self, metrics: &Metrics) {
            self.0.push(metrics.epoch);
        }
        fn evaluated(&mut self, metrics: &Metrics, rbm: &Rbm, _chains: Option<&BitRows>) {
            self.1.push((metrics.epoch, rbm.clone()));
        }
    }
    let mut heard = Heard::default();
    let trained = Training::new(settings()).observe(&mut heard).fit(&digits(Split::Train)).unwrap();
    assert_eq!(heard.0, [1, 2, 3, 4]);
    assert_eq!(heard.1.iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(heard.1[1].1, trained.model);
}

/// A model that is not enumerated: the last evaluation reports its progress and its time, and reaches the standard error
/// that is asked for.
#[test]
fn the_last_evaluation_is_announced_and_reaches_the_error_that_is_asked_for() {
    #[derive(Default)]
    struct Heard(AtomicU64);
    impl Progress for Heard {}
    impl Listener for Heard {
        fn last_evaluation(&self, done: u64, total: u64) {
            assert!(done <= total, "{done} of {total}");
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let rows = digits(Split::Train);
    let mut n_states = 0.0;
    for (final_se, limit) in [(None, 0.1), (Some(0.004.into()), 0.006)] {
        let mut heard = Heard::default();
        let settings = Settings { n_hidden: Some(40), final_se, ..settings() };
        let trained = Training::new(settings).observe(&mut heard).fit(&rows).unwrap();
        let last = trained.history.last().unwrap();
        let log_z = last.log_z.as_ref().unwrap();
        assert!(!log_z.is_exact() && log_z.std_err.unwrap() < limit, "{log_z:?}");
        assert!(log_z.n_states > n_states, "no more work than without a wish: {log_z:?}");
        n_states = log_z.n_states;
        assert!(heard.0.load(Ordering::Relaxed) > 0);
        assert!(last.evaluation_seconds > 0.0 && last.evaluation_seconds < last.seconds, "{last:?}");
    }
}

/// Bits are redrawn from grey rows in memory as in a run: another epoch sees other bits, so the model differs from that of
/// one set of bits; and rows that are bits already are refused.
#[test]
fn bits_are_redrawn_in_memory_too() {
    let grey = digits(Split::Train);
    let redrawn = Settings { redraw_bits: Some(true), ..settings() };
    let bits = data::binarize(&grey, data::Binarize::Bernoulli, 3, 0);
    let once = Training::new(settings()).fit(&bits).unwrap().model;
    let anew = Training::new(redrawn.clone()).fit(&grey).unwrap().model;
    assert_ne!(once, anew);
    assert_eq!(anew, Training::new(redrawn.clone()).redraw_from(&grey).fit(&bits).unwrap().model);
    let refused = Training::new(redrawn).fit(&bits).expect_err("a refusal").to_string();
    assert!(refused.contains("redraw-bits"), "{refused}");
}

/// Rows that are held out are neither learnt from nor counted, and the seed chooses them; in a folder as in memory.
#[test]
fn a_share_of_the_rows_is_held_out_for_validation() {
    let rows = digits(Split::Train);
    let held_out = |share: f64, seed| {
        let validation_fraction = Some(share.into());
        Settings { validation_fraction, seed: Some(seed), ..settings() }
    };
    let trained = |settings: Settings| Training::new(settings).fit(&rows).unwrap();
    let (fifth, other) = (trained(held_out(0.2, 3)), trained(held_out(0.2, 4)));
    assert!(fifth.history[1].validation_log_likelihood.is_some());
    assert_eq!(trained(settings()).history[1].validation_log_likelihood, None);
    assert_ne!(fifth.model, other.model);
    assert_eq!(fifth.model, trained(held_out(0.2, 3)).model);
    let folder = tempfile::tempdir().unwrap();
    let mut stop = Stop(AtomicU64::new(17));
    let training = Training::new(held_out(0.2, 3)).in_folder(folder.path()).observe(&mut stop);
    assert!(matches!(training.fit(&rows).unwrap().outcome, Outcome::Interrupted { .. }));
    let resumed = Training::new(held_out(0.2, 3)).resume(folder.path(), &rows).unwrap().finish().unwrap();
    assert_eq!(resumed.model, fifth.model);
    let one = rows.select(&[0]);
    assert!(Training::new(held_out(0.5, 3)).fit(&one).is_err());
}

#[test]
fn training_starts_from_a_given_model() {
    let rows = digits(Split::Train);
    let first = Training::new(settings()).fit(&rows).unwrap().model;
    let settings = Settings { learning_rate: Some(1e-30), ..settings() };
    let same = Training::new(settings.clone()).from_model(first.clone()).fit(&rows).unwrap().model;
    assert_eq!(same.weights(), first.weights());
    assert_ne!(Training::new(settings).fit(&rows).unwrap().model.weights(), first.weights());
}

/// An estimator of one's own: persistent chains that are moved by the model's own methods.
struct Chains {
    h: BitRows,
    n_estimates: u64,
}

impl Estimator for Chains {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let rbm = update.rbm();
        let stream = |r: usize| update.stream(r as u32);
        let draws: Vec<_> = (0..self.h.n_rows()).map(stream).collect();
        let v = Rows::Bits(rbm.sample_v_from_h(&Rows::Bits(self.h.clone()), |r| draws[r].at(0))?);
        self.h = rbm.sample_h_from_v(&v, |r| draws[r].at(1))?;
        gradient.subtract_mean(&v, &rbm.mean_h_from_v(&v)?);
        self.n_estimates += 1;
        Ok(true)
    }

    fn save(&self) -> State {
        State::new(&self.n_estimates).with_words("chains", self.h.words().to_vec())
    }

    fn restore(&mut self, rbm: &Rbm, state: &State) -> Result<()> {
        self.n_estimates = state.facts()?;
        self.h = state.bit_rows("chains", rbm.n_hidden())?;
        Ok(())
    }
}

#[test]
fn an_estimator_of_ones_own_trains_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let rows = digits(Split::Train);
    let chains = || Box::new(Chains { h: BitRows::zeros(100, 8), n_estimates: 0 });
    let training = || Training::new(settings()).estimator(chains());
    let whole = training().fit(&rows).unwrap();
    let log_likelihood = |m: &Metrics| m.train_log_likelihood.unwrap();
    assert!(log_likelihood(&whole.history[3]) > log_likelihood(&whole.history[1]), "it learns");
    let path = folder.path().join("run");
    let mut stop = Stop(AtomicU64::new(17));
    let stopped = training().in_folder(&path).observe(&mut stop).fit(&rows).unwrap();
    assert!(matches!(stopped.outcome, Outcome::Interrupted { .. }));
    let resumed = training().resume(&path, &rows).unwrap().finish().unwrap();
    assert_eq!(resumed.model, whole.model);
    assert_eq!(resumed.history.len(), 4);
    // The control: the built-in estimator does not do the same.
    assert_ne!(Training::new(settings()).fit(&rows).unwrap().model, whole.model);
}

/// The data are thirty patterns far from each other. At these learning rates a persistent chain
/// does not find all of them, and probability moves to the patterns where chains are. (PCD learns
/// them at a rate of 0.02.)
#[test]
fn the_default_settings_learn_what_persistent_chains_do_not() {
    let spec = DataSpec { source: "bars-and-stripes:4".into(), ..DataSpec::default() };
    let bars = data::load(&spec, &Silent).unwrap();
    let short_of_best = |settings: Settings| {
        let rbm = Training::new(settings).unwatched().fit(&bars.rows).unwrap().model;
        let log_z = mclv::partition::exact(&rbm, &Default::default(), &Silent).unwrap();
        let reached = rbm.log_likelihood(&bars.rows, &log_z).unwrap().mean;
        bars.best_log_likelihood.unwrap() - reached
    };
    let default = Settings { n_hidden: Some(16), seed: Some(4), ..Settings::default() };
    let tours = short_of_best(default.clone());
    assert!((0.0..0.05).contains(&tours), "{tours}");
    let chains = short_of_best(Settings { gradient: Some(EstimatorName::Pcd), ..default });
    assert!(chains > 1.0, "{chains}");
}
