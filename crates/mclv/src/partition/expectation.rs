//! Estimate expectations of statistics of a model, along the tours that estimate `log Z`.

use super::{Along, Guarantee, Inputs, LogZ, Method, MethodSettings, Plan};
use crate::model::Rbm;
use crate::progress::Progress;
use crate::tour::{AddStatistics, Estimate, EstimateGuarantee};
use crate::{Error, Result};

/// Expectations of statistics, with the `log Z` of the same tours.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectations {
    /// `log Z` by the tours. If it has no interval, do not trust the error bars of the estimates.
    pub log_z: LogZ,
    /// An estimate of `E_p[f]` for each statistic `f`. `None` if no tour reached the model.
    pub estimates: Option<Vec<Estimate>>,
}

/// Estimates `E_p[f]` of `n_statistics` statistics of states of the model, by tours with or without a
/// ladder. With no `method`, tours without a ladder give way to tours with one if they do not return.
///
/// `add(v, h, sums)` adds the statistics of a state, given as packed bits. Each estimate is the sum
/// of a statistic over all visits of the model, divided by the number of visits.
///
/// # Guarantee
/// The sums are those of Kac's formula, which are unbiased for `Z·E_p[f]` and for `Z` up to a known
/// factor. Their ratio is consistent ([`EstimateGuarantee::Consistent`]): its bias is of order one
/// over the number of tours. With a step budget it is so only if no tour is cut
/// ([`EstimateGuarantee::UnlessCut`]). Standard errors come from the differences between tours, which
/// are independent (delta method).
///
/// # Cost
/// That of the tours, and one call of `add` for each visit of the model.
///
/// ```
/// use mclv::partition::{Effort, Inputs, Method, MethodSettings, expectations};
/// use mclv::{Rbm, progress::Silent};
/// // Three independent units that are on with probability one half.
/// let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.0; 3], &[0.0; 2])?;
/// let n_on = |v: &[u64], _h: &[u64], sums: &mut [f64]| sums[0] += f64::from(v[0].count_ones());
/// let settings = MethodSettings { effort: Effort::Tours(4_000), ..Default::default() };
/// let found = expectations(&rbm, Some(Method::Ladder), &Inputs::default(), &settings, 1, &n_on, &Silent)?;
/// let mean = found.estimates.unwrap()[0];
/// assert!((mean.value - 1.5).abs() < 4.0 * mean.std_err && mean.std_err < 0.05);
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If `method` makes no tours, and those of [`Plan::run`].
pub fn expectations(
    rbm: &Rbm,
    method: Option<Method>,
    inputs: &Inputs<'_>,
    settings: &MethodSettings,
    n_statistics: usize,
    add: &AddStatistics<'_>,
    progress: &dyn Progress,
) -> Result<Expectations> {
    let methods = match method {
        None => vec![Method::Mclv, Method::Ladder],
        Some(method @ (Method::Mclv | Method::Ladder)) => vec![method],
        Some(method) => {
            let cure = "choose mclv or ladder, which make tours";
            return Err(Error::InvalidSetting { name: "method", value: method.to_string(), cure });
        }
    };
    let along = Along {
        n_statistics: n_statistics + 1,
        // The last statistic is the number of visits.
        add: &|v, h, sums| {
            let (statistics, visits) = sums.split_at_mut(n_statistics);
            add(v, h, statistics);
            visits[0] += 1.0;
        },
        n_tours: (0, usize::MAX),
    };
    let (log_z, sums) = Plan::of_methods(rbm, methods, settings).run_along(inputs, &along, progress)?;
    let guarantee = match log_z.guarantee {
        Guarantee::UnbiasedZ => EstimateGuarantee::Consistent,
        Guarantee::LowerBound => EstimateGuarantee::UnlessCut,
        _ => EstimateGuarantee::None,
    };
    let estimate = |(value, std_err)| Estimate { value, std_err, guarantee };
    let estimates = ratios(&sums, n_statistics).map(|all| all.into_iter().map(estimate).collect());
    Ok(Expectations { log_z, estimates })
}

