//! Decide at the beginning of a run when it is evaluated, and how `log Z` is computed.
//!
//! The decision depends only on sizes, in seconds of a nominal machine, and never on the clock. So
//! a run on a busy machine, or one that was stopped and resumed, is evaluated at the same epochs by
//! the same method. One method is used for all epochs, because differences between methods would
//! look like progress.

use crate::partition::{NOMINAL_STEP, nominal_seconds};
use crate::settings::{CheckedSettings, EstimatorSettings, EvalEvery};

/// The share of a run's time that evaluations may take. The last model and the best one are not
/// counted.
const SHARE: f64 = 0.1;
/// The seconds that evaluations may always take.
const MIN_SECONDS: f64 = 2.0;
/// Exact values are used if at least this many fit into the budget. Fewer would make too coarse a
/// curve.
const FEW: usize = 4;
/// The largest smaller layer whose models are evaluated by tours. On MNIST, tours of models in
/// training reach a standard error of 0.03 in 0.1 to 1.1 million steps at 25 hidden units and in
/// 0.1 to 3 million at 32. At 64 hidden units, 3 million steps do not show the tail of their
/// lengths.
const MAX_TOUR_UNITS: usize = 40;
/// The expected steps of the tours of one evaluation, and their limit.
const TOUR_STEPS: (u64, u64) = (600_000, 1_200_000);
/// The number of rows that a stopping set is drawn from, one state for each.
pub(super) const SET_ROWS: usize = 20_000;
/// Steps that take as long as drawing and weighing a state of a stopping set.
const STEPS_PER_STATE: f64 = 5.0;
/// The number of chains of AIS.
pub(super) const N_CHAINS: usize = 128;
/// The smallest and the largest number of temperatures of AIS.
const N_BETAS: (usize, usize) = (1_000, 10_000);
/// The largest number of evaluations of a run. Each one makes its page and files grow.
const MOST: usize = 200;

/// How `log Z` is computed in all evaluations of a run but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By enumeration.
    Exact,
    /// By tours, if pilot tours forecast that they suffice. Otherwise the epoch has no likelihood.
    Tours {
        /// The number of steps of pilot tours and tours together.
        max_steps: u64,
    },
    /// By annealed importance sampling.
    Ais {
        /// The number of temperatures.
        n_betas: usize,
    },
}

/// When and how a run is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timetable {
    pub(super) way: Way,
    /// The seconds, on a nominal machine, that all evaluations but the last may take.
    pub(super) budget: f64,
    times: Times,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Times {
    Every(usize),
    /// These epochs, in order.
    At(Vec<usize>),
}

/// The sizes that determine the cost of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) n_visible: usize,
    /// The number of training rows.
    pub(super) n_rows: usize,
    /// The number of rows whose likelihood is computed in an evaluation.
    pub(super) n_watched: usize,
    /// The number of rows whose pseudo-likelihood is computed in an evaluation.
    pub(super) n_probed: usize,
}

