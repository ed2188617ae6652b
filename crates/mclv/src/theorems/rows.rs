//! The tables of the theorems: one row for each number of steps `K`, or for each length.

use super::Compared;
use crate::model::Rbm;
use crate::tour::{CcdfPoint, EstimateGuarantee, TourTheory, Tours, WithResiduals, energy_of};
use serde::{Deserialize, Serialize};

/// The lengths of the table of Lemma 1.
const LENGTHS: u32 = 5;

/// Theorem 1: tours that are cut after `K` steps. Estimates of Z and of `Z·E_p[f]` are divided by Z.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutRow {
    /// The number of steps `K`.
    pub k: u32,
    /// `p(ξ ≤ K)`: the share of tours that return.
    pub returned: Compared,
    /// `F̂^(K,R)/Z` for `f = 1`: the estimate of Z over completed tours.
    pub completed: Compared,
    /// The corrected bound of its bias. Exact where the model can be enumerated, else from
    /// complete tours, which is empirical.
    pub completed_bound: Option<f64>,
    /// The estimate of Z over all started tours, with `min(ξ, K)` steps each. It is low by exactly
    /// `Z_S·Σ_{k≥K} p(ξ>k)`.
    pub started: Compared,
    /// `F̂^(K,R)/Z` for the energy: over completed tours. It should be `E_p[E]`.
    pub energy: Compared,
    /// The corrected bound of its bias, with the bound `B` of the energy from the weights.
    pub energy_bound: Option<f64>,
    /// The bound as printed in the paper, for `f = 1` and without `Z_S`. It does not bound the bias
    /// of Z.
    pub printed_bound: Option<f64>,
}

/// Theorem 2: the tail of tour lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailRow {
    /// The number of steps.
    pub k: u32,
    /// The share of tours longer than `k`, with its limits.
    pub measured: Option<CcdfPoint>,
    /// The exact `p(ξ > k)`.
    pub exact: Option<f64>,
    /// The bound `(1 − ε)^k`.
    pub epsilon_bound: Option<f64>,
    /// The bound `p(ξ>1)·ρ^(k−1)`.
    pub rate_bound: Option<f64>,
}

/// Lemma 1 and Corollary 3: tours of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthRow {
    /// The length.
    pub length: u32,
    /// `p(ξ = length)`.
    pub share: Compared,
    /// The part of Z that these tours contribute: `length·p(ξ = length)/E[ξ]`.
    pub of_z: Compared,
    /// The mean energy of the states of these tours. It follows from the law of their states
    /// (Lemma 1), which does not depend on `K`.
    pub energy: Compared,
}

/// The mean energy by contrastive divergence and by tours that are cut after `K` steps: four
/// differences, one at a time. The model's own value is [`mean_energy`](super::Theorems::mean_energy).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CdRow {
    /// The number of steps `K`.
    pub k: u32,
    /// CD-K from the data: its last states.
    pub cd: Option<f64>,
    /// The same with starts from `π_S` (i).
    pub cd_from_pi: Option<f64>,
    /// Tours that end in the set (ii), with all their states (iii): `keep`.
    pub keep: Option<f64>,
    /// The same without unfinished tours (iv): `drop`, LVS-K.
    pub drop: Compared,
}

/// The energy of packed states of a model that can be enumerated.
pub(super) fn packed_energy(rbm: &Rbm) -> impl Fn(usize, usize) -> f64 + use<> {
    let energy = energy_of(rbm);
    move |v, h| energy(&[v as u64], &[h as u64])
}

/// The tours, and their exact theory if there is one.
pub(super) struct Context<'a, F> {
    tours: &'a Tours,
    theory: Option<&'a TourTheory<'a>>,
    energy: &'a F,
    /// By length, from 1: the exact probability, and the exact mean of sums of the energy on this
    /// event.
    by_length: Option<Vec<(f64, f64)>>,
}

