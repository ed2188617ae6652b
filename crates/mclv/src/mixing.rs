//! Judge how well chains mix, from a number recorded along each chain, such as its free energy.
//!
//! Chains that agree may still all have missed a mode. These numbers can show that chains do *not*
//! mix, never that they do.

use serde::{Deserialize, Serialize};

/// How well chains mix, from one number recorded along several chains.
///
/// ```
/// use mclv::mixing::Mixing;
/// use mclv::rng::{Purpose, stream};
/// let mut rng = stream(1, Purpose::SelfTest, 0).reader();
/// let mut chain = || -> Vec<f64> { (0..1000).map(|_| rng.normal()).collect() };
/// let mixing = Mixing::new(&[chain(), chain()]).expect("enough draws");
/// assert!(mixing.r_hat < 1.01 && mixing.autocorrelation_time < 1.5);
/// // Two chains in two places:
/// let apart = Mixing::new(&[chain(), chain().iter().map(|x| x + 5.0).collect()]).expect("enough draws");
/// assert!(apart.r_hat > 1.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mixing {
    /// The rank-normalised split R-hat (Vehtari et al. 2021), the larger of bulk and folded. It is
    /// about 1 if all halves of all chains look alike.
    pub r_hat: f64,
    /// The autocorrelation time `τ = 1 + 2 Σ ρ_k`, in draws, by Geyer's initial monotone sequence.
    /// Differences between chains count as correlation that never ends.
    pub autocorrelation_time: f64,
    /// The number of draws in all chains, divided by `τ`.
    pub effective_sample_size: f64,
}

/// The shortest chain, in draws, that is judged.
const MIN_DRAWS: usize = 8;

impl Mixing {
    /// Judges one or more chains of equal length. Returns `None` if they are shorter than 8 draws
    /// or not finite.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn new(chains: &[Vec<f64>]) -> Option<Self> {
        Self::of_groups(&[chains.to_vec()])
    }

    /// Judges groups of chains. Chains of one group have the same distribution; chains of different
    /// groups need not. Only chains of the same group are compared with each other. Returns `None`
    /// as [`new`](Self::new) does.
    ///
    /// ```
    /// use mclv::mixing::Mixing;
    /// use mclv::rng::{Purpose, stream};
    /// let mut rng = stream(1, Purpose::SelfTest, 0).reader();
    /// let mut chain = |at: f64, width: f64| (0..500).map(|_| at + width * rng.normal()).collect::<Vec<_>>();
    /// // Two distributions, far from each other: two chains of each agree.
    /// let groups = [vec![chain(0.0, 1.0), chain(0.0, 1.0)], vec![chain(9.0, 3.0), chain(9.0, 3.0)]];
    /// assert!(Mixing::of_groups(&groups).expect("enough draws").r_hat < 1.02);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn of_groups(groups: &[Vec<Vec<f64>>]) -> Option<Self> {
        let chains = || groups.iter().flatten();
        let n = chains().next()?.len();
        assert!(chains().all(|chain| chain.len() == n), "chains of one length");
        if n < MIN_DRAWS || !chains().flatten().all(|x| x.is_finite()) {
            return None;
        }
        let n_draws = (chains().count() * n) as f64;
        if groups.iter().all(|group| group.iter().flatten().all(|&x| x == group[0][0])) {
            // Nothing varies, so there is no correlation; rounding would suggest otherwise.
            return Some(Self { r_hat: 1.0, autocorrelation_time: 1.0, effective_sample_size: n_draws });
        }
        let ranks: Vec<_> = groups.iter().map(|group| rank_normalised(group)).collect();
        let folded: Vec<_> = groups.iter().map(|group| rank_normalised(&folded(group))).collect();
        let autocorrelation_time = autocorrelation_time(groups);
        Some(Self {
            r_hat: split_r_hat(&ranks).max(split_r_hat(&folded)).min(MAX_R_HAT),
            autocorrelation_time,
            effective_sample_size: n_draws / autocorrelation_time,
        })
    }

    /// Returns the worse of two judgements of the same chains, from different numbers recorded
    /// along them.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            r_hat: self.r_hat.max(other.r_hat),
            autocorrelation_time: self.autocorrelation_time.max(other.autocorrelation_time),
            effective_sample_size: self.effective_sample_size.min(other.effective_sample_size),
        }
    }
}

