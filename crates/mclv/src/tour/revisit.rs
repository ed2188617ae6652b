//! Run tours again to sum statistics that are too many to be kept for each tour.

use super::engine::stream_of;
use super::{AddStatistics, StartedFrom, Tour, TourEngine, TourSettings, Tours};
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::progress::Progress;
use crate::rng::Purpose;
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;

/// The largest number of pieces of work that the tours of a group are cut into. It is fixed, so
/// that sums do not depend on threads; each piece holds one sum of each statistic.
const PIECES: usize = 8;

/// The number of groups of tours, and a function that gives the number of the group that a tour
/// belongs to, or `None` to leave it out.
pub type TourGroups<'a> = (usize, &'a dyn Fn(&Tour) -> Option<usize>);

impl TourEngine<'_> {
    /// Sums `n_sums` statistics over all states of the tours of each group, and returns the sums of
    /// the groups.
    ///
    /// The tours are run again, with the `settings` that they were run with.
    ///
    /// # Cost
    /// The steps of all tours in groups.
    ///
    /// # Errors
    /// If the tours are those of a mean-field chain or began at rows, or if the listener cancels.
    pub fn sums_by_group(
        &self,
        (tours, settings): (&Tours, &TourSettings),
        (n_groups, group): TourGroups<'_>,
        (n_sums, add): (usize, &AddStatistics<'_>),
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<f64>>> {
        if !tours.is_gibbs() || tours.started_from() == StartedFrom::Rows {
            return Err(Error::InvalidSetting {
                name: "tours",
                value: "mean-field, or from rows".into(),
                cure: "sums along tours need the sampled chain and starts from π_S",
            });
        }
        let mut numbers = vec![Vec::new(); n_groups];
        for (number, tour) in tours.as_slice().iter().enumerate() {
            if let Some(g) = group(tour) {
                numbers[g].push(number);
            }
        }
        // Tours of about the same length share a block, so that blocks stay full.
        for of_group in &mut numbers {
            of_group.sort_by_key(|&number| tours.as_slice()[number].length);
        }
        let pieces: Vec<(usize, &[usize])> = numbers
            .iter()
            .enumerate()
            .flat_map(|(g, of_group)| {
                let n_each = of_group.len().div_ceil(PIECES).max(1).next_multiple_of(BLOCK);
                of_group.chunks(n_each).map(move |piece| (g, piece))
            })
            .collect();
        let sums = team::try_blocks(pieces.len(), |piece| {
            let mut sums = vec![0.0; n_sums];
            for block in pieces[piece].1.chunks(BLOCK) {
                self.sum_block((tours, settings), block, add, &mut sums, progress)?;
            }
            Ok(sums)
        })?;
        let mut totals = vec![vec![0.0; n_sums]; n_groups];
        for ((g, _), sums) in pieces.into_iter().zip(sums) {
            totals[g].iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        Ok(totals)
    }

    fn sum_block(
        &self,
        (tours, settings): (&Tours, &TourSettings),
        numbers: &[usize],
        add: &AddStatistics<'_>,
        sums: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        let all = tours.as_slice();
        let states = self.set().states();
        let h = numbers.iter().flat_map(|&t| states.row(all[t].start as usize)).copied().collect();
        let clocks =
            numbers.iter().map(|&t| Clock::new(stream_of(settings, Purpose::TourStep, t), 0)).collect();
        let mut chains = Chains::new(self.rbm, VisibleChain::Sampled, h, clocks);
        let mut open: Vec<u32> = numbers.iter().map(|&t| all[t].length).collect();
        let mut scratch = Scratch::of_thread();
        let mut made = 0;
        while !open.is_empty() {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            chains.draw_visible(self.rbm, &mut scratch);
            let (n_v, n_h) = (chains.v_bits().len() / open.len(), chains.h().len() / open.len());
            for (v, h) in chains.v_bits().chunks_exact(n_v).zip(chains.h().chunks_exact(n_h)) {
                add(v, h, sums);
            }
            chains.draw_hidden(self.rbm, &mut scratch, None);
            made += 1;
            chains.retain(|place| open[place] > made);
            open.retain(|&length| length > made);
        }
        Ok(())
    }
}
