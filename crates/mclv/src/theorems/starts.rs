//! The starts of contrastive divergence, `h ~ p(h|v)` of a row, beside those of tours, `π_S`.

use super::Compared;
use crate::Result;
use crate::data::Rows;
use crate::rng::{Purpose, stream};
use crate::tour::{Estimate, EstimateGuarantee, TourEngine, TourTheory, total_variation};
use serde::{Deserialize, Serialize};

/// Where contrastive divergence and tours start. Distances are total variations: 0 for equal laws,
/// 1 for laws without a common state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Starts {
    /// The share of the starts of contrastive divergence that lie in the stopping set. Measured with
    /// one new draw from `p(h|v)` of each row, which is independent of the set.
    pub in_set: Compared,
    /// The mean of `log p*(h)` of the starts of contrastive divergence, by the same draws.
    pub log_weight_of_cd: Compared,
    /// The mean of `log p*(h)` of the starts of tours, which is exact for every model.
    pub log_weight_of_tours: f64,
    /// `1/Σ π_S(h)²`: the number of states that tours really start at.
    pub effective_starts: f64,
    /// The number of states in the set.
    pub n_states: usize,
    /// The distance of the starts of contrastive divergence from those of tours.
    pub cd_from_tours: Option<f64>,
    /// The distance of the starts of contrastive divergence from the model's `p(h)`.
    pub cd_from_model: Option<f64>,
    /// The distance of the starts of tours from the model's `p(h)`: `1 − Z_S/Z`.
    pub tours_from_model: Option<f64>,
    /// The law of the starts of contrastive divergence, state by state.
    #[serde(skip)]
    pub(super) law: Option<Vec<f64>>,
}

impl Starts {
    pub(super) fn new(
        engine: &TourEngine<'_>,
        rows: &Rows,
        theory: Option<&TourTheory<'_>>,
        seed: u64,
    ) -> Result<Self> {
        let rbm = engine.rbm();
        let drawn = rbm.sample_h_from_v(rows, |r| stream(seed, Purpose::StartsOfCd, r as u64).at(0))?;
        let inside: Vec<f64> = (0..drawn.n_rows())
            .map(|r| f64::from(u8::from(engine.set().find(drawn.row(r)).is_some())))
            .collect();
        let log_weights: Vec<f64> =
            rbm.free_energy_h(&Rows::Bits(drawn))?.into_iter().map(|free| -free).collect();
        let law = match theory {
            Some(theory) => Some(theory.chain().starts_of_cd(&rbm.mean_h_from_v(rows)?)),
            None => None,
        };
        let exact = theory.zip(law.as_ref());
        let of_states = engine.log_weights();
        let p = of_states.iter().map(|x| (x - engine.log_z_s()).exp());
        Ok(Self {
            in_set: Compared {
                measured: Some(mean_of(&inside)),
                exact: exact.map(|(theory, law)| {
                    law.iter().enumerate().filter(|(h, _)| theory.contains(*h)).map(|(_, p)| p).sum()
                }),
            },
            log_weight_of_cd: Compared {
                measured: Some(mean_of(&log_weights)),
                exact: exact.map(|(theory, law)| {
                    let log_z = theory.chain().log_z();
                    law.iter()
                        .zip(theory.chain().stationary())
                        .filter(|(q, _)| **q > 0.0)
                        .map(|(q, p)| q * (p.ln() + log_z))
                        .sum()
                }),
            },
            log_weight_of_tours: p.clone().zip(of_states).map(|(p, x)| p * x).sum(),
            effective_starts: 1.0 / p.map(|p| p * p).sum::<f64>(),
            n_states: of_states.len(),
            cd_from_tours: exact.map(|(theory, law)| total_variation(law, &theory.starts())),
            cd_from_model: exact.map(|(theory, law)| total_variation(law, theory.chain().stationary())),
            tours_from_model: theory.map(|theory| 1.0 - theory.set_probability()),
            law,
        })
    }
}

/// The mean over rows. The rows are given; the states drawn from them vary.
fn mean_of(x: &[f64]) -> Estimate {
    let n = x.len() as f64;
    let value = x.iter().sum::<f64>() / n;
    let std_err = (x.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n * (n - 1.0).max(1.0))).sqrt();
    Estimate { value, std_err, guarantee: EstimateGuarantee::Unbiased }
}