/// The largest R-hat that is reported. Chains that never move would have an infinite one.
const MAX_R_HAT: f64 = 100.0;

/// Above this R-hat, chains are said to differ.
const HIGH_R_HAT: f64 = 1.05;

/// The number of autocorrelation times that a burn-in should last. If correlations fall
/// exponentially, e⁻²⁰ of a start is left after it.
const ENOUGH_TIMES: f64 = 10.0;

/// Chains differ if R-hat is high and the burn-in lasts fewer autocorrelation times than this.
/// After a longer burn-in, R-hat is high only because the chains are slow.
const FEW_TIMES: f64 = 3.0;

/// A reason why samples may still depend on the starts of their chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    /// Chains differ from each other, or from their own earlier states.
    ChainsDiffer {
        /// R-hat.
        r_hat: f64,
    },
    /// The burn-in lasts too few autocorrelation times.
    ShortBurnIn {
        /// The autocorrelation time, in steps.
        autocorrelation_time: f64,
        /// The number of steps that the burn-in should have at least.
        enough: u64,
    },
    /// Some samples by parallel tempering have not been on the lowest rung of their ladder.
    NotRenewed {
        /// The share of these samples.
        share: f64,
    },
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ChainsDiffer { r_hat } => {
                write!(f, "chains differ from each other (R-hat {r_hat:.2}): they remember where they began")
            }
            Self::ShortBurnIn { autocorrelation_time, enough } => write!(
                f,
                "the burn-in is short for chains that take {autocorrelation_time:.0} steps to forget where they were: it \
                 should be {enough} steps or more"
            ),
            Self::NotRenewed { share } => write!(
                f,
                "{:.0} % of the samples have not come from the lowest rung of their ladder, where states are drawn afresh: \
                 they may remember where the ladders began",
                (100.0 * share).max(1.0)
            ),
        }
    }
}

