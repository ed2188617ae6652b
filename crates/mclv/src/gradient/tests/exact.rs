use super::oracle::{Joint, parameters};
use super::{data_pairs, list, negative, step, with_update};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::gradient::{Gradient, total_weight};
use crate::model::tests::random_rbm;
use crate::settings::EstimatorSettings;
use crate::statistics::largest;

/// Kept in single precision.
const TOLERANCE: f64 = 1e-6;

fn worst(x: &[f64], y: &[f64]) -> f64 {
    largest(super::differences(x, y).map(f64::abs))
}

#[test]
fn it_is_the_enumeration_of_either_layer_and_not_of_a_neighbouring_model() {
    for (n_visible, n_hidden) in [(8, 5), (5, 7), (6, 6), (1, 8), (9, 1)] {
        let rbm = random_rbm(n_visible, n_hidden, 1.5, 21);
        let data = Rows::Bits(BitRows::zeros(1, n_visible));
        let estimate = negative(&mut *EstimatorSettings::Exact.estimator(), &rbm, &data, step(0));
        let exact = Joint::new(&rbm).moments();
        assert!(
            worst(&estimate, &exact) < TOLERANCE,
            "{n_visible} × {n_hidden}: {}",
            worst(&estimate, &exact)
        );
        let mut nearby = parameters(&rbm);
        nearby[0] += 0.01;
        let nearby = Joint::of(n_visible, n_hidden, &nearby).moments();
        assert!(worst(&estimate, &nearby) > TOLERANCE, "the control must be caught");
    }
}

#[test]
fn data_minus_model_is_the_slope_of_the_log_likelihood() {
    for (n_visible, n_hidden) in [(7, 4), (4, 6)] {
        let rbm = random_rbm(n_visible, n_hidden, 1.0, 22);
        let rows: Vec<u64> = vec![3, 9, 14, 9, 0];
        let bits = BitRows::from_words(n_visible, rows.clone());
        let mut moments = Gradient::zeros(n_visible, n_hidden);
        moments.add([data_pairs(&rbm, &bits)], 1.0 / rows.len() as f32);
        moments.flush();
        let only_data = list(&moments, 1.0);
        let mut phase = EstimatorSettings::Exact.estimator();
        moments.clear();
        let data = Rows::Bits(bits);
        let positive = with_update(&rbm, &data, step(0), |update| {
            assert!(phase.estimate(&update, &mut moments).unwrap());
            update.into_positive()
        });
        assert_eq!(total_weight(&positive), rows.len() as f64);
        moments.add(positive, 1.0 / rows.len() as f32);
        moments.flush();

        let rows: Vec<(usize, f64)> = rows.iter().map(|&v| (v as usize, 1.0)).collect();
        let at = parameters(&rbm);
        let slope: Vec<f64> = (0..at.len())
            .map(|k| {
                let moved = |by: f64| {
                    let mut x = at.clone();
                    x[k] += by;
                    Joint::of(n_visible, n_hidden, &x).log_likelihood(&rows)
                };
                (moved(1e-4) - moved(-1e-4)) / 2e-4
            })
            .collect();
        assert!(worst(&list(&moments, 1.0), &slope) < TOLERANCE);
        assert!(worst(&Joint::new(&rbm).gradient(&rows), &slope) < 1e-7, "the oracle agrees with itself");
        assert!(worst(&only_data, &slope) > TOLERANCE, "the control must be caught");
    }
}

#[test]
fn a_layer_too_large_to_enumerate_is_refused() {
    let rbm = random_rbm(21, 21, 0.1, 23);
    let data = Rows::Bits(BitRows::zeros(1, 21));
    let mut moments = Gradient::zeros(21, 21);
    let mut phase = EstimatorSettings::Exact.estimator();
    let refused = with_update(&rbm, &data, step(0), |update| phase.estimate(&update, &mut moments));
    let Err(refused) = refused else { panic!("enumerated 2²¹ states") };
    assert!(refused.to_string().contains("at most 20 units"), "{refused}");
}
