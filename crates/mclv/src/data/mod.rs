//! Read, make and prepare data sets.

mod rows;

pub use rows::{RealRows, Rows};
