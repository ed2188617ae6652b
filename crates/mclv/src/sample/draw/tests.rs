//! Test the choice of the method, and what is refused.

use super::*;
use crate::model::tests::random_rbm;
use crate::sample::tempering::tests::two_modes;
use std::sync::atomic::AtomicBool;

fn settings(n_samples: usize, burn_in: u32, seed: u64) -> SampleSettings {
    SampleSettings { n_samples, burn_in: Some(burn_in), seed, ..Default::default() }
}

fn draw(rbm: &Rbm, settings: &SampleSettings) -> Samples {
    sample(rbm, settings, Start::Bias, None, &Silent).unwrap()
}

/// The enumeration of 34 units takes 29 nominal seconds, that of 12 units far less than one.
#[test]
fn the_method_suits_the_model() {
    let few = SampleSettings { n_samples: 20, ..Default::default() };
    let small = draw(&two_modes(12, 1.0, 0.0), &few);
    assert_eq!((small.method, small.mixing, small.doubt()), (SampleMethod::Exact, None, None));
    let easy = draw(&random_rbm(34, 34, 0.05, 500), &few);
    assert_eq!((easy.method, easy.burn_in, easy.gibbs), (SampleMethod::Gibbs, Some(BURN_IN), None));
    assert_eq!(easy.doubt(), None);
    let hard = draw(&two_modes(34, 0.4, 0.0), &few);
    assert_eq!((hard.method, hard.doubt()), (SampleMethod::Tempering, None), "{:?}", hard.ladders);
    assert!(hard.gibbs.unwrap().r_hat > 1.1 && hard.mixing.unwrap().r_hat < 1.1);
    assert!(hard.ladders.unwrap().round_trips > 1.0);
}

/// Many samples of a large layer take long to draw, even if the enumeration is quick.
#[test]
fn samples_are_exact_only_if_this_is_quick() {
    for (n_visible, n_hidden, n_samples, expected) in [
        (64, 25, 64, true),
        (64, 25, 10_000, true),
        (784, 25, 64, true),
        (784, 25, 10_000, false),
        (784, 28, 64, false),
        (784, 32, 1_000_000, false),
        (3, 784, 10, true),
        (784, 500, 10, false),
        (5_000, 4_000, 10, false),
    ] {
        assert_eq!(
            is_quick(n_visible, n_hidden, n_samples),
            expected,
            "{n_visible} × {n_hidden}, {n_samples}"
        );
    }
}

/// A quick look draws by the same rules, with fewer samples where time is short.
#[test]
fn a_quick_look_keeps_to_its_time() {
    let quick = |rbm: &Rbm, n, seconds| quick_samples(rbm, n, seconds, 3, &Silent).unwrap();
    let small = two_modes(12, 1.0, 0.0);
    assert_eq!(
        quick(&small, 30, 2.0),
        draw(&small, &SampleSettings { n_samples: 30, seed: 3, ..Default::default() })
    );
    // 34 visible units: 20 chains take 1.5 milliseconds of a nominal machine.
    let easy = random_rbm(34, 34, 0.05, 500);
    let samples = quick(&easy, 100, 2.0);
    assert_eq!((samples.method, samples.v.n_rows()), (SampleMethod::Gibbs, 100));
    let fewer = quick(&easy, 100, 2e-3);
    assert_eq!((fewer.method, fewer.v.n_rows()), (SampleMethod::Gibbs, 27));
    // The first of many samples.
    assert!((0..27).all(|r| fewer.v.row(r) == samples.v.row(r)));
    let hard = two_modes(34, 0.4, 0.0);
    let tempered = quick(&hard, 100, 2.0);
    assert_eq!((tempered.method, tempered.doubt()), (SampleMethod::Tempering, None));
    assert!(!tempered.are_correlated() && !samples.are_correlated());
    let mut closer = tempered.clone();
    closer.ladders.as_mut().unwrap().thinning = Some(1);
    assert!(closer.are_correlated());
    assert!(tempered.gibbs.is_some() && (16..=100).contains(&tempered.v.n_rows()));
    // No time for ladders: Gibbs chains, with the doubt.
    let doubtful = quick(&hard, 100, 1e-3);
    assert_eq!((doubtful.method, doubtful.v.n_rows()), (SampleMethod::Gibbs, 16));
    assert!(matches!(doubtful.doubt(), Some(Doubt::ChainsDiffer { .. })), "{:?}", doubtful.mixing);
    assert!(quick_samples(&hard, 0, 1.0, 0, &Silent).is_err());
}

/// Starts, known units and a burn-in are those of Gibbs chains.
#[test]
fn settings_of_gibbs_chains_choose_them() {
    let rbm = two_modes(12, 1.0, 0.0);
    let few = SampleSettings { n_samples: 3, ..Default::default() };
    assert_eq!(draw(&rbm, &settings(3, 50, 0)).method, SampleMethod::Gibbs);
    let rows = Rows::Bits(BitRows::zeros(1, 12));
    let started = sample(&rbm, &few, Start::Rows(&rows), None, &Silent).unwrap();
    assert_eq!((started.method, started.burn_in), (SampleMethod::Gibbs, Some(BURN_IN)));
    let given = Given::new(BitRows::from_words(12, vec![1]), BitRows::zeros(1, 12)).unwrap();
    let known = sample(&rbm, &few, Start::Bias, Some(&given), &Silent).unwrap();
    assert_eq!(known.method, SampleMethod::Gibbs);
    for method in [SampleMethod::Exact, SampleMethod::Tempering] {
        let named = SampleSettings { method: Some(method), ..few.clone() };
        let error = |start, given| sample(&rbm, &named, start, given, &Silent).unwrap_err().to_string();
        let word = error(Start::Rows(&rows), None);
        assert!(
            word.starts_with(&format!("method = {method} is not allowed: samples with starts")),
            "{word}"
        );
        assert!(error(Start::Bias, Some(&given)).contains("known units need `gibbs`"));
    }
    let both = SampleSettings { method: Some(SampleMethod::Exact), ..settings(3, 50, 0) };
    let word = sample(&rbm, &both, Start::Bias, None, &Silent).unwrap_err().to_string();
    assert!(word.starts_with("burn-in = 50 is not allowed: leave it out"), "{word}");
}

