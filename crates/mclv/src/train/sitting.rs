//! Record when, where and how a run was made, in its folder.

use crate::file::{date, now};
use crate::shell;
use crate::team;
use serde::{Deserialize, Serialize};

/// A part of a run that one process made without a break: from its start or a resumption to its end
/// or an interruption.
///
/// These facts differ from machine to machine, so they are in a file of their own and in no model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sitting {
    /// When it began, in seconds since 1970 (UTC).
    pub begun: u64,
    /// When it ended. `None` while it goes on, and if the process was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// The number of epochs that were finished before it.
    pub from_epoch: usize,
    /// The number of epochs that were finished when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_epoch: Option<usize>,
    /// The program and its arguments, as they were typed. Empty if a library made the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The number of cores that the process may use.
    pub n_cores: usize,
    /// The number of threads of each process.
    pub n_threads: usize,
    /// The number of processes.
    pub n_ranks: usize,
    /// The processor architecture and the operating system, such as `x86_64-linux`.
    pub machine: String,
    /// The instruction set of the kernels.
    pub kernels: String,
    /// The version of the program.
    pub mclv_version: String,
}

impl Sitting {
    /// Describes a sitting that begins now, after `from_epoch` finished epochs.
    pub(super) fn begin(from_epoch: usize, command: Vec<String>) -> Self {
        Self {
            begun: now(),
            ended: None,
            from_epoch,
            to_epoch: None,
            command,
            n_cores: std::thread::available_parallelism().map_or(1, usize::from),
            n_threads: rayon::current_num_threads(),
            n_ranks: team::size(),
            machine: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            kernels: mclv_kernels::Isa::best().name().into(),
            mclv_version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Ends it now.
    pub(super) fn end(&mut self, to_epoch: usize) {
        (self.ended, self.to_epoch) = (Some(now()), Some(to_epoch));
    }

    /// Returns the command as a line for a shell. `None` if a library made the run.
    ///
    /// ```
    /// use mclv::train::Sitting;
    /// let sitting: Sitting = serde_json::from_str(
    ///     r#"{"begun": 1763494200, "from_epoch": 0, "command": ["mclv", "train", "my data.csv"],
    ///         "n_cores": 2, "n_threads": 2, "n_ranks": 1, "machine": "x86_64-linux", "kernels": "avx2+fma",
    ///         "mclv_version": "0.1.0"}"#,
    /// )?;
    /// assert_eq!(sitting.command_line().as_deref(), Some("mclv train 'my data.csv'"));
    /// assert_eq!(sitting.date(), "2025-11-18 19:30 UTC");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn command_line(&self) -> Option<String> {
        let quoted = |word: &String| shell::quoted(word);
        (!self.command.is_empty()).then(|| self.command.iter().map(quoted).collect::<Vec<_>>().join(" "))
    }

    /// Returns the date and time of its beginning, such as `2025-11-18 19:30 UTC`.
    pub fn date(&self) -> String {
        date(self.begun)
    }

    /// Returns the seconds that it took. `None` if its end is not known.
    pub fn seconds(&self) -> Option<u64> {
        Some(self.ended?.saturating_sub(self.begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let command = ["mclv", "train", "a b.csv", "it's", "", "--k=2"].map(String::from).to_vec();
        let sitting = Sitting::begin(3, command);
        assert_eq!(sitting.command_line().unwrap(), r"mclv train 'a b.csv' 'it'\''s' '' --k=2");
        assert_eq!((sitting.from_epoch, sitting.seconds()), (3, None));
        assert!(sitting.n_cores > 0 && sitting.n_threads > 0 && !sitting.kernels.is_empty());
        assert_eq!(Sitting::begin(0, Vec::new()).command_line(), None);
    }
}
