//! Rows in pieces: the same law as whole passes, chains that go on, a state that can be kept.

use mclv::bits::BitRows;
use mclv::data::{self, DataSpec, Rows};
use mclv::progress::{Progress, Silent};
use mclv::rng::{Purpose, stream};
use mclv::settings::{EstimatorName, Rule, Schedule, Settings, TourLength, Unfinished};
use mclv::statistics::Summary;
use mclv::train::{Feed, Training};
use mclv::{Error, Rbm};
use std::sync::atomic::{AtomicU64, Ordering};

fn digits() -> Rows {
    let all = data::load(&DataSpec::default(), &Silent).unwrap().rows;
    all.select(&(0..640).collect::<Vec<_>>())
}

fn settings(gradient: EstimatorName) -> Settings {
    Settings {
        n_hidden: Some(8),
        batch_size: Some(64),
        learning_rate: Some(0.05),
        schedule: Some(Schedule::Constant),
        seed: Some(3),
        gradient: Some(gradient),
        ..Settings::default()
    }
}

/// One step per update.
fn pcd(n_chains: Option<usize>) -> Settings {
    let k = Some(TourLength::Steps(1));
    Settings { k, n_chains: Some(n_chains.into()), ..settings(EstimatorName::Pcd) }
}

fn drop() -> Settings {
    Settings {
        k: Some(TourLength::Steps(5)),
        unfinished: Some(Unfinished::Drop),
        ..settings(EstimatorName::Lvs)
    }
}

fn likelihood(rbm: &Rbm, rows: &Rows) -> f64 {
    let log_z = mclv::partition::exact(rbm, &Default::default(), &Silent).unwrap();
    rbm.log_likelihood(rows, &log_z).unwrap().mean
}

#[test]
fn whole_passes_are_epochs_bit_for_bit() {
    let rows = digits();
    let tours = Settings { n_chains: Some(64.into()), ..drop() };
    for settings in [settings(EstimatorName::Cd), pcd(Some(64)), tours] {
        let settings = Settings { epochs: Some(9.into()), optimizer: Some(Rule::Adam), ..settings };
        let mut session = Training::new(settings.clone()).unwatched().begin(&rows).unwrap();
        let mut feed = Feed::new(&settings, &rows, None).unwrap();
        for _ in 0..3 {
            session.epoch().unwrap();
            feed.add(&rows, &Silent).unwrap();
            assert_eq!(feed.rbm(), session.rbm());
        }
    }
}

/// Passes over the rows `N_PASSES` times in pieces of whole minibatches and returns the likelihood.
/// If `forgetful`, each piece begins a new feed from the current model.
fn in_pieces(settings: &Settings, rows: &Rows, forgetful: bool) -> f64 {
    const SIZES: [usize; 6] = [64, 192, 64, 128, 64, 128];
    let seed = settings.seed.unwrap_or_default();
    let mut feed = Feed::new(settings, rows, None).unwrap();
    for pass in 0..N_PASSES {
        let mut order: Vec<usize> = (0..rows.n_rows()).collect();
        stream(seed, Purpose::SelfTest, pass).reader().shuffle(&mut order);
        let mut rest = order.as_slice();
        for (piece, n) in SIZES.into_iter().enumerate() {
            let (now, later) = rest.split_at(n);
            rest = later;
            if forgetful {
                let seed = Some(seed + 1000 * (1 + 6 * pass + piece as u64));
                let settings = Settings { seed, ..settings.clone() };
                feed = Feed::new(&settings, rows, Some(feed.rbm().clone())).unwrap();
            }
            feed.add(&rows.select(now), &Silent).unwrap();
        }
        assert!(rest.is_empty());
    }
    likelihood(feed.rbm(), rows)
}

const N_PASSES: u64 = 6;

/// A random order that is cut into pieces of whole minibatches, each shuffled again, is a random
/// order. So models have the same law as those of whole passes. Centring is off, because its
/// offsets differ during the first pass.
#[test]
fn pieces_of_whole_minibatches_give_the_law_of_whole_passes() {
    let rows = digits();
    for settings in [settings(EstimatorName::Cd), pcd(Some(64))] {
        let of_seed = |seed| Settings {
            seed: Some(seed),
            centred: Some(false),
            learning_rate: Some(0.002),
            momentum: Some(0.9),
            ..settings.clone()
        };
        let whole = |seed| {
            let mut feed = Feed::new(&of_seed(seed), &rows, None).unwrap();
            (0..N_PASSES).for_each(|_| feed.add(&rows, &Silent).unwrap());
            likelihood(feed.rbm(), &rows)
        };
        let z = |forgetful| {
            let a: Vec<f64> = (0..40).map(|seed| in_pieces(&of_seed(seed), &rows, forgetful)).collect();
            let b: Vec<f64> = (100..140).map(whole).collect();
            let [a, b] = [a, b].map(|values| Summary::of(&values).unwrap());
            let variance = |s: Summary| s.sd.unwrap().powi(2) / s.n as f64;
            (a.mean - b.mean) / (variance(a) + variance(b)).sqrt()
        };
        // With 78 degrees of freedom, `|z|` exceeds 4 for one choice of seeds in 7,000.
        let z_pieces = z(false);
        assert!(z_pieces.abs() < 4.0, "{settings:?}: {z_pieces}");
        // If chains and momentum were thrown away after each piece, this would be seen.
        let z_forgetful = z(true);
        assert!(z_forgetful.abs() > 4.0, "{settings:?}: {z_forgetful}");
    }
}

