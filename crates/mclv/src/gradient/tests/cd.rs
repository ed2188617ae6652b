use super::oracle::Joint;
use super::{Replicates, differences, negative, step};
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::settings::EstimatorSettings;

const N_REPLICATES: u32 = 400;

fn replicates(rbm: &Rbm, k: usize, visible: VisibleChain) -> Replicates {
    let exact = Joint::new(rbm).moments();
    // Forty rows, two blocks: two states that the model does not favour.
    let rows = BitRows::from_words(
        rbm.n_visible(),
        (0..40).map(|r| if r % 2 == 0 { 0 } else { 0b10_1011 }).collect(),
    );
    let mut phase = EstimatorSettings::Cd { k, visible }.estimator();
    let mut replicates = Replicates::default();
    for update in 0..N_REPLICATES {
        let estimate = negative(&mut *phase, rbm, &Rows::Bits(rows.clone()), step(update));
        replicates.push(differences(&estimate, &exact));
    }
    replicates
}

#[test]
fn its_bias_vanishes_as_the_chain_grows() {
    let rbm = random_rbm(6, 4, 1.8, 33);
    let short: Vec<Replicates> = [1, 4, 16].map(|k| replicates(&rbm, k, VisibleChain::Sampled)).into();
    let bias: Vec<f64> = short.iter().map(Replicates::max_bias).collect();
    eprintln!("cd-1, 4, 16: bias up to {bias:.4?}");
    assert!(bias[0] > 3.0 * bias[1] && bias[1] > 3.0 * bias[2], "{bias:?}");
    short[0].assert_caught("cd-1");
    replicates(&rbm, 200, VisibleChain::Sampled).assert_unbiased("cd-200");
}

#[test]
fn a_mean_field_chain_is_not_the_models_however_long() {
    let rbm = random_rbm(6, 4, 1.8, 33);
    replicates(&rbm, 200, VisibleChain::MeanField).assert_caught("mean-field cd-200");
}
