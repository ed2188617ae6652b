//! Draw exactly from a small Ising ferromagnet, a distribution whose entropy is known.
//!
//! Spins ±1 are on a 4 × 4 torus, `p(s) ∝ exp(β Σ s_i s_j)` over the 32 pairs of neighbours. All
//! 65,536 states are enumerated, so draws are exact and independent. A spin up is a 1.

use super::{Dataset, Rows, Split};
use crate::bits::BitRows;
use crate::rng::{Purpose, stream};
use crate::{Error, Result};

const SIDE: usize = 4;
/// The number of values per row.
pub(super) const N_SITES: usize = SIDE * SIDE;
const N_BONDS: i32 = 2 * N_SITES as i32;

/// The critical inverse temperature of the infinite lattice, ln(1 + √2)/2.
pub(super) const CRITICAL_BETA: f64 = 0.440_686_793_509_771_5;
/// The number of rows of each part.
pub(super) const N_ROWS: usize = 10_000;

/// Parses the inverse temperature from the text after `ising:`.
pub(super) fn parse_beta(text: &str) -> Result<f64> {
    text.parse().ok().filter(|beta| (0.0..=10.0).contains(beta)).ok_or_else(|| Error::InvalidSetting {
        name: "ising",
        value: text.into(),
        cure: "choose an inverse temperature from 0 to 10, such as 0.44",
    })
}

/// Makes independent draws. Each part has its own stream.
pub(super) fn make(beta: f64, split: Split, seed: u64) -> Dataset {
    let law = Ising::new(beta);
    let states = law.draw(N_ROWS, seed, split);
    let mut bits = BitRows::zeros(N_ROWS, N_SITES);
    bits.words_mut().iter_mut().zip(&states).for_each(|(word, &state)| *word = state as u64);

    let name = if beta == CRITICAL_BETA { "ising".into() } else { format!("ising:{beta}") };
    let mut dataset = Dataset::from_rows(name, Rows::Bits(bits));
    dataset.provenance.source = format!("exact draws, 4 × 4 torus, beta = {beta}");
    dataset.provenance.split = split;
    dataset.provenance.seed = Some(seed);
    dataset.image_shape = Some((SIDE, SIDE));
    dataset.best_log_likelihood = Some(-law.entropy());
    dataset
}

/// Returns Σ s_i s_j over neighbours: equal pairs minus unequal pairs.
fn alignment(state: usize) -> i32 {
    const LAST_COLUMN: usize = 0x8888;
    let right = state << 1 & 0xffff & !0x1111 | (state & LAST_COLUMN) >> (SIDE - 1);
    let below = state << SIDE & 0xffff | state >> (N_SITES - SIDE);
    let n_unequal = (state ^ right).count_ones() + (state ^ below).count_ones();
    N_BONDS - 2 * n_unequal as i32
}

/// The distribution, tabulated.
struct Ising {
    beta: f64,
    log_z: f64,
    /// p(0) + … + p(state), rounded upwards at most to 1.
    cumulative: Vec<f64>,
}

