//! Record a few numbers along chains, from which one can tell whether the chains have forgotten
//! their starts.

use super::Chains;
use crate::bits::{ones, words_for};
use crate::mixing::Mixing;
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Scratch, States, quick_log_weights};

/// The number of directions of the visible layer along which chains are watched.
const MAX_DIRECTIONS: usize = 3;

/// Chains with fewer records than this are not judged: the worst of several numbers would often be
/// bad by chance.
const MIN_RECORDS: usize = 32;

/// Power iterations for each direction. The directions need not be exact, because any direction may
/// be watched.
const ITERATIONS: usize = 20;

/// The numbers recorded for a chain: its free energy, and its position along the leading directions
/// of the weights.
///
/// The energy alone cannot tell two equal modes apart. The directions are the left singular vectors
/// of the weights with the largest values: the modes of a model differ along them. They are known
/// before a chain moves, so watching them causes no false alarm.
pub(crate) struct Probe<'a> {
    rbm: &'a Rbm,
    directions: Vec<Vec<f64>>,
}

/// The numbers that a [`Probe`] has recorded: by time, then by number, then by chain.
pub(crate) type Records = Vec<f64>;

impl<'a> Probe<'a> {
    pub(crate) fn new(rbm: &'a Rbm) -> Self {
        let n = MAX_DIRECTIONS.min(rbm.n_visible()).min(rbm.n_hidden());
        let weights: Vec<f64> = rbm.weights().into_iter().map(f64::from).collect();
        let mut directions: Vec<Vec<f64>> = Vec::new();
        for _ in 0..n {
            directions.extend(next_direction(&weights, rbm.n_hidden(), &directions));
        }
        Self { rbm, directions }
    }

    /// The count of numbers that are recorded at a time for each chain.
    pub(crate) fn n_numbers(&self) -> usize {
        1 + self.directions.len()
    }

    /// Records the numbers of all chains at their present visible states.
    pub(crate) fn record(&self, chains: &Chains, scratch: &mut Scratch, records: &mut Records) {
        self.record_states(chains.v(), chains.len(), scratch, records);
    }

    /// Records the numbers of `n` visible states.
    pub(crate) fn record_states(
        &self,
        v: States<'_>,
        n: usize,
        scratch: &mut Scratch,
        records: &mut Records,
    ) {
        let rbm = self.rbm;
        let from = records.len();
        records.resize(from + n, 0.0);
        quick_log_weights(Isa::best(), rbm.up(), rbm.visible_bias(), v, scratch, &mut records[from..]);
        for direction in &self.directions {
            records.extend((0..n).map(|chain| match v {
                States::Bits(words) => {
                    let n_words = words_for(rbm.n_visible());
                    ones(&words[chain * n_words..][..n_words]).map(|i| direction[i]).sum::<f64>()
                }
                States::Reals(values) => {
                    let v = &values[chain * rbm.n_visible()..][..rbm.n_visible()];
                    v.iter().zip(direction).map(|(&v, d)| f64::from(v) * d).sum()
                }
                States::Sparse(_) => unreachable!("chains hold bits or means"),
            }));
        }
    }

    /// Judges chains by the worst of the numbers. `records` holds the records of one or more blocks
    /// of chains, each with its number of chains. `group_of` maps a chain, counted through all
    /// blocks, to the group of chains that share its distribution. Times are in steps; there are
    /// `stride` steps between two records. Returns `None` if a chain has fewer than 32 records.
    pub(crate) fn judge(
        &self,
        records: &[(&Records, usize)],
        group_of: impl Fn(usize) -> usize,
        stride: u32,
    ) -> Option<Mixing> {
        if records.iter().any(|(records, n_chains)| records.len() < MIN_RECORDS * self.n_numbers() * n_chains)
        {
            return None;
        }
        let of_number = |number: usize| {
            let mut groups: Vec<Vec<Vec<f64>>> = Vec::new();
            let mut chain = 0;
            for &(records, n_chains) in records {
                for k in 0..n_chains {
                    let at = number * n_chains + k;
                    let values = records.iter().skip(at).step_by(self.n_numbers() * n_chains);
                    let group = group_of(chain);
                    groups.resize_with(groups.len().max(group + 1), Vec::new);
                    groups[group].push(values.copied().collect());
                    chain += 1;
                }
            }
            groups.retain(|group| !group.is_empty());
            Mixing::of_groups(&groups)
        };
        let mixing = (0..self.n_numbers()).map(of_number).reduce(|a, b| Some(a?.worse(b?)))??;
        let autocorrelation_time = mixing.autocorrelation_time * f64::from(stride);
        Some(Mixing { autocorrelation_time, ..mixing })
    }
}