impl Timetable {
    /// The timetable of a run with these settings and sizes.
    pub(super) fn new(settings: &CheckedSettings, sizes: Sizes) -> Self {
        let (n_visible, n_hidden) = (sizes.n_visible, settings.n_hidden);
        let step = NOMINAL_STEP * n_visible as f64 * (n_hidden as f64 / 32.0).max(1.0);
        let steps_per_row = match &settings.gradient {
            EstimatorSettings::Cd { k, .. } | EstimatorSettings::Pcd { k, .. } => *k,
            EstimatorSettings::Lvs(lvs) => 2 * lvs.k.limit().min(10) as usize,
            EstimatorSettings::Tempered { k, n_chains, n_rungs } => {
                (k * n_chains * n_rungs).div_ceil(settings.batch_size)
            }
            // Coupled steps cost more than plain ones, and meeting times are not known.
            EstimatorSettings::Ucd { k, max_meeting } => 10 * (*k).max(10).min(*max_meeting),
            EstimatorSettings::Exact => 1000,
        };
        let run = settings.epochs as f64 * sizes.n_rows as f64 * steps_per_row as f64 * step;
        let budget = (SHARE * run).max(MIN_SECONDS);
        // The likelihood of rows, and their pseudo-likelihood, which flips each of the visible
        // units.
        let rows = sizes.n_watched as f64 * step
            + sizes.n_probed as f64 * (n_visible * n_hidden) as f64 * NOMINAL_STEP;
        let exact = nominal_seconds(n_visible, n_hidden);
        let set = STEPS_PER_STATE * sizes.n_rows.min(SET_ROWS) as f64;
        let tours = |n_steps: u64| (set + n_steps as f64) * step;
        let fit = |seconds: f64| (budget / (rows + seconds)).round() as usize;
        let (way, n) = if exact <= tours(TOUR_STEPS.1) || fit(exact) >= FEW.min(settings.epochs) {
            (Way::Exact, fit(exact))
        } else if n_visible.min(n_hidden) <= MAX_TOUR_UNITS {
            (Way::Tours { max_steps: TOUR_STEPS.1 }, fit(tours(TOUR_STEPS.0)))
        } else {
            let chains = N_CHAINS as f64 * step;
            let n = fit(N_BETAS.0 as f64 * chains).min(coarse(settings.epochs).len()).max(1);
            let n_betas = ((budget / n as f64 - rows) / chains) as usize;
            (Way::Ais { n_betas: n_betas.clamp(N_BETAS.0, N_BETAS.1) }, n)
        };
        let times = match settings.eval_every {
            EvalEvery::Epochs(n) => Times::Every(n),
            EvalEvery::Never => Times::At(Vec::new()),
            EvalEvery::Auto => Times::At(times(settings.epochs, n)),
        };
        Self { way, budget, times }
    }

    /// Returns true if the run is evaluated after `epoch`. The last epoch of a run is always
    /// evaluated.
    pub(super) fn is_due(&self, epoch: usize) -> bool {
        match &self.times {
            Times::Every(n) => epoch > 0 && epoch.is_multiple_of(*n),
            Times::At(epochs) => epochs.binary_search(&epoch).is_ok(),
        }
    }
}

/// Returns at most `n` epochs before the last one: every epoch, or else epochs that are dense where
/// training is fast.
fn times(epochs: usize, n: usize) -> Vec<usize> {
    let regular = |every: usize| (0..epochs).filter(move |epoch| epoch.is_multiple_of(every));
    let mut both: Vec<usize> = fine(epochs).into_iter().chain(regular(epochs.div_ceil(100))).collect();
    both.sort_unstable();
    both.dedup();
    let every: Vec<usize> = if epochs <= MOST { regular(1).collect() } else { both.clone() };
    for times in [every, both, fine(epochs), coarse(epochs)] {
        if times.len() <= n {
            return times;
        }
    }
    // Spread over the coarse epochs, the first and the last included.
    let all = coarse(epochs);
    match n {
        0 => Vec::new(),
        1 => vec![all[all.len() / 2]],
        n => (0..n).map(|k| all[k * (all.len() - 1) / (n - 1)]).collect(),
    }
}

/// Epochs 0, 1, 2, 5, 10, 20, 50, …
fn coarse(epochs: usize) -> Vec<usize> {
    ladder(&[10, 20, 50], epochs)
}

/// Epochs 0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, …
fn fine(epochs: usize) -> Vec<usize> {
    ladder(&[10, 12, 15, 20, 25, 30, 40, 50, 60, 80], epochs)
}

