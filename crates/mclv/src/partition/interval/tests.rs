//! Test that intervals cover, and that they are declined if the tail is unseen.
//!
//! **Assertion.** In each cell (a distribution and a sample size), 2,000 samples are drawn. If more
//! than 0.2 % of them get an interval (fewer cannot be measured), at least 93 % of the given
//! intervals cover. The interval comes from other values than the decision. So coverage can be
//! measured with 2,000 samples however rarely an interval is given: each measuring part is paired
//! with the deciding part of an accepted sample, which has the distribution of the given intervals.
//!
//! **False alarms.** With 2,000 measurements, a standard error is 0.57 % at 93 %, and the limit is
//! 3.5 standard errors lower, at 91 %. A distribution that covers exactly 93 % would fail for 2
//! choices of seeds in 10,000; with at most 120 cells, fewer than 3 in 100 even if all of them were
//! just at the limit. The lowest coverage seen is printed, and was 95.7 %.
//!
//! **Power.** The plain interval, given always, must fail the same test.

use super::*;
use crate::model::tests::random_rbm;
use crate::rng::{Purpose, Reader, stream};
use crate::tour::{HiddenChain, PilotSettings, StoppingSet};
use rayon::prelude::*;

const N_REPLICATES: usize = 2_000;
const LIMIT: f64 = 0.93 - 3.5 * 0.0057;
/// If fewer samples than this share get an interval, coverage cannot be measured.
const MEASURABLE: f64 = 0.002;

enum Kind {
    /// A mixture of geometric laws: (probability, mean) each.
    Geometric(Vec<(f64, f64)>),
    /// The exponential of this many standard normals.
    LogNormal(f64),
    /// A power of an exponential.
    Weibull(f64),
    Pareto(f64),
    /// `p(ξ > k)` of tours, for `k = 0, 1, …`.
    Survival(Vec<f64>),
}

struct Law {
    name: String,
    kind: Kind,
    mean: f64,
}

impl Law {
    /// A mixture of geometric laws, which is what lengths of tours are.
    fn geometric(parts: &[(f64, f64)]) -> Self {
        let total: f64 = parts.iter().map(|(p, _)| p).sum();
        let mut parts: Vec<(f64, f64)> = parts.iter().map(|(p, m)| (p / total, *m)).collect();
        parts.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mean: f64 = parts.iter().map(|(p, m)| p * m).sum();
        let second: f64 = parts.iter().map(|(p, m)| p * (2.0 * m * m - m)).sum();
        let cv = (second / mean.powi(2) - 1.0).sqrt();
        let show = |(p, m): &(f64, f64)| format!("{:.2} % of {m:.0}", 100.0 * p);
        let name = parts.iter().filter(|(_, m)| *m > 1.0).map(show).collect::<Vec<_>>().join(", ");
        Self { name: format!("cv {cv:.1}: {name}"), kind: Kind::Geometric(parts), mean }
    }

    /// Means `1, base, base², …` with probabilities that fall like their power `−index`.
    fn power(base: f64, n: i32, index: f64) -> Self {
        let parts: Vec<(f64, f64)> = (0..n).map(|j| (base.powi(j).powf(-index), base.powi(j))).collect();
        Self {
            name: format!("power {index} by {base} up to {}", base.powi(n - 1)),
            ..Self::geometric(&parts)
        }
    }

    fn log_normal(sigma: f64) -> Self {
        Self {
            name: format!("log-normal {sigma}"),
            kind: Kind::LogNormal(sigma),
            mean: (0.5 * sigma * sigma).exp(),
        }
    }

    /// `1/shape` is `n/2`: the mean is `Γ(1 + n/2)`.
    fn weibull(n: u32) -> Self {
        let mut mean = if n.is_multiple_of(2) { 1.0 } else { 0.5 * std::f64::consts::PI.sqrt() };
        let mut x = if n.is_multiple_of(2) { 1.0 } else { 1.5 };
        while x < 0.5 * f64::from(n) + 0.75 {
            mean *= x;
            x += 1.0;
        }
        let shape = 2.0 / f64::from(n);
        Self { name: format!("Weibull {shape:.2}"), kind: Kind::Weibull(shape), mean }
    }

    fn pareto(index: f64) -> Self {
        Self { name: format!("Pareto {index}"), kind: Kind::Pareto(index), mean: index / (index - 1.0) }
    }

