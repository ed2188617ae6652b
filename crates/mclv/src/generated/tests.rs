//! Every number against a naive computation, and each noise level against repeated draws.

use super::*;
use crate::rng::{Purpose, stream};

/// Rows whose units depend on two hidden causes, and one constant unit.
fn draws(n: usize, seed: u64) -> BitRows {
    let mut shape = stream(9, Purpose::SelfTest, 0).reader();
    let effects: Vec<[f64; 3]> = (0..69).map(|_| [shape.normal(), shape.normal(), shape.normal()]).collect();
    let mut rng = stream(seed, Purpose::SelfTest, 1).reader();
    let mut rows = BitRows::zeros(n, 70);
    for r in 0..n {
        let [x, y] = [0.8, 0.3].map(|p| if rng.uniform() < p { 1.0 } else { -1.0 });
        for (i, [b, of_x, of_y]) in effects.iter().enumerate() {
            let input = b + of_x * x + 0.8 * of_y * y;
            rows.set(r, i, rng.uniform() < 1.0 / (1.0 + (-input).exp()));
        }
        rows.set(r, 69, true);
    }
    rows
}

fn generated(samples: &BitRows, rows: &BitRows, n_pairs: usize) -> Generated {
    let settings = GeneratedSettings { n_pairs, ..Default::default() };
    Generated::new(samples, &Rows::Bits(rows.clone()), None, &settings).unwrap()
}