/// Returns the left singular vector of the weights with the largest value among those orthogonal to
/// the vectors `before`. Returns `None` if the weights have no more.
fn next_direction(weights: &[f64], n_hidden: usize, before: &[Vec<f64>]) -> Option<Vec<f64>> {
    let n_visible = weights.len() / n_hidden;
    // No singular vector of a model can be expected to be orthogonal to this.
    let mut u: Vec<f64> = (0..n_visible).map(|i| 1.0 + 0.5 * (1.3 * i as f64).sin()).collect();
    for _ in 0..ITERATIONS {
        for other in before {
            let overlap: f64 = u.iter().zip(other).map(|(x, y)| x * y).sum();
            u.iter_mut().zip(other).for_each(|(x, y)| *x -= overlap * y);
        }
        let mut up = vec![0.0; n_hidden];
        for (row, x) in weights.chunks_exact(n_hidden).zip(&u) {
            up.iter_mut().zip(row).for_each(|(sum, w)| *sum += w * x);
        }
        u = weights.chunks_exact(n_hidden).map(|row| row.iter().zip(&up).map(|(w, y)| w * y).sum()).collect();
        let norm = u.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm.is_nan() || norm <= 1e-12 {
            return None;
        }
        u.iter_mut().for_each(|x| *x /= norm);
    }
    Some(u)
}

/// Puts chains into random states, drawn from streams of `purpose`. Every other chain gets a random
/// hidden state, from which a visible state is drawn; the rest get a random visible state.
/// Afterwards all visible states are set.
pub(crate) fn scatter(chains: &mut Chains, rbm: &Rbm, seed: u64, purpose: Purpose, scratch: &mut Scratch) {
    let random = |chain: usize, n_bits: usize| {
        let mut rng = stream(seed, purpose, 1 << 40 | chain as u64).reader();
        let mut words = vec![0u64; words_for(n_bits)];
        (0..n_bits).for_each(|i| words[i / 64] |= u64::from(rng.next_u32() & 1) << (i % 64));
        words
    };
    let n = chains.len();
    (0..n).for_each(|chain| chains.set_h_of(chain, &random(chain, rbm.n_hidden())));
    chains.sample_visible(rbm, scratch, None);
    let n_words = words_for(rbm.n_visible());
    let change = |v: &mut [u64]| {
        for (chain, v) in v.chunks_exact_mut(n_words).enumerate().filter(|(chain, _)| chain % 2 == 1) {
            v.copy_from_slice(&random(chain, rbm.n_visible()));
        }
    };
    chains.change_v(change, |_| unreachable!("visible states were sampled"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Clock, VisibleChain};
    use crate::model::tests::random_rbm;

    #[test]
    fn directions_are_orthogonal_and_carry_the_largest_weights() {
        let rbm = random_rbm(30, 12, 1.0, 1);
        let probe = Probe::new(&rbm);
        assert_eq!(probe.n_numbers(), 4);
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let image = |u: &[f64]| -> f64 {
            let w = rbm.weights();
            (0..12).map(|j| (0..30).map(|i| f64::from(w[i * 12 + j]) * u[i]).sum::<f64>().powi(2)).sum()
        };
        for (k, u) in probe.directions.iter().enumerate() {
            assert!((dot(u, u) - 1.0).abs() < 1e-9);
            assert!(probe.directions[..k].iter().all(|other| dot(u, other).abs() < 1e-2));
        }
        let unit = |i: usize| (0..30).map(|k| f64::from(u8::from(k == i))).collect::<Vec<f64>>();
        assert!((0..30).all(|i| image(&unit(i)) < image(&probe.directions[0])));
        let flat = Rbm::new(3, 2, &[0.0; 6], &[0.0; 3], &[0.0; 2]).unwrap();
        assert_eq!(Probe::new(&flat).n_numbers(), 1, "without weights there is no direction");
    }

    /// Two equal modes, far from each other, have the same energies, so only a direction tells them
    /// apart.
    #[test]
    fn two_equal_modes_are_told_apart() {
        let (n, w) = (12, 1.0);
        let rbm = Rbm::new(n, n, &vec![w; n * n], &vec![-w * 6.0; n], &vec![-w * 6.0; n]).unwrap();
        let clocks = (0..16).map(|c| Clock::new(stream(3, Purpose::SelfTest, c), 2)).collect();
        let mut chains = Chains::new(&rbm, VisibleChain::Sampled, vec![0; 16], clocks);
        let (probe, mut scratch) = (Probe::new(&rbm), Scratch::default());
        scatter(&mut chains, &rbm, 3, Purpose::SelfTest, &mut scratch);
        let mut records = Records::new();
        for _ in 0..200 {
            chains.draw_hidden(&rbm, &mut scratch, None);
            chains.sample_visible(&rbm, &mut scratch, None);
            probe.record(&chains, &mut scratch, &mut records);
        }
        let judged = probe.judge(&[(&records, 16)], |_| 0, 1).unwrap();
        assert!(judged.r_hat > 1.5, "{judged:?}");
        // The control: the energy alone, but for its rounding, sees nothing.
        let energy = |c: usize| records.iter().skip(c).step_by(16 * probe.n_numbers());
        let energies: Vec<Vec<f64>> =
            (0..16).map(|c| energy(c).map(|x| (x * 100.0).round()).collect()).collect();
        assert!(Mixing::new(&energies).unwrap().r_hat < 1.05);
    }
}
