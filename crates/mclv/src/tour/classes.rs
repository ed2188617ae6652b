//! Group tours by the class of the data rows that their starts come from.

use super::record::Tours;
use serde::{Deserialize, Serialize};

/// Tours of more steps than this are called long.
const LONG: u32 = 100;

/// Statistics of the tours that began in one class of the data.
///
/// A start that was drawn from rows of several classes counts for each class with its share of the
/// draws, so numbers of tours need not be whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassTours {
    /// The number of tours.
    pub n_tours: f64,
    /// The share of tours that returned after one step.
    pub one_step: f64,
    /// The mean length of the tours. A cut tour counts with the steps that it made.
    pub mean_length: f64,
    /// The share of tours of more than 100 steps. `None` if tours were cut before that.
    pub longer_than_100: Option<f64>,
    /// The number of tours that were cut.
    pub n_unfinished: f64,
}

impl Tours {
    /// Groups tours by the class of their start. A class where no tour began has `None`.
    ///
    /// `owners` are pairs of a start, as [`Tour::start`](super::Tour::start) names it, and a class
    /// below `n_classes`. A start with several pairs is shared by their classes in equal parts.
    ///
    /// ```
    /// # use mclv::{Rbm, StoppingSet, bits::BitRows, progress::Silent, tour::{TourEngine, TourSettings}};
    /// let rbm = Rbm::new(3, 2, &[0.0; 6], &[0.0; 3], &[0.0; 2])?;
    /// let set = StoppingSet::new(&BitRows::all_states(2));
    /// let tours = TourEngine::new(&rbm, &set)?.run(&TourSettings::default(), &Silent)?;
    /// // State 0 was drawn from a row of class 0, state 1 from one of either class, the others from class 1.
    /// let by_class = tours.by_class(&[(0, 0), (1, 0), (1, 1), (2, 1), (3, 1)], 2);
    /// let share = by_class[0].unwrap().n_tours / tours.n_tours() as f64;
    /// assert!((share - 0.375).abs() < 0.03);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Panics
    /// If a class is not below `n_classes`.
    pub fn by_class(&self, owners: &[(u32, u32)], n_classes: usize) -> Vec<Option<ClassTours>> {
        let largest = self.as_slice().iter().map(|t| t.start).chain(owners.iter().map(|o| o.0)).max();
        let n_starts = largest.map_or(0, |s| s as usize + 1);
        // For each start: tours, one-step tours, steps, long tours, unfinished tours.
        let mut of_start = vec![[0.0; 5]; n_starts];
        for tour in self.as_slice() {
            let is = |yes: bool| f64::from(u8::from(yes));
            let one_step = tour.is_complete() && tour.length == 1;
            let counts =
                [1.0, is(one_step), f64::from(tour.length), is(tour.length > LONG), is(!tour.is_complete())];
            of_start[tour.start as usize].iter_mut().zip(counts).for_each(|(s, x)| *s += x);
        }
        let mut n_owners = vec![0u32; n_starts];
        owners.iter().for_each(|&(start, _)| n_owners[start as usize] += 1);
        let mut of_class = vec![[0.0; 5]; n_classes];
        for &(start, class) in owners {
            let share = 1.0 / f64::from(n_owners[start as usize]);
            let counts = &of_start[start as usize];
            of_class[class as usize].iter_mut().zip(counts).for_each(|(s, x)| *s += share * x);
        }
        let knows_long = self.as_slice().iter().all(|t| t.is_complete() || t.length > LONG);
        let of_counts = |[n_tours, one_step, steps, long, n_unfinished]: [f64; 5]| {
            (n_tours > 0.0).then(|| ClassTours {
                n_tours,
                one_step: one_step / n_tours,
                mean_length: steps / n_tours,
                longer_than_100: knows_long.then_some(long / n_tours),
                n_unfinished,
            })
        };
        of_class.into_iter().map(of_counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tour::{End, StartedFrom, Tour};

    fn tours(of: &[(u32, u32, End)]) -> Tours {
        Tours {
            tours: of.iter().map(|&(start, length, end)| Tour { start, length, end }).collect(),
            started_from: StartedFrom::Pi,
            is_gibbs: true,
            has_budget: false,
            log_z_s: 0.0,
            n_statistics: 0,
            sums: Vec::new(),
            n_steps: 0,
            seconds: 0.0,
        }
    }

    #[test]
    fn a_start_counts_for_each_class_with_its_share() {
        let end = End::OwnStart;
        let tours = tours(&[(0, 1, end), (0, 3, end), (2, 101, end), (2, 7, End::Elsewhere(0))]);
        // Start 0 is half of class 0, half of class 1; start 2 is two thirds of class 1, one third
        // of class 2.
        let owners = [(0, 0), (0, 1), (1, 3), (2, 1), (2, 2), (2, 1)];
        let by_class = tours.by_class(&owners, 5);
        let class = |k: usize| by_class[k].unwrap();
        let first = ClassTours {
            n_tours: 1.0,
            one_step: 0.5,
            mean_length: 2.0,
            longer_than_100: Some(0.0),
            n_unfinished: 0.0,
        };
        assert_eq!(class(0), first);
        assert!((class(1).n_tours - 7.0 / 3.0).abs() < 1e-12);
        assert!((class(1).mean_length - (2.0 + 72.0) / (7.0 / 3.0)).abs() < 1e-12);
        assert!((class(2).mean_length, class(2).longer_than_100) == (54.0, Some(0.5)));
        assert!(by_class[3].is_none() && by_class[4].is_none());
        let total: f64 = by_class.iter().flatten().map(|c| c.n_tours).sum();
        assert!((total - 4.0).abs() < 1e-12);
    }

    #[test]
    fn tours_cut_early_do_not_know_whether_they_are_long() {
        let of = |length| tours(&[(0, 1, End::OwnStart), (0, length, End::Cut)]).by_class(&[(0, 0)], 1);
        let early = of(100)[0].unwrap();
        assert_eq!((early.longer_than_100, early.n_unfinished, early.one_step), (None, 1.0, 0.5));
        assert_eq!(of(101)[0].unwrap().longer_than_100, Some(0.5));
        assert_eq!(of(1)[0].unwrap().one_step, 0.5, "a tour cut after one step has not returned");
    }
}