fn value(rows: &BitRows, r: usize, i: usize) -> f64 {
    f64::from(u8::from(rows.get(r, i)))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// The correlation of two units, value by value, and the variance of its estimate.
fn correlation(rows: &BitRows, i: usize, j: usize) -> (f64, f64) {
    let n = rows.n_rows();
    let standardised = |i: usize| -> Vec<f64> {
        let m = mean((0..n).map(|r| value(rows, r, i)));
        let sd = mean((0..n).map(|r| (value(rows, r, i) - m).powi(2))).sqrt();
        (0..n).map(|r| (value(rows, r, i) - m) / sd).collect()
    };
    let (x, y) = (standardised(i), standardised(j));
    let rho = mean((0..n).map(|r| x[r] * y[r]));
    let variance = mean((0..n).map(|r| (x[r] * y[r] - 0.5 * rho * (x[r] * x[r] + y[r] * y[r])).powi(2)));
    (rho, variance / n as f64)
}

#[test]
fn means_and_correlations_are_those_of_the_values() {
    let (rows, samples) = (draws(130, 1), draws(77, 2));
    let generated = generated(&samples, &rows, 5000);
    for (i, beside) in generated.means.iter().enumerate() {
        let data = mean((0..130).map(|r| value(&rows, r, i)));
        let model = mean((0..77).map(|r| value(&samples, r, i)));
        assert!((beside.data - data).abs() < 1e-12 && (beside.model - model).abs() < 1e-12);
        let p = (130.0 * data + 77.0 * model) / 207.0;
        assert!((beside.std_err - generated.noise_of_mean(p)).abs() < 1e-9);
        assert!((beside.std_err - (p * (1.0 - p) / 130.0 + p * (1.0 - p) / 77.0).sqrt()).abs() < 1e-9);
    }
    // The last unit is constant; others may be by chance.
    let varies = |rows: &BitRows, i: usize| (0..rows.n_rows()).any(|r| rows.get(r, i) != rows.get(0, i));
    let units: Vec<usize> = (0..70).filter(|&i| varies(&rows, i) && varies(&samples, i)).collect();
    assert!(units.len() > 50 && !units.contains(&69));
    assert_eq!(generated.pairs.len(), units.len() * (units.len() - 1) / 2);
    assert_eq!(generated.n_pairs_in_all, generated.pairs.len());
    for (&(i, j), beside) in generated.pairs.iter().zip(&generated.correlations) {
        assert!(i < j && units.contains(&i) && units.contains(&j));
        let ((data, of_rows), (model, of_samples)) = (correlation(&rows, i, j), correlation(&samples, i, j));
        assert!((beside.data - data).abs() < 1e-9 && (beside.model - model).abs() < 1e-9, "{i} {j}");
        assert!((beside.std_err - (of_rows + of_samples).sqrt()).abs() < 1e-9);
    }
}

#[test]
fn random_pairs_are_different_and_repeatable() {
    let (rows, samples) = (draws(100, 1), draws(100, 2));
    let some = generated(&samples, &rows, 300);
    assert_eq!((some.pairs.len(), some.correlations.len()), (300, 300));
    assert!(some.n_pairs_in_all > 1000 && some.pairs.windows(2).all(|p| p[0] < p[1]));
    assert_eq!(some, generated(&samples, &rows, 300));
}

/// Samples of the same distribution differ by what noise gives, within a tenth; samples of another
/// distribution (the negative control) differ by much more.
#[test]
fn noise_alone_gives_the_gaps_that_are_called_noise() {
    let (rows, samples) = (draws(3000, 3), draws(1000, 4));
    let same = generated(&samples, &rows, 1000);
    let ratio = |gap: Gap| gap.rms / gap.rms_by_chance;
    for gap in [same.gap_of_means(), same.gap_of_correlations().unwrap()] {
        assert!((0.6..1.4).contains(&ratio(gap)), "{gap:?}");
        assert!(gap.far < 0.05, "{gap:?}");
    }
    let projections = same.projections.unwrap();
    assert!(projections.components.iter().all(|c| c.distance < 1.3 * c.distance_by_chance));
    // The control: units are exchanged.
    let mut other = BitRows::zeros(1000, 70);
    for r in 0..1000 {
        (0..70).for_each(|i| other.set(r, i, samples.get(r, (i + 7) % 70)));
    }
    let other = generated(&other, &rows, 1000);
    let (means, correlations) = (other.gap_of_means(), other.gap_of_correlations().unwrap());
    assert!(ratio(means) > 3.0 && ratio(correlations) > 3.0, "{means:?} {correlations:?}");
    assert!(means.far > 0.3, "{means:?}");
    let projections = other.projections.unwrap();
    assert!(projections.components.iter().any(|c| c.distance > 2.0 * c.distance_by_chance));
}

#[test]
fn directions_are_eigenvectors_of_the_covariance_with_the_largest_values() {
    let (rows, samples) = (draws(400, 5), draws(50, 6));
    let found = generated(&samples, &rows, 10).projections.unwrap();
    let means: Vec<f64> = (0..70).map(|i| mean((0..400).map(|r| value(&rows, r, i)))).collect();
    let covariance = |i: usize, j: usize| {
        mean((0..400).map(|r| (value(&rows, r, i) - means[i]) * (value(&rows, r, j) - means[j])))
    };
    let matrix: Vec<Vec<f64>> = (0..70).map(|i| (0..70).map(|j| covariance(i, j)).collect()).collect();
    let total: f64 = (0..70).map(|i| matrix[i][i]).sum();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let [first, second] = &found.components;
    for c in [first, second] {
        assert!((dot(&c.direction, &c.direction) - 1.0).abs() < 1e-9);
        for (row, x) in matrix.iter().zip(&c.direction) {
            assert!((dot(row, &c.direction) - c.share * total * x).abs() < 1e-4 * total);
        }
        for (rows, places) in [(&rows, &c.rows), (&samples, &c.samples)] {
            for (r, place) in places.iter().enumerate() {
                let expected: f64 = (0..70).map(|i| (value(rows, r, i) - means[i]) * c.direction[i]).sum();
                assert!((place - expected).abs() < 1e-9);
            }
        }
    }
    assert!(dot(&first.direction, &second.direction).abs() < 1e-9 && first.share >= second.share);
    // No random direction has more variance than the first.
    let mut rng = stream(7, Purpose::SelfTest, 0).reader();
    for _ in 0..100 {
        let x: Vec<f64> = (0..70).map(|_| rng.normal()).collect();
        let variance: f64 = matrix.iter().zip(&x).map(|(row, x_i)| x_i * dot(row, &x)).sum();
        assert!(variance / dot(&x, &x) <= first.share * total + 1e-9);
    }
}

#[test]
fn rows_in_a_line_have_no_second_direction() {
    let rows = BitRows::from_words(2, vec![0b00, 0b11, 0b11, 0b00]);
    assert!(generated(&rows, &rows, 10).projections.is_none());
    let constant = BitRows::from_words(2, vec![0b01; 3]);
    let same = generated(&constant, &constant, 10);
    assert!(same.projections.is_none() && same.correlations.is_empty());
    assert!(same.gap_of_correlations().is_none());
}

#[test]
fn distances_are_to_the_nearest_row_of_all() {
    let (train, held_out, samples) = (draws(150, 1), draws(40, 2), draws(60, 3));
    let settings = GeneratedSettings { n_neighbours: 1000, ..Default::default() };
    let (train_rows, held_out_rows) = (Rows::Bits(train.clone()), Rows::Bits(held_out.clone()));
    let found = Generated::new(&samples, &train_rows, Some(&held_out_rows), &settings).unwrap().distances;
    let naive = |rows: &BitRows| -> Vec<u32> {
        let differ = |r: usize, t: usize| (0..70).filter(|&i| rows.get(r, i) != train.get(t, i)).count();
        (0..rows.n_rows()).map(|r| (0..150).map(|t| differ(r, t)).min().unwrap() as u32).collect()
    };
    assert_eq!((&found.samples, &found.held_out), (&naive(&samples), &naive(&held_out)));
    let nearer = found.nearer().unwrap();
    let half = |&d: &u32, &o: &u32| {
        if d < o {
            1.0
        } else if d == o {
            0.5
        } else {
            0.0
        }
    };
    let pairs = found.samples.iter().flat_map(|d| found.held_out.iter().map(move |o| half(d, o)));
    assert!((nearer.samples - pairs.sum::<f64>() / 2400.0).abs() < 1e-12);
    // Both are draws of one model.
    assert!((nearer.samples - 0.5).abs() < 4.0 * nearer.std_err_by_chance, "{nearer:?}");
    // The control: copies of training rows are nearer than all held-out rows that are no copies.
    let copies = Generated::new(&train, &train_rows, Some(&held_out_rows), &settings).unwrap().distances;
    assert!(copies.samples.iter().all(|&d| d == 0));
    assert_eq!(copies.n_copies(), (150, found.held_out.iter().filter(|&&d| d == 0).count()));
    let nearer = copies.nearer().unwrap();
    assert!(nearer.samples > 0.5 + 6.0 * nearer.std_err_by_chance, "{nearer:?}");
    let largest = found.samples.iter().chain(&found.held_out).copied().max().unwrap();
    for most in [1, 3, 1000] {
        let Histogram { width, samples, held_out } = found.histogram(most);
        assert!(width * most > largest && (width == 1 || (width - 1) * most <= largest));
        for (shares, distances) in [(samples, &found.samples), (held_out, &found.held_out)] {
            assert_eq!(shares.len() as u32, largest / width + 1);
            for (k, share) in shares.iter().enumerate() {
                let bin = k as u32 * width..(k as u32 + 1) * width;
                let n = distances.iter().filter(|d| bin.contains(d)).count();
                assert!((share - n as f64 / distances.len() as f64).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn grey_rows_become_bits_and_many_rows_are_thinned() {
    let grey = Rows::from_values("grey", 2, [0.25f32, 0.75].repeat(4000)).unwrap();
    let samples = draws_of_two(4000);
    let settings = GeneratedSettings { n_rows: 2000, ..Default::default() };
    let found = Generated::new(&samples, &grey, Some(&grey), &settings).unwrap();
    assert_eq!((found.n_rows, found.n_rows_in_all, found.n_samples), (2000, 4000, 4000));
    // Five standard errors of a mean of 2,000 bits.
    assert!((found.means[0].data - 0.25).abs() < 0.05 && (found.means[1].data - 0.75).abs() < 0.05);
    assert_eq!(found.distances.held_out.len(), 300);
    // Bits of training rows and of held-out rows are drawn independently, although the values are
    // the same.
    let Rows::Bits(train) = data::binarize(&grey, Binarize::Bernoulli, 0, 0) else { unreachable!() };
    let Rows::Bits(other) = data::binarize(&grey, Binarize::Bernoulli, 0, 1) else { unreachable!() };
    assert_ne!(train, other);
}

fn draws_of_two(n: usize) -> BitRows {
    let mut rng = stream(8, Purpose::SelfTest, 0).reader();
    let mut rows = BitRows::zeros(n, 2);
    for r in 0..n {
        rows.set(r, 0, rng.uniform() < 0.25);
        rows.set(r, 1, rng.uniform() < 0.75);
    }
    rows
}

#[test]
fn what_does_not_fit_is_refused() {
    let rows = Rows::Bits(draws(10, 1));
    let refused = |samples: &BitRows, train: &Rows, held_out: Option<&Rows>| {
        Generated::new(samples, train, held_out, &Default::default()).unwrap_err().to_string()
    };
    let narrow = Rows::Bits(BitRows::zeros(3, 5));
    assert!(refused(&draws(5, 1), &narrow, None).contains("columns of the data"));
    assert!(refused(&draws(5, 1), &rows, Some(&narrow)).contains("columns of the data"));
    assert!(refused(&BitRows::zeros(0, 70), &rows, None).contains("samples"));
    assert!(refused(&draws(5, 1), &Rows::Bits(BitRows::zeros(0, 70)), None).contains("data"));
}
