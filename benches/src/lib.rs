//! Shared timing helpers.
