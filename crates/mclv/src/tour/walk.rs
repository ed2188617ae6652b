//! Walk tours: the one loop body that the tour engine and the training tours share.

use super::StoppingSet;
use crate::chain::{Chains, Clock};
use crate::model::Rbm;
use mclv_kernels::layer::Scratch;
use mclv_kernels::tiles::Tiles;

/// One tour in its place in a block of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the tour, by the caller's count.
    pub(crate) tour: usize,
    /// The number of steps that the tour has made.
    pub(crate) length: u64,
}

/// A tour that a step has ended: it is in the stopping set, or it has reached the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The place of the tour in the block.
    pub(crate) place: usize,
    /// The row of the stopping set that the tour is in. `None` if it is not in the set.
    pub(crate) row: Option<usize>,
    /// True if the tour is in its own start, when starts may lie outside the set.
    pub(crate) at_first: bool,
}

/// Tours that are being walked, in a block of chains.
pub(crate) struct Walk<'a> {
    rbm: &'a Rbm,
    set: &'a StoppingSet,
    chains: &'a mut Chains,
    places: Vec<Place>,
    /// The number of steps after which a tour is cut.
    limit: u64,
    /// The packed first state of each tour, if a tour also ends there.
    first: Option<&'a [u64]>,
    arrivals: Vec<Arrival>,
}

impl<'a> Walk<'a> {
    /// Walks tours whose hidden states are those of `chains`. A tour is cut when it has made
    /// `limit` steps.
    pub(crate) fn new(
        rbm: &'a Rbm,
        set: &'a StoppingSet,
        chains: &'a mut Chains,
        places: Vec<Place>,
        limit: u64,
    ) -> Self {
        assert_eq!(chains.len(), places.len(), "a chain for each tour");
        Self { rbm, set, chains, places, limit, first: None, arrivals: Vec::new() }
    }

    /// Lets a tour also end in its first state. `first` holds the first state of every tour, by the
    /// caller's count.
    pub(crate) fn ending_at_first(mut self, first: Option<&'a [u64]>) -> Self {
        self.first = first;
        self
    }

    /// Returns true if no tour is left.
    pub(crate) fn is_over(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the tours, place by place.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the chains of the tours.
    pub(crate) fn chains(&mut self) -> &mut Chains {
        self.chains
    }

    /// Makes one step of every tour. `visit` sees the joint states `(v_k, h_k)` before `h_{k+1}` is
    /// drawn; `means` receives `E[h|v_k]`. Returns the tours that the step has ended, in order of
    /// their places. The caller then starts other tours in their places with
    /// [`start`](Self::start), or gives up the places with [`leave`](Self::leave).
    pub(crate) fn step(
        &mut self,
        scratch: &mut Scratch,
        means: Option<&mut Tiles>,
        visit: impl FnOnce(&Chains, &[Place], &mut Scratch),
    ) -> Vec<Arrival> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.clear();
        self.chains.draw_visible(self.rbm, scratch);
        visit(self.chains, &self.places, scratch);
        self.chains.draw_hidden(self.rbm, scratch, means);
        for (place, at) in self.places.iter_mut().enumerate() {
            at.length += 1;
            let state = self.chains.h_of(place);
            let at_first =
                self.first.is_some_and(|first| &first[at.tour * state.len()..][..state.len()] == state);
            let row = self.set.find(state);
            if row.is_some() || at_first || at.length >= self.limit {
                arrivals.push(Arrival { place, row, at_first });
            }
        }
        arrivals
    }

    /// Starts another tour in a place.
    pub(crate) fn start(&mut self, place: usize, tour: Place, clock: Clock, h: &[u64]) {
        self.places[place] = tour;
        *self.chains.clock_of(place) = clock;
        self.chains.set_h_of(place, h);
    }

    /// Takes back the list of arrivals for the next step.
    pub(crate) fn reuse(&mut self, arrivals: Vec<Arrival>) {
        self.arrivals = arrivals;
    }

    /// Gives up the places of some arrivals, and takes back the list for the next step.
    pub(crate) fn leave(&mut self, arrivals: Vec<Arrival>) {
        if !arrivals.is_empty() {
            // The list is in order of places.
            let stays = |place: usize| arrivals.binary_search_by_key(&place, |ended| ended.place).is_err();
            self.chains.retain(stays);
            let mut place = 0..;
            self.places.retain(|_| place.next().is_some_and(stays));
        }
        self.reuse(arrivals);
    }
}
