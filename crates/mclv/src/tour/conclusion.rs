//! The conclusion from tours and independent chains: the model is concentrated on the states of its rows, its chain mixes,
//! or its chain is stuck.

use super::{StartedFrom, StoppingSet, TourTheory, Tours, Witnesses};
use crate::Result;
use crate::chain::VisibleChain;
use crate::data::Rows;
use crate::model::Rbm;
use serde::{Deserialize, Serialize};

/// R-hat of independent chains above which the chain is called stuck.
const STUCK_R_HAT: f64 = 1.2;
/// If tours predict at least this number of visits to the set for a chain in equilibrium, every
/// chain should make one.
const MANY_VISITS: f64 = 20.0;
/// The model is concentrated on the rows if at least this share of its probability lies on their hidden
/// states …
const CONCENTRATED: f64 = 0.9;
/// … and these are at most this share of all hidden states. A set of all states holds all
/// probability.
const SMALL_SET: f64 = 0.5;

/// The verdict on the chain of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TourVerdict {
    /// The chain mixes, and at least 90 % of the model's probability lies on the hidden states of
    /// the rows. Versions up to 0.1 called this "memorised".
    #[serde(alias = "memorised")]
    Concentrated,
    /// The chain mixes: independent chains agree and reach the stopping set.
    Mixing,
    /// The chain does not mix: independent chains differ, or those from random states do not reach
    /// the stopping set.
    Stuck,
    /// The chain is too slow to judge from the independent chains, or too few of them reached the
    /// stopping set.
    Unclear,
}

/// The verdict on the chain of a model, with the numbers behind it.
///
/// ```
/// use mclv::{Rbm, StoppingSet, bits::BitRows, chain::VisibleChain, progress::Silent};
/// use mclv::tour::{Conclusion, TourEngine, TourSettings, TourVerdict};
/// let rbm = Rbm::new(4, 3, &[0.5; 12], &[0.0; 4], &[0.0; 3])?;
/// let set = StoppingSet::new(&BitRows::from_words(3, vec![0b111, 0b001]));
/// let tours = TourEngine::new(&rbm, &set)?.run(&TourSettings::default(), &Silent)?;
/// let conclusion = Conclusion::new(&rbm, &set, &tours, None, 0)?;
/// assert_eq!(conclusion.verdict, TourVerdict::Mixing);
/// assert!(conclusion.to_string().starts_with("mixing: "));
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// The verdict.
    pub verdict: TourVerdict,
    /// The share of the model's probability on the stopping set, `Z_S/Z`. For complete tours from
    /// `π_S` it is one over the mean length; else the share of steps that the independent chains
    /// from random states spent in the set.
    pub set_probability: f64,
    /// States in the stopping set, as a share of all hidden states.
    pub share_of_states: f64,
    /// The share of tours that returned to their own start.
    pub own_start: f64,
    /// The share of tours that were back in their own start after one step. For tours from `π_S` it
    /// estimates `Σ π_S(h) P(h,h)`.
    pub own_start_in_one_step: f64,
    /// `Σ π_S(h) P(h,h)`, the probability that a state does not change in one step. `None` if the
    /// model cannot be enumerated.
    pub staying_probability: Option<f64>,
    /// `Σ π_S(h)²`: the share of tours that would return to their own start if the chain forgot its
    /// state at once.
    pub own_start_by_chance: f64,
    /// Chains that are independent of the tours.
    pub witnesses: Witnesses,
    /// True if the chain of the tours is the model's own Gibbs chain.
    pub is_gibbs: bool,
}

impl Conclusion {
    /// Judges the chain of `tours` to `set`, with independent chains of seed `seed`. Give `theory`
    /// of the same set if the model can be enumerated.
    ///
    /// # Guarantee
    /// "Mixing" and "concentrated" mean that no evidence against them was found. No finite number of
    /// chains can show a mode that none of them visits.
    ///
    /// # Cost
    /// 32,000 steps of the chain, and `log p*` of all states of the set.
    ///
    /// # Errors
    /// If the set is empty or not as wide as the hidden layer.
    pub fn new(
        rbm: &Rbm,
        set: &StoppingSet,
        tours: &Tours,
        theory: Option<&TourTheory<'_>>,
        seed: u64,
    ) -> Result<Self> {
        let visible = if tours.is_gibbs() { VisibleChain::Sampled } else { VisibleChain::MeanField };
        let witnesses = Witnesses::run(rbm, set, visible, seed)?;
        let from_pi = tours.started_from() != StartedFrom::Rows;
        let knows_mean = from_pi && tours.is_gibbs() && tours.all_complete();
        let set_probability =
            if knows_mean { 1.0 / tours.mean_length().value } else { witnesses.share_in_set };
        let theory = theory.filter(|_| from_pi && tours.is_gibbs());
        let share = |n: usize| n as f64 / tours.n_tours() as f64;
        let share_of_states = set.len() as f64 / 2f64.powi(rbm.n_hidden() as i32);
        let verdict = judge(&witnesses, set_probability, share_of_states);
        Ok(Self {
            verdict,
            set_probability,
            share_of_states,
            own_start: share(tours.n_own_start()),
            own_start_in_one_step: share(tours.n_own_start_in_one_step()),
            staying_probability: theory.map(TourTheory::own_start_in_one_step),
            own_start_by_chance: chance(rbm, set)?,
            witnesses,
            is_gibbs: tours.is_gibbs(),
        })
    }

