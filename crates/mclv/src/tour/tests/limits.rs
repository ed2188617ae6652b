//! Test limits, threads and batches: which of them may change a result, and which may not.

use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::model::tests::random_rbm;
use crate::progress::Silent;
use crate::tour::{End, StartedFrom, TourEngine, TourSettings, Tours};
use crate::{Error, Rbm, StoppingSet};
use std::sync::atomic::AtomicBool;

/// A model with tours of some length, of more than one word of hidden units.
fn wide() -> (Rbm, StoppingSet) {
    let rbm = random_rbm(30, 70, 0.4, 91);
    let v = Rows::Bits(BitRows::from_words(30, (0..40).map(|r| r * 0x1357_9bdf % (1 << 30)).collect()));
    let set = StoppingSet::draw(&rbm, &v, &(0..40).collect::<Vec<_>>(), 3, 1, 0).unwrap();
    (rbm, set)
}

fn small() -> (Rbm, StoppingSet) {
    (random_rbm(6, 5, 1.3, 77), StoppingSet::new(&BitRows::from_words(5, vec![3, 9, 17])))
}

fn run(rbm: &Rbm, set: &StoppingSet, settings: &TourSettings) -> Tours {
    TourEngine::new(rbm, set).unwrap().run(settings, &Silent).unwrap()
}

#[test]
fn threads_and_batches_cannot_be_seen() {
    let add = |v: &[u64], h: &[u64], sums: &mut [f64]| {
        sums[0] += f64::from(v[0].count_ones());
        sums[1] += f64::from(h[0].count_ones()).sqrt();
    };
    for ((rbm, set), max_length) in [(small(), None), (wide(), Some(50))] {
        let engine = TourEngine::new(&rbm, &set).unwrap();
        let with = |n_threads, n_tours| {
            let settings = TourSettings { n_tours, max_length, seed: 3, ..Default::default() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| engine.run_with(&settings, 2, &add, &Silent).unwrap())
        };
        let one = with(1, 3_000);
        for n_threads in [2, 5] {
            let other = with(n_threads, 3_000);
            assert_eq!(
                (one.as_slice(), &one.sums, one.n_steps),
                (other.as_slice(), &other.sums, other.n_steps)
            );
        }
        // A tour does not depend on the other tours.
        let few = with(1, 10);
        assert_eq!((few.as_slice(), &few.sums[..]), (&one.as_slice()[..10], &one.sums[..20]));
    }
}

/// One chain at a time, by the model's own methods: the reference for the batches.
#[test]
fn a_tour_made_again_is_the_tour_that_was_made() {
    let (rbm, set) = small();
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let settings = TourSettings { n_tours: 500, seed: 21, ..Default::default() };
    let add = |v: &[u64], h: &[u64], sums: &mut [f64]| sums[0] += (v[0] * 64 + h[0]) as f64;
    let tours = engine.run_with(&settings, 1, &add, &Silent).unwrap();
    for (number, tour) in tours.as_slice().iter().enumerate() {
        let (v, h) = engine.replay(&tours, &settings, None, number, u32::MAX).unwrap();
        let Rows::Bits(v) = v else { panic!("a sampled chain") };
        assert_eq!(h.n_rows(), tour.length as usize);
        assert_eq!(set.find(h.row(0)), Some(tour.start as usize));
        assert!((1..h.n_rows()).all(|k| set.find(h.row(k)).is_none()));
        let sum: u64 = v.words().iter().zip(h.words()).map(|(v, h)| v * 64 + h).sum();
        assert_eq!(tours.sums(number), [sum as f64]);
    }
    let settings = TourSettings { visible: VisibleChain::MeanField, ..settings };
    let tours = engine.run(&settings, &Silent).unwrap();
    for (number, tour) in tours.as_slice().iter().enumerate() {
        let (v, h) = engine.replay(&tours, &settings, None, number, u32::MAX).unwrap();
        assert_eq!(v, Rows::Reals(rbm.mean_v_from_h(&Rows::Bits(h.clone())).unwrap()));
        assert_eq!(h.n_rows(), tour.length as usize);
        assert!((1..h.n_rows()).all(|k| set.find(h.row(k)).is_none()));
    }
    let rows = Rows::Bits(BitRows::from_words(6, vec![1, 20, 63]));
    let settings = TourSettings { visible: VisibleChain::Sampled, ..settings };
    let from_rows = engine.run_from_rows(&rows, &settings, &Silent).unwrap();
    let (_, h) = engine.replay(&from_rows, &settings, Some(&rows), 7, u32::MAX).unwrap();
    assert!((1..h.n_rows()).all(|k| set.find(h.row(k)).is_none() && h.row(k) != h.row(0)));
    assert!(engine.replay(&from_rows, &settings, None, 7, 1).is_err());
}

