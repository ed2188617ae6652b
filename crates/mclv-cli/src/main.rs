//! The `mclv` command: it parses arguments, calls the library and prints a table or JSON.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr)]

mod cli;
mod commands;
mod events;
mod flags;
mod half_blocks;
mod live;
mod output;
mod plot;
mod ranks;
mod rows_table;
mod signals;
mod sparkline;
mod terminal_picture;
mod watch;

use cli::{Cli, Command};
use mclv::settings::Spelling;
use mclv::shell;
use mclv::team;
use mclv::train::RunFolder;
use output::{Output, tell};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

const SUCCESS: u8 = 0;
/// Clap exits with 2 for wrong usage.
const FAILURE: u8 = 1;
/// Time that a failing rank waits for the first rank, which usually prints the same error and ends
/// all ranks.
const PATIENCE: Duration = Duration::from_secs(2);
/// The exit code that shells use for a process ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    signals::keep_ignored();
    // Wrong usage is found before ranks exist, so each process prints it.
    let cli = Cli::from_arguments();
    ranks::run(|| run_and_say(&cli)).into()
}

/// Runs the command, prints its error if there is one, and returns the exit code.
fn run_and_say(cli: &Cli) -> u8 {
    match run(cli) {
        Ok(()) => SUCCESS,
        // A closed pipe is no error, as in `mclv … | head`.
        Err(error) if is_broken_pipe(&error) => SUCCESS,
        Err(error) => {
            let code = match error.downcast_ref() {
                Some(mclv::Error::Cancelled) => INTERRUPTED,
                _ => FAILURE,
            };
            let rank = match team::rank() {
                0 => String::new(),
                _ if code == INTERRUPTED => return code,
                rank => {
                    std::thread::sleep(PATIENCE);
                    format!("rank {rank}: ")
                }
            };
            let text = format!("{rank}{}{}", in_words(&error), cure(&error));
            if cli.global.json {
                tell(&serde_json::json!({ "error": text }).to_string());
            } else {
                tell(&format!("error: {text}"));
            }
            code
        }
    }
}

/// The error and its causes, with settings spelled as flags.
fn in_words(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|cause| match cause.downcast_ref::<mclv::Error>() {
        Some(error) => error.in_words(Spelling::Flags),
        None => cause.to_string(),
    });
    causes.collect::<Vec<_>>().join(": ")
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    start_logging(cli.global.verbose);
    if let Some(n) = cli.global.threads {
        rayon::ThreadPoolBuilder::new().num_threads(n.into()).build_global()?;
    }
    tracing::info!("{} threads, kernels {}", rayon::current_num_threads(), mclv::kernels());
    let out = Output::new(cli.global.json);
    // This comes before all other exchanges, which follow from the arguments.
    if team::size() > 1 {
        team::agree(&cli.facts())?;
    }
    if !team::is_first() && !cli.command.is_shared() {
        return Ok(());
    }
    match &cli.command {
        Command::Data(command) => commands::data::run(command, &cli.global, &out),
        Command::Train(args) => commands::train::run(args, &cli.global, &out),
        Command::Sweep(args) => commands::sweep::run(args, &cli.global, &out),
        Command::Init(args) => commands::init::run(args, &cli.global, &out),
        Command::Inspect(args) => commands::inspect::run(args, &out),
        Command::Logz(args) => commands::logz::run(args, &cli.global, &out),
        Command::Likelihood(args) => commands::likelihood::run(args, &cli.global, &out),
        Command::Modes(args) => commands::modes::run(args, &cli.global, &out),
        Command::Lab(args) => commands::lab::run(args, &cli.global, &out),
        Command::Convert(args) => commands::convert::run(args, &out),
        Command::Sample(args) => commands::sample::run(args, &cli.global, &out),
        Command::Tours(args) => commands::tours::run(args, &cli.global, &out),
        Command::Transform(args) => commands::transform::run(args, &cli.global, &out),
        Command::Reproduce(args) => commands::reproduce::run(args, &cli.global, &out),
        Command::Report(args) => commands::report::run(args, &out),
        Command::Plot(args) => commands::plot::run(args, &out),
        Command::Selftest => commands::selftest::run(&out),
        Command::Completions(args) => commands::completions::run(args),
    }
}

fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let colour =
        std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Log(std::io::stderr()))
        .with_ansi(colour)
        .without_time()
        .with_target(false)
        .init();
}

/// The log on standard error, made safe to show.
struct Log(std::io::Stderr);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        // The escapes of the messages are replaced already; what is left are the colours.
        let parts: Vec<_> = text.split('\x1b').map(mclv::printable).collect();
        self.0.write_all(parts.join("\x1b").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A command that fixes an error of the library, after a separator; empty for most errors.
fn cure(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(mclv::Error::NotFetched { name, .. }) => {
            format!("; fetch it with: mclv data fetch {}", shell::quoted(name))
        }
        Some(mclv::Error::InvalidSetting { name: "run folder", value, .. }) => {
            format!("; to resume it: mclv train --resume {}", shell::path(value.as_ref()))
        }
        Some(mclv::Error::InvalidSetting { name: "sweep folder", value, .. }) => {
            format!("; to resume it: mclv sweep --resume {}", shell::path(value.as_ref()))
        }
        Some(mclv::Error::UnfinishedSweep { path }) => {
            format!("; to finish it: mclv sweep --resume {}", shell::path(path))
        }
        Some(mclv::Error::Unfinished { path, .. }) => {
            let (run, config) = (shell::path(path), shell::path(&RunFolder::new(path).config()));
            format!(
                "; to finish it: mclv train --resume {run}; to train from its model as it is: mclv train --config \
                 {config} --from {run}"
            )
        }
        _ => String::new(),
    }
}

/// Returns true if printing failed because of a closed pipe. Files and networks fail with an error
/// of the library.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_set_that_was_not_fetched_comes_with_the_command_that_does() {
        let (name, attempts, files, folder) =
            ("mnist".into(), String::new(), String::new(), std::path::PathBuf::new());
        let error = anyhow::Error::from(mclv::Error::NotFetched { name, attempts, files, folder });
        assert_eq!(cure(&error.context("train rows")), "; fetch it with: mclv data fetch mnist");
        assert_eq!(cure(&mclv::Error::Cancelled.into()), "");
    }

    #[test]
    fn only_a_broken_pipe_of_ours_is_no_error() {
        assert!(is_broken_pipe(&Error::from(ErrorKind::BrokenPipe).into()));
        let model = mclv::Error::io("write", "pipe.safetensors")(ErrorKind::BrokenPipe.into());
        assert!(!is_broken_pipe(&model.into()));
        assert!(!is_broken_pipe(&Error::from(ErrorKind::StorageFull).into()));
    }
}
