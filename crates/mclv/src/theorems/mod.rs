//! The statements of the paper for one model and one stopping set: values measured with tours,
//! beside exact values where the model can be enumerated.
//!
//! | statement | measured and exact values |
//! |---|---|
//! | Theorem 1 | [`CutRow`]: means over completed and over started tours, with the corrected bounds |
//! | Theorem 2 | [`TailRow`], `ε` and the rate `ρ` of the tail |
//! | Theorem 3 | the spectral gap, the corrected bound, and [`Needed`]: tours for a wanted error |
//! | Lemma 1 | [`LengthRow`]: what tours of one length contribute |
//! | Corollary 3 | [`GradientByLength`]: what tours of different lengths add to the gradient |
//! | CD and tours | [`CdRow`] and [`Starts`]: four differences, one at a time |

mod gradient;
mod needed;
mod rows;
mod starts;
#[cfg(test)]
mod tests;

pub use gradient::{GradientByLength, LengthPart, cosine, lvs_moments};
pub use needed::{Needed, Precision, risk, tours_needed};
pub use rows::{CdRow, CutRow, LengthRow, TailRow};
pub use starts::Starts;

use crate::data::Rows;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::tour::{
    Estimate, HiddenChain, StartedFrom, TourEngine, TourSettings, TourTheory, Tours, energy_bound, energy_of,
};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The largest `K` for which exact values are computed, step by step.
const MOST_STEPS: u32 = 1000;

/// A measured value beside the exact one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The value from tours. `None` if these tours do not show it.
    pub measured: Option<Estimate>,
    /// The exact value. `None` if the model cannot be enumerated.
    pub exact: Option<f64>,
}

/// Settings of [`Theorems::measure`].
#[derive(Clone, Debug, PartialEq)]
pub struct TheoremSettings {
    /// The numbers of steps `K` after which tours are cut.
    pub k: Vec<u32>,
    /// The wanted error of `Ẑ`, and the probability of a larger one.
    pub precision: Precision,
}

impl Default for TheoremSettings {
    /// K = 1, 3, 10, 100; an error of 10 % with probability 95 %.
    fn default() -> Self {
        Self { k: vec![1, 3, 10, 100], precision: Precision::default() }
    }
}

/// The statements of the paper for one model and one stopping set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Theorems {
    /// The number of tours.
    pub n_tours: usize,
    /// `log Z_S`.
    pub log_z_s: f64,
    /// `Z_S/Z`: measured as one over the mean length if all tours returned.
    pub set_probability: Compared,
    /// The mean energy `E_p[E(v,h)]`, the statistic of the tables.
    pub mean_energy: Compared,
    /// A bound `B ≥ |E(v,h)|`, from the weights.
    pub energy_bound: f64,
    /// Theorem 1, for each `K`.
    pub cut: Vec<CutRow>,
    /// Theorem 2: `ε = min_v Σ_{h∈H} p(h|v)`. `p(ξ>k) ≤ (1−ε)^k`.
    pub epsilon: Option<f64>,
    /// Theorem 2: the spectral radius `ρ` off the set. `p(ξ>k) ≤ p(ξ>1)·ρ^(k−1)`. Measured by a fit
    /// to the longest tours, which is empirical.
    pub tail_rate: Compared,
    /// Theorem 2, for each `K`.
    pub tail: Vec<TailRow>,
    /// Theorem 3: the spectral gap `δ` of the hidden chain.
    pub spectral_gap: Option<f64>,
    /// Theorem 3: `E[ξ²]`.
    pub second_moment: Compared,
    /// Theorem 3: the corrected bound of `E[ξ²]`.
    pub second_moment_bound: Option<f64>,
    /// Theorem 3 with Chebyshev's inequality: tours for a wanted error.
    pub needed: Needed,
    /// Lemma 1: tours by length.
    pub lengths: Vec<LengthRow>,
    /// Contrastive divergence beside tours, for each `K`.
    pub cd: Vec<CdRow>,
    /// The starts of contrastive divergence beside those of tours. `None` without data.
    pub starts: Option<Starts>,
    /// Corollary 3. `None` without data, or if tours were cut.
    pub gradient: Option<GradientByLength>,
}