    /// Returns true if results of this chain need more evidence.
    pub fn is_doubtful(&self) -> bool {
        matches!(self.verdict, TourVerdict::Stuck | TourVerdict::Unclear)
    }

    /// A text on the share of tours that returned to their own start.
    pub fn own_starts(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let exactly = self.staying_probability.map_or(String::new(), |p| {
            format!(
                " (the exact probability that a state does not change is Σ π_S(h) P(h,h) = {})",
                percent(p)
            )
        });
        format!(
            "{} of tours returned to their own start: {} after one step{exactly}, {} later. For a chain that \
             forgets its start at once, the share would be {}.",
            percent(self.own_start),
            percent(self.own_start_in_one_step),
            percent((self.own_start - self.own_start_in_one_step).max(0.0)),
            percent(self.own_start_by_chance),
        )
    }
}

fn judge(witnesses: &Witnesses, set_probability: f64, share_of_states: f64) -> TourVerdict {
    let Some(mixing) = witnesses.mixing else { return TourVerdict::Unclear };
    let doubt = mixing.doubt(witnesses.n_steps);
    let visits = f64::from(witnesses.n_steps / 2) * set_probability;
    let few_reached = 4 * witnesses.n_reached < 3 * witnesses.n_random;
    let is_lost = visits >= MANY_VISITS && few_reached;
    match doubt {
        Some(_) if mixing.r_hat > STUCK_R_HAT => TourVerdict::Stuck,
        _ if is_lost => TourVerdict::Stuck,
        Some(_) => TourVerdict::Unclear,
        // The chains agree with each other, but say little about the stopping set.
        None if few_reached => TourVerdict::Unclear,
        None if set_probability >= CONCENTRATED && share_of_states <= SMALL_SET => TourVerdict::Concentrated,
        None => TourVerdict::Mixing,
    }
}

/// `Σ π_S(h)²`.
fn chance(rbm: &Rbm, set: &StoppingSet) -> Result<f64> {
    let free = rbm.free_energy_h(&Rows::Bits(set.states().clone()))?;
    let least = free.iter().copied().fold(f64::INFINITY, f64::min);
    let weights: Vec<f64> = free.iter().map(|f| (least - f).exp()).collect();
    let total: f64 = weights.iter().sum();
    Ok(weights.iter().map(|w| (w / total).powi(2)).sum())
}

impl std::fmt::Display for Conclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Witnesses { n_random, n_from_set, n_steps, mixing, n_reached, .. } = self.witnesses;
        let r_hat = mixing.map_or("unknown".into(), |mixing| format!("{:.2}", mixing.r_hat));
        let chain = if self.is_gibbs { "the chain" } else { "the mean-field chain" };
        let chains = format!("{n_random} chains from random states and {n_from_set} from the stopping set");
        let reached =
            format!("{n_reached} of the {n_random} chains from random states reached the stopping set");
        let mass = format!("{:.1} %", 100.0 * self.set_probability);
        match self.verdict {
            TourVerdict::Concentrated => write!(
                f,
                "concentrated: {mass} of the probability lies on the hidden states of the rows, which are {} of all \
                 hidden states. {chains} agree after {n_steps} steps (R-hat {r_hat}), and {reached}: {chain} mixes. \
                 This does not say that the model repeats its rows: compare the likelihoods of training and \
                 validation rows.",
                small_percent(self.share_of_states)
            ),
            TourVerdict::Mixing => write!(
                f,
                "mixing: {chains} agree after {n_steps} steps (R-hat {r_hat}), and {reached}. The stopping set \
                 holds {mass} of the probability."
            ),
            TourVerdict::Stuck => write!(
                f,
                "stuck: {chain} does not mix. {chains} have R-hat {r_hat} after {n_steps} steps (1 if they agree), \
                 and {reached}. Short tours show only that {chain} stays where it is, not that it moves freely. A \
                 mode that no tour enters is missing from log Ẑ, from its interval and from samples."
            ),
            TourVerdict::Unclear => write!(
                f,
                "unclear: there is not enough evidence to judge {chain}. {chains} have R-hat {r_hat} after {n_steps} steps (1 if \
                 they agree), and {reached}. A mode that is seldom entered may be missing from log Ẑ, from its \
                 interval and from samples."
            ),
        }
    }
}

