//! Pick the shortest and the longest tours, with the start and the first step of each.

use super::{Tour, TourEngine, TourSettings, Tours};
use crate::Result;
use crate::data::Rows;
use std::cmp::Reverse;
use std::collections::HashSet;

/// A tour and its first step. `start` and `next` hold a value for each visible unit.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstStep {
    /// The tour.
    pub tour: Tour,
    /// The row that the tour began at, or `E[v|h]` of the hidden state that it began in.
    pub start: Vec<f32>,
    /// The visible layer after the first step.
    pub next: Vec<f32>,
}

/// The shortest and the longest of some tours.
#[derive(Clone, Debug, PartialEq)]
pub struct Extremes {
    /// Tours that returned, the shortest first.
    pub shortest: Vec<FirstStep>,
    /// Tours that returned or were cut, the longest first.
    pub longest: Vec<FirstStep>,
}

impl TourEngine<'_> {
    /// Returns the `n` shortest tours that returned and the `n` longest tours, at most one from
    /// each start. There are fewer if tours began at fewer starts.
    ///
    /// `settings` and `rows` must be those that the tours were run with: first steps are
    /// [replayed](Self::replay).
    ///
    /// # Errors
    /// If the tours began at rows and `rows` is `None`.
    pub fn extremes(
        &self,
        tours: &Tours,
        settings: &TourSettings,
        rows: Option<&Rows>,
        n: usize,
    ) -> Result<Extremes> {
        let first_step = |number: usize| {
            let tour = tours.as_slice()[number];
            let (next, h) = self.replay(tours, settings, rows, number, 1)?;
            let start = match rows {
                Some(rows) => values(&rows.select(&[tour.start as usize])),
                None => self.rbm.mean_v_from_h(&Rows::Bits(h))?.into_values(),
            };
            Ok(FirstStep { tour, start, next: values(&next) })
        };
        let (shortest, longest) = numbers(tours.as_slice(), n);
        Ok(Extremes {
            shortest: shortest.into_iter().map(first_step).collect::<Result<_>>()?,
            longest: longest.into_iter().map(first_step).collect::<Result<_>>()?,
        })
    }
}

/// Returns the values of a single row.
fn values(row: &Rows) -> Vec<f32> {
    (0..row.n_columns()).map(|i| row.get(0, i)).collect()
}

/// Returns the numbers of the shortest tours and of the longest ones.
fn numbers(tours: &[Tour], n: usize) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..tours.len()).collect();
    // The sort is stable: among tours of one length the first ones are taken.
    order.sort_by_key(|&t| tours[t].length);
    let take = |numbers: &mut dyn Iterator<Item = usize>| {
        let mut seen = HashSet::new();
        numbers.filter(|&t| seen.insert(tours[t].start)).take(n).collect()
    };
    let shortest = take(&mut order.iter().copied().filter(|&t| tours[t].is_complete()));
    order.sort_by_key(|&t| Reverse(tours[t].length));
    (shortest, take(&mut order.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoppingSet;
    use crate::bits::BitRows;
    use crate::model::tests::random_rbm;
    use crate::progress::Silent;
    use crate::tour::End;

    #[test]
    fn extremes_are_of_different_starts() {
        let tour = |(start, length, end)| Tour { start, length, end };
        let tours =
            [(0, 1, End::OwnStart), (0, 1, End::OwnStart), (1, 9, End::Cut), (2, 3, End::Elsewhere(0))];
        let tours: Vec<Tour> = tours.into_iter().map(tour).collect();
        assert_eq!(numbers(&tours, 5), (vec![0, 3], vec![2, 3, 0]));
        assert_eq!(numbers(&tours, 1), (vec![0], vec![2]));
    }

    #[test]
    fn starts_are_rows_or_the_means_of_hidden_states() {
        let rbm = random_rbm(6, 4, 1.0, 72);
        let set = StoppingSet::new(&BitRows::from_words(4, vec![1, 6, 9]));
        let engine = TourEngine::new(&rbm, &set).unwrap();
        let settings = TourSettings { n_tours: 50, ..Default::default() };
        let tours = engine.run(&settings, &Silent).unwrap();
        let extremes = engine.extremes(&tours, &settings, None, 2).unwrap();
        let means = rbm.mean_v_from_h(&Rows::Bits(set.states().clone())).unwrap();
        for step in extremes.shortest.iter().chain(&extremes.longest) {
            assert_eq!(step.start, means.row(step.tour.start as usize));
            assert!(step.next.len() == 6 && step.next.iter().all(|&v| v == 0.0 || v == 1.0));
        }
        assert!(extremes.shortest[0].tour.length <= extremes.longest[0].tour.length);
        let rows = Rows::Bits(BitRows::from_words(6, vec![5, 40, 63]));
        let tours = engine.run_from_rows(&rows, &settings, &Silent).unwrap();
        for step in engine.extremes(&tours, &settings, Some(&rows), 2).unwrap().longest {
            assert_eq!(step.start, values(&rows.select(&[step.tour.start as usize])));
        }
        assert!(engine.extremes(&tours, &settings, None, 2).is_err());
    }
}
