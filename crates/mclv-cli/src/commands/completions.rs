//! `mclv completions`: print a completion script.

use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::args::Cli::command(), "mclv", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