/// A share as a percentage, with enough digits for tiny shares.
fn small_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 0.01 { format!("{percent:.2} %") } else { format!("{percent:.0e} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;
    use crate::tour::{HiddenChain, TourEngine, TourSettings};

    fn conclude(rbm: &Rbm, states: Vec<u64>, seed: u64) -> Conclusion {
        let set = StoppingSet::new(&BitRows::from_words(rbm.n_hidden(), states));
        let settings = TourSettings { n_tours: 2000, max_steps: Some(2_000_000), seed, ..Default::default() };
        let tours = TourEngine::new(rbm, &set).unwrap().run(&settings, &Silent).unwrap();
        let chain = HiddenChain::new(rbm).unwrap();
        Conclusion::new(rbm, &set, &tours, Some(&chain.tours(&set).unwrap()), seed).unwrap()
    }

    /// All weights `w`, biases `−w·n/2`: two equal modes, all units off and all on.
    fn two_modes(n: usize, w: f32) -> Rbm {
        let bias = vec![-w * n as f32 / 2.0; n];
        Rbm::new(n, n, &vec![w; n * n], &bias, &bias).unwrap()
    }

    /// 20 random models with small weights, whose spectral gap is large: none is called stuck or
    /// unclear.
    #[test]
    fn chains_that_mix_are_never_called_stuck() {
        for seed in 0..20 {
            let rbm = random_rbm(8, 6, 0.5, 700 + seed);
            assert!(HiddenChain::new(&rbm).unwrap().spectral_gap() > 0.2);
            let conclusion = conclude(&rbm, vec![0, 5, 21, 63], seed);
            assert_eq!(conclusion.verdict, TourVerdict::Mixing, "{seed}: {conclusion}");
        }
    }

    /// Two modes with a gap below 1e-6: no chain crosses in 1,000 steps. The set is in both modes,
    /// or in one of them; all tours return, most to their own start.
    #[test]
    fn a_chain_that_never_crosses_is_called_stuck() {
        let rbm = two_modes(8, 2.0);
        assert!(HiddenChain::new(&rbm).unwrap().spectral_gap() < 1e-6);
        for seed in 0..5 {
            for states in [vec![0], vec![0, (1 << 8) - 1]] {
                let conclusion = conclude(&rbm, states, seed);
                assert_eq!(conclusion.verdict, TourVerdict::Stuck, "{seed}: {conclusion}");
                assert!(conclusion.own_start > 0.9 && conclusion.to_string().contains("does not mix"));
            }
        }
    }

    /// Chains that agree with each other but do not reach the stopping set say nothing about it: one
    /// state of 2²⁴ that are all equally probable.
    #[test]
    fn a_set_that_chains_do_not_reach_is_not_called_mixing() {
        let rbm = Rbm::new(6, 24, &[0.0; 144], &[0.0; 6], &[0.0; 24]).unwrap();
        let set = StoppingSet::new(&BitRows::from_words(24, vec![5]));
        let settings = TourSettings { n_tours: 20, max_steps: Some(20_000), seed: 1, ..Default::default() };
        let tours = TourEngine::new(&rbm, &set).unwrap().run(&settings, &Silent).unwrap();
        let conclusion = Conclusion::new(&rbm, &set, &tours, None, 1).unwrap();
        assert_eq!(conclusion.witnesses.n_reached, 0);
        assert_eq!(conclusion.verdict, TourVerdict::Unclear, "{conclusion}");
    }

    /// Two states of 64 hold nearly all probability, and the chain moves between them.
    #[test]
    fn mass_on_few_states_with_a_chain_that_moves_is_called_concentrated() {
        // Strong hidden biases switch off all but the states 0 and 1.
        let rbm = Rbm::new(4, 6, &[0.3; 24], &[0.0; 4], &[0.0, -9.0, -9.0, -9.0, -9.0, -9.0]).unwrap();
        let conclusion = conclude(&rbm, vec![0, 1], 3);
        assert_eq!(conclusion.verdict, TourVerdict::Concentrated, "{conclusion}");
        // A set of all hidden states holds all probability of any model.
        let rbm = random_rbm(5, 3, 0.5, 1);
        let all = conclude(&rbm, (0..8).collect(), 3);
        assert!((all.set_probability, all.verdict) == (1.0, TourVerdict::Mixing), "{all}");
    }

    /// The staying probability matches enumeration, and the share of one-step returns estimates it
    /// (|z| < 4.5, false-alarm rate 7e-6). Returns by chance match their definition.
    #[test]
    fn own_starts_are_explained_by_exact_numbers() {
        let rbm = random_rbm(5, 4, 1.0, 9);
        let conclusion = conclude(&rbm, vec![1, 6, 11], 4);
        let chain = HiddenChain::new(&rbm).unwrap();
        let states = [1usize, 6, 11];
        let free = rbm.free_energy_h(&Rows::Bits(BitRows::from_words(4, vec![1, 6, 11]))).unwrap();
        let weights: Vec<f64> = free.iter().map(|f| (-f).exp()).collect();
        let total: f64 = weights.iter().sum();
        let stays: f64 = weights.iter().zip(states).map(|(w, h)| w / total * chain.transition(h, h)).sum();
        assert!((conclusion.staying_probability.unwrap() - stays).abs() < 1e-12);
        let z = (conclusion.own_start_in_one_step - stays) / (stays * (1.0 - stays) / 2000.0).sqrt();
        assert!(z.abs() < 4.5, "{z}");
        let chance: f64 = weights.iter().map(|w| (w / total).powi(2)).sum();
        assert!((conclusion.own_start_by_chance - chance).abs() < 1e-12);
    }
}
