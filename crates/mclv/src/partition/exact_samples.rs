//! Draw from a model without a Markov chain, by enumeration of its smaller layer.

use super::exact::{ExactSettings, prepare, smaller_layer_hidden, sum_tasks};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::tour::StartTable;
use crate::{Error, Result};

/// The most samples at once: two gigabytes for their places alone.
const MOST_SAMPLES: usize = 1 << 27;

/// Draws independent visible states from `p(v)` itself. `sample::exact` is another name of this
/// function.
///
/// The weights of all states of the smaller layer are summed in groups of up to 8,192. For each
/// sample, the function draws a group, then a state in the group, then the other layer given that
/// state.
///
/// # Guarantee
/// Draws are exact and independent, with probabilities accurate to 2⁻³². The same seed gives the
/// same samples for any number of threads.
///
/// # Cost
/// The cost of [`exact`](super::exact) under the same time limit, then 8,192 free energies for each
/// group that was drawn. Memory: one number for each group.
///
/// ```
/// use mclv::{Rbm, partition::exact_samples, progress::Silent};
/// // Two modes that block Gibbs never leaves: all on and all off.
/// let rbm = Rbm::new(6, 1, &[40.0; 6], &[-20.0; 6], &[-120.0])?;
/// let v = exact_samples(&rbm, 100, 1, &Default::default(), &Silent)?;
/// let on = (0..100).filter(|&r| v.get(r, 0)).count();
/// assert!((20..80).contains(&on));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If `n_samples` is 0, if the time limit would be exceeded ([`Error::TooSlow`]), or if the
/// listener cancels.
pub fn exact_samples(
    rbm: &Rbm,
    n_samples: usize,
    seed: u64,
    settings: &ExactSettings,
    progress: &dyn Progress,
) -> Result<BitRows> {
    Ok(exact_pairs(rbm, n_samples, seed, settings, progress)?.0)
}

