//! Sum statistics along the tours of an estimate of `log Z`.

use crate::tour::AddStatistics;

/// Statistics to sum along each tour of an estimate, and limits on the number of tours.
#[derive(Clone, Copy)]
pub(crate) struct Along<'a> {
    pub(crate) n_statistics: usize,
    /// Adds the statistics of a state.
    pub(crate) add: &'a AddStatistics<'a>,
    /// The least and the most tours, if the caller does not name a number.
    pub(crate) n_tours: (usize, usize),
}

impl Along<'_> {
    /// No statistics and no limits.
    pub(crate) const NOTHING: Along<'static> =
        Along { n_statistics: 0, add: &|_, _, _| {}, n_tours: (0, usize::MAX) };
}
