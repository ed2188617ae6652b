//! Everything that the program says is compared with enumeration: likelihoods, log Z, intervals,
//! "best", verdicts and warnings.

mod commands;
mod log_z;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "a part of what the other tests need")]
mod support;
mod training;
