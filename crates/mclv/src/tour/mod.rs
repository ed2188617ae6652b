//! Stopping sets, and the distribution over them that tours start from.

mod alias;
mod start_table;
mod stopping_set;

pub(crate) use start_table::StartTable;
pub use stopping_set::StoppingSet;
