//! Counts the memory of stopping sets and of their tables of starts.

use super::DataSets;
use crate::task::SpaceOf;
use mclv::data::Split;
use mclv::progress::Progress;
use mclv::{Rbm, Result, StoppingSet};
use serde::{Deserialize, Serialize};

/// The memory of a stopping set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// States drawn: rows times states per row.
    pub n_drawn: usize,
    /// Distinct states.
    pub n_states: usize,
    /// Bytes of the set: packed states, and the hash table that finds them.
    pub set_bytes: usize,
    /// Bytes of the table of starts.
    pub table_bytes: usize,
}

pub(super) fn run(of: &SpaceOf, rbm: &Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<Space> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let rows: Vec<usize> = (0..of.n_rows.min(data.n_rows())).collect();
    let set = StoppingSet::draw(rbm, &data.rows, &rows, of.samples_per_row, of.seed, 0)?;
    Ok(Space {
        n_drawn: rows.len() * of.samples_per_row,
        n_states: set.len(),
        set_bytes: set.n_bytes(),
        table_bytes: set.n_bytes_of_starts(),
    })
}
