//! The exact solution where it has a closed form, and the slips of the paper.

use super::cases;
use crate::StoppingSet;
use crate::bits::BitRows;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::tour::HiddenChain;

fn set_of(n_hidden: usize, states: Vec<u64>) -> StoppingSet {
    StoppingSet::new(&BitRows::from_words(n_hidden, states))
}

/// Without weights hidden states are independent draws: lengths are geometric.
#[test]
fn without_weights_lengths_are_geometric() {
    let (b, a) = ([0.3, -1.0, 0.0, 2.0], [0.5, -0.7, 1.1]);
    let rbm = Rbm::new(4, 3, &[0.0; 12], &b, &a).unwrap();
    let chain = HiddenChain::new(&rbm).unwrap();
    let log_z: f64 = b.iter().chain(&a).map(|&x| f64::from(x).exp().ln_1p()).sum();
    assert!((chain.log_z() - log_z).abs() < 1e-6);
    let set = set_of(3, vec![0b000, 0b101]);
    let tours = chain.tours(&set).unwrap();
    let p = tours.set_probability();
    let (mean, second) = tours.length_moments();
    assert!((mean * p - 1.0).abs() < 1e-13 && (second * p * p / (2.0 - p) - 1.0).abs() < 1e-13);
    assert!((tours.epsilon() - p).abs() < 1e-12 && (tours.tail_rate() - (1.0 - p)).abs() < 1e-12);
    assert!((chain.spectral_gap() - 1.0).abs() < 1e-12);
    for (k, survival) in tours.survival(20).into_iter().enumerate() {
        assert!((survival - (1.0 - p).powi(k as i32)).abs() < 1e-12);
    }
    // The corrected bound holds with equality here.
    assert!((tours.second_moment_bound() / second - 1.0).abs() < 1e-12);
}

#[test]
fn with_every_state_in_the_set_nothing_varies() {
    let rbm = random_rbm(5, 4, 2.0, 31);
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = StoppingSet::new(&BitRows::all_states(4));
    let tours = chain.tours(&set).unwrap();
    assert!((tours.length_moments().0 - 1.0).abs() < 1e-14 && tours.length_variance().abs() < 1e-13);
    assert_eq!((tours.tail_rate(), tours.truncation_bias(1)), (0.0, 0.0));
    assert!((tours.epsilon() - 1.0).abs() < 1e-12);
}

/// `p(ξ > k) ≤ (1 − ε)^k`, the tail falls like `ρ^k`, the truncation bias is the sum of what is
/// cut, the corrected bound of Theorem 3 holds, and from `k = 1` on lengths are a mixture of
/// geometric laws: differences of `p(ξ > k)` alternate in sign.
#[test]
fn rates_and_bounds_hold_on_all_models() {
    for case in cases().iter().skip(1) {
        let gap = case.chain.spectral_gap();
        assert!(gap > 0.0 && gap <= 1.0 + 1e-12, "{}: {gap}", case.name);
        for (name, set) in &case.sets {
            let tours = case.chain.tours(set).unwrap();
            let (mean, second) = tours.length_moments();
            let survival = tours.survival(400);
            let (epsilon, rate) = (tours.epsilon(), tours.tail_rate());
            for (k, p) in survival.iter().enumerate() {
                assert!(*p <= (1.0 - epsilon).powi(k as i32) * (1.0 + 1e-9), "{}, {name}", case.name);
            }
            let mut differences = survival[1..40].to_vec();
            for order in 1..=4 {
                differences = differences.windows(2).map(|pair| pair[0] - pair[1]).collect();
                assert!(differences.iter().all(|&d| d > -1e-13), "{}, {name}: {order}", case.name);
            }
            let ratio = survival[400] / survival[399];
            if survival[400] > 1e-200 {
                assert!(ratio <= rate * (1.0 + 1e-9), "{}, {name}: {ratio} {rate}", case.name);
            }
            assert!(rate < 1.0 && rate <= 1.0 - epsilon + 1e-12);
            let cut_at_7: f64 = mean - survival[..7].iter().sum::<f64>();
            assert!((tours.truncation_bias(7) - cut_at_7).abs() < 1e-9 * mean, "{}, {name}", case.name);
            assert!(second <= tours.second_moment_bound() * (1.0 + 1e-9), "{}, {name}", case.name);
            assert!(tours.own_start_in_one_step() <= 1.0);
        }
    }
}

/// Theorem 3 as printed bounds the variance of this machine's tours by 10,750.
#[test]
fn the_printed_variance_bound_is_false_and_the_corrected_one_holds() {
    let a = -12.0 - 9f32.ln();
    let rbm = Rbm::new(3, 1, &[8.0; 3], &[-4.0; 3], &[a]).unwrap();
    let chain = HiddenChain::new(&rbm).unwrap();
    let set = set_of(1, vec![1]);
    let tours = chain.tours(&set).unwrap();
    assert!((tours.set_probability() - 0.1).abs() < 1e-6);
    let variance = tours.length_variance();
    assert!((variance - 19_258.0).abs() < 1.0, "{variance}");
    assert!(variance > 10_750.0);
    let (_, second) = tours.length_moments();
    assert!(second <= tours.second_moment_bound() * (1.0 + 1e-9), "{second} {}", tours.second_moment_bound());
}

#[test]
fn large_models_and_foreign_sets_are_refused() {
    let error = HiddenChain::new(&random_rbm(3, 13, 0.1, 1)).unwrap_err().to_string();
    assert!(error.contains("n-hidden = 13"), "{error}");
    let error = HiddenChain::new(&random_rbm(21, 4, 0.1, 1)).unwrap_err().to_string();
    assert!(error.contains("n-visible = 21") && error.contains("24 units in both layers"), "{error}");
    assert!(HiddenChain::fits(&random_rbm(20, 4, 0.1, 1)) && !HiddenChain::fits(&random_rbm(25, 1, 0.1, 1)));
    let chain = HiddenChain::new(&random_rbm(3, 3, 0.1, 1)).unwrap();
    assert!(chain.tours(&set_of(4, vec![1])).is_err() && chain.tours(&StoppingSet::default()).is_err());
}
