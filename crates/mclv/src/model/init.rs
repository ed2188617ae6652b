//! Choose initial parameters.

use super::Rbm;
use crate::data::Rows;
use crate::rng::{Purpose, stream};
use crate::words::words;
use crate::{Error, Result};

/// The largest number of weights. More would need 16 GiB for a single copy.
const MAX_WEIGHTS: u64 = 1 << 32;

/// How the initial parameters of a model are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Init {
    /// From the data. The visible bias alone reproduces the mean of each unit. Weights are normal,
    /// and just strong enough to give hidden inputs a standard deviation of 0.1. The hidden bias
    /// centres these inputs on 0.
    #[default]
    Data,
    /// As in the paper's code: `W ~ U(±0.1/√(n_visible + n_hidden))`, `a = 0`,
    /// `b_i = ln((p_i + 0.01)/(1 − p_i))`. If `p_i > 0.99`, the divisor is held at 0.01; the
    /// paper's data never need this.
    Paper,
}

impl Init {
    /// Creates an initial model for `data`.
    ///
    /// The same seed gives the same weights whatever the data, up to their scale.
    ///
    /// ```
    /// use mclv::{Init, data::Rows, bits::BitRows};
    /// let data = Rows::Bits(BitRows::pack(2, &[1, 0, 1, 1], |&x| x == 1));
    /// let rbm = Init::Data.model(&data, 3, 42)?;
    /// assert_eq!((rbm.n_visible(), rbm.n_hidden()), (2, 3));
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no rows, if `n_hidden` is 0, or if the model would be too large.
    pub fn model(self, data: &Rows, n_hidden: usize, seed: u64) -> Result<Rbm> {
        self.weighted_model(data, None, n_hidden, seed)
    }

    /// Creates an initial model like [`model`](Self::model), with a weight for each row. Only the
    /// ratios of weights matter.
    pub(crate) fn weighted_model(
        self,
        data: &Rows,
        weights: Option<&[f32]>,
        n_hidden: usize,
        seed: u64,
    ) -> Result<Rbm> {
        if data.n_rows() == 0 {
            return Err(Error::Empty {
                what: "the data".into(),
                cure: "an initial model needs at least one row",
            });
        }
        let n_visible = data.n_columns();
        if (n_visible as u64).saturating_mul(n_hidden as u64) > MAX_WEIGHTS {
            return Err(Error::InvalidSetting {
                name: "n-hidden",
                value: n_hidden.to_string(),
                cure: "a model may have up to 2^32 weights",
            });
        }
        let (means, n_rows) = match weights {
            None => (data.column_means(), data.n_rows() as f64),
            Some(weights) => {
                // The number of unweighted rows that would determine the means equally well (Kish).
                let sum = |power: i32| weights.iter().map(|&w| f64::from(w).powi(power)).sum::<f64>();
                (data.weighted_column_means(weights), sum(1).powi(2) / sum(2))
            }
        };
        let mut rng = stream(seed, Purpose::Init, 0).reader();
        let (w, b, a): (Vec<f32>, Vec<f64>, Vec<f32>) = match self {
            Self::Paper => {
                let half_width = 0.1 / ((n_visible + n_hidden) as f64).sqrt();
                let w = (0..n_visible * n_hidden).map(|_| (half_width * (2.0 * rng.uniform() - 1.0)) as f32);
                let b = means.iter().map(|p| ((p + 0.01) / (1.0 - p).max(0.01)).ln());
                (w.collect(), b.collect(), vec![0.0; n_hidden])
            }
            Self::Data => {
                // Half a count on each side keeps constant pixels finite.
                let p: Vec<f64> = means.iter().map(|m| (m * n_rows + 0.5) / (n_rows + 1.0)).collect();
                let variance: f64 = p.iter().map(|p| p * (1.0 - p)).sum();
                let scale = 0.1 / variance.sqrt();
                let w: Vec<f32> = (0..n_visible * n_hidden).map(|_| (scale * rng.normal()) as f32).collect();
                let mean_input =
                    |j: usize| -> f64 { (0..n_visible).map(|i| p[i] * f64::from(w[i * n_hidden + j])).sum() };
                let a = (0..n_hidden).map(|j| -mean_input(j) as f32).collect();
                let b = p.iter().map(|p| (p / (1.0 - p)).ln()).collect();
                (w, b, a)
            }
        };
        let b: Vec<f32> = b.into_iter().map(|b| b as f32).collect();
        Rbm::new(n_visible, n_hidden, &w, &b, &a)
    }
}

words!(Init as "init" { Data = "data", Paper = "paper" });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;

    /// Four rows: one unit always off, one always on, one half of the time.
    fn data() -> Rows {
        Rows::Bits(BitRows::pack(3, &[0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1], |&x| x == 1))
    }

    #[test]
    fn the_data_driven_model_has_the_data_means_and_centred_hidden_units() {
        let rbm = Init::Data.model(&data(), 50, 1).unwrap();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let means: Vec<f32> = rbm.visible_bias().iter().map(|&b| sigmoid(b)).collect();
        for (mean, expected) in means.iter().zip([0.1, 0.9, 0.5]) {
            assert!((mean - expected).abs() < 1e-6);
        }
        let inputs = rbm.inputs_h_from_v(&data()).unwrap();
        let mean = inputs.values().iter().sum::<f32>() / inputs.values().len() as f32;
        assert!(mean.abs() < 0.05, "{mean}");
    }

    #[test]
    fn the_papers_model_follows_its_formulas() {
        let rbm = Init::Paper.model(&data(), 61, 1).unwrap();
        let half_width = 0.1 / 8.0;
        let w = rbm.weights();
        assert!(w.iter().all(|w| w.abs() <= half_width) && w.iter().any(|w| w.abs() > 0.9 * half_width));
        assert!(rbm.hidden_bias().iter().all(|&a| a == 0.0));
        assert!((rbm.visible_bias()[0] - 0.01f32.ln()).abs() < 1e-6);
        assert!((rbm.visible_bias()[2] - (0.51f32 / 0.5).ln()).abs() < 1e-6);
        assert!(rbm.visible_bias()[1].is_finite());
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for n_hidden in [usize::MAX / 2, usize::MAX] {
            let error = Init::Data.model(&data(), n_hidden, 1).unwrap_err().to_string();
            assert!(error.contains("n-hidden") && error.contains("2^32"), "{error}");
        }
        assert!(Init::Data.model(&data(), 0, 1).unwrap_err().to_string().contains("hidden layer is empty"));
    }
}