/// The model stands still at this rate: single precision does not see such steps.
const STILL: f64 = 1e-30;

#[test]
fn chains_go_on_from_piece_to_piece_to_the_models_distribution() {
    let n_chains = 2000;
    let weights: Vec<f32> = (0..6 * 4).map(|i| [1.5, -1.0, 0.5, -1.5, 1.0][i % 5]).collect();
    let rbm = Rbm::new(6, 4, &weights, &[0.5, -0.5, 0.1, 1.0, -1.0, 0.2], &[-1.0, 0.5, -0.1, 0.3]).unwrap();
    // E[h] by its definition.
    let states = Rows::Bits(BitRows::all_states(4));
    let p: Vec<f64> = rbm.free_energy_h(&states).unwrap().iter().map(|f| (-f).exp()).collect();
    let mean = |j: usize| {
        let on: f64 = p.iter().enumerate().filter(|(s, _)| s >> j & 1 == 1).map(|(_, p)| p).sum();
        on / p.iter().sum::<f64>()
    };
    let rows = Rows::Bits(BitRows::zeros(1, 6));
    let settings = Settings { learning_rate: Some(STILL), n_hidden: Some(4), ..pcd(Some(n_chains)) };
    let z_of_units = |forgetful: bool| -> Vec<f64> {
        let begin = |seed| {
            let settings = Settings { seed: Some(seed), ..settings.clone() };
            Feed::new(&settings, &rows, Some(rbm.clone())).unwrap()
        };
        let mut feed = begin(0);
        for piece in 0..60 {
            if forgetful {
                feed = begin(piece);
            }
            feed.add(&rows, &Silent).unwrap();
        }
        assert_eq!(feed.rbm(), &rbm);
        let chains = feed.chains().unwrap();
        let z = |j: usize| {
            let on = (0..n_chains).filter(|&c| chains.get(c, j)).count() as f64 / n_chains as f64;
            (on - mean(j)).abs() / (mean(j) * (1.0 - mean(j)) / n_chains as f64).sqrt()
        };
        (0..4).map(z).collect()
    };
    // The largest `|z|` of four units exceeds 4.2 for one seed in 9,000.
    let (kept, thrown_away) = (z_of_units(false), z_of_units(true));
    assert!(kept.iter().all(|&z| z < 4.2), "{kept:?}");
    assert!(thrown_away.iter().any(|&z| z > 4.2), "{thrown_away:?}");
}

#[test]
fn what_is_kept_goes_on_bit_for_bit() {
    let rows = digits();
    let all = [
        settings(EstimatorName::Cd),
        pcd(None),
        settings(EstimatorName::Lvs),
        drop(),
        settings(EstimatorName::Exact),
    ];
    for (k, settings) in all.into_iter().enumerate() {
        let settings = match k % 3 {
            0 => settings,
            1 => Settings { momentum: Some(0.9), ..settings },
            _ => Settings { optimizer: Some(Rule::Adam), ..settings },
        };
        let piece = |from, to| rows.select(&(from..to).collect::<Vec<_>>());
        let mut feed = Feed::new(&settings, &piece(0, 7), None).unwrap();
        feed.add(&piece(0, 7), &Silent).unwrap();
        feed.add(&piece(7, 300), &Silent).unwrap();
        let mut again = Feed::from_bytes(&feed.to_bytes()).unwrap();
        assert_eq!(again.rbm(), feed.rbm());
        for (from, to) in [(300, 301), (301, 500), (100, 640)] {
            feed.add(&piece(from, to), &Silent).unwrap();
            again.add(&piece(from, to), &Silent).unwrap();
            assert_eq!(again.rbm(), feed.rbm());
        }
    }
}

#[test]
fn damaged_bytes_and_rows_that_do_not_fit_are_refused() {
    let rows = digits();
    let mut feed = Feed::new(&pcd(None), &rows, None).unwrap();
    let narrow = Rows::Bits(BitRows::zeros(1, 2));
    assert!(matches!(feed.add(&narrow, &Silent), Err(Error::ShapeMismatch { .. })));
    let bytes = feed.to_bytes();
    for broken in [&bytes[..bytes.len() - 1], &bytes[..10], b"", &[0; 100]] {
        let error = Feed::from_bytes(broken).err().unwrap();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}

/// Cancels the work the `n`th time that it is asked, where `n` is the number inside.
struct Stop(AtomicU64);

impl Progress for Stop {
    fn report(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

#[test]
fn a_stopped_piece_is_over() {
    let rows = digits();
    let mut feed = Feed::new(&pcd(None), &rows, None).unwrap();
    assert!(matches!(feed.add(&rows, &Stop(AtomicU64::new(3))), Err(Error::Cancelled)));
    let before = feed.rbm().clone();
    feed.add(&rows.select(&[1, 2]), &Silent).unwrap();
    assert_ne!(feed.rbm(), &before);
    assert_eq!(feed.n_pieces(), 2);
}