impl Ising {
    fn new(beta: f64) -> Self {
        // The largest exponent is β·32; taken out, no sum overflows.
        let weight = |state| (beta * f64::from(alignment(state) - N_BONDS)).exp();
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (0..1 << N_SITES)
            .map(|state| {
                sum += weight(state);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|c| *c /= sum);
        Self { beta, log_z: beta * f64::from(N_BONDS) + sum.ln(), cumulative }
    }

    fn log_probability(&self, state: usize) -> f64 {
        self.beta * f64::from(alignment(state)) - self.log_z
    }

    /// Returns the entropy −Σ p ln p, in nats.
    fn entropy(&self) -> f64 {
        let mean: f64 =
            (0..1 << N_SITES).map(|s| self.log_probability(s).exp() * f64::from(alignment(s))).sum();
        self.log_z - self.beta * mean
    }

    /// Draws by inversion of the cumulative distribution. A probability is off by at most the
    /// rounding of that sum and the 2⁻⁵² of a uniform number, about 1e-13.
    fn draw(&self, n: usize, seed: u64, split: Split) -> Vec<usize> {
        let mut rng = stream(seed, Purpose::Synthesis, split as u64).reader();
        (0..n)
            .map(|_| {
                let u = rng.uniform();
                self.cumulative.partition_point(|&c| c < u).min((1 << N_SITES) - 1)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Neighbours found by coordinates.
    fn naive_alignment(state: usize) -> i32 {
        let spin = |y: usize, x: usize| if state >> (y % 4 * 4 + x % 4) & 1 == 1 { 1 } else { -1 };
        (0..16).map(|i| (i / 4, i % 4)).map(|(y, x)| spin(y, x) * (spin(y, x + 1) + spin(y + 1, x))).sum()
    }

    #[test]
    fn alignments_are_those_of_a_torus() {
        assert!((0..1 << 16).all(|state| alignment(state) == naive_alignment(state)));
    }

    #[test]
    fn entropy_is_minus_the_sum_of_p_log_p() {
        for beta in [0.0, 0.2, CRITICAL_BETA, 10.0] {
            let law = Ising::new(beta);
            let weights: Vec<f64> =
                (0..1 << 16).map(|s| (beta * f64::from(naive_alignment(s))).exp()).collect();
            let z: f64 = weights.iter().sum();
            let naive: f64 = weights.iter().map(|w| w / z).filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum();
            assert!((law.entropy() - naive).abs() < 1e-9, "beta {beta}: {} and {naive}", law.entropy());
            assert!((law.log_z - z.ln()).abs() < 1e-9);
        }
        // Without coupling all states are alike; in the cold two remain.
        assert!((Ising::new(0.0).entropy() - 65_536f64.ln()).abs() < 1e-9);
        assert!((Ising::new(10.0).entropy() - 2f64.ln()).abs() < 1e-6);
    }

    /// χ² of draws against the law, over classes of alignment and number of spins up and whether
    /// site 5 is up, and its 1 − 1e-4 quantile (Wilson–Hilferty).
    fn chi2(law: &Ising, states: &[usize]) -> (f64, f64) {
        let class = |s: usize| (alignment(s), s.count_ones(), s >> 5 & 1);
        let mut classes = BTreeMap::<_, (f64, f64)>::new();
        (0..1 << 16).for_each(|s| classes.entry(class(s)).or_default().0 += law.log_probability(s).exp());
        states.iter().for_each(|&s| classes.get_mut(&class(s)).unwrap().1 += 1.0);
        let n = states.len() as f64;
        // Classes expected fewer than 20 times are one class.
        let (mut chi2, mut n_classes, mut rest) = (0.0, 1.0, (0.0, 0.0));
        for (p, count) in classes.into_values() {
            if n * p < 20.0 {
                rest = (rest.0 + p, rest.1 + count);
            } else {
                chi2 += (count - n * p).powi(2) / (n * p);
                n_classes += 1.0;
            }
        }
        assert!(n * rest.0 > 20.0);
        chi2 += (rest.1 - n * rest.0).powi(2) / (n * rest.0);
        let (df, z): (f64, f64) = (n_classes - 1.0, 3.719);
        (chi2, df * (1.0 - 2.0 / (9.0 * df) + z * (2.0 / (9.0 * df)).sqrt()).powi(3))
    }

    #[test]
    fn draws_follow_the_law() {
        let law = Ising::new(CRITICAL_BETA);
        let (chi2, limit) = chi2(&law, &law.draw(200_000, 7, Split::All));
        assert!(chi2 < limit, "χ² = {chi2}, limit {limit}");
    }

    #[test]
    fn the_check_of_draws_notices_another_law() {
        let law = Ising::new(CRITICAL_BETA);
        // 2 % warmer; and a site that copies its neighbour.
        let (warm, limit) = chi2(&law, &Ising::new(0.98 * CRITICAL_BETA).draw(200_000, 7, Split::All));
        assert!(warm > limit, "χ² = {warm}, limit {limit}");
        let stuck: Vec<_> =
            law.draw(200_000, 7, Split::All).iter().map(|s| s & !(1 << 5) | (s >> 4 & 1) << 5).collect();
        assert!(chi2(&law, &stuck).0 > limit);
    }

    #[test]
    fn parts_are_drawn_apart() {
        let parts = Split::EACH.map(|split| make(CRITICAL_BETA, split, 1));
        for (i, a) in parts.iter().enumerate() {
            assert_eq!((a.n_rows(), a.n_columns()), (10_000, 16));
            assert!(parts[..i].iter().all(|b| b.rows != a.rows));
        }
        assert_eq!(parts[0], make(CRITICAL_BETA, Split::Train, 1));
        // Other draws change results: mention it in the changelog.
        assert_eq!(&parts[0].provenance.sha256[..16], "4af6d9e2705087fd");
    }

    #[test]
    fn temperatures_out_of_range_are_refused() {
        assert_eq!(parse_beta("0.3").unwrap(), 0.3);
        for text in ["-1", "11", "NaN", "hot", ""] {
            assert!(matches!(parse_beta(text), Err(Error::InvalidSetting { .. })), "{text}");
        }
    }
}