/// Returns the ratio of each sum to the number of visits, with its standard error. `sums` holds the
/// sums of the statistics and the number of visits of each tour. `None` if there were no visits.
fn ratios(sums: &[f64], n_statistics: usize) -> Option<Vec<(f64, f64)>> {
    let tours = || sums.chunks_exact(n_statistics + 1);
    let (n, visits) = (tours().len() as f64, tours().map(|tour| tour[n_statistics]).sum::<f64>());
    let ratio = |statistic: usize| {
        let value = tours().map(|tour| tour[statistic]).sum::<f64>() / visits;
        let residuals = tours().map(|tour| (tour[statistic] - value * tour[n_statistics]).powi(2));
        let variance = if n > 1.0 { residuals.sum::<f64>() * n / (n - 1.0) } else { f64::INFINITY };
        (value, variance.sqrt() / visits)
    };
    (visits > 0.0).then(|| (0..n_statistics).map(ratio).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::data::Rows;
    use crate::model::tests::random_rbm;
    use crate::partition::{Budget, Effort};
    use crate::progress::Silent;

    /// `E_p[v_i]` for each visible unit, by enumeration.
    fn exact_means(rbm: &Rbm) -> Vec<f64> {
        let states = BitRows::all_states(rbm.n_visible());
        let free = rbm.free_energy(&Rows::Bits(states.clone())).unwrap();
        let weights: Vec<f64> = free.iter().map(|f| (-f).exp()).collect();
        let mean = |i: usize| {
            let on = |r: usize| f64::from(u8::from(states.row(r)[0] >> i & 1 == 1));
            weights.iter().enumerate().map(|(r, weight)| on(r) * weight).sum::<f64>()
        };
        (0..rbm.n_visible()).map(|i| mean(i) / weights.iter().sum::<f64>()).collect()
    }

    fn add_units(n: usize) -> impl Fn(&[u64], &[u64], &mut [f64]) + Sync {
        move |v, _, sums| (0..n).for_each(|i| sums[i] += f64::from(u8::from(v[0] >> i & 1 == 1)))
    }

    /// Six models by two methods, five numbers each: 60 numbers |z| < 5 (false alarm 4e-5).
    #[test]
    fn expectations_are_those_of_enumeration() {
        for seed in 0..6 {
            let rbm = random_rbm(5, 4, 0.8 + 0.2 * seed as f64, 1_200 + seed);
            let rows = Rows::Bits(BitRows::from_words(5, vec![3, 9, 30]));
            let inputs = Inputs { rows: Some(&rows), ..Inputs::default() };
            let settings = MethodSettings { effort: Effort::Tours(8_000), seed, ..Default::default() };
            let exact = exact_means(&rbm);
            for method in [Method::Mclv, Method::Ladder] {
                let add = add_units(5);
                let found = expectations(&rbm, Some(method), &inputs, &settings, 5, &add, &Silent).unwrap();
                assert_eq!(found.log_z.method, method);
                for (estimate, exact) in found.estimates.unwrap().iter().zip(&exact) {
                    let z = (estimate.value - exact) / estimate.std_err;
                    assert!(z.abs() < 5.0, "model {seed}, {method}: z = {z}");
                    assert_eq!(estimate.guarantee, EstimateGuarantee::UnlessCut);
                }
            }
        }
    }

    /// Negative control: the mean over tours of the mean along a tour is not an expectation. The model
    /// has two modes; tours stay longer in the heavier one.
    #[test]
    fn averages_of_tours_are_no_expectations() {
        let rbm = Rbm::new(5, 1, &[6.0; 5], &[-3.0; 5], &[-13.5]).unwrap();
        let budget = Budget { n_scouts: 0, ..Budget::COMMAND };
        let settings = MethodSettings { effort: Effort::Tours(20_000), budget, ..Default::default() };
        let add = |v: &[u64], h: &[u64], sums: &mut [f64]| {
            add_units(5)(v, h, sums);
            sums[5] += 1.0;
        };
        let along = Along { n_statistics: 6, add: &add, n_tours: (0, usize::MAX) };
        let plan = Plan::of_methods(&rbm, vec![Method::Ladder], &settings);
        let (_, sums) = plan.run_along(&Inputs::default(), &along, &Silent).unwrap();
        let largest_z = |sums: &[f64]| {
            let ratios = ratios(sums, 5).unwrap().into_iter().zip(exact_means(&rbm));
            ratios.map(|((value, std_err), exact)| ((value - exact) / std_err).abs()).fold(0.0, f64::max)
        };
        let averaged: Vec<f64> = sums
            .chunks_exact(6)
            .filter(|tour| tour[5] > 0.0)
            .flat_map(|tour| tour.iter().map(|sum| sum / tour[5]).collect::<Vec<f64>>())
            .collect();
        let (right, wrong) = (largest_z(&sums), largest_z(&averaged));
        assert!(right < 5.0 && wrong > 5.0, "{right}, {wrong}");
    }

    #[test]
    fn methods_without_tours_are_refused_and_no_visit_gives_no_estimate() {
        let rbm = random_rbm(5, 4, 1.0, 1_206);
        let settings = MethodSettings::default();
        let by_ais =
            expectations(&rbm, Some(Method::Ais), &Inputs::default(), &settings, 5, &add_units(5), &Silent);
        assert!(by_ais.unwrap_err().to_string().contains("choose mclv or ladder"));
        assert!(ratios(&[0.0, 0.0, 0.0, 0.0], 1).is_none());
        assert_eq!(ratios(&[3.0, 4.0], 1).unwrap(), [(0.75, f64::INFINITY)]);
    }
}
