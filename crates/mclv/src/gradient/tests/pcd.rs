use super::oracle::Joint;
use super::{LIMIT, Replicates, differences, negative, step};
use crate::bits::BitRows;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::gradient::State;
use crate::model::Rbm;
use crate::model::tests::random_rbm;
use crate::settings::EstimatorSettings;

const N_REPLICATES: u32 = 600;
/// Three blocks, the last one short.
const N_CHAINS: usize = 70;

/// Chains in these hidden states.
fn state(chains: Vec<u64>) -> State {
    State::default().with_words("chains", chains).with_words("before", Vec::new())
}

/// One update of chains that begin at `first(replicate)`.
fn replicates(rbm: &Rbm, visible: VisibleChain, first: impl Fn(&Joint, u32) -> Vec<u64>) -> Replicates {
    let joint = Joint::new(rbm);
    let exact = joint.moments();
    let data = Rows::Bits(BitRows::zeros(1, rbm.n_visible()));
    let mut phase = EstimatorSettings::Pcd { k: 1, n_chains: Some(N_CHAINS), visible }.estimator();
    let mut replicates = Replicates::default();
    for update in 0..N_REPLICATES {
        phase.restore(rbm, &state(first(&joint, update))).unwrap();
        replicates.push(differences(&negative(&mut *phase, rbm, &data, step(update)), &exact));
    }
    replicates
}

/// Compares the variance of `v` with its known value for independent chains at equilibrium.
fn variance_z(rbm: &Rbm, replicates: &Replicates) -> f64 {
    let exact = Joint::new(rbm).moments();
    let first = rbm.n_visible() * rbm.n_hidden();
    let variance = |k: usize| exact[k] * (1.0 - exact[k]) / N_CHAINS as f64;
    replicates.variance_z(first..first + rbm.n_visible(), variance)
}

#[test]
fn an_update_from_equilibrium_is_unbiased_and_from_elsewhere_it_is_not() {
    let rbm = random_rbm(6, 4, 1.2, 41);
    let sampled = VisibleChain::Sampled;
    let right = replicates(&rbm, sampled, |joint, update| joint.draw_hidden(N_CHAINS, update));
    right.assert_unbiased("pcd from equilibrium");
    replicates(&rbm, sampled, |_, _| vec![0; N_CHAINS]).assert_caught("pcd from zeros");
    replicates(&rbm, VisibleChain::MeanField, |joint, update| joint.draw_hidden(N_CHAINS, update))
        .assert_caught("mean-field pcd");

    let z = variance_z(&rbm, &right);
    assert!(z < LIMIT, "chains are independent: {z:.2}");
    // The control: all chains begin together.
    let together = |joint: &Joint, update| vec![joint.draw_hidden(1, update)[0]; N_CHAINS];
    let z = variance_z(&rbm, &replicates(&rbm, sampled, together));
    assert!(z > 2.0 * LIMIT, "the control must be caught: {z:.2}");
}

/// Chains begin at zeros, and the last of 100 updates is unbiased. Chains that began anew in each
/// update would stay biased.
#[test]
fn chains_go_on_from_update_to_update() {
    let (rbm, n_chains) = (random_rbm(6, 4, 1.2, 41), 32);
    let exact = Joint::new(&rbm).moments();
    let data = Rows::Bits(BitRows::zeros(1, rbm.n_visible()));
    let zeros = state(vec![0; n_chains]);
    let last_of = |n_updates: u32| {
        let mut phase =
            EstimatorSettings::Pcd { k: 2, n_chains: Some(n_chains), visible: VisibleChain::Sampled }
                .estimator();
        let mut replicates = Replicates::default();
        for replicate in 0..300 {
            phase.restore(&rbm, &zeros).unwrap();
            let first = replicate * n_updates;
            let last = (first..first + n_updates).map(|u| negative(&mut *phase, &rbm, &data, step(u)));
            replicates.push(differences(&last.last().unwrap(), &exact));
        }
        replicates
    };
    last_of(100).assert_unbiased("pcd after 100 updates");
    last_of(1).assert_caught("pcd after one update");
}
