//! Does training do what its settings say?

mod updates;
