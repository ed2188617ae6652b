//! Turn free energies and `log Z` into likelihoods with error bars.

use crate::Result;
use crate::data::Rows;
use crate::model::Rbm;
use crate::partition::{Guarantee, LogZ};
use serde::{Deserialize, Serialize};

/// The average log-likelihood of a set of rows, in nats per row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// The mean of `log p(v)` over the rows.
    pub mean: f64,
    /// The standard error of the mean from the choice of rows: how much the mean would vary with
    /// other rows. `None` for a single row.
    #[serde(default)]
    pub std_err_rows: Option<f64>,
    /// The standard error from `log Z`, common to all rows. It is 0 if `log Z` is exact, and `None`
    /// if it is not known.
    #[serde(default)]
    pub std_err_log_z: Option<f64>,
    /// A 95 % interval for the mean over exactly these rows, if `log Z` has an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The guarantee of `log Z`. The likelihood errs to the other side: see
    /// [`Guarantee::of_likelihood`].
    pub guarantee_log_z: Guarantee,
    /// The smallest and the largest `log p(v)`.
    pub range: (f64, f64),
    /// The number of rows.
    pub n_rows: usize,
    /// True if some rows have values other than 0 and 1. `mean` is then not a log-probability, but
    /// below the expected log-likelihood of the rows binarised at random.
    #[serde(default)]
    pub is_grey: bool,
}

impl Likelihood {
    /// Returns the guarantee of the mean, as a likelihood of rows of 0 and 1.
    pub fn guarantee(&self) -> &'static str {
        match (self.is_grey, self.guarantee_log_z) {
            (false, log_z) => log_z.of_likelihood(),
            (true, Guarantee::Exact) => "a lower bound on the expectation over binarised rows",
            (true, _) => "none: grey values err to one side, log Z may err to the other",
        }
    }
}

impl Rbm {
    /// Returns `log p(v) = −F(v) − log Z` of each row.
    ///
    /// For grey rows this is a lower bound on the expected log-likelihood of their
    /// Bernoulli-binarised versions, not itself a log-probability. Never compare it across
    /// binarisations.
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn log_likelihoods(&self, rows: &Rows, log_z: &LogZ) -> Result<Vec<f64>> {
        let mut values = self.free_energy(rows)?;
        values.iter_mut().for_each(|f| *f = -*f - log_z.value);
        Ok(values)
    }

    /// Returns the average log-likelihood of `rows`, with its error bars.
    ///
    /// ```
    /// use mclv::{Rbm, bits::BitRows, data::Rows, partition, progress::Silent};
    /// let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.0; 3], &[0.0; 2])?;
    /// let log_z = partition::exact(&rbm, &Default::default(), &Silent)?;
    /// let likelihood = rbm.log_likelihood(&Rows::Bits(BitRows::zeros(4, 3)), &log_z)?;
    /// assert!((likelihood.mean + 3.0 * 2f64.ln()).abs() < 1e-12);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rows do not have `n_visible` columns.
    pub fn log_likelihood(&self, rows: &Rows, log_z: &LogZ) -> Result<Likelihood> {
        let values = self.log_likelihoods(rows, log_z)?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let range =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        Ok(Likelihood {
            mean,
            std_err_rows: (values.len() > 1).then(|| (variance / n).sqrt()),
            std_err_log_z: log_z.std_err,
            interval: log_z.interval.map(|(low, high)| (mean + log_z.value - high, mean + log_z.value - low)),
            guarantee_log_z: log_z.guarantee,
            range,
            n_rows: values.len(),
            is_grey: !matches!(rows, Rows::Bits(_)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{all_states, random_rbm};
    use crate::progress::Silent;

    #[test]
    fn probabilities_of_all_states_sum_to_one() {
        let rbm = random_rbm(10, 6, 1.0, 70);
        let log_z = crate::partition::exact(&rbm, &Default::default(), &Silent).unwrap();
        let log_p = rbm.log_likelihoods(&Rows::Bits(all_states(10)), &log_z).unwrap();
        assert!((log_p.iter().map(|x| x.exp()).sum::<f64>() - 1.0).abs() < 1e-10);
        let average = rbm.log_likelihood(&Rows::Bits(all_states(10)), &log_z).unwrap();
        assert!((average.mean - log_p.iter().sum::<f64>() / 1024.0).abs() < 1e-12);
        assert!(
            average.range.0 < average.mean
                && average.mean < average.range.1
                && average.std_err_rows.unwrap() > 0.0
        );
        assert_eq!(average.interval, None);
    }

    #[test]
    fn the_interval_of_log_z_is_turned_round() {
        let rbm = random_rbm(4, 2, 1.0, 71);
        let exact = crate::partition::exact(&rbm, &Default::default(), &Silent).unwrap();
        let rows = Rows::Bits(all_states(4));
        let mean = rbm.log_likelihood(&rows, &exact).unwrap().mean;
        let interval = Some((exact.value - 0.1, exact.value + 0.3));
        let low = LogZ { value: exact.value - 0.05, interval, guarantee: Guarantee::LowerBound, ..exact };
        let average = rbm.log_likelihood(&rows, &low).unwrap();
        let (from, to) = average.interval.unwrap();
        assert!((from - (mean - 0.3)).abs() < 1e-9 && (to - (mean + 0.1)).abs() < 1e-9);
        // Too small a Z makes the likelihood look better than it is.
        assert!(average.mean > mean);
        assert_eq!(average.guarantee_log_z.of_likelihood(), "optimistic on average");
    }
}
