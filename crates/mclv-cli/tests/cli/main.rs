//! The command from outside. One program: ten would be linked ten times.

mod bad_input;
mod commands;
mod logz;
mod process;
mod report;
mod reproduce;
mod reproducibility;
mod sample;
mod support;
mod tours;
mod train;