    /// Exactly the tours of a random model between visits to states that a short chain has visited.
    fn tours(scale: f64, n_steps: u32, seed: u64) -> Self {
        let rbm = random_rbm(9, 7, scale, seed);
        let pilot = PilotSettings { n_chains: 1, burn_in: 100, n_steps, seed };
        let set = StoppingSet::from_pilot(&rbm, None, &pilot).unwrap();
        let chain = HiddenChain::new(&rbm).unwrap();
        let tours = chain.tours(&set).unwrap();
        let (mean, second) = tours.length_moments();
        let cv = (second / mean.powi(2) - 1.0).sqrt();
        let survival = tours.survival(20_000);
        assert!(survival[20_000] < 1e-9, "choose another model: mean {mean}, cv {cv}, {}", survival[20_000]);
        let name = format!("tours of a model, mean {mean:.1}, cv {cv:.1}");
        Self { name, kind: Kind::Survival(survival), mean }
    }

    /// Fill `x` with independent draws.
    fn fill(&self, rng: &mut Reader, x: &mut [f64]) {
        match &self.kind {
            Kind::Geometric(parts) => fill_geometric(parts, rng, x),
            Kind::LogNormal(sigma) => x.iter_mut().for_each(|x| *x = (sigma * rng.normal()).exp()),
            Kind::Weibull(shape) => x.iter_mut().for_each(|x| *x = (-rng.uniform().ln()).powf(1.0 / shape)),
            Kind::Pareto(index) => x.iter_mut().for_each(|x| *x = rng.uniform().powf(-1.0 / index)),
            Kind::Survival(survival) => x.iter_mut().for_each(|x| {
                let u = rng.uniform();
                *x = survival.partition_point(|&p| p > u).max(1) as f64;
            }),
        }
    }

    /// Returns true if each kind that makes more than a hundredth of the mean is expected six times
    /// in `n` values.
    fn is_seen(&self, n: usize) -> bool {
        let Kind::Geometric(parts) = &self.kind else { return true };
        parts.iter().all(|(p, m)| p * m < 0.01 * self.mean || p * n as f64 >= 6.0)
    }
}

/// Most values are 1: only the others are drawn, with the gaps between them.
fn fill_geometric(parts: &[(f64, f64)], rng: &mut Reader, x: &mut [f64]) {
    x.fill(1.0);
    let others: Vec<(f64, f64)> = parts.iter().copied().filter(|(_, m)| *m > 1.0).collect();
    let p_other: f64 = others.iter().map(|(p, _)| p).sum();
    let mut at = 0;
    loop {
        if p_other < 1.0 {
            at += (rng.uniform().ln() / (-p_other).ln_1p()) as usize;
        }
        if at >= x.len() {
            return;
        }
        let mut u = rng.uniform() * p_other;
        for &(p, mean) in &others {
            if u < p {
                // Given `u < p`, `u / p` is uniform.
                x[at] = ((u / p).ln() / (-1.0 / mean).ln_1p()).floor() + 1.0;
                break;
            }
            u -= p;
        }
        at += 1;
    }
}

/// The measurements of a cell.
struct Cell {
    /// Share of samples with an interval.
    given: f64,
    /// The coverage of the given intervals; `None` if there are none.
    coverage: Option<f64>,
    /// The median width of the given intervals over the mean.
    width: f64,
    /// Coverage of the plain interval in all samples.
    plain: f64,
}

fn simulate(law: &Law, n: usize, seed: u64) -> Cell {
    assert!(n >= MIN_VALUES);
    let one = |replicate: usize| {
        let mut rng = stream(seed, Purpose::SelfTest, (n as u64) << 20 | replicate as u64).reader();
        let mut x = vec![0.0; n];
        law.fill(&mut rng, &mut x);
        let m = Moments::new(&x);
        let plain = (m.mean - law.mean).abs() <= Z * (m.two / (m.n - 1.0) / m.n).sqrt();
        let (deciding, measuring) = split(&x);
        // As in `mean_interval`, but without the hull with the mean of all, which only widens it.
        (decide(&deciding).ok(), Moments::new(&measuring), most(&measuring), plain)
    };
    let samples: Vec<_> = (0..N_REPLICATES).into_par_iter().map(one).collect();
    let accepted: Vec<f64> = samples.iter().filter_map(|(largest, ..)| *largest).collect();
    let share = |count: usize| count as f64 / N_REPLICATES as f64;
    let intervals: Vec<(f64, f64)> = samples
        .iter()
        .zip(accepted.iter().cycle())
        .map(|((_, seen, most, _), largest)| (seen.hall(Z), seen.with(N_UNSEEN, most.max(*largest)).hall(-Z)))
        .collect();
    let covers = intervals.iter().filter(|(low, high)| (*low..=*high).contains(&law.mean)).count();
    let mut widths: Vec<f64> = intervals.iter().map(|(low, high)| (high - low) / law.mean).collect();
    widths.sort_by(f64::total_cmp);
    Cell {
        given: share(accepted.len()),
        coverage: (!accepted.is_empty()).then(|| share(covers)),
        width: widths.get(N_REPLICATES / 2).copied().unwrap_or(f64::NAN),
        plain: share(samples.iter().filter(|(.., plain)| *plain).count()),
    }
}

