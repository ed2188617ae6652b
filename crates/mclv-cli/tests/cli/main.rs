//! Test the command as users run it. All modules form one test program, which is linked once.

mod bad_input;
mod commands;
mod data;
mod edges;
mod lab;
mod logz;
mod modes;
mod process;
mod report;
mod reproduce;
mod reproducibility;
mod runs;
mod sample;
mod support;
mod sweep;
mod tours;
mod train;
mod untrusted;