impl<'a, F: Fn(usize, usize) -> f64> Context<'a, F> {
    pub(super) fn new(
        tours: &'a Tours,
        theory: Option<&'a TourTheory<'a>>,
        ks: &[u32],
        energy: &'a F,
    ) -> Self {
        let most = ks.iter().copied().fold(LENGTHS, u32::max);
        let by_length = theory.map(|theory| theory.sums_up_to(most, energy));
        Self { tours, theory, energy, by_length }
    }

    /// The exact sum of the energy of completed tours, `E[Σ E | ξ ≤ k]`.
    fn completed_energy(&self, k: u32) -> Option<f64> {
        let by_length = self.by_length.as_ref()?.iter().take(k as usize);
        let (share, sum) = by_length.fold((0.0, 0.0), |(share, sum), (p, x)| (share + p, sum + x));
        Some(sum / share)
    }

    /// A mean over tours times `Z_S/Z`. Without the exact Z, it is the estimate of all tours, if all
    /// are complete.
    fn of_z(&self, found: Option<WithResiduals>) -> Option<crate::tour::Estimate> {
        let (mean, residuals) = found?;
        let of_z = match self.theory {
            Some(theory) => {
                let p = theory.set_probability();
                (mean * p, residuals.iter().map(|x| x * p).collect())
            }
            None if self.tours.all_complete() => {
                let length = self.tours.mean_length().value;
                let lengths = self.tours.lengths();
                let each = residuals.iter().zip(&lengths);
                let value = mean / length;
                (value, each.map(|(x, n)| x / length - value * (n / length - 1.0)).collect())
            }
            None => return None,
        };
        Some(self.tours.of_cut(of_z))
    }

    /// The mean of an event over tours.
    fn share(&self, is: impl Fn(&crate::tour::Tour) -> bool) -> crate::tour::Estimate {
        let x: Vec<f64> = self.tours.as_slice().iter().map(|tour| f64::from(u8::from(is(tour)))).collect();
        self.tours.mean(&x, EstimateGuarantee::Unbiased)
    }

    pub(super) fn cut(&self, k: u32, b: f64) -> CutRow {
        let Self { tours, theory, .. } = self;
        let exact = theory.map(|theory| (theory.cut_tours(k), theory.set_probability()));
        let of_exact = |f: &dyn Fn(crate::tour::CutTours) -> f64| exact.map(|(cut, p)| f(cut) * p);
        let completed_bound = of_exact(&|cut| cut.completed_bound).or_else(|| self.empirical_bound(k));
        CutRow {
            k,
            returned: Compared {
                measured: tours.are_known_up_to(k).then(|| self.share(|t| t.is_complete() && t.length <= k)),
                exact: exact.map(|(cut, _)| 1.0 - cut.unfinished),
            },
            completed: Compared {
                measured: self.of_z(tours.over_completed(k, &tours.lengths())),
                exact: of_exact(&|cut| cut.completed),
            },
            completed_bound,
            started: Compared {
                measured: self.of_z(tours.over_started(k)),
                exact: of_exact(&|cut| cut.started),
            },
            energy: Compared {
                measured: self.of_z(tours.over_completed(k, &tours.sums_of(0))),
                exact: self.completed_energy(k).zip(exact).map(|(sum, (_, p))| sum * p),
            },
            energy_bound: completed_bound.map(|bound| bound * b),
            printed_bound: exact.map(|(cut, _)| cut.printed_bound),
        }
    }

    /// The bound of Theorem 1 for completed tours, from complete tours.
    fn empirical_bound(&self, k: u32) -> Option<f64> {
        let completed = self.tours.completed_length(k)?;
        let n = self.tours.n_tours() as f64;
        let longer = || self.tours.as_slice().iter().filter(|t| t.length > k);
        let beyond = longer().map(|t| f64::from(t.length)).sum::<f64>() / n;
        let unfinished = longer().count() as f64 / n;
        let bound = (beyond + unfinished * completed.value) / self.tours.mean_length().value;
        self.tours.all_complete().then_some(bound)
    }