/// Prints a cell and checks the assertion.
fn check(law: &Law, n: usize, seed: u64) -> Cell {
    let cell = simulate(law, n, seed);
    let Cell { given, coverage, width, plain } = &cell;
    let shown = coverage.map_or("    -".into(), |c| format!("{c:.3}"));
    eprintln!("{:>7} {given:6.3} {shown} {width:7.3} {plain:6.3}  {}", n, law.name);
    if *given > MEASURABLE {
        assert!(coverage.is_some_and(|c| c >= LIMIT), "{}, {n}: covers {shown} of {given}", law.name);
    }
    cell
}

/// The distributions on which the constants were chosen.
#[test]
fn intervals_cover_where_they_are_given() {
    eprintln!("      n  given cover   width  plain  law");
    let laws = [
        Law::geometric(&[(1.0, 4.0)]),
        Law::geometric(&[(1.0, 1.2)]),
        Law::geometric(&[(0.9893, 1.0), (0.0107, 280.0)]),
        Law::geometric(&[(0.965, 1.0), (0.032, 5.0), (0.003, 330.0)]),
        Law::geometric(&[(0.9695, 1.0), (0.03, 50.0), (0.0005, 600.0)]),
        Law::geometric(&[(0.9898, 1.0), (0.01, 100.0), (0.0002, 2000.0)]),
        Law::power(4.0, 6, 1.3),
        Law::power(4.0, 6, 1.8),
        Law::power(10.0, 4, 1.5),
        Law::power(2.0, 11, 2.8),
    ];
    let mut plain_fails = 0;
    for (k, law) in laws.iter().enumerate() {
        for n in [2_000, 5_000, 20_000] {
            let cell = check(law, n, 60 + k as u64);
            plain_fails += usize::from(cell.plain < LIMIT);
            let (light, moderate, poor) = (k < 2, k == 2 && n == 20_000, k == 2 && n == 2_000);
            assert!(!light || cell.given > 0.99, "{}, {n}: given {}", law.name, cell.given);
            assert!(!moderate || cell.given > 0.95, "{}, {n}: given {}", law.name, cell.given);
            assert!(!poor || cell.given < 0.1, "{}, {n}: given {}", law.name, cell.given);
        }
    }
    // The control: the plain interval, given always.
    assert!(plain_fails >= 15, "the plain interval must be caught: {plain_fails} of 30");
}

/// Other families, tours of models, and mixtures drawn at random. Pareto, Weibull and log-normal
/// distributions were examined before the number of unseen values was fixed; the tours of models
/// and these mixtures were not. The rule that kinds must be expected six times comes from 80 other
/// mixtures drawn in the same way.
#[test]
fn intervals_cover_for_other_families() {
    eprintln!("      n  given cover   width  plain  law");
    let mut laws: Vec<Law> = [2.1, 2.5, 3.0, 5.0].map(Law::pareto).into();
    laws.extend([2, 3, 4, 5, 6].map(Law::weibull));
    laws.extend([0.5, 1.0, 1.5, 2.0, 2.5].map(Law::log_normal));
    let models = [(1.0, 3, 701), (1.3, 5, 702), (1.6, 10, 703), (1.8, 30, 704)];
    laws.extend(models.map(|(scale, n_steps, seed)| Law::tours(scale, n_steps, seed)));
    laws.extend(random_mixtures(12, 77));
    let mut plain_fails = 0;
    for (k, law) in laws.iter().enumerate() {
        for n in [2_000, 5_000, 20_000] {
            if !law.is_seen(n) || n == 20_000 && k % 3 != 0 {
                continue;
            }
            plain_fails += usize::from(check(law, n, 160 + k as u64).plain < LIMIT);
        }
    }
    assert!(plain_fails >= 5, "the plain interval must be caught: {plain_fails}");
}

/// Up to four kinds of tours besides those of one step, coefficients of variation from 3 to 15.
fn random_mixtures(n: usize, seed: u64) -> Vec<Law> {
    let mut rng = stream(seed, Purpose::SelfTest, 0).reader();
    let mut laws = Vec::new();
    while laws.len() < n {
        let longer = 0.01f64.powf(rng.uniform());
        let index = 0.8 + 1.4 * rng.uniform();
        let kinds: Vec<(f64, f64)> = (0..2 + rng.below(3))
            .map(|_| {
                let mean = 2.0 * 1000f64.powf(rng.uniform());
                (-rng.uniform().ln() * mean.powf(-index), mean)
            })
            .collect();
        let total: f64 = kinds.iter().map(|(w, _)| w).sum();
        let mut parts: Vec<(f64, f64)> = kinds.iter().map(|(w, m)| (longer * w / total, *m)).collect();
        parts.push((1.0 - longer, 1.0));
        let mean: f64 = parts.iter().map(|(p, m)| p * m).sum();
        let second: f64 = parts.iter().map(|(p, m)| p * (2.0 * m * m - m)).sum();
        if (3.0..15.0).contains(&(second / (mean * mean) - 1.0).sqrt()) {
            laws.push(Law::geometric(&parts));
        }
    }
    laws
}

