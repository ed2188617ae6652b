//! Test that training follows its settings.

mod updates;