    pub(super) fn tail(&self, ks: &[u32]) -> Vec<TailRow> {
        let ccdf = self.tours.ccdf();
        let most = ks.iter().copied().max().unwrap_or(0);
        let survival = self.theory.map(|theory| theory.survival(most.max(1) as usize));
        let rates = self.theory.map(|theory| (theory.epsilon(), theory.tail_rate()));
        let row = |&k: &u32| TailRow {
            k,
            measured: ccdf.at(k).copied(),
            exact: survival.as_ref().map(|p| p[k as usize]),
            epsilon_bound: rates.map(|(epsilon, _)| (1.0 - epsilon).powf(f64::from(k))),
            rate_bound: survival.as_ref().zip(rates).map(|(p, (_, rate))| p[1] * rate.powf(f64::from(k - 1))),
        };
        ks.iter().map(row).collect()
    }

    pub(super) fn lengths(&self) -> Vec<LengthRow> {
        let Self { tours, theory, by_length, .. } = self;
        let exact = by_length.as_ref().zip(theory.map(TourTheory::set_probability));
        let row = |length: u32| {
            let is = |t: &crate::tour::Tour| t.is_complete() && t.length == length;
            let of_exact =
                |f: &dyn Fn((f64, f64), f64) -> f64| exact.map(|(sums, p)| f(sums[length as usize - 1], p));
            let n = f64::from(length);
            let known = tours.are_known_up_to(length);
            let only: Vec<f64> = tours.as_slice().iter().map(|t| if is(t) { n } else { 0.0 }).collect();
            let mean = only.iter().sum::<f64>() / only.len() as f64;
            let of_z = (mean, only.iter().map(|x| x - mean).collect());
            LengthRow {
                length,
                share: Compared {
                    measured: known.then(|| self.share(is)),
                    exact: of_exact(&|(share, _), _| share),
                },
                of_z: Compared {
                    measured: self.of_z(known.then_some(of_z)),
                    exact: of_exact(&|(share, _), p| n * share * p),
                },
                energy: Compared {
                    measured: known.then(|| self.energy_of(&is)).flatten(),
                    exact: of_exact(&|(share, sum), _| sum / share / n),
                },
            }
        };
        (1..=LENGTHS).map(row).collect()
    }

    /// The mean energy of the states of some tours.
    fn energy_of(&self, is: &dyn Fn(&crate::tour::Tour) -> bool) -> Option<crate::tour::Estimate> {
        let tours = self.tours;
        let counted: Vec<bool> = tours.as_slice().iter().map(is).collect();
        let sum = |x: &[f64]| -> f64 {
            x.iter().zip(&counted).filter(|(_, counted)| **counted).map(|(x, _)| x).sum()
        };
        let (sums, lengths) = (tours.sums_of(0), tours.lengths());
        let (energy, steps) = (sum(&sums), sum(&lengths));
        // One tour tells no error.
        if counted.iter().filter(|counted| **counted).count() < 2 {
            return None;
        }
        let value = energy / steps;
        let weight = tours.n_tours() as f64 / steps;
        let each = sums.iter().zip(&lengths).zip(&counted);
        let residuals =
            each.map(|((x, n), counted)| if *counted { weight * (x - value * n) } else { 0.0 }).collect();
        Some(tours.of_cut((value, residuals)))
    }

    pub(super) fn cd(&self, ks: &[u32], law: Option<&[f64]>) -> Vec<CdRow> {
        let Self { tours, theory, energy, .. } = self;
        let row = |&k: &u32| {
            let chain = theory.map(TourTheory::chain);
            let from = |starts: &[f64]| chain.map(|chain| chain.after_steps(starts, k, energy));
            let within = |t: &crate::tour::Tour| t.is_complete() && t.length <= k;
            CdRow {
                k,
                cd: law.and_then(from),
                cd_from_pi: theory.and_then(|theory| from(&theory.starts())),
                keep: theory.map(|theory| theory.started_sum(k, energy) / theory.cut_tours(k).started),
                drop: Compared {
                    measured: tours.are_known_up_to(k).then(|| self.energy_of(&within)).flatten(),
                    exact: self
                        .completed_energy(k)
                        .zip(*theory)
                        .map(|(sum, t)| sum / t.cut_tours(k).completed),
                },
            }
        };
        ks.iter().map(row).collect()
    }
}