/// Does the work of [`exact_samples`], and returns the hidden states too: independent draws of
/// `(v, h)`.
pub(crate) fn exact_pairs(
    rbm: &Rbm,
    n_samples: usize,
    seed: u64,
    settings: &ExactSettings,
    progress: &dyn Progress,
) -> Result<(BitRows, BitRows)> {
    if !(1..=MOST_SAMPLES).contains(&n_samples) {
        let cure = "at least 1, and at most 134,217,728; draw more in several runs with other seeds";
        return Err(Error::InvalidSetting { name: "n-samples", value: n_samples.to_string(), cure });
    }
    let small = smaller_layer_hidden(rbm);
    let plan = prepare(&small, settings)?;
    let mut log_sums = Vec::new();
    sum_tasks(&plan, progress, |sums| log_sums.extend(sums.into_iter().map(|sum| sum.ln())))?;
    let groups = StartTable::from_log_weights(log_sums);
    let n_hidden = small.n_hidden();
    let of_hidden = small.mirror();
    let random = |sample: usize| stream(seed, Purpose::ExactSample, sample as u64);
    let mut drawn: Vec<(usize, usize)> =
        (0..n_samples).map(|sample| (groups.draw(random(sample).at(0)), sample)).collect();
    drawn.sort_unstable();
    let by_group: Vec<&[(usize, usize)]> = drawn.chunk_by(|x, y| x.0 == y.0).collect();
    let of_group = |group: usize| {
        let samples = by_group[group];
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let first = samples[0].0 as u64 * plan.states_per_task();
        let states = BitRows::from_words(n_hidden, (first..first + plan.states_per_task()).collect());
        let energies = of_hidden.free_energy(&Rows::Bits(states))?;
        let table = StartTable::from_log_weights(energies.into_iter().map(|f| -f).collect());
        Ok(samples.iter().map(|&(_, s)| (s, first + table.draw(random(s).at(1)) as u64)).collect())
    };
    let of_groups: Vec<Vec<(usize, u64)>> = team::try_blocks(by_group.len(), of_group)?;
    let mut states = vec![0; n_samples];
    of_groups.into_iter().flatten().for_each(|(sample, state)| states[sample] = state);
    let states = Rows::Bits(BitRows::from_words(n_hidden, states));
    let is_visible = rbm.n_hidden() > rbm.n_visible();
    let draws = |r: usize| random(r).at(2);
    let others =
        if is_visible { rbm.sample_h_from_v(&states, draws) } else { rbm.sample_v_from_h(&states, draws) }?;
    let Rows::Bits(states) = states else { unreachable!("states are bits") };
    Ok(if is_visible { (states, others) } else { (others, states) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{all_states, random_rbm};
    use crate::progress::Silent;

    /// χ² of 20,000 draws over the 32 states of 5 units (those expected less than 5 times pooled)
    /// stays below 71, beyond the 1 − 1e-4 quantile for 31 degrees of freedom, whichever layer is
    /// enumerated; against another model it does not.
    #[test]
    fn frequencies_are_those_of_the_model() {
        let n = 20_000;
        for (n_hidden, seed) in [(3, 400), (14, 401)] {
            let rbm = random_rbm(5, n_hidden, 1.0, seed);
            let v = exact_samples(&rbm, n, 1, &Default::default(), &Silent).unwrap();
            let mut counts = [0.0; 32];
            (0..n).for_each(|r| counts[v.row(r)[0] as usize] += 1.0);
            let chi2 = |rbm: &Rbm| {
                let f = rbm.free_energy(&Rows::Bits(all_states(5))).unwrap();
                let z: f64 = f.iter().map(|f| (-f).exp()).sum();
                let (mut sum, mut rare) = (0.0, (0.0, 0.0));
                for (f, count) in f.iter().zip(counts) {
                    let expected = n as f64 * (-f).exp() / z;
                    if expected < 5.0 {
                        rare = (rare.0 + expected, rare.1 + count);
                    } else {
                        sum += (count - expected).powi(2) / expected;
                    }
                }
                sum + if rare.0 > 1.0 { (rare.1 - rare.0).powi(2) / rare.0 } else { 0.0 }
            };
            assert!(chi2(&rbm) < 71.0, "{}", chi2(&rbm));
            let other = random_rbm(5, n_hidden, 1.0, seed + 10);
            assert!(chi2(&other) > 71.0, "the control must be caught: {}", chi2(&other));
        }
    }

    /// With 15 hidden units there are four groups: the mean energy of 4,000 samples is the model's
    /// within 4.5 standard errors (false alarm 7e-6).
    #[test]
    fn groups_of_states_are_drawn_by_their_weight() {
        let rbm = random_rbm(16, 15, 0.7, 402);
        let f = rbm.free_energy(&Rows::Bits(all_states(16))).unwrap();
        let z: f64 = f.iter().map(|f| (-f).exp()).sum();
        let moment = |k: i32| f.iter().map(|f| (-f).exp() / z * f.powi(k)).sum::<f64>();
        let (mean, variance) = (moment(1), moment(2) - moment(1).powi(2));
        let v = exact_samples(&rbm, 4000, 2, &Default::default(), &Silent).unwrap();
        let got = rbm.free_energy(&Rows::Bits(v)).unwrap().iter().sum::<f64>() / 4000.0;
        let z_score = (got - mean) / (variance / 4000.0).sqrt();
        assert!(z_score.abs() < 4.5, "z = {z_score}");
    }

    #[test]
    fn too_large_a_layer_and_no_samples_are_refused() {
        let rbm = random_rbm(80, 70, 0.1, 403);
        let error = exact_samples(&rbm, 10, 1, &Default::default(), &Silent).unwrap_err();
        assert!(matches!(error, Error::TooSlow { n_units: 70, .. }), "{error}");
        assert!(exact_samples(&random_rbm(3, 2, 1.0, 404), 0, 1, &Default::default(), &Silent).is_err());
    }
}