#[test]
fn an_enumeration_that_takes_too_long_is_refused_with_its_time() {
    let exact = SampleSettings { method: Some(SampleMethod::Exact), ..Default::default() };
    let word =
        sample(&random_rbm(80, 70, 0.1, 501), &exact, Start::Bias, None, &Silent).unwrap_err().to_string();
    assert!(
        word.starts_with("method = exact is not allowed: the enumeration of 2^70 states would take"),
        "{word}"
    );
    assert!(word.ends_with("choose `tempering` or `gibbs`"), "{word}");
}

/// Means are `E[v|h]` of the hidden states that samples were drawn from: over 4,000 samples, the sum
/// of `v − E[v|h]` of each unit is within 4.5 standard errors of 0 (10 tests, false alarm 7e-5).
/// Samples are nearer to their own means than to those of other samples.
#[test]
fn exact_samples_have_means() {
    for (n_visible, n_hidden) in [(5, 3), (5, 9)] {
        let rbm = random_rbm(n_visible, n_hidden, 2.0, 502);
        let n = 4_000;
        let exact = SampleSettings { n_samples: n, means: true, seed: 3, ..Default::default() };
        let samples = draw(&rbm, &exact);
        let means = samples.means.as_ref().unwrap();
        let v = |r: usize, i: usize| f64::from(u8::from(samples.v.get(r, i)));
        // How much nearer a sample is to its own means than to those of the next sample.
        let nearer = |r: usize| -> f64 {
            let (own, next) = (means.row(r), means.row((r + 1) % n));
            let square = |i: usize, p: f32| (v(r, i) - f64::from(p)).powi(2);
            (0..n_visible).map(|i| square(i, next[i]) - square(i, own[i])).sum()
        };
        for i in 0..n_visible {
            let (mut sum, mut variance) = (0.0, 0.0);
            for r in 0..n {
                let p = f64::from(means.row(r)[i]);
                sum += v(r, i) - p;
                variance += p * (1.0 - p);
            }
            assert!(sum.abs() < 4.5 * variance.sqrt(), "unit {i}: {}", sum / variance.sqrt());
        }
        let mean = (0..n).map(nearer).sum::<f64>() / n as f64;
        let variance = (0..n).map(|r| (nearer(r) - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean > 4.5 * (variance / n as f64).sqrt(), "{mean}, variance {variance}");
    }
}

#[test]
fn bad_settings_are_refused_and_stopping_stops() {
    let rbm = random_rbm(4, 2, 1.0, 133);
    let error = |settings: SampleSettings, start| {
        sample(&rbm, &settings, start, None, &Silent).unwrap_err().to_string()
    };
    assert!(error(settings(0, 1, 0), Start::Bias).starts_with("n-samples = 0 is not allowed"));
    assert!(error(settings(usize::MAX / 2, 1, 0), Start::Bias).contains("at most 2^33 values"));
    assert!(error(settings(1, 0, 0), Start::Bias).starts_with("burn-in = 0 is not allowed"));
    assert!(error(settings(1, u32::MAX, 0), Start::Bias).contains("at most 2147483646"));
    let wide = Rows::Bits(BitRows::zeros(1, 5));
    assert!(error(settings(1, 1, 0), Start::Rows(&wide)).contains("expected 4, got 5"));
    let none = Rows::Bits(BitRows::zeros(0, 4));
    assert!(error(settings(1, 1, 0), Start::Rows(&none)).contains("is empty"));
    let given = Given::new(BitRows::from_words(5, vec![1]), BitRows::zeros(1, 5)).unwrap();
    let width = sample(&rbm, &settings(1, 1, 0), Start::Bias, Some(&given), &Silent).unwrap_err();
    assert!(width.to_string().contains("expected 4, got 5"), "{width}");
    let stop = AtomicBool::new(true);
    let stopped = sample(&rbm, &settings(40, 1000, 0), Start::Bias, None, &stop);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn numpy_files_hold_bytes_and_floats() {
    let samples = Samples {
        v: BitRows::pack(2, &[1, 0, 1, 1], |&x| x == 1),
        means: Some(RealRows::new(2, vec![0.5, 0.25, 0.75, 1.0])),
        method: SampleMethod::Exact,
        mixing: None,
        burn_in: None,
        ladders: None,
        gibbs: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    std::fs::write(&path, samples.to_npz()).unwrap();
    let mut archive = crate::numpy::Archive::open(&path, &crate::progress::Silent).unwrap();
    let bits = archive.array("samples").unwrap();
    assert_eq!((bits.shape.clone(), bits.into_reals()), (vec![2, 2], vec![1.0, 0.0, 1.0, 1.0]));
    assert_eq!(archive.array("means").unwrap().into_reals(), [0.5, 0.25, 0.75, 1.0]);
    let descr = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..60]).into_owned();
    assert!(descr(&samples.to_npy()).contains("'<f4'"));
    let bare = Samples { means: None, ..samples };
    assert!(descr(&bare.to_npy()).contains("'|u1'"));
    assert!(bare.to_npy().ends_with(&[1, 0, 1, 1]));
}