/// Values are 1 except for rare values of 1,000. Intervals are declined while the rare values are
/// few, and cover the mean when they are not.
#[test]
fn rare_events_are_declined_until_there_are_enough() {
    for n in [2_000usize, 20_000] {
        for (expected, least, most) in
            [(0.5, 0.0, 0.002), (2.0, 0.0, 0.006), (8.0, 0.0, 0.25), (30.0, 0.85, 1.0), (60.0, 0.99, 1.0)]
        {
            let p = expected / n as f64;
            let mean = 1.0 + 999.0 * p;
            let (mut given, mut covered) = (0, 0);
            for replicate in 0..N_REPLICATES {
                let mut rng = stream(90, Purpose::SelfTest, (n as u64) << 20 | replicate as u64).reader();
                let mut x = vec![1.0; n];
                // The gap to the next rare event is geometric.
                let gap = |rng: &mut Reader| (rng.uniform().ln() / (-p).ln_1p()) as usize;
                let mut at = gap(&mut rng);
                while at < n {
                    x[at] = 1000.0;
                    at += 1 + gap(&mut rng);
                }
                if let Ok((low, high)) = mean_interval(&x) {
                    given += 1;
                    covered += usize::from((low..=high).contains(&mean));
                }
            }
            let share = f64::from(given) / N_REPLICATES as f64;
            assert!((least..=most).contains(&share), "{n}, {expected} expected: given {share}");
            if given > 0 {
                let coverage = covered as f64 / f64::from(given);
                // Few intervals may be given here, so the limit depends on their number.
                let limit = 0.93 - 3.5 * (0.93 * 0.07 / f64::from(given)).sqrt();
                assert!(coverage >= limit, "{n}, {expected} expected: {coverage} of {given}");
            }
        }
    }
}

/// The limit of the method: intervals cover too rarely if a kind of tour makes a tenth of the mean
/// but is expected only once in the sample.
#[test]
fn what_left_no_trace_is_not_covered_by_anyone() {
    let law = Law::geometric(&[(0.937, 1.0), (0.063, 4.0), (0.0002, 600.0)]);
    assert!(!law.is_seen(5_000));
    let cell = simulate(&law, 5_000, 95);
    assert!(cell.given > 0.5 && cell.coverage.is_some_and(|c| c < 0.8), "the notes would be out of date");
}

#[test]
fn the_reasons_to_decline_are_told_apart() {
    assert_eq!(mean_interval(&[1.0; 10]), Err(Declined::TooFew { n: 10 }));
    assert_eq!(mean_interval(&[1.0; 2000]), Err(Declined::NoVariation));
    let mut few = vec![1.0; 2000];
    // All three large values are deciding values, because their indices are multiples of four.
    few.iter_mut().step_by(4).take(3).for_each(|x| *x = 50.0);
    let result = mean_interval(&few);
    assert!(matches!(result, Err(Declined::FewCarriers { n }) if (n - 3.0).abs() < 1e-9), "{result:?}");
    let text = Declined::FewCarriers { n: 1.62 }.to_string();
    assert!(text.contains("as few as 1.6"), "{text}");
    // Only deciding values vary. The interval still extends above the others, which are all 1.
    few.iter_mut().step_by(4).take(8).for_each(|x| *x = 50.0);
    let (low, high) = mean_interval(&few).unwrap();
    assert!(low == 1.0 && high > 1.1, "{low} {high}");
}

/// Tours that are given in order of their strata: both parts see all strata.
#[test]
fn both_parts_see_the_whole_sample() {
    let x: Vec<f64> = (1..=4000).map(f64::from).collect();
    let (deciding, measuring) = split(&x);
    assert_eq!((deciding.len(), measuring.len()), (1000, 3000));
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    assert!((mean(&deciding) - mean(&measuring)).abs() <= 2.0);
}

#[test]
fn without_skewness_the_interval_is_the_plain_one() {
    let x: Vec<f64> = (1..=1001).map(f64::from).collect();
    let m = Moments::new(&x);
    let half = Z * (m.two / (m.n - 1.0) / m.n).sqrt();
    assert!((m.hall(Z) - (m.mean - half)).abs() < 1e-3 * half);
    assert!((m.hall(-Z) - (m.mean + half)).abs() < 1e-3 * half);
    let more = m.with(2.0, 7.0);
    let again = Moments::new(&[&x[..], &[7.0, 7.0]].concat());
    assert!(
        (more.three - again.three).abs() < 1e-9 * m.two.powf(1.5)
            && (more.two / again.two - 1.0).abs() < 1e-12
    );
}