/// 0, and the whole tenths of these numbers times powers of ten, below `epochs`.
fn ladder(steps: &[usize], epochs: usize) -> Vec<usize> {
    let powers = (0..).map(|k| 10usize.pow(k)).take_while(|power| *power < epochs);
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
    let whole = all.filter(|x| x.is_multiple_of(10)).map(|x| x / 10);
    std::iter::once(0).chain(whole.filter(|&epoch| epoch < epochs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn timetable(
        n_visible: usize,
        n_hidden: usize,
        n_rows: usize,
        epochs: usize,
    ) -> (CheckedSettings, Timetable) {
        let settings =
            Settings { n_hidden: Some(n_hidden), epochs: Some(epochs.into()), ..Default::default() };
        let settings = settings.check(n_rows).unwrap();
        let sizes = Sizes { n_visible, n_rows, n_watched: n_rows.min(10_000), n_probed: 500 };
        let timetable = Timetable::new(&settings, sizes);
        (settings, timetable)
    }

    fn due(timetable: &Timetable, epochs: usize) -> Vec<usize> {
        (0..epochs).filter(|&epoch| timetable.is_due(epoch)).collect()
    }

    #[test]
    fn small_models_are_exact_at_every_evaluation() {
        for (n_visible, n_hidden, n_rows, least) in
            [(64, 16, 1437, 100), (16, 8, 30, 100), (784, 16, 55_000, 50), (784, 25, 55_000, 4)]
        {
            let (_, timetable) = timetable(n_visible, n_hidden, n_rows, 100);
            let due = due(&timetable, 100);
            assert_eq!(timetable.way, Way::Exact, "{n_visible} × {n_hidden}");
            assert!(due.len() >= least && due[0] == 0, "{n_visible} × {n_hidden}: {due:?}");
        }
    }

    #[test]
    fn larger_models_are_watched_by_tours_and_very_large_ones_by_ais() {
        let (_, by_tours) = timetable(784, 32, 55_000, 100);
        assert_eq!(by_tours.way, Way::Tours { max_steps: TOUR_STEPS.1 });
        let due_by_tours = due(&by_tours, 100);
        assert!((3..=8).contains(&due_by_tours.len()) && due_by_tours[0] == 0, "{due_by_tours:?}");
        let (_, by_ais) = timetable(784, 500, 55_000, 100);
        assert!(
            matches!(by_ais.way, Way::Ais { n_betas } if (1_000..=10_000).contains(&n_betas)),
            "{by_ais:?}"
        );
        assert!(due(&by_ais, 100).len() >= 3, "{by_ais:?}");
    }

    /// The cost of the evaluations on a nominal machine is within the budget, for many sizes, up to
    /// half an evaluation.
    #[test]
    fn the_budget_holds() {
        for n_hidden in [4, 16, 20, 22, 24, 25, 26] {
            for epochs in [1, 3, 10, 100, 1000] {
                let (settings, timetable) = timetable(784, n_hidden, 55_000, epochs);
                if timetable.way != Way::Exact {
                    continue;
                }
                let EstimatorSettings::Lvs(lvs) = &settings.gradient else { panic!("not the default") };
                let per_row = 2.0 * f64::from(lvs.k.limit()) * 784.0 * NOMINAL_STEP;
                let budget = (SHARE * 55_000.0 * epochs as f64 * per_row).max(MIN_SECONDS);
                let cost = (due(&timetable, epochs).len() as f64 - 0.5) * nominal_seconds(784, n_hidden);
                assert!(cost <= budget, "{n_hidden} units, {epochs} epochs: {cost} of {budget}");
            }
        }
    }

    #[test]
    fn epochs_are_dense_where_learning_is_fast() {
        assert_eq!(coarse(100), [0, 1, 2, 5, 10, 20, 50]);
        assert_eq!(fine(50), [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40]);
        assert_eq!(times(100, 4), [0, 2, 10, 50]);
        assert_eq!(times(100, 7), coarse(100));
        assert_eq!(times(100, 1), [5]);
        assert_eq!(times(5, 5), [0, 1, 2, 3, 4]);
        assert_eq!((times(100, 0), times(1, 3)), (vec![], vec![0]));
        assert!(times(3000, usize::MAX).len() <= MOST && times(3000, usize::MAX).contains(&2970));
        for (epochs, n) in (1..60).flat_map(|epochs| (0..60).map(move |n| (epochs, n))) {
            let times = times(epochs, n);
            assert!(times.len() <= n && times.is_sorted_by(|a, b| a < b), "{epochs}, {n}: {times:?}");
            assert!(times.iter().all(|&epoch| epoch < epochs), "{epochs}, {n}: {times:?}");
        }
    }

    #[test]
    fn a_number_of_epochs_overrides_the_times_but_not_the_method() {
        let settings = Settings {
            n_hidden: Some(25),
            epochs: Some(20.into()),
            eval_every: Some(EvalEvery::Epochs(7)),
            ..Default::default()
        };
        let settings = settings.check(55_000).unwrap();
        let sizes = Sizes { n_visible: 784, n_rows: 55_000, n_watched: 10_000, n_probed: 500 };
        let timetable = Timetable::new(&settings, sizes);
        assert_eq!((due(&timetable, 20), timetable.way), (vec![7, 14], Way::Exact));
    }
}