impl Mixing {
    /// Returns the reason to doubt samples taken after `burn_in` steps, if there is one. Times of
    /// `self` must be in steps.
    ///
    /// ```
    /// use mclv::mixing::{Doubt, Mixing};
    /// let mixing = Mixing { r_hat: 1.0, autocorrelation_time: 30.0, effective_sample_size: 100.0 };
    /// assert_eq!(mixing.doubt(1000), None);
    /// let short = Some(Doubt::ShortBurnIn { autocorrelation_time: 30.0, enough: 300 });
    /// assert_eq!(mixing.doubt(100), short);
    /// ```
    pub fn doubt(&self, burn_in: u32) -> Option<Doubt> {
        let enough = ENOUGH_TIMES * self.autocorrelation_time;
        if f64::from(burn_in) >= enough {
            // Differences between chains are part of the autocorrelation time: R-hat can be high
            // here only because the recorded part of the chains is short.
            return None;
        }
        if self.r_hat > HIGH_R_HAT && f64::from(burn_in) < FEW_TIMES * self.autocorrelation_time {
            return Some(Doubt::ChainsDiffer { r_hat: self.r_hat });
        }
        let enough = enough.ceil() as u64;
        Some(Doubt::ShortBurnIn { autocorrelation_time: self.autocorrelation_time, enough })
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (x.len() - 1) as f64
}

/// Returns the mean variance within chains, and the variance over all of a group, estimated from it
/// and the means of the chains.
fn variances(groups: &[Vec<&[f64]>]) -> (f64, f64) {
    let chains: Vec<&[f64]> = groups.iter().flatten().copied().collect();
    let n = chains[0].len() as f64;
    let within = chains.iter().map(|chain| variance(chain)).sum::<f64>() / chains.len() as f64;
    let (mut squares, mut n_differences) = (0.0, 0);
    for group in groups.iter().filter(|group| group.len() > 1) {
        let means: Vec<f64> = group.iter().map(|chain| mean(chain)).collect();
        squares += variance(&means) * (means.len() - 1) as f64;
        n_differences += means.len() - 1;
    }
    let between = if n_differences > 0 { squares / n_differences as f64 } else { 0.0 };
    (within, (n - 1.0) / n * within + between)
}

/// Returns the distances from the median of all chains.
fn folded(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut all = chains.concat();
    let middle = all.len() / 2;
    let median = *all.select_nth_unstable_by(middle, f64::total_cmp).1;
    chains.iter().map(|chain| chain.iter().map(|x| (x - median).abs()).collect()).collect()
}

fn split_r_hat(groups: &[Vec<Vec<f64>>]) -> f64 {
    let half = groups[0][0].len() / 2;
    // Of an odd number of draws, the middle one is left out.
    let halves_of = |chain: &'_ Vec<f64>| [0..half, chain.len() - half..chain.len()];
    let halves: Vec<Vec<&[f64]>> = groups
        .iter()
        .map(|group| group.iter().flat_map(|chain| halves_of(chain).map(|half| &chain[half])).collect())
        .collect();
    match variances(&halves) {
        // Folded values may all be alike.
        (0.0, 0.0) => 1.0,
        (within, total) => (total / within).sqrt(),
    }
}

/// Replaces draws by the normal quantiles of their ranks among all draws. Ties share a rank.
fn rank_normalised(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = chains[0].len();
    let value = |k: usize| chains[k / n][k % n];
    let mut order: Vec<usize> = (0..chains.len() * n).collect();
    order.sort_unstable_by(|&i, &j| value(i).total_cmp(&value(j)));
    let mut out = vec![vec![0.0; n]; chains.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&i, &j| value(i) == value(j)) {
        let rank = first as f64 + 0.5 * (tied.len() + 1) as f64;
        let z = normal_quantile((rank - 0.375) / (order.len() as f64 + 0.25));
        tied.iter().for_each(|&k| out[k / n][k % n] = z);
        first += tied.len();
    }
    out
}

fn autocorrelation_time(groups: &[Vec<Vec<f64>>]) -> f64 {
    let slices: Vec<Vec<&[f64]>> =
        groups.iter().map(|group| group.iter().map(Vec::as_slice).collect()).collect();
    let (within, total) = variances(&slices);
    let chains: Vec<&Vec<f64>> = groups.iter().flatten().collect();
    let n = chains[0].len();
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let correlation = |lag: usize| {
        let covariance = |(chain, mean): (&&Vec<f64>, &f64)| {
            chain.iter().zip(&chain[lag..]).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / n as f64
        };
        let covariance = chains.iter().zip(&means).map(covariance).sum::<f64>() / chains.len() as f64;
        let within = if lag == 0 { covariance } else { within * (n - 1) as f64 / n as f64 };
        1.0 - (within - covariance) / total
    };
    // For a reversible chain, sums of neighbours are positive and fall. Any other value is noise.
    let (mut sum, mut last) = (0.0, f64::INFINITY);
    for lag in (0..n - 1).step_by(2) {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
    }
    // Chains that alternate are better than independent draws, but no more than this is believed
    // (as in Stan).
    let n_draws = (chains.len() * n) as f64;
    (2.0 * sum - 1.0).clamp(1.0 / n_draws.log10().max(1.0), n_draws)
}

/// `Φ⁻¹(p)` by Acklam's rational approximation, relative error below 1.2e-9.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 5] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    if p < 0.02425 {
        tail(p)
    } else if p > 1.0 - 0.02425 {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        q * horner(&A, q * q) / horner(&B, q * q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// A stationary AR(1) chain, whose `τ` is `(1 + φ)/(1 − φ)`.
    fn ar1(phi: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = stream(seed, Purpose::SelfTest, 7).reader();
        let mut x = rng.normal();
        let noise = (1.0 - phi * phi).sqrt();
        (0..n)
            .map(|_| {
                x = phi * x + noise * rng.normal();
                x
            })
            .collect()
    }

    /// With 4 × 20,000 draws the estimate of τ has a relative error of about `√(4τ·7/80,000)`
    /// (window 7τ/2 both ways; Sokal 1997): within 4.5 of them (false alarm 7e-6 each), and 3 % for
    /// the cut-off.
    #[test]
    fn the_autocorrelation_time_of_ar1_is_known() {
        for phi in [-0.5, 0.0, 0.5, 0.9, 0.98] {
            let chains: Vec<Vec<f64>> = (0..4).map(|seed| ar1(phi, 20_000, 500 + seed)).collect();
            let exact = (1.0 + phi) / (1.0 - phi);
            let mixing = Mixing::new(&chains).unwrap();
            let tolerance = 0.03 + 4.5 * (28.0 * exact.max(1.0) / 80_000.0).sqrt();
            let tau = mixing.autocorrelation_time;
            assert!((tau / exact - 1.0).abs() < tolerance, "φ = {phi}: {tau} against {exact}");
            assert!((mixing.effective_sample_size * tau - 80_000.0).abs() < 1e-6);
            assert!(mixing.r_hat < 1.02, "{phi}: {}", mixing.r_hat);
        }
    }

    #[test]
    fn chains_in_different_places_or_of_different_widths_or_on_the_move_are_seen() {
        let chains: Vec<Vec<f64>> = (0..4).map(|seed| ar1(0.5, 2000, 510 + seed)).collect();
        let changed = |f: &dyn Fn(usize, usize, f64) -> f64| -> Mixing {
            let change =
                |(c, chain): (usize, &Vec<f64>)| chain.iter().enumerate().map(|(t, &x)| f(c, t, x)).collect();
            Mixing::new(&chains.iter().enumerate().map(change).collect::<Vec<Vec<f64>>>()).unwrap()
        };
        assert!(changed(&|_, _, x| x).r_hat < 1.01);
        assert!(changed(&|_, _, x| 1e6 + 1e-3 * x).r_hat < 1.01, "scale does not matter");
        let apart = changed(&|c, _, x| x + if c == 0 { 3.0 } else { 0.0 });
        assert!(apart.r_hat > 1.2 && apart.autocorrelation_time > 100.0, "{apart:?}");
        assert!(changed(&|c, _, x| if c == 0 { 5.0 * x } else { x }).r_hat > 1.05, "folded ranks see widths");
        assert!(changed(&|_, t, x| x + t as f64 / 1000.0).r_hat > 1.05, "halves see a drift");
    }

    /// Chains of two distributions, as clamped chains have them: only chains of the same
    /// distribution are compared.
    #[test]
    fn groups_of_chains_are_judged_by_themselves() {
        let at = |place: f64, width: f64, seed: u64| -> Vec<f64> {
            ar1(0.5, 500, 520 + seed).iter().map(|x| place + width * x).collect()
        };
        let alike = [vec![at(0.0, 1.0, 0), at(0.0, 1.0, 1)], vec![at(50.0, 7.0, 2), at(50.0, 7.0, 3)]];
        let mixing = Mixing::of_groups(&alike).unwrap();
        assert!(mixing.r_hat < 1.03 && mixing.autocorrelation_time < 6.0, "{mixing:?}");
        // All in one group, the same chains differ.
        assert!(Mixing::new(&alike.concat()).unwrap().r_hat > 1.5);
        // One of the four is elsewhere.
        let apart = [vec![at(0.0, 1.0, 0), at(5.0, 1.0, 1)], alike[1].clone()];
        assert!(Mixing::of_groups(&apart).unwrap().r_hat > 1.1);
        // A group whose chains never move does not hide the others.
        let still = [vec![vec![3.0; 500]; 2], apart[0].clone()];
        assert!(Mixing::of_groups(&still).unwrap().r_hat > 1.1);
        assert_eq!(Mixing::of_groups(&[vec![vec![3.0; 20]], vec![vec![4.0; 20]]]).unwrap().r_hat, 1.0);
    }

    #[test]
    fn what_never_moves_and_what_is_too_short_are_told_apart() {
        let stuck = Mixing::new(&[vec![1.0; 20], vec![2.0; 20]]).unwrap();
        assert!(stuck.r_hat == MAX_R_HAT && stuck.effective_sample_size < 4.0, "{stuck:?}");
        let constant = Mixing::new(&[vec![100.69; 20], vec![100.69; 20]]).unwrap();
        assert_eq!((constant.r_hat, constant.autocorrelation_time), (1.0, 1.0));
        assert_eq!(Mixing::new(&[vec![1.0; 7]]), None);
        assert_eq!(Mixing::new(&[vec![f64::NAN; 20]]), None);
        assert_eq!(Mixing::new(&[]), None);
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306), (0.999, 3.090_232_306)] {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }
}