impl Theorems {
    /// Runs the tours that [`measure`](Self::measure) needs: tours with sums of the energy.
    ///
    /// # Errors
    /// If a setting is not allowed, or if the listener cancels.
    pub fn run(engine: &TourEngine<'_>, settings: &TourSettings, progress: &dyn Progress) -> Result<Tours> {
        let energy = energy_of(engine.rbm());
        let add = |v: &[u64], h: &[u64], sums: &mut [f64]| sums[0] += energy(v, h);
        engine.run_with(settings, 1, &add, progress)
    }

    /// Measures the statements of the paper with `tours` that [`run`](Self::run) made with
    /// `of_tours`. Exact values are added if the model can be enumerated in about a second.
    ///
    /// # Guarantee
    /// Exact values are exact up to rounding. Measured values have standard errors, which are too
    /// small if the tail of the lengths has not been seen.
    ///
    /// # Cost
    /// If there are `rows`, the tours are run again for the parts of the gradient.
    ///
    /// # Errors
    /// If the tours began at rows, if a `K` is 0, if the rows do not fit the model, or if the
    /// listener cancels.
    pub fn measure(
        engine: &TourEngine<'_>,
        (tours, of_tours): (&Tours, &TourSettings),
        rows: Option<&Rows>,
        settings: &TheoremSettings,
        progress: &dyn Progress,
    ) -> Result<Self> {
        if tours.started_from() == StartedFrom::Rows {
            let cure = "the statements of the paper are about tours from π_S";
            return Err(Error::InvalidSetting { name: "starts", value: "rows".into(), cure });
        }
        if let Some(k) = settings.k.iter().find(|&&k| !(1..=MOST_STEPS).contains(&k)) {
            let cure = "from 1 to 1,000 steps";
            return Err(Error::InvalidSetting { name: "k", value: k.to_string(), cure });
        }
        settings.precision.check()?;
        let rbm: &Rbm = engine.rbm();
        let chain = HiddenChain::if_quick(rbm);
        let theory = chain.as_ref().map(|chain| chain.tours(engine.set())).transpose()?;
        let all_complete = tours.all_complete();
        let of_packed = rows::packed_energy(rbm);
        let mean_length = tours.mean_length();
        let set_probability = Compared {
            measured: all_complete.then(|| inverse(mean_length)),
            exact: theory.as_ref().map(TourTheory::set_probability),
        };
        let moments = theory.as_ref().map(TourTheory::length_moments);
        let of_rows = rows::Context::new(tours, theory.as_ref(), &settings.k, &of_packed);
        let starts =
            rows.map(|rows| Starts::new(engine, rows, theory.as_ref(), of_tours.seed)).transpose()?;
        let gradient = match rows {
            Some(rows) if all_complete => {
                Some(GradientByLength::measure(engine, (tours, of_tours), rows, progress)?)
            }
            _ => None,
        };
        Ok(Self {
            n_tours: tours.n_tours(),
            log_z_s: tours.log_z_s(),
            set_probability,
            mean_energy: Compared {
                measured: all_complete.then(|| tours.expectation(0)),
                exact: chain.as_ref().map(|chain| chain.expectation(&of_packed)),
            },
            energy_bound: energy_bound(rbm),
            cut: settings.k.iter().map(|&k| of_rows.cut(k, energy_bound(rbm))).collect(),
            epsilon: theory.as_ref().map(TourTheory::epsilon),
            tail_rate: Compared {
                measured: tours.tail_fit().map(|fit| Estimate {
                    value: fit.rate,
                    std_err: fit.std_err,
                    guarantee: crate::tour::EstimateGuarantee::None,
                }),
                exact: theory.as_ref().map(TourTheory::tail_rate),
            },
            tail: of_rows.tail(&settings.k),
            spectral_gap: chain.as_ref().map(HiddenChain::spectral_gap),
            second_moment: Compared {
                measured: all_complete.then(|| tours.mean_square_length()),
                exact: moments.map(|(_, second)| second),
            },
            second_moment_bound: theory.as_ref().map(TourTheory::second_moment_bound),
            needed: Needed::new(tours, theory.as_ref(), settings.precision),
            lengths: of_rows.lengths(),
            cd: of_rows.cd(&settings.k, starts.as_ref().and_then(|starts| starts.law.as_deref())),
            starts,
            gradient,
        })
    }
}

/// The inverse of an estimate, with the standard error of the delta method.
fn inverse(x: Estimate) -> Estimate {
    let guarantee = crate::tour::EstimateGuarantee::Consistent.at_most(x.guarantee);
    Estimate { value: 1.0 / x.value, std_err: x.std_err / (x.value * x.value), guarantee }
}
