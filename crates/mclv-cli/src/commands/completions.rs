//! `mclv completions`: prints a completion script.

use crate::cli::Cli;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

#[derive(Args)]
#[command(after_help = "Example:\n  mclv completions bash > ~/.local/share/bash-completion/completions/mclv")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mclv", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