/// These values are pinned: a change of random numbers is a breaking change for all recorded seeds.
#[test]
fn tours_are_stable() {
    let (rbm, set) = small();
    let tours = run(&rbm, &set, &TourSettings { n_tours: 8, seed: 5, ..Default::default() });
    let lengths: Vec<u32> = tours.as_slice().iter().map(|t| t.length).collect();
    assert_eq!(lengths, [4, 9, 13, 14, 9, 10, 5, 1]);
    let other = run(&rbm, &set, &TourSettings { n_tours: 8, seed: 5, occasion: 1, ..Default::default() });
    assert_ne!(tours.as_slice(), other.as_slice(), "occasions differ");
}

#[test]
fn a_step_budget_cuts_all_tours_at_one_length() {
    let (rbm, set) = small();
    let whole = run(&rbm, &set, &TourSettings { n_tours: 2_000, seed: 4, ..Default::default() });
    for max_steps in [2_000, 5_000, 9_999, whole.n_steps(), 10 * whole.n_steps()] {
        let settings =
            TourSettings { n_tours: 2_000, max_steps: Some(max_steps), seed: 4, ..Default::default() };
        let tours = run(&rbm, &set, &settings);
        assert!(tours.n_steps() <= max_steps);
        let cuts: Vec<u32> = tours.as_slice().iter().filter(|t| !t.is_complete()).map(|t| t.length).collect();
        let k = cuts.first().copied().unwrap_or(u32::MAX);
        assert!(cuts.iter().all(|&c| c == k));
        for (cut, whole) in tours.as_slice().iter().zip(whole.as_slice()) {
            assert_eq!(cut.length, whole.length.min(k));
        }
        // The rest of the budget is too small for one more step of all running tours.
        assert!(cuts.is_empty() || max_steps - tours.n_steps() < cuts.len() as u64);
        assert!(
            max_steps < 10 * whole.n_steps()
                || tours == Tours { seconds: tours.seconds, has_budget: true, ..whole.clone() }
        );
    }
}

#[test]
fn when_the_time_is_up_every_tour_counts_with_what_it_made() {
    let (rbm, set) = wide();
    let settings = TourSettings { n_tours: 30_000, max_seconds: Some(1e-6), ..Default::default() };
    let tours = run(&rbm, &set, &settings);
    assert_eq!(tours.n_tours(), 30_000);
    assert!(tours.as_slice().iter().all(|t| t.length >= 1) && !tours.all_complete());
    let (rbm, set) = small();
    let plenty = TourSettings { n_tours: 300, max_seconds: Some(1e9), seed: 6, ..Default::default() };
    let free = TourSettings { max_seconds: None, ..plenty.clone() };
    assert_eq!(run(&rbm, &set, &plenty).as_slice(), run(&rbm, &set, &free).as_slice());
}

#[test]
fn tours_from_rows_end_in_the_set_or_where_they_began() {
    let (rbm, set) = small();
    let rows = Rows::Bits(BitRows::from_words(6, vec![1, 20, 63]));
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let settings = TourSettings { n_tours: 3_000, seed: 8, ..Default::default() };
    let tours = engine.run_from_rows(&rows, &settings, &Silent).unwrap();
    assert!(tours.all_complete() && tours.started_from() == StartedFrom::Rows && !tours.obey_kac());
    let counts = [0, 1, 2].map(|r| tours.as_slice().iter().filter(|t| t.start == r).count());
    assert!(counts.iter().all(|&c| (850..1150).contains(&c)), "{counts:?}");
    assert!(tours.n_own_start() > 0 && tours.n_own_start() < 3_000);
    assert!(
        tours.as_slice().iter().any(|t| matches!(t.end, End::Elsewhere(row) if (row as usize) < set.len()))
    );
    assert!(engine.run_from_rows(&Rows::Bits(BitRows::zeros(2, 7)), &settings, &Silent).is_err());
    assert!(engine.run_from_rows(&Rows::Bits(BitRows::zeros(0, 6)), &settings, &Silent).is_err());
}

#[test]
fn bad_settings_are_refused_and_a_listener_can_stop() {
    let (rbm, set) = small();
    let engine = TourEngine::new(&rbm, &set).unwrap();
    let refused = |settings: TourSettings| engine.run(&settings, &Silent).unwrap_err().to_string();
    assert!(refused(TourSettings { n_tours: 0, ..Default::default() }).starts_with("n-tours = 0"));
    assert!(refused(TourSettings { n_tours: 3, stratified: true, ..Default::default() }).contains("even"));
    assert!(
        refused(TourSettings { max_length: Some(0), ..Default::default() }).starts_with("max-length = 0")
    );
    assert!(refused(TourSettings { max_steps: Some(5), ..Default::default() }).starts_with("max-steps = 5"));
    assert!(
        refused(TourSettings { max_seconds: Some(f64::NAN), ..Default::default() }).contains("max-seconds")
    );
    let mean_field = TourSettings { visible: VisibleChain::MeanField, ..Default::default() };
    assert!(engine.run_with(&mean_field, 1, &|_, _, _| {}, &Silent).is_err());
    assert!(TourEngine::new(&rbm, &StoppingSet::default()).is_err());
    assert!(TourEngine::new(&random_rbm(6, 4, 1.0, 1), &set).is_err());
    let stop = AtomicBool::new(true);
    assert!(matches!(engine.run(&TourSettings::default(), &stop), Err(Error::Cancelled)));
}
